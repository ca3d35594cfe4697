//! An application that writes whatever an application may write, right and wrong, over a few ids.
//!
//! It makes, edits, moves and removes ground items; puts back whole items that it read long before; puts values that
//! cannot be read, items without a type and items of a type that nobody knows; and its people alter, delete and forge
//! derived items by hand. It never touches a counter: those are the authority.

mod ground;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{
    claims::CLAIMS,
    part::PartOf,
    write::{Action, ITEM_BYTES_MAX, Table, Transaction, Update, Write},
};
use keys::{
    entity::Definition,
    item::{Item, text},
    key::Key,
    shown::is_revision,
    size::item_bytes,
};
use store::{Store as _, TransactOutcome, faulty::Call, memory::MemoryStore};

use crate::{
    executor::now,
    items::{
        PAIR, TIMES, USERS, definition, indexed, is_authority, is_mirror, n, new_item, readings::reading, s, value,
    },
    platform::stream::Author,
    scene::{Scene, Theme},
    world::{Application, FOREIGN, NOTE, World},
};

/// The attribute that makes an item large, and how much smaller than allowed the item may be, in bytes.
const PADDING: &str = "Padding";
const PADDING_LESS_MAX: usize = 60;

impl World {
    /// The application writes; false when it has nothing left to write.
    pub(crate) fn write(&mut self) -> bool {
        if self.is_written() || self.losses.stopped.is_some() {
            return false;
        }
        self.n_writes -= 1;
        self.scene.count("writes");
        self.stream.take(Author::Service);
        let author = self.application.write();
        self.stream.take(author);
        true
    }
}

impl Application {
    /// Writes once, or twice when something moves. Returns who wrote: the application itself or somebody by hand.
    pub(crate) fn write(&mut self) -> Author {
        let scene = Arc::clone(&self.scene);
        if let Some(drawn) = &scene.drawn {
            return self.write_drawn(drawn);
        }
        let table = scene.database.memory();
        if let Some((_, item)) = self.any(table, |definition| !is_authority(definition)) {
            self.read_before.push(item);
        }
        if self.keep_to_theme(table) {
            return Author::Application;
        }
        let draw = self.scene.chance.below(50);
        match draw {
            0..=6 => self.make(table),
            7..=9 => self.edit(table),
            10..=12 => self.rename(table),
            13..=15 => self.remove(table),
            16 => self.move_post(table),
            17 | 18 => self.put_back(table),
            19 => self.alter_derived(table),
            20 | 21 => self.alter_mirror(table),
            22 => self.forge(table),
            23 => self.junk(table),
            24 => self.trade(table),
            25 => self.move_file(table),
            26 | 27 => self.measure(table),
            28 | 29 => self.move_folder(table),
            30..=33 => self.follow_or_not(table),
            34 | 35 => self.transact(table),
            36 | 38..=41 if self.scene.is_large => self.enlarge(table),
            37 => self.put_over_mirror(table),
            42 | 43 => self.copy_over(table),
            _ => self.touch_ground(table),
        }
        if (19..=22).contains(&draw) { Author::Hand } else { Author::Application }
    }

    /// Puts a new item, over whatever is there.
    fn make(&mut self, table: &MemoryStore) {
        let shipped = (&*self.schema, &*self.scene.catalogue);
        let item = new_item(&self.scene.chance, shipped, |definition| !definition.derived);
        self.newest = self.schema.layout.key(&item);
        self.put(table, item);
    }

    /// Puts new items and deletes old ones, all in one transaction.
    fn transact(&mut self, table: &MemoryStore) {
        let shipped = (&*self.schema, &*self.scene.catalogue);
        let mut writes: BTreeMap<Key, Action> = BTreeMap::new();
        for _ in 0..self.scene.chance.between(1, 3) {
            let item = new_item(&self.scene.chance, shipped, |definition| !definition.derived);
            writes.insert(self.schema.layout.key(&item).unwrap(), Action::Put(item));
        }
        if let Some((key, _)) = self.any(table, |definition| !definition.derived) {
            writes.entry(key).or_insert(Action::Delete);
        }
        let writes = writes.into_iter().map(|(key, action)| Write { table: Table::Main, key, action, guard: None });
        let transaction = Transaction::new(writes.collect()).unwrap();
        self.scene.count("app transactions");
        self.scene.trace.note(|| format!("app {}", Call::Transact(&transaction)));
        let outcome = now(table.transact(&transaction)).unwrap();
        assert!(matches!(outcome, TransactOutcome::Done { .. }), "{outcome:?}");
    }

