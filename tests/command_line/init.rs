//! `ripple init`: drafts of tables of the embedded database, and of files.

use std::{fs, io::Write as _, net::TcpListener, path::Path, sync::mpsc, thread};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, PutRequest, StreamViewType, TimeToLiveSpecification, WriteRequest},
};
use expect_test::{expect, expect_file};
use serde_json::{Value, json};
use support::{
    database::{client, indexed, make, make_simple, streamed},
    server::Request,
};

use crate::{
    database, fails_saying, file, refuses, ripple, succeeds,
    waits::{ended, interrupt, started},
};

/// Puts items, each as `name=value …`; `N:` marks a number.
async fn put(client: &Client, table: &str, items: impl Iterator<Item = String>) {
    let value = |value: &str| match value.strip_prefix("N:") {
        Some(number) => AttributeValue::N(number.to_owned()),
        None => AttributeValue::S(value.to_owned()),
    };
    let request = |text: String| {
        let pairs = text.split(' ').map(|word| word.split_once('=').unwrap());
        let put = pairs.fold(PutRequest::builder(), |put, (name, text)| put.item(name, value(text)));
        WriteRequest::builder().put_request(put.build().unwrap()).build()
    };
    let requests: Vec<WriteRequest> = items.map(request).collect();
    for batch in requests.chunks(25) {
        client.batch_write_item().request_items(table, batch.to_vec()).send().await.unwrap();
    }
}

/// Users with posts and comments, whose names and counts an application keeps by hand; four names are old.
fn blog() -> impl Iterator<Item = String> {
    let users = (0..25).map(|n| format!("PK=USER#u{n} SK=PROFILE EntityType=User Name=name-{n}"));
    let posts =
        (0..25).map(|n| format!("PK=POST#p{n} SK=METADATA EntityType=Post Title=t{n} CommentCount=N:{}", n % 7));
    let comments = (0..25).flat_map(|n| (0..n % 7).map(move |m| (n, m))).enumerate().map(|(at, (n, m))| {
        let name = if at < 4 { "old".to_owned() } else { format!("name-{}", at % 25) };
        let user = format!("u{}", at % 25);
        format!(
            "PK=POST#p{n} SK=COMMENT#c{m} EntityType=Comment UserId={user} UserName={name} GSI1PK=USER#{user} \
             GSI1SK=COMMENT#c{m}"
        )
    });
    users.chain(posts).chain(comments)
}

