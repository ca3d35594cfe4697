//! The list of unreadable items is what the table says.

use std::collections::BTreeSet;

use derive::write::Table;
use keys::{item::text, key::Key};
use operate::verify::definition::Comparison;

use crate::{failure::Failure, platform::stream::Stream, scene::Scene};

/// Each item that cannot be interpreted is listed, by derivation, and no other item is.
pub(crate) fn list_is_exact(scene: &Scene, stream: &Stream, verified: &Comparison) -> Result<(), Failure> {
    // A new version does not see again what only an instance of the old one saw.
    if scene.rollout.is_any() {
        return Ok(());
    }
    let wanted = verified.unreadable.iter().map(|it| [&it.derivation, &it.pk, &it.sk].map(String::clone));
    // Only a record lists an item, or takes it off.
    let lost = stream.lost.keys(&stream.made);
    let is_sure = |[_, pk, sk]: &[String; 3]| !lost.contains(&Key::new(pk, sk));
    let wanted: BTreeSet<[String; 3]> = wanted.filter(is_sure).collect();
    let listed: BTreeSet<[String; 3]> = scene.database.memory().view(Table::Ledger, |items| {
        let entries = items.iter().filter(|(key, _)| key.pk == "UNREADABLE");
        let names = ["Derivation", "ItemPK", "ItemSK"];
        let listed = entries.map(|(_, entry)| names.map(|name| text(entry, name).unwrap_or_default().to_owned()));
        listed.filter(is_sure).collect()
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
