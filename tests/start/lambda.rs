//! A server on the loopback address with minimal HTTP, and Lambda's runtime API on it.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    process::Command,
    sync::mpsc,
    thread,
};

/// A request: its first line and headers, and its body if it is text.
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A server that answers each request with a status and a body, until the process ends.
pub(crate) struct Server {
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(Request) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some(request) = read(&mut BufReader::new(&connection)) else { continue };
                let (status, body) = answer(request);
                let head =
                    format!("HTTP/1.1 {status} status\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
                // The client may have disconnected.
                drop(connection.write_all(format!("{head}{INVOCATION}\r\n{body}").as_bytes()));
            }
        });
        Self { url }
    }
}

/// The headers of an invocation.
const INVOCATION: &str = "Lambda-Runtime-Aws-Request-Id: request-1\r\nLambda-Runtime-Deadline-Ms: 4102444800000\r\n\
                          Lambda-Runtime-Invoked-Function-Arn: arn\r\n";

pub(crate) fn read(connection: &mut impl std::io::BufRead) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if connection.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
    });
    let mut body = Vec::new();
    connection.take(length.unwrap_or(0)).read_to_end(&mut body).ok()?;
    Some(Request { head, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Invokes a function once, as Lambda does, and stops it: returns its response and its log.
pub(crate) fn invoked(mut function: Command, event: String) -> (String, Vec<String>) {
    let (sender, answers) = mpsc::channel();
    let (again, asked_again) = mpsc::channel::<()>();
    let asked_again = std::sync::Mutex::new(asked_again);
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let api = Server::start(move |request| {
        if request.head.starts_with("GET ") {
            if is_first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                return (200, event.clone());
            }
            // There is no further invocation: this request waits until the function is stopped.
            let _ended = asked_again.lock().unwrap().recv();
        }
        drop(sender.send(request.body));
        (202, String::new())
    });
    function.env("AWS_LAMBDA_RUNTIME_API", api.url.trim_start_matches("http://"));
    function.env("AWS_LAMBDA_FUNCTION_NAME", "aggregate").env("AWS_LAMBDA_FUNCTION_VERSION", "1");
    function.env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512");
    let mut child = function.spawn().expect("the function starts");
    let (log, line) = (child.stderr.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let lines = thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    let metrics = thread::spawn(move || BufReader::new(line).lines().map_while(Result::ok).collect::<Vec<_>>());
    let answer = answers.recv().expect("the function answers");
    child.kill().expect("it waits for the next invocation");
    child.wait().expect("it ran");
    drop(again);
    let mut log = lines.join().expect("the log is read");
    log.extend(metrics.join().expect("the log is read"));
    (answer, log)
}
