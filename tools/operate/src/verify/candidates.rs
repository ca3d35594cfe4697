//! Items that differ at a first look, and the second look that decides whether they do.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    part::PartOf,
    position::DerivationAt,
    refresh::{Look, Step, Verdict, step},
    sources::Sources,
    write::{Action, Update, Write},
};
use keys::{item::Item, key::Key, shown::revision_of};
use store::Store;

use super::{
    Finding,
    counted::only,
    finding,
    report::{Belief, VerifyError, VerifyEvent, Why},
    run::Verification,
    single::SingleFinding,
    touched::ReadFrom,
};
use engine::{batch::caught::caught, count::target::Target, park::waiting::Waiting, protocol::ProtocolStep};

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

/// A look at an item once more.
struct LookAgain {
    look: Look,
    /// What would be written, and on whose behalf, if it differs.
    decided: Option<(Write, Vec<DerivationAt>)>,
    /// What it was decided by.
    read: BTreeSet<ReadFrom>,
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
        for (key, item) in self.engine.held(keys.into_iter().collect(), self.patience()).await? {
            sources.add_item(key, item);
        }
        let mut looks = Vec::new();
        for candidate in candidates {
            match candidate {
                Candidate::Look(look) => looks.push(look),
                Candidate::Single(key) => seconds.push(self.single_again(key, &mut sources, waiting).await?),
            }
        }
        for LookAgain { look, decided, mut read } in self.step_all(looks, &mut sources).await? {
            let held = sources.item(&look.item);
            let (mut findings, mut waits) = (Vec::new(), false);
            if let Some((write, derivations)) = decided {
                read.extend(self.found_through(&look, held, &derivations, &read));
                let items = || read.iter().filter_map(ReadFrom::item);
                waits = waiting.has(&look.item, held, items(), &derivations)
                    || self.shows_parked(waiting, &read, &derivations);
                findings = self.findings_of(&look, &write, &derivations, held);
                findings.retain(|finding| self.scope.has_finding(finding));
            }
            seconds.push(Second { candidate: Candidate::Look(look), findings, read, waits });
        }
        Ok(())
    }

    /// Does one of these derivations show a count that a parked change is of? The count may be in already, if the invocations
    /// died at its display; then the redrive shows it.
    fn shows_parked(&self, waiting: &Waiting, read: &BTreeSet<ReadFrom>, derivations: &[DerivationAt]) -> bool {
        let refreshes = derivations.iter().filter_map(|at| self.engine.catalogue().refresh(*at));
        let counts: Vec<&str> = refreshes.filter_map(|refresh| refresh.shows()).collect();
        read.iter().any(|source| match source {
            ReadFrom::Counters(item) => counts.iter().any(|derivation| {
                waiting.has_target(&Target { derivation: (*derivation).to_owned(), item: item.clone() })
            }),
            ReadFrom::Item(_) | ReadFrom::First(_) => false,
        })
    }

    /// The items through which the functions find this one when a source changes, as a mirror through which a copy is found.
    /// One that was made lately leads to this item by a record of its own.
    fn found_through(
        &self,
        look: &Look,
        held: Option<&Item>,
        derivations: &[DerivationAt],
        read: &BTreeSet<ReadFrom>,
    ) -> Vec<ReadFrom> {
        let schema = self.engine.schema();
        let Some(image) = held.and_then(|held| schema.image(&look.item, held)) else { return Vec::new() };
        let refreshes = derivations.iter().filter_map(|at| self.engine.catalogue().refresh(*at));
        let finds = refreshes.flat_map(|refresh| {
            read.iter().filter_map(ReadFrom::item).filter_map(move |source| refresh.find_from(schema, source))
        });
        let through = finds.map(|find| find.via).filter(|via| *via != look.entity);
        let key = |via: String| schema.entity(&via)?.build_of(|name| image.field(name).ok().flatten()).ok();
        through.filter_map(key).map(ReadFrom::Item).collect()
    }

    async fn single_again(&self, key: Key, sources: &mut Sources, waiting: &Waiting) -> Result<Second, VerifyError> {
        let item = sources.item(&key).cloned();
        let SingleFinding { mut findings, mut read } = match &item {
            Some(item) => self.single(&key, item, sources).await?,
            None => SingleFinding::default(),
        };
        read.insert(ReadFrom::Item(key.clone()));
        findings.retain(|finding| self.scope.has_finding(finding));
        let names = findings.iter().filter_map(|finding| self.engine.catalogue().position(&finding.derivation));
        let derivations: Vec<DerivationAt> = names.collect();
        let waits = waiting.has(&key, item.as_ref(), read.iter().filter_map(ReadFrom::item), &derivations);
        Ok(Second { candidate: Candidate::Single(key), findings, read, waits })
    }

    /// Looks at these items, which are among the sources: what would be written to each, if it differs, and all that it was
    /// decided by. What is not among the sources is read, for all of them together.
    async fn step_all(&self, looks: Vec<Look>, sources: &mut Sources) -> Result<Vec<LookAgain>, VerifyError> {
        let begun = |look: Look| {
            let read = BTreeSet::from([ReadFrom::Item(look.item.clone())]);
            // A step asks for what it does not know, so each look has sources of its own.
            (LookAgain { look, decided: None, read }, Sources::default())
        };
        let mut left: Vec<(LookAgain, Sources)> = looks.into_iter().map(begun).collect();
        let mut done = Vec::new();
        while !left.is_empty() {
            let (mut wanted, mut undecided) = (BTreeSet::new(), Vec::new());
            for (mut it, mut own) in left {
                let held = sources.item(&it.look.item);
                let stepping = || loop {
                    match step(self.engine.schema(), self.engine.catalogue(), &it.look, held, &own) {
                        Step::Read(more) => {
                            it.read.extend(more.iter().cloned().map(ReadFrom::from));
                            let unknown =
                                more.into_iter().filter(|source| !own.add_known(self.engine.schema(), source, sources));
                            let unknown: Vec<_> = unknown.collect();
                            if !unknown.is_empty() {
                                return Step::Read(unknown);
                            }
                        }
                        decided @ Step::Decided(_) => return decided,
                    }
                };
                match caught("looking at what it asks for", stepping) {
                    Ok(Step::Read(more)) => {
                        wanted.extend(more);
                        undecided.push((it, own));
                    }
                    Ok(Step::Decided(Verdict::Write { write, derivations })) => {
                        it.decided = Some((*write, derivations));
                        done.push(it);
                    }
                    // A kind that panics does so at the records, which are parked.
                    Ok(Step::Decided(Verdict::InStep)) | Err(_) => done.push(it),
                }
            }
            left = undecided;
            self.engine.read(wanted, sources, self.patience()).await?;
        }
        Ok(done)
    }

    /// What a write would change, as findings: one of a whole item, else one for each derivation whose part differs. What
    /// no derivation writes by its name is the maker's.
    fn findings_of(
        &self,
        look: &Look,
        write: &Write,
        derivations: &[DerivationAt],
        held: Option<&Item>,
    ) -> Vec<Finding> {
        let makes = |at: &&DerivationAt| {
            self.engine.catalogue().refresh(**at).is_some_and(derive::kind::refresh::Refresh::makes_item)
        };
        let maker = derivations.iter().find(makes).or(derivations.first());
        let maker = maker.map_or("", |at| self.engine.catalogue().name(*at));
        let update = match &write.action {
            Action::Put(item) => return vec![finding(maker, &look.item, None, Some(item.clone()))],
            Action::Delete | Action::Check => return vec![finding(maker, &look.item, held.cloned(), None)],
            Action::Update(update) => update,
        };
        let mut by_owner: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in update.set.keys().chain(update.remove.iter().map(String::as_str)) {
            let owner = derivations.iter().find(|at| self.writes(**at, &look.entity, name));
            by_owner.entry(owner.map_or(maker, |at| self.engine.catalogue().name(*at))).or_default().push(name);
        }
        by_owner.into_iter().map(|(owner, names)| finding_in(owner, look, &names, update, held)).collect()
    }

    /// Does a derivation write this attribute by its name, or the revision of one that it writes?
    fn writes(&self, at: DerivationAt, entity: &str, name: &str) -> bool {
        self.engine.catalogue().writes(at).iter().filter(|part| part.entity == entity).any(
            |part| matches!(&part.of, PartOf::Attribute(written) if written == name || revision_of(written) == name),
        )
    }
}

/// What these attributes of an item are, and would be.
fn finding_in(derivation: &str, look: &Look, names: &[&str], update: &Update, held: Option<&Item>) -> Finding {
    let stored = held.map(|held| only(held, names)).unwrap_or_default();
    finding(derivation, &look.item, Some(stored), Some(only(&update.set, names)))
}
