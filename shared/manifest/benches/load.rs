//! Reading a manifest of many tables, and planning a record under it, beside a manifest of one table of the same kind.
//!
//! A manifest of very many entities shows that its checks do not compare each with each.
//!
//! `cargo bench -p manifest --bench load`. A table has five entities and ten derivations; twenty tables have a hundred
//! and two hundred. A record is planned by the derivations of its entity alone, so that how many others there are does not
//! matter; the rates of one run compare.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "it prints what it measured, and stops when it cannot")]

use std::fmt::Write as _;

use derive::{
    change::{Change, Images},
    family::Family,
    plan::plan,
};
use divan::{Bencher, black_box};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

/// How many tables a manifest has.
const TABLES: [usize; 2] = [1, 20];

fn main() {
    for n_tables in TABLES {
        let (schema, catalogue) = manifest::load(&text(n_tables)).expect("a right manifest");
        println!(
            "{n_tables} tables: {} entities, {} derivations",
            schema.entities().count() - 1,
            catalogue.derivations().count()
        );
    }
    divan::main();
}

const TABLE: &str = r#"
[tables.Table@]
partition-key = "pk"
sort-key = "sk"
type = "type"

[entity.Owner@]
table = "Table@"
partition-key = "OWNER#{ownerId}"
sort-key = "OWNER"
attributes = ["name"]
derived-attributes = ["items", "value", "notes", "tags", "lastNote", "firstNote", "minPrice", "maxPrice"]

[entity.Item@]
table = "Table@"
partition-key = "OWNER#{ownerId}"
sort-key = "ITEM#{price:8}#{itemId}"
attributes = ["worth"]
derived-attributes = ["ownerName"]

[entity.Note@]
table = "Table@"
partition-key = "OWNER#{ownerId}"
sort-key = "NOTE#{at}"
attributes = ["text"]
derived-attributes = ["ownerName"]

[entity.Tag@]
table = "Table@"
partition-key = "TAG#{tagId}"
sort-key = "ITEM#{itemId}"
attributes = ["ownerId"]

[entity.TagOfItem@]
table = "Table@"
partition-key = "ITEM#{itemId}"
sort-key = "TAG#{tagId}"
derived = true
attributes = ["ownerId"]

[derivation.items-@]
kind = "count"
from = "Item@"
into = "Owner@"
sum = "worth"
shows = { count = "items", sum = "value" }

[derivation.notes-@]
kind = "count"
from = "Note@"
into = "Owner@.notes"

[derivation.tags-@]
kind = "count"
from = "Tag@"
into = "Owner@.tags"

[derivation.owner-of-item-@]
kind = "copy"
from = "Owner@"
to = "Item@"
attributes = { name = "ownerName" }

[derivation.owner-of-note-@]
kind = "copy"
from = "Owner@"
to = "Note@"
attributes = { name = "ownerName" }

[derivation.last-note-@]
kind = "latest"
from = "Note@"
to = "Owner@"
attributes = { at = "lastNote" }

[derivation.first-note-@]
kind = "latest"
from = "Note@"
to = "Owner@"
attributes = { at = "firstNote" }
which = "first"

[derivation.min-price-@]
kind = "extreme"
from = "Item@"
into = "Owner@.minPrice"
min = "price"

[derivation.max-price-@]
kind = "extreme"
from = "Item@"
into = "Owner@.maxPrice"
max = "price"

[derivation.tag-of-item-@]
kind = "mirror"
from = "Tag@"
to = "TagOfItem@"
"#;

fn text(n_tables: usize) -> String {
    let mut text = String::new();
    for number in 0..n_tables {
        write!(text, "{}", TABLE.replace('@', &number.to_string())).expect("texts take all");
    }
    text
}

/// A new item, which a count, a copy and two extremes read.
fn change(n_tables: usize) -> Change {
    let at = n_tables - 1;
    let s = |text: &str| AttributeValue::S(text.to_owned());
    let key = Key::new(format!("Table{at}#OWNER#ann"), "ITEM#00000120#i1".to_owned());
    let item = Item::from([
        ("RipplePK".to_owned(), s(&key.pk)),
        ("RippleSK".to_owned(), s(&key.sk)),
        ("RippleType".to_owned(), s(&format!("Item{at}"))),
        ("worth".to_owned(), AttributeValue::N("12".to_owned())),
    ]);
    Change {
        id: "1".to_owned(),
        key,
        images: Images::Inserted(item),
        created_ms: None,
        sequence_number: "1".to_owned(),
    }
}

/// From the text to a schema and a catalogue, with all checks.
#[divan::bench(args = TABLES)]
fn a_load(bencher: Bencher<'_, '_>, n_tables: usize) {
    let text = text(n_tables);
    bencher.bench(|| manifest::load(black_box(&text)).expect("a right manifest"));
}

/// Entities of one table, each with a sort key of its own in one form of partition.
#[divan::bench(args = [500, 5_000])]
fn c_many_entities(bencher: Bencher<'_, '_>, n_entities: usize) {
    let mut text = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\n".to_owned();
    for number in 0..n_entities {
        let keys = format!("partition-key = \"OWNER#{{ownerId}}\"\nsort-key = \"KIND{number}#{{id}}\"\n");
        write!(text, "[entity.Kind{number}]\n{keys}").expect("texts take all");
    }
    bencher.bench(|| manifest::load(black_box(&text)).expect("a right manifest"));
}

#[divan::bench(args = TABLES)]
fn b_plan(bencher: Bencher<'_, '_>, n_tables: usize) {
    let (schema, catalogue) = manifest::load(&text(n_tables)).expect("a right manifest");
    let change = change(n_tables);
    let families = [Family::Additive, Family::LevelTriggered];
    assert_eq!(plan(&schema, &catalogue, &families, &change).effects.len(), 4, "a count, a copy and two extremes");
    bencher.bench(|| plan(&schema, &catalogue, &families, black_box(&change)));
}
