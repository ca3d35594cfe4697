//! The embedded DynamoDB, served on an address of this machine for any AWS client that may use it.
//!
//! The database's own server answers every name and permits every web page, and it has no setting against that. So
//! another HTTP server has the address that clients know, and passes on the requests that [`Access`] allows: those of
//! clients that call it by a name of this machine, and of no web page of another site.
//!
//! *Why nobody else reaches the database's server*: it can only listen on a port, and a page could find that port. So
//! each connection to it has a listener of its own, and the listener's task runs until this process is connected and
//! never again. The connection is a task of its own; another client would wait for one without end.

mod index;

use std::{
    fs::{File, TryLockError},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header, uri::Authority},
    response::{IntoResponse as _, Response},
};
use console::requests;
use dynoxide::{Database, server::serve_on};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use crate::exit::listen;

/// Time between two deletions of expired items. The real service takes hours; a person at a laptop does not want to
/// wait.
const TIME_TO_LIVE_SWEEP: Duration = Duration::from_secs(2);

pub(crate) struct Embedded {
    /// URL that clients use.
    pub(crate) endpoint: String,
    tasks: Vec<JoinHandle<()>>,
    /// The lock file of the folder. The end of the process also unlocks it.
    _lock: Option<File>,
}

impl Embedded {
    /// Serves a database at an address to those that have access; port 0 takes a free port. The database is a file in
    /// the folder, or in memory without one.
    pub(crate) async fn start(
        address: SocketAddr,
        access: Access,
        folder: Option<&Path>,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<Self> {
        let listener = listen(address, "--port").await?;
        let lock = folder.map(lock).transpose()?;
        let database = open(folder)?;
        let endpoint = format!("http://{}", reached(listener.local_addr()?));
        let swept = database.clone();
        let access = Access { bound: Some(address.ip()), ..access };
        let mut stopped = stop.clone();
        let serving = tokio::spawn(async move {
            let stopped = async move { drop(stopped.wait_for(|stop| *stop).await) };
            if let Err(error) = serve(listener, database, access, stopped).await {
                tracing::error!(%error, "the embedded database stopped");
            }
        });
        let sweeping = tokio::spawn(sweep(swept, stop));
        Ok(Self { endpoint, tasks: vec![serving, sweeping], _lock: lock })
    }

    /// Waits until the database has stopped, so that its file is closed.
    pub(crate) async fn stopped(self) {
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "the embedded database did not stop cleanly");
            }
        }
    }
}

/// The address by which this machine reaches a bound address: loopback if it is unspecified, such as 0.0.0.0.
fn reached(bound: SocketAddr) -> SocketAddr {
    let host = match bound.ip() {
        IpAddr::V4(host) if host.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(host) if host.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        host => host,
    };
    SocketAddr::new(host, bound.port())
}

/// Creates the folder, and locks it: two services on one database would miss each other's writes.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let name = folder.display();
    if folder.is_file() {
        anyhow::bail!("{name} is a file: --data names a folder");
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {name}"))?;
    let file = File::create(folder.join("lock")).with_context(|| format!("cannot write in the folder {name}"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            anyhow::bail!("another `ripple dev` uses the folder {name}: stop it, or give another --data")
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock the folder {name}")),
    }
}

fn open(folder: Option<&Path>) -> anyhow::Result<Database> {
    let path = match folder {
        // A unique name, so that a second connection can open the same memory.
        None => format!("file:ripple-{:016x}?mode=memory&cache=shared", rand::random::<u64>()),
        Some(folder) => folder.join("dynamodb.sqlite").to_string_lossy().into_owned(),
    };
    let database = Database::new(&path).map_err(|error| {
        tracing::debug!(%error, "the database does not open");
        anyhow::anyhow!(
            "cannot open the database {path}: it must be a file of `ripple dev`; move it, or give another --data"
        )
    })?;
    if let Err(error) = index::add(&path) {
        tracing::warn!(%error, "the embedded database gets slower with every write: its stream has no index");
    }
    Ok(database)
}

/// Deletes expired items, as DynamoDB does.
async fn sweep(database: Database, mut stop: watch::Receiver<bool>) {
    loop {
        if tokio::time::timeout(TIME_TO_LIVE_SWEEP, stop.changed()).await.is_ok() {
            return;
        }
        let database = database.clone();
        let swept = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "expired items could not be deleted");
        }
    }
}

// ---- The server before the database ----

