//! Conditions: which items of an entity take part in a derivation.
//!
//! A condition uses DynamoDB's condition syntax, with literal values: `status IN ('paid', 'sent') AND total > 0`. Its
//! operands are [expressions](crate::expression). Without functions and operators that DynamoDB lacks, it holds for an
//! item exactly if DynamoDB would say so: values of different types are never equal and have no order, and a missing
//! value satisfies only `<>` and `attribute_not_exists`.
//!
//! ```text
//! condition = conjunction *( OR conjunction )
//! conjunction = negation *( AND negation )
//! negation = NOT negation / "(" condition ")" / test
//! test = function / operand sign operand / operand BETWEEN operand AND operand / operand IN "(" operand *( "," operand ) ")"
//! ```
//!
//! `AND`, `OR`, `NOT`, `BETWEEN` and `IN` may be in lower case.
//!
//! It is decided from left to right, and only as far as necessary, so `attribute_type(a, 'N') AND a * 2 > b` is decided
//! for an item whose `a` is a text. An item for which an operand cannot be calculated is unreadable.

use std::{
    cmp::Ordering,
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
    str::FromStr,
};

use keys::{item::Item, number::Decimal, value};
use serde_dynamo::AttributeValue;

use crate::{
    expression::{
        DocumentPath, Expression, ExpressionError, Values, listed,
        parse::{DEPTH_MAX, Scanner, first},
    },
    schema::Unreadable,
};

/// Limit on the values of an `IN`: that of DynamoDB.
const IN_MAX: usize = 100;

/// The comparison signs, the longer ones first.
const SIGNS: [(&str, Test); 6] = [
    ("<>", Test::Differs),
    ("<=", Test::AtMost),
    (">=", Test::AtLeast),
    ("=", Test::Equal),
    ("<", Test::Below),
    (">", Test::Above),
];

/// The functions that are tests, each with its number of operands.
const FUNCTIONS: [(&str, Test, usize); 5] = [
    ("attribute_exists", Test::Exists, 1),
    ("attribute_not_exists", Test::Lacks, 1),
    ("attribute_type", Test::Type, 2),
    ("begins_with", Test::BeginsWith, 2),
    ("contains", Test::Contains, 2),
];

