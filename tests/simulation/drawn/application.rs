//! An application of a drawn manifest: it writes right and wrong items of every drawn entity over a few keys, moves what leads
//! from one item to another, puts back old items, and its people alter derived ones by hand.

use std::{collections::BTreeMap, sync::Arc};

use derive::{
    schema::Seen,
    write::{Action, Table, Write},
};
use keys::{item::Item, key::Key, tables};
use serde_dynamo::AttributeValue;
use store::{Store as _, faulty::Call};

use crate::{
    actors::application::filled_up,
    caller::now,
    chance::Chance,
    checks::plain_item,
    drawn::{
        Drawn,
        description::{CLAIMS, Description, DrawnEntity, DrawnIndexKey, FieldOf, Holds, KeyOf, KeyPart, Piece},
        generator::WORDS,
        values::{MARK, Row, hexadecimal, row, text_of, written},
    },
    items::{amount, n, s},
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
        found.item.insert("word", value(&self.scene.chance, &drawn.description, Holds::Word));
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
        let of_index = |key: &&DrawnIndexKey| key.is_derived;
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
        self.write_at_once(writes);
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

// ---- Items of drawn entities: over a few keys, right and wrong ----

/// Numbers, bytes and times that keys are made of.
const PADDED: [&str; 3] = ["7", "42", "999"];
const NUMBERS: [&str; 6] = ["1", "10", "-3", "0.5", "-20", "12345678901234567890"];
const BYTES: [&[u8]; 3] = [&[0], &[0xff, 0x01], b"abc"];
const TIMES: [&str; 5] =
    ["2024-01-15T10:30:00.000Z", "2024-01-15T11:00:00Z", "2024-01-16T00:00:00Z", "2024-01-15T10:59:59+02:00", "noon"];

/// Of a hundred attributes, how many are missing, and how many are of another type than they should be.
const MISSING_PERCENT: usize = 15;
const WRONG_PERCENT: usize = 8;

/// An item with a key and attributes.
pub(super) fn new_item(chance: &Chance, of: &Description, entity: usize) -> Item {
    let definition = &of.entities[entity];
    let table = &of.tables[definition.table];
    let fields: BTreeMap<String, AttributeValue> = definition
        .fields()
        .into_iter()
        .map(|(name, form)| {
            // Digits of a fixed width are nothing but a number.
            let is_fixed = matches!(form, FieldOf::Padded(_) | FieldOf::Inverted(_));
            let meant = meant(of, entity, name).filter(|_| !is_fixed);
            (name.to_owned(), field(chance, of, meant.unwrap_or(form)))
        })
        .collect();
    let mut item = Item::new();
    for (part, pieces) in [(Some(&table.pk), &definition.pk), (table.sk.as_ref(), &definition.sk)] {
        let Some(part) = part else { continue };
        let value = match pieces.as_slice() {
            [Piece::Field(name, _)] if !table.has_forms => typed(&fields[name], part.of),
            pieces => s(&written(pieces, true, |name| Some(text(&fields[name]))).unwrap()),
        };
        item.insert(part.name.clone(), value);
    }
    if let Some(name) = &table.type_attribute {
        item.insert(name.clone(), s(&definition.name));
    }
    for attribute in &definition.attributes {
        if !chance.percent(MISSING_PERCENT) {
            item.insert(attribute.name.clone(), value(chance, of, attribute.holds));
        }
    }
    if table.expires && chance.percent(15) {
        item.insert("ExpiresAt", n("1705315200"));
    }
    if chance.percent(15) {
        item.insert(
            "Note",
            if chance.percent(50) { AttributeValue::Ns(vec!["2.0".into(), "1".into()]) } else { n("1e2") },
        );
    }
    item
}

/// What a field should be so that it leads somewhere: of the type of the key to which it leads.
fn meant(of: &Description, entity: usize, name: &str) -> Option<FieldOf> {
    of.entities[entity].refs.iter().find_map(|by| {
        let (field, _) = by.pairs.iter().find(|(_, from)| from == name)?;
        of.entities[by.to].field(field)
    })
}

fn field(chance: &Chance, of: &Description, form: FieldOf) -> AttributeValue {
    match form {
        FieldOf::Text => s(chance.one_of(&of.texts).unwrap()),
        FieldOf::Padded(_) | FieldOf::Inverted(_) => s(chance.one_of(&PADDED).unwrap()),
        FieldOf::Number => n(chance.one_of(&NUMBERS).unwrap()),
        FieldOf::Bytes => AttributeValue::B(chance.one_of(&BYTES).unwrap().to_vec()),
        FieldOf::Time => s(chance.one_of(&TIMES).unwrap()),
    }
}

/// A field as a text of a form holds it.
fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.clone(),
        AttributeValue::B(bytes) => hexadecimal(bytes),
        _ => unreachable!(),
    }
}

