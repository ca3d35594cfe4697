//! The console: pages for a browser about an application's table and what is derived in it.
//!
//! It only reads, with the same calls as `ripple why`, `ripple parked` and `ripple jobs`, and knows no kind of derivation:
//! what it shows of a value is what [`operate::why`] says. Each page is made when it is asked for; there is no script.
//!
//! *Keeps to itself*: it answers only whoever names it as `localhost` or by a loopback address, since another name leads to
//! it if a foreign page has itself resolved to this machine. Nothing is loaded from elsewhere, and nothing is kept by the
//! browser.

mod collection;
mod explained;
mod frame;
mod guarded;
mod item;
mod link;
mod lists;
mod overview;

use std::{io, net::SocketAddr, sync::Arc};

use axum::{Router, http::StatusCode, middleware, response::IntoResponse as _, routing::get};
use engine::{
    backoff::Patience,
    batch::Engine,
    clock::{Clock as _, SystemClock},
};
use operate::tables::Deployment;
use store::Store;
use tokio::net::TcpListener;

/// How long a read is tried, in milliseconds.
const READ_MS_MAX: u64 = 30_000;

/// What the pages are about.
pub(crate) struct Console<S> {
    pub(crate) opened: Deployment<S>,
    pub(crate) engine: Engine<Arc<S>>,
    /// Where the console is.
    pub(crate) address: SocketAddr,
}

impl<S: Store> Console<S> {
    pub(crate) fn patience(&self) -> Patience<'_> {
        let clock = self.engine.clock();
        Patience::new(clock, SystemClock.now_ms().saturating_add(READ_MS_MAX))
    }
}

/// Serves the pages until the listener fails.
///
/// # Errors
///
/// Those of the listener.
pub async fn serve<S: Store + 'static>(opened: Deployment<S>, listener: TcpListener) -> io::Result<()> {
    let address = listener.local_addr()?;
    let engine = opened.engine();
    let console = Arc::new(Console { opened, engine, address });
    let pages = Router::new()
        .route("/", get(overview::page::<S>))
        .route("/item", get(item::page::<S>))
        .route("/collection", get(collection::page::<S>))
        .route("/parked", get(lists::parked::<S>))
        .route("/jobs", get(lists::jobs::<S>))
        .route("/style.css", get(frame::style))
        .fallback(|| async { frame::failed(StatusCode::NOT_FOUND, "There is no such page.").into_response() })
        .layer(middleware::from_fn_with_state(Arc::clone(&console), guarded::guarded::<S>))
        .with_state(console);
    axum::serve(listener, pages).await
}
