//! A small table with derivations, and a short text for its items, for the tests of this crate.
//!
//! An item is written `USER#ann / PROFILE User Name=Ann Age=N:7 Tags=SS:a,b`: its key, its type, its attributes.

mod declared;

use keys::{
    counter::CounterKey,
    item::{Item, text},
    key::Key,
    value::{same_item, whole_number},
};
use serde_dynamo::AttributeValue;

use crate::{
    catalogue::Catalogue,
    change::{Change, Images},
    declaration::through,
    derived::{Derived, Items},
    effect::{Effect, Find, Ground},
    family::Family,
    kind::Refresh,
    plan::plan,
    query::Query,
    refresh::{Look, Step, Verdict, owned, step},
    schema::{Image, Schema},
    sources::{Source, Sources, first_of},
    whole::{Whole, derive},
    write::{Action, Update, Write},
};

pub(crate) use self::declared::*;

/// Steps after which a table counts as endless.
const STEPS_MAX: usize = 20_000;

/// An item from its short text.
pub(crate) fn item(text: &str) -> Item {
    let words: Vec<&str> = text.split(' ').collect();
    let [pk, "/", sk, rest @ ..] = words.as_slice() else { panic!("{text}: no key") };
    let mut item = Item::from([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))]);
    for word in rest {
        match word.split_once('=') {
            Some((name, value)) => item.insert(name.to_owned(), value_of(value)),
            None => item.insert("EntityType".to_owned(), s(word)),
        };
    }
    item
}

pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn n(number: &str) -> AttributeValue {
    AttributeValue::N(number.to_owned())
}

fn value_of(text: &str) -> AttributeValue {
    let list = |text: &str| text.split(',').map(str::to_owned).collect();
    match text.split_once(':') {
        Some(("N", number)) => AttributeValue::N(number.to_owned()),
        Some(("BOOL", truth)) => AttributeValue::Bool(truth == "true"),
        Some(("SS", set)) => AttributeValue::Ss(list(set)),
        Some(("NS", set)) => AttributeValue::Ns(list(set)),
        Some(("L", members)) => AttributeValue::L(members.split(',').map(value_of).collect()),
        Some(("CLAIMS", keys)) => AttributeValue::L(keys.split(',').map(claim).collect()),
        _ => s(text),
    }
}

/// The key of a claim is written `PK/SK`.
fn claim(key: &str) -> AttributeValue {
    let (pk, sk) = key.split_once('/').unwrap();
    AttributeValue::M([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))].into())
}

/// A value as it is written in an item's short text.
pub(crate) fn short(value: &AttributeValue) -> String {
    let text = |value: Option<&AttributeValue>| value.map(short).unwrap_or_default();
    match value {
        AttributeValue::S(text) => text.clone(),
        AttributeValue::N(number) => format!("N:{number}"),
        AttributeValue::Ss(set) => format!("SS:{}", set.join(",")),
        AttributeValue::Ns(set) => format!("NS:{}", set.join(",")),
        AttributeValue::L(list) => format!("CLAIMS:{}", list.iter().map(short).collect::<Vec<_>>().join(",")),
        AttributeValue::M(map) => format!("{}/{}", text(map.get("PK")), text(map.get("SK"))),
        other => format!("{other:?}"),
    }
}

pub(crate) fn key_of(item: &Item) -> Key {
    schema().layout.key(item).unwrap()
}

pub(crate) fn inserted(new: &str) -> Change {
    let new = item(new);
    change(key_of(&new), Images::Inserted(new))
}

pub(crate) fn removed(old: &str) -> Change {
    let old = item(old);
    change(key_of(&old), Images::Removed(old))
}

pub(crate) fn expired(old: &str) -> Change {
    let old = item(old);
    change(key_of(&old), Images::Expired(old))
}

pub(crate) fn modified(old: &str, new: &str) -> Change {
    let (old, new) = (item(old), item(new));
    assert_eq!(key_of(&old), key_of(&new), "an item keeps its key");
    change(key_of(&new), Images::Modified { old, new })
}

fn change(key: Key, images: Images) -> Change {
    Change { id: "event-1".into(), sequence_number: "1".into(), created_ms: None, key, images }
}

