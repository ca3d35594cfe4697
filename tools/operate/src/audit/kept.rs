//! What the scan of an audit notes for later: totals, targets of counts, entries, and mirrors with their sources.
//!
//! It is all in the file of the verification, so memory does not grow with the table. An audit follows no stream, so it
//! keeps only the total of each target, not the contribution of each item.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use derive::{
    catalogue::Catalogue,
    derivation::Derivation,
    derived::{Counts, Derived, Items},
    kind::{Refresh, Shape},
    part::PartOf,
    position::DerivationAt,
    query::Order,
    refresh::Look,
    schema::{Image, Schema},
    sources::FirstOf,
    tally::Tally,
};
use engine::account::Target;
use keys::{
    counter::{COUNTER, CounterKey},
    entity::Definition,
    item::Item,
    key::Key,
};
use rusqlite::params;
use serde_dynamo::AttributeValue;

use crate::{
    OperateError,
    verify::{
        Contribution, Finding, Reached, Tallies, Undecided,
        check::FINDING,
        counts::{attributes, only},
        run::Later,
        spool::{Spool, key_at, read_tally},
    },
};

/// Targets whose totals are added up in memory before they are stored. Bounds memory.
const PENDING_MAX: usize = 10_000;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS shown (
        pk TEXT, sk TEXT, entity TEXT NOT NULL, item TEXT NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS claimed (
        entity TEXT, pk TEXT, sk TEXT, source_pk TEXT, source_sk TEXT,
        PRIMARY KEY (entity, pk, sk, source_pk, source_sk)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS entries (
        pk TEXT, sk TEXT, item TEXT NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
";

/// The file of an audit, as a scan writes it.
pub(super) struct KeptTotals {
    pub(super) spool: Spool,
    pending: BTreeMap<Target, Tally>,
}

impl KeptTotals {
    pub(super) fn new(spool: Spool) -> Result<Self, OperateError> {
        spool.connection().execute_batch(TABLES)?;
        Ok(Self { spool, pending: BTreeMap::new() })
    }

    fn flush(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending).into_iter();
        let adds: Vec<_> = pending.map(|(target, tally)| Contribution { target, tally }).collect();
        self.spool.add(&adds, 1, 0).map_err(io::Error::other)
    }
}

/// Nothing is reported by a stream, and counts are not compared here, so the other methods are never called.
impl Tallies for KeptTotals {
    fn scanned(&mut self, _item: &Key, adds: &[Contribution]) -> io::Result<()> {
        for Contribution { target, tally } in adds {
            self.pending.entry(target.clone()).or_default().add(tally);
        }
        if self.pending.len() < PENDING_MAX { Ok(()) } else { self.flush() }
    }

    fn report(&mut self, _item: &Key, _adds: &[Contribution], _now_ms: u64) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self) {}

    fn target_scanned(&mut self, _item: &Key) -> io::Result<()> {
        Ok(())
    }

    fn target_reported(&mut self, _item: &Key, _is_there: bool) -> io::Result<()> {
        Ok(())
    }

    fn about_nothing(&mut self, _derivation: &str, _n_examples: usize) -> io::Result<(usize, Vec<Key>)> {
        Ok((0, Vec::new()))
    }

    fn has_counter(&mut self, _target: &Target) -> io::Result<()> {
        Ok(())
    }

    /// Buckets of roll-ups are compared later. A counter is Ripple's, and says nothing about the application's table.
    fn counter_scanned(&mut self, key: &Key, item: &Item) -> io::Result<()> {
        if CounterKey::parse(key).is_some() { Ok(()) } else { self.spool.counter_scanned(key, item) }
    }

    fn counter_reported(&mut self, _key: &Key, _item: Option<&Item>) -> io::Result<()> {
        Ok(())
    }

    fn counters(&mut self, _pk: &str, _sk_prefix: &str) -> io::Result<Items> {
        Ok(Items::new())
    }

    fn undecided(&mut self, _after: Option<&Target>, _n_max: usize) -> io::Result<Vec<Undecided>> {
        Ok(Vec::new())
    }

    fn compared(&mut self, _target: &Target, _finding: Option<&Finding>) -> io::Result<()> {
        Ok(())
    }

    fn decided(&mut self, _target: &Target) -> io::Result<()> {
        Ok(())
    }

    fn reached(&mut self, segment: u32) -> io::Result<Reached> {
        self.spool.reached(segment)
    }

    fn reach(&mut self, segment: u32, reached: &Reached) -> io::Result<()> {
        self.flush()?;
        self.spool.reach(segment, reached)
    }
}

// ---- What is left for later ----

/// The comparisons that need the whole table: what a count or entries decide, and mirrors that do not give their source's
/// key.
pub(super) struct LeftForLater<'a> {
    spool: Spool,
    schema: &'a Schema,
    catalogue: &'a Catalogue,
    /// Attributes to keep of the items of an entity; all if `None`.
    kept: BTreeMap<String, Option<BTreeSet<String>>>,
    /// Derivations that read counts or entries.
    counting: BTreeSet<DerivationAt>,
    /// Derivations that keep entries. These are Ripple's, as counters are.
    entries: BTreeSet<DerivationAt>,
    /// Mirrors that do not give their source's key.
    claiming: BTreeSet<DerivationAt>,
    seen: Mutex<ScanNotes>,
}

