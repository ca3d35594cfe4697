//! What must be true when the stream is quiet, nothing runs and no call is late.

use std::collections::{BTreeMap, BTreeSet};

use derive::{derived::Items, family::Family, schema::Seen, sources::sums, write::Table};
use engine::batch::Handled;
use keys::{item::Item, key::Key};
use operate::verify::definition::compare;
use store::Units;

use crate::{
    actors::application::Application,
    checks::{readings::buckets_are_exact, strict::cascades_are_strict},
    corruption::parked,
    failure::Failure,
    scene::Scene,
    stream::{Author, Stream},
};

/// How the cause begins of a record that is parked since two invocations died at it.
const DIED: &str = "two invocations died";

/// Deaths that such a record must have seen. Invocations that die at something else count too, since it may have been
/// in progress in them.
const DEATHS_MIN: usize = 2;

/// How far the units of an account may be off, which are parts of a sum.
const UNITS_OFF_MAX: Units = 1e-6;

/// Looks at everything at the end.
pub(crate) fn audit(
    scene: &Scene,
    stream: &Stream,
    application: &Application,
    n_deaths: &BTreeMap<String, usize>,
) -> Result<(), Failure> {
    let memory = scene.database.memory();
    memory.view(Table::Main, |items| {
        let verified = compare(&scene.schema, &scene.catalogue, items);
        // Flaws are the application's; those of this one are folders that stand in themselves.
        let (flaws, findings): (Vec<_>, Vec<_>) = verified.findings.iter().partition(|finding| finding.flaw.is_some());
        scene.count_all("flaws", flaws.len());
        if let Some(finding) = findings.first() {
            let text = format!("{} findings, the first: {finding:#?}", findings.len());
            return Err(Failure::new("finding", text));
        }
        has_no_torso(scene, items, application)?;
        views_are_exact(scene, stream, items)?;
        buckets_are_exact(stream, items)
    })?;
    cascades_are_strict(scene, stream, application)?;
    parked_are(scene, &BTreeSet::new(), &[], n_deaths)
}

/// Parked are the records of these ids, on behalf of each of these families; beside them those at which invocations
/// died, and no others.
pub(crate) fn parked_are(
    scene: &Scene,
    ids: &BTreeSet<String>,
    families: &[Family],
    n_deaths: &BTreeMap<String, usize>,
) -> Result<(), Failure> {
    let mut wanted = BTreeSet::new();
    for family in families {
        wanted.extend(ids.iter().map(|id| (format!("PARKED#{family}"), id.clone())));
    }
    let mut parked = parked(scene);
    let n_parked = parked.len();
    let may_have_died = |id: &String| n_deaths.get(id).is_some_and(|n_deaths| *n_deaths >= DEATHS_MIN);
    parked.retain(|parked| !(parked.cause.starts_with(DIED) && may_have_died(&parked.id)) || ids.contains(&parked.id));
    scene.count_all("died at", n_parked - parked.len());
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

fn has_no_torso(scene: &Scene, items: &Items, application: &Application) -> Result<(), Failure> {
    let is_torso = |(key, item): &(&Key, &Item)| {
        matches!(scene.schema.see(key, item), Seen::Untyped) && !application.untyped().contains(*key)
    };
    match items.iter().find(is_torso) {
        Some((key, _)) => Err(Failure::new("torso", format!("{key} has no type, and the application wrote none such"))),
        None => Ok(()),
    }
}

/// What `verify` cannot tell from the ground: each insert of a view counts once.
fn views_are_exact(scene: &Scene, stream: &Stream, items: &Items) -> Result<(), Failure> {
    let view = scene.schema.entity("View").unwrap();
    let detail = scene.schema.entity("PostDetail").unwrap();
    let mut inserted: BTreeMap<(Key, String), i64> = BTreeMap::new();
    for key in stream.inserts("View") {
        let target = detail.build(&view.key.parse_key(key).unwrap()).unwrap();
        *inserted.entry((target, "view-count".to_owned())).or_default() += 1;
    }
    // What a cascade deleted was counted too.
    let of_ours = stream.made.iter().filter(|made| made.author == Author::Service && made.new.is_none());
    let mut counted: BTreeMap<(Key, String), i64> = BTreeMap::new();
    for one in of_ours.filter_map(|made| made.old.as_ref()).chain(items.values()) {
        for (counter, tally) in sums(&scene.schema, [one]) {
            *counted.entry(counter).or_default() += tally.count;
        }
    }
    counted.retain(|(_, derivation), _| derivation == "view-count");
    if inserted == counted {
        return Ok(());
    }
    let category = if inserted.values().sum::<i64>() < counted.values().sum() { "duplicate" } else { "lost" };
    Err(Failure::new(category, format!("views inserted {inserted:?}, counted {counted:?}")))
}

/// The account of an invocation that ended says what the store answered to it, and no more.
pub(crate) fn account_matches(name: &str, handled: &Handled, answered: Units) -> Result<(), Failure> {
    let told: Units = handled.account.commits.iter().map(|commit| commit.units).sum();
    if (told - answered).abs() <= UNITS_OFF_MAX {
        return Ok(());
    }
    Err(Failure::new("account", format!("{name} tells of {told} write units, and was answered {answered}")))
}
