//! Entities: the form of one kind of items, as data.

use std::fmt;

use serde_dynamo::AttributeValue;
use smol_str::SmolStr;

use crate::{
    counter::TARGET_PARTITION,
    error::{KeyError, Problem, TemplateError},
    fields::Fields,
    index_key::{IndexKey, OnlyIf},
    item::{Item, text},
    key::{Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX},
    layout::Layout,
    tables::{KeyAttribute, KeyType, stored_bytes},
    template::{
        Piece, Template,
        form::{Casing, Form},
    },
};

/// The form of the items of one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its row in the table's design, such as `E-04`.
    pub id: String,
    /// Text of the type attribute, such as `Comment`.
    pub name: String,
    /// Form of its primary key.
    pub key: KeyTemplate,
    /// Its keys in indexes.
    pub indexes: Vec<IndexKey>,
    /// True if the whole item is derived.
    pub derived: bool,
    /// Names of the application's attributes, without fields of the key.
    pub attributes: Vec<String>,
    /// Names of the attributes that this service writes.
    pub derived_attributes: Vec<String>,
}

impl Definition {
    /// True for Ripple's own items beside the items of all entities: [counters](crate::counter) and
    /// [entries](crate::entry).
    #[must_use]
    pub fn is_own(&self) -> bool {
        let is_target = |piece: &Piece| matches!(piece, Piece::Field { name, .. } if name == TARGET_PARTITION);
        self.derived && self.key.pk.pieces().first().is_some_and(is_target)
    }

    /// Builds a primary key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming the entity and the field.
    pub fn build(&self, fields: &Fields) -> Result<Key, KeyError> {
        self.build_of(|name| fields.get(name))
    }

    /// Builds a primary key from values that are looked up by field name.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_of<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Result<Key, KeyError> {
        self.key.build_of(value).map_err(|error| error.of(&self.name))
    }

    /// A new item with these values: with its primary key, its type, and the index keys that its writer sets. A value that
    /// fills the primary key is no attribute beside it, unless the entity declares that attribute.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a key cannot be built, including index keys.
    pub fn item(&self, layout: &Layout, mut values: Item) -> Result<(Key, Item), KeyError> {
        let key = self.build_of(|name| match values.get(name)? {
            AttributeValue::S(text) | AttributeValue::N(text) => Some(text.as_str()),
            _ => None,
        })?;
        values.retain(|name, _| !self.key.holds(name) || self.attributes.iter().any(|declared| declared == name));
        let fields = self.fields(&key, &values).unwrap_or_default();
        for index in self.written_indexes() {
            if let (Some(names), Some(key)) = (layout.index(&index.index), self.index_key(index, &fields)?) {
                values.insert(names.pk.as_str(), AttributeValue::S(key.pk));
                values.insert(names.sk.as_str(), AttributeValue::S(key.sk));
            }
        }
        values.extend(layout.key_item(&key));
        values.extend(layout.mark_of(self));
        Ok((key, values))
    }

    /// The fields of an item: those of its key, and its other attributes with the type that the entity's keys need: N
    /// for a number, B for bytes, else S. A value of another type cannot be interpreted, so it is absent here, as for
    /// derivations.
    ///
    /// The key has precedence, since it addresses the item. `None` if the key does not have this entity's form.
    #[must_use]
    pub fn fields(&self, key: &Key, item: &Item) -> Option<Fields> {
        let mut fields: Fields = item
            .iter()
            .filter_map(|(name, value)| match value {
                AttributeValue::S(text) if !self.holds_number(name) => Some((name, text.into())),
                AttributeValue::N(text) if self.holds_number(name) => Some((name, text.into())),
                AttributeValue::B(bytes) if self.holds_bytes(name) => Some((name, SmolStr::from(hex::encode(bytes)))),
                _ => None,
            })
            .collect();
        for (name, value) in self.key_fields(key, item)?.iter() {
            fields.insert(name, value);
        }
        Some(fields)
    }

    /// The fields of an item's key. A text that the key contains in one case only is that of the item's attribute of the
    /// same name, if the attribute has this text. `None` if the key does not have this entity's form.
    #[must_use]
    pub fn key_fields(&self, key: &Key, item: &Item) -> Option<Fields> {
        let mut fields = self.key.parse_key(key)?;
        if !self.key.is_cased() {
            return Some(fields);
        }
        for name in self.attributes.iter().filter(|name| self.key.holds(name)) {
            if let (Some(casing), Some(value)) = (self.key.casing(name), text(item, name))
                && fields.get(name).is_some_and(|stored| casing.of(value) == stored)
            {
                fields.insert(name.as_str(), value);
            }
        }
        Some(fields)
    }

    fn holds_bytes(&self, field: &str) -> bool {
        self.key.is_of_bytes(field) || self.indexes.iter().any(|index| index.key.is_of_bytes(field))
    }

    fn holds_number(&self, field: &str) -> bool {
        self.key.holds_number(field) || self.indexes.iter().any(|index| index.key.holds_number(field))
    }

    /// The item's key in an index; `None` if it should not be in the index.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the item should be in the index and its key cannot be built.
    pub fn index_key(&self, index: &IndexKey, fields: &Fields) -> Result<Option<Key>, KeyError> {
        if !index.only_if.as_ref().is_none_or(|only_if| only_if.holds(fields)) {
            return Ok(None);
        }
        index.key.build(fields).map(Some).map_err(|error| error.of(&self.name))
    }

    /// The first index key that the item's writer sets and DynamoDB refuses as too long: the index, and the problem.
    #[must_use]
    pub fn long_index_key<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Option<(&str, KeyError)> {
        let is_in = |only_if: &OnlyIf| only_if.holds_of(value(only_if.attribute()));
        let mut indexes = self.written_indexes().filter(|index| index.only_if.as_ref().is_none_or(is_in));
        indexes.find_map(|index| {
            let error = index.key.build_of(&value).err()?;
            matches!(error.problem, Problem::TooLong { .. }).then_some((index.index.as_str(), error))
        })
    }

    /// The index key attributes that an item's writer sets: with their values, or `None` if the item must not have
    /// them. Derived ones are not set by the writer.
    ///
    /// A key that cannot be built keeps the item out of that index.
    #[must_use]
    pub fn index_attributes(&self, layout: &Layout, fields: &Fields) -> Vec<(String, Option<AttributeValue>)> {
        let mut attributes = Vec::new();
        for index in self.written_indexes() {
            let Some(names) = layout.index(&index.index) else { continue };
            let (pk, sk) = match self.index_key(index, fields) {
                Ok(Some(key)) => (Some(AttributeValue::S(key.pk)), Some(AttributeValue::S(key.sk))),
                Ok(None) | Err(_) => (None, None),
            };
            attributes.push((names.pk.clone(), pk));
            attributes.push((names.sk.clone(), sk));
        }
        attributes
    }

    /// The attributes and key fields that decide [`index_attributes`](Self::index_attributes), some of them twice.
    pub fn index_fields(&self) -> impl Iterator<Item = &str> {
        self.written_indexes().flat_map(|index| {
            let decides = index.only_if.iter().map(OnlyIf::attribute);
            index.key.field_names().into_iter().chain(decides)
        })
    }

    /// The indexes whose keys the item's writer sets.
    pub fn written_indexes(&self) -> impl Iterator<Item = &IndexKey> {
        self.indexes.iter().filter(|index| !index.derived)
    }
}

