//! `ripple why`: explains the derived values of an item.

use derive::clock;
use engine::{fan_out::again::DueItem, look::listing::ALL_DERIVATIONS};
use functions::logging;
use keys::{item::Item, key::Key};
use operate::{
    objects::explanation,
    parked::About,
    verify::judge::INDEX_KEYS,
    why::{
        Explanation, Pending, StreamChange, StreamChanges, ValueState, WhyRequest,
        value::{CounterItem, CounterSources, ExplainedCounter, ExplainedSource, ExplainedValue, SourceRole},
        why,
    },
    words::{self, counted},
};

use crate::{
    args::tables::WhyArgs,
    commands::{LOG_FILTER, verify::item_text},
    exit::{Completion, Usage, print, print_json},
    opened::{agreed, open_with_ledger},
};

pub(crate) async fn run(args: &WhyArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = agreed(open_with_ledger(&args.connection).await?, &args.connection).await?;
    let number = |given: u32| usize::try_from(given).unwrap_or(usize::MAX);
    let About { pk, sk } = &args.key;
    let key = opened.schema.layout.address(pk, sk.as_deref()).ok_or_else(|| {
        Usage(format!("{} is no key of an item: it must be `PK / SK`, such as 'POST#p / METADATA'", args.key))
    })?;
    let request = WhyRequest {
        key,
        attribute: args.attribute.clone(),
        n_listed: number(args.list),
        n_read_max: number(args.sources),
        reads_stream: args.reads_stream(),
    };
    let explained = Box::pin(why(&opened.tables(), &request)).await?;
    if args.json {
        print_json(explanation(&explained));
    } else {
        print(&text(&explained));
    }
    let states = explained.values.iter().map(|value| &value.state);
    let mut states = states.chain(explained.counters.iter().map(|counter| &counter.state));
    let is_found = !states.all(|state| matches!(state, ValueState::Right | ValueState::Undecided(_)));
    let mut unreadable = explained.unreadable.iter().map(|(derivation, _)| derivation.as_str());
    let is_found = is_found || unreadable.any(|derivation| [ALL_DERIVATIONS, INDEX_KEYS].contains(&derivation));
    Ok(if is_found { Completion::Findings } else { Completion::InStep })
}

fn text(why: &Explanation) -> String {
    let is_there = if why.item.is_some() { "" } else { "  is not there" };
    let types = if why.entities.is_empty() { "unreadable".to_owned() } else { why.entities.join(" or ") };
    let mut lines = vec![format!("{}  {types}{is_there}", why.key)];
    lines.extend(why.unreadable.iter().map(|(derivation, unreadable)| match derivation.as_str() {
        ALL_DERIVATIONS if why.entities.is_empty() => {
            format!("  every derivation skips this item: its {unreadable}; correct the item")
        }
        ALL_DERIVATIONS | INDEX_KEYS => format!("  {INDEX_KEYS}: {unreadable}"),
        derivation => format!("  {derivation} skips this item: {unreadable}"),
    }));
    let is_wrong =
        |name: &String| why.counters.iter().any(|it| it.derivation == *name && it.state != ValueState::Right);
    why.values.iter().for_each(|value| value_lines(value, why.item.is_some(), is_wrong, &mut lines));
    why.counters.iter().for_each(|counter| counter_lines(counter, why.changes.as_ref(), &mut lines));
    for parked in &why.pending.parked {
        lines.push(format!("\nparked  {}  {}\n  cause     {}", parked.id, parked.item, parked.cause));
    }
    if why.pending.n_undecodable > 0 {
        let changes = counted(why.pending.n_undecodable, "parked change");
        lines.push(format!("\n{changes} cannot be decoded, and may concern it: see `ripple parked`"));
    }
    lines.extend(why.pending.jobs.iter().map(|job| format!("\njob  {}", job.key)));
    for DueItem { item, due_ms, .. } in &why.pending.searches {
        lines.push(format!("\nsearch  of the items that depend on {item}, again at {}", words::time(*due_ms)));
    }
    let is_waiting = why.values.iter().map(|it| &it.state).chain(why.counters.iter().map(|it| &it.state));
    let Pending { parked, jobs, searches, .. } = &why.pending;
    if parked.is_empty()
        && jobs.is_empty()
        && searches.is_empty()
        && is_waiting.into_iter().any(|it| *it == ValueState::Waits)
    {
        lines.push("\npending  a change or a job of another item: see `ripple parked` and `ripple jobs`".to_owned());
    }
    if let Some(changes) = &why.changes {
        change_lines(changes, &mut lines);
    }
    let records =
        why.changes.as_ref().map(|changes| format!(", and {} of the stream", counted(changes.n_records, "record")));
    lines.push(format!("\nread {} read units{}", why.read_units, records.unwrap_or_default()));
    lines.join("\n")
}

