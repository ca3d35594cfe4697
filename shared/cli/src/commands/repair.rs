//! `ripple repair` and `ripple backfill`: what a verification finds is mended, while writes go on.
//!
//! The right to repair counts is taken before anything is read, so that what is found is to be relied on until another
//! run takes it. The file keeps the name of the run: one that was killed goes on, and adds nothing twice.

use std::{collections::BTreeSet, sync::Arc};

use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    verify::{
        Finding,
        repair::{Remedy, Repaired},
    },
};
use runtime::logging;
use serde_json::json;
use store::dynamo::DynamoStore;

use super::{
    LOG_FILTER,
    verify::{finding_text, progress},
};
use crate::{
    args::{
        Writing,
        repair::{Backfill, Repair},
        verify::Verifying,
    },
    exit::{Ended, Usage, print},
    opened::{Opened, open_to_write, open_with_ledger},
    verifying::{
        Difference, FINDING, UNDECIDED, UNPROVEN, Verified, WAITING, filled::Before, prepare, spool::Spool, verify,
    },
};

/// How long the repair of one finding may take, in milliseconds.
const REPAIR_MS_MAX: u64 = 60_000;

/// Findings that are mended one after the other before more are read from the file.
const FINDINGS_AT_ONCE: usize = 500;

/// Name in the file under which the run stands.
const RUN: &str = "run";

/// Repairs what is found, or says what it would do.
pub(crate) async fn repair(args: &Repair) -> anyhow::Result<Ended> {
    logging::readable(LOG_FILTER);
    let opened = if args.apply {
        open_to_write(&args.writing).await?
    } else {
        open_with_ledger(&args.writing.connection).await?
    };
    run(&opened, &args.verifying, &args.writing, args.apply, args.json).await
}

/// Fills a derivation.
pub(crate) async fn backfill(args: &Backfill) -> anyhow::Result<Ended> {
    logging::readable(LOG_FILTER);
    let opened = open_to_write(&args.writing).await?;
    let position = opened.catalogue.position(&args.name);
    let Some(derivation) = position.and_then(|at| opened.catalogue.derivation(at)) else {
        return Err(Usage(format!("there is no derivation {}; `ripple design` lists them", args.name)).into());
    };
    if derivation.kind.is_history() {
        let why = "it counts what the platform deletes, so what came before it was declared is not all in the table";
        return Err(Usage(format!("{} cannot be filled: {why}", args.name)).into());
    }
    if derivation.kind.cascade().is_some() {
        let why = "it deletes when something is removed, and there is nothing to fill";
        return Err(Usage(format!("{} cannot be filled: {why}", args.name)).into());
    }
    let verifying = Verifying { derivation: vec![args.name.clone()], ..args.verifying.clone() };
    run(&opened, &verifying, &args.writing, true, args.json).await
}

/// What became of the findings.
#[derive(Default)]
struct Sums {
    done: usize,
    not_needed: usize,
    refused: usize,
    would: usize,
}

async fn run(
    opened: &Opened,
    verifying: &Verifying,
    writing: &Writing,
    is_applied: bool,
    is_json: bool,
) -> anyhow::Result<Ended> {
    let engine = opened.engine();
    // With or without --apply, and though nobody is at work: they will be.
    Before::read(opened).await?.knows_all(opened)?;
    let prepared = prepare(opened, verifying)?;
    // What was read and found another time proves nothing of now.
    let is_new = prepared.spool.is_new()?;
    let run = if is_applied { Some(right(&engine, &prepared.spool).await?) } else { None };
    // With nobody at work nobody has other derivations.
    let is_waited_for = is_applied && !verifying.at_rest;
    let before = if is_waited_for { Some(Before::ready(opened, verifying, is_new).await?) } else { None };
    let bar = progress(is_json);
    let is_aws = writing.connection.aws;
    let verified = Box::pin(verify(prepared, opened, verifying, is_aws, &bar)).await?;
    bar.finish_and_clear();
    let mut sums = Sums::default();
    let mut open = BTreeSet::new();
    if is_json {
        json_begins(&verified);
    }
    let mut after: Option<Finding> = None;
    let mut is_first = true;
    loop {
        let behind = after.as_ref().map(|it| [it.derivation.as_str(), it.pk.as_str(), it.sk.as_str()]);
        let told = verified.spool.told_after(FINDING, behind, FINDINGS_AT_ONCE)?;
        let Some(last) = told.last() else { break };
        let last: Difference = serde_json::from_str(last)?;
        for told in &told {
            let Difference { finding, why } = serde_json::from_str(told)?;
            let remedy = engine.remedy(&finding);
            let repaired = match &run {
                Some(run) => Some(engine.repair(&finding, run, SystemClock.now_ms() + REPAIR_MS_MAX).await?),
                None => None,
            };
            if !sums.add(&remedy, repaired.as_ref()) {
                open.insert(finding.derivation.clone());
            }
            if is_json {
                json_of(&finding, &remedy, repaired.as_ref(), &mut is_first)?;
            } else {
                print(&finding_text(FINDING, &finding, why.as_deref()));
                print(&format!("  {}", outcome(&remedy, repaired.as_ref())));
            }
            if repaired == Some(Repaired::Overtaken) {
                anyhow::bail!("another repair has begun since this one did: let that end, and repair once more");
            }
        }
        after = Some(last.finding);
    }
    if let Some(before) = before {
        before.mark(opened, verifying, &verified, open).await?;
    }
    let n_told = |kind| verified.spool.n_told(kind);
    let (n_undecided, n_waiting, n_unproven) = (n_told(UNDECIDED)?, n_told(WAITING)?, n_told(UNPROVEN)?);
    if is_json {
        let Sums { done, not_needed, refused, would } = sums;
        print(&format!(
            "],\"done\":{done},\"not_needed\":{not_needed},\"refused\":{refused},\"would\":{would},\
             \"undecided\":{n_undecided},\"waiting\":{n_waiting},\"unproven\":{n_unproven}}}"
        ));
    } else {
        print(&sums.text(is_applied, [n_undecided, n_waiting, n_unproven]));
    }
    let is_left = sums.refused + sums.would + n_undecided + n_waiting > 0;
    Ok(if is_left { Ended::Findings } else { Ended::InStep })
}

