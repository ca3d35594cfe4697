//! The console's forms that run access patterns: the declared reads, and the writes of the shipped table.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use catalogue::catalogue;
use console::{ConsoleWrites, Served, flow::Flow, step::StepGate};
use derive::write::Table;
use design::Design;
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{Store as _, memory::MemoryStore};
use support::schema::fits;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::at_work::deployment;

/// The time in the forms of these tests.
const NOON: &str = "2026-11-24T12:00:00.000Z";

/// A console over the model of the database.
struct Console {
    address: SocketAddr,
    store: Arc<MemoryStore>,
    design: Design,
}

/// The status and the body of a response.
type Answer = (u16, String);

impl Console {
    async fn start(is_writing: bool) -> Self {
        let design = table_design::design().await.unwrap();
        let schema = Arc::new(design.schema.clone());
        let catalogue = Arc::new(catalogue(&schema).unwrap());
        let store = Arc::new(MemoryStore::new(schema.layout.clone()));
        let opened = deployment(Arc::clone(&schema), Arc::clone(&catalogue), Arc::clone(&store));
        let writes = if is_writing {
            ConsoleWrites::Allowed { place: None }
        } else {
            ConsoleWrites::Refused { allowed_by: "start it with --allow-writes".to_owned() }
        };
        let functions = (Arc::new(Flow::new(&schema, &catalogue)), Arc::new(StepGate::new(&store, Vec::new())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Served { opened, design: design.clone(), writes, functions: Some(functions) };
        tokio::spawn(async move { console::serve(served, listener).await.unwrap() });
        Self { address, store, design }
    }

    async fn send(&self, request: String) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        // The parts of a key, between which a line may break, are one text.
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.replace("</span><span>", ""))
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)).await
    }

    /// The fields of a pattern's form, each with its first value.
    async fn fields(&self, at: usize) -> BTreeMap<String, String> {
        let (status, page) = self.get(&format!("/pattern/write?pattern={at}")).await;
        assert_eq!(status, 200, "{page}");
        let form = page.split("<form").find(|form| form.contains("<button>Write</button>")).unwrap();
        let part = |tag: &str, name: &str| {
            let rest = tag.split_once(&format!("{name}=\"")).unwrap().1;
            rest.split('"').next().unwrap().to_owned()
        };
        let tags = form.split("<input").skip(1);
        tags.map(|tag| (part(tag, " name"), part(tag, " value"))).collect()
    }

    /// Sends the form of a pattern with these values.
    async fn write(&self, at: usize, values: &[(&str, &str)]) -> Answer {
        let token = self.fields(at).await["token"].clone();
        let at = at.to_string();
        let fields = [("token", token.as_str()), ("pattern", at.as_str())].into_iter().chain(values.iter().copied());
        let encoded = |text: &str| text.replace('%', "%25").replace('#', "%23").replace('&', "%26").replace('+', "%2B");
        let form = fields.map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&");
        let head = format!("Host: {}\r\nContent-Length: {}\r\nConnection: close", self.address, form.len());
        self.send(format!("POST /pattern/write HTTP/1.1\r\n{head}\r\n\r\n{form}")).await
    }

    /// The position of a pattern.
    fn at(&self, title: &str) -> usize {
        self.design.patterns.iter().position(|pattern| pattern.title == title).unwrap()
    }

    async fn item(&self, key: &Key) -> Item {
        self.store.get(Table::Main, std::slice::from_ref(key)).await.unwrap().remove(0).1
    }
}

const CREATE: &str = "create a user with the claim of their email";

/// The values of a form for a new user.
fn user<'a>(id: &'a str, email: &'a str) -> [(&'a str, &'a str); 6] {
    [("UserId", id), ("email", email), ("Name", "Ann"), ("CreatedAt", NOON), ("UpdatedAt", NOON), ("Version", "1")]
}

