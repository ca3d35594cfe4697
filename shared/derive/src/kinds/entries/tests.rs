use expect_test::expect;
use keys::{
    entry,
    key::{Key, SORT_KEY_BYTES_MAX},
};
use proptest::prelude::*;

use crate::{
    catalogue::Catalogue,
    declaration::Link,
    expression::{Input, pairs},
    fixture::{effects_in, ground, inserted, item, key_of, modified, named, removed, short, table::TestTable},
    kinds::{
        entries::Entries,
        latest::{Latest, SourceList},
    },
    query::Order,
    schema::Schema,
};

fn entries(name: &str, carried: &[(&str, &str)]) -> Entries {
    Entries {
        source: "Offer".into(),
        condition: "Ended <> 'x'".parse().unwrap(),
        beside: "Product".into(),
        link: Link::of(&[("ProductId", "ProductId")]),
        by: Input::of("Price"),
        carried: pairs(carried),
        entity: format!("{name}-entries"),
    }
}

fn read(name: &str, order: Order, attributes: &[(&str, &str)], list: Option<SourceList>) -> Latest {
    Latest {
        source: format!("{name}-entries"),
        target: "Product".into(),
        link: None,
        order,
        attributes: pairs(attributes),
        list,
    }
}

/// Products with their lowest price, and a list of the two dearest offers, which are stored anywhere.
fn shop() -> (Schema, Catalogue) {
    let ours = ["LowestPrice", "LowestBy", "Dearest"];
    let entities = [
        ground("Product", ("PRODUCT#{ProductId}", "PRODUCT"), &["Name"], &ours),
        ground("Offer", ("OFFER#{OfferId}", "OFFER"), &["ProductId", "Price", "Seller", "Ended"], &[]),
    ];
    let own = ["cheapest", "dearest"].map(|name| entry::definition(name).unwrap());
    let schema = Schema::new(crate::fixture::schema().layout, entities).with(own);
    let dearest = SourceList { attribute: "Dearest".into(), length: 2 };
    let derivations = vec![
        named("cheapest-entries", entries("cheapest", &[("Price", "LowestPrice"), ("Seller", "LowestBy")])),
        named(
            "cheapest",
            read(
                "cheapest",
                Order::Ascending,
                &[("Carried.LowestPrice", "LowestPrice"), ("Carried.LowestBy", "LowestBy")],
                None,
            ),
        ),
        named("dearest-entries", entries("dearest", &[("Price", "at")])),
        named("dearest", read("dearest", Order::Descending, &[("Carried.at", "at")], Some(dearest))),
    ];
    let catalogue = Catalogue::new(&schema, derivations).unwrap();
    (schema, catalogue)
}

const OFFER: &str = "OFFER#o / OFFER Offer ProductId=p Price=N:15 Seller=ann";

