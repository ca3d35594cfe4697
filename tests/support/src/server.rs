//! Servers on the loopback address, with minimal HTTP.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// Answers each connection in a thread of its own, until the process ends. Returns host and port.
///
/// # Panics
///
/// If no port is free.
pub fn serve(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let (answer, connection) = (Arc::clone(&answer), connection.unwrap());
            thread::spawn(move || answer(connection));
        }
    });
    address
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// Its first line and its headers.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Request {
    /// Reads the request of a connection; `None` if it ends before.
    #[must_use]
    pub fn read(connection: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(connection);
        let mut request = Self { head: String::new(), body: Vec::new() };
        while !request.head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut request.head).ok()? == 0 {
                return None;
            }
        }
        request.body = vec![0; request.header("content-length").map_or(0, |length| length.parse().unwrap_or_default())];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The request as one after which its connection is closed.
    #[must_use]
    pub fn closing(&self) -> Vec<u8> {
        [self.head.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes(), &self.body].concat()
    }
}
