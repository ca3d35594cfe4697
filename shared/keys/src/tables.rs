//! Tables of any form, as one key space.
//!
//! The rest of the workspace knows one table whose keys are two texts. A table with text keys, a sort key and a type
//! attribute has this inner form already. Any other table, or several tables, are converted to it where items are read
//! and written: an item's address is the name of its table and its key as text.
//!
//! | the table has | outside | inside |
//! |---|---|---|
//! | a partition key | `authorId` = `ann` in `Posts` | [`PK`] = `Posts#ann` |
//! | a sort key of type N | `createdAt` = `1700` | [`SK`] = `04:1700`, which [sorts](crate::number::sortable) by value |
//! | no sort key | | [`SK`] = `-` |
//! | one entity, without a type attribute | | [`TYPE`] = `Post` |
//! | several entities, told apart by their keys | `pk` = `SUB#1` | [`TYPE`] = `Subscription` |
//! | an index over plain attributes | `postId`, `createdAt` | two attributes more: `Posts/byPost/pk`, `Posts/byPost/sk` |
//! | an index over texts of declared forms | `GSI1PK` = `USER#ann` | those two attributes instead |
//!
//! Attributes that exist only in the inner form are added when an item is [read](TableForm::inward) and removed when it
//! is [written](TableForm::outward), so they are never stored. Ripple's own items, the counters and jobs, are in a
//! table of their own, whose key attributes are [`PK`] and [`SK`].

use std::fmt;

use serde_dynamo::AttributeValue;

use crate::{
    counter::CounterKey,
    entity::{Definition, KeyTemplate},
    entry::is_entry,
    escape,
    item::{Item, text},
    key::Key,
    layout::{Index, Layout},
    number::{from_sortable, sortable},
    template::Piece,
};

/// Attribute of the partition key in the inner form, and in Ripple's own table. Stored, so it is stable.
pub const PK: &str = "RipplePK";

/// Attribute of the sort key in the inner form, and in Ripple's own table. Stored, so it is stable.
pub const SK: &str = "RippleSK";

/// Attribute that names an item's entity in the inner form, and in Ripple's own table; and a derived item's entity in a
/// table without a type attribute. Stored, so it is stable.
pub const TYPE: &str = "RippleType";

/// Sort key, in the inner form, of an item whose table has none.
pub const NO_SORT_KEY: &str = "-";

/// The application's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableForms(pub Vec<TableForm>);

/// A table of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableForm {
    /// Its name in the manifest.
    pub name: String,
    /// The table's name in DynamoDB.
    pub called: String,
    /// Its partition key.
    pub pk: KeyAttribute,
    /// Its sort key, if it has one.
    pub sk: Option<KeyAttribute>,
    /// How an item's entity is determined.
    pub entity: EntityBy,
    /// Attribute of the time to live, if it has one.
    pub time_to_live: Option<String>,
    /// Its global secondary indexes.
    pub indexes: Vec<IndexForm>,
}

/// How an item's entity is determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityBy {
    /// This attribute, of type S, names it.
    Attribute(String),
    /// All items of the table are of this entity.
    Table(String),
    /// The form of its key shows it. A derived item also names it, in [`TYPE`].
    Forms(Vec<EntityForm>),
}

/// An entity of a table whose items are told apart by their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityForm {
    /// The entity.
    pub entity: String,
    /// The form of its keys. No two entities of a table have a key in common.
    pub key: KeyTemplate,
    /// True if the whole item is derived.
    pub derived: bool,
}

/// The table that an item is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// A table of the application.
    Table(&'a TableForm),
    /// The table of Ripple's own items.
    Own,
}

