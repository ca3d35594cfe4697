//! Explains a derived value: its sources, and whether it matches them now.
//!
//! All answers come from the kinds themselves: a level-triggered kind names its sources and computes its [value]
//! from them; an additive kind gives what each source adds. So a new kind needs no line here. Added to this
//! are the changes that the stream still has, and pending work: parked changes and jobs.
//!
//! Only the item, its sources and pending work are read, so the size of the table does not matter. Questions that need
//! the whole table are left to [`verify`](crate::verify).

pub mod value;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
};

use derive::{
    change::Change,
    effect::Effect,
    family::Family,
    part::PartOf,
    plan::plan,
    position::DerivationAt,
    schema::{Schema, Seen, Unreadable},
    write::Table,
};
use engine::{
    backoff::{GaveUp, Patience},
    batch::Engine,
    fan_out::again::DueItem,
    job::Job,
    jobs::sweep::jobs,
    ledger::watermarks::mark_name,
    look::listing::ALL_DERIVATIONS,
    park::{ParkedChange, ParkedPages},
    record::{Lane, decode},
    redrive::waiting::Waiting,
};
use keys::{
    counter::{COUNTER, CounterKey},
    item::Item,
    key::Key,
};
use store::Store;
use tokio::sync::OnceCell;

use crate::{
    OperateError,
    tables::Deployment,
    verify::{
        Retained as _, ShardRecords, VerifyError,
        check::reading,
        judge::{INDEX_KEYS, Judge},
        scan::Paced,
    },
    why::value::{ExplainedCounter, ExplainedValue, SourceRole},
    words::event,
};

/// Time limit for a call, in milliseconds.
const CALL_MS_MAX: u64 = 30_000;

/// The question.
#[derive(Clone, Debug)]
pub struct WhyRequest {
    /// The item; it need not exist.
    pub key: Key,
    /// The attribute; all derived attributes if `None`.
    pub attribute: Option<String>,
    /// Limit on the sources, and on the changes, that are listed.
    pub n_listed: usize,
    /// Limit on the items that are read as sources of a counter.
    pub n_read_max: usize,
    /// True if the stream is read.
    pub reads_stream: bool,
}

/// Whether a value matches its definition now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueState {
    /// It does.
    Right,
    /// It does not, and pending work may still correct it.
    Waits,
    /// It does not. A pending change may still correct it.
    Differs,
    /// Nothing can be derived until the application corrects the item, for this reason.
    Flawed(String),
    /// It cannot be decided from what was read, for this reason.
    Undecided(String),
}

impl fmt::Display for ValueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right => f.write_str("right: it is what its definition gives"),
            Self::Waits => f.write_str("waits: pending work may still correct it, which is listed below"),
            Self::Differs => f.write_str(
                "differs: it may be on its way, so ask again; if it stays, `ripple verify` says whether it is wrong",
            ),
            Self::Flawed(why) => write!(f, "flawed: {why}; correct the item"),
            Self::Undecided(why) => write!(f, "not decided: {why}; `ripple verify` decides it"),
        }
    }
}

/// The derived values of an item, with their explanation.
#[derive(Debug)]
pub struct Explanation {
    /// The item.
    pub key: Key,
    /// The entities of the item: one if it exists, else those whose key form fits.
    pub entities: Vec<String>,
    /// The item as it is stored.
    pub item: Option<Item>,
    /// What level-triggered derivations write into it.
    pub values: Vec<ExplainedValue>,
    /// What additive derivations count of it.
    pub counters: Vec<ExplainedCounter>,
    /// Derivations that treat the item as absent, and why.
    pub unreadable: Vec<(String, Unreadable)>,
    /// Parked changes and jobs that concern it.
    pub pending: Pending,
    /// The changes that moved it; `None` if the stream was not read.
    pub changes: Option<StreamChanges>,
    /// Read units.
    pub read_units: f64,
}

/// The derivations in question, and the items whose changes concern the answer.
#[derive(Debug, Default)]
struct AskedAbout {
    /// The item and its counters.
    own: BTreeSet<Key>,
    /// The items that it is derived from.
    sources: BTreeSet<Key>,
    /// The derivations, by their names.
    derivations: BTreeSet<String>,
}

