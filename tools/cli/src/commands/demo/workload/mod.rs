//! A mixed workload of an application and some foreign clients. A seed always gives the same writes.
//!
//! The application writes single items, on the condition that an item is new or exists. Its knowledge may be outdated,
//! so some conditions fail. The foreign clients put whole items without a condition, including items that they read
//! long before. The order is arbitrary: a comment may come before its post, and a follow before both users.

mod places;
mod social;

use std::collections::BTreeMap;

use anyhow::Context as _;
use derive::{
    guard::{Ask, Guard, Purpose},
    schema::Schema,
    write::{Action, Table, Update, Write},
};
use keys::{entity::Definition, fields::Fields, item::Item, key::Key};
use operate::words::time;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store, StoreError};

/// Users who sign up before anything else happens.
const USERS_MIN: usize = 20;

/// The application, with its knowledge of its own actions. It does not know which of them were refused.
pub(crate) struct Application {
    chance: StdRng,
    items: Items,
    /// Keys of the items that it created, by entity.
    known: BTreeMap<&'static str, Vec<KeyFields>>,
    /// The parents of folders and the managers of employees.
    parents: BTreeMap<String, String>,
    /// The names of folders.
    names: BTreeMap<String, String>,
    /// The products of orders.
    lines: BTreeMap<String, Vec<String>>,
}

/// An action, or the error that a key does not fit the schema.
type Drawn = anyhow::Result<AppAction>;

/// An action with these writes.
fn action<const N: usize>(subject: &str, writes: [anyhow::Result<Write>; N]) -> Drawn {
    let steps = writes.into_iter().map(|write| write.map(Step::Write)).collect::<anyhow::Result<_>>()?;
    Ok(AppAction { subject: subject.to_owned(), steps })
}

/// The value of a key field.
fn field(fields: &KeyFields, name: &str) -> String {
    fields.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone()).unwrap_or_default()
}

impl Application {
    /// An application that has not written anything yet.
    pub(crate) fn new(schema: Schema, seed: u64) -> Self {
        Self {
            chance: StdRng::seed_from_u64(seed),
            items: Items::new(schema),
            known: BTreeMap::new(),
            parents: BTreeMap::new(),
            names: BTreeMap::new(),
            lines: BTreeMap::new(),
        }
    }

    /// Draws the next action. The numbers are percentages.
    ///
    /// # Errors
    ///
    /// Fails if a key does not fit the schema.
    pub(crate) fn next_action(&mut self) -> Drawn {
        self.items.begin();
        if self.n_known("User") < USERS_MIN {
            return self.sign_up();
        }
        match self.chance.random_range(0..100) {
            0..=26 => self.of_people(),
            27..=53 => self.of_posts(),
            54..=60 => self.of_groups(),
            61..=69 => self.of_organizations(),
            70..=78 => self.of_files(),
            79..=91 => self.of_the_shop(),
            92..=94 => self.of_readings(),
            _ => self.of_foreign_clients(),
        }
    }

    /// A name that no other action uses, such as `Group 12`.
    fn new_name(&self, what: &str) -> String {
        format!("{what} {}", self.items.n_actions())
    }

    fn n_known(&self, entity: &str) -> usize {
        self.known.get(entity).map_or(0, Vec::len)
    }

    fn remember(&mut self, entity: &'static str, fields: &KeyFields) {
        self.known.entry(entity).or_default().push(fields.clone());
    }

    /// Remembers the new key of an item.
    fn moved(&mut self, entity: &str, old: &KeyFields, new: &KeyFields) {
        let known = self.known.get_mut(entity).into_iter().flatten();
        known.filter(|fields| *fields == old).for_each(|fields| new.clone_into(fields));
    }

    /// A random item among those that it created; `None` if there are none yet.
    fn any(&mut self, entity: &str) -> Option<KeyFields> {
        let n = self.n_known(entity);
        let at = if n == 0 { 0 } else { self.chance.random_range(0..n) };
        self.known.get(entity)?.get(at).cloned()
    }

    /// True in `times` of `of` cases.
    fn happens(&mut self, times: u32, of: u32) -> bool {
        self.chance.random_ratio(times, of)
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        let at = self.chance.random_range(0..texts.len().max(1));
        texts.get(at).copied().unwrap_or_default()
    }

    fn any_user(&mut self) -> String {
        // One user in forty does not exist, or not yet.
        if self.happens(1, 40) {
            return user_id(self.n_known("User") + self.chance.random_range(0..5));
        }
        self.any("User").map(|user| field(&user, "UserId")).unwrap_or_default()
    }

    fn any_post(&mut self) -> String {
        match if self.happens(1, 40) { None } else { self.any("Post") } {
            Some(post) => field(&post, "PostId"),
            None => format!("missing-{}", self.chance.random_range(0..5)),
        }
    }

    fn role(&mut self) -> &'static str {
        if self.happens(1, 5) { "admin" } else { "member" }
    }
}

/// Some ids contain characters that have a meaning in keys: `#` and `%`.
pub(crate) fn user_id(at: usize) -> String {
    match at % 10 {
        7 => format!("u{at}#x"),
        8 => format!("u{at}%23"),
        _ => format!("u{at}"),
    }
}

/// The key of a user.
fn user_key(user: &str) -> KeyFields {
    key([("UserId", user)])
}

// ---- An action as data, and the client that performs it with plain writes ----

/// Attempts for a write without a response.
const TRIES_MAX: u32 = 3;

/// One action of the application or of a foreign client.
#[derive(Clone, Debug)]
pub(crate) struct AppAction {
    /// The subject of the action. Actions of one subject are performed in order.
    pub(crate) subject: String,
    /// The writes, in order.
    pub(crate) steps: Vec<Step>,
}

/// A part of an action.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A `PutItem`, an `UpdateItem` or a `DeleteItem`. A refused write ends the action.
    Write(Write),
    /// Overwrites an item with the whole item that was read earlier, including stale derived attributes, and adds these
    /// attributes.
    PutBack(Key, Item),
}

/// A client, with the whole items that it read earlier.
#[derive(Debug, Default)]
pub(crate) struct Client {
    read: BTreeMap<Key, Item>,
}

impl Client {
    /// Performs an action. Returns false if the condition of a write failed.
    pub(crate) async fn perform<S: Store>(&mut self, store: &S, action: AppAction) -> Result<bool, StoreError> {
        for step in action.steps {
            let outcome = match step {
                Step::Write(write) => send(store, &write).await?,
                Step::PutBack(key, stamp) => {
                    self.put_back(store, key, stamp).await?;
                    continue;
                }
            };
            if outcome == Outcome::GuardFailed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads an item. From the second time on, also overwrites it with the version from the time before.
    async fn put_back<S: Store>(&mut self, store: &S, key: Key, stamp: Item) -> Result<(), StoreError> {
        let known = self.read.remove(&key);
        if let Some((_, item)) = store.get(Table::Main, std::slice::from_ref(&key)).await?.pop() {
            self.read.insert(key.clone(), item);
        }
        let Some(mut item) = known else { return Ok(()) };
        item.extend(stamp);
        let write = Write { table: Table::Main, key, action: Action::Put(item), guard: None };
        send(store, &write).await.map(drop)
    }
}

async fn send<S: Store>(store: &S, write: &Write) -> Result<Outcome, StoreError> {
    for _ in 1..TRIES_MAX {
        match store.write(write).await {
            Err(error) if error.is_retry() => {}
            done => return done,
        }
    }
    store.write(write).await
}

// ---- Writes of items of the shipped table. The manifest's schema builds their keys ----

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
