//! Parses an expression's text.

use std::str::FromStr;

use keys::number::canonical;
use serde_dynamo::AttributeValue;

use crate::{
    condition::is_test,
    expression::{
        Expression, ExpressionError,
        function::{Function, SIGNATURES, Second},
        is_word,
        scanner::{Scanner, first},
        time,
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
