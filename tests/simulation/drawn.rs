//! Manifests that are drawn: a seed draws a whole `ripple.toml` first, then an application of it and the platform's faults.
//!
//! The `generator` draws a description, plain data that is never read back from the product; `toml` writes it as a user
//! would, and the crate `manifest` reads that. The functions, the platform and its faults, the operators and the checks are
//! those of every run; the application here writes items of the drawn entities, and the oracle recounts every derived value
//! by the description alone.

pub(crate) mod application;
pub(crate) mod check;
pub(crate) mod description;
mod generator;
pub(crate) mod oracle;
mod tests;
mod toml;
mod values;

use std::sync::Arc;

use derive::{catalogue::Catalogue, schema::Schema};
use keys::key::Key;

use self::description::{CLAIMS, CopyRule, Description, Found, KeyOf, Rule, Shown, What};
use crate::{chance::Chance, scene::Scene};

/// A drawn manifest, as it was drawn and as the product has read it.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) description: Description,
    pub(crate) text: String,
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    /// Was the same manifest with keys that meet refused?
    has_meeting: bool,
}

/// Draws a manifest, and reads it. An error is a fault of the generator or of the reader, which must refuse the same manifest
/// with two derived entities whose keys meet.
pub(crate) fn drawn(chance: &Chance) -> Result<Drawn, String> {
    let description = generator::draw(chance);
    let meeting = generator::with_meeting_keys(&description);
    let meeting = meeting.map(|description| toml::written(&description));
    if let Some(text) = meeting.as_ref().filter(|text| !is_refused_for_its_keys(text)) {
        return Err(format!("two derived entities of the manifest have keys in common, and it is taken\n{text}"));
    }
    let has_meeting = meeting.is_some();
    let text = toml::written(&description);
    match manifest::load(&text) {
        Ok((schema, catalogue)) => {
            Ok(Drawn { description, text, schema: Arc::new(schema), catalogue: Arc::new(catalogue), has_meeting })
        }
        Err(error) => Err(format!("the manifest is refused: {error}\n{text}")),
    }
}

fn is_refused_for_its_keys(text: &str) -> bool {
    manifest::load(text).is_err_and(|error| error.what.contains("can have the same key"))
}

impl Drawn {
    /// Counts what the manifest has.
    pub(crate) fn count(&self, scene: &Scene) {
        let of = &self.description;
        scene.count_all("keys that meet", usize::from(self.has_meeting));
        match (of.is_one_table(), of.tables.len()) {
            (true, _) => {
                scene.count("[table]");
                scene.count_all("[table] untyped", usize::from(of.tables[0].type_attribute.is_none()));
            }
            (false, 1) => scene.count("[tables] of one"),
            (false, _) => scene.count("[tables] of several"),
        }
        for (at, table) in of.tables.iter().enumerate().filter(|_| !of.is_one_table()) {
            scene.count(if table.has_forms { "tables of forms" } else { "tables of values" });
            scene.count_all("no sort key", usize::from(table.sk.is_none()));
            let n_entities = of.entities.iter().filter(|entity| entity.table == at).count();
            scene.count_all("shared tables", usize::from(!table.has_forms && n_entities > 1));
            for part in [Some(&table.pk), table.sk.as_ref()].into_iter().flatten() {
                scene.count(match part.of {
                    KeyOf::S => "key S",
                    KeyOf::N => "key N",
                    KeyOf::B => "key B",
                });
            }
        }
        for index in of.tables.iter().flat_map(|table| &table.indexes) {
            scene.count(if index.has_forms { "indexes of forms" } else { "indexes of values" });
            scene.count_all("indexes of several", usize::from(index.pk.len() + index.sk.len() > 2));
        }
        let claims = of.entities.iter().filter(|entity| entity.derives(CLAIMS)).count();
        scene.count_all("claims", claims);
        of.rules.iter().for_each(|rule| self.count_rule(scene, &rule.what));
    }

    fn count_rule(&self, scene: &Scene, what: &What) {
        let of = &self.description;
        let is_mirror = |entity: usize| usize::from(of.entities[entity].is_derived);
        let derived = |entity: usize, name: &str| of.entities[entity].derived.iter().find(|it| it.name == name);
        match what {
            What::Count(count) => {
                let creates = |it: &Rule| matches!(&it.what, What::Count(one) if one.creates && one.to == count.from);
                scene.count_all("counts of values", usize::from(of.rules.iter().any(creates)));
                scene.count_all("counts of mirrors", is_mirror(count.from));
                scene.count_all("counts into mirrors", is_mirror(count.to));
                scene.count_all("counts of members", usize::from(count.each.is_some()));
                let sum = count.sum.as_ref().and_then(|sum| derived(count.from, sum));
                scene.count_all("sums of counts", usize::from(sum.is_some()));
                scene.count_all("where", usize::from(count.condition.is_some()));
                scene.count_all("zero absent", usize::from(count.zero == "absent"));
                scene.count_all("zero always", usize::from(count.zero == "always"));
                for (shown, _) in &count.shows {
                    match shown {
                        Shown::Average => scene.count("average"),
                        Shown::Exists => scene.count("exists"),
                        Shown::Count | Shown::Sum => {}
                    }
                }
            }
            What::Copy(CopyRule { from, pairs, condition, found, .. }) => {
                scene.count_all("copies of some", usize::from(condition.is_some()));
                for copied in pairs.iter().filter_map(|(name, _)| derived(*from, name)) {
                    scene.count(if copied.is_number { "copies of counts" } else { "copies of copies" });
                }
                scene.count(match found {
                    Found::Partition => "found by partition",
                    Found::Index(_) => "found by index",
                    Found::Through(_) => "found through",
                });
            }
            What::Latest(latest) => {
                scene.count_all("latest of mirrors", is_mirror(latest.from));
                scene.count_all("latest by a value", usize::from(latest.by.is_some()));
                scene.count_all("latest of some", usize::from(latest.condition.is_some()));
            }
            What::Mirror(mirror) => {
                scene.count_all("mirrors of mirrors", is_mirror(mirror.from));
                scene.count_all("mirrors of some", usize::from(mirror.condition.is_some()));
                scene.count_all("mirrors of members", usize::from(mirror.each.is_some()));
            }
            What::RollUp(roll_up) => scene.count_all("roll-ups of some", usize::from(roll_up.condition.is_some())),
            What::Cascade { .. } => scene.count_all("cascades of tables", usize::from(!of.is_one_table())),
            What::Extreme { .. }
            | What::Unread(_)
            | What::Path { .. }
            | What::IndexKey { .. }
            | What::Window(_)
            | What::Calculated { .. } => {}
        }
    }

    /// Does it count what only comes?
    pub(crate) fn has_history(&self) -> bool {
        self.description.rules.iter().any(|rule| matches!(&rule.what, What::Count(count) if count.is_history))
    }

    /// An item that may be deadly: any of the application, or a mirror.
    pub(crate) fn deadly_item(&self, chance: &Chance) -> Option<Key> {
        let entity = chance.below(self.description.entities.len());
        let item = application::new_item(chance, &self.description, entity);
        self.inside(self.description.entities[entity].table, item).map(|(key, _)| key)
    }
}
