//! The page of the table's design: the access patterns, each with a form that runs it, and the whole design.
//!
//! # Markdown
//!
//! The design is a page of Markdown. Only the Markdown that this page has is supported. A line is a heading, a row of a
//! table, a list item, a line of a fenced block, or a sentence. Within a line there is code between backticks, and a
//! link, which is rendered as its text.

pub(crate) mod pattern;
pub(crate) mod writing;

use std::{iter::Peekable, sync::Arc};

use ::design::{PatternRequests, document, review::review};
use axum::extract::State;
use maud::{Markup, html};
use store::Store;

use crate::{
    Console,
    frame::{self, ConsolePage},
};

/// The command that the page names as its source.
const WRITTEN_BY: &str = "ripple design";

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    let design = &console.design;
    let text = document::page(design, WRITTEN_BY, &review(design));
    // The sentence for readers of the written file.
    let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with("Written by ")).collect();
    frame::page(
        "The table's design",
        &html! {
            p { "This page is built from the values that build the keys and the requests, so it says what the code does." }
            (patterns(&console))
            (markdown(&text))
        },
    )
}

fn patterns<S: Store>(console: &Console<S>) -> Markup {
    let design = &console.design;
    html! {
        @if design.patterns.is_empty() {
            p.empty { "The manifest declares no reads, by " code { "[access.NAME]" } ". " a href="/collection" { "Query" } " the table or an index by a key." }
        } @else {
            details.fold {
                summary { h2 { "Run an access pattern that reads" } }
                p { "A read runs here on this table, and shows its items and its read units." }
                ul.patterns {
                    @for pattern in design.patterns.iter().filter(|pattern| !pattern.is_write() && !pattern.scans()) {
                        li { a href=(pattern::address(&pattern.name)) { (pattern.id) } " " (pattern.title) }
                    }
                }
            }
            @if design.patterns.iter().any(PatternRequests::is_write) {
                details.fold {
                    summary { h2 { "Run an access pattern that writes" } }
                    p { "You fill in the values; the page says the write units and leads to what followed." }
                    ul.patterns {
                        @for (at, pattern) in design.patterns.iter().enumerate().filter(|(_, pattern)| pattern.is_write()) {
                            li { a href=(writing::address(at)) { (pattern.id) } " " (pattern.title) }
                        }
                    }
                }
            }
        }
    }
}

// ---- Markdown ----

/// A page of Markdown without its first-level heading: a list of its headings, and each section, folded. A browser
/// unfolds a section when a link leads into it.
fn markdown(text: &str) -> Markup {
    let mut sections = text.split("\n## ");
    let preface = blocks(sections.next().unwrap_or_default());
    let sections: Vec<(&str, &str)> = sections.filter_map(|section| section.split_once('\n')).collect();
    let link = |title: &str| html! { a href=(format!("#{}", anchor(title))) { (inline(title)) } };
    html! {
        (preface)
        ul.contents { @for (title, text) in &sections { li {
            (link(title))
            @for title in text.lines().filter_map(|line| line.strip_prefix("### ")) { div { small { (link(title)) } } }
        } } }
        @for (title, text) in &sections {
            details.fold { summary { h2 { (inline(title)) } } div id=(anchor(title)) { (blocks(text)) } }
        }
    }
}

/// The id of a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || *c == ' ');
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn blocks(text: &str) -> Markup {
    let mut lines = text.lines().filter(|line| !line.starts_with("# ")).peekable();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        blocks.push(block(line, &mut lines));
    }
    html! { @for block in &blocks { (block) } }
}

fn block<'a>(line: &'a str, lines: &mut Peekable<impl Iterator<Item = &'a str>>) -> Markup {
    let mut more = |prefix: &str| {
        let mut found = vec![line];
        while let Some(next) = lines.next_if(|next| next.starts_with(prefix)) {
            found.push(next);
        }
        found
    };
    if line.starts_with("```") {
        let mut fenced = Vec::new();
        for next in lines.by_ref().take_while(|next| !next.starts_with("```")) {
            fenced.push(next);
        }
        return html! { pre tabindex="0" { code { (fenced.join("\n")) } } };
    }
    if let Some(title) = line.strip_prefix("### ") {
        return html! { h3 id=(anchor(title)) { (inline(title)) } };
    }
    if line.starts_with('|') {
        return table(&more("|"));
    }
    if line.starts_with("- ") {
        return html! { ul { @for point in more("- ") { li { (inline(point.trim_start_matches("- "))) } } } };
    }
    html! { @if !line.is_empty() { p { (inline(line)) } } }
}

fn table(rows: &[&str]) -> Markup {
    let (head, body) = (rows.first().copied().unwrap_or_default(), rows.get(2..).unwrap_or_default());
    html! {
        div.wide tabindex="0" { table {
            thead { tr { @for cell in cells(head) { th { (inline(&cell)) } } } }
            tbody { @for row in body { tr { @for cell in cells(row) { td { (inline(&cell)) } } } } }
        } }
    }
}

/// The cells of a row; an escaped bar does not end a cell.
fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner).replace("\\|", "\u{0}");
    inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}

/// A line with its code, and with links as text.
fn inline(line: &str) -> Markup {
    let line = line.replace("\\<", "<");
    let parts: Vec<&str> = line.split('`').collect();
    html! { @for (at, part) in parts.iter().enumerate() {
        @if at % 2 == 1 { code { (part) } } @else { (unlinked(part)) }
    } }
}

fn unlinked(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once('[') {
        let Some((name, after)) = link.split_once("](").and_then(|(name, to)| Some((name, to.split_once(')')?.1)))
        else {
            break;
        };
        shown.push_str(before);
        shown.push_str(name);
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_headings_tables_lists_blocks_and_sentences() {
        let text = "# Title\n\n## Reads\n\nSee `a|b` and [this](#that), Page\\<Post>.\n\n| a | b |\n|---|---|\n| `x\\|y` | – |\n\n- one\n- two\n\n```text\nraw `x`\n```\n";
        let html = markdown(text).into_string();
        assert_eq!(
            html,
            "<ul class=\"contents\"><li><a href=\"#reads\">Reads</a></li></ul>\
             <details class=\"fold\"><summary><h2>Reads</h2></summary><div id=\"reads\"><p>See <code>a|b</code> and this, Page&lt;Post&gt;.</p>\
             <div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>x|y</code></td><td>–</td></tr></tbody></table></div>\
             <ul><li>one</li><li>two</li></ul><pre tabindex=\"0\"><code>raw `x`</code></pre></div></details>"
        );
    }
}
