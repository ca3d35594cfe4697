//! Parked changes: finds those about an item, for a person whose data must be removed; redrives them, and discards
//! them.
//!
//! A parked change is about an item if the item was changed, if the change would count for it, refresh it or start its
//! cascade, or if the record or the cause contains its key or its id. An id is what the key's form takes from the item:
//! `ada` of `USER#ada / PROFILE`. It counts only as a whole word, so that `ada` is not found in `Canada`.

use std::{collections::BTreeSet, fmt, sync::Arc};

use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use engine::{
    backoff::{GaveUp, describe},
    batch::Engine,
    clock::{Clock as _, SystemClock},
    park::ParkedChange,
    publishing::RegistryError,
    redrive::{
        Redriven,
        discard::{Concerns, Discarded},
    },
};
use keys::{escape::restored, fields::Fields, key::Key, layout::Layout};
use serde_json::Value;
use store::Store;

/// An item, or all items with a partition key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The partition key.
    pub pk: String,
    /// The sort key; `None` for all items with the partition key.
    pub sk: Option<String>,
}

impl About {
    /// The same, in the form in which the keys of this layout are compared.
    #[must_use]
    pub fn addressed(&self, layout: &Layout) -> Self {
        let key = layout.address(&self.pk, self.sk.as_deref());
        key.map_or_else(|| self.clone(), |Key { pk, sk }| Self { pk, sk: Some(sk) })
    }

    fn is(&self, key: &Key) -> bool {
        self.pk == key.pk && self.sk.as_ref().is_none_or(|sk| *sk == key.sk)
    }

    /// Checks that a declared entity has items with this key.
    ///
    /// # Errors
    ///
    /// A sentence with the key that is probably meant, or with the declared forms of keys.
    pub fn check(&self, schema: &Schema) -> Result<(), String> {
        let is_item = |pk: &str, sk: &str| schema.entities().any(|it| it.key.parse_key(&Key::new(pk, sk)).is_some());
        if let (None, Some((pk, sk))) = (&self.sk, self.pk.split_once('/'))
            && is_item(pk, sk)
        {
            return Err(format!("--about: {self} is one key: for an item, give '{pk} / {sk}'"));
        }
        let is_declared = match &self.sk {
            Some(sk) => is_item(&self.pk, sk),
            None => schema.entities().any(|entity| entity.key.pk.parse_key(&self.pk).is_some()),
        };
        if is_declared {
            return Ok(());
        }
        let declared = schema.entities().filter(|entity| !entity.is_own());
        let forms: BTreeSet<String> = declared.map(|it| format!("{} / {}", it.key.pk, it.key.sk)).collect();
        let forms: Vec<String> = forms.into_iter().collect();
        Err(format!("--about: no entity has the key {self}; the forms of keys are {}", forms.join(", ")))
    }

    /// The texts that a record about the item contains, in groups: each text of one group.
    fn texts(&self, schema: &Schema) -> BTreeSet<Vec<String>> {
        let key = [Some(&self.pk), self.sk.as_ref()].into_iter().flatten().cloned().collect();
        let mut groups = BTreeSet::from([key]);
        for entity in schema.entities() {
            let form = &entity.key;
            // A sort key that is the same for every item has no id.
            let fields = self.sk.as_ref().and_then(|sk| form.sk.parse_key(sk));
            let of_sk = fields.filter(|fields| fields.iter().next().is_some());
            let fits = self.sk.as_ref().is_none_or(|sk| form.parse_key(&Key::new(&self.pk, sk)).is_some());
            let fields = of_sk.or_else(|| form.pk.parse_key(&self.pk)).filter(|_| fits);
            let ids: Vec<String> = fields.iter().flat_map(Fields::iter).map(|(_, id)| id.to_owned()).collect();
            if !ids.is_empty() && ids.iter().all(|id| !id.is_empty()) {
                groups.insert(ids);
            }
        }
        groups
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sk {
            Some(sk) => Key::new(&self.pk, sk).fmt(f),
            None => write!(f, "the partition key {}", self.pk),
        }
    }
}

