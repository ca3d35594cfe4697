//! Parses a condition's text.
//!
//! ```text
//! condition = conjunction *( OR conjunction )
//! conjunction = negation *( AND negation )
//! negation = NOT negation / "(" condition ")" / test
//! test = function / operand sign operand / operand BETWEEN operand AND operand / operand IN "(" operand *( "," operand ) ")"
//! ```
//!
//! An operand is an [expression](crate::expression). `AND`, `OR`, `NOT`, `BETWEEN` and `IN` may be in lower case.

use std::{cmp::Ordering, str::FromStr};

use serde_dynamo::AttributeValue;

use super::{Condition, Test, order};
use crate::expression::{
    DEPTH_MAX, Expression, ExpressionError,
    scanner::{Scanner, first},
};

/// Limit on the values of an `IN`: that of DynamoDB.
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

/// The type names that `attribute_type` accepts.
const TYPES: [&str; 10] = ["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"];

impl FromStr for Condition {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        whole(Scanner::of(text))
    }
}

/// The condition that a text is.
pub(crate) fn whole(mut scanner: Scanner<'_>) -> Result<Condition, ExpressionError> {
    let condition = scanner.condition(0)?;
    match scanner.rest() {
        "" => Ok(condition),
        rest => Err(scanner.wanted(&format!("AND, OR or the end is wanted before {}", first(rest)))),
    }
}

/// True if this is the name of a function that is a test.
pub(crate) fn is_test(name: &str) -> bool {
    FUNCTIONS.iter().any(|(function, ..)| *function == name)
}

impl Scanner<'_> {
    fn condition(&mut self, depth: usize) -> Result<Condition, ExpressionError> {
        let mut all = vec![self.conjunction(depth)?];
        while self.word("OR") {
            all.push(self.conjunction(depth)?);
        }
        Ok(joined(all, Condition::Or))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Condition, ExpressionError> {
        let mut all = vec![self.negation(depth)?];
        while self.word("AND") {
            all.push(self.negation(depth)?);
        }
        Ok(joined(all, Condition::And))
    }

    fn negation(&mut self, depth: usize) -> Result<Condition, ExpressionError> {
        if depth > DEPTH_MAX {
            return Err(self.wanted(&format!("more than {DEPTH_MAX} parentheses and NOTs are nested")));
        }
        if self.word("NOT") {
            return Ok(Condition::Not(Box::new(self.negation(depth + 1)?)));
        }
        if !self.rest().starts_with('(') {
            return self.test(depth);
        }
        // A parenthesis is around a condition, or around an expression.
        let before = *self;
        self.in_parentheses(depth).or_else(|error| {
            *self = before;
            self.test(depth).map_err(|other| if other.at > error.at { other } else { error })
        })
    }

    fn in_parentheses(&mut self, depth: usize) -> Result<Condition, ExpressionError> {
        self.must("an opening parenthesis", "(")?;
        let condition = self.condition(depth + 1)?;
        self.must("a closing parenthesis", ")")?;
        Ok(condition)
    }

    fn test(&mut self, depth: usize) -> Result<Condition, ExpressionError> {
        self.count()?;
        self.rest();
        let begin = self.at;
        if let Some((function, test, n_operands)) = FUNCTIONS.iter().find(|(function, ..)| self.exact(function)) {
            self.must("an opening parenthesis", "(")?;
            let is_of_value = matches!(test, Test::BeginsWith | Test::Contains);
            let mut operands = vec![if is_of_value { self.expression(depth)? } else { Expression::Path(self.path()?) }];
            for _ in 1..*n_operands {
                self.must(&format!("a comma, since {function} takes two operands,"), ",")?;
                operands.push(self.expression(depth)?);
            }
            self.must("a closing parenthesis", ")")?;
            return self.checked(begin, *test, operands);
        }
        let tested = self.expression(depth)?;
        if let Some((_, test)) = SIGNS.iter().find(|(sign, _)| self.sign(sign)) {
            let operands = vec![tested, self.expression(depth)?];
            return self.checked(begin, *test, operands);
        }
        if self.word("BETWEEN") {
            let low = self.expression(depth)?;
            if !self.word("AND") {
                return Err(self.wanted("AND is wanted, as in total BETWEEN 10 AND 20"));
            }
            let operands = vec![tested, low, self.expression(depth)?];
            return self.checked(begin, Test::Between, operands);
        }
        if self.word("IN") {
            self.must("an opening parenthesis", "(")?;
            let mut operands = vec![tested, self.expression(depth)?];
            while self.sign(",") {
                operands.push(self.expression(depth)?);
            }
            self.must("a comma or a closing parenthesis", ")")?;
            return self.checked(begin, Test::In, operands);
        }
        Err(self.wanted("a comparison is wanted: =, <>, <, <=, >, >=, BETWEEN or IN"))
    }

    /// Refuses a test that holds for every item or for none, and what DynamoDB refuses.
    fn checked(&self, begin: usize, test: Test, operands: Vec<Expression>) -> Result<Condition, ExpressionError> {
        let wrong = |what: &str| Err(self.error(begin, what));
        if operands.iter().all(|operand| operand.paths().is_empty()) {
            return wrong("it reads no attribute: a text stands in single quotes, and a name in none");
        }
        if operands.iter().skip(1).any(|operand| operands.first() == Some(operand)) {
            return wrong("it compares an attribute with itself, which DynamoDB refuses");
        }
        let mut types = operands.iter().filter_map(Expression::type_of);
        let one = types.next();
        match test {
            Test::Type => match operands.get(1) {
                Some(Expression::Literal(AttributeValue::S(name))) if TYPES.contains(&name.as_str()) => {}
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
        if let (Test::Between, [_, Expression::Literal(low), Expression::Literal(high)]) = (test, operands.as_slice())
            && order(low, high).is_some_and(Ordering::is_gt)
        {
            return wrong("BETWEEN takes the lower value first");
        }
        Ok(Condition::Test(test, operands))
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
