//! Suspects: items that differed when the sweep checked them, noted until it is clear whether they have drifted.
//!
//! *Keeps true*: an item has drifted if it differed in the same way at both ends of the waiting time, and no pending
//! work would change it. The note of an item that is now correct is deleted; an item that differs in another way is
//! noted again, because something is changing it.
//!
//! A note contains keys and names, and only a checksum of values: of the write's effect, and of the item's values that
//! it would replace. Two checks with the same checksum found the same difference.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    guard::{Guard, Purpose},
    position::DerivationAt,
    query::Query,
    refresh::Look,
    sources::Source,
    tally::Tally,
    write::{Action, Table, Write},
};
use flate2::Crc;
use futures::{StreamExt, stream};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::{Cursor, Outcome, Store};

use crate::{
    attribute::{fitted, n, number, s},
    backoff::{GaveUp, Patience},
    ledger::{EXPIRES_AT, ledger_item},
    reading::{CALLS_AT_ONCE, StoredItems},
    redrive::waiting,
    requests::RefreshRequests,
    sweep::{Drift, ITEMS_AT_ONCE, Slice, TableSweep, counts::target_of},
};

/// Partition key of the list. Stored, so it is stable.
const SUSPECTS: &str = "SUSPECTS";

/// How long a note is kept, in seconds: 15 days. If it expires while its item still differs, the sweep notes the item
/// again.
pub(crate) const SUSPECT_KEPT_S: u64 = 15 * 24 * 3600;

// Attributes of a note. Stored, so they are stable.
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const ENTITY: &str = "Entity";
const DERIVATIONS: &str = "Derivations";
const NAMED: &str = "Named";
const DIFFERENCE: &str = "Difference";
const NOTED_AT: &str = "NotedAt";

/// An item that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// The item.
    pub(crate) item: Key,
    /// Its entity.
    pub(crate) entity: String,
    /// Names of the derivations that request its check.
    pub(crate) derivations: Vec<String>,
    /// Sources that the sweep read and that name the item.
    pub(crate) named: BTreeSet<Key>,
    /// Checksum of the difference.
    pub(crate) difference: String,
    /// When this difference was first seen, in milliseconds since the epoch.
    pub(crate) noted_at_ms: u64,
}

impl Suspect {
    fn new(catalogue: &Catalogue, differing: Differing, noted_at_ms: u64) -> Self {
        let Differing { look, difference, .. } = differing;
        let derivations = look.derivations.iter().map(|at| catalogue.name(*at).to_owned()).collect();
        Self { item: look.item, entity: look.entity, derivations, named: look.named, difference, noted_at_ms }
    }

    /// The suspect of a note; `None` if the note cannot be read.
    fn of(note: &Item) -> Option<Self> {
        let list = |name: &str| match note.get(name) {
            Some(AttributeValue::L(values)) => values.iter().map(a_text).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        // Keys are in one list, each as two consecutive parts.
        let named = list(NAMED)?;
        let named = named.chunks_exact(2).filter_map(|pair| Some(Key::new(pair.first()?, pair.get(1)?)));
        Some(Self {
            item: Key::new(text(note, ITEM_PK)?, text(note, ITEM_SK)?),
            entity: text(note, ENTITY)?.to_owned(),
            derivations: list(DERIVATIONS)?,
            named: named.collect(),
            difference: text(note, DIFFERENCE)?.to_owned(),
            noted_at_ms: number(note, NOTED_AT)?,
        })
    }

    fn key(&self) -> Key {
        Key::new(SUSPECTS, fitted(format!("{}#{}#{}", self.entity, self.item.pk, self.item.sk)))
    }

    fn look(&self, catalogue: &Catalogue) -> Look {
        let derivations = self.derivations.iter().filter_map(|name| catalogue.position(name)).collect();
        Look { item: self.item.clone(), entity: self.entity.clone(), derivations, named: self.named.clone() }
    }

    /// The write of the note; it replaces another note only if that is still the one that was read.
    pub(crate) fn note(&self, layout: &Layout, instead_of: Option<&Self>) -> Write {
        let named = self.named.iter().flat_map(|key| [s(&key.pk), s(&key.sk)]);
        let attributes = [
            (ITEM_PK, s(&self.item.pk)),
            (ITEM_SK, s(&self.item.sk)),
            (ENTITY, s(&self.entity)),
            (DERIVATIONS, AttributeValue::L(self.derivations.iter().map(|name| s(name)).collect())),
            (NAMED, AttributeValue::L(named.collect())),
            (DIFFERENCE, s(&self.difference)),
            (NOTED_AT, n(self.noted_at_ms)),
            (EXPIRES_AT, n((self.noted_at_ms / 1000).saturating_add(SUSPECT_KEPT_S))),
        ];
        let action = Action::Put(ledger_item(layout, &self.key(), attributes));
        let guard = Self::as_noted(instead_of);
        Write { table: Table::Ledger, key: self.key(), action, guard: Some(guard) }
    }

    /// The write that deletes the note, if it is still the one that was read.
    fn taken_off(&self) -> Write {
        Write { table: Table::Ledger, key: self.key(), action: Action::Delete, guard: Some(Self::as_noted(Some(self))) }
    }

    /// The guard that the note under its key is still this one, or that there is none.
    fn as_noted(read: Option<&Self>) -> Guard {
        Guard::as_read(Purpose::Suspect, [(NOTED_AT, read.map(|read| n(read.noted_at_ms)))])
    }
}

impl<S: Store> TableSweep<'_, S> {
    /// Notes items that differ. Existing notes stay unchanged.
    pub(super) async fn note_differing(
        &self,
        differing: Vec<Differing>,
        patience: Patience<'_>,
        slice: &mut Slice,
    ) -> Result<(), GaveUp> {
        let (layout, now_ms) = (&self.context.schema.layout, self.context.clock.now_ms());
        let note = |differing| Suspect::new(&self.context.catalogue, differing, now_ms).note(layout, None);
        slice.n_suspects += self.keep_notes(differing.into_iter().map(note).collect(), patience).await?;
        Ok(())
    }

