//! File with what a verification has read and found. It keeps memory independent of the table's size, and a
//! verification that was killed continues from it.
//!
//! Each transaction commits together what depends on each other: the contributions of items, the position of the scan,
//! and the position in the stream. So a verification can continue from the file at any moment.

use std::{
    collections::BTreeSet,
    fs::OpenOptions,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use derive::{derived::Items, tally::Tally};
use engine::{
    account::Target,
    clock::{Clock as _, SystemClock},
};
use futures::future::BoxFuture;
use keys::{item::Item, key::Key};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, ToSql, params};
use stream::checkpoint::{CheckpointError, Checkpoints, Position};

use crate::{
    OperateError,
    verify::{Contribution, Finding, Reached, Tallies, Undecided},
};

/// The form of the file. Files of another form are refused.
const FORM: &str = "ripple verification 5";

/// Time of the last saved progress, in milliseconds since the epoch.
const SAVED_AT: &str = "saved_at";

/// Name under which a repair stores its run.
pub(crate) const RUN: &str = "run";

/// Kind of the entries about findings that a repair has refused to correct.
const REFUSED: &str = "refused";

/// For how long a file can be continued, in milliseconds: 20 hours, four less than a stream keeps its records.
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
    /// True once new targets are no longer verified.
    is_closed: bool,
}

/// An entry of the file.
pub(crate) struct ResultRow<'a> {
    /// `finding`, `undecided`, `waiting` or `unreadable`.
    pub(crate) kind: &'a str,
    pub(crate) derivation: &'a str,
    pub(crate) pk: &'a str,
    pub(crate) sk: &'a str,
    /// True for invalid data. An item may have one such entry beside a difference of the same derivation.
    pub(crate) is_flaw: bool,
    /// JSON.
    pub(crate) value: &'a str,
}