/// A field as a key of this type is.
fn typed(value: &AttributeValue, of: KeyOf) -> AttributeValue {
    match (of, value) {
        (KeyOf::S, value) => s(&text(value)),
        (_, value) => value.clone(),
    }
}

/// A value of an attribute, in some cases of the wrong type.
fn value(chance: &Chance, of: &Description, holds: Holds) -> AttributeValue {
    let is_wrong = chance.percent(WRONG_PERCENT);
    match holds {
        _ if is_wrong && chance.percent(30) => AttributeValue::Ss(vec!["z".into(), "a".into()]),
        Holds::Word if is_wrong => n("1"),
        Holds::Number if is_wrong => s("many"),
        Holds::Time if is_wrong => n("1705315200"),
        Holds::Members if is_wrong => s("a"),
        Holds::Members => members(chance, of),
        Holds::Id(FieldOf::Number) if is_wrong => s("1"),
        Holds::Id(_) if is_wrong => *chance.one_of(&[n("7"), s(""), s("x")].map(Box::new)).cloned().unwrap(),
        Holds::Word => s(chance.one_of(&WORDS).unwrap()),
        Holds::Number if chance.percent(10) => n("98765432109876543210"),
        Holds::Number => amount(chance),
        Holds::Time => s(chance.one_of(&TIMES).unwrap()),
        Holds::Id(form) => field(chance, of, form),
    }
}

/// A list or a set of texts, in some cases with a member of another type.
fn members(chance: &Chance, of: &Description) -> AttributeValue {
    let texts: Vec<String> = of.texts.iter().filter(|_| chance.percent(45)).cloned().collect();
    if !texts.is_empty() && chance.percent(50) {
        return AttributeValue::Ss(texts);
    }
    let mut members: Vec<AttributeValue> = texts.iter().map(|text| s(text)).collect();
    members.extend(texts.first().filter(|_| chance.percent(30)).map(|text| s(text)));
    if chance.percent(5) {
        members.push(n("7"));
    }
    AttributeValue::L(members)
}

/// The item with the keys in indexes over texts of forms that follow from it, as its application writes them; and without
/// an attribute that cannot be in an index over values as they are, since DynamoDB refuses such an item.
fn indexed(of: &Description, entity: usize, mut item: Item) -> Item {
    let definition = &of.entities[entity];
    let table = &of.tables[definition.table];
    let Some(row) = crate::drawn::values::row(of, definition.table, &crate::checks::plain_item(&item)) else {
        return item;
    };
    for index in table.indexes.iter().filter(|index| !index.has_forms) {
        for part in index.pk.iter().chain(&index.sk) {
            let fits = item.get(&part.name).is_none_or(|value| match value {
                AttributeValue::S(text) => part.of == KeyOf::S && !text.is_empty(),
                AttributeValue::N(_) => part.of == KeyOf::N,
                AttributeValue::B(bytes) => part.of == KeyOf::B && !bytes.is_empty(),
                _ => false,
            });
            if !fits {
                item.remove(&part.name);
            }
        }
    }
    for key in definition.index_keys.iter().filter(|key| !key.is_derived) {
        let index = &table.indexes[key.index];
        let value = |name: &str| crate::drawn::values::filling(&row, name, FieldOf::Text).ok().flatten();
        let texts = [&key.pk, &key.sk].map(|pieces| written(pieces, true, value));
        for part in index.pk.iter().chain(&index.sk) {
            item.remove(&part.name);
        }
        if let [Some(pk), Some(sk)] = texts {
            item.insert(index.pk[0].name.clone(), s(&pk));
            item.insert(index.sk[0].name.clone(), s(&sk));
        }
    }
    item
}
