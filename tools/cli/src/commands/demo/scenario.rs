//! The run of a scenario: what it has, and what it tells beside what every run tells.

use std::sync::Arc;

use indicatif::ProgressBar;
use keys::error::EntityError;
use serde::Serialize;

use super::{
    famous::{self, Famous},
    hot::{self, Hot},
};
use crate::{
    args::demo::{Demo, Scenario},
    book::Bookkeeper,
    service::Service,
    workload::{
        Application,
        act::Action,
        metered::{HasLag, Metered},
        others::is_theirs,
        writer::write,
    },
};

/// A service that runs, and an application's store beside it.
pub(super) struct Running<'a> {
    pub(super) args: &'a Demo,
    pub(super) service: Service,
    pub(super) metered: Arc<Metered>,
    pub(super) book: Arc<Bookkeeper>,
    pub(super) bar: ProgressBar,
}

/// What one scenario alone tells, under its name. The names are stable.
#[derive(Debug, Default, Serialize)]
pub(super) struct ScenarioReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    hot: Option<Hot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    famous: Option<Famous>,
}

impl ScenarioReport {
    /// For a person.
    pub(super) fn lines(&self) -> Vec<String> {
        let hot = self.hot.iter().flat_map(Hot::lines);
        hot.chain(self.famous.iter().flat_map(Famous::lines)).collect()
    }
}

/// Which items' changes the run tells the lag of. Of a scenario it is those of other people, so that what is kept for
/// it does not grow with the writes.
pub(super) fn has_lag(args: &Demo) -> HasLag {
    match args.scenario {
        Scenario::Mixed => |_| true,
        Scenario::Famous if args.others > 0 => is_theirs,
        Scenario::Hot | Scenario::Famous => |_| false,
    }
}

/// Runs the scenario, until the stream is quiet.
pub(super) async fn run(running: &mut Running<'_>) -> anyhow::Result<ScenarioReport> {
    match running.args.scenario {
        Scenario::Mixed => {
            let mut application = Application::new(running.args.seed);
            running.write((0..running.args.writes).map(|_| application.next())).await?;
            running.quiet().await?;
            Ok(ScenarioReport::default())
        }
        Scenario::Hot => Ok(ScenarioReport { hot: Some(hot::run(running).await?), ..ScenarioReport::default() }),
        Scenario::Famous => {
            Ok(ScenarioReport { famous: Some(famous::run(running).await?), ..ScenarioReport::default() })
        }
    }
}

impl Running<'_> {
    /// Writes what the scenario is about, at its rate.
    pub(super) async fn write(&self, actions: impl Iterator<Item = Result<Action, EntityError>>) -> anyhow::Result<()> {
        self.bar.set_message("");
        write(&self.metered, self.args.rate, actions, &self.bar).await
    }

    /// Writes what must be there before, and waits until the service has seen it.
    pub(super) async fn set(&mut self, setting: Vec<Action>) -> anyhow::Result<()> {
        self.bar.set_message("setting the scene");
        write(&self.metered, None, setting.into_iter().map(Ok), &ProgressBar::hidden()).await?;
        self.service.quiet().await.map(|_handled_to| ())
    }

    /// Waits until the stream is quiet.
    pub(super) async fn quiet(&mut self) -> anyhow::Result<()> {
        self.bar.set_message("waiting until the stream is quiet");
        self.service.quiet().await.map(|_handled_to| ())
    }
}