/// Explains an item.
struct Explainer<'a, S> {
    engine: &'a Engine<Paced<Arc<S>>>,
    request: &'a WhyRequest,
    /// Pending work, read if something differs.
    waiting: OnceCell<Waiting>,
}

/// Explains the derived values of an item. Writes nothing.
///
/// # Errors
///
/// [`OperateError`] if no derivation writes the requested value, or the database refuses a read.
pub async fn why<S: Store + 'static>(
    opened: &Deployment<S>,
    request: &WhyRequest,
) -> Result<Explanation, OperateError> {
    let engine = reading(opened, None);
    let explainer = Explainer { engine: &engine, request, waiting: OnceCell::new() };
    let key = &request.key;
    let item = engine.stored(vec![key.clone()], explainer.patience()).await?.remove(key).flatten();
    let entities = explainer.entities(item.as_ref());
    let mut asked = AskedAbout { own: BTreeSet::from([key.clone()]), ..AskedAbout::default() };
    let mut values = explainer.values(&entities, item.as_ref(), &mut asked).await?;
    let counters = explainer.counters(&entities, &values, item.as_ref(), &mut asked).await?;
    let unreadable = explainer.unreadable(item.as_ref());
    if values.is_empty() && counters.is_empty() && !explainer.concerns(&entities, &unreadable) {
        return Err(OperateError::Usage(explainer.nothing(&entities, item.as_ref())));
    }
    for source in values.iter_mut().flat_map(|value| &mut value.sources).filter(|source| !source.is_there) {
        let SourceRole::Counter(name) = &source.role else { continue };
        let mut items = counters.iter().filter(|counter| counter.derivation == *name).flat_map(|it| &it.items);
        if let Some(unreadable) = items.find_map(|item| item.unreadable.clone()) {
            (source.is_there, source.gives) = (true, unreadable);
        }
    }
    let mut pending = explainer.pending(&asked).await?;
    if values.iter().any(|value| value.state == ValueState::Waits) {
        let is_asked = |item: &Key| asked.own.contains(item) || asked.sources.contains(item);
        pending.searches = engine.due_soon(is_asked, explainer.patience()).await?;
    }
    let changes = if request.reads_stream && !opened.streams.is_empty() {
        Some(explainer.changes(opened, &asked).await?)
    } else {
        None
    };
    let (key, read_units) = (key.clone(), engine.store().used().get());
    Ok(Explanation { key, entities, item, values, counters, unreadable, pending, changes, read_units })
}

