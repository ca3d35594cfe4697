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
pub mod function;
pub(crate) mod parse;
pub mod time;

use std::{
    borrow::Cow,
    fmt::{self, Display, Formatter, Write as _},
};

use keys::{entity::KeyTemplate, fields::Fields, item::Item};
use serde_dynamo::AttributeValue;

use crate::{
    condition::is_test,
    schema::{Image, Unreadable},
    tally::Sum,
};

use self::function::{Function, Refused};
pub use self::{
    document_path::{DocumentPath, PathStep},
    parse::ExpressionError,
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
            Self::Literal(value) => Some(keys::value::type_of(value)),
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
    begins && name.chars().all(parse::is_of_name) && !is_word(name)
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

// ---- The value of an expression for an item ----

/// The values that an expression can read: attributes, and the fields of the key if the entity is known. A field has
/// precedence over an attribute of its name.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    item: &'a Item,
    key: Option<(&'a KeyTemplate, &'a Fields)>,
}

impl<'a> From<&'a Item> for Values<'a> {
    fn from(item: &'a Item) -> Self {
        Self { item, key: None }
    }
}

impl<'a> From<&'a Image<'a>> for Values<'a> {
    fn from(image: &'a Image<'a>) -> Self {
        Self { item: image.item, key: Some((&image.definition.key, image.key_fields())) }
    }
}

impl<'a> Values<'a> {
    /// The value of a field, typed as its attribute would be, or else of an attribute, or inside one.
    fn get(self, path: &DocumentPath) -> Option<Cow<'a, AttributeValue>> {
        let of_key = self.key.filter(|_| path.steps.is_empty()).and_then(|(key, fields)| {
            let (name, text) = (path.attribute.as_str(), fields.get(&path.attribute)?);
            if key.holds_number(name) { Some(AttributeValue::N(text.to_owned())) } else { key.typed(name, text) }
        });
        of_key.map(Cow::Owned).or_else(|| path.value(self.item).map(Cow::Borrowed))
    }
}

impl Expression {
    /// Its value for an item; `None` if a value that it needs is missing.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if a function cannot take a value; it names the attribute.
    pub fn value<'a>(&'a self, of: Values<'a>) -> Result<Option<Cow<'a, AttributeValue>>, Unreadable> {
        let (function, arguments) = match self {
            Self::Path(path) => return Ok(of.get(path)),
            Self::Literal(value) => return Ok(Some(Cow::Borrowed(value))),
            Self::Call(function, arguments) => (*function, arguments.as_slice()),
        };
        if let (Function::IfNotExists, [value, other]) = (function, arguments) {
            return value.value(of)?.map_or_else(|| other.value(of), |value| Ok(Some(value)));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let Some(value) = argument.value(of)? else { return Ok(None) };
            values.push(value);
        }
        match function.apply(&values) {
            Ok(value) => Ok(value.map(Cow::Owned)),
            Err(refused) => Err(self.unreadable(function, arguments, &values, refused)),
        }
    }

    /// The error that a function does not take one of the values.
    fn unreadable(
        &self,
        function: Function,
        arguments: &[Self],
        values: &[Cow<'_, AttributeValue>],
        refused: Refused,
    ) -> Unreadable {
        let named = |expression: &Self| expression.paths().first().map(|path| path.name().into_owned());
        let (at, why) = match refused {
            Refused::Value(why) if matches!(self, Self::Call(_, all) if matches!(all.as_slice(), [Self::Path(_), ..])) => {
                (0, why.to_owned())
            }
            Refused::Value(why) => (0, format!("{why}, in `{self}`")),
            Refused::Type(at) => {
                let takes = function.signature().map_or(&[][..], |signature| signature.takes);
                let of = values.get(at).map_or("missing", |value| keys::value::type_of(value));
                (at, format!("is {of}, and `{self}` takes {}{}", takes.join(" or "), function.hint(of)))
            }
        };
        let attribute = arguments.get(at).and_then(named).or_else(|| named(self)).unwrap_or_else(|| self.to_string());
        Unreadable { attribute, why }
    }
}

// ---- What a declaration reads from an item ----

/// A value that a declaration reads: of a field of the key, an attribute, the path of a value inside one, or else of
/// another expression.
///
/// Its text is part of stored definitions, so it is stable: the name itself, or the expression as it is written.
#[derive(Clone, PartialEq)]
pub struct Input {
    text: String,
    names: Vec<String>,
    expression: Expression,
}

impl Input {
    /// The input of a declared name: a field, an attribute, or the path of a value inside one.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let expression = Expression::Path(DocumentPath::of(name));
        Self { text: name.to_owned(), names: vec![name.to_owned()], expression }
    }

