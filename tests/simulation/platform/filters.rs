//! The event filters of the template: the platform drops what does not match, and no function hears of it.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;
use support::matching::{passes, read};

/// The shipped template.
const TEMPLATE: &str = include_str!("../../../infra/template.yaml");

/// The patterns of each function, by its name in lower case.
static FILTERS: LazyLock<BTreeMap<String, Vec<Value>>> = LazyLock::new(|| {
    let (mut filters, mut resource) = (BTreeMap::<String, Vec<String>>::new(), String::new());
    for line in TEMPLATE.lines() {
        if let Some(name) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(':'))
            && !name.starts_with(' ')
        {
            resource = name.to_lowercase();
        }
        if let Some(pattern) = line.trim_start().strip_prefix("- Pattern: '").and_then(|line| line.strip_suffix('\'')) {
            filters.entry(resource.clone()).or_default().push(pattern.to_owned());
        }
    }
    filters.into_iter().map(|(function, patterns)| (function, read(&patterns))).collect()
});

/// Does a function get this record?
pub(crate) fn is_delivered(function: &str, json: &str) -> bool {
    passes(&FILTERS[function], &serde_json::from_str(json).unwrap())
}

#[test]
fn the_template_has_filters_for_each_function() {
    let functions: Vec<&String> = FILTERS.keys().collect();
    assert_eq!(functions, ["aggregate", "combined", "propagate"]);
    assert!(FILTERS.values().all(|patterns| patterns.len() == 4));
}
