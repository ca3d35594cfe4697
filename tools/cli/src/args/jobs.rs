//! The arguments of `ripple jobs`.

use clap::{ArgGroup, Args as Group};
use engine::jobs::JobOrder;

use super::{Writing, values};

/// `ripple jobs`
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(group(ArgGroup::new("order").args(["pause", "resume", "cancel"]).requires("ids")))]
pub(crate) struct Jobs {
    /// Shows only these jobs, in full (default: a list of all).
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Pauses these jobs.
    #[arg(long)]
    pub(crate) pause: bool,
    /// Resumes these jobs.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Cancels these jobs. The work that is left stays undone.
    #[arg(long)]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Jobs {
    /// The operator's order for the jobs, or `None` to list them.
    pub(crate) fn order(&self) -> Option<JobOrder> {
        let orders = [(self.pause, JobOrder::Pause), (self.resume, JobOrder::Resume), (self.cancel, JobOrder::Cancel)];
        orders.into_iter().find_map(|(is_asked, order)| is_asked.then_some(order))
    }
}