    /// The declared name; `None` if it is calculated, or a literal.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        matches!(self.expression, Expression::Path(_)).then_some(&self.text)
    }

    /// The names that it reads: fields, attributes and paths.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expression.
    #[must_use]
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// Its value for an item; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it cannot be calculated.
    pub fn value<'a>(&'a self, image: &'a Image<'a>) -> Result<Option<Cow<'a, AttributeValue>>, Unreadable> {
        self.expression.value(image.into())
    }

    /// Why it cannot be calculated. A field or an attribute is read as it is.
    pub(crate) fn unreadable(&self, image: &Image<'_>) -> Option<Unreadable> {
        if self.name().is_some() { None } else { self.value(image).err() }
    }

    /// Its value as a number.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is no number, or cannot be calculated.
    pub(crate) fn number(&self, image: &Image<'_>) -> Result<Option<Sum>, Unreadable> {
        Sum::read(&self.text, self.value(image)?.as_deref())
    }

    /// Its value as a text.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is no text, or cannot be calculated.
    pub(crate) fn text_of<'a>(&'a self, image: &'a Image<'a>) -> Result<Option<Cow<'a, str>>, Unreadable> {
        self.filled(image, |name, value| Image::text_field(name, value).map(|text| text.map(Cow::Borrowed)))
    }

    /// Its value as a field of another item's key: of type N or B if it makes up a whole key of this type.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the value cannot be part of the key, or cannot be calculated.
    pub(crate) fn filling<'a>(
        &'a self,
        image: &'a Image<'a>,
        key: &KeyTemplate,
        to: &str,
    ) -> Result<Option<Cow<'a, str>>, Unreadable> {
        self.filled(image, |name, value| Image::value_filling(name, value, key, to))
    }

    /// The text of a field as it is; any other value as it is read.
    fn filled<'a>(
        &'a self,
        image: &'a Image<'a>,
        read: impl for<'v> Fn(&str, Option<&'v AttributeValue>) -> Result<Option<Cow<'v, str>>, Unreadable>,
    ) -> Result<Option<Cow<'a, str>>, Unreadable> {
        if let Expression::Path(path) = &self.expression {
            let field = image.key_fields().get(&self.text).map(Cow::Borrowed);
            return if field.is_some() { Ok(field) } else { read(&self.text, path.value(image.item)) };
        }
        let value = self.expression.value(image.into())?;
        Ok(read(&self.text, value.as_deref())?.map(|text| Cow::Owned(text.into_owned())))
    }
}

/// No value contains a floating-point number.
impl Eq for Input {}

impl From<&str> for Input {
    fn from(name: &str) -> Self {
        Self::of(name)
    }
}

impl From<Expression> for Input {
    fn from(expression: Expression) -> Self {
        if let Expression::Path(path) = &expression {
            return Self::of(&path.name());
        }
        let mut names: Vec<String> = Vec::new();
        for path in expression.paths() {
            let name = path.name();
            if !names.iter().any(|other| *other == name) {
                names.push(name.into_owned());
            }
        }
        Self { text: expression.to_string(), names, expression }
    }
}

