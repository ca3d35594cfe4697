//! Parses a condition's text.
//!
//! ```text
//! condition = conjunction *( OR conjunction )
//! conjunction = negation *( AND negation )
//! negation = NOT negation / "(" condition ")" / test
//! test = function / operand sign operand / operand BETWEEN operand AND operand / operand IN "(" operand *( "," operand ) ")"
//! operand = path / size "(" path ")" / 'text' / number / true / false / null
//! path = name *( "." name / "[" digits "]" )
//! ```
//!
//! `AND`, `OR`, `NOT`, `BETWEEN` and `IN` may be in lower case. A quote in a text is doubled. A name with characters
//! other than letters, digits and `_` is written in double quotes.

use std::{cmp::Ordering, str::FromStr};

use keys::number::canonical;
use serde_dynamo::AttributeValue;

use super::{Condition, Operand, Test, order};
use crate::condition::document_path::{DocumentPath, PathStep};

/// Deepest nesting of parentheses and `NOT`. DynamoDB allows 300 operators in an expression.
const DEPTH_MAX: usize = 50;

/// Limits on the operators of a condition, and on the values of an `IN`: those of DynamoDB.
const TESTS_MAX: usize = 300;
const IN_MAX: usize = 100;

/// The comparison signs, the longer ones first.
pub(super) const SIGNS: [(&str, Test); 6] = [
    ("<>", Test::Differs),
    ("<=", Test::AtMost),
    (">=", Test::AtLeast),
    ("=", Test::Equal),
    ("<", Test::Below),
    (">", Test::Above),
];

/// The functions that are tests, each with its number of operands.
pub(super) const FUNCTIONS: [(&str, Test, usize); 5] = [
    ("attribute_exists", Test::Exists, 1),
    ("attribute_not_exists", Test::Lacks, 1),
    ("attribute_type", Test::Type, 2),
    ("begins_with", Test::BeginsWith, 2),
    ("contains", Test::Contains, 2),
];

/// Words that cannot be names, in upper case.
const WORDS: [&str; 9] = ["AND", "OR", "NOT", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "SIZE"];

/// The type names that `attribute_type` accepts.
const TYPES: [&str; 10] = ["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"];

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut parser = Parser { scanner: Scanner { text, at: 0 }, n_tests: 0 };
        let condition = parser.condition(0)?;
        match parser.scanner.rest() {
            "" => Ok(condition),
            rest => Err(parser.scanner.wanted(&format!("AND, OR or the end is wanted before {}", first(rest)))),
        }
    }
}

/// True if this name can be written without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.chars().all(is_of_name) && !is_word(name)
}

fn is_word(name: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(name)) || FUNCTIONS.iter().any(|(function, ..)| *function == name)
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    n_tests: usize,
}

