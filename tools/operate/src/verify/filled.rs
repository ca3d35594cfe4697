//! The registry beside a verification: what is to be repaired waits until all functions have it, and what is found to be
//! right all over the table is marked as filled.

use derive::{derivation::Derivation, family::Family, position::DerivationAt};
use std::{collections::BTreeSet, time::Duration};

use engine::{
    clock::{Clock as _, SystemClock},
    registry::{Registry, Standing},
};

use store::Store;

use super::check::{UNDECIDED, UNPROVEN, Verified, WAITING};
use crate::{
    failure::OperateError,
    progress::Progress,
    tables::{Deployment, VerifyOptions},
};

/// How long the registry is asked, in milliseconds.
const ASK_MS_MAX: u64 = 30_000;

/// How much earlier than it began what a verification proves ends, in milliseconds: clocks differ, and the times of
/// records are rounded down.
const MARGIN_MS: u64 = 120_000;

/// What was marked as filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// All that is right; or nothing was to be marked.
    Done,
    /// Nothing: what a repair that went on has found was read with the functions of another time.
    WentOn,
    /// Not all that is right: a change is parked, or functions with other derivations were at work meanwhile.
    NotAll,
}

/// The registry as it was before a table was read.
pub(crate) struct Before {
    registry: Registry,
    at_ms: u64,
    /// Was anything read before it? That was found with the functions of then.
    is_new: bool,
}

impl Before {
    /// As it is now.
    pub(crate) async fn read<S: Store>(opened: &Deployment<S>) -> Result<Self, OperateError> {
        let at_ms = SystemClock.now_ms();
        Ok(Self { registry: opened.engine().registry(at_ms.saturating_add(ASK_MS_MAX)).await?, at_ms, is_new: true })
    }

    /// As it is when all functions have what is to be repaired, and no instance runs any more that lacks it. Waits for
    /// that.
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

    /// Refuses when the functions have a derivation that this catalogue lacks: what they count would be taken for
    /// something that nothing explains.
    pub(crate) fn knows_all<S: Store>(&self, opened: &Deployment<S>) -> Result<(), OperateError> {
        let names = self.registry.live_beside(&opened.catalogue);
        if names.is_empty() {
            return Ok(());
        }
        Err(OperateError::Usage(format!(
            "the functions have {}, which this catalogue lacks, and a repair would take their counters for wrong: run it \
             with the catalogue of the functions, that is without --disable, with their --config, and in their version",
            names.join(", ")
        )))
    }

    /// The counts that are asked for, and not marked as filled yet.
    pub(crate) fn unfilled<S: Store>(&self, opened: &Deployment<S>, args: &VerifyOptions) -> BTreeSet<String> {
        if !is_all(args) {
            return BTreeSet::new();
        }
        let counts = opened.catalogue.derivations().filter(|derivation| derivation.kind.family() == Family::Additive);
        let names = counts.filter(|derivation| is_asked(args, derivation)).map(|derivation| &derivation.name);
        names.filter(|name| !self.registry.is_filled(name)).cloned().collect()
    }

    /// Marks as filled what was found to be right all over the table, but for these.
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
        for kind in [UNDECIDED, WAITING, UNPROVEN] {
            open.extend(verified.derivations_with(kind)?);
        }
        let engine = opened.engine();
        let is_right = |(at, derivation): &(DerivationAt, &Derivation)| {
            let name = &derivation.name;
            let is_known = match derivation.kind.family() {
                Family::Additive => {
                    verified.extent.is_proven && verified.proven.as_ref().is_none_or(|it| it.contains(name))
                }
                Family::LevelTriggered => verified.extent.is_handled,
            };
            is_asked(args, derivation)
                && is_known
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

/// Is all of the table verified, though perhaps not all that is derived?
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
