//! Looking at items: reads what the refresh asks for, and writes what it decides.
//!
//! *Keeps true*: an item whose bell rang holds, at some moment after that, what its sources held; or the bell's record
//! is reported as not done and comes again.
//!
//! Cheap where nothing is to be done: sources are read once a batch, in batches, and an item's own record may show that
//! it is in step. Before a write the item itself is read, consistently; but an item that a large
//! fan-out finds, of which it is known what it takes from its source, is written unread, and the write asks that it does
//! name that source. A write whose guard fails met another writer: the item is looked at once more.
//!
//! An item that is not Ripple's stays, and is listed (module `occupied`).
//!
//! # Correction
//!
//! Corrections: writes by which an item's own bell puts right what was made of its derived part.
//!
//! *Keeps true*: a write counts when nothing but records of the item itself rang for it, and one of them changed an
//! attribute that it writes. So the record of an item that comes with a wrong name, or is put back as it was long ago,
//! counts; one whose source changed does not, nor does a new item that lacks what is derived.
//!
//! What somebody else wrote cannot be distinguished from a write of our own that was right when it was decided, and was overtaken
//! by its source. So some are normal where sources change fast; many, and for long, are somebody's own trigger.
//!
//! # Own image
//!
//! What an item's own record shows of it.
//!
//! *Keeps true*: the image of a record decides only over the bells that this record rings for its own item. Were the
//! item another by now, a later record of it rings those bells. It decides over nothing else: the batch may hold an old
//! record, delivered again, beside the change of a source; that the item was in step long ago says nothing then, and
//! the later record has rung before the source changed.

pub(crate) mod back_and_forth;
pub(crate) mod for_batch;
pub mod listing;
pub(crate) mod occupied;
pub mod reading;

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    change::Change,
    effect::{Bell, Find},
    position::{DerivationAt, RecordAt},
    refresh::{Look, Step, Verdict, step},
    sources::{Source, Sources},
    write::{Action, Write},
};
use futures::{StreamExt, stream};
use keys::{item::Item, key::Key, value::same};
use store::{Busy, Outcome, Store, StoreError, Units};

use crate::{
    backoff::{GaveUp, Patience, describe},
    batch::input::{Batch, caught},
    context::Context,
    jobs::touch::TouchFailure,
    look::{
        back_and_forth::STEPS_BACK_MAX,
        occupied::KeyWaits,
        reading::{CALLS_AT_ONCE, HeldItems, ItemReader},
    },
    protocol::ProtocolStep,
};

/// How often an item is looked at anew after its guard failed, before its record is reported as not done.
const ROUNDS_MAX: usize = 8;

