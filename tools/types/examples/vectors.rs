//! Prints the questions and answers of the crate's tests, a line each, with a tab between: the tests of other languages
//! read them. With a language as its argument it prints the file that they are to be asked of. With `unescaped` before it, it
//! does so for the table whose keys escape nothing.

#[path = "../tests/vectors/mod.rs"]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "the module is of the tests")]
mod vectors;

use std::{
    env,
    io::{self, Write as _},
};

use types::{Language, types};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1).peekable();
    let [escaped, unescaped] = vectors::tables();
    let table = if arguments.next_if(|it| it == "unescaped").is_some() { unescaped } else { escaped };
    let (schema, catalogue) = manifest::load(&table)?;
    let text = match arguments.next().as_deref() {
        Some("typescript") => types(Language::TypeScript, &schema, &catalogue),
        Some("python") => types(Language::Python, &schema, &catalogue),
        Some(other) => return Err(format!("no tests ask in {other}").into()),
        None => {
            let lines = vectors::vectors(&schema).into_iter();
            lines.map(|(question, answer)| question + "\t" + &answer + "\n").collect::<Vec<_>>().concat()
        }
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
