//! Facts about filters. U7 and U7b are AWS's pages on filtering; LS was recorded on AWS. See
//! `tools/stream/README.md`.

use serde_json::{Value, json};

use super::{FILTERS_MAX, Filters, PATTERN_CHARS_MAX};

fn filters(patterns: &[Value]) -> Filters {
    Filters::new(patterns.iter().map(Value::to_string)).unwrap()
}

/// Whether one pattern matches a record.
fn matches(pattern: &Value, record: &Value) -> bool {
    filters(std::slice::from_ref(pattern)).matches(&record.to_string())
}

/// The values of a field that match this list.
fn matched<'a>(wanted: &Value, values: &'a [Value]) -> Vec<&'a Value> {
    values.iter().filter(|value| matches(&json!({ "a": wanted }), &json!({ "a": value }))).collect()
}

fn refused(pattern: &str) -> String {
    Filters::new([pattern]).unwrap_err().to_string()
}

/// A record with these attributes.
fn record(image: &Value) -> Value {
    json!({ "eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb": { "NewImage": image } })
}

/// A pattern for one attribute.
fn attribute(name: &str, wanted: &Value) -> Value {
    json!({ "dynamodb": { "NewImage": { name: wanted } } })
}

/// Source: U7b, the list of operators (Null, Empty).
#[test]
fn null_and_empty_match_what_is_so_and_not_what_is_missing() {
    let values = [json!(null), json!(""), json!("null"), json!(0), json!({})];
    assert_eq!(matched(&json!([null]), &values), [&json!(null)]);
    assert_eq!(matched(&json!([""]), &values), [&json!("")]);
    assert!(!matches(&json!({ "a": [null] }), &json!({})));
    assert!(!matches(&json!({ "a": [""] }), &json!({})));
}

