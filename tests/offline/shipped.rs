//! The shipped table: the page of its design is up to date and complete; and its stored keys, whatever their values, read
//! back, each belong to one entity only, and invalid values are refused by name.
//!
//! `examples/social/table-design.md` has every template, and `tests/database/writes/requests.txt` the keys of every write.
//! So a change of a stored key, which is a migration of data, shows up there.

use std::{collections::BTreeSet, env, fs, path::PathBuf, sync::LazyLock};

use derive::schema::Schema;
use design::{Design, document, review::review};
use keys::{
    counter::{COUNTER, CounterKey},
    entity::{Definition, KeyTemplate},
    fields::Fields,
    item::{Item, text},
    key::Key,
    number,
};
use proptest::{
    prelude::{Strategy, prop_assert_eq},
    prop_oneof, proptest,
};
use serde_json::json;
use table_design::{PATH, WRITTEN_BY};

/// The ranges of ids in the table's design: letters, the first and the last number, and the number of digits.
const IDS: [(&str, u32, u32, usize); 4] = [("E", 1, 31, 2), ("AP", 1, 44, 3), ("WP", 1, 19, 2), ("D", 1, 30, 2)];

fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(PATH)
}

#[tokio::test]
async fn the_page_is_what_the_values_say() {
    let page = table_design::page().await.unwrap();
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(kept(), &page).unwrap();
    }
    let stored = fs::read_to_string(kept()).unwrap_or_default();
    let differs = page.lines().zip(stored.lines()).position(|(made, stored)| made != stored);
    let line = differs.map_or_else(|| page.lines().count().min(stored.lines().count()) + 1, |line| line + 1);
    assert!(page == stored, "{PATH} is stale from line {line} on: run `{WRITTEN_BY}`");
}

#[tokio::test]
async fn no_row_of_the_tables_design_is_missing() {
    let page = table_design::page().await.unwrap();
    let names: Vec<&str> = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    let mut missing = Vec::new();
    for (letters, first, last, digits) in IDS {
        let ids = (first..=last).map(|number| format!("{letters}-{number:0digits$}"));
        missing.extend(ids.filter(|id| !names.contains(&id.as_str())));
    }
    assert!(missing.is_empty(), "the page has no {}", missing.join(", "));
}

#[tokio::test]
async fn what_the_guide_to_reviews_shows_of_the_page_is_on_it() {
    let page = table_design::page().await.unwrap();
    let guide = include_str!("../../docs/review-the-design.md");
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| AP-") || line.starts_with("| WP-")).collect();
    assert!(!rows.is_empty(), "it shows a row");
    for row in rows {
        assert!(page.lines().any(|line| line == row), "the page has no row {row}");
    }
}

#[tokio::test]
async fn every_finding_is_answered() {
    let reviewed = review(&table_design::design().await.unwrap());
    let unanswered: Vec<String> = reviewed.unanswered().map(ToString::to_string).collect();
    assert!(unanswered.is_empty(), "{}", unanswered.join("\n"));
    assert!(reviewed.unchecked.is_empty(), "{:?}", reviewed.unchecked);
}

#[tokio::test]
async fn the_page_has_a_table_of_as_many_cells_in_every_row() {
    let page = table_design::page().await.unwrap();
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut head = 0;
    for line in page.lines() {
        if !line.starts_with('|') {
            head = 0;
        } else if head == 0 {
            head = cells(line);
        } else {
            assert_eq!(cells(line), head, "{line}");
        }
    }
}

/// The page of the table that a manifest declares.
fn page_of(manifest: &str) -> String {
    let (schema, catalogue) = manifest::load(manifest).unwrap();
    let design = Design::declared(schema, catalogue);
    document::page(&design, "a test", &review(&design))
}

#[test]
fn the_page_of_an_own_table_says_which_indexes_project_everything() {
    let page = page_of(include_str!("../../examples/models/ripple.toml"));
    for sentence in [
        "Post.byAuthor and Comment.byPost: everything is projected, so",
        "Comment.byAuthor projects what lists show: the keys alone.",
    ] {
        assert!(page.lines().any(|line| line.starts_with(sentence)), "{page}");
    }
}

#[test]
fn every_count_of_an_own_table_has_a_price_whatever_its_condition() {
    let of_guide = include_str!("../../docs/own-table.md").split("```").find_map(|block| block.strip_prefix("toml\n"));
    let shop = include_str!("../../examples/shop/ripple.toml");
    for (manifest, condition) in [(of_guide.unwrap(), "where status = 'paid'"), (shop, "orderStatus <> 'cancelled'")] {
        let page = page_of(manifest);
        let rows: Vec<&str> = page.lines().filter(|row| row.contains("(additive)") && row.starts_with("| ")).collect();
        assert!(rows.iter().any(|row| row.contains(condition)), "{rows:#?}");
        for row in rows {
            assert!(row.ends_with("| 2 + 2 ledger |"), "{row}");
        }
    }
}