impl TableForms {
    /// The table of the item with this key.
    #[must_use]
    pub fn place(&self, key: &Key) -> Place<'_> {
        let table = self.named(key.pk.split_once('#').map_or("", |(name, _)| name));
        table.filter(|_| CounterKey::parse(key).is_none() && !is_entry(key)).map_or(Place::Own, Place::Table)
    }

    /// The table of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&TableForm> {
        self.0.iter().find(|table| table.name == name)
    }

    /// The table of an entity's items.
    #[must_use]
    pub fn of_entity(&self, entity: &Definition) -> Option<&TableForm> {
        let Some(Piece::Literal(text)) = entity.key.pk.pieces().first() else { return None };
        self.named(text.split_once('#')?.0)
    }

    /// The table and the index with this inner name.
    #[must_use]
    pub fn index(&self, inside: &str) -> Option<(&TableForm, &IndexForm)> {
        let of = |table: &'_ TableForm, index: &IndexForm| table.inside(&index.name) == inside;
        self.0.iter().find_map(|table| Some((table, table.indexes.iter().find(|index| of(table, index))?)))
    }

    /// The inner layout of these tables.
    #[must_use]
    pub fn layout(self) -> Layout {
        let index = |table: &TableForm, index: &IndexForm| {
            let name = table.inside(&index.name);
            let [pk, sk] = attributes(&table.name, &index.name);
            Index { name, pk, sk, projection: index.projection.clone() }
        };
        let of_table = |table: &TableForm| table.indexes.iter().map(|it| index(table, it)).collect::<Vec<_>>();
        Layout {
            entity_type: Some(TYPE.to_owned()),
            indexes: self.0.iter().flat_map(of_table).collect(),
            forms: Some(self.into()),
            ..Layout::of(PK, SK)
        }
    }
}

impl TableForm {
    /// The inner name of an index of this table.
    #[must_use]
    pub fn inside(&self, index: &str) -> String {
        format!("{}.{index}", self.name)
    }

    /// The address of the item with these attributes; `None` if a key attribute is missing or of another type.
    #[must_use]
    pub fn key(&self, item: &Item) -> Option<Key> {
        let sk = match &self.sk {
            Some(sk) => sk.text(item.get(&sk.name)?)?,
            None => NO_SORT_KEY.to_owned(),
        };
        Some(Key { pk: format!("{}#{}", self.name, self.pk.text(item.get(&self.pk.name)?)?), sk })
    }

    /// The key attributes of the item at this address; `None` if the address is invalid.
    #[must_use]
    pub fn key_item(&self, key: &Key) -> Option<Item> {
        let pk = self.pk.value(key.pk.strip_prefix(&self.name)?.strip_prefix('#')?)?;
        let mut item = Item::from([(self.pk.name.clone(), pk)]);
        if let Some(sk) = &self.sk {
            item.insert(sk.name.clone(), sk.value(&key.sk)?);
        }
        Some(item)
    }

    /// An item in the inner form; `None` if its key does not have this table's form.
    #[must_use]
    pub fn inward(&self, mut item: Item) -> Option<Item> {
        let key = self.key(&item)?;
        let entity = match &self.entity {
            EntityBy::Attribute(attribute) => text(&item, attribute).map(str::to_owned),
            EntityBy::Table(entity) => Some(entity.clone()),
            EntityBy::Forms(_) => self.by_form(&key).filter(|form| form.is_named_by(&item)).map(|it| it.entity.clone()),
        };
        let of_indexes: Vec<_> =
            self.indexes.iter().flat_map(|index| index.inward(&self.name, entity.as_deref(), &item)).collect();
        for name in self.outside() {
            item.remove(name);
        }
        item.insert(PK, AttributeValue::S(key.pk));
        item.insert(SK, AttributeValue::S(key.sk));
        item.extend(entity.map(|entity| (TYPE.to_owned(), AttributeValue::S(entity))));
        item.extend(of_indexes);
        Some(item)
    }

    /// The stored attributes of an item in the inner form; `None` if it has no address in this table.
    #[must_use]
    pub fn outward(&self, item: &Item) -> Option<Item> {
        let key = Key::new(text(item, PK)?, text(item, SK)?);
        let mut stored = self.stored(item);
        if self.by_form(&key).is_some_and(|form| !form.derived) {
            stored.remove(TYPE);
        }
        stored.extend(self.key_item(&key)?);
        Some(stored)
    }

    /// The stored form of attributes, without those of keys.
    #[must_use]
    pub fn stored(&self, attributes: &Item) -> Item {
        let stored = |(name, value): (&str, &AttributeValue)| Some((self.stored_name(name)?.to_owned(), value.clone()));
        attributes.iter().filter_map(stored).collect()
    }

