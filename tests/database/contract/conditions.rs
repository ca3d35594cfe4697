//! What is drawn at random: conditions hold for the items for which DynamoDB says that they hold, and after random writes
//! the model has what the embedded DynamoDB has. And what the store refuses before a call.

use std::{collections::HashMap, env};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue as Sent, ReturnValue},
};
use derive::{
    condition::{Condition, Test},
    expression::{
        Expression, Values,
        document_path::{DocumentPath, PathStep},
        function::Function,
    },
    guard::{Guard, Purpose},
    query::Query,
    write::{Table, Transaction, UPDATE_ATTRIBUTES_MAX, Write},
};
use keys::{item::Item, key::Key, number::Decimal, value::same_item};
use proptest::{collection::vec, prelude::*, sample::select, strategy::ValueTree as _, test_runner::TestRunner};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, StoreError, TransactOutcome};
use support::database::{client, create_table, embedded, unique_names};

use crate::{
    contract::{
        Bed, add, delete, guarded, in_ledger, item, item_of_bytes, key, layout, map, memory, put, runtime, set,
        unchanged, update,
    },
    n, s,
};

const N_CONDITIONS: usize = 600;
const N_CALCULATIONS: usize = 300;

#[test]
fn a_condition_holds_for_the_items_for_which_dynamodb_says_so() {
    let (runtime, endpoint) = embedded();
    runtime.block_on(agrees(&client(&endpoint)));
    if let Ok(endpoint) = env::var("CONTRACT_ENDPOINT") {
        runtime.block_on(agrees(&client(&endpoint)));
    }
}

async fn agrees(client: &Client) {
    let (layout, names) = (layout(), unique_names());
    create_table(client, &names.main, &layout).await;
    let items: Vec<Item> = items().into_iter().enumerate().map(|(at, item)| keyed(at, item)).collect();
    for item in &items {
        let item = serde_dynamo::Item::from(item.clone().into_iter().collect::<HashMap<_, _>>());
        client.put_item().table_name(&names.main).set_item(Some(item.into())).send().await.unwrap();
    }
    let mut runner = TestRunner::deterministic();
    let (mut n_blocked, mut n_not) = (0, 0);
    for _ in 0..N_CONDITIONS {
        let condition = conditions().new_tree(&mut runner).unwrap().current();
        let text = condition.to_string();
        assert_eq!(text.parse().as_ref(), Ok(&condition), "{text}");
        let mut sent = Sending::default();
        let expression = sent.of(&condition);
        let scan = client.scan().table_name(&names.main).filter_expression(expression);
        let scan = scan.set_expression_attribute_names(sent.names).set_expression_attribute_values(sent.values);
        let found = scan.send().await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
        for item in &items {
            let id = keys::item::text(item, "PK").unwrap();
            let is_found = found.items().iter().any(|found| found["PK"].as_s().is_ok_and(|pk| pk == id));
            assert_eq!(condition.holds(item), Ok(is_found), "{text}: {item:?}");
            *(if is_found { &mut n_blocked } else { &mut n_not }) += 1;
        }
    }
    client.delete_table().table_name(&names.main).send().await.unwrap();
    let n_all = n_blocked + n_not;
    assert!(n_blocked > n_all / 10 && n_not > n_all / 10, "{n_blocked} {n_not}");
}

#[test]
fn a_calculation_gives_what_dynamodb_writes() {
    let (runtime, endpoint) = embedded();
    runtime.block_on(calculates(&client(&endpoint)));
    if let Ok(endpoint) = env::var("CONTRACT_ENDPOINT") {
        runtime.block_on(calculates(&client(&endpoint)));
    }
}