/// The lines about a value; `is_wrong` says whether a counter of the item is.
fn value_lines(value: &ExplainedValue, is_there: bool, is_wrong: impl Fn(&String) -> bool, lines: &mut Vec<String>) {
    let terms = if value.terms.is_empty() { String::new() } else { format!(": {}", value.terms.join("; ")) };
    lines.push(format!("\n{}  {}{terms}", value.derivation, value.kind));
    let named = |stored: bool| -> Item {
        let of = value.attributes.iter().filter_map(|attribute| {
            let held = if stored { &attribute.stored } else { &attribute.derived };
            Some((attribute.name.clone(), held.clone()?))
        });
        of.collect()
    };
    let (stored, derived) = (is_there.then(|| named(true)), (value.should_exist != Some(false)).then(|| named(false)));
    lines.push(format!("  stored    {}", item_text(stored.as_ref())));
    if matches!(value.state, ValueState::Differs | ValueState::Waits) {
        lines.push(format!("  derived   {}", item_text(derived.as_ref())));
    }
    if !value.own.is_empty() {
        lines.push(format!("  reads     {}", item_text(Some(&value.own))));
    }
    lines.extend(value.sources.iter().map(|source| format!("  source    {}", source_text(source, value.kind))));
    let shows_wrong = |source: &ExplainedSource| matches!(&source.role, SourceRole::Counter(name) if is_wrong(name));
    if value.state == ValueState::Right && value.sources.iter().any(shows_wrong) {
        lines.push("  right for its counter, which is not right itself: see below".to_owned());
    } else {
        lines.push(format!("  {}", value.state));
    }
}

fn source_text(source: &ExplainedSource, kind: &str) -> String {
    if let Some(hour) = source.key.as_ref().filter(|key| **key == clock::key()).and_then(|_| clock::hour(&source.gives))
    {
        return format!("the clock, which shows {}", words::time(hour.saturating_mul(clock::HOUR_MS)));
    }
    let key = source.key.as_ref().map(Key::to_string).unwrap_or_default();
    let what = match &source.role {
        SourceRole::First(of) if kind == "window" && source.key.is_none() => format!("a {} of the window", of.entity),
        SourceRole::First(_) if kind == "window" => format!("{key}, of the buckets of the window"),
        SourceRole::Item => key,
        SourceRole::Counter(derivation) => format!("{derivation} of {key}"),
        SourceRole::First(of) if source.key.is_none() => {
            format!("the first {} under {}, {}…", of.entity, of.query.pk, of.query.sk.first().trim_end_matches('\0'))
        }
        SourceRole::First(of) if of.length() > 1 => format!("{key}, of the first {} {}", of.length(), of.entity),
        SourceRole::First(of) => format!("{key}, the first {}", of.entity),
    };
    match (source.is_there, source.gives.is_empty()) {
        (true, true) => what,
        (true, false) => format!("{what}  {}", item_text(Some(&source.gives))),
        (false, _) => format!("{what}  is not there"),
    }
}

fn counter_lines(counter: &ExplainedCounter, changes: Option<&StreamChanges>, lines: &mut Vec<String>) {
    let terms = if counter.terms.is_empty() { String::new() } else { format!(": {}", counter.terms.join("; ")) };
    lines.push(format!("\n{}  {}{terms}", counter.derivation, counter.kind));
    if counter.items.iter().any(|item| item.unreadable.is_some()) {
        lines.push("  stored    cannot be read".to_owned());
    } else {
        lines.push(format!("  stored    {}", counter.stored));
    }
    for item in &counter.items {
        let CounterItem { key, tally, unreadable, revision, satellites, watermarks } = item;
        if let Some(unreadable) = unreadable {
            lines.push(format!("  counter   {key}  {}, and no whole number of type N", item_text(Some(unreadable))));
            continue;
        }
        let revision = revision.as_ref().map(|revision| format!(", revision {revision}"));
        let spread = satellites.map(|n| format!(", spread over {n} satellites")).unwrap_or_default();
        lines.push(format!("  counter   {key}  {tally}{}{spread}", revision.unwrap_or_default()));
        for watermark in watermarks {
            let shard = changes.and_then(|changes| changes.shards.get(&watermark.name)).unwrap_or(&watermark.name);
            lines.push(format!("    counted up to {} of {shard}", watermark.sequence_number));
        }
    }
    let CounterSources { query, listed, n_sources, n_unreadable, tally, is_whole } = &counter.sources;
    lines.extend(listed.iter().map(|(key, tally)| format!("  source    {key}  {tally:+}")));
    if let Some(query) = query {
        let place = query.index.as_deref().unwrap_or("the table");
        let (least, more) = (if *is_whole { "" } else { "at least " }, n_sources - listed.len());
        let of = format!("{place} under {}, {}…", query.pk, query.sk.first());
        let shown = if more > 0 { format!(", {more} of them not shown") } else { String::new() };
        lines.push(format!("  sources   {least}{} in {of}{shown}: {tally}", counted(*n_sources, "item")));
    }
    if *n_unreadable > 0 {
        lines.push(format!("  unreadable  {} of them, which add nothing", counted(*n_unreadable, "item")));
    }
    let at_least = if counter.is_history { ", as far as its sources are still there" } else { "" };
    lines.push(format!("  {}{at_least}", counter.state));
    if let Some(index) = query.as_ref().and_then(|query| query.index.as_deref())
        && counter.state == ValueState::Differs
    {
        lines.push(format!("  not decided if items lack their keys of {index}: `ripple verify` reads the whole table"));
    }
}

fn change_lines(changes: &StreamChanges, lines: &mut Vec<String>) {
    let StreamChanges { last, n_concerning, .. } = changes;
    if *n_concerning == 0 {
        lines.push("\nchanges  none that the stream still has".to_owned());
        return;
    }
    lines.push(format!("\nchanges  {} that the stream still has, the last {} of them:", n_concerning, last.len()));
    for change in last {
        let StreamChange { created_ms, item, event, effects, .. } = change;
        let at = created_ms.map_or_else(|| "at an unknown time".to_owned(), words::time);
        lines.push(format!("  {at}  {event} {item}"));
        lines.extend(effects.iter().map(|(derivation, effect)| format!("    {derivation} {effect}")));
        lines.extend(effects.is_empty().then(|| "    nothing to do".to_owned()));
    }
}
