//! A whole verification: a file stores what was read and found, and the stream is followed alongside.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    sync::Arc,
};

use derive::{catalogue::Catalogue, derivation::Derivation, family::Family};
use engine::{
    account::Target,
    batch::Engine,
    inspect::{ToRecount, to_recount},
    ledger::recorded,
    redrive::waiting::PendingWork,
};
use keys::key::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Store;

use crate::{
    OperateError,
    tables::{Deployment, VerifyOptions, part, scope, selection},
    verify::{
        AtRest, Extent, Finding, Following, Listener, Progress, Scope, UnreadableItem, VerifyEvent,
        followed::{AGE_MARGIN_S, FollowedStreams, ProgressSource},
        marks::{Before, Marked, Marking, keeps, marks_before, settle_marks},
        run::{Limits, Verification},
        scan::{Paced, WINDOW_BYTES},
        spool::{ResultRow, Spool},
    },
    words::time,
};

/// A difference, as it is stored and printed. Its names are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// The difference.
    #[serde(flatten)]
    pub finding: Finding,
    /// Why it is undecided, or can be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Kind of the entries for a [`Difference`] that no pending work explains.
pub const FINDING: &str = "finding";
/// Kind of the entries for a [`Difference`] that a pending change may still correct.
pub const UNDECIDED: &str = "undecided";
/// Kind of the entries for a [`Difference`] that a parked change or a job explains.
pub const WAITING: &str = "waiting";
/// Kind of the entries for an unreadable item.
pub const UNREADABLE: &str = "unreadable";
/// Why a finding is reported of a table that is assumed at rest.
const AT_REST: &str = "assumed at rest, not checked";

/// Kind of the entries for a count that was equal while it was changing.
pub const UNPROVEN: &str = "unproven";

/// Kind of the entries for a derivation's counts about items that do not exist.
pub const ABOUT_NOTHING: &str = "about_nothing";

/// Kind of the entries for items where a condition compares two values of different types.
pub const UNLIKE: &str = "unlike";

/// The outcome of a verification that was requested by itself.
pub struct Checked {
    /// The findings.
    pub verified: Verified,
    /// True if nothing is found, undecided or waiting, and nothing is unreadable that is not allowed.
    pub is_clean: bool,
    /// Marks of a possible loss that existed before.
    pub marked: Vec<Marked>,
    /// The counts that were listed for a recount, are right, and are listed no more.
    pub recounted: Vec<ToRecount>,
    /// The derivations that were marked as filled.
    pub marking: Marking,
}

/// Verifies. If it `may_write`, it marks derivations as filled that are correct in the whole table, removes marks of a
/// possible loss unless their family has a finding that can be corrected, and takes counts that it proves off the list of
/// counts to recount.
///
/// # Errors
///
/// [`OperateError`]. The file keeps what was read.
pub async fn check<S: Store + 'static>(
    opened: &Deployment<S>,
    args: &VerifyOptions,
    may_write: bool,
    progress: &Arc<dyn Progress>,
) -> Result<Checked, OperateError> {
    let (marks, listed) = (marks_before(opened).await?, to_recount(&opened.store).await?);
    let prepared = prepare(opened, args)?;
    // What an earlier run read proves nothing about the present.
    let before = if prepared.spool.is_new()? { Some(Before::read(opened).await?) } else { None };
    let mut unfilled: BTreeSet<String> =
        before.iter().filter(|_| may_write).flat_map(|before| before.unfilled(opened, args)).collect();
    let targets = listed.iter().filter(|_| may_write).filter_map(|entry| entry.target.as_ref());
    unfilled.extend(targets.map(|target| target.derivation.clone()));
    let notes_changes = may_write && marks.iter().any(|mark| mark.is_of(Family::LevelTriggered));
    // What an earlier run read, or what the functions derive and this catalogue lacks, is not proven.
    let knows_all = before.as_ref().is_some_and(|before| before.knows_all(opened).is_ok());
    let besides = Besides { unfilled, notes_changes };
    let verified = Box::pin(verify(prepared, opened, args, besides, progress)).await?;
    let is_clean = verified.is_clean()?;
    let mut marking = Marking::Done;
    if let Some(before) = before.filter(|_| may_write) {
        let found = verified.derivations_with([FINDING])?;
        marking = before.mark(opened, args, &verified, found).await?;
    }
    let kept = verified.families_kept(opened)?;
    let is_proof = verified.is_whole && knows_all;
    let marked = settle_marks(opened, marks, &kept, is_proof, may_write).await?;
    let recounted = if is_proof && may_write { verified.recounted(opened, listed).await? } else { Vec::new() };
    Ok(Checked { verified, is_clean, marked, recounted, marking })
}

