//! The opening check: tables and the registry that do not fit the manifest are refused before anything is read or written.

use std::{fs, path::Path};

use aws_sdk_dynamodb::types::{AttributeValue, StreamSpecification, StreamViewType};
use engine::publishing::begin;
use expect_test::expect;
use functions::declared::{Choice, declared};
use store::dynamo::{DynamoStore, TableNames};
use support::{
    command::Ended,
    database::{client, create_table, indexed, make, streamed},
};

use crate::{
    database,
    dev::Dev,
    fails, refuses, ripple, table_without_stream,
    waits::{put, s},
    with_tables,
};

/// The manifest of a table with other keys.
const OWN: &str = "examples/own-table/ripple.toml";

fn shipped() -> keys::layout::Layout {
    declared(Choice::default()).unwrap().0.layout.clone()
}

const WITH_LEDGER: [&[&str]; 4] = [&["verify"], &["parked"], &["redrive", "--all"], &["repair"]];

fn own() -> keys::layout::Layout {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(OWN);
    declared(Choice { manifest: Some(&manifest), ..Choice::default() }).unwrap().0.layout.clone()
}

#[test]
fn a_forgotten_manifest_is_told_by_the_key_of_the_table_and_nothing_is_created() {
    let (runtime, endpoint) = database();
    for table in ["shop", "shop-ledger"] {
        runtime.block_on(create_table(&client(&endpoint), table, &own()));
    }
    let says = expect![[r#"
        ripple: the table shop has the key pk (S) and sk (S), and PK (S) and SK (S) is declared: name another table with --table, or declare this one's key with --config (no ripple.toml is here, so the shipped example's table is declared)
    "#]];
    for command in WITH_LEDGER.into_iter().chain([&["jobs"][..], &["catalogue", "diff"]]) {
        fails(&[command, &["--endpoint", &endpoint, "--table", "shop"]].concat(), 2, &says);
    }
    // A ledger's table would be created beside it, with the wrong key.
    let tables = || runtime.block_on(client(&endpoint).list_tables().send()).unwrap().table_names.unwrap();
    let before = tables();
    let new = ["dev", "--endpoint", &endpoint, "--table", "shop", "--ledger-table", "new"];
    fails(&new, 2, &says);
    assert_eq!(tables(), before);

    let ended = ripple(&["verify", "--at-rest", "--endpoint", &endpoint, "--table", "shop", "--config", OWN]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let says = "the table has not counted its items yet; reading it takes one read unit for each 4 KB of items\n";
    assert_eq!(ended.stderr, says);
}

/// A manifest in a folder, made from that of the example.
fn changed(folder: &Path, name: &str, piece: &str, instead: &str) -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(OWN);
    let text = fs::read_to_string(example).unwrap();
    assert!(text.contains(piece), "{piece}");
    let file = folder.join(name);
    fs::write(&file, text.replace(piece, instead)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn data_is_not_opened_with_another_manifest_and_nothing_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let own = changed(folder.path(), "own.toml", "", "");
    drop(Dev::start(&["--data", data, "--config", &own]));
    let renamed = changed(folder.path(), "renamed.toml", "[derivation.followed-name]", "[derivation.followee-name]");
    let other = changed(folder.path(), "other.toml", "USER#{userId}", "PERSON#{userId}");
    let says =
        [(&renamed, "lacks followed-name"), (&other, "declares follower-count, follower-count-display differently")];
    for (manifest, how) in says {
        let ended = ripple(&["dev", "--port", "0", "--data", data, "--config", manifest]);
        let line = format!(
            "ripple: the data in {data} was created with another manifest: this one {how}; give that one with --config, \
             another folder with --data, or --redeploy to make this one its new version\n"
        );
        assert_eq!((ended.code, ended.stderr.as_str(), ended.stdout.as_str()), (Some(2), line.as_str(), ""));
    }
    // The functions have what they had.
    let dev = Dev::start(&["--data", data, "--config", &own]);
    let listed = ripple(&["catalogue", "diff", "--endpoint", &dev.endpoint, "--config", &own]);
    assert!(!listed.stdout.contains("dropped  ") && !listed.stdout.contains("version"), "{listed:?}");
    drop(dev);
    drop(Dev::start(&["--data", data, "--config", &renamed, "--redeploy"]));
    let unrelated = changed(folder.path(), "unrelated.toml", "[derivation.", "[derivation.my-");
    let ended = ripple(&["dev", "--port", "0", "--data", data, "--redeploy", "--config", &unrelated]);
    let says = format!("ripple: the data in {data} was made for another manifest, with ");
    let or = "give that one with --config, or give another folder with --data\n";
    assert!(ended.code == Some(2) && ended.stderr.starts_with(&says) && ended.stderr.ends_with(or), "{ended:?}");
}

/// A manifest that is wrong, gone, or for other keys changes nothing; a valid one is a new version, which is filled.
#[test]
fn a_manifest_that_changes_while_dev_runs_is_a_new_version_of_the_functions() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read_to_string(changed(folder.path(), "own.toml", "", "")).unwrap();
    let (less, _) = whole.rsplit_once("[derivation.follower-name]").unwrap();
    let file = folder.path().join("own.toml");
    fs::write(&file, less).unwrap();
    let mut dev = Dev::start(&["--config", file.to_str().unwrap()]);
    fs::write(&file, format!("{less}\n[derivation")).unwrap();
    dev.said_on_stderr("this is not TOML");
    dev.said_on_stderr("the functions run as before the change");
    fs::remove_file(&file).unwrap();
    dev.said_on_stderr("cannot read ");
    fs::write(&file, less.replace("partition-key = \"pk\"", "partition-key = \"other\"")).unwrap();
    dev.said_on_stderr("the table ripple has the key pk (S)");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = client(&dev.endpoint);
    let item = |sort: &str, r#type: &str, more: &[(&str, &str)]| {
        let put = client.put_item().table_name("ripple");
        let all = [("pk", "USER#ada"), ("sk", sort), ("Type", r#type)].into_iter().chain(more.iter().copied());
        all.fold(put, |put, (name, value)| put.item(name, s(value)))
    };
    let name_on_mirror = || {
        let get = client.get_item().table_name("ripple").key("pk", s("USER#bob"));
        let get = get.key("sk", s("FOLLOWEDBY#ada")).send();
        runtime.block_on(get).unwrap().item.unwrap().remove("followerName")
    };
    runtime.block_on(item("USER#ada", "User", &[("userName", "Ada")]).send()).unwrap();
    runtime.block_on(item("FOLLOWS#bob", "Follow", &[]).send()).unwrap();
    dev.said("caught up");
    assert_eq!(name_on_mirror(), None);
    let index = "[index.all]\npartition-key = \"gpk\"\nsort-key = \"gsk\"\n\n[entity.User]\n";
    fs::write(&file, whole.replace("[entity.User]\n", index)).unwrap();
    assert_eq!(dev.said("a new version"), "a new version of the functions runs: it adds follower-name");
    assert_eq!(dev.said(" filled, "), "1 filled, 0 were right already, 0 left to an operator");
    assert_eq!(name_on_mirror(), Some(s("Ada")));
    let described = runtime.block_on(client.describe_table().table_name("ripple").send()).unwrap().table.unwrap();
    assert_eq!(described.global_secondary_indexes().len(), 1);
    // The new version does it by itself.
    runtime.block_on(item("USER#ada", "User", &[("userName", "Ada Lovelace")]).send()).unwrap();
    let waited = ripple(&["wait", "--endpoint", &dev.endpoint, "--config", file.to_str().unwrap()]);
    assert_eq!((waited.code, name_on_mirror()), (Some(0), Some(s("Ada Lovelace"))));
    fs::write(&file, less).unwrap();
    assert_eq!(dev.said("a new version"), "a new version of the functions runs: it drops follower-name");
    assert_eq!(dev.stopped().code, Some(0));
}

#[test]
fn redeploying_creates_the_index_that_a_manifest_adds() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let own = changed(folder.path(), "own.toml", "", "");
    drop(Dev::start(&["--data", data, "--config", &own]));
    let index = "[index.all]\npartition-key = \"gpk\"\nsort-key = \"gsk\"\n\n[entity.User]\n";
    let indexed = changed(folder.path(), "indexed.toml", "[entity.User]\n", index);
    let dev = Dev::start(&["--data", data, "--config", &indexed, "--redeploy"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let described = runtime.block_on(client(&dev.endpoint).describe_table().table_name("ripple").send()).unwrap();
    let indexes = described.table.unwrap().global_secondary_indexes.unwrap_or_default();
    let names: Vec<&str> = indexes.iter().filter_map(|index| index.index_name()).collect();
    assert_eq!(names, ["all"]);
    drop(dev);
    let index = index.replace("[entity.User]", "projection = [\"userName\"]\n[entity.User]");
    let narrower = changed(folder.path(), "narrower.toml", "[entity.User]\n", &index);
    assert!(!redeployed(data, &narrower).stderr.contains("the index all"), "more than is declared is projected");
    let index = index.replace("\"gsk\"", "\"gsk2\"");
    let rekeyed = changed(folder.path(), "rekeyed.toml", "[entity.User]\n", &index);
    let says = "the index all of ripple has the key gpk (S) and gsk (S), and gpk (S) and gsk2 (S) is declared, and \
                DynamoDB never changes an index: declare it under another name, deploy that, and drop the old one in a \
                later deployment; or delete it in one deployment and create it in the next; or declare it as it is\n";
    assert!(redeployed(data, &rekeyed).stderr.starts_with(says), "{:?}", redeployed(data, &rekeyed));
}

/// What `dev --redeploy` says until it is stopped.
fn redeployed(data: &str, config: &str) -> Ended {
    Dev::start(&["--data", data, "--config", config, "--redeploy"]).stopped()
}

#[test]
fn a_manifest_with_another_template_of_an_index_key_is_another_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let with_index = |name: &str, key: &str| {
        let index = "[index.all]\npartition-key = \"gpk\"\nsort-key = \"gsk\"\n\n[entity.User]\n";
        let manifest = changed(folder.path(), name, "[entity.User]\n", index);
        let key = format!("[entity.User.index.all]\npartition-key = \"{key}\"\nsort-key = \"{{joinedOn}}\"\n\n");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, text.replacen("[entity.Follow]\n", &format!("{key}[entity.Follow]\n"), 1)).unwrap();
        manifest
    };
    let (theirs, other) = (with_index("theirs.toml", "USERS"), with_index("other.toml", "USERS#{userName}"));
    let dev = Dev::start(&["--config", &theirs]);
    let on = |command: &[&str], manifest: &str| {
        ripple(&[command, &["--endpoint", &dev.endpoint, "--config", manifest]].concat())
    };
    let ended = on(&["repair", "--apply"], &other);
    let says = "ripple: the manifest is not that of the functions: it declares follower-count-display, which the \
                functions declare differently; ";
    assert!(ended.code == Some(2) && ended.stderr.starts_with(says), "{ended:?}");
    let ended = on(&["catalogue", "diff"], &other);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(ended.code == Some(3) && lines.first().is_some_and(|line| line.starts_with("changed ")), "{ended:?}");
    assert!(lines.first().is_some_and(|line| line.ends_with("; index keys USERS#{userName} / {joinedOn} of all")));
    assert!(lines.get(1).is_some_and(|line| line.ends_with("; index keys USERS / {joinedOn} of all")), "{ended:?}");
    assert_eq!(on(&["catalogue", "diff"], &theirs).code, Some(0));
}

#[test]
fn a_diff_says_the_deployments_that_give_a_table_the_indexes_of_a_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, indexes: &[(&str, &str)]| {
        let index = |(name, projection): &(&str, &str)| {
            format!(
                "[index.{name}]\npartition-key = \"{name}pk\"\nsort-key = \"{name}sk\"\nprojection = [{projection}]\n"
            )
        };
        let indexes: String = indexes.iter().map(index).collect();
        changed(folder.path(), name, "[entity.User]\n", &format!("{indexes}\n[entity.User]\n"))
    };
    let theirs = with("theirs.toml", &[("tag", "\"title\"")]);
    let other = with("other.toml", &[("tag", "\"title\", \"text\""), ("day", ""), ("age", "")]);
    let dev = Dev::start(&["--config", &theirs]);
    let diff = |manifest: &str, more: &[&str]| {
        ripple(&[&["catalogue", "diff", "--endpoint", &dev.endpoint, "--config", manifest], more].concat())
    };
    let same = diff(&theirs, &[]);
    assert!(same.code == Some(0) && !same.stdout.contains("index "), "{same:?}");
    let steps = diff(&other, &[]);
    let lines: Vec<&str> = steps.stdout.lines().filter(|line| line.starts_with("index ")).collect();
    expect![[r#"
        index       the index tag of ripple does not project text, and DynamoDB never changes an index: declare it under another name, deploy that, and drop the old one in a later deployment; or delete it in one deployment and create it in the next; or declare it as it is
        index       deployment 1: creates the index day of ripple
        index       deployment 2: creates the index age of ripple"#]].assert_eq(&lines.join("\n"));
    let object: serde_json::Value = serde_json::from_str(&diff(&other, &["--json"]).stdout).unwrap();
    let states: Vec<_> = object["indexes"].as_array().unwrap().iter().map(|it| (&it["index"], &it["state"])).collect();
    let word = |word: &str| serde_json::json!(word);
    assert_eq!(
        states,
        [(&word("tag"), &word("differs")), (&word("day"), &word("missing")), (&word("age"), &word("missing"))]
    );
    assert_eq!((steps.code, &object["indexes"][2]["deployment"]), (Some(3), &serde_json::json!(2)));
}

#[test]
fn a_ledgers_table_with_another_key_is_told() {
    let (runtime, endpoint) = database();
    runtime.block_on(table_without_stream(&endpoint, "ripple"));
    runtime.block_on(create_table(&client(&endpoint), "ripple-ledger", &own()));
    let says = expect![[r#"
        ripple: the table ripple-ledger has the key pk (S) and sk (S), and PK (S) and SK (S) is declared: name another table with --ledger-table, or declare this one's key with --config (no ripple.toml is here, so the shipped example's table is declared)
    "#]];
    for command in WITH_LEDGER {
        fails(&[command, &["--endpoint", &endpoint]].concat(), 2, &says);
    }
}

#[test]
fn dev_tells_a_missing_index_at_its_start_and_creates_nothing() {
    let (runtime, endpoint) = database();
    runtime.block_on(create_table(
        &client(&endpoint),
        "ripple",
        &keys::layout::Layout { indexes: Vec::new(), ..shipped() },
    ));
    let tables = || runtime.block_on(client(&endpoint).list_tables().send()).unwrap().table_names.unwrap();
    let before = tables();
    let ended = ripple(&["dev", "--endpoint", &endpoint]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.starts_with("ripple: the table ripple has no index GSI1, needed by "), "{ended:?}");
    assert_eq!(tables(), before);
}

#[test]
fn dev_lists_the_derivations_whose_items_from_before_may_be_missing() {
    let (runtime, endpoint) = database();
    let both = StreamViewType::NewAndOldImages;
    let whole = |call| streamed(indexed(call, "GSI1SK", true), both);
    runtime.block_on(make(&client(&endpoint), "shop", ["PK", "SK"], whole));
    let arguments = ["--endpoint", &endpoint, "--table", "shop"];
    let without = ["--endpoint", &endpoint, "--table", "shop", "--disable", "comment-author"];
    // The table is made without one derivation, which then comes to it.
    Dev::run(&without).stopped();
    let said = Dev::run(&arguments).stopped().stderr;
    let line = format!("run `ripple backfill --all --endpoint {endpoint} --table shop`");
    assert!(said.lines().any(|said| said.ends_with(&line)), "{said}");
}

#[test]
fn a_manifest_that_is_not_the_functions_is_refused_and_what_is_switched_off_may_be_missing() {
    let (runtime, endpoint) = with_tables();
    let names = TableNames { main: "ripple".to_owned(), ledger: "ripple-ledger".to_owned() };
    let (schema, catalogue) = declared(Choice::default()).unwrap();
    let store = DynamoStore::new(client(&endpoint), schema.layout.clone(), names);
    runtime.block_on(begin(&store, &schema, &catalogue, 1_705_315_200_000)).unwrap();

    // The same table, with one count that has another definition, and nothing else.
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.toml");
    let text = r#"
        [table]
        partition-key = "PK"
        sort-key = "SK"
        type = "EntityType"

        [entity.User]
        partition-key = "USER#{UserId}"
        sort-key = "PROFILE"
        derived-attributes = ["Followers"]

        [entity.Follow]
        partition-key = "USER#{FollowerId}"
        sort-key = "FOLLOWS#{FolloweeId}"

        [derivation.follows-of-mine]
        kind = "count"
        from = "Follow"
        into = "User.Followers"
        link = { UserId = "FolloweeId" }
    "#;
    fs::write(&other, text).unwrap();
    let other = other.to_str().unwrap();
    let refused = [
        &["verify"][..],
        &["redrive", "--all"],
        &["parked"],
        &["jobs"],
        &["jobs", "x", "--pause"],
        &["wait"],
        &["repair"],
    ];
    for command in refused {
        let ended = ripple(&[command, &["--endpoint", &endpoint, "--config", other]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        let says = "ripple: the manifest is not that of the functions: it declares follows-of-mine, \
                    follows-of-mine-display, which no function has; it lacks comment-count, ";
        assert!(ended.stderr.starts_with(says), "{}", ended.stderr);
        assert!(ended.stderr.contains("give theirs with --config"), "{}", ended.stderr);
    }
    let preflight = ripple(&["preflight", "--endpoint", &endpoint, "--config", other]);
    assert_eq!(preflight.code, Some(3), "{preflight:?}");
    assert!(preflight.stdout.contains("the manifest is not that of the functions: it declares "), "{preflight:?}");
    for command in [&["verify", "--at-rest"][..], &["parked"], &["jobs"]] {
        let ended = ripple(&[command, &["--endpoint", &endpoint, "--disable", "follower-count-display"]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn a_verification_that_knows_no_item_is_no_success() {
    let (runtime, endpoint) = with_tables();
    for id in ["g1", "g2"] {
        runtime.block_on(put(&client(&endpoint), &[("PK", id), ("SK", "x"), ("EntityType", "Gadget")]));
    }
    let ended = ripple(&["verify", "--at-rest", "--endpoint", &endpoint]);
    let ignored = "ignored     items that the manifest does not declare, such as g";
    let is_said =
        ended.stdout.starts_with(ignored) && ended.stdout.ends_with("\n2 items, 2 ignored, 0 unreadable, 0 findings\n");
    assert!(is_said && ended.code == Some(3), "{ended:?}");
    let says = "nearly all items are of types that nobody declared: is this the manifest of this table? Give another with \
                --config (no ripple.toml is here, so the shipped example's table is declared)\n";
    assert!(ended.stderr.ends_with(says), "{}", ended.stderr);
    for command in [&["repair", "--apply"][..], &["repair"]] {
        let ended = ripple(&[command, &["--at-rest", "--endpoint", &endpoint]].concat());
        assert!(ended.code == Some(3) && ended.stderr.ends_with(says), "{ended:?}");
    }
}

#[test]
fn why_takes_a_key_as_it_is_stored_in_one_of_several_tables() {
    let (runtime, _) = database();
    let text = "[tables.Vehicle]\npartition-key = \"plate\"\n[tables.Trip]\npartition-key = \"plate\"\nsort-key = { name = \
                \"at\", type = \"N\" }\n[entity.Vehicle]\ntable = \"Vehicle\"\nderived-attributes = [\"trips\"]\n[entity.Trip]\n\
                table = \"Trip\"\n[derivation.trips]\nkind = \"count\"\nfrom = \"Trip\"\ninto = \"Vehicle.trips\"\n";
    let manifest = crate::file(text);
    let dev = Dev::run(&["--config", manifest.path().to_str().unwrap()]);
    let plate = s("B #7");
    let put = client(&dev.endpoint).put_item().table_name("Vehicle").item("plate", plate.clone());
    runtime.block_on(put.send()).unwrap();
    let put = client(&dev.endpoint).put_item().table_name("Trip").item("plate", plate);
    runtime.block_on(put.item("at", AttributeValue::N("1796000000000".to_owned())).send()).unwrap();
    let of = ["--endpoint", &dev.endpoint, "--config", manifest.path().to_str().unwrap()];
    assert_eq!(ripple(&[&["wait"][..], &of].concat()).code, Some(0));
    for key in ["Vehicle#B #7", "Vehicle#B #7 / -", "Vehicle#B %237 / -"] {
        let why = ripple(&[&["why", key, "trips", "--no-changes"][..], &of].concat());
        assert!(why.code == Some(0) && why.stdout.starts_with("Vehicle#B %237 / -  Vehicle\n"), "{why:?}");
    }
    let none = ripple(&[&["why", "Trip#B #7", "--no-changes"][..], &of].concat());
    assert!(none.code == Some(2) && none.stderr.contains("is no key of an item"), "{none:?}");
}

#[test]
fn an_applications_item_under_a_derived_key_is_named_by_why_and_verify_and_no_repair_deletes_it() {
    let (runtime, endpoint) = with_tables();
    for (pk, sk, entity) in [("USER#bob", "FOLLOWS#ada", "Follow"), ("USER#ada", "FOLLOWER#bob", "Note")] {
        runtime.block_on(put(&client(&endpoint), &[("PK", pk), ("SK", sk), ("EntityType", entity)]));
    }
    let run = |command: &[&str]| ripple(&[command, &["--endpoint", &endpoint]].concat());
    let says = "the item is not Ripple's (EntityType is Note), so it stays, and the derived item waits for its key";
    for command in [&["verify", "--at-rest"][..], &["repair", "--apply", "--at-rest"], &["verify", "--at-rest"]] {
        let ended = run(command);
        let is_named = |line: &str| line.contains("follower-mirror  USER#ada / FOLLOWER#bob: ") && line.contains(says);
        assert!(ended.code == Some(3) && ended.stdout.lines().any(is_named), "{command:?} {ended:?}");
    }
    let ended = run(&["why", "USER#ada / FOLLOWER#bob"]);
    assert!(ended.code == Some(3) && ended.stdout.contains(says), "{ended:?}");
}

#[test]
fn a_stream_without_both_images_is_told_by_every_command() {
    let (runtime, endpoint) = with_tables();
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(StreamViewType::KeysOnly);
    let update = client(&endpoint).update_table().table_name("ripple");
    runtime.block_on(update.stream_specification(stream.build().unwrap()).send()).unwrap();
    let line = "the stream of ripple has the view type KEYS_ONLY: it must be NEW_AND_OLD_IMAGES";
    for command in WITH_LEDGER.into_iter().chain([&["dev"][..], &["wait"], &["jobs"], &["catalogue", "diff"]]) {
        refuses(&[command, &["--endpoint", &endpoint]].concat(), line);
    }
}

#[test]
fn records_of_another_table_are_not_replayed() {
    let dev = Dev::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let stream = "arn:aws:dynamodb:eu-west-1:123456789012:table/other/stream/2024-01-15T09:00:00.000";
    let captured =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/events/tumbling-window.json"));
    let mut event: serde_json::Value = serde_json::from_str(&captured.unwrap()).unwrap();
    event["eventSourceARN"] = stream.into();
    event["Records"].as_array_mut().unwrap().iter_mut().for_each(|record| record["eventSourceARN"] = stream.into());
    let file = folder.path().join("other.json");
    fs::write(&file, event.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let line = format!(
        "ripple: {file} has records of {stream}, which is not a stream of ripple: replay it into the table of that \
         stream\n"
    );
    let ended = ripple(&["replay", file, "--endpoint", &dev.endpoint]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (Some(2), "", line));
}

/// The keys of an index that the manifest does not declare are read from the table, and no mirror has them.
#[test]
fn a_mirror_is_in_no_index_that_nobody_declared() {
    let (runtime, endpoint) = database();
    let mut layout = own();
    let [name, pk, sk] = ["theirs", "theirPk", "theirSk"].map(str::to_owned);
    layout.indexes.push(keys::layout::Index { name, pk, sk, projection: Some(Vec::new()) });
    for table in ["app", "app-ledger"] {
        runtime.block_on(create_table(&client(&endpoint), table, &layout));
    }
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(StreamViewType::NewAndOldImages);
    let update = client(&endpoint).update_table().table_name("app");
    runtime.block_on(update.stream_specification(stream.build().unwrap()).send()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let manifest = changed(folder.path(), "own.toml", "", "");
    let tables = ["--endpoint", &endpoint, "--table", "app", "--config", &manifest];
    let _dev = Dev::run(&tables);
    let follow = [("pk", "USER#ada"), ("sk", "FOLLOWS#bob"), ("Type", "Follow"), ("theirPk", "p"), ("theirSk", "s")];
    let put = follow
        .iter()
        .fold(client(&endpoint).put_item().table_name("app"), |put, (name, value)| put.item(*name, s(value)));
    runtime.block_on(put.item("since", s("2024")).send()).unwrap();
    assert_eq!(ripple(&[&["wait"][..], &tables].concat()).code, Some(0));
    let get = client(&endpoint).get_item().table_name("app");
    let get = get.key("pk", s("USER#bob")).key("sk", s("FOLLOWEDBY#ada"));
    let mirror = runtime.block_on(get.send()).unwrap().item.unwrap();
    assert_eq!(mirror.get("since"), Some(&s("2024")));
    assert!(!mirror.contains_key("theirPk") && !mirror.contains_key("theirSk"), "{mirror:?}");
    let verified = ripple(&[&["verify", "--at-rest"][..], &tables].concat());
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
