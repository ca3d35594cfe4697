//! `ripple design`: the page of the table's design, its review, the event filters, and files of other tools.

use std::path::Path;

use design::{
    Design, document,
    review::{self, AnswersError, FindingAnswer, ReviewFinding, Reviewed, review},
};
use draft::files::export::{ExportForm, export};
use functions::{
    declared::{Choice, declared},
    handler::Function,
};
use infra::mapping::{Needed, StreamTable, criteria, needed, yaml};
use operate::words::counted;
use serde_json::{Map, Value, json};

use crate::{
    args::{
        DEFAULT_TABLE,
        offline::{DesignArgs, ExportFormat},
    },
    exit::{Completion, Usage, file_text, print, print_json, report},
};

pub(crate) fn run(args: &DesignArgs) -> anyhow::Result<Completion> {
    let manifest = args.manifest.file_or_said();
    if let Some(format) = args.export {
        return exported(manifest, format);
    }
    let answers = args.answers.as_deref().map(read).transpose()?.unwrap_or_default();
    let design = Design { answers, ..declared_design(manifest)? };
    let of = manifest.map(|file| format!(" --config {}", file.display()));
    let written_by = format!("ripple design{}", of.unwrap_or_default());
    if args.filters {
        if args.json {
            print_json(filters_json(&design));
        } else {
            print(filters_text(&design).trim_end());
        }
        return Ok(Completion::InStep);
    }
    let reviewed = review(&design);
    if !args.check {
        // The page already ends with a line break.
        print(document::page(&design, &written_by, &reviewed).trim_end());
        return Ok(Completion::InStep);
    }
    if args.json {
        print_json(as_json(&reviewed));
    } else {
        print(&as_text(&reviewed));
    }
    Ok(if reviewed.unanswered().next().is_none() { Completion::InStep } else { Completion::Findings })
}

/// Prints the file of another tool, and on standard error what the file lacks.
fn exported(manifest: Option<&Path>, format: ExportFormat) -> anyhow::Result<Completion> {
    let (schema, catalogue) = declared(Choice { manifest, ..Choice::default() })?;
    let form = match format {
        ExportFormat::Workbench => ExportForm::Workbench,
        ExportFormat::SchemaJson => ExportForm::SchemaJson,
    };
    let exported = export(&schema, &catalogue, form, DEFAULT_TABLE);
    if exported.is_empty() {
        let what = "a schema.json cannot contain the key of any entity of this manifest: use --export workbench";
        return Err(Usage(what.to_owned()).into());
    }
    print(&serde_json::to_string_pretty(&exported.file)?);
    for loss in exported.losses {
        report(&format!("ripple: {loss}"));
    }
    Ok(Completion::InStep)
}

/// The design of the table that a manifest declares; without a manifest, of the shipped table.
pub(super) fn declared_design(manifest: Option<&Path>) -> anyhow::Result<Design> {
    let (schema, catalogue) = declared(Choice { manifest, ..Choice::default() })?;
    Ok(Design::declared((*schema).clone(), (*catalogue).clone()))
}

fn read(file: &Path) -> anyhow::Result<Vec<FindingAnswer>> {
    let (name, text) = (file.display(), file_text(file)?);
    let answers = review::answers(&text).map_err(|error| match error {
        AnswersError::List(error) => Usage(format!(
            "{name} is not a list of answers, as in [{{ \"check\": \"…\", \"subject\": \"…\", \"reason\": \"…\" }}]: {error}"
        )),
        error => Usage(format!("{name}: {error}")),
    });
    Ok(answers?)
}

/// The names are stable.
fn as_json(reviewed: &Reviewed) -> Value {
    let finding = |(finding, answer): &(ReviewFinding, Option<FindingAnswer>)| {
        let mut object = finding_json(finding);
        object.insert("answer".to_owned(), json!(answer.as_ref().map(|answer| &answer.reason)));
        object
    };
    json!({
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

/// A finding, why it matters, and its answer. Without an answer, what to do.
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

fn as_text(reviewed: &Reviewed) -> String {
    let mut lines = Vec::new();
    for (finding, answer) in &reviewed.findings {
        lines.extend(finding_lines(finding, answer.as_ref()));
    }
    if !reviewed.unchecked.is_empty() {
        let names: Vec<&str> = reviewed.unchecked.iter().map(|check| check.name()).collect();
        lines.push(format!("not checked, because no [access.NAME] declares your reads: {}", names.join(", ")));
    }
    let findings = counted(reviewed.findings.len(), "finding");
    lines.push(format!("{findings}, {} not answered", reviewed.unanswered().count()));
    lines.join("\n")
}

// ---- The stream records that each function needs ----

/// The functions that read the stream.
const READERS: [Function; 3] = [Function::Aggregate, Function::Propagate, Function::Combined];

/// The records that a function needs from each table, with the table's name if there are several.
fn needed_by(design: &Design, function: Function) -> impl Iterator<Item = (Option<&str>, Needed)> {
    StreamTable::all(&design.schema).map(move |table| {
        let needed = needed(table, &design.catalogue, &function.families());
        (table.form().map(|form| form.name.as_str()), needed)
    })
}

/// The filters of each function in the form of a template.
fn filters_text(design: &Design) -> String {
    let is_several = design.schema.layout.forms.is_some();
    let of_one = |function: Function, (table, needed): (Option<&str>, Needed)| {
        let of = match table {
            Some(table) => format!(", the table {table}"),
            None if is_several => ", the table of Ripple's own items".to_owned(),
            None => String::new(),
        };
        format!("# {function}{of}\n{}", yaml(&needed))
    };
    let text = READERS.into_iter().flat_map(|function| needed_by(design, function).map(move |of| of_one(function, of)));
    text.collect::<Vec<_>>().join("\n")
}

/// The filters of each function in the form of the API. If there are several tables, by table.
fn filters_json(design: &Design) -> Value {
    let is_several = design.schema.layout.forms.is_some();
    let filters = |function: Function| {
        let (mut own, mut tables) = (Value::Null, Map::new());
        for (table, needed) in needed_by(design, function) {
            match table {
                Some(table) => drop(tables.insert(table.to_owned(), criteria(&needed))),
                None => own = criteria(&needed),
            }
        }
        if is_several { json!({ "own_table": own, "tables": tables }) } else { own }
    };
    Value::Object(READERS.map(|function| (function.to_string(), filters(function))).into_iter().collect())
}
