//! What must be true when the stream is quiet, nothing runs and no call is late.

use std::collections::{BTreeMap, BTreeSet};

use derive::{derived::Items, family::Family, schema::Seen, sources::sums, write::Table};
use keys::{counter::REVISION, item::Item, key::Key};
use operate::verify::definition::compare;

use crate::{
    checks::{
        buckets::buckets_are_exact,
        recounted::is_recounted,
        strict::cascades_are_strict,
        unreadable::{is_way_taken, list_is_exact},
    },
    drawn::check::is_right as drawn_is_right,
    failure::Failure,
    items::is_zero,
    platform::stream::{Author, Stream, TableChange},
    scene::Scene,
    stored::{ToRecount, parked, refused_unread, to_recount},
};

/// The cause of a record that is parked because two invocations died at it begins so.
const DIED: &str = "two invocations died";

/// Fewest deaths of invocations that had such a record. It may have been in progress when they died at something else.
const DEATHS_MIN: usize = 2;

/// So DynamoDB's refusal of a write ends that would make an item too large.
const TOO_LARGE: &str = "the limit is 409600";

/// Checks the tables at the end.
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
    // What is too old to be counted is listed for a recount, and so is what a replay refused, which the stream brings too.
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
    let is_torso =
        |(key, item): &(&Key, &Item)| matches!(scene.schema.see(key, item), Seen::Untyped) && !untyped.contains(*key);
    match items.iter().find(is_torso) {
        Some((key, _)) => Err(Failure::new("torso", format!("{key} has no type, and the application wrote none such"))),
        None => Ok(()),
    }
}

/// Each arrival of a view counts once, which `verify` cannot see in the table.
fn views_are_exact(scene: &Scene, stream: &Stream, items: &Items, listed: &ToRecount) -> Result<(), Failure> {
    let view = scene.schema.entity("View").unwrap();
    let detail = scene.schema.entity("PostDetail").unwrap();
    let mut arrived: BTreeMap<(Key, String), i64> = BTreeMap::new();
    for key in stream.arrivals("View") {
        let target = detail.build(&view.key.parse_key(key).unwrap()).unwrap();
        *arrived.entry((target, "view-count".to_owned())).or_default() += 1;
    }
    // Views that a cascade deleted were counted too. Under watermarks it sets a counter to zero and leaves its revision.
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
    for (target, n_lost) in lost_views(scene, stream) {
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

/// Arrivals of views that were lost, by what they count for.
fn lost_views(scene: &Scene, stream: &Stream) -> BTreeMap<(Key, String), i64> {
    let [view, detail] = ["View", "PostDetail"].map(|name| scene.schema.entity(name).unwrap());
    let mut lost = BTreeMap::new();
    for key in stream.lost_arrivals("View") {
        let target = detail.build(&view.key.parse_key(key).unwrap()).unwrap();
        *lost.entry((target, "view-count".to_owned())).or_default() += 1;
    }
    lost
}
