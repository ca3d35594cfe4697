//! `ripple catalogue`: compares the declared derivations with those in the table's registry.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    clock::{Clock as _, SystemClock},
    registry::difference::{CatalogueDifference, DerivationState, differences},
};
use functions::logging;
use infra::steps::{IndexChange, IndexStep};
use manifest::error::meant_or_listed;
use operate::{
    objects::word,
    words::{self, counted},
};
use serde_json::{Value, json};

use crate::{
    args::tables::{CatalogueCommand, Diff, Forget},
    commands::{
        LOG_FILTER,
        preflight::sample::{BackfillCost, SampleLimits, SampledTable, WriteEstimate},
    },
    exit::{Completion, Usage, print, print_json},
    opened::{Opened, open_before_deployment, open_to_write},
    tables,
};

/// Time limit for reading the registry, in milliseconds.
const ASK_MS_MAX: u64 = 30_000;

pub(crate) async fn run(args: &CatalogueCommand) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    match args {
        CatalogueCommand::Diff(args) => diff(args).await,
        CatalogueCommand::Forget(args) => forget(args).await,
    }
}

async fn diff(args: &Diff) -> anyhow::Result<Completion> {
    let opened = open_before_deployment(&args.connection).await?;
    let now_ms = SystemClock.now_ms();
    let registry = opened.engine().registry(now_ms.saturating_add(ASK_MS_MAX)).await?;
    let differences = differences(&opened.schema, &opened.catalogue, &registry, now_ms);
    let cost = cost(&opened, args, &differences).await?;
    let index_keys = if registry.is_empty() { Vec::new() } else { registry.index_keys_beside(&opened.schema) };
    let indexes = index_steps(&opened);
    let are_in_step =
        indexes.is_empty() && differences.iter().all(|it| matches!(it.state, DerivationState::InStep { .. }));
    if args.json {
        let derivations: Vec<Value> = differences.iter().map(|it| as_json(it, cost.as_ref())).collect();
        let read_units = cost.as_ref().map(|cost| cost.read_units);
        let indexes: Vec<Value> = indexes.iter().map(index_json).collect();
        print_json(json!({
            "derivations": derivations, "indexes": indexes, "index_keys": index_keys, "read_units": read_units,
        }));
    } else {
        for step in &indexes {
            print(&format!("index       {step}"));
        }
        differences.iter().flat_map(|it| as_text(it, cost.as_ref())).for_each(|line| print(&line));
        for entity in &index_keys {
            print(&format!("changed     index keys of {entity}"));
            print("  to do     deploy the functions, and let the application write the new keys");
        }
        print(&totals(&differences));
    }
    Ok(if are_in_step && index_keys.is_empty() { Completion::InStep } else { Completion::Findings })
}

/// The steps to the declared indexes of each of the application's tables.
fn index_steps(opened: &Opened) -> Vec<IndexStep> {
    let declared = (&*opened.schema, &*opened.catalogue);
    let all = opened.application_tables().into_iter();
    all.flat_map(|(table, form)| tables::index_steps(declared, table, form)).collect()
}

/// JSON for a step. The names are stable.
fn index_json(step: &IndexStep) -> Value {
    let IndexStep { table, index, change, derivations, .. } = step;
    let (state, deployment, why) = match change {
        IndexChange::Create(deployment) => ("missing", Some(deployment), None),
        IndexChange::Delete(deployment) => ("undeclared", Some(deployment), None),
        IndexChange::Replace(why) => ("differs", None, Some(why)),
    };
    json!({
        "table": table, "index": index, "state": state, "deployment": deployment, "why": why,
        "derivations": derivations,
    })
}

/// Estimates the cost of filling the derivations that are not filled, from samples of the application's tables.
async fn cost(
    opened: &Opened,
    args: &Diff,
    differences: &[CatalogueDifference],
) -> anyhow::Result<Option<BackfillCost>> {
    if args.items == 0 || !differences.iter().any(is_to_fill) {
        return Ok(None);
    }
    let limits = SampleLimits { n_items_max: args.items, segments: 1, units_per_second: args.units_per_second };
    let tables = SampledTable::read_all(opened, limits, |_| true, |_| {}).await?;
    Ok(Some(BackfillCost::estimate(opened, &tables)))
}

/// True if the derivation must be filled, now or after it is deployed.
fn is_to_fill(difference: &CatalogueDifference) -> bool {
    use DerivationState::{Added, Changed, Dropped, InStep, Undeclared, Unfilled, Young};
    match difference.state {
        Added { .. } | Changed { .. } | Young { .. } | Unfilled { .. } => true,
        InStep { .. } | Undeclared | Dropped { .. } => false,
    }
}

/// The estimated writes for a derivation; `None` if they are unknown.
fn part<'a>(difference: &CatalogueDifference, cost: Option<&'a BackfillCost>) -> Option<&'a WriteEstimate> {
    let parts = cost?.parts.as_ref()?;
    parts.iter().find(|part| part.derivation == difference.name)
}

fn state_word(state: &DerivationState) -> &'static str {
    match state {
        DerivationState::Added { renamed_from: None } => "added",
        DerivationState::Added { renamed_from: Some(_) } => "renamed",
        DerivationState::Changed { .. } => "changed",
        DerivationState::Young { .. } => "deployed",
        DerivationState::Unfilled { .. } => "to fill",
        DerivationState::InStep { .. } => "up to date",
        DerivationState::Undeclared => "undeclared",
        DerivationState::Dropped { .. } => "dropped",
    }
}