/// The type names that `attribute_type` accepts.
const TYPES: [&str; 10] = ["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"];

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
        let of = of.into();
        match self {
            Self::Always => Ok(true),
            Self::And(all) => {
                for condition in all {
                    if !condition.holds(of)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(all) => {
                for condition in all {
                    if condition.holds(of)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(condition) => condition.holds(of).map(|holds| !holds),
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
            let stored = path.value(item).filter(|stored| !matches!(stored, AttributeValue::Null(_)))?;
            let about = of(path);
            let is_tested = about.iter().any(|(test, _)| *test == Test::Type);
            let compared = about.iter().filter(|(test, _)| test.compares()).flat_map(|(_, operands)| operands.iter());
            let types: BTreeSet<&str> = compared.filter_map(type_of).collect();
            let is_unlike = !is_tested && !types.is_empty() && !types.contains(value::type_of(stored));
            let types = types.into_iter().collect::<Vec<_>>().join(" and ");
            is_unlike
                .then(|| (path, format!("is {}, and the condition compares it with {types}", value::type_of(stored))))
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

// ---- The text of a condition, in the form that is parsed ----

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

// ---- Parses a condition's text ----

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
        Ok(combined(all, Condition::Or))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Condition, ExpressionError> {
        let mut all = vec![self.negation(depth)?];
        while self.word("AND") {
            all.push(self.negation(depth)?);
        }
        Ok(combined(all, Condition::And))
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
fn combined(mut all: Vec<Condition>, join: impl FnOnce(Vec<Condition>) -> Condition) -> Condition {
    match all.pop() {
        Some(one) if all.is_empty() => one,
        last => {
            all.extend(last);
            join(all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{n, s};

    /// An order of a shop.
    fn order() -> Item {
        let lines = [("sku", s("A-1")), ("count", n("2"))].map(|(name, value)| (name.to_owned(), value));
        let attributes = [
            ("status", s("paid")),
            ("total", n("19.90")),
            ("gift", AttributeValue::Bool(false)),
            ("note", AttributeValue::Null(true)),
            ("tags", AttributeValue::Ss(vec!["new".to_owned(), "large".to_owned()])),
            ("sizes", AttributeValue::Ns(vec!["1.0".to_owned(), "2".to_owned()])),
            ("lines", AttributeValue::L(vec![AttributeValue::M(lines.into()), n("7")])),
            ("digest", AttributeValue::B(vec![1, 2, 3])),
            ("first-name", s("Ann")),
        ];
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn holds(condition: &str) -> bool {
        let condition: Condition = condition.parse().unwrap_or_else(|error| panic!("{condition}: {error}"));
        condition.holds(&order()).unwrap()
    }

    #[test]
    fn it_holds_as_dynamodb_says() {
        for condition in [
            "status = 'paid'",
            "status <> 'sent'",
            "missing <> 'sent'",
            "status IN ('sent', 'paid')",
            "total > 19.8 AND total < 2E1",
            "total BETWEEN 19.9 AND 20",
            "status BETWEEN 'p' AND 'q'",
            "100 >= total",
            "gift = false",
            "note = null",
            "NOT missing = true",
            "NOT (status = 'sent' OR total > 20)",
            "status = 'sent' OR status = 'open' OR total = 19.9",
            "attribute_exists(status) AND attribute_not_exists(missing)",
            "attribute_exists(lines[0].sku) AND attribute_not_exists(lines[2])",
            "attribute_type(total, 'N') AND attribute_type(lines[0], 'M')",
            "begins_with(lines[0].sku, 'A-')",
            "contains(status, 'ai')",
            "contains(tags, 'new') AND contains(sizes, 1) AND contains(lines, 7)",
            "size(tags) = 2 AND size(status) = 4 AND size(digest) = 3 AND size(lines[0]) = 2",
            "\"first-name\" = 'Ann'",
            "total > lines[0].count",
        ] {
            assert!(holds(condition), "{condition}");
            assert!(!holds(&format!("NOT ({condition})")), "{condition}");
        }
        for condition in [
            "missing = 'paid'",
            "missing < 3",
            "missing BETWEEN 1 AND 2",
            "missing IN ('a')",
            "begins_with(missing, 'a')",
            "size(total) > 0",
            "contains(total, 1)",
            "status = missing",
            "lines[0].sku.name = 'A'",
            "status = total",
        ] {
            assert!(!holds(condition), "{condition}");
            assert!(holds(&format!("NOT ({condition})")), "{condition}");
        }
    }

    #[test]
    fn values_of_two_types_are_never_equal_and_have_no_order() {
        for condition in
            ["status = 1", "total > 'a'", "total <= 'a'", "lines[0].count IN ('a')", "status = true", "note = true"]
        {
            assert!(!holds(condition), "{condition}");
            assert!(holds(&format!("NOT {condition}")), "{condition}");
        }
        for condition in ["begins_with(total, '1')", "note BETWEEN 1 AND 2", "gift IN ('a', 'b')", "total = null"] {
            assert!(!holds(condition), "{condition}");
        }
        for condition in ["note <> true", "total <> 'a'", "status <> null", "status = 1 OR total > 1", "tags <> 'new'"]
        {
            assert!(holds(condition), "{condition}");
        }
    }

    #[test]
    fn its_text_is_written_in_one_way() {
        for (written, text) in [
            ("a='x'", "a = 'x'"),
            ("a = 'it''s'  or  not b in(1,2.50)", "a = 'it''s' OR NOT b IN (1, 2.5)"),
            ("(a = 1 AND b = 2) OR c = 3", "a = 1 AND b = 2 OR c = 3"),
            ("a = 1 AND (b = 2 OR c = 3)", "a = 1 AND (b = 2 OR c = 3)"),
            ("NOT (a = 1 AND b = 2)", "NOT (a = 1 AND b = 2)"),
            ("NOT ((a = 1))", "NOT a = 1"),
            ("\"a.b\".c[10] <= size(d)", "\"a.b\".c[10] <= size(d)"),
            ("\"and\" = null", "\"and\" = null"),
            ("x between 1 and 2 and y = 1", "x BETWEEN 1 AND 2 AND y = 1"),
        ] {
            let condition: Condition = written.parse().unwrap();
            assert_eq!(condition.to_string(), text);
            assert_eq!(text.parse(), Ok(condition));
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_what_would_do() {
        for (written, error) in [
            ("", "at character 1: it ends where an attribute or a value is wanted"),
            ("status", "at character 7: a comparison is wanted: =, <>, <, <=, >, >=, BETWEEN or IN"),
            (
                "status == 'paid'",
                "at character 9: an attribute or a value is wanted: a single = says that two values are equal",
            ),
            ("status = 'paid", "at character 10: the quote is not closed"),
            ("status = \"paid", "at character 10: the quote is not closed"),
            (
                "status = :paid",
                "at character 10: \":paid\" is a placeholder: write the value or the name itself, a text in single quotes",
            ),
            ("status = 'paid' total > 1", "at character 17: AND, OR or the end is wanted before \"total\""),
            ("status IN ('a' 'b')", "at character 16: a comma or a closing parenthesis is wanted before \"'b')\""),
            ("(a = 1", "at character 7: a closing parenthesis is wanted at the end"),
            ("total BETWEEN 1", "at character 16: AND is wanted, as in total BETWEEN 10 AND 20"),
            ("total > 1e999", "at character 9: \"1e999\" is no number that DynamoDB holds"),
            ("1 = 1", "at character 1: it reads no attribute: a text stands in single quotes, and a name in none"),
            ("gift > true", "at character 1: true, false and null have no order: compare them with = or <>"),
            ("a IN (1, 'b')", "at character 1: it compares values of several types"),
            (
                "attribute_type(a, 'X')",
                "at character 1: attribute_type takes one of 'S', 'N', 'B', 'BOOL', 'NULL', 'SS', 'NS', 'BS', 'L', 'M'",
            ),
            ("a[0] = 1 OR b.c < b.c", "at character 13: it compares an attribute with itself, which DynamoDB refuses"),
            ("a BETWEEN 2 AND 1", "at character 1: BETWEEN takes the lower value first"),
            ("begins_with(a, 1)", "at character 1: begins_with takes a text"),
            (
                "begins_with(a)",
                "at character 14: a comma, since begins_with takes two operands, is wanted before \")\"",
            ),
            (
                "or = 1",
                "at character 1: \"or\" is no name here: an attribute that is called so stands in double quotes",
            ),
            ("a[x] = 1", "at character 3: a position in the list is wanted, from 0"),
            ("\"\" = 1", "at character 1: an attribute's name is empty"),
        ] {
            assert_eq!(written.parse::<Condition>().unwrap_err().to_string(), error, "{written}");
        }
        let nested = format!("{}a = 1", "NOT ".repeat(60));
        assert!(nested.parse::<Condition>().unwrap_err().what.contains("nested"));
        let long = vec!["a = 1"; 301].join(" OR ");
        assert!(long.parse::<Condition>().unwrap_err().what.contains("300"));
    }

    #[test]
    fn the_attributes_that_it_reads_are_known() {
        let text = "a = 'x' AND (size(b) > c.d OR NOT contains(e, 'f')) AND g IN (7, 8) AND h <> true";
        let condition: Condition = text.parse().unwrap();
        assert_eq!(condition.attributes(), ["a", "b", "c", "e", "g", "h"]);
        assert_eq!(condition.compared(), [("a", "S"), ("g", "N"), ("g", "N"), ("h", "BOOL")]);
    }

    #[test]
    fn a_value_that_is_compared_with_one_of_another_type_is_named() {
        for (condition, value, unlike) in [
            ("a = 'x'", n("7"), Some("is N, and the condition compares it with S")),
            ("a <> 'x' AND b = 1", n("7"), Some("is N, and the condition compares it with S")),
            ("NOT a > 1", s("7"), Some("is S, and the condition compares it with N")),
            ("a = 'x' OR a = true", n("7"), Some("is N, and the condition compares it with BOOL and S")),
            ("a = 'x' OR a = 7", n("7"), None),
            ("a = 'x'", AttributeValue::Null(true), None),
            ("attribute_type(a, 'S') AND a = 'x'", n("7"), None),
            ("contains(a, 'x') OR attribute_exists(a) OR size(a) > 1", n("7"), None),
            ("a = b", n("7"), None),
            ("b = 'x'", n("7"), None),
        ] {
            let item = Item::from([("a".to_owned(), value)]);
            let parsed: Condition = condition.parse().unwrap();
            let found = parsed.unlike(&item).map(|(path, why)| (path.to_string(), why));
            assert_eq!(found, unlike.map(|why| ("a".to_owned(), why.to_owned())), "{condition}");
        }
    }
}
