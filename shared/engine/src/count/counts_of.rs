//! The counts to which records add, where it is asked beside their application.

use std::collections::BTreeSet;

use derive::family::Family;
use keys::key::Key;
use store::Store;

use crate::{
    batch::{input::Batch, planning::Planner},
    context::Context,
    count::{recount::targets, target::Target},
};

/// Counts to which records add.
#[derive(Clone, Debug, Default)]
pub struct CountsOf {
    pub(crate) targets: BTreeSet<Target>,
    /// Names of the counts to which a record may add whose plan is not known.
    pub(crate) derivations: BTreeSet<String>,
    /// Is there a record of which not even the item is known, so that it may add to anything?
    pub is_any: bool,
}

impl CountsOf {
    /// The counts to which the first record of a batch adds.
    pub(crate) fn of<S: Store>(context: &Context<S>, batch: &Batch<'_>) -> Self {
        if let Ok(asked) = Planner::new(context).asked_of(Family::Additive, batch) {
            let targets = asked.entries.iter().flat_map(|entry| targets(&context.catalogue, &entry.change));
            return Self { targets: targets.collect(), ..Self::default() };
        }
        let key = batch.records.first().and_then(|record| record.key(&context.schema.layout));
        let derivations = key.iter().flat_map(|key| Self::at(context, key)).collect();
        Self { derivations, is_any: key.is_none(), ..Self::default() }
    }

    /// Names of the counts to which an item of this key may add.
    fn at<S>(context: &Context<S>, key: &Key) -> impl Iterator<Item = String> {
        let entities = context.schema.entities().filter(|definition| definition.key.parse_key(key).is_some());
        let entities: BTreeSet<&str> = entities.map(|definition| definition.name.as_str()).collect();
        let counts = context.catalogue.derivations().filter(|derivation| derivation.kind.family() == Family::Additive);
        let counts =
            counts.filter(move |derivation| derivation.kind.entities().iter().any(|name| entities.contains(name)));
        counts.map(|derivation| derivation.name.clone())
    }

    /// Adds other counts.
    pub fn extend(&mut self, other: Self) {
        self.targets.extend(other.targets);
        self.derivations.extend(other.derivations);
        self.is_any |= other.is_any;
    }

    /// Is this target one of them, or may it be?
    #[must_use]
    pub fn has(&self, target: &Target) -> bool {
        self.is_any || self.derivations.contains(&target.derivation) || self.targets.contains(target)
    }

    /// May any of them be of these derivations?
    #[must_use]
    pub fn is_any_of(&self, derivations: &BTreeSet<String>) -> bool {
        self.is_any
            || self.targets.iter().any(|target| derivations.contains(&target.derivation))
            || self.derivations.iter().any(|name| derivations.contains(name))
    }

    /// May any of them be one of these targets?
    #[must_use]
    pub fn is_any_at(&self, targets: &BTreeSet<Target>) -> bool {
        self.is_any
            || self.targets.iter().any(|target| targets.contains(target))
            || targets.iter().any(|target| self.derivations.contains(&target.derivation))
    }

    /// The targets; `None` where more may be added to than is known.
    pub(crate) fn planned(&self) -> Option<&BTreeSet<Target>> {
        (!self.is_any && self.derivations.is_empty()).then_some(&self.targets)
    }

    pub(crate) fn is_none(&self) -> bool {
        !self.is_any && self.targets.is_empty() && self.derivations.is_empty()
    }
}
