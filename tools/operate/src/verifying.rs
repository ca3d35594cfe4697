//! A verification from the command line: what was read and found is in a file, and the stream is followed beside it.

pub(crate) mod filled;
pub(crate) mod followed;
pub(crate) mod paced;
pub(crate) mod spool;
mod tallied;

use std::{io, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use derive::derivation::Family;
use engine::{
    batch::Engine,
    clock::SystemClock,
    recount::Target,
    verify::{
        Finding, UnreadableItem,
        following::{AtRest, Following},
        run::{Limits, Verification},
        scope::Scope,
        told::{Belief, Extent, Listener, Told},
    },
};
use indicatif::ProgressBar;
use keys::key::Key;
use serde::{Deserialize, Serialize};
use store::dynamo::DynamoStore;

use self::{
    followed::{Ended, Followed, Handled},
    paced::Paced,
    spool::{Kept, Spool},
};
use crate::{args::verify::Verifying, checkpoints::LedgerCheckpoints, exit::Usage, opened::Opened, time};

/// How much longer than twice the iterator age is waited for the functions, in seconds.
const AGE_MARGIN_S: u64 = 60;

/// What a verification came to: its file, and how much it read.
pub(crate) struct Verified {
    pub(crate) spool: Spool,
    pub(crate) extent: Extent,
    /// Was all of the table verified?
    pub(crate) is_whole: bool,
    /// The file that goes when nobody needs it any more.
    _temporary: Option<tempfile::TempDir>,
}

/// A difference, as it is kept and printed. Its names are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Difference {
    #[serde(flatten)]
    pub(crate) finding: Finding,
    /// Why it is undecided, or believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// The kinds of what is told, by which they are kept.
pub(crate) const FINDING: &str = "finding";
pub(crate) const UNDECIDED: &str = "undecided";
pub(crate) const WAITING: &str = "waiting";
pub(crate) const UNREADABLE: &str = "unreadable";
pub(crate) const UNPROVEN: &str = "unproven";

impl Verified {
    /// Is nothing found, undecided or waiting?
    pub(crate) fn is_clean(&self) -> anyhow::Result<bool> {
        let n_told = [FINDING, UNDECIDED, WAITING].map(|kind| self.spool.n_told(kind));
        Ok(n_told.into_iter().collect::<anyhow::Result<Vec<_>>>()?.iter().all(|n_told| *n_told == 0))
    }
}

/// A verification that is about to begin, or to go on.
pub(crate) struct Prepared {
    pub(crate) spool: Spool,
    scope: Scope,
    stream_arn: Option<String>,
    temporary: Option<tempfile::TempDir>,
}

/// Prepares what is asked for.
pub(crate) fn prepare(opened: &Opened, args: &Verifying) -> anyhow::Result<Prepared> {
    let scope = scope(opened, args)?;
    let temporary = if args.resume.is_none() { Some(tempfile::tempdir()?) } else { None };
    let in_temporary = || temporary.as_ref().map(|folder| folder.path().join("verification"));
    let file: PathBuf = args.resume.clone().or_else(in_temporary).context("a file")?;
    let stream_arn = match (args.at_rest, &opened.table.latest_stream_arn) {
        (true, _) => None,
        (false, Some(arn)) => Some(arn.clone()),
        (false, None) => {
            let why = format!(
                "the table {} has no stream, so it cannot be told what is on its way: give --at-rest if nobody writes",
                opened.config.table
            );
            return Err(Usage(why).into());
        }
    };
    let about = [
        ("table", opened.table_arn.clone()),
        ("stream", stream_arn.clone().unwrap_or_default()),
        ("part", part(args)),
        ("segments", args.segments.to_string()),
    ];
    let about: Vec<(&str, &str)> = about.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let spool = Spool::open(&file, &about)?;
    Ok(Prepared { spool, scope, stream_arn, temporary })
}

/// Verifies what was prepared.
pub(crate) async fn verify(
    prepared: Prepared,
    opened: &Opened,
    args: &Verifying,
    is_aws: bool,
    bar: &ProgressBar,
) -> anyhow::Result<Verified> {
    let Prepared { spool, scope, stream_arn, temporary } = prepared;
    let is_whole = scope == Scope::default();
    let followed = match &stream_arn {
        None => None,
        Some(arn) => {
            let age_ms = args.iterator_age.map(|seconds| seconds.saturating_mul(1_000));
            let handled = if is_aws { Handled::Age(age_ms) } else { Handled::Positions };
            let ledger = LedgerCheckpoints::new(Arc::clone(&opened.store), opened.schema.layout.clone(), arn);
            Some(Followed::start(opened.clients.streams.clone(), arn, handled, &spool, ledger).await?)
        }
    };
    let age_s = args.iterator_age.map_or(0, |age| age.saturating_mul(2).saturating_add(AGE_MARGIN_S));
    let limits = Limits { segments: args.segments, wait_ms: args.wait.max(age_s).saturating_mul(1_000) };
    let engine = engine(opened, args);
    bar.set_length(u64::try_from(opened.table.item_count.unwrap_or_default()).unwrap_or_default());
    let extent = run(&engine, followed, &spool, bar, limits, scope).await?;
    spool.commit()?;
    Ok(Verified { spool, extent, is_whole, _temporary: temporary })
}

async fn run(
    engine: &Engine<Paced<Arc<DynamoStore>>>,
    followed: Option<(Followed, Ended)>,
    spool: &Spool,
    bar: &ProgressBar,
    limits: Limits,
    scope: Scope,
) -> anyhow::Result<Extent> {
    let mut tallies = spool.clone();
    let mut keeping = Keeping { spool: spool.clone(), bar: bar.clone() };
    let Some((followed, mut following)) = followed else {
        let verification = Verification::new(engine, &AtRest, &mut tallies, &mut keeping, limits, scope);
        return Ok(verification.run().await?);
    };
    let verification =
        Verification::new(engine, &followed as &dyn Following, &mut tallies, &mut keeping, limits, scope);
    tokio::select! {
        extent = verification.run() => Ok(extent?),
        ended = &mut following => match ended? {
            Ok(()) => anyhow::bail!("the table's stream is followed no more"),
            Err(error) => {
                let what = "the table's stream cannot be followed: give --at-rest if nobody writes";
                Err(anyhow::Error::from(error).context(what))
            }
        },
    }
}

fn engine(opened: &Opened, args: &Verifying) -> Engine<Paced<Arc<DynamoStore>>> {
    let store = Paced::new(Arc::clone(&opened.store), args.read_units);
    let families = vec![Family::Additive, Family::LevelTriggered];
    Engine::new(Arc::clone(&opened.schema), Arc::clone(&opened.catalogue), families, store, Arc::new(SystemClock))
}

/// What is verified, in words.
fn part(args: &Verifying) -> String {
    let Verifying { derivation, entity, pk, sk, .. } = args;
    let listed = [("derivation", derivation.join(",")), ("entity", entity.join(",")), ("pk", pk.clone())];
    let given = listed.into_iter().chain([("sk", sk.clone().unwrap_or_default())]);
    let given: Vec<String> =
        given.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name} {value}")).collect();
    if given.is_empty() { "all".to_owned() } else { given.join(", ") }
}

