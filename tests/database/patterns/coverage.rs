//! Every ID of the table's design has a pattern and a case.

use std::collections::BTreeSet;

#[test]
fn every_read_pattern_has_a_method_and_a_case() {
    let ids: Vec<String> = (1..=44).map(|number| format!("AP-{number:03}")).collect();
    let patterns: Vec<&str> = queries::pattern::reads().iter().map(|pattern| pattern.id).collect();
    assert_eq!(patterns, ids, "the patterns, in order");
    let id_of = |case: &str| case.starts_with("ap_").then(|| format!("AP-{}", &case[3..6]));
    let tested: BTreeSet<String> = crate::patterns::CASES.iter().filter_map(|case| id_of(case)).collect();
    assert_eq!(tested, ids.into_iter().collect(), "the cases");
}
