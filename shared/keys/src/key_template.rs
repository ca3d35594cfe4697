//! The form of a primary key, or of a key in an index.

use serde_dynamo::AttributeValue;

use crate::{
    error::{KeyError, Problem, TemplateError},
    fields::Fields,
    key::{Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX},
    tables::{KeyAttribute, KeyType, stored_bytes},
    template::{
        Piece, Template,
        form::{Casing, Form},
    },
};

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

fn limited(bytes: usize, template: &Template, bytes_max: usize) -> Result<(), KeyError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let longest = template.field_names().last().map_or_else(|| template.to_string(), |name| (*name).to_owned());
    Err(KeyError::new(&longest, Problem::TooLong { bytes, bytes_max }))
}
