//! The list of unreadable items is what the table says.

use std::collections::BTreeSet;

use derive::write::Table;
use keys::item::text;
use operate::verify::definition::Comparison;

use crate::{failure::Failure, scene::Scene};

/// Each item that cannot be interpreted is listed, by derivation, and no other item is.
pub(crate) fn list_is_exact(scene: &Scene, verified: &Comparison) -> Result<(), Failure> {
    // A new version does not see again what only an instance of the old one saw.
    if scene.rollout.is_any() {
        return Ok(());
    }
    let wanted = verified.unreadable.iter().map(|it| [&it.derivation, &it.pk, &it.sk].map(String::clone));
    let wanted: BTreeSet<[String; 3]> = wanted.collect();
    let listed: BTreeSet<[String; 3]> = scene.database.memory().view(Table::Ledger, |items| {
        let entries = items.iter().filter(|(key, _)| key.pk == "UNREADABLE");
        let names = ["Derivation", "ItemPK", "ItemSK"];
        entries.map(|(_, entry)| names.map(|name| text(entry, name).unwrap_or_default().to_owned())).collect()
    });
    scene.count_all("listed unreadable", listed.len());
    if listed == wanted {
        return Ok(());
    }
    let text = format!(
        "listed as unreadable and should not be: {:?}; should be and is not: {:?}",
        listed.difference(&wanted).collect::<Vec<_>>(),
        wanted.difference(&listed).collect::<Vec<_>>()
    );
    Err(Failure::new("unreadable", text))
}