// ---- The form of a primary key, or of a key in an index ----

/// The templates of a partition key and a sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    /// Of the partition key.
    pub pk: Template,
    /// Of the sort key.
    pub sk: Template,
    /// How a key of this form is stored, which decides if it is too long.
    pub stored: StoredForm,
}

/// How the texts of a key are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoredForm {
    /// As they are.
    #[default]
    Texts,
    /// As values of attributes of a table of [another form](crate::tables).
    Values {
        /// Prefix of the partition key's text that is not stored: the name of the table.
        prefix: String,
        /// Attributes of the partition key.
        pk: Vec<KeyAttribute>,
        /// Attributes of the sort key.
        sk: Vec<KeyAttribute>,
    },
}

impl StoredForm {
    /// The stored sizes of the texts of a partition key and a sort key, in bytes.
    fn bytes(&self, pk: &str, sk: &str) -> [usize; 2] {
        match self {
            Self::Texts => [pk.len(), sk.len()],
            Self::Values { prefix, pk: of_pk, sk: of_sk } => {
                [stored_bytes(of_pk, pk.strip_prefix(prefix.as_str()).unwrap_or(pk)), stored_bytes(of_sk, sk)]
            }
        }
    }
}

impl KeyTemplate {
    /// Parses both templates.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] of the template that cannot be parsed.
    pub fn parse(pk: &str, sk: &str) -> Result<Self, TemplateError> {
        Ok(Self { pk: Template::parse(pk)?, sk: Template::parse(sk)?, stored: StoredForm::Texts })
    }

    /// The template with unescaped texts, for a table whose keys escape nothing.
    #[must_use]
    pub fn unescaped(self) -> Self {
        Self { pk: self.pk.unescaped(), sk: self.sk.unescaped(), stored: self.stored }
    }

    /// Builds a key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming the field that is missing, empty or does not fit, or the key part that is too long.
    pub fn build(&self, fields: &Fields) -> Result<Key, KeyError> {
        self.build_of(|name| fields.get(name))
    }

