//! The exceptions of a stream shard: parked changes that no counter's watermark covers, because they are unreadable, or
//! because no watermark can be set on the item under the counter's key. A redelivered exception adds nothing.
//!
//! Each is an item of its own in the partition of the shard's item, in the order of the sequence numbers. A shard may
//! have any number of them: a batch reads those between its first and its last sequence number, if the shard's item
//! states that there are any.

use std::collections::BTreeSet;

use derive::{
    coalesce::Counted,
    guard::{Guard, Purpose},
    query::{Query, SortKeys},
    write::{Action, Table, Write},
};
use keys::{key::Key, layout::Layout};
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    context::Context,
    ledger::{EXPIRES_AT, expires_at, ledger_item, watermarks::Sequence},
    park::own_id,
    protocol::ProtocolStep,
};

/// Start of an exception's sort key. Stored, so it is stable.
const EXCEPTION: &str = "EXCEPTION#";

/// Digits of a sequence number in a sort key, so that texts sort as numbers. No [`Sequence`] is longer.
const DIGITS: usize = 41;

/// The exceptions that were read of a stream shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exceptions(BTreeSet<String>);

impl Exceptions {
    /// Reads the exceptions from the lowest of these sequence numbers to the highest. A record whose number cannot be
    /// read sorts before all others.
    pub(crate) async fn read<S: Store>(
        context: &Context<S>,
        shard: &Key,
        sequences: impl Iterator<Item = Option<Sequence>>,
        patience: Patience<'_>,
    ) -> Result<Self, GaveUp> {
        let sequences: BTreeSet<Option<Sequence>> = sequences.collect();
        let (Some(lowest), Some(highest)) = (sequences.first(), sequences.last()) else { return Ok(Self::default()) };
        let end = if context.takes(ProtocolStep::WholeRange) { after(*highest) } else { before(*highest) };
        let query = Query::of(None, shard.pk.clone(), SortKeys::Between(before(*lowest), end));
        let (mut exceptions, mut start) = (BTreeSet::new(), None);
        loop {
            let page = patience.call(|| context.store.query(Table::Ledger, &query, start.clone())).await?;
            exceptions.extend(page.items.iter().filter_map(|item| id(&context.schema.layout.key(item)?)));
            start = page.next;
            if start.is_none() {
                return Ok(Self(exceptions));
            }
        }
    }

    /// True if this change is parked for all counters, or for this one.
    pub(crate) fn excepts(&self, id: &str, counter: Option<&Key>) -> bool {
        self.0.contains(&own_id(id, counter))
    }
}

/// The write that records an exception, for all counters or for one; it fails if the exception exists.
pub(crate) fn excepting(layout: &Layout, shard: &Key, change: &Counted, counter: Option<&Key>, now_ms: u64) -> Write {
    let sequence = Sequence::parse(&change.sequence_number);
    let key = Key::new(shard.pk.clone(), format!("{}{}", before(sequence), own_id(&change.id, counter)));
    let item = ledger_item(layout, &key, [(EXPIRES_AT, expires_at(now_ms))]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::Exception)) }
}

/// Id of the change with this key.
fn id(key: &Key) -> Option<String> {
    key.sk.strip_prefix(EXCEPTION)?.split_once('#').map(|(_, id)| id.to_owned())
}

/// Prefix of the sort keys of a sequence number's exceptions.
fn before(sequence: Option<Sequence>) -> String {
    format!("{}#", number(sequence))
}

/// A text after all sort keys of a sequence number's exceptions, and before those of the next number.
fn after(sequence: Option<Sequence>) -> String {
    // `$` follows `#` in the character order.
    format!("{}$", number(sequence))
}

fn number(sequence: Option<Sequence>) -> String {
    let digits = sequence.map(|sequence| sequence.to_string()).unwrap_or_default();
    format!("{EXCEPTION}{digits:0>DIGITS$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_are_in_the_order_of_the_sequence_numbers() {
        let largest = u128::MAX.to_string();
        let numbers = ["", "7", "99", "100", "20500000000000000910398", largest.as_str()];
        let sequences = numbers.map(Sequence::parse);
        let keys: Vec<String> =
            sequences.iter().flat_map(|it| [before(*it), format!("{}~id", before(*it)), after(*it)]).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }

    #[test]
    fn an_exception_is_known_by_the_id_in_its_key() {
        let shard = Key::new("SHARD#label#shard", "SHARD");
        let counter = Key::new("p", "s");
        for (event, counter) in [("e1", None), ("e#1", Some(&counter))] {
            let change = Counted {
                position: derive::position::RecordAt(0),
                id: event.to_owned(),
                sequence_number: "7".to_owned(),
                amounts: Vec::new(),
            };
            let write = excepting(&crate::fixture::layout(), &shard, &change, counter, 0);
            assert_eq!(id(&write.key), Some(own_id(event, counter)));
        }
        assert_eq!(id(&shard), None);
    }
}
