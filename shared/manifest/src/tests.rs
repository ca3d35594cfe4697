//! Valid manifests, and many invalid ones.

mod access;
mod kinds;
mod names;
mod tables;

use derive::{definition::definition, derivation::Derivation};
use expect_test::{Expect, expect};
use keys::{entity::Definition, key::Key};
use serde_dynamo::AttributeValue;

use crate::*;

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

/// Checks the errors about the shop, a line for each piece of its text that is replaced alone.
#[track_caller]
fn refused(cases: &[(&str, &str)], wanted: &Expect) {
    each_refused(SHOP, cases, wanted);
}

/// Checks the errors about a manifest, a line for each piece of its text that is replaced alone.
#[track_caller]
fn each_refused(text: &str, cases: &[(&str, &str)], wanted: &Expect) {
    let error = |&(piece, instead): &(&str, &str)| {
        assert_eq!(text.matches(piece).count(), 1, "{piece} stands there once");
        format!("{}\n", load(&text.replace(piece, instead)).expect_err(instead))
    };
    wanted.assert_eq(&cases.iter().map(error).collect::<String>());
}

#[track_caller]
fn refused_whole(text: &str, wanted: &Expect) {
    wanted.assert_eq(&load(text).expect_err("it is refused").to_string());
}

#[test]
fn a_file_is_read_up_to_the_limit_and_one_without_an_end_is_refused() {
    let own = Path::new("src/section.rs");
    let whole = file_text(own, 1_000_000).unwrap();
    let n_bytes = u64::try_from(whole.len()).unwrap();
    assert_eq!(file_text(own, n_bytes).unwrap(), whole);
    assert!(whole.ends_with("}\n") && file_text(own, n_bytes - 1).is_err());
    let error = file_text(Path::new("/dev/zero"), 2_000_000).unwrap_err().to_string();
    assert_eq!(error, "it is longer than 2 MB");
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
    expect_test::expect_file!["../../../docs/manifest.md"].assert_eq(&syntax::reference());
}

// ---- mistakes of form: not TOML, unknown and missing keys, values of another type ----

