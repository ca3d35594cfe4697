//! Plans a batch: decodes and plans each record alone, and sorts the effects of all records by how they are applied.

use std::borrow::Cow;

use derive::{
    change::Change,
    coalesce::{Adds, Amount, Counted},
    effect::{Add, Effect, Ground, Measure},
    family::Family,
    plan::{Planned, RecordKind, plan},
    position::{DerivationAt, RecordAt},
    tally::Tally,
};
use keys::{counter::CounterKey, key::Key};
use store::Store;

use crate::{
    account::Account,
    context::Context,
    input::{Batch, caught},
    park,
    protocol::ProtocolStep,
    record::{Decoded, Event},
    requests::RefreshRequests,
};

/// A record with its planned effects.
#[derive(Debug)]
pub(crate) struct Planning<'a> {
    /// Its position in the batch.
    position: RecordAt,
    pub(crate) record: &'a Decoded<'a>,
    /// The planned effects, or why there is no plan.
    pub(crate) planned: Result<Planned, String>,
    /// True if a count was left out because the record was written before the effective time of its derivation.
    is_before_birth: bool,
}

/// The effects of records, sorted by how they are applied.
#[derive(Default)]
pub(crate) struct Asked {
    /// Changes that must be counted once.
    pub(crate) entries: Vec<CountEntry>,
    /// Positions of records that the level-triggered family cannot handle, with the cause.
    pub(crate) failed_looks: Vec<(RecordAt, String)>,
    /// Items to refresh.
    pub(crate) requests: RefreshRequests,
    /// Effects on the application's own items.
    pub(crate) ground: Vec<Touch>,
    /// Items to list, or whose entry is to be removed.
    pub(crate) listings: Vec<Listing>,
}

/// A change that must be counted once: its additions, or why it must be parked.
#[derive(Clone, Debug)]
pub(crate) struct CountEntry {
    /// The additions.
    pub(crate) change: Counted,
    /// When the change was written, in milliseconds since the epoch.
    pub(crate) created_ms: Option<u64>,
    /// Why it cannot be applied.
    pub(crate) failed: Option<String>,
}

/// An effect on an application item, for a derivation.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    /// Position of the record in its batch.
    pub(crate) position: RecordAt,
    /// Position of the derivation in the catalogue.
    pub(crate) derivation: DerivationAt,
    /// The effect.
    pub(crate) effect: Ground,
}

/// An item that may have to be listed, or whose entry may have to be removed.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// Position of the record that requests it.
    pub(crate) position: RecordAt,
    /// Position of the derivation in the catalogue; `None` for all.
    pub(crate) derivation: Option<DerivationAt>,
    /// The item.
    pub(crate) item: Key,
}

impl Planning<'_> {
    /// Id of the event, or a substitute if the record does not decode.
    pub(crate) fn id(&self) -> Cow<'_, str> {
        match &self.record.change {
            Ok(change) => Cow::Borrowed(&change.id),
            Err(_) => Cow::Owned(park::id(&self.record.head, self.record.text)),
        }
    }

    /// Its sequence number; empty if the record has none.
    pub(crate) fn sequence_number(&self) -> &str {
        self.record.head.sequence_number.as_deref().unwrap_or_default()
    }

    fn created_ms(&self) -> Option<u64> {
        self.record.head.created_ms
    }

    /// The record's name for a log.
    pub(crate) fn name(&self) -> String {
        let change = self.record.change.as_ref();
        let item = change.map(|change| format!(" ({})", change.key.for_log())).unwrap_or_default();
        format!("{}{item}", self.id())
    }

    /// The change of a record that cannot be planned, with nothing but its id, and the reason.
    pub(crate) fn unreadable(&self) -> Option<(Counted, String)> {
        let why = self.planned.as_ref().err()?.clone();
        Some((self.unplanned(), why))
    }

    fn unplanned(&self) -> Counted {
        let (position, sequence_number) = (self.position, self.sequence_number().to_owned());
        Counted { position, id: self.id().into_owned(), sequence_number, amounts: Vec::new() }
    }

    /// True if the record needs work. A late change needs none.
    pub(crate) fn asks(&self) -> bool {
        let asks = |planned: &Planned| planned.effects.iter().any(|(_, effect)| *effect != Effect::Late);
        self.planned.as_ref().map_or(true, |planned| asks(planned) || planned.misfit.is_some() || planned.mended)
    }

    /// True if the record may count. A record that does not decode may.
    pub(crate) fn counts(&self) -> bool {
        let is_counted = |effect: &Effect| matches!(effect, Effect::Add(_) | Effect::Measure(_));
        self.planned.as_ref().map_or(true, |planned| planned.effects.iter().any(|(_, effect)| is_counted(effect)))
    }

    /// Counts the record by its kind.
    fn count(&self, account: &mut Account) {
        match self.planned.as_ref().map(|planned| planned.record) {
            Ok(RecordKind::Change) => account.n_changes += 1,
            Ok(RecordKind::Echo) => account.n_echoes += 1,
            Ok(RecordKind::Untyped | RecordKind::Unknown) => account.n_ignored += 1,
            Err(_) => {}
        }
        account.created_ms.push(self.created_ms());
        let is_change = matches!(&self.planned, Ok(Planned { record: RecordKind::Change, .. }));
        let (mut is_late, mut last) = (false, None);
        for (derivation, effect) in self.planned.iter().flat_map(|planned| &planned.effects) {
            match effect {
                Effect::Late => is_late = true,
                Effect::List { .. } => {}
                _ => {
                    // Effects are in the order of their derivations.
                    let share = account.share(*derivation);
                    share.n_effects += 1;
                    share.n_changes += usize::from(is_change && last != Some(*derivation));
                    last = Some(*derivation);
                }
            }
        }
        account.n_late_changes += usize::from(is_late);
        account.n_before_birth += usize::from(self.is_before_birth);
    }
}

