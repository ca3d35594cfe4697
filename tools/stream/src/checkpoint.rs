//! The position of a mapping in each shard: where it is stored, and how far it may move.
//!
//! The checkpoint of a shard is right before the oldest record that is not done: the shard's *frontier*. Lanes progress
//! independently, but a shard has one checkpoint. After a restart, records that a lane delivered beyond the slowest
//! lane are delivered again; nothing is skipped.
//!
//! The frontier also knows the time up to which the shard is delivered. A read that completes all records created
//! before some time puts a mark after its last record. When the checkpoint has passed the mark, that time is reported.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{FutureExt as _, future::BoxFuture};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::time::Instant;

use crate::{
    batch::Held,
    event::order,
    poller::{Complaint, Stop, Stopped, Waits, Wiring, chain},
    progress::{DeliveredBoard, NOTHING_RESPONDS},
};

/// A store of positions, by mapping and shard.
///
/// The mapping saves a position only after all records up to it are done. A saved position must survive a restart.
/// Saving it again is harmless.
pub trait Checkpoints: Send + Sync {
    /// The position of a mapping in a shard; `None` if none was saved yet.
    fn load<'a>(&'a self, mapping: &'a str, shard: &'a str)
    -> BoxFuture<'a, Result<Option<Position>, CheckpointError>>;

    /// Saves the position of a mapping in a shard.
    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>>;
}

/// How far a mapping got in a shard.
///
/// Its serialised form, `{"after":"…"}` or `"ended"`, is stored and therefore stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// The record with this sequence number and all before it are done.
    After(String),
    /// The shard is closed and all of it is done.
    Ended,
}

/// Why a position could not be loaded or saved. The variants say what to do.
#[derive(Debug, Error)]
#[error("the checkpoint could not be loaded or saved")]
pub enum CheckpointError {
    /// The store of the positions does not respond: retry.
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A temporary error: retry later.
    Transient(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A permanent error, until an operator changes the configuration.
    Lasting(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl CheckpointError {
    /// The error in one line, for an observer.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Unreachable(_) => NOTHING_RESPONDS.to_owned(),
            Self::Transient(_) | Self::Lasting(_) => chain(self),
        }
    }
}

/// Positions in memory, for tests and for runs that keep nothing.
#[derive(Debug, Default)]
pub struct MemoryCheckpoints {
    positions: Mutex<BTreeMap<(String, String), Position>>,
}

impl Checkpoints for MemoryCheckpoints {
    fn load<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
    ) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
        let positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        let position = positions.get(&(mapping.to_owned(), shard.to_owned())).cloned();
        Box::pin(std::future::ready(Ok(position)))
    }

    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.insert((mapping.to_owned(), shard.to_owned()), position.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}

// ---- The frontier of a shard ----

/// The progress of one shard.
pub(crate) struct Frontier {
    wiring: Arc<Wiring>,
    delivered: Arc<DeliveredBoard>,
    shard: String,
    undone: Mutex<Undone>,
    /// The sequence number that was saved last. Locked during a save, so that an older position never overwrites a
    /// newer one.
    saved: tokio::sync::Mutex<Option<String>>,
}

/// The records that were taken but are not done.
#[derive(Default)]
struct Undone {
    /// By sort key of the record's sequence number. The value is the sequence number of the record before it, whether
    /// that was taken or passed over.
    records: BTreeMap<(usize, String), Option<String>>,
    /// The sequence number of the last record that was taken or passed over.
    last: Option<String>,
    /// The marks that the checkpoint has not passed, in order.
    marks: VecDeque<DeliveredMark>,
}

/// A mark that a read puts after its last record.
struct DeliveredMark {
    /// The sort key of the last record that was taken or passed over; `None` if there was none.
    last: Option<(usize, String)>,
    /// All records created before this time are before the mark.
    until: Instant,
}

impl Frontier {
    /// A shard without taken records.
    pub(crate) fn new(wiring: Arc<Wiring>, delivered: Arc<DeliveredBoard>, shard: String) -> Self {
        Self { wiring, delivered, shard, undone: Mutex::default(), saved: tokio::sync::Mutex::default() }
    }

    /// Takes a record. It comes after all earlier ones.
    pub(crate) fn take(&self, sequence_number: &str) {
        let mut undone = self.undone();
        let before = undone.last.replace(sequence_number.to_owned());
        undone.records.insert(key(sequence_number), before);
    }

    /// Marks these records as done. Returns after the checkpoint is saved as far as that allows.
    pub(crate) async fn done(&self, records: &[Held], stop: &mut Stop) -> Result<(), Stopped> {
        {
            let mut undone = self.undone();
            for held in records {
                undone.records.remove(&key(&held.record.sequence_number));
            }
        }
        self.save_reached(stop).await
    }

