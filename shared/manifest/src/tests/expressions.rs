//! Expressions in a manifest: what they read is looked up, and what can never work is refused.

use derive::{definition::definition, derivation::Derivation};
use expect_test::expect;

use super::OWNERS;
use crate::load;

/// A derivation of todos, lines or feedback, with its other keys.
fn with(derivation: &str) -> String {
    let hours = "[tables.Hour]\npartition-key = \"shop\"\nsort-key = \"span\"\n[entity.Hour]\ntable = \"Hour\"\nderived = true\n\
                 partition-key = \"{shop}\"\nsort-key = \"{grain}#{bucket}\"\nderived-attributes = [\"n\", \"sum\", \"min\", \"max\"]\n";
    [OWNERS, hours, "\n[derivation.it]\n", derivation].concat()
}

/// A count of lines into their order, with this key.
fn counted(key: &str) -> String {
    with(&format!("kind = \"count\"\nfrom = \"Line\"\ninto = \"Order.lines\"\nlink = {{ id = \"order\" }}\n{key}"))
}

fn summed(sum: &str) -> String {
    let count =
        "kind = \"count\"\nfrom = \"Line\"\ninto = \"Order\"\nlink = { id = \"order\" }\nshows = { sum = \"total\" }";
    with(&format!("{count}\nsum = \"{sum}\""))
}

fn linked(link: &str) -> String {
    with(&format!("kind = \"count\"\nfrom = \"Todo\"\ninto = \"User.todoCount\"\nlink = {{ id = \"{link}\" }}"))
}

fn rolled(time: &str, value: &str) -> String {
    with(&format!(
        "kind = \"roll-up\"\nfrom = \"Feedback\"\ninto = \"Hour\"\nlink = {{ shop = \"category\" }}\ntime = \"{time}\"\n\
         value = \"{value}\"\ngrain = \"grain\"\nbucket = \"bucket\"\nshows = {{ count = \"n\", sum = \"sum\", min = \"min\", max = \"max\" }}"
    ))
}

