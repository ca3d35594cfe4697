//! Mistakes of form: not TOML, unknown and missing keys, values of another type.

use super::*;

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
        "\"CUSTOMER#{buyerId}\"",
        "\"CUSTOMER#{buyerId!}\"",
        &expect![[
            r#"24:1: entity.Order.index.byCustomer.partition-key: values are unescaped in all keys of a table or in none: set escape = "none" in [table]"#
        ]],
    );
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    refused("[entity.Customer]", "[entity.Customer", &expect!["12:17: this is not TOML: unclosed table, expected `]`"]);
    refused(
        "sort-key = \"sk\"",
        "sort-key = sk",
        &expect!["3:12: this is not TOML: string values must be quoted, expected literal string, at `sk`"],
    );
    refused(
        "sort-key = \"sk\"",
        "sort-key = \"sk\"\nsort-key = \"sk\"",
        &expect!["4:1: this is not TOML: duplicate key, at `sort-key`"],
    );
    refused("[entity.OrderById]", "[entity.Order]", &expect!["28:9: this is not TOML: duplicate key, at `Order`"]);
    refused("kind = \"mirror\"", "kind: mirror", &expect!["44:7: this is not TOML: key with no value, expected `=`"]);
}

#[test]
fn a_key_that_means_nothing_is_refused() {
    refused("[table]", "[tabel]", &expect![[r#"1:2: tabel: there is no such key: did you mean "table"?"#]]);
    refused(
        "time-to-live",
        "ttl",
        &expect!["5:1: table.ttl: there is no such key: there are partition-key, sort-key, type, time-to-live, escape"],
    );
    refused(
        "projection",
        "projections",
        &expect![[r#"10:1: index.byCustomer.projections: there is no such key: did you mean "projection"?"#]],
    );
    refused(
        "sort-key = \"gsk\"",
        "sort-key = \"gpk\"",
        &expect!["9:1: index.byCustomer.sort-key: is the attribute of the index's partition key: name another"],
    );
    refused(
        "derived = true",
        "drived = true",
        &expect![[r#"31:1: entity.OrderById.drived: there is no such key: did you mean "derived"?"#]],
    );
    refused(
        "only-if = { status = \"paid\" }",
        "where = { status = \"paid\" }",
        &expect![
            "26:1: entity.Order.index.byCustomer.where: there is no such key: there are partition-key, sort-key, only-if, only-with, derived"
        ],
    );
    refused(
        "shards = 4",
        "shard = 4",
        &expect![[r#"41:1: derivation.order-count.shard: there is no such key: did you mean "shards"?"#]],
    );
    refused(
        "except = [\"note\"]",
        "sum = \"note\"",
        &expect![
            "47:1: derivation.order-by-id.sum: there is no such key: there are kind, id, was, from, to, link, where, each, except"
        ],
    );
    refused(
        "through = \"Order\"",
        "trough = \"Order\"",
        &expect![[r#"63:11: derivation.buyer-name-by-id.found.trough: there is no such key: did you mean "through"?"#]],
    );
}

#[test]
fn what_is_no_condition_is_refused() {
    let where_is = "{ status = \"paid\" }\nshards";
    refused(
        where_is,
        "\"status = paid\"\nshards",
        &expect![[
            r#"40:1: derivation.order-count.where: Order has no field or attribute "paid": there are orderId, orderedOn, shopId, buyerId, status, note, buyerName; one that your items have is declared in attributes; a text stands in single quotes"#
        ]],
    );
    refused(
        where_is,
        "\"stauts = 'paid'\"\nshards",
        &expect![[
            r#"40:1: derivation.order-count.where: Order has no field or attribute "stauts": did you mean "status"?"#
        ]],
    );
    refused(
        where_is,
        "\"status = 'paid' AND\"\nshards",
        &expect![
            "40:1: derivation.order-count.where: is no condition: at character 20: it ends where an attribute or a value is wanted"
        ],
    );
    refused(
        where_is,
        "\"size(staus) > 1 OR note = 'x'\"\nshards",
        &expect![[
            r#"40:1: derivation.order-count.where: Order has no field or attribute "staus": did you mean "status"?"#
        ]],
    );
    refused(
        where_is,
        "{ status = [\"paid\", \"sent\"] }\nshards",
        &expect![[
            r#"40:11: derivation.order-count.where.status: is not a text, and this short form compares texts only: write the condition as text, as in where = "total = 7" or where = "status IN ('paid', 'sent')""#
        ]],
    );
    refused(
        where_is,
        "{ status = 7 }\nshards",
        &expect![[
            r#"40:11: derivation.order-count.where.status: is not a text, and this short form compares texts only: write the condition as text, as in where = "total = 7" or where = "status IN ('paid', 'sent')""#
        ]],
    );
    refused(where_is, "[]\nshards", &expect!["40:1: derivation.order-count.where: is a list: write a text in quotes"]);
}

#[test]
fn a_value_of_another_type_is_refused() {
    refused(
        "sort-key = \"sk\"",
        "sort-key = 1",
        &expect!["3:1: table.sort-key: is a whole number: write a text in quotes"],
    );
    refused("type = \"Type\"", "type = \"\"", &expect!["4:1: table.type: is empty"]);
    refused(
        "projection = [\"Type\", \"status\"]",
        "projection = \"status\"",
        &expect![[r#"10:1: index.byCustomer.projection: is a text: write a list of texts, as in ["a", "b"]"#]],
    );
    refused(
        "attributes = [\"customerName\"]\nderived",
        "attributes = [\"customerName\", 7]\nderived",
        &expect!["15:31: entity.Customer.attributes: must be a list of texts"],
    );
    refused(
        "derived = true",
        "derived = \"yes\"",
        &expect!["31:1: entity.OrderById.derived: is a text: write true or false"],
    );
    refused(
        "shards = 4",
        "shards = \"4\"",
        &expect!["41:1: derivation.order-count.shards: is a text: write a whole number"],
    );
    refused("shards = 4", "shards = 101", &expect!["41:1: derivation.order-count.shards: is 101: it is from 1 to 100"]);
    refused("shards = 4", "shards = 0", &expect!["41:1: derivation.order-count.shards: is 0: it is from 1 to 100"]);
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "link = \"buyerId\"\nwhere",
        &expect![[r#"39:1: derivation.order-count.link: is a text: write pairs of texts, as in { a = "b" }"#]],
    );
    refused(
        "{ status = \"paid\" }\nshards",
        "{ status = 2024-01-15 }\nshards",
        &expect![[
            r#"40:11: derivation.order-count.where.status: is not a text, and this short form compares texts only: write the condition as text, as in where = "total = 7" or where = "status IN ('paid', 'sent')""#
        ]],
    );
    refused(
        "{ status = \"paid\" }\nshards",
        "{ status = \"paid\", note = \"x\" }\nshards",
        &expect![[
            r#"40:1: derivation.order-count.where: write one attribute with its text, as in { status = "published" }"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = [\"byCustomer\"]",
        &expect![[r#"55:1: derivation.buyer-name.found: is a list: write the name of an entity, or { index = "…" }"#]],
    );
    refused(
        "[derivation.order-count]",
        "[[derivation.order-count]]",
        &expect![
            "35:14: derivation.order-count: is a list of tables: write a table, [derivation.order-count], with its keys below"
        ],
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
        "partition-key = \"pk\"\n",
        "",
        &expect!["1:2: table: partition-key is missing: the attribute of the partition key"],
    );
    refused(
        "sort-key = \"gsk\"\n",
        "",
        &expect!["7:8: index.byCustomer: sort-key is missing: the attribute of the index's sort key"],
    );
    refused(
        "partition-key = \"ORDER#{orderId}\"\n",
        "",
        &expect![[r#"28:9: entity.OrderById: partition-key is missing: its form, as in "USER#{userId}""#]],
    );
    refused(
        "kind = \"mirror\"\n",
        "",
        &expect![[r#"43:13: derivation.order-by-id: kind is missing: what it does, such as "count""#]],
    );
    refused(
        "from = \"Order\"\ninto",
        "into",
        &expect!["35:13: derivation.order-count: from is missing: the entity whose items are counted"],
    );
    refused(
        "into = \"Customer.orderCount\"\n",
        "",
        &expect![[
            r#"35:13: derivation.order-count: into is missing: where the count is shown, as in "User.followerCount""#
        ]],
    );
    refused(
        "attributes = { customerName = \"buyerName\" }\n",
        "",
        &expect![[
            r#"49:13: derivation.buyer-name: attributes is missing: what is copied, as in { userName = "followedName" }, or ["avatar"] where both have one name"#
        ]],
    );
    refused(
        "attributes = { customerName = \"buyerName\" }",
        "attributes = {}",
        &expect!["54:1: derivation.buyer-name.attributes: names nothing to copy: add an attribute"],
    );
    let table = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"Type\"\n";
    refused_whole(table, &expect!["1:1: there is no entity: declare one with [entity.NAME]"]);
}