/// Headers that are about one connection, and not about a request.
const OF_CONNECTION: [HeaderName; 3] = [header::CONNECTION, header::EXPECT, header::UPGRADE];

/// The media type of DynamoDB's responses.
const JSON: &str = "application/x-amz-json-1.0";

struct Front {
    access: Access,
    database: Database,
    /// Connections without a request.
    idle: Mutex<Vec<Link>>,
}

/// A connection to the database's server.
struct Link {
    sender: SendRequest<Body>,
    /// Keeps the connection's listener, and is not polled: see above.
    _listening: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Serves the database to those that have access, until `stopped`.
async fn serve(
    listener: TcpListener,
    database: Database,
    access: Access,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let front = Arc::new(Front { access, database, idle: Mutex::default() });
    let pages = Router::new().fallback(answer).with_state(front);
    axum::serve(listener, pages).with_graceful_shutdown(stopped).await
}

async fn answer(State(front): State<Arc<Front>>, request: Request) -> Response {
    let granted = match front.access.check(request.headers()) {
        Ok(granted) => granted,
        Err(why) => return failed(StatusCode::FORBIDDEN, "com.amazon.coral.service#AccessDeniedException", &why),
    };
    let mut response = match front.forward(request, &granted).await {
        Ok(response) => response,
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(%error, "the embedded database gives no response");
            let name = "com.amazonaws.dynamodb.v20120810#InternalServerError";
            return failed(StatusCode::INTERNAL_SERVER_ERROR, name, &error);
        }
    };
    if let Granted::Page(origin) = granted {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

impl Front {
    async fn forward(&self, request: Request, granted: &Granted) -> anyhow::Result<Response> {
        let mut link = self.link().await.context("cannot connect to the embedded database")?;
        let response = link.sender.send_request(forwarded(request, granted)).await?;
        let (head, body) = response.into_parts();
        // The connection is free again once the body is read.
        let body = to_bytes(Body::new(body), usize::MAX).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        Ok(Response::from_parts(head, Body::from(body)))
    }

    /// A connection that is free, or a new one.
    async fn link(&self) -> anyhow::Result<Link> {
        while let Some(mut link) = self.free() {
            // It may have to finish its last response first; one that is closed never gets ready.
            if link.sender.ready().await.is_ok() {
                return Ok(link);
            }
        }
        self.connect(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?).await
    }

    fn free(&self) -> Option<Link> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Connects to a server of the database on this listener, which nobody else uses.
    async fn connect(&self, listener: TcpListener) -> anyhow::Result<Link> {
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut listening = Box::pin(serve_on(listener, self.database.clone()));
        // The first response shows that the connection is accepted.
        let first = async {
            let response = sender.send_request(Request::new(Body::empty())).await?;
            anyhow::Ok(to_bytes(Body::new(response.into_body()), usize::MAX).await?)
        };
        tokio::select! {
            first = first => drop(first?),
            () = &mut listening => anyhow::bail!("its server stopped"),
        }
        sender.ready().await?;
        Ok(Link { sender, _listening: listening })
    }
}

/// The request as the database's server gets it. A page that has no permission is not named, so that the response
/// contains none.
fn forwarded(request: Request, granted: &Granted) -> Request {
    let (mut head, body) = request.into_parts();
    for name in OF_CONNECTION {
        head.headers.remove(name);
    }
    if matches!(granted, Granted::Client) {
        head.headers.remove(header::ORIGIN);
    }
    head.version = Version::HTTP_11;
    Request::from_parts(head, body)
}

/// An error in the shape of DynamoDB's.
fn failed(status: StatusCode, name: &str, why: &str) -> Response {
    let body = json!({ "__type": name, "message": why }).to_string();
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}

// ---- Who may use the database ----

/// Who may use the database, beside those that always may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// Address that the database listens on.
    pub(crate) bound: Option<IpAddr>,
    /// Names of this machine, without a port.
    pub(crate) hosts: Vec<String>,
    /// Origins of pages.
    pub(crate) origins: Vec<String>,
}

/// Who sent a request that is allowed.
#[derive(Debug, PartialEq, Eq)]
enum Granted {
    /// A program, or a page of this machine: a browser shows it no response.
    Client,
    /// A page of an allowed origin.
    Page(HeaderValue),
}

impl Access {
    /// Decides about a request, or says why it is refused and what to do.
    fn check(&self, headers: &HeaderMap) -> Result<Granted, String> {
        if headers.get(header::HOST).is_none() {
            return Err(refused_host(""));
        }
        if let Some(host) = texts(headers, &header::HOST).find(|host| !self.is_host(host)) {
            return Err(refused_host(host));
        }
        let is_allowed = |origin: &str| self.origins.iter().any(|allowed| allowed == origin);
        let is_local = |origin: &str| requests::of_origin(origin).is_some_and(|at| requests::is_loopback(at.host()));
        if let Some(origin) = texts(headers, &header::ORIGIN).find(|origin| !is_allowed(origin) && !is_local(origin)) {
            return Err(refused_origin(origin));
        }
        let origin = headers.get(header::ORIGIN).filter(|origin| origin.to_str().is_ok_and(is_allowed));
        Ok(origin.cloned().map_or(Granted::Client, Granted::Page))
    }

