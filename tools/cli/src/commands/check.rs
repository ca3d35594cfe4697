//! `ripple check` checks a manifest, `ripple schema` prints the schema of manifests, and `ripple types` prints typed
//! keys for an application. None of them needs a table.

use std::path::Path;

use derive::derivation::Derivation;
use design::{Design, review::review, sentence::sentences};
use functions::declared::{Choice, declared};
use serde_json::json;
use types::Language;

use super::design::{finding_json, finding_lines};
use crate::{
    args::{
        check::{ClientLanguage, ManifestCheck, SchemaArgs, TypesArgs},
        manifest::MANIFEST_HERE,
    },
    exit::{Completion, Usage, file_text, print},
    words::print_json,
};

pub(crate) fn run(args: &ManifestCheck) -> anyhow::Result<Completion> {
    if args.file == Path::new(MANIFEST_HERE) && args.file.symlink_metadata().is_err() {
        let what = "no ripple.toml is here: name the file of a manifest, or draft one with `ripple init`";
        return Err(Usage(what.to_owned()).into());
    }
    let (schema, catalogue) = declared(Choice { manifest: Some(&args.file), ..Choice::default() })?;
    let declared_entities = schema.entities().filter(|entity| !entity.is_own());
    let entities: Vec<&str> = declared_entities.map(|entity| entity.name.as_str()).collect();
    let indexes: Vec<&str> = schema.layout.indexes.iter().map(|index| index.name.as_str()).collect();
    let derivations: Vec<&str> = catalogue.declared().map(Derivation::label).collect();
    let reads: Vec<&str> = schema.accesses.iter().map(|access| access.name.as_str()).collect();
    let notices = manifest::notices(&file_text(&args.file)?);
    let reviewed = review(&Design::declared((*schema).clone(), (*catalogue).clone()));
    let findings = reviewed.findings.iter().map(|(finding, _)| finding).filter(|it| it.check.doubts_manifest());
    let completion = if findings.clone().next().is_some() { Completion::Findings } else { Completion::InStep };
    if args.json {
        print_json(json!({
            "file": args.file.display().to_string(),
            "entities": entities,
            "indexes": indexes,
            "derivations": derivations,
            "reads": reads,
            "notices": notices,
            "findings": findings.map(finding_json).collect::<Vec<_>>(),
        }));
    } else {
        let mut lines = vec![line("entities", &entities), line("indexes", &indexes), line("derivations", &derivations)];
        lines.extend((!reads.is_empty()).then(|| line("reads", &reads)));
        lines.extend(notices.into_iter().map(|notice| format!("notice            {notice}")));
        if args.explain {
            let sentences = sentences(&schema, &catalogue);
            lines.extend(sentences.into_iter().map(|(name, sentence)| format!("{name}: {sentence}")));
        }
        lines.extend(findings.flat_map(|finding| finding_lines(finding, None)));
        print(&lines.join("\n"));
    }
    Ok(completion)
}

/// Prints the JSON Schema, or the reference page.
pub(crate) fn schema(args: &SchemaArgs) -> anyhow::Result<Completion> {
    let text = if args.reference {
        manifest::reference::reference()
    } else if args.json_output {
        serde_json::to_string_pretty(&operate::objects::schema::json_schema())?
    } else {
        serde_json::to_string_pretty(&manifest::schema::json_schema())?
    };
    print(text.trim_end());
    Ok(Completion::InStep)
}

/// Prints typed keys and items in a language.
pub(crate) fn types(args: &TypesArgs) -> anyhow::Result<Completion> {
    let (schema, catalogue) = declared(Choice { manifest: args.manifest.file_or_said(), ..Choice::default() })?;
    let language = match args.language {
        ClientLanguage::Typescript => Language::TypeScript,
        ClientLanguage::Python => Language::Python,
        ClientLanguage::Rust => Language::Rust,
    };
    print(types::types(language, &schema, &catalogue).trim_end());
    Ok(Completion::InStep)
}

fn line(what: &str, names: &[&str]) -> String {
    format!("{what:<12} {:>3}  {}", names.len(), names.join(", ")).trim_end().to_owned()
}
