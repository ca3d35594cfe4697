//! `ripple audit`: how wrong the derived values are in a table that Ripple does not maintain. Only reads.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use derive::{catalogue::Catalogue, schema::Schema, tally::Sum};
use design::{Design, price::price, samples::Samples};
use functions::logging;
use keys::key::Key;
use operate::{
    audit::{
        AuditOptions, Audited, SeenSoFar, audit,
        totals::{
            Band, DerivationAudit, MendCost, NumberErrors, UnreadableGroup, WORST, WorstValue, audit_object, wrong_word,
        },
    },
    words::{counted, time},
};

use crate::{
    args::tables::AuditArgs,
    bar::{on, progress},
    commands::{
        LOG_FILTER,
        dev::stop_signal,
        verify::{about_nothing_text, item_text, knows, reader_text},
    },
    exit::{Completion, Usage, is_new, print, print_json, write_new},
    opened::open_application,
};

/// Audits, and prints the report.
pub(crate) async fn run(args: &AuditArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    if let Some(file) = &args.html {
        is_new(file, "--html")?;
    }
    let opened = open_application(&args.application).await?;
    if opened.catalogue.derivations().next().is_none() {
        let what = "the manifest declares no derivation, so there is nothing to compare: uncomment the proposals of \
                    `ripple init`, or declare what your code keeps";
        return Err(Usage(what.to_owned()).into());
    }
    let AuditArgs { segments, read_units, at_rest, values, .. } = *args;
    let options = AuditOptions { segments, read_units, at_rest, has_values: values };
    let (bar, seen, tables) = (progress(args.json), Arc::<SeenSoFar>::default(), opened.tables());
    let bar_progress = on(&bar, args.json);
    let interrupted = stop_signal()?;
    let audited = tokio::select! {
        audited = Box::pin(audit(&tables, &options, &seen, &bar_progress)) => audited?,
        () = interrupted => {
            bar.finish_and_clear();
            anyhow::bail!(interrupted_at(&seen));
        }
    };
    bar.finish_and_clear();
    let mending = Mending::of(&opened.schema, &opened.catalogue, &audited);
    if let Some(file) = &args.html {
        write_new(file, "--html", &page(&audited, &mending, (&opened.config.table, values), &bound(&audited)))?;
    }
    if args.json {
        print_json(audit_object(&audited, &mending.by_derivation, mending.total, &bound(&audited)));
    } else {
        print(&text(&audited, &mending, values));
    }
    let is_known = knows(&audited.extent);
    Ok(if audited.is_clean() && is_known { Completion::InStep } else { Completion::Findings })
}

/// The message about an interrupted audit.
fn interrupted_at(seen: &SeenSoFar) -> String {
    let [n_items, n_found, n_reads] =
        [&seen.n_items, &seen.n_differences, &seen.n_reads].map(|number| number.load(Ordering::Relaxed));
    let (items, found) = (counted(n_items, "item"), counted(n_found, "difference"));
    let which = if n_reads > 1 { "the second read" } else { "the first read" };
    format!(
        "interrupted: {which} of the table has read {items} and found {found} or unreadable items so far; counts are compared \
         after the last item"
    )
}

/// What the reads of the table prove.
fn bound(audited: &Audited) -> String {
    let span = |(began, ended): &(u64, u64)| format!("from {} to {}", time(*began), time(*ended));
    let spans: Vec<String> = audited.reads.iter().map(span).collect();
    match spans.as_slice() {
        [first, second] => format!(
            "two reads, {first} and {second}: a difference is wrong if both saw the same values, otherwise undecided; valid \
             for all items but those written between the first moment and the last"
        ),
        _ => format!("one read, {}: valid for all items but those written in that time", spans.join(", ")),
    }
}

// ---- The report as text ----