    /// The stored name of an attribute; `None` for key attributes, and for those that exist only in the inner form.
    #[must_use]
    pub fn stored_name<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match name {
            PK | SK => None,
            TYPE => self.type_attribute().or_else(|| self.names_derived().then_some(TYPE)),
            name => match self.indexes.iter().find_map(|index| Some((index, index.part(&self.name, name)?))) {
                Some((index, part)) => {
                    let stored = part.first().filter(|_| !index.is_plain()).map(|attribute| attribute.name.as_str());
                    stored.filter(|stored| !self.is_of_key(stored))
                }
                None => Some(name),
            },
        }
    }

    /// The inner form of the key from which a query continues.
    #[must_use]
    pub fn cursor_inward(&self, index: Option<&IndexForm>, stored: &Item) -> Option<Item> {
        let key = self.key(stored)?;
        let mut cursor = Item::from([(PK, AttributeValue::S(key.pk)), (SK, AttributeValue::S(key.sk))]);
        cursor.extend(index.and_then(|index| index.key(&self.name, stored)).into_iter().flatten());
        Some(cursor)
    }

    /// The stored form of such a key.
    #[must_use]
    pub fn cursor_outward(&self, index: Option<&IndexForm>, cursor: &Item) -> Option<Item> {
        let mut stored = self.key_item(&Key::new(text(cursor, PK)?, text(cursor, SK)?))?;
        if let Some(index) = index {
            stored.extend(index.cursor(&self.name, cursor)?);
        }
        Some(stored)
    }

    /// The attribute that names an item's entity, if one does.
    #[must_use]
    pub fn type_attribute(&self) -> Option<&str> {
        match &self.entity {
            EntityBy::Attribute(attribute) => Some(attribute),
            EntityBy::Table(_) | EntityBy::Forms(_) => None,
        }
    }

    /// True if derived items name their entity in [`TYPE`], and the others are known by their keys.
    fn names_derived(&self) -> bool {
        matches!(&self.entity, EntityBy::Forms(forms) if forms.iter().any(|form| form.derived))
    }

    /// The entity of an address, if the form of the key shows it. A key that can be read in two ways is of the entity
    /// with this form, whose items it then does not fit.
    #[must_use]
    pub fn by_form(&self, key: &Key) -> Option<&EntityForm> {
        let EntityBy::Forms(forms) = &self.entity else { return None };
        let in_doubt = || forms.iter().find(|form| form.key.is_in_doubt(key));
        forms.iter().find(|form| form.key.parse_key(key).is_some()).or_else(in_doubt)
    }

    /// True for an attribute of the primary key.
    #[must_use]
    pub fn is_of_key(&self, stored: &str) -> bool {
        self.pk.name == stored || self.sk.as_ref().is_some_and(|sk| sk.name == stored)
    }

    /// True if an index of this table contains this stored attribute.
    #[must_use]
    pub fn index_holds(&self, index: &IndexForm, stored: &str) -> bool {
        let projected = || index.projection.as_ref().is_none_or(|names| names.iter().any(|name| name == stored));
        self.is_of_key(stored) || index.parts().any(|part| part.name == stored) || projected()
    }

    /// The stored attributes that the inner form does not have under their own names.
    pub fn outside(&self) -> impl Iterator<Item = &str> {
        let of_key = [Some(&*self.pk.name), self.sk.as_ref().map(|sk| &*sk.name), self.type_attribute()];
        let of_indexes = self.indexes.iter().filter(|index| !index.is_plain());
        let of_indexes = of_indexes.flat_map(IndexForm::parts).map(|it| it.name.as_str());
        let mark = self.names_derived().then_some(TYPE);
        of_key.into_iter().flatten().chain(of_indexes).chain(mark)
    }
}

impl EntityForm {
    /// True if an item under a key of this form is of the entity.
    fn is_named_by(&self, item: &Item) -> bool {
        !self.derived || text(item, TYPE) == Some(&self.entity)
    }
}

// ---- Indexes of tables of any form ----

/// A global secondary index: over plain attributes, or over texts of declared forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexForm {
    /// Its name in the table.
    pub name: String,
    /// The attributes of its partition key, one to four.
    pub pk: Vec<KeyAttribute>,
    /// The attributes of its sort key, none to four.
    pub sk: Vec<KeyAttribute>,
    /// Attributes that it projects besides keys; `None` for all.
    pub projection: Option<Vec<String>>,
    /// The entities whose items declare a key in it.
    pub entities: Vec<String>,
}

/// The inner key attributes of a table's index. A dot or a bracket would make their names paths into other attributes.
fn attributes(table: &str, index: &str) -> [String; 2] {
    ["pk", "sk"].map(|part| format!("{table}/{index}/{part}"))
}

impl IndexForm {
    /// The attributes of both parts of its key.
    pub fn parts(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.pk.iter().chain(&self.sk)
    }

