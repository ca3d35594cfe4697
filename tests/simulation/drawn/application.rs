//! An application of a drawn manifest: it writes right and wrong items of every drawn entity over a few keys, moves what leads
//! from one item to another, puts back old items, and its people alter derived ones by hand.

mod items;

pub(super) use items::new_item;

use std::{collections::BTreeMap, sync::Arc};

use derive::{
    schema::Seen,
    write::{Action, Table, Transaction, Write},
};
use keys::{item::Item, key::Key, tables};
use store::{Store as _, TransactOutcome, faulty::Call};

use crate::{
    actors::application::filled_up,
    checks::plain_item,
    drawn::{
        Drawn,
        application::items::{indexed, value},
        description::{CLAIMS, DrawnEntity, KeyPart},
        values::{MARK, Row, row, text_of},
    },
    executor::now,
    items::{n, s},
    platform::stream::Author,
    world::{Application, FOREIGN, NOTE},
};

/// A key that is longer is near its limit, which is 1,024 or 2,048 bytes.
const NEAR_SORT_KEY_BYTES: usize = 1_000;
const NEAR_PARTITION_KEY_BYTES: usize = 2_000;

/// What people write into derived attributes by hand.
const BY_HAND: [&str; 3] = ["by hand", "7", "0"];

impl Drawn {
    /// An item as it is stored, with the position of its table; `None` for Ripple's own in a table of its own.
    pub(crate) fn outside(&self, key: &Key, item: &Item) -> Option<(usize, Item)> {
        let Some(forms) = &self.schema.layout.forms else { return Some((0, item.clone())) };
        let tables::Place::Table(form) = forms.place(key) else { return None };
        let at = self.description.tables.iter().position(|table| table.name == form.name)?;
        Some((at, form.outward(item)?))
    }

    /// A stored item as the engine knows it.
    pub(crate) fn inside(&self, table: usize, item: Item) -> Option<(Key, Item)> {
        let layout = &self.schema.layout;
        let item = match &layout.forms {
            None => item,
            Some(forms) => forms.named(&self.description.tables[table].name)?.inward(item)?,
        };
        Some((layout.key(&item)?, item))
    }

    /// The item as one of a drawn entity.
    pub(crate) fn row(&self, key: &Key, item: &Item) -> Option<Row> {
        let (table, item) = self.outside(key, item)?;
        row(&self.description, table, &plain_item(&item))
    }
}

/// An item that an application read, with its table and its entity.
struct Found {
    key: Key,
    table: usize,
    entity: usize,
    item: Item,
}

impl Application {
    /// Writes once, or several items at once. Returns who wrote.
    pub(crate) fn write_drawn(&mut self, drawn: &Drawn) -> Author {
        if let Some(found) = self.any_drawn(drawn, |_| true) {
            // Counts and buckets are the authority on what came.
            if !is_bucket(&drawn.description.entities[found.entity]) {
                self.read_before.extend(drawn.inside(found.table, found.item).map(|(_, item)| item));
            }
        }
        let draw = self.scene.chance.below(40);
        match draw {
            0..=13 => self.make_drawn(drawn),
            14..=22 => self.edit_drawn(drawn),
            23..=27 => self.remove_drawn(drawn),
            28 | 29 => self.put_back_drawn(drawn),
            30..=32 => self.alter_drawn(drawn),
            33 => self.forge_drawn(drawn),
            34 => self.junk_drawn(drawn),
            35 => self.put_over_drawn(drawn),
            36 => self.copy_over_drawn(drawn),
            37 | 38 if self.scene.is_large => self.enlarge_drawn(drawn),
            _ => self.transact_drawn(drawn),
        }
        if (30..=33).contains(&draw) { Author::Hand } else { Author::Application }
    }

    /// Changes what others carry.
    pub(crate) fn change_a_word(&mut self, drawn: &Drawn) {
        let is_ground = |entity: &DrawnEntity| !entity.is_derived;
        let Some(mut found) = self.any_drawn(drawn, is_ground) else { return };
        found
            .item
            .insert("word", value(&self.scene.chance, &drawn.description, crate::drawn::description::Holds::Word));
        self.put_drawn(drawn, found.table, found.item);
    }

