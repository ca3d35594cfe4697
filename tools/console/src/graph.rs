//! The catalogue as a picture: entities on the left, what is derived of them, and the entities that hold it.

use std::collections::BTreeMap;

use derive::{catalogue::Catalogue, schema::Schema};
use maud::{Markup, html};

use crate::{flow::figures::DerivationFigures, frame};

/// Height of a row, and of the box in it.
const ROW: usize = 26;
const BOX: usize = 20;

/// Left edges of the three columns, and the width of a box.
const LEFT: usize = 0;
const MIDDLE: usize = 350;
const RIGHT: usize = 740;
const WIDTH: usize = 220;

/// Width of the picture.
const WHOLE: usize = RIGHT + WIDTH;

/// Names with their rows.
type Rows<'a> = BTreeMap<&'a str, usize>;

/// The picture; each derivation in it leads to its flow, and has its changes a second, where functions run in this process.
pub(crate) fn graph(
    schema: &Schema,
    catalogue: &Catalogue,
    figures: Option<&BTreeMap<String, DerivationFigures>>,
) -> Markup {
    let outlines: Vec<_> = catalogue.derivations().map(|it| it.kind.outline(schema)).collect();
    let (mut from, mut into, mut edges) = (Rows::new(), Rows::new(), Vec::new());
    let mut targets = Vec::new();
    for (row, (at, _)) in catalogue.positioned().enumerate() {
        let names = catalogue.writes(at).iter().map(|part| part.entity.as_str());
        targets.extend(names.map(|name| (row, name)));
    }
    for (row, outline) in outlines.iter().enumerate() {
        for name in &outline.from {
            let next = from.len();
            edges.push(edge(LEFT + WIDTH, *from.entry(name).or_insert(next), MIDDLE, row));
        }
    }
    for (row, name) in targets {
        let next = into.len();
        let path = edge(MIDDLE + WIDTH, row, RIGHT, *into.entry(name).or_insert(next));
        if !edges.contains(&path) {
            edges.push(path);
        }
    }
    let n_rows = outlines.len().max(from.len()).max(into.len());
    html! {
        div.wide tabindex="0" {
            svg.graph viewBox=(format!("0 0 {WHOLE} {}", n_rows * ROW)) role="group" aria-label="From which entities into which, as the table below lists it" {
                @for path in edges { path d=(path) {} }
                @for (name, row) in &from { (node(LEFT, *row, name, "entity")) }
                @for (row, derivation) in catalogue.derivations().enumerate() {
                    @match figures {
                        Some(figures) => {
                            a href=(frame::of_flow(derivation.label())) { (node(MIDDLE, row, derivation.label(), "derivation")) }
                            (rate(row, figures.get(derivation.label())))
                        },
                        None => (node(MIDDLE, row, derivation.label(), "derivation")),
                    }
                }
                @for (name, row) in &into { (node(RIGHT, *row, name, "entity")) }
            }
        }
    }
}

/// The changes a second of a derivation that has any.
fn rate(row: usize, figures: Option<&DerivationFigures>) -> Markup {
    let a_second = figures.map_or(0.0, DerivationFigures::changes_a_second);
    html! {
        @if a_second > 0.0 {
            text.rate x=(MIDDLE + WIDTH - 8) y=(row * ROW + BOX - 6) { (format!("{a_second:.2}/s")) }
        }
    }
}

fn node(x: usize, row: usize, name: &str, class: &str) -> Markup {
    html! {
        rect class=(class) x=(x) y=(row * ROW) width=(WIDTH) height=(BOX) rx="4" {}
        text x=(x + 8) y=(row * ROW + BOX - 6) { (name) }
    }
}

fn edge(x: usize, row: usize, to_x: usize, to_row: usize) -> String {
    let y = |row: usize| row * ROW + BOX / 2;
    let middle = usize::midpoint(x, to_x);
    format!("M{x} {} C{middle} {} {middle} {} {to_x} {}", y(row), y(row), y(to_row), y(to_row))
}