/// Looks at items, and writes those that are not in step.
pub(crate) struct Looker<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Looker<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Looker<'_, S> {
    /// Looks at these items if there is time left.
    pub(crate) async fn look_in_time(&self, request: LookRequest<'_>, sources: &mut Sources) -> Looked {
        let mut looked = Looked::default();
        if request.patience.is_over() {
            looked.not_now(request.items, "no time is left for all that it asks for");
        } else {
            self.look_at(request, sources, &mut looked).await;
        }
        looked
    }

    /// Looks at these items.
    pub(crate) async fn look_at(&self, request: LookRequest<'_>, sources: &mut Sources, looked: &mut Looked) {
        let LookRequest { items, images, patience } = request;
        let shown = |rung: &Rung| {
            let held = match images?.shown(&rung.look.item, &rung.causes) {
                OwnState::NotShown => return None,
                OwnState::Absent => None,
                OwnState::Present(item) => Some(item.clone()),
            };
            Some((rung.look.item.clone(), held))
        };
        let held: HeldItems = items.iter().filter_map(shown).collect();
        let (seen, unseen) = items.into_iter().partition(|rung| held.contains_key(&rung.look.item));
        let decided = self.differing(seen, &held, sources, patience, looked).await;
        let occupied = decided.occupied.into_iter().map(|(rung, _)| rung);
        let differing = decided.differing.into_iter().map(|(rung, _)| rung);
        let mut waiting: Vec<Rung> = differing.chain(occupied).chain(unseen).collect();
        let mut fresh = Sources::default();
        for n_rounds in 0..ROUNDS_MAX {
            if waiting.is_empty() {
                return;
            }
            // What was read at the start of the batch serves until a guard fails: then all is read anew.
            let sources = if n_rounds == 0 { &mut *sources } else { &mut fresh };
            let keys = waiting.iter().map(|rung| rung.look.item.clone()).collect();
            let (held, refused) = match ItemReader::new(self.context).held_each(keys, patience).await {
                Ok(read) => read,
                Err(error) => return looked.not_now(waiting, &describe(&error)),
            };
            let own = |rung: &Rung| refused.get(&rung.look.item);
            waiting = looked.without_refused(waiting.into_iter().map(|rung| (own(&rung), rung)));
            let DecidedLooks { differing, occupied } = self.differing(waiting, &held, sources, patience, looked).await;
            waiting = self.write_all(differing, patience, looked).await;
            waiting.extend(self.list_all(occupied, &held, patience, looked).await);
            fresh = Sources::default();
        }
        looked.not_now(waiting, "other writers were at the item all the time");
    }

    /// Those of the items that are not in step.
    pub(crate) async fn differing(
        &self,
        items: Vec<Rung>,
        held: &HeldItems,
        sources: &mut Sources,
        patience: Patience<'_>,
        looked: &mut Looked,
    ) -> DecidedLooks {
        let (mut undecided, mut decided) = (items, DecidedLooks::default());
        while !undecided.is_empty() {
            let mut wanted: BTreeSet<Source> = BTreeSet::new();
            let mut waiting = Vec::new();
            for rung in undecided {
                let item = held.get(&rung.look.item).and_then(Option::as_ref);
                let stepping = || step(&self.context.schema, &self.context.catalogue, &rung.look, item, sources);
                match caught("looking at what it asks for", stepping) {
                    Ok(Step::Read(more)) => {
                        wanted.extend(more.iter().cloned());
                        waiting.push((rung, more));
                    }
                    Ok(Step::Decided(Verdict::InStep)) => looked.n_in_step += 1,
                    Ok(Step::Decided(Verdict::Write { write, derivations })) => {
                        decided.differing.push((rung, (*write, derivations)));
                    }
                    Ok(Step::Decided(Verdict::Occupied(at))) => decided.occupied.push((rung, at)),
                    Err(cause) => looked.refused.push((rung, cause)),
                }
            }
            let refused = match ItemReader::new(self.context).read_each(wanted, sources, patience).await {
                Ok(refused) => refused,
                Err(error) => {
                    looked.not_now(waiting.into_iter().map(|(rung, _)| rung).collect(), &describe(&error));
                    return decided;
                }
            };
            let of_sources = |more: Vec<Source>| more.iter().find_map(|source| refused.get(source));
            undecided = looked.without_refused(waiting.into_iter().map(|(rung, more)| (of_sources(more), rung)));
        }
        decided
    }

    /// Lists items that are not Ripple's, and gives back those that have left the key meanwhile.
    async fn list_all(
        &self,
        occupied: Vec<(Rung, DerivationAt)>,
        held: &HeldItems,
        patience: Patience<'_>,
        looked: &mut Looked,
    ) -> Vec<Rung> {
        let mut again = Vec::new();
        for (rung, at) in occupied {
            let item = held.get(&rung.look.item).and_then(Option::as_ref);
            match KeyWaits::new(self.context).list(&rung.look, at, item, patience).await {
                Ok(Some(units)) => looked.occupied.push(OccupiedKey { rung, derivation: at, units }),
                Ok(None) => again.push(rung),
                Err(TouchFailure::NotNow(why)) => looked.undone.push((rung, why)),
                Err(TouchFailure::Refused(cause)) => looked.refused.push((rung, cause)),
            }
        }
        again
    }

    /// Does the writes, and gives back those whose guard failed.
    pub(crate) async fn write_all(
        &self,
        differing: Vec<(Rung, (Write, Vec<DerivationAt>))>,
        patience: Patience<'_>,
        looked: &mut Looked,
    ) -> Vec<Rung> {
        let differing = self.go_on(differing, looked);
        let writes = differing.into_iter().map(|(rung, (write, derivations))| async move {
            let mut met = Vec::new();
            let outcome = patience.call_meeting(&mut met, || self.context.store.write(&write)).await;
            (WrittenItem { rung, write, derivations, at_ms: self.context.clock.now_ms(), units: 0.0 }, outcome, met)
        });
        let mut again = Vec::new();
        let mut done = stream::iter(writes).buffer_unordered(CALLS_AT_ONCE);
        while let Some((written, outcome, met)) = done.next().await {
            looked.met.extend(met.into_iter().map(|busy| (written.derivations.first().copied(), busy)));
            match outcome {
                Ok(Outcome::Done { units }) => {
                    looked.written.push(WrittenItem { units, ..written });
                }
                Ok(Outcome::GuardFailed) => {
                    looked.sent_again.push(written.derivations);
                    again.push(written.rung);
                }
                Err(GaveUp::Refused(error)) => looked.refused.push((written.rung, describe(&error))),
                Err(error @ (GaveUp::OutOfTime { .. } | GaveUp::Standing(_))) => {
                    looked.undone.push((written.rung, describe(&error)));
                }
            }
        }
        again
    }
    /// The writes without those that would go on changing an item back and forth, which are refused.
    fn go_on(
        &self,
        differing: Vec<(Rung, (Write, Vec<DerivationAt>))>,
        looked: &mut Looked,
    ) -> Vec<(Rung, (Write, Vec<DerivationAt>))> {
        let now_ms = self.context.clock.now_ms();
        let mut going_on = Vec::new();
        for (rung, (write, derivations)) in differing {
            let corrections = &self.context.corrections;
            let disagree = corrections.disagree(&rung, &write, now_ms);
            match disagree.filter(|_| self.context.takes(ProtocolStep::BackAndForth)) {
                None => going_on.push((rung, (write, derivations))),
                Some(disagree) => {
                    let names: Vec<&str> = disagree.into_iter().map(|at| self.context.catalogue.label(at)).collect();
                    let cause = format!(
                        "the item {} is written back and forth, {STEPS_BACK_MAX} times in a row, here by {}: it is not written \
                         any more; see that only one derivation, of one deployment, and nobody else decides what it is, and \
                         redrive this change",
                        write.key.for_log(),
                        names.join(" and ")
                    );
                    looked.refused.push((rung, cause));
                }
            }
        }
        going_on
    }
}