    /// Checks again the suspects after this one whose waiting time is over, and returns the last; `None` at the end.
    pub(super) async fn look_again(
        &self,
        mut after: Option<String>,
        n_suspects_max: usize,
        is_past: impl Fn(u64) -> bool,
        patience: Patience<'_>,
        slice: &mut Slice,
    ) -> Result<Option<String>, GaveUp> {
        let (query, layout) = (Query::prefix(None, SUSPECTS, ""), &self.context.schema.layout);
        let mut n_left = n_suspects_max;
        loop {
            let from = after.as_ref().map(|sk| Cursor(layout.key_item(&Key::new(SUSPECTS, sk))));
            let page = patience.call(|| self.context.store.query(Table::Ledger, &query, from.clone())).await?;
            let suspects = page.items.iter().filter_map(Suspect::of).filter(|suspect| is_past(suspect.noted_at_ms));
            let mut due: Vec<Suspect> = suspects.collect();
            let n_waiting = page.items.len() - due.len();
            while !due.is_empty() {
                if n_left == 0 || patience.is_over() {
                    return Ok(after);
                }
                let later = due.split_off(due.len().min(ITEMS_AT_ONCE).min(n_left));
                n_left -= due.len();
                let last = due.last().map(|suspect| suspect.key().sk);
                self.judge_suspects(due, patience, slice).await?;
                (after, due) = (last, later);
            }
            after = page.next.and_then(|Cursor(next)| layout.key(&next)).map(|key| key.sk);
            // Suspects that are not due were read too.
            n_left = n_left.saturating_sub(n_waiting);
            if after.is_none() || n_left == 0 || patience.is_over() {
                return Ok(after);
            }
        }
    }

    /// Checks suspects whose waiting time is over: those with the same difference have drifted, unless they are
    /// pending.
    async fn judge_suspects(&self, due: Vec<Suspect>, patience: Patience<'_>, slice: &mut Slice) -> Result<(), GaveUp> {
        let mut differing = self.those_that_differ(&due, patience).await?;
        let (layout, now_ms) = (&self.context.schema.layout, self.context.clock.now_ms());
        let (mut same, mut taken_off, mut anew) = (Vec::new(), Vec::new(), Vec::new());
        let mut sources = BTreeSet::new();
        for suspect in due {
            match differing.remove(&(suspect.item.clone(), suspect.entity.clone())) {
                None => taken_off.push(suspect.taken_off()),
                Some(differing) if differing.difference == suspect.difference => {
                    sources.extend(differing.look.named.into_iter().map(Source::Item).chain(differing.decided_by));
                    same.push(suspect);
                }
                Some(differing) => {
                    anew.push(Suspect::new(&self.context.catalogue, differing, now_ms).note(layout, Some(&suspect)));
                }
            }
        }
        self.keep_notes(taken_off, patience).await?;
        slice.n_suspects += self.keep_notes(anew, patience).await?;
        if same.is_empty() {
            return Ok(());
        }
        // This read comes before the deciding check: a job that refreshes an item between the two leaves it correct.
        let mut firsts = sources.clone();
        firsts.retain(|source| matches!(source, Source::First(_)));
        let is_asked = |item: &Key| {
            sources.contains(&Source::Item(item.clone())) || firsts.iter().any(|source| source.may_be(item))
        };
        let waiting = waiting::what_is_under_way(self.context, is_asked, patience).await?;
        let mut differing = self.those_that_differ(&same, patience).await?;
        let still = |suspect: Suspect| {
            let differing = differing.remove(&(suspect.item, suspect.entity))?;
            (differing.difference == suspect.difference).then_some(differing)
        };
        for differing in same.into_iter().filter_map(still).collect::<Vec<_>>() {
            let Differing { look, stored, decided_by, derivations, .. } = &differing;
            let Look { item, named, .. } = look;
            let items = [item].into_iter().chain(named);
            let is_waiting = if let Some(target) = target_of(look) {
                self.count_waits(&target, &waiting)
            } else {
                let named: Vec<Source> = named.iter().cloned().map(Source::Item).collect();
                waiting.pending(item, stored.as_ref(), named.iter().chain(decided_by), derivations).is_some()
            };
            if is_waiting || waiting::is_listed_unreadable(self.context, items, derivations, patience).await? {
                continue;
            }
            let derivations =
                differing.derivations.iter().map(|at| self.context.catalogue.label(*at).to_owned()).collect();
            slice.drifts.push(Drift { item: differing.look.item, derivations });
        }
        Ok(())
    }

