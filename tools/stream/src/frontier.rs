//! The checkpoint of one shard with several lanes: right before the oldest record that is not done.
//!
//! Lanes progress independently, but a shard has one checkpoint. After a restart, records that a lane delivered beyond
//! the slowest lane are delivered again; nothing is skipped.
//!
//! The frontier also knows the time up to which the shard is delivered. A read that completes all records created
//! before some time puts a mark after its last record. When the checkpoint has passed the mark, that time is reported.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::batch::Held;
use crate::batch::order;
use crate::checkpoint::Position;
use crate::delivered::DeliveredBoard;
use crate::persist::persist;
use crate::poller::{Stop, Stopped};
use crate::wiring::Wiring;

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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, SystemTime};

    use futures::future::BoxFuture;
    use tokio::sync::watch;
    use tokio::time::Instant;

    use super::Frontier;
    use crate::batch::Held;
    use crate::checkpoint::{CheckpointError, Checkpoints, Position};
    use crate::delivered::DeliveredBoard;
    use crate::event::LambdaRecord;
    use crate::poller::Stop;
    use crate::tests::world::{World, mapping, succeed};
    use crate::wiring::Wiring;

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