#[tokio::test]
async fn a_pattern_that_reads_runs_when_all_its_values_are_given() {
    let console = Console::start(true).await;
    console.write(console.at(CREATE), &user("ann", "ann@example.org")).await;
    let (_, design) = console.get("/design").await;
    assert!(design.contains("/pattern?pattern=user") && design.contains("<code>USER#{UserId}</code>"), "{design}");
    let (_, asks) = console.get("/pattern?pattern=user").await;
    assert!(asks.contains("It runs when all its values are given"), "{asks}");
    let (_, ran) = console.get("/pattern?pattern=user&UserId=ann").await;
    assert!(ran.contains("1 item, 0.5 read units"), "{ran}");
    assert_eq!(console.get("/pattern?pattern=nobody").await.0, 404);
    let order = |at: i64| {
        let (placed_at, id) = (format!("2026-01-0{at}"), at.to_string());
        let order = json!({ "UserId": "ann", "PlacedAt": placed_at, "OrderId": id, "Status": "paid", "Total": at });
        console.store.put_raw(Table::Main, table_design::item("Order", order).unwrap()).unwrap();
    };
    [1, 2, 3].into_iter().for_each(order);
    let path = "/pattern?pattern=orders-of-user-by-status&UserId=ann&Status=paid";
    for (bounds, n) in [("", "3 items"), ("&low=2026-01-02", "2 items"), ("&low=2026-01-02&high=2026-01-02", "1 item,")]
    {
        let (_, ran) = console.get(&format!("{path}{bounds}")).await;
        assert!(ran.contains(n), "{bounds}: {ran}");
    }
    let (_, none) = console.get(&path.replace("Status=paid", "Status=sent")).await;
    assert!(none.contains("0 items"), "{none}");
    // The counter between an organization and its teams is left out, as by the printed function.
    for (sk, entity) in [("METADATA", "Organization"), ("METADATA#COUNT#team-count#00", "Counter")] {
        let texts = [("PK", "ORG#o"), ("SK", sk), ("EntityType", entity)];
        let text = |(name, text): (&str, &str)| (name.to_owned(), AttributeValue::S(text.to_owned()));
        console.store.put_raw(Table::Main, texts.map(text).into()).unwrap();
    }
    let (_, shown) = console.get("/pattern?pattern=organization-with-teams&OrgId=o").await;
    assert!(shown.contains("<p>1 item, "), "{shown}");
    let (_, counters) = console.get("/pattern?pattern=organization-counts&OrgId=o").await;
    assert!(counters.contains("<p>1 item, "), "{counters}");
    let (status, wrong) = console.get("/pattern?pattern=roll-ups&SensorId=s&Grain=HOUR&low=x&high=").await;
    assert!(status == 200 && wrong.contains("0 items"), "{wrong}");

    let object = async |path: &str, name: &str, status: u16| {
        let (found, body) = console.get(path).await;
        assert_eq!(found, status, "{path}: {body}");
        let schema: Value = serde_json::from_str(&console.get("/schema.json").await.1).unwrap();
        let object: Value = serde_json::from_str(&body).unwrap();
        fits(&schema, name, &object).unwrap_or_else(|why| panic!("{path}: {why}"));
        object
    };
    let pattern = object("/pattern.json?pattern=user&UserId=ann", "console_pattern", 200).await;
    assert_eq!(
        (&pattern["values"], pattern["reads"][0]["items"].as_array().map(Vec::len)),
        (&json!(["UserId"]), Some(1))
    );
    let waits = object("/pattern.json?pattern=user", "console_pattern", 200).await;
    assert_eq!(waits["reads"][0]["items"], Value::Null);
    object("/pattern.json?pattern=nobody", "console_error", 404).await;
}