fn text(audited: &Audited, mending: &Mending, has_values: bool) -> String {
    let totals = &audited.totals;
    let width = totals.derivations.iter().map(|line| line.derivation.len()).max().unwrap_or_default();
    let mut lines: Vec<String> = totals.derivations.iter().map(|line| derivation_text(line, width)).collect();
    lines.retain(|line| !line.is_empty());
    lines.extend(totals.about_nothing.iter().map(about_nothing_text));
    lines.extend(totals.unreadable.iter().map(unreadable_text));
    lines.extend(totals.worst.iter().map(|named| worst_text(named, has_values)));
    let differing = |line: &DerivationAudit| line.wrong + line.missing + line.extra;
    let n_differing: usize = totals.derivations.iter().map(differing).sum();
    if n_differing > WORST {
        lines.push(format!("            and {} more", n_differing - WORST));
    }
    if mending.total.items > 0 {
        let (items, units) = (counted(mending.total.items, "item"), mending.total.write_units);
        lines.push(format!("mend        at most {items}, {units:.0} write unit{}", if units > 1.5 { "s" } else { "" }));
    }
    lines.push(format!("bound       {}", bound(audited)));
    let (items, n_ignored) = (counted(audited.extent.n_items, "item"), audited.extent.n_ignored);
    let n_undecided: usize = totals.derivations.iter().map(|line| line.undecided).sum();
    let undecided = if n_undecided > 0 { format!(", {n_undecided} undecided") } else { String::new() };
    let (n_unreadable, found) = (totals.n_unreadable, counted(n_differing, "difference"));
    lines.push(format!("{items}, {n_ignored} ignored, {n_unreadable} unreadable, {found}{undecided}"));
    lines.join("\n")
}

/// The line of a derivation; empty if there is nothing to compare and nothing to say.
fn derivation_text(line: &DerivationAudit, width: usize) -> String {
    let DerivationAudit { derivation, values, right, cannot_tell, .. } = line;
    let mut parts = Vec::new();
    if *values > 0 {
        parts.push(format!("{right} of {values} right"));
    }
    let states = [
        (line.wrong, "wrong"),
        (line.missing, "missing"),
        (line.extra, "extra"),
        (line.undecided, "undecided"),
        (line.unknown, "unknown"),
        (line.unreadable, "unreadable"),
    ];
    parts.extend(states.iter().filter(|(n, _)| *n > 0).map(|(n, state)| format!("{n} {state}")));
    let mut said = parts.join(", ");
    if let Some(errors) = &line.errors {
        said.push_str(&errors_text(errors));
    }
    if let Some(why) = cannot_tell {
        said = if said.is_empty() { why.clone() } else { format!("{said}; {why}") };
    }
    if said.is_empty() { String::new() } else { format!("{derivation:<width$}  {said}") }
}

fn errors_text(errors: &NumberErrors) -> String {
    let mean = errors.mean().unwrap_or_default();
    format!("; wrong ones are off by {mean} on average, by {} at most, by {} in sum", errors.largest, errors.sum)
}

fn unreadable_text(group: &UnreadableGroup) -> String {
    let UnreadableGroup { derivation, why, items, examples } = group;
    let such: Vec<String> = examples.iter().map(Key::to_string).collect();
    format!("unreadable  {items}  by {}: {why}, such as {}", reader_text(derivation), such.join(", "))
}

fn worst_text(named: &WorstValue, has_values: bool) -> String {
    let WorstValue { finding, wrong, error } = named;
    let error = error.as_ref().map(signed).unwrap_or_default();
    let state = if error.is_empty() { wrong_word(*wrong).to_owned() } else { error };
    let item = Key::new(&finding.pk, &finding.sk);
    let line = format!("worst       {state:<8} {}  {item}", finding.derivation);
    if !has_values {
        return line;
    }
    let [stored, derived] = [&finding.stored, &finding.derived].map(|held| item_text(held.as_ref()));
    format!("{line}\n  stored    {stored}\n  derived   {derived}")
}

/// A number with its sign.
fn signed(error: &Sum) -> String {
    let text = error.to_string();
    if text.starts_with('-') { text } else { format!("+{text}") }
}

// ---- What it costs to correct what an audit found ----
//
// The prices are those of preflight: the price of a derivation's write to an item of the table's own size.
//
// *Example*: 3 comments have an old name and each takes 2 write units, so `comment-author` takes 3 items and 6 units. A
// comment that two derivations correct is written once, for the higher of both prices.

/// The cost by derivation and of all of them.
struct Mending {
    /// By the derivation's label.
    by_derivation: BTreeMap<String, MendCost>,
    /// An item that several derivations correct counts once.
    total: MendCost,
}

