//! The shipped table, declared in `examples/social/ripple.toml`, is what the typed declarations say.

use derive::{catalogue::Catalogue, definition::definition, schema::Schema};
use keys::{counter::COUNTER, entity::Definition};

fn declared() -> (Schema, Catalogue) {
    manifest::load(include_str!("../../examples/social/ripple.toml")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_manifest_declares_the_derivations() {
    let (schema, catalogue) = declared();
    let said = |schema: &Schema, catalogue: &Catalogue| -> Vec<String> {
        let all = catalogue.derivations();
        all.map(|it| format!("{} {} = {}\n{:?}", it.id, it.name, definition(it, schema), it.kind)).collect()
    };
    let typed = catalogue::schema();
    let [ours, theirs] = [said(&schema, &catalogue), said(&typed, &catalogue::catalogue(&typed).unwrap())];
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn the_manifest_declares_the_entities() {
    let (schema, _) = declared();
    let typed = catalogue::schema();
    assert_eq!(schema.layout, typed.layout);
    // What expires is of the table and not of an entity, and counters are in every schema.
    let time_to_live = typed.layout.time_to_live.clone().unwrap();
    let all = |schema: &Schema| -> Vec<Definition> {
        let all = schema.entities().filter(|definition| definition.name != COUNTER).cloned();
        all.map(|mut definition| {
            definition.attributes.retain(|name| *name != time_to_live);
            definition
        })
        .collect()
    };
    let [ours, theirs] = [all(&schema), all(&typed)];
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}