/// Calculates with the sums, differences and defaults that an update of DynamoDB can say too.
async fn calculates(client: &Client) {
    let (layout, names) = (layout(), unique_names());
    create_table(client, &names.main, &layout).await;
    let number =
        || (-999_999_999_999_i64..=999_999_999_999, -9..9_i32).prop_map(|(digits, power)| format!("{digits}e{power}"));
    let operands = || prop_oneof![6 => number().prop_map(|it| Some(n(&it))), 1 => Just(Some(s("12"))), 1 => Just(None)];
    let functions = || select(vec![Function::Add, Function::Subtract, Function::IfNotExists]);
    let mut runner = TestRunner::deterministic();
    let (mut n_calculated, mut n_refused) = (0, 0);
    for _ in 0..N_CALCULATIONS {
        let (a, b, function) = (operands(), operands(), functions()).new_tree(&mut runner).unwrap().current();
        let item =
            [("a", a), ("b", b)].into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let item = keyed(0, item);
        let sent = serde_dynamo::Item::from(item.clone().into_iter().collect::<HashMap<_, _>>());
        client.put_item().table_name(&names.main).set_item(Some(sent.into())).send().await.unwrap();
        let said = match function {
            Function::Add => "a + b",
            Function::Subtract => "a - b",
            // DynamoDB Local (1.25.1) refuses a default that does not exist, although it is not needed.
            _ if item.contains_key("b") => "if_not_exists(a, b)",
            _ => continue,
        };
        let key =
            [("PK", "ITEM#0"), ("SK", "METADATA")].map(|(name, text)| (name.to_owned(), Sent::S(text.to_owned())));
        let update = client.update_item().table_name(&names.main).set_key(Some(HashMap::from(key)));
        let update = update.update_expression(format!("SET c = {said}")).return_values(ReturnValue::UpdatedNew);
        let written = update.send().await.ok().map(|answer| answer.attributes.unwrap()["c"].clone());
        let expression: Expression = said.parse().unwrap();
        let calculated =
            expression.value(Values::from(&item)).ok().flatten().map(|value| Sent::from(value.into_owned()));
        let same = match (&written, &calculated) {
            (Some(Sent::N(one)), Some(Sent::N(other))) => Decimal::parse(one) == Decimal::parse(other),
            (one, other) => one == other,
        };
        assert!(same, "{said} of {item:?}: DynamoDB writes {written:?}, and it gives {calculated:?}");
        *(if written.is_some() { &mut n_calculated } else { &mut n_refused }) += 1;
    }
    client.delete_table().table_name(&names.main).send().await.unwrap();
    assert!(n_calculated > N_CALCULATIONS / 3 && n_refused > N_CALCULATIONS / 10, "{n_calculated} {n_refused}");
}

fn keyed(at: usize, mut item: Item) -> Item {
    item.extend([("PK".to_owned(), s(&format!("ITEM#{at}"))), ("SK".to_owned(), s("METADATA"))]);
    item
}

/// Items in which `a`, `b` and `c` are of every type, and inside of maps and lists.
fn items() -> Vec<Item> {
    let values = values();
    let of = |at: usize| values[at % values.len()].clone();
    let item = |at: usize| {
        let mut item = Item::from([("a".to_owned(), of(at))]);
        if !at.is_multiple_of(4) {
            item.insert("b".to_owned(), of(at * 7 + 3));
        }
        if !at.is_multiple_of(3) {
            let map = AttributeValue::M([("a".to_owned(), of(at * 5)), ("c d".to_owned(), of(at + 1))].into());
            item.insert(
                "c".to_owned(),
                if at.is_multiple_of(2) { AttributeValue::L(vec![of(at * 3), map]) } else { map },
            );
        }
        item
    };
    (0..values.len() * 3).map(item).collect()
}

fn values() -> Vec<AttributeValue> {
    let mut values = literals();
    values.extend([
        s("paid twice"),
        s("é€😀"),
        n("1.50"),
        n("-1E2"),
        AttributeValue::B(vec![1, 2]),
        AttributeValue::B(vec![2]),
        AttributeValue::Bs(vec![vec![2], vec![3]]),
        AttributeValue::Ss(vec!["paid".to_owned(), "x".to_owned()]),
        AttributeValue::Ns(vec!["1".to_owned(), "2.5".to_owned()]),
        AttributeValue::L(vec![s("paid"), n("1"), AttributeValue::Bool(true)]),
        AttributeValue::M([("a".to_owned(), s("x"))].into()),
    ]);
    values
}

fn literals() -> Vec<AttributeValue> {
    let texts = ["paid", "x", "", "it's"].map(s);
    let numbers = ["1", "2.5", "0", "-3"].map(n);
    let others = [AttributeValue::Bool(true), AttributeValue::Bool(false), AttributeValue::Null(true)];
    texts.into_iter().chain(numbers).chain(others).collect()
}

