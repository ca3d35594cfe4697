//! Items that differ at a first look, and the second look that decides whether they do.

use std::collections::BTreeSet;

use derive::{
    part::PartOf,
    position::DerivationAt,
    refresh::{Look, Step, Verdict, step},
    sources::Sources,
    write::{Action, Update, Write},
};
use futures::{StreamExt, stream};
use keys::{item::Item, key::Key};
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
use engine::{batch::caught::caught, look::reading::CALLS_AT_ONCE, park::waiting::Waiting, protocol::ProtocolStep};

/// How often a candidate is looked at, before it is undecided.
const LOOKS_MAX: usize = 6;

/// Something that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// What a look would write.
    Look(Look),
    /// An item by itself.
    Single(Key),
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
        let looks = candidates.into_iter().map(|candidate| self.look_once(candidate, &waiting));
        let mut looks = stream::iter(looks).buffer_unordered(CALLS_AT_ONCE);
        let mut seconds = Vec::new();
        while let Some(second) = looks.next().await {
            seconds.push(second?);
        }
        drop(looks);
        if !self.given().await? {
            why = why.or(Some(Why::Behind));
        }
        Ok((seconds, why))
    }

    async fn look_once(&self, candidate: Candidate, waiting: &Waiting) -> Result<Second, VerifyError> {
        match &candidate {
            Candidate::Look(look) => {
                let (decided, read) = self.look_alone(look).await?;
                let items = || read.iter().filter_map(ReadFrom::item);
                let (mut findings, mut waits) = (Vec::new(), false);
                if let Some((write, derivations, held)) = decided {
                    waits = waiting.has(&look.item, held.as_ref(), items(), &derivations);
                    findings = self.findings_of(look, &write, &derivations, held.as_ref());
                    findings.retain(|finding| self.scope.has_finding(finding));
                }
                Ok(Second { candidate, findings, read, waits })
            }
            Candidate::Single(key) => {
                let held = self.engine.held(vec![key.clone()], self.patience()).await?.into_iter().next();
                let item = held.and_then(|(_, item)| item);
                let SingleFinding { mut findings, mut read } = match &item {
                    Some(item) => self.single(key, item).await?,
                    None => SingleFinding::default(),
                };
                read.insert(ReadFrom::Item(key.clone()));
                findings.retain(|finding| self.scope.has_finding(finding));
                let names = findings.iter().filter_map(|finding| self.engine.catalogue().position(&finding.derivation));
                let derivations: Vec<DerivationAt> = names.collect();
                let waits = waiting.has(key, item.as_ref(), read.iter().filter_map(ReadFrom::item), &derivations);
                Ok(Second { candidate, findings, read, waits })
            }
        }
    }

    /// Looks at one item, with sources that are read for it alone: what would be written with the item as it is held, if
    /// it differs; and all that it was decided by.
    async fn look_alone(
        &self,
        look: &Look,
    ) -> Result<(Option<(Write, Vec<DerivationAt>, Option<Item>)>, BTreeSet<ReadFrom>), VerifyError> {
        let patience = self.patience();
        let held =
            self.engine.held(vec![look.item.clone()], patience).await?.into_iter().next().and_then(|(_, item)| item);
        let mut read = BTreeSet::from([ReadFrom::Item(look.item.clone())]);
        let mut sources = Sources::default();
        loop {
            let stepping = || step(self.engine.schema(), self.engine.catalogue(), look, held.as_ref(), &sources);
            match caught("looking at what it asks for", stepping) {
                Ok(Step::Read(more)) => {
                    read.extend(more.iter().cloned().map(ReadFrom::from));
                    self.engine.read(more.into_iter().collect(), &mut sources, patience).await?;
                }
                Ok(Step::Decided(Verdict::Write { write, derivations })) => {
                    return Ok((Some((*write, derivations, held)), read));
                }
                // A kind that panics does so at the records, which are parked.
                Ok(Step::Decided(Verdict::InStep)) | Err(_) => return Ok((None, read)),
            }
        }
    }

    /// What a write would change, as findings: one of a whole item, else one for each derivation whose part differs.
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
        let mut left: BTreeSet<&str> = update.set.keys().chain(update.remove.iter().map(String::as_str)).collect();
        let mut findings = Vec::new();
        // Those that write single attributes first: what is left is the maker's.
        for at in derivations {
            let Some(derivation) = self.engine.catalogue().derivation(*at) else { continue };
            let reach = derivation.kind.reach(self.engine.schema()).unwrap_or_default();
            let writes = |name: &str| {
                reach
                    .writes
                    .iter()
                    .any(|part| part.entity == look.entity && part.of == PartOf::Attribute(name.to_owned()))
            };
            let own: Vec<&str> = left.iter().copied().filter(|name| writes(name)).collect();
            left.retain(|name| !own.contains(name));
            if !own.is_empty() {
                findings.push(finding_in(&derivation.name, look, &own, update, held));
            }
        }
        if !left.is_empty() {
            let left: Vec<&str> = left.into_iter().collect();
            findings.push(finding_in(maker, look, &left, update, held));
        }
        findings
    }
}

/// What these attributes of an item are, and would be.
fn finding_in(derivation: &str, look: &Look, names: &[&str], update: &Update, held: Option<&Item>) -> Finding {
    let stored = held.map(|held| only(held, names)).unwrap_or_default();
    finding(derivation, &look.item, Some(stored), Some(only(&update.set, names)))
}
