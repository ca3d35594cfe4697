//! Writing down what is done, for as long as it takes.

use futures::future::BoxFuture;

use crate::poller::Waits;
use crate::poller::{Stop, Stopped};
use crate::wiring::{Complaint, Wiring};

/// Tries until it works. Tries at least once, so that what is done is kept although stopping was asked for.
pub(crate) async fn persist<'a>(
    wiring: &Wiring,
    stop: &mut Stop,
    what: &str,
    attempt: impl Fn() -> BoxFuture<'a, Result<(), String>>,
) -> Result<(), Stopped> {
    let complaint = Complaint::default();
    let mut backoff = Waits::default();
    while let Err(error) = attempt().await {
        complaint.report(wiring, &format!("{what}: {error}"));
        stop.sleep(backoff.wait()).await?;
    }
    Ok(())
}