/// What the scan has seen.
#[derive(Default)]
pub(super) struct ScanNotes {
    /// Items of each entity.
    pub(super) n_items: BTreeMap<String, usize>,
    /// The first item of each entity.
    pub(super) samples: BTreeMap<String, Item>,
    claims: Vec<(String, Key, Option<Key>)>,
}

impl<'a> LeftForLater<'a> {
    pub(super) fn of(schema: &'a Schema, catalogue: &'a Catalogue, spool: Spool) -> Self {
        let mut later = Self {
            spool,
            schema,
            catalogue,
            kept: BTreeMap::new(),
            counting: BTreeSet::new(),
            entries: BTreeSet::new(),
            claiming: BTreeSet::new(),
            seen: Mutex::default(),
        };
        for (at, derivation) in catalogue.positioned() {
            match derivation.kind.shape() {
                Shape::Mirror(mirror) => {
                    let lists = schema.entity(&mirror.source).is_some_and(|source| mirror.lists_claims(source));
                    later.claiming.extend(lists.then_some(at));
                }
                Shape::Attributes(_) if derivation.kind.keeps_entries() => drop(later.entries.insert(at)),
                Shape::Attributes(refresh) if !refresh.reads_counts().is_empty() || later.reads_entries(derivation) => {
                    later.counting.insert(at);
                    later.keep(derivation, refresh);
                }
                Shape::Count(count) => drop(later.kept.entry(count.target.clone()).or_insert(Some(BTreeSet::new()))),
                Shape::Attributes(_) | Shape::Rollup(_) | Shape::Cascade(_) => {}
            }
        }
        later
    }

    /// True if it reads entries.
    fn reads_entries(&self, derivation: &Derivation) -> bool {
        let is_own = |name: &&str| self.schema.entity(name).is_some_and(Definition::is_own);
        derivation.kind.entities().iter().any(is_own)
    }

    /// Also keeps the attributes that a derivation writes, or the whole item if it creates the item.
    fn keep(&mut self, derivation: &Derivation, refresh: &dyn Refresh) {
        let kept = self.kept.entry(refresh.target().to_owned()).or_insert(Some(BTreeSet::new()));
        if refresh.makes_item() {
            *kept = None;
        }
        let reach = derivation.kind.reach(self.schema).unwrap_or_default();
        let written = reach.writes.into_iter().filter_map(|part| match part.of {
            PartOf::Attribute(name) => Some(name),
            PartOf::Existence | PartOf::Inside { .. } | PartOf::AllBut(_) => None,
        });
        if let Some(kept) = kept {
            kept.extend(written);
        }
    }