    /// The suspects that differ now, by item and entity.
    async fn those_that_differ(
        &self,
        suspects: &[Suspect],
        patience: Patience<'_>,
    ) -> Result<BTreeMap<(Key, String), Differing>, GaveUp> {
        let (mut requests, mut counts) = (RefreshRequests::default(), Vec::new());
        for suspect in suspects {
            let look = suspect.look(&self.context.catalogue);
            if let Some(target) = target_of(&look) {
                counts.push(target);
                continue;
            }
            let Look { item, entity, derivations, named } = look;
            requests.add(item, entity, named.into_iter().collect(), &derivations, &BTreeSet::new());
        }
        let mut differing = self.differing_now(requests, StoredItems::new(), patience).await?;
        differing.extend(self.counts_now(counts, patience).await?);
        let of = |differing: Differing| ((differing.look.item.clone(), differing.look.entity.clone()), differing);
        Ok(differing.into_iter().map(of).collect())
    }

    /// Sends these writes to the ledger's table, and returns how many were done.
    async fn keep_notes(&self, writes: Vec<Write>, patience: Patience<'_>) -> Result<usize, GaveUp> {
        let writes =
            writes.into_iter().map(|write| async move { patience.call(|| self.context.store.write(&write)).await });
        let mut n_done = 0;
        let mut writes = stream::iter(writes).buffer_unordered(CALLS_AT_ONCE);
        while let Some(outcome) = writes.next().await {
            n_done += usize::from(matches!(outcome?, Outcome::Done { .. }));
        }
        Ok(n_done)
    }
}

fn a_text(value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::S(text) => Some(text.clone()),
        _ => None,
    }
}

// ---- An item that differs, and how ----

/// An item that is not correct.
pub(super) struct Differing {
    /// The item, as it was checked.
    pub(super) look: Look,
    /// The stored item.
    pub(super) stored: Option<Item>,
    /// What decides its value.
    pub(super) decided_by: BTreeSet<Source>,
    /// Positions of the derivations whose part differs.
    pub(super) derivations: Vec<DerivationAt>,
    /// Checksum of the difference.
    pub(super) difference: String,
}

/// Checksum of a write's effect on an item, and of the item's values that it would replace. Other attributes are left
/// out, because they may change all the time beside a part that has drifted.
pub(crate) fn difference(write: &Write, stored: Option<&Item>) -> String {
    let mut sum = Checksum(Crc::new());
    match &write.action {
        Action::Put(item) => {
            sum.text("put");
            item.iter().for_each(|(name, value)| sum.attribute(name, Some(value)));
        }
        Action::Update(update) => {
            sum.text("update");
            for (name, value) in &update.set {
                sum.attribute(name, Some(value));
                sum.attribute(name, stored.and_then(|stored| stored.get(name)));
            }
            for name in &update.remove {
                sum.attribute(name, None);
                sum.attribute(name, stored.and_then(|stored| stored.get(name)));
            }
        }
        Action::Delete | Action::Check => sum.text("delete"),
    }
    format!("{:08x}", sum.0.sum())
}

/// Checksum of items and of a number for each.
pub(super) fn of_numbers(numbers: impl IntoIterator<Item = (Key, Tally)>) -> String {
    let mut sum = Checksum(Crc::new());
    for (key, tally) in numbers {
        for text in [&key.pk, &key.sk, &tally.count.to_string(), &tally.sum.to_string()] {
            sum.text(text);
        }
    }
    format!("{:08x}", sum.0.sum())
}

