//! The sweep's position: an item of the ledger's table, moved only from where it was read.
//!
//! *Keeps true*: every item that stays in the table is read once a round; of two runs at once, one continues.

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use store::{Cursor, Outcome, Store};

use crate::{
    attribute::{n, number, s},
    backoff::{GaveUp, Patience},
    context::Context,
    ledger::ledger_item,
};

// Attributes of the position. Stored, so they are stable.
const AFTER_PK: &str = "AfterPK";
const AFTER_SK: &str = "AfterSK";
const AFTER_SUSPECT: &str = "AfterSuspect";
const BEGAN_AT: &str = "BeganAt";
const ITEMS: &str = "Items";
const ROUND_MS: &str = "RoundMs";
const MOVES: &str = "Moves";

/// A round over the table, with its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// The last item that was read; `None` at the beginning.
    pub(crate) after: Option<Key>,
    /// Sort key of the last suspect that was checked; `None` if all were.
    pub(crate) after_suspect: Option<String>,
    /// When it began, in milliseconds since the epoch.
    pub(crate) began_at_ms: u64,
    /// Items that it has read.
    pub(crate) n_items: u64,
    /// Duration of the previous round, in milliseconds.
    pub(crate) last_ms: Option<u64>,
    /// How often the position has moved; `None` if it is not stored yet.
    pub(crate) n_moves: Option<u64>,
}

impl Round {
    /// The round that an item contains.
    fn of(item: &Item) -> Self {
        let after = text(item, AFTER_PK).zip(text(item, AFTER_SK));
        Self {
            after: after.map(|(pk, sk)| Key::new(pk, sk)),
            after_suspect: text(item, AFTER_SUSPECT).map(str::to_owned),
            began_at_ms: number(item, BEGAN_AT).unwrap_or(0),
            n_items: number(item, ITEMS).unwrap_or(0),
            last_ms: number(item, ROUND_MS),
            n_moves: number(item, MOVES),
        }
    }

    /// Start of its next page.
    pub(crate) fn cursor(&self, layout: &Layout) -> Option<Cursor> {
        self.after.as_ref().map(|after| Cursor(layout.key_item(after)))
    }

    /// Begins the next round, at the end of the table. Returns the duration of this one, in milliseconds.
    pub(crate) fn ends(&mut self, now_ms: u64) -> u64 {
        let round_ms = now_ms.saturating_sub(self.began_at_ms);
        (self.after, self.began_at_ms, self.last_ms) = (None, now_ms, Some(round_ms));
        self.n_items = 0;
        round_ms
    }

    /// The write that moves the position from where it was read.
    pub(crate) fn write(&self, layout: &Layout) -> Write {
        let mut attributes = vec![
            (BEGAN_AT, n(self.began_at_ms)),
            (ITEMS, n(self.n_items)),
            (MOVES, n(self.n_moves.map_or(1, |n| n + 1))),
        ];
        attributes.extend(self.last_ms.map(|last_ms| (ROUND_MS, n(last_ms))));
        attributes.extend(self.after_suspect.as_ref().map(|after| (AFTER_SUSPECT, s(after))));
        if let Some(after) = &self.after {
            attributes.extend([(AFTER_PK, s(&after.pk)), (AFTER_SK, s(&after.sk))]);
        }
        let guard = Guard::as_read(Purpose::SweepRound, [(MOVES, self.n_moves.map(n))]);
        let action = Action::Put(ledger_item(layout, &key(), attributes));
        Write { table: Table::Ledger, key: key(), action, guard: Some(guard) }
    }
}

impl Round {
    /// The current round; a new one if there is none.
    pub(super) async fn now<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<Self, GaveUp> {
        let keys = [key()];
        let items = patience.call(|| context.store.get(Table::Ledger, &keys)).await?;
        let fresh = || Self { began_at_ms: context.clock.now_ms(), ..Self::default() };
        Ok(items.first().map_or_else(fresh, |(_, item)| Self::of(item)))
    }

    /// Moves the position; false if another run did, or a call of this run whose response was lost.
    pub(super) async fn moved<S: Store>(
        &mut self,
        context: &Context<S>,
        patience: Patience<'_>,
    ) -> Result<bool, GaveUp> {
        let write = self.write(&context.schema.layout);
        match patience.call(|| context.store.write(&write)).await? {
            Outcome::Done { .. } => {
                self.n_moves = Some(self.n_moves.map_or(1, |n_moves| n_moves + 1));
                Ok(true)
            }
            Outcome::GuardFailed => Ok(false),
        }
    }
}

/// Key of the position. Stored, so it is stable.
fn key() -> Key {
    Key::new("SWEEP", "ROUND")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_reads_back_as_it_was_written() {
        let layout = Layout::of("pk", "sk");
        let mut round = Round { began_at_ms: 5, n_items: 9, ..Round::default() };
        for (after, after_suspect) in [(None, None), (Some(Key::new("a", "b")), Some("c".to_owned()))] {
            (round.after, round.after_suspect) = (after, after_suspect);
            let Action::Put(item) = round.write(&layout).action else { panic!("it is put whole") };
            round.n_moves = Some(round.n_moves.map_or(1, |n_moves| n_moves + 1));
            assert_eq!(Round::of(&item), round);
        }
        assert_eq!((round.ends(12), round.after, round.last_ms), (7, None, Some(7)));
        assert_eq!((round.began_at_ms, round.n_items), (12, 0));
    }
}