    /// True if it is over plain attributes: an item with these attributes is in it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.parts().all(|attribute| attribute.is_plain)
    }

    /// The inner form of a stored item's index key; `None` if the item is not in the index.
    fn key(&self, table: &str, item: &Item) -> Option<[(String, AttributeValue); 2]> {
        let [pk, sk] = attributes(table, &self.name);
        Some([(pk, AttributeValue::S(joined(&self.pk, item)?)), (sk, AttributeValue::S(joined(&self.sk, item)?))])
    }

    /// The inner index key attributes of a stored item of an entity.
    fn inward(&self, table: &str, entity: Option<&str>, item: &Item) -> Vec<(String, AttributeValue)> {
        if self.is_plain() {
            let is_in = entity.is_some_and(|entity| self.entities.iter().any(|other| other == entity));
            return self.key(table, item).filter(|_| is_in).into_iter().flatten().collect();
        }
        // Each part separately: an application may write only one of them.
        let [pk, sk] = attributes(table, &self.name);
        let has_pk = joined(&self.pk, item);
        let has_sk = joined(&self.sk, item).filter(|_| has_pk.is_some() || !self.sk.is_empty());
        [(pk, has_pk), (sk, has_sk)]
            .into_iter()
            .filter_map(|(name, text)| Some((name, AttributeValue::S(text?))))
            .collect()
    }

    /// The stored attributes of an inner attribute; `None` if that one is not in this index's key.
    fn part(&self, table: &str, name: &str) -> Option<&[KeyAttribute]> {
        match name.strip_prefix(table)?.strip_prefix('/')?.strip_prefix(&self.name)?.strip_prefix('/')? {
            "pk" => Some(&self.pk),
            "sk" => Some(&self.sk),
            _ => None,
        }
    }

    /// The stored attributes of a cursor.
    fn cursor(&self, table: &str, cursor: &Item) -> Option<Vec<(String, AttributeValue)>> {
        let [pk, sk] = attributes(table, &self.name);
        let mut stored = values(&self.pk, text(cursor, &pk)?)?;
        if !self.sk.is_empty() {
            stored.extend(values(&self.sk, text(cursor, &sk)?)?);
        }
        Some(stored)
    }
}

/// The joined texts of an item's attributes; `None` if it lacks one of them.
fn joined(attributes: &[KeyAttribute], item: &Item) -> Option<String> {
    let texts: Option<Vec<String>> =
        attributes.iter().map(|attribute| attribute.text(item.get(&attribute.name)?)).collect();
    texts.map(|texts| if texts.is_empty() { NO_SORT_KEY.to_owned() } else { texts.join("#") })
}

// ---- Attributes of keys, by their types ----

/// An attribute of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAttribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: KeyType,
    /// True if its value is a plain field, rather than a text of a declared form such as `USER#{userId}`.
    pub is_plain: bool,
}

/// Why a value cannot be in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMisfit {
    /// It is of another type.
    Type,
    /// It is empty.
    Empty,
    /// It is too long.
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl KeyMisfit {
    /// Why a value does not fit in a key part of at most this many bytes; `None` if it does.
    #[must_use]
    pub fn of_size(value: &AttributeValue, bytes_max: usize) -> Option<Self> {
        match key_bytes(value) {
            Some(0) => Some(Self::Empty),
            Some(bytes) if bytes > bytes_max => Some(Self::TooLong { bytes }),
            _ => None,
        }
    }
}

/// The length of a value that DynamoDB limits in a key; `None` for a number, which is always short enough.
fn key_bytes(value: &AttributeValue) -> Option<usize> {
    match value {
        AttributeValue::S(text) => Some(text.len()),
        AttributeValue::B(bytes) => Some(bytes.len()),
        _ => None,
    }
}

/// The type of a key attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// Text.
    S,
    /// A number.
    N,
    /// Bytes.
    B,
}

impl KeyAttribute {
    /// An attribute whose value is a plain field.
    #[must_use]
    pub fn plain(name: &str, of: KeyType) -> Self {
        Self { name: name.to_owned(), of, is_plain: true }
    }

    /// An attribute with a text of a declared form.
    #[must_use]
    pub fn of_form(name: &str) -> Self {
        Self { name: name.to_owned(), of: KeyType::S, is_plain: false }
    }

    /// The text of a value; `None` if the value is of another type.
    #[must_use]
    pub fn text(&self, value: &AttributeValue) -> Option<String> {
        match (self.of, value) {
            (KeyType::S, AttributeValue::S(text)) if self.is_plain => Some(escape::value(text)),
            (KeyType::S, AttributeValue::S(text)) => Some(text.clone()),
            (KeyType::N, AttributeValue::N(number)) => sortable(number),
            (KeyType::B, AttributeValue::B(bytes)) => Some(hex::encode(bytes)),
            _ => None,
        }
    }

