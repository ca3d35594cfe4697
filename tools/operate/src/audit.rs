//! Audit: how wrong the derived values are in a table that Ripple does not maintain.
//!
//! It needs no stream, ledger or counters, and writes nothing: the store of an audit has only the application's items
//! (the module `view`). It reuses the scan and the refresh step of a [verification](crate::verify). The difference is what
//! a count is compared with: there are no counters, so the *display* on the target is compared with the total of the
//! sources.
//!
//! **Exact at rest.** One read of the table is exact if nothing is written meanwhile. If there are differences and
//! writes go on, the table is read a second time. A difference is reported as wrong only if both reads saw the same
//! stored and the same derived value; any other is *undecided*. A value that is written between the read of its sources
//! and its own differs in one read, and an application that corrects it differs in the other.
//!
//! *Example*: a function that increments `LikeCount` ran twice for one like. Both reads find 3 stored and 2 derived, so
//! the value is wrong by 1. A post that is liked all the time has other values in the second read, so it is undecided.

mod compare;
mod kept;
pub mod totals;
mod view;

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use derive::{catalogue::Catalogue, claims::CLAIMS, family::Family};
use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    registry::RegistryWatch,
};
use keys::{counter::CounterKey, entry::is_entry, item::Item, key::Key};
use store::Store;

use self::{
    compare::LaterComparison,
    kept::{KeptTotals, LeftForLater, ScanNotes},
    totals::{Accounting, Totals},
    view::ApplicationView,
};
use crate::{
    failure::OperateError,
    progress::Progress,
    tables::Deployment,
    verify::{
        AtRest, Extent, Finding, Listener, Scope, VerifyEvent,
        check::{FINDING, Keeping, ReadPrice, temporary_folder},
        judge::INDEX_KEYS,
        paced::Paced,
        run::{Limits, Verification},
        scan::WINDOW_BYTES,
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

/// One read of the table.
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
    let families = vec![Family::Additive, Family::LevelTriggered];
    let (schema, catalogue) = (Arc::clone(&opened.schema), Arc::clone(&opened.catalogue));
    let engine = Engine::new(schema, catalogue, families, view, Arc::new(SystemClock));
    let engine = engine.watching(RegistryWatch::reading(0));
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
