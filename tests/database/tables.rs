//! Tables of other forms: random writes, queries and scans, in several tables of the embedded DynamoDB, are what they are in
//! the model's one table with text keys.

use std::{collections::BTreeMap, sync::Arc};

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType as Part, Projection,
        ProjectionType, ScalarAttributeType,
    },
};
use derive::{
    guard::{Ask, Guard, Purpose},
    query::{Order, Query, SortKeys},
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{
    counter::CounterKey,
    escape,
    item::Item,
    key::Key,
    layout::Layout,
    tables::{KeyAttribute, KeyType, PK, SK, TableForm, TableForms},
    value::same_item,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_dynamo::AttributeValue;
use store::{
    Outcome, Segment, Store, TransactOutcome,
    dynamo::{DynamoStore, TableNames},
    memory::MemoryStore,
};
use support::database::{client, embedded};

use crate::s;

/// Messages ordered by a number, users without a sort key, and channels with members under texts of forms.
fn layout() -> Layout {
    manifest::load(include_str!("../../examples/chat/ripple.toml")).unwrap().0.layout
}

fn forms(layout: &Layout) -> &TableForms {
    layout.forms.as_ref().unwrap()
}

async fn create(client: &Client, name: &str, key: [&[KeyAttribute]; 2], indexes: &TableForm) {
    let of_key = |[pk, sk]: [&[KeyAttribute]; 2]| -> Vec<KeySchemaElement> {
        let parts = pk.iter().map(|it| (it, Part::Hash)).chain(sk.iter().map(|it| (it, Part::Range)));
        let element = |(it, part): (&KeyAttribute, Part)| {
            KeySchemaElement::builder().attribute_name(&it.name).key_type(part).build().unwrap()
        };
        parts.map(element).collect()
    };
    let all =
        key.concat().into_iter().chain(indexes.indexes.iter().flat_map(|it| [it.pk.clone(), it.sk.clone()].concat()));
    let definitions: BTreeMap<String, KeyType> = all.map(|it| (it.name, it.of)).collect();
    let definition = |(name, of): (String, KeyType)| {
        let of = if of == KeyType::N { ScalarAttributeType::N } else { ScalarAttributeType::S };
        AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().unwrap()
    };
    let mut call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    call = call.set_key_schema(Some(of_key(key)));
    call = call.set_attribute_definitions(Some(definitions.into_iter().map(definition).collect()));
    for index in &indexes.indexes {
        let projection = Projection::builder().projection_type(ProjectionType::All).build();
        let secondary = GlobalSecondaryIndex::builder().index_name(&index.name).projection(projection);
        let secondary = secondary.set_key_schema(Some(of_key([&index.pk, &index.sk]))).build().unwrap();
        call = call.global_secondary_indexes(secondary);
    }
    call.send().await.unwrap();
}

/// The embedded DynamoDB with the tables.
async fn real(endpoint: &str, number: usize) -> DynamoStore {
    let (client, mut layout) = (client(endpoint), layout());
    for form in &mut Arc::make_mut(layout.forms.as_mut().unwrap()).0 {
        form.called = format!("{}-{number}", form.name);
        let sk: Vec<KeyAttribute> = form.sk.iter().cloned().collect();
        create(&client, &form.called, [std::slice::from_ref(&form.pk), &sk], form).await;
    }
    let names = TableNames { main: format!("own-{number}"), ledger: format!("ledger-{number}") };
    let text = |name: &str| [KeyAttribute::of_form(name)];
    let without = TableForm { indexes: Vec::new(), ..forms(&layout).0[0].clone() };
    for name in [&names.main, &names.ledger] {
        create(&client, name, [&text(PK), &text(SK)], &without).await;
    }
    DynamoStore::new(client, layout, names)
}

fn n(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

const AUTHORS: [&str; 2] = ["ann", "b#b"];

/// A partition key at the limit, which is three times as long where the rest of the workspace sees it.
fn longest() -> String {
    "%".repeat(2_048)
}

fn channel() -> impl Strategy<Value = String> {
    prop_oneof![9 => select(vec!["c1", "c#2"]).prop_map(str::to_owned), 1 => Just(longest())]
}

/// An item as an application writes it, with the name of its table.
fn stored() -> impl Strategy<Value = (&'static str, Item)> {
    let text = || select(vec!["", "x", "50%"]).prop_map(s);
    let number = select(vec![-40, -5, 0, 3, 20, 100, 1_700_000_000_000_i64]);
    let message = (channel(), number, select(AUTHORS.to_vec()), text()).prop_map(|(channel, at, by, text)| {
        let item = [("channelId", s(&channel)), ("sentAt", n(at)), ("authorId", s(by)), ("text", text)];
        ("Messages", item.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    });
    let user = (select(AUTHORS.to_vec()), text())
        .prop_map(|(user, name)| ("Users", Item::from([("userId", s(user)), ("name", name)])));
    let member =
        (select(vec!["w1", "w2"]), select(vec!["u1", "u2"]), any::<bool>()).prop_map(|(workspace, user, is_in)| {
            let mut item = Item::from([
                ("pk", s(&format!("WORKSPACE#{workspace}"))),
                ("sk", s(&format!("MEMBER#{user}"))),
                ("type", s("Member")),
            ]);
            if is_in {
                item.insert("gsi1pk", s(&format!("USER#{user}")));
                item.insert("gsi1sk", s(&format!("WORKSPACE#{workspace}")));
            }
            ("Rooms", item)
        });
    prop_oneof![3 => message, 1 => user, 2 => member]
}

/// What becomes of an item, and the guard.
fn write() -> impl Strategy<Value = Write> {
    let guard = prop_oneof![
        3 => Just(Vec::new()),
        1 => Just(vec![Ask::Absent]),
        1 => Just(vec![Ask::Present]),
        1 => Just(vec![Ask::Equal("RippleType".to_owned(), s("Message"))]),
        1 => Just(vec![Ask::Lacks("derived".to_owned())]),
    ];
    (stored(), 0..4, guard).prop_map(|((table, stored), action, asks)| {
        let layout = layout();
        let item = forms(&layout).named(table).unwrap().inward(stored).unwrap();
        let mut key = layout.key(&item).unwrap();
        let update = |set: Item, add: Item| Action::Update(Update { set, add, ..Update::default() });
        let action = match action {
            0 => Action::Put(item),
            1 => update(Item::from([("derived", s("y"))]), Item::new()),
            3 if table == "Users" => {
                key = CounterKey::home(key, "n").key().unwrap();
                update(Item::from([("RippleType", s("Counter"))]), Item::from([("Value", n(2))]))
            }
            _ => Action::Delete,
        };
        // An update of no item would make one of a key alone, which the service never does.
        let needs = matches!(&action, Action::Update(_)) && !key.sk.contains("#COUNT#");
        let asks: Vec<Ask> = asks.into_iter().chain(needs.then_some(Ask::Present)).collect();
        let guard = (!asks.is_empty()).then_some(Guard { purpose: Purpose::Update, asks });
        Write { table: Table::Main, key, action, guard }
    })
}

/// The queries that are asked at the end.
fn queries() -> Vec<Query> {
    let descending = |query: Query, limit| Query { order: Order::Descending, limit, ..query };
    let between =
        |pk: &str, first: &str, last: &str| Query::of(None, pk, SortKeys::Between(first.to_owned(), last.to_owned()));
    vec![
        Query::prefix(None, "Messages#c1", ""),
        descending(Query::prefix(None, "Messages#c%232", ""), None),
        descending(Query::prefix(None, "Messages#c1", ""), Some(1)),
        Query::prefix(None, "Messages#c1", "02:20"),
        between("Messages#c1", "-98:4~", "03:100"),
        Query::prefix(None, "Users#b%23b", ""),
        Query::prefix(None, "Users#b%23b", "-#COUNT#n#"),
        Query::prefix(None, "Rooms#WORKSPACE#w1", "MEMBER#"),
        Query::prefix(Some("Messages.byAuthor"), "b%23b", ""),
        Query::prefix(Some("Rooms.byUser"), "USER#u1", "WORKSPACE#"),
        Query::prefix(None, "Others#x", ""),
        Query::prefix(None, format!("Messages#{}", escape::value(&longest())), ""),
        Query::prefix(None, format!("Messages#{}", "c".repeat(2_049)), ""),
        Query::prefix(None, "Rooms#WORKSPACE#w1", "M".repeat(1_025)),
        Query::prefix(None, "Messages#", ""),
    ]
}

/// Makes the writes, and gives what came of each, what is found, and all items.
async fn play<S: Store>(store: &S, layout: &Layout, script: &[(Vec<Write>, bool)]) -> (Vec<String>, Vec<Item>) {
    let mut words = Vec::new();
    for (writes, together) in script {
        match Transaction::new(writes.clone()) {
            Ok(transaction) if *together => words.push(match store.transact(&transaction).await.unwrap() {
                TransactOutcome::Done { .. } => "done".to_owned(),
                TransactOutcome::Cancelled { reasons } => format!("{reasons:?}"),
            }),
            _ => {
                for write in writes {
                    words.push(match store.write(write).await.unwrap() {
                        Outcome::Done { .. } => "done".to_owned(),
                        Outcome::GuardFailed => "guard failed".to_owned(),
                    });
                }
            }
        }
    }
    for query in queries() {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.query(Table::Main, &query, after).await.unwrap();
            let keys = page.items.iter().filter_map(|item| layout.key(item));
            // Counters stand in another table than the item that they are about, so only a query for them finds them.
            found.extend(keys.filter(|key| CounterKey::parse(key).is_none() || query.sk.first().contains("#COUNT#")));
            after = page.next.filter(|_| query.limit.is_none());
            if after.is_none() {
                break;
            }
        }
        words.push(format!("{query:?} finds {found:?}"));
    }
    let mut items = Vec::new();
    for number in 0..2 {
        let mut after = None;
        loop {
            let page = store.scan(Table::Main, Segment { number, of: 2 }, after).await.unwrap();
            items.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    items.sort_by_key(|item| layout.key(item));
    let keys: Vec<Key> = items.iter().filter_map(|item| layout.key(item)).collect();
    let read = store.get(Table::Main, &keys).await.unwrap();
    assert!(read.iter().map(|(_, item)| item).eq(&items), "a read gives what a scan gives");
    (words, items)
}

/// Puts items whose keys are just short enough as they are stored, or a byte too long.
async fn judges_by_what_is_stored<S: Store>(store: &S, layout: &Layout) {
    let put = async |table: &str, stored: Item| {
        let item = forms(layout).named(table).unwrap().inward(stored).unwrap();
        let key = layout.key(&item).unwrap();
        let write = Write { table: Table::Main, key: key.clone(), action: Action::Put(item), guard: None };
        (key, store.write(&write).await.map_err(|error| describe(&error)))
    };
    let message =
        |channel: String, by: String| Item::from([("channelId", s(&channel)), ("sentAt", n(1)), ("authorId", s(&by))]);
    let room = |sk: String| Item::from([("pk", s("WORKSPACE#w")), ("sk", s(&sk)), ("type", s("Member"))]);
    for stored in [message("#".repeat(2_048), "a".to_owned()), message("c".to_owned(), "%".repeat(2_048))] {
        let (key, outcome) = put("Messages", stored).await;
        assert!(matches!(outcome, Ok(Outcome::Done { .. })), "{outcome:?}");
        assert_eq!(store.get(Table::Main, &[key.clone(), Key::new("Users#a", "-")]).await.unwrap().len(), 1);
        assert_eq!(store.query(Table::Main, &Query::prefix(None, &key.pk, ""), None).await.unwrap().items.len(), 1);
    }
    let (key, outcome) = put("Rooms", room(format!("MEMBER#{}", "%".repeat(1_017)))).await;
    assert!(matches!(outcome, Ok(Outcome::Done { .. })), "{outcome:?}");
    assert_eq!(store.get(Table::Main, &[key]).await.unwrap().len(), 1);
    let too_long = [
        ("Messages", message("c".repeat(2_049), "a".to_owned()), "channelId"),
        ("Messages", message("d".to_owned(), "a".repeat(2_049)), "authorId"),
        ("Rooms", room("M".repeat(1_025)), "sk"),
    ];
    for (table, stored, attribute) in too_long {
        let (key, outcome) = put(table, stored).await;
        let why = outcome.unwrap_err();
        assert!(why.contains(&format!("the key attribute {attribute} has")), "{why}");
        // Nothing is under such a key, and the others are read.
        assert_eq!(store.get(Table::Main, std::slice::from_ref(&key)).await.unwrap(), []);
        let found = store.get(Table::Main, &[key, Key::new("Messages#c", "01:1")]).await.unwrap();
        assert_eq!(found.len(), 1, "{table}");
    }
}

fn describe(error: &dyn std::error::Error) -> String {
    format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn whether_a_key_is_too_long_is_judged_by_what_is_stored() {
    let (runtime, endpoint) = embedded();
    let layout = layout();
    runtime.block_on(async {
        judges_by_what_is_stored(&MemoryStore::new(layout.clone()), &layout).await;
        judges_by_what_is_stored(&real(&endpoint, 1).await, &layout).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn several_tables_are_what_one_table_of_texts_is(script in vec((vec(write(), 1..4), any::<bool>()), 1..40)) {
        let (runtime, endpoint) = embedded();
        let layout = layout();
        let (model, real) = runtime.block_on(async {
            let memory = MemoryStore::new(layout.clone());
            (play(&memory, &layout, &script).await, play(&real(&endpoint, 0).await, &layout, &script).await)
        });
        prop_assert_eq!(&model.0, &real.0);
        let is_same = real.1.len() == model.1.len() && real.1.iter().zip(&model.1).all(|(a, b)| same_item(a, b));
        prop_assert!(is_same, "tables {:?}, model {:?}", real.1, model.1);
    }
}
