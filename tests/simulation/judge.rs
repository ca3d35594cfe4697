//! A second judge of guards, which shares no code with the product: it evaluates the text that DynamoDB would be sent.
//!
//! The simulation's tables judge each guard twice, by [`Guard::holds`] and by the text, and a run in which the two differ
//! fails. What an operator means is written here anew, by DynamoDB's developer guide ("Comparison operator and function
//! reference"): values of different types are neither equal nor ordered, numbers are compared by value, sets without
//! order, and `<>` holds of an attribute that is not there.

use std::{cmp::Ordering, collections::BTreeSet};

use derive::guard::{ConditionExpression, Guard};
use keys::item::Item;
use serde_dynamo::AttributeValue;

/// The partition key of the expression; an item that is there has it.
const PK: &str = "the partition key";

/// Judges a guard by its text, and compares that with the product's own judgement.
pub(crate) fn judged(guard: &Guard, item: Option<&Item>) -> bool {
    // A mutant asks nothing, and DynamoDB takes no empty expression.
    let by_text = guard.asks.is_empty() || holds(&guard.condition(PK), item);
    assert_eq!(by_text, guard.holds(item), "the text of a guard says this, and not: {guard:?} of {item:?}");
    by_text
}

/// Does this condition hold of the item?
fn holds(condition: &ConditionExpression, item: Option<&Item>) -> bool {
    let mut parser = Parser { condition, item, rest: &condition.expression, used: BTreeSet::new() };
    let holds = parser.any();
    assert!(parser.rest.trim().is_empty(), "DynamoDB would refuse: {condition:?}");
    let placeholders: BTreeSet<&str> =
        condition.names.keys().chain(condition.values.keys()).map(String::as_str).collect();
    assert_eq!(parser.used, placeholders, "DynamoDB would refuse unused placeholders: {condition:?}");
    holds
}

/// Reads an expression from its beginning, and evaluates what it has read.
struct Parser<'a> {
    condition: &'a ConditionExpression,
    item: Option<&'a Item>,
    rest: &'a str,
    used: BTreeSet<&'a str>,
}

impl<'a> Parser<'a> {
    /// Takes this token, if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn any(&mut self) -> bool {
        let mut holds = self.all();
        while self.takes("OR ") {
            holds |= self.all();
        }
        holds
    }

    fn all(&mut self) -> bool {
        let mut holds = self.one();
        while self.takes("AND ") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.takes("NOT ") {
            return !self.one();
        }
        if self.takes("(") {
            let holds = self.any();
            assert!(self.takes(")"), "{:?}", self.condition);
            return holds;
        }
        let functions: [(&str, usize, Function); 3] = [
            ("attribute_exists", 1, |of| of[0].is_some()),
            ("attribute_not_exists", 1, |of| of[0].is_none()),
            ("contains", 2, |of| of[0].zip(of[1]).is_some_and(|(stored, part)| contains(stored, part))),
        ];
        for (name, n_arguments, function) in functions {
            if self.takes(name) {
                assert!(self.takes("("), "{:?}", self.condition);
                let mut arguments = vec![self.operand()];
                while self.takes(",") {
                    arguments.push(self.operand());
                }
                assert!(self.takes(")") && arguments.len() == n_arguments, "{:?}", self.condition);
                return function(&arguments);
            }
        }
        self.comparison()
    }

    fn comparison(&mut self) -> bool {
        let left = self.operand();
        // The longer ones first.
        let operators: [(&str, Comparison); 4] =
            [("<=", Ordering::is_le), (">=", Ordering::is_ge), ("<", Ordering::is_lt), (">", Ordering::is_gt)];
        if self.takes("<>") {
            let right = self.operand();
            return !left.zip(right).is_some_and(|(left, right)| equal(left, right));
        }
        if self.takes("=") {
            let right = self.operand();
            return left.zip(right).is_some_and(|(left, right)| equal(left, right));
        }
        let is = operators.into_iter().find_map(|(token, is)| self.takes(token).then_some(is));
        let is = is.unwrap_or_else(|| panic!("DynamoDB would refuse: {:?}", self.condition));
        let right = self.operand();
        left.zip(right).and_then(|(left, right)| order(left, right)).is_some_and(is)
    }

    /// The value behind the placeholder that comes next.
    fn operand(&mut self) -> Option<&'a AttributeValue> {
        let text = self.rest.trim_start();
        let end =
            text.find(|c: char| !matches!(c, '#' | ':' | '_') && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (placeholder, rest) = text.split_at(end);
        self.rest = rest;
        self.used.insert(placeholder);
        if placeholder.starts_with(':') {
            return Some(&self.condition.values[placeholder]);
        }
        match self.condition.names[placeholder].as_str() {
            PK => self.item.map(|_| &KEY),
            name => self.item?.get(name),
        }
    }
}

