//! Paths of values inside attributes.

use expect_test::expect;

use super::{SHOP, refused};
use crate::load;

/// The manifest with these pieces replaced.
fn changed(pieces: &[(&str, &str)]) -> String {
    pieces.iter().fold(SHOP.to_owned(), |text, (piece, instead)| {
        assert_eq!(text.matches(piece).count(), 1, "{piece} stands there once");
        text.replace(piece, instead)
    })
}

const ATTRIBUTES: (&str, &str) =
    ("[\"buyerId\", \"status\", \"note\"]", "[\"buyer\", \"buyerId\", \"state\", \"note\", \"lines\"]");

#[test]
fn a_path_is_read_wherever_an_attribute_of_a_source_is() {
    let text = changed(&[
        ATTRIBUTES,
        ("attributes = [\"customerName\"]\nderived", "attributes = [\"profile\"]\nderived"),
        ("only-if = { status = \"paid\" }\n", ""),
        ("into = \"Customer.orderCount\"", "into = \"Customer\"\nshows = { count = \"orderCount\" }"),
        (
            "customerId = \"buyerId\" }\nwhere = { status = ",
            "customerId = \" buyer . id\" }\nsum = \"lines[0].total\"\nwhere = { \"state.now\" = ",
        ),
        ("{ customerName = \"buyerName\" }", "{ \"profile.\\\"first name\\\"\" = \"buyerName\" }"),
        ("attributes = [\"customerName\"]\nfound", "attributes = { \"profile.names[0]\" = \"customerName\" }\nfound"),
    ]);
    let (schema, catalogue) = load(&text).unwrap();
    let definitions = catalogue.derivations().map(|it| derive::definition::definition(it, &schema));
    expect![[r#"
        count and sum: Order (where state.now = 'paid'; sum of lines[0].total) into CUSTOMER#{buyer.id} / CUSTOMER#{buyer.id}; reads Order.buyer.id, Order.lines[0].total, Order.state
        display: Counter (Value of order-count; zero is written) into CUSTOMER#{customerId} / CUSTOMER#{customerId}; writes orderCount; reads Counter.order-count
        mirror: Order (except note) into ORDER#{orderId} / ORDER#{orderId}; writes OrderById
        copy: Customer (profile."first name" as buyerName) into SHOP#{shopId} / ORDER#{orderedOn}#{orderId}; writes buyerName; reads Customer.profile."first name", Order.buyerId; index keys CUSTOMER#{buyerId} / ORDER#{orderedOn}#{orderId} of byCustomer
        copy: Customer (profile.names[0] as customerName) into ORDER#{orderId} / ORDER#{orderId}; writes customerName; reads Customer.profile.names[0], OrderById.buyerId
    "#]]
    .assert_eq(&(definitions.collect::<Vec<_>>().join("\n") + "\n"));
}

#[test]
fn a_path_that_leads_nowhere_is_refused() {
    let link = "customerId = \"buyerId\" }\nwhere";
    let linked = |path: &str| format!("customerId = {path} }}\nwhere");
    refused(
        link,
        &linked("\"nota.id\""),
        &expect![[
            r#"39:10: derivation.order-count.link.customerId: "nota.id" is inside of an attribute "nota", and Order has none of this name: did you mean "note"?"#
        ]],
    );
    refused(
        link,
        &linked("\"shopId.id\""),
        &expect![[
            r#"39:10: derivation.order-count.link.customerId: "shopId.id" is inside of shopId, which is a field of the key of Order, and that has no parts"#
        ]],
    );
    refused(
        link,
        &linked("\"note[a]\""),
        &expect![[
            r#"39:10: derivation.order-count.link.customerId: "note[a]" is no path into an attribute: at character 6: a position in the list is wanted, from 0"#
        ]],
    );
    refused(
        link,
        &linked("\"note.first-name\""),
        &expect![[
            r#"39:10: derivation.order-count.link.customerId: Order has no field or attribute "name": there are orderId, orderedOn, shopId, buyerId, status, note, buyerName; one that your items have is declared in attributes; a text stands in single quotes, and a name with - in it in double quotes"#
        ]],
    );
    refused(
        link,
        &linked("\"note.\""),
        &expect![[
            r#"39:10: derivation.order-count.link.customerId: "note." is no path into an attribute: at character 6: it ends where an attribute or a value is wanted"#
        ]],
    );
    refused(
        "shards = 4",
        "sum = \"stotus.amount\"",
        &expect![[
            r#"41:1: derivation.order-count.sum: "stotus.amount" is inside of an attribute "stotus", and Order has none of this name: did you mean "status"?"#
        ]],
    );
    refused(
        "{ customerName = \"buyerName\" }",
        "{ \"customer.name\" = \"buyerName\" }",
        &expect![[
            r#"54:16: derivation.buyer-name.attributes.customer.name: "customer.name" is inside of an attribute "customer", and Customer has none of this name: there are customerName, orderCount"#
        ]],
    );
    refused(
        "attributes = [\"customerName\"]\nfound",
        "attributes = [\"customerName.first\"]\nfound",
        &expect![[
            r#"62:15: derivation.buyer-name-by-id.attributes: "customerName.first" is a path into the attribute "customerName": name a whole attribute here; keys, declared and written attributes are never paths"#
        ]],
    );
    refused(
        "where = { status = \"paid\" }",
        "where = { \"order.status\" = \"paid\" }",
        &expect![[
            r#"40:11: derivation.order-count.where.order.status: "order.status" is inside of an attribute "order", and Order has none of this name: there are buyerId, status, note, buyerName"#
        ]],
    );
}

#[test]
fn the_items_of_a_copy_by_a_path_are_found_through_a_mirror() {
    let mirror = r##"
[entity.OrderOfCustomer]
partition-key = "CUSTOMER#{buyerId}"
sort-key = "ORDER#{shopId}#{orderedOn}#{orderId}"
derived = true

[derivation.order-of-customer]
kind = "mirror"
from = "Order"
to = "OrderOfCustomer"
link = { buyerId = "note.id" }
"##;
    let link = "link = { customerId = \"buyerId\" }\nattributes = { customerName = \"buyerName\" }\nfound = { index = \"byCustomer\" }";
    let by_path = link.replace("buyerId", "note.id");
    let by_default = by_path.replace("{ index = \"byCustomer\" }", "\"OrderOfCustomer\"");
    let error = load(&format!("{}{mirror}", changed(&[(link, &by_default)]))).expect_err("nothing gives buyerId");
    expect![[r#"55:1: derivation.buyer-name.found: a change of Customer does not have buyerId of OrderOfCustomer, by which its Order items would be found: a path of the link gives no field of a key, so add by, as in found = { through = "OrderOfCustomer", by = { buyerId = "…" } }"#]].assert_eq(&error.to_string());
    let found = by_default
        .replace("\"OrderOfCustomer\"", "{ through = \"OrderOfCustomer\", by = { buyerId = \"customerId\" } }");
    load(&format!("{}{mirror}", changed(&[(link, &found)]))).unwrap();
}
