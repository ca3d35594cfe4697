//! Items that differ at a first check, and the second check that decides them.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    position::DerivationAt,
    refresh::Look,
    sources::{FirstOf, Source, Sources},
};
use engine::{
    backoff::describe,
    protocol::ProtocolStep,
    redrive::waiting::{PendingWork, Waiting},
};
use keys::{counter::CounterKey, key::Key};
use store::Store;

use crate::verify::{
    Belief, Finding, VerifyError, VerifyEvent, Why,
    judge::{Judge, Judged, SingleFinding},
    run::Verification,
};

/// Checks of a candidate before it is undecided.
const LOOKS_MAX: usize = 6;

/// Candidates that are checked together. Bounds memory.
const CANDIDATES_AT_ONCE: usize = 250;

/// Something that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// The refresh of an item, which would write.
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

/// Result of a second check.
struct Second {
    candidate: Candidate,
    findings: Vec<Finding>,
    read: BTreeSet<Source>,
    /// The pending work that may still change it, if there is any.
    pending: Option<PendingWork>,
}

impl<S: Store> Verification<'_, S> {
    /// Checks candidates again until each is decided, and reports the findings.
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
            for Second { candidate, findings, read, pending } in seconds {
                let touched = self.engine.takes(ProtocolStep::UntouchedSince) && self.is_touched(watch, &read);
                match why {
                    _ if findings.is_empty() => {}
                    Some(why) => self.report_all(findings, |finding| VerifyEvent::Undecided(finding, why))?,
                    None if let Some(pending) = pending => {
                        self.report_all(findings, |it| VerifyEvent::Waiting(it, pending.clone()))?;
                    }
                    None if !touched => self.report_all(findings, |it| VerifyEvent::Finding(it, belief))?,
                    None if n_looks < LOOKS_MAX => again.push(candidate),
                    None => self.report_all(findings, |finding| VerifyEvent::Undecided(finding, Why::Changing))?,
                }
            }
            self.unwatch(watch);
            candidates = again;
        }
        Ok(())
    }

    /// Checks all of these once the functions have handled what was written before, and waits until the stream shows
    /// what was written meanwhile. Also returns the reason if nothing can be decided.
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

    /// Checks these candidates with freshly read sources, each read once.
    async fn look_once(
        &self,
        candidates: Vec<Candidate>,
        waiting: &Waiting,
        seconds: &mut Vec<Second>,
    ) -> Result<(), VerifyError> {
        let keys: BTreeSet<Key> = candidates.iter().map(|candidate| candidate.item().clone()).collect();
        let mut sources = Sources::default();
        let (stored, refused) = self.engine.stored_each(keys.into_iter().collect(), self.patience()).await?;
        for (key, item) in stored {
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
            let stored = sources.item(&judged.look.item);
            let pending = judge.pending(&judged, stored, waiting);
            let mut findings = judge.findings(&judged, stored);
            findings.retain(|finding| self.scope.has_finding(finding));
            let Judged { look, read, .. } = judged;
            seconds.push(Second { candidate: Candidate::Look(look), findings, read, pending });
        }
        Ok(())
    }

    async fn single_again(&self, key: Key, sources: &mut Sources, waiting: &Waiting) -> Result<Second, VerifyError> {
        let item = sources.item(&key).cloned();
        let SingleFinding { findings, mut read } = match &item {
            Some(item) => self.single(&key, item, sources).await?,
            None => SingleFinding::default(),
        };
        read.insert(Source::Item(key.clone()));
        let names = findings.iter().filter_map(|finding| self.engine.catalogue().position(&finding.derivation));
        let derivations: Vec<DerivationAt> = names.collect();
        let pending = waiting.pending(&key, item.as_ref(), &read, &derivations);
        Ok(Second { candidate: Candidate::Single(key), findings, read, pending })
    }
}

// ---- touched ----

/// When the stream last showed a write of each item, while a watch is active.
#[derive(Debug, Default)]
pub(super) struct Touched {
    at_ms: BTreeMap<Source, u64>,
    /// When a record arrived whose item is unknown.
    any_at_ms: Option<u64>,
    /// Start time of each active watch.
    watches: BTreeMap<u64, u64>,
    n_watches: u64,
}

impl Touched {
    /// Starts to note all writes that are seen, until [`unwatch`](Self::unwatch).
    pub(super) fn watch(&mut self, now_ms: u64) -> u64 {
        self.n_watches += 1;
        self.watches.insert(self.n_watches, now_ms);
        self.n_watches
    }

    pub(super) fn unwatch(&mut self, watch: u64) {
        self.watches.remove(&watch);
        match self.watches.values().min() {
            Some(first_ms) => self.at_ms.retain(|_, at_ms| *at_ms >= *first_ms),
            None => self.at_ms.clear(),
        }
    }

    /// A record of this item was seen; without a key it may be of any item.
    pub(super) fn touch(&mut self, key: Option<&Key>, now_ms: u64) {
        let Some(key) = key else {
            self.any_at_ms = Some(now_ms);
            return;
        };
        if self.watches.is_empty() {
            return;
        }
        self.at_ms.insert(Source::Item(key.clone()), now_ms);
        if let Some(counter) = CounterKey::parse(key) {
            self.at_ms.insert(Source::Counters(counter.target), now_ms);
        }
    }

    /// True if any of these was seen to be written since a watch began.
    pub(super) fn has<'a>(&self, watch: u64, read: impl IntoIterator<Item = &'a Source>) -> bool {
        let Some(since_ms) = self.watches.get(&watch) else { return true };
        let is_since = |at_ms: &u64| at_ms >= since_ms;
        self.any_at_ms.as_ref().is_some_and(is_since)
            || read.into_iter().any(|read| match read {
                Source::First(of) => self.in_range(of).any(is_since),
                read => self.at_ms.get(read).is_some_and(is_since),
            })
    }

    /// When the stream last showed each item that a query may find.
    fn in_range<'a>(&'a self, of: &'a FirstOf) -> impl Iterator<Item = &'a u64> {
        let items = self.at_ms.range(Source::Item(of.begin())..);
        items.take_while(|(read, _)| matches!(read, Source::Item(key) if of.may_be(key))).map(|(_, at_ms)| at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_while_somebody_watches_is_known_by_item_and_target() {
        let mut touched = Touched::default();
        let (item, other) = (Key::new("USER#ann", "PROFILE"), Key::new("USER#bob", "PROFILE"));
        touched.touch(Some(&item), 5);
        let watch = touched.watch(5);
        assert!(!touched.has(watch, &[Source::Item(item.clone())]), "it came before");
        let counter = CounterKey::home(item.clone(), "n").key().unwrap();
        touched.touch(Some(&counter), 6);
        assert!(touched.has(watch, &[Source::Counters(item.clone())]));
        assert!(!touched.has(watch, &[Source::Item(item.clone()), Source::Counters(other.clone())]));
        let later = touched.watch(7);
        assert!(!touched.has(later, &[Source::Counters(item.clone())]));
        touched.touch(None, 8);
        assert!(touched.has(later, &[Source::Item(other)]), "it may be of any");
        touched.unwatch(watch);
        touched.unwatch(later);
        assert!(touched.at_ms.is_empty() && touched.has(later, &[Source::Item(item)]), "nobody knows any more");
    }
}
