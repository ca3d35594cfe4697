//! Items that differ at a first look, and the second look that decides whether they do.

use std::collections::BTreeSet;

use derive::{position::DerivationAt, refresh::Look, sources::Sources};
use keys::key::Key;
use store::Store;

use super::{
    Finding,
    judge::{Judge, Judged},
    run::Verification,
    single::SingleFinding,
    touched::ReadFrom,
};
use crate::verify::{Belief, VerifyError, VerifyEvent, Why};
use engine::{backoff::describe, park::waiting::Waiting, protocol::ProtocolStep};

/// How often a candidate is looked at, before it is undecided.
const LOOKS_MAX: usize = 6;

/// Candidates that are looked at together. Bounds memory.
const CANDIDATES_AT_ONCE: usize = 250;

/// Something that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// What a look would write.
    Look(Look),
    /// An item by itself.
    Single(Key),
}

impl Candidate {
    fn item(&self) -> &Key {
        match self {
            Self::Look(look) => &look.item,
            Self::Single(key) => key,
        }
    }
}

/// What a second look came to.
struct Second {
    candidate: Candidate,
    findings: Vec<Finding>,
    read: BTreeSet<ReadFrom>,
    /// Does it wait for something?
    waits: bool,
}

impl<S: Store> Verification<'_, S> {
    /// Looks at candidates once more, until each is decided, and reports what it found.
    pub(super) async fn second_look(&self, mut candidates: Vec<Candidate>) -> Result<(), VerifyError> {
        for n_looks in 1.. {
            if candidates.is_empty() {
                return Ok(());
            }
            let watch = self.watch()?;
            let handled_ms = self.engine.clock().now_ms();
            let (seconds, why) = self.look_together(candidates).await?;
            let belief = Belief { handled_ms, until_ms: self.engine.clock().now_ms() };
            let mut again = Vec::new();
            for second in seconds {
                let touched = self.engine.takes(ProtocolStep::UntouchedSince) && self.is_touched(watch, &second.read);
                match why {
                    _ if second.findings.is_empty() => {}
                    Some(why) => self.report_all(second.findings, |finding| VerifyEvent::Undecided(finding, why))?,
                    None if second.waits => self.report_all(second.findings, VerifyEvent::Waiting)?,
                    None if !touched => self.report_all(second.findings, |it| VerifyEvent::Finding(it, belief))?,
                    None if n_looks < LOOKS_MAX => again.push(second.candidate),
                    None => {
                        self.report_all(second.findings, |finding| VerifyEvent::Undecided(finding, Why::Changing))?;
                    }
                }
            }
            self.unwatch(watch);
            candidates = again;
        }
        Ok(())
    }

    /// Looks at all of these, when the functions have handled what was written before, and waits until all is seen that
    /// was written meanwhile. Says why nothing can be decided, where it cannot.
    async fn look_together(&self, candidates: Vec<Candidate>) -> Result<(Vec<Second>, Option<Why>), VerifyError> {
        let mut why = self.handled().await?;
        let waiting = self.engine.what_is_under_way(self.patience()).await?;
        let mut seconds = Vec::new();
        let mut rest = candidates;
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(CANDIDATES_AT_ONCE));
            self.look_once(rest, &waiting, &mut seconds).await?;
            rest = later;
        }
        if !self.given().await? {
            why = why.or(Some(Why::Behind));
        }
        Ok((seconds, why))
    }

    /// Looks at these, with sources that are read for them alone, each once.
    async fn look_once(
        &self,
        candidates: Vec<Candidate>,
        waiting: &Waiting,
        seconds: &mut Vec<Second>,
    ) -> Result<(), VerifyError> {
        let keys: BTreeSet<Key> = candidates.iter().map(|candidate| candidate.item().clone()).collect();
        let mut sources = Sources::default();
        let (held, refused) = self.engine.held_each(keys.into_iter().collect(), self.patience()).await?;
        for (key, item) in held {
            sources.add_item(key, item);
        }
        let mut looks = Vec::new();
        for candidate in candidates {
            match (refused.get(candidate.item()), candidate) {
                (Some(error), candidate) => self.report_unread(candidate, &describe(error))?,
                (None, Candidate::Look(look)) => looks.push(look),
                (None, Candidate::Single(key)) => seconds.push(self.single_again(key, &mut sources, waiting).await?),
            }
        }
        let judge = Judge { engine: self.engine };
        let (judged, refused) = judge.looks(looks, &mut sources, self.patience()).await?;
        self.report_refused_looks(refused)?;
        for judged in judged {
            let held = sources.item(&judged.look.item);
            let waits = judge.waits(&judged, held, waiting);
            let mut findings = judge.findings(&judged, held);
            findings.retain(|finding| self.scope.has_finding(finding));
            let Judged { look, read, .. } = judged;
            seconds.push(Second { candidate: Candidate::Look(look), findings, read, waits });
        }
        Ok(())
    }

    async fn single_again(&self, key: Key, sources: &mut Sources, waiting: &Waiting) -> Result<Second, VerifyError> {
        let item = sources.item(&key).cloned();
        let SingleFinding { findings, mut read } = match &item {
            Some(item) => self.single(&key, item, sources).await?,
            None => SingleFinding::default(),
        };
        read.insert(ReadFrom::Item(key.clone()));
        let names = findings.iter().filter_map(|finding| self.engine.catalogue().position(&finding.derivation));
        let derivations: Vec<DerivationAt> = names.collect();
        let waits = waiting.has(&key, item.as_ref(), read.iter().filter_map(ReadFrom::item), &derivations);
        Ok(Second { candidate: Candidate::Single(key), findings, read, waits })
    }
}
