//! The latest and the extreme: which items lead to a target, and in which order.

use super::{
    kinds::{BASE, refused_example},
    *,
};

#[test]
fn what_a_latest_carries_is_looked_up_and_has_an_order() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("latest", from, to, expect);
    refused(
        "{ placedAt = \"lastOrderAt\" }",
        "{ placedOn = \"lastOrderAt\" }",
        &expect![[
            r#"derivation.last-order.attributes.placedOn: Order has no field or attribute "placedOn": did you mean "placedAt"?"#
        ]],
    );
    refused(
        "{ placedAt = \"lastOrderAt\" }",
        "{ placedAt = \"total\" }",
        &expect![[
            r#"derivation.last-order.attributes.placedAt: User does not declare as derived "total": there are followerCount, orderCount, lifetimeValue, lastOrderAt, firstOrderAt, recentOrders, largestTotal, largestOrder"#
        ]],
    );
    refused(
        "{ placedAt = \"lastOrderAt\" }",
        "{ placedAt = \"lastOrderAt\" }\nwhere = { state = \"paid\" }",
        &expect![[
            r#"derivation.last-order.where.state: Order has no field or attribute "state": there are orderId, placedAt, userId, total, status; one that your items have is declared in attributes"#
        ]],
    );
    refused(
        "{ placedAt = \"lastOrderAt\" }",
        "{ placedAt = \"lastOrderAt\", orderId = \"lastOrderAt\" }",
        &expect![[
            r#"derivation.last-order.attributes.orderId: placedAt and orderId both give "lastOrderAt", and only one can: name another attribute for one of them"#
        ]],
    );
    refused(
        "{ placedAt = \"lastOrderAt\" }",
        "[]",
        &expect!["derivation.last-order.attributes: names nothing to copy: add an attribute"],
    );
    refused(
        "{ placedAt = \"lastOrderAt\" }",
        "{ placedAt = \"lastOrderAt\" }\nwhich = \"newest\"",
        &expect![[r#"derivation.last-order.which: there is no value "newest": there are last, first"#]],
    );
    refused(
        "attributes = { placedAt",
        "found = \"Order\"\nattributes = { placedAt",
        &expect![
            "derivation.last-order.found: there is no such key: there are kind, id, was, from, to, into, n, link, by, where, attributes, which"
        ],
    );
    refused(
        "partition-key = \"USER#{userId}\"\nsort-key = \"ORDER",
        "partition-key = \"DAY#{day}\"\nsort-key = \"{userId}#ORDER",
        &expect![
            "derivation.last-order: name what orders the items, as in by = \"createdAt\": the items of Order that lead to one User are not consecutive items of one partition: the key of User does not give day of their partition key"
        ],
    );
    refused(
        "attributes = { placedAt",
        "link = { userId = \"orderId\" }\nattributes = { placedAt",
        &expect![
            "derivation.last-order: name what orders the items, as in by = \"createdAt\": the items of Order that lead to one User are not consecutive items of one partition: the key of User does not give userId of their partition key"
        ],
    );
}

#[test]
fn an_extreme_is_of_one_value() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("extreme", from, to, expect);
    refused(
        "min = \"placedAt\"\n",
        "",
        &expect!["derivation.first-order: min or max is missing: the value whose extreme is shown"],
    );
    refused(
        "min = \"placedAt\"\n",
        "min = \"placedAt\"\nmax = \"placedAt\"\n",
        &expect!["derivation.first-order.max: give min or max, not both: declare two derivations"],
    );
    refused(
        "min = \"placedAt\"",
        "min = \"totl\"",
        &expect![[r#"derivation.first-order.min: Order has no field or attribute "totl": did you mean "total"?"#]],
    );
    refused(
        "min = \"placedAt\"",
        "min = \"total\"\n[entity.first-order-entries]\npartition-key = \"X#{x}\"\nsort-key = \"X\"",
        &expect![
            "derivation.first-order: Ripple's entries for it are of an entity first-order-entries: give the declared one another name"
        ],
    );
    refused(
        "into = \"User.firstOrderAt\"",
        "into = \"User\"",
        &expect![[
            r#"derivation.first-order.into: names no attribute: the attribute that shows it, as in "Product.lowestPrice""#
        ]],
    );
    refused(
        "into = \"User.firstOrderAt\"",
        "into = \"User.firstOrder\"",
        &expect![[
            r#"derivation.first-order.into: User does not declare as derived "firstOrder": did you mean "firstOrderAt"?"#
        ]],
    );
}

#[test]
fn an_extreme_takes_the_end_of_the_collection_at_which_it_stands() {
    let order = |field: &str, which: &str| {
        let text =
            format!("{BASE}{}", crate::kinds::descriptions().iter().find(|it| it.name == "extreme").unwrap().example);
        let text = text.replacen("ORDER#{placedAt}", &format!("ORDER#{field}"), 1).replacen(
            "min = ",
            &format!("{which} = "),
            1,
        );
        let (schema, catalogue) = load(&text).unwrap_or_else(|error| panic!("{error}"));
        let derivation = catalogue.derivations().find(|it| it.name == "first-order").unwrap();
        derivation.kind.outline(&schema).terms.join("")
    };
    assert_eq!(order("{placedAt}", "min"), "the first: placedAt as firstOrderAt");
    assert_eq!(order("{placedAt}", "max"), "the last: placedAt as firstOrderAt");
    assert_eq!(order("{MAX-placedAt:12}", "max"), "the first: placedAt as firstOrderAt");
    assert_eq!(order("{MAX-placedAt:12}", "min"), "the last: placedAt as firstOrderAt");
}

#[test]
fn what_is_no_range_in_the_wanted_order_has_entries() {
    let kinds = |from: &str, to: &str| {
        let example = crate::kinds::descriptions().iter().find(|it| it.name == "latest").unwrap().example;
        let text = format!("{BASE}{example}");
        assert!(text.contains(from), "{from}");
        let (schema, catalogue) = load(&text.replacen(from, to, 1)).unwrap_or_else(|error| panic!("{error}"));
        let ours = catalogue.derivations().filter(|it| it.name.starts_with("last-order"));
        let terms = |it: &derive::derivation::Derivation| it.kind.outline(&schema).terms.join(", ");
        ours.map(|it| format!("{} ({}): {}", it.name, it.kind.name(), terms(it))).collect::<Vec<_>>().join("\n")
    };
    let last = "attributes = { placedAt = \"lastOrderAt\" }";
    let with = |line: &str| kinds(last, &format!("{line}\n{last}"));
    let mut shown = Vec::new();
    for line in [
        "",
        "by = \"placedAt\"",
        "by = \"total\"",
        "where = { status = \"paid\" }",
        "by = \"size(status) * 2\"\nwhich = \"first\"",
    ] {
        shown.extend([format!("# {line}"), with(line)]);
    }
    let elsewhere =
        "partition-key = \"DAY#{day}\"\nsort-key = \"ORDER#{MAX-rank:4}#{placedAt}\"\nattributes = [\"userId\", ";
    let moved = |line: &str| {
        let order = "partition-key = \"USER#{userId}\"\nsort-key = \"ORDER#{placedAt}#{orderId}\"\nattributes = [";
        let base = BASE.replace(order, elsewhere);
        let text = format!(
            "{base}[derivation.last-order]\nkind = \"latest\"\nfrom = \"Order\"\nto = \"User\"\n{line}\n{last}\n"
        );
        load(&text).map(|(_, catalogue)| catalogue.derivations().count()).map_err(|error| error.to_string())
    };
    shown.extend([format!("{:?}", moved("")), format!("{:?}", moved("by = \"placedAt\""))]);
    expect![[r##"
        # 
        last-order (latest): the last: placedAt as lastOrderAt
        # by = "placedAt"
        last-order (latest): the last: placedAt as lastOrderAt
        # by = "total"
        last-order-entries (entries): by total, carrying placedAt as lastOrderAt
        last-order (latest): the last: lastOrderAt
        # where = { status = "paid" }
        last-order-entries (entries): by placedAt, where status = 'paid', carrying placedAt as lastOrderAt
        last-order (latest): the last: lastOrderAt
        # by = "size(status) * 2"
        which = "first"
        last-order-entries (entries): by size(status) * 2, carrying placedAt as lastOrderAt
        last-order (latest): the first: lastOrderAt
        Err("184:13: derivation.last-order: name what orders the items, as in by = \"createdAt\": the items of Order that lead to one User are not consecutive items of one partition: the key of User does not give day of their partition key")
        Ok(4)"##]].assert_eq(&shown.join("\n"));
}

#[test]
fn a_list_of_the_latest_says_where_it_is_and_how_long() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("latest", from, to, expect);
    refused(
        "n = 5\n",
        "",
        &expect!["derivation.recent-orders.into: names a list: give its greatest length, as in n = 5"],
    );
    refused("n = 5", "n = 0", &expect!["derivation.recent-orders.n: is 0: it is from 1 to 100"]);
    refused("n = 5", "n = 101", &expect!["derivation.recent-orders.n: is 101: it is from 1 to 100"]);
    refused(
        "into = \"User.recentOrders\"\n",
        "",
        &expect![[
            r#"derivation.recent-orders.n: n is the length of a list: name the list's attribute instead of to, as in into = "User.recent""#
        ]],
    );
    refused(
        "into = \"User.recentOrders\"\n",
        "to = \"User\"\n",
        &expect![[
            r#"derivation.recent-orders.n: n is the length of a list: name the list's attribute instead of to, as in into = "User.recent""#
        ]],
    );
    refused(
        "into = \"User.recentOrders\"\n",
        "to = \"User\"\ninto = \"User.recentOrders\"\n",
        &expect![
            "derivation.recent-orders.into: give into for a list on the target, or to for attributes of one item, not both"
        ],
    );
    refused(
        "into = \"User.recentOrders\"",
        "into = \"User\"",
        &expect![[
            r#"derivation.recent-orders.into: names no attribute: the attribute that holds the list, as in "User.recentOrders""#
        ]],
    );
    refused(
        "into = \"User.recentOrders\"",
        "into = \"User.recent\"",
        &expect![[
            r#"derivation.recent-orders.into: User does not declare as derived "recent": there are followerCount, orderCount, lifetimeValue, lastOrderAt, firstOrderAt, recentOrders, largestTotal, largestOrder"#
        ]],
    );
    refused(
        "[\"placedAt\", \"total\"]",
        "[\"placedAt\", \"totals\"]",
        &expect![[
            r#"derivation.recent-orders.attributes: Order has no field or attribute "totals": did you mean "total"?"#
        ]],
    );
}

#[test]
fn the_entries_of_a_derivation_that_is_called_entries_are_its_own() {
    let example = crate::kinds::descriptions().iter().find(|it| it.name == "extreme").unwrap().example;
    let named = example.replace("[derivation.cheapest]", "[derivation.offer-entries]");
    let (schema, catalogue) = load(&format!("{BASE}{named}")).unwrap_or_else(|error| panic!("{error}"));
    let entries = catalogue.derivations().find(|it| it.name == "offer-entries-entries").unwrap();
    let target = entries.kind.refresh().unwrap().target().to_owned();
    assert!(schema.entity(&target).is_some_and(keys::entity::Definition::is_own), "{target}");
}
