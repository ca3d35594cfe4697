//! A whole verification: what was read and found is in a file, and the stream is followed beside it.

pub mod filled;
mod followed;
mod keeping;
mod labels;
pub(crate) mod paced;
pub mod price;
pub(crate) mod spool;
mod tallied;
pub mod verified;

use std::{collections::BTreeSet, sync::Arc};

use derive::family::Family;
use engine::{batch::Engine, clock::SystemClock, ledger::settings::recorded, registry::watch::RegistryWatch};
use serde::{Deserialize, Serialize};
use store::Store;

use self::{
    filled::{Before, Marking},
    followed::{AGE_MARGIN_S, ProgressSource, streams::FollowedStreams},
    keeping::Keeping,
    paced::Paced,
    price::ReadPrice,
    spool::Spool,
    verified::Verified,
};
use crate::{
    failure::OperateError,
    loss::{self, Marked},
    progress::Progress,
    tables::{Deployment, VerifyOptions, part, scope, selection},
    verify::{
        Finding,
        following::{AtRest, Following},
        report::Extent,
        run::{Limits, Verification},
        scan::WINDOW_BYTES,
        scope::Scope,
    },
};

/// A difference, as it is kept and printed. Its names are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// The difference.
    #[serde(flatten)]
    pub finding: Finding,
    /// Why it is undecided, or believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Kind under which a [`Difference`] is kept that nothing under way explains.
pub const FINDING: &str = "finding";
/// Kind under which a [`Difference`] is kept that may be on its way.
pub const UNDECIDED: &str = "undecided";
/// Kind under which a [`Difference`] is kept that a parked change or a job explains.
pub const WAITING: &str = "waiting";
/// Kind under which an unreadable item is kept.
pub const UNREADABLE: &str = "unreadable";
/// Kind under which a count is kept that was equal while it was changing; it has no value.
pub const UNPROVEN: &str = "unproven";

/// Kind under which the counts of a derivation are kept that are about items that do not exist.
pub const ABOUT_NOTHING: &str = "about_nothing";

/// Kind under which an item is kept of which a condition compares a value with one of another type.
pub const UNLIKE: &str = "unlike";

/// What a verification came to that was asked for by itself.
pub struct Checked {
    /// What was found.
    pub verified: Verified,
    /// Is nothing found, undecided or waiting, and nothing unreadable that is not allowed?
    pub is_clean: bool,
    /// Marks of a possible loss that there were.
    pub marked: Vec<Marked>,
    /// What was marked as filled.
    pub marking: Marking,
}

/// Verifies. Where it `may_write`, what is right all over the table is marked as filled, and marks of a possible loss are
/// removed when nothing of their family is found that can be corrected.
///
/// # Errors
///
/// [`OperateError`], with what was read kept in the file.
pub async fn check<S: Store + 'static>(
    opened: &Deployment<S>,
    args: &VerifyOptions,
    may_write: bool,
    progress: &Arc<dyn Progress>,
) -> Result<Checked, OperateError> {
    let marks = loss::before(opened).await?;
    let prepared = prepare(opened, args)?;
    // What was read before, and another time, proves nothing of now.
    let before = if prepared.spool.is_new()? { Some(Before::read(opened).await?) } else { None };
    let unfilled = before.iter().filter(|_| may_write).flat_map(|before| before.unfilled(opened, args)).collect();
    let verified = Box::pin(verify(prepared, opened, args, unfilled, progress)).await?;
    let is_clean = verified.is_clean()?;
    let mut marking = Marking::Done;
    if let Some(before) = before.filter(|_| may_write) {
        let found = verified.spool.derivations_with(FINDING)?;
        marking = before.mark(opened, args, &verified, found).await?;
    }
    let kept = verified.families_kept(opened)?;
    let marked = loss::settled(opened, marks, &kept, verified.is_whole, may_write).await?;
    Ok(Checked { verified, is_clean, marked, marking })
}

/// A verification that is about to begin, or to go on.
pub(crate) struct Prepared {
    pub(crate) spool: Spool,
    scope: Scope,
    /// Are the streams followed?
    follows: bool,
    temporary: Option<tempfile::TempDir>,
}

/// Prepares what is asked for.
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

/// A folder that goes when nobody needs it any more.
pub(crate) fn temporary_folder() -> Result<tempfile::TempDir, OperateError> {
    tempfile::tempdir().map_err(|cause| {
        let folder = std::env::temp_dir().display().to_string();
        OperateError::NoTemporary { folder, cause }
    })
}

/// Verifies what was prepared. Where the ledger must prove it, all changes of the `unfilled` counts are proven, and else
/// those of counts that differ.
pub(crate) async fn verify<S: Store + 'static>(
    prepared: Prepared,
    opened: &Deployment<S>,
    args: &VerifyOptions,
    unfilled: BTreeSet<String>,
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
    let how = How { limits, scope, proving: proven.clone().unwrap_or_default() };
    let extent = run(&engine, followed, &spool, progress, how).await?;
    spool.commit()?;
    let catalogue = Arc::clone(&opened.catalogue);
    let (read_units, allows_unreadable) = (used.get(), args.allow_unreadable);
    let verified =
        Verified { spool, catalogue, extent, is_whole, read_units, allows_unreadable, proven, _temporary: temporary };
    let is_empty =
        extent.n_selected == 0 && verified.has_none_of([FINDING, UNDECIDED, WAITING, UNPROVEN].into_iter())?;
    match selection(args).filter(|_| is_empty) {
        Some(given) => Err(OperateError::Usage(format!(
            "nothing was verified: the table has no item and no count that {given} selects; correct the option"
        ))),
        None => Ok(verified),
    }
}

/// How a prepared verification is run.
struct How {
    limits: Limits,
    scope: Scope,
    proving: BTreeSet<String>,
}

async fn run<S: Store>(
    engine: &Engine<Paced<Arc<S>>>,
    followed: Option<FollowedStreams>,
    spool: &Spool,
    progress: &Arc<dyn Progress>,
    How { limits, scope, proving }: How,
) -> Result<Extent, OperateError> {
    let mut tallies = spool.clone();
    let mut keeping = Keeping { spool: spool.clone(), progress: Arc::clone(progress) };
    let Some(mut followed) = followed else {
        let verification = Verification::new(engine, &AtRest, &mut tallies, &mut keeping, limits, scope);
        return Ok(verification.run().await?);
    };
    let ended = followed.ended();
    let verification =
        Verification::new(engine, &followed as &dyn Following, &mut tallies, &mut keeping, limits, scope)
            .proving(proving);
    tokio::select! {
        extent = verification.run() => Ok(extent?),
        ended = ended => match ended? {
            Ok(()) => Err(OperateError::Refused("the table's stream is followed no more".to_owned())),
            Err(error) => Err(OperateError::Stream(error)),
        },
    }
}

/// An engine whose reads are paced, and whose read units are added up.
pub(crate) fn reading<S: Store>(opened: &Deployment<S>, units_a_second: Option<u32>) -> Engine<Paced<Arc<S>>> {
    let store = Paced::new(Arc::clone(&opened.store), units_a_second);
    let families = vec![Family::Additive, Family::LevelTriggered];
    let engine =
        Engine::new(Arc::clone(&opened.schema), Arc::clone(&opened.catalogue), families, store, Arc::new(SystemClock));
    engine.watching(RegistryWatch::reading(0))
}
