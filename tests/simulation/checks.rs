//! What must be true of every run: of its end, and of everything written in it.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    derived::Items,
    family::Family,
    schema::Seen,
    sources::sums,
    tally::{Sum, Tally},
    write::Table,
};
use engine::{
    batch::Handled,
    job::{self, Job, Task},
    ledger::watermarks::is_mark,
};
use keys::{
    counter::{CounterKey, REVISION},
    entity::Definition,
    item::{Item, text},
    job::{JobKey, PARTITION},
    key::Key,
    value::differing,
};
use operate::verify::definition::{Comparison, compare};
use serde_dynamo::AttributeValue;
use store::Units;

use crate::{
    deployed::{ToRecount, parked, refused_unread, to_recount},
    drawn::is_right as drawn_is_right,
    items::{DAY, is_zero},
    oracle::{
        Difference, PlainChange, Recount,
        changes::HISTORIES,
        recount,
        table::{Address, Plain, PlainItem, PlainTable, millionths},
    },
    platform::stream::{Author, Stream, TableChange},
    scene::Scene,
    trace::Failure,
};

// ---- What must be true when the stream is quiet, nothing runs and no call is late ----

/// The cause of a record that is parked because two invocations died at it begins so.
const DIED: &str = "two invocations died";

/// Fewest deaths of invocations that had such a record. It may have been in progress when they died at something else.
const DEATHS_MIN: usize = 2;

/// So DynamoDB's refusal of a write ends that would make an item too large.
const TOO_LARGE: &str = "the limit is 409600";

pub(crate) fn audit(
    scene: &Scene,
    stream: &Stream,
    untyped: &BTreeSet<Key>,
    n_deaths: &BTreeMap<String, usize>,
) -> Result<(), Failure> {
    let (memory, listed) = (scene.database.memory(), to_recount(scene));
    let lost = stream.lost.concerned(scene, &stream.made);
    let verified = memory.view(Table::Main, |items| {
        let verified = compare(&scene.schema, &scene.catalogue, items);
        // Flaws are faults of the application. This one makes folders that contain themselves.
        let found = verified.findings.iter().filter(|it| !lost.has_bucket(it) && !lost.builds_on_history(it));
        let found = found.filter(|it| !is_way_taken(scene, items, &it.derivation, &Key::new(&it.pk, &it.sk)));
        let (flaws, findings): (Vec<_>, Vec<_>) = found.partition(|finding| finding.flaw.is_some());
        scene.count_all("flaws", flaws.len());
        if let Some(finding) = findings.first() {
            let text = format!("{} findings, the first: {finding:#?}", findings.len());
            return Err(Failure::new("finding", text));
        }
        has_no_torso(scene, items, untyped)?;
        if scene.drawn.is_none() {
            views_are_exact(scene, stream, items, &listed)?;
            buckets_are_exact(stream, items, &listed)?;
        }
        Ok(verified)
    })?;
    list_is_exact(scene, stream, &verified)?;
    if let Some(drawn) = &scene.drawn {
        drawn_is_right(scene, drawn, stream)?;
    } else {
        cascades_are_strict(scene, stream, untyped)?;
        is_recounted(scene, stream)?;
    }
    parked_are(scene, stream, &BTreeSet::new(), &[], n_deaths)
}

/// Exactly the records with these ids are parked for each of these families, and those at which invocations died.
pub(crate) fn parked_are(
    scene: &Scene,
    stream: &Stream,
    ids: &BTreeSet<String>,
    families: &[Family],
    n_deaths: &BTreeMap<String, usize>,
) -> Result<(), Failure> {
    let mut wanted = BTreeSet::new();
    for family in families {
        wanted.extend(ids.iter().map(|id| (format!("PARKED#{family}"), id.clone())));
    }
    // What is too old to be counted is listed for a recount, and so is what a replay refused, which the stream brings
    // too.
    let (refused, mut parked) = (refused_unread(scene), parked(scene));
    let is_parked = |list: &str, id: &str| parked.iter().any(|parked| parked.key.pk == list && parked.id == id);
    let additive = format!("PARKED#{}", Family::Additive);
    wanted.retain(|(list, id)| *list != additive || !refused.contains(id) || is_parked(list, id));
    if scene.rollout.reads_differ() {
        // An instance that reads it may have been the only one that got it.
        wanted.retain(|(list, id)| is_parked(list, id));
    }
    if !families.is_empty() {
        // A function that got a record before it was lost for it may have parked it.
        wanted.retain(|(_, id)| !stream.lost.has_id(id));
        parked.retain(|parked| !stream.lost.has_id(&parked.id));
    }
    let n_parked = parked.len();
    let may_have_died = |id: &String| n_deaths.get(id).is_some_and(|n_deaths| *n_deaths >= DEATHS_MIN);
    parked.retain(|parked| !(parked.cause.starts_with(DIED) && may_have_died(&parked.id)) || ids.contains(&parked.id));
    scene.count_all("died at", n_parked - parked.len());
    let n_parked = parked.len();
    parked.retain(|parked| !(scene.is_large && parked.cause.contains(TOO_LARGE)) || ids.contains(&parked.id));
    scene.count_all("too large", n_parked - parked.len());
    let parked: BTreeSet<(String, String)> = parked.into_iter().map(|parked| (parked.key.pk, parked.id)).collect();
    if parked == wanted {
        return Ok(());
    }
    let text = format!(
        "parked and should not be: {:?}; should be and is not: {:?}",
        parked.difference(&wanted).collect::<Vec<_>>(),
        wanted.difference(&parked).collect::<Vec<_>>()
    );
    Err(Failure::new("parked", text))
}

