//! `--scenario story`: a rename and likes with real items, while functions are killed and batches are delivered again.
//!
//! Beside the counting function, a handler as people write it by hand gets the same deliveries, and ends in the same
//! way: it adds 1 to a number for each like.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use anyhow::Context as _;
use aws_sdk_dynamodb::{Client, types::AttributeValue as SdkValue};
use derive::{family::Family, schema::Schema, write::Table};
use functions::handler::Function;
use futures::future::BoxFuture;
use keys::{
    item::{Item, text as text_of},
    key::Key,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_dynamo::AttributeValue;
use serde_json::Value;
use store::Store as _;

use crate::{
    commands::demo::{
        Running,
        famous::one,
        workload::{AppAction, Items, key, text},
        write,
    },
    service::{Fate, Faults},
};

/// Comments of the user who is renamed.
const COMMENTS: usize = 12;

const POSTS: [&str; 2] = ["p1", "p2"];

/// The posts of five likes in a row.
const TURN: [&str; 5] = ["p1", "p2", "p1", "p2", "p1"];

const LIKES: usize = 200;

/// Likes a second, so that they arrive in several batches.
const LIKES_A_SECOND: u32 = 100;

const USER: &str = "ada";

/// Prefix of the sort key of a like.
const LIKE: &str = "LIKE#POST#";

/// What the scenario found.
#[derive(Debug)]
pub(super) struct StoryReport {
    /// A comment before and after the rename.
    comment: Key,
    names: [String; 2],
    /// Comments with the new name.
    n_renamed: usize,
    renamed_ms: u128,
    counts: Vec<LikeCounts>,
    /// Invocations of both functions, by how they ended.
    fates: BTreeMap<&'static str, usize>,
}

/// The likes of a post.
#[derive(Debug)]
struct LikeCounts {
    /// The item that displays their number.
    detail: Key,
    n_likes: usize,
    displayed: String,
    /// What the handler by hand counted.
    by_hand: String,
}

pub(super) async fn run(running: &mut Running<'_>) -> anyhow::Result<StoryReport> {
    let faults = running.faults.clone().context("the story has faults")?;
    let mut items = Items::new((*running.schema).clone());
    let (setting, comments) = setting(&mut items)?;
    running.set(setting).await?;
    faults.begin();

    let comment = comments.first().cloned().context("there is a comment")?;
    let before = name(&found(running, &comment).await?);
    items.begin();
    let renamed = items.update("User", &key([("UserId", USER)]), &[text("Name", "Ada Lovelace")])?;
    let began = Instant::now();
    running.set(vec![one(USER, renamed)]).await?;
    let renamed_ms = began.elapsed().as_millis();
    let after = name(&found(running, &comment).await?);
    let mut n_renamed = 0;
    for comment in &comments {
        n_renamed += usize::from(name(&found(running, comment).await?) == after);
    }

    let likes = TURN.iter().cycle().take(LIKES).enumerate().map(|(n, post)| {
        items.begin();
        let user = format!("u{n}");
        let like = items.create("Like", &key([("UserId", &user), ("PostId", post)]), &[])?;
        Ok(one(&user, like))
    });
    write(&running.metered, Some(LIKES_A_SECOND), likes, &running.bar).await?;
    running.quiet().await?;

    let mut counts = Vec::new();
    for post in POSTS {
        let detail = items.key("PostDetail", &key([("PostId", post)]))?;
        let displayed = number(&found(running, &detail).await?, "LikeCount");
        let n_likes = TURN.iter().filter(|it| **it == post).count() * LIKES / TURN.len();
        counts.push(LikeCounts { detail, n_likes, displayed, by_hand: faults.counted_by_hand(post).await? });
    }
    let fates = faults.drawn().fates.clone();
    Ok(StoryReport { comment, names: [before, after], n_renamed, renamed_ms, counts, fates })
}

/// What the application writes before the faults begin, with the keys of the comments.
fn setting(items: &mut Items) -> anyhow::Result<(Vec<AppAction>, Vec<Key>)> {
    items.begin();
    let mut setting = vec![one(USER, items.user(USER, "Ada", None)?)];
    for post in POSTS {
        items.begin();
        setting.push(one(USER, items.post(USER, post, "On counting")?));
    }
    let mut comments = Vec::new();
    for (n, post) in (1..=COMMENTS).zip(POSTS.iter().cycle()) {
        items.begin();
        let comment = items.comment(post, &format!("c{n}"), USER)?;
        comments.push(comment.key.clone());
        setting.push(one(USER, comment));
    }
    Ok((setting, comments))
}

async fn found(running: &Running<'_>, key: &Key) -> anyhow::Result<Item> {
    let mut found = running.metered.get(Table::Main, std::slice::from_ref(key)).await?;
    found.pop().map(|(_, item)| item).with_context(|| format!("{key} is not in the table"))
}

fn name(comment: &Item) -> String {
    text_of(comment, "UserName").unwrap_or("none").to_owned()
}

fn number(item: &Item, name: &str) -> String {
    match item.get(name) {
        Some(AttributeValue::N(number)) => number.clone(),
        _ => "none".to_owned(),
    }
}

impl StoryReport {
    pub(super) fn text(&self, n_items: usize, n_findings: usize, n_parked: usize) -> String {
        let Self { comment, names: [before, after], n_renamed, renamed_ms, counts, fates } = self;
        let n = |fate: &str| fates.get(fate).copied().unwrap_or_default();
        let [unanswered, killed, answered] = [UNANSWERED, KILLED, ANSWERED].map(n);
        let n_batches = unanswered + killed + answered;
        let mut lines = vec![
            "A social network in one table, which is gone afterwards: two functions read its stream, and are killed at times.".to_owned(),
            String::new(),
            format!("Ada has {COMMENTS} comments, and changes her name:"),
            format!("  before  {comment}  UserName {before:?}"),
            format!("  after   {comment}  UserName {after:?}  ({n_renamed} of {COMMENTS} comments, {renamed_ms} ms)"),
            String::new(),
            format!("{LIKES} users like two posts:"),
        ];
        for LikeCounts { detail, n_likes, displayed, by_hand } in counts {
            let right = format!("  {detail}  {n_likes:>3} likes  LikeCount {displayed}");
            lines.push(format!("{right:<48}  a handler that adds 1 for each: {by_hand}"));
        }
        let verdict = match n_findings {
            0 => "every derived value equals its definition",
            _ => "not in step",
        };
        lines.extend([
            format!(
                "Of {n_batches} invocations, {killed} were killed after their first write and {unanswered} before they \
                 responded; their batches were delivered again, as Lambda does."
            ),
            String::new(),
            format!("Verified {n_items} items: {n_findings} findings, {n_parked} parked: {verdict}."),
            String::new(),
            "Next:".to_owned(),
            "  ripple dev                     the same service for your client, with a console in the browser"
                .to_owned(),
            "  ripple init --aws --table T    a manifest of your own table".to_owned(),
            "  ripple demo --scenario mixed   a load, with its write units and its lag".to_owned(),
        ]);
        lines.join("\n")
    }
}

// ---- The faults, and the handler by hand ----

const ANSWERED: &str = "answered";
const UNANSWERED: &str = "unanswered";
const KILLED: &str = "killed";

/// Draws how invocations end, and lets the handler by hand end in the same way.
pub(super) struct StoryFaults {
    client: Client,
    table: String,
    schema: Arc<Schema>,
    drawn: Mutex<Drawn>,
}

struct Drawn {
    is_begun: bool,
    chance: StdRng,
    /// First records of the batches that were lost: they arrive again, and are handled.
    lost: BTreeSet<(String, String)>,
    fates: BTreeMap<&'static str, usize>,
}

impl StoryFaults {
    pub(super) fn new(seed: u64, client: Client, table: &str, schema: &Arc<Schema>) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        let drawn = Drawn { is_begun: false, chance, lost: BTreeSet::new(), fates: BTreeMap::new() };
        Self { client, table: table.to_owned(), schema: Arc::clone(schema), drawn: Mutex::new(drawn) }
    }

    /// From now on there are faults.
    fn begin(&self) {
        self.drawn().is_begun = true;
    }

    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The item of the handler by hand for this post.
    fn by_hand(&self, post: &str) -> HashMap<String, SdkValue> {
        let layout = &self.schema.layout;
        let key = [(&layout.pk, format!("BY-HAND#{post}")), (&layout.sk, "LIKES".to_owned())];
        key.into_iter().map(|(name, value)| (name.clone(), SdkValue::S(value))).collect()
    }

    async fn counted_by_hand(&self, post: &str) -> anyhow::Result<String> {
        let request = self.client.get_item().table_name(&self.table).set_key(Some(self.by_hand(post)));
        let item = request.consistent_read(true).send().await?.item.unwrap_or_default();
        Ok(item.get("Likes").and_then(|it| it.as_n().ok()).cloned().unwrap_or_else(|| "none".to_owned()))
    }

    /// Draws how this invocation ends.
    fn draw(&self, function: Function, records: &[Value]) -> Fate {
        let mut drawn = self.drawn();
        let Some(first) = records.first().filter(|_| drawn.is_begun) else { return Fate::Answered };
        let number = first.pointer("/dynamodb/SequenceNumber").map(Value::to_string).unwrap_or_default();
        let is_new = drawn.lost.insert((function.to_string(), number));
        let (fate, name) = match drawn.chance.random_range(0..5) {
            0 if is_new => (Fate::Unanswered, UNANSWERED),
            1 if is_new => (Fate::KilledAtOnce, KILLED),
            _ => (Fate::Answered, ANSWERED),
        };
        *drawn.fates.entry(name).or_default() += 1;
        fate
    }

    /// The handler that people write.
    async fn add(&self, records: &[Value], fate: Fate) -> anyhow::Result<()> {
        let n_writes = if fate == Fate::KilledAtOnce { 1 } else { usize::MAX };
        let liked = |record: &'_ Value| {
            let keys = record.pointer("/dynamodb/Keys")?;
            let sort_key = keys.get(&self.schema.layout.sk)?.get("S")?.as_str()?;
            let is_new = record.get("eventName")? == "INSERT";
            sort_key.strip_prefix(LIKE).filter(|_| is_new).map(str::to_owned)
        };
        for post in records.iter().filter_map(liked).take(n_writes) {
            let request = self.client.update_item().table_name(&self.table).set_key(Some(self.by_hand(&post)));
            let request = request.update_expression("ADD Likes :one");
            request.expression_attribute_values(":one", SdkValue::N("1".to_owned())).send().await?;
        }
        Ok(())
    }
}

