//! Writes of items of the shipped table. The manifest's schema builds their keys.

use anyhow::Context as _;
use derive::{
    guard::{Ask, Guard, Purpose},
    schema::Schema,
    write::{Action, Table, Update, Write},
};
use keys::{entity::Definition, fields::Fields, item::Item, key::Key};
use operate::words::time;
use serde_dynamo::AttributeValue;

/// Time before the first action, in milliseconds since the epoch: 2030-01-01, so that no view expires during the run.
pub(crate) const BEGIN_MS: u64 = 1_893_456_000_000;

/// The fields of an item's key.
pub(crate) type KeyFields = Vec<(&'static str, String)>;

/// An attribute of an item. An update removes an attribute that has no value.
pub(crate) type Attribute = (&'static str, Option<AttributeValue>);

/// An attribute of type S.
pub(crate) fn text(name: &'static str, text: impl Into<String>) -> Attribute {
    (name, Some(AttributeValue::S(text.into())))
}

/// An attribute of type N.
pub(crate) fn number(name: &'static str, number: i64) -> Attribute {
    (name, Some(AttributeValue::N(number.to_string())))
}

/// Key fields from their names and values.
pub(crate) fn key<const N: usize>(fields: [(&'static str, &str); N]) -> KeyFields {
    fields.map(|(name, value)| (name, value.to_owned())).into()
}

/// Makes the writes of one action.
pub(crate) struct Items {
    schema: Schema,
    n_actions: u64,
}

impl Items {
    /// Starts before the first action.
    pub(crate) fn new(schema: Schema) -> Self {
        Self { schema, n_actions: 0 }
    }

    /// Begins the next action.
    pub(crate) fn begin(&mut self) {
        self.n_actions += 1;
    }

    /// The number of the action, from 1.
    pub(crate) fn n_actions(&self) -> u64 {
        self.n_actions
    }

    /// The time of the action as text. No other action has it, so it identifies the action's writes in the stream.
    pub(crate) fn now(&self) -> String {
        time(BEGIN_MS + self.n_actions)
    }

    /// An id that no other action uses.
    pub(crate) fn new_id(&self, letter: &str) -> String {
        format!("{letter}{}", self.n_actions)
    }

    /// Puts a new item. Refused if an item with its key exists.
    pub(crate) fn create(&self, entity: &str, fields: &KeyFields, attributes: &[Attribute]) -> anyhow::Result<Write> {
        Ok(asking(self.put(entity, fields, attributes)?, Ask::Absent))
    }

    /// Puts a whole item, whether or not one with its key exists.
    pub(crate) fn put(&self, entity: &str, fields: &KeyFields, attributes: &[Attribute]) -> anyhow::Result<Write> {
        let definition = self.definition(entity)?;
        let times = ["CreatedAt", "UpdatedAt"].map(|name| (name, self.now()));
        let times = times.into_iter().filter(|(name, _)| definition.attributes.iter().any(|it| it == name));
        let texts = times.chain(fields.iter().cloned()).map(|(name, value)| (name, AttributeValue::S(value)));
        let given = attributes.iter().filter_map(|(name, value)| Some((*name, value.clone()?)));
        let (key, item) = definition.item(&self.schema.layout, texts.chain(given).collect())?;
        Ok(write(key, Action::Put(item)))
    }

    /// Updates attributes. Refused if the item does not exist. The attributes must include all fields of an index key
    /// that changes.
    pub(crate) fn update(&self, entity: &str, fields: &KeyFields, attributes: &[Attribute]) -> anyhow::Result<Write> {
        let (definition, values) = (self.definition(entity)?, all_fields(fields, attributes));
        let mut update = Update::default();
        let mut edit = |name: &str, value: Option<AttributeValue>| match value {
            Some(value) => drop(update.set.insert(name, value)),
            None => drop(update.remove.insert(name.to_owned())),
        };
        edit("UpdatedAt", Some(AttributeValue::S(self.now())));
        for (name, value) in attributes {
            edit(name, value.clone());
        }
        for index in definition.written_indexes() {
            let decides = |name: &str| {
                let only_if = index.only_if.as_ref().map(keys::index_key::OnlyIf::attribute);
                index.key.field_names().contains(&name) || only_if == Some(name)
            };
            let Some(names) = self.schema.layout.index(&index.index) else { continue };
            if attributes.iter().any(|(name, _)| decides(name)) {
                let (pk, sk) = definition.index_key(index, &values)?.map(|key| (key.pk, key.sk)).unzip();
                edit(&names.pk, pk.map(AttributeValue::S));
                edit(&names.sk, sk.map(AttributeValue::S));
            }
        }
        Ok(asking(write(self.key(entity, fields)?, Action::Update(update)), Ask::Present))
    }

    /// Adds to a number of an item, and leaves `UpdatedAt` unchanged. Refused if the number would fall below zero.
    pub(crate) fn add(&self, entity: &str, fields: &KeyFields, name: &str, by: i64) -> anyhow::Result<Write> {
        let number = |number: i64| AttributeValue::N(number.to_string());
        let add = Item::from([(name.to_owned(), number(by))]);
        let update = Action::Update(Update { add, ..Update::default() });
        let ask = if by < 0 { Ask::AtLeast(name.to_owned(), number(-by)) } else { Ask::Present };
        Ok(asking(write(self.key(entity, fields)?, update), ask))
    }

    /// Deletes an item.
    pub(crate) fn delete(&self, entity: &str, fields: &KeyFields) -> anyhow::Result<Write> {
        Ok(write(self.key(entity, fields)?, Action::Delete))
    }

    /// The primary key of an item.
    pub(crate) fn key(&self, entity: &str, fields: &KeyFields) -> anyhow::Result<Key> {
        Ok(self.definition(entity)?.build(&all_fields(fields, &[]))?)
    }

    fn definition(&self, entity: &str) -> anyhow::Result<&Definition> {
        self.schema.entity(entity).with_context(|| format!("the shipped manifest has no entity {entity}"))
    }

    // ---- Items that several scenarios write ----

    /// A new user.
    pub(crate) fn user(&self, user: &str, name: &str, avatar: Option<String>) -> anyhow::Result<Write> {
        let email = format!("{user}@example.com");
        let attributes = [text("Name", name), text("Email", email), number("Version", 1)];
        let avatar = avatar.map(|avatar| text("Avatar", avatar));
        self.create("User", &key([("UserId", user)]), &attributes.into_iter().chain(avatar).collect::<Vec<_>>())
    }

    /// The key of a post that is created now.
    pub(crate) fn new_post(&self, author: &str, post: &str) -> KeyFields {
        key([("AuthorId", author), ("CreatedAt", &self.now()), ("PostId", post)])
    }

    /// A new post that is published at once.
    pub(crate) fn post(&self, author: &str, post: &str, title: &str) -> anyhow::Result<Write> {
        let attributes = [text("Title", title), text("Content", lorem()), text("Status", "published")];
        self.create("Post", &self.new_post(author, post), &attributes)
    }

    /// The key of a comment that is created now.
    pub(crate) fn new_comment(&self, post: &str, comment: &str) -> KeyFields {
        key([("PostId", post), ("CreatedAt", &self.now()), ("CommentId", comment)])
    }

    /// A new comment of a user.
    pub(crate) fn comment(&self, post: &str, comment: &str, user: &str) -> anyhow::Result<Write> {
        self.create("Comment", &self.new_comment(post, comment), &[text("UserId", user), text("Text", "Well said.")])
    }
}

/// The text of a post.
pub(crate) fn lorem() -> String {
    "Lorem ipsum dolor sit amet. ".repeat(8)
}

fn all_fields(fields: &KeyFields, attributes: &[Attribute]) -> Fields {
    let attributes = attributes.iter().filter_map(|(name, value)| match value {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => Some((*name, text.as_str())),
        _ => None,
    });
    fields.iter().map(|(name, value)| (*name, value.as_str())).chain(attributes).collect()
}

fn write(key: Key, action: Action) -> Write {
    Write { table: Table::Main, key, action, guard: None }
}

/// The write with one more condition.
pub(crate) fn asking(mut write: Write, ask: Ask) -> Write {
    let mut asks = write.guard.map(|guard| guard.asks).unwrap_or_default();
    asks.push(ask);
    write.guard = Some(Guard { purpose: Purpose::Application, asks });
    write
}
