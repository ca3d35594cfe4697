//! `ripple infra`: the infrastructure of a table, as a template or wrapped for another deployment tool.

use std::path::Path;

use functions::declared::{Choice, declared};
use infra::{
    Stack,
    steps::{Deployed, IndexChange, IndexStep},
    template_after,
    wrapped::{cdk, terraform},
};

use crate::{
    args::{InfraArgs, InfraFormat},
    exit::{Completion, Usage, file_text, print, report},
};

pub(crate) fn run(args: &InfraArgs) -> anyhow::Result<Completion> {
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