fn paths() -> impl Strategy<Value = DocumentPath> + Clone {
    let step = prop_oneof![
        select(vec!["a", "c d"]).prop_map(|name| PathStep::Name(name.to_owned())),
        (0..3_usize).prop_map(PathStep::At),
    ];
    let whole = select(vec!["a", "b", "c", "d"]);
    let steps = prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(step, 1..3)];
    (whole, steps).prop_map(|(attribute, steps)| DocumentPath { attribute: attribute.to_owned(), steps })
}

fn tests() -> impl Strategy<Value = Condition> {
    let path = || paths().prop_map(Expression::Path);
    let literal = || select(literals()).prop_map(Expression::Literal);
    let text = || {
        select(literals()).prop_filter("a text", |it| matches!(it, AttributeValue::S(_))).prop_map(Expression::Literal)
    };
    let of_sizes = (0..5_u8).prop_map(|size| Expression::Literal(n(&size.to_string())));
    let signs = || select(vec![Test::Equal, Test::Differs, Test::Below, Test::AtMost, Test::Above, Test::AtLeast]);
    let test = |test| move |operands: Vec<Expression>| Condition::Test(test, operands);
    let types = select(vec!["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"]);
    prop_oneof![
        4 => (signs(), path(), literal()).prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        1 => (signs(), literal(), path()).prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        1 => (signs(), path(), path()).prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        2 => (signs(), paths().prop_map(|path| Expression::Call(Function::Size, vec![Expression::Path(path)])), of_sizes)
            .prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        2 => (path(), literal(), literal()).prop_map(<[Expression; 3]>::from).prop_map(Vec::from).prop_map(test(Test::Between)),
        2 => proptest::collection::vec(literal(), 1..4).prop_flat_map(move |all| (path(), Just(all)))
            .prop_map(|(one, all)| Condition::Test(Test::In, [vec![one], all].concat())),
        1 => path().prop_map(|one| vec![one]).prop_map(test(Test::Exists)),
        1 => path().prop_map(|one| vec![one]).prop_map(test(Test::Lacks)),
        1 => (path(), types).prop_map(|(one, name)| vec![one, Expression::Literal(s(name))]).prop_map(test(Test::Type)),
        2 => (path(), text()).prop_map(<[Expression; 2]>::from).prop_map(Vec::from).prop_map(test(Test::BeginsWith)),
        2 => (path(), literal()).prop_map(<[Expression; 2]>::from).prop_map(Vec::from).prop_map(test(Test::Contains)),
        2 => (select(vec![Test::Contains, Test::BeginsWith, Test::In]), path(), path())
            .prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        1 => (path(), path(), path()).prop_map(<[Expression; 3]>::from).prop_map(Vec::from).prop_map(test(Test::Between)),
    ]
    // What DynamoDB refuses, a manifest cannot say either.
    .prop_filter("a condition", |condition| condition.to_string().parse::<Condition>().is_ok())
}

fn conditions() -> BoxedStrategy<Condition> {
    let test = tests().prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, other)| Condition::And(vec![one, other])),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| Condition::Or(vec![one, other])),
            inner.prop_map(|it| Condition::Not(Box::new(it))),
        ]
    });
    (test, any::<bool>()).prop_map(|(test, not)| if not { Condition::Not(Box::new(test)) } else { test }).boxed()
}

/// A condition as it is sent, with placeholders for names and values.
#[derive(Default)]
struct Sending {
    names: Option<HashMap<String, String>>,
    values: Option<HashMap<String, Sent>>,
}

