//! `ripple parked` lists the changes that cannot be applied, and the counts that need a recount; or those about an item, or
//! discards some. `ripple redrive` applies parked changes again, after an operator corrected the cause.

use derive::family::Family;
use engine::{
    inspect::{ToRecount, to_recount, unreadable},
    park::{ParkedChange, parked},
    redrive::discard::Concerns,
};
use functions::logging;
use keys::layout::Layout;
use operate::{
    objects::{discarded, item, parked_about, parked_list, record, whole_change, word},
    parked::{About, ChangeOutcome, discard, lost, lost_lines, reasons, redrive},
    words::{self, counted},
};
use serde_json::{Value, json};

use crate::{
    args::tables::{ParkedArgs, Redrive},
    commands::{LOG_FILTER, QUIET_LOG_FILTER},
    exit::{Completion, Usage, print, print_json, report, report_unknown},
    opened::{Opened, agreed, open_to_write, open_with_ledger},
};

pub(crate) async fn run(args: &ParkedArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let connection = &args.writing.connection;
    let opened = agreed(open_with_ledger(connection).await?, connection).await?;
    let parked = parked(&opened.store).await?;
    match &args.about {
        _ if args.discard => discard_chosen(&opened, &parked, args).await,
        Some(about) => {
            let about = about.addressed(&opened.schema.layout);
            about.check(&opened.schema).map_err(Usage)?;
            Ok(list_about(&parked, &opened, &about, args.json))
        }
        None if args.ids.is_empty() => list(&parked, &opened, args.json).await,
        None => show(&parked, &opened, args).await,
    }
}

fn list_about(parked: &[ParkedChange], opened: &Opened, about: &About, as_json: bool) -> Completion {
    let (engine, layout) = (opened.engine(), &opened.schema.layout);
    let found = parked.iter().map(|change| (change, reasons(&engine, change, about)));
    let found: Vec<_> = found.filter(|(_, why)| !why.is_empty()).collect();
    if as_json {
        print_json(parked_about(about, &found, layout));
    } else {
        let text = |(change, why): &(&ParkedChange, Vec<String>)| {
            format!("{}\n  why       {}", change_text(change, layout), why.join("; "))
        };
        let lines = found.iter().map(text).chain([format!("{} about {about}", counted(found.len(), "parked change"))]);
        print(&lines.collect::<Vec<_>>().join("\n"));
    }
    if found.is_empty() { Completion::InStep } else { Completion::Findings }
}

async fn list(parked: &[ParkedChange], opened: &Opened, as_json: bool) -> anyhow::Result<Completion> {
    let layout = &opened.schema.layout;
    let mut recount = to_recount(&opened.store).await?;
    for target in &mut recount {
        target.relabel(&opened.catalogue);
    }
    let n_unreadable = unreadable(&opened.store).await?.len();
    if as_json {
        print_json(parked_list(parked, &recount, n_unreadable, layout));
    } else {
        let changes = parked.iter().map(|change| change_text(change, layout));
        let mut lines: Vec<String> = changes.chain(recount.iter().map(recount_text)).collect();
        let (n_parked, to_recount) = (parked.len(), counted(recount.len(), "count"));
        let unreadable = counted(n_unreadable, "item");
        lines.push(format!("{n_parked} parked, {to_recount} to recount, {unreadable} unreadable"));
        print(&lines.join("\n"));
    }
    Ok(if parked.is_empty() && recount.is_empty() { Completion::InStep } else { Completion::Findings })
}

async fn show(parked: &[ParkedChange], opened: &Opened, args: &ParkedArgs) -> anyhow::Result<Completion> {
    let layout = &opened.schema.layout;
    let (chosen, unknown) = chosen(parked, &args.ids);
    if args.json {
        let chosen: Vec<Value> = chosen.iter().map(|change| whole_change(change, layout)).collect();
        print_json(json!({ "parked": chosen, "unknown": unknown }));
    } else {
        let whole = |change: &&ParkedChange| format!("{}\n{:#}", change_text(change, layout), record(change));
        for change in &chosen {
            print(&whole(change));
        }
    }
    report_not_parked(&unknown, opened).await?;
    Ok(if unknown.is_empty() { Completion::Findings } else { Completion::UnknownId })
}