fn has_no_torso(scene: &Scene, items: &Items, untyped: &BTreeSet<Key>) -> Result<(), Failure> {
    // The pulse and the clock have no type.
    let is_own = |key: &Key| untyped.contains(key) || key.pk.starts_with(PARTITION);
    let is_torso = |(key, item): &(&Key, &Item)| matches!(scene.schema.see(key, item), Seen::Untyped) && !is_own(key);
    match items.iter().find(is_torso) {
        Some((key, _)) => Err(Failure::new("torso", format!("{key} has no type, and the application wrote none such"))),
        None => Ok(()),
    }
}

/// Each arrival of a view counts once, which `verify` cannot see in the table.
fn views_are_exact(scene: &Scene, stream: &Stream, items: &Items, listed: &ToRecount) -> Result<(), Failure> {
    let [view, detail] = ["View", "PostDetail"].map(|name| scene.schema.entity(name).unwrap());
    let [mut arrived, mut lost]: [BTreeMap<(Key, String), i64>; 2] = [BTreeMap::new(), BTreeMap::new()];
    for (key, is_lost) in stream.arrivals("View") {
        let target = (detail.build(&view.key.parse_key(key).unwrap()).unwrap(), "view-count".to_owned());
        if is_lost {
            *lost.entry(target.clone()).or_default() += 1;
        }
        *arrived.entry(target).or_default() += 1;
    }
    // Views that a cascade deleted were counted too. Under watermarks it sets a counter to zero and leaves its
    // revision.
    let is_gone = |made: &&TableChange| {
        let revision = |item: &Option<Item>| item.as_ref().and_then(|item| item.get(REVISION).cloned());
        made.new.as_ref().is_none_or(|new| is_zero(new) && revision(&made.new) == revision(&made.old))
    };
    let of_ours = stream.made.iter().filter(|made| made.author == Author::Service).filter(is_gone);
    let mut counted: BTreeMap<(Key, String), i64> = BTreeMap::new();
    for one in of_ours.filter_map(|made| made.old.as_ref()).chain(items.values()) {
        for (counter, tally) in sums(&scene.schema, [one]) {
            *counted.entry(counter).or_default() += tally.count;
        }
    }
    counted.retain(|(_, derivation), _| derivation == "view-count");
    let is_sure = |(item, derivation): &(Key, String)| !listed.contains(&(derivation.clone(), item.clone()));
    arrived.retain(|target, _| is_sure(target));
    counted.retain(|target, _| is_sure(target));
    // An invocation that had a view before it was lost may have counted it.
    for (target, n_lost) in lost {
        let [n_arrived, n_counted] =
            [&arrived, &counted].map(|counts| counts.get(&target).copied().unwrap_or_default());
        if (n_arrived - n_lost..=n_arrived).contains(&n_counted) {
            arrived.remove(&target);
            counted.remove(&target);
        }
    }
    if arrived == counted {
        return Ok(());
    }
    let category = if arrived.values().sum::<i64>() < counted.values().sum() { "duplicate" } else { "lost" };
    Err(Failure::new(category, format!("views arrived {arrived:?}, counted {counted:?}")))
}

// ---- buckets ----

/// Count and sum, minimum and maximum of a bucket.
type Bucket = (Tally, Option<Sum>, Option<Sum>);

/// Every value counts exactly once in each of its buckets.
fn buckets_are_exact(stream: &Stream, items: &Items, listed: &ToRecount) -> Result<(), Failure> {
    let mut derived: BTreeMap<Key, Bucket> = BTreeMap::new();
    let mut lost: BTreeMap<Key, i64> = BTreeMap::new();
    for (key, value, is_lost) in stream.new_values() {
        let sensor = key.pk.strip_suffix(&format!("#{DAY}")).unwrap();
        for bucket in [format!("HOUR#{}", &key.sk[..13]), format!("DAY#{DAY}")] {
            let bucket = Key::new(sensor, bucket);
            if is_lost {
                *lost.entry(bucket.clone()).or_default() += 1;
            }
            let (tally, min, max) = derived.entry(bucket).or_default();
            tally.add(&Tally { count: 1, sum: value.clone() });
            *min = Some(min.take().map_or(value.clone(), |min| min.min(value.clone())));
            *max = (*max).take().max(Some(value.clone()));
        }
    }
    let stored = items.iter().filter(|(_, item)| text(item, "EntityType") == Some("Rollup"));
    let number = |item: &Item, name| item.get(name).and_then(Sum::of);
    let held = |item: &Item| {
        let count = item.get("Count").and_then(keys::value::whole_number).unwrap_or_default();
        let tally = Tally { count, sum: number(item, "Sum").unwrap_or_default() };
        (tally, number(item, "Min"), number(item, "Max"))
    };
    let mut stored: BTreeMap<Key, Bucket> = stored.map(|(key, item)| (key.clone(), held(item))).collect();
    let is_sure = |key: &Key| !listed.iter().any(|(_, item)| item == key);
    stored.retain(|key, _| is_sure(key));
    derived.retain(|key, _| is_sure(key));
    // An invocation that had a value before it was lost may have counted it.
    for (key, n_lost) in lost {
        let [n_stored, n_derived] =
            [&stored, &derived].map(|buckets| buckets.get(&key).map_or(0, |(tally, ..)| tally.count));
        if (n_derived - n_lost..=n_derived).contains(&n_stored) {
            stored.remove(&key);
            derived.remove(&key);
        }
    }
    if stored == derived {
        return Ok(());
    }
    let count = |buckets: &BTreeMap<Key, Bucket>| buckets.values().map(|(tally, ..)| tally.count).sum::<i64>();
    let category = match count(&derived).cmp(&count(&stored)) {
        std::cmp::Ordering::Less => "duplicate",
        std::cmp::Ordering::Equal => "bucket",
        std::cmp::Ordering::Greater => "lost",
    };
    Err(Failure::new(category, format!("buckets stored {stored:?}, derived {derived:?}")))
}

