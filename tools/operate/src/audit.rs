//! Audit: how wrong the derived values are in a table that Ripple does not maintain.
//!
//! It needs no stream, ledger or counters, and writes nothing: the store of an audit has only the application's items
//! (`ApplicationView`). It reuses the scan and the refresh step of a [verification](crate::verify). The difference is
//! what a count is compared with: there are no counters, so the *display* on the target is compared with the total of
//! the sources.
//!
//! **Exact at rest.** One read of the table is exact if nothing is written meanwhile. If there are differences and
//! writes go on, the table is read a second time. A difference is reported as wrong only if both reads saw the same
//! stored and the same derived value; any other is *undecided*. A value that is written between the read of its sources
//! and its own differs in one read, and an application that corrects it differs in the other.
//!
//! *Example*: a function that increments `LikeCount` ran twice for one like. Both reads find 3 stored and 2 derived, so
//! the value is wrong by 1. A post that is liked all the time has other values in the second read, so it is undecided.
//!
//! # Comparisons that need the whole table
//!
//! These are displays of counts, items that exist while a count is above zero, mirrors that do not give their source's
//! key, and buckets of roll-ups.
//!
//! A refresh step decides all but buckets, as in a verification. It reads the count from a counter and the first of
//! some items from entries; here the counter is the total of the target's sources, and the entries are theirs. So what
//! a target shows is compared with its sources directly.
//!
//! *Keeps true*: no write and no read of the ledger reaches the database, so neither Ripple's tables nor the right to
//! write is needed. The ledger is empty: nothing is parked, and no job runs. A target has no counters.

mod kept;
pub mod totals;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use derive::{
    catalogue::Catalogue,
    claims::CLAIMS,
    kind::{Kind, Refresh, RefreshTarget, Shape},
    position::DerivationAt,
    query::{Consistency, Query, SortKeys},
    refresh::Look,
    sources::{Source, Sources},
    tally::Sum,
    whole::starts_anew,
    write::{Table, Transaction, Write},
};
use engine::{
    account::Target,
    backoff::Patience,
    batch::Engine,
    clock::{Clock as _, SystemClock},
};
use keys::{
    counter::{CounterKey, MARK},
    entry::is_entry,
    item::Item,
    key::Key,
    layout::Layout,
};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

use crate::{
    OperateError,
    audit::{
        kept::{After, KeptTotals, LeftForLater, ScanNotes},
        totals::{Accounting, Totals},
    },
    tables::Deployment,
    verify::{
        AtRest, Belief, Extent, Finding, Listener, Progress, Scope, UnreadableItem, VerifyEvent,
        check::{FINDING, Keeping, ReadPrice, temporary_folder},
        judge::{INDEX_KEYS, Judge},
        run::{Limits, Verification},
        scan::{Paced, WINDOW_BYTES},
        spool::Spool,
    },
};

/// The options of an audit.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// Number of segments of the table to read in parallel.
    pub segments: u32,
    /// Limit on read units a second.
    pub read_units: Option<u32>,
    /// True if no program writes, so that one read is enough.
    pub at_rest: bool,
    /// True to keep the values of the worst differences.
    pub has_values: bool,
}

/// How far an audit is, for an operator who stops it.
#[derive(Debug, Default)]
pub struct SeenSoFar {
    /// Items read. A second read counts from 0 again.
    pub n_items: AtomicUsize,
    /// Differences found so far in this read.
    pub n_differences: AtomicUsize,
    /// Number of the read of the table.
    pub n_reads: AtomicUsize,
}

/// The results of an audit.
pub struct Audited {
    /// How much the last read has read.
    pub extent: Extent,
    /// What it found.
    pub totals: Totals,
    /// An item of each entity, as an example of its size.
    pub samples: Vec<Item>,
    /// When each read of the table began and ended, in milliseconds since the epoch.
    pub reads: Vec<(u64, u64)>,
    /// The read units that they used, as DynamoDB charges them.
    pub read_units: f64,
}