    /// Sets or removes one attribute of an item, with the index keys that follow.
    fn edit(&mut self, table: &MemoryStore) {
        let Some((key, mut item)) = self.any(table, |definition| !definition.derived) else { return };
        let schema = Arc::clone(&self.schema);
        let definition = definition(&schema, &item);
        let Some(name) = self.scene.chance.one_of(&definition.attributes).cloned() else { return };
        if self.scene.chance.percent(75) {
            item.insert(name.clone(), value(&self.scene.chance, &name));
        } else {
            item.remove(&name);
        }
        self.put(table, indexed(&schema, definition, &key, item));
    }

    /// A user, a group, an organization or a folder gets another name.
    fn rename(&mut self, table: &MemoryStore) {
        let names = ["User", "Group", "Organization", "Folder"];
        let named = |definition: &Definition| names.contains(&definition.name.as_str());
        let Some((key, mut item)) = self.any(table, named) else { return };
        let schema = Arc::clone(&self.schema);
        item.insert("Name".to_owned(), value(&self.scene.chance, "Name"));
        let definition = definition(&schema, &item);
        let mut written = definition.index_attributes(&schema.layout, &definition.fields(&key, &item).unwrap());
        // The application writes the index keys: without them a folder is not found from its parent.
        written.retain(|(name, _)| item.contains_key(name) || definition.name == "Folder");
        let mut update = Update::set(Item::from([("Name".to_owned(), item.get("Name").cloned().unwrap())]));
        for (name, value) in written {
            match value {
                Some(value) => drop(update.set.insert(name, value)),
                None => drop(update.remove.insert(name)),
            }
        }
        self.act(table, key, Action::Update(update));
    }

    /// Fills an item up, so that nothing or little can be added to it.
    fn enlarge(&mut self, table: &MemoryStore) {
        let Some((_, item)) = self.any(table, |definition| !definition.derived) else { return };
        self.put(table, filled_up(&self.scene, item));
    }

    /// Makes all large items small again.
    pub(crate) fn reduce(&mut self) {
        let scene = Arc::clone(&self.scene);
        let table = scene.database.memory();
        let is_large = |(_, item): &(&Key, &Item)| item.contains_key(PADDING);
        let large: Vec<Key> = table.view(Table::Main, |items| {
            let large = items.iter().filter(is_large).map(|(key, _)| key.clone());
            large
                .filter(|key| self.schema.image(key, &items[key]).is_none_or(|image| !image.definition.derived))
                .collect()
        });
        for key in large {
            let action = Action::Update(Update { remove: BTreeSet::from([PADDING.to_owned()]), ..Update::default() });
            self.act(table, key, action);
        }
    }

    /// Deletes an item, often a new one that the functions read at this moment.
    fn remove(&mut self, table: &MemoryStore) {
        let newest = self.newest.take().filter(|_| self.scene.chance.percent(50));
        if let Some(newest) = newest {
            self.act(table, newest, Action::Delete);
        } else if let Some((key, _)) = self.any(table, |definition| !definition.derived) {
            self.act(table, key, Action::Delete);
        }
    }

    /// Somebody follows or unfollows, so that a count falls to zero and rises again.
    fn follow_or_not(&mut self, table: &MemoryStore) {
        let schema = Arc::clone(&self.schema);
        let follow = schema.entity("Follow").unwrap();
        let [follower, followee] = [(); 2].map(|()| *self.scene.chance.one_of(&USERS[..2]).unwrap());
        let key = follow.build(&[("FollowerId", follower), ("FolloweeId", followee)].into_iter().collect()).unwrap();
        if table.view(Table::Main, |items| items.contains_key(&key)) {
            return self.act(table, key, Action::Delete);
        }
        let mut item = schema.layout.key_item(&key);
        item.extend(schema.layout.type_of(&follow.name));
        self.put(table, indexed(&schema, follow, &key, item));
    }

    /// A post gets another date or author: its key changes.
    fn move_post(&mut self, table: &MemoryStore) {
        let Some((key, old)) = self.any(table, |definition| definition.name == "Post") else { return };
        let schema = Arc::clone(&self.schema);
        let definition = schema.entity("Post").unwrap();
        let mut fields = definition.key.parse_key(&key).unwrap();
        fields.insert("AuthorId", *self.scene.chance.one_of(&USERS).unwrap());
        fields.insert("CreatedAt", *self.scene.chance.one_of(&TIMES).unwrap());
        let mut item = old;
        item.extend(schema.layout.key_item(&definition.build(&fields).unwrap()));
        if self.scene.chance.percent(50) {
            self.put(table, item);
            self.act(table, key, Action::Delete);
        } else {
            self.act(table, key, Action::Delete);
            self.put(table, item);
        }
    }

