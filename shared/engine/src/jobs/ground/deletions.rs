//! Deleting what a cascade has listed: many items in a transaction that checks once that their owner is absent.

use std::collections::BTreeMap;

use derive::{
    declaration::cascade::{Cascade, Fate, Hanging},
    effect::Removal,
    guard::{Guard, Purpose},
    schema::Image,
    write::{Action, TRANSACT_ACTIONS_MAX, Table, Update, Write},
};
use keys::{
    counter::{SUM, VALUE},
    item::Item,
    key::Key,
    size::item_bytes,
    value::is_zero,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{
    attribute::{n, s},
    jobs::{
        ground::{Worker, listed::Listed},
        touch::{TouchFailure, TouchOutcome, Toucher, Work},
    },
    ledger::watermarks::marks,
};

/// How deletions ended.
pub(super) enum Deletion {
    /// So many are done. The others are of items that have changed.
    Done(u64),
    OwnerExists,
}

/// Items and bytes of items that are deleted in one transaction. Conditions compare what items hold, and a transaction
/// may have 4 MB.
const DELETIONS_MAX: usize = 24;
const DELETION_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The writes in transactions, beside so many checks.
pub(super) fn chunks(writes: Vec<(Write, usize)>, n_checks: usize) -> Vec<Vec<Write>> {
    let n_max = TRANSACT_ACTIONS_MAX.saturating_sub(n_checks).clamp(1, DELETIONS_MAX);
    let (mut chunks, mut n_bytes) = (Vec::<Vec<Write>>::new(), 0);
    for (write, bytes) in writes {
        n_bytes += bytes;
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < n_max && n_bytes <= DELETION_BYTES_MAX => chunk.push(write),
            _ => {
                n_bytes = bytes;
                chunks.push(vec![write]);
            }
        }
    }
    chunks
}

/// What becomes of a counter with watermarks: it counts nothing and keeps them, so that what comes again finds them. The
/// sweep collects it when they are old. `None` where that is done.
fn emptied(counter: &Item) -> Option<Action> {
    if [VALUE, SUM].iter().all(|name| counter.get(name).is_none_or(is_zero)) {
        return None;
    }
    let set = Item::from([(VALUE.to_owned(), n(0))]);
    Some(Action::Update(Update { set, remove: [SUM.to_owned()].into(), ..Update::default() }))
}