/// A checksum of texts and values. Maps and sets have no fixed order, so their elements are sorted.
struct Checksum(Crc);

impl Checksum {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn attribute(&mut self, name: &str, value: Option<&AttributeValue>) {
        self.text(name);
        match value {
            Some(value) => self.value(value),
            None => self.text("none"),
        }
    }

    fn value(&mut self, value: &AttributeValue) {
        match value {
            AttributeValue::S(text) => ["S", text].iter().for_each(|text| self.text(text)),
            AttributeValue::N(text) => ["N", text].iter().for_each(|text| self.text(text)),
            AttributeValue::B(bytes) => {
                self.text("B");
                self.bytes(bytes);
            }
            AttributeValue::Bool(truth) => self.text(if *truth { "true" } else { "false" }),
            AttributeValue::Null(_) => self.text("null"),
            AttributeValue::L(values) => {
                self.text(&format!("L{}", values.len()));
                for value in values {
                    self.value(value);
                }
            }
            AttributeValue::M(map) => {
                self.text(&format!("M{}", map.len()));
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(name, _)| *name);
                for (name, value) in entries {
                    self.attribute(name, Some(value));
                }
            }
            AttributeValue::Ss(texts) => self.set("SS", texts),
            AttributeValue::Ns(texts) => self.set("NS", texts),
            AttributeValue::Bs(all) => self.set("BS", all),
        }
    }

    fn set<T: AsRef<[u8]> + Ord>(&mut self, kind: &str, elements: &[T]) {
        self.text(&format!("{kind}{}", elements.len()));
        let mut elements: Vec<&T> = elements.iter().collect();
        elements.sort();
        for element in elements {
            self.bytes(element.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use derive::write::Update;

    use super::*;

    #[test]
    fn a_suspect_reads_back_as_it_was_noted() {
        let layout = Layout::of("pk", "sk");
        let mut suspect = Suspect {
            item: Key::new("USER#bob", "FOLLOWER#ann"),
            entity: "Follower".to_owned(),
            derivations: vec!["follower-mirror".to_owned(), "follower-name".to_owned()],
            named: BTreeSet::new(),
            difference: "00c0ffee".to_owned(),
            noted_at_ms: 7,
        };
        for named in [BTreeSet::new(), BTreeSet::from([Key::new("a", "b"), Key::new("c", "d")])] {
            suspect.named = named;
            let write = suspect.note(&layout, None);
            let Action::Put(note) = write.action else { panic!("it is put whole") };
            assert_eq!(Suspect::of(&note), Some(suspect.clone()));
        }
    }

    fn setting(value: AttributeValue) -> Write {
        let action = Action::Update(Update::set(Item::from([("Claims", value)])));
        Write { table: Table::Main, key: Key::new("P", "S"), action, guard: None }
    }

    fn of(value: AttributeValue) -> String {
        difference(&setting(value), None)
    }

    #[test]
    fn a_map_and_a_set_are_the_same_in_any_order() {
        let names = ["PK", "SK", "a", "b", "c", "d"];
        let map = |names: &mut dyn Iterator<Item = &str>| {
            AttributeValue::M(names.map(|name| (name.to_owned(), s(name))).collect::<HashMap<_, _>>())
        };
        assert_eq!(of(map(&mut names.into_iter())), of(map(&mut names.into_iter().rev())));
        let set = |texts: &[&str]| AttributeValue::Ss(texts.iter().map(|&text| text.to_owned()).collect());
        assert_eq!(of(set(&["a", "b"])), of(set(&["b", "a"])));
        assert_ne!(of(set(&["a", "b"])), of(set(&["ab"])));
        assert_ne!(of(AttributeValue::L(vec![s("a"), s("b")])), of(AttributeValue::L(vec![s("b"), s("a")])));
    }

    #[test]
    fn what_is_held_counts_where_it_would_be_written_and_nowhere_else() {
        let write = setting(s("new"));
        let stored = |pairs: &[(&str, &str)]| {
            let item: Item = pairs.iter().map(|(name, text)| (*name, s(text))).collect();
            difference(&write, Some(&item))
        };
        assert_eq!(stored(&[("Claims", "old"), ("Seen", "1")]), stored(&[("Claims", "old"), ("Seen", "2")]));
        assert_ne!(stored(&[("Claims", "old")]), stored(&[("Claims", "older")]));
        assert_ne!(stored(&[("Claims", "old")]), stored(&[]));
        assert_ne!(of(s("new")), of(s("newer")));
    }
}