// ---- Corrections: writes by which an item's own bell puts right what was made of its derived part ----

/// Is this write a correction?
pub(crate) fn is_correction(rung: &Rung, write: &Write, batch: &Batch<'_>) -> bool {
    let records = rung.causes.iter().filter_map(|position| batch.record(*position));
    let mut changes = records.filter_map(|record| record.change.as_ref().ok());
    rung.is_own && changes.any(|change| has_touched(change, write))
}

/// Did the change touch what the write writes?
fn has_touched(change: &Change, write: &Write) -> bool {
    let (old, new) = (change.old_image(), change.new_image());
    let value = |image: Option<&'_ Item>, name: &str| image.and_then(|image| image.get(name)).cloned();
    let differs = |name: &str| !same(value(old, name).as_ref(), value(new, name).as_ref());
    match &write.action {
        Action::Put(item) => item.keys().any(differs),
        Action::Update(update) => update.set.keys().chain(update.remove.iter().map(String::as_str)).any(differs),
        // What should not be there was put there.
        Action::Delete => new.is_some(),
        Action::Check => false,
    }
}

/// Does this write undo what other writers did, and did they do nothing else? A series of such writes comes to no end.
pub(crate) fn only_undoes(rung: &Rung, write: &Write, batch: &Batch<'_>) -> bool {
    let records = rung.causes.iter().filter_map(|position| batch.record(*position));
    let is_undone = |change: &Change| match (&write.action, change.old_image(), change.new_image()) {
        (Action::Update(update), Some(old), Some(new)) => {
            let is_written = |name: &str| update.set.contains_key(name) || update.remove.iter().any(|it| it == name);
            old.keys().chain(new.keys()).all(|name| is_written(name) || same(old.get(name), new.get(name)))
        }
        (Action::Put(_), Some(_), _) | (Action::Delete, _, Some(_)) => true,
        _ => false,
    };
    let mut changes = records.map(|record| record.change.as_ref().ok()).peekable();
    rung.is_own && changes.peek().is_some() && changes.all(|change| change.is_some_and(is_undone))
}

// ---- What an item's own record shows of it ----

/// The image of each item of which the batch holds one record, however often that is there. Which of two records is
/// the newer is not known.
pub(crate) struct OwnImages {
    images: BTreeMap<Key, OwnImage>,
    /// Does an image decide over any bell, and the first of an item for all? It must not.
    of_any: bool,
}

