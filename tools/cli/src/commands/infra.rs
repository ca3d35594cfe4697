//! `ripple infra`: the infrastructure of a table, as a template or wrapped for another deployment tool.

use functions::declared::{Choice, declared};
use infra::{
    Stack, template,
    wrapped::{cdk, terraform},
};

use crate::{
    args::{InfraArgs, InfraFormat},
    exit::{Completion, print},
};

pub(crate) fn run(args: &InfraArgs) -> anyhow::Result<Completion> {
    let (schema, catalogue) = declared(Choice { manifest: args.config.as_deref(), ..Choice::default() })?;
    let attach = if args.attach { " --attach" } else { "" };
    let config = args.config.as_ref().map(|file| format!(" --config {}", file.display())).unwrap_or_default();
    let stack = Stack {
        schema: &schema,
        catalogue: &catalogue,
        attaches: args.attach,
        shipped: args.config.is_none(),
        zipped: args.format != InfraFormat::Sam,
        command: &format!("ripple infra{attach}{config}"),
    };
    let template = template(&stack);
    let text = match args.format {
        InfraFormat::Sam | InfraFormat::Cloudformation => template,
        InfraFormat::Terraform => terraform(&template),
        InfraFormat::Cdk => cdk(&template),
    };
    print(text.trim_end());
    Ok(Completion::InStep)
}
