//! Access patterns: the reads that an application makes, as data.
//!
//! A pattern names what the caller gives and what it gets. From it come typed functions, the rows of a table's design,
//! the forms of the console and the read units of a load. The engine does not use patterns.
//!
//! *Example*: the comments of a post between two times, newest first, is a query of the entity `Comment`: the caller gives
//! the fields of the partition key, and bounds of the field `CreatedAt` in the sort key.

use keys::{
    entity::{Definition, KeyTemplate},
    error::{KeyError, Problem},
    fields::Fields,
    key::Key,
    template::{Piece, Template, form::Form},
};
use serde_dynamo::AttributeValue;

use crate::{
    condition::{Condition, Test, whole},
    expression::{DocumentPath, Expression, ExpressionError, PathStep, function::Function, parse::Scanner},
    query::{Consistency, Order, Query, SortKeys, is_descending, past},
    schema::Schema,
};

/// A read that an application makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Its name, which becomes that of a function.
    pub name: String,
    /// Its row in the table's design. Several patterns can be one row.
    pub id: String,
    /// Its purpose.
    pub about: String,
    /// What it reads.
    pub reads: AccessReads,
    /// Its consistency, unless the caller asks for another.
    pub consistency: Consistency,
}

/// What an access pattern reads.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessReads {
    /// The item of an entity with these fields of its key.
    Get(String),
    /// The items of an entity with some keys.
    BatchGet(String),
    /// The items of a range, page by page.
    Query(AccessQuery),
    /// The counts and sums of an item of this entity, from its counters.
    Counts(String),
}

/// A range of items in a table or in an index.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessQuery {
    /// The entities of its items, in the order of the manifest; items of others are left out.
    pub entities: Vec<String>,
    /// The index, by its inner name; `None` for the table.
    pub index: Option<String>,
    /// The first fields of the sort key, which the caller gives beside the fields of the partition key.
    pub fields: Vec<String>,
    /// What the caller may say of the next field.
    pub next: NextField,
    /// The order, unless the caller asks for the other.
    pub order: Order,
    /// Most items of a page, unless the caller asks for another number.
    pub limit: u32,
    /// Which of the items.
    pub filter: Option<AccessFilter>,
}

/// What the caller may say of the first field of a sort key that it does not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextField {
    /// Nothing.
    Any,
    /// Its least and its greatest value, both optional.
    Between(String),
    /// A path: the items below it.
    Below(String),
}

impl Access {
    /// The entities of the items that it returns; a count returns none.
    #[must_use]
    pub fn entities(&self) -> &[String] {
        match &self.reads {
            AccessReads::Get(entity) | AccessReads::BatchGet(entity) => std::slice::from_ref(entity),
            AccessReads::Query(query) => &query.entities,
            AccessReads::Counts(_) => &[],
        }
    }

    /// The requests of a first page, with a placeholder such as `{postId}` in place of each value.
    #[must_use]
    pub fn requests(&self, schema: &Schema) -> Vec<AccessRequest> {
        // A placeholder fits everywhere.
        self.filled(schema, &Filling::Placeholders).unwrap_or_default()
    }

    /// The requests of a first page with these values. The bounds of a query are called `low` and `high`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming a field that is missing, or does not fit.
    pub fn requests_of(&self, schema: &Schema, values: &Fields) -> Result<Vec<AccessRequest>, KeyError> {
        self.filled(schema, &Filling::Values(values))
    }

    fn filled(&self, schema: &Schema, filling: &Filling<'_>) -> Result<Vec<AccessRequest>, KeyError> {
        let key = |entity: &String, number: &str| {
            let Some(KeyTemplate { pk, sk, .. }) = schema.entity(entity).map(|it| &it.key) else { return Ok(None) };
            Ok(Some(Key::new(filling.whole(pk, number)?, filling.whole(sk, number)?)))
        };
        Ok(match &self.reads {
            AccessReads::Get(entity) => key(entity, "")?.map(|key| AccessRequest::Get(vec![key])).into_iter().collect(),
            AccessReads::BatchGet(entity) => {
                let numbers: &[&str] = if *filling == Filling::Placeholders { &["", " 2"] } else { &[""] };
                let keys = numbers.iter().filter_map(|number| key(entity, number).transpose());
                vec![AccessRequest::Get(keys.collect::<Result<_, _>>()?)]
            }
            AccessReads::Counts(entity) => {
                let query = key(entity, "")?.map(|target| {
                    let prefix = keys::counter::prefix(&target);
                    AccessRequest::Query(Query::prefix(None, target.pk, prefix))
                });
                query.into_iter().collect()
            }
            AccessReads::Query(query) => query.requests(schema, self.consistency, filling)?,
        })
    }
}