    /// Passes over a record that needs no work. It comes after all earlier ones.
    pub(crate) fn pass(&self, sequence_number: &str) {
        self.undone().last = Some(sequence_number.to_owned());
    }

    /// Ends a read whose records were all taken or passed over. All records of the shard that were created before
    /// `until` are among the records so far. Returns after the checkpoint has moved past the records passed over, as
    /// far as the taken records allow.
    pub(crate) async fn read(&self, until: Option<Instant>, stop: &mut Stop) -> Result<(), Stopped> {
        if let Some(until) = until {
            self.undone().mark(until);
        }
        self.save_reached(stop).await
    }

    /// Saves that the shard is closed and all of its records are done.
    pub(crate) async fn ended(&self, stop: &mut Stop) -> Result<(), Stopped> {
        self.save(&Position::Ended, stop).await
    }

    async fn save_reached(&self, stop: &mut Stop) -> Result<(), Stopped> {
        let mut saved = self.saved.lock().await;
        // Read under the lock: another lane may have advanced while this one waited.
        let (reached, until) = {
            let mut undone = self.undone();
            (undone.reached(), undone.passed())
        };
        if let Some(number) = reached.filter(|number| saved.as_ref() != Some(number)) {
            self.save(&Position::After(number.clone()), stop).await?;
            *saved = Some(number);
        }
        if let Some(until) = until {
            self.delivered.delivered(&self.shard, until);
        }
        Ok(())
    }

    /// Saves a position, retrying until it succeeds.
    async fn save(&self, position: &Position, stop: &mut Stop) -> Result<(), Stopped> {
        let attempt = || -> BoxFuture<'_, Result<(), String>> {
            let saving = self.wiring.checkpoints.save(&self.wiring.mapping.name, &self.shard, position);
            Box::pin(saving.map(|result| result.map_err(|error| error.line())))
        };
        persist(&self.wiring, stop, "the checkpoint cannot be saved", attempt).await
    }

    fn undone(&self) -> MutexGuard<'_, Undone> {
        self.undone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Undone {
    /// The sequence number up to which all records are done; `None` if there is none.
    fn reached(&self) -> Option<String> {
        self.records.first_key_value().map_or(&self.last, |(_, before)| before).clone()
    }

    /// Adds a mark. It replaces the last mark if no record came between them, so there are no more marks than reads
    /// with unfinished records.
    fn mark(&mut self, until: Instant) {
        let last = self.last.as_deref().map(key);
        match self.marks.back_mut().filter(|mark| mark.last == last) {
            Some(mark) => mark.until = mark.until.max(until),
            None => self.marks.push_back(DeliveredMark { last, until }),
        }
    }

    /// Removes the marks before the oldest record that is not done. Returns the latest of their times.
    fn passed(&mut self) -> Option<Instant> {
        let first = self.records.first_key_value().map(|(key, _)| key);
        let mut until = None;
        while let Some(mark) =
            self.marks.pop_front_if(|mark| first.is_none_or(|first| Some(first) > mark.last.as_ref()))
        {
            until = until.max(Some(mark.until));
        }
        until
    }
}

fn key(sequence_number: &str) -> (usize, String) {
    let (n_digits, digits) = order(sequence_number);
    (n_digits, digits.to_owned())
}

