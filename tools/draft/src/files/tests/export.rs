//! Manifests that are exported, read and drafted again. They are equal in everything but the losses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use derive::{
    access::{Access, AccessReads},
    schema::Schema,
};
use expect_test::{expect, expect_file};
use keys::{
    entity::{Definition, KeyTemplate},
    tables::{IndexForm, KeyAttribute, TYPE, TableForm},
    template::{
        Piece,
        form::{Casing, Form},
    },
};
use manifest::load;
use serde_json::json;

use super::{
    declared::{FLEET, FORUM, ONETABLE, SCHEMA},
    *,
};
use crate::{
    draft,
    files::export::{Export, ExportForm, Loss, export},
    text::kebab,
};

const FORMS: [ExportForm; 2] = [ExportForm::Workbench, ExportForm::SchemaJson];

/// The name of the table of `[table]`.
const TABLE: &str = "app";

/// An aspect and its subject.
type Fact = (&'static str, String);

/// What a manifest says.
type Facts = BTreeMap<Fact, String>;

/// The text of each manifest of the repository, by its path.
fn manifests() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["examples", "tests/cases"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path().join("ripple.toml"));
    let found: BTreeSet<PathBuf> = paths.filter(|path| path.exists()).collect();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Exports a manifest, and drafts a manifest from the file.
fn there_and_back(text: &str, form: ExportForm) -> (Export, String) {
    let (schema, catalogue) = load(text).unwrap();
    let export = export(&schema, &catalogue, form, TABLE);
    let drafted = match tables_of(&export.file.to_string()) {
        Ok(found) => draft("an export", &found.tables).text,
        Err(error) => {
            assert_eq!(export.file["tables"], json!([]), "{error}");
            String::new()
        }
    };
    (export, drafted)
}

// ---- What a manifest says ----

fn facts(schema: &Schema, only: Option<&str>) -> Facts {
    let mut facts = Facts::new();
    let forms = schema.layout.forms.as_ref().map_or_else(|| vec![schema.layout.own_table()], |forms| forms.0.clone());
    // A draft of one table has not always its name.
    let name_of = |form: &TableForm| only.filter(|_| forms.len() == 1).unwrap_or(&form.name).to_owned();
    for form in &forms {
        let name = name_of(form);
        let key = |key: &KeyAttribute| format!("{} {:?}", key.name, key.of);
        let keys = |keys: &[KeyAttribute]| keys.iter().map(key).collect::<Vec<_>>().join(", ");
        facts.insert(("table", name.clone()), format!("{} / {:?}", key(&form.pk), form.sk.as_ref().map(key)));
        let type_attribute = form.type_attribute().filter(|name| *name != TYPE);
        facts.extend(type_attribute.map(|it| (("type", name.clone()), it.to_owned())));
        facts.extend(form.time_to_live.clone().map(|it| (("time to live", name.clone()), it)));
        for index in &form.indexes {
            let what = format!("{} / {}; {:?}", keys(&index.pk), keys(&index.sk), index.projection);
            facts.insert(("index", format!("{} of {name}", index.name)), what);
        }
    }
    for entity in schema.entities().filter(|entity| !entity.is_own()) {
        let form = schema.layout.forms.as_ref().and_then(|forms| forms.of_entity(entity));
        let form = form.or(forms.first()).unwrap();
        of_entity(&mut facts, entity, form, &name_of(form));
    }
    let counter = schema.entities().filter(|entity| entity.is_own() && entity.id != entity.name);
    facts.extend(counter.map(|entity| (("id", entity.name.clone()), entity.id.clone())));
    for access in &schema.accesses {
        of_read(&mut facts, access);
    }
    facts
}

fn of_entity(facts: &mut Facts, entity: &Definition, form: &TableForm, table: &str) {
    let name = &entity.name;
    let text = |key: &KeyTemplate| {
        let pk = key.pk.to_string();
        let pk = pk.strip_prefix(&format!("{}#", form.name)).unwrap_or(&pk).to_owned();
        format!("{pk} / {}", key.sk).replace("!}", "}")
    };
    let is_bare = |piece: &Piece| {
        let Piece::Field { form, .. } = piece else { return false };
        matches!(form, Form::Plain | Form::Cased(Casing { is_escaped: false, .. }))
    };
    if entity.key.pk.pieces().iter().chain(entity.key.sk.pieces()).any(is_bare) {
        facts.insert(("escape", table.to_owned()), "none".to_owned());
    }
    facts.insert(("entity", name.clone()), table.to_owned());
    facts.insert(("key", name.clone()), text(&entity.key));
    facts.extend((entity.id != *name).then(|| (("id", name.clone()), entity.id.clone())));
    facts.extend(entity.derived.then(|| (("derived", name.clone()), String::new())));
    let of_form = form.indexes.iter().flat_map(IndexForm::parts).filter(|it| !it.is_plain).map(|it| &it.name);
    let of_form: BTreeSet<&String> = of_form.collect();
    let is_own = |name: &&String| !of_form.contains(name) && !name.contains('/');
    let attributes: BTreeSet<&String> =
        entity.attributes.iter().chain(&entity.derived_attributes).filter(is_own).collect();
    facts.insert(("attributes", name.clone()), format!("{attributes:?}"));
    for attribute in entity.derived_attributes.iter().filter(is_own) {
        facts.insert(("derived", format!("{name}.{attribute}")), String::new());
    }
    for index in &entity.indexes {
        let inside = index.index.strip_prefix(&format!("{}.", form.name)).unwrap_or(&index.index);
        let subject = format!("{name} in {inside}");
        facts.insert(("in", subject.clone()), text(&index.key));
        facts.extend(index.only_if.as_ref().map(|it| (("only", subject.clone()), format!("{it:?}"))));
        facts.extend(index.derived.then_some((("derived", subject), String::new())));
    }
}

fn of_read(facts: &mut Facts, access: &Access) {
    let name = kebab(&[&access.name]);
    let mut add = |aspect, value: String| facts.insert((aspect, name.clone()), value);
    add("name", access.name.clone());
    add("about", access.about.clone());
    add("consistent", format!("{:?}", access.consistency));
    // Without an id, a read has its name as one.
    if access.id != access.name {
        add("number", access.id.clone());
    }
    let AccessReads::Query(query) = &access.reads else {
        add("read", format!("{:?}", access.reads));
        return;
    };
    let index = query.index.as_ref().map(|index| index.rsplit('.').next().unwrap());
    add("read", format!("{:?} {index:?} {:?} {:?}", query.entities.first(), query.fields, query.next));
    add("entities", query.entities.join(", "));
    add("order", format!("{:?}", query.order));
    add("limit", query.limit.to_string());
    add("filter", format!("{:?}", query.filter.as_ref().map(|filter| &filter.condition)));
}

// ---- What a loss is about ----

/// True for a fact that a loss of this kind with this name explains.
fn explains(what: &str, name: &str, (aspect, subject): &Fact, facts: &Facts) -> bool {
    let of = name.rsplit_once("` of ").map_or(name, |(_, of)| of);
    let is_of_entity = |entity: &str| {
        let reads = || facts.get(&("entities", subject.clone())).or_else(|| facts.get(&("read", subject.clone())));
        let is_read = || reads().is_some_and(|read| read.split(&[',', '"', ' ']).any(|it| it == entity));
        let beside = subject.strip_prefix(entity).unwrap_or("x");
        (beside.is_empty() && !OF_READS.contains(aspect)) || beside.starts_with([' ', '.']) || is_read()
    };
    let is_read = |aspects: &[&str]| subject == &kebab(&[name]) && aspects.contains(aspect);
    match what {
        "attribute that names the entity of an item" => *aspect == "type" && subject == of,
        "other way to distinguish items" => is_of_entity(name.split(" and ").next().unwrap()),
        "time to live" => *aspect == "time to live" && subject == of,
        "table with unescaped keys" => *aspect == "escape" && subject == of,
        "id of an entity" => *aspect == "id" && subject == of,
        "mark of what is derived" => *aspect == "derived" && subject == of,
        "condition for being in an index" => *aspect == "only" && subject == of,
        "form of a key in an index" | "way to keep an entity out of an index of the table's own key" => {
            *aspect == "in" && subject == of
        }
        "index with several attributes in a part of its key" => {
            let index = of.split(" of ").next().unwrap();
            *aspect == "index" && subject == of || *aspect == "in" && subject.ends_with(&format!(" in {index}"))
        }
        "key of this form" if of.contains(" in ") => ["in", "only", "derived"].contains(aspect) && subject == of,
        "key of this form" => is_of_entity(of),
        "mark of a path, or of a value with any text" => ["key", "in"].contains(aspect) && is_of_entity(of),
        "projected attribute that no entity in the index has" => {
            *aspect == "index" && name.split_once(" in ").is_some_and(|(_, index)| subject == index)
        }
        "table without entities" => subject == name || subject.ends_with(&format!(" of {name}")),
        "key of type B" | "type of a key that no entity has" => ["table", "index", "key"].contains(aspect),
        "read"
        | "read of counters"
        | "read below a path"
        | "range behind several fields of a key"
        | "read by a key that is left out"
        | "filter of this form" => is_read(&OF_READS),
        "choice of entities in a partition" => is_read(&["entities", "read"]),
        "descending order" => is_read(&["order"]),
        "limit of a page" => is_read(&["limit"]),
        "id of a read other than a number of its own" => *aspect == "number" && subject == &kebab(&[of]),
        "name of a read with capital letters or `_`" => is_read(&["name"]),
        "derivation" => false,
        _ => panic!("{what}: {name}"),
    }
}

const OF_READS: [&str; 9] = ["name", "about", "consistent", "number", "read", "entities", "order", "limit", "filter"];

/// Compares a manifest with the draft from its export. Every difference is a loss, and every loss is a difference.
#[track_caller]
fn compare(text: &str, form: ExportForm) -> Vec<Loss> {
    let (Export { losses, .. }, drafted) = there_and_back(text, form);
    let (schema, _) = load(text).unwrap();
    let again = load(&drafted).map(|(schema, _)| schema);
    let only = schema.layout.forms.as_ref().map_or(TABLE, |forms| forms.0[0].name.as_str());
    let before = facts(&schema, Some(only));
    let after = match again {
        Ok(again) => facts(&again, Some(only)),
        Err(_) if drafted.is_empty() => Facts::new(),
        Err(error) => panic!("{error}\n{drafted}"),
    };
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    // A read without an id gets a number.
    let is_new_number = |key: &Fact| key.0 == "number" && !before.contains_key(key);
    let differs = |key: &&Fact| before.get(*key) != after.get(*key) && !is_new_number(key);
    let differ: Vec<&Fact> = keys.into_iter().filter(differs).collect();
    let parts = || losses.iter().flat_map(|loss| loss.names.iter().map(|name| (loss.what, name.as_str())));
    let mut wrong = Vec::new();
    for key in &differ {
        if !parts().any(|(what, name)| explains(what, name, key, &before)) {
            wrong.push(format!("{key:?} is no loss: {:?}, then {:?}", before.get(*key), after.get(*key)));
        }
    }
    for (what, name) in parts().filter(|(what, _)| *what != "derivation") {
        if !differ.iter().any(|key| explains(what, name, key, &before)) {
            wrong.push(format!("{what} {name:?} is a loss, and nothing differs"));
        }
    }
    assert!(wrong.is_empty(), "{form:?}\n{}\n{drafted}", wrong.join("\n"));
    losses
}

/// Compares a manifest in both forms, and lists the losses.
#[track_caller]
fn losses(name: &str, text: &str) -> String {
    let lines = |form| {
        let losses = compare(text, form);
        [format!("# {name}")].into_iter().chain(losses.iter().map(Loss::to_string)).collect::<Vec<_>>()
    };
    FORMS.into_iter().flat_map(lines).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_draft_from_an_export_equals_the_manifest_but_for_the_losses() {
    let all: String = manifests().iter().map(|(path, text)| losses(path, text)).collect();
    expect_file!["export.txt"].assert_eq(&all);
}

#[test]
fn files_of_other_tools_are_exported_as_they_were() {
    let files =
        [("Workbench", WORKBENCH), ("Forum", FORUM), ("Fleet", FLEET), ("OneTable", ONETABLE), ("Amplify", SCHEMA)];
    let drafted = |text: &str| draft("a file", &tables_of(text).unwrap().tables).text;
    let all: String = files.iter().map(|(name, text)| losses(name, &drafted(text))).collect();
    expect_file!["export_of_files.txt"].assert_eq(&all);
    // Drafting an exported file and exporting the draft again gives the same file.
    for (text, form) in files.iter().flat_map(|(_, text)| FORMS.map(|form| (text, form))) {
        let (_, first) = there_and_back(&drafted(text), form);
        let (second, again) = there_and_back(&first, form);
        assert_eq!(second.file, there_and_back(&again, form).0.file);
    }
}

/// Everything that is in no manifest of the repository.
const RARE: &str = include_str!("rare.toml");

#[test]
fn rare_parts_are_written_or_lost() {
    expect![[r#"
        # rare
        left out, as NoSQL Workbench has no attribute that names the entity of an item: `kind` of Rooms
        left out, as NoSQL Workbench has no way to keep an entity out of an index of the table's own key: Key in byOwner
        left out, as NoSQL Workbench has no read: roomsByState, tagged-rooms, open-rooms, rooms-by-form, rooms-of-house, points, guest, rooms
        left out, as NoSQL Workbench has no index with several attributes in a part of its key: byState of Rooms
        left out, as NoSQL Workbench has no other way to distinguish items: Room and Hall
        # rare
        left out, as schema.json has no attribute that names the entity of an item: `kind` of Rooms
        left out, as schema.json has no way to keep an entity out of an index of the table's own key: Key in byOwner
        left out, as schema.json has no id of a read other than a number of its own: `7` of tagged-rooms
        left out, as schema.json has no key of this form: `MAIL#{lower(mail)} / GUEST` of Guest
        left out, as schema.json has no other way to distinguish items: Room and Hall
        left out, as schema.json has no choice of entities in a partition: rooms-of-house
        left out, as schema.json has no name of a read with capital letters or `_`: roomsByState
        left out, as schema.json has no filter of this form: open-rooms, rooms-by-form
        left out, as schema.json has no type of a key that no entity has: `price` of Rooms
        left out, as schema.json has no key of type B: `hash` of Blobs
        left out, as schema.json has no limit of a page: points
        left out, as schema.json has no read by a key that is left out: guest
    "#]].assert_eq(&losses("rare", RARE));
}
