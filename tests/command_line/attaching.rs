//! What is looked at before the service is attached to a table: `ripple preflight` says whether the table fits, and
//! `ripple audit` how wrong it is while Ripple does not maintain it.

use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, StreamViewType, TimeToLiveSpecification},
};
use expect_test::expect;
use serde_json::Value;
use support::{
    command::{Ended, command},
    database::{client, indexed, make, make_simple, streamed},
    schema::fits,
};

use crate::{database, fails_saying, refuses, ripple, waits::s};

/// Puts an item into a table with this key, written as `PK / SK : Name=Value …`; `N:` marks a number.
async fn put(client: &Client, (table, [pk, sk]): (&str, [&str; 2]), text: &str) {
    let number = |number: &str| AttributeValue::N(number.to_owned());
    let (key, rest) = text.split_once(" : ").unwrap();
    let (of_pk, of_sk) = key.split_once(" / ").unwrap();
    let call = client.put_item().table_name(table).item(pk, s(of_pk)).item(sk, s(of_sk));
    let words = rest.split(' ').filter(|word| !word.is_empty()).map(|word| word.split_once('=').unwrap());
    let call = words
        .fold(call, |call, (name, value)| call.item(name, value.strip_prefix("N:").map_or_else(|| s(value), number)));
    call.send().await.unwrap();
}

