//! The progress bar of a command.

use std::{
    io::{IsTerminal as _, stderr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use engine::park::parked;
use indicatif::{ProgressBar, ProgressStyle};
use operate::{
    verify::{Progress, check::ReadPrice, marks::Marking},
    words::{self, counted},
};

use crate::{exit::report, opened::Opened};

/// Time between two steps of the spinner.
const TICK: Duration = Duration::from_millis(200);

/// A progress bar with an estimate from the table's size. Hidden for JSON output, or if standard error is not a
/// terminal.
pub(crate) fn progress(json: bool) -> ProgressBar {
    if json || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {bar:20} {wide_msg}");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    // The spinner also turns while a call or the functions take long.
    bar.enable_steady_tick(TICK);
    bar
}

/// Shows a verification's progress on this bar. Unless JSON is printed, reports the price before the first
/// verification.
pub(crate) fn on(bar: &ProgressBar, json: bool) -> Arc<dyn Progress> {
    Arc::new(OnBar { bar: bar.clone(), done: Mutex::default(), is_told: AtomicBool::new(json) })
}

/// Each item is read and then compared, so the bar's length is twice the number of items.
struct OnBar {
    bar: ProgressBar,
    done: Mutex<BarCounts>,
    is_told: AtomicBool,
}

/// Progress so far.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "each is a number, as everywhere")]
struct BarCounts {
    n_items: u64,
    n_read: usize,
    n_looked: usize,
    n_counted: usize,
}

impl OnBar {
    fn note(&self, note: impl FnOnce(&mut BarCounts)) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        note(&mut done);
        let BarCounts { n_items, n_read, n_looked, n_counted } = *done;
        self.bar.set_position(u64::try_from(n_read + n_looked).unwrap_or_default());
        self.bar.set_message(if n_counted > 0 {
            format!("read and compared {n_read} items, comparing counts: {n_counted}")
        } else {
            format!("read {n_read} of about {n_items} items, compared {n_looked}")
        });
    }
}

impl Progress for OnBar {
    fn begins(&self, price: ReadPrice) {
        let n_items = price.n_items;
        if !self.is_told.swap(true, Ordering::Relaxed) {
            self.bar.suspend(|| report(&price.to_string()));
        }
        self.bar.reset();
        self.bar.set_length(n_items.saturating_mul(2));
        self.note(|done| *done = BarCounts { n_items, ..BarCounts::default() });
    }

    fn read(&self, n_items: usize) {
        self.note(|done| done.n_read += n_items);
    }

    fn looked(&self, n_items: usize) {
        self.note(|done| done.n_looked += n_items);
    }

    fn counted(&self, n_counts: usize) {
        self.note(|done| done.n_counted += n_counts);
    }

    fn waits(&self, until_ms: u64) {
        report(&format!(
            "waiting until {}: an instance of a function without the derivations to repair may run until then",
            words::time(until_ms)
        ));
    }
}

/// Reports why some correct derivations were not marked as filled.
pub(crate) async fn report_marking(marking: Marking, opened: &Opened) -> anyhow::Result<()> {
    match marking {
        Marking::Done => {}
        Marking::WentOn => {
            report("a resumed repair marks nothing as filled: `ripple verify` does, if it finds nothing");
        }
        Marking::NotAll => {
            let n_parked = parked(&opened.store).await?.len();
            let first = if n_parked > 0 {
                format!("redrive or discard {}", counted(n_parked, "parked change"))
            } else {
                "wait until functions with other derivations have ended".to_owned()
            };
            report(&format!(
                "not all that `ripple catalogue diff` lists is marked as filled: {first}, and run this again"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_moves_while_the_table_is_read_and_while_it_is_compared() {
        let bar = ProgressBar::hidden();
        let progress = on(&bar, true);
        progress.begins(ReadPrice::of(200, 60_000, 4));
        let mut seen = Vec::new();
        let mut note = || seen.push(format!("{}/{} {}", bar.position(), bar.length().unwrap(), bar.message()));
        progress.read(200);
        note();
        progress.looked(150);
        note();
        progress.looked(50);
        progress.counted(30);
        note();
        progress.begins(ReadPrice::of(200, 60_000, 4));
        note();
        expect_test::expect![[r#"
            200/400 read 200 of about 200 items, compared 0
            350/400 read 200 of about 200 items, compared 150
            400/400 read and compared 200 items, comparing counts: 30
            0/400 read 0 of about 200 items, compared 0"#]]
        .assert_eq(&seen.join("\n"));
    }
}