/// The run that has the right to repair: that of the file, or a new one.
async fn right(engine: &Engine<Arc<DynamoStore>>, spool: &Spool) -> anyhow::Result<String> {
    let deadline_ms = SystemClock.now_ms() + REPAIR_MS_MAX;
    if let Some(run) = spool.about(RUN)? {
        anyhow::ensure!(
            engine.may_repair(&run, deadline_ms).await?,
            "another repair has begun since this one was stopped, so what it found is not to be relied on: delete the \
             --resume file, and begin anew"
        );
        return Ok(run);
    }
    anyhow::ensure!(
        spool.is_new()?,
        "the --resume file is of a verification that began without the right to repair: give another file"
    );
    let run = format!("{:016x}", rand::random::<u64>());
    engine.begin_repair(&run, deadline_ms).await?;
    spool.set_about(RUN, &run)?;
    spool.commit()?;
    Ok(run)
}

impl Sums {
    /// Counts what became of a finding, and says whether it is none any more.
    fn add(&mut self, remedy: &Remedy, repaired: Option<&Repaired>) -> bool {
        let (counted, is_right) = match (remedy, repaired) {
            (Remedy::None { .. }, _) | (_, Some(Repaired::Refused { .. } | Repaired::Overtaken)) => {
                (&mut self.refused, false)
            }
            (_, None) => (&mut self.would, false),
            (_, Some(Repaired::Done)) => (&mut self.done, true),
            (_, Some(Repaired::NotNeeded)) => (&mut self.not_needed, true),
        };
        *counted += 1;
        is_right
    }

    fn text(&self, is_applied: bool, [n_undecided, n_waiting, n_unproven]: [usize; 3]) -> String {
        let Self { done, not_needed, refused, would } = self;
        let mut text = if is_applied {
            format!("{done} repaired, {not_needed} needed nothing any more, {refused} left to a person")
        } else {
            format!("{would} would be repaired with --apply, {refused} are left to a person")
        };
        let more =
            [(n_undecided, "undecided"), (n_waiting, "waiting"), (n_unproven, "counts that change all the time")];
        for (n_told, what) in more {
            if n_told > 0 {
                text = format!("{text}, {n_told} {what}");
            }
        }
        text
    }
}

fn json_begins(verified: &Verified) {
    print(&format!("{{\"items\":{},\"repairs\":[", verified.extent.n_items));
}

fn json_of(finding: &Finding, remedy: &Remedy, repaired: Option<&Repaired>, is_first: &mut bool) -> anyhow::Result<()> {
    let told = json!({ "finding": serde_json::to_value(finding)?, "outcome": outcome(remedy, repaired) });
    let comma = if std::mem::take(is_first) { "" } else { "," };
    print(&format!("{comma}{told}"));
    Ok(())
}

/// What would be done, or what was.
fn outcome(remedy: &Remedy, repaired: Option<&Repaired>) -> String {
    let what = match remedy {
        Remedy::Refresh => "derive it anew".to_owned(),
        Remedy::Add { count, sum } if sum.is_zero() => format!("add {count}"),
        Remedy::Add { count, sum } => format!("add {count} and {sum}"),
        Remedy::SetIndexKeys => "set the keys of its indexes".to_owned(),
        Remedy::Delete => "delete it".to_owned(),
        Remedy::Move => "move it to where it belongs".to_owned(),
        Remedy::None { why } => return format!("left to a person: {why}"),
    };
    match repaired {
        None => format!("would {what}"),
        Some(Repaired::Done) => format!("done: {what}"),
        Some(Repaired::NotNeeded) => "needs nothing any more".to_owned(),
        Some(Repaired::Refused { why }) => format!("left to a person: {why}"),
        Some(Repaired::Overtaken) => "not done: another repair has begun".to_owned(),
    }
}