impl Sending {
    fn of(&mut self, condition: &Condition) -> String {
        let mut joined = |all: &[Condition], between: &str| {
            all.iter().map(|it| format!("({})", self.of(it))).collect::<Vec<_>>().join(between)
        };
        match condition {
            Condition::Always => String::new(),
            Condition::And(all) => joined(all, " AND "),
            Condition::Or(all) => joined(all, " OR "),
            Condition::Not(it) => format!("NOT ({})", self.of(it)),
            Condition::Test(test, operands) => {
                let operands: Vec<String> = operands.iter().map(|operand| self.operand(operand)).collect();
                let [sign, function] = match test {
                    Test::Equal => ["=", ""],
                    Test::Differs => ["<>", ""],
                    Test::Below => ["<", ""],
                    Test::AtMost => ["<=", ""],
                    Test::Above => [">", ""],
                    Test::AtLeast => [">=", ""],
                    Test::Between => return format!("{} BETWEEN {} AND {}", operands[0], operands[1], operands[2]),
                    Test::In => return format!("{} IN ({})", operands[0], operands[1..].join(", ")),
                    Test::Exists => ["", "attribute_exists"],
                    Test::Lacks => ["", "attribute_not_exists"],
                    Test::Type => ["", "attribute_type"],
                    Test::BeginsWith => ["", "begins_with"],
                    Test::Contains => ["", "contains"],
                };
                if function.is_empty() { operands.join(sign) } else { format!("{function}({})", operands.join(", ")) }
            }
        }
    }

    fn operand(&mut self, operand: &Expression) -> String {
        match operand {
            Expression::Path(path) => self.path(path),
            Expression::Literal(value) => {
                let values = self.values.get_or_insert_default();
                let name = format!(":v{}", values.len());
                values.insert(name.clone(), value.clone().into());
                name
            }
            Expression::Call(Function::Size, sized) => format!("size({})", self.operand(&sized[0])),
            Expression::Call(..) => unreachable!("DynamoDB calculates nothing else"),
        }
    }

    fn path(&mut self, path: &DocumentPath) -> String {
        let steps = path.steps.iter().map(|step| match step {
            PathStep::Name(name) => format!(".{}", self.name(name)),
            PathStep::At(at) => format!("[{at}]"),
        });
        let steps: Vec<String> = steps.collect();
        format!("{}{}", self.name(&path.attribute), steps.concat())
    }

    fn name(&mut self, name: &str) -> String {
        let names = self.names.get_or_insert_default();
        let placeholder = format!("#n{}", names.len());
        names.insert(placeholder.clone(), name.to_owned());
        placeholder
    }
}

// ---- The store refuses before the call what DynamoDB would refuse, and nothing else ----

fn with(value: AttributeValue) -> Write {
    put(&key("a"), item(&key("a"), [("Attribute", value)]))
}

fn nested(depth: usize) -> AttributeValue {
    (0..depth).fold(s("x"), |value, _| AttributeValue::L(vec![value]))
}

fn bare(key: &Key) -> Write {
    put(key, item(key, []))
}

/// So many attributes.
fn counted(n_attributes: usize) -> Item {
    (0..n_attributes).map(|position| (format!("Attribute{position}"), n("1"))).collect()
}

fn refused() -> Vec<(&'static str, Write)> {
    let a = key("a");
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    vec![
        ("400 KB and a byte", put(&a, item_of_bytes(&a, 409_601))),
        ("an empty partition key", bare(&Key::new("", "a"))),
        ("an empty sort key", bare(&Key::new("a", ""))),
        ("a long partition key", bare(&Key::new("p".repeat(2_049), "a"))),
        ("a long sort key", bare(&Key::new("a", "s".repeat(1_025)))),
        ("a long partition key of an index", set(&a, [("GSI1PK", s(&"p".repeat(2_049)))])),
        ("a long sort key of an index", set(&a, [("GSI1SK", s(&"s".repeat(1_025)))])),
        ("an update expression of more than 4 KB", update(&a, counted(300), &[], &[])),
        ("another item's key", put(&a, item(&key("b"), []))),
        ("an index key that is a number", put(&a, item(&a, [("GSI1PK", n("1"))]))),
        ("an empty index key", set(&a, [("GSI1SK", s(""))])),
        ("a sum as index key", add(&a, "GSI1SK", 1)),
        ("an update of the key", set(&a, [("SK", s("b"))])),
        ("an update of nothing", update(&a, Item::new(), &[], &[])),
        ("an attribute twice", update(&a, Item::new(), &["Value"], &[("Value", 1)])),
        ("39 digits", with(n("123456789012345678901234567890123456789"))),
        ("a huge number", with(n("1e126"))),
        ("a tiny number", with(n("1e-131"))),
        ("no number", with(n("12a"))),
        ("an empty set", with(AttributeValue::Ss(vec![]))),
        ("a number twice in a set", with(AttributeValue::Ns(texts(&["1", "1.0"])))),
        ("a bad number deep down", with(AttributeValue::L(vec![AttributeValue::M([("k".into(), n("x"))].into())]))),
        ("a bad number in a guard", guarded(add(&a, "Value", 1), unchanged("Value", Some(n("x"))))),
        ("33 levels", with(nested(33))),
        ("a condition of 301 operators", guarded(add(&a, "Value", 1), asks_for(151, "Attribute"))),
        ("a condition of more than 4 KB", guarded(add(&a, "Value", 1), lacks(150))),
    ]
}

