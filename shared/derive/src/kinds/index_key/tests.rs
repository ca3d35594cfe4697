use expect_test::{Expect, expect};

use crate::{
    change::Change,
    derived::{Counts, Derived},
    fixture::{
        effects, inserted, item, key_of, modified, products::best_sellers, removed, schema, short, table::TestTable,
    },
    kind::{Kind as _, Refresh as _},
    whole,
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("index key", change));
}

const TEA: &str = "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4 GSI2PK=BESTSELLERS#drinks \
                   GSI2SK=999999999995#tea";

#[test]
fn a_number_or_a_category_that_changed_rings() {
    check(
        &modified(TEA, &TEA.replace("N:4", "N:5")),
        &expect![[r#"
        best-sellers: look PRODUCT#tea / METADATA (Product)
    "#]],
    );
    check(
        &modified(TEA, &TEA.replace("Category=drinks", "Category=food")),
        &expect![[r#"
        best-sellers: look PRODUCT#tea / METADATA (Product)
    "#]],
    );
    check(
        &modified(TEA, &TEA.replace("N:4", "N:4.0")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(TEA, &format!("{TEA} Price=N:3")),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_put_that_drops_or_alters_the_key_rings() {
    check(
        &modified(TEA, "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4"),
        &expect![[r#"
        best-sellers: look PRODUCT#tea / METADATA (Product)
    "#]],
    );
    check(
        &modified(TEA, &TEA.replace("995#tea", "990#tea")),
        &expect![[r#"
        best-sellers: look PRODUCT#tea / METADATA (Product)
    "#]],
    );
    check(
        &inserted(TEA),
        &expect![[r#"
        best-sellers: look PRODUCT#tea / METADATA (Product)
    "#]],
    );
    check(
        &removed(TEA),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_category_that_cannot_be_read_is_listed_and_a_number_is_not() {
    check(
        &inserted(&TEA.replace("Category=drinks", "Category=N:1")),
        &expect![[r#"
        best-sellers: look PRODUCT#tea / METADATA (Product)
        best-sellers: list Category is N, and S is wanted
    "#]],
    );
    check(
        &inserted(&TEA.replace("N:4", "N:-4")),
        &expect![[r#"
        best-sellers: look PRODUCT#tea / METADATA (Product)
    "#]],
    );
}

/// The keys of products with these numbers of units sold.
fn defined(sold: &[&str], wanted: &Expect) {
    let mut table = TestTable::new();
    for (at, sold) in sold.iter().enumerate() {
        let counter = format!("PRODUCT#{at} / METADATA#COUNT#sale-count#00 Counter Value=N:{sold}");
        let product = format!("PRODUCT#{at} / METADATA Product Category=drinks GSI2PK=x UnitsSold=N:77");
        for text in [counter, product] {
            let item = item(&text);
            table.replace(key_of(&item), Some(item));
        }
    }
    table.settle(&[]);
    assert_eq!(table.differing(), [""; 0]);
    let shown = |item: &keys::item::Item, name: &str| item.get(name).map_or("-".to_owned(), short);
    let products = table.items.iter().filter(|(key, _)| key.sk == "METADATA");
    let mut lines: Vec<String> = products
        .map(|(key, item)| {
            let [number, pk, sk] = ["UnitsSold", "GSI2PK", "GSI2SK"].map(|name| shown(item, name));
            format!("{}: {number}, {pk} / {sk}\n", key.pk)
        })
        .collect();
    let whole = whole::derive(&table.schema, &table.catalogue, &table.items);
    lines.extend(whole.flaws.iter().map(|(name, flaw)| format!("{name}: {} {}\n", flaw.key, flaw.why)));
    wanted.assert_eq(&lines.concat());
}

#[test]
fn only_a_whole_number_above_zero_that_fits_gives_a_key() {
    defined(
        &["0", "1", "12", "999999999999", "1000000000000", "-1"],
        &expect![[r#"
        PRODUCT#0: N:0, - / -
        PRODUCT#1: N:1, BESTSELLERS#drinks / 999999999998#1
        PRODUCT#2: N:12, BESTSELLERS#drinks / 999999999987#2
        PRODUCT#3: N:999999999999, BESTSELLERS#drinks / 000000000000#3
        PRODUCT#4: N:1000000000000, - / -
        PRODUCT#5: N:-1, - / -
        best-sellers: PRODUCT#4 / METADATA it is not in the index GSI2: UnitsSold does not fit in 12 digits
    "#]],
    );
}

#[test]
fn a_number_that_is_fractional_or_none_at_all_gives_no_key_and_is_told() {
    for value in ["N:0.5", "N:1e12", "four"] {
        let schema = schema();
        let item = item(&TEA.replace("N:4", value));
        let items = [(key_of(&item), item)].into();
        let kind = best_sellers();
        let [Derived::Attributes { attributes, .. }] = &kind.derive("", &schema, &items, &Counts::new())[..] else {
            panic!("a product has a part")
        };
        assert!(attributes.iter().all(|wanted| wanted.value.is_none()), "{value}");
        assert_eq!(kind.flaws(&schema, &items).len(), 1, "{value}");
    }
}

#[test]
fn a_product_without_a_category_is_in_no_index_and_without_fault() {
    let schema = schema();
    let item = item(&TEA.replace(" Category=drinks", ""));
    let items = [(key_of(&item), item)].into();
    let kind = best_sellers();
    let derived = kind.derive("", &schema, &items, &Counts::new());
    assert!(matches!(&derived[..], [Derived::Attributes { attributes, .. }] if attributes[0].value.is_none()));
    assert_eq!(kind.flaws(&schema, &items), []);
}