#[test]
fn a_draft_of_a_table_passes_its_check_and_proposes_what_is_kept_by_hand() {
    let (runtime, endpoint) = database();
    let client = client(&endpoint);
    runtime.block_on(async {
        let both = StreamViewType::NewAndOldImages;
        make(&client, "blog", ["PK", "SK"], |call| streamed(indexed(call, "GSI1SK", true), both)).await;
        let expiry = TimeToLiveSpecification::builder().enabled(true).attribute_name("ExpiresAt").build().unwrap();
        client.update_time_to_live().table_name("blog").time_to_live_specification(expiry).send().await.unwrap();
        put(&client, "blog", blog()).await;
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("ripple.toml");
    let out = out.to_str().unwrap();
    let init = ["init", "--table", "blog", "--endpoint", &endpoint, "--out", out];
    let drafted = succeeds(&init);
    expect![[r#"
        entities       3  Comment, Post, User
        proposals      2  post-comment-count, comment-user-name
        wrote ripple.toml; next: uncomment its proposals, then: ripple audit --table blog --config ripple.toml
    "#]]
    .assert_eq(&drafted.replace(out, "ripple.toml").replace(&format!("--endpoint {endpoint} "), ""));
    refuses(
        &["audit", "--table", "blog", "--endpoint", &endpoint, "--config", out],
        "the manifest declares no derivation, so there is nothing to compare: uncomment the proposals of `ripple init`, or \
         declare what your code keeps",
    );
    let text = fs::read_to_string(out).unwrap();
    expect_file!["init.toml"].assert_eq(&text);
    let checked = ripple(&["check", out]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    // Nothing of the table misses the draft.
    let fit = ripple(&["preflight", "--table", "blog", "--endpoint", &endpoint, "--config", out]);
    assert_eq!(fit.code, Some(0), "{fit:?}");
    assert!(!fit.stdout.contains("ignored"), "{fit:?}");
    refuses(&init, &format!("{out} exists: name another file with --out"));
    assert_eq!(fs::read_to_string(out).unwrap(), text);
    // A part of the table is called a part.
    let part = ripple(&["init", "--table", "blog", "--endpoint", &endpoint, "--items", "40", "--out", "-"]);
    assert!(part.code == Some(0) && part.stdout.contains("were read. Kinds of items that are rare may be missing."));
}

#[test]
fn the_page_shows_the_draft_that_the_test_makes() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/init.md");
    let page = fs::read_to_string(page).unwrap();
    let example = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let own = include_str!("init.toml");
    for line in example.lines().filter(|line| !line.is_empty() && *line != "…") {
        assert!(own.contains(line), "{line}");
    }
}

#[test]
fn tables_without_items_and_tables_that_are_not_there() {
    let (runtime, endpoint) = database();
    runtime.block_on(make_simple(&client(&endpoint), "empty", "id"));
    let drafted = succeeds(&["init", "--table", "empty", "--endpoint", &endpoint, "--out", "-"]);
    assert!(drafted.contains("empty: the table has no items, so no entities could be found."), "{drafted:?}");
    let line = format!("there is no table missing at {endpoint}: name another with --table, or create it first");
    fails_saying(&["init", "--table", "missing", "--endpoint", &endpoint, "--out", "-"], &line);
    let neither = ripple(&["init"]);
    assert!(neither.code == Some(2) && neither.stderr.contains("<FILE|--table <NAME>>"), "{neither:?}");
}

#[test]
fn files_are_told_apart_by_their_shape() {
    let model = ripple(&["init", "tools/draft/src/files/tests/workbench.json", "--out", "-"]);
    assert_eq!((model.code, model.stderr.as_str()), (Some(0), ""), "{model:?}");
    assert!(model.stdout.contains("\n[entity.Employee]\n"), "{model:?}");
    let template = ripple(&["init", "infra/template.yaml", "--out", "-"]);
    assert!(template.code == Some(0) && template.stdout.contains("\n[tables.LedgerTable]\n"), "{template:?}");
    let schema = ripple(&["init", "tools/draft/src/files/tests/schema.graphql", "--out", "-"]);
    assert!(
        schema.code == Some(0) && schema.stdout.contains("\n[tables.Post.index.\"gsi-Blog.posts\"]\n"),
        "{schema:?}"
    );
    let other = file("{}");
    let path = other.path().to_str().unwrap();
    let line = "no known shape: give a NoSQL Workbench model (with DataModel), a CloudFormation, SAM or cdk.out template \
                (with Resources), a serverless.yml (with resources), the output of `terraform show -json` (with values or \
                planned_values), a schema.json or dynamodb_data_model.json (with tables), a OneTable schema (with \
                models and indexes), or a schema.graphql (with @model)";
    refuses(&["init", path, "--out", "-"], &format!("{path}: {line}"));
}

// ---- A database that refuses or stops ----

/// A server that describes a table, and answers scans by their number, from 0; `None` never ends.
fn serving(scan: impl Fn(usize) -> Option<(u16, Value)> + Send + 'static) -> (String, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sent, scans) = mpsc::channel();
    thread::spawn(move || {
        let mut n_scans = 0;
        let mut unanswered = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(request) = Request::read(&stream) else { continue };
            let answer = match request.header("x-amz-target").and_then(|target| target.rsplit('.').next()).unwrap() {
                "DescribeTable" => Some((200, json!({ "Table": description() }))),
                "Scan" => {
                    n_scans += 1;
                    sent.send(n_scans).ok();
                    scan(n_scans - 1)
                }
                _ => Some((400, json!({ "__type": "AccessDeniedException", "message": "no" }))),
            };
            match answer {
                Some((status, body)) => {
                    let body = body.to_string();
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\nconnection: close\r\n"
                    );
                    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
                }
                None => unanswered.push(stream),
            }
        }
    });
    (endpoint, scans)
}

fn description() -> Value {
    json!({
        "TableName": "app", "TableStatus": "ACTIVE", "ItemCount": 9_000,
        "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": "SK", "KeyType": "RANGE" }],
        "AttributeDefinitions": [
            { "AttributeName": "PK", "AttributeType": "S" }, { "AttributeName": "SK", "AttributeType": "S" }],
    })
}