    fn make_drawn(&mut self, drawn: &Drawn) {
        let Some((table, item)) = self.new_drawn(drawn, |entity| !entity.is_derived) else { return };
        self.newest = drawn.inside(table, item.clone()).map(|(key, _)| key);
        self.put_drawn(drawn, table, item);
    }

    fn new_drawn(&self, drawn: &Drawn, is_meant: impl Fn(&DrawnEntity) -> bool) -> Option<(usize, Item)> {
        let of = &drawn.description;
        let meant: Vec<usize> = (0..of.entities.len()).filter(|at| is_meant(&of.entities[*at])).collect();
        let entity = *self.scene.chance.one_of(&meant)?;
        let item = new_item(&self.scene.chance, of, entity);
        Some((of.entities[entity].table, indexed(of, entity, item)))
    }

    /// Sets or removes one attribute, with the index keys that follow. Often it is one that leads to another item.
    fn edit_drawn(&mut self, drawn: &Drawn) {
        let Some(mut found) = self.any_drawn(drawn, |entity| !entity.is_derived) else { return };
        let of = &drawn.description;
        let Some(attribute) = self.scene.chance.one_of(&of.entities[found.entity].attributes) else { return };
        if self.scene.chance.percent(80) {
            found.item.insert(attribute.name.clone(), value(&self.scene.chance, of, attribute.holds));
        } else {
            found.item.remove(&attribute.name);
        }
        let item = indexed(of, found.entity, found.item);
        self.put_drawn(drawn, found.table, item);
    }

    /// Fills an item up, so that nothing or little can be added to it.
    fn enlarge_drawn(&mut self, drawn: &Drawn) {
        let Some(found) = self.any_drawn(drawn, |entity| !entity.is_derived) else { return };
        if let Some((key, item)) = drawn.inside(found.table, found.item) {
            self.act_drawn(key, Action::Put(filled_up(&self.scene, item)));
        }
    }

    fn remove_drawn(&mut self, drawn: &Drawn) {
        let newest = self.newest.take().filter(|_| self.scene.chance.percent(50));
        let found = || self.any_drawn(drawn, |entity| !entity.is_derived).map(|found| found.key);
        if let Some(key) = newest.or_else(found) {
            self.act_drawn(key, Action::Delete);
        }
    }

    fn put_back_drawn(&mut self, drawn: &Drawn) {
        let Some(item) = self.scene.chance.one_of(&self.read_before).cloned() else { return };
        self.scene.count("put back");
        if let Some(key) = drawn.schema.layout.key(&item) {
            self.act_drawn(key, Action::Put(item));
        }
    }

    /// Somebody changes a derived attribute, or anything of a mirror, by hand.
    fn alter_drawn(&mut self, drawn: &Drawn) {
        let is_meant = |entity: &DrawnEntity| !is_bucket(entity) && (entity.is_derived || !entity.derived.is_empty());
        let Some(mut found) = self.any_drawn(drawn, is_meant) else { return };
        let entity = &drawn.description.entities[found.entity];
        if entity.is_derived && self.scene.chance.percent(30) {
            return self.act_drawn(found.key, Action::Delete);
        }
        let table = &drawn.description.tables[found.table];
        let of_index = |key: &&crate::drawn::description::DrawnIndexKey| key.is_derived;
        let of_index = entity.index_keys.iter().filter(of_index).flat_map(|key| {
            let index = &table.indexes[key.index];
            index.pk.iter().chain(&index.sk).map(|part| part.name.clone())
        });
        let names: Vec<String> = entity.derived.iter().map(|it| it.name.clone()).chain(of_index.clone()).collect();
        let own = entity.attributes.iter().map(|it| it.name.clone());
        let names: Vec<String> = if entity.is_derived { names.into_iter().chain(own).collect() } else { names };
        let Some(name) = self.scene.chance.one_of(&names).cloned() else { return };
        let is_index: Vec<String> = of_index.collect();
        if self.scene.chance.percent(40) {
            found.item.remove(&name);
        } else {
            let text = *self.scene.chance.one_of(&BY_HAND).unwrap();
            let is_text = text == BY_HAND[0] || is_index.contains(&name) || is_in_an_index(drawn, &found, &name);
            found.item.insert(name, if is_text { s(text) } else { n(text) });
        }
        self.put_drawn(drawn, found.table, found.item);
    }