impl Audited {
    /// True if all values are right or beyond what the table shows, and all items are readable.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let Totals { derivations, n_unreadable, .. } = &self.totals;
        let is_right = derivations.iter().all(|it| it.wrong + it.missing + it.extra + it.undecided == 0);
        is_right && *n_unreadable == 0
    }
}

struct TableRead {
    kept: KeptTotals,
    notes: ScanNotes,
    extent: Extent,
    unknown: BTreeMap<String, usize>,
    values: BTreeMap<String, usize>,
    span_ms: (u64, u64),
    read_units: f64,
    /// The folder of the file, deleted when this is dropped.
    _folder: tempfile::TempDir,
}

/// Audits a table. Reads it once, and again if something differs and programs may write.
///
/// # Errors
///
/// [`OperateError`].
pub async fn audit<S: Store + 'static>(
    opened: &Deployment<S>,
    options: &AuditOptions,
    seen: &Arc<SeenSoFar>,
    progress: &Arc<dyn Progress>,
) -> Result<Audited, OperateError> {
    let first = Box::pin(read(opened, options, seen, progress)).await?;
    let is_final = options.at_rest || first.kept.spool.n_entries(FINDING)? == 0;
    let (first, last) =
        if is_final { (None, first) } else { (Some(first), Box::pin(read(opened, options, seen, progress)).await?) };
    let accounting = Accounting {
        schema: &opened.schema,
        catalogue: &opened.catalogue,
        kept: &last.kept,
        first: first.as_ref().map(|first| &first.kept.spool),
        notes: &last.notes,
        unknown: &last.unknown,
        values: &last.values,
        has_values: options.has_values,
    };
    let totals = accounting.totals()?;
    let all = || first.iter().chain([&last]);
    Ok(Audited {
        extent: last.extent,
        totals,
        samples: last.notes.samples.values().cloned().collect(),
        reads: all().map(|read| read.span_ms).collect(),
        read_units: all().map(|read| read.read_units).sum(),
    })
}

/// Reads and compares the table once.
async fn read<S: Store + 'static>(
    opened: &Deployment<S>,
    options: &AuditOptions,
    seen: &Arc<SeenSoFar>,
    progress: &Arc<dyn Progress>,
) -> Result<TableRead, OperateError> {
    let folder = temporary_folder()?;
    let spool = Spool::open(&folder.path().join("audit"), &[])?;
    let paced = Paced::new(Arc::clone(&opened.store), options.read_units);
    let used = paced.used();
    let view = ApplicationView { store: paced, layout: opened.schema.layout.clone() };
    let engine = opened.engine_over(view, 0);
    let began_ms = SystemClock.now_ms();
    seen.n_items.store(0, Ordering::Relaxed);
    seen.n_differences.store(0, Ordering::Relaxed);
    seen.n_reads.fetch_add(1, Ordering::Relaxed);
    progress.begins(ReadPrice::of(opened.n_items, opened.bytes, options.segments));
    let keeping = Keeping { spool: spool.clone(), progress: Arc::clone(progress), is_at_rest: true };
    let mut listener = AuditListener { keeping, catalogue: &opened.catalogue, seen: Arc::clone(seen) };
    let left = LeftForLater::of(&opened.schema, &opened.catalogue, spool.clone());
    let mut kept = KeptTotals::new(spool.clone())?;
    let limits = Limits { segments: options.segments, wait_ms: 0, window_bytes: WINDOW_BYTES };
    let scan = Verification::new(&engine, &AtRest, &mut kept, &mut listener, limits, Scope::default());
    let extent = scan.leaving(&left).scan_only().await?;
    let notes = left.seen()?;
    let (unknown, values) = (BTreeMap::new(), BTreeMap::new());
    let mut later =
        LaterComparison { engine: &engine, kept: &kept, left: &left, listener: &mut listener, unknown, values };
    later.run().await?;
    let LaterComparison { unknown, values, .. } = later;
    spool.commit()?;
    let (span_ms, read_units) = ((began_ms, SystemClock.now_ms()), used.get());
    Ok(TableRead { kept, notes, extent, unknown, values, span_ms, read_units, _folder: folder })
}

