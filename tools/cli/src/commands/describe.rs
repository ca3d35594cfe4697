//! `ripple completions` and `ripple man`: the command line's description of itself.

use clap_mangen::Man;

use crate::{
    args,
    exit::{Completion, Usage, print},
};

pub(crate) fn completions(args: &args::Completions) -> anyhow::Result<Completion> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut args::values::described(), "ripple", &mut text);
    print(String::from_utf8(text)?.trim_end());
    Ok(Completion::InStep)
}

pub(crate) fn man(args: &args::Man) -> anyhow::Result<Completion> {
    let mut all = args::values::described();
    // Sets the full names of subcommands, such as `ripple-catalogue-diff`.
    all.build();
    let mut command = &all;
    for word in &args.words {
        let below = command.find_subcommand(word);
        command = below.ok_or_else(|| Usage(format!("there is no command {}", args.words.join(" "))))?;
    }
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    print(String::from_utf8(text)?.trim_end());
    Ok(Completion::InStep)
}
