//! What `ripple why` says of each item of an application's table, as it is and altered.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use catalogue::catalogue;
use derive::{
    claims::CLAIMS,
    gathering::Gathering,
    write::{Action, Table, Write},
};
use engine::ledger::LedgerKind;
use keys::{counter::CounterKey, item::Item, key::Key};
use operate::{
    OperateError,
    tables::{Deployment, VerifyOptions},
    verify::{
        Finding,
        check::{Checked, Difference, FINDING, UNDECIDED, WAITING, check},
    },
    why::{Explanation, ValueState, WhyRequest, why},
};
use serde_dynamo::AttributeValue;
use store::{Store as _, memory::MemoryStore};

use crate::{
    at_work::{Unseen, deployment},
    cost::Bed,
    workload::{Application, Client},
};

/// Actions of the application.
const N_ACTIONS: usize = 700;

/// A table that an application has written, with all that is derived.
struct Written {
    opened: Deployment<MemoryStore>,
    items: BTreeMap<Key, Item>,
}

impl Written {
    async fn new(ledger: LedgerKind) -> Self {
        let mut bed = Bed::new(ledger);
        let (mut application, mut client) = (Application::new(bed.schema.clone(), 7), Client::default());
        for at in 0..N_ACTIONS {
            let action = application.next_action().unwrap();
            let subject = action.subject.clone();
            let performed = client.perform(bed.store.as_ref(), action).await;
            performed.unwrap_or_else(|error| panic!("{subject}: {error}"));
            if at % 50 == 0 {
                bed.settle(100).await;
            }
        }
        bed.settle(100).await;
        let items = bed.store.view(Table::Main, Clone::clone);
        let catalogue = catalogue(&bed.schema).unwrap();
        Self { opened: deployment(bed.schema, catalogue, bed.store), items }
    }

    async fn why(&self, key: &Key, attribute: Option<&str>) -> Result<Explanation, OperateError> {
        let attribute = attribute.map(str::to_owned);
        let request = WhyRequest { key: key.clone(), attribute, n_listed: 3, n_read_max: 10_000, reads_stream: false };
        why(&self.opened, &request).await
    }

    /// Does a count gather its sources in an index or by mirrors, and which items are missing there or too many?
    ///
    /// `why` sees only what the index or the mirrors have, and what is wrong with them is a finding of its own.
    fn gathered_indirectly(&self, derivation: &str, target: &Key, found: &Found) -> Option<Vec<Key>> {
        let Deployment { schema, catalogue, .. } = &self.opened;
        let at = catalogue.called(derivation).unwrap();
        let Gathering { query, entity, .. } = Gathering::of(schema, catalogue, at, target)?;
        if let Some(index) = &query.index {
            let names = schema.layout.index(index).unwrap();
            let is_misplaced = |key: &Key, item: &Item| {
                let Some(image) = schema.image(key, item).filter(|image| image.is(&entity)) else { return false };
                let fields = image.definition.fields(key, item).unwrap();
                let wanted = image.definition.index_attributes(&schema.layout, &fields);
                let wanted = |name: &str| wanted.iter().find(|(other, _)| other == name).and_then(|it| it.1.clone());
                let is_here = |value: Option<&AttributeValue>| value == Some(&AttributeValue::S(query.pk.clone()));
                [&names.pk, &names.sk].iter().any(|name| wanted(name).as_ref() != item.get(name))
                    && (is_here(item.get(&names.pk)) || is_here(wanted(&names.pk).as_ref()))
            };
            let items = self.opened.store.view(Table::Main, Clone::clone);
            return Some(items.into_iter().filter(|(key, item)| is_misplaced(key, item)).map(|(key, _)| key).collect());
        }
        let (maker, _) = catalogue.makers().find(|(_, made)| *made == entity)?;
        let is_wrong = |(of, key): &&(String, Key)| of == catalogue.name(maker) && key.pk == query.pk;
        Some(found.keys().filter(is_wrong).map(|(_, key)| key.clone()).collect())
    }

