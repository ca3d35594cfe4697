//! Conditions: which items of an entity take part in a derivation.
//!
//! A condition is written in DynamoDB's condition syntax, with the values in place: `status IN ('paid', 'sent') AND
//! total > 0`. It holds for the items for which DynamoDB says that it holds. So every item has an answer: values of two types are
//! never equal and have no order, and a missing attribute meets nothing but `<>` and `attribute_not_exists`.

pub(crate) mod document_path;
mod operand;
mod parse;
mod scanner;
mod text;

use std::{cmp::Ordering, collections::BTreeSet};

use keys::{item::Item, number::Decimal, value};
use serde_dynamo::AttributeValue;

pub use self::{
    document_path::{DocumentPath, PathStep, is_path},
    operand::Operand,
    scanner::ConditionError,
};

/// What must hold for an item to take part.
///
/// ```
/// use derive::condition::Condition;
/// use keys::item::Item;
/// use serde_dynamo::AttributeValue;
///
/// let condition: Condition = "status = 'paid' OR total >= 100".parse().unwrap();
/// let order = Item::from([("total".to_owned(), AttributeValue::N("250".to_owned()))]);
/// assert!(condition.holds(&order));
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
    Test(Test, Vec<Operand>),
}

/// What is asked of operands. A missing one passes only [`Differs`](Self::Differs) and [`Lacks`](Self::Lacks).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `=`: the same value.
    Equal,
    /// `<>`: another value, or only one is there.
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

/// The type of a value that a comparison with a number, a text or a truth has.
const fn type_of(operand: &Operand) -> Option<&'static str> {
    match operand {
        Operand::Value(AttributeValue::S(_)) => Some("S"),
        Operand::Value(AttributeValue::N(_)) => Some("N"),
        Operand::Value(AttributeValue::Bool(_)) => Some("BOOL"),
        _ => None,
    }
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
        Self::Test(test, vec![Operand::Attribute(DocumentPath::of(attribute)), Operand::Value(value)])
    }

    /// Does it hold for this item?
    #[must_use]
    pub fn holds(&self, item: &Item) -> bool {
        match self {
            Self::Always => true,
            Self::And(all) => all.iter().all(|condition| condition.holds(item)),
            Self::Or(all) => all.iter().any(|condition| condition.holds(item)),
            Self::Not(condition) => !condition.holds(item),
            Self::Test(test, operands) => {
                let values: Vec<_> = operands.iter().map(|operand| operand.value(item)).collect();
                test.holds(&values.iter().map(Option::as_deref).collect::<Vec<_>>())
            }
        }
    }

    /// The attributes that decide.
    #[must_use]
    pub fn attributes(&self) -> Vec<&str> {
        self.tests().into_iter().flat_map(|(_, operands)| operands).filter_map(Operand::attribute).collect()
    }

    /// The attributes that are compared with values, each with the type of one, such as `S`.
    #[must_use]
    pub fn compared(&self) -> Vec<(&str, &'static str)> {
        let mut compared = Vec::new();
        for (_, operands) in self.tests().into_iter().filter(|(test, _)| test.compares()) {
            for operand in operands {
                let Operand::Attribute(DocumentPath { attribute, steps }) = operand else { continue };
                let types = operands.iter().filter(|_| steps.is_empty()).filter_map(type_of);
                compared.extend(types.map(|of| (attribute.as_str(), of)));
            }
        }
        compared
    }

    /// The first attribute of an item that it compares with values of other types only, and what is wrong. Such a comparison
    /// never holds but for `<>`, which is seldom meant; a null is, and so is an attribute whose type is tested.
    #[must_use]
    pub fn unlike(&self, item: &Item) -> Option<(&DocumentPath, String)> {
        let tests = self.tests();
        let of = |path: &DocumentPath| {
            let about = tests.iter().filter(|(_, operands)| {
                operands.iter().any(|operand| matches!(operand, Operand::Attribute(other) if other == path))
            });
            about.collect::<Vec<_>>()
        };
        let attributes = tests.iter().filter(|(test, _)| test.compares()).flat_map(|(_, operands)| operands.iter());
        attributes.into_iter().find_map(|operand| {
            let Operand::Attribute(path) = operand else { return None };
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

    /// The values inside of attributes that it reads: each path, with its attribute.
    #[must_use]
    pub fn paths(&self) -> Vec<(&DocumentPath, &str)> {
        let read = self.tests().into_iter().flat_map(|(_, operands)| operands);
        let paths = read.filter_map(|operand| match operand {
            Operand::Attribute(path) | Operand::Size(path) => Some((path, path.attribute.as_str())),
            Operand::Value(_) => None,
        });
        paths.filter(|(path, _)| !path.steps.is_empty()).collect()
    }

    /// What must hold, in words; `None` where every item takes part.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        (*self != Self::Always).then(|| format!("where {self}"))
    }

    fn tests(&self) -> Vec<(Test, &[Operand])> {
        match self {
            Self::Always => Vec::new(),
            Self::And(all) | Self::Or(all) => all.iter().flat_map(Self::tests).collect(),
            Self::Not(condition) => condition.tests(),
            Self::Test(test, operands) => vec![(*test, operands)],
        }
    }
}

impl Test {
    /// Does it compare values, which are of one type where it is meant to hold?
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

/// How two values of one type are ordered: texts and binary values by their bytes.
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

#[cfg(test)]
mod tests;
