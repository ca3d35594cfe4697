//! Conditions: which items of an entity take part in a derivation.
//!
//! A condition uses DynamoDB's condition syntax, with literal values: `status IN ('paid', 'sent') AND total > 0`. Its
//! operands are [expressions](crate::expression). Without functions and operators that DynamoDB lacks, it holds for an
//! item exactly if DynamoDB would say so: values of different types are never equal and have no order, and a missing
//! value satisfies only `<>` and `attribute_not_exists`.
//!
//! It is decided from left to right, and only as far as necessary, so `attribute_type(a, 'N') AND a * 2 > b` is decided
//! for an item whose `a` is a text. An item for which an operand cannot be calculated is unreadable.

mod parse;

use std::{
    cmp::Ordering,
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
};

use keys::{item::Item, number::Decimal, value};
use serde_dynamo::AttributeValue;

use crate::{
    condition::parse::{FUNCTIONS, SIGNS},
    expression::{DocumentPath, Expression, Values, listed},
    schema::Unreadable,
};

pub(crate) use self::parse::{is_test, whole};

/// Condition for an item to take part.
///
/// ```
/// use derive::condition::Condition;
/// use keys::item::Item;
/// use serde_dynamo::AttributeValue;
///
/// let condition: Condition = "status = 'paid' OR total >= 100".parse().unwrap();
/// let order = Item::from([("total".to_owned(), AttributeValue::N("250".to_owned()))]);
/// assert_eq!(condition.holds(&order), Ok(true));
/// assert_eq!(condition.to_string(), "status = 'paid' OR total >= 100");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Every item takes part.
    Always,
    /// All of these hold.
    And(Vec<Self>),
    /// One of these holds.
    Or(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// A test of these operands, the tested one first.
    Test(Test, Vec<Expression>),
}

/// A test of operands. A missing operand passes only [`Differs`](Self::Differs) and [`Lacks`](Self::Lacks).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `=`: the same value.
    Equal,
    /// `<>`: different values, or one of them is missing.
    Differs,
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `BETWEEN`: at least the second, and at most the third.
    Between,
    /// `IN`: the same as one of the others.
    In,
    /// `attribute_exists`
    Exists,
    /// `attribute_not_exists`
    Lacks,
    /// `attribute_type`: its type has the second's name.
    Type,
    /// `begins_with`: a text or a binary value that begins with the second.
    BeginsWith,
    /// `contains`: a text that has the second as a part, or a set or a list that has it as an element.
    Contains,
}

/// The type of an operand that is calculated, or a literal number, text or boolean.
fn type_of(operand: &Expression) -> Option<&'static str> {
    operand.type_of().filter(|of| matches!(*of, "S" | "N" | "BOOL"))
}

impl Condition {
    /// The attribute is this text.
    #[must_use]
    pub fn is(attribute: &str, text: &str) -> Self {
        Self::compare(attribute, Test::Equal, AttributeValue::S(text.to_owned()))
    }

    /// The attribute is another text than this, or is missing.
    #[must_use]
    pub fn is_not(attribute: &str, text: &str) -> Self {
        Self::compare(attribute, Test::Differs, AttributeValue::S(text.to_owned()))
    }

    /// The attribute is not true, or is missing.
    #[must_use]
    pub fn not(attribute: &str) -> Self {
        Self::Not(Box::new(Self::compare(attribute, Test::Equal, AttributeValue::Bool(true))))
    }

    fn compare(attribute: &str, test: Test, value: AttributeValue) -> Self {
        Self::Test(test, vec![Expression::Path(DocumentPath::of(attribute)), Expression::Literal(value)])
    }