/// What the records of a batch show of an item.
pub(crate) enum OwnState<'a> {
    /// Nothing that may decide: it must be read.
    NotShown,
    /// It does not exist.
    Absent,
    /// It exists, and holds this.
    Present(&'a Item),
}

struct OwnImage {
    item: Option<Item>,
    /// Positions of the record.
    positions: BTreeSet<RecordAt>,
}

impl OwnImages {
    /// The images of a batch's records, `None` for one that did not decode.
    pub(crate) fn of<'a>(changes: impl Iterator<Item = Option<&'a Change>>, of_any: bool) -> Self {
        let mut records: BTreeMap<&Key, BTreeMap<&str, OwnImage>> = BTreeMap::new();
        for (position, change) in changes.enumerate() {
            let Some(change) = change else { continue };
            let first = || OwnImage { item: change.new_image().cloned(), positions: BTreeSet::new() };
            let image = records.entry(&change.key).or_default().entry(&change.id).or_insert_with(first);
            image.positions.insert(RecordAt(position));
        }
        let alone = records.into_iter().filter(|(_, images)| images.len() == 1 || of_any);
        let images = alone.filter_map(|(key, images)| Some((key.clone(), images.into_values().next()?))).collect();
        Self { images, of_any }
    }

    /// The item after its own record, when nothing but that record rang.
    pub(crate) fn shown(&self, item: &Key, causes: &BTreeSet<RecordAt>) -> OwnState<'_> {
        let image = self.images.get(item).filter(|image| self.of_any || causes.is_subset(&image.positions));
        match image.map(|image| image.item.as_ref()) {
            None => OwnState::NotShown,
            Some(None) => OwnState::Absent,
            Some(Some(item)) => OwnState::Present(item),
        }
    }
}

// ---- bells ----

/// Items that are looked at together. Bounds memory; a step is then one batched read for all of them.
const LOOKS_AT_ONCE: usize = 1_000;

/// An item to look at, and the positions of the records that rang.
#[derive(Clone, Debug)]
pub(crate) struct Rung {
    /// The item, and on whose behalf.
    pub(crate) look: Look,
    /// Positions of the records; none where no record asks for it.
    pub(crate) causes: BTreeSet<RecordAt>,
    /// Did records of the item itself ring, and no others?
    pub(crate) is_own: bool,
    /// Position of the derivation that creates the item, where its key was occupied before.
    pub(crate) vacated_for: Option<DerivationAt>,
}

/// The bells of a batch, merged by item.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    /// Items to look at, each as of one entity: a change of type may ring both.
    pub(crate) rung: BTreeMap<(Key, String), Rung>,
    /// Items to find first, by derivation and source, with the positions of the records.
    pub(crate) finds: BTreeMap<(DerivationAt, Key), (Find, BTreeSet<RecordAt>)>,
}

impl Bells {
    /// Adds a bell that the record of an item rings on behalf of a derivation.
    pub(crate) fn ring(&mut self, bell: Bell, derivation: DerivationAt, of: &Key, position: Option<RecordAt>) {
        let is_own = bell.item == *of;
        let rung = self.rung(bell.item, bell.entity);
        rung.is_own &= is_own;
        rung.look.named.extend(bell.named);
        rung.look.derivations.insert(derivation);
        rung.causes.extend(position);
    }

    /// The same of an item whose key was occupied by one that is not Ripple's.
    pub(crate) fn ring_vacated(&mut self, bell: Bell, derivation: DerivationAt, position: RecordAt) {
        let key = bell.item.clone();
        self.rung(key.clone(), bell.entity.clone()).vacated_for = Some(derivation);
        self.ring(bell, derivation, &key, Some(position));
    }

    /// Adds a search that a record of a source asks for.
    pub(crate) fn find(&mut self, find: Find, derivation: DerivationAt, source: &Key, position: Option<RecordAt>) {
        let (_, causes) = self.finds.entry((derivation, source.clone())).or_insert_with(|| (find, BTreeSet::new()));
        causes.extend(position);
    }

    /// Adds an item that was found, on behalf of these derivations and because of these records.
    pub(crate) fn add(
        &mut self,
        item: Key,
        entity: String,
        named: Vec<Key>,
        derivations: &BTreeSet<DerivationAt>,
        causes: &BTreeSet<RecordAt>,
    ) {
        let rung = self.rung(item, entity);
        rung.is_own = false;
        rung.look.named.extend(named);
        rung.look.derivations.extend(derivations);
        rung.causes.extend(causes);
    }

