//! Checks of access patterns.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    derivation::Derivation,
    part::{Part, PartOf},
    query::{Query, SortKeys},
    schema::Schema,
    write::TRANSACT_ACTIONS_MAX,
};
use keys::{
    counter,
    entity::{Definition, KeyTemplate},
    key::Key,
    layout::Layout,
};

use super::{Check, ReviewFinding};
use crate::{Design, PatternRequests};

pub(super) fn findings(design: &Design) -> Vec<ReviewFinding> {
    let mut found = scans(design);
    found.extend(unread_indexes(design));
    found.extend(counters_in_listings(design));
    found.extend(unread_targets(design));
    found.extend(large_transactions(design));
    found
}

fn scans(design: &Design) -> Vec<ReviewFinding> {
    let scanning = design.patterns.iter().filter(|pattern| pattern.scans());
    let finding = |pattern: &PatternRequests| ReviewFinding {
        check: Check::Scan,
        subject: pattern.id.clone(),
        what: format!("{} reads the whole table", pattern.title),
        why: "it costs as much as the whole table, however little it finds, and gets slower with every new item",
        advice: "make a key that it can query: a sort key to range over, or an index",
    };
    scanning.map(finding).collect()
}

fn unread_indexes(design: &Design) -> Vec<ReviewFinding> {
    let asked = design.patterns.iter().flat_map(PatternRequests::queries).filter_map(|query| query.index.clone());
    let found = design.catalogue.derivations().flat_map(|derivation| derivation.kind.outline(&design.schema).finds);
    let read: BTreeSet<String> = asked.chain(found.filter_map(|find| find.query.index)).collect();
    let unread = design.schema.layout.indexes.iter().filter(|index| !read.contains(&index.name));
    let finding = |index: &keys::layout::Index| ReviewFinding {
        check: Check::UnreadIndex,
        subject: index.name.clone(),
        what: "no declared read and no derivation uses the index".to_owned(),
        why: "every item that has its keys is written twice, and stored twice",
        advice: "remove the index, and its key attributes from the items; or declare the read in [access.NAME]",
    };
    unread.map(finding).collect()
}

fn counters_in_listings(design: &Design) -> Vec<ReviewFinding> {
    let mut found = Vec::new();
    for pattern in &design.patterns {
        let mut taken = BTreeSet::new();
        for derivation in design.catalogue.derivations() {
            let Some(target) = derivation.kind.outline(&design.schema).counts else { continue };
            let Some(target) = design.schema.entity(&target) else { continue };
            let takes = |query: &Query| {
                query.index.is_none() && !is_of_counters(query) && takes_counters(query, target, &derivation.name)
            };
            if pattern.queries().any(takes) {
                taken.insert(derivation.label().to_owned());
            }
        }
        if !taken.is_empty() {
            found.push(ReviewFinding {
                check: Check::CounterInListing,
                subject: pattern.id.clone(),
                what: format!(
                    "its range includes the counters of {}",
                    taken.into_iter().collect::<Vec<_>>().join(", ")
                ),
                why: "the counters of an item come after it in its partition, several for a hot count: they are read and paid \
                      for, and whoever shows the items must pass them over",
                advice: "end the range before the counters, or skip items of other entities",
            });
        }
    }
    found
}

/// True if a query asks for counters, and nothing else.
fn is_of_counters(query: &Query) -> bool {
    query.sk.first().contains(counter::MARK)
}

/// True if a query of the table returns the counters of a target.
fn takes_counters(query: &Query, target: &Definition, derivation: &str) -> bool {
    let Some(fields) = target.key.pk.parse_key(&query.pk) else { return false };
    let value = |name: &str| fields.get(name);
    // A known sort key of the target gives the beginning of its counters' sort keys.
    let start = match (target.key.sk.build_of(value), target.key.sk.prefix_of(value)) {
        (Ok(sk), _) => counter::derivation_prefix(&Key::new(&query.pk, sk), derivation),
        (Err(_), Ok(start)) => start,
        (Err(_), Err(_)) => return false,
    };
    overlaps(&query.sk, &start)
}

/// True if the range can contain a sort key that begins with this text.
fn overlaps(range: &SortKeys, start: &str) -> bool {
    match range {
        SortKeys::All => true,
        SortKeys::Prefix(prefix) => prefix.starts_with(start) || start.starts_with(prefix.as_str()),
        SortKeys::Between(first, last) => {
            let ends_before = last.as_str() < start;
            let begins_behind = first.as_str() > start && !first.starts_with(start);
            !ends_before && !begins_behind
        }
        SortKeys::After(first) => first.as_str() < start || first.starts_with(start),
    }
}

/// True if a query can find items with keys of this form.
fn finds(query: &Query, template: &KeyTemplate) -> bool {
    let Some(fields) = template.pk.parse_key(&query.pk) else { return false };
    template.sk.prefix_of(|name| fields.get(name)).is_ok_and(|start| overlaps(&query.sk, &start))
}

