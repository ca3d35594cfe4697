//! An HTTP server on the loopback interface that gives a fixed list of answers, one per connection.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Loopback {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

/// An HTTP answer. The server closes the connection if the text is empty instead.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

impl Loopback {
    /// Serves the answers, then stops listening.
    pub(crate) async fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        if answers.is_empty() {
            drop(listener);
        } else {
            tokio::spawn(serve(listener, answers, Arc::clone(&requests)));
        }
        Self { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, answers: Vec<String>, requests: Arc<Mutex<Vec<String>>>) {
    for answer in answers {
        let (mut connection, _) = listener.accept().await.unwrap();
        let request = request(&mut connection).await;
        requests.lock().unwrap().push(request);
        connection.write_all(answer.as_bytes()).await.unwrap();
        connection.shutdown().await.unwrap();
    }
}

async fn request(connection: &mut TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let n = connection.read(&mut chunk).await.unwrap();
        text.extend_from_slice(&chunk[..n]);
        let read = String::from_utf8(text.clone()).unwrap();
        let Some((head, body)) = read.split_once("\r\n\r\n") else {
            assert!(n > 0, "the connection closed inside of the request");
            continue;
        };
        let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return read;
        }
    }
}