    /// Why a value cannot be in a key part of at most this many bytes; `None` if it can. DynamoDB refuses an item whose
    /// index key has another type, is empty or too long.
    #[must_use]
    pub fn misfit(&self, value: &AttributeValue, bytes_max: usize) -> Option<KeyMisfit> {
        if self.text(value).is_none() { Some(KeyMisfit::Type) } else { KeyMisfit::of_size(value, bytes_max) }
    }

    /// The value of a text; `None` if the text has no value.
    #[must_use]
    pub fn value(&self, text: &str) -> Option<AttributeValue> {
        Some(match self.of {
            KeyType::S if self.is_plain => AttributeValue::S(escape::restored(text)),
            KeyType::S => AttributeValue::S(text.to_owned()),
            KeyType::N => AttributeValue::N(from_sortable(text)?),
            KeyType::B => AttributeValue::B(hex::decode(text).ok()?),
        })
    }

    /// The template of a field that makes up a whole key of this type.
    #[must_use]
    pub fn template(&self) -> String {
        match self.of {
            KeyType::S => format!("{{{}}}", self.name),
            KeyType::N => format!("{{{}:N}}", self.name),
            KeyType::B => format!("{{{}:B}}", self.name),
        }
    }
}

/// `createdAt (N)`.
impl fmt::Display for KeyAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.name, self.of)
    }
}

// ---- Ranges of sort keys, in the stored form ----

/// A query's conditions on the attributes of a key: the last of them may be a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyRange {
    /// Attributes that have one value.
    pub equal: Vec<(String, AttributeValue)>,
    /// The next attribute, which begins with a text.
    pub begins_with: Option<(String, AttributeValue)>,
    /// The attribute that is between two values, inclusive.
    pub between: Option<(String, [AttributeValue; 2])>,
    /// The attribute that is greater than a value.
    pub after: Option<(String, AttributeValue)>,
}

impl KeyRange {
    /// The condition for a partition key; `None` if no item can have it.
    #[must_use]
    pub fn partition(attributes: &[KeyAttribute], text: &str) -> Option<Self> {
        Some(Self { equal: values(attributes, text)?, ..Self::default() })
    }

    /// The condition for all sort keys with a prefix. It may match more, if the text is not a whole number, so the
    /// caller filters the results.
    #[must_use]
    pub fn prefix(attributes: &[KeyAttribute], text: &str) -> Self {
        let mut range = Self::default();
        let mut parts = parts(attributes, text);
        let last = parts.pop();
        for (attribute, part) in parts {
            let Some(value) = attribute.value(part) else { return range };
            range.equal.push((attribute.name.clone(), value));
        }
        match last {
            Some((attribute, part)) if attribute.of == KeyType::S && !part.is_empty() => {
                range.begins_with = attribute.value(part).map(|value| (attribute.name.clone(), value));
            }
            // A number or bytes are always complete.
            Some((attribute, part)) if attribute.of != KeyType::S => {
                range.equal.extend(attribute.value(part).map(|value| (attribute.name.clone(), value)));
            }
            _ => {}
        }
        range
    }

    /// The condition for all sort keys from the first text to the last. It may match more, as [`prefix`](Self::prefix)
    /// does.
    #[must_use]
    pub fn between(attributes: &[KeyAttribute], first: &str, last: &str) -> Self {
        let of = |attribute: &KeyAttribute| Some([attribute.value(first)?, attribute.value(last)?]);
        let between = match attributes {
            [only] => of(only).map(|both| (only.name.clone(), both)),
            _ => None,
        };
        Self { between, ..Self::default() }
    }

    /// The condition for all sort keys greater than this text. It may match more, as [`prefix`](Self::prefix) does.
    #[must_use]
    pub fn after(attributes: &[KeyAttribute], text: &str) -> Self {
        let [only] = attributes else { return Self::default() };
        Self { after: only.value(text).map(|value| (only.name.clone(), value)), ..Self::default() }
    }
}

/// The values of a key's attributes from their joined texts; `None` if the text is invalid.
fn values(attributes: &[KeyAttribute], text: &str) -> Option<Vec<(String, AttributeValue)>> {
    let parts = parts(attributes, text).into_iter();
    let values = parts.map(|(attribute, part)| Some((attribute.name.clone(), attribute.value(part)?)));
    values.collect::<Option<Vec<_>>>().filter(|values| values.len() == attributes.len())
}