/// What takes the place of the fields of a key.
#[derive(PartialEq)]
enum Filling<'a> {
    /// The name of the field, in braces.
    Placeholders,
    /// Its value.
    Values(&'a Fields),
}

impl Filling<'_> {
    /// The beginning of a key that some fields decide, each with the name of what the caller gives for it.
    fn beginning(&self, template: &Template, given: &[(&str, &str)]) -> Result<String, KeyError> {
        let input = |field: &str| given.iter().find(|(name, _)| *name == field).map(|(_, input)| *input);
        let Self::Values(values) = self else {
            let mut text = String::new();
            for piece in template.pieces() {
                match piece {
                    Piece::Literal(literal) => text.push_str(literal),
                    Piece::Field { name, .. } => match input(name) {
                        Some(input) => text.extend(["{", input, "}"]),
                        None => break,
                    },
                }
            }
            return Ok(text);
        };
        // What is missing would widen the range.
        if let Some((field, _)) = given.iter().find(|(_, input)| values.get(input).is_none()) {
            return Err(KeyError { entity: None, attribute: (*field).to_owned(), problem: Problem::Missing });
        }
        template.prefix_of(|field| values.get(input(field)?))
    }

    /// A whole key. `number` distinguishes the placeholders of several.
    fn whole(&self, template: &Template, number: &str) -> Result<String, KeyError> {
        if let Self::Values(values) = self {
            return template.build(values);
        }
        let names: Vec<(&str, String)> =
            template.field_names().into_iter().map(|name| (name, format!("{name}{number}"))).collect();
        let given: Vec<(&str, &str)> = names.iter().map(|(name, input)| (*name, input.as_str())).collect();
        self.beginning(template, &given)
    }

    fn has(&self, input: &str) -> bool {
        match self {
            Self::Placeholders => true,
            Self::Values(values) => values.get(input).is_some(),
        }
    }
}

/// A request of an access pattern, in the inner form of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessRequest {
    /// The items with these keys.
    Get(Vec<Key>),
    /// A page of a partition.
    Query(Query),
}

