//! The filter of an access pattern: a condition that DynamoDB decides, with values that the caller gives.

use serde_dynamo::AttributeValue;

use crate::{
    condition::{Condition, Test, whole},
    expression::{DocumentPath, Expression, ExpressionError, PathStep, function::Function, scanner::Scanner},
};

/// Which items of a range are returned. DynamoDB reads and charges the others too.
///
/// ```
/// use derive::access::{AccessFilter, FilterValue};
///
/// let filter = AccessFilter::parse("status = :status AND total > 0").unwrap();
/// let expression = filter.expression();
/// assert_eq!(expression.text, "#n0 = :v0 AND #n1 > :v1");
/// assert_eq!(expression.names, ["status", "total"]);
/// assert_eq!(expression.values[0], FilterValue::Input("status".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AccessFilter {
    /// The condition as it is written.
    pub text: String,
    /// The condition. A value that the caller gives is an attribute whose name begins with a colon.
    pub condition: Condition,
}

/// A filter as DynamoDB takes it: `FilterExpression` with its names and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterExpression {
    /// The expression, with `#n0` for a name and `:v0` for a value.
    pub text: String,
    /// The names of `#n0`, `#n1` and so on.
    pub names: Vec<String>,
    /// The values of `:v0`, `:v1` and so on.
    pub values: Vec<FilterValue>,
}

/// A value of a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterValue {
    /// The same for every caller.
    Literal(AttributeValue),
    /// Given by the caller under this name.
    Input(String),
}

impl AccessFilter {
    /// Parses a condition in which `:name` is a value that the caller gives.
    ///
    /// # Errors
    ///
    /// [`ExpressionError`] for what is no condition, and for what DynamoDB does not take in a filter.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let condition = whole(Scanner::with_inputs(text))?;
        let wrong = |what: String| Err(ExpressionError { at: 1, what });
        for (test, operands) in condition.tests() {
            let tested = operands.first();
            if operands.iter().all(|operand| operand.paths().iter().all(|path| path.attribute.starts_with(':'))) {
                return wrong("it compares values that the caller gives, and no attribute".to_owned());
            }
            let of_attribute =
                matches!(test, Test::Exists | Test::Lacks | Test::Type | Test::BeginsWith | Test::Contains);
            if let Some(input) = tested.and_then(input).filter(|_| of_attribute) {
                return wrong(format!("the function takes an attribute first, and :{input} is a value"));
            }
            if let Some(operand) = operands.iter().find(|operand| !is_taken(operand)) {
                let what = format!(
                    "DynamoDB does not calculate {operand} in a filter: leave it out, and filter the items in your code"
                );
                return wrong(what);
            }
        }
        Ok(Self { text: text.to_owned(), condition })
    }

    /// The names of what the caller gives, each once, without the colon.
    #[must_use]
    pub fn inputs(&self) -> Vec<&str> {
        let mut inputs: Vec<&str> = Vec::new();
        for input in self.condition.operands().filter_map(input) {
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        inputs
    }

    /// The paths of the attributes that it reads.
    pub fn paths(&self) -> impl Iterator<Item = &DocumentPath> {
        self.condition.paths().into_iter().filter(|path| !path.attribute.starts_with(':'))
    }

    /// The filter as DynamoDB takes it.
    #[must_use]
    pub fn expression(&self) -> FilterExpression {
        let mut expression = FilterExpression::default();
        let plain = expression.with_placeholders(&self.condition).to_string();
        // Every name and value is a word such as `n0` now, and no other word is like it.
        let is_of = |word: &str, letter| word.strip_prefix(letter).is_some_and(|rest| rest.parse::<usize>().is_ok());
        for part in plain.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            expression.text.push_str(if is_of(word, 'n') {
                "#"
            } else if is_of(word, 'v') {
                ":"
            } else {
                ""
            });
            expression.text.push_str(part);
        }
        expression
    }
}

impl FilterExpression {
    fn with_placeholders(&mut self, condition: &Condition) -> Condition {
        match condition {
            Condition::Always => Condition::Always,
            Condition::And(all) => Condition::And(all.iter().map(|it| self.with_placeholders(it)).collect()),
            Condition::Or(all) => Condition::Or(all.iter().map(|it| self.with_placeholders(it)).collect()),
            Condition::Not(condition) => Condition::Not(Box::new(self.with_placeholders(condition))),
            Condition::Test(test, operands) => {
                Condition::Test(*test, operands.iter().map(|operand| self.placeholder(operand)).collect())
            }
        }
    }

