use keys::item::Item;
use serde_dynamo::AttributeValue;

use super::*;

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

/// An order of a shop.
fn order() -> Item {
    let lines = [("sku", s("A-1")), ("count", n("2"))].map(|(name, value)| (name.to_owned(), value));
    let attributes = [
        ("status", s("paid")),
        ("total", n("19.90")),
        ("gift", AttributeValue::Bool(false)),
        ("note", AttributeValue::Null(true)),
        ("tags", AttributeValue::Ss(vec!["new".to_owned(), "large".to_owned()])),
        ("sizes", AttributeValue::Ns(vec!["1.0".to_owned(), "2".to_owned()])),
        ("lines", AttributeValue::L(vec![AttributeValue::M(lines.into()), n("7")])),
        ("digest", AttributeValue::B(vec![1, 2, 3])),
        ("first-name", s("Ann")),
    ];
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn holds(condition: &str) -> bool {
    let condition: Condition = condition.parse().unwrap_or_else(|error| panic!("{condition}: {error}"));
    condition.holds(&order()).unwrap()
}

#[test]
fn it_holds_as_dynamodb_says() {
    for condition in [
        "status = 'paid'",
        "status <> 'sent'",
        "missing <> 'sent'",
        "status IN ('sent', 'paid')",
        "total > 19.8 AND total < 2E1",
        "total BETWEEN 19.9 AND 20",
        "status BETWEEN 'p' AND 'q'",
        "100 >= total",
        "gift = false",
        "note = null",
        "NOT missing = true",
        "NOT (status = 'sent' OR total > 20)",
        "status = 'sent' OR status = 'open' OR total = 19.9",
        "attribute_exists(status) AND attribute_not_exists(missing)",
        "attribute_exists(lines[0].sku) AND attribute_not_exists(lines[2])",
        "attribute_type(total, 'N') AND attribute_type(lines[0], 'M')",
        "begins_with(lines[0].sku, 'A-')",
        "contains(status, 'ai')",
        "contains(tags, 'new') AND contains(sizes, 1) AND contains(lines, 7)",
        "size(tags) = 2 AND size(status) = 4 AND size(digest) = 3 AND size(lines[0]) = 2",
        "\"first-name\" = 'Ann'",
        "total > lines[0].count",
    ] {
        assert!(holds(condition), "{condition}");
        assert!(!holds(&format!("NOT ({condition})")), "{condition}");
    }
    for condition in [
        "missing = 'paid'",
        "missing < 3",
        "missing BETWEEN 1 AND 2",
        "missing IN ('a')",
        "begins_with(missing, 'a')",
        "size(total) > 0",
        "contains(total, 1)",
        "status = missing",
        "lines[0].sku.name = 'A'",
        "status = total",
    ] {
        assert!(!holds(condition), "{condition}");
        assert!(holds(&format!("NOT ({condition})")), "{condition}");
    }
}

#[test]
fn values_of_two_types_are_never_equal_and_have_no_order() {
    for condition in
        ["status = 1", "total > 'a'", "total <= 'a'", "lines[0].count IN ('a')", "status = true", "note = true"]
    {
        assert!(!holds(condition), "{condition}");
        assert!(holds(&format!("NOT {condition}")), "{condition}");
    }
    for condition in ["begins_with(total, '1')", "note BETWEEN 1 AND 2", "gift IN ('a', 'b')", "total = null"] {
        assert!(!holds(condition), "{condition}");
    }
    for condition in ["note <> true", "total <> 'a'", "status <> null", "status = 1 OR total > 1", "tags <> 'new'"] {
        assert!(holds(condition), "{condition}");
    }
}

#[test]
fn its_text_is_written_in_one_way() {
    for (written, text) in [
        ("a='x'", "a = 'x'"),
        ("a = 'it''s'  or  not b in(1,2.50)", "a = 'it''s' OR NOT b IN (1, 2.5)"),
        ("(a = 1 AND b = 2) OR c = 3", "a = 1 AND b = 2 OR c = 3"),
        ("a = 1 AND (b = 2 OR c = 3)", "a = 1 AND (b = 2 OR c = 3)"),
        ("NOT (a = 1 AND b = 2)", "NOT (a = 1 AND b = 2)"),
        ("NOT ((a = 1))", "NOT a = 1"),
        ("\"a.b\".c[10] <= size(d)", "\"a.b\".c[10] <= size(d)"),
        ("\"and\" = null", "\"and\" = null"),
        ("x between 1 and 2 and y = 1", "x BETWEEN 1 AND 2 AND y = 1"),
    ] {
        let condition: Condition = written.parse().unwrap();
        assert_eq!(condition.to_string(), text);
        assert_eq!(text.parse(), Ok(condition));
    }
}

#[test]
fn a_mistake_is_told_with_its_place_and_what_would_do() {
    for (written, error) in [
        ("", "at character 1: it ends where an attribute or a value is wanted"),
        ("status", "at character 7: a comparison is wanted: =, <>, <, <=, >, >=, BETWEEN or IN"),
        (
            "status == 'paid'",
            "at character 9: an attribute or a value is wanted: a single = says that two values are equal",
        ),
        ("status = 'paid", "at character 10: the quote is not closed"),
        ("status = \"paid", "at character 10: the quote is not closed"),
        (
            "status = :paid",
            "at character 10: \":paid\" is a placeholder: write the value or the name itself, a text in single quotes",
        ),
        ("status = 'paid' total > 1", "at character 17: AND, OR or the end is wanted before \"total\""),
        ("status IN ('a' 'b')", "at character 16: a comma or a closing parenthesis is wanted before \"'b')\""),
        ("(a = 1", "at character 7: a closing parenthesis is wanted at the end"),
        ("total BETWEEN 1", "at character 16: AND is wanted, as in total BETWEEN 10 AND 20"),
        ("total > 1e999", "at character 9: \"1e999\" is no number that DynamoDB holds"),
        ("1 = 1", "at character 1: it reads no attribute: a text stands in single quotes, and a name in none"),
        ("gift > true", "at character 1: true, false and null have no order: compare them with = or <>"),
        ("a IN (1, 'b')", "at character 1: it compares values of several types"),
        (
            "attribute_type(a, 'X')",
            "at character 1: attribute_type takes one of 'S', 'N', 'B', 'BOOL', 'NULL', 'SS', 'NS', 'BS', 'L', 'M'",
        ),
        ("a[0] = 1 OR b.c < b.c", "at character 13: it compares an attribute with itself, which DynamoDB refuses"),
        ("a BETWEEN 2 AND 1", "at character 1: BETWEEN takes the lower value first"),
        ("begins_with(a, 1)", "at character 1: begins_with takes a text"),
        ("begins_with(a)", "at character 14: a comma, since begins_with takes two operands, is wanted before \")\""),
        ("or = 1", "at character 1: \"or\" is no name here: an attribute that is called so stands in double quotes"),
        ("a[x] = 1", "at character 3: a position in the list is wanted, from 0"),
        ("\"\" = 1", "at character 1: an attribute's name is empty"),
    ] {
        assert_eq!(written.parse::<Condition>().unwrap_err().to_string(), error, "{written}");
    }
    let nested = format!("{}a = 1", "NOT ".repeat(60));
    assert!(nested.parse::<Condition>().unwrap_err().what.contains("nested"));
    let long = vec!["a = 1"; 301].join(" OR ");
    assert!(long.parse::<Condition>().unwrap_err().what.contains("300"));
}

#[test]
fn the_attributes_that_it_reads_are_known() {
    let text = "a = 'x' AND (size(b) > c.d OR NOT contains(e, 'f')) AND g IN (7, 8) AND h <> true";
    let condition: Condition = text.parse().unwrap();
    assert_eq!(condition.attributes(), ["a", "b", "c", "e", "g", "h"]);
    assert_eq!(condition.compared(), [("a", "S"), ("g", "N"), ("g", "N"), ("h", "BOOL")]);
}

#[test]
fn a_value_that_is_compared_with_one_of_another_type_is_named() {
    for (condition, value, unlike) in [
        ("a = 'x'", n("7"), Some("is N, and the condition compares it with S")),
        ("a <> 'x' AND b = 1", n("7"), Some("is N, and the condition compares it with S")),
        ("NOT a > 1", s("7"), Some("is S, and the condition compares it with N")),
        ("a = 'x' OR a = true", n("7"), Some("is N, and the condition compares it with BOOL and S")),
        ("a = 'x' OR a = 7", n("7"), None),
        ("a = 'x'", AttributeValue::Null(true), None),
        ("attribute_type(a, 'S') AND a = 'x'", n("7"), None),
        ("contains(a, 'x') OR attribute_exists(a) OR size(a) > 1", n("7"), None),
        ("a = b", n("7"), None),
        ("b = 'x'", n("7"), None),
    ] {
        let item = Item::from([("a".to_owned(), value)]);
        let parsed: Condition = condition.parse().unwrap();
        let found = parsed.unlike(&item).map(|(path, why)| (path.to_string(), why));
        assert_eq!(found, unlike.map(|why| ("a".to_owned(), why.to_owned())), "{condition}");
    }
}