impl Mending {
    fn of(schema: &Schema, catalogue: &Catalogue, audited: &Audited) -> Self {
        let samples = Samples::of(schema, audited.samples.clone());
        let design = Design { samples, ..Design::declared(schema.clone(), catalogue.clone()) };
        let mut mending = Self { by_derivation: BTreeMap::new(), total: MendCost::default() };
        for (names, n_items) in &audited.totals.to_mend {
            // No table has as many items as a float cannot count.
            let n = f64::from(u32::try_from(*n_items).unwrap_or(u32::MAX));
            let mut highest = 0.0_f64;
            for name in names {
                let derivation = catalogue.position(name).and_then(|at| catalogue.derivation(at));
                let units = derivation.and_then(|it| price(&design, it)).map_or(0.0, |it| it.total());
                let cost = mending.by_derivation.entry(catalogue.label_of(name).to_owned()).or_default();
                cost.items += n_items;
                cost.write_units += n * units;
                highest = highest.max(units);
            }
            mending.total.items += n_items;
            mending.total.write_units += n * highest;
        }
        mending
    }
}

// ---- The report as one page for a browser, without any other file ----
//
// It has a table, the share of right values by derivation, and a histogram of errors. It has keys, and only with
// `--values` the values of the worst differences.

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#1b1f24;\
background:#fff}table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{padding:.3rem .6rem;border-bottom:1px solid \
#d8dde3;text-align:right}th:first-child,td:first-child,td.text{text-align:left}svg text{font:12px system-ui,sans-serif;\
fill:currentColor}.right{fill:#2f7d4f}.rest{fill:#c8503c}@media(prefers-color-scheme:dark){body{color:#e6e9ec;\
background:#15181b}th,td{border-color:#3a4047}}";

/// Width of the bars, in pixels.
const BAR: u32 = 420;

/// The page.
fn page(audited: &Audited, mending: &Mending, (table, has_values): (&str, bool), bound: &str) -> String {
    let (table, items) = (escaped(table), counted(audited.extent.n_items, "item"));
    let compared: Vec<&DerivationAudit> = audited.totals.derivations.iter().filter(|line| line.values > 0).collect();
    let body = [
        format!("<h1>Audit of {table}</h1>\n<p>{items}, {} ignored, ", audited.extent.n_ignored),
        format!("{} unreadable. {}.</p>", audited.totals.n_unreadable, escaped(bound)),
        lines_table(&audited.totals.derivations, mending),
        format!("<h2>Right values by derivation</h2>\n{}", shares(&compared)),
        format!("<h2>Errors of counts, sums and averages</h2>\n{}", histogram(&compared)),
        worst_table(&audited.totals.worst, has_values),
    ];
    let head = format!("<meta charset=\"utf-8\">\n<title>Audit of {table}</title>\n<style>{STYLE}</style>");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n{head}\n</head>\n<body>\n{}\n</body>\n</html>\n",
        body.join("\n")
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn row(cells: &[String], tag: &str) -> String {
    cells.iter().fold("<tr>".to_owned(), |row, cell| format!("{row}<{tag}>{cell}</{tag}>")) + "</tr>\n"
}

fn lines_table(lines: &[DerivationAudit], mending: &Mending) -> String {
    let heads = [
        "derivation",
        "values",
        "right",
        "wrong",
        "missing",
        "extra",
        "undecided",
        "unknown",
        "unreadable",
        "mean error",
        "largest",
        "sum",
        "items to mend",
        "write units",
        "",
    ];
    let mut table = row(&heads.map(str::to_owned), "th");
    for line in lines {
        let numbers = [
            line.values,
            line.right,
            line.wrong,
            line.missing,
            line.extra,
            line.undecided,
            line.unknown,
            line.unreadable,
        ];
        let mut cells = vec![escaped(&line.derivation)];
        cells.extend(numbers.map(|n| n.to_string()));
        let errors = line.errors.as_ref().map(|errors| {
            [errors.mean().unwrap_or_default().to_string(), errors.largest.to_string(), errors.sum.to_string()]
        });
        cells.extend(errors.unwrap_or_default());
        let cost = mending.by_derivation.get(&line.derivation).copied().unwrap_or_default();
        cells.extend([cost.items.to_string(), format!("{:.0}", cost.write_units)]);
        cells.push(escaped(line.cannot_tell.as_deref().unwrap_or_default()));
        table.push_str(&row(&cells, "td"));
    }
    let total = mending.total;
    let items = counted(total.items, "item");
    format!("<table>\n{table}</table>\n<p>To mend: at most {items}, {:.0} write units.</p>", total.write_units)
}

/// A part of a width, in pixels.
fn part(n: usize, of: usize, width: u32) -> u32 {
    let width_of = |n: usize| u64::try_from(n).unwrap_or(u64::MAX).saturating_mul(u64::from(width));
    let part = width_of(n) / u64::try_from(of.max(1)).unwrap_or(u64::MAX);
    u32::try_from(part).unwrap_or(width).max(u32::from(n > 0))
}

/// One bar for each derivation.
fn shares(lines: &[&DerivationAudit]) -> String {
    let mut bars = Vec::new();
    let mut y = 0;
    for line in lines {
        let right = part(line.right, line.values, BAR);
        let share = format!("{} of {}", line.right, line.values);
        let (name, at, rest) = (escaped(&line.derivation), 240 + right, BAR.saturating_sub(right));
        bars.push(format!(
            "<text x=\"232\" y=\"{}\" text-anchor=\"end\">{name}</text><rect class=\"right\" x=\"240\" y=\"{y}\" \
             width=\"{right}\" height=\"16\"/><rect class=\"rest\" x=\"{at}\" y=\"{y}\" width=\"{rest}\" height=\"16\"/>\
             <text x=\"{}\" y=\"{}\">{share}</text>",
            y + 13,
            250 + BAR,
            y + 13
        ));
        y += 22;
    }
    let bars = bars.join("\n");
    format!(
        "<svg role=\"img\" aria-label=\"right values by derivation\" viewBox=\"0 0 820 {y}\" width=\"820\">\n{bars}</svg>"
    )
}

/// One column for each range of errors, from too low to too high.
fn histogram(lines: &[&DerivationAudit]) -> String {
    let mut all = NumberErrors::default();
    lines.iter().filter_map(|line| line.errors.as_ref()).for_each(|errors| all.add_all(errors));
    if all.numbers == 0 {
        return "<p>No number is wrong.</p>".to_owned();
    }
    let n_sizes = Band::LIMITS.len();
    let low = (0..n_sizes).rev().map(|size| Band { is_high: false, size });
    let bands = low.chain((0..n_sizes).map(|size| Band { is_high: true, size }));
    let most = all.bands.values().copied().max().unwrap_or_default();
    let mut columns = Vec::new();
    let mut x = 10;
    for band in bands {
        let n = all.bands.get(&band).copied().unwrap_or_default();
        let height = part(n, most, 120);
        let top = 150_u32.saturating_sub(height);
        columns.push(format!(
            "<rect class=\"rest\" x=\"{x}\" y=\"{top}\" width=\"60\" height=\"{height}\"/><text x=\"{0}\" y=\"{1}\" \
             text-anchor=\"middle\">{n}</text><text x=\"{0}\" y=\"166\" text-anchor=\"middle\">{2}</text>",
            x + 30,
            top.saturating_sub(4),
            band_text(band)
        ));
        x += 78;
    }
    let (columns, label) = (columns.join("\n"), "errors: stored minus derived");
    format!(
        "<svg role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 820 190\" width=\"820\">\n{columns}<text x=\"400\" y=\"184\" text-anchor=\"middle\">{label}</text></svg>"
    )
}

fn band_text(band: Band) -> String {
    let sign = if band.is_high { "+" } else { "−" };
    match band.range() {
        (0, Some(below)) => format!("{sign}under {below}"),
        (from, Some(below)) => format!("{sign}{from} to {below}"),
        (from, None) => format!("{sign}{from} or more"),
    }
}

fn worst_table(worst: &[WorstValue], has_values: bool) -> String {
    if worst.is_empty() {
        return "<p>Nothing differs.</p>".to_owned();
    }
    let heads = ["derivation", "item", "state", "error", "stored", "derived"];
    let n_heads = if has_values { heads.len() } else { heads.len() - 2 };
    let heads: Vec<String> = heads.iter().take(n_heads).map(|head| (*head).to_owned()).collect();
    let mut table = row(&heads, "th");
    for WorstValue { finding, wrong, error } in worst {
        let item = Key::new(&finding.pk, &finding.sk).to_string();
        let error = error.as_ref().map(signed).unwrap_or_default();
        let mut cells = vec![escaped(&finding.derivation), escaped(&item), wrong_word(*wrong).to_owned(), error];
        if has_values {
            cells.extend([&finding.stored, &finding.derived].map(|held| escaped(&item_text(held.as_ref()))));
        }
        table.push_str(&row(&cells, "td"));
    }
    format!("<h2>The worst</h2>\n<table>\n{table}</table>")
}
