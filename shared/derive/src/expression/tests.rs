use keys::{counter, item::Item, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;

use super::*;
use crate::{
    condition::Condition,
    fixture::ground,
    schema::{Schema, Unreadable},
};

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

/// A line of an order.
fn line() -> Item {
    let parts = [("unit", s("kg")), ("cost", n("0.1"))].map(|(name, value)| (name.to_owned(), value));
    let attributes = [
        ("quantity", n("3")),
        ("price", n("1.50")),
        ("long", n("12345678901234567890123456789012345678")),
        ("amount", s("19.90")),
        ("owner", s("7::ann::x")),
        ("email", s(" Ann@Example.ORG ")),
        ("at", s("2024-12-30T23:30:00.000Z")),
        ("there", s("2024-12-30T23:30:00-01:30")),
        ("date", s("2024-12-30")),
        ("ms", n("1735601400123")),
        ("sec", n("1735601400.9")),
        ("tags", AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()])),
        ("of", AttributeValue::M(parts.into())),
        ("gift", AttributeValue::Bool(true)),
        ("first-name", s("Ann")),
        ("day", s("Monday")),
    ];
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn value(text: &str) -> Result<Option<AttributeValue>, Unreadable> {
    let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let line = line();
    expression.value((&line).into()).map(|value| value.map(std::borrow::Cow::into_owned))
}

#[test]
fn an_expression_has_the_value_that_its_functions_give() {
    for (text, wanted) in [
        ("quantity * price", n("4.5")),
        ("quantity + 1 - price * 2", n("1")),
        ("(quantity + 1) * 2", n("8")),
        ("quantity -1", n("2")),
        ("quantity - -1", n("4")),
        ("1E2*quantity", n("300")),
        ("0.1 + of.cost", n("0.2")),
        ("number(amount) * quantity", n("59.7")),
        ("number(price)", n("1.5")),
        ("quantity / 2", n("1.5")),
        ("2 / quantity", n("0.666667")),
        ("1 / quantity * quantity", n("0.999999")),
        ("1 / (quantity * quantity)", n("0.111111")),
        ("100 * quantity / quantity / 2", n("50")),
        ("1 / 0.0000001", n("10000000")),
        ("0.5 / 1000000", n("0")),
        ("text(price) || of.unit", s("1.5kg")),
        ("text(owner)", s("7::ann::x")),
        ("size(tags) + size(owner)", n("11")),
        ("lower(trim(email))", s("ann@example.org")),
        ("upper(of.unit) || '#' || date", s("KG#2024-12-30")),
        ("before(owner, '::')", s("7")),
        ("before(date, '::')", s("2024-12-30")),
        ("after(owner, '::')", s("ann::x")),
        ("after(after(owner, '::'), '::')", s("x")),
        ("if_not_exists(missing, 'other')", s("other")),
        ("if_not_exists(of.unit, 'other')", s("kg")),
        ("if_not_exists(missing, quantity) * 2", n("6")),
        ("millis(ms)", s("2024-12-30T23:30:00.123Z")),
        ("seconds(sec)", s("2024-12-30T23:30:00Z")),
        ("millis(0 - 1)", s("1969-12-31T23:59:59.999Z")),
        ("hour(at)", s("2024-12-30T23")),
        ("hour(there)", s("2024-12-31T01")),
        ("hour(at, '+05:30')", s("2024-12-31T05")),
        ("day(at)", s("2024-12-30")),
        ("day(date)", s("2024-12-30")),
        ("day(at, '+01:00')", s("2024-12-31")),
        ("week(date)", s("2025-W01")),
        ("week(millis(ms))", s("2025-W01")),
        ("month(date)", s("2024-12")),
        ("\"first-name\" || day", s("AnnMonday")),
        ("gift", AttributeValue::Bool(true)),
    ] {
        assert_eq!(value(text), Ok(Some(wanted)), "{text}");
    }
}

