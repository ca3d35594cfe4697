//! The scanner: a position in the text of an expression or a condition.

use crate::expression::{
    document_path::{DocumentPath, PathStep},
    is_plain,
};

/// Limit on the operators of an expression: that of DynamoDB.
const OPERATORS_MAX: usize = 300;

/// Why a text is not an expression or a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: {what}")]
pub struct ExpressionError {
    /// Position, in characters from 1.
    pub at: usize,
    /// The problem there, and what would be valid.
    pub what: String,
}

/// A position in the text.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    pub(crate) text: &'a str,
    /// Position, in bytes.
    pub(crate) at: usize,
    /// Number of operators and functions so far.
    n_operators: usize,
    /// True if `:name` is a value that a caller gives: a path with this name.
    takes_inputs: bool,
}

impl<'a> Scanner<'a> {
    /// The beginning of this text.
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, at: 0, n_operators: 0, takes_inputs: false }
    }

    /// The beginning of this text, in which `:name` is a value that a caller gives.
    pub(crate) fn with_inputs(text: &'a str) -> Self {
        Self { takes_inputs: true, ..Self::of(text) }
    }

    /// Counts an operator, a function or a test.
    pub(crate) fn count(&mut self) -> Result<(), ExpressionError> {
        self.n_operators += 1;
        if self.n_operators > OPERATORS_MAX {
            return Err(self.wanted(&format!(
                "there are more than {OPERATORS_MAX} tests and operators, which DynamoDB does not take"
            )));
        }
        Ok(())
    }

    /// Reads a quoted text; a doubled quote is one.
    pub(crate) fn quoted(&mut self, quote: char) -> Result<String, ExpressionError> {
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

    /// The unread text, without leading white space.
    pub(crate) fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// The letters, digits and `_` at the position.
    pub(crate) fn plain(&mut self) -> &'a str {
        let rest = self.rest();
        rest.get(..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Reads a word if it is next, in upper or lower case.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let comes = self.plain().eq_ignore_ascii_case(word);
        self.at += if comes { word.len() } else { 0 };
        comes
    }

    /// Reads a function's name if it is next.
    pub(crate) fn exact(&mut self, function: &str) -> bool {
        let comes = self.plain() == function;
        self.at += if comes { function.len() } else { 0 };
        comes
    }

    /// Reads a sign if it is next.
    pub(crate) fn sign(&mut self, sign: &str) -> bool {
        let comes = self.rest().starts_with(sign);
        self.at += if comes { sign.len() } else { 0 };
        comes
    }

    /// Reads a sign, which is called so in a message.
    pub(crate) fn must(&mut self, called: &str, sign: &str) -> Result<(), ExpressionError> {
        if self.sign(sign) {
            return Ok(());
        }
        let before = match self.rest() {
            "" => "at the end".to_owned(),
            rest => format!("before {}", first(rest)),
        };
        Err(self.wanted(&format!("{called} is wanted {before}")))
    }

    /// An error at the position.
    pub(crate) fn wanted(&mut self, what: &str) -> ExpressionError {
        self.rest();
        self.error(self.at, what)
    }

    /// An error at this position, in bytes.
    pub(crate) fn error(&self, at: usize, what: &str) -> ExpressionError {
        let before = self.text.get(..at).unwrap_or_default();
        ExpressionError { at: before.chars().count() + 1, what: what.to_owned() }
    }

    /// Reads a path.
    pub(crate) fn path(&mut self) -> Result<DocumentPath, ExpressionError> {
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

    fn name(&mut self) -> Result<String, ExpressionError> {
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
        if let Some(input) = rest.strip_prefix(':').filter(|_| self.takes_inputs) {
            let end = input.find(|c| !is_of_name(c)).unwrap_or(input.len());
            if let Some(input) = rest.get(..=end).filter(|_| end > 0) {
                self.at += input.len();
                return Ok(input.to_owned());
            }
        }
        Err(self.wanted(&match rest.chars().next() {
            None => "it ends where an attribute or a value is wanted".to_owned(),
            Some(':') if self.takes_inputs => {
                "a placeholder has a name of letters, digits and _, such as :status".to_owned()
            }
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

/// True if a name can contain this character without quotes.
pub(crate) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Quotes the first word of the text, for a message.
pub(crate) fn first(rest: &str) -> String {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    format!("\"{}\"", rest.get(..end).unwrap_or(rest))
}
