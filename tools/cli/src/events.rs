//! What `ripple dev` prints while it runs: lines for people, or with `--json` one object a line.

use operate::objects::with_version;
use serde_json::{Value, json};

use crate::exit::{print, print_object, report};

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    People,
    /// A program, which reads a JSON object a line.
    Program,
}

impl Audience {
    /// The audience of a command with this option.
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Program } else { Self::People }
    }

    /// Prints a line for people, or the object of an event.
    pub(crate) fn print(self, line: impl FnOnce() -> String, event: &str, names: impl FnOnce() -> Value) {
        match self {
            Self::People => print(&line()),
            Self::Program => object(event, names()),
        }
    }

    /// Reports a problem, on standard error for people.
    pub(crate) fn problem(self, sentence: &str) {
        match self {
            Self::People => report(sentence),
            Self::Program => object("problem", json!({ "message": sentence })),
        }
    }
}

fn object(event: &str, mut names: Value) {
    if let Some(names) = names.as_object_mut() {
        names.insert("event".to_owned(), event.into());
    }
    print_object(&with_version(names).to_string());
}