    /// A file goes to another folder: its key changes.
    fn move_file(&mut self, table: &MemoryStore) {
        let Some((key, old)) = self.any(table, |definition| definition.name == "File") else { return };
        let schema = Arc::clone(&self.schema);
        let definition = schema.entity("File").unwrap();
        let mut fields = definition.key.parse_key(&key).unwrap();
        fields.insert("FolderId", *self.scene.chance.one_of(&PAIR).unwrap());
        let mut item = old;
        item.extend(schema.layout.key_item(&definition.build(&fields).unwrap()));
        self.act(table, key, Action::Delete);
        self.put(table, item);
    }

    /// What is counted and summed changes: a status, an amount.
    fn trade(&mut self, table: &MemoryStore) {
        let traded =
            |definition: &Definition| ["Order", "OrderItem", "Review", "File"].contains(&definition.name.as_str());
        let Some((key, mut item)) = self.any(table, traded) else { return };
        let names: &[&str] = match text(&item, self.schema.layout.entity_type.as_ref().unwrap()) {
            Some("Order") => &["Status", "Total"],
            Some("OrderItem") => &["Cancelled", "Quantity"],
            Some("Review") => &["Rating"],
            _ => &["SizeBytes"],
        };
        let name = *self.scene.chance.one_of(names).unwrap();
        item.insert(name.to_owned(), value(&self.scene.chance, name));
        let schema = Arc::clone(&self.schema);
        self.put(table, indexed(&schema, definition(&schema, &item), &key, item));
    }

    /// A sensor reads several times, and overwrites some of its earlier readings.
    fn measure(&mut self, table: &MemoryStore) {
        for _ in 0..self.scene.chance.between(2, 6) {
            self.put(table, reading(&self.scene.chance));
        }
    }

    /// A folder moves into any other, into none, or into a folder below itself.
    fn move_folder(&mut self, table: &MemoryStore) {
        let Some((key, mut item)) = self.any(table, |definition| definition.name == "Folder") else { return };
        let schema = Arc::clone(&self.schema);
        item.remove("ParentId");
        if self.scene.chance.percent(80) {
            item.insert("ParentId", value(&self.scene.chance, "ParentId"));
        }
        self.put(table, indexed(&schema, definition(&schema, &item), &key, item));
    }

    /// Puts back a whole item that was read long before.
    fn put_back(&mut self, table: &MemoryStore) {
        if let Some(item) = self.scene.chance.one_of(&self.read_before).cloned() {
            self.scene.count("put back");
            self.put(table, item);
        }
    }

    /// Somebody changes a copy, a display or a list of claims by hand.
    fn alter_derived(&mut self, table: &MemoryStore) {
        let derived = |definition: &Definition| !definition.derived_attributes.is_empty() && !is_authority(definition);
        let Some((key, item)) = self.any(table, derived) else { return };
        let mut written = self.written(definition(&self.schema, &item));
        written.extend(item.keys().filter(|name| is_revision(name)).map(str::to_owned));
        if let Some(name) = self.scene.chance.one_of(&written).cloned() {
            self.alter(table, key, name);
        }
    }

    /// The derived attributes that a derivation writes. Nothing corrects the others.
    fn written(&self, definition: &Definition) -> Vec<String> {
        let derivations = self.scene.catalogue.derivations();
        let parts = derivations.flat_map(|derivation| derivation.kind.reach(&self.schema).unwrap().writes);
        let is_written: BTreeSet<String> = parts
            .filter(|part| part.entity == definition.name)
            .filter_map(|part| match part.of {
                PartOf::Attribute(name) => Some(name),
                PartOf::Inside { .. } | PartOf::Existence | PartOf::AllBut(_) => None,
            })
            .chain([CLAIMS.to_owned()])
            .collect();
        definition.derived_attributes.iter().filter(|name| is_written.contains(*name)).cloned().collect()
    }

