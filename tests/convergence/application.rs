//! An application that writes whatever an application may write, right and wrong, over a few ids.
//!
//! It makes, edits, moves and removes ground items; puts back whole items that it read long before; puts values that
//! cannot be read, items without a type and items of a type that nobody knows; and its people alter, delete and forge
//! derived items by hand. It never touches a counter: those are the authority.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    schema::Schema,
    write::{Action, Table, Write},
};
use keys::{
    entity::{Definition, KeyTemplate},
    fields::Fields,
    item::{Item, text},
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::{Store, memory::MemoryStore};

use super::chance::Chance;

const USERS: [&str; 4] = ["ann", "b#b", "50%", "d/%23"];
const POSTS: [&str; 3] = ["p1", "p#2", "%"];
const PAIR: [&str; 2] = ["x", "y#%"];
const TIMES: [&str; 2] = ["2024-01-15T10:30:00.000Z", "2024-01-16"];
const PATHS: [&str; 3] = ["/ceo", "/ceo/vp", "/ceo/v%2Fp"];
const NAMES: [&str; 3] = ["Ann", "Bob", "Cleo"];

/// An application with its memory of items that it read.
pub(crate) struct Application {
    schema: Arc<Schema>,
    chance: Chance,
    read_before: Vec<Item>,
    untyped: BTreeSet<Key>,
    /// The item that it made last.
    newest: Option<Key>,
}

impl Application {
    /// An application on a table.
    pub(crate) fn new(schema: Arc<Schema>, seed: u64) -> Self {
        Self { schema, chance: Chance::new(seed), read_before: Vec::new(), untyped: BTreeSet::new(), newest: None }
    }

    /// Keys of items that it left without a type that is known, at some time.
    pub(crate) fn untyped(&self) -> &BTreeSet<Key> {
        &self.untyped
    }

    /// Writes once, or twice where something moves.
    pub(crate) async fn write(&mut self, table: &MemoryStore) {
        if let Some((_, item)) = self.any(table, |definition| definition.name != "Counter") {
            self.read_before.push(item);
        }
        match self.chance.below(24) {
            0..=6 => self.make(table).await,
            7..=9 => self.edit(table).await,
            10..=12 => self.rename(table).await,
            13..=15 => self.remove(table).await,
            16 => self.move_post(table).await,
            17 | 18 => self.put_back(table).await,
            19 => self.alter_derived(table).await,
            20 | 21 => self.alter_mirror(table).await,
            22 => self.forge(table).await,
            _ => self.junk(table).await,
        }
    }

    /// Puts a new item, over whatever is there.
    async fn make(&mut self, table: &MemoryStore) {
        let item = self.new_item(|definition| !definition.derived);
        self.newest = self.schema.layout.key(&item);
        put(table, &self.schema, item).await;
    }

    /// Sets or removes one attribute of an item, with the index keys that follow.
    async fn edit(&mut self, table: &MemoryStore) {
        let Some((key, mut item)) = self.any(table, |definition| !definition.derived) else { return };
        let schema = Arc::clone(&self.schema);
        let definition = definition(&schema, &item);
        let Some(name) = self.chance.one_of(&definition.attributes).cloned() else { return };
        if self.chance.percent(75) {
            item.insert(name.clone(), self.value(&name));
        } else {
            item.remove(&name);
        }
        put(table, &schema, indexed(&schema, definition, &key, item)).await;
    }

    /// A user, a group or an organization is called otherwise.
    async fn rename(&mut self, table: &MemoryStore) {
        let named = |definition: &Definition| ["User", "Group", "Organization"].contains(&definition.name.as_str());
        let Some((key, _)) = self.any(table, named) else { return };
        let set = Item::from([("Name".to_owned(), self.value("Name"))]);
        act(table, key, Action::Update { set, remove: BTreeSet::new(), add: [].into() }).await;
    }

    /// Deletes an item, often one that is looked at just now since it is new.
    async fn remove(&mut self, table: &MemoryStore) {
        let newest = self.newest.take().filter(|_| self.chance.percent(50));
        if let Some(newest) = newest {
            act(table, newest, Action::Delete).await;
        } else if let Some((key, _)) = self.any(table, |definition| !definition.derived) {
            act(table, key, Action::Delete).await;
        }
    }

    /// A post is dated anew, or given to somebody else: its key changes.
    async fn move_post(&mut self, table: &MemoryStore) {
        let Some((key, old)) = self.any(table, |definition| definition.name == "Post") else { return };
        let schema = Arc::clone(&self.schema);
        let definition = schema.entity("Post").unwrap();
        let mut fields = definition.key.parse_key(&key).unwrap();
        fields.insert("AuthorId", *self.chance.one_of(&USERS).unwrap());
        fields.insert("CreatedAt", *self.chance.one_of(&TIMES).unwrap());
        let mut item = old;
        item.extend(schema.layout.key_item(&definition.build(&fields).unwrap()));
        if self.chance.percent(50) {
            put(table, &schema, item).await;
            act(table, key, Action::Delete).await;
        } else {
            act(table, key, Action::Delete).await;
            put(table, &schema, item).await;
        }
    }

    /// Puts back an item that was read long before, whole.
    async fn put_back(&mut self, table: &MemoryStore) {
        if let Some(item) = self.chance.one_of(&self.read_before).cloned() {
            put(table, &self.schema, item).await;
        }
    }

    /// Somebody's hand changes a copy, a display or a list of claims.
    async fn alter_derived(&mut self, table: &MemoryStore) {
        let counted = |definition: &Definition| definition.name == "Counter";
        let derived = |definition: &Definition| !definition.derived_attributes.is_empty() && !counted(definition);
        let Some((key, item)) = self.any(table, derived) else { return };
        let schema = Arc::clone(&self.schema);
        let Some(name) = self.chance.one_of(&definition(&schema, &item).derived_attributes).cloned() else { return };
        self.alter(table, key, name).await;
    }

    /// Somebody's hand changes any attribute of a mirror, its type too, or deletes it.
    async fn alter_mirror(&mut self, table: &MemoryStore) {
        let Some((key, item)) = self.any(table, is_mirror) else { return };
        let layout = &self.schema.layout;
        let names: Vec<String> =
            item.keys().filter(|name| **name != layout.pk && **name != layout.sk).cloned().collect();
        match self.chance.one_of(&names).cloned() {
            Some(name) if self.chance.percent(60) => self.alter(table, key, name).await,
            _ => act(table, key, Action::Delete).await,
        }
    }

    async fn alter(&mut self, table: &MemoryStore, key: Key, name: String) {
        let is_type = name == self.schema.layout.entity_type;
        let is_text = self.schema.layout.is_key(&name) || is_type;
        self.untyped.extend(is_type.then(|| key.clone()));
        let action = if self.chance.percent(30) {
            Action::Update { set: Item::new(), remove: BTreeSet::from([name]), add: [].into() }
        } else {
            let value = match self.chance.below(3) {
                0 if !is_text => n("7"),
                1 if !is_text => n("0"),
                _ => s("by hand"),
            };
            Action::Update { set: Item::from([(name, value)]), remove: BTreeSet::new(), add: [].into() }
        };
        act(table, key, action).await;
    }

    /// Somebody's hand makes a mirror, of something that may not be there.
    async fn forge(&mut self, table: &MemoryStore) {
        let item = self.new_item(is_mirror);
        put(table, &self.schema, item).await;
    }

    /// Items that are none of ours, and types that change.
    async fn junk(&mut self, table: &MemoryStore) {
        let type_name = self.schema.layout.entity_type.clone();
        let text = |name: &str, text: &str| (name.to_owned(), s(text));
        if self.chance.percent(50) {
            // A misfit says that it is a user, and is not where users are.
            let mut item = Item::from([text("PK", "JUNK"), text("SK", self.chance.one_of(&PAIR).unwrap())]);
            let types = ["Gadget", "User", "Follower"];
            if let Some(name) = self.chance.one_of(&types).filter(|_| self.chance.clone().percent(70)) {
                item.insert(type_name, s(name));
            }
            self.untyped.extend(self.schema.layout.key(&item));
            put(table, &self.schema, item).await;
        } else if let Some((key, _)) = self.any(table, |definition| !definition.derived && definition.name != "View") {
            self.untyped.insert(key.clone());
            let (mut set, mut remove) = (Item::new(), BTreeSet::new());
            match self.chance.below(3) {
                0 => drop(remove.insert(type_name)),
                1 => drop(set.insert(type_name, s("Gadget"))),
                _ => drop(set.insert(type_name, n("1"))),
            }
            act(table, key, Action::Update { set, remove, add: [].into() }).await;
        }
    }

    /// Any item of the entities that are meant.
    fn any(&mut self, table: &MemoryStore, meant: impl Fn(&Definition) -> bool) -> Option<(Key, Item)> {
        let items = table.snapshot(Table::Main);
        let is_meant =
            |(key, item): &(Key, Item)| self.schema.image(key, item).is_some_and(|image| meant(image.definition));
        let items: Vec<(Key, Item)> = items.into_iter().filter(is_meant).collect();
        self.chance.one_of(&items).cloned()
    }

    fn new_item(&mut self, meant: impl Fn(&Definition) -> bool) -> Item {
        let schema = Arc::clone(&self.schema);
        let entities: Vec<&Definition> = schema.entities().filter(|definition| meant(definition)).collect();
        let definition = *self.chance.one_of(&entities).unwrap();
        let key = definition.build(&self.fields(&definition.key)).unwrap();
        let mut item = schema.layout.key_item(&key);
        item.insert(schema.layout.entity_type.clone(), s(&definition.name));
        for name in &definition.attributes {
            if self.chance.percent(80) {
                item.insert(name.clone(), self.value(name));
            }
        }
        if self.chance.percent(10) {
            // An attribute that is called as a field of the key says nothing.
            let names = definition.key.field_names();
            let name = (*self.chance.one_of(&names).unwrap()).to_owned();
            item.insert(name.clone(), self.value(&name));
        }
        if self.chance.percent(20) {
            let set = AttributeValue::Ns(vec!["2.0".into(), "1".into()]);
            item.insert("Note".to_owned(), if self.chance.percent(50) { set } else { n("1e2") });
        }
        indexed(&schema, definition, &key, item)
    }

    fn fields(&mut self, template: &KeyTemplate) -> Fields {
        template.field_names().into_iter().map(|name| (name.to_owned(), self.field(name))).collect()
    }

    fn field(&mut self, name: &str) -> String {
        let values: &[&str] = match name {
            "UserId" | "AuthorId" | "FollowerId" | "FolloweeId" => &USERS,
            "PostId" => &POSTS,
            "CreatedAt" | "ViewedAt" => &TIMES,
            "Path" => &PATHS,
            _ => &PAIR,
        };
        (*self.chance.one_of(values).unwrap()).to_owned()
    }

    /// A value for an attribute; in one of twelve cases one of another type than is meant.
    fn value(&mut self, name: &str) -> AttributeValue {
        if self.chance.below(12) == 0 {
            let set = AttributeValue::Ss(vec!["z".into(), "a".into()]);
            return if self.chance.percent(70) { n("1") } else { set };
        }
        let texts: &[&str] = match name {
            "UserId" | "AuthorId" => &USERS,
            "Status" => &["draft", "published", "published", "archived"],
            "ExpiresAt" | "Version" => return n("1705315200"),
            _ => &NAMES,
        };
        s(self.chance.one_of(texts).unwrap())
    }
}

/// The definition of an item that the schema knows.
fn definition<'a>(schema: &'a Schema, item: &Item) -> &'a Definition {
    schema.entity(text(item, &schema.layout.entity_type).unwrap()).unwrap()
}

fn is_mirror(definition: &Definition) -> bool {
    definition.derived && definition.name != "Counter"
}

/// The item with the index keys that its attributes make.
fn indexed(schema: &Schema, definition: &Definition, key: &Key, mut item: Item) -> Item {
    let fields = definition.fields(key, &item).unwrap();
    for (name, value) in definition.index_attributes(&schema.layout, &fields) {
        match value {
            Some(value) => drop(item.insert(name, value)),
            None => drop(item.remove(&name)),
        }
    }
    item
}

async fn put(table: &MemoryStore, schema: &Schema, item: Item) {
    let key = schema.layout.key(&item).unwrap();
    act(table, key, Action::Put(item)).await;
}

async fn act(table: &MemoryStore, key: Key, action: Action) {
    let write = Write { table: Table::Main, key, action, guard: None };
    table.write(&write).await.unwrap();
}

/// A value of type S.
pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A value of type N.
pub(crate) fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}