#[tokio::test]
async fn a_pattern_that_writes_is_run_by_its_form() {
    let console = Console::start(true).await;
    let create = console.at(CREATE);
    let fields = console.fields(create).await;
    assert!(fields["UserId"].is_empty() && fields["CreatedAt"].ends_with('Z'), "{fields:?}");
    assert!(!fields.contains_key("GSI1PK") && !fields.contains_key("EntityType"), "{fields:?}");
    assert!(console.get(&format!("/pattern/write?pattern={create}")).await.1.contains("USER#{UserId} / PROFILE"));
    let (status, missing) = console.write(create, &user("a#", "")).await;
    assert!(status == 400 && missing.contains("Give a value for email."), "{missing}");
    assert_eq!(console.get("/pattern/write?pattern=9999").await.0, 404);
    let (_, written) = console.write(create, &user("a#b", "Ann@Example.org")).await;
    let parts = ["Written, with ", "write units.", "USER#a%23b / PROFILE", "what followed"];
    assert!(parts.iter().all(|text| written.contains(text)), "{written}");
    let (_, again) = console.write(create, &user("a#b", "ann@example.org")).await;
    assert!(again.contains("Refused: ") && again.contains("is not as this write asks"), "{again}");
    // A read finds it by the same value.
    let (_, read) = console.get("/pattern?pattern=user&UserId=a%23b").await;
    assert!(read.contains("1 item, 0.5 read units"), "{read}");

    let console = Console::start(false).await;
    let (_, form) = console.get(&format!("/pattern/write?pattern={create}")).await;
    assert!(
        form.contains("This console only reads: start it with --allow-writes") && !form.contains("token"),
        "{form}"
    );
}

#[tokio::test]
async fn an_item_is_written_under_the_keys_of_its_values() {
    let console = Console::start(true).await;
    console.write(console.at(CREATE), &user("a#b", "Ann@Example.org")).await;
    console.item(&Key::new("EMAIL#ann@example.org", "CLAIM")).await;
    let key = Key::new("USER#a%23b", "PROFILE");
    let item = console.item(&key).await;
    let text = |name: &str| keys::item::text(&item, name).unwrap();
    assert_eq!((text("GSI1SK"), text("CreatedAt"), text("EntityType")), ("USER#a%23b", NOON, "User"));
    // The number of its partition is that of its own id.
    let schema = &console.design.schema;
    let definition = schema.image(&key, &item).unwrap().definition;
    let made = definition.index_attributes(&schema.layout, &definition.fields(&key, &item).unwrap());
    assert!(made.iter().any(|(name, value)| name == "GSI2PK" && value.as_ref() == item.get("GSI2PK")), "{made:?}");
}

#[tokio::test]
async fn each_pattern_that_writes_has_a_form_that_fills_it() {
    let console = Console::start(true).await;
    let writing = || console.design.patterns.iter().enumerate().filter(|(_, pattern)| pattern.is_write());
    assert!(writing().count() > 19);
    for (at, pattern) in writing() {
        let fields = console.fields(at).await;
        let fields = fields.iter().filter(|(name, _)| !["token", "pattern"].contains(&name.as_str()));
        let filled: Vec<(&str, String)> = fields
            .map(|(name, first)| (name.as_str(), if first.is_empty() { format!("x#y {name}") } else { first.clone() }))
            .collect();
        let values: Vec<(&str, &str)> = filled.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (status, ran) = console.write(at, &values).await;
        let is_run = status == 200 && (ran.contains("Written, with ") || ran.contains("is not as this write asks"));
        assert!(is_run, "{} {}: {ran}", pattern.id, pattern.title);
    }
    console.store.view(Table::Main, |items| {
        assert!(items.len() > 5, "{items:?}");
        for (key, item) in items {
            assert!(!key.to_string().contains(['{', '}']), "{key}");
            let is_placeholder =
                |value: &AttributeValue| matches!(value, AttributeValue::S(text) if text.starts_with('{'));
            assert!(!item.values().any(is_placeholder), "{key}: {item:?}");
        }
    });
}

#[tokio::test]
async fn a_value_that_is_no_number_is_refused() {
    let console = Console::start(true).await;
    let at = console.design.patterns.iter().position(|pattern| pattern.id == "WP-02").unwrap();
    let mut fields = console.fields(at).await;
    assert_eq!((fields["Version"].as_str(), fields["Version as stored"].as_str()), ("2", "1"));
    fields.retain(|name, _| !["token", "pattern"].contains(&name.as_str()));
    fields.values_mut().filter(|value| value.is_empty()).for_each(|value| "ann".clone_into(value));
    fields.insert("Version".to_owned(), "two".to_owned());
    let values: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let (status, refused) = console.write(at, &values).await;
    assert!(status == 400 && refused.contains("Version must be a number."), "{refused}");
}