    /// Somebody changes any attribute of a mirror by hand, even its type, or deletes it.
    fn alter_mirror(&mut self, table: &MemoryStore) {
        let Some((key, item)) = self.any(table, is_mirror) else { return };
        let layout = &self.schema.layout;
        let names: Vec<String> =
            item.keys().filter(|name| **name != layout.pk && **name != layout.sk).map(str::to_owned).collect();
        match self.scene.chance.one_of(&names).cloned() {
            Some(name) if self.scene.chance.percent(60) => self.alter(table, key, name),
            _ => self.act(table, key, Action::Delete),
        }
    }

    fn alter(&mut self, table: &MemoryStore, key: Key, name: String) {
        let is_type = self.schema.layout.entity_type.as_ref() == Some(&name);
        let is_text = self.schema.layout.is_key(&name) || is_type;
        self.untyped.extend(is_type.then(|| key.clone()));
        let action = if self.scene.chance.percent(30) {
            Action::Update(Update { remove: BTreeSet::from([name]), ..Update::default() })
        } else {
            let value = match self.scene.chance.below(3) {
                0 if !is_text => n("7"),
                1 if !is_text => n("0"),
                _ => s("by hand"),
            };
            Action::Update(Update::set(Item::from([(name, value)])))
        };
        self.act(table, key, action);
    }

    /// Somebody makes a mirror by hand. Its source may not exist.
    fn forge(&mut self, table: &MemoryStore) {
        let shipped = (&*self.schema, &*self.scene.catalogue);
        let item = new_item(&self.scene.chance, shipped, is_mirror);
        self.put(table, item);
    }

    /// Items of no entity of ours, and items whose type changes.
    fn junk(&mut self, table: &MemoryStore) {
        let type_name = self.schema.layout.entity_type.clone().unwrap();
        let text = |name: &str, text: &str| (name.to_owned(), s(text));
        if self.scene.chance.percent(50) {
            // Its type may be one of ours, but its key is not.
            let mut item = Item::from([text("PK", "JUNK"), text("SK", self.scene.chance.one_of(&PAIR).unwrap())]);
            let types = ["Gadget", "User", "Follower"];
            if let Some(name) = self.scene.chance.one_of(&types).filter(|_| self.scene.chance.percent(70)) {
                item.insert(type_name, s(name));
            }
            self.untyped.extend(self.schema.layout.key(&item));
            self.put(table, item);
        } else if let Some((key, _)) = self.any(table, |definition| !definition.derived && definition.name != "View") {
            self.untyped.insert(key.clone());
            let (mut set, mut remove) = (Item::new(), BTreeSet::new());
            match self.scene.chance.below(3) {
                0 => drop(remove.insert(type_name)),
                1 => drop(set.insert(type_name, s("Gadget"))),
                _ => drop(set.insert(type_name, n("1"))),
            }
            self.act(table, key, Action::Update(Update { set, remove, ..Update::default() }));
        }
    }

    /// All attributes of an item are put over another of its entity, those that Ripple wrote too.
    fn copy_over(&mut self, table: &MemoryStore) {
        let Some((from, item)) = self.any(table, |definition| !definition.derived) else { return };
        let schema = Arc::clone(&self.schema);
        let definition = definition(&schema, &item);
        let Some((key, _)) = self.any(table, |other| other.name == definition.name).filter(|(key, _)| *key != from)
        else {
            return;
        };
        let mut copied = item;
        copied.extend(self.schema.layout.key_item(&key));
        let copied = indexed(&schema, definition, &key, copied);
        self.scene.count("copied over");
        self.put(table, copied);
    }

    /// A foreign item takes the key of a mirror, whether that is there or not yet; or such an item goes.
    fn put_over_mirror(&mut self, table: &MemoryStore) {
        let draw = self.scene.chance.below(5);
        if draw < 2 {
            if let Some(key) = self.any_foreign() {
                self.scene.count("foreign item gone");
                self.act(table, key, Action::Delete);
            }
            return;
        }
        let there = self.any(table, is_mirror).filter(|_| draw < 4).map(|(key, _)| key);
        let shipped = (&*self.schema, &*self.scene.catalogue);
        let new = || self.schema.layout.key(&new_item(&self.scene.chance, shipped, is_mirror)).unwrap();
        let key = there.unwrap_or_else(new);
        let mut item = self.schema.layout.key_item(&key);
        let kind = self.scene.chance.one_of(&["Gadget", "Gadget", "User"]).filter(|_| self.scene.chance.percent(80));
        item.extend(kind.and_then(|kind| self.schema.layout.type_of(kind)));
        item.insert(NOTE.to_owned(), s(FOREIGN));
        self.scene.count("over a mirror");
        self.untyped.insert(key);
        self.put(table, item);
    }