// ---- Stored keys ----

static SCHEMA: LazyLock<Schema> = LazyLock::new(catalogue::schema);

fn definitions() -> impl Iterator<Item = &'static Definition> {
    SCHEMA.entities()
}

/// Any text that is not empty; every second one is full of separators and escape characters.
fn value() -> impl Strategy<Value = String> {
    prop_oneof!["(?s).{1,20}", "[#%/2F35$]{1,12}"]
}

/// Text for a part of a key: anything, and the parts of templates in any order.
fn key_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "(USER|POST|GROUP|ORG|FOLLOWS|FOLLOWER|LIKE|VIEW|COMMENT|MEMBER|TEAM|EMP|COUNT|PROFILE|METADATA)",
        "(FOLDER|FILE|PRODUCT|REVIEW|ORDER|ITEM|SENSOR|HOUR|DAY|EMAIL|CLAIM|SUB|CART)",
        "[#/%]",
        "(%23|%25|%2F|00|07|a)",
        "(?s).{0,3}",
    ];
    prop_oneof![".*", proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())]
}

/// A value for every field of the template, in the field's form.
fn filled(template: &KeyTemplate, values: &[String]) -> Fields {
    let value = |name: &str, text: &str| match name {
        "Path" => format!("/{}", keys::escape::segment(text)),
        "Shard" => (text.len() % 100).to_string(),
        "UnitsSold" => text.len().to_string(),
        "Total" => number::canonical(&format!("{}E-2", text.len())).unwrap(),
        "Grain" => if text.len().is_multiple_of(2) { "HOUR" } else { "DAY" }.to_owned(),
        _ => text.to_owned(),
    };
    template.field_names().into_iter().zip(values).map(|(name, text)| (name, value(name, text))).collect()
}

proptest! {
    #[test]
    fn any_text_that_reads_as_a_key_makes_that_key_again_or_is_refused(pk in key_text(), sk in key_text()) {
        let key = Key::new(pk, sk);
        for definition in definitions() {
            let Some(fields) = definition.key.parse_key(&key) else { continue };
            let Ok(again) = definition.build(&fields) else { continue };
            prop_assert_eq!(definition.key.parse_key(&again), Some(fields), "{} {}", definition.name, key);
            // Another writer may leave a `%` unescaped; Ripple escapes it.
            if !key.to_string().contains('%') {
                prop_assert_eq!(&again, &key, "{}", definition.name);
            }
        }
        let counter = SCHEMA.entity(COUNTER).unwrap().key.parse_key(&key);
        prop_assert_eq!(CounterKey::parse(&key).is_some(), counter.is_some(), "{}", key);
    }

    #[test]
    fn every_index_key_reads_back_as_far_as_it_can(values in proptest::collection::vec(value(), 3)) {
        for definition in definitions() {
            for index in &definition.indexes {
                let fields = filled(&index.key, &values);
                let key = index.key.build(&fields).unwrap();
                let read = index.key.parse_key(&key).unwrap();
                for (name, value) in read.iter() {
                    prop_assert_eq!(Some(value), fields.get(name), "{} {}", definition.name, key);
                }
            }
        }
    }

    #[test]
    fn a_key_is_of_one_entity_only(values in proptest::collection::vec(value(), 4)) {
        // A counter's target can be anything; here it is a key of this table.
        for definition in definitions().filter(|definition| definition.name != COUNTER) {
            let target = definition.build(&filled(&definition.key, &values)).unwrap();
            prop_assert_eq!(of_form(&target), [definition.name.as_str()], "{}", target);
            let counter = CounterKey { target, derivation: values[0].clone(), satellite: 0 }.key().unwrap();
            prop_assert_eq!(of_form(&counter), [COUNTER], "{}", counter);
        }
    }
}

/// The entities with a form that matches this key.
fn of_form(key: &Key) -> Vec<&'static str> {
    let fits = definitions().filter(|definition| definition.key.parse_key(key).is_some());
    fits.map(|definition| definition.name.as_str()).collect()
}

#[test]
fn an_empty_field_is_refused_by_name_in_every_key() {
    let values = ["a", "b", "c", "d"].map(str::to_owned);
    for definition in definitions() {
        for name in definition.key.field_names() {
            let mut fields = filled(&definition.key, &values);
            fields.insert(name, "");
            let error = definition.build(&fields).unwrap_err().to_string();
            assert_eq!(error, format!("{}.{name} is empty; a key value must not be", definition.name));
        }
    }
}

