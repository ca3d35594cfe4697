//! `ripple console`: its pages say what is stored, derived and wrong, and nobody else's page is answered.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
};

use crate::{
    NOON,
    database::{alter, client, key, n, put},
    items::{comment, follow, like, post, user},
    ripple::{Ripple, ripple},
};

/// A console that no test leaves behind.
struct Console {
    child: Child,
    /// Host and port.
    host: String,
}

/// An answer.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Console {
    fn start(endpoint: &str) -> Self {
        let mut command = ripple("console", &["--endpoint", endpoint, "--port", "0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().split("http://").nth(1).expect("it says where it is").to_owned();
        Self { child, host }
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &self.host, "")
    }

    fn send(&self, method: &str, path: &str, host: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Follows the links of a page, and those of the pages that they lead to, up to so many; all must be pages.
    fn follow(&self, n_max: usize) -> usize {
        let mut known = vec!["/".to_owned()];
        let mut at = 0;
        while let Some(path) = known.get(at).cloned().filter(|_| at < n_max) {
            let answer = self.get(&path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            for link in answer.body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let link = link.replace("&amp;", "&");
                if !known.contains(&link) {
                    known.push(link);
                }
            }
            at += 1;
        }
        at
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_show_what_is_derived_why_and_whether_it_is_right() {
    let mut service = Ripple::embedded(&["--ledger", "watermarks"]).await;
    let client = client(&service.endpoint);
    put(&client, user("ann", "<script>alert(1)</script>", NOON)).await;
    put(&client, user("b&b#", "Bob", NOON)).await;
    put(&client, follow("b&b#", "ann", NOON)).await;
    put(&client, post("ann", "p", NOON, "published", "Hello")).await;
    put(&client, comment("p", "c", NOON, "b&b#", "Well said.")).await;
    put(&client, like("b&b#", "p", NOON)).await;
    service.caught_up(&client).await;

    let console = Console::start(&service.endpoint);
    let overview = console.get("/");
    assert_eq!(overview.status, 200);
    assert!(
        overview.body.contains("comment-count") && overview.body.contains("USER#ann / PROFILE"),
        "{}",
        overview.body
    );
    assert!(overview.head.contains("content-security-policy: default-src 'none'"), "{}", overview.head);
    let item = console.get("/item?pk=USER%23ann&sk=PROFILE&changes=true");
    assert!(item.body.contains("follower-count = 1") && item.body.contains("counted up to"), "{}", item.body);
    assert!(item.body.contains("USER#b&amp;b%23 / FOLLOWS#ann"), "{}", item.body);
    assert!(!item.body.contains("<script>") && item.body.contains("&lt;script&gt;"), "{}", item.body);
    assert!(!item.body.contains("differs"), "{}", item.body);

    alter(&client, &key("USER#ann", "PROFILE#COUNT#post-count#00"), "Value", Some(n(7))).await;
    service.caught_up(&client).await;
    let item = console.get("/item?pk=USER%23ann&sk=PROFILE");
    assert!(item.body.contains("post-count = 7") && item.body.contains("differs"), "{}", item.body);

    assert!(console.follow(60) > 25);
    let nothing = console.get("/item?pk=NO&sk=FORM");
    assert!(nothing.body.contains("there is no item NO / FORM"), "{}", nothing.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_page_of_its_own_is_answered_and_only_when_it_reads() {
    let service = Ripple::embedded(&[]).await;
    let console = Console::start(&service.endpoint);
    let host = console.host.clone();
    let status = |method: &str, path: &str, host: &str, headers: &str| console.send(method, path, host, headers).status;
    assert_eq!(status("GET", "/", &host, ""), 200);
    assert_eq!(status("GET", "/", "rebound.example", ""), 403);
    assert_eq!(status("GET", "/", &host, "Origin: http://foreign.example\r\n"), 403);
    assert_eq!(status("GET", "/", &host, "Sec-Fetch-Site: cross-site\r\n"), 403);
    assert_eq!(status("POST", "/", &host, ""), 405);
    assert_eq!(status("GET", "/nothing", &host, ""), 404);
    assert_eq!(status("GET", "/item", &host, ""), 400);
    let empty = console.get("/").body;
    assert!(empty.contains("The table is empty: write something into it"), "{empty}");
    for (path, why) in [("/parked", "Nothing is parked"), ("/jobs", "No job:")] {
        assert!(console.get(path).body.contains(why), "{path}");
    }
}
