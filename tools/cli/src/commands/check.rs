//! `ripple check`: is a manifest right? And `ripple schema`: what a manifest can say. Neither needs a table.

use functions::declared::{Choice, declared};
use serde_json::json;

use crate::{
    args::check::{ManifestCheck, SchemaArgs},
    exit::{Completion, print},
    json::print_json,
};

pub(crate) fn run(args: &ManifestCheck) -> anyhow::Result<Completion> {
    let (schema, catalogue) = declared(Choice { manifest: Some(&args.file), ..Choice::default() })?;
    let entities: Vec<&str> = schema.entities().map(|entity| entity.name.as_str()).collect();
    let indexes: Vec<&str> = schema.layout.indexes.iter().map(|index| index.name.as_str()).collect();
    let derivations: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    if args.json {
        print_json(json!({
            "file": args.file.display().to_string(),
            "entities": entities,
            "indexes": indexes,
            "derivations": derivations,
        }));
    } else {
        print(&[line("entities", &entities), line("indexes", &indexes), line("derivations", &derivations)].join("\n"));
    }
    Ok(Completion::InStep)
}

/// Prints the JSON Schema, or the reference page.
pub(crate) fn schema(args: &SchemaArgs) -> anyhow::Result<Completion> {
    let text = if args.reference {
        manifest::reference::reference()
    } else {
        serde_json::to_string_pretty(&manifest::schema::json_schema())?
    };
    print(text.trim_end());
    Ok(Completion::InStep)
}

fn line(what: &str, names: &[&str]) -> String {
    format!("{what:<12} {:>3}  {}", names.len(), names.join(", ")).trim_end().to_owned()
}