/// The lines of a report that begin with one of these words.
fn about(said: &str, words: &[&str]) -> String {
    let lines = said.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A database with the shipped table, whose items expire as declared.
struct Shop {
    runtime: tokio::runtime::Runtime,
    endpoint: String,
    client: Client,
}

impl Shop {
    fn new() -> Self {
        let (runtime, endpoint) = database();
        let client = client(&endpoint);
        let shop = Self { runtime, endpoint, client };
        let both = StreamViewType::NewAndOldImages;
        shop.runtime
            .block_on(make(&shop.client, "ripple", ["PK", "SK"], |call| streamed(indexed(call, "GSI1SK", true), both)));
        shop.expires("ripple", "ExpiresAt");
        shop
    }

    fn expires(&self, table: &str, attribute: &str) {
        let specification = TimeToLiveSpecification::builder().enabled(true).attribute_name(attribute);
        let call = self.client.update_time_to_live().table_name(table);
        let call = call.time_to_live_specification(specification.build().unwrap());
        self.runtime.block_on(call.send()).unwrap();
    }

    fn put(&self, text: &str) {
        self.runtime.block_on(put(&self.client, ("ripple", ["PK", "SK"]), text));
    }

    /// Users who follow each other.
    fn people(&self) {
        for user in ["ada", "bob", "cid"] {
            self.put(&format!("USER#{user} / PROFILE : EntityType=User Name=secret-{user}"));
            self.put(&format!("USER#{user} / FOLLOWS#dan : EntityType=Follow"));
        }
        self.put("USER#dan / PROFILE : EntityType=User Name=secret-dan");
    }

    fn preflight(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let ended = ripple(&[&["preflight", "--endpoint", &self.endpoint], arguments].concat());
        assert_eq!(ended.stderr, "", "{ended:?}");
        let masked = ended.stdout.lines().map(|line| match line.split_once(" --event-source-arn ") {
            Some((before, _)) => format!("{before} --event-source-arn …\n"),
            None => format!("{line}\n"),
        });
        (ended.code, masked.collect())
    }
}

#[test]
fn a_table_that_fits_is_reported_with_the_cost_of_a_backfill() {
    let shop = Shop::new();
    shop.people();
    let (code, said) = shop.preflight(&[]);
    expect![[r#"
        table       ripple: 7 items, 305 bytes, as DynamoDB last counted them
        key         PK (S) and SK (S): fits
        index       GSI1: fits
        index       GSI2: fits
        stream      NEW_AND_OLD_IMAGES, 1 open shard
        readers     a shard can have two, and DynamoDB does not list them: aws lambda list-event-source-mappings --event-source-arn …
        expiry      ExpiresAt
        ledger      ripple-ledger: does not exist yet
        sample      7 items, all of the table, 0.5 read units
        fits        3  Follow
        fits        4  User
        backfill    read units to read the table once, consistently: 1
        backfill    follower-mirror: at most 3 items, 3 write units
        backfill    follower-count: at most 1 item, 6 write units
        backfill    follower-count-display: at most 4 items, 4 write units
        backfill    following-count: at most 3 items, 18 write units
        backfill    following-count-display: at most 4 items, 4 write units
        backfill    followee-name: at most 3 items, 3 write units
        backfill    follower-name: at most 3 items, 3 write units
        backfill    post-count-display: at most 4 items, 4 write units
        backfill    order-totals-count-display: at most 4 items, 4 write units
        backfill    order-totals-sum-display: at most 4 items, 4 write units
        backfill    at most 34 write units in all
        it fits
    "#]].assert_eq(&said);
    assert_eq!(code, Some(0));
}

#[test]
fn items_that_do_not_fit_are_reported_with_keys_and_reasons_and_without_values() {
    let shop = Shop::new();
    shop.people();
    shop.put("USER#eve / NOTE#1 : Text=secret");
    shop.put("GADGET#1 / METADATA : EntityType=Gadget Text=secret");
    shop.put("JOBS#CLOCK / CLOCK : Hour=N:473650");
    shop.put("USER#fay / PROFILE : EntityType=Usre Name=secret");
    shop.put("PERSON#eve / PROFILE : EntityType=User Name=secret");
    shop.put("POST#p / COMMENT#2024-01-15T10:30:00.417Z#c-1 : EntityType=Comment UserId=N:4711");
    let (code, said) = shop.preflight(&["--table", "ripple"]);
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("backfill")).skip(8).collect();
    expect![[r#"
        sample      13 items, all of the table, 0.5 read units
        fits        1  Comment
        fits        3  Follow
        fits        4  User
        ignored     1  without an entity type, such as USER#eve / NOTE#1
        ignored     2  of an undeclared entity, such as GADGET#1 / METADATA, USER#fay / PROFILE
        unreadable  1  by every derivation: PK, SK are not USER#{UserId} / PROFILE, the form of User, such as PERSON#eve / PROFILE
        unreadable  1  by comment-author: UserId is N, and `{UserId}` takes a text: store a text, or link by text(UserId), such as POST#p / COMMENT#2024-01-15T10:30:00.417Z#c-1
        to do       unreadable items count as absent until somebody corrects them: see unreadable
        1 thing to do"#]].assert_eq(&lines.join("\n"));
    assert_eq!(code, Some(3));
    assert!(!said.contains("secret") && !said.contains("4711") && !said.contains("Gadget"), "{said}");
    let json: Value =
        serde_json::from_str(&ripple(&["preflight", "--json", "--endpoint", &shop.endpoint]).stdout).unwrap();
    assert_eq!(json["entities"], serde_json::json!({ "Comment": 1, "Follow": 3, "User": 4 }));
    assert_eq!(json["ignored"]["unknown"]["examples"][0]["pk"], "GADGET#1");
    assert_eq!(json["unreadable"].as_array().unwrap().len(), 2);
    assert_eq!(json["to_do"].as_array().unwrap().len(), 1);
}

#[test]
fn a_manifest_of_which_no_item_is_is_that_of_another_table() {
    let shop = Shop::new();
    shop.put("GADGET#1 / METADATA : EntityType=Gadget");
    shop.put("USER#ada / PROFILE : EntityType=Usre");
    shop.put("USER#bob / PROFILE : Name=Bob");
    let (code, said) = shop.preflight(&["--table", "ripple"]);
    expect![[r#"
        ignored     1  without an entity type, such as USER#bob / PROFILE
        ignored     2  of an undeclared entity, such as GADGET#1 / METADATA, USER#ada / PROFILE
        to do       none of 3 items is of a declared entity: declare them with --config (no ripple.toml is here, so the shipped example's table is declared), or name another table with --table"#]].assert_eq(&about(&said, &["ignored", "to do"]));
    assert_eq!(code, Some(3));
}

#[test]
fn a_link_that_leads_to_no_item_is_something_to_do_and_one_that_leads_to_some_is_told() {
    let shop = Shop::new();
    shop.people();
    for user in ["ADA", "BOB"] {
        shop.put(&format!("USER#{user} / ORDER#2024#o1 : EntityType=Order Status=paid Total=N:5"));
    }
    shop.put("USER#ada / FOLLOWS#DAN : EntityType=Follow");
    let (code, said) = shop.preflight(&[]);
    expect![[r#"
        links       follower-count: 1 of 2 items that it counts for do not exist, such as USER#DAN / PROFILE
        links       order-totals: 2 of 2 items that it counts for do not exist, such as USER#ADA / PROFILE, USER#BOB / PROFILE
        to do       order-totals counts for no item that exists: compare the keys that its link gives with those of the items, see links"#]].assert_eq(&about(&said, &["links", "to do"]));
    assert_eq!(code, Some(3));
}

#[test]
fn each_missing_part_of_a_table_is_a_line_of_the_report() {
    let (runtime, endpoint) = database();
    let client = client(&endpoint);
    runtime.block_on(make(&client, "bare", ["PK", "SK"], |call| call));
    runtime.block_on(make(&client, "bare-ledger", ["PK", "SK"], |call| streamed(call, StreamViewType::KeysOnly)));
    let shop = Shop { runtime, endpoint, client };
    shop.expires("bare", "GoneAt");
    let (code, said) = shop.preflight(&["--table", "bare", "--disable", "org-chart,employee-path"]);
    expect![[r#"
        table       bare: 0 items, 0 bytes, as DynamoDB last counted them
        key         PK (S) and SK (S): fits
        index       GSI1: does not fit
        index       GSI2: does not fit
        stream      none
        expiry      GoneAt
        ledger      bare-ledger: not in use yet
        sample      the table is empty, so there are no items to check
        backfill    read units to read the table once, consistently: 0
        backfill    at most 0 write units in all
        to do       the table bare has no index GSI1, needed by comment-author, folder-path, member-user-name, post-cascade, review-author, user-cascade: make it with the key GSI1PK (S) and GSI1SK (S), projecting INCLUDE EntityType, Name, Title, Text, Role, Status, Total, Price, Quantity, Rating, Path, Depth, CreatedAt, or switch comment-author, folder-path, member-user-name, post-cascade, review-author, user-cascade off with --disable
        to do       the table bare has no index GSI2, needed by best-sellers: make it with the key GSI2PK (S) and GSI2SK (S), projecting INCLUDE EntityType, Name, Title, AuthorName, AuthorAvatar, Status, Total, Price, CreatedAt, or switch best-sellers off with --disable
        to do       the table bare has no stream: enable one with the view type NEW_AND_OLD_IMAGES
        to do       items of bare expire by GoneAt, but ExpiresAt is declared: declare it with --config (no ripple.toml is here, so the shipped example's table is declared)
        to do       the ledger's table bare-ledger has a stream, which nobody uses: disable it
        to do       items of the ledger's table bare-ledger do not expire by ExpiresAt: enable its time to live, or receipts stay for ever
        6 things to do
    "#]].assert_eq(&said);
    assert_eq!(code, Some(3));
}

#[test]
fn a_table_with_another_key_is_not_read() {
    let (runtime, endpoint) = database();
    let client = client(&endpoint);
    runtime.block_on(make(&client, "other", ["Id", "Sort"], |call| streamed(call, StreamViewType::NewAndOldImages)));
    let shop = Shop { runtime, endpoint, client };
    let (code, said) = shop.preflight(&["--table", "other"]);
    assert_eq!(code, Some(3));
    let is_about = |line: &&str| line.starts_with("key") || line.starts_with("sample") || line.starts_with("to do");
    let lines: Vec<&str> = said.lines().filter(is_about).take(3).collect();
    expect![[r#"
        key         Id (S) and Sort (S): does not fit
        sample      a table with another key is not read
        to do       the table other has the key Id (S) and Sort (S), and PK (S) and SK (S) is declared: name another table with --table, or declare this one's key with --config (no ripple.toml is here, so the shipped example's table is declared)"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn a_part_of_a_table_stands_for_the_whole() {
    let shop = Shop::new();
    for n in 0..40 {
        shop.put(&format!("USER#u{n} / FOLLOWS#dan : EntityType=Follow"));
    }
    let json = |arguments: &[&str]| -> Value {
        let ended = ripple(&[&["preflight", "--json", "--endpoint", &shop.endpoint], arguments].concat());
        // Nobody who is followed is there.
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""));
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let mirrors = |json: &Value| {
        let parts = json["backfill"]["derivations"].as_array().unwrap();
        let part = parts.iter().find(|part| part["derivation"] == "follower-mirror").unwrap();
        part["items"].as_f64().unwrap()
    };
    let all = json(&[]);
    assert_eq!((all["sample"]["items"].as_u64(), mirrors(&all)), (Some(40), 40.0));
    let first = json(&["--items", "10"]);
    assert_eq!((first["sample"]["items"].as_u64(), mirrors(&first)), (Some(10), 40.0));
    let segment = json(&["--segment-of", "2"]);
    let n_items = segment["sample"]["items"].as_f64().unwrap();
    assert!(n_items < 40.0 && (mirrors(&segment) - n_items * 2.0).abs() < 0.1, "{segment}");
}

#[test]
fn a_table_that_is_missing_or_asked_for_nothing_is_one_line() {
    let (_runtime, endpoint) = database();
    let line = format!("there is no table ripple at {endpoint}: name another with --table, or create it first");
    fails_saying(&["preflight", "--endpoint", &endpoint], &line);
    for wrong in [["--items", "0"], ["--segment-of", "0"], ["--units-per-second", "none"]] {
        let ended = ripple(&[&["preflight"][..], &wrong].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    }
}

#[test]
fn an_empty_table_fits_and_says_that_it_is_empty() {
    let shop = Shop::new();
    let (code, said) = shop.preflight(&[]);
    let lines: Vec<&str> = said.lines().skip(8).collect();
    expect![[r#"
        sample      the table is empty, so there are no items to check
        backfill    read units to read the table once, consistently: 0
        backfill    at most 0 write units in all
        it fits"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!(code, Some(0));
}

/// Posts, with an index that lacks what the manifest says and one that is missing. Only reads use them.
const READ: &str = r#"
    [table]
    partition-key = "PK"
    sort-key = "SK"
    [index.GSI1]
    partition-key = "GSI1PK"
    sort-key = "GSI1SK"
    projection = ["title"]
    [index.GSI3]
    partition-key = "GSI3PK"
    sort-key = "GSI3SK"
    projection = []
    [entity.Post]
    partition-key = "POST#{id}"
    sort-key = "POST"
    attributes = ["author", "tag", "title"]
    [entity.Post.index.GSI1]
    partition-key = "{author}"
    sort-key = "{id}"
    [entity.Post.index.GSI3]
    partition-key = "{tag}"
    sort-key = "{id}"
    [access.posts-of-author]
    query = "Post"
    index = "GSI1"
    [access.posts-of-tag]
    query = "Post"
    index = "GSI3"
"#;

#[test]
fn an_index_that_only_reads_need_is_checked_with_what_it_projects() {
    let (runtime, endpoint) = database();
    let both = StreamViewType::NewAndOldImages;
    let indexes = |call| streamed(indexed(call, "GSI1SK", false), both);
    runtime.block_on(make(&client(&endpoint), "ripple", ["PK", "SK"], indexes));
    let manifest = crate::file(READ);
    let config = manifest.path().to_str().unwrap();
    let ended = ripple(&["preflight", "--endpoint", &endpoint, "--config", config]);
    expect![[r#"
        index       GSI1: does not fit
        index       GSI3: does not fit
        to do       the index GSI1 of ripple does not project title (read by posts-of-author), and DynamoDB never changes an index: declare it under another name, deploy that, and drop the old one in a later deployment; or delete it in one deployment and create it in the next; or declare it as it is
        to do       the table ripple has no index GSI3, read by posts-of-tag: make it with the key GSI3PK (S) and GSI3SK (S), projecting KEYS_ONLY"#]].assert_eq(&about(&ended.stdout, &["index", "to do"]));
    assert_eq!(ended.code, Some(3));
}

/// Posts, each in a table without a sort key, and their likes.
const SEVERAL: &str = r#"
    [tables.Post]
    partition-key = "id"
    [tables.Post.index.byAuthor]
    partition-key = "authorId"
    [tables.Like]
    partition-key = "postId"
    sort-key = "userId"
    [entity.Post]
    table = "Post"
    attributes = ["authorId"]
    derived-attributes = ["likeCount"]
    [entity.Like]
    table = "Like"
    [derivation.likes]
    kind = "count"
    from = "Like"
    into = "Post.likeCount"
    link = { id = "postId" }
"#;

#[test]
fn each_of_several_tables_is_looked_at_and_ripple_s_own_need_not_exist() {
    let (runtime, endpoint) = database();
    let client = client(&endpoint);
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("ripple.toml");
    std::fs::write(&manifest, SEVERAL).unwrap();
    let both = StreamViewType::NewAndOldImages;
    runtime.block_on(async {
        make_simple(&client, "Post", "id").await;
        make(&client, "prod-Like", ["postId", "userId"], |call| streamed(call, both)).await;
        client.put_item().table_name("Post").item("id", s("p1")).send().await.unwrap();
        for user in ["ann", "bob"] {
            let call = client.put_item().table_name("prod-Like").item("postId", s("p1"));
            call.item("userId", s(user)).send().await.unwrap();
        }
    });
    let config = manifest.display().to_string();
    let preflight = |more: &[&str]| {
        let given = ["preflight", "--endpoint", &endpoint, "--config", &config, "--tables", "Like=prod-Like"];
        let ended = ripple(&[&given, more].concat());
        assert_eq!(ended.stderr, "", "{ended:?}");
        (ended.code, ended.stdout)
    };
    let (code, said) = preflight(&[]);
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("readers")).collect();
    expect![[r#"
        table       Post: 1 items, 4 bytes, as DynamoDB last counted them
        key         id (S): fits
        index       byAuthor: no derivation and no declared read needs it
        stream      NEW_AND_OLD_IMAGES, 1 open shard
        expiry      never
        sample      1 items, all of the table, 0.5 read units
        fits        1  Post
        table       prod-Like: 2 items, 34 bytes, as DynamoDB last counted them
        key         postId (S) and userId (S): fits
        stream      NEW_AND_OLD_IMAGES, 1 open shard
        expiry      never
        sample      2 items, all of the table, 0.5 read units
        fits        2  Like
        own table   ripple: for Ripple's own items, does not exist yet
        ledger      ripple-ledger: does not exist yet
        backfill    read units to read the table once, consistently: 2
        backfill    likes: at most 1 item, 6 write units
        backfill    likes-display: at most 1 item, 1 write unit
        backfill    at most 7 write units in all
        it fits"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!(code, Some(0));
    let json: Value = serde_json::from_str(&preflight(&["--json"]).1).unwrap();
    follows_the_schema(&json, &config);
    let tables: Vec<(&Value, &Value)> =
        json["tables"].as_array().unwrap().iter().map(|it| (&it["table"]["name"], &it["entities"])).collect();
    let wanted = [("Post", serde_json::json!({ "Post": 1 })), ("prod-Like", serde_json::json!({ "Like": 2 }))];
    assert_eq!(format!("{tables:?}"), format!("{:?}", wanted.each_ref().map(|(name, of)| (Value::from(*name), of))));
    assert_eq!(json["own_table"], serde_json::json!({ "name": "ripple", "exists": false }));

    // Preflight reports a table with another key, and does not read it.
    runtime.block_on(async {
        client.delete_table().table_name("prod-Like").send().await.unwrap();
        make_simple(&client, "prod-Like", "postId").await;
    });
    let (code, said) = preflight(&[]);
    expect![[r#"
        sample      1 items, all of the table, 0.5 read units
        sample      a table with another key is not read
        to do       the table prod-Like has the key postId (S), and postId (S) and userId (S) is declared: name another table with --tables, or declare this one's key with --config, in [tables.NAME]"#]].assert_eq(&about(&said, &["to do", "sample"]));
    assert_eq!(code, Some(3));
}

/// What is printed of several tables has a form of its own in the schema.
fn follows_the_schema(preflight: &Value, config: &str) {
    let schema: Value = serde_json::from_str(&ripple(&["schema", "--json-output"]).stdout).unwrap();
    support::schema::fits(&schema, "preflight", preflight).unwrap();
    let filters = ripple(&["design", "--filters", "--json", "--config", config]).stdout;
    let filters: Value = serde_json::from_str(&filters).unwrap();
    support::schema::fits(&schema, "design_filters", &filters).unwrap();
    assert_eq!(filters.pointer("/aggregate/own_table"), Some(&Value::Null));
}

// ---- `ripple audit` ----

/// A database with a table of the manifest examples/own-table, without a stream, and no table of Ripple's.
struct HandWritten {
    runtime: tokio::runtime::Runtime,
    endpoint: String,
    client: Client,
}

impl HandWritten {
    fn new() -> Self {
        let (runtime, endpoint) = database();
        let client = client(&endpoint);
        runtime.block_on(make(&client, "social", ["pk", "sk"], |call| call));
        Self { runtime, endpoint, client }
    }

    fn put(&self, text: &str) {
        self.runtime.block_on(put(&self.client, ("social", ["pk", "sk"]), text));
    }

    /// Both halves of a follow.
    fn follow(&self, follower: &str, followed: &str) {
        self.put(&format!(
            "USER#{follower} / FOLLOWS#{followed} : Type=Follow since=2024 followedName=secret-{followed}"
        ));
        self.put(&format!(
            "USER#{followed} / FOLLOWEDBY#{follower} : Type=FollowedBy since=2024 followerName=secret-{follower}"
        ));
    }

    fn user(&self, user: &str, count: &str) {
        self.put(&format!("USER#{user} / USER#{user} : Type=User userName=secret-{user} {count}"));
    }

    /// Users whose counts and names a handler maintained for a while.
    fn naive() -> Self {
        let table = Self::new();
        table.user("ada", "followerCount=N:2");
        table.user("bob", "followerCount=N:9");
        table.user("cid", "");
        for (follower, followed) in [("bob", "ada"), ("cid", "ada"), ("ada", "bob"), ("ada", "cid"), ("bob", "gone")] {
            table.follow(follower, followed);
        }
        // A name from before, a mirror that is left, one that is missing, and a follower that is a number.
        table.put("USER#ada / FOLLOWS#bob : Type=Follow since=2024 followedName=secret-before");
        table.put("USER#ada / FOLLOWEDBY#eve : Type=FollowedBy since=2024");
        table.put("USER#cid / FOLLOWS#bob : Type=Follow since=2024 followedName=secret-bob");
        table.put("PERSON#x / USER#x : Type=User userName=secret-x");
        table
    }

    fn audit(&self, arguments: &[&str]) -> Ended {
        let tables = ["audit", "--endpoint", &self.endpoint, "--table", "social"];
        ripple(&[&tables[..], &["--config", "examples/own-table/ripple.toml"], arguments].concat())
    }

    fn tables(&self) -> Vec<String> {
        let listed = self.runtime.block_on(self.client.list_tables().send()).unwrap();
        listed.table_names().to_vec()
    }
}

/// The output without times.
fn masked(text: &str) -> String {
    let is_bound = |line: &&str| !line.starts_with("bound ");
    text.lines().filter(is_bound).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn what_a_handler_left_wrong_is_reported_by_derivation_and_by_key() {
    let table = HandWritten::naive();
    let ended = table.audit(&[]);
    expect![[r#"
        follower-count-display  1 of 3 right, 1 wrong, 1 missing; wrong ones are off by 4 on average, by 7 at most, by 8 in sum
        followed-by             5 of 7 right, 1 missing, 1 extra
        followed-name           4 of 6 right, 1 wrong, 1 extra
        follower-name           6 of 6 right
        no item     follower-count  1 count is about items that do not exist, or cannot be read, such as USER#gone / USER#gone: deleted items, or a link that gives other keys
        unreadable  1  by every derivation: pk, sk are not USER#{userId} / USER#{userId}, the form of User, such as PERSON#x / USER#x
        worst       +7       follower-count-display  USER#bob / USER#bob
        worst       -1       follower-count-display  USER#cid / USER#cid
        worst       extra    followed-by  USER#ada / FOLLOWEDBY#eve
        worst       missing  followed-by  USER#bob / FOLLOWEDBY#cid
        worst       wrong    followed-name  USER#ada / FOLLOWS#bob
        worst       extra    followed-name  USER#bob / FOLLOWS#gone
        mend        at most 6 items, 6 write units
        16 items, 0 ignored, 1 unreadable, 6 differences
    "#]].assert_eq(&masked(&ended.stdout));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stdout.contains("bound       two reads, from 2"), "{ended:?}");
    assert!(!ended.stdout.contains("secret"), "{ended:?}");
    assert!(table.audit(&["--values"]).stdout.contains("secret-before"));
    assert_eq!(table.tables(), ["social"], "an audit creates no table");
}

#[test]
fn the_object_has_its_schema_and_the_page_is_one_new_file() {
    let table = HandWritten::naive();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("audit.html");
    let file = page.to_str().unwrap();
    let ended = table.audit(&["--json", "--at-rest", "--html", file]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""), "{ended:?}");
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    let schema: Value = serde_json::from_str(&ripple(&["schema", "--json-output"]).stdout).unwrap();
    fits(&schema, "audit", &printed).unwrap();
    let count = printed["derivations"].as_array().unwrap().iter().find(|it| it["kind"] == "display").unwrap();
    assert_eq!((&count["values"], &count["errors"]["largest"]), (&3.into(), &"7".into()), "{count}");
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!((html.matches("<svg").count(), html.contains("secret")), (2, false), "{html}");
    assert!(!html.contains("http") && !html.contains("src="), "the page loads nothing");
    refuses(
        &["audit", "--html", file, "--endpoint", &table.endpoint],
        &format!("{} exists: name another file with --html", Path::new(file).display()),
    );
    let with_values = folder.path().join("values.html");
    table.audit(&["--at-rest", "--values", "--html", with_values.to_str().unwrap()]);
    assert!(fs::read_to_string(with_values).unwrap().contains("secret-before"));
}

#[test]
fn a_right_table_and_an_empty_one_end_with_0_and_another_manifest_does_not() {
    let table = HandWritten::new();
    let empty = table.audit(&[]);
    assert!(empty.code == Some(0) && empty.stdout.ends_with("0 items, 0 ignored, 0 unreadable, 0 differences\n"));
    table.user("ada", "followerCount=N:1");
    table.user("bob", "");
    table.follow("bob", "ada");
    let right = table.audit(&[]);
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(right.stdout.contains("bound       one read, from 2"), "one read shows that nothing differs: {right:?}");
    // The keys of the shipped table have other names.
    let misfit = ripple(&["audit", "--endpoint", &table.endpoint, "--table", "social"]);
    assert!(misfit.code == Some(2) && misfit.stdout.is_empty(), "{misfit:?}");
    let missing = ripple(&["audit", "--endpoint", &table.endpoint, "--table", "other"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""), "{missing:?}");
    let other = HandWritten::new();
    for item in ["GADGET#1 / X : Type=Gadget", "GADGET#2 / X : Kind=Gadget"] {
        other.put(item);
    }
    let ignored = other.audit(&[]);
    assert!(ignored.code == Some(3) && ignored.stderr.contains("is this the manifest of this table?"), "{ignored:?}");
}

#[test]
fn an_audit_has_no_option_of_the_ledger_and_none_that_permits_writes() {
    for option in [&["--ledger-table", "x-ledger"][..], &["--yes"], &["--apply"]] {
        let ended = ripple(&[&["audit"], option].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}

#[test]
fn an_interrupted_audit_says_what_it_has_seen() {
    let table = HandWritten::new();
    let note = "x".repeat(30_000);
    for n in 0..60 {
        table.put(&format!("USER#u{n} / USER#u{n} : Type=User followerCount=N:1 note={note}"));
    }
    let mut audit = command(env!("CARGO_BIN_EXE_ripple"));
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");
    audit.args(["audit", "--endpoint", &table.endpoint, "--table", "social", "--config", config, "--read-units", "1"]);
    let mut audit = audit.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It reports the price before it reads, and a page of 1 MB pays for itself for minutes.
    let mut stderr = BufReader::new(audit.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    assert!(Command::new("kill").args(["-INT", &audit.id().to_string()]).status().unwrap().success());
    let said = io::read_to_string(stderr).unwrap();
    assert_eq!(audit.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.starts_with("ripple: interrupted: the first read of the table has read "), "{said}");
}