/// The effects of a change for all derivations of a kind, one per line.
pub(crate) fn effects(kind: &str, change: &Change) -> String {
    let schema = schema();
    effects_in(&schema, &catalogue(&schema), kind, change)
}

/// The effects in another schema and catalogue.
pub(crate) fn effects_in(schema: &Schema, catalogue: &Catalogue, kind: &str, change: &Change) -> String {
    let planned = plan(schema, catalogue, &[Family::Additive, Family::LevelTriggered], change);
    let mut lines = String::new();
    for (at, effect) in planned.effects {
        if catalogue.derivation(at).is_some_and(|derivation| derivation.kind.name().ends_with(kind)) {
            lines.extend([catalogue.name(at), ": ", line(&effect).as_str(), "\n"]);
        }
    }
    if lines.is_empty() { "nothing\n".to_owned() } else { lines }
}

fn line(effect: &Effect) -> String {
    match effect {
        Effect::Add(add) if add.sum.is_zero() => format!("{:+} {}", add.count, add.target),
        Effect::Add(add) => format!("{:+} and {} {}", add.count, short(&add.sum.to_value()), add.target),
        Effect::Measure(measure) => format!("{} into {}", short(&measure.value.to_value()), measure.bucket),
        Effect::Late => "late".to_owned(),
        Effect::Look(request) | Effect::Vacated(request) => {
            let named: Vec<String> = request.named.iter().map(|key| format!(" named {key}")).collect();
            format!("look {} ({}){}", request.item, request.entity, named.join(","))
        }
        Effect::Later(request, at_ms) => {
            format!("look {} ({}) at hour {}", request.item, request.entity, at_ms / 3_600_000)
        }
        Effect::Find(find) => {
            let place = find.query.index.as_deref().unwrap_or("table");
            let (pk, sk) = (&find.query.pk, find.query.sk.first());
            format!("find {place} {pk} / {sk}… via {} -> {}", find.via, find.target)
        }
        Effect::Ground(ground) => ground_line(ground),
        Effect::List { unreadable: Some(why) } => format!("list {why}"),
        Effect::List { unreadable: None } => "take off the list".to_owned(),
    }
}

fn ground_line(ground: &Ground) -> String {
    match ground {
        Ground::Cascade(removal) => {
            let absent: Vec<String> = removal.absent.iter().map(ToString::to_string).collect();
            let named: Vec<String> = removal.named.iter().map(|(at, key)| format!(", named {key} as {at}")).collect();
            format!("start {} while absent {}{}", removal.owner, absent.join(", "), named.concat())
        }
        Ground::Work(key) => format!("work {key}"),
    }
}

// ---- A table with its stream ----

/// The table, its unhandled records, and the writes that have not landed.
pub(crate) struct TestTable {
    pub(crate) schema: Schema,
    pub(crate) catalogue: Catalogue,
    pub(crate) items: Items,
    pub(crate) records: Vec<Change>,
    pub(crate) late: Vec<Write>,
    /// Handled records, which may be redelivered.
    pub(crate) taken: Vec<Change>,
}

impl TestTable {
    pub(crate) fn new() -> Self {
        let schema = schema();
        let catalogue = catalogue(&schema);
        let (items, records, late, taken) = (Items::new(), Vec::new(), Vec::new(), Vec::new());
        Self { schema, catalogue, items, records, late, taken }
    }

