//! The list of targets that need a recount: those of refused changes, because the ledger does not show whether these
//! are counted.
//!
//! The engine refuses such a change instead of guessing. It lists the change's targets in the ledger for the operator:
//! a listed count may be right, and `verify` shows it.

use derive::{
    catalogue::Catalogue,
    coalesce::{Adds, Amount, Counted},
    write::{Action, Table, Write},
};
use keys::{counter::CounterKey, key::Key, layout::Layout};
use store::{Outcome, Store};

use crate::{
    account::{Account, Refused, undone},
    attribute::{n, s, sort_key},
    backoff::{Patience, describe},
    count::Counter,
    counters::Target,
    ledger::ledger_item,
};

/// Partition key of the list. Stored, so it is stable.
pub const RECOUNT: &str = "RECOUNT";

/// Name that stands for all derivations and all targets when a change cannot be read.
pub(crate) const ALL: &str = "*";

impl<S: Store> Counter<'_, S> {
    /// Notes that a change is refused, and lists its targets.
    ///
    /// # Errors
    ///
    /// Why the targets could not be listed; the change is then not done.
    pub(crate) async fn refuse(
        &self,
        change: &Counted,
        why: &str,
        patience: Patience<'_>,
        account: &mut Account,
    ) -> Result<(), String> {
        let targets = targets(&self.context.catalogue, change);
        for write in listed(&self.context.schema.layout, change, &targets, why, self.context.clock.now_ms()) {
            match patience.call(|| self.context.store.write(&write)).await {
                Ok(Outcome::Done { units }) => {
                    account.commits.push(self.context.ledger_commit(&write.key, units, change.position));
                }
                Ok(Outcome::GuardFailed) => {}
                Err(error) => {
                    undone(account, [change.position], &describe(&error));
                    return Err(describe(&error));
                }
            }
        }
        tracing::warn!(event_id = %change.id, why, "refused a change; its targets are listed for a recount");
        account.refused.push(refused(&self.context.catalogue, change, why));
        Ok(())
    }
}

/// The report of a refused change, with its targets.
pub(crate) fn refused(catalogue: &Catalogue, change: &Counted, why: &str) -> Refused {
    let (id, why) = (change.id.clone(), why.to_owned());
    Refused { position: change.position, id, why, targets: targets(catalogue, change) }
}

/// The targets of a change: the items that its counters belong to, and buckets.
pub(crate) fn targets(catalogue: &Catalogue, change: &Counted) -> Vec<Target> {
    let target = |amount: &Amount| {
        let counted = CounterKey::parse(&amount.item).filter(|_| matches!(amount.adds, Adds::Tally(_)));
        let item = counted.map_or_else(|| amount.item.clone(), |counter| counter.target);
        Target { derivation: catalogue.name(amount.derivation).to_owned(), item }
    };
    change.amounts.iter().map(target).collect()
}

/// The writes that list a refused change's targets, or the change itself if it cannot be read.
pub(crate) fn listed(layout: &Layout, change: &Counted, targets: &[Target], why: &str, now_ms: u64) -> Vec<Write> {
    let write = |sort_key: String, derivation: &str, item: Option<&Key>| {
        let key = Key::new(RECOUNT, sort_key);
        let attributes = [
            ("Derivation", s(derivation)),
            ("ItemPK", s(item.map_or(ALL, |item| &item.pk))),
            ("ItemSK", s(item.map_or(ALL, |item| &item.sk))),
            ("EventId", s(&change.id)),
            ("Why", s(why)),
            ("ListedAt", n(now_ms)),
        ];
        let item = ledger_item(layout, &key, attributes);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    };
    if targets.is_empty() {
        return vec![write(format!("{ALL}#{}", change.id), ALL, None)];
    }
    let of =
        |target: &Target| write(sort_key(&target.derivation, &target.item), &target.derivation, Some(&target.item));
    targets.iter().map(of).collect()
}
