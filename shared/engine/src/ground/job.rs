//! A job, as it is stored: what it is for, and how far it is. It holds no values but keys.

use std::collections::HashMap;

use derive::effect::Removal;
use keys::{
    item::{Item, text},
    job::{JOB, JobKey, RUNNING, STATE, WAITING},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Cursor;

// Attributes of a job. Stored, so they are stable.
const OWNER_PK: &str = "OwnerPK";
const OWNER_SK: &str = "OwnerSK";
const ABSENT: &str = "Absent";
const NAMED: &str = "Named";
const STEP: &str = "Step";
const AFTER: &str = "After";
const TOUCHED: &str = "Touched";
const STARTED_AT: &str = "StartedAt";
const DUE_AT: &str = "DueAt";
const PK: &str = "PK";
const SK: &str = "SK";
pub(super) const MOVES: &str = "Moves";
pub(super) const MOVED_AT: &str = "MovedAt";

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its key.
    pub key: Key,
    /// Name of the derivation.
    pub derivation: String,
    /// What was removed.
    pub removal: Removal,
    /// Has it begun?
    pub is_running: bool,
    /// When it was started, in milliseconds since the epoch.
    pub started_at_ms: u64,
    /// When it may begin, in milliseconds since the epoch.
    pub due_at_ms: u64,
    /// When its cursor moved last, in milliseconds since the epoch.
    pub moved_at_ms: u64,
    /// How often its cursor has moved.
    pub n_moves: u64,
    /// Items that it has touched.
    pub n_touched: u64,
    /// What it is at, by its place in the declaration.
    pub step: usize,
    /// Where the next page begins.
    pub after: Option<Cursor>,
}

impl Job {
    /// A job that waits.
    pub(crate) fn waiting(key: &JobKey, removal: Removal, now_ms: u64, due_at_ms: u64) -> Self {
        Self {
            key: key.key(),
            derivation: key.derivation.clone(),
            removal,
            is_running: false,
            started_at_ms: now_ms,
            due_at_ms,
            moved_at_ms: now_ms,
            n_moves: 0,
            n_touched: 0,
            step: 0,
            after: None,
        }
    }

    /// The job of an item; `None` when it is none that can be read.
    #[must_use]
    pub fn of(layout: &Layout, item: &Item) -> Option<Self> {
        let key = layout.key(item)?;
        let derivation = JobKey::parse(&key)?.derivation;
        let absent = list(item, ABSENT).filter_map(|value| key_of(value).map(|(key, _)| key)).collect();
        let named = list(item, NAMED).filter_map(|value| key_of(value).map(|(key, step)| (step, key))).collect();
        let after = match item.get(AFTER) {
            Some(AttributeValue::M(map)) => {
                Some(Cursor(map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()))
            }
            _ => None,
        };
        Some(Self {
            key,
            derivation,
            removal: Removal { owner: Key::new(text(item, OWNER_PK)?, text(item, OWNER_SK)?), absent, named },
            is_running: text(item, STATE) == Some(RUNNING),
            started_at_ms: number(item, STARTED_AT)?,
            due_at_ms: number(item, DUE_AT)?,
            moved_at_ms: number(item, MOVED_AT)?,
            n_moves: number(item, MOVES)?,
            n_touched: number(item, TOUCHED)?,
            step: usize::try_from(number(item, STEP)?).ok()?,
            after,
        })
    }

    /// The whole item.
    pub(crate) fn item(&self, layout: &Layout) -> Item {
        let state = if self.is_running { RUNNING } else { WAITING };
        let keys = |keys: &mut dyn Iterator<Item = (&Key, usize)>| AttributeValue::L(keys.map(value_of).collect());
        let mut item = layout.key_item(&self.key);
        item.extend([
            (STATE.to_owned(), s(state)),
            (OWNER_PK.to_owned(), s(&self.removal.owner.pk)),
            (OWNER_SK.to_owned(), s(&self.removal.owner.sk)),
            (ABSENT.to_owned(), keys(&mut self.removal.absent.iter().map(|key| (key, 0)))),
            (NAMED.to_owned(), keys(&mut self.removal.named.iter().map(|(step, key)| (key, *step)))),
            (STARTED_AT.to_owned(), n(self.started_at_ms)),
            (DUE_AT.to_owned(), n(self.due_at_ms)),
        ]);
        item.extend(layout.type_of(JOB));
        item.extend(self.progress());
        item
    }

    /// The attributes that say how far it is.
    pub(super) fn progress(&self) -> Item {
        let mut item = Item::from([
            (STEP.to_owned(), n(u64::try_from(self.step).unwrap_or(u64::MAX))),
            (MOVES.to_owned(), n(self.n_moves)),
            (MOVED_AT.to_owned(), n(self.moved_at_ms)),
            (TOUCHED.to_owned(), n(self.n_touched)),
        ]);
        let after = self.after.as_ref().map(|Cursor(after)| after.clone()).unwrap_or_default();
        item.insert(AFTER.to_owned(), AttributeValue::M(after.into_iter().collect()));
        item
    }
}

pub(super) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(super) fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn number(item: &Item, name: &str) -> Option<u64> {
    match item.get(name) {
        Some(AttributeValue::N(text)) => text.parse().ok(),
        _ => None,
    }
}

fn list<'a>(item: &'a Item, name: &str) -> impl Iterator<Item = &'a AttributeValue> {
    match item.get(name) {
        Some(AttributeValue::L(values)) => values.as_slice(),
        _ => &[],
    }
    .iter()
}

fn value_of((key, step): (&Key, usize)) -> AttributeValue {
    let step = n(u64::try_from(step).unwrap_or(u64::MAX));
    AttributeValue::M(HashMap::from([
        (PK.to_owned(), s(&key.pk)),
        (SK.to_owned(), s(&key.sk)),
        (STEP.to_owned(), step),
    ]))
}

fn key_of(value: &AttributeValue) -> Option<(Key, usize)> {
    let AttributeValue::M(map) = value else { return None };
    let text = |name: &str| match map.get(name) {
        Some(AttributeValue::S(text)) => Some(text.clone()),
        _ => None,
    };
    let step = match map.get(STEP) {
        Some(AttributeValue::N(text)) => text.parse().ok()?,
        _ => return None,
    };
    Some((Key { pk: text(PK)?, sk: text(SK)? }, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        let layout = Layout {
            pk: "pk".into(),
            sk: "sk".into(),
            entity_type: Some("Type".into()),
            time_to_live: None,
            indexes: Vec::new(),
        };
        let key = JobKey { derivation: "user-cascade".into(), id: "e1".into() };
        let owner = Key::new("USER#ann", "PROFILE");
        let named = vec![(3, Key::new("EMAIL#a", "CLAIM"))];
        let removal = Removal { owner: owner.clone(), absent: vec![owner, Key::new("x", "y")], named };
        let mut job = Job::waiting(&key, removal, 7, 9);
        assert_eq!(Job::of(&layout, &job.item(&layout)), Some(Job { after: Some(Cursor(Item::new())), ..job.clone() }));
        (job.is_running, job.step, job.n_moves) = (true, 2, 5);
        job.after = Some(Cursor(Item::from([("pk".to_owned(), s("p"))])));
        assert_eq!(Job::of(&layout, &job.item(&layout)), Some(job));
    }
}