    fn put(&self, item: Item) {
        self.opened.store.put_raw(Table::Main, item).unwrap();
    }

    async fn delete(&self, key: &Key) {
        let write = Write { table: Table::Main, key: key.clone(), action: Action::Delete, guard: None };
        self.opened.store.write(&write).await.unwrap();
    }

    /// An item that a derivation writes into, and the attribute, one of each derivation.
    async fn derived(&self) -> BTreeMap<String, (Key, Option<String>)> {
        let mut derived = BTreeMap::new();
        for key in self.items.keys() {
            let Ok(why) = self.why(key, None).await else { continue };
            for value in why.values {
                // Without its type an item is none of ours, and without its claims nothing explains a mirror.
                let is_altered = |name: &str| name != "EntityType" && name != CLAIMS;
                let attribute =
                    value.attributes.iter().find(|attribute| attribute.stored.is_some() && is_altered(&attribute.name));
                let attribute = attribute.map(|attribute| attribute.name.clone());
                if attribute.is_some() || value.should_exist.is_some() {
                    derived.entry(value.derivation).or_insert((key.clone(), attribute));
                }
            }
        }
        derived
    }
}

/// The states, each with its derivation.
fn states(why: &Explanation) -> Vec<(&str, &ValueState)> {
    let values = why.values.iter().map(|value| (value.derivation.as_str(), &value.state));
    values.chain(why.counters.iter().map(|counter| (counter.derivation.as_str(), &counter.state))).collect()
}

#[tokio::test]
async fn everything_derived_of_an_applications_table_is_right_and_most_of_it_is_decided() {
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let table = Written::new(ledger).await;
        let (mut explained, mut decided) = (BTreeSet::new(), BTreeSet::new());
        for key in table.items.keys() {
            let why = match table.why(key, None).await {
                Ok(why) => why,
                Err(OperateError::Usage(_)) => continue,
                Err(error) => panic!("{key}: {error}"),
            };
            for (derivation, state) in states(&why) {
                let is_right = matches!(state, ValueState::Right | ValueState::Undecided(_));
                assert!(is_right, "{key}: {derivation} {state:?}: {why:?}");
                explained.insert(derivation.to_owned());
                decided.extend((*state == ValueState::Right).then(|| derivation.to_owned()));
            }
            for counter in &why.counters {
                let has_marks = counter.items.iter().any(|item| !item.watermarks.is_empty());
                assert!(has_marks || ledger == LedgerKind::Receipts || counter.items.is_empty(), "{key}: {counter:?}");
            }
        }
        let all = table.opened.catalogue.derivations().filter(|it| !it.name.ends_with("-cascade"));
        let all: BTreeSet<String> = all.map(|it| it.name.clone()).collect();
        assert_eq!(all.difference(&explained).collect::<Vec<_>>(), [""; 0], "each derivation writes somewhere");
        let undecided: Vec<&String> = explained.difference(&decided).collect();
        assert_eq!(undecided, ["readings-rollup", "view-count"], "their sources are not in one place");
    }
}

#[tokio::test]
async fn an_altered_value_differs_and_is_named() {
    let table = Written::new(LedgerKind::Watermarks).await;
    let derived = table.derived().await;
    assert!(derived.len() > 30 && derived.values().all(|(_, attribute)| attribute.is_some()), "{derived:?}");
    for (derivation, (key, attribute)) in derived {
        let attribute = attribute.unwrap();
        let mut altered = table.items[&key].clone();
        altered.insert(attribute.clone(), AttributeValue::S("altered".to_owned()));
        table.put(altered);
        let why = table.why(&key, Some(&attribute)).await.unwrap();
        let value = why.values.iter().find(|value| value.derivation == derivation).unwrap();
        // A change that is fanned out by an index is searched for again when the index has had time, so all wait for that.
        assert!(matches!(value.state, ValueState::Differs | ValueState::Waits), "{derivation}: {why:?}");
        let wrong: Vec<&str> = value.attributes.iter().filter(|it| !it.is_right).map(|it| it.name.as_str()).collect();
        assert_eq!(wrong, [attribute], "{derivation} of {key}");
        table.put(table.items[&key].clone());
    }
}