/// A function of an expression, by its arguments.
type Function = fn(&[Option<&AttributeValue>]) -> bool;

/// A comparison of an expression, by the order of its operands.
type Comparison = fn(Ordering) -> bool;

/// What a key attribute of an item that exists is, where nothing but its existence is asked.
static KEY: AttributeValue = AttributeValue::Bool(true);

/// The order of two texts, numbers or binary values.
fn order(one: &AttributeValue, other: &AttributeValue) -> Option<Ordering> {
    match (one, other) {
        (AttributeValue::S(one), AttributeValue::S(other)) => Some(one.as_bytes().cmp(other.as_bytes())),
        (AttributeValue::N(one), AttributeValue::N(other)) => Some(Decimal::read(one).cmp(&Decimal::read(other))),
        (AttributeValue::B(one), AttributeValue::B(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

fn equal(one: &AttributeValue, other: &AttributeValue) -> bool {
    use AttributeValue::{B, Bool, Bs, L, M, N, Ns, Null, S, Ss};
    match (one, other) {
        (S(_), S(_)) | (N(_), N(_)) | (B(_), B(_)) => order(one, other) == Some(Ordering::Equal),
        (Bool(one), Bool(other)) => one == other,
        (Null(_), Null(_)) => true,
        (Ss(one), Ss(other)) => one.iter().collect::<BTreeSet<_>>() == other.iter().collect(),
        (Bs(one), Bs(other)) => one.iter().collect::<BTreeSet<_>>() == other.iter().collect(),
        (Ns(one), Ns(other)) => {
            let [one, other] =
                [one, other].map(|set| set.iter().map(|text| Decimal::read(text)).collect::<BTreeSet<_>>());
            one == other
        }
        (L(one), L(other)) => one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other)),
        (M(one), M(other)) => {
            let is_there = |(name, value): (&String, _)| other.get(name).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(is_there)
        }
        _ => false,
    }
}

fn contains(stored: &AttributeValue, part: &AttributeValue) -> bool {
    match (stored, part) {
        (AttributeValue::S(stored), AttributeValue::S(part)) => stored.contains(part.as_str()),
        (AttributeValue::Ss(stored), AttributeValue::S(part)) => stored.contains(part),
        (AttributeValue::Bs(stored), AttributeValue::B(part)) => stored.contains(part),
        (AttributeValue::Ns(stored), AttributeValue::N(part)) => {
            stored.iter().any(|stored| Decimal::read(stored) == Decimal::read(part))
        }
        (AttributeValue::L(stored), part) => stored.iter().any(|stored| equal(stored, part)),
        _ => false,
    }
}

/// A decimal number, `0.digits` times ten to a power; its digits neither begin nor end with zero.
#[derive(PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    power: i32,
    digits: Vec<u8>,
}

impl Decimal {
    fn read(text: &str) -> Self {
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let is_negative = mantissa.starts_with('-');
        let (whole, fraction) = mantissa
            .trim_start_matches(['-', '+'])
            .split_once('.')
            .unwrap_or((mantissa.trim_start_matches(['-', '+']), ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let Some(first) = digits.iter().position(|digit| *digit != b'0') else {
            return Self { is_negative: false, power: 0, digits: Vec::new() };
        };
        let last = digits.iter().rposition(|digit| *digit != b'0').unwrap();
        let power: i32 =
            power.parse::<i32>().unwrap() + i32::try_from(whole.len()).unwrap() - i32::try_from(first).unwrap();
        Self { is_negative, power, digits: digits[first..=last].to_vec() }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |it: &Self| match (it.digits.is_empty(), it.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let by_size = || self.power.cmp(&other.power).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => by_size(),
            _ => by_size().reverse(),
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::{n, s};

    fn text_holds(expression: &str, value: &AttributeValue) -> bool {
        let item = Item::from([
            ("N".to_owned(), n("-1.50")),
            ("S".to_owned(), s("b")),
            ("Set".to_owned(), AttributeValue::Ss(vec!["x".to_owned(), "y".to_owned()])),
            ("Ns".to_owned(), AttributeValue::Ns(vec!["1".to_owned(), "20".to_owned()])),
            ("Null".to_owned(), AttributeValue::Null(true)),
        ]);
        // `{S}` stands for a placeholder of that attribute.
        let (name, rest) = expression.split_once('}').unwrap();
        let (before, name) = name.split_once('{').unwrap();
        let names = [("#g0".to_owned(), name.to_owned())].into();
        let expression = format!("{before}#g0{rest}").replace(&format!("{{{name}}}"), "#g0");
        let is_used = expression.contains(":v");
        let values = is_used.then(|| (":v".to_owned(), value.clone())).into_iter().collect();
        holds(&ConditionExpression { expression, names, values }, Some(&item))
    }

    #[test]
    fn the_text_of_a_condition_is_evaluated_by_the_rules_of_dynamodb() {
        let of_numbers = [
            ("{N} = :v", "-15e-1", true),
            ("{N} = :v", "1.5", false),
            ("{N} < :v", "-1.4999", true),
            ("{N} < :v", "-2", false),
            ("{N} >= :v", "-150E-2", true),
            ("{N} > :v", "-10", true),
            ("{N} <= :v", "0", true),
            ("{S} = :v", "1", false),
            ("{S} <> :v", "1", true),
            ("{S} < :v", "1", false),
            ("{S} >= :v", "1", false),
            ("{None} <> :v", "1", true),
            ("{None} = :v", "1", false),
            ("contains({Ns}, :v)", "2E1", true),
            ("contains({Set}, :v)", "1", false),
            ("NOT contains({None}, :v)", "1", true),
        ];
        for (expression, value, wanted) in of_numbers {
            assert_eq!(text_holds(expression, &n(value)), wanted, "{expression} with {value}");
        }
        let of_texts = [
            ("{S} < :v", "ba", true),
            ("{S} > :v", "B", true),
            ("contains({Set}, :v)", "y", true),
            ("NOT contains({Set}, :v)", "y", false),
            ("contains({S}, :v)", "b", true),
            ("attribute_exists({Null})", "", true),
            ("attribute_not_exists({None})", "", true),
            ("(attribute_not_exists({S}) OR {S} = :v)", "b", true),
            ("(attribute_not_exists({S}) OR {S} = :v) AND {S} <> :v", "b", false),
            ("{S} = :v OR {S} <> :v AND attribute_not_exists({S})", "b", true),
        ];
        for (expression, value, wanted) in of_texts {
            assert_eq!(text_holds(expression, &s(value)), wanted, "{expression} with {value}");
        }
        let set = AttributeValue::Ss(vec!["y".to_owned(), "x".to_owned()]);
        assert!(text_holds("{Set} = :v", &set));
        let set = AttributeValue::Ns(vec!["2e1".to_owned(), "1.0".to_owned()]);
        assert!(text_holds("{Ns} = :v", &set));
        assert!(!text_holds("{Null} = :v", &AttributeValue::Bool(true)));
    }
}