// ---- Everything that was written to the table, replayed from the first record to the last ----

/// The table at one moment, and which records made its items.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) items: Items,
    /// The record that inserted the item, present or deleted.
    inserted: BTreeMap<Key, usize>,
    /// The last record of each item.
    pub(crate) written: BTreeMap<Key, usize>,
    /// The last record of each item that the service did not write.
    pub(crate) touched: BTreeMap<Key, usize>,
    /// All versions of each item, the oldest first.
    pub(crate) versions: BTreeMap<Key, Vec<ItemVersion>>,
}

/// An item from a record on.
#[derive(Debug)]
pub(crate) struct ItemVersion {
    pub(crate) at: usize,
    pub(crate) at_ms: u64,
    /// `None` when it was deleted.
    pub(crate) item: Option<Item>,
}

/// Passes each record with the table before it to `see`, and returns the table after the last.
pub(crate) fn replayed<E>(
    stream: &Stream,
    mut see: impl FnMut(&Past, usize, &TableChange) -> Result<(), E>,
) -> Result<Past, E> {
    let mut past = Past::default();
    for (at, made) in stream.made.iter().enumerate() {
        see(&past, at, made)?;
        past.written.insert(made.key.clone(), at);
        let version = ItemVersion { at, at_ms: made.at_ms, item: made.new.clone() };
        past.versions.entry(made.key.clone()).or_default().push(version);
        if made.author != Author::Service {
            past.touched.insert(made.key.clone(), at);
        }
        match &made.new {
            Some(new) => {
                if made.old.is_none() {
                    past.inserted.insert(made.key.clone(), at);
                }
                past.items.insert(made.key.clone(), new.clone());
            }
            None => drop(past.items.remove(&made.key)),
        }
    }
    Ok(past)
}

// ---- strict ----

/// What an item belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    User(String),
    Post(String),
}

#[derive(Debug)]
struct Removal {
    at: usize,
    at_ms: u64,
    /// Did the item have its type?
    is_typed: bool,
    /// All keys under which it was known.
    keys: Vec<Key>,
    item: Item,
}

/// The owners so far.
#[derive(Default)]
struct Owners {
    removals: BTreeMap<Owner, Vec<Removal>>,
    /// The last claims of each post's mirror; none after somebody changed it by hand, and none of posts gone when it
    /// went.
    claims: BTreeMap<String, Vec<Key>>,
}

/// Checks every write of the service to the application's items, and what is left at the end.
fn cascades_are_strict(scene: &Scene, stream: &Stream, untyped: &BTreeSet<Key>) -> Result<(), Failure> {
    let mut owners = Owners::default();
    let past = replayed(stream, |past, at, made| {
        if made.author == Author::Service {
            allowed(scene, &owners, past, made)?;
        }
        owners.note(scene, past, at, made);
        Ok(())
    })?;
    let touched = |key: &Key| {
        untyped.contains(key) || stream.made.iter().any(|made| made.key == *key && made.author != Author::Service)
    };
    nothing_is_left(scene, stream, &owners, &past, untyped, touched)
}

impl Owners {
    fn note(&mut self, scene: &Scene, past: &Past, at: usize, made: &TableChange) {
        let (Some(owner), schema) = (owner_at(scene, &made.key), &scene.schema) else { return };
        let image = |item: &Item| schema.image(&made.key, item).is_some();
        let is_detail = made.key.sk == "METADATA";
        if let (Some(old), None) = (&made.old, &made.new) {
            let mut keys = vec![home(scene, &owner), made.key.clone()];
            keys.extend(claims(old));
            let (at_ms, is_typed, item) = (made.at_ms, image(old), old.clone());
            self.removals.entry(owner.clone()).or_default().push(Removal { at, at_ms, is_typed, keys, item });
        }
        if let (Owner::Post(post), true) = (&owner, is_detail) {
            match (&made.new, made.author) {
                (Some(new), Author::Service) => drop(self.claims.insert(post.clone(), claims(new))),
                // The mirror goes when nothing claims it. A claim by a post that exists stays.
                (_, Author::Service) => {
                    self.claims.entry(post.clone()).or_default().retain(|claim| is_post(scene, past, claim));
                }
                _ => drop(self.claims.remove(post)),
            }
        }
    }

