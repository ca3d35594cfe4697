//! Calls in flight: a transaction conflicts with another write of the same item while both are in flight.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use derive::write::Table;
use keys::key::Key;

use super::call::Call;

/// The writes and transactions that were sent and have no response yet.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    n_begun: u64,
    under_way: BTreeMap<u64, Flight>,
}

#[derive(Debug)]
struct Flight {
    is_transaction: bool,
    items: Vec<(Table, Key)>,
}

/// A call in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    flights: &'a Flights,
    id: u64,
}

impl Flights {
    /// The first position of this call whose item another call in flight writes, if one of the two is a transaction.
    pub(super) fn met_by(&self, call: &Call<'_>) -> Option<usize> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let flight = Flight::of(call);
        let is_held = |item: &(Table, Key)| {
            let mut others = inner.under_way.values();
            others.any(|other| (other.is_transaction || flight.is_transaction) && other.items.contains(item))
        };
        flight.items.iter().position(is_held)
    }

    /// A call begins.
    pub(super) fn begin(&self, call: &Call<'_>) -> UnderWay<'_> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.n_begun += 1;
        let id = inner.n_begun;
        inner.under_way.insert(id, Flight::of(call));
        UnderWay { flights: self, id }
    }
}

impl Flight {
    fn of(call: &Call<'_>) -> Self {
        let writes = match call {
            Call::Write(write) => std::slice::from_ref(*write),
            Call::Transact(transaction) => transaction.writes(),
            Call::Get(..) | Call::Query(..) | Call::Scan(_) => &[],
        };
        let items = writes.iter().map(|write| (write.table, write.key.clone())).collect();
        Self { is_transaction: matches!(call, Call::Transact(_)), items }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.flights.0.lock().unwrap_or_else(PoisonError::into_inner).under_way.remove(&self.id);
    }
}
