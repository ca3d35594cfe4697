//! The marks that a verification sets and removes.
//!
//! *Filled*: derivations that are found correct in the whole table are marked as filled in the registry. A repair waits
//! until all functions have its derivations.
//!
//! *Possible losses*: a verification removes the marks that existed before it began. It keeps a mark if it finds
//! something that may be missing because of the loss and that can still be corrected.

use std::{collections::BTreeSet, time::Duration};

use derive::{catalogue::Catalogue, derivation::Derivation, family::Family, position::DerivationAt};
use engine::{
    clock::{Clock as _, SystemClock},
    loss::{Mark, clear, marks},
    registry::{Registry, Standing},
};
use store::Store;

use crate::{
    OperateError,
    tables::{Deployment, VerifyOptions},
    verify::{
        Finding, Progress,
        check::{UNDECIDED, UNPROVEN, Verified, WAITING},
    },
};

/// Time limit for reading the registry, in milliseconds.
const ASK_MS_MAX: u64 = 30_000;

/// Safety margin before the start of a verification, in milliseconds. Its proof ends that much earlier: clocks differ,
/// and the times of records are rounded down.
const MARGIN_MS: u64 = 120_000;

/// Which derivations were marked as filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// All correct ones; or there was nothing to mark.
    Done,
    /// None: the repair continued an earlier run, whose reads happened with the functions of that time.
    WentOn,
    /// Not all correct ones: a change is parked, or functions with other derivations ran meanwhile.
    NotAll,
}

/// The registry before a table was read.
pub(crate) struct Before {
    registry: Registry,
    at_ms: u64,
    /// False if an earlier run had already read items, with the functions of that time.
    is_new: bool,
}

impl Before {
    /// Reads the registry now.
    pub(crate) async fn read<S: Store>(opened: &Deployment<S>) -> Result<Self, OperateError> {
        let at_ms = SystemClock.now_ms();
        Ok(Self { registry: opened.engine().registry(at_ms.saturating_add(ASK_MS_MAX)).await?, at_ms, is_new: true })
    }

    /// Waits until all functions have the derivations to repair, and no instance without them runs any more; then reads
    /// the registry.
    pub(crate) async fn ready<S: Store>(
        opened: &Deployment<S>,
        args: &VerifyOptions,
        is_new: bool,
        progress: &dyn Progress,
    ) -> Result<Self, OperateError> {
        let engine = opened.engine();
        loop {
            let before = Self { is_new, ..Self::read(opened).await? };
            before.knows_all(opened)?;
            if before.registry.is_empty() {
                let why = "no function has registered its derivations yet: let one of this version handle a batch, or \
                           give --at-rest if none will";
                return Err(OperateError::Usage(why.to_owned()));
            }
            let mut until_ms = None;
            for (at, derivation) in opened.catalogue.positioned() {
                let name = derivation.label();
                if !is_asked(args, derivation) {
                    continue;
                }
                match engine.standing(&before.registry, at) {
                    Standing::Ready => {}
                    Standing::Young { ready_ms } => until_ms = until_ms.max(Some(ready_ms)),
                    Standing::Missing => return Err(OperateError::Usage(lacking(name))),
                    Standing::Otherwise { theirs } => {
                        let why =
                            format!("the functions have {name} as {theirs}: deploy them as it is declared here first");
                        return Err(OperateError::Usage(why));
                    }
                }
            }
            let Some(until_ms) = until_ms else { return Ok(before) };
            progress.waits(until_ms);
            tokio::time::sleep(Duration::from_millis(until_ms.saturating_sub(SystemClock.now_ms()).saturating_add(1)))
                .await;
        }
    }

    /// Refuses if the functions have a derivation that this catalogue lacks: the repair would take their counters for
    /// unexplained ones.
    pub(crate) fn knows_all<S: Store>(&self, opened: &Deployment<S>) -> Result<(), OperateError> {
        let names = self.registry.live_beside(&opened.catalogue);
        if names.is_empty() {
            return Ok(());
        }
        Err(OperateError::Usage(format!(
            "the functions have {}, which this manifest lacks: run it with the manifest that is deployed, without --disable \
             and DISABLED, and in the version of the functions",
            names.join(", ")
        )))
    }

    /// The requested counts that are not marked as filled yet.
    pub(crate) fn unfilled<S: Store>(&self, opened: &Deployment<S>, args: &VerifyOptions) -> BTreeSet<String> {
        if !is_all(args) {
            return BTreeSet::new();
        }
        let counts = opened.catalogue.derivations().filter(|derivation| derivation.kind.family() == Family::Additive);
        let names = counts.filter(|derivation| is_asked(args, derivation)).map(|derivation| &derivation.name);
        names.filter(|name| !self.registry.is_filled(name)).cloned().collect()
    }