/// The parked changes with these ids, and the ids without a parked change. Both families may have parked the same
/// change.
pub(super) fn chosen<'a>(parked: &'a [ParkedChange], ids: &'a [String]) -> (Vec<&'a ParkedChange>, Vec<&'a str>) {
    let is_asked = |change: &&ParkedChange| ids.contains(&change.id);
    let is_unknown = |id: &&str| parked.iter().all(|change| change.id != *id);
    (parked.iter().filter(is_asked).collect(), ids.iter().map(String::as_str).filter(is_unknown).collect())
}

/// Reports each id without a parked change. A refused change is listed too, but only its counts can be corrected.
async fn report_not_parked(ids: &[&str], opened: &Opened) -> anyhow::Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let recount = to_recount(&opened.store).await?;
    let (refused, unknown): (Vec<&str>, Vec<&str>) =
        ids.iter().partition(|id| recount.iter().any(|listed| listed.event_id == **id));
    for id in refused {
        report(&format!(
            "ripple: {id} was refused or discarded and is not parked, so it cannot be applied: correct its counts with `ripple \
             repair --apply`"
        ));
    }
    report_unknown(&unknown, "no parked change", "parked");
    Ok(())
}

fn change_text(change: &ParkedChange, layout: &Layout) -> String {
    let mut lines = vec![format!("parked      {}  {}  {}", change.id, change.family, words::time(change.parked_at_ms))];
    let known = [
        ("item", item(change, layout).map(|key| key.to_string())),
        ("stream", change.lane.stream_arn.clone()),
        ("shard", change.lane.shard.clone()),
        ("sequence", Some(change.sequence_number.clone()).filter(|number| !number.is_empty())),
        ("cause", Some(change.cause.clone())),
    ];
    lines.extend(known.into_iter().filter_map(|(name, value)| Some(format!("  {name:<10}{}", value?))));
    lines.join("\n")
}

fn recount_text(listed: &ToRecount) -> String {
    let target = match &listed.target {
        Some(target) => format!("{}  {}", target.derivation, target.item),
        None => "any count, because the change cannot be read".to_owned(),
    };
    let ToRecount { event_id, why, listed_at_ms, .. } = listed;
    format!("recount     {target}\n  refused   {event_id}  {}\n  why       {why}", words::time(*listed_at_ms))
}

// ---- `ripple parked --discard`: removes parked changes that will never be applied ----

/// Discards the chosen changes one after the other, after it said what is lost with each. With an unknown id it discards
/// nothing.
async fn discard_chosen(opened: &Opened, parked: &[ParkedChange], args: &ParkedArgs) -> anyhow::Result<Completion> {
    let (chosen, unknown) = chosen(parked, &args.ids);
    if !unknown.is_empty() {
        if args.json {
            print_json(json!({ "discarded": [], "unknown": unknown }));
        }
        report_not_parked(&unknown, opened).await?;
        return Ok(Completion::UnknownId);
    }
    let engine = opened.engine();
    let mut losses: Vec<(&ParkedChange, Concerns)> = Vec::new();
    for change in chosen {
        let lost = lost(&engine, change).await?;
        if !args.json {
            print(&lost_text(change, &lost, opened));
        }
        losses.push((change, lost));
    }
    opened.may_write(&args.writing)?;
    let mut results: Vec<(&ParkedChange, Concerns, ChangeOutcome)> = Vec::new();
    for (change, lost) in losses {
        let has_failed = results.iter().any(|(.., outcome)| matches!(outcome, ChangeOutcome::Failed { .. }));
        let outcome = if has_failed { ChangeOutcome::NotTried } else { discard(&engine, change).await? };
        if !args.json {
            print(&format!("{}  {}  {outcome}", change.id, change.family));
        }
        results.push((change, lost, outcome));
    }
    if args.json {
        let results: Vec<Value> =
            results.iter().map(|(change, lost, outcome)| discarded(change, lost, outcome)).collect();
        print_json(json!({ "discarded": results, "unknown": unknown }));
    }
    Ok(ended(results.iter().map(|(.., outcome)| outcome), &unknown))
}