    /// Puts an item, or removes it.
    pub(crate) fn replace(&mut self, key: Key, new: Option<Item>) {
        let old = self.items.remove(&key);
        self.items.extend(new.clone().map(|new| (key.clone(), new)));
        let images = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) if same_item(&old, &new) => return,
            (Some(old), Some(new)) => Images::Modified { old, new },
            (None, Some(new)) => Images::Inserted(new),
            (Some(old), None) => Images::Removed(old),
        };
        let number = (self.records.len() + self.taken.len()).to_string();
        self.records.push(Change { id: number.clone(), sequence_number: number, created_ms: None, key, images });
    }

    /// Handles the record at this place, or a later one. If `is_late`, the invocation crashes: its writes land late,
    /// nothing is counted, and the record is redelivered.
    pub(crate) fn take(&mut self, place: usize, is_late: bool) {
        if self.records.is_empty() {
            return;
        }
        let record = self.records.remove(place % self.records.len());
        if is_late {
            self.handle(&record, &[Family::LevelTriggered], is_late);
            self.records.push(record);
        } else {
            self.handle(&record, &[Family::Additive, Family::LevelTriggered], is_late);
            self.taken.push(record);
        }
    }

    /// Redelivers a handled record.
    pub(crate) fn take_again(&mut self, place: usize) {
        if let Some(record) = self.taken.get(place % self.taken.len().max(1)).cloned() {
            self.handle(&record, &[Family::LevelTriggered], false);
        }
    }

    /// Makes these steps: which of the items, or of the records and writes that are left; what happens to it; and a choice.
    /// Then settles, in an order that the other choices give.
    pub(crate) fn run(&mut self, items: &[&str], steps: Vec<(usize, usize, bool)>, choices: &[usize]) {
        for (which, act, choice) in steps {
            let item = item(items[which]);
            match act {
                0..=2 => self.replace(key_of(&item), (!choice).then_some(item)),
                3 => self.take(which, choice),
                4 => self.take_again(which),
                _ => self.land(which),
            }
        }
        self.settle(choices);
    }

    /// Lands a late write.
    pub(crate) fn land(&mut self, place: usize) {
        if !self.late.is_empty() {
            let write = self.late.remove(place % self.late.len());
            self.write(&write);
        }
    }

    /// Takes all records and lands all writes, in an order that these choices make.
    pub(crate) fn settle(&mut self, choices: &[usize]) {
        let mut choices = choices.iter().copied().cycle();
        for _ in 0..STEPS_MAX {
            let choice = choices.next().unwrap_or(0);
            match (self.records.is_empty(), self.late.is_empty()) {
                (true, true) => return,
                (true, false) => self.land(choice),
                (false, false) if choice % 5 == 0 => self.land(choice),
                (false, _) => self.take(choice, false),
            }
        }
        panic!("after {STEPS_MAX} steps there are records still");
    }

    fn handle(&mut self, record: &Change, families: &[Family], is_late: bool) {
        let planned = plan(&self.schema, &self.catalogue, families, record);
        for (at, effect) in planned.effects {
            let (items, entity, named) = match effect {
                Effect::Look(request) | Effect::Vacated(request) => (vec![request.item], request.entity, request.named),
                Effect::Find(find) => (self.found(&find), find.target, Vec::new()),
                Effect::Add(add) => {
                    self.count(
                        &CounterKey { target: add.target, derivation: self.catalogue.name(at).into(), satellite: 0 },
                        add.count,
                    );
                    continue;
                }
                Effect::List { .. } | Effect::Measure(_) | Effect::Late | Effect::Later(..) | Effect::Ground(_) => {
                    continue;
                }
            };
            for item in items {
                let (derivations, named) = ([at].into(), named.iter().cloned().collect());
                let look = Look { item, entity: entity.clone(), derivations, named };
                match decided(&self.schema, &self.catalogue, &look, &self.items) {
                    Verdict::Write { write, .. } if is_late => self.late.push(*write),
                    Verdict::Write { write, .. } => self.write(&write),
                    Verdict::InStep | Verdict::Occupied(_) => {}
                }
            }
        }
    }

    fn count(&mut self, counter: &CounterKey, amount: i64) {
        let key = counter.key().unwrap();
        let value = self.items.get(&key).and_then(|item| whole_number(item.get("Value")?)).unwrap_or(0) + amount;
        let mut item = item(&format!("{key} Counter Value=N:0"));
        item.insert("Value".to_owned(), AttributeValue::N(value.to_string()));
        self.replace(key, Some(item));
    }

    fn found(&self, find: &Find) -> Vec<Key> {
        let of_query = |item: &&Item| is_of(&find.query, item);
        let via = |item: &Item| {
            let key = self.schema.layout.key(item)?;
            let via = self.schema.image(&key, item).filter(|image| image.is(&find.via))?;
            through(&self.schema, &via, &find.target)
        };
        self.items.values().filter(of_query).filter_map(via).collect()
    }

    fn write(&mut self, write: &Write) {
        let stored = self.items.get(&write.key);
        if write.guard.as_ref().is_none_or(|guard| guard.holds(stored)) {
            let new = written(stored, &write.action);
            self.replace(write.key.clone(), new);
        }
    }

    /// Items that a derivation creates, and that the definition does not contain.
    fn unexplained(&self, by_derivation: &[(String, Vec<Derived>)]) -> Vec<String> {
        let is_wanted = |key: &Key| {
            let mut all = by_derivation.iter().flat_map(|(_, derived)| derived);
            all.any(|part| matches!(part, Derived::Item { key: wanted, .. } if wanted == key))
        };
        let is_made = |key: &Key, item: &Item| {
            let image = self.schema.image(key, item);
            let makes = |image: &Image<'_>, part: &dyn Refresh| part.makes_item() && image.is(part.target());
            let mut parts = self.catalogue.derivations().filter_map(|derivation| derivation.kind.refresh());
            image.is_some_and(|image| parts.any(|part| makes(&image, part)))
        };
        let stale = self.items.iter().filter(|(key, item)| is_made(key, item) && !is_wanted(key));
        stale.map(|(key, _)| format!("{key} should not be there")).collect()
    }

    /// Everything that differs from its definition.
    pub(crate) fn differing(&self) -> Vec<String> {
        let Whole { by_derivation, .. } = derive(&self.schema, &self.catalogue, &self.items);
        let mut differing = self.unexplained(&by_derivation);
        for (name, derived) in by_derivation {
            for part in derived {
                let (key, wanted) = match part {
                    Derived::Attributes { key, attributes } => (key, attributes),
                    Derived::Item { key, item } => {
                        let definition = self.schema.image(&key, &item).unwrap().definition;
                        let wanted = owned(definition, &item, self.items.get(&key));
                        (key, wanted)
                    }
                    Derived::Count { .. } | Derived::Bucket { .. } => continue,
                };
                let stored = self.items.get(&key);
                let wrong = wanted.iter().filter(|wanted| !wanted.is_held_by(stored));
                differing
                    .extend(wrong.map(|wanted| format!("{name}: {key} {} should be {:?}", wanted.name, wanted.value)));
            }
        }
        differing
    }
}