/// So many attributes are as they were read: an operator for each, and an `AND` between two.
fn asks_for(n_attributes: usize, prefix: &str) -> Guard {
    let as_read = (0..n_attributes).map(|position| (format!("{prefix}{position}"), Some(n("1"))));
    Guard::as_read(Purpose::Application, as_read)
}

/// So many attributes are not there. A function is longer than a comparison.
fn lacks(n_attributes: usize) -> Guard {
    let as_read = (0..n_attributes).map(|position| (format!("Attribute{position}"), None));
    Guard::as_read(Purpose::Application, as_read)
}

pub(crate) async fn what_breaks_a_limit_is_refused_by_name<S: Store>(bed: Bed<S>) {
    for (about, write) in refused() {
        for error in [
            bed.store.write(&write).await.map(|_| ()).unwrap_err(),
            bed.store.transact(&Transaction::new(vec![write.clone()]).unwrap()).await.map(|_| ()).unwrap_err(),
        ] {
            let StoreError::Reject { item, .. } = &error else {
                panic!("{}: {about}: {error:?}", bed.name);
            };
            bed.same(item, &write.key.to_string(), about);
        }
    }
    bed.same(&bed.scan_all(Table::Main).await.0, &vec![], "nothing is written");
}

pub(crate) async fn what_is_just_within_the_limits_is_taken<S: Store>(bed: Bed<S>) {
    let a = key("a");
    for write in [
        put(&a, item_of_bytes(&a, 409_600)),
        bare(&Key::new("p".repeat(2_048), "s".repeat(1_024))),
        with(n("99999999999999999999999999999999999999")),
        with(n("9.9999999999999999999999999999999999999E+125")),
        with(n("1E-130")),
        with(n("-1E-130")),
        with(nested(31)),
        set(&a, [("GSI1PK", s(&"p".repeat(2_048))), ("GSI1SK", s(&"s".repeat(1_024)))]),
        update(&a, counted(280), &[], &[]),
        update(&a, counted(UPDATE_ATTRIBUTES_MAX), &[], &[]),
    ] {
        bed.done(&write).await;
    }
    // 150 comparisons and 149 `AND`. The names stand behind placeholders, so they may be long.
    for prefix in ["Attribute", &"Attribute".repeat(20)] {
        let many = (0..150).map(|position| (format!("{prefix}{position}"), n("1"))).collect();
        bed.done(&put(&a, item(&a, []))).await;
        bed.done(&update(&a, many, &[], &[])).await;
        bed.done(&guarded(add(&a, "Value", 1), asks_for(150, prefix))).await;
    }
}

pub(crate) async fn a_refused_write_in_a_transaction_is_named<S: Store>(bed: Bed<S>) {
    let (a, b) = (key("a"), key("b"));
    let transaction = Transaction::new(vec![bare(&a), put(&b, item_of_bytes(&b, 500_000))]).unwrap();
    let error = bed.store.transact(&transaction).await.unwrap_err();
    bed.same(&error.to_string(), &format!("TransactWriteItems on {b}: refused"), &error);
    bed.same(&bed.item(&a).await, &None, "nothing is done");
}

pub(crate) async fn an_unknown_index_is_refused<S: Store>(bed: Bed<S>) {
    let query = Query::prefix(Some("GSI9"), "a", "");
    let error = bed.store.query(Table::Main, &query, None).await.unwrap_err();
    bed.same(&error.is_retry(), &false, &error);
}

// ---- Random writes ----

