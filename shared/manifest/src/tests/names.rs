//! Mistakes in names: entities, attributes, fields and derivations.

use super::*;

#[test]
fn a_name_that_is_declared_nowhere_is_refused_with_what_was_meant() {
    refused(
        "kind = \"mirror\"",
        "kind = \"miror\"",
        &expect![[r#"44:1: derivation.order-by-id.kind: there is no kind "miror": did you mean "mirror"?"#]],
    );
    refused(
        "kind = \"mirror\"",
        "kind = \"sum\"",
        &expect![[
            r#"44:1: derivation.order-by-id.kind: there is no kind "sum": sum is shown by a count, as in shows = { sum = "…" }"#
        ]],
    );
    refused(
        "from = \"Order\"\ninto",
        "from = \"Ordre\"\ninto",
        &expect![[r#"37:1: derivation.order-count.from: there is no entity "Ordre": did you mean "Order"?"#]],
    );
    refused(
        "into = \"Customer.orderCount\"",
        "into = \"Costumer.orderCount\"",
        &expect![[r#"38:1: derivation.order-count.into: there is no entity "Costumer": did you mean "Customer"?"#]],
    );
    refused(
        "into = \"Customer.orderCount\"",
        "into = \"Customer.OrdersCount\"",
        &expect![[
            r#"38:1: derivation.order-count.into: Customer does not declare as derived "OrdersCount": did you mean "orderCount"?"#
        ]],
    );
    refused(
        "into = \"Customer.orderCount\"",
        "into = \"Customer.customerName\"",
        &expect![
            "38:1: derivation.order-count.into: Customer lists customerName in attributes, so the application writes it: name another attribute, or move it to derived-attributes"
        ],
    );
    refused(
        "derived-attributes = [\"orderCount\"]",
        "",
        &expect![[
            r#"38:1: derivation.order-count.into: Customer declares no derived attribute: add derived-attributes = ["orderCount"] to [entity.Customer]"#
        ]],
    );
    refused(
        "to = \"OrderById\"\nexcept",
        "to = \"Orders\"\nexcept",
        &expect![[r#"46:1: derivation.order-by-id.to: there is no entity "Orders": did you mean "Order"?"#]],
    );
    refused(
        "except = [\"note\"]",
        "except = [\n  \"status\",\n  \"notes\",\n]",
        &expect![[r#"49:3: derivation.order-by-id.except: Order has no attribute "notes": did you mean "note"?"#]],
    );
}

#[test]
fn a_copied_attribute_and_how_it_is_found_are_looked_up() {
    refused(
        "{ customerName = \"buyerName\" }",
        "{ custommerName = \"buyerName\" }",
        &expect![[
            r#"54:16: derivation.buyer-name.attributes.custommerName: Customer has no field or attribute "custommerName": did you mean "customerName"?"#
        ]],
    );
    refused(
        "{ customerName = \"buyerName\" }",
        "{ customerName = \"byerName\" }",
        &expect![[
            r#"54:16: derivation.buyer-name.attributes.customerName: Order does not declare as derived "byerName": did you mean "buyerName"?"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = { index = \"byCustmer\" }",
        &expect![[
            r#"55:11: derivation.buyer-name.found.index: Order has no key in an index "byCustmer": did you mean "byCustomer"?"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = \"Orders\"",
        &expect![[r#"55:1: derivation.buyer-name.found: there is no entity "Orders": did you mean "Order"?"#]],
    );
    refused(
        "{ status = \"paid\" }\nshards",
        "{ state = \"paid\" }\nshards",
        &expect![[
            r#"40:11: derivation.order-count.where.state: Order has no field or attribute "state": there are orderId, orderedOn, shopId, buyerId, status, note, buyerName; one that your items have is declared in attributes"#
        ]],
    );
    refused(
        "{ status = \"paid\" }\n\n",
        "{ stats = \"paid\" }\n\n",
        &expect![[
            r#"26:13: entity.Order.index.byCustomer.only-if.stats: Order has no field or attribute "stats": did you mean "status"?"#
        ]],
    );
}

#[test]
fn a_field_of_a_key_is_looked_up() {
    refused(
        "[entity.Order.index.byCustomer]",
        "[entity.Order.index.byCostumer]",
        &expect![[
            r#"23:21: entity.Order.index.byCostumer: there is no index "byCostumer": did you mean "byCustomer"?"#
        ]],
    );
    refused(
        "\"CUSTOMER#{buyerId}\"",
        "\"CUSTOMER#{byerId}\"",
        &expect![[
            r#"24:1: entity.Order.index.byCustomer.partition-key: Order has no field or attribute "byerId": did you mean "buyerId"?"#
        ]],
    );
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "link = { customer = \"buyerId\" }\nwhere",
        &expect![[
            r#"39:10: derivation.order-count.link.customer: the key of Customer has no field "customer": did you mean "customerId"?"#
        ]],
    );
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "link = { customerId = \"byuerId\" }\nwhere",
        &expect![[
            r#"39:10: derivation.order-count.link.customerId: Order has no field or attribute "byuerId": did you mean "buyerId"?"#
        ]],
    );
    refused(
        "by = { buyerId = \"customerId\" }",
        "by = { buyerId = \"custId\" }",
        &expect![[
            r#"63:59: derivation.buyer-name-by-id.found.by.buyerId: the key of Customer has no field "custId": there is customerId"#
        ]],
    );
}

#[test]
fn a_template_that_cannot_be_read_is_refused() {
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"SHOP#{shopId\"",
        &expect!["19:1: entity.Order.partition-key: key template `SHOP#{shopId`: a `{` without its `}`"],
    );
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"SHOP#{shop id}\"",
        &expect![
            "19:1: entity.Order.partition-key: key template `SHOP#{shop id}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits"
        ],
    );
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"{shopId}{orderId}\"",
        &expect![
            "19:1: entity.Order.partition-key: key template `{shopId}{orderId}`: two fields need text between them"
        ],
    );
    refused(
        "partition-key = \"SHOP#{shopId}\"",
        "partition-key = \"\"",
        &expect!["19:1: entity.Order.partition-key: is empty"],
    );
}

#[test]
fn an_attribute_has_one_use() {
    refused(
        "sort-key = \"sk\"",
        "sort-key = \"pk\"",
        &expect!["3:1: table.sort-key: names an attribute that is a key, or has another use already: name another"],
    );
    refused(
        "type = \"Type\"",
        "type = \"gsk\"",
        &expect!["4:1: table.type: names an attribute that is a key, or has another use already: name another"],
    );
    refused(
        "time-to-live = \"expiresOn\"",
        "time-to-live = \"Type\"",
        &expect!["5:1: table.time-to-live: names an attribute that is a key, or has another use already: name another"],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"gpk\"",
        &expect![[r#"21:36: entity.Order.attributes: "gpk" is an attribute of a key: leave it out"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"Type\"",
        &expect![[r#"21:36: entity.Order.attributes: "Type" is the attribute of the type: leave it out"#]],
    );
    refused(
        "derived-attributes = [\"buyerName\"]",
        "derived-attributes = [\"buyerName\", \"expiresOn\"]",
        &expect![[
            r#"22:36: entity.Order.derived-attributes: "expiresOn" is the attribute of the time to live: leave it out"#
        ]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"orderId\"",
        &expect![[r#"21:36: entity.Order.attributes: "orderId" is a field of the key: leave it out"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"status\"",
        &expect![[r#"21:36: entity.Order.attributes: names "status" twice"#]],
    );
    refused(
        "\"status\", \"note\"",
        "\"status\", \"buyerName\"",
        &expect![[r#"22:23: entity.Order.derived-attributes: "buyerName" is declared twice: leave it out"#]],
    );
    refused(
        "[entity.OrderById]",
        "[entity.Counter]",
        &expect![
            "29:1: entity.Counter.partition-key: every manifest has counters, and only their id can be declared: leave this out"
        ],
    );
}

#[test]
fn derivations_that_cannot_be_are_refused() {
    refused(
        "link = { customerId = \"buyerId\" }\nwhere",
        "where",
        &expect![[
            r#"35:13: derivation.order-count: nothing gives customerId of the key of Customer: name the attribute of Order with its value (orderId, orderedOn, shopId, buyerId, status, note, buyerName), as in link = { customerId = "…" }"#
        ]],
    );
    refused(
        "derived = true\n",
        "",
        &expect![
            "45:1: derivation.order-by-id.to: OrderById is the application's: a mirror's entity says derived = true in [entity.OrderById]"
        ],
    );
    refused(
        "\"Claims\", ",
        "",
        &expect![[
            r#"46:1: derivation.order-by-id.to: the key of OrderById does not contain orderedOn of its Order: put it into that key, if each Order has a OrderById of its own; if several may share one, add "Claims", a list of them, to the derived-attributes of OrderById"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "",
        &expect![[
            r#"49:13: derivation.buyer-name: a change of Customer does not have shopId of Order, by which its Order items would be found: write found = { index = "byCustomer" }"#
        ]],
    );
    refused(
        "found = { index = \"byCustomer\" }",
        "found = \"OrderById\"",
        &expect![[
            r#"55:1: derivation.buyer-name.found: a change of Customer does not have orderId of OrderById, by which its Order items would be found: write found = { index = "byCustomer" }"#
        ]],
    );
    refused(
        "through = \"Order\", index = \"byCustomer\", ",
        "through = \"Customer\", ",
        &expect![[
            r#"63:1: derivation.buyer-name-by-id.found: a change of Customer does not have customerId of Customer, by which its OrderById items would be found: write found = { through = "Order", index = "byCustomer" }"#
        ]],
    );
    refused(
        "projection = [\"Type\", \"status\"]\n",
        "projection = [\"status\"]\n",
        &expect![[
            r#"55:1: derivation.buyer-name.found: byCustomer does not project "Type", which Ripple needs to find the Order items: add it to the projection of [index.byCustomer]"#
        ]],
    );
    refused(
        "[derivation.order-by-id]",
        "[derivation.order-count-display]",
        &expect![
            "43:13: derivation.order-count-display: there is another derivation of this name; that of a count's display ends with -display, that of the items that it creates with -item, and that of the entries of a latest or an extreme with -entries"
        ],
    );
    let again = "[derivation.also]\nkind = \"mirror\"\nfrom = \"Order\"\nto = \"OrderById\"\n\n[derivation.buyer-name]";
    refused(
        "[derivation.buyer-name]",
        again,
        &expect![
            "49:13: derivation.also: writes OrderById, as order-by-id does: name another attribute, or leave one of both out"
        ],
    );
}

#[test]
fn names_that_cannot_be_stored_or_mean_something_else_are_refused() {
    refused(
        "[derivation.order-by-id]",
        "[derivation.\"order by id\"]",
        &expect![
            "43:13: derivation.order by id: a derivation's name has only letters, digits, - and _, because it is stored in keys"
        ],
    );
    let long = format!("[derivation.{}]", "o".repeat(65));
    refused(
        "[derivation.order-by-id]",
        &long,
        &expect![
            "43:13: derivation.ooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo: a derivation's name has at most 64 characters, because it is stored in keys"
        ],
    );
    refused(
        "[derivation.order-by-id]",
        "[derivation.ground]",
        &expect![
            "43:13: derivation.ground: DISABLED takes this name for all derivations that delete items: give it another one"
        ],
    );
    refused(
        "[entity.OrderById]",
        "[entity.\"\"]",
        &expect!["28:9: entity.: the name of an entity is empty: items have it as their type"],
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
    refused_whole(text, &expect!["12:9: derivation.a: derivations build on each other in a circle: a, b"]);
}

#[test]
fn a_path_into_a_map_is_refused_where_an_attribute_is_declared_or_written_or_a_key_is_made_of_it() {
    let places = [
        ("sort-key = \"sk\"", "sort-key = \"s.k\""),
        ("partition-key = \"gpk\"", "partition-key = \"g[0]\""),
        ("attributes = [\"customerName\"]\nderived", "attributes = [\"profile.name\"]\nderived"),
        ("derived-attributes = [\"orderCount\"]", "derived-attributes = [\"counts.orders\"]"),
        ("partition-key = \"CUSTOMER#{buyerId}\"", "partition-key = \"CUSTOMER#{buyer.id}\""),
        ("only-if = { status = ", "only-if = { \"order.status\" = "),
        ("into = \"Customer.orderCount\"", "into = \"Customer.counts.orders\""),
        ("{ customerName = \"buyerName\" }", "{ customerName = \"buyer.name\" }"),
        ("except = [\"note\"]", "except = [\"note.text\"]"),
    ];
    let mut said = String::new();
    for (piece, instead) in places {
        assert_eq!(SHOP.matches(piece).count(), 1, "{piece} stands there once");
        let error = load(&SHOP.replace(piece, instead)).expect_err(instead).to_string();
        let (place, what) = error.split_once(" is a path into the attribute ").unwrap_or((&error, "no path"));
        let (outer, _) = what.split_once(": name a whole attribute here").unwrap_or((what, ""));
        said.extend([place, " in ", outer, "\n"]);
    }
    expect![[r#"
        3:1: table.sort-key: "s.k" in "s"
        8:1: index.byCustomer.partition-key: "g[0]" in "g"
        15:15: entity.Customer.attributes: "profile.name" in "profile"
        16:23: entity.Customer.derived-attributes: "counts.orders" in "counts"
        24:1: entity.Order.index.byCustomer.partition-key: key template `CUSTOMER#{buyer.id}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits in no path
        26:13: entity.Order.index.byCustomer.only-if.order.status: "order.status" in "order"
        38:1: derivation.order-count.into: "counts.orders" in "counts"
        54:16: derivation.buyer-name.attributes.customerName: "buyer.name" in "buyer"
        47:11: derivation.order-by-id.except: "note.text" in "note"
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
        86:10: derivation.ranked.link.rank: Customer.orderCount shows what order-count counts (N), and a link takes text (S): name an attribute of text
        86:10: derivation.ranked.link.rank: CustomerByName.orderCount shows what order-count counts (N), and a link takes text (S): name an attribute of text
        87:11: derivation.ranked.where.orderCount: Customer.orderCount shows what order-count counts (N), and where takes text (S): name an attribute of text
    "#]]
    .assert_eq(&(said.join("\n") + "\n"));
}
