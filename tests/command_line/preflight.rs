//! `ripple preflight`: whether a table fits, before the service is attached to it.

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, StreamViewType, TimeToLiveSpecification},
};
use expect_test::expect;
use serde_json::Value;
use support::{
    database::client,
    tables::{indexed, make, make_simple, streamed},
};

use super::{database, fails_saying, ripple};

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

    /// Puts an item, written as `PK / SK Name=Value …`; `N:` marks a number.
    fn put(&self, text: &str) {
        let (key, rest) = text.split_once(" : ").unwrap();
        let (pk, sk) = key.split_once(" / ").unwrap();
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let mut call = self.client.put_item().table_name("ripple").item("PK", s(pk)).item("SK", s(sk));
        for word in rest.split(' ').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap();
            let number = |number: &str| AttributeValue::N(number.to_owned());
            call = call.item(name, value.strip_prefix("N:").map_or_else(|| s(value), number));
        }
        self.runtime.block_on(call.send()).unwrap();
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
    let lines: Vec<&str> =
        said.lines().filter(|line| ["ignored", "to do"].iter().any(|it| line.starts_with(it))).collect();
    expect![[r#"
        ignored     1  without an entity type, such as USER#bob / PROFILE
        ignored     2  of an undeclared entity, such as GADGET#1 / METADATA, USER#ada / PROFILE
        to do       none of 3 items is of a declared entity: declare them with --config (no ripple.toml is here, so the shipped example's table is declared), or name another table with --table"#]].assert_eq(&lines.join("\n"));
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
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("links") || line.starts_with("to do")).collect();
    expect![[r#"
        links       follower-count: 1 of 2 items that it counts for do not exist, such as USER#DAN / PROFILE
        links       order-totals: 2 of 2 items that it counts for do not exist, such as USER#ADA / PROFILE, USER#BOB / PROFILE
        to do       order-totals counts for no item that exists: compare the keys that its link gives with those of the items, see links"#]].assert_eq(&lines.join("\n"));
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
    let nowhere =
        "nothing responds at http://127.0.0.1:1: is a DynamoDB running there? For a table on AWS, give --aws.";
    fails_saying(&["preflight", "--endpoint", "http://127.0.0.1:1"], nowhere);
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
    let manifest = super::file(READ);
    let config = manifest.path().to_str().unwrap();
    let ended = ripple(&["preflight", "--endpoint", &endpoint, "--config", config]);
    let is_about = |line: &&str| line.starts_with("index") || line.starts_with("to do");
    let lines: Vec<&str> = ended.stdout.lines().filter(is_about).collect();
    expect![[r#"
        index       GSI1: does not fit
        index       GSI3: does not fit
        to do       the index GSI1 of ripple does not project title (read by posts-of-author), and DynamoDB never changes an index: declare it under another name, deploy that, and drop the old one in a later deployment; or delete it in one deployment and create it in the next; or declare it as it is
        to do       the table ripple has no index GSI3, read by posts-of-tag: make it with the key GSI3PK (S) and GSI3SK (S), projecting KEYS_ONLY"#]].assert_eq(&lines.join("\n"));
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
        let s = |text: &str| AttributeValue::S(text.to_owned());
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
    let told: Vec<&str> = said.lines().filter(|line| line.starts_with("to do") || line.starts_with("sample")).collect();
    expect![[r#"
        sample      1 items, all of the table, 0.5 read units
        sample      a table with another key is not read
        to do       the table prod-Like has the key postId (S), and postId (S) and userId (S) is declared: name another table with --tables, or declare this one's key with --config, in [tables.NAME]"#]].assert_eq(&told.join("\n"));
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