#[test]
fn a_table_may_say_that_its_keys_escape_nothing() {
    let (schema, _) = load(&SHOP.replace("type = \"Type\"", "type = \"Type\"\nescape = \"none\"")).unwrap();
    let order = schema.entity("OrderById").unwrap();
    let key = Key::new("ORDER#r_100%", "ORDER#r_100%");
    let fields = order.key.parse_key(&key).unwrap();
    assert_eq!((fields.get("orderId"), order.build(&fields).unwrap()), (Some("r_100%"), key));
    let error = order.build(&[("orderId", "a#b")].into_iter().collect()).unwrap_err();
    assert_eq!(error.to_string(), "OrderById.orderId holds `#`, which a key of this table cannot hold in a value");
    let index = &schema.entity("Order").unwrap().indexes[0].key;
    assert_eq!(index.pk.to_string(), "CUSTOMER#{buyerId!}");
    refused_whole(
        &SHOP.replace("type = \"Type\"", "type = \"Type\"\nescape = \"url\""),
        &expect![[r#"5:1: table.escape: there is no value "url": there are percent, none"#]],
    );
    refused(
        &[("\"CUSTOMER#{buyerId}\"", "\"CUSTOMER#{buyerId!}\"")],
        &expect![[r#"
            24:1: entity.Order.index.byCustomer.partition-key: values are unescaped in all keys of a table or in none: set escape = "none" in [table]
        "#]],
    );
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    refused(
        &[
            ("[entity.Customer]", "[entity.Customer"),
            ("sort-key = \"sk\"", "sort-key = sk"),
            ("sort-key = \"sk\"", "sort-key = \"sk\"\nsort-key = \"sk\""),
            ("[entity.OrderById]", "[entity.Order]"),
            ("kind = \"mirror\"", "kind: mirror"),
        ],
        &expect![[r#"
            12:17: this is not TOML: unclosed table, expected `]`
            3:12: this is not TOML: string values must be quoted, expected literal string, at `sk`
            4:1: this is not TOML: duplicate key, at `sort-key`
            28:9: this is not TOML: duplicate key, at `Order`
            44:7: this is not TOML: key with no value, expected `=`
        "#]],
    );
}

#[test]
fn a_key_that_means_nothing_is_refused() {
    refused(
        &[
            ("[table]", "[tabel]"),
            ("time-to-live", "ttl"),
            ("projection", "projections"),
            ("sort-key = \"gsk\"", "sort-key = \"gpk\""),
            ("derived = true", "drived = true"),
            ("only-if = { status = \"paid\" }", "where = { status = \"paid\" }"),
            ("shards = 4", "shard = 4"),
            ("except = [\"note\"]", "sum = \"note\""),
            ("through = \"Order\"", "trough = \"Order\""),
        ],
        &expect![[r#"
            1:2: tabel: there is no such key: did you mean "table"?
            5:1: table.ttl: there is no such key: there are partition-key, sort-key, type, time-to-live, escape
            10:1: index.byCustomer.projections: there is no such key: did you mean "projection"?
            9:1: index.byCustomer.sort-key: is the attribute of the index's partition key: name another
            31:1: entity.OrderById.drived: there is no such key: did you mean "derived"?
            26:1: entity.Order.index.byCustomer.where: there is no such key: there are partition-key, sort-key, only-if, only-with, derived
            41:1: derivation.order-count.shard: there is no such key: did you mean "shards"?
            47:1: derivation.order-by-id.sum: there is no such key: there are kind, id, was, from, to, link, where, each, except
            63:11: derivation.buyer-name-by-id.found.trough: there is no such key: did you mean "through"?
        "#]],
    );
}

#[test]
fn what_is_no_condition_is_refused() {
    let where_is = "{ status = \"paid\" }\nshards";
    refused(
        &[
            (where_is, "\"status = paid\"\nshards"),
            (where_is, "\"stauts = 'paid'\"\nshards"),
            (where_is, "\"status = 'paid' AND\"\nshards"),
            (where_is, "\"size(staus) > 1 OR note = 'x'\"\nshards"),
            (where_is, "{ status = [\"paid\", \"sent\"] }\nshards"),
            (where_is, "{ status = 7 }\nshards"),
            (where_is, "[]\nshards"),
        ],
        &expect![[r#"
            40:1: derivation.order-count.where: Order has no field or attribute "paid": there are orderId, orderedOn, shopId, buyerId, status, note, buyerName; one that your items have is declared in attributes; a text stands in single quotes
            40:1: derivation.order-count.where: Order has no field or attribute "stauts": did you mean "status"?
            40:1: derivation.order-count.where: is no condition: at character 20: it ends where an attribute or a value is wanted
            40:1: derivation.order-count.where: Order has no field or attribute "staus": did you mean "status"?
            40:11: derivation.order-count.where.status: is not a text, and this short form compares texts only: write the condition as text, as in where = "total = 7" or where = "status IN ('paid', 'sent')"
            40:11: derivation.order-count.where.status: is not a text, and this short form compares texts only: write the condition as text, as in where = "total = 7" or where = "status IN ('paid', 'sent')"
            40:1: derivation.order-count.where: is a list: write a text in quotes
        "#]],
    );
}

#[test]
fn a_value_of_another_type_is_refused() {
    refused(
        &[
            ("sort-key = \"sk\"", "sort-key = 1"),
            ("type = \"Type\"", "type = \"\""),
            ("projection = [\"Type\", \"status\"]", "projection = \"status\""),
            ("attributes = [\"customerName\"]\nderived", "attributes = [\"customerName\", 7]\nderived"),
            ("derived = true", "derived = \"yes\""),
            ("shards = 4", "shards = \"4\""),
            ("shards = 4", "shards = 101"),
            ("shards = 4", "shards = 0"),
            ("link = { customerId = \"buyerId\" }\nwhere", "link = \"buyerId\"\nwhere"),
            ("{ status = \"paid\" }\nshards", "{ status = 2024-01-15 }\nshards"),
            ("{ status = \"paid\" }\nshards", "{ status = \"paid\", note = \"x\" }\nshards"),
            ("found = { index = \"byCustomer\" }", "found = [\"byCustomer\"]"),
            ("[derivation.order-count]", "[[derivation.order-count]]"),
        ],
        &expect![[r#"
            3:1: table.sort-key: is a whole number: write a text in quotes
            4:1: table.type: is empty
            10:1: index.byCustomer.projection: is a text: write a list of texts, as in ["a", "b"]
            15:31: entity.Customer.attributes: must be a list of texts
            31:1: entity.OrderById.derived: is a text: write true or false
            41:1: derivation.order-count.shards: is a text: write a whole number
            41:1: derivation.order-count.shards: is 101: it is from 1 to 100
            41:1: derivation.order-count.shards: is 0: it is from 1 to 100
            39:1: derivation.order-count.link: is a text: write pairs of texts, as in { a = "b" }
            40:11: derivation.order-count.where.status: is not a text, and this short form compares texts only: write the condition as text, as in where = "total = 7" or where = "status IN ('paid', 'sent')"
            40:1: derivation.order-count.where: write one attribute with its text, as in { status = "published" }
            55:1: derivation.buyer-name.found: is a list: write the name of an entity, or { index = "…" }
            35:14: derivation.order-count: is a list of tables: write a table, [derivation.order-count], with its keys below
        "#]],
    );
    refused_whole(
        "entity = 5\n[table]\npartition-key = \"a\"\nsort-key = \"b\"\ntype = \"c\"",
        &expect!["1:1: entity: is a whole number: write a table, [entity], with its keys below"],
    );
}

#[test]
fn what_is_missing_is_named_with_what_it_is_for() {
    refused_whole(
        "",
        &expect![
            "1:1: table is missing: [table] names the attributes of the keys; for a table of another form there is [tables.NAME]"
        ],
    );
    refused(
        &[
            ("partition-key = \"pk\"\n", ""),
            ("sort-key = \"gsk\"\n", ""),
            ("partition-key = \"ORDER#{orderId}\"\n", ""),
            ("kind = \"mirror\"\n", ""),
            ("from = \"Order\"\ninto", "into"),
            ("into = \"Customer.orderCount\"\n", ""),
            ("attributes = { customerName = \"buyerName\" }\n", ""),
            ("attributes = { customerName = \"buyerName\" }", "attributes = {}"),
        ],
        &expect![[r#"
            1:2: table: partition-key is missing: the attribute of the partition key
            7:8: index.byCustomer: sort-key is missing: the attribute of the index's sort key
            28:9: entity.OrderById: partition-key is missing: its form, as in "USER#{userId}"
            43:13: derivation.order-by-id: kind is missing: what it does, such as "count"
            35:13: derivation.order-count: from is missing: the entity whose items are counted
            35:13: derivation.order-count: into is missing: where the count is shown, as in "User.followerCount"
            49:13: derivation.buyer-name: attributes is missing: what is copied, as in { userName = "followedName" }, or ["avatar"] where both have one name
            54:1: derivation.buyer-name.attributes: names nothing to copy: add an attribute
        "#]],
    );
    let table = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"Type\"\n";
    refused_whole(table, &expect!["1:1: there is no entity: declare one with [entity.NAME]"]);
}

// ---- DynamoDB's limits on tables and indexes ----

/// Names of so many attributes, as a list of TOML.
fn attributes(number: usize) -> String {
    let name = |name| format!("\"a{name}\", ");
    (0..number).map(name).collect()
}

/// A table with indexes that project so many attributes each.
fn projecting(numbers: &[usize]) -> String {
    let index = |(at, number): (usize, &usize)| {
        let names = attributes(*number);
        format!("[tables.Post.index.by{at}x]\npartition-key = \"p\"\nprojection = [{names}]\n")
    };
    let indexes: String = numbers.iter().enumerate().map(index).collect();
    format!("[tables.Post]\npartition-key = \"id\"\n{indexes}[entity.Post]\ntable = \"Post\"\n")
}

/// The same as indexes of one table.
fn of_one_table(numbers: &[usize]) -> String {
    let index = |(at, number): (usize, &usize)| {
        let names = attributes(*number);
        format!("[index.by{at}x]\npartition-key = \"g{at}\"\nsort-key = \"sk\"\nprojection = [{names}]\n")
    };
    let indexes: String = numbers.iter().enumerate().map(index).collect();
    let table = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"Type\"\n";
    format!("{table}{indexes}[entity.Post]\npartition-key = \"POST#{{id}}\"\nsort-key = \"POST\"\n")
}

fn refusal(text: &str) -> String {
    load(text).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_index_projects_at_most_20_attributes_and_all_of_a_table_100() {
    for text in [projecting, of_one_table] {
        assert_eq!(refusal(&text(&[20, 20, 20, 20, 20])), "");
        let one = refusal(&text(&[1, 21]));
        assert!(
            one.contains("by1x: the index by1x projects 21 attributes, and DynamoDB allows 20: name fewer"),
            "{one}"
        );
        let all = refusal(&text(&[20, 20, 20, 20, 20, 1]));
        assert!(all.contains("by5x: the indexes project 101 attributes together, and DynamoDB allows 100"), "{all}");
    }
    let of_all = projecting(&[20, 20, 20, 20, 20, 0]).replace("projection = []\n", "");
    assert_eq!(refusal(&of_all), "", "an index that projects all counts none");
}

#[test]
fn the_names_of_tables_indexes_and_attributes_are_those_that_dynamodb_takes() {
    let text = projecting(&[1]);
    let long = "n".repeat(256);
    for (is, instead, why) in [
        ("by0x", "by", "the name of an index has 3 to 255 letters, digits, _, . and - only"),
        ("by0x", "\"by author\"", "the name of an index has 3 to 255"),
        ("by0x", long.as_str(), "the name of an index has 3 to 255"),
        ("tables.Post", "tables.Po", "the name of a table has 3 to 255 letters"),
        ("\"p\"", &format!("\"{long}\""), "the name of an attribute here has at most 255 bytes, and this one has 256"),
        ("\"a0\"", &format!("\"{long}\""), "the name of an attribute here has at most 255 bytes, and this one has 256"),
    ] {
        let mistake = refusal(&text.replace(is, instead));
        assert!(mistake.contains(why), "{instead}: {mistake}");
    }
    let one = of_one_table(&[1]);
    assert!(refusal(&one.replace("by0x", "by")).contains("index.by: the name of an index has 3 to 255"));
    let fits = "n".repeat(255);
    assert_eq!(refusal(&text.replace("by0x", &fits)), "");
}

#[test]
fn a_projection_names_attributes_that_no_key_has() {
    for (names, says) in [
        ("\"ALL\"", "ALL is no attribute: an index without `projection` projects all"),
        ("\"*\"", "* is no attribute: an index without `projection` projects all"),
        ("\"KEYS_ONLY\"", "KEYS_ONLY is no attribute: write projection = [] for the keys alone"),
        ("\"a\", \"id\"", "id is an attribute of a key, which the index projects anyway: leave it out"),
        ("\"tag\"", "tag is an attribute of a key, which the index projects anyway: leave it out"),
    ] {
        let several = "[tables.Post]\npartition-key = \"id\"\n[tables.Post.index.byTag]\npartition-key = \"tag\"\n";
        let one = "[table]\npartition-key = \"id\"\nsort-key = \"sk\"\n[index.byTag]\npartition-key = \"tag\"\nsort-key = \"s\"\n";
        for before in [several, one] {
            let error = load(&format!("{before}projection = [{names}]\n")).unwrap_err().to_string();
            assert!(error.ends_with(&format!("projection: {says}")), "{error}");
        }
    }
}

// ---- expressions: what they read is looked up, and what can never work is refused ----

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

// ---- was: a renamed derivation ----

const COUNT: &str = "[derivation.order-count]\n";

/// The names of the derivations of a manifest: the stored name and the label.
fn names(text: &str) -> Vec<(String, String)> {
    let (_, catalogue) = load(text).unwrap();
    catalogue.derivations().map(|it| (it.name.clone(), it.label().to_owned())).collect()
}

#[test]
fn what_is_stored_of_a_renamed_derivation_has_its_first_name_with_all_that_belongs_to_it() {
    let renamed = SHOP.replace(COUNT, "[derivation.paid-orders]\nwas = \"order-count\"\n");
    let pair = |name: &str, label: &str| (name.to_owned(), label.to_owned());
    for wanted in [pair("order-count", "paid-orders"), pair("order-count-display", "paid-orders-display")] {
        assert!(names(&renamed).contains(&wanted), "{wanted:?}");
    }
    let stored = |text: &str| -> Vec<String> { names(text).into_iter().map(|(name, _)| name).collect() };
    assert_eq!(stored(&renamed), stored(SHOP));
    let definitions = |text: &str| {
        let (schema, catalogue) = load(text).unwrap();
        let all = catalogue.derivations().map(|it| derive::definition::definition(it, &schema));
        all.collect::<Vec<_>>()
    };
    assert_eq!(definitions(&renamed), definitions(SHOP));
    let (_, catalogue) = load(&renamed).unwrap();
    let ids: Vec<&str> = catalogue.derivations().map(|it| it.id.as_str()).collect();
    assert!(ids.contains(&"paid-orders") && !ids.contains(&"order-count"), "{ids:?}");
}

#[test]
fn a_cascade_deletes_the_counters_of_a_renamed_count() {
    let text = format!(
        "{}\n[derivation.cascade]\nkind = \"cascade\"\nowner = \"Customer\"\nhanging = [{{ counters = \"paid\" }}]\n",
        SHOP.replace(COUNT, "[derivation.paid]\nwas = \"order-count\"\nhistory = true\n")
    );
    let (_, catalogue) = load(&text).unwrap();
    let cascade = catalogue.derivations().find(|it| it.name == "cascade").unwrap();
    assert!(format!("{:?}", cascade.kind).contains("Counters(\"order-count\")"), "{cascade:?}");
    let by_its_first_name = text.replace("counters = \"paid\"", "counters = \"order-count\"");
    refused_whole(
        &by_its_first_name,
        &expect![[r#"70:14: derivation.cascade.hanging.counters: there is no count "order-count": there is paid"#]],
    );
}

#[test]
fn a_first_name_is_the_name_of_no_other() {
    let was = |name: &str| format!("{COUNT}was = {name}\n");
    refused(
        &[(COUNT, &was("\"order-count\"")), (COUNT, &was("\"buyer-name\""))],
        &expect![[r#"
            36:1: derivation.order-count.was: is its present name: leave was out, or give its first name
            36:1: derivation.order-count.was: there is a derivation buyer-name, and what is stored under this name is of that one
        "#]],
    );
    refused_whole(
        &SHOP
            .replace(COUNT, &was("\"orders\""))
            .replace("[derivation.order-by-id]\n", "[derivation.order-by-id]\nwas = \"orders\"\n"),
        &expect![
            "45:1: derivation.order-by-id.was: order-count was orders too, and only one of them can have what is stored under this name: leave one out"
        ],
    );
    refused(
        &[(COUNT, &was("\"order count\"")), (COUNT, &was("\"ground\"")), (COUNT, &was("7"))],
        &expect![[r#"
            36:1: derivation.order-count.was: a derivation's name has only letters, digits, - and _, because it is stored in keys
            36:1: derivation.order-count.was: DISABLED takes this name for all derivations that delete items: give it another one
            36:1: derivation.order-count.was: is a whole number: write a text in quotes
        "#]],
    );
    // The display of the count was stored as orders-display.
    refused_whole(
        &SHOP
            .replace(COUNT, &was("\"orders\""))
            .replace("[derivation.buyer-name-by-id]", "[derivation.orders-display]"),
        &expect![
            "58:13: derivation.orders-display: there is another derivation of this name; that of a count's display ends with -display, that of the items that it creates with -item, and that of the entries of a latest or an extreme with -entries"
        ],
    );
    // A mistake of a display is reported for its count, by the current name.
    refused_whole(
        &format!(
            "{}\n[derivation.other]\nkind = \"count\"\nfrom = \"Order\"\ninto = \"Customer.orderCount\"\nlink = {{ customerId = \"buyerId\" }}\n",
            SHOP.replace(COUNT, "[derivation.paid]\nwas = \"order-count\"\n")
        ),
        &expect![
            "66:13: derivation.other: writes Customer.orderCount, as paid does: name another attribute, or leave one of both out"
        ],
    );
}
