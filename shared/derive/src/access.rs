//! Access patterns: the reads that an application makes, as data.
//!
//! A pattern names what the caller gives and what it gets. From it come typed functions, the rows of a table's design,
//! the forms of the console and the read units of a load. The engine does not use patterns.
//!
//! *Example*: the comments of a post between two times, newest first, is a query of the entity `Comment`: the caller gives
//! the fields of the partition key, and bounds of the field `CreatedAt` in the sort key.

mod filter;

use keys::{
    entity::{Definition, KeyTemplate},
    error::{KeyError, Problem},
    fields::Fields,
    key::Key,
    template::{Piece, Template, form::Form},
};

use crate::{
    query::{Consistency, Order, Query, SortKeys, past},
    range::is_descending,
    schema::Schema,
};

pub use self::filter::{AccessFilter, FilterExpression, FilterValue};

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
