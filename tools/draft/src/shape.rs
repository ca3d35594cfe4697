//! What is drafted from: the description of a table, and a part of its items.

use std::collections::{BTreeSet, HashMap};

use derive::clock;
use keys::{
    counter::CounterKey,
    entry,
    fnv::hash_64,
    item::{Item, text},
    job::JobKey,
    key::Key,
    tables::{KeyAttribute, KeyType},
};
use serde_dynamo::AttributeValue;

/// Longest text of an attribute that is kept, in bytes. A name, an id or a title is shorter, and 10,000 items of 400 KB
/// would not fit the memory of a laptop.
const TEXT_BYTES_MAX: usize = 1_024;

/// A table as its description or its template declares it.
#[derive(Clone, Debug)]
pub struct TableShape {
    /// Its name in DynamoDB.
    pub name: String,
    /// Its partition key.
    pub pk: KeyAttribute,
    /// Its sort key, if it has one.
    pub sk: Option<KeyAttribute>,
    /// Its global secondary indexes.
    pub indexes: Vec<IndexShape>,
    /// Names of its local secondary indexes.
    pub local_indexes: Vec<String>,
    /// Attribute of the time to live, if it is enabled.
    pub time_to_live: Option<String>,
    /// Number of its items, as DynamoDB counted them some hours ago.
    pub n_items: Option<u64>,
}

/// A global secondary index.
#[derive(Clone, Debug)]
pub struct IndexShape {
    /// Its name.
    pub name: String,
    /// The attributes of its partition key.
    pub pk: Vec<KeyAttribute>,
    /// The attributes of its sort key.
    pub sk: Vec<KeyAttribute>,
    /// Attributes that it projects besides keys; `None` for all.
    pub projection: Option<Vec<String>>,
}

impl IndexShape {
    /// The single text attributes of its key, by which forms are possible.
    pub(crate) fn texts(&self) -> Option<[&str; 2]> {
        match (self.pk.as_slice(), self.sk.as_slice()) {
            ([pk], [sk]) if pk.of == KeyType::S && sk.of == KeyType::S => Some([&pk.name, &sk.name]),
            _ => None,
        }
    }
}

impl TableShape {
    /// A table with this key, and without indexes and a time to live.
    pub(crate) fn of(name: &str, pk: KeyAttribute, sk: Option<KeyAttribute>) -> Self {
        let (indexes, local_indexes) = (Vec::new(), Vec::new());
        Self { name: name.to_owned(), pk, sk, indexes, local_indexes, time_to_live: None, n_items: None }
    }

    /// The attributes of the table's key and of its indexes' keys.
    pub(crate) fn is_key(&self, attribute: &str) -> bool {
        self.is_own_key(attribute) || self.index_keys().any(|it| it.name == attribute)
    }

    /// True for an attribute of the table's own key.
    pub(crate) fn is_own_key(&self, attribute: &str) -> bool {
        self.pk.name == attribute || self.sk.as_ref().is_some_and(|sk| sk.name == attribute)
    }

    fn index_keys(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.indexes.iter().flat_map(|index| index.pk.iter().chain(&index.sk))
    }

    /// True if Ripple's own items can be in the table, so that `[table]` declares it: two keys of type S.
    pub(crate) fn has_two_texts(&self) -> bool {
        self.pk.of == KeyType::S && self.sk.as_ref().is_some_and(|sk| sk.of == KeyType::S)
    }
}

/// Why a sample is not the whole table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// There is nothing to read: the description is from a file without items.
    #[default]
    NoItems,
    /// Every item of the table.
    Whole,
    /// The first items of each segment of the table.
    Part,
    /// Reading ended early, for this reason.
    Ended(String),
}

/// How key attributes are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyReading {
    /// By forms, also if a key is one plain value.
    Forms,
    /// By forms, but as they are if a key is one plain value.
    Plain,
    /// As they are, all items as one kind.
    AsTheyAre,
}

/// A part of a table's items.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The items, without long values.
    pub items: Vec<Item>,
    /// How much of the table they are.
    pub extent: Extent,
    /// Partition keys whose items are not all in the sample, because reading stopped within them.
    pub cut: BTreeSet<String>,
    /// Number of items of Ripple itself, which are left out.
    pub n_own: usize,
}

/// A table, and what is known of its items.
#[derive(Clone, Debug)]
pub struct SampledTable {
    /// The table.
    pub shape: TableShape,
    /// A part of the items.
    pub sample: Sample,
    /// What a file declares of the items, if it does.
    pub declared: Option<Declared>,
    /// What a manifest cannot declare, in sentences. Each line is a comment of its own.
    pub notes: Vec<String>,
}

