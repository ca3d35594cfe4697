//! The section on the items that Ripple keeps for itself.

use derive::write::Table;
use engine::bookkeeping::{Kept, Life};

use super::markdown::{code, table, typed};
use crate::Design;

const SECONDS_OF_A_DAY: u64 = 24 * 3600;

pub(super) fn section(design: &Design) -> String {
    if design.kept.is_empty() {
        return String::new();
    }
    let is_several = design.schema.layout.forms.is_some();
    let rows: Vec<Vec<String>> = design.kept.iter().map(|kept| row(kept, is_several)).collect();
    format!(
        "## Bookkeeping\n\n\
         {} items that Ripple keeps for itself. It adds no bookkeeping to the application's items.\n\
         DynamoDB may delete an expired item days later.\n\
         `ripple dev`, which reads the stream itself, also stores its stream positions in the ledger's table, under \
         `MAPPING#{{function}} / {{shard}}`, and its progress under `DEV / PROGRESS#{{table}}`.\n\n{}",
        if design.has_rows() { "E-30: the" } else { "The" },
        table(&["item", "table", "key", "attributes", "kept", "purpose"], &rows)
    )
}

fn row(kept: &Kept, is_several: bool) -> Vec<String> {
    let table = match kept.table {
        Table::Main if is_several => "Ripple's own",
        Table::Main => "the application's",
        Table::Ledger => "ledger",
    };
    let life = match kept.life {
        Life::Seconds(SECONDS_OF_A_DAY) => "a day, by `ExpiresAt`".to_owned(),
        Life::Seconds(seconds) => format!("{} days, by `ExpiresAt`", seconds / SECONDS_OF_A_DAY),
        Life::Until(what) => format!("until {what}"),
        Life::Forever => "for ever".to_owned(),
    };
    let key = code(&kept.key.to_string());
    vec![kept.name.to_owned(), table.to_owned(), key, typed(&kept.attributes), life, kept.purpose.to_owned()]
}
