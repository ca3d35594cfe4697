//! `ripple cost` and `ripple infra`: what a table would cost, and what it would be deployed with. Neither needs a table.

use std::{fs, path::PathBuf};

use expect_test::expect;
use serde_json::Value;
use support::database::client;
use tokio::runtime::Runtime;

use crate::{
    SHIPPED,
    dev::Dev,
    ends, refuses, ripple,
    waits::{follow, put, waited},
};

#[test]
fn cost_prints_a_bill_under_either_ledger_that_adds_up() {
    let arguments = ["cost", "--rate", "Like=10", "--targets", "like-count=100", "--fan-out", "comment-author=0.1x20"];
    let reads = ["--read", "comments-of-post=3", "--read", "items-of-cart=1"];
    let arguments = [&arguments[..], &reads].concat();
    let printed = ends(&arguments, 0, SHIPPED);
    for part in ["watermarks: $", "receipts: $", "like-count: ", "comment-author, fan-out: ", "prices of us-east-1"]
        .into_iter()
        .chain([
            "comments-of-post, of the application: 3 pages a second × 1 read units",
            "1 pages a second × 1 read units",
        ])
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let json = |more: &[&str]| -> Value {
        let ended = ripple(&[&arguments[..], &["--json"], more].concat());
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    let bill = json(&[]);
    let [watermarks, receipts] = bill["ledgers"].as_array().unwrap().as_slice() else { panic!("{bill}") };
    let of = |ledger: &Value, name: &str| ledger[name].as_f64().unwrap();
    for ledger in [watermarks, receipts] {
        let lines = ledger["lines"].as_array().unwrap();
        let sum: f64 = lines.iter().map(|line| of(line, "dollars")).sum();
        assert!((sum - of(ledger, "dollars")).abs() < 0.001, "{ledger}");
        assert!(lines.iter().all(|line| !line["formula"].as_str().unwrap().is_empty()));
    }
    assert!(of(watermarks, "write_units") < of(receipts, "write_units"));
    let dearer = json(&["--price", "write-unit=6.25"]);
    assert!(of(&dearer["ledgers"][0], "dollars") > of(watermarks, "dollars"));
    let amount = |bill: &Value, what: &str| {
        let lines = bill["ledgers"][0]["lines"].as_array().unwrap().iter();
        let line = lines.filter(|line| line["unit"] != "write units").find(|line| line["what"] == what);
        line.map_or_else(|| panic!("{what}: {bill}"), |line| of(line, "amount"))
    };
    // More concurrent batches are smaller ones; those of the function that counts stay as they are.
    let four = json(&["--lanes", "4"]);
    assert!(amount(&four, "propagate") > amount(&bill, "propagate") * 1.5);
    assert!((amount(&four, "aggregate") / amount(&bill, "aggregate") - 1.0).abs() < 0.05);
    for what in ["aggregate, ends of windows", "propagate, heartbeats", "logs, all metrics once a minute"] {
        assert!(amount(&bill, what) > 0.0, "{what}");
    }
}

#[test]
fn cost_says_what_is_wrong_with_a_load() {
    let social = "--config=examples/social/ripple.toml";
    refuses(
        &["cost", social],
        "no rate is given: give the new items a second of an entity, as in `--rate CartItem=10`",
    );
    refuses(
        &["cost", "--rate", "Note=1", "--config", "examples/own-table/ripple.toml"],
        "the application writes no Note: there are Follow, User",
    );
    refuses(
        &["cost", "--read", "likes=1", "--config", "examples/own-table/ripple.toml"],
        "no read likes is declared by [access.likes]: there is none",
    );
    refuses(
        &["cost", "--rate", "Like=1", "--price", "lunch=1", social],
        "there is no price lunch; there are write-unit, read-unit, storage, recovery, invocation, gb-second, log, metric, \
         alarm, dashboard",
    );
    refuses(
        &["cost", "--rate", "Like=1", "--rate", "Like=2", social],
        "--rate gives Like twice: add the numbers up, or leave one out",
    );
    assert_eq!(ripple(&["cost", "--rate", "Like=1", "--price", "write-unit=0"]).code, Some(0));
    for wrong in [&["--rate", "Like"], &["--rate", "Like=0"], &["--fan-out", "comment-author=1"], &["--targets", "x=a"]]
    {
        let ended = ripple(&[&["cost"], &wrong[..]].concat());
        assert!(ended.code == Some(2) && ended.stderr.contains("it must be "), "{wrong:?}: {ended:?}");
    }
}

#[test]
fn cost_counts_a_latest_along_a_time_for_each_item_and_all_keys_of_a_batch() {
    let manifest = crate::file(
        r#"
        [tables.User]
        partition-key = "userId"
        [tables.Order]
        partition-key = "orderId"
        [entity.User]
        table = "User"
        derived-attributes = ["lastOrderAt", "n"]
        [entity.Order]
        table = "Order"
        attributes = ["userId", "placedAt"]
        [derivation.last-order]
        kind = "latest"
        from = "Order"
        to = "User"
        by = "placedAt"
        attributes = { placedAt = "lastOrderAt" }
        [access.orders]
        batch-get = "Order"
    "#,
    );
    let config = manifest.path().to_str().unwrap();
    let ended = ripple(&["cost", "--config", config, "--rate", "Order=10", "--read", "orders=1", "--json"]);
    let cost: Value = serde_json::from_str(&ended.stdout).unwrap();
    let lines = cost["ledgers"][0]["lines"].as_array().unwrap();
    let a_second = |what: &str, unit: &str| {
        let is = |line: &&Value| line["unit"] == unit && line["what"].as_str().unwrap().contains(what);
        lines.iter().filter(is).map(|line| line["amount"].as_f64().unwrap() / 2_628_000.0).sum::<f64>()
    };
    let units = a_second("last-order", "write units");
    assert!(units > 19.0 && units < 31.0, "{units}: {}", ended.stdout);
    assert!((a_second("orders, of the application", "read units") - 50.0).abs() < 0.1, "{}", ended.stdout);
}

#[test]
fn infra_prints_the_templates_that_are_kept() {
    for (arguments, kept) in [(&["infra"][..], "template.yaml"), (&["infra", "--attach"], "attach.yaml")] {
        let kept = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../infra").join(kept);
        assert!(ends(arguments, 0, SHIPPED) == fs::read_to_string(&kept).unwrap(), "{} is stale", kept.display());
    }
}

/// Posts that are found by these attributes.
fn posts(indexes: &[&str]) -> tempfile::NamedTempFile {
    let index = |name: &&str| format!("[tables.Post.index.by-{name}]\npartition-key = \"{name}\"\nprojection = []\n");
    let indexes: String = indexes.iter().map(index).collect();
    let table = "[tables.Post]\npartition-key = \"id\"\n";
    crate::file(&format!("{table}{indexes}[entity.Post]\ntable = \"Post\"\n"))
}

#[test]
fn infra_prints_the_deployment_that_follows_another_and_says_which_are_left() {
    for format in ["sam", "cloudformation", "terraform", "cdk"] {
        let infra = |manifest: &tempfile::NamedTempFile, more: &[&str]| {
            let config = manifest.path().to_str().unwrap();
            ripple(&[&["infra", "--format", format, "--config", config], more].concat())
        };
        let n_indexes = |text: &str| text.matches("- IndexName: ").count();
        let one = infra(&posts(&["author"]), &[]);
        assert_eq!((one.code, n_indexes(&one.stdout)), (Some(0), 1), "{one:?}");
        let deployed = crate::file(&one.stdout);
        let all = posts(&["author", "tag", "day"]);
        let two = infra(&all, &["--deployed", deployed.path().to_str().unwrap()]);
        assert_eq!((two.code, n_indexes(&two.stdout)), (Some(3), 2), "{format}");
        let says = "deployment 1: creates the index by-tag of PostTable\ndeployment 2: creates the index by-day of \
                    PostTable\na deployment creates or deletes one index of a table: deploy what is printed here, and run \
                    the same command with it as --deployed for the next one\n";
        assert_eq!(two.stderr, says);
        let deployed = crate::file(&two.stdout);
        let three = infra(&all, &["--deployed", deployed.path().to_str().unwrap()]);
        assert_eq!((three.code, n_indexes(&three.stdout)), (Some(0), 3), "{format}");
        assert_eq!(three.stderr, "deployment 1: creates the index by-day of PostTable\n");
    }
    // An index that no deployment can change is said each time, but no deployment is promised.
    let table =
        "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\n[index.tag]\npartition-key = \"t\"\nsort-key = \"s\"\n";
    let printed = |projection: &str, more: &[&str]| {
        let entity = "[entity.Post]\npartition-key = \"POST#{id}\"\nsort-key = \"POST\"\n";
        let manifest = crate::file(&format!("{table}projection = [{projection}]\n{entity}"));
        ripple(&[&["infra", "--config", manifest.path().to_str().unwrap()], more].concat())
    };
    let deployed = crate::file(&printed("", &[]).stdout);
    let other = printed("\"title\"", &["--deployed", deployed.path().to_str().unwrap()]);
    assert_eq!(other.code, Some(3));
    expect![[r#"
        the index tag of the table has another key or projection, and DynamoDB never changes an index: declare it under another name, deploy that, and drop the old one in a later deployment; or delete it in one deployment and create it in the next; or declare it as it is
    "#]].assert_eq(&other.stderr);
    let none = crate::file("Resources: {}\n");
    let none = none.path().to_str().unwrap();
    let line = format!("{none} contains no table: give the file that `ripple infra` printed");
    refuses(&["infra", "--deployed", none, "--config", "examples/social/ripple.toml"], &line);
}

#[test]
fn infra_prints_a_module_and_a_construct_with_an_input_for_each_parameter() {
    let own = ["--config", "examples/own-table/ripple.toml"];
    let of = |format: &str| ripple(&[&["infra", "--format", format], &own[..]].concat()).stdout;
    let (template, module, construct) = (of("cloudformation"), of("terraform"), of("cdk"));
    assert!(template.contains("  CodeBucket:\n") && !template.contains("BuildMethod"), "{template}");
    for (name, text) in [("config_uri", &module), ("configUri: string;", &construct), ("lanes?: string;", &construct)] {
        assert!(text.contains(name), "{name}");
    }
    refuses(
        &["infra", "--config", "no/ripple.toml"],
        "cannot read no/ripple.toml: No such file or directory (os error 2)",
    );
}

// ---- What a verification reads, beside a service that runs ----

/// Segments in which a table is read where nothing else is said.
const SEGMENTS: f64 = 4.0;

/// 60 users with a follow, a mirror and counters each: more than 240 items. `verify` compares each with others.
#[test]
fn a_small_table_in_step_is_read_once_and_the_price_is_told_before() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    runtime.block_on(async {
        for name in 0..60 {
            let (pk, name) = (format!("USER#f{name}"), format!("Name {name}"));
            put(&client, &[("PK", &pk), ("SK", "PROFILE"), ("EntityType", "User"), ("Name", &name)]).await;
        }
        follow(&client, 0..60).await;
    });
    waited(&dev.endpoint, &[]);
    let described = runtime.block_on(client.describe_table().table_name("ripple").send()).unwrap().table.unwrap();
    let (n_items, bytes) = (described.item_count.unwrap(), described.table_size_bytes.unwrap());
    assert!(n_items > 240, "{n_items}");

    let verified = ripple(&["verify", "--endpoint", &dev.endpoint]);
    let price = f64::from(u32::try_from(bytes / 4_096).unwrap()) + SEGMENTS;
    let says = format!(
        "reading about {n_items} items, {} KB: about {price} read units, and more for what differs\n",
        u64::try_from(bytes).unwrap().div_ceil(1_000)
    );
    assert_eq!((verified.code, verified.stderr), (Some(0), says));

    let verified = ripple(&["verify", "--json", "--endpoint", &dev.endpoint]);
    let printed: serde_json::Value = serde_json::from_str(&verified.stdout).unwrap();
    let read_units = printed["read_units"].as_f64().unwrap();
    // The ledger's list of parked changes is one unit more.
    assert!(read_units <= price + 1.0, "{read_units} read units instead of {price}");
    assert!(read_units >= price - SEGMENTS, "{read_units} read units instead of {price}");
}