    /// Somebody makes a mirror by hand. Its source may not exist.
    fn forge_drawn(&mut self, drawn: &Drawn) {
        let Some((table, mut item)) = self.new_drawn(drawn, |it| it.is_derived && !is_bucket(it)) else { return };
        if self.scene.chance.percent(20) {
            item.insert(CLAIMS, s("none"));
        }
        // Without its mark it is the application's, and has the key of a derived item.
        if self.scene.chance.percent(70) {
            mark(drawn, table, &mut item);
        }
        self.put_drawn(drawn, table, item);
    }

    /// An item loses its type, or gets another.
    fn junk_drawn(&mut self, drawn: &Drawn) {
        let tables = &drawn.description.tables;
        let has_type = |entity: &DrawnEntity| tables[entity.table].type_attribute.is_some() && !entity.is_derived;
        let Some(mut found) = self.any_drawn(drawn, has_type) else { return };
        let name = tables[found.table].type_attribute.clone().unwrap();
        self.untyped.insert(found.key);
        match self.scene.chance.below(3) {
            0 => drop(found.item.remove(&name)),
            1 => drop(found.item.insert(name, s("Gadget"))),
            _ => drop(found.item.insert(name, n("1"))),
        }
        self.put_drawn(drawn, found.table, found.item);
    }

    /// All attributes of an item are put over another of its entity, those that Ripple wrote too.
    fn copy_over_drawn(&mut self, drawn: &Drawn) {
        let Some(from) = self.any_drawn(drawn, |entity| !entity.is_derived) else { return };
        let name = &drawn.description.entities[from.entity].name;
        let Some(to) = self.any_drawn(drawn, |entity| entity.name == *name).filter(|to| to.key != from.key) else {
            return;
        };
        let table = &drawn.description.tables[to.table];
        let kept = [Some(&table.pk.name), table.sk.as_ref().map(|sk| &sk.name)];
        let mut item = from.item;
        item.extend(kept.into_iter().flatten().filter_map(|name| Some((name.clone(), to.item.get(name)?.clone()))));
        self.scene.count("copied over");
        let item = indexed(&drawn.description, to.entity, item);
        self.put_drawn(drawn, to.table, item);
    }

    /// A foreign item takes the key of a derived item, whether that is there or not yet; or such an item goes.
    fn put_over_drawn(&mut self, drawn: &Drawn) {
        let is_meant = |it: &DrawnEntity| it.is_derived && !is_bucket(it);
        let draw = self.scene.chance.below(5);
        if draw < 2 {
            if let Some(key) = self.any_foreign() {
                self.scene.count("foreign item gone");
                self.act_drawn(key, Action::Delete);
            }
            return;
        }
        let there = self.any_drawn(drawn, is_meant).filter(|_| draw < 4).map(|found| (found.table, found.item));
        let Some((table, of)) = there.or_else(|| self.new_drawn(drawn, is_meant)) else { return };
        let form = &drawn.description.tables[table];
        let kept = [Some(&form.pk.name), form.sk.as_ref().map(|sk| &sk.name)];
        let key = kept.into_iter().flatten().filter_map(|name| Some((name.clone(), of.get(name)?.clone())));
        let mut item: Item = key.collect();
        item.extend(form.type_attribute.clone().map(|name| (name, s("Gadget"))));
        item.insert(NOTE, s(FOREIGN));
        self.scene.count("over a mirror");
        self.untyped.extend(drawn.inside(table, item.clone()).map(|(key, _)| key));
        self.put_drawn(drawn, table, item);
    }

