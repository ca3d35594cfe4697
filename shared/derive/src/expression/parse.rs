//! Parses an expression's text, by a scanner that conditions use too.

use std::str::FromStr;

use keys::number::canonical;
use serde_dynamo::AttributeValue;

use crate::{
    condition::is_test,
    expression::{
        DocumentPath, Expression, PathStep,
        function::{Function, SIGNATURES, Second},
        is_plain, is_word, time,
    },
};

/// Deepest nesting of parentheses, functions and `NOT`. DynamoDB allows 300 operators in an expression.
pub(crate) const DEPTH_MAX: usize = 50;

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let mut scanner = Scanner::of(text);
        let expression = scanner.expression(0)?;
        match scanner.rest() {
            "" => Ok(expression),
            rest => {
                Err(scanner
                    .wanted(&format!("an operator (+, -, *, /, ||) or the end is wanted before {}", first(rest))))
            }
        }
    }
}

/// Limit on the operators of an expression: that of DynamoDB.
const OPERATORS_MAX: usize = 300;

/// The operators of sums, which bind less than a product.
const SUMS: [(&str, Function); 3] = [("||", Function::Join), ("+", Function::Add), ("-", Function::Subtract)];

/// The operators of products.
const PRODUCTS: [(&str, Function); 2] = [("*", Function::Multiply), ("/", Function::Divide)];

impl Scanner<'_> {
    /// Reads an expression.
    pub(crate) fn expression(&mut self, depth: usize) -> Result<Expression, ExpressionError> {
        self.rest();
        let begin = self.at;
        let mut left = self.product(depth)?;
        while let Some((_, function)) = SUMS.iter().find(|(sign, _)| self.sign(sign)) {
            let right = self.product(depth)?;
            left = self.call(begin, *function, vec![left, right])?;
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Expression, ExpressionError> {
        self.rest();
        let begin = self.at;
        let mut left = self.operand(depth)?;
        while let Some((_, function)) = PRODUCTS.iter().find(|(sign, _)| self.sign(sign)) {
            let right = self.operand(depth)?;
            left = self.call(begin, *function, vec![left, right])?;
        }
        Ok(left)
    }

    fn operand(&mut self, depth: usize) -> Result<Expression, ExpressionError> {
        if depth > DEPTH_MAX {
            return Err(self.wanted(&format!("more than {DEPTH_MAX} parentheses and functions are nested")));
        }
        if self.rest().starts_with('\'') {
            return Ok(Expression::Literal(AttributeValue::S(self.quoted('\'')?)));
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            return self.number();
        }
        if self.sign("(") {
            let expression = self.expression(depth + 1)?;
            self.must("a closing parenthesis", ")")?;
            return Ok(expression);
        }
        let begin = self.at;
        if let Some(function) = self.function()? {
            return self.arguments(begin, function, depth + 1);
        }
        let values = [
            ("TRUE", AttributeValue::Bool(true)),
            ("FALSE", AttributeValue::Bool(false)),
            ("NULL", AttributeValue::Null(true)),
        ];
        match values.into_iter().find(|(word, _)| self.word(word)) {
            Some((_, value)) => Ok(Expression::Literal(value)),
            None => self.path().map(Expression::Path),
        }
    }

    /// Reads a function's name if it is next: a name in front of a parenthesis, and `size` in any case.
    fn function(&mut self) -> Result<Option<Function>, ExpressionError> {
        let name = self.plain();
        let is_called = self.text.get(self.at + name.len()..).is_some_and(|rest| rest.trim_start().starts_with('('));
        if name.eq_ignore_ascii_case("size") {
            self.at += name.len();
            return Ok(Some(Function::Size));
        }
        if !is_called || name.is_empty() || (is_word(name) && !is_test(name)) {
            return Ok(None);
        }
        if let Some(signature) = SIGNATURES.iter().find(|signature| signature.name == name) {
            self.at += name.len();
            return Ok(Some(signature.function));
        }
        let names = SIGNATURES.iter().map(|signature| signature.name);
        let names: Vec<&str> = names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect();
        Err(self.wanted(&if is_test(name) {
            format!("{name} is a test, and a value is wanted here")
        } else {
            format!("there is no function \"{name}\": there are {}", names.join(", "))
        }))
    }

    fn arguments(&mut self, begin: usize, function: Function, depth: usize) -> Result<Expression, ExpressionError> {
        self.must("an opening parenthesis", "(")?;
        let mut arguments = vec![self.expression(depth)?];
        let signature = function.signature();
        let (form, second) = signature.map_or(("", Second::None), |signature| (signature.form, signature.second));
        let is_more = match second {
            Second::None => false,
            Second::Offset => self.sign(","),
            Second::Value | Second::Separator => {
                self.must(&format!("a comma, as in {form},"), ",")?;
                true
            }
        };
        if is_more {
            arguments.push(self.expression(depth)?);
        }
        self.must("a closing parenthesis", ")")?;
        self.call(begin, function, arguments)
    }

    /// The call of a function, if it takes values of these types.
    fn call(
        &mut self,
        begin: usize,
        function: Function,
        arguments: Vec<Expression>,
    ) -> Result<Expression, ExpressionError> {
        self.count()?;
        let Some(signature) = function.signature() else { return Err(self.wanted("there is no such function")) };
        let form = signature.form;
        if let (Second::Separator | Second::Offset, Some(second)) = (signature.second, arguments.get(1)) {
            let text = match second {
                Expression::Literal(AttributeValue::S(text)) => text.as_str(),
                _ => "",
            };
            if text.is_empty() {
                return Err(self.error(begin, &format!("the second value is a text in quotes, as in {form}")));
            }
            if signature.second == Second::Offset && time::offset_seconds(text).is_none() {
                return Err(self.error(begin, &format!("\"{text}\" is no offset from UTC such as '+02:00'")));
            }
        }
        let wrong = arguments.iter().find_map(|argument| {
            let of = argument.type_of().filter(|of| !signature.takes.is_empty() && !signature.takes.contains(of))?;
            Some((argument, of))
        });
        if let Some((argument, of)) = wrong {
            let (wanted, hint) = (signature.takes.join(" or "), function.hint(of));
            return Err(self.error(begin, &format!("{form} takes {wanted}, and {argument} is {of}{hint}")));
        }
        Ok(Expression::Call(function, arguments))
    }

    fn number(&mut self) -> Result<Expression, ExpressionError> {
        let (begin, rest) = (self.at, self.rest());
        let mut before = 'e';
        let end = rest.find(|c: char| {
            let is_sign = "+-".contains(c) && matches!(before, 'e' | 'E');
            before = c;
            !(is_sign || c.is_ascii_alphanumeric() || c == '.')
        });
        let end = end.unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or_default();
        self.at += end;
        match canonical(text) {
            Some(number) => Ok(Expression::Literal(AttributeValue::N(number))),
            None => Err(self.error(begin, &format!("\"{text}\" is no number that DynamoDB holds"))),
        }
    }
}

// ---- The scanner: a position in the text of an expression or a condition ----

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
