//! The template inside what other tools deploy: a Terraform module, and a CDK construct in TypeScript.
//!
//! Both hand the template to `CloudFormation` and make its parameters their own inputs, so what they deploy is what the tests
//! hold, resource for resource. The functions' packages are in a bucket, because neither tool runs `sam build`.

use std::fmt::Write as _;

/// An input of the template.
struct Parameter<'a> {
    name: &'a str,
    is_required: bool,
}

/// The parameters of a template that [`super::template`] made.
fn parameters(template: &str) -> Vec<Parameter<'_>> {
    let section = template.split("\nParameters:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let mut all: Vec<Parameter<'_>> = Vec::new();
    for line in section.unwrap_or_default().lines() {
        match (line.strip_prefix("  ").filter(|line| !line.starts_with(' ')), all.last_mut()) {
            (Some(name), _) => all.push(Parameter { name: name.trim_end_matches(':'), is_required: true }),
            (None, Some(last)) if line.starts_with("    Default:") => last.is_required = false,
            (None, _) => {}
        }
    }
    all
}

/// The outputs of the template.
fn outputs(template: &str) -> Vec<&str> {
    let section = template.split("\nOutputs:\n").nth(1).unwrap_or_default();
    let names = section.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.map(|name| name.trim_end_matches(':')).collect()
}

/// The alarms that name event source mappings.
fn alarms_of_mappings(template: &str) -> impl Iterator<Item = &str> {
    let named = template.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    named.filter(|name| name.ends_with("NotReadingAlarm") || name.ends_with("DroppedAlarm"))
}

/// `TableName` as `table_name`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// `TableName` as `tableName`.
fn camel(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// A Terraform module of one file.
#[must_use]
pub fn terraform(template: &str) -> String {
    let (parameters, mut text) = (parameters(template), TERRAFORM.to_owned());
    for Parameter { name, is_required } in &parameters {
        let default = if *is_required { "" } else { "  default     = null\n" };
        let name_of = snake(name);
        append(
            &mut text,
            &format!(
                "\nvariable \"{name_of}\" {{\n  description = \"The template's parameter {name}.\"\n  \
                 type        = string\n{default}}}\n"
            ),
        );
    }
    let width = parameters.iter().map(|parameter| parameter.name.len()).max().unwrap_or_default();
    append(&mut text, "\nlocals {\n  parameters = {\n");
    for Parameter { name, .. } in &parameters {
        append(&mut text, &format!("    {name:width$} = var.{}\n", snake(name)));
    }
    append(&mut text, "  }\n}\n");
    append(&mut text, RESOURCE);
    for name in outputs(template) {
        append(
            &mut text,
            &format!(
                "\noutput \"{}\" {{\n  description = \"The template's output {name}.\"\n  \
                 value       = aws_cloudformation_stack.ripple.outputs[\"{name}\"]\n}}\n",
                snake(name)
            ),
        );
    }
    append(&mut text, "\nlocals {\n  template = <<EOT\n");
    append(&mut text, &template.replace("${", "$${").replace("%{", "%%{"));
    append(&mut text, "EOT\n}\n");
    text
}

/// The template without the outputs that name event source mappings: `CfnInclude` refuses them, because the SAM transform
/// makes the mappings in `CloudFormation`.
fn without_mapping_ids(template: &str) -> String {
    let mut is_of_mapping = false;
    let kept = template.lines().filter(|line| {
        if !line.starts_with("   ") {
            is_of_mapping = line.ends_with("MappingId:");
        }
        !is_of_mapping
    });
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// A CDK construct of one file.
#[must_use]
pub fn cdk(template: &str) -> String {
    let template = &without_mapping_ids(template);
    let (parameters, mut text) = (parameters(template), CDK_HEAD.to_owned());
    for Parameter { name, is_required } in &parameters {
        let optional = if *is_required { "" } else { "?" };
        append(
            &mut text,
            &format!("  /** The template's parameter {name}. */\n  readonly {}{optional}: string;\n", camel(name)),
        );
    }
    append(&mut text, CDK_CLASS);
    for Parameter { name, .. } in &parameters {
        append(&mut text, &format!("      {name}: props.{},\n", camel(name)));
    }
    append(&mut text, CDK_INCLUDE);
    for name in alarms_of_mappings(template) {
        append(&mut text, &format!("      \"{name}\",\n"));
    }
    append(&mut text, CDK_PARAMETERS);
    for name in outputs(template) {
        append(
            &mut text,
            &format!(
                "\n  /** The template's output {name}. */\n  get {}(): string {{\n    \
                 return this.template.getOutput(\"{name}\").value;\n  }}\n",
                camel(name)
            ),
        );
    }
    append(&mut text, "}\n\nconst TEMPLATE = `");
    append(&mut text, &template.replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${"));
    append(&mut text, "`;\n");
    text
}

fn append(text: &mut String, more: &str) {
    // Writing to a text does not fail.
    let _is_written = text.write_str(more);
}

const TERRAFORM: &str = r#"# A CloudFormation stack with everything that Ripple needs. Its inputs are the parameters of the template, and null is the
# template's default.

terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "stack_name" {
  description = "Name of the stack."
  type        = string
}

variable "tags" {
  description = "Tags of the stack and of what it makes."
  type        = map(string)
  default     = {}
}
"#;

const RESOURCE: &str = r#"
# CloudFormation takes at most 51,200 bytes of a template that does not stand in a bucket.
resource "aws_s3_object" "template" {
  bucket  = var.code_bucket
  key     = "${var.code_prefix == null ? "" : var.code_prefix}template-${md5(local.template)}.yaml"
  content = local.template
}

resource "aws_cloudformation_stack" "ripple" {
  name         = var.stack_name
  template_url = "https://${aws_s3_object.template.bucket}.s3.amazonaws.com/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  tags         = var.tags
  parameters   = { for name, value in local.parameters : name => value if value != null }
}
"#;

const CDK_HEAD: &str = r#"// Everything that Ripple needs, as a construct around its template. What is left out has the template's default.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";
import { Construct } from "constructs";

export interface RippleProps {
"#;

const CDK_CLASS: &str = r#"}

export class Ripple extends Construct {
  /** The template, for its resources: `ripple.template.getResource("Table")`. */
  readonly template: CfnInclude;

  constructor(scope: Construct, id: string, props: RippleProps) {
    super(scope, id);
    const given: Record<string, string | undefined> = {
"#;

const CDK_INCLUDE: &str = r#"    };
    // CfnInclude reads a file.
    const templateFile = join(mkdtempSync(join(tmpdir(), "ripple-")), "template.yaml");
    writeFileSync(templateFile, TEMPLATE);
    // These name event source mappings, which the SAM transform makes in CloudFormation.
    const dehydratedResources = [
"#;

const CDK_PARAMETERS: &str = r#"    ];
    this.template = new CfnInclude(this, "Template", { templateFile, dehydratedResources });
    for (const id of dehydratedResources) {
      const condition = this.template.getCondition(id.startsWith("Combined") ? "OneReader" : "TwoReaders");
      this.template.getResource(id).cfnOptions.condition = condition;
    }
    for (const [name, value] of Object.entries(given)) {
      if (value !== undefined) this.template.getParameter(name).default = value;
    }
  }
"#;
