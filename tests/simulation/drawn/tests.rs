//! What is drawn is taken by the reader, and the drawn runs can fail.

use std::collections::BTreeMap;

use derive::{guard::Purpose, write::Table};
use engine::{ledger::LedgerKind, protocol::ProtocolStep};
use keys::key::Key;

use crate::{
    DRAWN,
    chance::Chance,
    checks::is_way_taken,
    drawn::{check::is_right, description::CLAIMS, drawn},
    items::s,
    mutant::Mutant,
    scene::Scene,
    seeds::{Config, first_failure},
    stored::refused_unread,
    world::World,
};

/// Manifests that are only read.
const MANIFESTS: u64 = 2_000;

/// Seeds within which a drawn run notices what is left out.
const MUTANT_SEEDS: u64 = 300;

/// Seeds at whose end each value is altered.
const ALTERED_SEEDS: u64 = 16;

#[test]
fn what_is_drawn_is_taken() {
    let mut refused = BTreeMap::<String, (usize, u64)>::new();
    for seed in 0..MANIFESTS {
        if let Err(error) = drawn(&Chance::of_seed(seed)) {
            let line = error.lines().next().unwrap_or_default().to_owned();
            refused.entry(line).or_insert((0, seed)).0 += 1;
        }
    }
    assert!(refused.is_empty(), "of {MANIFESTS} manifests, with the number and the first seed of each: {refused:#?}");
}

#[test]
fn drawn_runs_notice_what_is_left_out() {
    let [receipts, watermarks] = DRAWN;
    for (config, mutant) in [
        (receipts, Mutant::Unguarded(Purpose::Receipt)),
        (watermarks, Mutant::Unguarded(Purpose::Watermark)),
        (receipts, Mutant::Without(ProtocolStep::OwnRequest)),
        (receipts, Mutant::Without(ProtocolStep::ConsistentRead)),
    ] {
        let (failed, _) = first_failure(Config { mutant: Some(mutant), ..config }, 0..MUTANT_SEEDS);
        let (seed, failure) = failed.unwrap_or_else(|| panic!("nothing needs {mutant:?}"));
        println!("{:<32} {seed:>4} {}", format!("{mutant:?}"), failure.category);
    }
}

#[test]
fn the_oracle_of_drawn_manifests_names_each_value_that_is_altered() {
    let mut n_altered = 0;
    for seed in 0..ALTERED_SEEDS {
        let chance = Chance::of_seed(seed);
        let scene = Scene::of_drawn(drawn(&chance).unwrap(), chance, DRAWN[0], false);
        if scene.is_lossy {
            continue;
        }
        let mut world = World::new(&scene, LedgerKind::Receipts);
        world.run_until_quiet().unwrap();
        // What a replay refuses may be missing in a history or in a bucket.
        if !refused_unread(&scene).is_empty() {
            continue;
        }
        let (drawn, memory) = (scene.drawn.as_ref().unwrap(), scene.database.memory());
        is_right(&scene, drawn, &world.stream).unwrap();
        let items = memory.snapshot(Table::Main);
        let is_left = |key: &Key| scene.catalogue.derivations().any(|it| is_way_taken(&scene, &items, &it.name, key));
        // What an application's item hides may be old, so nothing is said of it.
        for (key, item) in items.iter().filter(|(key, _)| !is_left(key)) {
            let Some(row) = drawn.row(key, item) else { continue };
            let derived = &drawn.description.entities[row.entity].derived;
            for name in derived.iter().map(|it| &it.name).filter(|name| item.contains_key(name) && *name != CLAIMS) {
                let mut altered = item.clone();
                altered.insert(name.clone(), s("altered"));
                memory.put_raw(Table::Main, altered).unwrap();
                let failure =
                    is_right(&scene, drawn, &world.stream).expect_err(&format!("seed {seed}: {name} of {key}"));
                assert_eq!(failure.category, "recount", "{name} of {key}: {failure}");
                n_altered += 1;
            }
            memory.put_raw(Table::Main, item.clone()).unwrap();
        }
    }
    assert!(n_altered > 100, "{n_altered} values were altered");
}