/// True if a pattern reads this part of an entity's items.
fn reads(layout: &Layout, pattern: &PatternRequests, definition: &Definition, part: &PartOf) -> bool {
    let attribute = part.attribute();
    let is_index_key = attribute.is_some_and(|attribute| layout.is_key(attribute));
    let by_key = pattern.keys().any(|key| definition.key.parse_key(key).is_some());
    let of_index = |query: &Query, name: &str| {
        let Some(index) = layout.index(name) else { return false };
        let holds = attribute.is_none_or(|attribute| layout.stored_in(index, attribute).is_some());
        let mut keys = definition.indexes.iter().filter(|key| key.index == name);
        holds && keys.any(|key| finds(query, &key.key))
    };
    let by_query = pattern.queries().any(|query| match &query.index {
        None if is_of_counters(query) => definition.name == counter::COUNTER,
        None => !is_index_key && finds(query, &definition.key),
        Some(index) => of_index(query, index),
    });
    by_query || by_key && !is_index_key
}

fn unread_targets(design: &Design) -> Vec<ReviewFinding> {
    let reaches = |derivation: &Derivation| derivation.kind.reach(&design.schema).unwrap_or_default();
    let mut found = Vec::new();
    for derivation in design.catalogue.derivations() {
        let counted = derivation.kind.outline(&design.schema).counts;
        let counted = counted.map(|_| Part::attribute(counter::COUNTER, &derivation.name));
        let writes: Vec<Part> = reaches(derivation).writes.into_iter().chain(counted).collect();
        let is_read = |part: &Part| {
            let mut others = design.catalogue.derivations().filter(|other| other.name != derivation.name);
            let searches = |other: &Derivation| {
                let finds = other.kind.outline(&design.schema).finds;
                finds.iter().any(|find| find.via == part.entity)
            };
            let by_other =
                others.any(|other| searches(other) || reaches(other).reads.iter().any(|read| read.meets(part)));
            let entity = design.schema.entity(&part.entity);
            by_other
                || entity.is_some_and(|entity| {
                    design.patterns.iter().any(|pattern| reads(&design.schema.layout, pattern, entity, &part.of))
                })
        };
        if !writes.is_empty() && !writes.iter().any(is_read) {
            let parts: BTreeSet<&str> = writes.iter().map(|part| part.entity.as_str()).collect();
            found.push(ReviewFinding {
                check: Check::UnreadTarget,
                subject: derivation.label().to_owned(),
                what: format!(
                    "no declared read and no derivation uses what it writes into {}",
                    parts.into_iter().collect::<Vec<_>>().join(", ")
                ),
                why: "it is paid for with every change of its source",
                advice: "remove it, or declare the read that needs it in [access.NAME]",
            });
        }
    }
    found
}

fn large_transactions(design: &Design) -> Vec<ReviewFinding> {
    let finding = |pattern: &PatternRequests, what: String| ReviewFinding {
        check: Check::LargeTransaction,
        subject: pattern.id.clone(),
        what,
        why: "DynamoDB refuses a transaction of more than 100 actions, as a whole: the largest orders fail, and no others",
        advice: "bound the input, name the bound in the refusal, and declare it",
    };
    let mut found = Vec::new();
    for pattern in &design.patterns {
        match pattern.actions_max {
            Some(n) if n > TRANSACT_ACTIONS_MAX => {
                found.push(finding(pattern, format!("its transaction can have {n} actions")));
            }
            Some(_) => {}
            None => {
                let repeated = repeated(&design.schema, pattern);
                if !repeated.is_empty() {
                    let names = repeated.into_iter().collect::<Vec<_>>().join(", ");
                    found.push(finding(pattern, format!("its transaction grows with {names}, without a bound")));
                }
            }
        }
    }
    found
}

