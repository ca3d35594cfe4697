//! Records that are corrupt in the stream: they do not decode, though their id and sequence number can be read.
//!
//! A corrupt record must end parked for each family of each function that received it, and nothing else may. At the end
//! of a run the operator puts the true records into the parked items, as if the decoder had been mended, and redrives
//! them. Then everything must match the definition.

use std::io::Write as _;

use derive::write::Table;
use flate2::{Compression, write::GzEncoder};
use keys::key::Key;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::memory::MemoryStore;

use crate::scene::Scene;

/// Of a thousand records, how many are corrupt, and how many when the functions brake, which takes many, or when one version
/// reads them.
const PER_MILLE: usize = 8;
const PER_MILLE_OFTEN: usize = 80;

/// The corrupt form of a record, which never decodes; `None` when the record is not to be corrupt.
pub(crate) fn corrupted(scene: &Scene, json: &str) -> Option<String> {
    let is_often = scene.is_braked || scene.rollout.reads_differ();
    let per_mille = if is_often { PER_MILLE_OFTEN } else { PER_MILLE };
    if scene.is_healed() || scene.rollout.is_calm() || scene.chance.below(1_000) < 1_000 - per_mille {
        return None;
    }
    let mut record: Value = serde_json::from_str(json).unwrap();
    let dynamodb = record["dynamodb"].as_object_mut().unwrap();
    let image = if dynamodb.contains_key("NewImage") { "NewImage" } else { "OldImage" };
    match scene.chance.below(4) {
        0 => drop(dynamodb.remove(image)),
        1 => dynamodb[image]["PK"] = json!({"Q": "no such type"}),
        2 => drop(dynamodb.remove("Keys")),
        _ => dynamodb["Keys"] = json!({"PK": {"N": "1"}, "SK": {"N": "2"}}),
    }
    scene.count("corrupt");
    Some(record.to_string())
}

/// Replaces the corrupt record in a parked item by the true one.
pub(crate) fn put_true(memory: &MemoryStore, key: &Key, json: &str) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(json.as_bytes()).unwrap();
    let compressed = encoder.finish().unwrap();
    let mut item = memory.view(Table::Ledger, |items| items[key].clone());
    // The true record of a small item fits one part, as the corrupt one did.
    assert_eq!(item.get("Parts"), Some(&AttributeValue::N("1".to_owned())));
    item.insert("Record".to_owned(), AttributeValue::B(compressed));
    memory.put_raw(Table::Ledger, item).unwrap();
}
