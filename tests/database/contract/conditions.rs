//! Conditions hold for the items for which DynamoDB says that they hold.

use std::{collections::HashMap, env};

use aws_sdk_dynamodb::{Client, types::AttributeValue as Sent};
use derive::condition::{Condition, DocumentPath, Operand, PathStep, Test};
use keys::item::Item;
use proptest::{
    prelude::{Just, Strategy, any, prop_oneof},
    sample::select,
    strategy::{BoxedStrategy, ValueTree},
    test_runner::TestRunner,
};
use serde_dynamo::AttributeValue;
use support::database::{client, create_table, embedded, unique_names};

use crate::contract::{
    bed::layout,
    items::{n, s},
};

const N_CONDITIONS: usize = 600;

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
    let (mut n_held, mut n_not) = (0, 0);
    for _ in 0..N_CONDITIONS {
        let condition = conditions().new_tree(&mut runner).unwrap().current();
        let text = condition.to_string();
        assert_eq!(text.parse().as_ref(), Ok(&condition), "{text}");
        let mut sent = Expression::default();
        let expression = sent.of(&condition);
        let scan = client.scan().table_name(&names.main).filter_expression(expression);
        let scan = scan.set_expression_attribute_names(sent.names).set_expression_attribute_values(sent.values);
        let found = scan.send().await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
        for item in &items {
            let id = keys::item::text(item, "PK").unwrap();
            let is_found = found.items().iter().any(|found| found["PK"].as_s().is_ok_and(|pk| pk == id));
            assert_eq!(condition.holds(item), is_found, "{text}: {item:?}");
            *(if is_found { &mut n_held } else { &mut n_not }) += 1;
        }
    }
    client.delete_table().table_name(&names.main).send().await.unwrap();
    let n_all = n_held + n_not;
    assert!(n_held > n_all / 10 && n_not > n_all / 10, "{n_held} {n_not}");
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
    let path = || paths().prop_map(Operand::Attribute);
    let literal = || select(literals()).prop_map(Operand::Value);
    let text =
        || select(literals()).prop_filter("a text", |it| matches!(it, AttributeValue::S(_))).prop_map(Operand::Value);
    let of_sizes = (0..5_u8).prop_map(|size| Operand::Value(n(&size.to_string())));
    let signs = || select(vec![Test::Equal, Test::Differs, Test::Below, Test::AtMost, Test::Above, Test::AtLeast]);
    let test = |test| move |operands: Vec<Operand>| Condition::Test(test, operands);
    let types = select(vec!["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"]);
    prop_oneof![
        4 => (signs(), path(), literal()).prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        1 => (signs(), literal(), path()).prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        1 => (signs(), path(), path()).prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        2 => (signs(), paths().prop_map(Operand::Size), of_sizes)
            .prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        2 => (path(), literal(), literal()).prop_map(<[Operand; 3]>::from).prop_map(Vec::from).prop_map(test(Test::Between)),
        2 => proptest::collection::vec(literal(), 1..4).prop_flat_map(move |all| (path(), Just(all)))
            .prop_map(|(one, all)| Condition::Test(Test::In, [vec![one], all].concat())),
        1 => path().prop_map(|one| vec![one]).prop_map(test(Test::Exists)),
        1 => path().prop_map(|one| vec![one]).prop_map(test(Test::Lacks)),
        1 => (path(), types).prop_map(|(one, name)| vec![one, Operand::Value(s(name))]).prop_map(test(Test::Type)),
        2 => (path(), text()).prop_map(<[Operand; 2]>::from).prop_map(Vec::from).prop_map(test(Test::BeginsWith)),
        2 => (path(), literal()).prop_map(<[Operand; 2]>::from).prop_map(Vec::from).prop_map(test(Test::Contains)),
        2 => (select(vec![Test::Contains, Test::BeginsWith, Test::In]), path(), path())
            .prop_map(|(test, one, other)| Condition::Test(test, vec![one, other])),
        1 => (path(), path(), path()).prop_map(<[Operand; 3]>::from).prop_map(Vec::from).prop_map(test(Test::Between)),
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

/// An expression as it is sent, with placeholders for names and values.
#[derive(Default)]
struct Expression {
    names: Option<HashMap<String, String>>,
    values: Option<HashMap<String, Sent>>,
}

impl Expression {
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

    fn operand(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::Attribute(path) => self.path(path),
            Operand::Size(path) => format!("size({})", self.path(path)),
            Operand::Value(value) => {
                let values = self.values.get_or_insert_default();
                let name = format!(":v{}", values.len());
                values.insert(name.clone(), value.clone().into());
                name
            }
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
