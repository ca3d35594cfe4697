//! What a verification has read and found, in a file: so that memory holds nothing that grows with the table, and a
//! verification that was killed goes on.
//!
//! Everything is written in transactions that end together with what they depend on: what an item adds, how far the scan
//! is, and how far the stream was followed. So a file is at any moment one that a verification can go on from.

use std::{
    collections::BTreeSet,
    fs::OpenOptions,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use engine::clock::{Clock as _, SystemClock};
use futures::future::BoxFuture;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use stream::checkpoint::{CheckpointError, Checkpoints, Position};

use crate::{failure::OperateError, verify::Finding};

/// The form of the file. One of another is refused.
const FORM: &str = "ripple verification 5";

/// When it was last known how far the verification is, in milliseconds since the epoch.
pub(crate) const SAVED_AT: &str = "saved_at";

/// Name under which a repair keeps its run.
pub(crate) const RUN: &str = "run";

/// Kind of the entries about findings that a repair has refused to correct.
const REFUSED: &str = "refused";

/// For how long one can go on from it, in milliseconds: 20 hours, four less than a stream keeps its records.
const KEPT_MS: u64 = 20 * 3_600 * 1_000;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS items (pk TEXT, sk TEXT, adds TEXT NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS targets (
        derivation TEXT, pk TEXT, sk TEXT, count INTEGER NOT NULL, sum TEXT NOT NULL, touched_at INTEGER NOT NULL,
        finding TEXT, is_decided INTEGER NOT NULL, PRIMARY KEY (derivation, pk, sk)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS seen (pk TEXT, sk TEXT, is_there INTEGER NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS counters (pk TEXT, sk TEXT, item TEXT, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS segments (number INTEGER PRIMARY KEY, reached TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS positions (shard TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS results (
        kind TEXT, derivation TEXT, pk TEXT, sk TEXT, is_flaw INTEGER NOT NULL, value TEXT NOT NULL,
        PRIMARY KEY (kind, derivation, pk, sk, is_flaw)) WITHOUT ROWID;
";

/// The file.
#[derive(Clone)]
pub(crate) struct Spool {
    connection: Arc<Mutex<Connection>>,
    /// Is a target that is first named now not verified any more?
    pub(super) is_closed: bool,
}

/// An entry of the file.
pub(crate) struct ResultRow<'a> {
    /// `finding`, `undecided`, `waiting` or `unreadable`.
    pub(crate) kind: &'a str,
    pub(crate) derivation: &'a str,
    pub(crate) pk: &'a str,
    pub(crate) sk: &'a str,
    /// Is it a flaw? An item may have one beside a difference of the same derivation.
    pub(crate) is_flaw: bool,
    /// JSON.
    pub(crate) value: &'a str,
}

impl Spool {
    /// Opens a file, or makes it. `about` says what is verified: a file of something else is refused.
    pub(crate) fn open(file: &Path, about: &[(&str, &str)]) -> Result<Self, OperateError> {
        let opened = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(file)?;
            // A process that is killed loses nothing; a machine that is, begins again.
            connection
                .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192;")?;
            connection.execute_batch(TABLES)?;
            connection.execute_batch("BEGIN")?;
            Ok(connection)
        };
        let name = || file.display().to_string();
        // SQLite does not say why it cannot open a file.
        let writable = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(file);
        drop(writable.map_err(|cause| OperateError::Unopened { file: name(), cause })?);
        let connection = opened().map_err(|cause| match cause.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => OperateError::NoSpool { file: name() },
            _ => OperateError::Spool(cause),
        })?;
        let spool = Self { connection: Arc::new(Mutex::new(connection)), is_closed: false };
        for (name, value) in [("form", FORM)].iter().chain(about) {
            let held = spool.about(name)?;
            if let Some(held) = held.filter(|held| held != value) {
                return Err(OperateError::Refused(format!(
                    "{} is of another verification: its {name} is {held}, not {value}; give another --progress file",
                    file.display()
                )));
            }
            spool.set_about(name, value)?;
        }
        let saved_at_ms = spool.about(SAVED_AT)?.and_then(|saved| saved.parse::<u64>().ok());
        if saved_at_ms.is_some_and(|saved_at_ms| SystemClock.now_ms().saturating_sub(saved_at_ms) > KEPT_MS) {
            return Err(OperateError::Refused(format!(
                "{} was left more than 20 hours ago, and the stream may not go back so far: delete it, and begin anew",
                file.display()
            )));
        }
        spool.commit()?;
        Ok(spool)
    }

    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is noted under a name.
    pub(crate) fn about(&self, name: &str) -> Result<Option<String>, OperateError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached("SELECT value FROM about WHERE name = ?1")?;
        Ok(query.query_row([name], |row| row.get(0)).optional()?)
    }

    /// Notes something under a name.
    pub(crate) fn set_about(&self, name: &str, value: &str) -> Result<(), OperateError> {
        let upsert = "INSERT INTO about VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
        self.connection().prepare_cached(upsert)?.execute([name, value])?;
        Ok(())
    }

    /// Was nothing read yet?
    pub(crate) fn is_new(&self) -> Result<bool, OperateError> {
        let count = "SELECT (SELECT count(*) FROM segments) + (SELECT count(*) FROM items)";
        Ok(self.connection().query_row(count, [], |row| row.get::<_, u64>(0))? == 0)
    }

    /// Ends the transaction, and begins the next.
    pub(crate) fn commit(&self) -> Result<(), OperateError> {
        Ok(self.connection().execute_batch("COMMIT; BEGIN")?)
    }

    /// Keeps an entry, and replaces the earlier one about the same item and derivation.
    pub(crate) fn keep(&self, kept: &ResultRow<'_>) -> io::Result<()> {
        let ResultRow { kind, derivation, pk, sk, is_flaw, value } = kept;
        let upsert = "INSERT INTO results VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET value = ?6";
        let connection = self.connection();
        let mut upsert = connection.prepare_cached(upsert).map_err(io::Error::other)?;
        upsert.execute(params![kind, derivation, pk, sk, is_flaw, value]).map(drop).map_err(io::Error::other)
    }

    /// Notes that a finding was refused; true if it was not noted before.
    pub(crate) fn note_refused(&self, finding: &Finding) -> Result<bool, OperateError> {
        let Finding { derivation, pk, sk, flaw, .. } = finding;
        let insert = "INSERT INTO results VALUES (?1, ?2, ?3, ?4, ?5, '') ON CONFLICT DO NOTHING";
        let connection = self.connection();
        let n_new = connection.prepare_cached(insert)?.execute(params![REFUSED, derivation, pk, sk, flaw.is_some()])?;
        Ok(n_new > 0)
    }

    /// Forgets what was read and found, but for what was refused, so that the same is verified anew.
    pub(crate) fn begin_anew(&self) -> Result<(), OperateError> {
        let tables = "DELETE FROM items; DELETE FROM targets; DELETE FROM seen; DELETE FROM counters; DELETE FROM segments; \
                      DELETE FROM positions";
        let connection = self.connection();
        connection.execute_batch(tables)?;
        connection.execute("DELETE FROM results WHERE kind <> ?1", [REFUSED])?;
        connection.execute("DELETE FROM about WHERE name IN (?1, ?2)", [RUN, SAVED_AT])?;
        Ok(connection.execute_batch("COMMIT; BEGIN")?)
    }

    /// Number of entries of a kind.
    pub(crate) fn n_entries(&self, kind: &str) -> Result<usize, OperateError> {
        let count = "SELECT count(*) FROM results WHERE kind = ?1";
        Ok(self.connection().query_row(count, [kind], |row| row.get(0))?)
    }

    /// The derivations that have entries of a kind.
    pub(crate) fn derivations_with(&self, kind: &str) -> Result<BTreeSet<String>, OperateError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached("SELECT DISTINCT derivation FROM results WHERE kind = ?1")?;
        let names = query.query_map([kind], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// All entries of a kind as JSON, one after another, by derivation and key.
    pub(crate) fn each_entry(
        &self,
        kind: &str,
        mut act: impl FnMut(&str) -> Result<(), OperateError>,
    ) -> Result<(), OperateError> {
        let connection = self.connection();
        let mut query =
            connection.prepare("SELECT value FROM results WHERE kind = ?1 ORDER BY derivation, pk, sk, is_flaw")?;
        let mut rows = query.query([kind])?;
        while let Some(row) = rows.next()? {
            act(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        }
        Ok(())
    }

    /// The next entries of a kind behind one, by derivation and key.
    pub(crate) fn entries_after(
        &self,
        kind: &str,
        after: Option<([&str; 3], bool)>,
        n_max: usize,
    ) -> Result<Vec<String>, OperateError> {
        let ([derivation, pk, sk], is_flaw) = after.unwrap_or_default();
        let connection = self.connection();
        let mut query = connection.prepare_cached(
            "SELECT value FROM results WHERE kind = ?1 AND (derivation, pk, sk, is_flaw) > (?2, ?3, ?4, ?5) \
             ORDER BY derivation, pk, sk, is_flaw LIMIT ?6",
        )?;
        let values = query.query_map(params![kind, derivation, pk, sk, is_flaw, n_max], |row| row.get(0))?;
        Ok(values.collect::<rusqlite::Result<_>>()?)
    }

    /// What a table of the file holds, in rows.
    #[cfg(test)]
    fn n_rows(&self, table: &str) -> usize {
        self.connection().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }
}

impl Checkpoints for Spool {
    fn load<'a>(
        &'a self,
        _mapping: &'a str,
        shard: &'a str,
    ) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
        let query = "SELECT position FROM positions WHERE shard = ?1";
        let held = self.connection().query_row(query, [shard], |row| row.get::<_, String>(0)).optional();
        let held = held
            .map_err(lasting)
            .and_then(|held| held.map(|held| serde_json::from_str(&held)).transpose().map_err(lasting));
        Box::pin(std::future::ready(held))
    }

    fn save<'a>(
        &'a self,
        _mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        let upsert = "INSERT INTO positions VALUES (?1, ?2) ON CONFLICT DO UPDATE SET position = ?2";
        let saved = serde_json::to_string(position)
            .map_err(lasting)
            .and_then(|position| self.connection().execute(upsert, [shard, &position]).map_err(lasting));
        Box::pin(std::future::ready(saved.map(drop)))
    }
}

fn lasting(error: impl std::error::Error + Send + Sync + 'static) -> CheckpointError {
    CheckpointError::Lasting(Box::new(error))
}

#[cfg(test)]
mod tests {
    use derive::tally::Tally;
    use engine::counters::Target;
    use keys::{item::Item, key::Key};
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::verify::tallies::{Contribution, MemoryTallies, Reached, Tallies, Undecided};

    fn target(name: &str) -> Target {
        Target { derivation: "like-count".to_owned(), item: Key::new(name, "METADATA") }
    }

    fn one(name: &str, sum: &str) -> Contribution {
        Contribution { target: target(name), tally: Tally { count: 1, sum: sum.parse().unwrap() } }
    }

    /// Goes through what a verification does with an item, scanned and seen in records in any order.
    fn tallied(tallies: &mut dyn Tallies) -> Vec<Undecided> {
        let [a, b, c] = ["a", "b", "c"].map(|id| Key::new("USER#ann", id));
        tallies.scanned(&a, &[one("p", "0.1")]).unwrap();
        tallies.scanned(&a, &[one("p", "0.1")]).unwrap();
        tallies.report(&b, &[one("q", "0.25"), one("p", "0.2")], 5).unwrap();
        tallies.scanned(&b, &[one("r", "7")]).unwrap();
        tallies.report(&a, &[], 6).unwrap();
        tallies.report(&c, &[one("q", "12345678901234567890123456789012345678")], 7).unwrap();
        tallies.report(&c, &[one("q", "12345678901234567890123456789012345678")], 9).unwrap();
        tallies.has_counter(&target("q")).unwrap();
        tallies.has_counter(&target("s")).unwrap();
        tallies.decided(&target("r")).unwrap();
        tallies.close();
        tallies.report(&c, &[one("q", "12345678901234567890123456789012345678"), one("new", "1")], 9).unwrap();
        tallies.has_counter(&target("newer")).unwrap();
        let counter = |value: &str| Item::from([("Value".to_owned(), AttributeValue::N(value.to_owned()))]);
        tallies.counter_reported(&a, Some(&counter("2"))).unwrap();
        tallies.counter_scanned(&a, &counter("1")).unwrap();
        tallies.counter_scanned(&Key::new("USER#ann", "aa"), &counter("3")).unwrap();
        tallies.counter_scanned(&b, &counter("4")).unwrap();
        tallies.counter_scanned(&c, &counter("5")).unwrap();
        tallies.counter_reported(&c, None).unwrap();
        for (prefix, n_held) in [("", 3), ("a", 2), ("c", 0)] {
            assert_eq!(tallies.counters("USER#ann", prefix).unwrap().len(), n_held, "{prefix}");
        }
        assert_eq!(tallies.counters("USER#ann", "a").unwrap().get(&a), Some(&counter("2")), "the record wins");
        let mut all = tallies.undecided(None, 2).unwrap();
        all.extend(tallies.undecided(Some(&all[1].target.clone()), 10).unwrap());
        all
    }

    #[test]
    fn a_file_keeps_what_memory_does() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(&folder.path().join("spool"), &[]).unwrap();
        let kept = tallied(&mut spool);
        assert_eq!(kept, tallied(&mut MemoryTallies::default()));
        let shown: Vec<(&str, i64, String, u64)> = kept
            .iter()
            .map(|it| (it.target.item.pk.as_str(), it.tally.count, it.tally.sum.to_string(), it.touched_at_ms))
            .collect();
        let sum = "12345678901234567890123456789012345678.25".to_owned();
        assert_eq!(shown, [("p", 1, "0.2".to_owned(), 6), ("q", 2, sum, 9), ("s", 0, "0".to_owned(), 0)]);
    }

    #[test]
    fn a_file_that_was_left_for_longer_than_a_stream_goes_back_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spool");
        for (ago_ms, is_kept) in [(KEPT_MS / 2, true), (KEPT_MS + 1, false)] {
            let spool = Spool::open(&file, &[]).unwrap();
            spool.set_about(SAVED_AT, &(SystemClock.now_ms() - ago_ms).to_string()).unwrap();
            spool.commit().unwrap();
            drop(spool);
            assert_eq!(Spool::open(&file, &[]).is_ok(), is_kept);
        }
    }

    #[test]
    fn what_was_not_committed_together_is_gone_together() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spool");
        let item = Key::new("USER#ann", "a");
        let mut spool = Spool::open(&file, &[("table", "t")]).unwrap();
        spool.scanned(&item, &[one("p", "0")]).unwrap();
        let reached = Reached { n_items: 3, ..Reached::default() };
        spool.reach(2, &reached).unwrap();
        spool.scanned(&Key::new("USER#ann", "b"), &[one("p", "0")]).unwrap();
        drop(spool);
        let mut spool = Spool::open(&file, &[("table", "t")]).unwrap();
        assert_eq!((spool.reached(2).unwrap(), spool.n_rows("items")), (reached, 1));
        drop(spool);
        let error = Spool::open(&file, &[("table", "other")]).err().unwrap().to_string();
        assert!(error.contains("its table is t, not other"), "{error}");
        let error = Spool::open(&folder.path().join("no/file"), &[]).err().unwrap().to_string();
        assert!(error.starts_with("cannot open the progress file /"), "{error}");
        std::fs::write(&file, "no database, and long enough that its first bytes are those of none").unwrap();
        assert!(
            Spool::open(&file, &[]).err().unwrap().to_string().contains("is not the progress file of a verification")
        );
    }
}
