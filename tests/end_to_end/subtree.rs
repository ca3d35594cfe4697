//! A subtree of 10,000 folders moves, and the service is killed in the middle.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{PutRequest, WriteRequest},
};
use tokio::time::{Instant, interval};

use crate::{
    database::{Item, TABLE, alter, client, key, key_item, put, s, scan},
    in_step,
    items::item,
    ripple::Ripple,
};

/// Folders below each folder, by level: 1 + 9 + 90 + 9,900 folders in all.
const BELOW: [usize; 3] = [9, 10, 110];

const FOLDERS: usize = 10_000;

/// Items of one `BatchWriteItem`. Source: DynamoDB service quotas.
const BATCH_MAX: usize = 25;

/// How long the paths may take to be right, by a debug build on a busy machine.
const RIGHT_WAIT: Duration = Duration::from_mins(5);

/// How often one folder is looked at meanwhile, and how often all are.
const RIGHT_POLL: Duration = Duration::from_millis(100);
const SCAN_POLL: Duration = Duration::from_secs(5);

/// The folder that was put last.
const LAST: &str = "top.8.9.109";

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
    until_in(&here, LAST, "/old/").await;
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
    until_in(&here, LAST, "/new/").await;
    let paths = until(&here, |paths| n_below(paths, "/new/") == FOLDERS).await;
    assert_eq!(paths[&format!("FOLDER#{LAST}")], "/new/top/8/9/109");
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

async fn put_all(client: &Client, items: &[Item]) {
    for batch in items.chunks(BATCH_MAX) {
        let put = |item: &Item| PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
        let puts = batch.iter().map(|item| WriteRequest::builder().put_request(put(item)).build()).collect();
        let written = client.batch_write_item().request_items(TABLE, puts).send().await.unwrap();
        assert!(written.unprocessed_items.unwrap_or_default().is_empty(), "the database takes all");
    }
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