fn scope(opened: &Opened, args: &Verifying) -> Result<Scope, Usage> {
    for name in &args.derivation {
        if opened.catalogue.position(name).is_none() {
            return Err(Usage(format!("there is no derivation {name}; `ripple design` lists them")));
        }
    }
    for name in &args.entity {
        if opened.schema.entity(name).is_none() {
            return Err(Usage(format!("there is no entity {name}; `ripple design` lists them")));
        }
    }
    Ok(Scope {
        derivations: args.derivation.iter().cloned().collect(),
        entities: args.entity.iter().cloned().collect(),
        pk_prefix: args.pk.clone(),
        sk: args.sk.clone(),
    })
}

/// Why a finding is believed, in words.
fn believed(Belief { handled_ms, until_ms }: Belief) -> String {
    let [handled, until] = [handled_ms, until_ms].map(time::text);
    format!("all written before {handled} is handled, and nothing that it was decided by was written until {until}")
}

/// Keeps what is told in the file, and shows how far it is.
struct Keeping {
    spool: Spool,
    bar: ProgressBar,
}

impl Listener for Keeping {
    fn told(&mut self, told: Told) -> io::Result<()> {
        let (kind, finding, why) = match told {
            Told::Finding(finding, belief) => (FINDING, finding, Some(believed(belief))),
            Told::Undecided(finding, why) => (UNDECIDED, finding, Some(why.to_string())),
            Told::Waiting(finding) => (WAITING, finding, None),
            Told::Unproven(Target { derivation, item: Key { pk, sk } }) => {
                return self.spool.keep(&Kept { kind: UNPROVEN, derivation: &derivation, pk: &pk, sk: &sk, value: "" });
            }
            Told::Unreadable(unreadable) => {
                let UnreadableItem { derivation, pk, sk, .. } = &unreadable;
                let value = serde_json::to_string(&unreadable)?;
                return self.spool.keep(&Kept { kind: UNREADABLE, derivation, pk, sk, value: &value });
            }
        };
        let difference = Difference { finding, why };
        let Finding { derivation, pk, sk, .. } = &difference.finding;
        self.spool.keep(&Kept { kind, derivation, pk, sk, value: &serde_json::to_string(&difference)? })
    }

    fn read(&mut self, n_items: usize) {
        self.bar.inc(u64::try_from(n_items).unwrap_or_default());
    }
}
