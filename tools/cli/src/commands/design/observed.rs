//! What a running table has recorded of its hot keys, read for `ripple design --check --observed`.

use design::{
    Design,
    review::{
        finding::Finding,
        observed::{a_second, findings, peaks},
    },
};
use engine::{
    clock::{Clock as _, SystemClock},
    heat::{Heated, heated},
};
use serde_json::{Value, json};

use crate::{args::Connection, opened::open_with_ledger, time};

/// Hot targets that are told at most.
const TOLD_MAX: usize = 20;

const HOUR_MS: u64 = 3_600_000;

/// The record of the last hours.
pub(super) struct Observed {
    n_hours: u16,
    record: Vec<Heated>,
}

impl Observed {
    /// Reads the record. It writes nothing.
    pub(super) async fn read(connection: &Connection, n_hours: u16) -> anyhow::Result<Self> {
        let opened = open_with_ledger(connection).await?;
        let now_ms = SystemClock.now_ms();
        let hours = (now_ms.saturating_sub(u64::from(n_hours) * HOUR_MS), now_ms);
        let names = opened.catalogue.derivations().map(|derivation| derivation.name.as_str());
        Ok(Self { n_hours, record: heated(&opened.store, names, hours).await? })
    }

    /// What is to be done about it.
    pub(super) fn findings(&self, design: &Design) -> Vec<Finding> {
        findings(design, &self.record)
    }

    /// The hottest targets for a person, each with its hottest minute.
    pub(super) fn text(&self) -> String {
        let peaks = peaks(&self.record);
        let line = |peak: &&Heated| {
            let Heated { hot, minute_ms, measured } = peak;
            format!(
                "hot  {}  {}\n  {}  a second: {:.1} effects, {:.1} transactions, {:.1} conflicts, {:.1} throttles; \
                 shards {}",
                hot.derivation,
                hot.target,
                time::text(*minute_ms),
                a_second(measured.n_effects),
                a_second(measured.n_transactions),
                a_second(measured.n_conflicts),
                a_second(measured.n_throttles),
                measured.shards.len(),
            )
        };
        let mut lines: Vec<String> = peaks.iter().take(TOLD_MAX).map(line).collect();
        lines.push(match peaks.len() {
            0 => format!("nothing hot was recorded in the last {} hours", self.n_hours),
            n if n > TOLD_MAX => format!("and {} targets more in the last {} hours", n - TOLD_MAX, self.n_hours),
            n => format!("{n} hot in the last {} hours, each in its hottest minute", self.n_hours),
        });
        lines.join("\n")
    }

    /// All hot targets, each with its hottest minute. Its names are stable.
    pub(super) fn json(&self) -> Value {
        let hot = |peak: &Heated| {
            let Heated { hot, minute_ms, measured } = peak;
            json!({
                "derivation": hot.derivation,
                "pk": hot.target.pk,
                "sk": hot.target.sk,
                "minute": time::text(*minute_ms),
                "effects": measured.n_effects,
                "transactions": measured.n_transactions,
                "conflicts": measured.n_conflicts,
                "throttles": measured.n_throttles,
                "shards": measured.shards.len(),
            })
        };
        json!({ "hours": self.n_hours, "hot": peaks(&self.record).into_iter().map(hot).collect::<Vec<_>>() })
    }
}