    /// May a cascade delete what was so, or empty it?
    fn may_go(&self, scene: &Scene, past: &Past, made: &TableChange, old: &Item) -> Result<(), String> {
        let gone = owners_of(scene, &made.key, old).into_iter().map(|owner| {
            let listed_at = listed_at(scene, past, &made.key, old, made.at_ms)?;
            match &owner {
                Owner::Post(id) if has_come_back(scene, past, id, listed_at) => {
                    Err(format!("it was written when {owner:?} was there again"))
                }
                _ => self.is_gone(scene, past, &owner, made.at_ms),
            }
        });
        let gone: Vec<_> = gone.collect();
        if gone.iter().any(Result::is_ok) { Ok(()) } else { Err(format!("{gone:?}")) }
    }

    /// Was the owner gone for long enough?
    fn is_gone(&self, scene: &Scene, past: &Past, owner: &Owner, at_ms: u64) -> Result<(), String> {
        let removals = self.removals.get(owner).map(Vec::as_slice).unwrap_or_default();
        let is_absent = |key: &Key| !past.items.contains_key(key);
        let suffices = |removal: &&Removal| {
            removal.is_typed && removal.at_ms + scene.settle_ms() <= at_ms && removal.keys.iter().all(is_absent)
        };
        if !removals.iter().any(|removal| suffices(&removal)) {
            return Err(format!("{owner:?} was there, or not gone long enough"));
        }
        if let Owner::Post(post) = owner
            && let Some(claim) = self.claims.get(post).into_iter().flatten().find(|key| is_post(scene, past, key))
        {
            return Err(format!("{claim} claims {owner:?}"));
        }
        Ok(())
    }
}

/// Is it a counter of what only arrives?
fn is_history(key: &Key) -> bool {
    CounterKey::parse(key).is_some_and(|counter| counter.derivation == "view-count")
}

fn is_emptied(old: &Item, new: &Item) -> bool {
    is_zero(new) && !is_zero(old) && new.get(REVISION) == old.get(REVISION)
}

/// Does a post, with its type, stand under this key?
fn is_post(scene: &Scene, past: &Past, key: &Key) -> bool {
    let image = past.items.get(key).and_then(|item| scene.schema.image(key, item));
    image.is_some_and(|image| image.is("Post"))
}

/// The owner with this key; a post's own item counts too.
fn owner_at(scene: &Scene, key: &Key) -> Option<Owner> {
    let field =
        |entity: &str, name: &str| Some(scene.schema.entity(entity).unwrap().key.parse_key(key)?.get(name)?.to_owned());
    field("User", "UserId")
        .map(Owner::User)
        .or_else(|| field("PostDetail", "PostId").map(Owner::Post))
        .or_else(|| field("Post", "PostId").map(Owner::Post))
}

/// The key by which an owner is known.
fn home(scene: &Scene, owner: &Owner) -> Key {
    let (entity, name, id) = match owner {
        Owner::User(id) => ("User", "UserId", id),
        Owner::Post(id) => ("PostDetail", "PostId", id),
    };
    scene.schema.entity(entity).unwrap().build(&[(name, id.as_str())].into_iter().collect()).unwrap()
}

fn claims(item: &Item) -> Vec<Key> {
    let Some(AttributeValue::L(claims)) = item.get("Claims") else { return Vec::new() };
    let part = |map: &std::collections::HashMap<String, AttributeValue>, name: &str| match map.get(name) {
        Some(AttributeValue::S(text)) => Some(text.clone()),
        _ => None,
    };
    let claim = |value: &AttributeValue| match value {
        AttributeValue::M(map) => Some(Key { pk: part(map, "PK")?, sk: part(map, "SK")? }),
        _ => None,
    };
    claims.iter().filter_map(claim).collect()
}

/// The owners of an item; a counter belongs to its target.
fn owners_of(scene: &Scene, key: &Key, item: &Item) -> Vec<Owner> {
    if let Some(counter) = CounterKey::parse(key) {
        let is_history = counter.derivation == "view-count";
        return owner_at(scene, &counter.target).filter(|_| is_history).into_iter().collect();
    }
    let Some(image) = scene.schema.image(key, item) else { return Vec::new() };
    let field = |name: &str| image.key_fields().get(name).map(str::to_owned);
    let (users, posts): (&[&str], &[&str]) = match image.definition.name.as_str() {
        "Comment" => (&[], &["PostId"]),
        "Like" => (&["UserId"], &["PostId"]),
        "Follow" => (&["FollowerId", "FolloweeId"], &[]),
        "View" | "Membership" | "Member" | "Subscription" | "CartItem" => (&["UserId"], &[]),
        "EmailClaim" => return text(item, "UserId").map(|id| Owner::User(id.to_owned())).into_iter().collect(),
        _ => (&[], &[]),
    };
    let users = users.iter().filter_map(|name| field(name)).map(Owner::User);
    users.chain(posts.iter().filter_map(|name| field(name)).map(Owner::Post)).collect()
}

