//! `was`: a renamed derivation.

use expect_test::expect;

use super::{SHOP, refused, refused_whole};
use crate::load;

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
        COUNT,
        &was("\"order-count\""),
        &expect!["36:1: derivation.order-count.was: is its present name: leave was out, or give its first name"],
    );
    refused(
        COUNT,
        &was("\"buyer-name\""),
        &expect![
            "36:1: derivation.order-count.was: there is a derivation buyer-name, and what is stored under this name is of that one"
        ],
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
        COUNT,
        &was("\"order count\""),
        &expect![
            "36:1: derivation.order-count.was: a derivation's name has only letters, digits, - and _, because it is stored in keys"
        ],
    );
    refused(
        COUNT,
        &was("\"ground\""),
        &expect![
            "36:1: derivation.order-count.was: DISABLED takes this name for all derivations that delete items: give it another one"
        ],
    );
    refused(COUNT, &was("7"), &expect!["36:1: derivation.order-count.was: is a whole number: write a text in quotes"]);
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
