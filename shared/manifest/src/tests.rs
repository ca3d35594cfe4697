//! Valid manifests, and many invalid ones.

mod access;
mod bytes;
mod expressions;
mod form;
mod found;
mod key_forms;
mod kinds;
mod limits;
mod meeting;
mod misled;
mod names;
mod ordered;
mod paths;
mod refused;
mod renamed;
mod tables;
mod types;
mod unread;
mod windows;

use derive::derivation::Derivation;
use expect_test::{Expect, expect};
use keys::{entity::Definition, key::Key};
use serde_dynamo::AttributeValue;

use super::*;

/// A manifest with a part of every kind.
const SHOP: &str = r##"[table]
partition-key = "pk"
sort-key = "sk"
type = "Type"
time-to-live = "expiresOn"

[index.byCustomer]
partition-key = "gpk"
sort-key = "gsk"
projection = ["Type", "status"]

[entity.Customer]
partition-key = "CUSTOMER#{customerId}"
sort-key = "CUSTOMER#{customerId}"
attributes = ["customerName"]
derived-attributes = ["orderCount"]

[entity.Order]
partition-key = "SHOP#{shopId}"
sort-key = "ORDER#{orderedOn}#{orderId}"
attributes = ["buyerId", "status", "note"]
derived-attributes = ["buyerName"]
[entity.Order.index.byCustomer]
partition-key = "CUSTOMER#{buyerId}"
sort-key = "ORDER#{orderedOn}#{orderId}"
only-if = { status = "paid" }

[entity.OrderById]
partition-key = "ORDER#{orderId}"
sort-key = "ORDER#{orderId}"
derived = true
attributes = ["buyerId", "status"]
derived-attributes = ["Claims", "customerName"]

[derivation.order-count]
kind = "count"
from = "Order"
into = "Customer.orderCount"
link = { customerId = "buyerId" }
where = { status = "paid" }
shards = 4

[derivation.order-by-id]
kind = "mirror"
from = "Order"
to = "OrderById"
except = ["note"]

[derivation.buyer-name]
kind = "copy"
from = "Customer"
to = "Order"
link = { customerId = "buyerId" }
attributes = { customerName = "buyerName" }
found = { index = "byCustomer" }

[derivation.buyer-name-by-id]
kind = "copy"
from = "Customer"
to = "OrderById"
link = { customerId = "buyerId" }
attributes = ["customerName"]
found = { through = "Order", index = "byCustomer", by = { buyerId = "customerId" } }
"##;

/// Checks the error about the manifest with one piece of its text replaced.
#[track_caller]
fn refused(piece: &str, instead: &str, wanted: &Expect) {
    assert_eq!(SHOP.matches(piece).count(), 1, "{piece} stands there once");
    refused_whole(&SHOP.replace(piece, instead), wanted);
}

#[track_caller]
fn refused_whole(text: &str, wanted: &Expect) {
    wanted.assert_eq(&load(text).expect_err("it is refused").to_string());
}

#[test]
fn a_file_that_is_not_there_or_wrong_is_named() {
    let error = read(Path::new("no/such/ripple.toml")).expect_err("there is no such file");
    expect!["cannot read no/such/ripple.toml"].assert_eq(&error.to_string());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let error = read(Path::new(file)).expect_err("it is another manifest").to_string();
    assert_eq!(
        error.strip_prefix(file),
        Some(":1:2: package: there is no such key: there are table, index, tables, entity, derivation, access")
    );
}

fn described(derivation: &Derivation) -> String {
    format!("{} {:?}", derivation.name, derivation.kind)
}