#[test]
fn what_is_calculated_from_a_missing_value_is_missing() {
    for text in [
        "missing",
        "quantity * missing",
        "quantity / 0",
        "quantity / (price - price)",
        "missing || owner",
        "lower(of.missing)",
        "after(date, '::')",
        "size(quantity)",
        "if_not_exists(missing, of.missing)",
        "day(millis(missing))",
    ] {
        assert_eq!(value(text), Ok(None), "{text}");
    }
}

#[test]
fn a_value_that_a_function_does_not_take_is_named() {
    for (text, unreadable) in [
        (
            "quantity * amount",
            "amount is S, and `quantity * amount` takes N: write number(…) for a number that is stored as text",
        ),
        ("gift + 1", "gift is BOOL, and `gift + 1` takes N"),
        ("owner || quantity", "quantity is N, and `owner || quantity` takes S: write text(…) for the text of a number"),
        ("number(owner)", "owner is no number that DynamoDB holds"),
        ("number(trim(email))", "email is no number that DynamoDB holds, in `number(trim(email))`"),
        (
            "long * long",
            "long leads to a number that DynamoDB does not hold: it has more than 38 digits, or is too large or too small",
        ),
        ("lower(tags)", "tags is SS, and `lower(tags)` takes S"),
        ("lower(if_not_exists(tags, owner))", "tags is SS, and `lower(if_not_exists(tags, owner))` takes S"),
        ("text(gift)", "gift is BOOL, and `text(gift)` takes N or S"),
        (
            "millis(amount)",
            "amount is S, and `millis(amount)` takes N: write number(…) for a number that is stored as text",
        ),
        ("seconds(ms)", "ms is no number of seconds since 1970 of a year from 0 to 9999"),
        ("hour(date)", "date is not an ISO 8601 time with an hour, which hour(…) needs"),
        ("day(date, '+01:00')", "date is not an ISO 8601 time with a day, which day(…) needs"),
        ("month(owner)", "owner is not an ISO 8601 time with a month, which month(…) needs"),
        ("week(ms)", "ms is N, and `week(ms)` takes S: write millis(…) or seconds(…) for an epoch number"),
    ] {
        assert_eq!(value(text).unwrap_err().to_string(), unreadable, "{text}");
    }
}

#[test]
fn its_text_is_written_in_one_way() {
    for (written, text) in [
        ("a*b", "a * b"),
        ("(a*b)+(c)", "a * b + c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a-b)-c", "a - b - c"),
        ("(a+b)*c*(d*e)", "(a + b) * c * (d * e)"),
        ("a||'it''s'", "a || 'it''s'"),
        ("SIZE( a.b[0] )", "size(a.b[0])"),
        ("before ( \"a b\" , '::' )", "before(\"a b\", '::')"),
        ("day(at,'+02:00')", "day(at, '+02:00')"),
        ("a - -1.50", "a - -1.5"),
    ] {
        let expression: Expression = written.parse().unwrap();
        assert_eq!(expression.to_string(), text);
        assert_eq!(text.parse(), Ok(expression));
    }
}

#[test]
fn a_mistake_is_told_with_its_place_and_what_would_do() {
    for (written, error) in [
        ("a b", "at character 3: an operator (+, -, *, /, ||) or the end is wanted before \"b\""),
        ("a * ", "at character 5: it ends where an attribute or a value is wanted"),
        ("(a", "at character 3: a closing parenthesis is wanted at the end"),
        ("a % b", "at character 3: an operator (+, -, *, /, ||) or the end is wanted before \"%\""),
        (
            "lowercase(a)",
            "at character 1: there is no function \"lowercase\": there are size, if_not_exists, number, text, lower, \
             upper, trim, before, after, seconds, millis, hour, day, week, month",
        ),
        ("1 + contains(a, 'x')", "at character 5: contains is a test, and a value is wanted here"),
        ("lower(a, b)", "at character 8: a closing parenthesis is wanted before \",\""),
        ("before(a)", "at character 9: a comma, as in before(a, '::'), is wanted before \")\""),
        ("before(a, b)", "at character 1: the second value is a text in quotes, as in before(a, '::')"),
        ("after(a, '')", "at character 1: the second value is a text in quotes, as in after(a, '::')"),
        ("day(at, '+24:00')", "at character 1: \"+24:00\" is no offset from UTC such as '+02:00'"),
        ("day(at, 'CET')", "at character 1: \"CET\" is no offset from UTC such as '+02:00'"),
        (
            "1 + lower(size(a))",
            "at character 5: lower(a) takes S, and size(a) is N: write text(…) for the text of a number",
        ),
        ("a * 'x'", "at character 1: a * b takes N, and 'x' is S: write number(…) for a number that is stored as text"),
        ("-a", "at character 1: \"-a\" is no number that DynamoDB holds"),
    ] {
        assert_eq!(written.parse::<Expression>().unwrap_err().to_string(), error, "{written}");
    }
    let deep = format!("{}a{}", "(".repeat(60), ")".repeat(60));
    assert!(deep.parse::<Expression>().unwrap_err().what.contains("nested"));
    let deep = format!("{}a = 1{}", "(".repeat(60), ")".repeat(60));
    assert!(deep.parse::<Condition>().unwrap_err().what.contains("nested"));
    let long = vec!["a"; 302].join(" + ");
    assert!(long.parse::<Expression>().unwrap_err().what.contains("300"));
}

