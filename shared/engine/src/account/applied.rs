//! Which changes of a batch went in through the ledger, derived from what was written.

use std::collections::BTreeSet;

use derive::{family::Family, position::RecordAt, write::Table};

use crate::{account::Account, park::partition};

/// What the partition key of a receipt begins with.
const RECEIPT: &str = "RECEIPT#";

impl Account {
    /// Positions of the changes that went in, each proven by a receipt. What is parked has a receipt too, and is not
    /// in. Under watermarks there are no receipts.
    #[must_use]
    pub fn received(&self) -> BTreeSet<RecordAt> {
        let parked = partition(Family::Additive);
        let causes = |is_such: &dyn Fn(&str) -> bool| -> BTreeSet<RecordAt> {
            let commits = self.commits.iter().filter(|commit| commit.table == Table::Ledger && is_such(&commit.key.pk));
            commits.flat_map(|commit| commit.causes.iter().copied()).collect()
        };
        let receipts = causes(&|pk| pk.starts_with(RECEIPT));
        &receipts - &causes(&|pk| pk == parked)
    }
}

#[cfg(test)]
mod tests {
    use keys::key::Key;

    use super::*;
    use crate::fixture::layout;
    use crate::{account::Commit, ledger::receipts::receipt};

    #[test]
    fn what_has_a_receipt_is_in_unless_it_is_parked() {
        let layout = layout();
        let commit = |table, key: Key, position: usize| Commit {
            key,
            table,
            action: None,
            at_ms: 0,
            units: 2.0,
            derivations: Vec::new(),
            causes: BTreeSet::from([RecordAt(position)]),
            is_correction: false,
        };
        let commits = vec![
            commit(Table::Ledger, receipt(&layout, "e1", 0).key, 1),
            commit(Table::Ledger, receipt(&layout, "e2", 0).key, 2),
            commit(Table::Ledger, Key::new(partition(Family::Additive), "e2#00"), 2),
            commit(Table::Ledger, Key::new(partition(Family::LevelTriggered), "e1#00"), 1),
            commit(Table::Main, Key::new("RECEIPT#none of ours", "x"), 3),
        ];
        let account = Account { commits, ..Account::default() };
        assert_eq!(account.received(), BTreeSet::from([RecordAt(1)]));
    }
}