    /// Puts new items and deletes old ones, all in one transaction.
    fn transact_drawn(&mut self, drawn: &Drawn) {
        let mut writes: BTreeMap<Key, Action> = BTreeMap::new();
        for _ in 0..self.scene.chance.between(1, 3) {
            let made = self.new_drawn(drawn, |entity| !entity.is_derived);
            if let Some((key, item)) = made.and_then(|(table, item)| drawn.inside(table, item)) {
                writes.insert(key, Action::Put(item));
            }
        }
        if let Some(found) = self.any_drawn(drawn, |entity| !entity.is_derived) {
            writes.entry(found.key).or_insert(Action::Delete);
        }
        let writes = writes.into_iter().map(|(key, action)| Write { table: Table::Main, key, action, guard: None });
        let transaction = Transaction::new(writes.collect()).unwrap();
        self.scene.count("app transactions");
        self.scene.trace.note(|| format!("app {}", Call::Transact(&transaction)));
        let outcome = now(self.scene.database.memory().transact(&transaction)).unwrap();
        assert!(matches!(outcome, TransactOutcome::Done { .. }), "{outcome:?}");
    }

    /// An item of one of these entities: the first one after a random place in the tables.
    fn any_drawn(&self, drawn: &Drawn, is_meant: impl Fn(&DrawnEntity) -> bool) -> Option<Found> {
        let scene = Arc::clone(&self.scene);
        scene.database.memory().view(Table::Main, |items| {
            let place = scene.chance.below(items.len());
            let found = |(key, item): (&Key, &Item)| {
                let (table, item) = drawn.outside(key, item)?;
                let entity = row(&drawn.description, table, &plain_item(&item))?.entity;
                let found = Found { key: key.clone(), table, entity, item };
                is_meant(&drawn.description.entities[entity]).then_some(found)
            };
            items.iter().skip(place).chain(items.iter().take(place)).find_map(found)
        })
    }

    fn put_drawn(&mut self, drawn: &Drawn, table: usize, item: Item) {
        let form = &drawn.description.tables[table];
        let bytes = |part: &KeyPart| text_of(&plain_item(&item)[&part.name]).map_or(0, |text| text.len());
        let is_near = form.sk.as_ref().is_some_and(|sk| bytes(sk) > NEAR_SORT_KEY_BYTES)
            || bytes(&form.pk) > NEAR_PARTITION_KEY_BYTES;
        self.scene.count_all("keys near limits", usize::from(is_near));
        let (key, item) = drawn.inside(table, item).unwrap();
        if matches!(drawn.schema.see(&key, &item), Seen::Untyped) {
            self.untyped.insert(key.clone());
        }
        self.act_drawn(key, Action::Put(item));
    }

    fn act_drawn(&self, key: Key, action: Action) {
        let write = Write { table: Table::Main, key, action, guard: None };
        match now(self.scene.database.memory().write(&write)) {
            Ok(_) => self.scene.trace.note(|| format!("app {}", Call::Write(&write))),
            // DynamoDB refuses what would be added to a large item, and an index key of the wrong type or without text, which a
            // copied attribute may be in the mirror's table.
            Err(error) => self.scene.trace.note(|| format!("the application's write: {error}")),
        }
    }
}

/// Has an item of a derived entity say that it is one, where its table has no type attribute.
fn mark(drawn: &Drawn, table: usize, item: &mut Item) {
    let of = &drawn.description;
    if of.tables[table].type_attribute.is_some() {
        return;
    }
    let marked = |entity: &DrawnEntity| {
        let mut marked = item.clone();
        marked.insert(MARK, s(&entity.name));
        row(of, table, &plain_item(&marked))
            .is_some_and(|row| of.entities[row.entity].name == entity.name)
            .then_some(marked)
    };
    let mut derived = of.entities.iter().filter(|entity| entity.table == table && entity.is_derived);
    if let Some(marked) = derived.find_map(marked) {
        *item = marked;
    }
}

/// Is it the entity of a roll-up's buckets, which the application never writes?
fn is_bucket(entity: &DrawnEntity) -> bool {
    entity.field("grain").is_some()
}

/// DynamoDB refuses an item whose attribute of an index key is of another type than the index's.
fn is_in_an_index(drawn: &Drawn, found: &Found, name: &str) -> bool {
    let table = &drawn.description.tables[found.table];
    table.indexes.iter().any(|index| index.pk.iter().chain(&index.sk).any(|part| part.name == name))
}
