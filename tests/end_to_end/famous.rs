//! A user with many comments is renamed again and again, and the functions are killed on the way.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{PutRequest, WriteRequest},
};
use support::database::embedded_endpoint;
use tokio::time::{Instant, interval};

use crate::{
    database::{Item, Key, TABLE, alter, client, key, put, s, scan},
    in_step,
    items::{comment, user},
    ripple::Ripple,
};

/// Comments of the user, and posts that they are on.
const N_COMMENTS: usize = 3_000;
const N_POSTS: usize = 20;

/// How often the functions are killed meanwhile.
const N_KILLS: usize = 5;

/// Items of one `BatchWriteItem`. Source: DynamoDB service quotas.
const BATCH_MAX: usize = 25;

/// How long no further comment may get the last name, and how often it is looked.
const ARRIVAL_WAIT: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(250);

const FIRST: &str = "Ada";
const LAST: &str = "Ada the third";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_renames_end_at_the_last_name_though_the_functions_are_killed_five_times() {
    let endpoint = embedded_endpoint().await;
    let mut service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let client = client(&endpoint);
    put(&client, user("ada", FIRST, &at(0))).await;
    put_comments(&client).await;
    in_step(&endpoint);

    let profile = key("USER#ada", "PROFILE");
    for name in ["Ada the first", "Ada the second", LAST] {
        alter(&client, &profile, "Name", Some(s(name))).await;
    }
    let mut n_on_the_way = 0;
    for kill in 0..N_KILLS {
        service.line(|line| line.starts_with("propagate")).await;
        service.kill();
        n_on_the_way += usize::from(names(&client).await.values().any(|name| name.as_deref() != Some(LAST)));
        // Nobody works now: the whole item, as somebody read it long before, and one that is new. So there is something
        // to be done before the next time, however fast this machine is.
        put(&client, of_nth(kill)).await;
        put(&client, of_nth(N_COMMENTS + kill)).await;
        service = Ripple::dev(&["--endpoint", &endpoint]).await;
    }
    assert!(n_on_the_way > 0, "the name had arrived before");
    let names = arrived(&client, LAST).await;
    assert_eq!(names.len(), N_COMMENTS + N_KILLS);
    in_step(&endpoint);
    assert_eq!(service.stop().code(), Some(0));
}

fn at(nth: usize) -> String {
    format!("2024-03-{:02}T{:02}:{:02}:00.000Z", 1 + nth / 1_440, nth / 60 % 24, nth % 60)
}

/// A comment, in step with the first name.
fn of_nth(nth: usize) -> Item {
    let mut comment = comment(&format!("p{}", nth % N_POSTS), &format!("c{nth}"), &at(nth), "ada", "As I said");
    comment.insert("UserName".to_owned(), s(FIRST));
    comment.insert("UserAvatar".to_owned(), s(format!("https://example.com/{FIRST}.png")));
    comment
}

async fn put_comments(client: &Client) {
    let comments: Vec<Item> = (0..N_COMMENTS).map(of_nth).collect();
    for batch in comments.chunks(BATCH_MAX) {
        let put = |item: &Item| PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
        let puts = batch.iter().map(|item| WriteRequest::builder().put_request(put(item)).build()).collect();
        let written = client.batch_write_item().request_items(TABLE, puts).send().await.unwrap();
        assert!(written.unprocessed_items.unwrap_or_default().is_empty(), "the database takes all");
    }
}

/// Waits until all comments carry a name; gives them.
async fn arrived(client: &Client, name: &str) -> BTreeMap<Key, Option<String>> {
    let (mut deadline, mut again, mut least) = (Instant::now() + ARRIVAL_WAIT, interval(POLL), usize::MAX);
    loop {
        again.tick().await;
        let names = names(client).await;
        let n_others = names.values().filter(|is| is.as_deref() != Some(name)).count();
        if n_others == 0 {
            return names;
        }
        if n_others < least {
            (least, deadline) = (n_others, Instant::now() + ARRIVAL_WAIT);
        }
        assert!(Instant::now() < deadline, "{n_others} do not carry the name {name}");
    }
}

/// The name that each comment carries.
async fn names(client: &Client) -> BTreeMap<Key, Option<String>> {
    let items = scan(client, TABLE).await.into_iter();
    let comments = items.filter(|((_, sk), _)| sk.starts_with("COMMENT#"));
    comments.map(|(key, item)| (key, item.get("UserName").map(|name| name.as_s().unwrap().clone()))).collect()
}