impl Parser<'_> {
    fn condition(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        let mut all = vec![self.conjunction(depth)?];
        while self.scanner.word("OR") {
            all.push(self.conjunction(depth)?);
        }
        Ok(joined(all, Condition::Or))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        let mut all = vec![self.negation(depth)?];
        while self.scanner.word("AND") {
            all.push(self.negation(depth)?);
        }
        Ok(joined(all, Condition::And))
    }

    fn negation(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        if depth > DEPTH_MAX {
            return Err(self.scanner.wanted(&format!("more than {DEPTH_MAX} parentheses and NOTs are nested")));
        }
        if self.scanner.word("NOT") {
            return Ok(Condition::Not(Box::new(self.negation(depth + 1)?)));
        }
        if self.scanner.sign("(") {
            let condition = self.condition(depth + 1)?;
            self.scanner.must("a closing parenthesis", ")")?;
            return Ok(condition);
        }
        self.n_tests += 1;
        if self.n_tests > TESTS_MAX {
            return Err(self
                .scanner
                .wanted(&format!("there are more than {TESTS_MAX} tests, which DynamoDB does not take")));
        }
        self.test()
    }

    fn test(&mut self) -> Result<Condition, ConditionError> {
        let begin = self.scanner.at;
        if let Some((function, test, n_operands)) = FUNCTIONS.iter().find(|(function, ..)| self.scanner.exact(function))
        {
            self.scanner.must("an opening parenthesis", "(")?;
            let mut operands = vec![Operand::Attribute(self.scanner.path()?)];
            for _ in 1..*n_operands {
                self.scanner.must(&format!("a comma, since {function} takes two operands,"), ",")?;
                operands.push(self.operand()?);
            }
            self.scanner.must("a closing parenthesis", ")")?;
            return self.checked(begin, *test, operands);
        }
        let tested = self.operand()?;
        if let Some((_, test)) = SIGNS.iter().find(|(sign, _)| self.scanner.sign(sign)) {
            let operands = vec![tested, self.operand()?];
            return self.checked(begin, *test, operands);
        }
        if self.scanner.word("BETWEEN") {
            let low = self.operand()?;
            if !self.scanner.word("AND") {
                return Err(self.scanner.wanted("AND is wanted, as in total BETWEEN 10 AND 20"));
            }
            let operands = vec![tested, low, self.operand()?];
            return self.checked(begin, Test::Between, operands);
        }
        if self.scanner.word("IN") {
            self.scanner.must("an opening parenthesis", "(")?;
            let mut operands = vec![tested, self.operand()?];
            while self.scanner.sign(",") {
                operands.push(self.operand()?);
            }
            self.scanner.must("a comma or a closing parenthesis", ")")?;
            return self.checked(begin, Test::In, operands);
        }
        Err(self.scanner.wanted("a comparison is wanted: =, <>, <, <=, >, >=, BETWEEN or IN"))
    }

    /// Refuses a test that holds for every item or for none, and what DynamoDB refuses.
    fn checked(&self, begin: usize, test: Test, operands: Vec<Operand>) -> Result<Condition, ConditionError> {
        let wrong = |what: &str| Err(self.scanner.error(begin, what));
        if operands.iter().all(|operand| matches!(operand, Operand::Value(_))) {
            return wrong("it reads no attribute: a text stands in single quotes, and a name in none");
        }
        if operands.iter().skip(1).any(|operand| operands.first() == Some(operand)) {
            return wrong("it compares an attribute with itself, which DynamoDB refuses");
        }
        let of_type = |operand: &Operand| match operand {
            Operand::Value(value) => Some(keys::value::type_of(value)),
            Operand::Size(_) => Some("N"),
            Operand::Attribute(_) => None,
        };
        let mut types = operands.iter().filter_map(of_type);
        let one = types.next();
        match test {
            Test::Type => match operands.get(1) {
                Some(Operand::Value(AttributeValue::S(name))) if TYPES.contains(&name.as_str()) => {}
                _ => {
                    return wrong(
                        "attribute_type takes one of 'S', 'N', 'B', 'BOOL', 'NULL', 'SS', 'NS', 'BS', 'L', 'M'",
                    );
                }
            },
            Test::BeginsWith if one.is_some_and(|one| one != "S") => return wrong("begins_with takes a text"),
            Test::Below | Test::AtMost | Test::Above | Test::AtLeast | Test::Between
                if one.is_some_and(|one| one == "BOOL" || one == "NULL") =>
            {
                return wrong("true, false and null have no order: compare them with = or <>");
            }
            Test::In if operands.len() > IN_MAX + 1 => return wrong(&format!("IN takes at most {IN_MAX} values")),
            Test::Contains => {}
            _ if types.any(|other| Some(other) != one) => return wrong("it compares values of several types"),
            _ => {}
        }
        if let (Test::Between, [_, Operand::Value(low), Operand::Value(high)]) = (test, operands.as_slice())
            && order(low, high).is_some_and(Ordering::is_gt)
        {
            return wrong("BETWEEN takes the lower value first");
        }
        Ok(Condition::Test(test, operands))
    }

    fn operand(&mut self) -> Result<Operand, ConditionError> {
        if self.scanner.rest().starts_with('\'') {
            return Ok(Operand::Value(AttributeValue::S(self.scanner.quoted('\'')?)));
        }
        if self.scanner.rest().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            return self.number();
        }
        if self.scanner.word("SIZE") {
            self.scanner.must("an opening parenthesis", "(")?;
            let path = self.scanner.path()?;
            self.scanner.must("a closing parenthesis", ")")?;
            return Ok(Operand::Size(path));
        }
        let values = [
            ("TRUE", AttributeValue::Bool(true)),
            ("FALSE", AttributeValue::Bool(false)),
            ("NULL", AttributeValue::Null(true)),
        ];
        match values.into_iter().find(|(word, _)| self.scanner.word(word)) {
            Some((_, value)) => Ok(Operand::Value(value)),
            None => self.scanner.path().map(Operand::Attribute),
        }
    }

    fn number(&mut self) -> Result<Operand, ConditionError> {
        let (begin, rest) = (self.scanner.at, self.scanner.rest());
        let is_of_number = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let end = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or_default();
        self.scanner.at += end;
        match canonical(text) {
            Some(number) => Ok(Operand::Value(AttributeValue::N(number))),
            None => Err(self.scanner.error(begin, &format!("\"{text}\" is no number that DynamoDB holds"))),
        }
    }
}