    fn placeholder(&mut self, operand: &Expression) -> Expression {
        match operand {
            Expression::Literal(value) => self.value(FilterValue::Literal(value.clone())),
            Expression::Call(function, arguments) => {
                Expression::Call(*function, arguments.iter().map(|argument| self.placeholder(argument)).collect())
            }
            Expression::Path(path) => {
                if let Some(input) = input(operand) {
                    return self.value(FilterValue::Input(input.to_owned()));
                }
                let attribute = self.name(&path.attribute);
                let step = |step: &PathStep| match step {
                    PathStep::Name(name) => PathStep::Name(self.name(name)),
                    PathStep::At(at) => PathStep::At(*at),
                };
                Expression::Path(DocumentPath { attribute, steps: path.steps.iter().map(step).collect() })
            }
        }
    }

    fn value(&mut self, value: FilterValue) -> Expression {
        let at = place(&mut self.values, value);
        Expression::Path(DocumentPath { attribute: format!("v{at}"), steps: Vec::new() })
    }

    fn name(&mut self, name: &str) -> String {
        format!("n{}", place(&mut self.names, name.to_owned()))
    }
}

/// The place of a value in a list; it is added if it is not there.
fn place<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter().position(|other| *other == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}

/// The name of a value that the caller gives.
fn input(operand: &Expression) -> Option<&str> {
    match operand {
        Expression::Path(path) if path.steps.is_empty() => path.attribute.strip_prefix(':'),
        _ => None,
    }
}

/// True for what DynamoDB takes in a filter: a path, a value, and `size` of a path.
fn is_taken(operand: &Expression) -> bool {
    match operand {
        Expression::Path(path) => !path.attribute.starts_with(':') || path.steps.is_empty(),
        Expression::Literal(_) => true,
        Expression::Call(function, arguments) => {
            *function == Function::Size
                && matches!(arguments.as_slice(), [path @ Expression::Path(_)] if input(path).is_none())
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn a_filter_becomes_an_expression_of_dynamodb() {
        let expression = |text: &str| {
            let FilterExpression { text, names, values } = AccessFilter::parse(text).unwrap().expression();
            format!("{text} {names:?} {}", values.len())
        };
        let nested = "begins_with(a.\"n0\"[3], :low) AND NOT (size(a) > 3 OR b IN ('x', :low, 'x'))";
        assert_eq!(
            expression(nested),
            r#"begins_with(#n0.#n1[3], :v0) AND NOT (size(#n0) > :v1 OR #n2 IN (:v2, :v0, :v2)) ["a", "n0", "b"] 3"#
        );
        assert_eq!(expression("attribute_exists(v1)"), r#"attribute_exists(#n0) ["v1"] 0"#);
        let filter = AccessFilter::parse("a = :b OR a = :c OR d > :b").unwrap();
        assert_eq!(filter.inputs(), ["b", "c"]);
    }

    #[test]
    fn what_dynamodb_does_not_take_is_refused() {
        let refused =
            |text: &str, expected: Expect| expected.assert_eq(&AccessFilter::parse(text).unwrap_err().to_string());
        refused(
            "upper(a) = :b",
            expect![
                "at character 1: DynamoDB does not calculate upper(a) in a filter: leave it out, and filter the items in your code"
            ],
        );
        refused(
            "attribute_exists(:a)",
            expect!["at character 1: it compares values that the caller gives, and no attribute"],
        );
        refused("a = :", expect!["at character 5: a placeholder has a name of letters, digits and _, such as :status"]);
        refused("size(:a) = 3", expect!["at character 1: it compares values that the caller gives, and no attribute"]);
        refused(
            "a = :b.c",
            expect![[
                r#"at character 1: DynamoDB does not calculate ":b".c in a filter: leave it out, and filter the items in your code"#
            ]],
        );
        refused("a", expect!["at character 2: a comparison is wanted: =, <>, <, <=, >, >=, BETWEEN or IN"]);
    }
}