impl Spool {
    /// Opens or creates a file. `about` describes the verification; the file of another verification is refused.
    pub(crate) fn open(file: &Path, about: &[(&str, &str)]) -> Result<Self, OperateError> {
        let opened = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(file)?;
            // A killed process loses nothing; after a machine crash the verification begins again.
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
            let stored = spool.about(name)?;
            if let Some(stored) = stored.filter(|stored| stored != value) {
                return Err(OperateError::Refused(format!(
                    "{} is of a verification with other options: its {name} is {stored}, not {value}; give the same options, or another \
                     --progress file",
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

    /// The value stored under a name.
    pub(crate) fn about(&self, name: &str) -> Result<Option<String>, OperateError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached("SELECT value FROM about WHERE name = ?1")?;
        Ok(query.query_row([name], |row| row.get(0)).optional()?)
    }

    /// Stores a value under a name.
    pub(crate) fn set_about(&self, name: &str, value: &str) -> Result<(), OperateError> {
        let upsert = "INSERT INTO about VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
        self.connection().prepare_cached(upsert)?.execute([name, value])?;
        Ok(())
    }

    /// True if nothing was read yet.
    pub(crate) fn is_new(&self) -> Result<bool, OperateError> {
        let count = "SELECT (SELECT count(*) FROM segments) + (SELECT count(*) FROM items)";
        Ok(self.connection().query_row(count, [], |row| row.get::<_, u64>(0))? == 0)
    }

    /// Commits the transaction, and begins the next.
    pub(crate) fn commit(&self) -> Result<(), OperateError> {
        Ok(self.connection().execute_batch("COMMIT; BEGIN")?)
    }

    /// Stores an entry, and replaces the earlier one about the same item and derivation.
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

    /// Deletes what was read and found, but not what was refused, so that the verification can start again.
    pub(crate) fn begin_anew(&self) -> Result<(), OperateError> {
        let tables = "DELETE FROM items; DELETE FROM targets; DELETE FROM seen; DELETE FROM counters; DELETE FROM segments; \
                      DELETE FROM positions";
        let connection = self.connection();
        connection.execute_batch(tables)?;
        connection.execute("DELETE FROM results WHERE kind <> ?1", [REFUSED])?;
        connection.execute("DELETE FROM about WHERE name IN (?1, ?2)", [RUN, SAVED_AT])?;
        Ok(connection.execute_batch("COMMIT; BEGIN")?)
    }

    pub(crate) fn n_entries(&self, kind: &str) -> Result<usize, OperateError> {
        self.counted("SELECT count(*) FROM results WHERE kind = ?1", kind)
    }

    /// Number of items with entries of a kind.
    pub(crate) fn n_items(&self, kind: &str) -> Result<usize, OperateError> {
        self.counted("SELECT count(*) FROM (SELECT DISTINCT pk, sk FROM results WHERE kind = ?1)", kind)
    }

    fn counted(&self, query: &str, kind: &str) -> Result<usize, OperateError> {
        Ok(self.connection().query_row(query, [kind], |row| row.get(0))?)
    }

    /// The derivations that have entries of a kind.
    pub(crate) fn derivations_with(&self, kind: &str) -> Result<BTreeSet<String>, OperateError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached("SELECT DISTINCT derivation FROM results WHERE kind = ?1")?;
        let names = query.query_map([kind], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Passes all entries of a kind to `act`, as JSON, by derivation and key.
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

    /// The next entries of a kind after one, by derivation and key.
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

    pub(crate) fn entry(&self, kind: &str, about: [&str; 3], is_flaw: bool) -> Result<Option<String>, OperateError> {
        let [derivation, pk, sk] = about;
        let query = "SELECT value FROM results WHERE kind = ?1 AND (derivation, pk, sk, is_flaw) = (?2, ?3, ?4, ?5)";
        let connection = self.connection();
        let mut query = connection.prepare_cached(query)?;
        Ok(query.query_row(params![kind, derivation, pk, sk, is_flaw], |row| row.get(0)).optional()?)
    }

    /// Number of rows in a table of the file.
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
        let stored = self.connection().query_row(query, [shard], |row| row.get::<_, String>(0)).optional();
        let stored = stored
            .map_err(lasting)
            .and_then(|stored| stored.map(|stored| serde_json::from_str(&stored)).transpose().map_err(lasting));
        Box::pin(std::future::ready(stored))
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

// ---- The contributions of each item, their totals by target, and the counters ----

impl Spool {
    fn adds_of(connection: &Connection, item: &Key) -> rusqlite::Result<Option<String>> {
        let mut query = connection.prepare_cached("SELECT adds FROM items WHERE pk = ?1 AND sk = ?2")?;
        query.query_row([&item.pk, &item.sk], |row| row.get(0)).optional()
    }

    pub(crate) fn add(&self, adds: &[Contribution], sign: i64, now_ms: u64) -> Result<(), OperateError> {
        let connection = self.connection();
        let mut query = connection
            .prepare_cached("SELECT count, sum FROM targets WHERE derivation = ?1 AND pk = ?2 AND sk = ?3")?;
        let mut upsert = connection.prepare_cached(
            "INSERT INTO targets VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, ?7) ON CONFLICT DO UPDATE SET count = ?4, \
             sum = ?5, touched_at = max(touched_at, ?6)",
        )?;
        for Contribution { target: Target { derivation, item }, tally } in adds {
            let stored =
                query.query_row([derivation, &item.pk, &item.sk], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let mut sum = read_tally(stored.unwrap_or((0, "0".to_owned())))?;
            if sign < 0 {
                sum.subtract(tally);
            } else {
                sum.add(tally);
            }
            upsert.execute(params![
                derivation,
                item.pk,
                item.sk,
                sum.count,
                sum.sum.to_string(),
                now_ms,
                self.is_closed
            ])?;
        }
        Ok(())
    }

    fn scanned_by(&self, item: &Key, adds: &[Contribution]) -> Result<(), OperateError> {
        let insert = "INSERT OR IGNORE INTO items VALUES (?1, ?2, ?3)";
        let n_new = self.connection().prepare_cached(insert)?.execute([&item.pk, &item.sk, &written(adds)?])?;
        if n_new > 0 { self.add(adds, 1, 0) } else { Ok(()) }
    }

    fn reported_by(&self, item: &Key, adds: &[Contribution], now_ms: u64) -> Result<(), OperateError> {
        let before = Self::adds_of(&self.connection(), item)?.map(|text| read(&text)).transpose()?;
        if before.as_deref() == Some(adds) {
            return Ok(());
        }
        let upsert = "INSERT INTO items VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET adds = ?3";
        self.connection().prepare_cached(upsert)?.execute([&item.pk, &item.sk, &written(adds)?])?;
        self.add(&before.unwrap_or_default(), -1, now_ms)?;
        self.add(adds, 1, now_ms)
    }

    /// A derivation's counts about items that do not exist: how many, and the first of the items.
    fn missing_targets(&self, derivation: &str, n_examples: usize) -> rusqlite::Result<(usize, Vec<Key>)> {
        let from = "FROM targets AS t WHERE t.derivation = ?1 AND t.count <> 0 AND NOT EXISTS \
                    (SELECT 1 FROM seen AS s WHERE s.pk = t.pk AND s.sk = t.sk AND s.is_there)";
        let connection = self.connection();
        let n_counts = connection.query_row(&format!("SELECT count(*) {from}"), [derivation], |row| row.get(0))?;
        let mut query = connection.prepare(&format!("SELECT t.pk, t.sk {from} ORDER BY t.pk, t.sk LIMIT ?2"))?;
        let keys = query.query_map(params![derivation, n_examples], |row| key_at(row, 0))?;
        keys.collect::<rusqlite::Result<_>>().map(|keys| (n_counts, keys))
    }

    fn see_target(&self, statement: &str, item: &Key, is_there: bool) -> rusqlite::Result<()> {
        self.connection().prepare_cached(statement)?.execute(params![item.pk, item.sk, is_there]).map(drop)
    }

    fn keep_counter(&self, statement: &str, key: &Key, item: Option<&Item>) -> Result<(), OperateError> {
        let text = item.map(serde_json::to_string).transpose()?;
        self.connection().prepare_cached(statement)?.execute(params![key.pk, key.sk, text])?;
        Ok(())
    }

    pub(crate) fn counters_from(&self, pk: &str, sk_prefix: &str) -> Result<Items, OperateError> {
        let connection = self.connection();
        let mut query =
            connection.prepare_cached("SELECT sk, item FROM counters WHERE pk = ?1 AND sk >= ?2 ORDER BY sk")?;
        let mut rows = query.query([pk, sk_prefix])?;
        let mut counters = Items::new();
        while let Some(row) = rows.next()? {
            let (sk, text) = (row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?);
            if !sk.starts_with(sk_prefix) {
                break;
            }
            if let Some(text) = text {
                counters.insert(Key::new(pk, sk), serde_json::from_str(&text)?);
            }
        }
        Ok(counters)
    }

    fn of_target(&self, statement: &str, target: &Target, value: impl ToSql) -> io::Result<()> {
        let Target { derivation, item } = target;
        let connection = self.connection();
        let mut statement = connection.prepare_cached(statement).map_err(io::Error::other)?;
        let done = statement.execute(params![derivation, item.pk, item.sk, value]);
        done.map(drop).map_err(io::Error::other)
    }
}

/// What an item adds, as it is stored: derivation, key of the target, count and sum.
type Written = (String, String, String, i64, String);

fn written(adds: &[Contribution]) -> Result<String, OperateError> {
    let all: Vec<Written> = adds
        .iter()
        .map(|Contribution { target: Target { derivation, item }, tally }| {
            let (derivation, pk, sk) = (derivation.clone(), item.pk.clone(), item.sk.clone());
            (derivation, pk, sk, tally.count, tally.sum.to_string())
        })
        .collect();
    Ok(serde_json::to_string(&all)?)
}

fn read(text: &str) -> Result<Vec<Contribution>, OperateError> {
    let all: Vec<Written> = serde_json::from_str(text)?;
    let one = |(derivation, pk, sk, count, sum): Written| {
        let target = Target { derivation, item: Key::new(pk, sk) };
        Ok(Contribution { target, tally: read_tally((count, sum))? })
    };
    all.into_iter().map(one).collect()
}

pub(crate) fn read_tally((count, sum): (i64, String)) -> Result<Tally, OperateError> {
    let sum = sum.parse().map_err(|_| OperateError::NoNumber { text: sum })?;
    Ok(Tally { count, sum })
}

/// The key in a column and the next.
pub(crate) fn key_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Key> {
    Ok(Key::new(row.get::<_, String>(column)?, row.get::<_, String>(column + 1)?))
}

fn undecided(row: &Row<'_>) -> Result<Undecided, OperateError> {
    let target = Target { derivation: row.get(0)?, item: key_at(row, 1)? };
    let finding = row.get::<_, Option<String>>(6)?;
    Ok(Undecided {
        target,
        tally: read_tally((row.get(3)?, row.get(4)?))?,
        touched_at_ms: row.get(5)?,
        compared: finding.map(|finding| serde_json::from_str(&finding)).transpose()?,
    })
}

impl Tallies for Spool {
    fn scanned(&mut self, item: &Key, adds: &[Contribution]) -> io::Result<()> {
        self.scanned_by(item, adds).map_err(io::Error::other)
    }

    fn report(&mut self, item: &Key, adds: &[Contribution], now_ms: u64) -> io::Result<()> {
        self.reported_by(item, adds, now_ms).map_err(io::Error::other)
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    fn target_scanned(&mut self, item: &Key) -> io::Result<()> {
        self.see_target("INSERT OR IGNORE INTO seen VALUES (?1, ?2, ?3)", item, true).map_err(io::Error::other)
    }

    fn target_reported(&mut self, item: &Key, is_there: bool) -> io::Result<()> {
        let upsert = "INSERT INTO seen VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET is_there = ?3";
        self.see_target(upsert, item, is_there).map_err(io::Error::other)
    }

    fn about_nothing(&mut self, derivation: &str, n_examples: usize) -> io::Result<(usize, Vec<Key>)> {
        self.missing_targets(derivation, n_examples).map_err(io::Error::other)
    }

    fn has_counter(&mut self, target: &Target) -> io::Result<()> {
        let insert = "INSERT OR IGNORE INTO targets VALUES (?1, ?2, ?3, 0, '0', 0, NULL, ?4)";
        self.of_target(insert, target, self.is_closed)
    }

    fn counter_scanned(&mut self, key: &Key, item: &Item) -> io::Result<()> {
        let insert = "INSERT OR IGNORE INTO counters VALUES (?1, ?2, ?3)";
        self.keep_counter(insert, key, Some(item)).map_err(io::Error::other)
    }

    fn counter_reported(&mut self, key: &Key, item: Option<&Item>) -> io::Result<()> {
        let upsert = "INSERT INTO counters VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET item = ?3";
        self.keep_counter(upsert, key, item).map_err(io::Error::other)
    }

    fn counters(&mut self, pk: &str, sk_prefix: &str) -> io::Result<Items> {
        self.counters_from(pk, sk_prefix).map_err(io::Error::other)
    }

    fn undecided(&mut self, after: Option<&Target>, n_max: usize) -> io::Result<Vec<Undecided>> {
        let connection = self.connection();
        let all = || -> Result<Vec<Undecided>, OperateError> {
            let mut query = connection.prepare_cached(
                "SELECT derivation, pk, sk, count, sum, touched_at, finding FROM targets \
                 WHERE is_decided = 0 AND (derivation, pk, sk) > (?1, ?2, ?3) ORDER BY derivation, pk, sk LIMIT ?4",
            )?;
            let (derivation, pk, sk) = after.map_or(("", "", ""), |target| {
                (target.derivation.as_str(), target.item.pk.as_str(), target.item.sk.as_str())
            });
            let mut rows = query.query(params![derivation, pk, sk, n_max])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push(undecided(row)?);
            }
            Ok(all)
        };
        all().map_err(io::Error::other)
    }

    fn compared(&mut self, target: &Target, finding: Option<&Finding>) -> io::Result<()> {
        let finding = finding.map(serde_json::to_string).transpose()?;
        let update = "UPDATE targets SET finding = ?4 WHERE derivation = ?1 AND pk = ?2 AND sk = ?3";
        self.of_target(update, target, finding)
    }

    fn decided(&mut self, target: &Target) -> io::Result<()> {
        let update = "UPDATE targets SET is_decided = ?4, finding = NULL WHERE derivation = ?1 AND pk = ?2 AND sk = ?3";
        self.of_target(update, target, true)
    }

    fn reached(&mut self, segment: u32) -> io::Result<Reached> {
        let connection = self.connection();
        let query = "SELECT reached FROM segments WHERE number = ?1";
        let stored: Option<String> =
            connection.query_row(query, [segment], |row| row.get(0)).optional().map_err(io::Error::other)?;
        Ok(stored.map(|stored| serde_json::from_str(&stored)).transpose()?.unwrap_or_default())
    }

    fn reach(&mut self, segment: u32, reached: &Reached) -> io::Result<()> {
        let upsert = "INSERT INTO segments VALUES (?1, ?2) ON CONFLICT DO UPDATE SET reached = ?2";
        let text = serde_json::to_string(reached)?;
        self.connection().execute(upsert, params![segment, text]).map_err(io::Error::other)?;
        let now_ms = SystemClock.now_ms().to_string();
        self.set_about(SAVED_AT, &now_ms).and_then(|()| self.commit()).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use serde_dynamo::AttributeValue;

    use super::*;

    fn target(name: &str) -> Target {
        Target { derivation: "like-count".to_owned(), item: Key::new(name, "METADATA") }
    }

    fn one(name: &str, sum: &str) -> Contribution {
        Contribution { target: target(name), tally: Tally { count: 1, sum: sum.parse().unwrap() } }
    }

    /// Replays an item's scan and its records in various orders.
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
        for (prefix, n_blocked) in [("", 3), ("a", 2), ("c", 0)] {
            assert_eq!(tallies.counters("USER#ann", prefix).unwrap().len(), n_blocked, "{prefix}");
        }
        assert_eq!(tallies.counters("USER#ann", "a").unwrap().get(&a), Some(&counter("2")), "the record wins");
        let mut all = tallies.undecided(None, 2).unwrap();
        all.extend(tallies.undecided(Some(&all[1].target.clone()), 10).unwrap());
        all
    }

    #[test]
    fn a_file_keeps_what_was_scanned_unless_a_record_says_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(&folder.path().join("spool"), &[]).unwrap();
        let kept = tallied(&mut spool);
        assert!(kept.iter().all(|it| it.compared.is_none()));
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
    fn an_item_that_two_derivations_cannot_read_is_one_item() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(&folder.path().join("spool"), &[]).unwrap();
        for derivation in ["a", "b"] {
            let of_item = ResultRow { kind: "unreadable", derivation, pk: "p", sk: "s", is_flaw: false, value: "" };
            spool.keep(&of_item).unwrap();
        }
        assert_eq!((spool.n_entries("unreadable").unwrap(), spool.n_items("unreadable").unwrap()), (2, 1));
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
