//! Which web pages and names the embedded database of `ripple dev` answers.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use serde_json::{Value, json};
use support::database::client;
use tokio::runtime::Runtime;

use super::{input::Dev, ripple};

/// Origin of a page that is not of this machine.
const FOREIGN: &str = "http://foreign.example";

/// A response.
#[derive(Debug)]
struct Response {
    status: u16,
    /// In lower case.
    head: String,
    body: String,
}

impl Response {
    /// Checks that a request was refused for this reason, in the shape of DynamoDB's errors, and without a permission.
    fn is_refused(&self, reason: &str) {
        assert_eq!(self.status, 403, "{self:?}");
        let body: Value = serde_json::from_str(&self.body).unwrap();
        let name = "com.amazon.coral.service#AccessDeniedException";
        assert_eq!(body, json!({ "__type": name, "message": reason }), "{self:?}");
        assert!(self.head.contains("content-type: application/x-amz-json-1.0\r\n"), "{self:?}");
        self.permits_nobody();
    }

    fn permits_nobody(&self) {
        assert!(!self.head.contains("access-control-"), "{self:?}");
    }
}

/// Sends a request with these headers, and reads the response.
fn sent(dev: &Dev, method: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut stream = TcpStream::connect(dev.endpoint.strip_prefix("http://").unwrap()).unwrap();
    let mut request = format!("{method} / HTTP/1.1\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        request.extend([*name, ": ", *value, "\r\n"]);
    }
    request.extend(["\r\n", body]);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: format!("{}\r\n", head.to_lowercase()), body: body.to_owned() }
}

/// Calls an operation, with these headers beside those of every client.
fn called(dev: &Dev, operation: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let target = format!("DynamoDB_20120810.{operation}");
    let signed =
        "AWS4-HMAC-SHA256 Credential=a/20261128/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0";
    let always = [
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", &*target),
        ("x-amz-date", "20261128T000000Z"),
        ("authorization", signed),
    ];
    sent(dev, "POST", &[headers, &always].concat(), body)
}

/// Asks as a browser does before it sends a page's request.
fn asked(dev: &Dev, host: &str, origin: &str) -> Response {
    let asks = [
        ("host", host),
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "x-amz-target"),
    ];
    sent(dev, "OPTIONS", &asks, "")
}

/// The request that deletes [`user`]'s item.
const DELETE: &str = r#"{"TableName":"ripple","Key":{"PK":{"S":"USER#ada"},"SK":{"S":"PROFILE"}}}"#;

const SCAN: &str = r#"{"TableName":"ripple"}"#;

async fn user(client: &Client) {
    let put = client.put_item().table_name("ripple").item("PK", AttributeValue::S("USER#ada".to_owned()));
    let put = put.item("SK", AttributeValue::S("PROFILE".to_owned()));
    put.item("EntityType", AttributeValue::S("User".to_owned())).send().await.unwrap();
}

async fn has_user(client: &Client) -> bool {
    let get = client.get_item().table_name("ripple").key("PK", AttributeValue::S("USER#ada".to_owned()));
    get.key("SK", AttributeValue::S("PROFILE".to_owned())).send().await.unwrap().item.is_some()
}

#[test]
fn a_page_of_another_site_neither_reads_nor_deletes() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    runtime.block_on(user(&client));
    let host = dev.endpoint.strip_prefix("http://").unwrap();
    let origin = "is not of this machine, and its pages may not use this database: start `ripple dev` with --allow-origin ORIGIN if they may";
    for foreign in [FOREIGN, "https://localhost.foreign.example", "null", "http://192.168.1.7:3000", "localhost"] {
        let why = format!("the origin \"{foreign}\" {origin}");
        for (operation, body) in [("Scan", SCAN), ("DeleteItem", DELETE)] {
            called(&dev, operation, &[("host", host), ("origin", foreign)], body).is_refused(&why);
        }
        asked(&dev, host, foreign).is_refused(&why);
    }
    // A name of the page's own site that resolves to this machine: the browser sends no origin with it.
    let name =
        "is not a name of this machine: use localhost or 127.0.0.1, or start `ripple dev` with --allow-host NAME";
    for rebound in ["foreign.example", "foreign.example:8000", "localhost.foreign.example", "192.168.1.7:8000"] {
        let why = format!("the host \"{rebound}\" {name}");
        for (operation, body) in [("Scan", SCAN), ("DeleteItem", DELETE)] {
            called(&dev, operation, &[("host", rebound)], body).is_refused(&why);
        }
    }
    called(&dev, "Scan", &[("host", host), ("host", "foreign.example")], SCAN)
        .is_refused(&format!("the host \"foreign.example\" {name}"));
    called(&dev, "Scan", &[], SCAN).is_refused(&format!("the host \"\" {name}"));
    assert!(runtime.block_on(has_user(&client)));
}