    /// The derivations of this entity's items that read counts or entries.
    pub(super) fn counting_into(&self, catalogue: &Catalogue, entity: &str) -> BTreeSet<DerivationAt> {
        catalogue.refreshing(entity).filter(|at| self.counting.contains(at)).collect()
    }

    /// The derivation that creates this entity's items, if these do not give their source's key.
    pub(super) fn claiming_into(&self, catalogue: &Catalogue, entity: &str) -> BTreeSet<DerivationAt> {
        catalogue.refreshing(entity).filter(|at| self.claiming.contains(at)).collect()
    }

    /// Stores the rest, and returns what the scan has seen.
    pub(super) fn seen(&self) -> io::Result<ScanNotes> {
        let mut seen = self.notes();
        self.flush(&mut seen)?;
        Ok(std::mem::take(&mut *seen))
    }

    fn notes(&self) -> MutexGuard<'_, ScanNotes> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self, seen: &mut ScanNotes) -> io::Result<()> {
        let connection = self.spool.connection();
        let insert = "INSERT OR IGNORE INTO claimed VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = connection.prepare_cached(insert).map_err(io::Error::other)?;
        for (entity, mirror, source) in seen.claims.drain(..) {
            // No item has an empty partition key.
            let source = source.unwrap_or_else(|| Key::new("", ""));
            insert.execute(params![entity, mirror.pk, mirror.sk, source.pk, source.sk]).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Stores the entries that an item has by the definition.
    fn keep_entries(&self, image: &Image<'_>) -> io::Result<()> {
        for derivation in self.entries.iter().filter_map(|at| self.catalogue.derivation(*at)) {
            if !derivation.kind.entities().iter().any(|entity| image.is(entity)) {
                continue;
            }
            let items = Items::from([(image.key.clone(), image.item.clone())]);
            for derived in derivation.derive(self.schema, &items, &Counts::new()) {
                let Derived::Item { key, item } = derived else { continue };
                let insert = "INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?3)";
                let connection = self.spool.connection();
                let mut insert = connection.prepare_cached(insert).map_err(io::Error::other)?;
                insert.execute(params![key.pk, key.sk, serde_json::to_string(&item)?]).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    /// The attributes of a target that a later comparison reads.
    fn part(&self, image: &Image<'_>, kept: Option<&BTreeSet<String>>) -> Item {
        let Some(kept) = kept else { return image.item.clone() };
        let (layout, Definition { key, .. }) = (&self.schema.layout, image.definition);
        let in_key = key.field_names();
        let names = [layout.pk.as_str(), layout.sk.as_str(), layout.type_name()].into_iter();
        let names: Vec<&str> = names.chain(kept.iter().map(String::as_str)).chain(in_key).collect();
        only(image.item, &names)
    }
}

impl Later for LeftForLater<'_> {
    fn scanned(&self, image: &Image<'_>) -> io::Result<()> {
        let entity = &image.definition.name;
        {
            let mut seen = self.notes();
            if let Some(n_items) = seen.n_items.get_mut(entity) {
                *n_items += 1;
            } else {
                seen.n_items.insert(entity.clone(), 1);
                seen.samples.insert(entity.clone(), image.item.clone());
            }
            if seen.claims.len() >= PENDING_MAX {
                self.flush(&mut seen)?;
            }
        }
        self.keep_entries(image)?;
        let Some(kept) = self.kept.get(entity) else { return Ok(()) };
        let part = serde_json::to_string(&self.part(image, kept.as_ref()))?;
        let connection = self.spool.connection();
        let upsert = "INSERT OR REPLACE INTO shown VALUES (?1, ?2, ?3, ?4)";
        let mut upsert = connection.prepare_cached(upsert).map_err(io::Error::other)?;
        upsert.execute(params![image.key.pk, image.key.sk, entity, part]).map(drop).map_err(io::Error::other)
    }

    fn take(&self, look: &mut Look) {
        look.derivations.retain(|at| !self.counting.contains(at) && !self.entries.contains(at));
        let n_asked = look.derivations.len();
        look.derivations.retain(|at| !self.claiming.contains(at));
        if look.derivations.len() < n_asked {
            let mut seen = self.notes();
            seen.claims.push((look.entity.clone(), look.item.clone(), None));
            let named = look.named.iter().map(|source| (look.entity.clone(), look.item.clone(), Some(source.clone())));
            seen.claims.extend(named.collect::<Vec<_>>());
        }
    }
}

// ---- Reading it back ----

/// Position in a table of the file: the key of the last row.
pub(super) type After = Option<Key>;

impl KeptTotals {
    /// The next items that counts are about, with their entities, by key.
    pub(super) fn shown_after(&self, after: &After, n_max: usize) -> Result<Vec<(Key, String, Item)>, OperateError> {
        let connection = self.spool.connection();
        let mut query = connection.prepare_cached(
            "SELECT pk, sk, entity, item FROM shown WHERE (pk, sk) > (?1, ?2) ORDER BY pk, sk LIMIT ?3",
        )?;
        let (pk, sk) = text_of(after);
        let mut rows = query.query(params![pk, sk, n_max])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let key = key_at(row, 0)?;
            all.push((key, row.get(2)?, serde_json::from_str(&row.get::<_, String>(3)?)?));
        }
        Ok(all)
    }

    /// The next targets of a count, by key, with their totals. If `is_missing`, only those that do not exist.
    pub(super) fn totals_after(
        &self,
        derivation: &str,
        is_missing: bool,
        (after, n_max): (&After, usize),
    ) -> Result<Vec<(Key, Tally)>, OperateError> {
        let connection = self.spool.connection();
        let mut query = connection.prepare_cached(
            "SELECT t.pk, t.sk, t.count, t.sum FROM targets AS t WHERE t.derivation = ?1 AND (t.pk, t.sk) > (?2, ?3) \
             AND NOT (?4 AND EXISTS (SELECT 1 FROM shown AS s WHERE s.pk = t.pk AND s.sk = t.sk)) \
             ORDER BY t.pk, t.sk LIMIT ?5",
        )?;
        let (pk, sk) = text_of(after);
        let mut rows = query.query(params![derivation, pk, sk, is_missing, n_max])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let key = key_at(row, 0)?;
            all.push((key, read_tally((row.get(2)?, row.get(3)?))?));
        }
        Ok(all)
    }

    /// A count's targets that do not exist: how many, and the first of them.
    pub(super) fn without_target(&self, derivation: &str, n_max: usize) -> Result<(usize, Vec<Key>), OperateError> {
        let n_counts = self.spool.connection().query_row(
            "SELECT count(*) FROM targets AS t WHERE t.derivation = ?1 \
             AND NOT EXISTS (SELECT 1 FROM shown AS s WHERE s.pk = t.pk AND s.sk = t.sk)",
            [derivation],
            |row| row.get(0),
        )?;
        let first = self.totals_after(derivation, true, (&None, n_max))?;
        Ok((n_counts, first.into_iter().map(|(key, _)| key).collect()))
    }

    /// The counters that a target would have, by its sources.
    pub(super) fn counters_of(&self, schema: &Schema, item: &Key, counts: &[&str]) -> Result<Vec<Item>, OperateError> {
        let connection = self.spool.connection();
        let mut query = connection
            .prepare_cached("SELECT count, sum FROM targets WHERE derivation = ?1 AND pk = ?2 AND sk = ?3")?;
        let mut counters = Vec::new();
        for derivation in counts {
            let mut rows = query.query([*derivation, item.pk.as_str(), item.sk.as_str()])?;
            let Some(row) = rows.next()? else { continue };
            let tally = read_tally((row.get(0)?, row.get(1)?))?;
            let counter = CounterKey { target: item.clone(), derivation: (*derivation).to_owned(), satellite: 0 };
            // A count whose counter would have too long a key has none, and its source is listed as unreadable.
            let Ok(key) = counter.key() else { continue };
            let mut counter = schema.layout.key_item(&key);
            let mark = schema.layout.entity_type.clone();
            counter.extend(mark.map(|name| (name, AttributeValue::S(COUNTER.to_owned()))));
            counter.extend(attributes(&tally, true));
            counters.push(counter);
        }
        Ok(counters)
    }

    /// The first entries that a target would have, in the order of a query.
    pub(super) fn entries(&self, of: &FirstOf) -> Result<Vec<Item>, OperateError> {
        let order = if of.query.order == Order::Ascending { "ASC" } else { "DESC" };
        let connection = self.spool.connection();
        // The last character of an entry's prefix is #, and $ is the next one.
        let prefix = of.query.sk.first();
        let end = prefix.strip_suffix('#').map(|prefix| format!("{prefix}$"));
        let mut query = connection.prepare_cached(&format!(
            "SELECT item FROM entries WHERE pk = ?1 AND sk >= ?2 AND sk < ?3 ORDER BY sk {order} LIMIT ?4"
        ))?;
        let mut rows = query.query(params![of.query.pk, prefix, end, of.length()])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(serde_json::from_str(&row.get::<_, String>(0)?)?);
        }
        Ok(all)
    }