fn allowed(scene: &Scene, owners_so_far: &Owners, past: &Past, made: &TableChange) -> Result<(), Failure> {
    let of = |item: &Item| match scene.schema.see(&made.key, item) {
        Seen::Known(image) => Some((image.definition.name.clone(), image.definition.derived)),
        _ => None,
    };
    let refused = |what: String| Failure::new("strict", format!("the service {what} {}", made.key));
    if JobKey::parse(&made.key).is_some() {
        let job = made.new.as_ref().and_then(|item| Job::of(&scene.schema.layout, item));
        let is_cascade = job.is_some_and(|job| matches!(job.task, job::Task::Cascade { .. }));
        // The key of a cascade names the record of the removal.
        let is_again = made.old.is_none() && past.written.contains_key(&made.key);
        return if is_cascade && is_again { Err(refused("started a cascade again:".to_owned())) } else { Ok(()) };
    }
    match (&made.old, &made.new) {
        (Some(old), None) if CounterKey::parse(&made.key).is_some() && is_zero(old) => {
            scene.count("zeros collected");
            Ok(())
        }
        (Some(old), None) => match of(old) {
            Some((name, true)) if CounterKey::parse(&made.key).is_none() => {
                scene.count_all("left the chart", usize::from(name == "OrgChart"));
                Ok(())
            }
            // A repair deletes counters of what the functions do not have any more. What is deployed again is filled
            // again.
            Some((name, _)) if name == "Counter" && scene.rollout.may_drop(&made.key) => Ok(()),
            Some((name, _)) => {
                let may_go = owners_so_far.may_go(scene, past, made, old);
                may_go.map_err(|why| refused(format!("deleted the {name}, though {why}:")))?;
                scene.count(if name == "Counter" { "counters deleted" } else { "deleted" });
                Ok(())
            }
            None => Err(refused("deleted what is none of ours,".to_owned())),
        },
        // Under watermarks a cascade sets a counter to zero and leaves its revision.
        (Some(old), Some(new)) if is_history(&made.key) && is_emptied(old, new) => {
            let may_go = owners_so_far.may_go(scene, past, made, old);
            may_go.map_err(|why| refused(format!("emptied the counter, though {why}:")))?;
            scene.count("counters deleted");
            Ok(())
        }
        (Some(old), Some(new)) => match of(old) {
            Some((name, false)) => {
                let definition = scene.schema.entity(&name).unwrap();
                let changed: Vec<&str> =
                    differing(old, new).into_iter().filter(|name| !definition.derives(name)).collect();
                let is_archived = name == "Post" && changed == ["Status"] && text(new, "Status") == Some("archived");
                let author = scene.schema.entity("Post").unwrap().key.parse_key(&made.key);
                let author = author.and_then(|fields| Some(Owner::User(fields.get("AuthorId")?.to_owned())));
                match (changed.is_empty(), author.filter(|_| is_archived)) {
                    (true, _) => Ok(()),
                    (false, Some(author)) => listed_at(scene, past, &made.key, old, made.at_ms)
                        .and_then(|_| owners_so_far.is_gone(scene, past, &author, made.at_ms))
                        .map(|()| scene.count("archived"))
                        .map_err(|why| refused(format!("archived, though {why}:"))),
                    (false, None) => Err(refused(format!("changed {changed:?} of"))),
                }
            }
            Some((_, true)) => Ok(()),
            None if made.key.pk.starts_with(PARTITION) => Ok(()),
            None => Err(refused("changed what is none of ours,".to_owned())),
        },
        (None, Some(new)) => match of(new) {
            Some((name, false)) => Err(refused(format!("made the {name}"))),
            _ => Ok(()),
        },
        (None, None) => Ok(()),
    }
}

/// Is there no item of this owner, under any key and type?
fn is_absent(scene: &Scene, items: &Items, owner: &Owner) -> bool {
    !items.contains_key(&home(scene, owner)) && !items.keys().any(|key| owner_at(scene, key).as_ref() == Some(owner))
}

/// Nothing is left that belonged to a removed owner.
fn nothing_is_left(
    scene: &Scene,
    stream: &Stream,
    known: &Owners,
    past: &Past,
    untyped: &BTreeSet<Key>,
    touched: impl Fn(&Key) -> bool,
) -> Result<(), Failure> {
    let starts = |at: usize| !stream.lost.has(at, Family::LevelTriggered);
    let gone = |owner: &Owner| {
        let removal = known.removals.get(owner)?.last().filter(|removal| removal.is_typed && starts(removal.at))?;
        is_absent(scene, &past.items, owner).then_some(removal)
    };
    for (key, item) in past.items.iter().filter(|(key, _)| !untyped.contains(*key)) {
        let left = |why: String| Err(Failure::new("left", format!("{key} is left, though {why}")));
        for owner in owners_of(scene, key, item) {
            // What was written later stays. A counter stays when it was counted later.
            let writes = if CounterKey::parse(key).is_some() { &past.written } else { &past.touched };
            let is_older = |removal: &&Removal| writes.get(key).is_none_or(|at| *at < removal.at);
            // An earlier cascade emptied it, and the sweep deletes it when its watermarks are too old.
            let is_empty = is_history(key) && is_zero(item) && item.keys().any(is_mark);
            let Some(removal) = gone(&owner).filter(is_older).filter(|_| !is_empty) else { continue };
            let is_found = match (scene.schema.image(key, item).map(|image| image.definition.name.clone()), &owner) {
                (Some(name), Owner::User(_)) if name == "EmailClaim" => {
                    let email = text(&removal.item, "Email").unwrap_or_default().trim().to_lowercase();
                    key.pk == format!("EMAIL#{email}") && past.written[key] < removal.at
                }
                (Some(name), Owner::User(id)) if name == "Follow" => {
                    let fields = scene.schema.entity("Follow").unwrap().key.parse_key(key).unwrap();
                    let mirror = scene.schema.entity("Follower").unwrap().build(&fields).unwrap();
                    fields.get("FollowerId") == Some(id) || !touched(&mirror)
                }
                _ => true,
            };
            if is_found {
                return left(format!("{owner:?} is gone since record {}", removal.at));
            }
        }
        let post = scene.schema.image(key, item).filter(|image| image.is("Post"));
        let author = post.and_then(|image| Some(Owner::User(image.key_fields().get("AuthorId")?.to_owned())));
        let removal = author.as_ref().and_then(gone).filter(|removal| past.written[key] < removal.at);
        if removal.is_some() && text(item, "Status") != Some("archived") {
            return left(format!("not archived, though {author:?} is gone"));
        }
    }
    Ok(())
}

