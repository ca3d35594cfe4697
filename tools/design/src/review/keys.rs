//! Checks of keys and indexes.

use std::collections::BTreeSet;

use derive::{expression::Input, kind::Shape, schema::Schema};
use keys::{
    entity::{Definition, KeyTemplate},
    index_key::OnlyIf,
    item::Item,
    key_forms::KeyForms,
    tables::KeyType,
};
use serde_dynamo::AttributeValue;

use crate::{
    Design,
    review::{Check, ReviewFinding},
    samples::{FieldForm, fields},
};

pub(super) fn findings(design: &Design) -> Vec<ReviewFinding> {
    let mut found = static_partitions(&design.schema);
    found.extend(unpadded_numbers(design));
    found.extend(keys_that_meet(&design.schema));
    found
}

/// All keys of an entity: the primary key and those in indexes.
fn all_keys(definition: &Definition) -> impl Iterator<Item = (String, &KeyTemplate, Option<&OnlyIf>)> {
    let primary = (definition.name.clone(), &definition.key, None);
    let indexed = definition
        .indexes
        .iter()
        .map(|index| (format!("{} in {}", definition.name, index.index), &index.key, index.only_if.as_ref()));
    std::iter::once(primary).chain(indexed)
}

fn static_partitions(schema: &Schema) -> Vec<ReviewFinding> {
    let mut found = Vec::new();
    for definition in schema.entities() {
        for (subject, key, only_if) in all_keys(definition) {
            let few = match only_if {
                Some(OnlyIf::Is { attribute, .. }) => Some(attribute.as_str()),
                _ => None,
            };
            // A field with only a few possible values in the index does not spread the key.
            if fields(&key.pk).iter().all(|field| Some(field.name.as_str()) == few) {
                found.push(ReviewFinding {
                    check: Check::StaticPartition,
                    subject,
                    what: format!("the partition key `{}` is the same for all items, or nearly so", key.pk),
                    why: "a partition takes 1,000 write units and gives 3,000 read units a second, whatever the table \
                          has; every item is written to and read from this one",
                    advice: "spread the key over suffixes, such as `{Id%8}`, and merge the suffixes when reading; or \
                             put a field into it that differs",
                });
            }
        }
    }
    found
}

fn unpadded_numbers(design: &Design) -> Vec<ReviewFinding> {
    let summed = numbers(design);
    let mut found = Vec::new();
    for definition in design.schema.entities() {
        let sample = design.samples.item(&definition.name).filter(|_| design.samples.is_given(&definition.name));
        for (subject, key, _) in all_keys(definition) {
            for field in fields(&key.sk).into_iter().filter(|field| field.form == FieldForm::Text) {
                let is_number = sample.is_some_and(|sample| holds_number(design, definition, sample, &field.name))
                    || summed.contains(&(definition.name.clone(), field.name.clone()));
                if is_number {
                    found.push(ReviewFinding {
                        check: Check::UnpaddedNumber,
                        subject: format!("{subject}: {}", field.name),
                        what: format!("`{}` is a number, and is not padded in the sort key `{}`", field.name, key.sk),
                        why: "sort keys are ordered as text: 10 comes before 9, in every listing and range",
                        advice: "pad it, as in `{Total:12}`, or `{MAX-Total:12}` for the greatest first",
                    });
                }
            }
        }
    }
    found
}