/// A verification that is ready to begin or to continue.
pub(crate) struct Prepared {
    pub(crate) spool: Spool,
    scope: Scope,
    /// True if the streams are followed.
    follows: bool,
    temporary: Option<tempfile::TempDir>,
}

/// Prepares a verification with these options.
pub(crate) fn prepare<S: Store>(opened: &Deployment<S>, args: &VerifyOptions) -> Result<Prepared, OperateError> {
    let scope = scope(opened, args)?;
    let (file, temporary) = if let Some(file) = &args.progress {
        (file.clone(), None)
    } else {
        let folder = temporary_folder()?;
        (folder.path().join("verification"), Some(folder))
    };
    if !args.at_rest && opened.streams.is_empty() {
        let why = format!(
            "the table {} has no stream, so it is unknown which records are still to be handled: give --at-rest if nobody writes",
            opened.name
        );
        return Err(OperateError::Usage(why));
    }
    let follows = !args.at_rest;
    let arns: Vec<&str> = opened.streams.iter().filter(|_| follows).map(|stream| stream.arn.as_str()).collect();
    let about = [
        ("table", opened.arn.clone()),
        ("stream", arns.join(",")),
        ("part", part(args)),
        ("segments", args.segments.to_string()),
    ];
    let about: Vec<(&str, &str)> = about.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let spool = Spool::open(&file, &about)?;
    Ok(Prepared { spool, scope, follows, temporary })
}

/// A folder that is deleted when it is dropped.
pub(crate) fn temporary_folder() -> Result<tempfile::TempDir, OperateError> {
    tempfile::tempdir().map_err(|cause| {
        let folder = std::env::temp_dir().display().to_string();
        OperateError::NoTemporary { folder, cause }
    })
}

/// What a verification does besides comparing.
#[derive(Default)]
pub(crate) struct Besides {
    /// Counts of which all changes are proven, if the ledger must prove counts; of all others, only those that differ.
    pub(crate) unfilled: BTreeSet<String>,
    /// True if it notes again what changes by the passing of time.
    pub(crate) notes_changes: bool,
}

/// Runs the prepared verification.
pub(crate) async fn verify<S: Store + 'static>(
    prepared: Prepared,
    opened: &Deployment<S>,
    args: &VerifyOptions,
    Besides { unfilled, notes_changes }: Besides,
    progress: &Arc<dyn Progress>,
) -> Result<Verified, OperateError> {
    let Prepared { spool, scope, follows, temporary } = prepared;
    let is_whole = scope == Scope::default();
    let followed = if follows {
        let age_ms = args.iterator_age.map(|seconds| seconds.saturating_mul(1_000));
        let handled = if opened.is_aws { ProgressSource::Age(age_ms) } else { ProgressSource::Positions };
        Some(FollowedStreams::start(opened, handled, &spool).await?)
    } else {
        None
    };
    let age_s = args.iterator_age.map_or(0, |age| age.saturating_mul(2).saturating_add(AGE_MARGIN_S));
    let wait_ms = args.wait.max(age_s).saturating_mul(1_000);
    let limits = Limits { segments: args.segments, wait_ms, window_bytes: WINDOW_BYTES };
    let ledger = recorded(&opened.store).await?;
    let engine = reading(opened, args.read_units).with_ledger(ledger.unwrap_or_default());
    let used = engine.store().used();
    let proven = (opened.is_aws && followed.is_some()).then_some(unfilled);
    progress.begins(ReadPrice::of(opened.n_items, opened.bytes, args.segments));
    let how = How { limits, scope, proving: proven.clone().unwrap_or_default(), notes_changes };
    let (extent, ignored) = run(&engine, followed, &spool, progress, how).await?;
    spool.commit()?;
    let catalogue = Arc::clone(&opened.catalogue);
    let (read_units, allows_unreadable) = (used.get(), args.allow_unreadable);
    let verified = Verified {
        spool,
        catalogue,
        extent,
        ignored,
        is_whole,
        read_units,
        allows_unreadable,
        proven,
        _temporary: temporary,
    };
    let is_empty =
        extent.n_selected == 0 && verified.has_none_of([FINDING, UNDECIDED, WAITING, UNPROVEN].into_iter())?;
    match selection(args).filter(|_| is_empty) {
        Some(given) => Err(OperateError::Usage(format!(
            "nothing was verified: the table has no item and no count that {given} selects; correct the option"
        ))),
        None => Ok(verified),
    }
}

/// Options of a prepared verification.
struct How {
    limits: Limits,
    scope: Scope,
    proving: BTreeSet<String>,
    notes_changes: bool,
}

