//! Parking: a change that can never be applied is kept, whole, with its cause, and stops nobody.
//!
//! *Keeps true*: a change is either applied or parked, not both and not neither: for the additive family the parked
//! items and the change's receipt are one transaction. A level-triggered change takes no receipt, since applying it
//! twice is harmless.
//!
//! The record is kept as it came, compressed, and in parts where an item would be too large.

use std::io::Write as _;

use derive::{
    derivation::Family,
    guard::Guard,
    write::{Action, Table, Transaction, Write},
};
use flate2::{Compression, Crc, write::GzEncoder};
use keys::{key::Key, layout::Layout};
use serde_dynamo::AttributeValue;

use crate::{
    ledger::{ledger_item, receipts::receipt},
    record::Head,
};

/// Largest part of a record in one item, in bytes: below the 400 KB of an item, names and cause included.
const PART_BYTES_MAX: usize = 350 * 1024;

/// A record to park.
#[derive(Clone, Debug)]
pub struct Parking<'a> {
    /// What could be read of it.
    pub head: &'a Head,
    /// The record as it came, JSON.
    pub record: &'a str,
    /// Why it cannot be applied.
    pub cause: &'a str,
    /// On behalf of which family.
    pub family: Family,
}

impl Parking<'_> {
    /// Id under which it is parked: the event's, or one made of the record where that cannot be read.
    #[must_use]
    pub fn id(&self) -> String {
        self.head.id.clone().filter(|id| !id.is_empty() && id.len() <= 128).unwrap_or_else(|| {
            let mut crc = Crc::new();
            crc.update(self.record.as_bytes());
            format!("unnamed-{:08x}-{}", crc.sum(), self.record.len())
        })
    }

    /// The transaction that parks it; cancelled by a guard when it is in or parked already.
    ///
    /// # Errors
    ///
    /// [`derive::write::TransactionError`] when the record has more parts than a transaction takes.
    pub fn transaction(&self, layout: &Layout, now_ms: u64) -> Result<Transaction, derive::write::TransactionError> {
        let id = self.id();
        let family = self.family.to_string();
        let compressed = compressed(self.record);
        let parts: Vec<&[u8]> = compressed.chunks(PART_BYTES_MAX).collect();
        let mut writes = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let key = Key::new(format!("PARKED#{family}"), format!("{id}#{at:02}"));
            let attributes = [
                ("EventId", AttributeValue::S(id.clone())),
                ("Family", AttributeValue::S(family.clone())),
                ("Cause", AttributeValue::S(self.cause.to_owned())),
                ("ParkedAt", AttributeValue::N(now_ms.to_string())),
                ("SequenceNumber", AttributeValue::S(self.head.sequence_number.clone().unwrap_or_default())),
                ("Parts", AttributeValue::N(parts.len().to_string())),
                ("Record", AttributeValue::B((*part).to_vec())),
            ];
            let item = ledger_item(layout, &key, attributes);
            let guard = (self.family == Family::LevelTriggered).then_some(Guard::Absent);
            writes.push(Write { table: Table::Ledger, key, action: Action::Put(item), guard });
        }
        if self.family == Family::Additive {
            writes.push(receipt(layout, &id, now_ms));
        }
        Transaction::new(writes)
    }
}

fn compressed(record: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to a Vec cannot fail; were it to, the record is kept as it is.
    match encoder.write_all(record.as_bytes()).and_then(|()| encoder.finish()) {
        Ok(compressed) => compressed,
        Err(_) => record.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_passes_an_item_is_split_and_parked_with_its_receipt() {
        let layout = Layout {
            pk: "PK".into(),
            sk: "SK".into(),
            entity_type: "EntityType".into(),
            time_to_live: None,
            indexes: Vec::new(),
        };
        // Text that does not compress below one part.
        let mut state = 1_u64;
        let record: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b' ' + u8::try_from(state >> 58).unwrap_or(0))
        })
        .take(800_000)
        .collect();
        let head = Head { id: Some("e1".into()), sequence_number: None };
        let parking = Parking { head: &head, record: &record, cause: "c", family: Family::Additive };
        let transaction = parking.transaction(&layout, 0).unwrap();
        let keys: Vec<String> = transaction.writes().iter().map(|write| write.key.to_string()).collect();
        assert_eq!(keys, ["PARKED#additive / e1#00", "PARKED#additive / e1#01", "RECEIPT#e1 / RECEIPT"]);
    }
}
