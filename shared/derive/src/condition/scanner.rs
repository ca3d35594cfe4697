//! A place in a condition's text, and what comes next there.

use super::{
    document_path::{DocumentPath, PathStep},
    parse::is_plain,
};

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: {what}")]
pub struct ConditionError {
    /// Where, in characters from 1.
    pub at: usize,
    /// What is wrong there, and what would do.
    pub what: String,
}

/// A place in the text.
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    /// What is read, in bytes.
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    /// What stands between these quotes; two of them are one.
    pub(super) fn quoted(&mut self, quote: char) -> Result<String, ConditionError> {
        let (begin, mut text) = (self.at, String::new());
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != quote {
                text.push(c);
            } else if chars.next_if(|(_, next)| *next == quote).is_some() {
                text.push(quote);
            } else {
                self.at += at + 1;
                return Ok(text);
            }
        }
        Err(self.error(begin, "the quote is not closed"))
    }

    /// What is not read yet, without the space before it.
    pub(super) fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// The letters, digits and `_` that come next.
    pub(super) fn plain(&mut self) -> &'a str {
        let rest = self.rest();
        rest.get(..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Reads a word, if it comes next, in capital or small letters.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let comes = self.plain().eq_ignore_ascii_case(word);
        self.at += if comes { word.len() } else { 0 };
        comes
    }

    /// Reads a function's name, if it comes next.
    pub(super) fn exact(&mut self, function: &str) -> bool {
        let comes = self.plain() == function;
        self.at += if comes { function.len() } else { 0 };
        comes
    }

    /// Reads a sign, if it comes next.
    pub(super) fn sign(&mut self, sign: &str) -> bool {
        let comes = self.rest().starts_with(sign);
        self.at += if comes { sign.len() } else { 0 };
        comes
    }

    pub(super) fn must(&mut self, called: &str, sign: &str) -> Result<(), ConditionError> {
        if self.sign(sign) {
            return Ok(());
        }
        let before = match self.rest() {
            "" => "at the end".to_owned(),
            rest => format!("before {}", first(rest)),
        };
        Err(self.wanted(&format!("{called} is wanted {before}")))
    }

    /// A mistake where the parser stands.
    pub(super) fn wanted(&mut self, what: &str) -> ConditionError {
        self.rest();
        self.error(self.at, what)
    }

    pub(super) fn error(&self, at: usize, what: &str) -> ConditionError {
        let before = self.text.get(..at).unwrap_or_default();
        ConditionError { at: before.chars().count() + 1, what: what.to_owned() }
    }
    /// Reads a path.
    pub(super) fn path(&mut self) -> Result<DocumentPath, ConditionError> {
        let mut path = DocumentPath { attribute: self.name()?, steps: Vec::new() };
        loop {
            if self.sign(".") {
                path.steps.push(PathStep::Name(self.name()?));
            } else if self.sign("[") {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let Some(at) = rest.get(..end).and_then(|digits| digits.parse().ok()) else {
                    return Err(self.wanted("a position in the list is wanted, from 0"));
                };
                self.at += end;
                self.must("a closing bracket", "]")?;
                path.steps.push(PathStep::At(at));
            } else {
                return Ok(path);
            }
        }
    }

    fn name(&mut self) -> Result<String, ConditionError> {
        if self.rest().starts_with('"') {
            let begin = self.at;
            let name = self.quoted('"')?;
            return if name.is_empty() { Err(self.error(begin, "an attribute's name is empty")) } else { Ok(name) };
        }
        let name = self.plain();
        if is_plain(name) {
            self.at += name.len();
            return Ok(name.to_owned());
        }
        let rest = self.rest();
        Err(self.wanted(&match rest.chars().next() {
            None => "it ends where an attribute or a value is wanted".to_owned(),
            Some(':' | '#') => {
                format!("{} is a placeholder: write the value or the name itself, a text in single quotes", first(rest))
            }
            Some(_) if !name.is_empty() => {
                format!("\"{name}\" is no name here: an attribute that is called so stands in double quotes")
            }
            Some('=') => "an attribute or a value is wanted: a single = says that two values are equal".to_owned(),
            Some(_) => format!("an attribute or a value is wanted before {}", first(rest)),
        }))
    }
}

/// Can a name have this character without quotes?
pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What a message quotes of the text.
pub(super) fn first(rest: &str) -> String {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    format!("\"{}\"", rest.get(..end).unwrap_or(rest))
}