// ---- The list of unreadable items is what the table says ----

/// Each item that cannot be interpreted is listed, by derivation, and no other item is; each item that has the key of a
/// derived item is while that waits, and may be as long as it has the key.
fn list_is_exact(scene: &Scene, stream: &Stream, verified: &Comparison) -> Result<(), Failure> {
    // A new version does not see again what only an instance of the old one saw.
    if scene.rollout.is_any() {
        return Ok(());
    }
    let items = scene.database.memory().snapshot(Table::Main);
    let occupied =
        verified.findings.iter().filter(|it| occupies(scene, &items, &it.derivation, &Key::new(&it.pk, &it.sk)));
    let occupied = occupied.map(|it| [&it.derivation, &it.pk, &it.sk].map(String::clone));
    let wanted = verified.unreadable.iter().map(|it| [&it.derivation, &it.pk, &it.sk].map(String::clone));
    // Only a record of one of its sources lists an item under a mirror's key, and it may be lost.
    // Only a record lists an item, or takes it off.
    let lost = stream.lost.keys(&stream.made);
    let wanted = wanted.chain(occupied.filter(|_| lost.is_empty()));
    let is_sure = |[_, pk, sk]: &[String; 3]| !lost.contains(&Key::new(pk, sk));
    let wanted: BTreeSet<[String; 3]> = wanted.filter(is_sure).collect();
    let listed: BTreeSet<[String; 3]> = scene.database.memory().view(Table::Ledger, |items| {
        let entries = items.iter().filter(|(key, _)| key.pk == "UNREADABLE");
        let names = ["Derivation", "ItemPK", "ItemSK"];
        let listed = entries.map(|(_, entry)| names.map(|name| text(entry, name).unwrap_or_default().to_owned()));
        listed.filter(is_sure).collect()
    });
    scene.count_all("listed unreadable", listed.len());
    let is_left = |[derivation, pk, sk]: &&[String; 3]| occupies(scene, &items, derivation, &Key::new(pk, sk));
    let left: BTreeSet<[String; 3]> = listed.iter().filter(is_left).cloned().collect();
    scene.count_all("occupied keys", left.len());
    let listed: BTreeSet<[String; 3]> =
        listed.into_iter().filter(|it| wanted.contains(it) || !left.contains(it)).collect();
    if listed == wanted {
        return Ok(());
    }
    let text = format!(
        "listed as unreadable and should not be: {:?}; should be and is not: {:?}",
        listed.difference(&wanted).collect::<Vec<_>>(),
        wanted.difference(&listed).collect::<Vec<_>>()
    );
    Err(Failure::new("unreadable", text))
}

/// Does an item that is not Ripple's have the key of an item that this derivation creates?
fn occupies(scene: &Scene, items: &Items, derivation: &str, key: &Key) -> bool {
    let maker = scene.catalogue.position(derivation).and_then(|at| scene.catalogue.refresh(at));
    let maker = maker.filter(|maker| maker.makes_item());
    maker.is_some_and(|maker| is_taken(scene, items, maker.target(), key))
}

/// Does an item of another entity than this, or of none, have this key?
fn is_taken(scene: &Scene, items: &Items, entity: &str, key: &Key) -> bool {
    let is_of = |item: &Item| scene.schema.image(key, item).is_some_and(|image| image.is(entity));
    items.get(key).is_some_and(|item| !is_of(item))
}

/// Is this item found through a mirror whose key another item has, and which is needed itself, since its key alone does
/// not lead to the item or an index is searched? Then what the item carries may be old until the key is free.
pub(crate) fn is_way_taken(scene: &Scene, items: &Items, derivation: &str, key: &Key) -> bool {
    let refresh = scene.catalogue.position(derivation).and_then(|at| scene.catalogue.refresh(at));
    let Some(found) = refresh.and_then(|refresh| refresh.found()) else { return false };
    let target = refresh.and_then(|refresh| scene.schema.entity(refresh.target()));
    let leads = |via: &Definition, target: &Definition| {
        let known = via.key.field_names();
        found.index.is_none() && target.key.field_names().iter().all(|name| known.contains(name))
    };
    let via = scene.schema.entity(&found.via).filter(|via| via.derived);
    let via = via.filter(|via| !target.is_some_and(|target| leads(via, target)));
    let image = items.get(key).and_then(|item| scene.schema.image(key, item));
    let (Some(via), Some(image)) = (via, image) else { return false };
    let through = via.build_of(|name| image.field(name).ok().flatten());
    through.is_ok_and(|through| is_taken(scene, items, &via.name, &through))
}