/// Why a parked change is about an item, in sentences' parts; empty if it is not.
#[must_use]
pub fn reasons<S: Store>(engine: &Engine<S>, parked: &ParkedChange, about: &About) -> Vec<String> {
    let concerns = engine.concerns(parked);
    let has = |mut keys: Box<dyn Iterator<Item = &Key> + '_>| keys.any(|key| about.is(key));
    let named = |all: &BTreeSet<(String, Key)>| all.iter().any(|(_, key)| about.is(key));
    let is_counted = has(Box::new(concerns.counts.iter().map(|target| &target.item)));
    let mut reasons: Vec<String> = [
        (has(Box::new(concerns.item.iter())), "it changed the item"),
        (is_counted, "it would count for it"),
        (has(Box::new(concerns.items.iter())), "it would refresh it"),
        (named(&concerns.searches), "it would refresh items that depend on it"),
        (named(&concerns.cascades), "it would start its cascade"),
    ]
    .into_iter()
    .filter(|(is_so, _)| *is_so)
    .map(|(_, reason)| reason.to_owned())
    .collect();
    let Ok(record) = parked.record() else {
        reasons.push("its record cannot be unpacked, so it may contain it".to_owned());
        return reasons;
    };
    let mut texts = vec![parked.cause.clone()];
    match serde_json::from_str(&record) {
        Ok(record) => strings(&record, &mut texts),
        Err(_) => texts.push(record),
    }
    let contains =
        |wanted: &String| texts.iter().any(|text| has_word(text, wanted) || has_word(&restored(text), wanted));
    let groups = about.texts(engine.schema());
    let contained = groups.iter().filter(|group| group.iter().all(contains));
    reasons.extend(contained.map(|group| format!("it contains {}", group.join(" and "))));
    reasons
}

/// All texts of a JSON value, names included.
fn strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, texts)),
        Value::Object(members) => {
            texts.extend(members.keys().cloned());
            members.values().for_each(|value| strings(value, texts));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// True if the text contains these characters with no letter or digit beside them.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.into_iter().chain(after).any(char::is_alphanumeric)
    })
}

// ---- Redriving ----

/// Time limit for one change, in milliseconds: the rename of a famous user refreshes thousands of items.
const REDRIVE_MS_MAX: u64 = 300_000;

/// What became of a parked change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It is no longer parked, but `applied` or `discarded`.
    Done(&'static str),
    /// It was no longer parked.
    Gone,
    /// It stays parked.
    Still {
        /// Why.
        cause: String,
    },
    /// The database did not respond: the change is done or parked, and the command can safely be repeated.
    Failed {
        /// What the database reported.
        why: String,
    },
    /// An earlier change failed.
    NotTried,
}

impl ChangeOutcome {
    /// The outcome's name, which is stable, and the reason.
    #[must_use]
    pub fn describe(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Done(name) => (name, None),
            Self::Gone => ("was not parked any more", None),
            Self::Still { cause } => ("still parked", Some(cause)),
            Self::Failed { why } => ("failed", Some(why)),
            Self::NotTried => ("not tried", None),
        }
    }
}

impl fmt::Display for ChangeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.describe() {
            (name, Some(why)) => write!(f, "{name}: {why}"),
            (name, None) => f.write_str(name),
        }
    }
}

/// Redrives a change.
///
/// # Errors
///
/// [`RegistryError`] if the engine cannot register its derivations; then nothing is redriven.
pub async fn redrive<S: Store>(engine: &Engine<Arc<S>>, change: &ParkedChange) -> Result<ChangeOutcome, RegistryError> {
    engine.publish(SystemClock.now_ms().saturating_add(REDRIVE_MS_MAX)).await?;
    Ok(match engine.redrive(change, SystemClock.now_ms().saturating_add(REDRIVE_MS_MAX)).await {
        Ok(Redriven::Applied(_)) => ChangeOutcome::Done("applied"),
        Ok(Redriven::Gone) => ChangeOutcome::Gone,
        Ok(Redriven::Still { cause }) => ChangeOutcome::Still { cause },
        Err(error) => ChangeOutcome::Failed { why: describe(&error) },
    })
}

// ---- Discarding ----

/// Time limit for one change, in milliseconds: a few reads and a transaction.
const DISCARD_MS_MAX: u64 = 30_000;

/// What is lost with a parked change; the derivations have their labels.
///
/// # Errors
///
/// [`GaveUp`] if the ledger cannot be read.
pub async fn lost<S: Store>(engine: &Engine<Arc<S>>, change: &ParkedChange) -> Result<Concerns, GaveUp> {
    let mut lost = engine.lost(change, SystemClock.now_ms().saturating_add(DISCARD_MS_MAX)).await?;
    let catalogue: &Catalogue = engine.catalogue();
    let relabelled = |mut name: String| {
        catalogue.relabel(&mut name);
        name
    };
    for named in [&mut lost.searches, &mut lost.cascades] {
        *named = std::mem::take(named).into_iter().map(|(name, key)| (relabelled(name), key)).collect();
    }
    lost.counts = std::mem::take(&mut lost.counts)
        .into_iter()
        .map(|mut target| {
            catalogue.relabel(&mut target.derivation);
            target
        })
        .collect();
    Ok(lost)
}

