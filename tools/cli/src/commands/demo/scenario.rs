//! Runs a scenario, and makes its own part of the report.

use serde::Serialize;

use super::{
    famous::{self, FamousReport},
    hot::{self, HotReport},
    others::is_theirs,
    story::{self, StoryReport},
    workload::Application,
};
use crate::commands::demo::Running;
use crate::{
    args::demo::{Demo, Scenario},
    metered::HasLag,
};

/// The report of one scenario, under its name. The names are stable.
#[derive(Debug, Default, Serialize)]
pub(super) struct ScenarioReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    hot: Option<HotReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    famous: Option<FamousReport>,
    /// Not in the JSON, because the story is for reading.
    #[serde(skip)]
    pub(super) story: Option<StoryReport>,
}

impl ScenarioReport {
    pub(super) fn lines(&self) -> Vec<String> {
        let hot = self.hot.iter().flat_map(HotReport::lines);
        hot.chain(self.famous.iter().flat_map(FamousReport::lines)).collect()
    }
}

/// Selects the items whose lag is measured. `hot` and `famous` measure at most those of other users, so their memory
/// does not grow with the writes.
pub(super) fn has_lag(args: &Demo) -> HasLag {
    match args.scenario() {
        Scenario::Mixed => |_| true,
        Scenario::Famous if args.others > 0 => is_theirs,
        Scenario::Story | Scenario::Hot | Scenario::Famous => |_| false,
    }
}

/// Runs the scenario until the stream is quiet.
pub(super) async fn run(running: &mut Running<'_>) -> anyhow::Result<ScenarioReport> {
    match running.args.scenario() {
        Scenario::Story => Ok(ScenarioReport { story: Some(story::run(running).await?), ..ScenarioReport::default() }),
        Scenario::Mixed => {
            let mut application = Application::new((*running.schema).clone(), running.args.seed);
            running.write((0..running.args.writes()).map(|_| application.next_action())).await?;
            running.quiet().await?;
            Ok(ScenarioReport::default())
        }
        Scenario::Hot => Ok(ScenarioReport { hot: Some(hot::run(running).await?), ..ScenarioReport::default() }),
        Scenario::Famous => {
            Ok(ScenarioReport { famous: Some(famous::run(running).await?), ..ScenarioReport::default() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Vec<String> {
        let mut application = Application::new(catalogue::schema(), seed);
        (0..500).map(|_| format!("{:?}", application.next_action().unwrap())).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_actions() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }
}
