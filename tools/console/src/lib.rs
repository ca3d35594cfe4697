//! The console: pages for a browser about an application's table and what is derived in it.
//!
//! It reads with the same calls as `ripple why`, `ripple parked` and `ripple jobs`, and knows no kind of derivation:
//! what it shows of a value is what [`operate::why`] says. Each page is made when it is asked for; the only script is that of
//! the [`flow`], which grows as changes come.
//!
//! *Keeps to itself*: it answers only whoever names it as `localhost` or by a loopback address, since another name leads to
//! it if a foreign page has itself resolved to this machine. Nothing is loaded from elsewhere, and nothing is kept by the
//! browser.

mod collection;
mod explained;
pub mod flow;
mod frame;
mod graph;
mod guarded;
mod item;
mod link;
mod lists;
mod orders;
mod overview;
mod verification;

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::StatusCode,
    middleware,
    response::IntoResponse as _,
    routing::{get, post},
};
use engine::{
    backoff::Patience,
    batch::Engine,
    clock::{Clock as _, SystemClock},
};
use operate::tables::Deployment;
use store::Store;
use tokio::net::TcpListener;

use crate::{flow::Flow, verification::LastVerification};

/// How long a call is tried, in milliseconds.
pub(crate) const READ_MS_MAX: u64 = 30_000;

/// What the pages are about.
pub(crate) struct Console<S> {
    pub(crate) opened: Deployment<S>,
    pub(crate) engine: Engine<Arc<S>>,
    /// What functions of this process handle, if any run here.
    pub(crate) flow: Option<Arc<Flow>>,
    verification: LastVerification,
    /// What an order must hold.
    token: String,
    /// Where the console is.
    pub(crate) address: SocketAddr,
}

impl<S: Store> Console<S> {
    pub(crate) fn patience(&self) -> Patience<'_> {
        let clock = self.engine.clock();
        Patience::new(clock, SystemClock.now_ms().saturating_add(READ_MS_MAX))
    }
}

/// Serves the pages until the listener fails, with the flow of the functions that run in this process.
///
/// # Errors
///
/// Those of the listener.
pub async fn serve<S: Store + 'static>(
    opened: Deployment<S>,
    flow: Option<Arc<Flow>>,
    listener: TcpListener,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let engine = opened.engine();
    let token = format!("{:032x}", rand::random::<u128>());
    let console = Arc::new(Console { opened, engine, flow, verification: LastVerification::default(), token, address });
    let pages = Router::new()
        .route("/", get(overview::page::<S>))
        .route("/flow", get(flow::page::page::<S>))
        .route("/flow/events", get(flow::events::events::<S>))
        .route("/flow.js", get(frame::script))
        .route("/change", get(flow::followed::page::<S>))
        .route("/item", get(item::page::<S>))
        .route("/collection", get(collection::page::<S>))
        .route("/parked", get(lists::parked::<S>))
        .route("/parked/redrive", post(orders::redriven::<S>))
        .route("/jobs", get(lists::jobs::<S>))
        .route("/jobs/order", post(orders::job::<S>))
        .route("/verify", get(verification::page::<S>).post(verification::begun::<S>))
        .route("/style.css", get(frame::style))
        .fallback(|| async { frame::failed(StatusCode::NOT_FOUND, "There is no such page.").into_response() })
        .layer(middleware::from_fn_with_state(Arc::clone(&console), guarded::guarded::<S>))
        .with_state(console);
    axum::serve(listener, pages).await
}