impl Display for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Pairs of (input, attribute that it is written into).
#[must_use]
pub fn pairs(pairs: &[(&str, &str)]) -> Vec<(Input, String)> {
    pairs.iter().map(|(from, to)| (Input::of(from), (*to).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use keys::{counter, key::Key, layout::Layout};

    use super::*;
    use crate::{
        condition::Condition,
        fixture::{ground, n, s},
        schema::Schema,
    };

    /// A line of an order.
    fn line() -> Item {
        let parts = [("unit", s("kg")), ("cost", n("0.1"))].map(|(name, value)| (name.to_owned(), value));
        let attributes = [
            ("quantity", n("3")),
            ("price", n("1.50")),
            ("long", n("12345678901234567890123456789012345678")),
            ("amount", s("19.90")),
            ("owner", s("7::ann::x")),
            ("email", s(" Ann@Example.ORG ")),
            ("at", s("2024-12-30T23:30:00.000Z")),
            ("there", s("2024-12-30T23:30:00-01:30")),
            ("date", s("2024-12-30")),
            ("ms", n("1735601400123")),
            ("sec", n("1735601400.9")),
            ("tags", AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()])),
            ("of", AttributeValue::M(parts.into())),
            ("gift", AttributeValue::Bool(true)),
            ("first-name", s("Ann")),
            ("day", s("Monday")),
        ];
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn value(text: &str) -> Result<Option<AttributeValue>, Unreadable> {
        let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let line = line();
        expression.value((&line).into()).map(|value| value.map(std::borrow::Cow::into_owned))
    }

    #[test]
    fn an_expression_has_the_value_that_its_functions_give() {
        for (text, wanted) in [
            ("quantity * price", n("4.5")),
            ("quantity + 1 - price * 2", n("1")),
            ("(quantity + 1) * 2", n("8")),
            ("quantity -1", n("2")),
            ("quantity - -1", n("4")),
            ("1E2*quantity", n("300")),
            ("0.1 + of.cost", n("0.2")),
            ("number(amount) * quantity", n("59.7")),
            ("number(price)", n("1.5")),
            ("quantity / 2", n("1.5")),
            ("2 / quantity", n("0.666667")),
            ("1 / quantity * quantity", n("0.999999")),
            ("1 / (quantity * quantity)", n("0.111111")),
            ("100 * quantity / quantity / 2", n("50")),
            ("1 / 0.0000001", n("10000000")),
            ("0.5 / 1000000", n("0")),
            ("text(price) || of.unit", s("1.5kg")),
            ("text(owner)", s("7::ann::x")),
            ("size(tags) + size(owner)", n("11")),
            ("lower(trim(email))", s("ann@example.org")),
            ("upper(of.unit) || '#' || date", s("KG#2024-12-30")),
            ("before(owner, '::')", s("7")),
            ("before(date, '::')", s("2024-12-30")),
            ("after(owner, '::')", s("ann::x")),
            ("after(after(owner, '::'), '::')", s("x")),
            ("if_not_exists(missing, 'other')", s("other")),
            ("if_not_exists(of.unit, 'other')", s("kg")),
            ("if_not_exists(missing, quantity) * 2", n("6")),
            ("millis(ms)", s("2024-12-30T23:30:00.123Z")),
            ("seconds(sec)", s("2024-12-30T23:30:00Z")),
            ("millis(0 - 1)", s("1969-12-31T23:59:59.999Z")),
            ("hour(at)", s("2024-12-30T23")),
            ("hour(there)", s("2024-12-31T01")),
            ("hour(at, '+05:30')", s("2024-12-31T05")),
            ("day(at)", s("2024-12-30")),
            ("day(date)", s("2024-12-30")),
            ("day(at, '+01:00')", s("2024-12-31")),
            ("week(date)", s("2025-W01")),
            ("week(millis(ms))", s("2025-W01")),
            ("month(date)", s("2024-12")),
            ("\"first-name\" || day", s("AnnMonday")),
            ("gift", AttributeValue::Bool(true)),
        ] {
            assert_eq!(value(text), Ok(Some(wanted)), "{text}");
        }
    }

    #[test]
    fn what_is_calculated_from_a_missing_value_is_missing() {
        for text in [
            "missing",
            "quantity * missing",
            "quantity / 0",
            "quantity / (price - price)",
            "missing || owner",
            "lower(of.missing)",
            "after(date, '::')",
            "size(quantity)",
            "if_not_exists(missing, of.missing)",
            "day(millis(missing))",
        ] {
            assert_eq!(value(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn a_value_that_a_function_does_not_take_is_named() {
        for (text, unreadable) in [
            (
                "quantity * amount",
                "amount is S, and `quantity * amount` takes N: write number(…) for a number that is stored as text",
            ),
            ("gift + 1", "gift is BOOL, and `gift + 1` takes N"),
            (
                "owner || quantity",
                "quantity is N, and `owner || quantity` takes S: write text(…) for the text of a number",
            ),
            ("number(owner)", "owner is no number that DynamoDB holds"),
            ("number(trim(email))", "email is no number that DynamoDB holds, in `number(trim(email))`"),
            (
                "long * long",
                "long leads to a number that DynamoDB does not hold: it has more than 38 digits, or is too large or too small",
            ),
            ("lower(tags)", "tags is SS, and `lower(tags)` takes S"),
            ("lower(if_not_exists(tags, owner))", "tags is SS, and `lower(if_not_exists(tags, owner))` takes S"),
            ("text(gift)", "gift is BOOL, and `text(gift)` takes N or S"),
            (
                "millis(amount)",
                "amount is S, and `millis(amount)` takes N: write number(…) for a number that is stored as text",
            ),
            ("seconds(ms)", "ms is no number of seconds since 1970 of a year from 0 to 9999"),
            ("hour(date)", "date is not an ISO 8601 time with an hour, which hour(…) needs"),
            ("day(date, '+01:00')", "date is not an ISO 8601 time with a day, which day(…) needs"),
            ("month(owner)", "owner is not an ISO 8601 time with a month, which month(…) needs"),
            ("week(ms)", "ms is N, and `week(ms)` takes S: write millis(…) or seconds(…) for an epoch number"),
        ] {
            assert_eq!(value(text).unwrap_err().to_string(), unreadable, "{text}");
        }
    }

    #[test]
    fn its_text_is_written_in_one_way() {
        for (written, text) in [
            ("a*b", "a * b"),
            ("(a*b)+(c)", "a * b + c"),
            ("a-(b-c)", "a - (b - c)"),
            ("(a-b)-c", "a - b - c"),
            ("(a+b)*c*(d*e)", "(a + b) * c * (d * e)"),
            ("a||'it''s'", "a || 'it''s'"),
            ("SIZE( a.b[0] )", "size(a.b[0])"),
            ("before ( \"a b\" , '::' )", "before(\"a b\", '::')"),
            ("day(at,'+02:00')", "day(at, '+02:00')"),
            ("a - -1.50", "a - -1.5"),
        ] {
            let expression: Expression = written.parse().unwrap();
            assert_eq!(expression.to_string(), text);
            assert_eq!(text.parse(), Ok(expression));
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_what_would_do() {
        for (written, error) in [
            ("a b", "at character 3: an operator (+, -, *, /, ||) or the end is wanted before \"b\""),
            ("a * ", "at character 5: it ends where an attribute or a value is wanted"),
            ("(a", "at character 3: a closing parenthesis is wanted at the end"),
            ("a % b", "at character 3: an operator (+, -, *, /, ||) or the end is wanted before \"%\""),
            (
                "lowercase(a)",
                "at character 1: there is no function \"lowercase\": there are size, if_not_exists, number, text, lower, \
                 upper, trim, before, after, seconds, millis, hour, day, week, month",
            ),
            ("1 + contains(a, 'x')", "at character 5: contains is a test, and a value is wanted here"),
            ("lower(a, b)", "at character 8: a closing parenthesis is wanted before \",\""),
            ("before(a)", "at character 9: a comma, as in before(a, '::'), is wanted before \")\""),
            ("before(a, b)", "at character 1: the second value is a text in quotes, as in before(a, '::')"),
            ("after(a, '')", "at character 1: the second value is a text in quotes, as in after(a, '::')"),
            ("day(at, '+24:00')", "at character 1: \"+24:00\" is no offset from UTC such as '+02:00'"),
            ("day(at, 'CET')", "at character 1: \"CET\" is no offset from UTC such as '+02:00'"),
            (
                "1 + lower(size(a))",
                "at character 5: lower(a) takes S, and size(a) is N: write text(…) for the text of a number",
            ),
            (
                "a * 'x'",
                "at character 1: a * b takes N, and 'x' is S: write number(…) for a number that is stored as text",
            ),
            ("-a", "at character 1: \"-a\" is no number that DynamoDB holds"),
        ] {
            assert_eq!(written.parse::<Expression>().unwrap_err().to_string(), error, "{written}");
        }
        let deep = format!("{}a{}", "(".repeat(60), ")".repeat(60));
        assert!(deep.parse::<Expression>().unwrap_err().what.contains("nested"));
        let deep = format!("{}a = 1{}", "(".repeat(60), ")".repeat(60));
        assert!(deep.parse::<Condition>().unwrap_err().what.contains("nested"));
        let long = vec!["a"; 302].join(" + ");
        assert!(long.parse::<Expression>().unwrap_err().what.contains("300"));
    }

    #[test]
    fn a_condition_compares_what_is_calculated_and_is_decided_only_as_far_as_necessary() {
        let holds = |text: &str| {
            let condition: Condition = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(condition.to_string().parse(), Ok(condition.clone()), "{text}");
            condition.holds(&line())
        };
        for text in [
            "quantity * price > 4",
            "(quantity + 1) * 2 = 8 AND (gift = true OR (quantity) > 5)",
            "((quantity + 1)) BETWEEN 4 AND quantity + 2",
            "before(owner, '::') IN ('7', '8')",
            "begins_with(lower(trim(email)), 'ann@')",
            "contains(lower(email), 'example')",
            "at < millis(ms)",
            "NOT missing * 2 > 1",
            "missing * 2 <> 1",
            "gift = true OR amount * 2 > 1",
            "NOT (attribute_type(amount, 'N') AND amount * 2 > 1)",
        ] {
            assert_eq!(holds(text), Ok(true), "{text}");
        }
        assert_eq!(holds("amount * 2 > 1 OR gift = true").unwrap_err().attribute, "amount");
        for (written, error) in [
            ("a * b = 'x'", "at character 1: it compares values of several types"),
            (
                "lower('X') = 'x'",
                "at character 1: it reads no attribute: a text stands in single quotes, and a name in none",
            ),
            ("(a + 1)", "at character 8: a comparison is wanted: =, <>, <, <=, >, >=, BETWEEN or IN"),
            ("attribute_exists (lower(a))", "at character 24: a closing parenthesis is wanted before \"(a))\""),
            ("begins_with(size(a), 'x')", "at character 1: begins_with takes a text"),
        ] {
            assert_eq!(written.parse::<Condition>().unwrap_err().to_string(), error, "{written}");
        }
    }

    #[test]
    fn a_field_of_the_key_stands_beside_attributes_with_the_type_that_it_has_in_the_key() {
        let day = ground("Day", ("SHOP#{shop}", "DAY#{n:4}#{hash}"), &["n", "total"], &[]);
        let counter = ground("Counter", (counter::PARTITION_KEY, counter::SORT_KEY), &[], &[]);
        let schema = Schema::new(Layout { entity_type: Some("Type".into()), ..Layout::of("PK", "SK") }, [day, counter]);
        let key = Key::new("SHOP#a%23b", "DAY#0042#x");
        let item =
            Item::from([("Type".to_owned(), s("Day")), ("n".to_owned(), s("of no use")), ("total".to_owned(), n("2"))]);
        let image = schema.image(&key, &item).unwrap();
        let read =
            |text: &str| Input::from(text.parse::<Expression>().unwrap()).value(&image).unwrap().unwrap().into_owned();
        assert_eq!([read("shop || hash"), read("n * total"), read("text(n)")], [s("a#bx"), n("84"), s("42")]);
        let condition: Condition = "shop = 'a#b' AND n > 41 AND n < 43".parse().unwrap();
        assert_eq!(condition.holds(&image), Ok(true));
    }
}
