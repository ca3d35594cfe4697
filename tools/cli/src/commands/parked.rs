//! `ripple parked`: lists the changes that cannot be applied, and the counts that need a recount; or those about an item,
//! or discards some.

mod discard;

use engine::{
    inspect::{ToRecount, to_recount, unreadable},
    park::{ParkedChange, parked},
};
use functions::logging;
use keys::layout::Layout;
use operate::{
    about::{About, reasons},
    objects::{item, parked_about, parked_list, record, whole_change},
};
use serde_json::{Value, json};

use super::LOG_FILTER;
use crate::{
    args::ParkedArgs,
    exit::{Completion, Usage, print, report, report_unknown},
    opened::{Opened, agreed, open_with_ledger},
    words::{self, counted, print_json},
};

pub(crate) async fn run(args: &ParkedArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let connection = &args.writing.connection;
    let opened = agreed(open_with_ledger(connection).await?, connection).await?;
    let parked = parked(&opened.store).await?;
    match &args.about {
        _ if args.discard => discard::run(&opened, &parked, args).await,
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
pub(super) async fn report_not_parked(ids: &[&str], opened: &Opened) -> anyhow::Result<()> {
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