/// Stores what an audit finds, without what only Ripple writes.
struct AuditListener<'a> {
    keeping: Keeping,
    catalogue: &'a Catalogue,
    seen: Arc<SeenSoFar>,
}

impl AuditListener<'_> {
    /// The finding without the list of claims, which only Ripple keeps; `None` if nothing else differs.
    fn without_ours(&self, mut finding: Finding) -> Option<Finding> {
        let key = Key::new(&finding.pk, &finding.sk);
        let is_own = CounterKey::parse(&key).is_some() || is_entry(&key);
        let is_known = finding.derivation == INDEX_KEYS || self.catalogue.position(&finding.derivation).is_some();
        for item in [&mut finding.stored, &mut finding.derived].into_iter().flatten() {
            item.remove(CLAIMS);
        }
        let is_empty = |item: &Option<Item>| item.as_ref().is_some_and(Item::is_empty);
        let differs = !(is_empty(&finding.stored) && is_empty(&finding.derived)) || finding.flaw.is_some();
        (differs && is_known && !is_own).then_some(finding)
    }
}

impl Listener for AuditListener<'_> {
    fn report(&mut self, event: VerifyEvent) -> io::Result<()> {
        let event = match event {
            VerifyEvent::Finding(finding, belief) => match self.without_ours(finding) {
                None => return Ok(()),
                Some(finding) => VerifyEvent::Finding(finding, belief),
            },
            // An audit reports no conditions, and proves counts without the stream.
            VerifyEvent::Unlike(_) | VerifyEvent::AboutNothing(_) | VerifyEvent::Unproven(_) => return Ok(()),
            event => event,
        };
        self.seen.n_differences.fetch_add(1, Ordering::Relaxed);
        self.keeping.report(event)
    }

    fn read(&mut self, n_items: usize) {
        self.seen.n_items.fetch_add(n_items, Ordering::Relaxed);
        self.keeping.read(n_items);
    }

    fn looked(&mut self, n_items: usize) {
        self.keeping.looked(n_items);
    }

    fn counted(&mut self, n_counts: usize) {
        self.keeping.counted(n_counts);
    }
}

// ---- Comparisons that need the whole table ----

/// Items that are compared together. Bounds memory.
const ITEMS_AT_ONCE: usize = 250;

/// Time limit for a call, in milliseconds.
const CALL_MS_MAX: u64 = 60_000;

/// The comparison of what a scan left for later.
struct LaterComparison<'a, S> {
    engine: &'a Engine<S>,
    kept: &'a KeptTotals,
    left: &'a LeftForLater<'a>,
    listener: &'a mut dyn Listener,
    /// Values that the table cannot decide, by derivation.
    unknown: BTreeMap<String, usize>,
    /// Values that were compared here and are no attribute or item of an entity, by derivation.
    values: BTreeMap<String, usize>,
}

