//! `ripple design`: the page of the table's design, its review, and the event filters.

mod filters;

use std::path::Path;

use design::{
    Design, document,
    followed::{CounterGrowth, growth},
    review::{FindingAnswer, ReviewFinding, Reviewed, review},
    shipped,
};
use functions::declared::{Choice, declared};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    args,
    exit::{Completion, Usage, file_text, print},
    words::{counted, print_json},
};

pub(crate) async fn run(args: &args::DesignArgs) -> anyhow::Result<Completion> {
    let (design, written_by) = match &args.config {
        None => (shipped::design().await?, shipped::WRITTEN_BY.to_owned()),
        Some(file) => (own(file, args.answers.as_deref())?, format!("ripple design --config {}", file.display())),
    };
    if args.filters {
        if args.json {
            print_json(filters::as_json(&design));
        } else {
            print(filters::as_text(&design).trim_end());
        }
        return Ok(Completion::InStep);
    }
    let reviewed = review(&design);
    if !args.check {
        // The page already ends with a line break.
        print(document::page(&design, &written_by, &reviewed).trim_end());
        return Ok(Completion::InStep);
    }
    let counters = growth(&design);
    if args.json {
        print_json(as_json(&reviewed, &counters));
    } else {
        print(&as_text(&reviewed, &counters));
    }
    Ok(if reviewed.unanswered().next().is_none() { Completion::InStep } else { Completion::Findings })
}

/// The design of the table that a manifest declares.
fn own(manifest: &Path, answers: Option<&Path>) -> anyhow::Result<Design> {
    let (schema, catalogue) = declared(Choice { manifest: Some(manifest), ..Choice::default() })?;
    let answers = answers.map(read).transpose()?.unwrap_or_default();
    Ok(Design { answers, ..Design::declared((*schema).clone(), (*catalogue).clone()) })
}

/// An answer in a file. The names are stable.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    check: String,
    subject: String,
    reason: String,
}

fn read(file: &Path) -> anyhow::Result<Vec<FindingAnswer>> {
    let name = file.display();
    let text = file_text(file)?;
    let given: Vec<Given> =
        serde_json::from_str(&text).map_err(|error| Usage(format!("{name} is not a list of answers: {error}")))?;
    let answer = |Given { check, subject, reason }: Given| {
        let check = check.parse().map_err(|error| Usage(format!("{name}: {error}")))?;
        Ok(FindingAnswer { check, subject, reason })
    };
    given.into_iter().map(answer).collect()
}

/// The names are stable.
fn as_json(reviewed: &Reviewed, counters: &[CounterGrowth]) -> Value {
    let finding = |(finding, answer): &(ReviewFinding, Option<FindingAnswer>)| {
        let mut object = finding_json(finding);
        object.insert("answer".to_owned(), json!(answer.as_ref().map(|answer| &answer.reason)));
        object
    };
    let counter = |counter: &CounterGrowth| {
        json!({
            "items": counter.n_items,
            "partitions_max": counter.partitions_max,
            "derivations": counter.derivations,
        })
    };
    json!({
        "counters": counters.iter().map(counter).collect::<Vec<_>>(),
        "findings": reviewed.findings.iter().map(finding).collect::<Vec<_>>(),
        "unanswered": reviewed.unanswered().count(),
        "unchecked": reviewed.unchecked.iter().map(|check| check.name()).collect::<Vec<_>>(),
    })
}

pub(super) fn finding_json(finding: &ReviewFinding) -> Map<String, Value> {
    let ReviewFinding { check, subject, what, why, advice } = finding;
    let pairs = [("check", check.name()), ("subject", subject), ("what", what), ("why", why), ("advice", advice)];
    pairs.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect()
}

/// A finding, why it matters, and its answer or else what to do.
pub(super) fn finding_lines(finding: &ReviewFinding, answer: Option<&FindingAnswer>) -> [String; 4] {
    [
        format!("{}  {}", finding.check, finding.subject),
        format!("  found     {}", finding.what),
        format!("  matters   {}", finding.why),
        match answer {
            Some(answer) => format!("  answered  {}", answer.reason),
            None => format!("  to do     {}", finding.advice),
        },
    ]
}

fn as_text(reviewed: &Reviewed, counters: &[CounterGrowth]) -> String {
    let mut lines = Vec::new();
    for (finding, answer) in &reviewed.findings {
        lines.extend(finding_lines(finding, answer.as_ref()));
    }
    if !reviewed.unchecked.is_empty() {
        let names: Vec<&str> = reviewed.unchecked.iter().map(|check| check.name()).collect();
        lines.push(format!("not checked, because the access patterns are unknown: {}", names.join(", ")));
    }
    lines.extend(growth_line(counters));
    let findings = counted(reviewed.findings.len(), "finding");
    lines.push(format!("{findings}, {} not answered", reviewed.unanswered().count()));
    lines.join("\n")
}

/// Up to how many partitions of the table an update of a counter costs one write unit; nothing for a table without counts.
fn growth_line(counters: &[CounterGrowth]) -> Option<String> {
    let group = |CounterGrowth { n_items, partitions_max, derivations }: &CounterGrowth| {
        let (items, counts) = (counted(*n_items as usize, "item"), counted(derivations.len(), "count"));
        format!("{partitions_max} with {items} ({counts})")
    };
    let groups: Vec<String> = counters.iter().map(group).collect();
    (!groups.is_empty()).then(|| {
        format!(
            "counters: under watermarks an update costs 1 write unit up to about this many partitions of the table: {}; \
             with more partitions, declare more items (`shards`)",
            groups.join(", ")
        )
    })
}
