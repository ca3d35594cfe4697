//! Where an item belongs, for an operator who asks, and the move there.

use keys::key::Key;
use store::Store;

use super::{Stop, Touch, Work, place::Looked};
use crate::{
    account::Account,
    backoff::Patience,
    batch::{Batch, Engine, Occasion},
    event::Lane,
};

/// Where an item belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where it is; or that cannot be told now, since an index lags.
    Here,
    /// It belongs there.
    There(Key),
    /// It cannot go where it belongs.
    Stuck(&'static str),
}

/// How a move ended that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It is where it belongs now.
    Done,
    /// It was there, or nothing says where it belongs.
    NotNeeded,
    /// It cannot go there.
    Refused(String),
}

/// What stands where a touch names the record that asked: no record did.
const NO_RECORD: usize = 0;

impl<S: Store> Engine<S> {
    /// Where an item belongs by this derivation.
    pub async fn place_of(&self, key: &Key, derivation: usize, patience: Patience<'_>) -> Place {
        let Some(rekey) = self.catalogue.derivation(derivation).and_then(|derivation| derivation.kind.rekey()) else {
            return Place::Here;
        };
        let touch = touch(key, derivation);
        let batch = no_records(patience);
        let work = Work { touch: &touch, batch: &batch, is_alone: false, account: Account::default() };
        match self.look_for_place(key, rekey, &work).await {
            Ok(Looked::Moves { place, .. }) => Place::There(place),
            Ok(Looked::Stays { why, .. }) => Place::Stuck(why),
            Ok(Looked::InPlace) => Place::Here,
            // Its index lags; what is looked at again is decided then.
            Err(Stop::NotNow(why) | Stop::Refused(why)) => {
                tracing::debug!(item = key.for_log(), why, "where an item belongs cannot be told");
                Place::Here
            }
        }
    }

    /// Moves an item to where it belongs by this derivation.
    pub async fn move_there(&self, key: &Key, derivation: usize, patience: Patience<'_>) -> Moved {
        let Some(rekey) = self.catalogue.derivation(derivation).and_then(|derivation| derivation.kind.rekey()) else {
            return Moved::NotNeeded;
        };
        let touch = touch(key, derivation);
        let batch = no_records(patience);
        let mut work = Work { touch: &touch, batch: &batch, is_alone: false, account: Account::default() };
        match self.place(key, rekey, &mut work).await {
            Ok(awaits) if awaits.is_empty() && work.account.commits.is_empty() => Moved::NotNeeded,
            Ok(awaits) if awaits.is_empty() => Moved::Done,
            Ok(_) => Moved::Refused("its place is taken, or its parent is not there".to_owned()),
            Err(Stop::NotNow(why) | Stop::Refused(why)) => Moved::Refused(why),
        }
    }
}

fn touch(key: &Key, derivation: usize) -> Touch {
    Touch { position: NO_RECORD, derivation, effect: derive::effect::Ground::Place(key.clone()) }
}

fn no_records(patience: Patience<'_>) -> Batch<'_> {
    Batch { records: Vec::new(), lane: Lane::default(), patience, occasion: Occasion::Again }
}