    /// True if it holds for an item, or its image.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if an operand cannot be calculated.
    pub fn holds<'a>(&'a self, of: impl Into<Values<'a>>) -> Result<bool, Unreadable> {
        self.decided(of.into())
    }

    fn decided(&self, of: Values<'_>) -> Result<bool, Unreadable> {
        match self {
            Self::Always => Ok(true),
            Self::And(all) => {
                for condition in all {
                    if !condition.decided(of)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(all) => {
                for condition in all {
                    if condition.decided(of)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(condition) => condition.decided(of).map(|holds| !holds),
            Self::Test(test, operands) => {
                let values = operands.iter().map(|operand| operand.value(of)).collect::<Result<Vec<_>, _>>()?;
                Ok(test.holds(&values.iter().map(Option::as_deref).collect::<Vec<_>>()))
            }
        }
    }

    /// The fields and attributes that it reads.
    #[must_use]
    pub fn attributes(&self) -> Vec<&str> {
        self.paths().into_iter().map(|path| path.attribute.as_str()).collect()
    }

    /// The fields and attributes that are compared with literals or calculated values, each with the type of one of them,
    /// such as `S`.
    #[must_use]
    pub fn compared(&self) -> Vec<(&str, &'static str)> {
        let mut compared = Vec::new();
        for (_, operands) in self.tests().into_iter().filter(|(test, _)| test.compares()) {
            for operand in operands {
                let Expression::Path(DocumentPath { attribute, steps }) = operand else { continue };
                let types = operands.iter().filter(|_| steps.is_empty()).filter_map(type_of);
                compared.extend(types.map(|of| (attribute.as_str(), of)));
            }
        }
        compared
    }

    /// The first attribute of an item that is compared only with values of other types, and the problem. Such a
    /// comparison never holds, except for `<>`, and is rarely intended. Nulls, and attributes whose type is tested, are
    /// exempt.
    #[must_use]
    pub fn unlike(&self, item: &Item) -> Option<(&DocumentPath, String)> {
        let tests = self.tests();
        let of = |path: &DocumentPath| {
            let about = tests.iter().filter(|(_, operands)| {
                operands.iter().any(|operand| matches!(operand, Expression::Path(other) if other == path))
            });
            about.collect::<Vec<_>>()
        };
        let attributes = tests.iter().filter(|(test, _)| test.compares()).flat_map(|(_, operands)| operands.iter());
        attributes.into_iter().find_map(|operand| {
            let Expression::Path(path) = operand else { return None };
            let held = path.value(item).filter(|held| !matches!(held, AttributeValue::Null(_)))?;
            let about = of(path);
            let is_tested = about.iter().any(|(test, _)| *test == Test::Type);
            let compared = about.iter().filter(|(test, _)| test.compares()).flat_map(|(_, operands)| operands.iter());
            let types: BTreeSet<&str> = compared.filter_map(type_of).collect();
            let is_unlike = !is_tested && !types.is_empty() && !types.contains(value::type_of(held));
            let types = types.into_iter().collect::<Vec<_>>().join(" and ");
            is_unlike
                .then(|| (path, format!("is {}, and the condition compares it with {types}", value::type_of(held))))
        })
    }

    /// The paths that it reads, in the order of its text.
    #[must_use]
    pub fn paths(&self) -> Vec<&DocumentPath> {
        self.tests().into_iter().flat_map(|(_, operands)| operands).flat_map(Expression::paths).collect()
    }

    /// Its operands.
    pub fn operands(&self) -> impl Iterator<Item = &Expression> {
        self.tests().into_iter().flat_map(|(_, operands)| operands)
    }

    /// The condition in words; `None` if every item takes part.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        (*self != Self::Always).then(|| format!("where {self}"))
    }

    /// Its tests, each with its operands.
    pub(crate) fn tests(&self) -> Vec<(Test, &[Expression])> {
        match self {
            Self::Always => Vec::new(),
            Self::And(all) | Self::Or(all) => all.iter().flat_map(Self::tests).collect(),
            Self::Not(condition) => condition.tests(),
            Self::Test(test, operands) => vec![(*test, operands)],
        }
    }
}

impl Test {
    /// True if it compares values, which must have the same type to match.
    const fn compares(self) -> bool {
        !matches!(self, Self::Exists | Self::Lacks | Self::Type | Self::Contains)
    }

    fn holds(self, values: &[Option<&AttributeValue>]) -> bool {
        let order = |at: usize| match (values.first()?, values.get(at)?) {
            (Some(value), Some(other)) => order(value, other),
            _ => None,
        };
        match (self, values) {
            (Self::Equal, [Some(value), Some(other)]) => value::same(Some(value), Some(other)),
            (Self::Differs, [value, other]) => value.is_none() || other.is_none() || !value::same(*value, *other),
            (Self::Below, _) => order(1).is_some_and(Ordering::is_lt),
            (Self::AtMost, _) => order(1).is_some_and(Ordering::is_le),
            (Self::Above, _) => order(1).is_some_and(Ordering::is_gt),
            (Self::AtLeast, _) => order(1).is_some_and(Ordering::is_ge),
            (Self::Between, _) => order(1).is_some_and(Ordering::is_ge) && order(2).is_some_and(Ordering::is_le),
            (Self::In, [Some(value), others @ ..]) => {
                others.iter().flatten().any(|other| value::same(Some(value), Some(other)))
            }
            (Self::Exists, [value]) => value.is_some(),
            (Self::Lacks, [value]) => value.is_none(),
            (Self::Type, [Some(value), Some(AttributeValue::S(name))]) => value::type_of(value) == name,
            (Self::BeginsWith, [Some(value), Some(prefix)]) => match (value, prefix) {
                (AttributeValue::S(text), AttributeValue::S(prefix)) => text.starts_with(prefix.as_str()),
                (AttributeValue::B(bytes), AttributeValue::B(prefix)) => bytes.starts_with(prefix),
                _ => false,
            },
            (Self::Contains, [Some(value), Some(part)]) => contains(value, part),
            _ => false,
        }
    }
}

/// The order of two values of one type; texts and binary values by their bytes.
fn order(value: &AttributeValue, other: &AttributeValue) -> Option<Ordering> {
    match (value, other) {
        (AttributeValue::S(value), AttributeValue::S(other)) => Some(value.cmp(other)),
        (AttributeValue::B(value), AttributeValue::B(other)) => Some(value.cmp(other)),
        (AttributeValue::N(value), AttributeValue::N(other)) => {
            Some(Decimal::parse(value)?.cmp(&Decimal::parse(other)?))
        }
        _ => None,
    }
}

fn contains(value: &AttributeValue, part: &AttributeValue) -> bool {
    let is_part = |element: &AttributeValue| value::same(Some(element), Some(part));
    match (value, part) {
        (AttributeValue::S(text), AttributeValue::S(part)) => text.contains(part.as_str()),
        (AttributeValue::Ss(texts), AttributeValue::S(part)) => texts.contains(part),
        (AttributeValue::Ns(numbers), AttributeValue::N(_)) => {
            numbers.iter().any(|number| is_part(&AttributeValue::N(number.clone())))
        }
        (AttributeValue::Bs(values), AttributeValue::B(part)) => values.contains(part),
        (AttributeValue::L(elements), _) => elements.iter().any(is_part),
        _ => false,
    }
}

// ---- The text of a condition, in the form that [`parse`](super::parse) reads ----

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

fn tested(f: &mut Formatter<'_>, test: Test, operands: &[Expression]) -> fmt::Result {
    match (test, operands) {
        (Test::Between, [operand, low, high]) => write!(f, "{operand} BETWEEN {low} AND {high}"),
        (Test::In, [operand, all @ ..]) => {
            write!(f, "{operand} IN (")?;
            listed(f, all)
        }
        _ if let Some((sign, _)) = SIGNS.iter().find(|(_, it)| *it == test) => match operands {
            [left, right] => write!(f, "{left} {sign} {right}"),
            _ => Err(fmt::Error),
        },
        _ => {
            let function = FUNCTIONS.iter().find(|(_, it, _)| *it == test).ok_or(fmt::Error)?;
            write!(f, "{}(", function.0)?;
            listed(f, operands)
        }
    }
}

#[cfg(test)]
mod tests;