#[test]
fn names_of_this_machine_are_answered_and_permit_no_page() {
    let dev = Dev::start(&[]);
    for host in ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "ripple.localhost:8000"] {
        let response = called(&dev, "Scan", &[("host", host)], SCAN);
        assert!(response.status == 200 && response.body.contains("\"Count\":0"), "{response:?}");
    }
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:3000"] {
        let response = called(&dev, "Scan", &[("host", "localhost:8000"), ("origin", origin)], SCAN);
        assert_eq!(response.status, 200, "{response:?}");
        response.permits_nobody();
        // So the browser does not send what the page wants to send.
        let response = asked(&dev, "localhost:8000", origin);
        assert_eq!(response.status, 404, "{response:?}");
        response.permits_nobody();
    }
}

#[test]
fn an_allowed_origin_and_an_allowed_host_are_answered_and_no_other() {
    let allowed = "http://app.example:3000";
    let dev =
        Dev::start(&["--allow-origin", allowed, "--allow-host", "Ripple", "--allow-host", "host.docker.internal"]);
    for host in ["ripple:8000", "host.docker.internal", "localhost:8000"] {
        let response = called(&dev, "Scan", &[("host", host), ("origin", allowed)], SCAN);
        assert_eq!(response.status, 200, "{response:?}");
        assert!(response.head.contains(&format!("access-control-allow-origin: {allowed}\r\n")), "{response:?}");
        assert!(response.head.contains("vary: origin\r\n"), "{response:?}");
    }
    let response = asked(&dev, "localhost:8000", allowed);
    assert_eq!(response.status, 200, "{response:?}");
    for header in [&*format!("origin: {allowed}"), "methods: post", "headers: x-amz-target"] {
        assert!(response.head.contains(&format!("access-control-allow-{header}\r\n")), "{response:?}");
    }
    for other in ["http://app.example", "https://app.example:3000", FOREIGN] {
        assert_eq!(asked(&dev, "localhost:8000", other).status, 403, "{other}");
    }
    assert_eq!(called(&dev, "Scan", &[("host", "other:8000")], SCAN).status, 403);
}

#[test]
fn each_address_of_a_database_on_all_of_them_is_answered() {
    // Whoever listens on every address knows none of them; a name that is an address cannot resolve to another one.
    let dev = Dev::start(&["--host", "0.0.0.0"]);
    for host in ["192.168.1.7:8000", "[fe80::1]:8000"] {
        assert_eq!(called(&dev, "Scan", &[("host", host)], SCAN).status, 200, "{host}");
        assert_eq!(called(&dev, "Scan", &[("host", host), ("origin", FOREIGN)], SCAN).status, 403, "{host}");
    }
    assert_eq!(called(&dev, "Scan", &[("host", "foreign.example:8000")], SCAN).status, 403);
}

#[test]
fn what_cannot_be_allowed_is_a_usage_error() {
    let name = "it must be a name without a port, such as host.docker.internal";
    for wrong in ["", "ripple:8000", "http://ripple", "*"] {
        refused("--allow-host", wrong, name);
    }
    let origin = "it must be of the form http://HOST:PORT, as a browser shows it";
    for wrong in ["*", "null", "localhost:3000", "http://localhost:3000/", "http://localhost:3000/page"] {
        refused("--allow-origin", wrong, origin);
    }
    for own in [["--allow-host", "ripple"], ["--allow-origin", "http://ripple"]] {
        let both = ripple(&[&["dev", "--endpoint", "http://127.0.0.1:1"], &own[..]].concat());
        let says = format!("cannot be used with '{} ", own[0]);
        assert!(both.code == Some(2) && both.stderr.contains(&says), "{both:?}");
    }
}

fn refused(option: &str, value: &str, why: &str) {
    let ended = ripple(&["dev", option, value]);
    assert!(ended.code == Some(2) && ended.stderr.contains(why), "{option} {value}: {ended:?}");
}