async fn run<S: Store>(
    engine: &Engine<Paced<Arc<S>>>,
    followed: Option<FollowedStreams>,
    spool: &Spool,
    progress: &Arc<dyn Progress>,
    How { limits, scope, proving, notes_changes }: How,
) -> Result<(Extent, Option<Key>), OperateError> {
    let mut tallies = spool.clone();
    let mut keeping = Keeping { spool: spool.clone(), progress: Arc::clone(progress), is_at_rest: followed.is_none() };
    let Some(mut followed) = followed else {
        let verification =
            Verification::new(engine, &AtRest, &mut tallies, &mut keeping, limits, scope).noting_changes(notes_changes);
        let extent = verification.run().await?;
        verification.report_overdue().await?;
        return Ok((extent, verification.ignored()));
    };
    let ended = followed.ended();
    let verification =
        Verification::new(engine, &followed as &dyn Following, &mut tallies, &mut keeping, limits, scope)
            .proving(proving)
            .noting_changes(notes_changes);
    tokio::select! {
        extent = async {
            let extent = verification.run().await?;
            verification.report_overdue().await.map(|()| (extent, verification.ignored()))
        } => Ok(extent?),
        ended = ended => match ended? {
            Ok(()) => Err(OperateError::Refused("the table's stream is followed no more".to_owned())),
            Err(error) => Err(OperateError::Stream(error)),
        },
    }
}

/// An engine whose reads are paced, and whose read units are added up.
pub(crate) fn reading<S: Store>(opened: &Deployment<S>, units_a_second: Option<u32>) -> Engine<Paced<Arc<S>>> {
    opened.engine_over(Paced::new(Arc::clone(&opened.store), units_a_second), 0)
}

// ---- labels ----

/// An entry with the label of its derivation in place of the stored name.
fn labelled<'a>(catalogue: &Catalogue, entry: &'a str) -> Result<Cow<'a, str>, OperateError> {
    if catalogue.derivations().all(|derivation| derivation.renamed.is_none()) {
        return Ok(Cow::Borrowed(entry));
    }
    let mut entry: Value = serde_json::from_str(entry)?;
    if let Some(Value::String(name)) = entry.get_mut("derivation") {
        catalogue.relabel(name);
    }
    Ok(Cow::Owned(entry.to_string()))
}

// ---- The expected reads of a verification ----

/// Bytes that a strongly consistent read unit reads. Source: DynamoDB, read consistency and capacity modes.
pub(super) const UNIT_BYTES: usize = 4_096;

/// The expected price of one verification of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPrice {
    /// Items of the table, as DynamoDB last counted them.
    pub n_items: u64,
    /// Their size in bytes, as DynamoDB last added them up.
    pub bytes: u64,
    /// Read units of one consistent read of the whole table.
    pub units: u64,
    /// True if the table fits into one [window](crate::verify::scan), so that the scanned items are not read again.
    pub is_one_window: bool,
}

impl ReadPrice {
    /// The price for a table of this many items and bytes, read in this many segments.
    #[must_use]
    pub fn of(n_items: u64, bytes: u64, segments: u32) -> Self {
        let unit_bytes = u64::try_from(UNIT_BYTES).unwrap_or(u64::MAX);
        let is_one_window = usize::try_from(bytes).is_ok_and(|bytes| bytes <= WINDOW_BYTES);
        // The last page of each segment ends within a unit.
        Self { n_items, bytes, units: bytes / unit_bytes + u64::from(segments.max(1)), is_one_window }
    }
}

impl fmt::Display for ReadPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_items, bytes, units, is_one_window } = self;
        if *n_items == 0 {
            return f.write_str(
                "the table has not counted its items yet; reading it takes one read unit for each 4 KB of items",
            );
        }
        let (items, unit) =
            (if *n_items == 1 { "item" } else { "items" }, if *units == 1 { "read unit" } else { "read units" });
        write!(f, "reading about {n_items} {items}, {} KB: about {units} {unit}", bytes.div_ceil(1_000))?;
        f.write_str(if *is_one_window {
            ", and more for what differs"
        } else {
            ", up to one more for each item that is compared with another, and more for what differs"
        })
    }
}

// ---- Storing the events of a verification in its file ----

/// What may still correct a difference, in words.
fn pending_text(pending: &PendingWork) -> String {
    match pending {
        PendingWork::Parked => "a parked change may still correct it: see `ripple parked`".to_owned(),
        PendingWork::Sweep { due_ms } => format!("the sweep looks at it again after {}", time(*due_ms)),
        PendingWork::Job { key, is_paused: false } => format!("the job {key} may still reach it"),
        PendingWork::Job { key, is_paused: true } => {
            format!("the job {key} may still reach it, and is paused: see `ripple jobs`")
        }
    }
}