    /// An item of one of these entities: the first one after a random place in the table.
    fn any(&mut self, table: &MemoryStore, meant: impl Fn(&Definition) -> bool) -> Option<(Key, Item)> {
        let schema = &self.schema;
        let is_meant = |(key, item): &(&Key, &Item)| {
            let name = schema.layout.entity_type.as_ref().and_then(|attribute| text(item, attribute));
            let definition = name.and_then(|name| schema.entity(name));
            definition.is_some_and(&meant) && schema.image(key, item).is_some()
        };
        table.view(Table::Main, |items| {
            let place = self.scene.chance.below(items.len());
            let found = items.iter().skip(place).chain(items.iter().take(place)).find(is_meant);
            found.map(|(key, item)| (key.clone(), item.clone()))
        })
    }

    fn put(&self, table: &MemoryStore, item: Item) {
        let key = self.schema.layout.key(&item).unwrap();
        self.act(table, key, Action::Put(item));
    }

    fn act(&self, table: &MemoryStore, key: Key, action: Action) {
        let write = Write { table: Table::Main, key, action, guard: None };
        match now(table.write(&write)) {
            Ok(_) => self.scene.trace.note(|| format!("app {}", Call::Write(&write))),
            // DynamoDB refuses what the application would add to a large item, too.
            Err(error) if self.scene.is_large => self.scene.trace.note(|| format!("the application's write: {error}")),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The item, nearly as large as an item may be.
pub(crate) fn filled_up(scene: &Scene, mut item: Item) -> Item {
    item.remove(PADDING);
    let n_bytes = ITEM_BYTES_MAX - item_bytes(&item) - PADDING.len() - scene.chance.below(PADDING_LESS_MAX);
    item.insert(PADDING.to_owned(), s(&"x".repeat(n_bytes)));
    scene.count("near 400 KB");
    scene.trace.note(|| "an item is nearly as large as an item may be".to_owned());
    item
}

// ---- Writes of the run's theme: see [`Theme`] ----

/// Followers of a famous user.
const N_FANS: usize = 7;

/// Of a hundred writes, how many are of the theme.
const OF_THE_THEME_PERCENT: usize = 45;

impl Application {
    /// Writes something of the run's theme; false when the write is to be any other.
    fn keep_to_theme(&mut self, table: &MemoryStore) -> bool {
        if self.scene.theme == Theme::Mixed || !self.scene.chance.percent(OF_THE_THEME_PERCENT) {
            return false;
        }
        match self.scene.theme {
            Theme::Mixed => {}
            Theme::Famous => self.be_famous(table),
            Theme::Moves => self.move_about(table),
            Theme::Removals => self.remove_owners(table),
        }
        true
    }

    /// Somebody or something gets another name, mostly a user with followers.
    pub(crate) fn change_a_name(&mut self) {
        let scene = std::sync::Arc::clone(&self.scene);
        if let Some(drawn) = &scene.drawn {
            return self.change_a_word(drawn);
        }
        let table = scene.database.memory();
        if scene.chance.percent(70) { self.be_famous(table) } else { self.rename(table) }
    }

    fn be_famous(&mut self, table: &MemoryStore) {
        let schema = std::sync::Arc::clone(&self.schema);
        let fan = format!("fan{:02}", self.scene.chance.below(N_FANS));
        let star = *self.scene.chance.one_of(&USERS).unwrap();
        let follow = schema.entity("Follow").unwrap();
        let key = follow.build(&[("FollowerId", fan.as_str()), ("FolloweeId", star)].into_iter().collect()).unwrap();
        if !table.view(Table::Main, |items| items.contains_key(&key)) {
            let mut item = schema.layout.key_item(&key);
            item.extend(schema.layout.type_of(&follow.name));
            return self.put(table, indexed(&schema, follow, &key, item));
        }
        let user = schema.entity("User").unwrap();
        let key = user.build(&[("UserId", star)].into_iter().collect()).unwrap();
        // A name that nobody had before, so that an old one shows.
        let name = format!("{star} the {}", self.scene.chance.below(1_000_000));
        let mut set = Item::from([("Name".to_owned(), s(&name))]);
        set.extend(schema.layout.type_of(&user.name));
        self.act(table, key, Action::Update(Update::set(set)));
    }
}
