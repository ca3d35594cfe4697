//! Saves completed work, retrying until it succeeds.

use futures::future::BoxFuture;

use crate::poller::Waits;
use crate::poller::{Stop, Stopped};
use crate::wiring::{Complaint, Wiring};

/// Retries until the attempt succeeds or a stop is requested. Always tries once, so that completed work is saved even
/// after a stop request.
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
