//! A table of a user: a `ripple.toml` makes the same values as the shipped one, and the functions run on it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use derive::{catalogue::Catalogue, schema::Schema, write::Table};
use engine::batch::Handled;
use expect_test::expect;
use functions::{
    config::Config,
    handler::{Function, engine},
};
use keys::{entity::Definition, item::Item, key::Key};
use serde_json::{Value, json};
use store::{Store as _, memory::MemoryStore};
use support::record::{self, Record};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/own-table/ripple.toml");

/// A part of the shipped table as a manifest, with each kind that a manifest supports.
const SHIPPED: &str = r##"
[table]
partition-key = "PK"
sort-key = "SK"
type = "EntityType"
time-to-live = "ExpiresAt"

[index.GSI1]
partition-key = "GSI1PK"
sort-key = "GSI1SK"
projection = ["EntityType", "Name", "Title", "Text", "Role", "Status", "Total", "Price", "Quantity", "Rating", "Path",
              "Depth", "CreatedAt"]

[index.GSI2]
partition-key = "GSI2PK"
sort-key = "GSI2SK"
projection = ["EntityType", "Name", "Title", "AuthorName", "AuthorAvatar", "Status", "Total", "Price", "CreatedAt"]

[entity.User]
partition-key = "USER#{UserId}"
sort-key = "PROFILE"
attributes = ["Name", "Email", "Avatar", "Version", "CreatedAt", "UpdatedAt"]
derived-attributes = ["FollowerCount", "FollowingCount", "PostCount", "OrderCount", "LifetimeValue"]
[entity.User.index.GSI1]
partition-key = "EMAIL#{Email}"
sort-key = "USER#{UserId}"
[entity.User.index.GSI2]
partition-key = "USERS#{UserId%8}"
sort-key = "{CreatedAt}#{UserId}"

[entity.Follow]
partition-key = "USER#{FollowerId}"
sort-key = "FOLLOWS#{FolloweeId}"
attributes = ["CreatedAt", "UpdatedAt"]
derived-attributes = ["FolloweeName"]

[entity.Follower]
partition-key = "USER#{FolloweeId}"
sort-key = "FOLLOWER#{FollowerId}"
derived = true
attributes = ["CreatedAt", "UpdatedAt"]
derived-attributes = ["FollowerName"]

[derivation.follower-mirror]
kind = "mirror"
from = "Follow"
to = "Follower"

[derivation.follower-count]
kind = "count"
from = "Follow"
into = "User.FollowerCount"
link = { UserId = "FolloweeId" }
shards = 8

[derivation.following-count]
kind = "count"
from = "Follow"
into = "User.FollowingCount"
link = { UserId = "FollowerId" }

[derivation.followee-name]
kind = "copy"
from = "User"
to = "Follow"
link = { UserId = "FolloweeId" }
attributes = { Name = "FolloweeName" }
found = "Follower"

[derivation.follower-name]
kind = "copy"
from = "User"
to = "Follower"
link = { UserId = "FollowerId" }
attributes = { Name = "FollowerName" }
found = "Follow"
"##;

/// The same definition, but without the id of the table's design, which a manifest lacks.
fn unnumbered(definition: &Definition) -> Definition {
    Definition { id: String::new(), ..definition.clone() }
}

/// The definition of a derivation in the catalogue.
fn declared(catalogue: &Catalogue, name: &str) -> String {
    let derivation = catalogue.derivations().find(|derivation| derivation.name == name);
    format!("{:?}", derivation.expect("it is declared").kind)
}

#[test]
fn a_part_of_the_shipped_manifest_makes_the_same_values() {
    let (schema, catalogue) = manifest::load(SHIPPED).unwrap();
    let shipped = catalogue::schema();
    let typed = catalogue::catalogue(&shipped).unwrap();
    assert_eq!(schema.layout, shipped.layout);
    for definition in schema.entities() {
        assert_eq!(unnumbered(definition), unnumbered(shipped.entity(&definition.name).unwrap()));
    }
    let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    for name in &names {
        assert_eq!(declared(&catalogue, name), declared(&typed, name));
    }
    expect!["follower-mirror follower-count follower-count-display following-count following-count-display followee-name follower-name"]
        .assert_eq(&names.join(" "));
}

fn configured(manifest: &str) -> Config {
    Config { manifest: Some(PathBuf::from(manifest)), ..Config::of("own".to_owned(), "own-ledger".to_owned()) }
}

fn follow() -> Value {
    json!({
        "pk": { "S": "USER#grace" }, "sk": { "S": "FOLLOWS#ada" }, "Type": { "S": "Follow" },
        "since": { "S": "2024-02-01" },
    })
}

/// The event of a new follow.
fn event() -> String {
    let new = item(&follow());
    let keys = ["pk", "sk"].into_iter().map(|name| (name.to_owned(), new.get(name).unwrap().clone())).collect();
    let (keys, new) = (&keys, Some(&new));
    let record = Record { id: "1", sequence_number: "100", keys, old: None, new, at_ms: 0, is_expiry: false };
    record::event(&[record.json()])
}

fn item(value: &Value) -> Item {
    serde_json::from_value(value.clone()).expect("an item")
}

/// The table with the follow and both users.
fn table(schema: &Schema) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    store.put_raw(Table::Main, item(&follow())).unwrap();
    for (user, name) in [("ada", "Ada"), ("grace", "Grace")] {
        let id = json!({ "S": format!("USER#{user}") });
        let user = json!({ "pk": id, "sk": id, "Type": { "S": "User" }, "userName": { "S": name } });
        store.put_raw(Table::Main, item(&user)).unwrap();
    }
    store
}

#[tokio::test]
async fn a_function_runs_on_the_manifest_that_its_configuration_names() {
    let (schema, _) = manifest::read(Path::new(EXAMPLE)).unwrap();
    let store = table(&schema);
    let function = engine(Function::Propagate, &configured(EXAMPLE), Arc::clone(&store)).await.unwrap();
    let Handled { account, failed_from, .. } = function.handle(&event(), u64::MAX).await.unwrap();
    assert_eq!((account.n_changes, failed_from), (1, None));
    let mirror = Key::new("USER#ada", "FOLLOWEDBY#grace");
    let made = store.get(Table::Main, std::slice::from_ref(&mirror)).await.unwrap();
    let wanted = json!({
        "pk": { "S": "USER#ada" }, "sk": { "S": "FOLLOWEDBY#grace" }, "Type": { "S": "FollowedBy" },
        "since": { "S": "2024-02-01" }, "followerName": { "S": "Grace" },
    });
    assert_eq!(made, [(mirror, item(&wanted))]);
}

#[tokio::test]
async fn a_function_whose_manifest_is_wrong_does_not_start() {
    let store = || MemoryStore::new(catalogue::schema().layout);
    let error = engine(Function::Propagate, &configured("no/ripple.toml"), store()).await.err().unwrap();
    assert_eq!(error.to_string(), "cannot read no/ripple.toml");
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let error = engine(Function::Propagate, &configured(other), store()).await.err().unwrap().to_string();
    let wanted = format!(
        "{other}:1:2: package: there is no such key: there are table, index, tables, entity, derivation, access"
    );
    assert_eq!(error, wanted);
}