impl<S: Store> LaterComparison<'_, S> {
    async fn run(&mut self) -> Result<(), OperateError> {
        self.displays().await?;
        let catalogue = self.engine.catalogue();
        let all: Vec<(DerivationAt, String)> =
            catalogue.positioned().map(|(at, derivation)| (at, derivation.name.clone())).collect();
        for (at, name) in all {
            let Some(derivation) = self.engine.catalogue().derivation(at) else { continue };
            match derivation.kind.shape() {
                Shape::Attributes(refresh) if refresh.makes_item() => {
                    let counts: Vec<String> = refresh.reads_counts().into_iter().map(str::to_owned).collect();
                    let entity = refresh.target().to_owned();
                    for (position, count) in counts.iter().enumerate() {
                        let before = counts.get(..position).unwrap_or_default();
                        self.missing_items(at, (count, before), &entity).await?;
                    }
                }
                Shape::Mirror(mirror) => {
                    let entity = mirror.target.clone();
                    if self.left.claiming_into(self.engine.catalogue(), &entity).contains(&at) {
                        self.claimed(&entity).await?;
                    }
                }
                Shape::Rollup(_) => self.buckets(&name)?,
                Shape::Attributes(_) | Shape::Count(_) | Shape::Cascade(_) => {}
            }
        }
        Ok(())
    }

    /// Compares what counts decide of the items that were scanned.
    async fn displays(&mut self) -> Result<(), OperateError> {
        let mut after = After::None;
        loop {
            let shown = self.kept.shown_after(&after, ITEMS_AT_ONCE)?;
            let Some((last, ..)) = shown.last() else { return Ok(()) };
            after = Some(last.clone());
            self.listener.counted(shown.len());
            let (mut sources, mut looks) = (Sources::default(), Vec::new());
            for (key, entity, item) in shown {
                let derivations = self.left.counting_into(self.engine.catalogue(), &entity);
                if derivations.is_empty() {
                    continue;
                }
                self.add_counters(&key, &derivations, &mut sources)?;
                self.add_entries(&key, &entity, &derivations, &mut sources)?;
                sources.add_item(key.clone(), Some(item));
                looks.push(Look { item: key, entity, derivations, named: BTreeSet::new() });
            }
            self.judge(looks, sources).await?;
        }
    }

    /// Adds the counters that a target would have.
    fn add_counters(
        &self,
        target: &Key,
        derivations: &BTreeSet<DerivationAt>,
        sources: &mut Sources,
    ) -> Result<(), OperateError> {
        let (schema, catalogue) = (self.engine.schema(), self.engine.catalogue());
        let refreshes = derivations.iter().filter_map(|at| catalogue.refresh(*at));
        let counts: BTreeSet<&str> = refreshes.flat_map(Refresh::reads_counts).collect();
        let counts: Vec<&str> = counts.into_iter().collect();
        let counters = self.kept.counters_of(schema, target, &counts)?;
        sources.add_counters(schema, target.clone(), &counters);
        Ok(())
    }

    /// Adds the entries that a target would have.
    fn add_entries(
        &self,
        target: &Key,
        entity: &str,
        derivations: &BTreeSet<DerivationAt>,
        sources: &mut Sources,
    ) -> Result<(), OperateError> {
        let (schema, catalogue) = (self.engine.schema(), self.engine.catalogue());
        let Some(definition) = schema.entity(entity) else { return Ok(()) };
        for refresh in derivations.iter().filter_map(|at| catalogue.refresh(*at)) {
            let target = RefreshTarget { key: target, definition, item: None, named: &BTreeSet::new(), hour: None };
            for source in refresh.sources(schema, &target) {
                if let Source::First(of) = source {
                    let entries = self.kept.entries(&of)?;
                    sources.add_first(of, entries);
                }
            }
        }
        Ok(())
    }

    /// Compares the items that should exist because their count is above zero, and were not scanned: those for which
    /// this is the first such count.
    async fn missing_items(
        &mut self,
        at: DerivationAt,
        (count, before): (&str, &[String]),
        entity: &str,
    ) -> Result<(), OperateError> {
        let mut after = After::None;
        loop {
            let targets = self.kept.totals_after(count, true, (&after, ITEMS_AT_ONCE))?;
            let Some((last, _)) = targets.last() else { return Ok(()) };
            after = Some(last.clone());
            let mut sources = self.read(targets.iter().map(|(key, _)| key.clone()).collect()).await?;
            let mut looks = Vec::new();
            for (key, _) in targets {
                let all = self.left.counting_into(self.engine.catalogue(), entity);
                self.add_counters(&key, &all, &mut sources)?;
                let is_above = |count: &String| sources.tally(&key, count).is_some_and(|tally| tally.count > 0);
                if before.iter().any(is_above) {
                    continue;
                }
                let derivations = BTreeSet::from([at]);
                looks.push(Look { item: key, entity: entity.to_owned(), derivations, named: BTreeSet::new() });
            }
            self.judge(looks, sources).await?;
        }
    }

    /// Compares mirrors with all sources that claim them.
    async fn claimed(&mut self, entity: &str) -> Result<(), OperateError> {
        let derivations = self.left.claiming_into(self.engine.catalogue(), entity);
        let mut after = After::None;
        loop {
            let mirrors = self.kept.claimed_after(entity, &after, ITEMS_AT_ONCE)?;
            let Some((last, _)) = mirrors.last() else { return Ok(()) };
            after = Some(last.clone());
            let sources = self.read(mirrors.iter().map(|(key, _)| key.clone()).collect()).await?;
            let look = |(item, named)| {
                let derivations = derivations.clone();
                Look { item, entity: entity.to_owned(), derivations, named }
            };
            self.judge(mirrors.into_iter().map(look).collect(), sources).await?;
        }
    }

    /// The current items under these keys.
    async fn read(&self, keys: Vec<Key>) -> Result<Sources, OperateError> {
        let (stored, _) = self.engine.stored_each(keys, self.patience()).await?;
        let mut sources = Sources::default();
        for (key, item) in stored {
            sources.add_item(key, item);
        }
        Ok(sources)
    }

    /// Reports the items that differ, for the derivations of each refresh alone: the others were compared by the scan.
    async fn judge(&mut self, looks: Vec<Look>, mut sources: Sources) -> Result<(), OperateError> {
        let judge = Judge { engine: self.engine };
        let (judged, refused) = judge.looks(looks, &mut sources, self.patience()).await?;
        for (look, cause) in refused {
            for at in &look.derivations {
                let derivation = self.engine.catalogue().name(*at).to_owned();
                let (pk, sk) = (look.item.pk.clone(), look.item.sk.clone());
                let why = format!("what it is decided by cannot be read: {cause}");
                self.listener.report(VerifyEvent::Unreadable(UnreadableItem { derivation, pk, sk, why }))?;
            }
        }
        for judged in judged {
            let stored = sources.item(&judged.look.item);
            let catalogue = self.engine.catalogue();
            let is_asked =
                |name: &str| catalogue.position(name).is_some_and(|at| judged.look.derivations.contains(&at));
            let findings = judge.findings(&judged, stored).into_iter().filter(|finding| is_asked(&finding.derivation));
            let findings: Vec<Finding> = findings.collect();
            for finding in findings {
                self.report(finding)?;
            }
        }
        Ok(())
    }

    /// Reports a difference, unless it may be right: a count by inserts alone may exceed its sources.
    fn report(&mut self, finding: Finding) -> Result<(), OperateError> {
        let catalogue = self.engine.catalogue();
        let refresh = catalogue.position(&finding.derivation).and_then(|at| catalogue.refresh(at));
        let counts = refresh.map(Refresh::reads_counts).unwrap_or_default();
        let counts = counts.into_iter().filter_map(|count| catalogue.derivation(catalogue.position(count)?));
        let mut histories = counts.filter(|count| count.kind.is_history());
        if histories.any(|count| exceeds(&finding) || starts_anew(catalogue, &count.name)) {
            *self.unknown.entry(finding.derivation).or_default() += 1;
            return Ok(());
        }
        Ok(self.listener.report(VerifyEvent::Finding(finding, unbelieved()))?)
    }

    /// Compares the number of readings in each bucket of a roll-up with its sources.
    fn buckets(&mut self, name: &str) -> Result<(), OperateError> {
        let mut after = After::None;
        loop {
            let targets = self.kept.totals_after(name, false, (&after, ITEMS_AT_ONCE))?;
            let Some((last, _)) = targets.last() else { return Ok(()) };
            after = Some(last.clone());
            self.listener.counted(targets.len());
            *self.values.entry(name.to_owned()).or_default() += targets.len();
            for (item, tally) in targets {
                let stored = self.kept.bucket(&item)?;
                let target = Target { derivation: name.to_owned(), item };
                let judge = Judge { engine: self.engine };
                if let Some(finding) = judge.count(&target, &tally, &stored) {
                    self.listener.report(VerifyEvent::Finding(finding, unbelieved()))?;
                } else if !self.is_equal(&target, tally.count, stored.get(&target.item)) {
                    *self.unknown.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
    }

    /// True if a bucket has exactly this number of readings.
    fn is_equal(&self, target: &Target, count: i64, bucket: Option<&Item>) -> bool {
        let kind: Option<&dyn Kind> = self
            .engine
            .catalogue()
            .position(&target.derivation)
            .and_then(|at| self.engine.catalogue().derivation(at))
            .map(|derivation| derivation.kind.as_ref());
        let Some(Shape::Rollup(rollup)) = kind.map(Kind::shape) else { return false };
        let stored = bucket.and_then(|bucket| bucket.get(&rollup.form.count)).and_then(Sum::of);
        stored.is_some_and(|stored| stored.to_string() == count.to_string())
            && !starts_anew(self.engine.catalogue(), &target.derivation)
    }

    fn patience(&self) -> Patience<'_> {
        let deadline_ms = self.engine.clock().now_ms().saturating_add(CALL_MS_MAX);
        Patience::new(self.engine.clock(), deadline_ms)
    }
}

/// True if the stored value is greater than the derived one. Then expired items may be the reason.
fn exceeds(finding: &Finding) -> bool {
    let number = |item: &Option<Item>| -> Option<Sum> { item.as_ref()?.values().find_map(Sum::of) };
    match (number(&finding.stored), number(&finding.derived)) {
        (Some(stored), derived) => stored > derived.unwrap_or_default(),
        (None, _) => false,
    }
}

/// No function follows the table, so nothing proves that a difference was handled. A second pass confirms it.
fn unbelieved() -> Belief {
    Belief { handled_ms: 0, until_ms: 0 }
}

// ---- The table of an application without Ripple ----

/// Partition key of the position behind the last of several tables, where the table for Ripple's own items follows.
const OWN_TABLE: &str = "#";

/// A store that only reads, and only the application's items.
struct ApplicationView<S> {
    store: S,
    layout: Layout,
}

/// A page without items.
fn nothing() -> Page {
    Page { items: Vec::new(), next: None }
}

fn refused(operation: &'static str, key: &Key) -> StoreError {
    StoreError::Reject { operation, item: key.to_string(), source: "an audit writes nothing".into() }
}

/// True for a query of a target's counters.
fn is_of_counters(query: &Query) -> bool {
    query.index.is_none() && matches!(&query.sk, SortKeys::Prefix(prefix) if prefix.contains(MARK))
}

impl<S: Store> Store for ApplicationView<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        match table {
            Table::Main => self.store.read(table, keys, consistency).await,
            Table::Ledger => Ok(Vec::new()),
        }
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        match table {
            Table::Main if !is_of_counters(query) => self.store.query(table, query, after).await,
            Table::Main | Table::Ledger => Ok(nothing()),
        }
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        let from = after.as_ref().and_then(|Cursor(key)| self.layout.key(key));
        let is_own = self.layout.forms.is_some() && from.is_some_and(|from| from.pk == OWN_TABLE);
        match table {
            Table::Main if !is_own => self.store.scan(table, segment, after).await,
            Table::Main | Table::Ledger => Ok(nothing()),
        }
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        Err(refused("a write", &write.key))
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        Err(refused("an update", &write.key))
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let key = transaction.writes().first().map(|write| write.key.clone());
        Err(refused("a transaction", &key.unwrap_or_else(|| Key::new("", ""))))
    }
}
