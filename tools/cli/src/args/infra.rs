//! The arguments of `ripple infra`.

use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};

/// `ripple infra`
#[derive(Debug, Group)]
pub(crate) struct InfraArgs {
    /// For a table that exists already: makes everything else, and does not change the table.
    #[arg(long)]
    pub(crate) attach: bool,
    /// What deploys it.
    #[arg(long, value_enum, default_value_t = InfraFormat::Sam)]
    pub(crate) format: InfraFormat,
    /// Manifest that declares the table, such as `ripple.toml` (default: the shipped table).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InfraFormat {
    /// A SAM template, for `sam build` in the repository.
    Sam,
    /// A SAM template that takes the functions' packages from a bucket.
    Cloudformation,
    /// A Terraform module around that template.
    Terraform,
    /// A CDK construct in TypeScript around that template.
    Cdk,
}