fn lost_text(change: &ParkedChange, lost: &Concerns, opened: &Opened) -> String {
    let mut lines = vec![change_text(change, &opened.schema.layout)];
    let lost = lost_lines(change, lost);
    if lost.is_empty() {
        lines.push("  lost      nothing that is derived".to_owned());
    }
    lines.extend(lost.into_iter().map(|line| format!("  lost      {line}")));
    lines.join("\n")
}

// ---- `ripple redrive` ----

/// What DynamoDB reports if it should add to an attribute that is no number.
const WRONG_TYPE: &str = "incorrect data type";

const REMEDY: &str = "; delete the attribute of it that is no number, such as `Value` or `Sum`, redrive, then run \
                      `ripple repair --apply`";

/// Redrives the chosen changes in turn.
pub(crate) async fn redrive_chosen(args: &Redrive) -> anyhow::Result<Completion> {
    logging::readable(QUIET_LOG_FILTER);
    let opened = agreed(open_to_write(&args.writing).await?, &args.writing.connection).await?;
    let parked = parked(&opened.store).await?;
    let (chosen, unknown) = if args.all { (parked.iter().collect(), Vec::new()) } else { chosen(&parked, &args.ids) };
    let engine = opened.engine();
    let mut redriven: Vec<(&ParkedChange, ChangeOutcome)> = Vec::new();
    for change in chosen {
        let failed = redriven.iter().any(|(_, outcome)| matches!(outcome, ChangeOutcome::Failed { .. }));
        let outcome = if failed { ChangeOutcome::NotTried } else { redrive(&engine, change).await? };
        if !args.json {
            print(&redriven_text(change, &outcome));
        }
        redriven.push((change, outcome));
    }
    if args.json {
        let redriven: Vec<Value> = redriven.iter().map(|(change, outcome)| redriven_json(change, outcome)).collect();
        print_json(json!({ "redriven": redriven, "unknown": unknown }));
    } else if redriven.is_empty() && unknown.is_empty() {
        print("nothing is parked");
    }
    report_not_parked(&unknown, &opened).await?;
    Ok(ended(redriven.iter().map(|(_, outcome)| outcome), &unknown))
}

/// How a command ends whose changes had these outcomes.
fn ended<'a>(mut outcomes: impl Iterator<Item = &'a ChangeOutcome> + Clone, unknown: &[&str]) -> Completion {
    if outcomes.clone().any(|outcome| matches!(outcome, ChangeOutcome::Failed { .. })) {
        return Completion::Unfinished;
    }
    if !unknown.is_empty() {
        return Completion::UnknownId;
    }
    if outcomes.any(|outcome| matches!(outcome, ChangeOutcome::Still { .. })) {
        Completion::Findings
    } else {
        Completion::InStep
    }
}

fn redriven_text(change: &ParkedChange, outcome: &ChangeOutcome) -> String {
    let start = format!("{}  {}", change.id, change.family);
    let ChangeOutcome::Still { cause } = outcome else { return format!("{start}  {outcome}") };
    // The cause at the time of parking names the item too.
    let cause = if change.cause.contains(cause.as_str()) { &change.cause } else { cause };
    if change.family != Family::Additive || !cause.contains(WRONG_TYPE) {
        return format!("{start}  still parked: {cause}");
    }
    let counter = change.counter.as_ref().map(|key| format!("; the counter is {key}")).unwrap_or_default();
    format!("{start}  still parked: {cause}{counter}{REMEDY}")
}

fn redriven_json(change: &ParkedChange, outcome: &ChangeOutcome) -> Value {
    let (name, why) = outcome.describe();
    json!({ "id": change.id, "family": word(&change.family.to_string()), "outcome": word(name), "why": why })
}