/// Stores the events in the file, and reports the progress.
pub(crate) struct Keeping {
    pub(crate) spool: Spool,
    pub(crate) progress: Arc<dyn Progress>,
    /// True if nothing proves the findings, because the table is assumed at rest.
    pub(crate) is_at_rest: bool,
}

impl Keeping {
    fn keep_item(&mut self, kind: &'static str, item: &UnreadableItem) -> io::Result<()> {
        let UnreadableItem { derivation, pk, sk, .. } = item;
        let value = serde_json::to_string(item)?;
        self.spool.keep(&ResultRow { kind, derivation, pk, sk, is_flaw: false, value: &value })
    }
}

impl Listener for Keeping {
    fn report(&mut self, event: VerifyEvent) -> io::Result<()> {
        let (kind, finding, why) = match event {
            VerifyEvent::Finding(finding, _) if self.is_at_rest => (FINDING, finding, Some(AT_REST.to_owned())),
            VerifyEvent::Finding(finding, belief) => (FINDING, finding, Some(belief.to_string())),
            VerifyEvent::Undecided(finding, why) => (UNDECIDED, finding, Some(why.to_string())),
            VerifyEvent::Waiting(finding, pending) => (WAITING, finding, Some(pending_text(&pending))),
            VerifyEvent::Unproven(Target { derivation, item: Key { pk, sk } }) => {
                let why = "it equals its sources, but a change of it is pending or was parked".to_owned();
                return self.keep_item(UNPROVEN, &UnreadableItem { derivation, pk, sk, why });
            }
            VerifyEvent::AboutNothing(about) => {
                let (derivation, value) = (&about.derivation, serde_json::to_string(&about)?);
                let row = ResultRow { kind: ABOUT_NOTHING, derivation, pk: "", sk: "", is_flaw: false, value: &value };
                return self.spool.keep(&row);
            }
            VerifyEvent::Unreadable(item) => return self.keep_item(UNREADABLE, &item),
            VerifyEvent::Unlike(item) => return self.keep_item(UNLIKE, &item),
        };
        let difference = Difference { finding, why };
        let value = serde_json::to_string(&difference)?;
        let Finding { derivation, pk, sk, flaw, .. } = &difference.finding;
        self.spool.keep(&ResultRow { kind, derivation, pk, sk, is_flaw: flaw.is_some(), value: &value })
    }

    fn read(&mut self, n_items: usize) {
        self.progress.read(n_items);
    }

    fn looked(&mut self, n_items: usize) {
        self.progress.looked(n_items);
    }

    fn counted(&mut self, n_counts: usize) {
        self.progress.counted(n_counts);
    }
}

// ---- The outcome of a verification, as its file stores it ----

/// The outcome of a verification: its file, and how much it read.
pub struct Verified {
    pub(crate) spool: Spool,
    catalogue: Arc<Catalogue>,
    /// How much was read.
    pub extent: Extent,
    /// An item that was ignored, if one was.
    pub ignored: Option<Key>,
    /// True if the whole table was verified.
    pub is_whole: bool,
    /// The read units that it used, as DynamoDB charges them.
    pub read_units: f64,
    /// True if unreadable items do not count as a failure.
    allows_unreadable: bool,
    /// The counts whose changes the ledger had to prove; `None` if the functions' positions are known.
    pub(crate) proven: Option<BTreeSet<String>>,
    /// The temporary folder of the file, deleted when this is dropped.
    _temporary: Option<tempfile::TempDir>,
}

/// Items where the condition of a derivation compares two values of different types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlikeItems {
    /// How many there are.
    pub items: usize,
    /// The first of them, with the derivation.
    pub example: UnreadableItem,
}