impl<S: Store> Explainer<'_, S> {
    fn patience(&self) -> Patience<'_> {
        let clock = self.engine.clock();
        Patience::new(clock, clock.now_ms().saturating_add(CALL_MS_MAX))
    }

    fn schema(&self) -> &Schema {
        self.engine.schema()
    }

    /// The entity of an existing item; for a missing item, those whose key form fits.
    fn entities(&self, item: Option<&Item>) -> Vec<String> {
        let key = &self.request.key;
        if let Some(item) = item {
            return self.schema().image(key, item).map(|image| image.definition.name.clone()).into_iter().collect();
        }
        let fits = self.schema().entities().filter(|entity| entity.key.parse_key(key).is_some());
        fits.map(|entity| entity.name.clone()).collect()
    }

    /// The entities of derived items that cannot be created under this key, since an item of another entity occupies
    /// it.
    fn entities_that_wait(&self, item: Option<&Item>) -> Vec<String> {
        let key = &self.request.key;
        let Some(item) = item else { return Vec::new() };
        let is_of = |entity: &str| self.schema().image(key, item).is_some_and(|image| image.is(entity));
        let fits = |entity: &str| self.schema().entity(entity).is_some_and(|it| it.key.parse_key(key).is_some());
        let makers = self.engine.catalogue().makers().map(|(_, entity)| entity);
        makers.filter(|entity| fits(entity) && !is_of(entity)).map(str::to_owned).collect()
    }

    /// The counter, if the item is one.
    fn counter_itself(&self, entities: &[String]) -> Option<CounterKey> {
        CounterKey::parse(&self.request.key).filter(|_| entities.iter().any(|entity| entity == COUNTER))
    }

    /// True if a derivation writes the requested attribute.
    fn writes_asked(&self, at: DerivationAt) -> bool {
        let Some(attribute) = &self.request.attribute else { return true };
        self.engine.catalogue().writes(at).iter().any(|part| match &part.of {
            PartOf::Existence => false,
            of => of.holds(attribute),
        })
    }

    /// Pending work, read if something differs.
    async fn waiting(&self) -> Result<&Waiting, GaveUp> {
        self.waiting.get_or_try_init(|| self.engine.what_is_under_way(self.patience())).await
    }

    /// The derivations that treat the item as absent with their reasons, and why it is not in an index.
    fn unreadable(&self, item: Option<&Item>) -> Vec<(String, Unreadable)> {
        let Some(item) = item else { return Vec::new() };
        let image = match self.schema().see(&self.request.key, item) {
            Seen::Known(image) => image,
            Seen::Misfit(why) => return vec![(ALL_DERIVATIONS.to_owned(), why)],
            Seen::Untyped | Seen::Unknown => return Vec::new(),
        };
        let derivations = self.engine.catalogue().derivations();
        let why = derivations.filter_map(|it| Some((it.label().to_owned(), it.unreadable(self.schema(), &image)?)));
        let long = image.long_index_key().map(|why| (ALL_DERIVATIONS.to_owned(), why));
        let index_keys = Judge { engine: self.engine }.index_keys(&image).map(|finding| {
            let names = [&finding.stored, &finding.derived].into_iter().flatten().flat_map(Item::keys);
            let names: BTreeSet<&str> = names.collect();
            let attribute = names.into_iter().collect::<Vec<_>>().join(", ");
            let json = |item: Option<Item>, none: &str| match item {
                Some(item) if !item.is_empty() => serde_json::to_string(&item).unwrap_or_default(),
                _ => none.to_owned(),
            };
            let (stored, derived) = (json(finding.stored, "none"), json(finding.derived, "absent"));
            let why = format!(
                "should be {derived} by the item's other attributes, and the item has {stored}: a search of the index does \
                 not find the item until `ripple repair` or its writer corrects that"
            );
            (INDEX_KEYS.to_owned(), Unreadable { attribute, why })
        });
        index_keys.into_iter().chain(long).chain(why).collect()
    }

    /// True if the question is answered by one of these reasons why the item is not read.
    fn concerns(&self, entities: &[String], unreadable: &[(String, Unreadable)]) -> bool {
        let is_asked = |why: &Unreadable| {
            let names = |asked: &String| why.attribute.split(", ").any(|name| name == asked);
            entities.is_empty() || self.request.attribute.as_ref().is_none_or(names)
        };
        unreadable.iter().any(|(_, why)| is_asked(why))
    }

    /// Why there is nothing to explain.
    fn nothing(&self, entities: &[String], item: Option<&Item>) -> String {
        let key = &self.request.key;
        if entities.is_empty() {
            return match item {
                Some(_) => format!("{key} is an item of no declared entity, so nothing is derived of it"),
                None => format!("there is no item {key}, and no entity has keys of this form"),
            };
        }
        let what = match (&self.request.attribute, item) {
            (_, None) => format!("there is no item {key}, so nothing is written into it"),
            (Some(attribute), _) => format!("no derivation writes {attribute} of {key}"),
            (None, _) => format!("no derivation writes into {key} or counts for it"),
        };
        let definitions = entities.iter().filter_map(|entity| self.schema().entity(entity));
        let derived: Vec<String> = definitions.flat_map(|entity| entity.derived_attributes.clone()).collect();
        let derived = if derived.is_empty() { "none".to_owned() } else { derived.join(", ") };
        format!("{what}; derived attributes of {}: {derived}", entities.join(" and "))
    }
}

// ---- The last changes that concern the question, as far as the stream still has them ----

/// The stream's content that concerns the question.
#[derive(Debug, Default)]
pub struct StreamChanges {
    /// The last changes that concern it, the oldest first.
    pub last: VecDeque<StreamChange>,
    /// How many concern it.
    pub n_concerning: usize,
    /// How many records were read.
    pub n_records: usize,
    /// The stream shards of the records, by the names of their watermarks.
    pub shards: BTreeMap<String, String>,
}