impl Faults for StoryFaults {
    fn fate<'a>(&'a self, function: Function, event: &'a str) -> BoxFuture<'a, anyhow::Result<Fate>> {
        Box::pin(async move {
            let event: Value = serde_json::from_str(event)?;
            let records = event.get("Records").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let fate = self.draw(function, records);
            if function.families().contains(&Family::Additive) {
                self.add(records, fate).await?;
            }
            Ok(fate)
        })
    }
}

#[cfg(test)]
mod tests {
    use functions::config::Config;
    use serde_json::json;

    use super::*;
    use crate::{
        embedded::{Access, Embedded},
        opened::Clients,
        tables,
    };

    #[tokio::test]
    async fn a_batch_that_was_lost_is_handled_when_it_arrives_again() {
        let schema = Arc::new(catalogue::schema());
        let client = Clients::at("http://127.0.0.1:1", "us-east-1").await.dynamodb;
        let faults = StoryFaults::new(1, client, "table", &schema);
        let batch = |n: usize| [json!({ "dynamodb": { "SequenceNumber": n.to_string() } })];
        let fate = |n| faults.draw(Function::Aggregate, &batch(n));
        assert!((0..100).all(|n| fate(n) == Fate::Answered), "they have not begun");
        faults.begin();
        let lost: Vec<usize> = (0..100).filter(|n| fate(*n) != Fate::Answered).collect();
        assert!((20..60).contains(&lost.len()), "{lost:?}");
        assert!(lost.iter().all(|n| fate(*n) == Fate::Answered));
        assert_eq!(faults.draw(Function::Aggregate, &[]), Fate::Answered, "the end of a window has no records");
        let fates = faults.drawn().fates.clone();
        assert_eq!(fates.values().sum::<usize>(), 100 + lost.len());
        assert_eq!(fates[UNANSWERED] + fates[KILLED], lost.len());
    }