#[test]
fn what_would_join_or_escape_is_escaped_in_every_key() {
    let shown = |entity: &str, values| {
        let item = table_design::item(entity, values).unwrap();
        ["PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"]
            .map(|name| text(&item, name).unwrap_or("-").to_owned())
            .join(" / ")
    };
    assert_eq!(
        shown("User", json!({ "UserId": "50% off #1", "Email": "a#b%23@example.org", "CreatedAt": "2024" })),
        "USER#50%25 off %231 / PROFILE / EMAIL#a%23b%2523@example.org / USER#50%25 off %231 / USERS#00 / 2024#50%25 off %231"
    );
    assert_eq!(
        shown("Employee", json!({ "OrgId": "acme", "EmployeeId": "100%", "ManagerId": "c/e#o" })),
        "ORG#acme / EMPLOYEE#100%25 / EMP#100%25 / EMP / MANAGER#c/e%23o / EMP#100%25"
    );
    assert_eq!(
        shown("OrgChart", json!({ "OrgId": "acme", "Path": "/c%2Fe%23o/100%25" })),
        "ORG#acme / EMP#/c%2Fe%23o/100%25 / - / - / - / -"
    );
}

#[test]
fn an_item_whose_key_or_index_key_cannot_be_made_is_refused_by_name() {
    let x = |len: usize| "x".repeat(len);
    let user = |id: &str, email: &str| ("User", json!({ "UserId": id, "Email": email, "CreatedAt": "2024" }));
    let order = |total: f64| ("Order", json!({ "UserId": "u", "PlacedAt": "p", "OrderId": "o", "Total": total }));
    let width = "Order.Total does not fit in 14 digits, 2 of them behind the point";
    for ((entity, values), wanted) in [
        (user(&x(2_044), "a@b.c"), "User.UserId makes a key of 2049 bytes; the limit is 2048"),
        (
            ("Follow", json!({ "FollowerId": "a", "FolloweeId": x(1_017) })),
            "Follow.FolloweeId makes a key of 1025 bytes; the limit is 1024",
        ),
        (user("ada", ""), "User.Email is empty; a key value must not be"),
        (user("ada", &x(2_048)), "User.Email makes a key of 2054 bytes; the limit is 2048"),
        (("User", json!({ "UserId": "ada", "CreatedAt": "2024" })), "User.Email is missing; the key needs it"),
        (("Folder", json!({ "FolderId": "f", "ParentId": "top" })), "Folder.Name is missing; the key needs it"),
        (("OrgChart", json!({ "OrgId": "acme", "Path": "" })), "OrgChart.Path is empty; a key value must not be"),
        (order(1e12), width),
        (order(0.001), width),
        (order(-1.0), "Order.Total is not a number from 0 up, of at most 38 digits"),
    ] {
        let values: serde_dynamo::Item = serde_dynamo::to_item(values).unwrap();
        let item = SCHEMA.entity(entity).unwrap().item(&SCHEMA.layout, values.into_inner().into_iter().collect());
        assert_eq!(item.unwrap_err().to_string(), wanted);
    }
    assert!(table_design::item("Order", order(999_999_999_999.99).1).is_ok());
}

/// The images of the captured records, with the file of each, without those that do not decode.
fn captured_images() -> Vec<(String, Item)> {
    let mut images = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/events")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let event: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for record in event["Records"].as_array().unwrap() {
            for image in ["OldImage", "NewImage"] {
                let image = record["dynamodb"][image].clone();
                if let Ok(item) = serde_json::from_value::<serde_dynamo::Item>(image) {
                    images.push((path.display().to_string(), item.into_inner().into_iter().collect()));
                }
            }
        }
    }
    images
}

#[test]
fn items_of_captured_records_have_the_keys_that_their_entities_make() {
    let mut known = BTreeSet::new();
    for (file, item) in captured_images() {
        let key = SCHEMA.layout.key(&item).unwrap();
        let entity = text(&item, "EntityType");
        let Some(definition) = definitions().into_iter().find(|d| Some(d.name.as_str()) == entity) else { continue };
        let fields =
            definition.fields(&key, &item).unwrap_or_else(|| panic!("{file}: {key} is no {}", definition.name));
        for (name, value) in definition.index_attributes(&SCHEMA.layout, &fields) {
            assert_eq!(item.get(&name), value.as_ref(), "{file}: {name} of {key}");
        }
        known.insert(definition.name.as_str());
    }
    assert_eq!(known.into_iter().collect::<Vec<_>>(), ["Comment", "Follow", "Like", "Post", "User", "View"]);
}
