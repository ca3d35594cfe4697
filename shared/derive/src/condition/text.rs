//! The text of a condition, in the form in which [`parse`](super::parse) reads it.

use std::fmt::{self, Display, Formatter, Write as _};

use serde_dynamo::AttributeValue;

use super::{
    Condition, DocumentPath, Operand, PathStep, Test,
    parse::{FUNCTIONS, SIGNS, is_plain},
};

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::And(all) => joined(f, " AND ", all, |it| matches!(it, Self::And(_) | Self::Or(_))),
            Self::Or(all) => joined(f, " OR ", all, |it| matches!(it, Self::Or(_))),
            Self::Not(it) if matches!(**it, Self::And(_) | Self::Or(_)) => write!(f, "NOT ({it})"),
            Self::Not(it) => write!(f, "NOT {it}"),
            Self::Test(test, operands) => tested(f, *test, operands),
        }
    }
}

fn joined(
    f: &mut Formatter<'_>,
    between: &str,
    all: &[Condition],
    in_parentheses: impl Fn(&Condition) -> bool,
) -> fmt::Result {
    for (at, condition) in all.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { between })?;
        if in_parentheses(condition) { write!(f, "({condition})")? } else { write!(f, "{condition}")? }
    }
    Ok(())
}

fn tested(f: &mut Formatter<'_>, test: Test, operands: &[Operand]) -> fmt::Result {
    let listed = |operands: &[Operand], f: &mut Formatter<'_>| {
        for (at, operand) in operands.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            operand.fmt(f)?;
        }
        f.write_char(')')
    };
    match (test, operands) {
        (Test::Between, [operand, low, high]) => write!(f, "{operand} BETWEEN {low} AND {high}"),
        (Test::In, [operand, all @ ..]) => {
            write!(f, "{operand} IN (")?;
            listed(all, f)
        }
        _ if let Some((sign, _)) = SIGNS.iter().find(|(_, it)| *it == test) => match operands {
            [left, right] => write!(f, "{left} {sign} {right}"),
            _ => Err(fmt::Error),
        },
        _ => {
            let function = FUNCTIONS.iter().find(|(_, it, _)| *it == test).ok_or(fmt::Error)?;
            write!(f, "{}(", function.0)?;
            listed(operands, f)
        }
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(path) => path.fmt(f),
            Self::Size(path) => write!(f, "size({path})"),
            Self::Value(AttributeValue::N(number)) => f.write_str(number),
            Self::Value(AttributeValue::Bool(value)) => value.fmt(f),
            Self::Value(AttributeValue::S(text)) => write!(f, "'{}'", text.replace('\'', "''")),
            // No other value can be written.
            Self::Value(_) => f.write_str("null"),
        }
    }
}

impl Display for DocumentPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        named(f, &self.attribute)?;
        for step in &self.steps {
            match step {
                PathStep::Name(name) => {
                    f.write_char('.')?;
                    named(f, name)?;
                }
                PathStep::At(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

fn named(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    if is_plain(name) { f.write_str(name) } else { write!(f, "\"{}\"", name.replace('"', "\"\"")) }
}