impl Verified {
    /// The items where a condition compares two values of different types, by derivation.
    ///
    /// # Errors
    ///
    /// [`OperateError`] if the file cannot be read.
    pub fn unlike(&self) -> Result<Vec<UnlikeItems>, OperateError> {
        let mut all: Vec<UnlikeItems> = Vec::new();
        self.each_entry(UNLIKE, |entry| {
            let example: UnreadableItem = serde_json::from_str(entry)?;
            match all.last_mut().filter(|last| last.example.derivation == example.derivation) {
                Some(last) => last.items += 1,
                None => all.push(UnlikeItems { items: 1, example }),
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// True if nothing is found, undecided or waiting, and nothing is unreadable that is not allowed. Nothing is
    /// derived from an unreadable item, so with one of them, equal values do not prove that everything is correct.
    ///
    /// # Errors
    ///
    /// [`OperateError`] if the file cannot be read.
    pub fn is_clean(&self) -> Result<bool, OperateError> {
        let unreadable = Some(UNREADABLE).filter(|_| !self.allows_unreadable);
        self.has_none_of([FINDING, UNDECIDED, WAITING].into_iter().chain(unreadable))
    }

    fn has_none_of(&self, mut kinds: impl Iterator<Item = &'static str>) -> Result<bool, OperateError> {
        kinds.try_fold(true, |has_none, kind| Ok(has_none && self.spool.n_entries(kind)? == 0))
    }

    /// Number of entries of a kind. An item that several derivations cannot read is one.
    ///
    /// # Errors
    ///
    /// [`OperateError`] if the file cannot be read.
    pub fn n_entries(&self, kind: &str) -> Result<usize, OperateError> {
        if kind == UNREADABLE { self.spool.n_items(kind) } else { self.spool.n_entries(kind) }
    }

    /// Passes all entries of a kind to `act`, as JSON, by derivation and key, with the derivations' labels.
    ///
    /// # Errors
    ///
    /// [`OperateError`] if the file cannot be read, and the errors of `act`.
    pub fn each_entry(
        &self,
        kind: &str,
        mut act: impl FnMut(&str) -> Result<(), OperateError>,
    ) -> Result<(), OperateError> {
        self.spool.each_entry(kind, |entry| act(&labelled(&self.catalogue, entry)?))
    }

    /// The families whose marks of a possible loss stay, because they have a difference that can still be corrected.
    fn families_kept<S: Store>(&self, opened: &Deployment<S>) -> Result<BTreeSet<Family>, OperateError> {
        let mut families = BTreeSet::new();
        for kind in [FINDING, UNDECIDED, WAITING] {
            self.spool.each_entry(kind, |entry| {
                let Difference { finding, .. } = serde_json::from_str(entry)?;
                families.extend(keeps(&opened.catalogue, &finding));
                Ok(())
            })?;
        }
        Ok(families)
    }

    /// Takes the counts that it proves off this list, and returns them. It cannot prove a count with history.
    async fn recounted<S: Store>(
        &self,
        opened: &Deployment<S>,
        listed: Vec<ToRecount>,
    ) -> Result<Vec<ToRecount>, OperateError> {
        let open = self.derivations_with([FINDING, UNDECIDED, WAITING, UNPROVEN])?;
        let counts = opened.catalogue.derivations().filter(|derivation| derivation.kind.family() == Family::Additive);
        let is_right = |it: &Derivation| self.proves(it) && !it.kind.is_history() && !open.contains(&it.name);
        let counts: BTreeMap<&str, bool> = counts.map(|it| (it.name.as_str(), is_right(it))).collect();
        let is_right = |entry: &ToRecount| match &entry.target {
            Some(target) => counts.get(target.derivation.as_str()).copied().unwrap_or(false),
            None => counts.values().all(|is_right| *is_right),
        };
        let mut recounted = Vec::new();
        for entry in listed.into_iter().filter(is_right) {
            if entry.take_off(&opened.store).await? {
                recounted.push(entry);
            }
        }
        Ok(recounted)
    }

    /// True if the functions had handled everything that decides a derivation's unreported values.
    pub(crate) fn proves(&self, derivation: &Derivation) -> bool {
        match derivation.kind.family() {
            Family::Additive => {
                self.extent.is_proven && self.proven.as_ref().is_none_or(|it| it.contains(&derivation.name))
            }
            Family::LevelTriggered => self.extent.is_handled,
        }
    }

    /// The derivations that have entries of one of these kinds.
    pub(crate) fn derivations_with<const N: usize>(&self, kinds: [&str; N]) -> Result<BTreeSet<String>, OperateError> {
        let mut all = BTreeSet::new();
        for kind in kinds {
            all.extend(self.spool.derivations_with(kind)?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_is_that_of_the_bytes_and_of_what_no_window_holds() {
        let lines = [(0, 0), (1, 100), (250, 75_000), (1_000_000, 300_000_000)]
            .map(|(n_items, bytes)| ReadPrice::of(n_items, bytes, 4).to_string())
            .join("\n");
        expect_test::expect![[r#"
            the table has not counted its items yet; reading it takes one read unit for each 4 KB of items
            reading about 1 item, 1 KB: about 4 read units, and more for what differs
            reading about 250 items, 75 KB: about 22 read units, and more for what differs
            reading about 1000000 items, 300000 KB: about 73246 read units, up to one more for each item that is compared with another, and more for what differs"#]]
        .assert_eq(&lines);
    }
}
