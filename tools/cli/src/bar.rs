//! The progress bar of a command.

use std::{
    io::{IsTerminal as _, stderr},
    sync::Arc,
};

use indicatif::{ProgressBar, ProgressStyle};
use operate::{progress::Progress, verify::report::Belief, verifying::filled::Marking};

use crate::{exit::report, time};

/// A progress bar with an estimate from the table's size. Hidden if standard error is no terminal.
pub(crate) fn progress(json: bool) -> ProgressBar {
    if json || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos} of about {len} items, {per_sec}, {eta} left");
    ProgressBar::new(0)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message("reading the table")
}

/// Shows a verification's progress on this bar.
pub(crate) fn on(bar: &ProgressBar) -> Arc<dyn Progress> {
    Arc::new(OnBar(bar.clone()))
}

struct OnBar(ProgressBar);

impl Progress for OnBar {
    fn begins(&self, n_items: u64) {
        self.0.reset();
        self.0.set_length(n_items);
    }

    fn read(&self, n_items: usize) {
        self.0.inc(u64::try_from(n_items).unwrap_or_default());
    }

    fn waits(&self, until_ms: u64) {
        report(&format!(
            "waiting until {}: an instance of a function without the derivations to repair may run until then",
            time::text(until_ms)
        ));
    }

    fn believed(&self, Belief { handled_ms, until_ms }: Belief) -> String {
        let [handled, until] = [handled_ms, until_ms].map(time::text);
        format!("everything written before {handled} is handled, and none of its sources was written until {until}")
    }
}

/// Reports why some correct derivations were not marked as filled.
pub(crate) fn report_marking(marking: Marking) {
    match marking {
        Marking::Done => {}
        Marking::WentOn => {
            report("a resumed repair marks nothing as filled: `ripple verify` does, if it finds nothing");
        }
        Marking::NotAll => report(
            "not all that is right is marked as filled: a change is parked, or functions with other derivations were at \
             work meanwhile; `ripple catalogue diff` says which",
        ),
    }
}