    /// Marks derivations as filled that were found correct in the whole table, except for `open`.
    pub(crate) async fn mark<S: Store>(
        &self,
        opened: &Deployment<S>,
        args: &VerifyOptions,
        verified: &Verified,
        mut open: BTreeSet<String>,
    ) -> Result<Marking, OperateError> {
        if !self.is_new {
            return Ok(Marking::WentOn);
        }
        if !is_all(args) || self.registry.is_empty() {
            return Ok(Marking::Done);
        }
        open.extend(verified.derivations_with([UNDECIDED, WAITING, UNPROVEN])?);
        let engine = opened.engine();
        let is_right = |(at, derivation): &(DerivationAt, &Derivation)| {
            let name = &derivation.name;
            is_asked(args, derivation)
                && verified.proves(derivation)
                && !open.contains(name)
                && engine.standing(&self.registry, *at) == Standing::Ready
        };
        let names = opened.catalogue.positioned().filter(is_right);
        let names: BTreeSet<String> = names.map(|(_, derivation)| derivation.name.clone()).collect();
        let until_ms = self.at_ms.saturating_sub(MARGIN_MS);
        let n_marked = engine
            .mark_filled(&names, &self.registry, until_ms, SystemClock.now_ms().saturating_add(ASK_MS_MAX))
            .await?;
        Ok(if n_marked < names.len() { Marking::NotAll } else { Marking::Done })
    }
}

/// True if the whole table is verified, though perhaps not all derivations.
fn is_all(args: &VerifyOptions) -> bool {
    args.entity.is_empty() && args.pk.is_empty() && args.sk.is_none()
}

fn is_asked(args: &VerifyOptions, derivation: &Derivation) -> bool {
    args.derivation.is_empty() || args.derivation.iter().any(|name| derivation.is_called(name))
}

fn lacking(name: &str) -> String {
    format!(
        "no function has registered {name}: deploy the functions with it and write an item, since a function registers \
         with its first batch; or leave it out with --disable {name}"
    )
}

// ---- Marks of a possible loss ----

/// A mark and its fate.
#[derive(Clone, Debug)]
pub struct Marked {
    /// The mark.
    pub mark: Mark,
    /// Its fate.
    pub fate: MarkFate,
}

/// What a verification did with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkFate {
    /// It was removed.
    Removed,
    /// It stays: its family has a finding that can be corrected, or an undecided difference.
    Kept,
    /// It stays: not the whole table was read, or it was read by an earlier run, or without all derivations of the
    /// functions.
    Unproven,
    /// It stays: the verification may not write.
    NotPermitted,
    /// It stays: a function renewed it during the verification.
    Renewed,
}

/// Reads the marks before the table is read.
///
/// # Errors
///
/// [`OperateError::Store`] if they cannot be read.
pub async fn marks_before<S: Store>(opened: &Deployment<S>) -> Result<Vec<Mark>, OperateError> {
    Ok(marks(&opened.store).await?)
}

/// Family whose marks stay because of a difference; `None` if no repair can correct it, because its sources are gone or
/// because items of the application form a loop.
#[must_use]
pub fn keeps(catalogue: &Catalogue, finding: &Finding) -> Option<Family> {
    let derivation = catalogue.position(&finding.derivation).and_then(|at| catalogue.derivation(at));
    // An index key is not a derivation of the catalogue; it is level-triggered.
    let Some(derivation) = derivation else { return Some(Family::LevelTriggered) };
    (finding.flaw.is_none() && !derivation.kind.is_history()).then(|| derivation.kind.family())
}

/// Removes these marks after a verification of the whole table or a part of it. Marks stay if a difference [keeps]
/// their family.
///
/// # Errors
///
/// [`OperateError::Store`] if one cannot be removed.
pub async fn settle_marks<S: Store>(
    opened: &Deployment<S>,
    marks: Vec<Mark>,
    kept: &BTreeSet<Family>,
    is_whole: bool,
    may_write: bool,
) -> Result<Vec<Marked>, OperateError> {
    let mut marked = Vec::new();
    for mark in marks {
        let fate = if kept.iter().any(|family| mark.is_of(*family)) {
            MarkFate::Kept
        } else if !is_whole {
            MarkFate::Unproven
        } else if !may_write {
            MarkFate::NotPermitted
        } else if clear(&opened.store, &mark).await? {
            MarkFate::Removed
        } else {
            MarkFate::Renewed
        };
        marked.push(Marked { mark, fate });
    }
    Ok(marked)
}