/// True if a field of the sample contains a number: an attribute of type N, or text of digits only.
fn holds_number(design: &Design, definition: &Definition, sample: &Item, field: &str) -> bool {
    if let Some(value) = sample.get(field) {
        return matches!(value, AttributeValue::N(_));
    }
    let fields = design.schema.layout.key(sample).and_then(|key| definition.key.parse_key(&key));
    let text = fields.as_ref().and_then(|fields| fields.get(field)).unwrap_or_default();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The attributes and fields that are numbers, by entity: the attributes that displays write, and the fields of a
/// mirror's key that come from a field of type N.
fn numbers(design: &Design) -> BTreeSet<(String, String)> {
    let mut numbers: BTreeSet<(String, String)> =
        super::derivations::displays(design).map(|display| (display.entity, display.attribute)).collect();
    for derivation in design.catalogue.derivations() {
        let Shape::Mirror(mirror) = derivation.kind.shape() else { continue };
        let Some(source) = design.schema.entity(&mirror.source) else { continue };
        let of_number =
            |(_, from): &&(String, Input)| from.name().is_some_and(|name| source.key.type_of(name) == KeyType::N);
        let given = mirror.link.0.iter().filter(of_number);
        numbers.extend(given.map(|(to, _)| (mirror.target.clone(), to.clone())));
    }
    numbers
}

/// Pairs of entities whose key forms the same key can match. A manifest with such a pair of derived entities is
/// refused.
fn keys_that_meet(schema: &Schema) -> Vec<ReviewFinding> {
    let mut forms = KeyForms::default();
    let mut pairs: Vec<(usize, usize, [&Definition; 2])> = Vec::new();
    // Counters and entries have keys of their own.
    let all = schema.entities().filter(|entity| !entity.is_own());
    for (at, other) in all.enumerate() {
        pairs.extend(forms.meeting(&other.key).map(|(one_at, one)| (*one_at, at, [*one, other])));
        forms.insert(&other.key, (at, other));
    }
    pairs.sort_unstable_by_key(|(one_at, at, _)| (*one_at, *at));
    let finding = |[one, other]: [&Definition; 2]| {
        let (check, why) = if one.derived == other.derived {
            (Check::KeysMeet, "a put of one then replaces the other, without an error")
        } else {
            (
                Check::DerivedKeyTaken,
                "what the application has under such a key stays, and the item that Ripple would create there is missing",
            )
        };
        ReviewFinding {
            check,
            subject: format!("{} and {}", one.name, other.name),
            what: format!(
                "one key can be of both forms: `{} / {}` and `{} / {}`",
                one.key.pk, one.key.sk, other.key.pk, other.key.sk
            ),
            why,
            advice: "give one of them a prefix of its own in the sort key",
        }
    };
    pairs.into_iter().map(|(_, _, pair)| finding(pair)).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use keys::index_key::IndexKey;

    use super::*;
    use crate::review::tests::Reviewing;

    /// Checks a table of one entity with a key in an index.
    fn check_index(key: (&str, &str), only_if: &str, wanted: &Expect) {
        let (pk, sk) = key;
        let manifest = format!(
            r#"
            [index.open]
            partition-key = "gpk"
            sort-key = "gsk"
            [entity.Order]
            partition-key = "ORDER#{{id}}"
            sort-key = "ORDER"
            attributes = ["status", "at"]
            [entity.Order.index.open]
            partition-key = "{pk}"
            sort-key = "{sk}"
            {only_if}
            "#
        );
        Reviewing::table(&manifest).check(Check::StaticPartition, wanted);
    }

    #[test]
    fn a_partition_key_that_is_the_same_for_all_items_is_found() {
        check_index(
            ("ORDERS", "{at}"),
            "",
            &expect!["Order in open: the partition key `ORDERS` is the same for all items, or nearly so"],
        );
        check_index(
            ("ORDERS#{status}", "{at}"),
            "only-if = { status = \"open\" }",
            &expect!["Order in open: the partition key `ORDERS#{status}` is the same for all items, or nearly so"],
        );
    }

    #[test]
    fn a_partition_key_that_differs_or_is_spread_is_not_found() {
        check_index(("ORDERS#{id%8}", "{at}"), "", &expect![""]);
        check_index(("ORDERS#{status}", "{at}"), "", &expect![""]);
        check_index(("ORDERS#{status}#{id%8}", "{at}"), "only-if = { status = \"open\" }", &expect![""]);
    }

    /// Checks a table of one entity with a sample.
    fn check_number(sk: &str, sample: &str, rank: AttributeValue, wanted: &Expect) {
        let manifest = format!("[entity.Entry]\npartition-key = \"LIST#{{list}}\"\nsort-key = \"{sk}\"");
        let table = Reviewing::table(&manifest).sample("Entry", ("LIST#a", sample), &[("of", rank)]);
        table.check(Check::UnpaddedNumber, wanted);
    }

    #[test]
    fn a_number_that_is_ordered_as_text_is_found() {
        let none = || AttributeValue::S("x".to_owned());
        check_number(
            "E#{place}",
            "E#7",
            none(),
            &expect!["Entry: place: `place` is a number, and is not padded in the sort key `E#{place}`"],
        );
        check_number(
            "E#{of}#{id}",
            "E#7#x",
            AttributeValue::N("7".to_owned()),
            &expect!["Entry: of: `of` is a number, and is not padded in the sort key `E#{of}#{id}`"],
        );
        check_number("E#{place:3}", "E#007", none(), &expect![""]);
        check_number("E#{MAX-place:3}", "E#992", none(), &expect![""]);
        check_number("E#{place}", "E#2024-01-15", none(), &expect![""]);
    }

    #[test]
    fn a_count_in_a_sort_key_is_found_without_a_sample() {
        let check = |sk: &str, wanted: &Expect| {
            let table = Reviewing::table(
                r#"
                [index.top]
                partition-key = "gpk"
                sort-key = "gsk"
                [entity.User]
                partition-key = "USER#{id}"
                sort-key = "USER"
                attributes = ["city"]
                derived-attributes = ["orders"]
                [entity.Order]
                partition-key = "USER#{id}"
                sort-key = "ORDER#{at}"
                [derivation.order-count]
                kind = "count"
                from = "Order"
                into = "User.orders"
                "#,
            );
            let key = KeyTemplate::parse("TOP#{city}", sk).unwrap();
            let top = IndexKey { index: "top".to_owned(), key, only_if: None, derived: true };
            table.placed("User", &top).check(Check::UnpaddedNumber, wanted);
        };
        check(
            "{orders}#{id}",
            &expect!["User in top: orders: `orders` is a number, and is not padded in the sort key `{orders}#{id}`"],
        );
        check("{MAX-orders:12}#{id}", &expect![""]);
        check("{city}#{id}", &expect![""]);
    }

    #[test]
    fn a_field_of_type_n_in_the_sort_key_of_a_mirror_is_found() {
        let check = |sk: &str, wanted: &Expect| {
            Reviewing::of(&format!(
                r#"
                [tables.Messages]
                partition-key = "channelId"
                sort-key = {{ name = "sentAt", type = "N" }}
                [tables.Mentions]
                partition-key = "pk"
                sort-key = "sk"
                [entity.Message]
                table = "Messages"
                attributes = ["userId"]
                [entity.Mention]
                table = "Mentions"
                partition-key = "USER#{{userId}}"
                sort-key = "{sk}"
                derived = true
                [derivation.mentions]
                kind = "mirror"
                from = "Message"
                to = "Mention"
                "#
            ))
            .check(Check::UnpaddedNumber, wanted);
        };
        check(
            "{sentAt}#{channelId}",
            &expect!["Mention: sentAt: `sentAt` is a number, and is not padded in the sort key `{sentAt}#{channelId}`"],
        );
        check("{sentAt:15}#{channelId}", &expect![""]);
    }

    #[test]
    fn forms_that_one_key_can_be_of_are_found() {
        let check = |one: (&str, &str), other: (&str, &str), wanted: &Expect| {
            let entity = |name: &str, (pk, sk): (&str, &str)| {
                format!("[entity.{name}]\npartition-key = \"{pk}\"\nsort-key = \"{sk}\"\n")
            };
            let manifest = entity("One", one) + &entity("Other", other);
            Reviewing::table(&manifest).check(Check::KeysMeet, wanted);
        };
        check(
            ("USER#{a}", "{b}#{c}"),
            ("USER#{a}", "ORDER#{b}"),
            &expect!["One and Other: one key can be of both forms: `USER#{a} / {b}#{c}` and `USER#{a} / ORDER#{b}`"],
        );
        check(("USER#{a}", "X"), ("USER#{a}", "ORDER#{b}"), &expect![""]);
        check(("USER#{a}", "X"), ("SHOP#{a}", "X"), &expect![""]);
        // A counter would have to stand beside an item with the sort key ORDER.
        check(("USER#{a}", "X"), ("USER#{a}", "ORDER#{b}#{c}"), &expect![""]);
    }

    #[test]
    fn a_form_of_the_applications_items_that_a_derived_one_can_be_of_is_found() {
        let manifest = r#"
            [entity.One]
            partition-key = "USER#{a}"
            sort-key = "{b}#{c}"
            [entity.Other]
            partition-key = "USER#{a}"
            sort-key = "ORDER#{b}"
            derived = true
            "#;
        Reviewing::table(manifest).check(
            Check::DerivedKeyTaken,
            &expect!["One and Other: one key can be of both forms: `USER#{a} / {b}#{c}` and `USER#{a} / ORDER#{b}`"],
        );
        Reviewing::table(manifest).check(Check::KeysMeet, &expect![""]);
    }
}
