//! Write rates of an application, measured from the records that its table's stream still has. A cost estimate needs
//! them.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    change::{Change, Images, Sight},
    effect::Effect,
    family::Family,
    kind::Shape,
    plan::{RecordKind, plan},
    position::DerivationAt,
};
use engine::record::decode;
use keys::{fnv::hash_64, key::Key};
use store::Store;

use crate::{
    OperateError,
    tables::Deployment,
    verify::{Retained as _, ShardRecords, VerifyError},
};

const SECOND_MS: f64 = 1_000.0;

/// Write rates of an application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// The time between the first and the last record, in seconds.
    pub seconds: f64,
    /// How many records were read.
    pub n_records: usize,
    /// How many of them are application changes that a derivation reads.
    pub n_changes: usize,
    /// How many of those change a source that other items copy, so that they start a fan-out.
    pub n_fanned_out: usize,
    /// Changes a second of each entity, without those that start a fan-out.
    pub entities: BTreeMap<String, f64>,
    /// Number of targets of each count or roll-up.
    pub targets: BTreeMap<String, usize>,
    /// By derivation, the changes a second that start a fan-out, and the average number of items that each refreshes.
    pub fan_outs: BTreeMap<String, (f64, f64)>,
}

#[derive(Default)]
struct RecordCounts {
    times_ms: Option<(u64, u64)>,
    entities: BTreeMap<String, u32>,
    /// Hashes of the targets, so that memory suffices for a table of any size.
    targets: BTreeMap<DerivationAt, BTreeSet<u64>>,
    finds: BTreeMap<DerivationAt, u32>,
    followed: BTreeMap<DerivationAt, u32>,
}

/// Measures the records that the stream still has.
///
/// # Errors
///
/// [`OperateError`] if the table has no stream, or it cannot be read.
pub async fn rates<S: Store>(opened: &Deployment<S>) -> Result<Rates, OperateError> {
    if opened.streams.is_empty() {
        return Err(OperateError::Usage(format!(
            "the table {} has no stream, so nothing can be measured",
            opened.name
        )));
    }
    let mut retained = opened.retained();
    let (mut rates, mut counts) = (Rates::default(), RecordCounts::default());
    while let Some(ShardRecords { records, .. }) = retained.next().await.map_err(VerifyError::Stream)? {
        rates.n_records += records.len();
        for record in records {
            if let Ok(change) = decode(&opened.schema.layout, &record) {
                add(opened, &change, &mut rates, &mut counts);
            }
        }
    }
    Ok(divided(opened, rates, counts))
}

fn add<S>(opened: &Deployment<S>, change: &Change, rates: &mut Rates, counts: &mut RecordCounts) {
    let (schema, catalogue) = (&opened.schema, &opened.catalogue);
    if let Some(created_ms) = change.created_ms {
        let (first, last) = counts.times_ms.unwrap_or((created_ms, created_ms));
        counts.times_ms = Some((first.min(created_ms), last.max(created_ms)));
    }
    let sight = Sight::of(schema, change);
    let Some(image) = sight.new.as_ref().or(sight.old.as_ref()) else { return };
    let entity = image.definition;
    if let Images::Modified { .. } = change.images {
        for at in catalogue.refreshing(&entity.name) {
            // The first write of an attribute belongs to the item's creation.
            let had = |name: &str| sight.old.as_ref().is_some_and(|old| old.attribute(name).is_some());
            let is_written = |name: &str| sight.differs_in(name) && had(name);
            let writes = catalogue.writes(at).iter().filter_map(|part| part.of.attribute());
            *counts.followed.entry(at).or_default() += u32::from(writes.into_iter().any(is_written));
        }
    }
    let planned = plan(schema, catalogue, &[Family::Additive, Family::LevelTriggered], change);
    if planned.record != RecordKind::Change || entity.derived {
        return;
    }
    let is_new = matches!(change.images, Images::Inserted(_));
    let mut is_fanned_out = false;
    for (at, effect) in planned.effects {
        let target = match effect {
            Effect::Add(add) => add.target,
            Effect::Measure(measure) => measure.bucket,
            // A new source has no dependent items.
            Effect::Find(_) if !is_new => {
                is_fanned_out = true;
                *counts.finds.entry(at).or_default() += 1;
                continue;
            }
            _ => continue,
        };
        counts.targets.entry(at).or_default().insert(hash(&target));
    }
    rates.n_changes += 1;
    rates.n_fanned_out += usize::from(is_fanned_out);
    if !is_fanned_out {
        *counts.entities.entry(entity.name.clone()).or_default() += 1;
    }
}

fn hash(key: &Key) -> u64 {
    hash_64(key.pk.bytes().chain([0]).chain(key.sk.bytes()))
}

fn divided<S>(opened: &Deployment<S>, mut rates: Rates, counts: RecordCounts) -> Rates {
    let (first, last) = counts.times_ms.unwrap_or_default();
    // A record's time is rounded down to a second, so one record counts as one second.
    rates.seconds = f64::from(u32::try_from(last.saturating_sub(first)).unwrap_or(u32::MAX)) / SECOND_MS + 1.0;
    let name = |at: &DerivationAt| opened.catalogue.label(*at).to_owned();
    let a_second = |n: u32| f64::from(n) / rates.seconds;
    rates.entities = counts.entities.into_iter().map(|(entity, n)| (entity, a_second(n))).collect();
    let is_spread = |at: &DerivationAt| {
        let kind = opened.catalogue.derivation(*at).map(|derivation| derivation.kind.shape());
        matches!(kind, Some(Shape::Count(_) | Shape::Rollup(_)))
    };
    let targets = counts.targets.iter().filter(|(at, _)| is_spread(at));
    rates.targets = targets.map(|(at, targets)| (name(at), targets.len())).collect();
    let fan_out = |(at, n): (&DerivationAt, &u32)| {
        let followed = counts.followed.get(at).copied().unwrap_or(0);
        (name(at), (a_second(*n), f64::from(followed) / f64::from(*n)))
    };
    rates.fan_outs = counts.finds.iter().map(fan_out).collect();
    rates
}