/// The bytes of the longest value among a key's attributes, from their joined texts: DynamoDB limits each value. The
/// bytes of the text itself if it is invalid.
#[must_use]
pub fn stored_bytes(attributes: &[KeyAttribute], text: &str) -> usize {
    let longest = |values: Vec<(String, AttributeValue)>| values.iter().filter_map(|(_, value)| key_bytes(value)).max();
    values(attributes, text).map_or(text.len(), |values| longest(values).unwrap_or_default())
}

/// The text of each attribute of a key, as far as the text has parts.
fn parts<'a>(attributes: &'a [KeyAttribute], text: &'a str) -> Vec<(&'a KeyAttribute, &'a str)> {
    match attributes {
        // A text of a declared form is one value, whatever it contains.
        [only] => vec![(only, text)],
        all => all.iter().zip(text.split('#')).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{entity::StoredForm, error::KeyError, fields::Fields};

    /// A table of one entity with a numeric sort key, one without a sort key, and one with texts of declared forms.
    fn forms() -> TableForms {
        let form = |name: &str, pk, sk, entity, indexes| TableForm {
            name: name.to_owned(),
            called: format!("prod-{name}"),
            pk,
            sk,
            entity,
            time_to_live: None,
            indexes,
        };
        let by_status = IndexForm {
            name: "byStatus".to_owned(),
            pk: vec![KeyAttribute::plain("status", KeyType::S), KeyAttribute::plain("region", KeyType::S)],
            sk: vec![KeyAttribute::plain("createdAt", KeyType::N)],
            projection: None,
            entities: vec!["Post".to_owned()],
        };
        let index = |name: &str, pk: &str, sk: Option<&str>| IndexForm {
            name: name.to_owned(),
            pk: vec![KeyAttribute::of_form(pk)],
            sk: sk.iter().map(|sk| KeyAttribute::of_form(sk)).collect(),
            projection: None,
            entities: Vec::new(),
        };
        let (by_text, inverted) = (index("byText", "title", None), index("inverted", "sk", Some("pk")));
        let posts = EntityBy::Table("Post".to_owned());
        let users = EntityBy::Table("User".to_owned());
        TableForms(vec![
            form(
                "Posts",
                KeyAttribute::plain("authorId", KeyType::S),
                Some(KeyAttribute::plain("createdAt", KeyType::N)),
                posts,
                vec![by_status],
            ),
            form("Users", KeyAttribute::plain("id", KeyType::B), None, users, Vec::new()),
            form(
                "Mixed",
                KeyAttribute::of_form("pk"),
                Some(KeyAttribute::of_form("sk")),
                EntityBy::Attribute("__typename".to_owned()),
                vec![by_text, inverted],
            ),
        ])
    }

    fn s(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    #[test]
    fn an_item_has_an_address_its_type_and_the_keys_of_its_indexes_inside() {
        let forms = forms();
        let stored: Item = [
            ("authorId", s("a#b")),
            ("createdAt", n("1700")),
            ("status", s("open")),
            ("region", s("e#u")),
            ("title", s("t")),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let inside = forms.0[0].inward(stored.clone()).unwrap();
        let shown: Vec<String> = inside.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        assert_eq!(
            shown,
            [
                r#"Posts/byStatus/pk=S("open#e%23u")"#,
                r#"Posts/byStatus/sk=S("04:1700")"#,
                r#"RipplePK=S("Posts#a%23b")"#,
                r#"RippleSK=S("04:1700")"#,
                r#"RippleType=S("Post")"#,
                r#"region=S("e#u")"#,
                r#"status=S("open")"#,
                r#"title=S("t")"#,
            ]
        );
        assert_eq!(forms.0[0].outward(&inside), Some(stored));
    }

    #[test]
    fn an_item_without_its_key_is_none_and_one_without_an_index_key_is_in_no_index() {
        let posts = &forms().0[0];
        assert_eq!(posts.inward(Item::from([("authorId", s("a"))])), None);
        assert_eq!(posts.inward(Item::from([("authorId", s("a")), ("createdAt", s("1"))])), None);
        let without = Item::from([("authorId", s("a")), ("createdAt", n("1")), ("status", s("open"))]);
        assert!(!posts.inward(without).unwrap().keys().any(|name| name.starts_with("Posts.")));
    }

    #[test]
    fn an_address_leads_to_its_table_and_a_counter_to_ripples_own() {
        let forms = forms();
        let name = |pk: &str, sk: &str| match forms.place(&Key::new(pk, sk)) {
            Place::Table(table) => table.name.clone(),
            Place::Own => "own".to_owned(),
        };
        assert_eq!(name("Posts#a", "04:1700"), "Posts");
        assert_eq!(name("Users#00ff", NO_SORT_KEY), "Users");
        for (pk, sk) in [
            ("Users#00ff", "-#COUNT#posts#00"),
            ("Users#00ff", "-#RIPPLE#last#n01:7#Posts%23a#04:1700"),
            ("JOBS#05", "x"),
            ("Others#a", "-"),
            ("Posts", "-"),
        ] {
            assert_eq!(name(pk, sk), "own", "{pk} / {sk}");
        }
        let counter = CounterKey::home(Key::new("Users#00ff", NO_SORT_KEY), "posts");
        assert_eq!(CounterKey::parse(&counter.key().unwrap()), Some(counter));
    }

    #[test]
    fn a_query_of_a_key_asks_its_attributes() {
        let forms = forms();
        let (_, index) = forms.index("Posts.byStatus").unwrap();
        let partition = KeyRange::partition(&index.pk, "open#e%23u").unwrap();
        assert_eq!(partition.equal, [("status".to_owned(), s("open")), ("region".to_owned(), s("e#u"))]);
        assert_eq!(KeyRange::partition(&index.pk, "open"), None);
        assert_eq!(KeyRange::prefix(&index.sk, ""), KeyRange::default());
        assert_eq!(KeyRange::prefix(&index.sk, "04:1700").equal, [("createdAt".to_owned(), n("1700"))]);
        let between = KeyRange::between(&index.sk, "01:5", "02:10").between;
        assert_eq!(between, Some(("createdAt".to_owned(), [n("5"), n("10")])));
        assert_eq!(KeyRange::after(&index.sk, "01:5").after, Some(("createdAt".to_owned(), n("5"))));
        let texts = [KeyAttribute::of_form("sk")];
        assert_eq!(KeyRange::prefix(&texts, "POST#").begins_with, Some(("sk".to_owned(), s("POST#"))));
        let several = [KeyAttribute::plain("day", KeyType::S), KeyAttribute::plain("at", KeyType::N)];
        let of_day = KeyRange::prefix(&several, "2024#");
        assert_eq!((of_day.equal, of_day.begins_with), (vec![("day".to_owned(), s("2024"))], None));
        let days = KeyRange::prefix(&several, "2024");
        assert_eq!((days.equal, days.begins_with), (Vec::new(), Some(("day".to_owned(), s("2024")))));
    }

    #[test]
    fn an_index_over_texts_of_forms_takes_their_attributes() {
        let mixed = &forms().0[2];
        let stored =
            Item::from([("pk", s("USER#a")), ("sk", s("POST#b")), ("title", s("T#1")), ("__typename", s("Post"))]);
        let inside = mixed.inward(stored.clone()).unwrap();
        let shown: Vec<String> = inside.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        assert_eq!(
            shown,
            [
                r#"Mixed/byText/pk=S("T#1")"#,
                r#"Mixed/byText/sk=S("-")"#,
                r#"Mixed/inverted/pk=S("POST#b")"#,
                r#"Mixed/inverted/sk=S("USER#a")"#,
                r#"RipplePK=S("Mixed#USER#a")"#,
                r#"RippleSK=S("POST#b")"#,
                r#"RippleType=S("Post")"#,
            ]
        );
        assert_eq!(mixed.outward(&inside), Some(stored));
        let names = ["Mixed/byText/pk", "Mixed/byText/sk", "Mixed/inverted/pk", "Mixed/other/pk", TYPE, PK];
        let stored = [Some("title"), None, None, Some("Mixed/other/pk"), Some("__typename"), None];
        assert_eq!(names.map(|name| mixed.stored_name(name)), stored);
    }

    fn value(of: KeyType) -> BoxedStrategy<AttributeValue> {
        match of {
            KeyType::S => "[ -~]{1,6}".prop_map(AttributeValue::S).boxed(),
            KeyType::N => any::<i32>().prop_map(|number| n(&number.to_string())).boxed(),
            KeyType::B => prop::collection::vec(any::<u8>(), 1..4).prop_map(AttributeValue::B).boxed(),
        }
    }

    fn stored(form: &TableForm) -> BoxedStrategy<Item> {
        let keys: Vec<KeyAttribute> = form.sk.iter().chain([&form.pk]).cloned().collect();
        let keys: Vec<_> =
            keys.into_iter().map(|key| value(key.of).prop_map(move |value| (key.name.clone(), value))).collect();
        let others = prop::collection::vec(
            (prop::sample::select(vec!["status", "region", "title", "__typename"]), value(KeyType::S)),
            0..4,
        );
        (keys, others)
            .prop_map(|(keys, others)| {
                keys.into_iter().chain(others.into_iter().map(|(name, value)| (name.to_owned(), value))).collect()
            })
            .boxed()
    }

    proptest! {
        #[test]
        fn what_goes_in_and_out_is_the_same_item(of in 0usize..3, items in Just(()).prop_flat_map(|()| {
            forms().0.iter().map(stored).collect::<Vec<_>>()
        })) {
            let (forms, item) = (forms(), &items[of]);
            let form = &forms.0[of];
            let inside = form.inward(item.clone()).unwrap();
            prop_assert_eq!(form.outward(&inside), Some(item.clone()));
            let key = Key::new(text(&inside, PK).unwrap(), text(&inside, SK).unwrap());
            prop_assert_eq!(form.key(item), Some(key.clone()));
            let keys: Item = form.sk.iter().chain([&form.pk]).map(|it| (it.name.clone(), item.get(&it.name).unwrap().clone())).collect();
            prop_assert_eq!(form.key_item(&key), Some(keys));
            for index in form.indexes.iter().map(Some).chain([None]) {
                let cursor = form.cursor_inward(index, item).unwrap();
                // An item that is not in an index cannot be the cursor of one of its pages.
                let index = index.filter(|_| cursor.len() > 2);
                prop_assert_eq!(form.cursor_inward(index, &form.cursor_outward(index, &cursor).unwrap()), Some(cursor));
            }
        }
    }

    #[test]
    fn a_key_is_as_long_as_it_is_stored() {
        let of = |pk: &str, sk: &str, stored: StoredForm| KeyTemplate { stored, ..KeyTemplate::parse(pk, sk).unwrap() };
        let stored = |prefix: &str, pk: KeyAttribute, sk: KeyAttribute| StoredForm::Values {
            prefix: prefix.to_owned(),
            pk: vec![pk],
            sk: vec![sk],
        };
        let texts = stored("T#", KeyAttribute::plain("a", KeyType::S), KeyAttribute::plain("b", KeyType::S));
        let plain = of("T#{a}", "{b}", texts);
        let fields = |a: String, b: String| Fields::from([("a", a), ("b", b)]);
        assert!(plain.build(&fields("%".repeat(2_048), "#".repeat(1_024))).is_ok());
        let why = |built: Result<Key, KeyError>| built.unwrap_err().to_string();
        assert_eq!(
            why(plain.build(&fields("%".repeat(2_049), "b".into()))),
            "a makes a key of 2049 bytes; the limit is 2048"
        );
        assert_eq!(
            why(plain.build(&fields("a".into(), "#".repeat(1_025)))),
            "b makes a key of 1025 bytes; the limit is 1024"
        );
        let bytes = stored("T#", KeyAttribute::plain("a", KeyType::B), KeyAttribute::plain("b", KeyType::B));
        let of_bytes = of("T#{a:B}", "{b:B}", bytes);
        assert!(of_bytes.build(&fields("ff".repeat(2_048), "00".repeat(1_024))).is_ok());
        assert!(of_bytes.build(&fields("ff".repeat(2_049), "00".into())).is_err());
        let as_texts = of("{a}", "{b}", StoredForm::Texts);
        assert!(as_texts.build(&fields("%".repeat(683), "b".into())).is_err(), "2,049 bytes are stored");
    }

    #[test]
    fn an_item_is_named_by_its_stored_key_or_by_its_address() {
        let layout = forms().layout();
        let named = |pk: &str, sk| layout.address(pk, sk).map(|key| key.to_string());
        assert_eq!(named("Posts#B #7", Some("1796000000000")), named("Posts#B %237", Some("1796000000000")));
        let address = layout.key(&Item::from([(PK.to_owned(), s("Posts#B %237")), (SK.to_owned(), s("x"))])).unwrap();
        assert!(named("Posts#B #7", Some("5")).is_some_and(|key| key.starts_with(&address.pk)));
        assert_eq!(named("Posts#a", Some("noon")), None, "the sort key is a number");
        assert_eq!(named("Posts#a", None), None, "the sort key is missing");
        assert_eq!(named("Users#0a", None).as_deref(), Some("Users#0a / -"));
        assert_eq!(named("JOBS#00", Some("x")).as_deref(), Some("JOBS#00 / x"));
    }
}
