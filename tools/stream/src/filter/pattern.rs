//! A pattern: what an object must have. Pure.
//!
//! Records are looked at as text, level by level as the pattern goes, because numbers compare as they are written.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::operator::{Operator, RESERVED, Scalar};

/// The key that wants one of several objects.
const OR: &str = "$or";

/// The fewest objects behind [`OR`]. Source: `event-ruler`.
const OR_OBJECTS_MIN: usize = 2;

/// What an object must have, all of it.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Vec<PatternPart>);

#[derive(Debug, Clone)]
enum PatternPart {
    Field { name: String, wanted: FieldPattern },
    AnyOf(Vec<Pattern>),
}

#[derive(Debug, Clone)]
enum FieldPattern {
    /// An object, with all of this.
    Object(Pattern),
    /// A value that one of these matches.
    OneOf(Vec<Operator>),
}

/// The fields of an object. Of a key that is written twice the last counts.
type RawFields<'a> = BTreeMap<String, &'a RawValue>;

fn fields(value: &RawValue) -> Option<RawFields<'_>> {
    serde_json::from_str(value.get()).ok()
}

fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

impl Pattern {
    /// Reads a pattern, or says what is wrong with it.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        let pattern: &RawValue = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        Self::of(pattern, false)
    }

    fn of(object: &RawValue, is_in_or: bool) -> Result<Self, String> {
        let fields = fields(object).ok_or_else(|| format!("{} is no object", shortened(object)))?;
        if fields.is_empty() {
            return Err("an object must have a field".to_owned());
        }
        let condition = |(name, value): (String, &RawValue)| match name.as_str() {
            OR => any_of(value).map(PatternPart::AnyOf),
            name if is_in_or && RESERVED.contains(&name) => Err(format!("{name} cannot be a field within {OR}")),
            _ => Ok(PatternPart::Field { wanted: FieldPattern::of(&name, value, is_in_or)?, name }),
        };
        fields.into_iter().map(condition).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a value has all of it. Nothing is an object without fields; of a list, one element must have all.
    pub(super) fn matches(&self, value: Option<&RawValue>) -> bool {
        if let Some(elements) = value.and_then(elements).filter(|elements| !elements.is_empty()) {
            return elements.into_iter().any(|element| self.matches(Some(element)));
        }
        let fields = value.and_then(fields).unwrap_or_default();
        self.0.iter().all(|condition| condition.holds(&fields))
    }
}

fn any_of(objects: &RawValue) -> Result<Vec<Pattern>, String> {
    match elements(objects) {
        Some(objects) if objects.len() >= OR_OBJECTS_MIN => {
            objects.into_iter().map(|object| Pattern::of(object, true)).collect()
        }
        _ => Err(format!("{OR} wants a list of {OR_OBJECTS_MIN} objects or more")),
    }
}

impl PatternPart {
    fn holds(&self, fields: &RawFields<'_>) -> bool {
        match self {
            Self::Field { name, wanted } => wanted.matches(fields.get(name).copied()),
            // The field is no step on the way: its objects are of this very level.
            Self::AnyOf(patterns) => patterns.iter().any(|pattern| pattern.0.iter().all(|one| one.holds(fields))),
        }
    }
}

impl FieldPattern {
    fn of(name: &str, value: &RawValue, is_in_or: bool) -> Result<Self, String> {
        if value.get().starts_with('{') {
            return Pattern::of(value, is_in_or).map(Self::Object);
        }
        let wanted = elements(value).ok_or_else(|| format!("{name} wants an object or a list"))?;
        if wanted.is_empty() {
            return Err(format!("the list of {name} is empty"));
        }
        wanted.into_iter().map(Operator::of).collect::<Result<_, _>>().map(Self::OneOf)
    }

    fn matches(&self, value: Option<&RawValue>) -> bool {
        match self {
            Self::Object(pattern) => pattern.matches(value),
            Self::OneOf(operators) => {
                let scalars = value.map(scalars).unwrap_or_default();
                if scalars.is_empty() {
                    return operators.iter().any(Operator::is_absence);
                }
                operators.iter().any(|operator| scalars.iter().any(|scalar| operator.matches(scalar)))
            }
        }
    }
}

/// The leaves of a value: itself, or those of a list. An object has none, because it is no leaf.
fn scalars(value: &RawValue) -> Vec<Scalar> {
    match elements(value) {
        Some(elements) => elements.into_iter().flat_map(scalars).collect(),
        None => Scalar::of(value).into_iter().collect(),
    }
}

/// Enough of a value to find it again.
pub(super) fn shortened(value: &RawValue) -> String {
    const CHARS_MAX: usize = 40;
    let text = value.get();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
