//! What a run of the service did: the records that it saw, its writes, what they cost and what it parked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use derive::{
    catalogue::Catalogue,
    change::{Change, Sight},
    derivation::Family,
    effect::Effect,
    plan::plan,
    schema::Schema,
    write::Table,
};
use engine::batch::Handled;
use keys::item::{Item, text};
use runtime::handler::Function;

use crate::{
    exit::report,
    lag::{Done, Seen},
    service::Witness,
    workload::metered::Stamp,
};

/// Name under which the ledger's own write units are accounted. Stable.
const LEDGER: &str = "ledger";

/// Attributes of a product that the application adds to without a new `UpdatedAt`, since that is no edit.
const UNSTAMPED: [&str; 2] = ["Inventory", "ViewCount"];

/// Keeps the book of a run.
pub(crate) struct Bookkeeper {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    book: Mutex<Book>,
}

/// The book of a run.
#[derive(Debug, Default)]
pub(crate) struct Book {
    known: BTreeSet<String>,
    /// Every record once, in the order of delivery.
    pub(crate) records: Vec<Seen>,
    /// Writes in the application's table.
    pub(crate) writes: Vec<Done>,
    /// Write units by derivation, those of the ledger apart.
    pub(crate) units: BTreeMap<String, f64>,
    /// Records that came too late: of items of which only the insert counts.
    pub(crate) n_late_changes: usize,
    /// Ids of the changes that were parked.
    pub(crate) parked: BTreeSet<String>,
}

impl Bookkeeper {
    /// A run that has not begun.
    pub(crate) fn new(schema: Arc<Schema>, catalogue: Arc<Catalogue>) -> Self {
        Self { schema, catalogue, book: Mutex::new(Book::default()) }
    }

    /// The book so far.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Told of the record and not of an account, so that one that is delivered again counts once.
    fn is_late(&self, change: &Change) -> bool {
        let planned = plan(&self.schema, &self.catalogue, &[Family::Additive], change);
        planned.effects.iter().any(|(_, effect)| *effect == Effect::Late)
    }

    fn seen(&self, change: &Change) -> Seen {
        let stamped =
            |item: Option<&Item>| item.and_then(|item| text(item, "UpdatedAt")).unwrap_or_default().to_owned();
        let (old, new) = (change.old_image(), change.new_image());
        let sight = Sight::of(&self.schema, change);
        let image = sight.new.as_ref().or(sight.old.as_ref());
        let derived = image.is_some_and(|image| image.definition.derived);
        let stays = |name: &str| old.and_then(|item| item.get(name)) == new.and_then(|item| item.get(name));
        let counted = image.is_some_and(|image| image.is("Product")) && !UNSTAMPED.into_iter().all(stays);
        let unstamped = old.is_some() && new.is_some() && stamped(old) == stamped(new);
        Seen {
            id: change.id.clone(),
            stamp: Stamp { key: change.key.clone(), updated_at: stamped(new.or(old)), removed: new.is_none() },
            ours: derived || (unstamped && !counted),
            is_known: image.is_some(),
            is_change: self.catalogue.reads_difference(&sight),
        }
    }
}

impl Witness for Bookkeeper {
    fn handled(&self, _function: Function, handled: &Handled, _elapsed: Duration) {
        let mut book = self.book();
        for change in handled.changes.iter().flatten() {
            if book.known.insert(change.id.clone()) {
                book.records.push(self.seen(change));
                book.n_late_changes += usize::from(self.is_late(change));
            }
        }
        for commit in &handled.account.commits {
            if commit.table == Table::Ledger {
                *book.units.entry(LEDGER.to_owned()).or_default() += commit.units;
                continue;
            }
            // A write on behalf of several derivations is theirs in equal parts.
            let n_parts = f64::from(u32::try_from(commit.derivations.len().max(1)).unwrap_or(1));
            for name in &commit.derivations {
                *book.units.entry(name.clone()).or_default() += commit.units / n_parts;
            }
            let cause = |at: &usize| Some(handled.changes.get(*at)?.as_ref()?.id.clone());
            let causes = commit.causes.iter().filter_map(cause).collect();
            book.writes.push(Done { key: commit.key.clone(), at_ms: commit.at_ms, causes });
        }
        book.parked.extend(handled.account.parked.iter().map(|parked| parked.id.clone()));
    }

    fn trouble(&self, line: &str) {
        report(line);
    }
}
