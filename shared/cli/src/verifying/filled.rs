//! The registry beside a verification: what is to be repaired waits until all functions have it, and what is found to be
//! right all over the table is marked as filled.

use std::{collections::BTreeSet, time::Duration};

use engine::{
    clock::{Clock as _, SystemClock},
    registry::{Registry, Standing},
};

use super::{UNDECIDED, UNPROVEN, Verified, WAITING};
use crate::{
    args::verify::Verifying,
    exit::{Usage, report},
    opened::Opened,
    time,
};

/// How long the registry is asked, in milliseconds.
const ASK_MS_MAX: u64 = 30_000;

/// How much earlier than it began what a verification proves ends, in milliseconds: clocks differ, and the times of
/// records are rounded down.
const MARGIN_MS: u64 = 120_000;

/// The registry as it was before a table was read.
pub(crate) struct Before {
    registry: Registry,
    at_ms: u64,
    /// Was anything read before it? That was found with the functions of then.
    is_new: bool,
}

impl Before {
    /// As it is now.
    pub(crate) async fn read(opened: &Opened) -> anyhow::Result<Self> {
        let at_ms = SystemClock.now_ms();
        Ok(Self { registry: opened.engine().registry(at_ms + ASK_MS_MAX).await?, at_ms, is_new: true })
    }

    /// As it is when all functions have what is to be repaired, and no instance runs any more that lacks it. Waits for
    /// that.
    pub(crate) async fn ready(opened: &Opened, args: &Verifying, is_new: bool) -> anyhow::Result<Self> {
        let engine = opened.engine();
        loop {
            let before = Self { is_new, ..Self::read(opened).await? };
            before.knows_all(opened)?;
            if before.registry.is_empty() {
                let why = "no function has told yet which derivations it has: let one of this version handle a batch, or \
                           give --at-rest if none will";
                return Err(Usage(why.to_owned()).into());
            }
            let mut until_ms = None;
            for (at, derivation) in opened.catalogue.derivations().enumerate() {
                let name = derivation.name.as_str();
                if !args.derivation.is_empty() && !args.derivation.iter().any(|asked| asked == name) {
                    continue;
                }
                match engine.standing(&before.registry, at) {
                    Standing::Ready => {}
                    Standing::Young { ready_ms } => until_ms = until_ms.max(Some(ready_ms)),
                    Standing::Missing => return Err(Usage(lacking(name)).into()),
                    Standing::Otherwise { theirs } => {
                        let why =
                            format!("the functions have {name} as {theirs}: deploy them as it is declared here first");
                        return Err(Usage(why).into());
                    }
                }
            }
            let Some(until_ms) = until_ms else { return Ok(before) };
            report(&format!(
                "waiting until {}: before, an instance of a function may be at work that lacks what is to be repaired",
                time::text(until_ms)
            ));
            tokio::time::sleep(Duration::from_millis(until_ms.saturating_sub(SystemClock.now_ms()) + 1)).await;
        }
    }

    /// Refuses when the functions have a derivation that this catalogue lacks: what they count would be taken for
    /// something that nothing explains.
    pub(crate) fn knows_all(&self, opened: &Opened) -> Result<(), Usage> {
        let names = self.registry.live_beside(&opened.catalogue);
        if names.is_empty() {
            return Ok(());
        }
        Err(Usage(format!(
            "the functions have {}, which this catalogue lacks, and a repair would take their counters for wrong: run it \
             with the catalogue of the functions, that is without --disable, with their --config, and in their version",
            names.join(", ")
        )))
    }

    /// Marks as filled what was found to be right all over the table, but for these.
    pub(crate) async fn mark(
        &self,
        opened: &Opened,
        args: &Verifying,
        verified: &Verified,
        mut open: BTreeSet<String>,
    ) -> anyhow::Result<()> {
        if !self.is_new {
            report("a repair that went on marks nothing as filled: a `ripple verify` that finds nothing does");
            return Ok(());
        }
        let is_all = args.entity.is_empty() && args.pk.is_empty() && args.sk.is_none();
        if !is_all || self.registry.is_empty() || !verified.extent.is_proven {
            return Ok(());
        }
        for kind in [UNDECIDED, WAITING, UNPROVEN] {
            open.extend(verified.spool.derivations_told(kind)?);
        }
        let engine = opened.engine();
        let is_right = |(at, name): &(usize, &String)| {
            let is_asked = args.derivation.is_empty() || args.derivation.contains(name);
            is_asked && !open.contains(*name) && engine.standing(&self.registry, *at) == Standing::Ready
        };
        let names = opened.catalogue.derivations().map(|derivation| &derivation.name).enumerate();
        let names: BTreeSet<String> = names.filter(is_right).map(|(_, name)| name.clone()).collect();
        let until_ms = self.at_ms.saturating_sub(MARGIN_MS);
        let n_marked = engine.mark_filled(&names, &self.registry, until_ms, SystemClock.now_ms() + ASK_MS_MAX).await?;
        if n_marked < names.len() {
            report(
                "not all that is right is marked as filled: a change is parked, or functions with other derivations were at \
                 work meanwhile; `ripple catalogue diff` says which",
            );
        }
        Ok(())
    }
}

fn lacking(name: &str) -> String {
    format!(
        "no function has told that it has {name}: deploy them with it, and write an item, since one tells with its first \
         batch; or leave it out with --disable {name}"
    )
}