#[tokio::test]
async fn an_altered_counter_differs_and_what_shows_it_follows() {
    let table = Written::new(LedgerKind::Watermarks).await;
    let mut n_altered = 0;
    for (key, item) in &table.items {
        let Some(counter) = CounterKey::parse(key) else { continue };
        let before = table.why(key, None).await.unwrap();
        let [explained] = before.counters.as_slice() else { panic!("{before:?}") };
        assert_eq!((&explained.derivation, &explained.target), (&counter.derivation, &counter.target));
        if explained.state != ValueState::Right || explained.is_history {
            continue;
        }
        let mut altered = item.clone();
        altered.insert("Value".to_owned(), AttributeValue::N((explained.stored.count + 5).to_string()));
        table.put(altered);
        let after = table.why(&counter.target, None).await;
        if let Ok(after) = after {
            let of_counter = after.counters.iter().find(|it| it.derivation == counter.derivation).unwrap();
            assert_eq!(of_counter.state, ValueState::Differs, "{after:?}");
            assert_eq!(of_counter.sources.tally.count + 5, of_counter.stored.count);
            n_altered += 1;
        }
        table.put(item.clone());
    }
    assert!(n_altered > 20, "{n_altered}");
}

#[tokio::test]
async fn a_counter_with_more_sources_than_may_be_read_is_not_decided() {
    let table = Written::new(LedgerKind::Watermarks).await;
    let has_two = |item: &&Item| item.get("FollowerCount").is_some_and(|n| *n == AttributeValue::N("2".to_owned()));
    let (key, _) = table.items.iter().find(|(_, item)| has_two(item)).unwrap();
    for (n_read_max, is_decided) in [(1, false), (10_000, true)] {
        let attribute = Some("FollowerCount".to_owned());
        let request = WhyRequest { key: key.clone(), attribute, n_listed: 1, n_read_max, reads_stream: false };
        let why = why(&table.opened, &request).await.unwrap();
        let [counter] = why.counters.as_slice() else { panic!("{why:?}") };
        let (n_sources, is_right) = (counter.sources.n_sources, counter.state == ValueState::Right);
        assert_eq!((n_sources, counter.sources.listed.len(), is_right), (n_read_max.min(2), 1, is_decided));
    }
}

/// What is right is told by the item, its sources and its counters; what is under way is read when something differs.
#[tokio::test]
async fn nothing_is_read_twice() {
    let table = Written::new(LedgerKind::Watermarks).await;
    let user = table.items.keys().find(|key| key.sk == "PROFILE").unwrap();
    let why = table.why(user, None).await.unwrap();
    // Each of four counters has a query for its sources. The counters themselves are read once for the displays, and once
    // with their keys; jobs and what is parked are in few partitions.
    assert!((why.read_units - 17.0).abs() < f64::EPSILON, "{}", why.read_units);
}

#[tokio::test]
async fn a_missing_mirror_is_told_from_one_that_nobody_needs() {
    let table = Written::new(LedgerKind::Receipts).await;
    let is_follower = |key: &&Key| key.sk.starts_with("FOLLOWER#");
    let follower = table.items.keys().find(is_follower).unwrap();
    table.delete(follower).await;
    let why = table.why(follower, None).await.unwrap();
    assert!(why.item.is_none() && why.entities == ["Follower"]);
    assert_eq!(why.values[0].should_exist, Some(true));
    assert_eq!(why.values[0].state, ValueState::Differs);
    let stranger = Key::new("USER#nobody", "FOLLOWER#nobody");
    let why = table.why(&stranger, None).await.unwrap();
    assert_eq!((why.values[0].should_exist, &why.values[0].state), (Some(false), &ValueState::Right));
}