/// The lines about a derivation: its state, what to do, and the cost. Empty if it is up to date.
fn as_text(difference: &CatalogueDifference, cost: Option<&BackfillCost>) -> Vec<String> {
    let CatalogueDifference { name, definition, state, version, .. } = difference;
    let backfill = || format!("`ripple backfill {name}`");
    let mut lines = vec![format!("{:<11} {name}  {definition}", state_word(state))];
    let to_do = match state {
        DerivationState::InStep { .. } => return Vec::new(),
        DerivationState::Added { renamed_from: None } => {
            format!("no function has it: deploy the functions, then {}", backfill())
        }
        // What a count or an extreme implies has no place for `was`.
        DerivationState::Added { renamed_from: Some(from) }
            if ["-display", "-item", "-entries"].iter().any(|suffix| name.ends_with(suffix)) =>
        {
            format!(
                "it does what {from} did: deploy the functions, then {}; delete nothing, and forget {from}",
                backfill()
            )
        }
        DerivationState::Added { renamed_from: Some(from) } => {
            format!("the functions have the same as {from}: say was = \"{from}\", and nothing has to be filled")
        }
        DerivationState::Changed { was } => {
            lines.push(format!("  was       {was}"));
            format!("deploy the functions, then {}", backfill())
        }
        DerivationState::Young { ready_ms } => {
            let ready = words::time(*ready_ms);
            format!("an instance without it may run until {ready}: {} waits for that", backfill())
        }
        DerivationState::Unfilled { since_ms } => {
            let (since, backfill) = (words::time(*since_ms), backfill());
            format!("items from before {since} may be missing: run {backfill}, or a `ripple verify` that finds nothing")
        }
        DerivationState::Undeclared => "the functions have it: declare it, or deploy them without it".to_owned(),
        DerivationState::Dropped { dropped_ms } => {
            let since = words::time(*dropped_ms);
            format!(
                "the functions have lacked it since {since}: `ripple repair --apply` deletes its counters, you delete the other \
                 items that it made, then `ripple catalogue forget {name}`"
            )
        }
    };
    lines.push(format!("  to do     {to_do}"));
    if let Some(version) = version.filter(|version| *version > 1) {
        lines.push(format!("  version   {version}"));
    }
    if let (true, Some(cost)) = (is_to_fill(difference), cost) {
        let writes = part(difference, Some(cost))
            .map_or_else(|| "the sample has no item that it would write".to_owned(), WriteEstimate::at_most);
        lines.push(format!("  costs     {} read units; {writes}", cost.read_units));
    }
    lines
}

/// JSON for a derivation. The names are stable.
fn as_json(difference: &CatalogueDifference, cost: Option<&BackfillCost>) -> Value {
    let CatalogueDifference { name, family, definition, version, state } = difference;
    let mut object = json!({
        "derivation": name,
        "family": word(&family.to_string()),
        "state": word(state_word(state)),
        "definition": definition,
        "version": version,
    });
    let mut more = match state {
        DerivationState::Added { renamed_from } => json!({ "renamed_from": renamed_from }),
        DerivationState::Changed { was } => json!({ "was": was }),
        DerivationState::Young { ready_ms } => json!({ "ready_at": words::time(*ready_ms) }),
        DerivationState::Unfilled { since_ms } => json!({ "since": words::time(*since_ms) }),
        DerivationState::InStep { filled_ms } => json!({ "filled_at": filled_ms.as_ref().map(|ms| words::time(*ms)) }),
        DerivationState::Dropped { dropped_ms } => json!({ "dropped_at": words::time(*dropped_ms) }),
        DerivationState::Undeclared => json!({}),
    };
    let mut costs = match part(difference, cost).filter(|_| is_to_fill(difference)) {
        Some(part) => json!({ "items_max": part.n_items, "write_units_max": part.units }),
        None => json!({}),
    };
    for more in [&mut more, &mut costs] {
        if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object_mut()) {
            object.append(more);
        }
    }
    object
}

fn totals(differences: &[CatalogueDifference]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for difference in differences {
        *counts.entry(state_word(&difference.state)).or_default() += 1;
    }
    let n_in_step = counts.remove("up to date").unwrap_or_default();
    let others = counts.into_iter().map(|(word, n)| format!(", {n} {word}"));
    format!("{} up to date{}", counted(n_in_step, "derivation"), others.collect::<String>())
}

async fn forget(args: &Forget) -> anyhow::Result<Completion> {
    let opened = open_to_write(&args.writing).await?;
    let engine = opened.engine();
    let deadline_ms = SystemClock.now_ms().saturating_add(ASK_MS_MAX);
    let registry = engine.registry(deadline_ms).await?;
    let differences = differences(&opened.schema, &opened.catalogue, &registry, SystemClock.now_ms());
    for name in &args.names {
        let is_dropped =
            |it: &CatalogueDifference| it.name == *name && matches!(it.state, DerivationState::Dropped { .. });
        if !differences.iter().any(is_dropped) {
            let why = if differences.iter().any(|it| it.name == *name) {
                "the functions have it".to_owned()
            } else {
                let dropped = differences.iter().filter(|it| matches!(it.state, DerivationState::Dropped { .. }));
                let dropped: Vec<&str> = dropped.map(|it| it.name.as_str()).collect();
                format!("no derivation of this name is known{}", meant_or_listed(name, dropped.into_iter()))
            };
            return Err(Usage(format!("{name} was not dropped: {why}")).into());
        }
    }
    let names: BTreeSet<String> = args.names.iter().cloned().collect();
    let n_forgotten = engine.forget(&names, deadline_ms).await?;
    print(&format!("{n_forgotten} forgotten"));
    Ok(Completion::InStep)
}