#[test]
fn what_a_manifest_calculates_is_in_its_definition() {
    let lines = [
        counted("where = \"quantity * price > 10 AND lower(id) <> 'x'\""),
        counted("where = { id = \"l1\" }"),
        summed("(quantity + 1) * number(price)"),
        summed("size(price)"),
        linked("before(owner, '::')"),
        linked("'ann'"),
        rolled("millis(createdAt)", "if_not_exists(stars, 0)").replace("\"createdAt\"]", "\"createdAt\", \"stars\"]"),
    ];
    let shown = lines.iter().map(|text| {
        let (schema, catalogue) = load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        catalogue.derivations().next().map(|it: &Derivation| definition(it, &schema)).unwrap()
    });
    expect![[r#"
        count: Line (where quantity * price > 10 AND lower(id) <> 'x') into Order#{order} / -; reads Line.id, Line.order, Line.price, Line.quantity
        count: Line (where id = 'l1') into Order#{order} / -; reads Line.id, Line.order
        count and sum: Line (sum of (quantity + 1) * number(price)) into Order#{order} / -; reads Line.order, Line.price, Line.quantity
        count and sum: Line (sum of size(price)) into Order#{order} / -; reads Line.order, Line.price
        count: Todo into User#{before(owner, '::')} / -; reads Todo.owner
        count: Todo into User#{'ann'} / -
        roll-up: Feedback (if_not_exists(stars, 0) by HOUR and DAY of millis(createdAt) in UTC; arrivals only) into Hour#{category} / {grain}#{bucket}; writes Hour, max, min, n, sum; reads Feedback.category, Feedback.createdAt, Feedback.stars"#]].assert_eq(&shown.collect::<Vec<_>>().join("\n"));
}

#[test]
fn an_expression_that_can_never_work_is_refused() {
    let copied = |link: &str, attributes: &str, found: &str| {
        with(&format!(
            "kind = \"copy\"\nfrom = \"User\"\nto = \"Todo\"\nlink = {{ id = \"{link}\" }}\nattributes = {{ {attributes} }}\n{found}"
        ))
    };
    let wrong = [
        counted("where = \"quantity * prize > 10\""),
        counted("where = \"quantity * price > 'ten'\""),
        counted("where = \"id > 7\""),
        counted("where = \"id * 2 > 7\""),
        counted("where = \"lower(quantity) = 'x' AND quantity * 2 > 1\""),
        summed("quantity % 2"),
        summed("quantity * prize"),
        summed("lower(quantity)"),
        summed("lines.price-2"),
        summed("7"),
        summed("'7' || '8'"),
        linked("before(owner, 7)"),
        linked("before(ownr, '::')"),
        linked("size(owner)"),
        linked("id.x || '::'"),
        copied("before(owner, '::')", "name = \"ownerName\"", ""),
        copied("owner", "\"lower(nam)\" = \"ownerName\"", "found = { index = \"byOwner\" }"),
        rolled("day(millis(createdAt), 'CET')", "createdAt"),
        rolled("createdAt * 1000", "createdAt"),
        rolled("millis(createdAt)", "lower(category)"),
        with(
            "kind = \"latest\"\nfrom = \"Todo\"\nto = \"User\"\nlink = { id = \"before(owner, '::')\" }\n\
             attributes = { owner = \"todoCount\" }",
        ),
    ];
    let errors = wrong.iter().map(|text| load(text).map(drop).expect_err("it is refused").to_string());
    expect![[r#"
        57:1: derivation.it.where: Line has no field or attribute "prize": did you mean "price"?
        57:1: derivation.it.where: is no condition: at character 1: it compares values of several types
        57:1: derivation.it.where: Line.id is in the key (S), and is compared with a value of type N: values of different types are never equal, so compare it with one of type S
        57:1: derivation.it.where: Line.id is in the key (S), and `id * 2` takes N: write number(id) for a number that is stored as text
        57:1: derivation.it.where: Line.quantity is taken by `lower(quantity)` in it (S), and `quantity * 2` takes N: write number(quantity) for a number that is stored as text
        58:1: derivation.it.sum: is no name and no expression: at character 10: an operator (+, -, *, /, ||) or the end is wanted before "%"
        58:1: derivation.it.sum: Line has no field or attribute "prize": did you mean "price"?
        58:1: derivation.it.sum: lower(quantity) is S, and a number (N) is wanted: write number(lower(quantity))
        58:1: derivation.it.sum: "lines.price" is inside of an attribute "lines", and Line has none of this name: there are order, quantity, price
        58:1: derivation.it.sum: Line has no field or attribute "7": there are id, order, quantity, price; one that your items have is declared in attributes
        58:1: derivation.it.sum: reads no attribute: a text stands in single quotes, and a name in none
        56:10: derivation.it.link.id: is no name and no expression: at character 1: the second value is a text in quotes, as in before(a, '::')
        56:10: derivation.it.link.id: Todo has no field or attribute "ownr": did you mean "owner"?
        56:10: derivation.it.link.id: is N, and id of the key of User takes type S: write text(size(owner))
        56:10: derivation.it.link.id: "id.x" is inside of id, which is a field of the key of Todo, and that has no parts
        52:13: derivation.it: `before(owner, '::')` is not searched backwards, so a change of User does not find its Todo items: mirror Todo into an entity with id in its partition key, by link = { id = "before(owner, '::')" }, and write found = "…" with the name of that entity
        57:16: derivation.it.attributes.lower(nam): User has no field or attribute "nam": did you mean "name"?
        57:1: derivation.it.time: is no name and no expression: at character 1: "CET" is no offset from UTC such as '+02:00'
        57:1: derivation.it.time: is N, and a time is text (S), such as 2024-01-15T10:30:00.000Z: write millis(createdAt * 1000) or seconds(createdAt * 1000) for an epoch number
        58:1: derivation.it.value: lower(category) is S, and a number (N) is wanted: write number(lower(category))
        52:13: derivation.it: name what orders the items, as in by = "createdAt": the items of Todo that lead to one User are not consecutive items of one partition: `before(owner, '::')` is calculated, so it is no part of their key"#]].assert_eq(&errors.collect::<Vec<_>>().join("\n"));
}

#[test]
fn several_counts_create_the_items_of_one_entity() {
    let second = "kind = \"count\"\nfrom = \"Feedback\"\ninto = \"Category\"\ncreates = true\nlink = { date = \"day(createdAt)\" }\n\
                  [derivation.other]\nkind = \"count\"\nfrom = \"Feedback\"\ninto = \"Category.feedbacks\"\ncreates = true\n\
                  link = { date = \"month(createdAt)\" }";
    let (schema, catalogue) = load(&with(second)).unwrap_or_else(|error| panic!("{error}"));
    let made = catalogue.derivations().filter(|it| it.kind.name() == "counted item");
    let made: Vec<String> = made.map(|it| format!("{} = {}", it.name, definition(it, &schema))).collect();
    expect!["it-item = counted item: Counter (while it or other is above zero) into Category#{category} / {date}; writes Category; reads Counter.it, Counter.other"].assert_eq(&made.join("\n"));
}

#[test]
fn a_roll_up_has_the_grains_that_it_names() {
    let with_grains = |grains: &str| {
        rolled("createdAt", "stars").replace("\"createdAt\"]", "\"createdAt\", \"stars\"]") + "\ngrains = " + grains
    };
    let (schema, catalogue) =
        load(&with_grains("[\"month\", \"week\", \"day\"]")).unwrap_or_else(|error| panic!("{error}"));
    let rolled = catalogue.derivations().next().map(|it| definition(it, &schema)).unwrap();
    assert!(rolled.contains("(stars by DAY and WEEK and MONTH of createdAt in UTC; arrivals only)"), "{rolled}");
    let errors = ["[\"year\"]", "[]", "[\"day\", \"day\"]", "\"day\""]
        .map(|grains| load(&with_grains(grains)).map(drop).unwrap_err().to_string());
    expect![[r#"
        62:11: derivation.it.grains: there is no time span "year": there are hour, day, week, month
        62:1: derivation.it.grains: names no time span: name one, as in ["day"]
        62:18: derivation.it.grains: names "day" twice
        62:1: derivation.it.grains: is a text: write a list of texts, as in ["a", "b"]"#]]
    .assert_eq(&errors.join("\n"));
}