/// A change that concerns the question.
#[derive(Debug)]
pub struct StreamChange {
    /// Id of its event.
    pub id: String,
    /// Time of the write, in milliseconds since the epoch, rounded down to the second or minute.
    pub created_ms: Option<u64>,
    /// Its stream shard.
    pub shard: Option<String>,
    /// Its sequence number.
    pub sequence_number: String,
    /// The item that was changed.
    pub item: Key,
    /// DynamoDB's event name: `INSERT`, `MODIFY` or `REMOVE`.
    pub event: &'static str,
    /// Its effects for the derivations in question, each with its name; empty for the item's own write.
    pub effects: Vec<(String, Effect)>,
}

impl<S: Store> Explainer<'_, S> {
    /// Reads the streams from their oldest record to now.
    async fn changes<T>(&self, opened: &Deployment<T>, asked: &AskedAbout) -> Result<StreamChanges, OperateError> {
        let mut retained = opened.retained();
        let mut changes = StreamChanges::default();
        while let Some(ShardRecords { lane, records }) = retained.next().await.map_err(VerifyError::Stream)? {
            changes.n_records += records.len();
            changes.shards.extend(mark_name(&lane).zip(lane.shard.clone()));
            for record in records {
                let Ok(change) = decode(&self.schema().layout, &record) else { continue };
                if let Some(change) = self.concerning(change, &lane, asked) {
                    changes.n_concerning += 1;
                    changes.last.push_back(change);
                }
            }
            let n_over = changes.last.len().saturating_sub(self.request.n_listed);
            // Shards are read in parallel, so only the times show which changes are the newest.
            changes.last.make_contiguous().sort_by_key(|change| change.created_ms);
            changes.last.drain(..n_over);
        }
        Ok(changes)
    }

    fn concerning(&self, change: Change, lane: &Lane, asked: &AskedAbout) -> Option<StreamChange> {
        let families = [Family::Additive, Family::LevelTriggered];
        let planned = plan(self.schema(), self.engine.catalogue(), &families, &change);
        let catalogue = self.engine.catalogue();
        let asked_of = planned.effects.into_iter();
        let asked_of = asked_of.filter(|(at, effect)| asked.concerns(&change.key, catalogue.name(*at), effect));
        let effects: Vec<_> = asked_of.map(|(at, effect)| (catalogue.label(at).to_owned(), effect)).collect();
        if effects.is_empty() && !asked.own.contains(&change.key) {
            return None;
        }
        let event = event(&change.images);
        Some(StreamChange {
            id: change.id,
            created_ms: change.created_ms,
            shard: lane.shard.clone(),
            sequence_number: change.sequence_number,
            item: change.key,
            event,
            effects,
        })
    }
}

// ---- Parked changes and jobs that concern the question ----

/// Pending work.
#[derive(Debug, Default)]
pub struct Pending {
    /// Parked changes that concern it.
    pub parked: Vec<ParkedOfItem>,
    /// Number of parked changes that cannot be decoded, so that they may or may not concern it.
    pub n_undecodable: usize,
    /// Jobs that concern it.
    pub jobs: Vec<Job>,
    /// Sources whose dependent items are to be searched again, and items that are to be refreshed. They are read if a
    /// value waits.
    pub searches: Vec<DueItem>,
}

/// A parked change that concerns the question.
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
    /// The parked changes and jobs that concern the question.
    async fn pending(&self, asked: &AskedAbout) -> Result<Pending, OperateError> {
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
    /// True if the effect of a change of this item concerns the question.
    fn concerns(&self, changed: &Key, derivation: &str, effect: &Effect) -> bool {
        if !self.derivations.contains(derivation) {
            return false;
        }
        match effect {
            Effect::Add(add) => self.own.contains(&add.target),
            Effect::Measure(measure) => self.own.contains(&measure.bucket),
            Effect::Look(request) | Effect::Vacated(request) => self.own.contains(&request.item),
            // The search may find any item; only changes of the item's sources are known to concern it.
            Effect::Find(_) => self.sources.contains(changed),
            Effect::List { .. } => self.own.contains(changed) || self.sources.contains(changed),
            Effect::Late | Effect::Later(..) | Effect::Ground(_) => false,
        }
    }
}
