//! What each item adds, what that comes to by target, and what the counters hold, in the file of a verification.

use std::io;

use derive::{derived::Items, tally::Tally};
use engine::{
    clock::{Clock as _, SystemClock},
    counters::Target,
};
use keys::{item::Item, key::Key};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::spool::{SAVED_AT, Spool};
use crate::{
    failure::OperateError,
    verify::{
        Finding,
        tallies::{Contribution, Reached, Tallies, Undecided},
    },
};

impl Spool {
    fn adds_of(connection: &Connection, item: &Key) -> rusqlite::Result<Option<String>> {
        let mut query = connection.prepare_cached("SELECT adds FROM items WHERE pk = ?1 AND sk = ?2")?;
        query.query_row([&item.pk, &item.sk], |row| row.get(0)).optional()
    }

    fn add(&self, adds: &[Contribution], sign: i64, now_ms: u64) -> Result<(), OperateError> {
        let connection = self.connection();
        let mut query = connection
            .prepare_cached("SELECT count, sum FROM targets WHERE derivation = ?1 AND pk = ?2 AND sk = ?3")?;
        let mut upsert = connection.prepare_cached(
            "INSERT INTO targets VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, ?7) ON CONFLICT DO UPDATE SET count = ?4, \
             sum = ?5, touched_at = max(touched_at, ?6)",
        )?;
        for Contribution { target: Target { derivation, item }, tally } in adds {
            let held =
                query.query_row([derivation, &item.pk, &item.sk], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let mut sum = read_tally(held.unwrap_or((0, "0".to_owned())))?;
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

    /// The counts of a derivation about items that are not there: how many, and the first of the items.
    fn missing_targets(&self, derivation: &str, n_examples: usize) -> rusqlite::Result<(usize, Vec<Key>)> {
        let from = "FROM targets AS t WHERE t.derivation = ?1 AND t.count <> 0 AND NOT EXISTS \
                    (SELECT 1 FROM seen AS s WHERE s.pk = t.pk AND s.sk = t.sk AND s.is_there)";
        let connection = self.connection();
        let n_counts = connection.query_row(&format!("SELECT count(*) {from}"), [derivation], |row| row.get(0))?;
        let mut query = connection.prepare(&format!("SELECT t.pk, t.sk {from} ORDER BY t.pk, t.sk LIMIT ?2"))?;
        let keys = query.query_map(params![derivation, n_examples], |row| {
            Ok(Key::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
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

    fn counters_from(&self, pk: &str, sk_prefix: &str) -> Result<Items, OperateError> {
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

/// What an item adds, as it is kept: derivation, key of the target, count and sum.
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

fn read_tally((count, sum): (i64, String)) -> Result<Tally, OperateError> {
    let sum = sum.parse().map_err(|_| OperateError::NoNumber { text: sum })?;
    Ok(Tally { count, sum })
}

fn undecided(row: &Row<'_>) -> Result<Undecided, OperateError> {
    let target = Target { derivation: row.get(0)?, item: Key::new(row.get::<_, String>(1)?, row.get::<_, String>(2)?) };
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
        let held: Option<String> =
            connection.query_row(query, [segment], |row| row.get(0)).optional().map_err(io::Error::other)?;
        Ok(held.map(|held| serde_json::from_str(&held)).transpose()?.unwrap_or_default())
    }

    fn reach(&mut self, segment: u32, reached: &Reached) -> io::Result<()> {
        let upsert = "INSERT INTO segments VALUES (?1, ?2) ON CONFLICT DO UPDATE SET reached = ?2";
        let text = serde_json::to_string(reached)?;
        self.connection().execute(upsert, params![segment, text]).map_err(io::Error::other)?;
        let now_ms = SystemClock.now_ms().to_string();
        self.set_about(SAVED_AT, &now_ms).and_then(|()| self.commit()).map_err(io::Error::other)
    }
}
