//! An application that writes whatever an application may write, right and wrong, over a few ids.
//!
//! It makes, edits, moves and removes ground items; puts back whole items that it read long before; puts values that
//! cannot be read, items without a type and items of a type that nobody knows; and its people alter, delete and forge
//! derived items by hand. It never touches a counter: those are the authority.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{
    claims::CLAIMS,
    part::PartOf,
    write::{Action, ITEM_BYTES_MAX, Table, Transaction, Update, Write},
};
use engine::{
    clock::Clock as _,
    job::{self, Job, Pass},
};
use keys::{
    entity::Definition,
    fields::Fields,
    item::{Item, text},
    key::Key,
    shown::is_revision,
    size::item_bytes,
};
use store::{Store as _, TransactOutcome, faulty::Call, memory::MemoryStore};

use crate::{
    caller::now,
    deployed::jobs,
    items::{
        EMPLOYEES, NAMES, PAIR, TIMES, USERS, definition, fields, indexed, is_authority, is_mirror, n, new_item,
        reading, s, value,
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
        self.write_at_once(writes);
    }

    pub(crate) fn write_at_once(&self, writes: BTreeMap<Key, Action>) {
        let writes = writes.into_iter().map(|(key, action)| Write { table: Table::Main, key, action, guard: None });
        let transaction = Transaction::new(writes.collect()).unwrap();
        self.scene.count("app transactions");
        self.scene.trace.note(|| format!("app {}", Call::Transact(&transaction)));
        let outcome = now(self.scene.database.memory().transact(&transaction)).unwrap();
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
        let scene = Arc::clone(&self.scene);
        if let Some(drawn) = &scene.drawn {
            return self.change_a_word(drawn);
        }
        let table = scene.database.memory();
        if scene.chance.percent(70) { self.be_famous(table) } else { self.rename(table) }
    }

    fn be_famous(&mut self, table: &MemoryStore) {
        let schema = Arc::clone(&self.schema);
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

// ---- Writes to owners and what belongs to them, and to hierarchies: employees and their managers ----

/// How long before a cascade is due its post may come back, in milliseconds.
const NEAR_MS: u64 = 5_000;

/// Of a hundred writes about removals while a cascade deletes, how many bring its owner back.
const COME_BACK_LATE_PERCENT: usize = 25;

/// Entities that belong to a user or a post.
const BELONGING: [&str; 10] =
    ["Subscription", "CartItem", "EmailClaim", "Follow", "Like", "Membership", "Member", "View", "Comment", "Post"];

/// Is it a cascade that deletes what it has listed?
fn is_deleting(job: &Job) -> bool {
    job.is_running && matches!(job.task, job::Task::Cascade { pass: Pass::Deletes { .. }, .. })
}

impl Application {
    /// An employee is hired, gets another manager, leaves, or is edited.
    fn move_about(&mut self, table: &MemoryStore) {
        match self.scene.chance.below(10) {
            0..=2 => self.hire(table),
            3..=6 => self.report_elsewhere(table),
            7 => self.remove_of(table, "Employee"),
            8 => self.put_back_employee(table),
            _ => self.annotate(table),
        }
    }

    /// An owner is removed, and something that belongs to it comes.
    fn remove_owners(&mut self, table: &MemoryStore) {
        let is_late = jobs(&self.scene).iter().any(is_deleting) && self.scene.chance.percent(COME_BACK_LATE_PERCENT);
        match self.scene.chance.below(12) {
            _ if is_late => self.come_back(table, is_deleting),
            0 | 1 => self.remove_of(table, "User"),
            2 => self.remove_of(table, "Post"),
            3 => self.make_user(table),
            4 | 5 => self.come_back_soon(table),
            _ => self.put_belonging(table),
        }
    }

    /// A write that leads to a cascade, or a change of an employee.
    fn touch_ground(&mut self, table: &MemoryStore) {
        match self.scene.chance.below(20) {
            0 | 1 => self.remove_of(table, "User"),
            2 => self.make_user(table),
            3 => self.remove_of(table, "Post"),
            4 | 5 => self.put_belonging(table),
            6 => self.give_claim(table),
            7..=9 => self.hire(table),
            10 | 11 => self.report_elsewhere(table),
            12 => self.remove_of(table, "Employee"),
            13..=15 => self.annotate(table),
            16 | 17 => self.put_back_employee(table),
            _ => self.come_back_soon(table),
        }
    }

    fn remove_of(&mut self, table: &MemoryStore, entity: &str) {
        if let Some((key, _)) = self.any(table, |definition| definition.name == entity) {
            self.act(table, key, Action::Delete);
        }
    }

    /// A user or a post comes back just before its cascade begins or while it runs.
    fn come_back_soon(&mut self, table: &MemoryStore) {
        let near_ms = self.scene.clock.now_ms() + NEAR_MS;
        self.come_back(table, |job| job.is_running || job.due_at_ms <= near_ms);
    }

    /// The owner of one of these cascades comes back: a post often under another key, and with a like. Without such a
    /// cascade a post is deleted.
    fn come_back(&mut self, table: &MemoryStore, is_meant: impl Fn(&Job) -> bool) {
        let (scene, schema) = (Arc::clone(&self.scene), Arc::clone(&self.schema));
        let owners = [("User", "UserId"), ("PostDetail", "PostId"), ("Post", "PostId")];
        let owner_of = |job: Job| {
            let id = |(entity, name)| {
                let fields = schema.entity(entity).unwrap().key.parse_key(job.origin())?;
                Some((name, fields.get(name)?.to_owned()))
            };
            owners.into_iter().filter(|_| is_meant(&job)).find_map(id)
        };
        let removed: Vec<(&str, String)> = jobs(&scene).into_iter().filter_map(owner_of).collect();
        match scene.chance.one_of(&removed) {
            Some(("UserId", id)) => {
                scene.count("users came back");
                self.make_user_of(table, id);
            }
            Some((_, id)) => {
                scene.count("posts came back");
                for entity in ["Post", "Like"] {
                    let mut own = fields(&scene.chance, &schema.entity(entity).unwrap().key);
                    own.insert("PostId", id.as_str());
                    self.put_of(table, entity, &own, [("Status", s("published"))]);
                }
            }
            None => self.remove_of(table, "Post"),
        }
    }

    /// A user with an email address, and the claim of that address.
    fn make_user(&mut self, table: &MemoryStore) {
        let id = *self.scene.chance.one_of(&USERS).unwrap();
        self.make_user_of(table, id);
    }

    fn make_user_of(&mut self, table: &MemoryStore, id: &str) {
        let email = *self.scene.chance.one_of(&NAMES).unwrap();
        let own = Fields::from_iter([("UserId".to_owned(), id.to_owned())]);
        let name = value(&self.scene.chance, "Name");
        self.put_of(table, "User", &own, [("Name", name), ("Email", s(email))]);
        self.claim(table, email, id);
    }

    fn claim(&mut self, table: &MemoryStore, email: &str, id: &str) {
        let claimed = Fields::from_iter([("Email".to_owned(), email.to_lowercase())]);
        self.put_of(table, "EmailClaim", &claimed, [("UserId", s(id))]);
    }

    /// An email address goes to another user.
    fn give_claim(&mut self, table: &MemoryStore) {
        let (id, email) = (*self.scene.chance.one_of(&USERS).unwrap(), *self.scene.chance.one_of(&NAMES).unwrap());
        self.claim(table, email, id);
    }

    /// Puts an item that belongs to a user or a post, which may not exist.
    fn put_belonging(&mut self, table: &MemoryStore) {
        let entity = *self.scene.chance.one_of(&BELONGING).unwrap();
        if entity == "EmailClaim" {
            return self.give_claim(table);
        }
        let schema = Arc::clone(&self.schema);
        let fields = fields(&self.scene.chance, &schema.entity(entity).unwrap().key);
        self.put_of(table, entity, &fields, [("Status", s("published"))]);
    }

    fn put_of<const N: usize>(
        &mut self,
        table: &MemoryStore,
        entity: &str,
        fields: &Fields,
        attributes: [(&str, serde_dynamo::AttributeValue); N],
    ) {
        let schema = Arc::clone(&self.schema);
        let definition = schema.entity(entity).unwrap();
        let key = definition.build(fields).unwrap();
        let mut item = schema.layout.key_item(&key);
        item.extend(schema.layout.type_of(entity));
        item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
        self.newest = Some(key.clone());
        self.put(table, indexed(&schema, definition, &key, item));
    }

    /// Somebody is hired, with any manager, even themselves.
    fn hire(&mut self, table: &MemoryStore) {
        let chance = self.scene.chance.clone();
        let [id, manager] = [(); 2].map(|()| *chance.one_of(&EMPLOYEES).unwrap());
        let org = *chance.one_of(&PAIR).unwrap();
        let own =
            Fields::from_iter([("OrgId", org), ("EmployeeId", id)].map(|(name, id)| (name.to_owned(), id.to_owned())));
        let name = value(&chance, "Name");
        if chance.percent(25) {
            self.put_of(table, "Employee", &own, [("Name", name)]);
        } else {
            self.put_of(table, "Employee", &own, [("Name", name), ("ManagerId", s(manager))]);
        }
    }

    /// An employee, often the one written last.
    fn employee(&mut self, table: &MemoryStore) -> Option<(Key, Item)> {
        let newest = self.newest.clone().filter(|_| self.scene.chance.percent(60));
        let all = self.any(table, |definition| definition.name == "Employee");
        let layout = &self.schema.layout;
        let stored = newest.and_then(|newest| {
            table.view(Table::Main, |items| {
                let item = items.get(&newest)?;
                (text(item, layout.entity_type.as_ref().unwrap()) == Some("Employee"))
                    .then(|| (newest.clone(), item.clone()))
            })
        });
        stored.or(all)
    }

    /// An employee gets another manager, none, or themselves, with the index keys that follow.
    fn report_elsewhere(&mut self, table: &MemoryStore) {
        let Some((key, mut item)) = self.employee(table) else { return };
        let schema = Arc::clone(&self.schema);
        let manager = (!self.scene.chance.percent(20)).then(|| s(self.scene.chance.one_of(&EMPLOYEES).unwrap()));
        match &manager {
            Some(manager) => drop(item.insert("ManagerId".to_owned(), manager.clone())),
            None => drop(item.remove("ManagerId")),
        }
        let definition = schema.entity("Employee").unwrap();
        let mut written = definition.index_attributes(&schema.layout, &definition.fields(&key, &item).unwrap());
        written.push(("ManagerId".to_owned(), manager));
        let mut update = Update::default();
        for (name, value) in written {
            match value {
                Some(value) => drop(update.set.insert(name, value)),
                None => drop(update.remove.insert(name)),
            }
        }
        self.newest = Some(key.clone());
        self.act(table, key, Action::Update(update));
    }

    /// A declared or undeclared attribute of an employee is added, changed or removed.
    fn annotate(&mut self, table: &MemoryStore) {
        let Some((key, _)) = self.employee(table) else { return };
        let chance = &self.scene.chance;
        let name = (*chance.one_of(&["Note0", "Note1", "Name", "CreatedAt"]).unwrap()).to_owned();
        let update = if chance.percent(25) {
            Update { remove: BTreeSet::from([name]), ..Update::default() }
        } else {
            Update::set(Item::from([(name, n(&chance.below(9).to_string()))]))
        };
        self.newest = Some(key.clone());
        self.act(table, key, Action::Update(update));
    }

    /// An employee that was read long before is put back, with the old manager and path.
    fn put_back_employee(&mut self, table: &MemoryStore) {
        let is_employee =
            |item: &&Item| text(item, self.schema.layout.entity_type.as_ref().unwrap()) == Some("Employee");
        let employees: Vec<Item> = self.read_before.iter().filter(is_employee).cloned().collect();
        if let Some(item) = self.scene.chance.one_of(&employees).cloned() {
            self.newest = self.schema.layout.key(&item);
            self.put(table, item);
        }
    }
}