#[test]
fn everything_that_a_manifest_can_say_is_in_its_values() {
    let (schema, catalogue) = load(SHOP).unwrap();
    expect![[r#"
        Layout {
            pk: "pk",
            sk: "sk",
            entity_type: Some(
                "Type",
            ),
            time_to_live: Some(
                "expiresOn",
            ),
            indexes: [
                Index {
                    name: "byCustomer",
                    pk: "gpk",
                    sk: "gsk",
                    projection: Some(
                        [
                            "Type",
                            "status",
                        ],
                    ),
                },
            ],
            forms: None,
            undeclared_keys: {},
        }"#]]
    .assert_eq(&format!("{:#?}", schema.layout));
    let entity = |definition: &Definition| {
        let Definition { name, key, indexes, derived, attributes, derived_attributes, .. } = definition;
        let indexes: Vec<String> = indexes
            .iter()
            .map(|index| format!("\n  {} {} / {} {:?}", index.index, index.key.pk, index.key.sk, index.only_if))
            .collect();
        let sort = if *derived { "derived" } else { "ground" };
        format!("{sort} {name} {} / {} {attributes:?} {derived_attributes:?}{}", key.pk, key.sk, indexes.concat())
    };
    expect![[r#"
        derived Counter {TargetPK*} / {TargetSK*}#COUNT#{Derivation}#{Satellite:2} [] ["Value", "Sum"]
        ground Customer CUSTOMER#{customerId} / CUSTOMER#{customerId} ["customerName"] ["orderCount"]
        ground Order SHOP#{shopId} / ORDER#{orderedOn}#{orderId} ["buyerId", "status", "note"] ["buyerName"]
          byCustomer CUSTOMER#{buyerId} / ORDER#{orderedOn}#{orderId} Some(Is { attribute: "status", any_of: ["paid"] })
        derived OrderById ORDER#{orderId} / ORDER#{orderId} ["buyerId", "status"] ["Claims", "customerName"]"#]]
    .assert_eq(&schema.entities().map(entity).collect::<Vec<_>>().join("\n"));
    expect![[r#"
        order-count Count { source: "Order", condition: Test(Equal, [Path(DocumentPath { attribute: "status", steps: [] }), Literal(S("paid"))]), target: "Customer", link: Link([("customerId", "buyerId")]), sum: None, history: false, expired_stays: false, each: None }
        order-count-display Display { count: "order-count", target: "Customer", shows: Count, attribute: "orderCount", zero: Write }
        order-by-id Mirror { source: "Order", target: "OrderById", link: Link([("orderId", "orderId")]), condition: Always, each: None, except: ["note"] }
        buyer-name Copy { source: "Customer", target: "Order", link: Link([("customerId", "buyerId")]), condition: Always, attributes: [("customerName", "buyerName")], found: FoundBy { via: "Order", index: Some("byCustomer"), by: Link([("buyerId", "customerId")]) } }
        buyer-name-by-id Copy { source: "Customer", target: "OrderById", link: Link([("customerId", "buyerId")]), condition: Always, attributes: [("customerName", "customerName")], found: FoundBy { via: "Order", index: Some("byCustomer"), by: Link([("buyerId", "customerId")]) } }"#]].assert_eq(&catalogue.derivations().map(described).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_count_says_what_stands_for_zero() {
    let with = |zero: &str| SHOP.replace("shards = 4", &format!("shards = 4\nzero = {zero}"));
    for (zero, is) in [("\"absent\"", "Absent"), ("\"write\"", "Write"), ("\"always\"", "Always")] {
        let (_, catalogue) = load(&with(zero)).unwrap();
        let display = catalogue.derivations().map(described).find(|it| it.contains("Display")).unwrap();
        assert!(display.ends_with(&format!("zero: {is} }}")), "{display}");
    }
    refused_whole(
        &with("\"absnet\""),
        &expect![[r#"42:1: derivation.order-count.zero: there is no value "absnet": did you mean "absent"?"#]],
    );
    refused_whole(&with("0"), &expect!["42:1: derivation.order-count.zero: is a whole number: write a text in quotes"]);
    let unseen = with("\"write\"").replace("into = \"Customer.orderCount\"", "into = \"Customer\"");
    refused_whole(
        &unseen,
        &expect![[
            r#"42:1: derivation.order-count.zero: zero says how a count of zero is shown, and this count is not shown: name an attribute, as in into = "User.followerCount", or leave zero out"#
        ]],
    );
}

#[test]
fn a_sort_key_that_is_the_partition_key_links_and_reads_back() {
    let (schema, _) = load(SHOP).unwrap();
    let order = schema.entity("OrderById").unwrap();
    let key = Key::new("ORDER#o1", "ORDER#o1");
    assert_eq!(order.key.parse_key(&key).unwrap().get("orderId"), Some("o1"));
    assert_eq!(order.key.parse_key(&Key::new("ORDER#o1", "ORDER#o2")), None);
    let item = keys::item::Item::new();
    let source = Key::new("SHOP#s", "ORDER#2024-01-15#o#1");
    assert_eq!(schema.entity("Order").unwrap().key.parse_key(&source), None);
    let source = Key::new("SHOP#s", "ORDER#2024-01-15#o%231");
    let fields = schema.entity("Order").unwrap().fields(&source, &item).unwrap();
    assert_eq!(fields.get("orderedOn"), Some("2024-01-15"));
    assert_eq!(order.build(&fields).unwrap(), Key::new("ORDER#o%231", "ORDER#o%231"));
}

#[test]
fn the_example_is_a_manifest() {
    let (schema, catalogue) = load(include_str!("../../../examples/own-table/ripple.toml")).unwrap();
    assert_eq!(schema.layout.entity_type.as_deref(), Some("Type"));
    let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    expect!["follower-count follower-count-display followed-by followed-name follower-name"]
        .assert_eq(&names.join(" "));
}

#[test]
fn without_a_type_no_key_may_be_of_two_entities() {
    let text = SHOP.replace("type = \"Type\"\n", "");
    let (schema, _) = load(&text).unwrap();
    let is = |pk: &str, sk: &str, names: Option<&str>| {
        let names = names.map(|name| ("RippleType", AttributeValue::S(name.to_owned())));
        let item = names.into_iter().collect::<keys::item::Item>();
        schema.image(&Key::new(pk, sk), &item).map(|image| image.definition.name.clone())
    };
    assert_eq!(is("SHOP#s", "ORDER#2024-01-15#o1", None).as_deref(), Some("Order"));
    assert_eq!(is("SHOP#s", "ORDER#2024-01-15", None), None);
    assert_eq!(is("ORDER#o1", "ORDER#o1", None), None, "an item that names no derived entity is the application's");
    assert_eq!(is("ORDER#o1", "ORDER#o1", Some("OrderById")).as_deref(), Some("OrderById"));
    assert_eq!(is("ORDER#o1", "ORDER#o1#COUNT#x#00", Some("Counter")).as_deref(), Some("Counter"));

    let alike = "\"CUSTOMER#{customerId}\"\nsort-key = \"CUSTOMER#{customerId}\"";
    refused_whole(
        &text.replace(alike, "\"SHOP#{id}\"\nsort-key = \"ORDER#{a}#{b}\""),
        &expect![[
            r#"17:9: entity.Order: an item of Order (SHOP#{shopId} / ORDER#{orderedOn}#{orderId}) and one of Customer (SHOP#{id} / ORDER#{a}#{b}) can have the same key, such as SHOP#x / ORDER#x#x: name the attribute that tells them apart, as in [table] type = "…""#
        ]],
    );
    refused_whole(
        &text.replace(alike, "\"SHOP#{id}\"\nsort-key = \"{a}#COUNT#{b}#{c}\""),
        &expect![[
            r#"11:9: entity.Customer: an item of Customer (SHOP#{id} / {a}#COUNT#{b}#{c}) and one of Counter ({TargetPK*} / {TargetSK*}#COUNT#{Derivation}#{Satellite:2}) can have the same key, such as SHOP#x / x#COUNT#x#00: name the attribute that tells them apart, as in [table] type = "…""#
        ]],
    );
}

/// The page that explains every key.
const PAGE: &str = include_str!("../../../docs/own-table.md");

/// What the expressions of the page read.
const OWNERS: &str = r#"
[tables.User]
partition-key = "id"
[tables.Todo]
partition-key = "id"
[tables.UserTodo]
partition-key = "userId"
sort-key = "id"
[tables.Order]
partition-key = "id"
[tables.Line]
partition-key = "id"
[tables.Feedback]
partition-key = "id"
[tables.Category]
partition-key = "category"
sort-key = "date"
[entity.User]
table = "User"
attributes = ["name"]
derived-attributes = ["todoCount"]
[entity.Todo]
table = "Todo"
attributes = ["owner"]
derived-attributes = ["ownerName"]
[entity.UserTodo]
table = "UserTodo"
derived = true
[entity.Order]
table = "Order"
derived-attributes = ["lines", "total"]
[entity.Line]
table = "Line"
attributes = ["order", "quantity", "price"]
[entity.Feedback]
table = "Feedback"
attributes = ["category", "createdAt"]
[entity.Category]
table = "Category"
derived = true
derived-attributes = ["feedbacks"]
"#;

/// What the windows and calculated attributes of the page read.
const SONGS: &str = r##"
[table]
partition-key = "pk"
sort-key = "sk"
type = "type"
[entity.Song]
partition-key = "SONG#{songId}"
sort-key = "SONG"
derived-attributes = ["playsThisWeek"]
[entity.SongDay]
partition-key = "SONG#{songId}"
sort-key = "DAY#{day}"
derived = true
derived-attributes = ["plays"]
[entity.Play]
partition-key = "USER#{userId}"
sort-key = "PLAY#{at}"
attributes = ["songId"]
[entity.Project]
partition-key = "PROJECT#{projectId}"
sort-key = "PROJECT"
derived-attributes = ["doneCount", "taskCount", "percentDone"]
"##;

#[test]
fn the_file_in_the_documentation_is_a_manifest() {
    let blocks: Vec<&str> = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [
        file,
        of_several,
        calculated,
        from_owners,
        by_value,
        of_levels,
        of_expired,
        of_members,
        of_some,
        window,
        of_itself,
        unread,
        of_unknown,
        of_removed,
        ranking,
    ] = blocks.as_slice()
    else {
        panic!("two files and thirteen parts are shown")
    };
    let base = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"type\"\n[entity.User]\npartition-key = \
                \"USER#{userId}\"\nsort-key = \"USER\"\nderived-attributes = [\"orderStatuses\"]\n[entity.Order]\n\
                partition-key = \"USER#{userId}\"\nsort-key = \"ORDER#{orderId}\"\nattributes = [\"status\"]\n";
    let product = "[entity.Product]\npartition-key = \"PRODUCT#{productId}\"\nsort-key = \"PRODUCT\"\nattributes = \
                   [\"categoryId\"]\nderived-attributes = [\"unitsSold\"]\n";
    load(&[base, product, by_value, of_members, unread, ranking].concat()).unwrap_or_else(|error| panic!("{error}"));
    let tables = "[tables.Post]\npartition-key = \"id\"\n[tables.Comment]\npartition-key = \"id\"\n\
                  [tables.Comment.index.byPost]\npartition-key = \"postId\"\n[entity.Post]\ntable = \"Post\"\n\
                  [entity.Comment]\ntable = \"Comment\"\nattributes = [\"postId\", \"ancestorIds\"]\nderived-attributes = \
                  [\"replies\"]\n";
    load(&[tables, of_levels, of_removed].concat()).unwrap_or_else(|error| panic!("{error}"));
    let receipts = "[tables.Account]\npartition-key = \"accountId\"\n[tables.Receipt]\npartition-key = \"id\"\n\
                    time-to-live = \"expiresAt\"\n[entity.Account]\ntable = \"Account\"\nderived-attributes = \
                    [\"receiptCount\"]\n[entity.Receipt]\ntable = \"Receipt\"\nattributes = [\"accountId\"]\n";
    let offers = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"type\"\n[entity.Product]\npartition-key = \
                  \"PRODUCT#{productId}\"\nsort-key = \"PRODUCT\"\nderived-attributes = [\"lowestPrice\"]\n[entity.Offer]\n\
                  partition-key = \"OFFER#{offerId}\"\nsort-key = \"OFFER\"\nattributes = [\"productId\", \"price\", \
                  \"active\"]\n[entity.Room]\npartition-key = \"ROOM#{room}\"\nsort-key = \"ROOM\"\nderived-attributes = \
                  [\"lastText\", \"lastAt\"]\n[entity.Message]\npartition-key = \"MESSAGE#{id}\"\nsort-key = \"MESSAGE\"\n\
                  attributes = [\"room\", \"text\", \"sentAt\", \"deletedAt\"]\n";
    load(&[offers, of_some].concat()).unwrap_or_else(|error| panic!("{error}"));
    load(&[SONGS, window, of_itself].concat()).unwrap_or_else(|error| panic!("{error}"));
    load(&[receipts, of_expired].concat()).unwrap_or_else(|error| panic!("{error}"));
    load(&["[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\n", of_unknown].concat())
        .unwrap_or_else(|error| panic!("{error}"));
    load(&[OWNERS, calculated, from_owners].concat()).unwrap_or_else(|error| panic!("{error}"));
    let (schema, _) = load(of_several).unwrap();
    assert!(schema.layout.forms.is_some());
    let (_, catalogue) = load(file).unwrap();
    let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    expect!["order-count order-count-display order-of-user buyer"].assert_eq(&names.join(" "));
    let wrong = file.replacen("from = \"Order\"", "from = \"Ordre\"", 1);
    let described = format!("ripple.toml:{}", load(&wrong).unwrap_err());
    assert!(PAGE.contains(&described), "{described}");
}

#[test]
fn the_reference_is_what_the_parser_takes() {
    expect_test::expect_file!["../../../docs/manifest.md"].assert_eq(&reference::reference());
}
