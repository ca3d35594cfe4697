//! The HTTP server before the embedded DynamoDB, which decides which requests reach it.
//!
//! The database's own server answers every name and permits every web page, and it has no setting against that. So
//! this server has the address that clients know, and passes on the requests that [`Access`] allows.
//!
//! *Why nobody else reaches the database's server*: it can only listen on a port, and a page could find that port. So
//! each connection to it has a listener of its own, and the listener's task runs until this process is connected and
//! never again. The connection is a task of its own; another client would wait for one without end.

use std::{
    io,
    net::Ipv4Addr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, Version, header},
    response::{IntoResponse as _, Response},
};
use dynoxide::{Database, server::serve_on};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::access::{Access, Granted};

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
    /// Keeps the connection's listener, and is not polled: see the module.
    _listening: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Serves the database to those that have access, until `stopped`.
pub(super) async fn serve(
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
}
