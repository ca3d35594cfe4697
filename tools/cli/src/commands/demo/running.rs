//! A running service, and the application that writes beside it.

use std::sync::Arc;

use indicatif::ProgressBar;
use keys::error::EntityError;
use workload::act::AppAction;

use super::writer::write;
use crate::{args::demo::Demo, book::Bookkeeper, metered::Metered, service::Service};

pub(super) struct Running<'a> {
    pub(super) args: &'a Demo,
    pub(super) service: Service,
    pub(super) metered: Arc<Metered>,
    pub(super) book: Arc<Bookkeeper>,
    pub(super) bar: ProgressBar,
}

impl Running<'_> {
    /// Performs the scenario's actions at its rate.
    pub(super) async fn write(
        &self,
        actions: impl Iterator<Item = Result<AppAction, EntityError>>,
    ) -> anyhow::Result<()> {
        self.bar.set_message("");
        write(&self.metered, self.args.rate, actions, &self.bar).await
    }

    /// Performs the preparing actions, and waits until the service has handled them.
    pub(super) async fn set(&mut self, setting: Vec<AppAction>) -> anyhow::Result<()> {
        self.bar.set_message("setting the scene");
        write(&self.metered, None, setting.into_iter().map(Ok), &ProgressBar::hidden()).await?;
        self.service.quiet().await.map(|_handled_to| ())
    }

    pub(super) async fn quiet(&mut self) -> anyhow::Result<()> {
        self.bar.set_message("waiting until the stream is quiet");
        self.service.quiet().await.map(|_handled_to| ())
    }
}