/// A single condition as it is; several are joined into one.
fn joined(mut all: Vec<Condition>, join: impl FnOnce(Vec<Condition>) -> Condition) -> Condition {
    match all.pop() {
        Some(one) if all.is_empty() => one,
        last => {
            all.extend(last);
            join(all)
        }
    }
}

// ---- The scanner: a position in a condition's text ----

/// Why a text is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: {what}")]
pub struct ConditionError {
    /// Position, in characters from 1.
    pub at: usize,
    /// The problem there, and what would be valid.
    pub what: String,
}

/// A position in the text.
pub(in crate::condition) struct Scanner<'a> {
    pub(in crate::condition) text: &'a str,
    /// Position, in bytes.
    pub(in crate::condition) at: usize,
}

impl<'a> Scanner<'a> {
    /// Reads a quoted text; a doubled quote is one.
    pub(in crate::condition) fn quoted(&mut self, quote: char) -> Result<String, ConditionError> {
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
    pub(in crate::condition) fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// The letters, digits and `_` at the position.
    pub(in crate::condition) fn plain(&mut self) -> &'a str {
        let rest = self.rest();
        rest.get(..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Reads a word if it is next, in upper or lower case.
    pub(in crate::condition) fn word(&mut self, word: &str) -> bool {
        let comes = self.plain().eq_ignore_ascii_case(word);
        self.at += if comes { word.len() } else { 0 };
        comes
    }

    /// Reads a function's name if it is next.
    pub(in crate::condition) fn exact(&mut self, function: &str) -> bool {
        let comes = self.plain() == function;
        self.at += if comes { function.len() } else { 0 };
        comes
    }

    /// Reads a sign if it is next.
    pub(in crate::condition) fn sign(&mut self, sign: &str) -> bool {
        let comes = self.rest().starts_with(sign);
        self.at += if comes { sign.len() } else { 0 };
        comes
    }

    pub(in crate::condition) fn must(&mut self, called: &str, sign: &str) -> Result<(), ConditionError> {
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
    pub(in crate::condition) fn wanted(&mut self, what: &str) -> ConditionError {
        self.rest();
        self.error(self.at, what)
    }

    pub(in crate::condition) fn error(&self, at: usize, what: &str) -> ConditionError {
        let before = self.text.get(..at).unwrap_or_default();
        ConditionError { at: before.chars().count() + 1, what: what.to_owned() }
    }
    /// Reads a path.
    pub(in crate::condition) fn path(&mut self) -> Result<DocumentPath, ConditionError> {
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

/// True if a name can contain this character without quotes.
pub(in crate::condition) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Quotes the first word of the text, for a message.
pub(in crate::condition) fn first(rest: &str) -> String {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    format!("\"{}\"", rest.get(..end).unwrap_or(rest))
}