impl AccessQuery {
    /// The key of an entity in the table or in the index; `None` if the entity is not in the index.
    #[must_use]
    pub fn key_of<'a>(&self, entity: &'a Definition) -> Option<&'a KeyTemplate> {
        match &self.index {
            None => Some(&entity.key),
            Some(index) => entity.indexes.iter().find(|it| it.index == *index).map(|it| &it.key),
        }
    }

    /// The key of its first entity.
    fn key<'a>(&self, schema: &'a Schema) -> Option<&'a KeyTemplate> {
        self.key_of(schema.entity(self.entities.first()?)?)
    }

    /// The fields of the partition key that the caller gives: without those of which only the spread is in the key.
    #[must_use]
    pub fn partition_fields<'a>(&self, schema: &'a Schema) -> Vec<&'a str> {
        let Some(key) = self.key(schema) else { return Vec::new() };
        let spreads = |name: &str| {
            let mut forms = key.pk.pieces().iter().filter_map(|piece| match piece {
                Piece::Field { name: other, form } if other == name => Some(form),
                _ => None,
            });
            forms.all(|form| matches!(form, Form::Spread { .. }))
        };
        key.pk.field_names().into_iter().filter(|name| !spreads(name)).collect()
    }

    /// The range from the least to the greatest sort key of several entities; all if a form begins with a field.
    #[must_use]
    pub fn range(&self, schema: &Schema) -> SortKeys {
        let entities = self.entities.iter().filter_map(|name| schema.entity(name));
        let ends: Option<Vec<(String, String)>> =
            entities.filter_map(|entity| self.key_of(entity)).map(|key| ends(&key.sk)).collect();
        let Some(ends) = ends else { return SortKeys::All };
        let least = ends.iter().map(|(least, _)| least).min().cloned().unwrap_or_default();
        let greatest = ends.iter().map(|(_, greatest)| greatest).max().cloned().unwrap_or_default();
        SortKeys::Between(least, greatest)
    }

    fn requests(
        &self,
        schema: &Schema,
        consistency: Consistency,
        filling: &Filling<'_>,
    ) -> Result<Vec<AccessRequest>, KeyError> {
        let Some(key) = self.key(schema) else { return Ok(Vec::new()) };
        let sk = self.sort_keys(schema, &key.sk, filling)?;
        let partitions = key.pk.suffixes();
        let merged = u32::try_from(partitions.len()).unwrap_or(1);
        // A page of several partitions asks each for twice its share.
        let limit = if merged > 1 { (2 * self.limit).div_ceil(merged).min(self.limit) } else { self.limit };
        let request = |partition: Template| {
            let query = Query::of(self.index.as_deref(), filling.whole(&partition, "")?, sk.clone());
            Ok(AccessRequest::Query(Query { order: self.order, limit: Some(limit), consistency, ..query }))
        };
        partitions.into_iter().map(request).collect()
    }

    fn sort_keys(&self, schema: &Schema, sort: &Template, filling: &Filling<'_>) -> Result<SortKeys, KeyError> {
        if self.entities.len() > 1 {
            return Ok(self.range(schema));
        }
        let given: Vec<(&str, &str)> = self.fields.iter().map(|field| (field.as_str(), field.as_str())).collect();
        let with = |field: &str, input: &str| filling.beginning(sort, &[&given[..], &[(field, input)]].concat());
        let prefix = filling.beginning(sort, &given)?;
        let is_whole = sort.field_names().iter().all(|name| self.fields.iter().any(|field| field == name));
        let field = match &self.next {
            NextField::Any if is_whole => return Ok(SortKeys::Between(prefix.clone(), prefix)),
            NextField::Below(field) => return Ok(SortKeys::Prefix(with(field, field)? + "/")),
            NextField::Between(field) if filling.has("low") || filling.has("high") => field,
            NextField::Any | NextField::Between(_) if prefix.is_empty() => return Ok(SortKeys::All),
            NextField::Any | NextField::Between(_) => return Ok(SortKeys::Prefix(prefix)),
        };
        // A number as a whole key has no text before or behind all others.
        let extreme = |value| matches!(sort.pieces(), [Piece::Field { form: Form::Number, .. }]).then_some(value);
        let at = |value| sort.build_of(|_| Some(value));
        let (from, to) = if is_descending(sort, field) { ("high", "low") } else { ("low", "high") };
        let least = match extreme(NUMBER_MIN) {
            _ if filling.has(from) => with(field, from)?,
            Some(least) => at(least)?,
            None => prefix.clone(),
        };
        let greatest = match extreme(NUMBER_MAX) {
            _ if filling.has(to) && is_last(sort, field) => Some(with(field, to)?),
            _ if filling.has(to) => past(&with(field, to)?),
            Some(greatest) => Some(at(greatest)?),
            None => past(&prefix),
        };
        Ok(SortKeys::Between(least, greatest.unwrap_or_else(|| char::MAX.to_string())))
    }
}

/// The least and the greatest number that a key has in its inner form.
const NUMBER_MIN: &str = "-9.9999999999999999999999999999999999999E+98";
const NUMBER_MAX: &str = "9.9999999999999999999999999999999999999E+98";

/// True if a sort key ends with this field.
fn is_last(sort: &Template, field: &str) -> bool {
    matches!(sort.pieces().last(), Some(Piece::Field { name, .. }) if name == field)
}

/// The least and the greatest sort key of a form; `None` if it begins with a field.
fn ends(sort: &Template) -> Option<(String, String)> {
    let least = sort.prefix(&Fields::new()).unwrap_or_default();
    let greatest = if sort.field_names().is_empty() { Some(least.clone()) } else { past(&least) };
    (!least.is_empty()).then_some((least, greatest?))
}

// ---- The filter: a condition that DynamoDB decides, with values that the caller gives ----

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
