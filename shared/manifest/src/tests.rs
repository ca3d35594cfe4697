//! Manifests that are right, and many that are not.

use derive::derivation::Derivation;
use expect_test::{Expect, expect};
use keys::{entity::Definition, key::Key};

use super::*;

/// A manifest with something of everything.
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

/// The manifest with one piece of its text changed, and what is said of it.
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
fn what_is_no_toml_is_refused_with_its_line() {
    refused("[entity.Customer]", "[entity.Customer", &expect!["12: this is no TOML: unclosed table, expected `]`"]);
    refused(
        "sort-key = \"sk\"",
        "sort-key = sk",
        &expect!["3: this is no TOML: string values must be quoted, expected literal string, at `sk`"],
    );
    refused(
        "sort-key = \"sk\"",
        "sort-key = \"sk\"\nsort-key = \"sk\"",
        &expect!["4: this is no TOML: duplicate key, at `sort-key`"],
    );
    refused("[entity.OrderById]", "[entity.Order]", &expect!["28: this is no TOML: duplicate key, at `Order`"]);
    refused("kind = \"mirror\"", "kind: mirror", &expect!["44: this is no TOML: key with no value, expected `=`"]);
}

#[test]
fn a_key_that_means_nothing_is_refused() {
    refused("[table]", "[tabel]", &expect![[r#"1: tabel: there is no such key: did you mean "table"?"#]]);
    refused(
        "time-to-live",
        "ttl",
        &expect!["5: table.ttl: there is no such key: there are partition-key, sort-key, type, time-to-live"],
    );
    refused(
        "projection",
        "projections",
        &expect![[r#"10: index.byCustomer.projections: there is no such key: did you mean "projection"?"#]],
    );
    refused(
        "derived = true",
        "drived = true",
        &expect![[r#"31: entity.OrderById.drived: there is no such key: did you mean "derived"?"#]],
    );
    refused(
        "only-if = { status = \"paid\" }",
        "where = { status = \"paid\" }",
        &expect![
            "26: entity.Order.index.byCustomer.where: there is no such key: there are partition-key, sort-key, only-if"
        ],
    );
    refused(
        "shards = 4",
        "shard = 4",
        &expect![[r#"41: derivation.order-count.shard: there is no such key: did you mean "shards"?"#]],
    );
    refused(
        "except = [\"note\"]",
        "where = { status = \"paid\" }",
        &expect!["47: derivation.order-by-id.where: there is no such key: there are kind, from, to, link, except"],
    );
    refused(
        "through = \"Order\"",
        "trough = \"Order\"",
        &expect![[r#"63: derivation.buyer-name-by-id.found.trough: there is no such key: did you mean "through"?"#]],
    );
}

#[test]
fn what_is_no_condition_is_refused() {
    let where_is = "{ status = \"paid\" }\nshards";
    refused(
        where_is,
        "\"status = paid\"\nshards",
        &expect![[
            r#"40: derivation.order-count.where: Order has no attribute "paid": there are buyerId, status, note, buyerName; a text in a condition stands in single quotes"#
        ]],
    );
    refused(
        where_is,
        "\"stauts = 'paid'\"\nshards",
        &expect![[r#"40: derivation.order-count.where: Order has no attribute "stauts": did you mean "status"?"#]],
    );
    refused(
        where_is,
        "\"status = 'paid' AND\"\nshards",
        &expect![
            "40: derivation.order-count.where: is no condition: at character 20: it ends where an attribute or a value is wanted"
        ],
    );
    refused(
        where_is,
        "\"size(staus) > 1 OR note = 'x'\"\nshards",
        &expect![[r#"40: derivation.order-count.where: Order has no attribute "staus": did you mean "status"?"#]],
    );
    refused(where_is, "[]\nshards", &expect!["40: derivation.order-count.where: is a list: write a text in quotes"]);
}

#[test]
fn a_value_of_another_type_is_refused() {
    refused(
        "sort-key = \"sk\"",
        "sort-key = 1",
        &expect!["3: table.sort-key: is a whole number: write a text in quotes"],
    );
    refused("type = \"Type\"", "type = \"\"", &expect!["4: table.type: is empty"]);
    refused(
        "projection = [\"Type\", \"status\"]",
        "projection = \"status\"",
        &expect![[r#"10: index.byCustomer.projection: is a text: write a list of texts, as in ["a", "b"]"#]],
    );
    refused(
        "attributes = [\"customerName\"]\nderived",
        "attributes = [\"customerName\", 7]\nderived",
        &expect!["15: entity.Customer.attributes: is a list of texts, and this in it is none"],
    );
    refused(
        "derived = true",
        "derived = \"yes\"",
        &expect!["31: entity.OrderById.derived: is a text: write true or false"],
    );
    refused(
        "shards = 4",
        "shards = \"4\"",
        &expect!["41: derivation.order-count.shards: is a text: write a whole number"],
    );
    refused("shards = 4", "shards = 101", &expect!["41: derivation.order-count.shards: is 101: it is from 1 to 100"]);
    refused("shards = 4", "shards = 0", &expect!["41: derivation.order-count.shards: is 0: it is from 1 to 100"]);
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "link = \"buyerId\"\nwhere",
        &expect![[r#"39: derivation.order-count.link: is a text: write pairs of texts, as in { a = "b" }"#]],
    );
    refused(
        "{ status = \"paid\" }\nshards",
        "{ status = 2024-01-15 }\nshards",
        &expect!["40: derivation.order-count.where.status: is a date without quotes: write a text in quotes"],
    );
    refused(
        "{ status = \"paid\" }\nshards",
        "{ status = \"paid\", note = \"x\" }\nshards",
        &expect![[
            r#"40: derivation.order-count.where: is one attribute with its text, as in { status = "published" }"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = [\"byCustomer\"]",
        &expect![[r#"55: derivation.buyer-name.found: is a list: write the name of an entity, or { index = "…" }"#]],
    );
    refused(
        "[derivation.order-count]",
        "[[derivation.order-count]]",
        &expect![
            "35: derivation.order-count: is a list of tables: it is a table, written [derivation.order-count] with its keys below"
        ],
    );
    refused_whole(
        "entity = 5\n[table]\npartition-key = \"a\"\nsort-key = \"b\"\ntype = \"c\"",
        &expect!["1: entity: is a whole number: it is a table, written [entity] with its keys below"],
    );
}

#[test]
fn what_is_missing_is_named_with_what_it_is_for() {
    refused_whole("", &expect!["1: table is missing: [table] names the attributes of the keys"]);
    refused(
        "partition-key = \"pk\"\n",
        "",
        &expect!["1: table: partition-key is missing: the attribute of the partition key"],
    );
    refused(
        "sort-key = \"gsk\"\n",
        "",
        &expect!["7: index.byCustomer: sort-key is missing: the attribute of the index's sort key"],
    );
    refused(
        "partition-key = \"ORDER#{orderId}\"\n",
        "",
        &expect![[r#"28: entity.OrderById: partition-key is missing: its form, as in "USER#{userId}""#]],
    );
    refused(
        "kind = \"mirror\"\n",
        "",
        &expect![[r#"43: derivation.order-by-id: kind is missing: what it does, such as "count""#]],
    );
    refused(
        "from = \"Order\"\ninto",
        "into",
        &expect!["35: derivation.order-count: from is missing: the entity whose items are counted"],
    );
    refused(
        "into = \"Customer.orderCount\"\n",
        "",
        &expect![[
            r#"35: derivation.order-count: into is missing: where the count is shown, as in "User.followerCount""#
        ]],
    );
    refused(
        "attributes = { customerName = \"buyerName\" }\n",
        "",
        &expect![[
            r#"49: derivation.buyer-name: attributes is missing: what is copied, as in { userName = "followedName" }, or ["avatar"] where both have one name"#
        ]],
    );
    refused(
        "attributes = { customerName = \"buyerName\" }",
        "attributes = {}",
        &expect!["54: derivation.buyer-name.attributes: names nothing to copy"],
    );
    let table = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"Type\"\n";
    refused_whole(table, &expect!["1: there is no entity: declare one with [entity.NAME]"]);
}

#[test]
fn a_name_that_is_declared_nowhere_is_refused_with_what_was_meant() {
    refused(
        "kind = \"mirror\"",
        "kind = \"miror\"",
        &expect![[r#"44: derivation.order-by-id.kind: there is no kind "miror": did you mean "mirror"?"#]],
    );
    refused(
        "kind = \"mirror\"",
        "kind = \"sum\"",
        &expect![[r#"44: derivation.order-by-id.kind: there is no kind "sum": there are count, copy, mirror"#]],
    );
    refused(
        "from = \"Order\"\ninto",
        "from = \"Ordre\"\ninto",
        &expect![[r#"37: derivation.order-count.from: there is no entity "Ordre": did you mean "Order"?"#]],
    );
    refused(
        "into = \"Customer.orderCount\"",
        "into = \"Costumer.orderCount\"",
        &expect![[r#"38: derivation.order-count.into: there is no entity "Costumer": did you mean "Customer"?"#]],
    );
    refused(
        "into = \"Customer.orderCount\"",
        "into = \"Customer.OrdersCount\"",
        &expect![[
            r#"38: derivation.order-count.into: Customer does not declare as derived "OrdersCount": did you mean "orderCount"?"#
        ]],
    );
    refused(
        "into = \"Customer.orderCount\"",
        "into = \"Customer.customerName\"",
        &expect![[
            r#"38: derivation.order-count.into: Customer does not declare as derived "customerName": there is orderCount"#
        ]],
    );
    refused(
        "to = \"OrderById\"\nexcept",
        "to = \"Orders\"\nexcept",
        &expect![[r#"46: derivation.order-by-id.to: there is no entity "Orders": did you mean "Order"?"#]],
    );
    refused(
        "except = [\"note\"]",
        "except = [\n  \"status\",\n  \"notes\",\n]",
        &expect![[r#"49: derivation.order-by-id.except: Order has no attribute "notes": did you mean "note"?"#]],
    );
}

#[test]
fn a_copied_attribute_and_how_it_is_found_are_looked_up() {
    refused(
        "{ customerName = \"buyerName\" }",
        "{ custommerName = \"buyerName\" }",
        &expect![[
            r#"54: derivation.buyer-name.attributes.custommerName: Customer has no attribute "custommerName": did you mean "customerName"?"#
        ]],
    );
    refused(
        "{ customerName = \"buyerName\" }",
        "{ customerName = \"byerName\" }",
        &expect![[
            r#"54: derivation.buyer-name.attributes.customerName: Order does not declare as derived "byerName": did you mean "buyerName"?"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = { index = \"byCustmer\" }",
        &expect![[
            r#"55: derivation.buyer-name.found.index: Order has no key in an index "byCustmer": did you mean "byCustomer"?"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = \"Orders\"",
        &expect![[r#"55: derivation.buyer-name.found: there is no entity "Orders": did you mean "Order"?"#]],
    );
    refused(
        "{ status = \"paid\" }\nshards",
        "{ state = \"paid\" }\nshards",
        &expect![[
            r#"40: derivation.order-count.where.state: Order has no attribute "state": there are buyerId, status, note, buyerName"#
        ]],
    );
    refused(
        "{ status = \"paid\" }\n\n",
        "{ stats = \"paid\" }\n\n",
        &expect![[
            r#"26: entity.Order.index.byCustomer.only-if.stats: Order has no field or attribute "stats": did you mean "status"?"#
        ]],
    );
}

#[test]
fn a_field_of_a_key_is_looked_up() {
    refused(
        "[entity.Order.index.byCustomer]",
        "[entity.Order.index.byCostumer]",
        &expect![[r#"23: entity.Order.index.byCostumer: there is no index "byCostumer": did you mean "byCustomer"?"#]],
    );
    refused(
        "\"CUSTOMER#{buyerId}\"",
        "\"CUSTOMER#{byerId}\"",
        &expect![[
            r#"24: entity.Order.index.byCustomer.partition-key: Order has no field or attribute "byerId": did you mean "buyerId"?"#
        ]],
    );
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "link = { customer = \"buyerId\" }\nwhere",
        &expect![[
            r#"39: derivation.order-count.link.customer: the key of Customer has no field "customer": did you mean "customerId"?"#
        ]],
    );
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "link = { customerId = \"byuerId\" }\nwhere",
        &expect![[
            r#"39: derivation.order-count.link.customerId: Order has no field or attribute "byuerId": did you mean "buyerId"?"#
        ]],
    );
    refused(
        "by = { buyerId = \"customerId\" }",
        "by = { buyerId = \"custId\" }",
        &expect![[
            r#"63: derivation.buyer-name-by-id.found.by.buyerId: the key of Customer has no field "custId": there is customerId"#
        ]],
    );
}

#[test]
fn a_template_that_cannot_be_read_is_refused() {
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"SHOP#{shopId\"",
        &expect!["19: entity.Order.partition-key: key template `SHOP#{shopId`: a `{` without its `}`"],
    );
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"SHOP#{shop id}\"",
        &expect!["19: entity.Order.partition-key: key template `SHOP#{shop id}`: a field of no known form"],
    );
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"{shopId}{orderId}\"",
        &expect!["19: entity.Order.partition-key: key template `{shopId}{orderId}`: two fields need text between them"],
    );
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"\"",
        &expect!["19: entity.Order.partition-key: is empty"],
    );
}

#[test]
fn an_attribute_has_one_use() {
    refused(
        "sort-key = \"sk\"",
        "sort-key = \"pk\"",
        &expect!["3: table.sort-key: names an attribute that is a key, or has another use already"],
    );
    refused(
        "type = \"Type\"",
        "type = \"gsk\"",
        &expect!["4: table.type: names an attribute that is a key, or has another use already"],
    );
    refused(
        "time-to-live = \"expiresOn\"",
        "time-to-live = \"Type\"",
        &expect!["5: table.time-to-live: names an attribute that is a key, or has another use already"],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"gpk\"",
        &expect![[r#"21: entity.Order.attributes: "gpk" is an attribute of a key: leave it out"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"Type\"",
        &expect![[r#"21: entity.Order.attributes: "Type" is the attribute of the type: leave it out"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"expiresOn\"",
        &expect![[r#"21: entity.Order.attributes: "expiresOn" is the attribute of the time to live: leave it out"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"orderId\"",
        &expect![[r#"21: entity.Order.attributes: "orderId" is a field of the key: leave it out"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"status\"",
        &expect![[r#"21: entity.Order.attributes: names "status" twice"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"buyerName\"",
        &expect![[r#"22: entity.Order.derived-attributes: "buyerName" is declared twice: leave it out"#]],
    );
    refused(
        "[entity.OrderById]",
        "[entity.Counter]",
        &expect!["28: entity.Counter: is the entity of the service's own counters: it is always there"],
    );
}

#[test]
fn derivations_that_cannot_be_are_refused() {
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "where",
        &expect![[
            r#"35: derivation.order-count: nothing gives customerId of the key of Customer: say what of Order it is (orderId, orderedOn, shopId, buyerId, status, note), as in link = { customerId = "…" }"#
        ]],
    );
    refused(
        "derived = true\n",
        "",
        &expect![
            "45: derivation.order-by-id.to: OrderById is the application's: a mirror's entity says derived = true in [entity.OrderById]"
        ],
    );
    refused(
        "\"Claims\", ",
        "",
        &expect![[
            r#"46: derivation.order-by-id.to: the key of OrderById does not say orderedOn of its Order, so it keeps a list of its sources: add "Claims" to the derived-attributes of OrderById"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "",
        &expect![[
            r#"49: derivation.buyer-name: a change of Customer does not have shopId, by which its Order items would be found: say found = { index = "byCustomer" }"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = \"OrderById\"",
        &expect![[
            r#"55: derivation.buyer-name.found: a change of Customer does not have orderId, by which its Order items would be found: say found = { index = "byCustomer" }"#
        ]],
    );
    refused(
        "through = \"Order\", index = \"byCustomer\", ",
        "through = \"Customer\", ",
        &expect![[
            r#"63: derivation.buyer-name-by-id.found: a change of Customer does not have customerId, by which its OrderById items would be found: say found = { through = "Order", index = "byCustomer" }"#
        ]],
    );
    refused(
        "projection = [\"Type\", \"status\"]\n",
        "",
        &expect![[
            r#"54: derivation.buyer-name.found: byCustomer does not project "Type", without which the Order items that it finds lead nowhere: add it to the projection of [index.byCustomer]"#
        ]],
    );
    refused(
        "[derivation.order-by-id]",
        "[derivation.order-count-display]",
        &expect![
            "43: derivation.order-count-display: there is another derivation of this name; that of a count's display ends with -display"
        ],
    );
    let again = "[derivation.also]\nkind = \"mirror\"\nfrom = \"Order\"\nto = \"OrderById\"\n\n[derivation.buyer-name]";
    refused("[derivation.buyer-name]", again, &expect!["49: derivation.also: writes OrderById, as order-by-id does"]);
}

#[test]
fn names_that_cannot_be_stored_or_mean_something_else_are_refused() {
    refused(
        "[derivation.order-by-id]",
        "[derivation.\"order by id\"]",
        &expect![
            "43: derivation.order by id: a derivation's name is of letters, digits, - and _, since it is stored in keys"
        ],
    );
    let long = format!("[derivation.{}]", "o".repeat(65));
    refused(
        "[derivation.order-by-id]",
        &long,
        &expect![
            "43: derivation.ooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo: a derivation's name has at most 64 letters, since it is stored in keys"
        ],
    );
    refused(
        "[derivation.order-by-id]",
        "[derivation.ground]",
        &expect![
            "43: derivation.ground: DISABLED takes this name for all derivations that delete items: give it another one"
        ],
    );
    refused(
        "[entity.OrderById]",
        "[entity.\"\"]",
        &expect!["28: entity.: the name of an entity is empty: items have it as their type"],
    );
}

#[test]
fn a_circle_is_refused_at_the_first_of_it() {
    let text = r##"
        table = { partition-key = "pk", sort-key = "sk", type = "Type" }
        [entity.A]
        partition-key = "A#{id}"
        sort-key = "A"
        derived-attributes = ["name"]
        [entity.B]
        partition-key = "A#{id}"
        sort-key = "B"
        derived-attributes = ["name"]
        [derivation]
        a = { kind = "copy", from = "B", to = "A", attributes = ["name"] }
        b = { kind = "copy", from = "A", to = "B", attributes = ["name"] }
    "##;
    refused_whole(text, &expect!["12: derivation.a: derivations build on each other in a circle: a, b"]);
}

#[test]
fn a_file_that_is_not_there_or_wrong_is_named() {
    let error = read(Path::new("no/such/ripple.toml")).expect_err("there is no such file");
    expect!["cannot read no/such/ripple.toml"].assert_eq(&error.to_string());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let error = read(Path::new(file)).expect_err("it is another manifest").to_string();
    assert_eq!(
        error.strip_prefix(file),
        Some(":1: package: there is no such key: there are table, index, entity, derivation")
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
                    projection: [
                        "Type",
                        "status",
                    ],
                },
            ],
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
        derived Counter {TargetPK*} / {TargetSK*}#COUNT#{Derivation}#{Shard:2} [] ["Value", "Sum"]
        ground Customer CUSTOMER#{customerId} / CUSTOMER#{customerId} ["customerName"] ["orderCount"]
        ground Order SHOP#{shopId} / ORDER#{orderedOn}#{orderId} ["buyerId", "status", "note"] ["buyerName"]
          byCustomer CUSTOMER#{buyerId} / ORDER#{orderedOn}#{orderId} Some(Is { attribute: "status", any_of: ["paid"] })
        derived OrderById ORDER#{orderId} / ORDER#{orderId} ["buyerId", "status"] ["Claims", "customerName"]"#]]
    .assert_eq(&schema.entities().map(entity).collect::<Vec<_>>().join("\n"));
    expect![[r#"
        order-count Count { source: "Order", condition: Test(Equal, [Attribute(DocumentPath { attribute: "status", steps: [] }), Value(S("paid"))]), target: "Customer", link: Link([("customerId", "buyerId")]), sum: None, n_shards: 4, history: false }
        order-count-display Display { count: "order-count", target: "Customer", shows: Count, attribute: "orderCount", zero: Write }
        order-by-id Mirror { source: "Order", target: "OrderById", link: Link([("orderId", "orderId")]), except: ["note"] }
        buyer-name Copy { source: "Customer", target: "Order", link: Link([("customerId", "buyerId")]), attributes: [("customerName", "buyerName")], found: FoundBy { via: "Order", index: Some("byCustomer"), by: Link([("buyerId", "customerId")]) } }
        buyer-name-by-id Copy { source: "Customer", target: "OrderById", link: Link([("customerId", "buyerId")]), attributes: [("customerName", "customerName")], found: FoundBy { via: "Order", index: Some("byCustomer"), by: Link([("buyerId", "customerId")]) } }"#]].assert_eq(&catalogue.derivations().map(described).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_count_says_what_stands_for_zero() {
    let with = |zero: &str| SHOP.replace("shards = 4", &format!("shards = 4\nzero = {zero}"));
    for (zero, is) in [("\"absent\"", "Absent"), ("\"write\"", "Write")] {
        let (_, catalogue) = load(&with(zero)).unwrap();
        let display = catalogue.derivations().map(described).find(|it| it.contains("Display")).unwrap();
        assert!(display.ends_with(&format!("zero: {is} }}")), "{display}");
    }
    refused_whole(
        &with("\"absnet\""),
        &expect![[
            r#"42: derivation.order-count.zero: zero is "write" or "absent", not "absnet": did you mean "absent"?"#
        ]],
    );
    refused_whole(&with("0"), &expect!["42: derivation.order-count.zero: is a whole number: write a text in quotes"]);
    let unseen = with("\"write\"").replace("into = \"Customer.orderCount\"", "into = \"Customer\"");
    refused_whole(
        &unseen,
        &expect![[
            r#"42: derivation.order-count.zero: zero says how a count of zero is shown, and this count is not shown: name an attribute, as in into = "User.followerCount", or leave zero out"#
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
    let item = keys::item::Item::new();
    let is = |pk: &str, sk: &str| schema.image(&Key::new(pk, sk), &item).map(|image| image.definition.name.clone());
    assert_eq!(is("ORDER#o1", "ORDER#o1").as_deref(), Some("OrderById"));
    assert_eq!(is("SHOP#s", "ORDER#2024-01-15#o1").as_deref(), Some("Order"));
    assert_eq!(is("ORDER#o1", "ORDER#o1#COUNT#x#00").as_deref(), Some("Counter"));
    assert_eq!(is("SHOP#s", "ORDER#2024-01-15"), None);

    let alike = "\"CUSTOMER#{customerId}\"\nsort-key = \"CUSTOMER#{customerId}\"";
    refused_whole(
        &text.replace(alike, "\"SHOP#{id}\"\nsort-key = \"ORDER#{a}#{b}\""),
        &expect![[
            r#"17: entity.Order: a key of the form SHOP#{shopId} / ORDER#{orderedOn}#{orderId} may be that of a Customer too, SHOP#{id} / ORDER#{a}#{b}: name the attribute that tells them apart, as in [table] type = "…""#
        ]],
    );
    refused_whole(
        &text.replace(alike, "\"SHOP#{id}\"\nsort-key = \"{a}#COUNT#{b}#{c}\""),
        &expect![[
            r#"11: entity.Customer: a key of the form SHOP#{id} / {a}#COUNT#{b}#{c} may be that of a Counter too, {TargetPK*} / {TargetSK*}#COUNT#{Derivation}#{Shard:2}: name the attribute that tells them apart, as in [table] type = "…""#
        ]],
    );
}

#[test]
fn a_path_into_a_map_is_refused_wherever_an_attribute_is_named() {
    let places = [
        ("sort-key = \"sk\"", "sort-key = \"s.k\""),
        ("partition-key = \"gpk\"", "partition-key = \"g[0]\""),
        ("attributes = [\"customerName\"]\nderived", "attributes = [\"profile.name\"]\nderived"),
        ("derived-attributes = [\"orderCount\"]", "derived-attributes = [\"counts.orders\"]"),
        ("partition-key = \"CUSTOMER#{buyerId}\"", "partition-key = \"CUSTOMER#{buyer.id}\""),
        ("only-if = { status = ", "only-if = { \"order.status\" = "),
        ("into = \"Customer.orderCount\"", "into = \"Customer.counts.orders\""),
        ("where = { status = ", "where = { \"order.status\" = "),
        ("customerId = \"buyerId\" }\nwhere", "customerId = \"buyer.id\" }\nwhere"),
        ("{ customerName = \"buyerName\" }", "{ \"profile.name\" = \"buyerName\" }"),
        ("{ customerName = \"buyerName\" }", "{ customerName = \"buyer.name\" }"),
        ("except = [\"note\"]", "except = [\"note.text\"]"),
    ];
    let mut said = String::new();
    for (piece, instead) in places {
        assert_eq!(SHOP.matches(piece).count(), 1, "{piece} stands there once");
        let error = load(&SHOP.replace(piece, instead)).expect_err(instead).to_string();
        let (place, what) = error.split_once(" reads as a path into the attribute ").unwrap_or((&error, "no path"));
        let (outer, _) = what.split_once(", and only whole attributes at the top").unwrap_or((what, ""));
        said.extend([place, " in ", outer, "\n"]);
    }
    expect![[r#"
        3: table.sort-key: "s.k" in "s"
        8: index.byCustomer.partition-key: "g[0]" in "g"
        15: entity.Customer.attributes: "profile.name" in "profile"
        16: entity.Customer.derived-attributes: "counts.orders" in "counts"
        24: entity.Order.index.byCustomer.partition-key: key template `CUSTOMER#{buyer.id}`: a field of no known form in no path
        26: entity.Order.index.byCustomer.only-if.order.status: "order.status" in "order"
        38: derivation.order-count.into: "counts.orders" in "counts"
        40: derivation.order-count.where.order.status: "order.status" in "order"
        39: derivation.order-count.link.customerId: "buyer.id" in "buyer"
        54: derivation.buyer-name.attributes.profile.name: "profile.name" in "profile"
        54: derivation.buyer-name.attributes.customerName: "buyer.name" in "buyer"
        47: derivation.order-by-id.except: "note.text" in "note"
    "#]].assert_eq(&said);
}

#[test]
fn an_attribute_that_is_known_to_hold_a_number_is_refused_where_text_is_taken() {
    let customers = r##"
[entity.CustomerByName]
partition-key = "NAME#{customerName}"
sort-key = "CUSTOMER#{customerId}"
derived = true
attributes = ["orderCount"]
derived-attributes = ["Claims"]

[entity.Rank]
partition-key = "RANK#{rank}"
sort-key = "RANK"
derived-attributes = ["customers"]

[derivation.customer-by-name]
kind = "mirror"
from = "Customer"
to = "CustomerByName"

"##;
    let ranked = |from: &str, rest: &str| {
        let count =
            format!("[derivation.ranked]\nkind = \"count\"\nfrom = \"{from}\"\ninto = \"Rank.customers\"\n{rest}\n");
        load(&format!("{SHOP}{customers}{count}")).expect_err(rest).to_string()
    };
    let said = [
        ranked("Customer", "link = { rank = \"orderCount\" }"),
        ranked("CustomerByName", "link = { rank = \"orderCount\" }"),
        ranked("Customer", "link = { rank = \"customerName\" }\nwhere = { orderCount = \"3\" }"),
    ];
    expect![[r#"
        86: derivation.ranked.link.rank: Customer.orderCount holds the number of order-count (N), and a link takes text (S): name an attribute of text
        86: derivation.ranked.link.rank: CustomerByName.orderCount holds the number of order-count (N), and a link takes text (S): name an attribute of text
        87: derivation.ranked.where.orderCount: Customer.orderCount holds the number of order-count (N), and where takes text (S): name an attribute of text
    "#]]
    .assert_eq(&(said.join("\n") + "\n"));
}

/// The page that explains every key.
const PAGE: &str = include_str!("../../../docs/own-table.md");

#[test]
fn the_file_in_the_documentation_is_a_manifest() {
    let blocks: Vec<&str> = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [file] = blocks.as_slice() else { panic!("one whole file is shown") };
    let (_, catalogue) = load(file).unwrap();
    let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    expect!["order-count order-count-display order-of-user buyer"].assert_eq(&names.join(" "));
    let wrong = file.replacen("from = \"Order\"", "from = \"Ordre\"", 1);
    let described = format!("ripple.toml:{}", load(&wrong).unwrap_err());
    assert!(PAGE.contains(&described), "{described}");
}

#[test]
fn every_key_is_in_the_documentation() {
    let of_kinds = kinds::keys();
    let keys = [&layout::TABLE[..], &layout::INDEX, &entities::ENTITY, &entities::INDEX_KEY, &of_kinds].concat();
    for key in keys {
        assert!(PAGE.contains(&format!("\n| `{key}` |")), "{key}");
    }
}