/// Source: U7b: "Equals", and strings match exactly, case included.
#[test]
fn text_matches_exactly() {
    let values = [json!("Alice"), json!("alice"), json!("Alice "), json!(["Alice"]), json!(true), json!("true")];
    assert_eq!(matched(&json!(["Alice"]), &values), [&json!("Alice"), &json!(["Alice"])]);
    assert_eq!(matched(&json!([true]), &values), [&json!(true)]);
    assert!(matches(&json!({ "a": ["\u{e9}\n"] }), &serde_json::from_str(r#"{"a":"\u00e9\u000a"}"#).unwrap()));
}

/// Source: U7b: "300, 300.0, and 3.0e2 are not considered equal".
#[test]
fn numbers_compare_as_they_are_written() {
    let pattern = Filters::new([r#"{"a":[300]}"#]).unwrap();
    assert!(pattern.matches(r#"{"a":300}"#));
    for written in ["300.0", "3.0e2", "\"300\""] {
        assert!(!pattern.matches(&format!(r#"{{"a":{written}}}"#)), "{written}");
    }
}

/// Source: U7b, "Equals (ignore case)".
#[test]
fn equals_ignore_case_matches_upper_and_lower_case() {
    let values = [json!("alice"), json!("ALICE"), json!("alic"), json!(null)];
    assert_eq!(matched(&json!([{ "equals-ignore-case": "aLice" }]), &values), [&json!("alice"), &json!("ALICE")]);
}

/// Source: U7b, "Not".
#[test]
fn anything_but_matches_what_is_there_and_is_none_of_these() {
    let values = [json!("a"), json!("b"), json!("c"), json!(1), json!(null), json!({})];
    assert_eq!(matched(&json!([{ "anything-but": "a" }]), &values).len(), 4, "an object is no leaf");
    assert_eq!(matched(&json!([{ "anything-but": ["a", "b"] }]), &values), [&json!("c"), &json!(1), &json!(null)]);
    assert!(!matches(&json!({ "a": [{ "anything-but": ["a"] }] }), &json!({})), "nothing is there");
    let numbers = [json!(1), json!(1.0), json!(2), json!("1")];
    assert_eq!(matched(&json!([{ "anything-but": 1 }]), &numbers), [&json!(2), &json!("1")]);
    assert_eq!(matched(&json!([{ "anything-but": [1, 2] }]), &numbers), [&json!("1")]);
}

/// Source: U7b, "Numeric (equals)" and "Numeric (range)".
#[test]
fn numeric_compares_by_value() {
    let values = [json!(-1), json!(0), json!(5.0), json!(10), json!("5"), json!(null)];
    let matched = |terms: Value| matched(&json!([{ "numeric": terms }]), &values).len();
    assert_eq!(matched(json!(["=", 5])), 1);
    assert_eq!(matched(json!(["<", 5])), 2);
    assert_eq!(matched(json!(["<=", 5])), 3);
    assert_eq!(matched(json!([">", 0])), 2);
    assert_eq!(matched(json!([">=", 0])), 3);
    assert_eq!(matched(json!([">", 0, "<=", 10])), 2);
    assert_eq!(matched(json!([">=", -1, "<", 10])), 3);
}

/// Source: U7; LS `numeric_filter`, where neither operator matches the second item, 101.
#[test]
fn numeric_never_matches_a_number_attribute() {
    let pattern = attribute("n", &json!({ "N": [{ "numeric": [">", 100] }, { "anything-but": "101" }] }));
    assert!(matches(&pattern, &record(&json!({ "n": { "N": "42" } }))));
    assert!(!matches(&pattern, &record(&json!({ "n": { "N": "101" } }))));
    assert!(matches(&attribute("n", &json!({ "N": ["101"] })), &record(&json!({ "n": { "N": "101" } }))));
}

/// Source: LS `date_time_conversion`: filters see the time as a number.
#[test]
fn numeric_matches_the_creation_time() {
    let pattern = json!({ "dynamodb": { "ApproximateCreationDateTime": [{ "numeric": [">", 0] }] } });
    assert!(matches(&pattern, &json!({ "dynamodb": { "ApproximateCreationDateTime": 1_480_642_020.0 } })));
}

/// Source: U7b, "Exists" and "Does not exist".
#[test]
fn exists_asks_whether_there_is_a_value() {
    let values = [json!("a"), json!(null), json!(""), json!(0), json!([]), json!(["a"])];
    assert_eq!(matched(&json!([{ "exists": true }]), &values).len(), 5, "an empty list has no value");
    assert_eq!(matched(&json!([{ "exists": false }]), &values), [&json!([])]);
    let not_there = json!({ "a": { "b": { "S": [{ "exists": false }] } } });
    assert!(matches(&not_there, &json!({})), "nor is there anything on the way");
    assert!(matches(&not_there, &json!({ "a": { "b": { "N": "1" } } })));
    assert!(!matches(&not_there, &json!({ "a": { "b": { "S": "1" } } })));
}

/// Source: LS `exists_false_filter`, which matched an item with the attribute; LS `exists_filter_type`.
#[test]
fn exists_looks_at_leaves_only() {
    let has_it = record(&json!({ "presentKey": { "S": "presentValue" } }));
    assert!(matches(&attribute("presentKey", &json!([{ "exists": false }])), &has_it));
    assert!(!matches(&attribute("presentKey", &json!([{ "exists": true }])), &has_it));
    assert!(matches(&attribute("presentKey", &json!({ "S": [{ "exists": true }] })), &has_it));
    let has_not = record(&json!({ "id": { "S": "x" } }));
    assert!(!matches(&attribute("presentKey", &json!({ "S": [{ "exists": true }] })), &has_not));
}

/// Source: LS `content_filter_type`: "Omitting the S does NOT match".
#[test]
fn an_attribute_is_matched_by_its_type() {
    let record = record(&json!({ "k": { "S": "v" } }));
    assert!(matches(&attribute("k", &json!({ "S": ["v"] })), &record));
    assert!(!matches(&attribute("k", &json!(["v"])), &record));
}

/// Source: U7b, "Begins with" and "Ends with"; LS `prefix_filter`. For ignored case: the table of operators in
/// `EventBridge`'s guide, for pipes, which use the same pollers.
#[test]
fn prefix_and_suffix_match_text() {
    let values = [json!("us-1-other"), json!("other-us-1"), json!("US-1"), json!(1)];
    assert_eq!(matched(&json!([{ "prefix": "us-1" }]), &values), [&values[0]]);
    assert_eq!(matched(&json!([{ "suffix": "us-1" }]), &values), [&values[1]]);
    assert_eq!(matched(&json!([{ "prefix": { "equals-ignore-case": "Us-1" } }]), &values), [&values[0], &values[2]]);
    assert_eq!(matched(&json!([{ "suffix": { "equals-ignore-case": "Us-1" } }]), &values), [&values[1], &values[2]]);
}

/// Source: U7b, "Or (multiple fields)".
#[test]
fn or_wants_one_of_its_objects() {
    let pattern = json!({ "c": ["x"], "$or": [{ "a": ["1"] }, { "b": ["2"], "d": ["4"] }] });
    assert!(matches(&pattern, &json!({ "c": "x", "a": "1" })));
    assert!(matches(&pattern, &json!({ "c": "x", "b": "2", "d": "4" })));
    assert!(!matches(&pattern, &json!({ "c": "x", "b": "2" })));
    assert!(!matches(&pattern, &json!({ "a": "1" })));
    let nested = json!({ "dynamodb": { "$or": [{ "NewImage": { "a": { "S": ["1"] } } }, { "OldImage": { "a": { "S": ["1"] } } }] } });
    assert!(matches(&nested, &json!({ "dynamodb": { "OldImage": { "a": { "S": "1" } } } })));
}

/// Source: U7b, "Or" and "And"; LS `content_or_filter`, `content_multiple_filters`.
#[test]
fn values_of_a_list_are_or_and_fields_are_and() {
    let pattern = json!({ "eventName": ["INSERT", "MODIFY"], "eventSource": ["aws:dynamodb"] });
    assert!(matches(&pattern, &json!({ "eventName": "MODIFY", "eventSource": "aws:dynamodb" })));
    assert!(!matches(&pattern, &json!({ "eventName": "REMOVE", "eventSource": "aws:dynamodb" })));
    assert!(!matches(&pattern, &json!({ "eventName": "MODIFY", "eventSource": "aws:sqs" })));
    assert!(!matches(&pattern, &json!({ "eventName": "MODIFY" })));
}

/// Source: U7b: "If an event satisfies any one of these filters, Lambda sends the event to your function."
#[test]
fn several_filters_are_or_and_none_lets_all_through() {
    let two = filters(&[json!({ "eventName": ["INSERT"] }), json!({ "eventName": ["REMOVE"] })]);
    let through = |name: &str| two.matches(&json!({ "eventName": name }).to_string());
    assert!(through("INSERT") && through("REMOVE") && !through("MODIFY"));
    assert!(Filters::default().matches(r#"{"eventName":"MODIFY"}"#));
}

/// Source: LS (filters on `eventName` match); the TTL guide for `userIdentity`. U7 says "only the `dynamodb` key".
#[test]
fn metadata_at_the_top_of_a_record_is_matched() {
    let by_ttl = json!({ "userIdentity": { "type": ["Service"], "principalId": ["dynamodb.amazonaws.com"] } });
    let removed = |identity: Value| json!({ "eventName": "REMOVE", "userIdentity": identity });
    assert!(matches(&by_ttl, &removed(json!({ "type": "Service", "principalId": "dynamodb.amazonaws.com" }))));
    assert!(!matches(&by_ttl, &json!({ "eventName": "REMOVE" })));
    assert!(matches(&json!({ "eventName": ["REMOVE"] }), &removed(json!(null))));
}

/// Source: U7b: "the last one is used"; U7's own example of AND repeats `dynamodb`.
#[test]
fn of_a_key_that_is_written_twice_the_last_counts() {
    let pattern = Filters::new([r#"{"a":["1"],"a":["2"]}"#]).unwrap();
    assert!(pattern.matches(r#"{"a":"2"}"#));
    assert!(!pattern.matches(r#"{"a":"1"}"#));
    assert!(pattern.matches(r#"{"a":"1","a":"2"}"#));
}

/// Source: U7b, the table of what happens to incoming data.
#[test]
fn a_record_that_is_no_json_is_dropped() {
    let pattern = filters(&[json!({ "a": [{ "exists": false }] })]);
    assert!(pattern.matches("{}"));
    assert!(!pattern.matches("not json"));
}

/// Our decision, after `event-ruler`'s "JSON array matching": a set or list attribute is an array in a record.
#[test]
fn a_list_matches_by_one_element_and_objects_in_it_whole() {
    let tags = attribute("tags", &json!({ "SS": ["a"] }));
    assert!(matches(&tags, &record(&json!({ "tags": { "SS": ["b", "a"] } }))));
    assert!(!matches(&tags, &record(&json!({ "tags": { "SS": ["b"] } }))));
    let lines = attribute("lines", &json!({ "L": { "M": { "x": { "S": ["1"] }, "y": { "S": ["2"] } } } }));
    let line = |x: &str, y: &str| json!({ "M": { "x": { "S": x }, "y": { "S": y } } });
    assert!(matches(&lines, &record(&json!({ "lines": { "L": [line("0", "0"), line("1", "2")] } }))));
    assert!(!matches(&lines, &record(&json!({ "lines": { "L": [line("1", "0"), line("0", "2")] } }))));
}

/// Source: LS for the first two; `event-ruler` for the others. The first sentence of the message is AWS's.
#[test]
fn an_invalid_pattern_is_refused_with_the_words_of_aws() {
    for pattern in [
        "single-string",
        r#"[{"eventName": ["INSERT"=123}]"#,
        "",
        "{}",
        "[]",
        "\"text\"",
        r#"{"a":"b"}"#,
        r#"{"a":[]}"#,
        r#"{"a":{}}"#,
        r#"{"a":[["b"]]}"#,
        r#"{"a":[{}]}"#,
        r#"{"a":[{"prefix":1}]}"#,
        r#"{"a":[{"prefix":"a","suffix":"b"}]}"#,
        r#"{"a":[{"exists":"true"}]}"#,
        r#"{"a":[{"anything-but":[]}]}"#,
        r#"{"a":[{"anything-but":["a",1]}]}"#,
        r#"{"a":[{"anything-but":null}]}"#,
        r#"{"a":[{"numeric":[">"]}]}"#,
        r#"{"a":[{"numeric":["!=",1]}]}"#,
        r#"{"a":[{"numeric":["<",1,">",2]}]}"#,
        r#"{"a":[{"numeric":[">",2,"<",1]}]}"#,
        r#"{"a":[{"numeric":["=","1"]}]}"#,
        r#"{"a":[{"numeric":[">",6000000000]}]}"#,
        r#"{"$or":[{"a":["b"]}]}"#,
        r#"{"$or":{"a":["b"]}}"#,
        r#"{"$or":[{"prefix":["b"]},{"a":["b"]}]}"#,
    ] {
        assert!(refused(pattern).starts_with("Invalid filter pattern definition. Pattern 1: "), "{pattern}");
    }
}

/// Source: the table of operators in `EventBridge`'s guide. Pipes do not have these operators, and Lambda's page lists
/// none of them.
#[test]
fn what_only_event_buses_have_is_refused() {
    for operator in [
        r#"{"wildcard":"a*"}"#,
        r#"{"cidr":"10.0.0.0/24"}"#,
        r#"{"anything-but":{"prefix":"a"}}"#,
        r#"{"anything-but":{"suffix":"a"}}"#,
        r#"{"anything-but":{"equals-ignore-case":"a"}}"#,
    ] {
        assert!(refused(&format!(r#"{{"a":[{operator}]}}"#)).starts_with("Invalid filter pattern"), "{operator}");
    }
    let text = "Invalid filter pattern definition. Pattern 1: wildcard is no operator of Lambda's filters";
    assert_eq!(refused(r#"{"a":[{"wildcard":"a*"}]}"#), text);
}

/// Source: BC, `Filter.Pattern` and Lambda's quotas: 5 filters, 10 on request.
#[test]
fn a_pattern_has_4096_characters_and_a_mapping_ten_filters_at_most() {
    let pattern = |n_chars: usize| format!(r#"{{"a":["{}"]}}"#, "é".repeat(n_chars - 10));
    assert!(Filters::new([pattern(PATTERN_CHARS_MAX)]).is_ok());
    let text = "filter pattern 1 has 4097 characters: it may have 4096";
    assert_eq!(Filters::new([pattern(PATTERN_CHARS_MAX + 1)]).unwrap_err().to_string(), text);
    let many = |n: usize| Filters::new(std::iter::repeat_n(r#"{"a":["b"]}"#, n));
    assert_eq!(many(FILTERS_MAX).unwrap().len(), 10);
    let text = "there are 11 filters: a mapping may have 5, or 10 with a raised quota";
    assert_eq!(many(FILTERS_MAX + 1).unwrap_err().to_string(), text);
}