fn value() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        select(vec![n("1"), n("1.0"), n("-2.5"), n("40")]),
        select(vec![s("x"), s(""), AttributeValue::Null(true)]),
        (0usize..3_000).prop_map(|bytes| s(&"y".repeat(bytes))),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    select(vec!["Name", "Value", "a.b"])
}

/// Attributes, sometimes with the keys of the index.
fn attributes() -> impl Strategy<Value = Item> {
    let index = (prop::option::of(select(vec!["G", "H"])), prop::option::of(select(vec!["1", "2"])));
    (vec((name(), value()), 0..3), index).prop_map(|(attributes, (pk, sk))| {
        let mut item: Item = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        item.extend(pk.map(|pk| ("GSI1PK".to_owned(), s(pk))));
        item.extend(sk.map(|sk| ("GSI1SK".to_owned(), s(sk))));
        item
    })
}

fn guard() -> impl Strategy<Value = Option<Guard>> {
    prop_oneof![
        4 => Just(None),
        1 => Just(Some(Guard::absent(Purpose::Receipt))),
        1 => Just(Some(Guard::present(Purpose::Update))),
        1 => (name(), prop::option::of(value())).prop_map(|(name, value)| Some(unchanged(name, value))),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    let key = select(vec!["a", "b", "c"]).prop_map(|sk| Key::new("P", sk));
    let removed = select(vec!["Gone", "GSI1SK", "GSI1PK"]);
    let action =
        (key, attributes(), removed, 0..4, -3i64..4).prop_map(|(key, attributes, removed, kind, amount)| match kind {
            0 => {
                let mut all = item(&key, []);
                all.extend(attributes);
                put(&key, all)
            }
            1 => {
                let mut set = map([("Set", n("1"))]);
                set.extend(attributes.into_iter().filter(|(name, _)| name != removed && name != "Value"));
                update(&key, set, &[removed], &[("Value", amount)])
            }
            2 => add(&key, "Value", amount),
            _ => delete(&key),
        });
    (action, guard(), any::<bool>()).prop_map(|(write, guard, ledger)| {
        let write = match guard {
            Some(guard) => guarded(write, guard),
            None => write,
        };
        if ledger { in_ledger(write) } else { write }
    })
}

/// Makes the writes, alone or together; returns the results as text, and the items of the tables.
async fn play<S: Store>(bed: &Bed<S>, script: &[(Vec<Write>, bool)]) -> (Vec<String>, Vec<Item>) {
    let mut words = Vec::new();
    for (writes, together) in script {
        match Transaction::new(writes.clone()) {
            Ok(transaction) if *together => {
                words.push(match bed.store.transact(&transaction).await.unwrap() {
                    TransactOutcome::Done { units } => format!("{units:?}"),
                    TransactOutcome::Cancelled { reasons } => {
                        let reason = |reason| match reason {
                            Reason::Rejected(_) => "Rejected".to_owned(),
                            other => format!("{other:?}"),
                        };
                        format!("{:?}", reasons.into_iter().map(reason).collect::<Vec<_>>())
                    }
                });
            }
            _ => {
                for write in writes {
                    words.push(match bed.store.write(write).await {
                        Ok(Outcome::Done { units }) => format!("{units}"),
                        Ok(Outcome::GuardFailed) => "GuardFailed".to_owned(),
                        Err(error) => format!("retry: {}", error.is_retry()),
                    });
                }
            }
        }
    }
    let mut items = Vec::new();
    for table in [Table::Main, Table::Ledger] {
        items.extend(bed.scan_all(table).await.0);
    }
    (words, items)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_model_does_what_the_embedded_one_does(script in vec((vec(write(), 1..5), any::<bool>()), 1..30)) {
        let (model, real) = runtime().block_on(async {
            (play(&memory(), &script).await, play(&crate::contract::embedded().await, &script).await)
        });
        prop_assert_eq!(&model.0, &real.0);
        let (mut stored, mut modelled) = (real.1, model.1);
        let key = |item: &Item| format!("{:?} {:?}", item.get("PK"), item.get("SK"));
        stored.sort_by_key(key);
        modelled.sort_by_key(key);
        let is_same = stored.len() == modelled.len() && stored.iter().zip(&modelled).all(|(a, b)| same_item(a, b));
        prop_assert!(is_same, "embedded {:?}, model {:?}", stored, modelled);
    }
}