#[tokio::test]
async fn a_missing_mirror_that_its_key_does_not_explain_is_not_decided() {
    let table = Written::new(LedgerKind::Receipts).await;
    let claimed = |(_, item): &(&Key, &Item)| item.contains_key(CLAIMS);
    let (mirror, _) = table.items.iter().find(claimed).unwrap();
    table.delete(mirror).await;
    let why = table.why(mirror, None).await.unwrap();
    let states: Vec<_> = why.values.iter().map(|value| (value.should_exist, &value.state)).collect();
    assert!(matches!(states.as_slice(), [(None, ValueState::Undecided(_))]), "{states:?}");
}

/// Numbers that follow from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Alters an item: without it, without an attribute, with another value, or with one of another item.
async fn alter(table: &Written, draw: &mut Draw) {
    let (keys, values): (Vec<_>, Vec<_>) = table.items.iter().unzip();
    let at = draw.below(keys.len());
    let (key, mut item) = (keys[at], values[at].clone());
    let names = |item: &Item| -> Vec<String> {
        // Without its type or key it is another item.
        item.keys().filter(|name| !["PK", "SK", "EntityType"].contains(name)).map(str::to_owned).collect()
    };
    let own = names(&item);
    match draw.below(5) {
        0 => return table.delete(key).await,
        _ if own.is_empty() => return,
        1 => drop(item.remove(&own[draw.below(own.len())])),
        2 => drop(item.insert(own[draw.below(own.len())].clone(), AttributeValue::S("altered".to_owned()))),
        3 => drop(item.insert(own[draw.below(own.len())].clone(), AttributeValue::N("7".to_owned()))),
        _ => {
            let is_alike = |other: &&&Item| other.get("EntityType") == item.get("EntityType");
            let alike: Vec<&&Item> = values.iter().filter(is_alike).collect();
            let other = alike[draw.below(alike.len())];
            item.extend(names(other).into_iter().filter_map(|name| Some((name.clone(), other.get(&name)?.clone()))));
        }
    }
    table.put(item);
}