    /// The next mirrors of an entity, by key, each with the items that claim it.
    pub(super) fn claimed_after(
        &self,
        entity: &str,
        after: &After,
        n_max: usize,
    ) -> Result<Vec<(Key, BTreeSet<Key>)>, OperateError> {
        let connection = self.spool.connection();
        let mut mirrors = connection.prepare_cached(
            "SELECT DISTINCT pk, sk FROM claimed WHERE entity = ?1 AND (pk, sk) > (?2, ?3) ORDER BY pk, sk LIMIT ?4",
        )?;
        let mut sources = connection.prepare_cached(
            "SELECT source_pk, source_sk FROM claimed WHERE entity = ?1 AND pk = ?2 AND sk = ?3 AND source_pk <> ''",
        )?;
        let (pk, sk) = text_of(after);
        let mut rows = mirrors.query(params![entity, pk, sk, n_max])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let mirror = key_at(row, 0)?;
            let claims = sources.query_map([entity, mirror.pk.as_str(), mirror.sk.as_str()], |row| key_at(row, 0))?;
            let claims = claims.collect::<rusqlite::Result<_>>()?;
            all.push((mirror, claims));
        }
        Ok(all)
    }

    /// Passes the key and the derivation of each difference that may be corrected to `act`, by key.
    pub(super) fn each_differing(&self, mut act: impl FnMut(Key, &str)) -> Result<(), OperateError> {
        let connection = self.spool.connection();
        let mut query = connection
            .prepare("SELECT pk, sk, derivation FROM results WHERE kind = ?1 AND is_flaw = 0 ORDER BY pk, sk")?;
        let mut rows = query.query([FINDING])?;
        while let Some(row) = rows.next()? {
            let key = key_at(row, 0)?;
            act(key, row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?);
        }
        Ok(())
    }

    /// The bucket of a roll-up that the scan has read.
    pub(super) fn bucket(&self, key: &Key) -> Result<Items, OperateError> {
        let mut found = self.spool.counters_from(&key.pk, &key.sk)?;
        found.retain(|bucket, _| bucket == key);
        Ok(found)
    }
}

fn text_of(after: &After) -> (&str, &str) {
    after.as_ref().map_or(("", ""), |key| (key.pk.as_str(), key.sk.as_str()))
}
