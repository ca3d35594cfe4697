//! Much follows from one change, and the service is killed on the way: a user with many comments is renamed again and
//! again, a team gets another manager, and a subtree of 10,000 folders moves.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{PutRequest, WriteRequest},
};
use support::database::embedded_endpoint;
use tokio::time::{Instant, interval};

use crate::{
    database::{Item, Key, TABLE, alter, client, comment, item, key, key_item, put, s, scan, user},
    in_step,
    ripple::{Ripple, verify},
};

// ---- A user with many comments is renamed ----

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
    put_all(&client, &(0..N_COMMENTS).map(of_nth).collect::<Vec<_>>()).await;
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

/// Puts items in batches.
async fn put_all(client: &Client, items: &[Item]) {
    for batch in items.chunks(BATCH_MAX) {
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

// ---- A team gets another manager: everybody stays, and the chart follows ----

/// Teams of the manager who moves, and people in each.
const N_TEAMS: usize = 10;
const N_PEOPLE: usize = 49;

/// How often the service is killed meanwhile.
const N_TEAM_KILLS: usize = 3;

/// How long the chart may take.
const MOVE_WAIT: Duration = Duration::from_mins(2);

const OLD: &str = "EMP#/ceo/vp";
const NEW: &str = "EMP#/ceo/cto/vp";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_of_a_team_that_moves_follows_through_kills() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    let mut service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let mut people = vec![employee("ceo", None), employee("cto", Some("ceo")), employee("vp", Some("ceo"))];
    for team in 0..N_TEAMS {
        let lead = format!("lead{team}");
        people.push(employee(&lead, Some("vp")));
        people.extend((0..N_PEOPLE).map(|at| employee(&format!("dev{team}x{at}"), Some(&lead))));
    }
    let n_people = people.len();
    for person in people {
        put(&client, person).await;
    }
    let n_team = 1 + N_TEAMS * (1 + N_PEOPLE);
    until_under(&client, &endpoint, OLD, n_team).await;
    put(&client, employee("vp", Some("cto"))).await;
    // Killed in the middle of the move, as long as there is one.
    for _ in 0..N_TEAM_KILLS {
        service.line(|line| line.starts_with("propagate")).await;
        service.kill();
        service = Ripple::dev(&["--endpoint", &endpoint]).await;
    }
    until_under(&client, &endpoint, NEW, n_team).await;
    assert_eq!(under(&client, OLD).await, 0, "nobody is in the chart twice");
    let n_left = scan(&client, TABLE).await.into_keys().filter(|(_, sk)| sk.starts_with("EMPLOYEE#")).count();
    assert_eq!(n_left, n_people, "everybody is there under their id");
    assert_eq!(service.stop().code(), Some(0));
}

/// Waits until so many stand at a path or under it, and everything is as it should be.
async fn until_under(client: &Client, endpoint: &str, path: &str, n_wanted: usize) {
    let deadline = Instant::now() + MOVE_WAIT;
    let mut again = interval(POLL);
    while under(client, path).await < n_wanted || verify(endpoint).code != Some(0) {
        assert!(Instant::now() < deadline, "{} are under {path}", under(client, path).await);
        again.tick().await;
    }
    assert_eq!(under(client, path).await, n_wanted);
}

fn employee(id: &str, manager: Option<&str>) -> Item {
    let mut employee = item([
        ("PK", "ORG#o".to_owned()),
        ("SK", format!("EMPLOYEE#{id}")),
        ("EntityType", "Employee".to_owned()),
        ("GSI1PK", format!("EMP#{id}")),
        ("GSI1SK", "EMP".to_owned()),
        ("Name", format!("Name of {id}")),
    ]);
    if let Some(manager) = manager {
        let index = [("GSI2PK", format!("MANAGER#{manager}")), ("GSI2SK", format!("EMP#{id}"))];
        employee.extend(index.map(|(name, text)| (name.to_owned(), s(&text))));
        employee.insert("ManagerId".to_owned(), s(manager));
    }
    employee
}

/// How many stand at a path or under it.
async fn under(client: &Client, path: &str) -> usize {
    let below = format!("{path}/");
    scan(client, TABLE).await.into_keys().filter(|(_, sk)| sk == path || sk.starts_with(&below)).count()
}

// ---- A subtree of 10,000 folders moves ----

/// Folders below each folder, by level: 1 + 9 + 90 + 9,900 folders in all.
const BELOW: [usize; 3] = [9, 10, 110];

const FOLDERS: usize = 10_000;

/// How long the paths may take to be right, by a debug build on a busy machine.
const RIGHT_WAIT: Duration = Duration::from_mins(5);

/// How often one folder is looked at meanwhile, and how often all are.
const RIGHT_POLL: Duration = Duration::from_millis(100);
const SCAN_POLL: Duration = Duration::from_secs(5);

/// The folder that was put last.
const LAST_FOLDER: &str = "top.8.9.109";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subtree_of_10_000_folders_moves_though_the_service_is_killed_in_the_middle() {
    let data = tempfile::tempdir().unwrap();
    let arguments = ["--data", data.path().to_str().unwrap()];
    let service = Ripple::embedded(&arguments).await;
    let here = client(&service.endpoint);
    for root in ["old", "new"] {
        put(&here, folder(root, root, None)).await;
    }
    let subtree = subtree();
    assert_eq!(subtree.len(), FOLDERS);
    put_all(&here, &subtree).await;
    until_in(&here, LAST_FOLDER, "/old/").await;
    until(&here, |paths| n_below(paths, "/old/") == FOLDERS).await;

    let top = key("FOLDER#top", "METADATA");
    alter(&here, &top, "GSI1PK", Some(s("FOLDER#new"))).await;
    alter(&here, &top, "ParentId", Some(s("new"))).await;
    until_in(&here, "top.0.0", "/new/").await;
    let n_moved = n_below(&paths(&here).await, "/new/");
    assert!(n_moved > 0 && n_moved < FOLDERS, "it is in the middle: {n_moved}");
    service.kill();

    let service = Ripple::embedded(&arguments).await;
    let here = client(&service.endpoint);
    until_in(&here, LAST_FOLDER, "/new/").await;
    let paths = until(&here, |paths| n_below(paths, "/new/") == FOLDERS).await;
    assert_eq!(paths[&format!("FOLDER#{LAST_FOLDER}")], "/new/top/8/9/109");
    in_step(&service.endpoint);
}

/// The folder that moves, and all below it.
fn subtree() -> Vec<Item> {
    let mut folders = vec![folder("top", "top", Some("old"))];
    let mut level = vec!["top".to_owned()];
    for n_below in BELOW {
        let parents = level;
        level = parents.iter().flat_map(|parent| (0..n_below).map(move |n| format!("{parent}.{n}"))).collect();
        folders.extend(level.iter().map(|id| {
            let (parent, name) = id.rsplit_once('.').unwrap();
            folder(id, name, Some(parent))
        }));
    }
    folders
}

fn folder(id: &str, name: &str, parent: Option<&str>) -> Item {
    let mut folder = item([
        ("PK", format!("FOLDER#{id}")),
        ("SK", "METADATA".to_owned()),
        ("EntityType", "Folder".to_owned()),
        ("Name", name.to_owned()),
    ]);
    if let Some(parent) = parent {
        let below = item([
            ("ParentId", parent.to_owned()),
            ("GSI1PK", format!("FOLDER#{parent}")),
            ("GSI1SK", format!("FOLDER#{name}#{id}")),
        ]);
        folder.extend(below);
    }
    folder
}

/// Waits until one folder's path is below another; cheaper than to look at all.
async fn until_in(client: &Client, id: &str, above: &str) {
    let (deadline, mut again) = (Instant::now() + RIGHT_WAIT, interval(RIGHT_POLL));
    loop {
        again.tick().await;
        let folder =
            client.get_item().table_name(TABLE).set_key(Some(key_item(&key(format!("FOLDER#{id}"), "METADATA"))));
        let folder = folder.send().await.unwrap().item.unwrap();
        if folder.get("Path").is_some_and(|path| path.as_s().unwrap().starts_with(above)) {
            return;
        }
        assert!(Instant::now() < deadline, "{id} is not below {above}");
    }
}

/// Waits until the paths are like this; gives them.
async fn until(client: &Client, right: impl Fn(&BTreeMap<String, String>) -> bool) -> BTreeMap<String, String> {
    let (deadline, mut again) = (Instant::now() + RIGHT_WAIT, interval(SCAN_POLL));
    loop {
        again.tick().await;
        let paths = paths(client).await;
        if right(&paths) {
            return paths;
        }
        assert!(Instant::now() < deadline, "{} folders have a path", paths.len());
    }
}

/// All paths by partition key.
async fn paths(client: &Client) -> BTreeMap<String, String> {
    let items = scan(client, TABLE).await.into_iter();
    items.filter_map(|((pk, _), item)| Some((pk, item.get("Path")?.as_s().unwrap().clone()))).collect()
}

fn n_below(paths: &BTreeMap<String, String>, above: &str) -> usize {
    paths.values().filter(|path| path.starts_with(above)).count()
}