/// What a verification finds, by derivation and key: the kind, whether it is a flaw, and the attributes.
type Found = BTreeMap<(String, Key), Vec<(&'static str, bool, BTreeSet<String>)>>;

async fn found(table: &Written) -> Found {
    let request = VerifyOptions { at_rest: true, ..VerifyOptions::default() };
    let Checked { verified, .. } = check(&table.opened, &request, false, &(Arc::new(Unseen) as _)).await.unwrap();
    let mut found = Found::new();
    for kind in [FINDING, UNDECIDED, WAITING] {
        let read = verified.each_entry(kind, |entry| {
            let Finding { derivation, pk, sk, stored, derived, flaw } =
                serde_json::from_str::<Difference>(entry)?.finding;
            let key = Key::new(pk, sk);
            // A count is explained by the item that it is about.
            let target = CounterKey::parse(&key).map_or(key, |counter| counter.target);
            let names = stored.iter().chain(&derived).flat_map(Item::keys).map(str::to_owned).collect();
            found.entry((derivation, target)).or_default().push((kind, flaw.is_some(), names));
            Ok(())
        });
        read.unwrap();
    }
    found
}

#[tokio::test]
async fn why_and_verify_say_the_same_of_every_value_of_random_tables() {
    let (mut n_states, table) = (BTreeMap::<&str, usize>::new(), Written::new(LedgerKind::Watermarks).await);
    let keys: BTreeSet<Key> = table.items.keys().cloned().collect();
    for seed in 0..12 {
        let mut draw = Draw(seed);
        for _ in 0..30 {
            alter(&table, &mut draw).await;
        }
        let (mut found, mut explained) = (found(&table).await, BTreeSet::new());
        // An alteration may require a derived item under a key that the table lacked.
        let all: BTreeSet<Key> = keys.iter().chain(found.keys().map(|(_, key)| key)).cloned().collect();
        for key in &all {
            let Ok(why) = table.why(key, None).await else { continue };
            let is_removed = why.values.iter().any(|value| value.should_exist == Some(false) && why.item.is_some());
            let of_counters =
                why.counters.iter().map(|it| (&it.derivation, &it.target, (&it.state, false), BTreeSet::new()));
            let of_values = why.values.iter().map(|it| {
                let names = it.attributes.iter().filter(|attribute| !attribute.is_right);
                (&it.derivation, key, (&it.state, is_removed), names.map(|attribute| attribute.name.clone()).collect())
            });
            for (derivation, target, (state, is_removed), names) in of_values.chain(of_counters) {
                let entries = found.get(&(derivation.clone(), target.clone())).cloned().unwrap_or_default();
                explained.insert((derivation.clone(), target.clone()));
                if let Some(misplaced) = table.gathered_indirectly(derivation, target, &found) {
                    if !misplaced.is_empty() {
                        *n_states.entry("misplaced").or_default() += 1;
                        continue;
                    }
                    *n_states.entry("indirect").or_default() += 1;
                }
                let said: Vec<(&str, bool)> = entries.iter().map(|(kind, is_flaw, _)| (*kind, *is_flaw)).collect();
                let what =
                    format!("seed {seed}: {derivation} of {target}: why {state:?}, verify {entries:?}: {why:#?}");
                let word = match state {
                    ValueState::Right => "right",
                    ValueState::Waits => "waits",
                    ValueState::Differs => "differs",
                    ValueState::Flawed(_) => "flawed",
                    ValueState::Undecided(_) => "undecided",
                };
                *n_states.entry(word).or_default() += 1;
                match state {
                    _ if is_removed => assert_ne!(*state, ValueState::Right, "{what}"),
                    ValueState::Right => assert!(said.is_empty(), "{what}"),
                    ValueState::Waits => assert_eq!(said, [(WAITING, false)], "{what}"),
                    ValueState::Differs => assert_eq!(said, [(FINDING, false)], "{what}"),
                    ValueState::Flawed(_) => assert_eq!(said, [(FINDING, true)], "{what}"),
                    ValueState::Undecided(_) => {}
                }
                if let [(_, false, differing)] = entries.as_slice()
                    && !names.is_empty()
                    && why.item.is_some()
                    && !is_removed
                {
                    assert_eq!(*differing, names, "{what}");
                }
            }
        }
        found.retain(|found, _| found.0 != "index keys" && !explained.contains(found));
        assert!(found.is_empty(), "seed {seed}: only verify finds {found:?}");
        for key in &keys {
            match table.items.get(key) {
                Some(item) => table.put(item.clone()),
                None => table.delete(key).await,
            }
        }
    }
    assert!(
        ["right", "differs", "undecided", "indirect", "misplaced"].iter().all(|word| n_states.get(word) > Some(&10)),
        "{n_states:?}"
    );
}

#[tokio::test]
async fn what_nothing_derives_is_refused_by_name() {
    let table = Written::new(LedgerKind::Receipts).await;
    let user = table.items.keys().find(|key| key.sk == "PROFILE").unwrap();
    let refused = |error: OperateError| match error {
        OperateError::Usage(why) => why,
        other => panic!("{other}"),
    };
    let why = refused(table.why(user, Some("Nmae")).await.unwrap_err());
    assert!(why.contains("no derivation writes Nmae of ") && why.contains("FollowerCount"), "{why}");
    let why = refused(table.why(&Key::new("NO", "FORM"), None).await.unwrap_err());
    assert_eq!(why, "there is no item NO / FORM, and no entity has keys of this form");
}