#[test]
fn a_changed_source_requests_its_entry_before_and_after() {
    let (schema, catalogue) = shop();
    let mut requested = String::new();
    for change in [
        inserted(OFFER),
        removed(OFFER),
        modified(OFFER, "OFFER#o / OFFER Offer ProductId=p Price=N:9.5 Seller=ann"),
        modified(OFFER, "OFFER#o / OFFER Offer ProductId=q Price=N:15 Seller=ann"),
        modified(OFFER, &format!("{OFFER} Ended=x")),
        modified(OFFER, "OFFER#o / OFFER Offer ProductId=p Price=N:15 Seller=bob"),
        modified(OFFER, &format!("{OFFER} Note=x")),
        modified(OFFER, "OFFER#o / OFFER Offer ProductId=p Price=SS:15 Seller=ann"),
    ] {
        requested += &effects_in(&schema, &catalogue, "entries", &change);
        requested += "\n";
    }
    expect![[r#"
        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n01:9.5#OFFER%23o#OFFER (cheapest-entries)
        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n01:9.5#OFFER%23o#OFFER (dearest-entries)
        dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        cheapest-entries: look PRODUCT#q / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)
        dearest-entries: look PRODUCT#q / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)

        nothing

        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        cheapest-entries: list Price is SS, and N or S is wanted
        dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)
        dearest-entries: list Price is SS, and N or S is wanted

    "#]]
    .assert_eq(&requested);
}

#[test]
fn a_changed_entry_requests_its_target_and_itself() {
    let (schema, catalogue) = shop();
    let entry = "PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER cheapest-entries";
    expect![[r#"
        cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
        cheapest: look PRODUCT#p / PRODUCT (Product)
    "#]]
    .assert_eq(&effects_in(&schema, &catalogue, "", &inserted(entry)));
}

#[test]
fn an_item_that_has_no_place_in_the_order_is_unreadable_and_one_without_the_value_has_none() {
    let (schema, catalogue) = shop();
    let derivation = catalogue.derivations().next().unwrap();
    let why = |text: &str| {
        let item = item(text);
        let key = key_of(&item);
        let image = schema.image(&key, &item).unwrap();
        derivation.unreadable(&schema, &image).map(|unreadable| unreadable.to_string())
    };
    assert_eq!(why(OFFER), None);
    assert_eq!(why("OFFER#o / OFFER Offer ProductId=p"), None);
    let long = format!("OFFER#o / OFFER Offer ProductId=p Price={}", "x".repeat(SORT_KEY_BYTES_MAX));
    let mut shown = String::new();
    for text in
        ["OFFER#o / OFFER Offer ProductId=p Price=SS:1", "OFFER#o / OFFER Offer ProductId=p Price=N:1E120", &long]
    {
        shown += &(why(text).unwrap_or_default() + "\n");
    }
    expect![[r#"
        Price is SS, and N or S is wanted
        Price has more than 99 digits before the decimal point
        Price makes a key of 1065 bytes; the limit is 1024
    "#]]
    .assert_eq(&shown);
}

/// What a product shows after these offers, in order of arrival.
fn held(offers: &[&str]) -> String {
    let (schema, catalogue) = shop();
    let mut table = TestTable { schema, catalogue, ..TestTable::new() };
    for text in [&["PRODUCT#p / PRODUCT Product"], offers].concat() {
        let item = item(text);
        table.replace(key_of(&item), Some(item));
        table.settle(&[0]);
    }
    assert_eq!(table.differing(), Vec::<String>::new());
    let product = &table.items[&Key::new("PRODUCT#p", "PRODUCT")];
    let names = ["LowestPrice", "LowestBy", "Dearest"].into_iter().filter_map(|name| Some((name, product.get(name)?)));
    names.map(|(name, value)| format!("{name}={}", short(value))).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_extreme_follows_changes_removals_and_ties() {
    let offer = |id: &str, rest: &str| format!("OFFER#{id} / OFFER Offer ProductId=p {rest}");
    assert_eq!(held(&[]), "");
    let [a, b, c] = [("a", "Price=N:15 Seller=ann"), ("b", "Price=N:-2 Seller=bob"), ("c", "Price=N:15 Seller=cat")]
        .map(|(id, rest)| offer(id, rest));
    assert!(held(&[&a, &b, &c]).starts_with("LowestPrice=N:-2 LowestBy=bob"), "{}", held(&[&a, &b, &c]));
    let ended = offer("b", "Price=N:-2 Seller=bob Ended=x");
    assert!(held(&[&b, &c, &a, &ended]).starts_with("LowestPrice=N:15 LowestBy=ann"), "the first of two by its key");
    assert!(held(&[&b, &offer("b", "Price=N:100 Seller=bob"), &a]).starts_with("LowestPrice=N:15 LowestBy=ann"));
    assert!(
        held(&[&b, "OFFER#b / OFFER Offer ProductId=q Price=N:1", &c]).starts_with("LowestPrice=N:15 LowestBy=cat")
    );
}

const ITEMS: [&str; 9] = [
    "PRODUCT#p / PRODUCT Product",
    "PRODUCT#p / PRODUCT Product LowestPrice=N:1",
    "PRODUCT#q / PRODUCT Product",
    "OFFER#a / OFFER Offer ProductId=p Price=N:15",
    "OFFER#a / OFFER Offer ProductId=q Price=N:-7",
    "OFFER#b / OFFER Offer ProductId=p Price=N:15 Seller=bob",
    "OFFER#b / OFFER Offer ProductId=p Price=N:0.5 Ended=x",
    "OFFER#c / OFFER Offer ProductId=p Price=x#%20",
    "PRODUCT#p / PRODUCT#RIPPLE#cheapest#n01:1#OFFER%23a#OFFER cheapest-entries",
];

proptest! {
    #[test]
    fn any_order_of_records_and_late_writes_ends_as_defined(
        steps in prop::collection::vec((0usize..9, 0usize..6, any::<bool>()), 1..40),
        choices in prop::collection::vec(0usize..50, 1..30),
    ) {
        let (schema, catalogue) = shop();
        let mut table = TestTable { schema, catalogue, ..TestTable::new() };
        table.run(&ITEMS, steps, &choices);
        prop_assert_eq!(table.differing(), Vec::<String>::new());
    }
}