impl SampledTable {
    /// A table of which only the shape is known.
    #[must_use]
    pub fn without_items(shape: TableShape) -> Self {
        Self::with_items(shape, Sample::default())
    }

    /// A table and a part of its items.
    #[must_use]
    pub fn with_items(shape: TableShape, sample: Sample) -> Self {
        Self { shape, sample, declared: None, notes: Vec::new() }
    }
}

/// What a file declares of a table's items.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// The attribute that names the kind of an item.
    pub type_attribute: Option<String>,
    /// The kinds of items.
    pub kinds: Vec<DeclaredKind>,
}

/// The form of a key attribute, as in `USER#{userId}`; `None` for a value as it is.
pub type KeyForm = Option<String>;

/// A kind of items that a file declares.
#[derive(Clone, Debug, Default)]
pub struct DeclaredKind {
    /// Its name.
    pub name: String,
    /// Form of the partition key.
    pub pk: KeyForm,
    /// Form of the sort key.
    pub sk: KeyForm,
    /// Attributes, each with its type as DynamoDB names it, in the order of the file.
    pub attributes: Vec<(String, &'static str)>,
    /// Keys in indexes: the name of the index, and the forms of its partition key and of its sort key. Items are also in
    /// each other index whose key consists of attributes that they have.
    pub indexes: Vec<(String, [Vec<KeyForm>; 2])>,
    /// Reads of these items.
    pub patterns: Vec<Pattern>,
}

/// A read that a file declares.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Its name.
    pub name: String,
    /// The key of `[access.NAME]` that names what it reads: `get`, `query` or `batch-get`.
    pub reads: &'static str,
    /// True for a query that returns all kinds of items of its partition.
    pub is_of_partition: bool,
    /// Other lines of `[access.NAME]`.
    pub lines: Vec<String>,
}

impl Sample {
    /// Adds an item of a table, unless it is one of Ripple's own. Shortens long values.
    pub fn add(&mut self, shape: &TableShape, item: Item) {
        if is_own(shape, &item) {
            self.n_own += 1;
            return;
        }
        self.items.push(item.into_iter().map(|(name, value)| (name, shortened(value))).collect());
    }
}

/// True for a counter, an entry, a job or the clock of Ripple.
fn is_own(shape: &TableShape, item: &Item) -> bool {
    let parts = text(item, &shape.pk.name).zip(shape.sk.as_ref().and_then(|sk| text(item, &sk.name)));
    let key = parts.map(|(pk, sk)| Key::new(pk, sk));
    key.is_some_and(|key| {
        let is_counted = CounterKey::parse(&key).is_some() || entry::is_entry(&key);
        is_counted || JobKey::parse(&key).is_some() || key == clock::key()
    })
}

/// A value of the same type that takes little memory. Two long texts stay different if they were.
fn shortened(value: AttributeValue) -> AttributeValue {
    match value {
        AttributeValue::S(text) if text.len() > TEXT_BYTES_MAX => {
            AttributeValue::S(format!("{} bytes, {:x}", text.len(), hash_64(text.bytes())))
        }
        AttributeValue::B(bytes) if bytes.len() > TEXT_BYTES_MAX => AttributeValue::B(Vec::new()),
        AttributeValue::L(_) => AttributeValue::L(Vec::new()),
        AttributeValue::M(_) => AttributeValue::M(HashMap::new()),
        AttributeValue::Ss(_) => AttributeValue::Ss(Vec::new()),
        AttributeValue::Ns(_) => AttributeValue::Ns(Vec::new()),
        AttributeValue::Bs(_) => AttributeValue::Bs(Vec::new()),
        short => short,
    }
}

/// The type of a value, as DynamoDB names it.
pub(crate) fn type_of(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::S(_) => "S",
        AttributeValue::N(_) => "N",
        AttributeValue::B(_) => "B",
        AttributeValue::Bool(_) => "BOOL",
        AttributeValue::Null(_) => "NULL",
        AttributeValue::L(_) => "L",
        AttributeValue::M(_) => "M",
        AttributeValue::Ss(_) => "SS",
        AttributeValue::Ns(_) => "NS",
        AttributeValue::Bs(_) => "BS",
    }
}

/// The type that a file names as DynamoDB does; S if it names none.
pub(crate) fn type_named(name: Option<&str>) -> &'static str {
    const TYPES: [&str; 10] = ["S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"];
    TYPES.into_iter().find(|of| Some(*of) == name).unwrap_or("S")
}
