//! The report of an audit as one page for a browser, without any other file: a table, the share of right values by
//! derivation, and a histogram of errors. It has keys, and only with `--values` the values of the worst differences.

use keys::key::Key;
use operate::{
    audit::{
        Audited,
        totals::{Band, DerivationAudit, NumberErrors, WorstValue},
    },
    objects::audit::wrong_word,
    words::counted,
};

use super::{mend::Mending, signed};
use crate::commands::verify::item_text;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#1b1f24;\
background:#fff}table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{padding:.3rem .6rem;border-bottom:1px solid \
#d8dde3;text-align:right}th:first-child,td:first-child,td.text{text-align:left}svg text{font:12px system-ui,sans-serif;\
fill:currentColor}.right{fill:#2f7d4f}.rest{fill:#c8503c}@media(prefers-color-scheme:dark){body{color:#e6e9ec;\
background:#15181b}th,td{border-color:#3a4047}}";

/// Width of the bars, in pixels.
const BAR: u32 = 420;

/// The page.
pub(super) fn page(audited: &Audited, mending: &Mending, (table, has_values): (&str, bool), bound: &str) -> String {
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