#[test]
fn without_the_permission_to_scan_the_description_alone_is_drafted() {
    let denied = json!({ "__type": "com.amazon.coral.service#AccessDeniedException", "Message": "not authorized" });
    let (endpoint, _scans) = serving(move |_| Some((400, denied.clone())));
    let drafted = ripple(&["init", "--table", "app", "--endpoint", &endpoint, "--out", "-"]);
    let why = "AWS does not allow these credentials dynamodb:Scan on the table";
    assert_eq!(drafted.stderr, format!("ripple: the draft is of 0 items only: {why}\n"), "{drafted:?}");
    assert_eq!(drafted.code, Some(1));
    let read = "# app: only 0 items of about 9,000 were read, because AWS does not allow";
    assert!(drafted.stdout.contains(read) && drafted.stdout.contains("partition-key = \"PK\""), "{drafted:?}");
}

#[test]
fn a_sample_that_is_interrupted_is_drafted_as_far_as_it_was_read() {
    let page = |n: usize| {
        let item = json!({ "PK": { "S": format!("USER#{n}") }, "SK": { "S": "PROFILE" }, "name": { "S": "x" } });
        let key = json!({ "PK": { "S": format!("USER#{n}") }, "SK": { "S": "PROFILE" } });
        (n < 8).then(|| (200, json!({ "Items": [item], "Count": 1, "ScannedCount": 1, "LastEvaluatedKey": key })))
    };
    let (endpoint, scans) = serving(page);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("ripple.toml");
    let init = started(&["init", "--table", "app", "--endpoint", &endpoint, "--out", out.to_str().unwrap()], &[]);
    // The ninth scan is of the second round, which has no end.
    while scans.recv().unwrap() < 9 {}
    interrupt(&init);
    let end = "ripple: the draft is of 8 items only: you stopped it\n";
    assert_eq!(ended(init), (Some(1), end.to_owned()));
    let text = fs::read_to_string(out).unwrap();
    assert!(text.contains("because you stopped it.") && text.contains("[entity.User]"), "{text}");
    manifest::load(&text).unwrap();
}

#[test]
fn a_file_that_describes_no_tables_is_refused_by_what_it_is() {
    let manifest = "examples/shop/ripple.toml";
    refuses(
        &["init", manifest, "--out", "-"],
        "examples/shop/ripple.toml is a manifest already: `ripple check examples/shop/ripple.toml` checks it",
    );
    refuses(
        &["init", "tests/python/messages.py", "--out", "-"],
        "tests/python/messages.py is a program, and init reads no code: give the template that it makes \
         (cdk.out/*.template.json), or read its table with --table",
    );
    let event =
        "it is a manifest: `ripple check --explain` takes it; give a captured event, and the manifest with --config";
    refuses(&["explain", manifest], &format!("{manifest}: {event}"));
    refuses(
        &["verify", "--tables", "a=b", "--config", "examples/shop/ripple.toml"],
        "\"a=b\" names a table of [tables.NAME], which the manifest does not have: name its one table with --table",
    );
}

#[test]
fn an_exported_design_is_drafted_again() {
    let of = |export: &str, config: &str| ripple(&["design", "--config", config, "--export", export]);
    for export in ["workbench", "schema-json"] {
        let exported = of(export, "examples/models/ripple.toml");
        assert_eq!(exported.code, Some(0), "{exported:?}");
        assert!(exported.stderr.lines().all(|line| line.contains(" has no ")), "{}", exported.stderr);
        let drafted = succeeds(&["init", file(&exported.stdout).path().to_str().unwrap(), "--out", "-"]);
        let (schema, _) = manifest::load(&drafted).unwrap();
        let names: Vec<&str> = schema.entities().map(|entity| entity.name.as_str()).collect();
        assert_eq!(names, ["Comment", "Counter", "Like", "Post", "User"]);
    }
    expect![[r#"
        ripple: left out, as schema.json has no mark of what is derived: User.postCount, User.commentCount, Post.authorName, Post.commentCount, Post.likeCount, Post.popular, Comment.authorName
        ripple: left out, as schema.json has no derivation: `posts-of-user`, `comments-of-user`, `comments-of-post`, `likes`, `what-a-post-has`, `author-of-post`, `author-of-comment`
    "#]]
    .assert_eq(&of("schema-json", "examples/models/ripple.toml").stderr);
    let keys = "tests/cases/25-electrodb-keys/ripple.toml";
    assert_eq!(of("workbench", keys).code, Some(0));
    refuses(
        &["design", "--export", "schema-json", "--config", keys],
        "a schema.json cannot contain the key of any entity of this manifest: use --export workbench",
    );
    refuses(
        &["design", "--export", "workbench", "--config", "no/ripple.toml"],
        "cannot read no/ripple.toml: No such file or directory (os error 2)",
    );
    let unknown = of("xml", "examples/models/ripple.toml");
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("[possible values: workbench, schema-json]"), "{}", unknown.stderr);
}
