//! Commands that need no table: `ripple check` checks a manifest, `ripple schema` prints the schema of manifests,
//! `ripple types` prints typed keys for an application, and `ripple infra` prints the infrastructure of a table, as a
//! template or wrapped for another deployment tool. `ripple completions` and `ripple man` describe the command line.

use std::path::Path;

use derive::derivation::Derivation;
use design::{Design, review::review, sentence::sentences};
use functions::declared::{Choice, declared};
use infra::{
    Stack,
    steps::{Deployed, IndexChange, IndexStep},
    template_after,
    wrapped::{cdk, terraform},
};
use serde_json::json;
use types::Language;

use crate::{
    args::{
        MANIFEST_HERE,
        offline::{ClientLanguage, Completions, InfraArgs, InfraFormat, Man, ManifestCheck, SchemaArgs, TypesArgs},
        values::described,
    },
    commands::design::{finding_json, finding_lines},
    exit::{Completion, Usage, file_text, print, print_json, report},
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
        manifest::syntax::reference()
    } else if args.json_output {
        serde_json::to_string_pretty(&operate::objects::schema::json_schema())?
    } else {
        serde_json::to_string_pretty(&manifest::syntax::json_schema())?
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

pub(crate) fn infra(args: &InfraArgs) -> anyhow::Result<Completion> {
    let (schema, catalogue) = declared(Choice { manifest: args.manifest.file_or_said(), ..Choice::default() })?;
    let attach = if args.attach { " --attach" } else { "" };
    let config = args.manifest.config.as_ref().map(|file| format!(" --config {}", file.display())).unwrap_or_default();
    let stack = Stack {
        schema: &schema,
        catalogue: &catalogue,
        attaches: args.attach,
        shipped: args.manifest.config.is_none(),
        zipped: args.format != InfraFormat::Sam,
        command: &format!("ripple infra{attach}{config}"),
    };
    let deployed = args.deployed.as_deref().map(deployed).transpose()?;
    let (template, steps) = template_after(&stack, deployed.as_ref());
    let text = match args.format {
        InfraFormat::Sam | InfraFormat::Cloudformation => template,
        InfraFormat::Terraform => terraform(&template),
        InfraFormat::Cdk => cdk(&template),
    };
    print(text.trim_end());
    for step in &steps {
        report(&step.to_string());
    }
    let is_later = |step: &IndexStep| matches!(step.change, IndexChange::Create(number) | IndexChange::Delete(number) if number > 1);
    if steps.iter().any(is_later) {
        report(
            "a deployment creates or deletes one index of a table: deploy what is printed here, and run the same command \
             with it as --deployed for the next one",
        );
        return Ok(Completion::Findings);
    }
    let is_left = steps.iter().any(|step| matches!(step.change, IndexChange::Replace(_)));
    Ok(if is_left { Completion::Findings } else { Completion::InStep })
}

/// The deployed template in a file.
fn deployed(file: &Path) -> Result<Deployed, Usage> {
    let none = || Usage(format!("{} contains no table: give the file that `ripple infra` printed", file.display()));
    Deployed::read(&file_text(file)?).ok_or_else(none)
}

pub(crate) fn completions(args: &Completions) -> anyhow::Result<Completion> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut described(), "ripple", &mut text);
    print(String::from_utf8(text)?.trim_end());
    Ok(Completion::InStep)
}

pub(crate) fn man(args: &Man) -> anyhow::Result<Completion> {
    let mut all = described();
    // Sets the full names of subcommands, such as `ripple-catalogue-diff`.
    all.build();
    let mut command = &all;
    for word in &args.words {
        let below = command.find_subcommand(word);
        command = below.ok_or_else(|| Usage(format!("there is no command {}", args.words.join(" "))))?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    print(String::from_utf8(text)?.trim_end());
    Ok(Completion::InStep)
}
