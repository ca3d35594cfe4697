//! The console: browser pages about an application's table and its derived data.
//!
//! It reads with the same calls as `ripple why`, `ripple parked` and `ripple jobs`, and knows no kind of derivation:
//! its explanations of values come from [`operate::why`]. Each page is built when it is requested; the only scripts
//! are those of the [`flow`], which grows with new changes, and of parts that are updated.
//!
//! *Local only*: it only responds to requests that name it as `localhost` or by a loopback address, since a foreign
//! page whose own name resolves to this machine would use another name. Nothing is loaded from elsewhere, and the
//! browser stores nothing.

mod cost;
mod design;
pub mod flow;
mod frame;
mod item;
mod jobs;
mod json;
mod overview;
mod parked;
mod query;
pub mod requests;
pub mod step;
mod verification;

use std::{io, net::SocketAddr, sync::Arc};

use ::design::Design;
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
use tokio::{net::TcpListener, sync::Mutex};

use crate::{
    flow::Flow,
    step::{StepGate, act::SceneRun},
    verification::LastVerification,
};

/// Time limit for a call, in milliseconds.
pub(crate) const READ_MS_MAX: u64 = 30_000;

pub(crate) struct Console<S> {
    pub(crate) opened: Deployment<S>,
    pub(crate) engine: Engine<Arc<S>>,
    /// The table's design.
    pub(crate) design: Design,
    /// The changes that functions of this process handle, if any run here.
    pub(crate) flow: Option<Arc<Flow>>,
    /// The gate that holds the stream before them.
    pub(crate) step: Option<Arc<StepGate<S>>>,
    pub(crate) scene: Mutex<Option<SceneRun>>,
    pub(crate) verification: LastVerification,
    /// Whether the pages may start commands that write.
    pub(crate) writes: ConsoleWrites,
    /// The token that a command's form must contain.
    token: String,
    pub(crate) address: SocketAddr,
}

impl<S: Store> Console<S> {
    pub(crate) fn patience(&self) -> Patience<'_> {
        let clock = self.engine.clock();
        Patience::new(clock, SystemClock.now_ms().saturating_add(READ_MS_MAX))
    }
}

/// Whether the pages may start commands that write into the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsoleWrites {
    /// The pages are read-only.
    Refused {
        /// How a person allows writes, such as with options of the command.
        allowed_by: String,
    },
    /// A click starts them.
    Allowed {
        /// The location of the tables, in words, if that is the real AWS.
        place: Option<String>,
    },
}

/// Input of the pages.
pub struct Served<S> {
    /// The tables.
    pub opened: Deployment<S>,
    /// Their design.
    pub design: Design,
    /// Whether the pages may start commands that write.
    pub writes: ConsoleWrites,
    /// The work of the functions in this process, if any run here.
    pub functions: Option<(Arc<Flow>, Arc<StepGate<S>>)>,
}

/// Serves the pages until the listener fails.
///
/// # Errors
///
/// The errors of the listener.
pub async fn serve<S: Store + 'static>(served: Served<S>, listener: TcpListener) -> io::Result<()> {
    let Served { opened, design, writes, functions } = served;
    let (flow, step) = functions.unzip();
    let address = listener.local_addr()?;
    let engine = opened.engine();
    let token = format!("{:032x}", rand::random::<u128>());
    let (verification, scene) = (LastVerification::default(), Mutex::default());
    let console = Arc::new(Console { opened, engine, design, flow, step, scene, verification, writes, token, address });
    let pages = Router::new()
        .route("/", get(overview::page::<S>))
        .route("/happening", get(async |console| frame::flow_updates::<S>(console, overview::happening)))
        .route("/derivations", get(async |console| frame::flow_updates::<S>(console, overview::measured)))
        .route("/flow", get(flow::page::<S>))
        .route("/flow/events", get(flow::events::<S>))
        .route("/flow.js", get(frame::flow_script))
        .route("/live.js", get(frame::live_script))
        .route("/step", get(step::page::page::<S>))
        .route("/step/events", get(step::page::events::<S>))
        .route("/step/hold", post(step::page::holds::<S>))
        .route("/step/deliver", post(step::page::delivers::<S>))
        .route("/step/scene", get(step::page::scene_page::<S>))
        .route("/step/scene/begin", post(step::page::begins::<S>))
        .route("/step/scene/next", post(step::page::nexts::<S>))
        .route("/change", get(flow::shown::change_page::<S>))
        .route("/find", get(item::find))
        .route("/item", get(item::page::<S>))
        .route("/collection", get(query::page::<S>))
        .route("/cost", get(cost::page::<S>))
        .route("/cost/events", get(async |console| frame::flow_updates::<S>(console, cost::part)))
        .route("/design", get(design::page::<S>))
        .route("/pattern", get(design::pattern::page::<S>))
        .route("/pattern/write", get(design::writing::page::<S>).post(design::writing::run::<S>))
        .route("/parked", get(parked::page::<S>))
        .route("/parked/try", get(parked::tried::<S>))
        .route("/parked/redrive", post(parked::redriven::<S>))
        .route("/jobs", get(jobs::page::<S>))
        .route("/jobs/order", post(jobs::order::<S>))
        .route("/verify", get(verification::page::<S>).post(verification::begun::<S>))
        .route("/verify/plan", post(verification::planned::<S>))
        .route("/verify/repair", post(verification::applied::<S>))
        .route("/style.css", get(frame::style))
        .merge(json::addresses())
        .fallback(|| async { frame::failed(StatusCode::NOT_FOUND, "There is no such page.").into_response() })
        .layer(middleware::from_fn(json::errors))
        .layer(middleware::from_fn_with_state(Arc::clone(&console), requests::guarded::<S>))
        .with_state(console);
    axum::serve(listener, pages).await
}