#[test]
fn a_condition_compares_what_is_calculated_and_is_decided_only_as_far_as_necessary() {
    let holds = |text: &str| {
        let condition: Condition = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(condition.to_string().parse(), Ok(condition.clone()), "{text}");
        condition.holds(&line())
    };
    for text in [
        "quantity * price > 4",
        "(quantity + 1) * 2 = 8 AND (gift = true OR (quantity) > 5)",
        "((quantity + 1)) BETWEEN 4 AND quantity + 2",
        "before(owner, '::') IN ('7', '8')",
        "begins_with(lower(trim(email)), 'ann@')",
        "contains(lower(email), 'example')",
        "at < millis(ms)",
        "NOT missing * 2 > 1",
        "missing * 2 <> 1",
        "gift = true OR amount * 2 > 1",
        "NOT (attribute_type(amount, 'N') AND amount * 2 > 1)",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
    assert_eq!(holds("amount * 2 > 1 OR gift = true").unwrap_err().attribute, "amount");
    for (written, error) in [
        ("a * b = 'x'", "at character 1: it compares values of several types"),
        (
            "lower('X') = 'x'",
            "at character 1: it reads no attribute: a text stands in single quotes, and a name in none",
        ),
        ("(a + 1)", "at character 8: a comparison is wanted: =, <>, <, <=, >, >=, BETWEEN or IN"),
        ("attribute_exists (lower(a))", "at character 24: a closing parenthesis is wanted before \"(a))\""),
        ("begins_with(size(a), 'x')", "at character 1: begins_with takes a text"),
    ] {
        assert_eq!(written.parse::<Condition>().unwrap_err().to_string(), error, "{written}");
    }
}

#[test]
fn a_field_of_the_key_stands_beside_attributes_with_the_type_that_it_has_in_the_key() {
    let day = ground("Day", ("SHOP#{shop}", "DAY#{n:4}#{hash}"), &["n", "total"], &[]);
    let counter = ground("Counter", (counter::PARTITION_KEY, counter::SORT_KEY), &[], &[]);
    let schema = Schema::new(Layout { entity_type: Some("Type".into()), ..Layout::of("PK", "SK") }, [day, counter]);
    let key = Key::new("SHOP#a%23b", "DAY#0042#x");
    let item =
        Item::from([("Type".to_owned(), s("Day")), ("n".to_owned(), s("of no use")), ("total".to_owned(), n("2"))]);
    let image = schema.image(&key, &item).unwrap();
    let read =
        |text: &str| Input::from(text.parse::<Expression>().unwrap()).value(&image).unwrap().unwrap().into_owned();
    assert_eq!([read("shop || hash"), read("n * total"), read("text(n)")], [s("a#bx"), n("84"), s("42")]);
    let condition: Condition = "shop = 'a#b' AND n > 41 AND n < 43".parse().unwrap();
    assert_eq!(condition.holds(&image), Ok(true));
}