impl<S: Store> Worker<'_, S> {
    /// What becomes of those items that are as they were listed, each with its size in bytes.
    pub(super) async fn fates(
        &self,
        listed: Vec<Listed>,
        cascade: &Cascade,
        hanging: &Hanging,
        removal: &Removal,
        work: &Work<'_>,
    ) -> Result<Vec<(Write, usize)>, TouchFailure> {
        let keys: Vec<Key> = listed.iter().map(|listed| listed.key.clone()).collect();
        let held = work.batch.patience.call(|| self.context.store.get(Table::Main, &keys)).await?;
        let held: BTreeMap<Key, Item> = held.into_iter().collect();
        let fates = listed.into_iter().filter_map(|Listed { key, digest }| {
            let item = held.get(&key)?;
            // `what_was_changed_since_it_was_listed_stays` holds this.
            let is_listed = self.digest(&key, item, hanging) == digest;
            let write = is_listed.then(|| self.fate(key, item, cascade, hanging, removal))??;
            Some((write, item_bytes(item)))
        });
        Ok(fates.collect())
    }

    /// What becomes of an item, if it is as it was read; `None` where nothing does.
    fn fate(&self, key: Key, held: &Item, cascade: &Cascade, hanging: &Hanging, removal: &Removal) -> Option<Write> {
        // Without a type attribute its key says what it is; then it is asked to be there at all.
        let layout = &self.context.schema.layout;
        let of_entity = layout.type_of(&hanging.entity).unwrap_or_else(|| (layout.sk.clone(), s(&key.sk)));
        let mut says = self.compared(&key, held, hanging);
        says.insert(of_entity.0, Some(of_entity.1));
        let action = match &hanging.fate {
            Fate::Deleted if marks(held).next().is_some() => emptied(held)?,
            Fate::Deleted => Action::Delete,
            Fate::DeletedWhere { attribute, field } => {
                let image = self.context.schema.image(&key, held)?;
                if !self.names_owner(&image, (attribute, field), cascade, &removal.owner) {
                    return None;
                }
                says.insert(attribute.clone(), held.get(attribute).cloned());
                Action::Delete
            }
            Fate::Set { attribute, text } if held.get(attribute) == Some(&s(text)) => return None,
            Fate::Set { attribute, text } => {
                Action::Update(Update::set(Item::from([(attribute.clone(), AttributeValue::S(text.clone()))])))
            }
        };
        let guard = Some(Guard::as_read(Purpose::StillTheirs, says));
        Some(Write { table: Table::Main, key, action, guard })
    }

    /// Does an attribute of an item hold this field of the owner's key? It may be of type N or B, where the key is.
    fn names_owner(&self, image: &Image<'_>, (attribute, field): (&str, &str), cascade: &Cascade, owner: &Key) -> bool {
        let Some(definition) = self.context.schema.entity(&cascade.owner) else { return false };
        let Some(fields) = definition.key.parse_key(owner) else { return false };
        let Ok(Some(held)) = image.filling(attribute, &definition.key, field) else { return false };
        let value = |name: &str| if name == field { Some(&*held) } else { fields.get(name) };
        definition.build_of(value).is_ok_and(|named| named == *owner)
    }

    /// Does these writes in a transaction that checks that the owner is absent, without those whose items have changed.
    ///
    /// Transactions that check the same owner at once would conflict, so one follows the other.
    pub(super) async fn delete(
        &self,
        mut writes: Vec<Write>,
        removal: &Removal,
        work: &mut Work<'_>,
    ) -> Result<Deletion, TouchFailure> {
        let absent = removal.absent.iter().map(|owner| Write {
            table: Table::Main,
            key: owner.clone(),
            action: Action::Check,
            guard: Some(Guard::absent(Purpose::OwnerAbsent)),
        });
        let absent: Vec<Write> = absent.collect();
        while !writes.is_empty() {
            let all = absent.iter().chain(&writes).cloned().collect();
            match Toucher::new(self.context).decided(all, work).await {
                Ok(TouchOutcome::Done) => return Ok(Deletion::Done(u64::try_from(writes.len()).unwrap_or(0))),
                Ok(TouchOutcome::Unheld(at)) if at.iter().any(|at| *at < absent.len()) => {
                    return Ok(Deletion::OwnerExists);
                }
                Ok(TouchOutcome::Unheld(at)) => {
                    let mut place = absent.len();
                    writes.retain(|_| (!at.contains(&place), place += 1).0);
                }
                Err(TouchFailure::Refused(_)) if writes.len() > 1 => {
                    return self.delete_singly(writes, removal, work).await;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Deletion::Done(0))
    }

    /// Does each of these writes by itself, so that one that is refused keeps no other from being done.
    async fn delete_singly(
        &self,
        writes: Vec<Write>,
        removal: &Removal,
        work: &mut Work<'_>,
    ) -> Result<Deletion, TouchFailure> {
        let (mut n_done, mut refused) = (0, None);
        for write in writes {
            match Box::pin(self.delete(vec![write], removal, work)).await {
                Ok(Deletion::Done(n)) => n_done += n,
                Ok(Deletion::OwnerExists) => return Ok(Deletion::OwnerExists),
                Err(TouchFailure::Refused(why)) => refused = Some(why),
                Err(failure) => return Err(failure),
            }
        }
        refused.map_or(Ok(Deletion::Done(n_done)), |why| Err(TouchFailure::Refused(why)))
    }
}