/// The verdict of refreshing an item of a table.
pub(crate) fn decided(schema: &Schema, catalogue: &Catalogue, look: &Look, items: &Items) -> Verdict {
    let mut sources = Sources::default();
    loop {
        match step(schema, catalogue, look, items.get(&look.item), &sources) {
            Step::Decided(verdict) => return verdict,
            Step::Read(wanted) => {
                assert!(wanted.iter().all(|source| !sources.knows(source)), "nothing is read twice");
                for source in wanted {
                    match source {
                        Source::Item(key) => sources.add_item(key.clone(), items.get(&key).cloned()),
                        Source::Counters(target) => sources.add_counters(schema, target, items.values()),
                        Source::First(of) => {
                            let first = first_of(schema, &of, items.range(of.begin()..)).into_iter().cloned();
                            let first = first.collect();
                            sources.add_first(of, first);
                        }
                    }
                }
            }
        }
    }
}

/// An item after a write.
pub(crate) fn written(stored: Option<&Item>, action: &Action) -> Option<Item> {
    match action {
        Action::Put(item) => Some(item.clone()),
        Action::Delete => None,
        Action::Check => stored.cloned(),
        Action::Update(Update { set, remove, .. }) => {
            let mut item = stored.cloned()?;
            item.extend(set.clone());
            item.retain(|name, _| !remove.contains(name));
            Some(item)
        }
    }
}

fn is_of(query: &Query, item: &Item) -> bool {
    let names = match query.index.as_deref() {
        None => ["PK".to_owned(), "SK".to_owned()],
        Some(index) => [format!("{index}PK"), format!("{index}SK")],
    };
    let [pk, sk] = names.map(|name| text(item, &name));
    pk == Some(&query.pk) && sk.is_some_and(|sk| query.sk.holds(sk))
}