    /// True for the header `Host` of a request to this machine.
    fn is_host(&self, host: &str) -> bool {
        let Ok(at) = host.parse::<Authority>() else { return false };
        let is_allowed = self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(at.host()));
        // An address resolves to nothing else, so it is not a page's name. Someone who listens on all addresses has
        // others than the one that is bound.
        let is_bound = requests::address(at.host())
            .is_some_and(|named| self.bound.is_some_and(|bound| bound == named || bound.is_unspecified()));
        requests::is_loopback(at.host()) || is_allowed || is_bound
    }
}

/// The values of a header; one that is no text is empty, which nothing allows.
fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or_default())
}

fn refused_host(host: &str) -> String {
    let remedy = "use localhost or 127.0.0.1, or start `ripple dev` with --allow-host NAME";
    format!("the host {host:?} is not a name of this machine: {remedy}")
}

fn refused_origin(origin: &str) -> String {
    let remedy = "start `ripple dev` with --allow-origin ORIGIN if they may";
    format!("the origin {origin:?} is not of this machine, and its pages may not use this database: {remedy}")
}

/// Accepts a name that clients use for this machine.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if !text.is_empty() && text.chars().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("it must be a name without a port, such as host.docker.internal".to_owned())
    }
}

/// Accepts the origin of a page, as a browser writes it.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let is_whole = |at: Authority| text.split_once("://").is_some_and(|(_, rest)| rest == at.as_str());
    if requests::of_origin(text).is_some_and(is_whole) {
        Ok(text.to_owned())
    } else {
        Err("it must be of the form http://HOST:PORT, as a browser shows it".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Requests in which a server that listened would answer another client too.
    const REQUESTS: usize = 100;

    #[tokio::test]
    async fn the_server_of_a_connection_answers_nobody_else() {
        let database = Database::memory().unwrap();
        let front = Front { access: Access::default(), database, idle: Mutex::default() };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut link = front.connect(listener).await.unwrap();
        let mut other = TcpStream::connect(at).await.unwrap();
        other.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        for _ in 0..REQUESTS {
            link.sender.ready().await.unwrap();
            let response = link.sender.send_request(Request::new(Body::empty())).await.unwrap();
            let body = to_bytes(Body::new(response.into_body()), usize::MAX).await.unwrap();
            assert!(body.starts_with(b"healthy"), "{body:?}");
        }
        let error = other.try_read(&mut [0; 64]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    fn is_host(bound: &str, host: &str) -> bool {
        let access = Access { bound: Some(bound.parse().unwrap()), ..Access::default() };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        access.check(&headers).is_ok()
    }

    #[test]
    fn the_address_of_the_database_is_a_name_of_it_and_no_other_address_is() {
        assert!(is_host("192.168.1.7", "192.168.1.7:8000") && is_host("fe80::1", "[fe80::1]:8000"));
        assert!(!is_host("192.168.1.7", "192.168.1.8:8000") && !is_host("127.0.0.1", "192.168.1.7:8000"));
        // Whoever listens on all addresses has some that nobody named.
        assert!(is_host("0.0.0.0", "192.168.1.7:8000") && !is_host("0.0.0.0", "site.example:8000"));
    }

    #[test]
    fn a_header_that_is_no_text_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        assert_eq!(Access::default().check(&headers), Ok(Granted::Client));
        headers.append(header::ORIGIN, HeaderValue::from_bytes(b"http://localhost\xff").unwrap());
        assert_eq!(Access::default().check(&headers), Err(refused_origin("")));
    }
}