/// The entities with several items that a transaction of the pattern writes in the same way. Their number depends on
/// the input.
pub(crate) fn repeated(schema: &Schema, pattern: &PatternRequests) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for transaction in pattern.transactions() {
        let mut counts: BTreeMap<(&str, &'static str), usize> = BTreeMap::new();
        for write in transaction.writes() {
            if let Some(entity) = schema.entities().find(|entity| entity.key.parse_key(&write.key).is_some()) {
                *counts.entry((&entity.name, store::operation(&write.action))).or_default() += 1;
            }
        }
        found.extend(counts.into_iter().filter(|(_, n)| *n > 1).map(|((entity, _), _)| entity.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use store::recording::Request;

    use super::*;
    use crate::review::tests::Reviewing;

    /// Users, the shops that they follow, and the number of these shops.
    fn table() -> Reviewing {
        Reviewing::table(
            r#"
            [index.by-shop]
            partition-key = "gpk"
            sort-key = "gsk"
            projection = []
            [entity.User]
            partition-key = "USER#{userId}"
            sort-key = "PROFILE"
            attributes = ["name"]
            derived-attributes = ["shops"]
            [entity.Follow]
            partition-key = "USER#{userId}"
            sort-key = "SHOP#{shopId}"
            derived-attributes = ["userName"]
            [entity.Follow.index.by-shop]
            partition-key = "SHOP#{shopId}"
            sort-key = "USER#{userId}"
            [derivation.shop-count]
            kind = "count"
            from = "Follow"
            into = "User.shops"
            [derivation.user-name]
            kind = "copy"
            from = "User"
            to = "Follow"
            attributes = { name = "userName" }
            "#,
        )
    }

    #[test]
    fn a_scan_is_found() {
        let check = |request, wanted: &Expect| table().asks("AP-1", request, None).check(Check::Scan, wanted);
        check(Request::Scan(derive::write::Table::Main), &expect!["AP-1: a pattern reads the whole table"]);
        check(Request::Query(derive::write::Table::Main, Query::prefix(None, "USER#{userId}", ""), None), &expect![""]);
    }

    #[test]
    fn an_index_that_nobody_reads_is_found() {
        let table = table().gets("AP-1", "USER#{userId}", "PROFILE");
        table.check(Check::UnreadIndex, &expect!["by-shop: no declared read and no derivation uses the index"]);
        let read = table.queries("AP-2", Some("by-shop"), "SHOP#{shopId}", SortKeys::All);
        read.check(Check::UnreadIndex, &expect![""]);
    }

    #[test]
    fn counters_in_a_listing_are_found() {
        let check = |sk: SortKeys, wanted: &Expect| {
            table().queries("AP-1", None, "USER#{userId}", sk).check(Check::CounterInListing, wanted);
        };
        let between = |first: &str, last: &str| SortKeys::Between(first.to_owned(), last.to_owned());
        check(SortKeys::All, &expect!["AP-1: its range includes the counters of shop-count"]);
        check(SortKeys::Prefix("PROFILE".to_owned()), &expect!["AP-1: its range includes the counters of shop-count"]);
        check(between("PROFILE", "SHOP$"), &expect!["AP-1: its range includes the counters of shop-count"]);
        check(SortKeys::Prefix("SHOP#".to_owned()), &expect![""]);
        check(between("A", "PROFILE"), &expect![""]);
        check(between("PROFILE#D", "SHOP$"), &expect![""]);
    }

    #[test]
    fn a_target_that_nobody_reads_is_found() {
        let profile = table().gets("AP-1", "USER#{userId}", "PROFILE");
        profile.check(
            Check::UnreadTarget,
            &expect!["user-name: no declared read and no derivation uses what it writes into Follow"],
        );
        // The index does not project the name.
        let by_shop = profile.clone().queries("AP-2", Some("by-shop"), "SHOP#{shopId}", SortKeys::All);
        by_shop.check(
            Check::UnreadTarget,
            &expect!["user-name: no declared read and no derivation uses what it writes into Follow"],
        );
        let follows = profile.queries("AP-2", None, "USER#{userId}", SortKeys::Prefix("SHOP#".to_owned()));
        follows.check(Check::UnreadTarget, &expect![""]);
    }

    #[test]
    fn a_mirror_through_which_a_copy_is_found_is_read() {
        let text = r#"
            [entity.User]
            partition-key = "USER#{userId}"
            sort-key = "PROFILE"
            attributes = ["name"]
            [entity.Follow]
            partition-key = "USER#{userId}"
            sort-key = "SHOP#{shopId}"
            derived-attributes = ["shopName"]
            [entity.Shop]
            partition-key = "SHOP#{shopId}"
            sort-key = "SHOP"
            attributes = ["name"]
            [entity.Follower]
            partition-key = "SHOP#{shopId}"
            sort-key = "USER#{userId}"
            derived = true
            [derivation.follower]
            kind = "mirror"
            from = "Follow"
            to = "Follower"
        "#;
        let copy = "[derivation.shop-name]\nkind = \"copy\"\nfrom = \"Shop\"\nto = \"Follow\"\nattributes = { name = \
                    \"shopName\" }\nfound = \"Follower\"\n";
        let check = |manifest: &str, wanted: &Expect| {
            let reviewing =
                Reviewing::table(manifest).queries("AP-1", None, "USER#{userId}", SortKeys::Prefix("SHOP#".to_owned()));
            reviewing.check(Check::UnreadTarget, wanted);
        };
        check(text, &expect!["follower: no declared read and no derivation uses what it writes into Follower"]);
        check(&format!("{text}{copy}"), &expect![""]);
    }

    #[test]
    fn a_transaction_that_can_pass_100_actions_is_found() {
        let two = [("USER#{userId}", "SHOP#{shopId}"), ("USER#{userId}", "SHOP#{other}")];
        let check = |keys: &[(&str, &str)], actions_max, wanted: &Expect| {
            table().deletes("WP-1", keys, actions_max).check(Check::LargeTransaction, wanted);
        };
        check(&two, None, &expect!["WP-1: its transaction grows with Follow, without a bound"]);
        check(&two, Some(101), &expect!["WP-1: its transaction can have 101 actions"]);
        check(&two, Some(100), &expect![""]);
        check(&[("USER#{userId}", "PROFILE"), ("USER#{userId}", "SHOP#{shopId}")], None, &expect![""]);
    }
}
