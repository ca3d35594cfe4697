//! What is parked, or left to a job, of what is asked about.

use derive::{effect::Effect, family::Family, plan::plan, write::Table};
use engine::{
    jobs::{ground::sweep::jobs, job::Job},
    park::{pages::ParkedPages, redrive::ParkedChange},
    record::decode,
};
use keys::key::Key;
use store::Store;

use super::{AskedAbout, Explainer};
use crate::failure::OperateError;

/// What is pending.
#[derive(Debug, Default)]
pub struct Pending {
    /// Parked changes that concern it.
    pub parked: Vec<ParkedOfItem>,
    /// How many parked changes cannot be decoded, and may concern it or not.
    pub n_undecodable: usize,
    /// Jobs that concern it.
    pub jobs: Vec<Job>,
}

/// A parked change that concerns what is asked about.
#[derive(Debug)]
pub struct ParkedOfItem {
    /// Id of its event.
    pub id: String,
    /// The family that it is parked for.
    pub family: Family,
    /// The item that was changed.
    pub item: Key,
    /// Why it is parked.
    pub cause: String,
}

impl<S: Store> Explainer<'_, S> {
    /// What is parked, or left to a job, of what is asked about.
    pub(super) async fn pending(&self, asked: &AskedAbout) -> Result<Pending, OperateError> {
        let mut pending = Pending::default();
        for family in [Family::Additive, Family::LevelTriggered] {
            let mut pages = ParkedPages::of(family);
            while let Some((query, after)) = pages.next() {
                let store = self.engine.store();
                let page = self.patience().call(|| store.query(Table::Ledger, &query, after.clone())).await?;
                for parked in pages.take(page) {
                    self.parked(&parked, asked, &mut pending);
                }
            }
        }
        let jobs = self.patience().call(|| jobs(self.engine.store(), &self.schema().layout)).await?;
        let concerns = |job: &Job| {
            asked.derivations.contains(&job.derivation)
                && (asked.own.contains(job.origin()) || asked.sources.contains(job.origin()))
        };
        pending.jobs.extend(jobs.into_iter().filter(concerns));
        Ok(pending)
    }

    fn parked(&self, parked: &ParkedChange, asked: &AskedAbout, pending: &mut Pending) {
        let change = parked.record().ok().and_then(|record| decode(&self.schema().layout, &record).ok());
        let Some(change) = change else {
            pending.n_undecodable += 1;
            return;
        };
        let planned = plan(self.schema(), self.engine.catalogue(), &[parked.family], &change);
        let name = |at| self.engine.catalogue().name(at);
        let is_asked = planned.effects.iter().any(|(at, effect)| asked.concerns(&change.key, name(*at), effect));
        if is_asked {
            let (id, cause) = (parked.id.clone(), parked.cause.clone());
            pending.parked.push(ParkedOfItem { id, family: parked.family, item: change.key, cause });
        }
    }
}

impl AskedAbout {
    /// Does the effect of a change of this item concern what is asked about?
    pub(super) fn concerns(&self, changed: &Key, derivation: &str, effect: &Effect) -> bool {
        if !self.derivations.contains(derivation) {
            return false;
        }
        match effect {
            Effect::Add(add) => self.own.contains(&add.target),
            Effect::Measure(measure) => self.own.contains(&measure.bucket),
            Effect::Look(bell) | Effect::Vacated(bell) => self.own.contains(&bell.item),
            // Whatever the search finds; that is known of a source of the item alone.
            Effect::Find(_) => self.sources.contains(changed),
            Effect::List { .. } => self.own.contains(changed) || self.sources.contains(changed),
            Effect::Late | Effect::Ground(_) => false,
        }
    }
}
