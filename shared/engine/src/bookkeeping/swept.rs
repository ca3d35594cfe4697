//! The items of the sweep, and of operators who repair.

use std::collections::BTreeSet;

use derive::family::Family;
use keys::{key::Key, layout::Layout};

use crate::{
    bookkeeping::{Kept, Life, of},
    ledger::{self, PROOF_KEPT_S},
    registry,
    sweep::{
        round::Round,
        suspects::{SUSPECT_KEPT_S, Suspect},
    },
};

pub(super) fn swept(layout: &Layout) -> Vec<Kept> {
    let item = Key::new("{ItemPK}", "{ItemSK}");
    let round =
        Round { after: Some(item.clone()), after_suspect: Some(String::new()), last_ms: Some(0), ..Round::default() };
    let suspect = Suspect {
        item: item.clone(),
        entity: "{Entity}".to_owned(),
        derivations: vec!["{Derivation}".to_owned()],
        named: BTreeSet::from([item]),
        difference: "checksum".to_owned(),
        noted_at_ms: 0,
    };
    let mut kept: Vec<Kept> = of(
        layout,
        "place of the sweep",
        "how far the sweep's round over the table is, and how long the one before took; moved while it stands where it \
         was read",
        Life::Forever,
        [round.write(layout)],
    )
    .collect();
    kept.extend(of(
        layout,
        "suspect",
        "an item of which a derived part differed when the sweep looked; of values a checksum alone",
        Life::Seconds(SUSPECT_KEPT_S),
        [suspect.note(layout, None)],
    ));
    kept
}

pub(super) fn repairs(layout: &Layout) -> Vec<Kept> {
    let counter = Key::new("{ItemPK}", "{ItemSK}");
    let mut kept: Vec<Kept> = of(
        layout,
        "right to repair counts",
        "the run of `ripple repair` that began last; no other adds to a count",
        Life::Forever,
        [ledger::right(layout, "{Run}", 0)],
    )
    .collect();
    kept.extend(of(
        layout,
        "receipt of a repair",
        "proof that a run has repaired a count; in the transaction of what it adds, put if absent",
        Life::Seconds(PROOF_KEPT_S),
        [ledger::repair_receipt(layout, "{Run}", "{Derivation}", &counter, 0)],
    ));
    kept
}

pub(super) fn registered(layout: &Layout) -> Vec<Kept> {
    let families = [Family::Additive, Family::LevelTriggered];
    of(
        layout,
        "registry",
        "which derivations the functions of a family have, as what, since when, and since when they are filled; each \
         instance looks at it, and publishes its own when it has others. An item for each family",
        Life::Forever,
        families.map(|family| registry::sample(layout, family)),
    )
    .collect()
}