// ---- listed ----

/// The first record since which an item could have been listed in its present form. Fails when it is too recent.
fn listed_at(scene: &Scene, past: &Past, key: &Key, item: &Item, at_ms: u64) -> Result<usize, String> {
    let as_it_is = judged(scene, key, item);
    let mut versions = past.versions.get(key).into_iter().flatten();
    let first = versions.find(|version| version.item.as_ref().is_some_and(|item| judged(scene, key, item) == as_it_is));
    match first {
        // One instance sets the time, and another one, whose clock is off as well, sees that it has come.
        Some(first) if first.at_ms + scene.settle_ms() <= at_ms + 2 * scene.clocks_off_ms as u64 => Ok(first.at),
        _ => Err("it was not so long as it is when it would have been listed".to_owned()),
    }
}

/// Does a post with this id exist, under any key, since before this record? Its mirror may not exist yet.
fn has_come_back(scene: &Scene, past: &Past, id: &str, before: usize) -> bool {
    let post = scene.schema.entity("Post").unwrap();
    let is_of = |key: &Key| post.key.parse_key(key).is_some_and(|fields| fields.get("PostId") == Some(id));
    let is_post = |key: &Key, item: &Item| scene.schema.image(key, item).is_some_and(|image| image.is("Post"));
    let mut of_id = past.versions.iter().filter(|(key, _)| is_of(key));
    of_id.any(|(key, versions)| {
        let lately = versions.iter().rev();
        let lately = lately.take_while(|version| version.item.as_ref().is_some_and(|item| is_post(key, item)));
        lately.last().is_some_and(|first| first.at < before)
    })
}

