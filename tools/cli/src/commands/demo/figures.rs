//! Figures that several reports contain: lags, and sums of units.

use serde::Serialize;

use crate::lag::Lags;

/// Time from the response to a write until the commit of the last write that follows from it.
#[derive(Debug, Serialize)]
pub(super) struct LagFigures {
    p50: u64,
    p99: u64,
    max: u64,
}

/// The lag of few changes, such as those of other people.
#[derive(Debug, Serialize)]
pub(super) struct FewLags {
    /// Number of changes.
    changes: usize,
    #[serde(flatten)]
    lag: LagFigures,
}

impl From<&Lags> for FewLags {
    fn from(lags: &Lags) -> Self {
        Self { changes: lags.len(), lag: LagFigures::from(lags) }
    }
}

impl FewLags {
    pub(super) fn text(&self) -> String {
        format!("{}, of {} changes", self.lag.text(), self.changes)
    }
}

impl From<&Lags> for LagFigures {
    fn from(lags: &Lags) -> Self {
        Self { p50: lags.percentile_ms(50), p99: lags.percentile_ms(99), max: lags.max_ms() }
    }
}

impl LagFigures {
    pub(super) fn text(&self) -> String {
        format!("p50 {} ms, p99 {} ms, max {} ms", self.p50, self.p99, self.max)
    }
}

/// Rounds a sum to three decimals.
pub(super) fn rounded(units: f64) -> f64 {
    (units * 1_000.0).round() / 1_000.0
}
