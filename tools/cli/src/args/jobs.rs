//! The arguments of `ripple jobs`.

use clap::{ArgGroup, Args as Group};
use engine::jobs::Order;

use super::Writing;

/// `ripple jobs`
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(group(ArgGroup::new("order").args(["pause", "resume", "cancel"]).requires("ids")))]
pub(crate) struct Jobs {
    /// Jobs, as they are listed: these alone, each shown whole.
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Holds these jobs where they are.
    #[arg(long)]
    pub(crate) pause: bool,
    /// Lets these jobs go on that are held.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Gives these jobs up: what they have not done stays undone.
    #[arg(long)]
    pub(crate) cancel: bool,
    /// The tables.
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Jobs {
    /// What is asked of the jobs; nothing where they are only to be seen.
    pub(crate) fn order(&self) -> Option<Order> {
        let orders = [(self.pause, Order::Pause), (self.resume, Order::Resume), (self.cancel, Order::Cancel)];
        orders.into_iter().find_map(|(is_asked, order)| is_asked.then_some(order))
    }
}
