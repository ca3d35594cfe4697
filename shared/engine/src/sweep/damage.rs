//! Standing damage: what waits for an operator in the ledger now, as numbers.
//!
//! *Keeps true*: a number is 0 only if nothing of its kind is left, so an alarm on it ends when the damage is mended,
//! and not before.

use derive::{
    family::Family,
    query::{Consistency, Query},
    write::Table,
};
use keys::item::Item;
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    context::Context,
    count::recount::RECOUNT,
    ledger::parked_partition,
    look::listing::UNREADABLE,
    loss::LOSS,
    park::FIRST_PART,
};

/// Greatest number that is counted; more are reported as so many.
pub const COUNTED_MAX: usize = 1_000;

/// Maximum number of pages that are read of one kind. Bounds the cost: a page is at most 1 MB, and a parked change has
/// its whole record.
const PAGES_MAX: usize = 8;

/// What waits for an operator. Each number is at most [`COUNTED_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Parked changes.
    pub n_parked: usize,
    /// Entries in the list of counts to recount.
    pub n_to_recount: usize,
    /// Entries in the list of unreadable items.
    pub n_unreadable: usize,
    /// Marks of a possible loss.
    pub n_losses: usize,
}

/// Counts what waits for an operator now.
pub(crate) async fn damage<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<Damage, GaveUp> {
    let is_change = |item: &Item| {
        let key = context.schema.layout.key(item);
        key.is_some_and(|key| key.sk.ends_with(FIRST_PART))
    };
    let mut n_parked = 0;
    for family in [Family::Additive, Family::LevelTriggered] {
        n_parked += count(context, parked_partition(family), is_change, patience).await?;
    }
    Ok(Damage {
        n_parked: n_parked.min(COUNTED_MAX),
        n_to_recount: count(context, RECOUNT.to_owned(), |_| true, patience).await?,
        n_unreadable: count(context, UNREADABLE.to_owned(), |_| true, patience).await?,
        n_losses: count(context, LOSS.to_owned(), |_| true, patience).await?,
    })
}

/// The number of such items in a partition of the ledger's table.
async fn count<S: Store>(
    context: &Context<S>,
    partition: String,
    is_counted: impl Fn(&Item) -> bool,
    patience: Patience<'_>,
) -> Result<usize, GaveUp> {
    let limit = u32::try_from(COUNTED_MAX).ok();
    let query = Query { limit, consistency: Consistency::Eventual, ..Query::prefix(None, partition, "") };
    let (mut n, mut after) = (0, None);
    for _ in 0..PAGES_MAX {
        let page = patience.call(|| context.store.query(Table::Ledger, &query, after.clone())).await?;
        n += page.items.iter().filter(|item| is_counted(item)).count();
        after = page.next;
        if after.is_none() || n >= COUNTED_MAX {
            break;
        }
    }
    Ok(n.min(COUNTED_MAX))
}