/// The attributes that the service did not write; all attributes of a counter.
fn judged(scene: &Scene, key: &Key, item: &Item) -> Item {
    let image = scene.schema.image(key, item).filter(|_| CounterKey::parse(key).is_none());
    item.iter()
        .filter(|(name, _)| !image.as_ref().is_some_and(|image| image.definition.derives(name)))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

// ---- The account of every invocation that ends matches what the store answered ----

/// Largest difference in units: an account splits them into parts, so their sum is rounded.
const UNITS_OFF_MAX: Units = 1e-6;

pub(crate) fn account_matches(name: &str, handled: &Handled, answered: Units) -> Result<(), Failure> {
    let counted: Units = handled.account.commits.iter().map(|commit| commit.units).sum();
    if (counted - answered).abs() <= UNITS_OFF_MAX {
        return Ok(());
    }
    Err(Failure::new(
        "account",
        format!("{name} accounts for {counted} write units, and the store answered {answered}"),
    ))
}

// ---- The second oracle, at the end of a run ----

/// Everything that is derived is what the second oracle derives.
fn is_recounted(scene: &Scene, stream: &Stream) -> Result<(), Failure> {
    let recounted = recount(&plain_table(scene), &plain_changes(stream));
    let Recount { mut differences, n_compared, n_unreadable, n_late, n_not_found } = recounted;
    scene.count_all("recounted", n_compared);
    scene.count_all("unreadable", n_unreadable);
    scene.count_all("late readings", n_late);
    scene.count_all("not found by it", n_not_found);
    // What was lost of a history, or is listed for a recount, nobody can count any more: `audit` has its bounds.
    let lost = stream.lost.concerned(scene, &stream.made).counts;
    let is_lost = |found: &Difference| lost.iter().any(|(_, item)| address(item) == found.at);
    differences.retain(|found| !(HISTORIES.contains(&found.derivation) && is_lost(found)));
    let items = scene.database.memory().snapshot(Table::Main);
    differences.retain(|found| !is_way_taken(scene, &items, found.derivation, &Key::new(&found.at.0, &found.at.1)));
    match differences.first() {
        Some(first) => {
            let text = format!("{} differences, the first: {first:#?}", differences.len());
            Err(Failure::new("recount", text))
        }
        None => Ok(()),
    }
}

/// The table as the oracle reads it.
pub(crate) fn plain_table(scene: &Scene) -> PlainTable {
    let items = scene.database.memory().snapshot(Table::Main);
    PlainTable(items.iter().map(|(key, item)| (address(key), plain_item(item))).collect())
}

/// Everything that was written to the table.
pub(crate) fn plain_changes(stream: &Stream) -> Vec<PlainChange> {
    let changes = stream.made.iter().enumerate().map(|(at, made)| PlainChange {
        at: address(&made.key),
        old: made.old.as_ref().map(plain_item),
        new: made.new.as_ref().map(plain_item),
        is_ours: made.author == Author::Service,
        is_lost: stream.lost.has(at, Family::LevelTriggered),
    });
    changes.collect()
}

fn address(key: &Key) -> Address {
    (key.pk.clone(), key.sk.clone())
}

pub(crate) fn plain_item(item: &Item) -> PlainItem {
    item.iter().map(|(name, value)| (name.to_owned(), plain(value))).collect()
}

fn plain(value: &AttributeValue) -> Plain {
    let set = |mut values: Vec<Plain>| {
        values.sort();
        Plain::Set(values)
    };
    match value {
        AttributeValue::S(text) => Plain::Text(text.clone()),
        AttributeValue::N(text) => Plain::Number(millionths(text)),
        AttributeValue::Bool(value) => Plain::Bool(*value),
        AttributeValue::B(bytes) => Plain::Bytes(bytes.clone()),
        AttributeValue::L(values) => Plain::List(values.iter().map(plain).collect()),
        AttributeValue::M(map) => Plain::Map(map.iter().map(|(name, value)| (name.clone(), plain(value))).collect()),
        AttributeValue::Ss(texts) => set(texts.iter().cloned().map(Plain::Text).collect()),
        AttributeValue::Ns(texts) => set(texts.iter().map(|text| Plain::Number(millionths(text))).collect()),
        other => Plain::Other(format!("{other:?}")),
    }
}

// ---- converging ----

/// Most records of a job in an hour, with faults and operators, and without. A job of the simulation searches through
/// at most a few dozen items, two on a page, and each change during it sends it through them once more. While a lane
/// stands still for days, the sweep begins a search again each half hour, so the records of all days are not bounded.
/// In 100 runs of each ledger one took 140 with faults, and one 8 without.
pub(crate) const RINGS_MAX: usize = 300;
pub(crate) const CALM_RINGS_MAX: usize = 40;

/// How long changes may take to reach everything when no call fails, in simulated milliseconds: a minute. In 100 runs
/// of each ledger it took at most 1.3 seconds.
pub(crate) const CONVERGED_MS_MAX: u64 = 60_000;

/// How often the service may write one item, and once more for every second change by others. In 10 runs of each kind
/// it wrote one 27 times for 216 changes, with faults and operators, and 7 times for 12 changes without. The path of a
/// folder in a circle grows by each write to its limit, and does so again when a write that was late has put an old one
/// back.
const WRITES: usize = 400;

const HOUR_MS: u64 = 3_600_000;

/// No fan-out of these changes took more records than this in an hour. Returns the most that one took.
pub(crate) fn rings_are_few(scene: &Scene, made: &[TableChange], rings_max: usize) -> Result<usize, Failure> {
    let mut rings: BTreeMap<&Key, (u64, usize)> = BTreeMap::new();
    let mut most = 0;
    for change in made {
        let is_fan_out = |item: &keys::item::Item| {
            Job::of(&scene.schema.layout, item).is_some_and(|job| matches!(job.task, Task::FanOut(_)))
        };
        if !change.old.iter().chain(&change.new).any(is_fan_out) {
            continue;
        }
        let (begin_ms, n_rings) = rings.entry(&change.key).or_default();
        if change.old.is_none() || change.at_ms > *begin_ms + HOUR_MS {
            (*begin_ms, *n_rings) = (change.at_ms, 0);
        }
        *n_rings += 1;
        most = most.max(*n_rings);
        if *n_rings > rings_max {
            return Err(Failure::new("rings", format!("{} was woken {n_rings} times in an hour", change.key)));
        }
    }
    Ok(most)
}

/// How often the service wrote each item, held against the number of changes by others. Two derivations that want
/// different values in one place write it back and forth without end, and no number of changes explains that.
#[derive(Debug, Default)]
pub(crate) struct WriteCounts {
    n_changes: usize,
    of: BTreeMap<Key, usize>,
    excess: Option<Failure>,
}

impl WriteCounts {
    /// Counts a change. Jobs are counted by their records, and a pulse is written at each run of the sweep.
    pub(crate) fn note(&mut self, author: Author, key: &Key) {
        if author != Author::Service {
            self.n_changes += 1;
        } else if JobKey::parse(key).is_none() && key.sk != "PULSE" {
            let n_written = self.of.entry(key.clone()).or_default();
            *n_written += 1;
            if *n_written > WRITES + self.n_changes / 2 && self.excess.is_none() {
                let text = format!("{key} was written {n_written} times for {} changes by others", self.n_changes);
                self.excess = Some(Failure::new("excess", text));
            }
        }
    }

    /// Fails when an item was written too often.
    pub(crate) fn are_few(&self) -> Result<(), Failure> {
        self.excess.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_two_derivations_write_back_and_forth_is_named() {
        let (source, derived) = (Key::new("POST#p", "METADATA"), Key::new("CATEGORY#other", "METADATA"));
        let mut writes = WriteCounts::default();
        for _ in 0..100 {
            writes.note(Author::Application, &source);
            writes.note(Author::Service, &Key::new(format!("CATEGORY#{}", writes.n_changes), "METADATA"));
        }
        (0..WRITES + 50).for_each(|_| writes.note(Author::Service, &derived));
        assert_eq!(writes.are_few(), Ok(()), "changes explain so many writes");
        writes.note(Author::Service, &derived);
        let text = "CATEGORY#other / METADATA was written 451 times for 100 changes by others".to_owned();
        assert_eq!(writes.are_few(), Err(Failure::new("excess", text)));
    }
}
