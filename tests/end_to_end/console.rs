//! The console: its pages say what is stored, derived and wrong, the flow says what follows from each change, and nobody
//! else's page is answered. In step mode the stream is held, each record is delivered as a test says, and the values come
//! right.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
    time::Duration,
};

use aws_sdk_dynamodb::Client;
use serde_json::Value;
use support::{command::Ended, schema::fits};
use tokio::time::{Instant, interval};

use crate::{
    NOON,
    database::{
        Key, alter, client, comment, delete, follow, key, like, make_unaddable, n, post, put, put_each, s, scan, user,
    },
    ripple::{Ripple, json, ripple},
};

/// How long a page may take to show what it will, on a busy machine.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Time between two looks at a page that is not as it will be.
const POLL: Duration = Duration::from_millis(50);

/// Where orders are sent to.
const ORDERS: [&str; 10] = [
    "/pattern/write",
    "/parked/redrive",
    "/verify",
    "/verify/plan",
    "/verify/repair",
    "/jobs/order",
    "/step/hold",
    "/step/deliver",
    "/step/scene/begin",
    "/step/scene/next",
];

/// A console, of `ripple dev` or of a process that no test leaves behind.
struct Console {
    child: Option<Child>,
    /// Host and port.
    host: String,
}

/// An answer.
struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Console {
    fn start(endpoint: &str) -> Self {
        Self::with(&["--endpoint", endpoint], &[])
    }

    /// `ripple console` with these options and variables, on a free port.
    fn with(options: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = ripple("console", &[options, &["--port", "0"]].concat());
        let mut child = command.envs(variables.iter().copied()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().split("http://").nth(1).expect("it says where it is").to_owned();
        Self { child: Some(child), host }
    }

    /// A page, as soon as it is like this.
    pub(crate) async fn until(&self, path: &str, is_like: impl Fn(&Answer) -> bool) -> Answer {
        let (mut looks, until) = (interval(POLL), Instant::now() + LONGEST_WAIT);
        loop {
            looks.tick().await;
            let answer = self.get(path);
            if is_like(&answer) {
                return answer;
            }
            assert!(Instant::now() < until, "{path}: {}", answer.body);
        }
    }

    /// A page, as soon as it shows all of this.
    pub(crate) async fn shows(&self, path: &str, all: &[&str]) -> String {
        self.until(path, |answer| all.iter().all(|text| answer.body.contains(text))).await.body
    }

    /// Sends the form of a button of a page: of the button that says this.
    pub(crate) fn click(&self, page: &str, button: &str) -> Answer {
        let body = self.get(page).body;
        let form = body.split("<form").find(|form| form.contains(&format!("<button>{button}</button>"))).unwrap();
        let attribute = |tag: &str, name: &str| {
            let rest = tag.split_once(&format!("{name}=\"")).unwrap().1;
            rest.split('"').next().unwrap().to_owned()
        };
        let action = attribute(form, "action");
        let hidden = form.split("type=\"hidden\"").skip(1);
        let names = hidden.map(|tag| (attribute(tag, "name"), attribute(tag, "value")));
        let encoded = |text: &str| text.replace('%', "%25").replace('#', "%23").replace('&', "%26").replace('+', "%2B");
        let fields = names.map(|(name, value)| format!("{name}={}", encoded(&value)));
        self.post(&action, &fields.collect::<Vec<_>>().join("&"))
    }

    /// Sends an order with the token of a page.
    pub(crate) fn order(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = self.get(page).body;
        let token = body.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let fields =
            [("token", token)].iter().chain(fields).map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        self.post(path, &fields.join("&"))
    }

    fn post(&self, path: &str, form: &str) -> Answer {
        let length = format!("Content-Length: {}\r\n", form.len());
        self.send_with("POST", path, &self.host, &length, form)
    }

    pub(crate) fn of(service: &Ripple) -> Self {
        Self { child: None, host: service.console.clone() }
    }

    /// Reads the changes of the flow as they come, until one is like this.
    fn event(&self, path: &str, last: Option<u64>, is_like: impl Fn(&str) -> bool) -> (u64, String) {
        let stream = TcpStream::connect(&self.host).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(&stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n{last}\r\n", self.host).unwrap();
        let (mut id, mut lines) = (0, BufReader::new(stream).lines().map_while(Result::ok));
        loop {
            let line = lines.next().expect("the stream goes on");
            if let Some(data) = line.strip_prefix("data: ") {
                let change: String = serde_json::from_str(data).unwrap();
                if is_like(&change) {
                    // The id may come behind its data.
                    let after = lines.by_ref().take_while(|line| !line.is_empty());
                    let id = after.filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).last().unwrap_or(id);
                    return (id, change);
                }
            }
            id = line.strip_prefix("id: ").map_or(id, |id| id.parse().unwrap());
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &self.host, "")
    }

    /// The JSON of an address, which has this form of the schema.
    fn object(&self, schema: &Value, path: &str, name: &str, status: u16) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.head.contains("content-type: application/json"), "{path}: {}", answer.head);
        let object = serde_json::from_str(&answer.body).unwrap();
        fits(schema, name, &object).unwrap_or_else(|why| panic!("{path}: {why}"));
        object
    }

    fn send(&self, method: &str, path: &str, host: &str, headers: &str) -> Answer {
        self.send_with(method, path, host, headers, "")
    }

    fn send_with(&self, method: &str, path: &str, host: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n{body}").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        // The parts of a key, between which a line may break, are one text.
        Answer { status, head: head.to_lowercase(), body: body.replace("</span><span>", "") }
    }

    /// Follows the links of a page, and those of the pages that they lead to, up to so many; all must be pages.
    fn follow(&self, n_max: usize) -> usize {
        let mut known = vec!["/".to_owned()];
        let mut at = 0;
        while let Some(path) = known.get(at).cloned().filter(|_| at < n_max) {
            let answer = self.get(&path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            for link in answer.body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                // A browser keeps the part behind `#` to itself.
                let link = link.split('#').next().unwrap_or_default().replace("&amp;", "&");
                if !link.is_empty() && !known.contains(&link) {
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
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
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
    assert!(
        !item.body.contains("differs") && item.body.contains("<span class=\"right\">all right</span>"),
        "{}",
        item.body
    );
    assert_eq!(
        item.body.matches("FollowerCount = ").count(),
        1,
        "a count and its display are one value: {}",
        item.body
    );
    for (text, place) in [
        ("USER%23b%26b%23+%2F+PROFILE", "/item?pk=USER%23b%26b%23&sk=PROFILE"),
        ("USER%23ann", "/collection?pk=USER%23ann"),
    ] {
        let found = console.get(&format!("/find?key={text}"));
        assert_eq!(found.status, 303, "{}", found.body);
        assert!(found.head.contains(&format!("location: {}\r", place.to_lowercase())), "{}", found.head);
    }
    assert_eq!(console.get("/find?key=a+%2F+b+%2F+c").status, 400);

    alter(&client, &key("USER#ann", "PROFILE#COUNT#post-count#00"), "Value", Some(n(7))).await;
    service.caught_up(&client).await;
    let item = console.get("/item?pk=USER%23ann&sk=PROFILE");
    assert!(item.body.contains("post-count = 7") && item.body.contains("differs"), "{}", item.body);

    assert!(console.follow(60) > 25);
    assert!(console.get("/flow").body.contains("open the address that it prints"), "no function runs in that process");
    let nothing = console.get("/item?pk=NO&sk=FORM");
    assert!(nothing.body.contains("there is no item NO / FORM"), "{}", nothing.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_page_of_its_own_is_answered() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flow_shows_each_change_as_it_comes_and_all_that_followed_from_it() {
    for ledger in ["receipts", "watermarks"] {
        let mut service = Ripple::embedded(&["--ledger", ledger]).await;
        let (client, console) = (client(&service.endpoint), Console::of(&service));
        let empty = console.get("/flow").body;
        assert!(empty.contains("Nothing yet") && !empty.contains("id=\"none\" hidden"), "{empty}");
        put(&client, user("ann", "<i>Ann</i>", NOON)).await;
        put(&client, user("bob", "Bob", NOON)).await;
        service.caught_up(&client).await;
        let before = console.get("/flow?entity=User").body;
        assert_eq!(before.matches("<article").count(), 2, "{before}");
        assert!(before.contains("&lt;i&gt;Ann&lt;/i&gt;") && !before.contains("<i>"), "{before}");

        put(&client, follow("bob", "ann", NOON)).await;
        // As it comes, and once more for a browser that lost its connection before.
        let is_counted = |change: &str| change.contains("<b>follower-count</b> +1");
        let (id, change) = console.event("/flow/events?entity=Follow&after=0", None, is_counted);
        assert!(change.contains("<strong>created</strong>") && change.contains("write units"), "{change}");
        let (again, _) = console.event("/flow/events?entity=Follow&after=999999", Some(0), is_counted);
        assert!(again >= id && id > 0, "{id} {again}");

        let flow = console.shows("/flow?derivation=follower-mirror", &["created Follower"]).await;
        assert_eq!(flow.matches("<article").count(), 1, "{flow}");
        let link = flow.split("/change?event=").nth(1).unwrap().split('"').next().unwrap();
        // The count, the mirror, and the display that follows from the counter's own record.
        let said = ["<b>follower-count</b> +1", "created Follower", "FollowerCount = 1", "FollowingCount = 1"];
        console.shows(&format!("/change?event={link}"), &said).await;
        let count = |path: &str| console.get(path).body.matches("<article").count();
        let key = "/flow?key=USER%23ann+%2F+PROFILE";
        // Its own writes come back.
        let n_articles = |answer: &Answer| answer.body.matches("<article").count();
        console.until(&format!("{key}&echoes=true"), |answer| n_articles(answer) > count(key)).await;
        assert_eq!(count("/flow?outcome=trouble"), 0);
        let overview = console.get("/").body;
        let row = overview.split("/flow?derivation=follower-mirror").last().unwrap();
        assert!(row.split("</tr>").next().unwrap().contains("<td class=\"number\">1</td>"), "{row}");
        assert_eq!(console.get("/change?event=none").status, 404);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_change_is_redriven_by_a_click_and_a_verification_says_so() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let (client, console) = (client(&service.endpoint), Console::of(&service));
    let counter = parked_follow(&mut service, &client).await;
    let found = verified(&console).await;
    assert!(found.contains("Waiting: 2"), "{found}");
    let parked = console.get("/parked").body;
    assert!(parked.contains("adds +1 to the count of USER#bob / PROFILE"), "{parked}");
    assert!(parked.contains(" is <code>many</code> of type S. It must be a number (N)."), "{parked}");
    assert!(console.get("/").body.contains("1 parked change"));
    let trouble = console.shows("/flow?outcome=trouble&key=FOLLOWS%23", &["aggregate: parked: "]).await;
    assert_eq!(trouble.matches("<article").count(), 1, "{trouble}");
    let try_one = parked.split("href=\"/parked/try?id=").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let try_one = format!("/parked/try?id={try_one}");
    assert!(console.get(&try_one).body.contains("It would stay parked: "), "{}", console.get(&try_one).body);
    let still = console.click(&try_one, "Redrive");
    assert!(still.status == 200 && still.body.contains("still parked: "), "{}", still.body);

    delete(&client, &counter).await;
    for (form, status) in [("", 400), ("token=wrong", 403), ("token=", 403)] {
        for path in ORDERS {
            let form = format!("{form}&id=x&order=cancel&hold=true&function=aggregate&way=once&scene=killed&done=0");
            assert_eq!(console.post(path, &form).status, status, "{path} {form}");
        }
    }
    let would = console.get("/parked/try").body;
    assert!(would.contains("It would be applied") && would.contains("+1"), "{would}");
    let parked = console.get("/parked").body;
    assert!(parked.contains("What a redrive would do"), "neither a wrong token nor a dry run redrives");
    let applied = console.click("/parked/try", "Redrive all");
    assert!(applied.body.contains("additive: applied"), "{}", applied.body);
    assert!(console.get("/parked").body.contains("Nothing is parked"));
    service.caught_up(&client).await;
    assert!(console.get("/").body.contains("Nothing is parked, unreadable or to be repaired."));
    assert!(verified(&console).await.contains("Every derived value is right"));

    alter(&client, &counter, "Value", Some(n(9))).await;
    service.caught_up(&client).await;
    let found = verified(&console).await;
    assert!(found.contains("Wrong: 1") && found.contains("Value = 9") && found.contains("Value = 1"), "{found}");
    let unplanned = console.order("/verify", "/verify/repair", &[]);
    assert!(unplanned.status == 409 && unplanned.body.contains("A repair is planned first"), "{}", unplanned.body);
    let plan = worked(&console, "Plan a repair").await;
    assert!(plan.contains("1 would be repaired") && plan.contains("would change the count by -8"), "{plan}");
    assert!(verified(&console).await.contains("Wrong: 1"), "a plan repairs nothing");
    worked(&console, "Plan a repair").await;
    assert!(worked(&console, "Repair").await.contains("1 repaired, 0 were right already"));
    assert!(verified(&console).await.contains("Every derived value is right"));

    let mut unreadable = user("eve", "Eve", NOON);
    unreadable.insert("PK".to_owned(), s("USER#a%b"));
    put(&client, unreadable).await;
    service.caught_up(&client).await;
    let found = verified(&console).await;
    assert!(found.contains("Nothing differs, but nothing is derived of 1 unreadable item."), "{found}");
    assert!(!found.contains("Every derived value is right"), "{found}");
    let parked = console.get("/parked").body;
    let listed = parked.split("id=\"unreadable\"").nth(1).unwrap_or_default();
    assert!(listed.contains("href=\"/item?pk=USER%23a%25b&amp;sk=PROFILE\""), "{parked}");
}

/// A follow of Bob's is parked, since his counter cannot be read. Gives the counter.
async fn parked_follow(service: &mut Ripple, client: &Client) -> Key {
    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    make_unaddable(client, &counter).await;
    put_each(client, [user("ada", "Ada", NOON), user("bob", "Bob", NOON), follow("bob", "ada", NOON)]).await;
    service.line(|line| line.contains(" parked,")).await;
    counter
}

/// Verifies from the page, and gives the page when it has ended.
async fn verified(console: &Console) -> String {
    worked(console, "Verify").await
}

/// Clicks a button of the page of verifications, and gives the page when the work has ended.
async fn worked(console: &Console, button: &str) -> String {
    let begun = console.click("/verify", button);
    assert_eq!(begun.status, 303, "{}", begun.body);
    let ended = console.until("/verify", |answer| {
        let is_running = answer.body.contains("<progress");
        assert_eq!(answer.head.contains("refresh: 1"), is_running, "{}", answer.head);
        !is_running
    });
    ended.await.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_paused_resumed_and_cancelled_by_a_click() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let (client, console) = (client(&service.endpoint), Console::of(&service));
    // A parked follow holds the cascade of who it is of.
    parked_follow(&mut service, &client).await;
    delete(&client, &key("USER#bob", "PROFILE")).await;
    console.shows("/jobs", &["user-cascade"]).await;
    let ordered = console.click("/jobs", "pause");
    assert_eq!(ordered.status, 303, "{}", ordered.body);
    let jobs = console.get("/jobs").body;
    assert!(jobs.contains("<td>paused</td>"), "{jobs}");
    let schema = serde_json::from_str(&console.get("/schema.json").body).unwrap();
    let printed = json("jobs", &service.endpoint, &[]).1;
    assert_eq!(printed["jobs"][0]["state"], "paused", "{printed}");
    assert_eq!(console.object(&schema, "/jobs.json", "jobs", 200), printed);
    let id = printed["jobs"][0]["id"].as_str().unwrap().replace('#', "%23");

    // What is resumed goes on at once, and may have ended.
    assert_eq!(console.click("/jobs", "resume").status, 303);
    assert!(!console.get("/jobs").body.contains("<td>paused</td>"));
    assert_eq!(console.order("/verify", "/jobs/order", &[("id", &id), ("order", "cancel")]).status, 303);
    console.shows("/jobs", &["No job"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_and_costs_say_their_units() {
    let mut service = Ripple::embedded(&["--ledger", "watermarks"]).await;
    let (client, console) = (client(&service.endpoint), Console::of(&service));
    assert!(console.get("/cost").body.contains("Nothing was written yet"));
    put_each(&client, [user("ann", "Ann", NOON), user("bob", "Bob", NOON), follow("bob", "ann", NOON)]).await;
    service.caught_up(&client).await;

    let all = console.get("/collection?pk=USER%23bob").body;
    assert!(all.contains("3 items, 1 read unit: one for each 4 KB") && all.contains("&quot;S&quot;"), "{all}");
    let one = console.get("/collection?pk=USER%23bob&sort=begins&sk=FOLLOWS&eventual=true&limit=5").body;
    assert!(one.contains("1 item, 0.5 read units"), "{one}");
    for (path, why) in [
        ("?pk=x&index=none", "There is no index none"),
        ("?pk=x&sort=begins", "Give the sort key"),
        ("?pk=x&sort=between&sk=b&to=a", "must not be smaller than the first"),
        ("?pk=x&sort=like&sk=b", "There is no condition like"),
        ("?pk=x&limit=0", "A page has 1 to 1000 items"),
    ] {
        let refused = console.get(&format!("/collection{path}"));
        assert!(refused.status == 400 && refused.body.contains(why), "{path}: {}", refused.body);
    }
    assert!(console.get("/collection").body.contains("Give a partition key"));

    let design = console.get("/design").body;
    assert!(design.contains("/pattern?pattern=comments-of-post"), "{design}");
    assert!(design.contains("<code>USER#{UserId}</code>"), "{design}");
    assert_eq!(console.get("/pattern?pattern=unknown").status, 404);

    // A follow: two counts, a mirror and a name; by hand each is one write of one unit. Ripple shows the counts too, and
    // notes the stream's shard once.
    let cost = console.shows("/cost", &["7 write units", "4 write units", "would cost"]).await;
    assert!(cost.contains("follower-mirror"), "{cost}");
    let overview = console.get("/").body;
    let row = overview.split("/flow?derivation=follower-count\"").last().unwrap().split("</tr>").next().unwrap();
    assert!(row.contains("<td class=\"number\">0.02</td>"), "one change a minute: {row}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_page_as_json_is_what_its_command_prints_and_fits_the_schema() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let (client, console) = (client(&service.endpoint), Console::of(&service));
    parked_follow(&mut service, &client).await;
    assert!(console.get("/jobs").body.contains("href=\"/jobs.json\""));
    let schema: Value = serde_json::from_str(&console.get("/schema.json").body).unwrap();
    let printed = json("parked", &service.endpoint, &[]).1;
    assert_eq!(console.object(&schema, "/parked.json", "parked", 200), printed);

    for (path, name) in [("/verify.json", "verify"), ("/repair.json", "repair")] {
        let none = console.object(&schema, path, "console_error", 404);
        assert!(none["error"].as_str().unwrap().contains("on the page Verify"), "{name}: {none}");
    }
    verified(&console).await;
    assert!(!console.object(&schema, "/verify.json", "verify", 200)["waiting"].as_array().unwrap().is_empty());
    put(&client, post("ada", "p", NOON, "published", "Hello")).await;
    service.caught_up(&client).await;
    alter(&client, &key("USER#ada", "PROFILE#COUNT#post-count#00"), "Value", Some(n(7))).await;
    service.caught_up(&client).await;
    verified(&console).await;
    worked(&console, "Plan a repair").await;
    let planned = console.object(&schema, "/repair.json", "repair", 200);
    assert!(planned["would"].as_u64() > Some(0) && planned["repairs"][0]["outcome"] == "would", "{planned}");

    let item = "/item.json?pk=USER%23ada&sk=PROFILE&changes=true";
    let printed = json("why", &service.endpoint, &["USER#ada / PROFILE"]).1;
    assert_eq!(console.object(&schema, item, "why", 200)["values"], printed["values"]);
    console.object(&schema, "/item.json?pk=NO&sk=FORM", "console_error", 404);
    let lacking = console.object(&schema, "/item.json?pk=NO", "console_error", 400);
    assert!(lacking["error"].as_str().unwrap().contains("missing field `sk`"), "{lacking}");
    console.object(&schema, "/none.json", "console_error", 404);
    let found = console.object(&schema, "/collection.json?pk=USER%23ada", "console_query", 200);
    assert!(found["items"].as_array().unwrap().len() > 1, "{found}");
    let refused = console.object(&schema, "/collection.json?pk=x&index=none", "console_error", 400);
    assert_eq!(refused["error"], "There is no index none.");
    console.object(&schema, "/cost.json", "console_cost", 200);
    let trouble = console.object(&schema, "/flow.json?outcome=trouble&key=FOLLOWS%23", "console_flow", 200);
    let deliveries = trouble["changes"][0]["deliveries"].as_array().unwrap();
    assert!(deliveries.iter().any(|it| it["trouble"]["outcome"] == "parked"), "{trouble}");
    let elsewhere = Console::start(&service.endpoint);
    elsewhere.object(&schema, "/flow.json", "console_error", 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_of_another_process_only_reads_unless_writes_are_allowed() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let client = client(&service.endpoint);
    let counter = parked_follow(&mut service, &client).await;
    let reads = Console::start(&service.endpoint);
    for path in ORDERS {
        let refused = reads.post(path, "token=any");
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
        let why = "This console only reads, so it carries out no order: start it with --allow-writes.";
        assert!(refused.body.contains(why), "{path}: {}", refused.body);
    }
    let page = reads.get("/verify").body;
    assert!(page.contains("or start it with --allow-writes.") && !page.contains("<button>Verify"), "{page}");
    assert!(!reads.get("/parked/try").body.contains("name=\"token\""));

    let writes = Console::with(&["--endpoint", &service.endpoint, "--allow-writes"], &[]);
    assert_eq!(writes.post("/parked/redrive", "token=any").status, 403);
    assert!(verified(&writes).await.contains("Waiting: 2"));
    delete(&client, &counter).await;
    let applied = writes.click("/parked/try", "Redrive all");
    assert!(applied.body.contains("additive: applied"), "{}", applied.body);
    service.caught_up(&client).await;
    alter(&client, &counter, "Value", Some(n(9))).await;
    service.caught_up(&client).await;
    verified(&writes).await;
    worked(&writes, "Plan a repair").await;
    assert!(worked(&writes, "Repair").await.contains("1 repaired"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_on_aws_name_the_place_and_want_a_confirmation() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let client = client(&service.endpoint);
    let counter = parked_follow(&mut service, &client).await;
    // An emulator in the standard AWS environment stands for the real AWS.
    let aws =
        [("AWS_ENDPOINT_URL", service.endpoint.as_str()), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
    let options = ["--aws", "--region", "us-east-1"];
    let mut unconfirmed = ripple("console", &[&options[..], &["--allow-writes"]].concat());
    let unconfirmed = Ended::of(unconfirmed.envs(aws));
    assert_eq!(unconfirmed.code, Some(2), "{unconfirmed:?}");
    let place = "table ripple, ledger's table ripple-ledger";
    for said in [
        place,
        "account 0",
        ", region ",
        "this writes to the tables named above, on the real AWS: give --yes to confirm",
    ] {
        assert!(unconfirmed.stderr.contains(said), "{}", unconfirmed.stderr);
    }
    let reads = Console::with(&options, &aws);
    let refused = reads.post("/jobs/order", "token=any&id=x&order=cancel");
    assert!(refused.status == 403 && refused.body.contains("start it with --allow-writes --yes."), "{}", refused.body);

    let writes = Console::with(&[&options[..], &["--allow-writes", "--yes"]].concat(), &aws);
    let page = writes.get("/parked/try").body;
    assert!(page.contains(" writes in account 0") && page.contains("table ripple,"), "{page}");
    delete(&client, &counter).await;
    let applied = writes.click("/parked/try", "Redrive all");
    assert!(applied.body.contains("additive: applied"), "{}", applied.body);
}

// ---- Step mode ----

/// Every scene, for the shipped table under either ledger, ends with the value right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scene_ends_with_the_value_right() {
    for ledger in ["receipts", "watermarks"] {
        let mut service = Ripple::embedded(&["--ledger", ledger]).await;
        let (client, console) = (client(&service.endpoint), Console::of(&service));
        service.caught_up(&client).await;
        let page = console.get("/step").body;
        let scenes: Vec<&str> =
            page.split("name=\"scene\" value=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
        assert_eq!(scenes.len(), 9, "{page}");
        for scene in scenes {
            let ended = played(&console, scene);
            let states: Vec<&str> = ended.split("<dt>so it is</dt>").skip(1).collect();
            assert!(states.last().unwrap().contains("class=\"right\""), "{ledger} {scene}: {ended}");
            // A scene that shows nothing wrong, or nothing that comes again, would show nothing.
            let shows = match scene {
                "repeated" | "at-once" => "It is counted already",
                "killed" => "The invocation was killed before it could answer",
                "old-record" => "as it should be, so nothing is written there",
                "parked" => "It cannot be applied, so it is parked",
                "counter" => "1 repaired, 0 left to an operator",
                _ => "restored",
            };
            assert!(ended.contains(shows), "{ledger} {scene}: {ended}");
        }
    }
}

/// The items of a scene are made of a manifest's declarations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scene_fits_the_table_of_a_manifest_or_says_why_not() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");
    let service = Ripple::embedded(&["--config", manifest]).await;
    let console = Console::of(&service);
    for scene in ["repeated", "old-record", "deleted", "counter"] {
        let ended = played(&console, scene);
        assert!(ended.contains("The scene has ended, and the value is <span class=\"right\">"), "{scene}: {ended}");
    }
    // It counts, and copies nothing.
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/02-review-average/ripple.toml");
    let service = Ripple::embedded(&["--config", manifest]).await;
    let console = Console::of(&service);
    let refused = console.order("/step", "/step/scene/begin", &[("scene", "old-record")]);
    assert!(refused.status == 400 && refused.body.contains("copies nothing"), "{}", refused.body);
}

/// Plays a scene to its end, and gives its page.
fn played(console: &Console, scene: &str) -> String {
    let begun = console.order("/step", "/step/scene/begin", &[("scene", scene)]);
    assert_eq!(begun.status, 303, "{scene}: {}", begun.body);
    loop {
        let page = console.get("/step/scene").body;
        if !page.contains(">Do it</button>") {
            return page;
        }
        let next = console.click("/step/scene", "Do it");
        assert_eq!(next.status, 303, "{scene}: {}", next.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_record_is_delivered_again_twice_at_once_and_to_an_invocation_that_is_killed() {
    for ledger in ["receipts", "watermarks"] {
        let mut service = Ripple::embedded(&["--ledger", ledger]).await;
        let (client, console) = (client(&service.endpoint), Console::of(&service));
        put_each(&client, [user("ann", "Ann", NOON), user("bob", "Bob", NOON)]).await;
        service.caught_up(&client).await;
        assert_eq!(console.click("/step", "Pause the stream").status, 303);
        put(&client, follow("bob", "ann", NOON)).await;
        let stored = console.shows("/step", &["FOLLOWS#ann", "<h3>aggregate</h3>"]).await;
        assert!(stored.contains("The stream is paused."), "{stored}");
        assert_eq!(followers(&client).await, None, "nothing is delivered by itself");

        let aggregate = [("function", "aggregate")];
        let deliver = |fields: &[(&str, &str)]| {
            let ordered = console.order("/step", "/step/deliver", &[&aggregate[..], fields].concat());
            assert_eq!(ordered.status, 303, "{}", ordered.body);
            console.get("/step").body
        };
        console.until("/step", |answer| answer.body.matches("<b>Next: </b>").count() == 2).await;
        let killed = deliver(&[("way", "killed"), ("writes", "1")]);
        assert!(
            killed.contains("The invocation was killed") && killed.contains("Lambda delivers it again"),
            "{killed}"
        );
        let flow = console.get("/flow?outcome=killed").body;
        assert!(flow.contains("killed after ") && flow.contains("; Lambda delivers the record again"), "{flow}");
        let event = flow.split("/change?event=").nth(1).and_then(|it| it.split('"').next()).unwrap().to_owned();
        let twice = deliver(&[("way", "at-once")]);
        // Each of the two counts may be written by either invocation.
        assert!(twice.contains("again, twice at once"), "{twice}");
        let number = twice.split("name=\"again\" value=\"").nth(1).and_then(|it| it.split('"').next()).unwrap();
        let again = deliver(&[("way", "once"), ("again", number)]);
        assert!(again.contains("It is counted already"), "{again}");
        let followed = console.get(&format!("/change?event={event}")).body;
        assert!(followed.contains(" was killed after "), "{followed}");
        let object = console.get("/flow.json?outcome=killed").body;
        assert!(object.contains("\"outcome\":\"killed\""), "{object}");

        assert_eq!(console.click("/step", "Resume the stream").status, 303);
        service.caught_up(&client).await;
        assert_eq!(followers(&client).await.as_deref(), Some("1"), "{ledger}");
        for (fields, why) in [
            (&[("function", "none"), ("way", "once")][..], "There is no function none"),
            (&[("function", "aggregate"), ("way", "thrice")], "A record is delivered"),
            (&[("function", "aggregate"), ("way", "killed"), ("writes", "9")], "after 1 to 5 writes"),
        ] {
            let refused = console.order("/step", "/step/deliver", fields);
            assert!(refused.status == 400 && refused.body.contains(why), "{}", refused.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_whose_stream_is_held_stops_and_loses_nothing() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let mut service = Ripple::embedded(&["--data", folder]).await;
    let (before, console) = (client(&service.endpoint), Console::of(&service));
    put_each(&before, [user("ann", "Ann", NOON), user("bob", "Bob", NOON)]).await;
    service.caught_up(&before).await;
    assert_eq!(console.click("/step", "Pause the stream").status, 303);
    put(&before, follow("bob", "ann", NOON)).await;
    console.shows("/step", &["FOLLOWS#ann"]).await;
    assert!(service.stop().success());
    let mut service = Ripple::embedded(&["--data", folder]).await;
    let client = client(&service.endpoint);
    service.caught_up(&client).await;
    assert_eq!(followers(&client).await.as_deref(), Some("1"));
}

/// The count on Ann's profile.
async fn followers(client: &Client) -> Option<String> {
    let items = scan(client, crate::TABLE).await;
    let profile = items.get(&key("USER#ann", "PROFILE"))?;
    profile.get("FollowerCount").and_then(|count| count.as_n().ok().cloned())
}