/// What is lost, a line for each part, with what to do about it.
#[must_use]
pub fn lost_lines(change: &ParkedChange, lost: &Concerns) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for target in &lost.counts {
        lines.push(format!("its change of {} at {}: it is listed for a recount", target.derivation, target.item));
    }
    if change.family == Family::Additive && lost.counts.is_empty() && lost.unknown.is_some() {
        lines.push("its change of any count, because it cannot be read: it is listed for a recount".to_owned());
    }
    lines.extend(lost.items.iter().map(|item| format!("the refresh of {item}: run `ripple repair`")));
    for (derivation, source) in &lost.searches {
        lines.push(format!("the refresh by {derivation} of the items that depend on {source}: run `ripple repair`"));
    }
    for (derivation, owner) in &lost.cascades {
        lines.push(format!(
            "the cascade {derivation} of {owner}: it will not run, so delete what belonged to it yourself"
        ));
    }
    lines.extend(lost.jobs.iter().map(|job| format!("what the job {job} could not do: run `ripple repair`")));
    if change.family == Family::LevelTriggered && lost.unknown.is_some() {
        lines.push("its refreshes, which are unknown, because it cannot be read: run `ripple repair`".to_owned());
    }
    lines
}

/// Discards a change.
///
/// # Errors
///
/// [`RegistryError`] if the registry cannot be read; then nothing is discarded.
pub async fn discard<S: Store>(engine: &Engine<Arc<S>>, change: &ParkedChange) -> Result<ChangeOutcome, RegistryError> {
    let deadline_ms = SystemClock.now_ms().saturating_add(DISCARD_MS_MAX);
    engine.publish(deadline_ms).await?;
    Ok(match engine.discard(change, deadline_ms).await {
        Ok(Discarded::Done) => ChangeOutcome::Done("discarded"),
        Ok(Discarded::Gone) => ChangeOutcome::Gone,
        Ok(Discarded::Still { cause }) => ChangeOutcome::Still { cause },
        Err(error) => ChangeOutcome::Failed { why: describe(&error) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = r##"
            [table]
            partition-key = "pk"
            sort-key = "sk"
            type = "Type"

            [entity.User]
            partition-key = "USER#{userId}"
            sort-key = "PROFILE"

            [entity.Order]
            partition-key = "USER#{userId}"
            sort-key = "ORDER#{orderId}"
        "##;
        manifest::load(text).unwrap().0
    }

    #[test]
    fn a_record_about_an_item_contains_its_key_or_its_ids() {
        let texts = |pk: &str, sk: Option<&str>| {
            let about = About { pk: pk.to_owned(), sk: sk.map(str::to_owned) };
            about.texts(&schema()).into_iter().map(|group| group.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(texts("USER#ada", None), ["USER#ada", "ada"]);
        assert_eq!(texts("USER#ada", Some("PROFILE")), ["USER#ada PROFILE", "ada"]);
        assert_eq!(texts("USER#ada", Some("ORDER#7")), ["7", "USER#ada ORDER#7"]);
        assert_eq!(texts("GADGET#1", Some("X")), ["GADGET#1 X"], "of no declared form");
    }

    #[test]
    fn a_key_of_no_entity_is_refused_with_the_one_that_is_meant() {
        let check = |pk: &str, sk: Option<&str>| {
            About { pk: pk.to_owned(), sk: sk.map(str::to_owned) }.check(&schema()).err().unwrap_or_default()
        };
        assert_eq!([check("USER#ada", None), check("USER#ada", Some("PROFILE"))], ["", ""]);
        let meant = "--about: the partition key USER#ada/PROFILE is one key: for an item, give 'USER#ada / PROFILE'";
        assert_eq!(check("USER#ada/PROFILE", None), meant);
        let forms = "the forms of keys are USER#{userId} / ORDER#{orderId}, USER#{userId} / PROFILE";
        let none = format!("--about: no entity has the key user#ada / PROFILE; {forms}");
        assert_eq!(check("user#ada", Some("PROFILE")), none);
    }

    #[test]
    fn an_id_is_found_as_a_whole_word() {
        for (text, is_found) in [
            ("ada", true),
            ("USER#ada", true),
            ("hello ada!", true),
            ("Canada", false),
            ("adam", false),
            ("ada2", false),
            ("Canada, ada", true),
        ] {
            assert_eq!(has_word(text, "ada"), is_found, "{text}");
        }
    }

    #[test]
    fn every_text_of_a_record_is_searched() {
        let mut texts = Vec::new();
        let record = serde_json::json!({"dynamodb": {"NewImage": {"Tags": {"L": [{"S": "a"}, {"N": "7"}]}}}, "n": 1});
        strings(&record, &mut texts);
        let values: Vec<&String> = texts.iter().filter(|text| ["a", "7", "Tags"].contains(&text.as_str())).collect();
        assert_eq!(values.len(), 3, "{texts:?}");
    }
}