/// Retries until the attempt succeeds or a stop is requested. Always tries once, so that completed work is saved even
/// after a stop request.
pub(crate) async fn persist<'a>(
    wiring: &Wiring,
    stop: &mut Stop,
    what: &str,
    attempt: impl Fn() -> BoxFuture<'a, Result<(), String>>,
) -> Result<(), Stopped> {
    let complaint = Complaint::default();
    let mut backoff = Waits::default();
    while let Err(error) = attempt().await {
        complaint.report(wiring, &format!("{what}: {error}"));
        stop.sleep(backoff.wait()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        time::{Duration, SystemTime},
    };

    use futures::future::BoxFuture;
    use tokio::{sync::watch, time::Instant};

    use super::{CheckpointError, Checkpoints, Frontier, Position};
    use crate::{
        batch::Held,
        event::LambdaRecord,
        poller::{Stop, Wiring},
        progress::DeliveredBoard,
        tests::{World, mapping, succeed},
    };

    #[test]
    fn the_stored_form_of_a_position_does_not_change() {
        let after = Position::After("42".to_owned());
        assert_eq!(serde_json::to_string(&after).unwrap(), r#"{"after":"42"}"#);
        assert_eq!(serde_json::to_string(&Position::Ended).unwrap(), r#""ended""#);
        assert_eq!(serde_json::from_str::<Position>(r#"{"after":"42"}"#).unwrap(), after);
    }

    /// Every saved position. A later save takes less time than an earlier one.
    #[derive(Default)]
    struct Saves(Mutex<Vec<String>>);

    impl Saves {
        fn so_far(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl Checkpoints for Saves {
        fn load<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
            Box::pin(std::future::ready(Ok(None)))
        }

        fn save<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            position: &'a Position,
        ) -> BoxFuture<'a, Result<(), CheckpointError>> {
            Box::pin(async move {
                let n_saved = self.0.lock().unwrap().len();
                tokio::time::sleep(Duration::from_millis(100 / (1 + n_saved as u64))).await;
                self.0.lock().unwrap().push(serde_json::to_string(position).unwrap());
                Ok(())
            })
        }
    }

    fn held(number: &str) -> Held {
        let record = LambdaRecord { sequence_number: number.to_owned(), created: None, json: String::new() };
        Held::new(record, Instant::now(), SystemTime::UNIX_EPOCH)
    }

    /// A frontier that took these records.
    fn frontier(numbers: &[&str], stopped: &watch::Sender<bool>) -> (Arc<Frontier>, Arc<Saves>, Stop) {
        let saves = Arc::new(Saves::default());
        let wiring = Wiring { checkpoints: Arc::clone(&saves) as Arc<_>, ..World::new(mapping(), succeed).wiring() };
        let wiring = Arc::new(wiring);
        let delivered = Arc::new(DeliveredBoard::new(Arc::clone(&wiring)));
        let frontier = Arc::new(Frontier::new(wiring, delivered, "a".to_owned()));
        for number in numbers {
            frontier.take(number);
        }
        (frontier, saves, Stop::new(stopped.subscribe()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_checkpoint_is_right_before_the_oldest_record_that_is_not_done() {
        let stopped = watch::Sender::new(false);
        let (frontier, saves, mut stop) = frontier(&["820", "1683", "2574", "3000"], &stopped);
        let mut done = async |numbers: &[&str]| {
            let records: Vec<Held> = numbers.iter().map(|number| held(number)).collect();
            frontier.done(&records, &mut stop).await.unwrap();
            saves.so_far()
        };
        assert_eq!(done(&["2574"]).await, [""; 0], "the first is not done");
        assert_eq!(done(&["820"]).await, [r#"{"after":"820"}"#]);
        assert_eq!(done(&["3000"]).await.len(), 1, "nothing moved");
        assert_eq!(done(&["1683"]).await, [r#"{"after":"820"}"#, r#"{"after":"3000"}"#], "as numbers, not as text");
    }

    #[tokio::test(start_paused = true)]
    async fn a_checkpoint_that_is_older_never_comes_after_a_newer() {
        let stopped = watch::Sender::new(false);
        let (frontier, saves, mut stop) = frontier(&["1", "2", "3"], &stopped);
        let mut other = stop.clone();
        let (one, two) = ([held("1")], [held("2")]);
        let (one, two) = tokio::join!(frontier.done(&one, &mut stop), frontier.done(&two, &mut other));
        assert_eq!((one, two), (Ok(()), Ok(())));
        assert_eq!(saves.so_far(), [r#"{"after":"1"}"#, r#"{"after":"2"}"#]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_out_with_nothing_held_moves_the_checkpoint_and_it_does_not_go_back() {
        let stopped = watch::Sender::new(false);
        let (frontier, saves, mut stop) = frontier(&["1"], &stopped);
        frontier.done(&[held("1")], &mut stop).await.unwrap();
        frontier.pass("2");
        frontier.read(None, &mut stop).await.unwrap();
        frontier.take("3");
        frontier.take("4");
        frontier.done(&[held("4")], &mut stop).await.unwrap();
        assert_eq!(saves.so_far(), [r#"{"after":"1"}"#, r#"{"after":"2"}"#]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_passed_over_behind_a_record_that_is_not_done_is_passed_when_that_is_done() {
        let stopped = watch::Sender::new(false);
        let (frontier, saves, mut stop) = frontier(&["1"], &stopped);
        frontier.pass("2");
        frontier.read(None, &mut stop).await.unwrap();
        assert_eq!(saves.so_far(), [""; 0], "the first is not done");
        frontier.done(&[held("1")], &mut stop).await.unwrap();
        assert_eq!(saves.so_far(), [r#"{"after":"2"}"#]);
    }
}