    #[tokio::test]
    async fn the_handler_by_hand_counts_what_it_gets_until_it_is_killed() {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
        let embedded = Embedded::start(address, Access::default(), None, stopped).await.unwrap();
        let client = Clients::at(&embedded.endpoint, "us-east-1").await.dynamodb;
        let (schema, config) = (Arc::new(catalogue::schema()), Config::of("table".to_owned(), "ledger".to_owned()));
        tables::make(&client, &schema.layout, &config, &embedded.endpoint).await.unwrap();
        let faults = StoryFaults::new(1, client, "table", &schema);
        let record = |name: &str, sort_key: &str| json!({ "eventName": name, "dynamodb": { "Keys": { "PK": { "S": "USER#u" }, "SK": { "S": sort_key } } } });
        let like = record("INSERT", "LIKE#POST#p1");
        let batch = [record("REMOVE", "LIKE#POST#p1"), like.clone(), record("INSERT", "PROFILE"), like.clone(), like];
        let mut counted = Vec::new();
        for fate in [Fate::KilledAtOnce, Fate::Unanswered, Fate::Answered] {
            faults.add(&batch, fate).await.unwrap();
            counted.push(faults.counted_by_hand("p1").await.unwrap());
        }
        assert_eq!(counted, ["1", "4", "7"]);
        assert_eq!(faults.counted_by_hand("p2").await.unwrap(), "none");
        stop.send(true).unwrap();
        embedded.stopped().await;
    }
}