impl Account {
    /// The account of a batch that is planned but not applied.
    pub(crate) fn of(planned: &[Planning<'_>]) -> Self {
        let created_ms = Vec::with_capacity(planned.len());
        let mut account = Self { n_records: planned.len(), created_ms, ..Self::default() };
        for planning in planned {
            planning.count(&mut account);
        }
        account
    }
}

/// Plans all records of a batch.
pub(crate) fn plan_all<'a, S: Store>(context: &Context<S>, batch: &'a Batch<'_>) -> Vec<Planning<'a>> {
    let all = batch.records.iter().enumerate();
    all.map(|(position, record)| planning(context, RecordAt(position), record)).collect()
}

/// True if the first record of an event may count.
pub(crate) fn first_counts<S: Store>(context: &Context<S>, event: &Event<'_>) -> bool {
    let first = event.records.first().map(|record| Decoded::of(&context.schema.layout, record.get()));
    first.is_some_and(|first| planning(context, RecordAt(0), &first).counts())
}

fn planning<'a, S: Store>(context: &Context<S>, position: RecordAt, record: &'a Decoded<'_>) -> Planning<'a> {
    let planned = match &record.change {
        Ok(change) => caught("planning it", || planned(context, change)),
        Err(error) => Err(error.to_string()),
    };
    let is_before_birth = planned.as_ref().is_ok_and(|(_, is_before_birth)| *is_before_birth);
    let planned = planned.map(|(planned, _)| planned);
    Planning { position, record, planned, is_before_birth }
}

/// The plan of a change, and whether effects were left out because the change predates an effective time.
fn planned<S: Store>(context: &Context<S>, change: &Change) -> (Planned, bool) {
    let mut planned = plan(&context.schema, &context.catalogue, &context.families, change);
    let is_before_birth = count_from_birth(context, &mut planned, change);
    #[cfg(feature = "mutants")]
    mutants::leave_out(context, &mut planned, change);
    (planned, is_before_birth)
}

fn count_from_birth<S: Store>(context: &Context<S>, planned: &mut Planned, change: &Change) -> bool {
    let watch = context.watch.as_ref().filter(|_| context.takes(ProtocolStep::BirthMark));
    watch.is_some_and(|watch| watch.count_from_birth(&mut planned.effects, change.created_ms))
}

/// The effects of these records. Takes the plans out of the records.
pub(crate) fn sorted<S: Store>(context: &Context<S>, planned: &mut [Planning<'_>]) -> Asked {
    let mut asked = Asked::default();
    for planning in planned {
        let plan = std::mem::replace(&mut planning.planned, Err(String::new()));
        if let Err(cause) = plan.and_then(|plan| sort(context, plan, planning, &mut asked)) {
            fail(context, planning, cause, &mut asked);
        }
    }
    asked
}

/// The effects of one record on one family, or why they are unknown.
pub(crate) fn asked_of<S: Store>(context: &Context<S>, family: Family, batch: &Batch<'_>) -> Result<Asked, String> {
    let Some(record) = batch.records.first() else { return Ok(Asked::default()) };
    let change = record.change.as_ref().map_err(ToString::to_string)?;
    let mut planned = caught("planning it", || plan(&context.schema, &context.catalogue, &[family], change))?;
    count_from_birth(context, &mut planned, change);
    let planning = Planning { position: RecordAt(0), record, planned: Err(String::new()), is_before_birth: false };
    let mut asked = Asked::default();
    sort(context, planned, &planning, &mut asked)?;
    Ok(asked)
}

fn sort<S: Store>(
    context: &Context<S>,
    planned: Planned,
    planning: &Planning<'_>,
    asked: &mut Asked,
) -> Result<(), String> {
    let (Ok(change), position) = (&planning.record.change, planning.position) else { return Ok(()) };
    let mut amounts = Vec::new();
    for (derivation, effect) in planned.effects {
        match effect {
            Effect::Add(add) => amounts.push(amount(context, derivation, add)?),
            Effect::Measure(Measure { bucket, form, value }) => {
                amounts.push(Amount { item: bucket, derivation, adds: Adds::Value(form, value) });
            }
            Effect::Look(request) => asked.requests.request(request, derivation, &change.key, Some(position)),
            Effect::Later(request, at_ms) if at_ms > context.clock.now_ms() && context.takes(ProtocolStep::Later) => {
                asked.requests.later(request.item, at_ms, derivation, Some(position));
            }
            Effect::Late | Effect::Later(..) => {}
            Effect::Vacated(request) => asked.requests.request_vacated(request, derivation, position),
            Effect::Find(find) => asked.requests.find(find, derivation, &change.key, Some(position)),
            Effect::Ground(effect) => asked.ground.push(Touch { position, derivation, effect }),
            Effect::List { .. } => {
                asked.listings.push(Listing { position, derivation: Some(derivation), item: change.key.clone() });
            }
        }
    }
    if planned.misfit.is_some() || planned.mended {
        asked.listings.push(Listing { position, derivation: None, item: change.key.clone() });
    }
    if !amounts.is_empty() {
        let (id, sequence_number) = (change.id.clone(), change.sequence_number.clone());
        let change = Counted { position, id, sequence_number, amounts };
        asked.entries.push(CountEntry { change, created_ms: planning.created_ms(), failed: None });
    }
    Ok(())
}

fn amount<S: Store>(context: &Context<S>, derivation: DerivationAt, add: Add) -> Result<Amount, String> {
    let counter = CounterKey::home(add.target, context.catalogue.name(derivation)).key();
    let counter = counter.map_err(|error| error.to_string())?;
    Ok(Amount { item: counter, derivation, adds: Adds::Tally(Tally { count: add.count, sum: add.sum }) })
}

/// Notes the failure of a record that cannot be applied, for each family separately.
fn fail<S: Store>(context: &Context<S>, planning: &Planning<'_>, cause: String, asked: &mut Asked) {
    let position = planning.position;
    if context.families.contains(&Family::Additive) {
        let change = planning.unplanned();
        asked.entries.push(CountEntry { change, created_ms: planning.created_ms(), failed: Some(cause.clone()) });
    }
    if context.families.contains(&Family::LevelTriggered) {
        asked.failed_looks.push((position, cause));
    }
}

#[cfg(feature = "mutants")]
mod mutants {
    //! Breaks plans on purpose, for the tests that show what each protocol step prevents.
    //!
    //! Only the feature `mutants` compiles this module, and only tests enable that feature: no deployed function and no
    //! `ripple` that a user builds can omit a step.

    use derive::{
        change::{Change, Images},
        effect::Effect,
        plan::{Planned, plan},
    };
    use keys::{
        counter::{SHOWN, SPREAD},
        item::Item,
    };
    use serde_dynamo::AttributeValue;
    use store::Store;

    use crate::{context::Context, protocol::ProtocolStep};

    /// Removes the effects of an omitted step from a plan.
    pub(super) fn leave_out<S: Store>(context: &Context<S>, planned: &mut Planned, change: &Change) {
        let plan_of = |images: Images| {
            plan(&context.schema, &context.catalogue, &context.families, &Change { images, ..change.clone() }).effects
        };
        let is_look = |effect: &Effect| matches!(effect, Effect::Look(_));
        if !context.takes(ProtocolStep::OwnRequest) {
            planned
                .effects
                .retain(|(_, effect)| !matches!(effect, Effect::Look(request) if request.item == change.key));
        }
        let has_spread =
            |item: &Item| item.contains_key(SPREAD) && item.get(SHOWN) == Some(&AttributeValue::Bool(true));
        if !context.takes(ProtocolStep::HomeRequests) && change.new_image().is_some_and(has_spread) {
            planned.effects.retain(|(_, effect)| !is_look(effect));
        }
        if !context.takes(ProtocolStep::Vacated) {
            planned.effects.retain(|(_, effect)| !matches!(effect, Effect::Vacated(_)));
        }
        if !context.takes(ProtocolStep::WayThere) && matches!(change.images, Images::Inserted(_)) {
            planned
                .effects
                .retain(|(_, effect)| !matches!(effect, Effect::Look(request) if request.item != change.key));
        }
        if let (false, Images::Modified { old, new }) = (context.takes(ProtocolStep::LookupKey), &change.images) {
            let blind = plan_of(Images::Modified { old: with_index_keys_of(context, old, new), new: new.clone() });
            planned.effects.retain(|effect| blind.contains(effect) || !is_look(&effect.1));
        }
        if let (false, Some(new)) = (context.takes(ProtocolStep::BothImages), change.new_image()) {
            let blind = plan_of(Images::Inserted(new.clone()));
            planned.effects.retain(|effect| blind.contains(effect) || !is_look(&effect.1));
        }
    }

    /// An image with the index keys of another image.
    fn with_index_keys_of<S: Store>(context: &Context<S>, image: &Item, other: &Item) -> Item {
        let mut image = image.clone();
        for name in context.schema.layout.indexes.iter().flat_map(|index| [&index.pk, &index.sk]) {
            match other.get(name) {
                Some(value) => drop(image.insert(name.clone(), value.clone())),
                None => drop(image.remove(name)),
            }
        }
        image
    }
}