    /// The items to look at, in parts that are looked at together.
    pub(crate) fn parts(self) -> impl Iterator<Item = Vec<Rung>> {
        let mut rung: Vec<Rung> = self.rung.into_values().collect();
        std::iter::from_fn(move || {
            let rest = rung.split_off(rung.len().min(LOOKS_AT_ONCE));
            Some(std::mem::replace(&mut rung, rest)).filter(|part| !part.is_empty())
        })
    }

    fn rung(&mut self, item: Key, entity: String) -> &mut Rung {
        self.rung.entry((item.clone(), entity.clone())).or_insert_with(|| Rung {
            look: Look { item, entity, derivations: BTreeSet::new(), named: BTreeSet::new() },
            causes: BTreeSet::new(),
            is_own: true,
            vacated_for: None,
        })
    }
}

// ---- looked ----

/// Items to look at, and the time that there is.
pub(crate) struct LookRequest<'a> {
    /// The items.
    pub(crate) items: Vec<Rung>,
    /// What records show of their own items; `None` where no record asks.
    pub(crate) images: Option<&'a OwnImages>,
    /// The time that there is.
    pub(crate) patience: Patience<'a>,
}

/// What came of looking.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// How many items were in step.
    pub(crate) n_in_step: usize,
    /// What was written.
    pub(crate) written: Vec<WrittenItem>,
    /// The derivations of each write whose guard failed, which is sent again.
    pub(crate) sent_again: Vec<Vec<DerivationAt>>,
    /// The conflicts and throttles of the writes, each with the write's first derivation.
    pub(crate) met: Vec<(Option<DerivationAt>, Busy)>,
    /// Derived items whose key has an item that is not Ripple's.
    pub(crate) occupied: Vec<OccupiedKey>,
    /// Items that can never be looked at or written, with the cause.
    pub(crate) refused: Vec<(Rung, String)>,
    /// Items that could not be looked at or written now, with the reason.
    pub(crate) undone: Vec<(Rung, String)>,
}

/// What looking decided of items that are not in step.
#[derive(Debug, Default)]
pub(crate) struct DecidedLooks {
    /// Those that differ, each with the write that brings it in step and on whose behalf.
    pub(crate) differing: Vec<(Rung, (Write, Vec<DerivationAt>))>,
    /// Derived items whose key has an item that is not Ripple's, each with the derivation that would create it.
    pub(crate) occupied: Vec<(Rung, DerivationAt)>,
}

impl DecidedLooks {
    /// All of those items.
    pub(crate) fn looks(self) -> impl Iterator<Item = Look> {
        let differing = self.differing.into_iter().map(|(rung, _)| rung);
        differing.chain(self.occupied.into_iter().map(|(rung, _)| rung)).map(|rung| rung.look)
    }
}

/// A derived item that waits for its key; the item there is listed.
#[derive(Debug)]
pub(crate) struct OccupiedKey {
    /// What asked for it.
    pub(crate) rung: Rung,
    /// Position of the derivation that would create it.
    pub(crate) derivation: DerivationAt,
    /// Write units.
    pub(crate) units: Units,
}

/// An item that was written.
#[derive(Debug)]
pub(crate) struct WrittenItem {
    /// What asked for it.
    pub(crate) rung: Rung,
    /// The write.
    pub(crate) write: Write,
    /// Positions of the derivations on whose behalf.
    pub(crate) derivations: Vec<DerivationAt>,
    /// When the answer came, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// Write units.
    pub(crate) units: Units,
}

impl Looked {
    /// None of these items could be looked at, or written, now.
    pub(crate) fn not_now(&mut self, items: Vec<Rung>, why: &str) {
        self.undone.extend(items.into_iter().map(|rung| (rung, why.to_owned())));
    }

    /// These items, each with why what it is decided by cannot be read, without those of which that is known.
    pub(crate) fn without_refused<'e>(
        &mut self,
        items: impl Iterator<Item = (Option<&'e StoreError>, Rung)>,
    ) -> Vec<Rung> {
        let mut readable = Vec::new();
        for (refused, rung) in items {
            match refused {
                Some(error) => self.refused.push((rung, describe(error))),
                None => readable.push(rung),
            }
        }
        readable
    }
}