    /// Builds a key from values that are looked up by field name.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_of<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Result<Key, KeyError> {
        let mut key = Key { pk: self.pk.build_of(&value)?, sk: String::new() };
        // The stored form is never longer than the text.
        if key.pk.len() > PARTITION_KEY_BYTES_MAX {
            let [pk, _] = self.stored.bytes(&key.pk, "");
            limited(pk, &self.pk, PARTITION_KEY_BYTES_MAX)?;
        }
        key.sk = self.sk.build_of(&value)?;
        if key.sk.len() > SORT_KEY_BYTES_MAX {
            let [_, sk] = self.stored.bytes(&key.pk, &key.sk);
            limited(sk, &self.sk, SORT_KEY_BYTES_MAX)?;
        }
        Ok(key)
    }

    /// The stored size of the text of a sort key, in bytes.
    #[must_use]
    pub fn sort_key_bytes(&self, text: &str) -> usize {
        let [_, bytes] = self.stored.bytes("", text);
        bytes
    }

    /// The fields of a key of this form; `None` if it has another form.
    #[must_use]
    pub fn parse_key(&self, key: &Key) -> Option<Fields> {
        let mut fields = Fields::new();
        (self.pk.parse_into(&key.pk, &mut fields) && self.sk.parse_into(&key.sk, &mut fields)).then_some(fields)
    }

    /// True if a key of this form contains this field.
    #[must_use]
    pub fn holds(&self, field: &str) -> bool {
        self.pk.holds(field) || self.sk.holds(field)
    }

    /// True if either part contains this field as a number.
    #[must_use]
    pub fn holds_number(&self, field: &str) -> bool {
        self.pk.holds_number(field) || self.sk.holds_number(field)
    }

    /// True if this field is a number that makes up a whole key of type N.
    #[must_use]
    pub fn is_of_number(&self, field: &str) -> bool {
        self.pk.forms(field).chain(self.sk.forms(field)).any(|form| form == Form::Number)
    }

    /// True if this field is bytes that make up a whole key of type B. Its value is text of [hexadecimal
    /// digits](crate::value::hexadecimal).
    #[must_use]
    pub fn is_of_bytes(&self, field: &str) -> bool {
        self.pk.forms(field).chain(self.sk.forms(field)).any(|form| form == Form::Bytes)
    }

    /// The type of the attribute that fills a field: N or B if it makes up a whole key of that type, else S.
    #[must_use]
    pub fn type_of(&self, field: &str) -> KeyType {
        if self.is_of_number(field) {
            KeyType::N
        } else if self.is_of_bytes(field) {
            KeyType::B
        } else {
            KeyType::S
        }
    }

    /// The attribute value for a field: of type N or B if it makes up a whole key of that type, else S.
    #[must_use]
    pub fn typed(&self, field: &str, value: &str) -> Option<AttributeValue> {
        self.pk.typed(field, value).or_else(|| self.sk.typed(field, value))
    }

    /// True if a field is in one case only.
    #[must_use]
    pub fn is_cased(&self) -> bool {
        let is_cased = |piece: &Piece| matches!(piece, Piece::Field { form: Form::Cased(_), .. });
        self.pk.pieces().iter().chain(self.sk.pieces()).any(is_cased)
    }

    /// The case of this field, if the key contains its text in one case only.
    #[must_use]
    pub fn casing(&self, field: &str) -> Option<Casing> {
        let casing = |form| if let Form::Cased(casing) = form { Some(casing) } else { None };
        self.pk.forms(field).chain(self.sk.forms(field)).map(casing).reduce(Option::and).flatten()
    }

    /// True if this key has the form in each part, and could be read in two ways.
    #[must_use]
    pub fn is_in_doubt(&self, key: &Key) -> bool {
        let [pk, sk] = [(&self.pk, &key.pk), (&self.sk, &key.sk)];
        let fits = |(part, text): (&Template, &String)| part.is_in_doubt(text) || part.parse_key(text).is_some();
        (self.pk.is_in_doubt(&key.pk) || self.sk.is_in_doubt(&key.sk)) && fits(pk) && fits(sk)
    }

    /// True if one key could match both forms. `false` is certain; if a field occurs twice, `true` may be wrong.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.pk.meets(&other.pk) && self.sk.meets(&other.sk)
    }

    /// The shortest key that could match both forms, as [`meets`](Self::meets).
    #[must_use]
    pub fn meeting(&self, other: &Self) -> Option<Key> {
        Some(Key { pk: self.pk.meeting(&other.pk)?, sk: self.sk.meeting(&other.sk)? })
    }

    /// Names of the fields of both parts, each once.
    #[must_use]
    pub fn field_names(&self) -> Vec<&str> {
        let mut names = self.pk.field_names();
        names.extend(self.sk.field_names());
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// `USER#{UserId} / PROFILE`.
impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.pk, self.sk)
    }
}

fn limited(bytes: usize, template: &Template, bytes_max: usize) -> Result<(), KeyError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let longest = template.field_names().last().map_or_else(|| template.to_string(), |name| (*name).to_owned());
    Err(KeyError::new(&longest, Problem::TooLong { bytes, bytes_max }))
}
