//! Expressions: the values that a derivation reads from an item.
//!
//! An expression is a path, a field of the key, a literal, or calculated from such values by the operators and
//! [functions](function::SIGNATURES). DynamoDB's syntax is extended by what DynamoDB does not calculate.
//!
//! ```text
//! expression = product *( ( "||" / "+" / "-" ) product )
//! product = operand *( ( "*" / "/" ) operand )
//! operand = path / 'text' / number / true / false / null / function "(" expression *( "," expression ) ")" / "(" expression ")"
//! path = name *( "." name / "[" digits "]" )
//! ```
//!
//! If a value is missing, what is calculated from it is missing. A value of a type that a function does not take makes
//! the item unreadable. A quote in a text is doubled. A name with characters other than letters, digits and `_` is
//! written in double quotes.
//!
//! *Example*: `quantity * price` of an item with `quantity` 3 and `price` 1.50 is 4.5. Of an item without `price` it is
//! missing, and an item whose `price` is a text is unreadable.

pub mod document_path;
mod evaluate;
pub mod function;
mod input;
mod parse;
pub(crate) mod scanner;
pub mod time;

use std::fmt::{self, Display, Formatter, Write as _};

use serde_dynamo::AttributeValue;

use crate::condition::is_test;

use self::function::Function;
pub(crate) use self::parse::DEPTH_MAX;
pub use self::{
    document_path::{DocumentPath, PathStep},
    evaluate::Values,
    input::{Input, pairs},
    scanner::ExpressionError,
};

/// A value that is read from an item, or calculated.
///
/// ```
/// use derive::expression::Expression;
/// use keys::item::Item;
/// use serde_dynamo::AttributeValue;
///
/// let owner: Expression = "before(owner, '::')".parse().unwrap();
/// let todo = Item::from([("owner".to_owned(), AttributeValue::S("7::ann".to_owned()))]);
/// let value = owner.value((&todo).into()).unwrap().unwrap();
/// assert_eq!(*value, AttributeValue::S("7".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// The value of a field of the key, of an attribute, or inside an attribute.
    Path(DocumentPath),
    /// A literal value.
    Literal(AttributeValue),
    /// What a function gives for these values.
    Call(Function, Vec<Self>),
}

impl Expression {
    /// The type of its value, such as `N`; `None` if that depends on the item.
    #[must_use]
    pub fn type_of(&self) -> Option<&'static str> {
        match self {
            Self::Path(_) => None,
            Self::Literal(value) => Some(function::type_of(value)),
            Self::Call(Function::IfNotExists, arguments) => {
                let mut types = arguments.iter().map(Self::type_of);
                types.next().flatten().filter(|one| types.all(|other| other == Some(one)))
            }
            Self::Call(function, _) => function.signature()?.gives,
        }
    }

    /// The paths that it reads, in the order of its text.
    #[must_use]
    pub fn paths(&self) -> Vec<&DocumentPath> {
        match self {
            Self::Path(path) => vec![path],
            Self::Literal(_) => Vec::new(),
            Self::Call(_, arguments) => arguments.iter().flat_map(Self::paths).collect(),
        }
    }

    /// The paths whose values a function takes, each with the only type that the function takes, and the call.
    #[must_use]
    pub fn taken(&self) -> Vec<(&DocumentPath, &'static str, &Self)> {
        let Self::Call(function, arguments) = self else { return Vec::new() };
        let takes = function.signature().map_or(&[][..], |signature| signature.takes);
        let own = arguments.iter().filter_map(|argument| match (argument, takes) {
            (Self::Path(path), [of]) => Some((path, *of, self)),
            _ => None,
        });
        own.chain(arguments.iter().flat_map(Self::taken)).collect()
    }

    /// True if it divides.
    #[must_use]
    pub fn divides(&self) -> bool {
        let Self::Call(function, arguments) = self else { return false };
        *function == Function::Divide || arguments.iter().any(Self::divides)
    }

    /// How strongly it holds together, for parentheses.
    fn strength(&self) -> u8 {
        match self {
            Self::Call(Function::Add | Function::Subtract | Function::Join, _) => 1,
            Self::Call(Function::Multiply | Function::Divide, _) => 2,
            Self::Call(..) | Self::Path(_) | Self::Literal(_) => 3,
        }
    }
}

/// Words that cannot be names, in upper case.
const WORDS: [&str; 9] = ["AND", "OR", "NOT", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "SIZE"];

/// True if this name can be written without quotes.
pub(crate) fn is_plain(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.chars().all(scanner::is_of_name) && !is_word(name)
}

fn is_word(name: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(name)) || is_test(name)
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.fmt(f),
            Self::Literal(AttributeValue::N(number)) => f.write_str(number),
            Self::Literal(AttributeValue::Bool(value)) => value.fmt(f),
            Self::Literal(AttributeValue::S(text)) => write!(f, "'{}'", text.replace('\'', "''")),
            // No other value can be written.
            Self::Literal(_) => f.write_str("null"),
            Self::Call(function, arguments) => {
                let name = function.signature().ok_or(fmt::Error)?.name;
                match arguments.as_slice() {
                    [left, right] if self.strength() < 3 => {
                        part(f, left, left.strength() < self.strength())?;
                        write!(f, " {name} ")?;
                        part(f, right, right.strength() <= self.strength())
                    }
                    _ => {
                        write!(f, "{name}(")?;
                        listed(f, arguments)
                    }
                }
            }
        }
    }
}

fn part(f: &mut Formatter<'_>, expression: &Expression, in_parentheses: bool) -> fmt::Result {
    if in_parentheses { write!(f, "({expression})") } else { expression.fmt(f) }
}

/// The expressions of a list, and its closing parenthesis.
pub(crate) fn listed(f: &mut Formatter<'_>, all: &[Expression]) -> fmt::Result {
    for (at, expression) in all.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { ", " })?;
        expression.fmt(f)?;
    }
    f.write_char(')')
}

#[cfg(test)]
mod tests;
