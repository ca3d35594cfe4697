//! The tables whose streams are filtered, and how the keys in them begin.

use std::borrow::Cow;

use derive::schema::Schema;
use keys::{
    entity::Definition,
    fields::Fields,
    tables::{KeyAttribute, TableForm},
    template::Template,
};

/// A table with a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamTable<'a> {
    pub(super) schema: &'a Schema,
    /// One of [several](keys::tables); otherwise the table whose keys are the layout's.
    pub(super) form: Option<&'a TableForm>,
}

impl<'a> StreamTable<'a> {
    /// All tables with a stream: first the one whose keys are the layout's.
    pub fn all(schema: &'a Schema) -> impl Iterator<Item = Self> {
        let forms = schema.layout.forms.iter().flat_map(|forms| &forms.0).map(Some);
        [None].into_iter().chain(forms).map(move |form| Self { schema, form })
    }

    /// The table's form, where it is one of several.
    #[must_use]
    pub fn form(&self) -> Option<&'a TableForm> {
        self.form
    }

    /// What it is like: its own form, or that of the layout.
    #[must_use]
    pub fn declared(&self) -> Cow<'a, TableForm> {
        self.form.map_or_else(|| Cow::Owned(self.schema.layout.own_table()), Cow::Borrowed)
    }

    /// Are the items of this entity in the table?
    pub(super) fn holds(&self, entity: &str) -> bool {
        let Some(forms) = &self.schema.layout.forms else { return true };
        let table = self.schema.entity(entity).and_then(|definition| forms.of_entity(definition));
        table.map(|table| &table.name) == self.form.map(|form| &form.name)
    }

    /// How the keys of an entity's items begin, as they are stored.
    pub(super) fn start(&self, definition: &Definition) -> KeyStart {
        let KeyStart { pk, sk } = of_entity(definition);
        let Some(form) = self.form else { return KeyStart { pk, sk } };
        let is_text = |attribute: Option<&KeyAttribute>| attribute.is_some_and(|attribute| !attribute.is_plain);
        // Inside, a partition key begins with the name of its table.
        let pk = if is_text(Some(&form.pk)) { pk.without(&format!("{}#", form.name)) } else { Start::Any };
        KeyStart { pk, sk: if is_text(form.sk.as_ref()) { sk } else { Start::Any } }
    }
}

/// The beginning of a key attribute's text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Start {
    /// Any text.
    Any,
    /// A text that begins with this, and continues.
    With(String),
    /// Exactly this text.
    Is(String),
}

/// The beginnings of the keys of some items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyStart {
    pub(super) pk: Start,
    pub(super) sk: Start,
}

impl Start {
    fn without(self, prefix: &str) -> Self {
        let rest = |text: &str| text.strip_prefix(prefix).unwrap_or_default().to_owned();
        match self {
            Self::Is(text) => Self::Is(rest(&text)),
            Self::With(text) if text.len() > prefix.len() => Self::With(rest(&text)),
            Self::With(_) | Self::Any => Self::Any,
        }
    }
}

/// How the keys of an entity's items begin, inside.
pub(super) fn of_entity(definition: &Definition) -> KeyStart {
    KeyStart { pk: start(&definition.key.pk), sk: start(&definition.key.sk) }
}

fn start(template: &Template) -> Start {
    // The prefix ends at the first field, and no field is given, so no value can be refused.
    let text = template.prefix(&Fields::new()).unwrap_or_default();
    match (text.is_empty(), template.field_names().is_empty()) {
        (true, _) => Start::Any,
        (false, true) => Start::Is(text),
        (false, false) => Start::With(text),
    }
}
