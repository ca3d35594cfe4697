//! Key templates: the form of a key as data.
//!
//! A template is literal text and fields in braces. A field has one of these forms:
//!
//! | written | meaning | in the key |
//! |---|---|---|
//! | `{UserId}` | any text that is not empty | `#` and `%` escaped |
//! | `{Path/}` | a path | as it is |
//! | `{Path/last}` | the last segment of the field `Path` | as a text; not read back |
//! | `{Shard:2}` | a whole number of at most 2 digits | padded with zeros |
//! | `{MAX-Total:12}` | the same, descending | `999999999999 - Total`, padded |
//! | `{UserId%8}` | the spread of a static partition key over 8 suffixes | CRC-32 of `UserId` mod 8, two digits; not read back |
//! | `{Target*}` | another key's text, which may hold `#`; at the start only | as it is |
//!
//! Text and field alternate, and a field ends where the literal after it begins, so parsing has no choice to make:
//! a value that holds `#` was escaped on the way in, and one that stands raw in the key is not this template's.

use std::fmt;

use crate::{
    error::{KeyError, Problem, TemplateError},
    escape,
    fields::Fields,
    path::Path,
};

/// Most digits of a padded or inverted number: what DynamoDB's own numbers hold.
const DIGITS_MAX: usize = 38;

/// The form of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Field { name: String, form: Form },
}

/// How a field's value stands in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Path,
    LastSegment,
    Padded { digits: usize },
    Inverted { digits: usize },
    Spread { suffixes: u32 },
    Raw,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] with the template and what is wrong: braces, an unknown form, two fields without text between.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let fail = |problem| TemplateError { template: text.to_owned(), problem };
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (literal, after) = match rest.split_once('{') {
                Some((literal, after)) => (literal, Some(after)),
                None => (rest, None),
            };
            if literal.contains('}') {
                return Err(fail("a `}` without its `{`"));
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
            let Some(after) = after else { break };
            let (field, tail) = after.split_once('}').ok_or_else(|| fail("a `{` without its `}`"))?;
            let (name, form) = Form::parse(field).ok_or_else(|| fail("a field of no known form"))?;
            match pieces.last() {
                Some(Piece::Field { .. }) => return Err(fail("two fields need text between them")),
                Some(Piece::Literal(_)) if form == Form::Raw => return Err(fail("a raw field stands at the start")),
                _ => pieces.push(Piece::Field { name: name.to_owned(), form }),
            }
            rest = tail;
        }
        if pieces.is_empty() {
            return Err(fail("it is empty"));
        }
        let between = pieces.get(1..pieces.len() - 1).unwrap_or_default();
        if between.iter().any(|piece| matches!(piece, Piece::Literal(literal) if !literal.contains('#'))) {
            return Err(fail("the text between two fields needs a `#`, or their values could not be told apart"));
        }
        Ok(Self { text: text.to_owned(), pieces })
    }

    /// Names of the fields that a key of this form needs, each once.
    #[must_use]
    pub fn field_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for piece in &self.pieces {
            if let Piece::Field { name, .. } = piece
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        names
    }

    /// Builds the key text.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming the field that is missing, empty, or does not fit.
    pub fn build(&self, fields: &Fields) -> Result<String, KeyError> {
        let mut key = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => key.push_str(literal),
                Piece::Field { name, form } => {
                    let value = fields.get(name).ok_or_else(|| KeyError::new(name, Problem::Missing))?;
                    key.push_str(&form.build(value).map_err(|problem| KeyError::new(name, problem))?);
                }
            }
        }
        Ok(key)
    }

    /// The longest start of the key that these fields decide: the operand of `begins_with`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming a field that is there and does not fit.
    pub fn prefix(&self, fields: &Fields) -> Result<String, KeyError> {
        let mut key = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => key.push_str(literal),
                Piece::Field { name, form } => {
                    let Some(value) = fields.get(name) else { break };
                    key.push_str(&form.build(value).map_err(|problem| KeyError::new(name, problem))?);
                }
            }
        }
        Ok(key)
    }

    /// The fields of a key of this form; `None` when it is of another.
    #[must_use]
    pub fn parse_key(&self, key: &str) -> Option<Fields> {
        let mut fields = Fields::new();
        parse_pieces(&self.pieces, key, &mut fields).then_some(fields)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_pieces(pieces: &[Piece], key: &str, fields: &mut Fields) -> bool {
    match pieces {
        [] => key.is_empty(),
        [Piece::Literal(literal), rest @ ..] => {
            key.strip_prefix(literal.as_str()).is_some_and(|key| parse_pieces(rest, key, fields))
        }
        [Piece::Field { name, form: Form::Raw }, rest @ ..] => parse_raw(name, rest, key, fields),
        [Piece::Field { name, form }, rest @ ..] => {
            let end = match rest.first() {
                Some(Piece::Literal(literal)) => key.find(literal.as_str()),
                _ => Some(key.len()),
            };
            end.and_then(|end| key.split_at_checked(end))
                .is_some_and(|(value, key)| form.read(name, value, fields) && parse_pieces(rest, key, fields))
        }
    }
}

/// A raw field may hold anything, so the last place where the rest fits ends it.
fn parse_raw(name: &str, rest: &[Piece], key: &str, fields: &mut Fields) -> bool {
    let Some(Piece::Literal(literal)) = rest.first() else {
        fields.insert(name, key);
        return !key.is_empty();
    };
    let ends: Vec<usize> = key.rmatch_indices(literal.as_str()).map(|(end, _)| end).collect();
    ends.into_iter().filter_map(|end| key.split_at_checked(end)).any(|(value, tail)| {
        let mut found = Fields::new();
        let fits = !value.is_empty() && parse_pieces(rest, tail, &mut found);
        if fits {
            found.insert(name, value);
            return fields.merge(found);
        }
        false
    })
}

impl Form {
    fn parse(field: &str) -> Option<(&str, Self)> {
        let digits = |text: &str| text.parse().ok().filter(|digits| (1..=DIGITS_MAX).contains(digits));
        let (name, form) = if let Some(inverted) = field.strip_prefix("MAX-") {
            let (name, width) = inverted.split_once(':')?;
            (name, Self::Inverted { digits: digits(width)? })
        } else if let Some((name, width)) = field.split_once(':') {
            (name, Self::Padded { digits: digits(width)? })
        } else if let Some((name, suffixes)) = field.split_once('%') {
            (name, Self::Spread { suffixes: suffixes.parse().ok().filter(|suffixes| (1..=100).contains(suffixes))? })
        } else if let Some(name) = field.strip_suffix("/last") {
            (name, Self::LastSegment)
        } else if let Some(name) = field.strip_suffix('/') {
            (name, Self::Path)
        } else if let Some(name) = field.strip_suffix('*') {
            (name, Self::Raw)
        } else {
            (field, Self::Text)
        };
        let named = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        named.then_some((name, form))
    }

    fn build(self, value: &str) -> Result<String, Problem> {
        if value.is_empty() {
            return Err(Problem::Empty);
        }
        match self {
            Self::Text => Ok(escape::value(value)),
            Self::Raw => Ok(value.to_owned()),
            Self::Path => path(value).map(|path| path.to_string()),
            Self::LastSegment => Ok(escape::value(path(value)?.segments().last().map_or("", String::as_str))),
            Self::Padded { digits } => Ok(padded(whole(value, digits)?, digits)),
            Self::Inverted { digits } => Ok(padded(highest(digits) - whole(value, digits)?, digits)),
            Self::Spread { suffixes } => Ok(format!("{:02}", crc32fast::hash(value.as_bytes()) % suffixes)),
        }
    }

    /// Reads a value back into the fields; false when it is not of this form.
    fn read(self, name: &str, value: &str, fields: &mut Fields) -> bool {
        let number = |digits: usize| {
            let all = value.len() == digits && value.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| value.parse::<u128>().ok()).flatten()
        };
        let read = match self {
            Self::Text => (!value.is_empty() && !value.contains('#')).then(|| escape::restored(value)),
            Self::Path => path(value).ok().map(|_| value.to_owned()),
            Self::Padded { digits } => number(digits).map(|number| number.to_string()),
            Self::Inverted { digits } => number(digits).map(|number| (highest(digits) - number).to_string()),
            Self::Raw => Some(value.to_owned()),
            Self::LastSegment => return !value.is_empty(),
            Self::Spread { suffixes } => return number(2).is_some_and(|suffix| suffix < u128::from(suffixes)),
        };
        // A field may occur twice; then both must say the same.
        read.is_some_and(|value| fields.insert(name, value.clone()).is_none_or(|former| former == value))
    }
}

fn path(value: &str) -> Result<Path, Problem> {
    value.parse().map_err(|_| Problem::NotAPath)
}

fn whole(value: &str, digits: usize) -> Result<u128, Problem> {
    if !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::NotANumber);
    }
    let number = value.parse().map_err(|_| Problem::DoesNotFit { digits })?;
    if number > highest(digits) { Err(Problem::DoesNotFit { digits }) } else { Ok(number) }
}

fn padded(number: u128, digits: usize) -> String {
    format!("{number:0digits$}")
}

/// The largest number of so many digits; at most 38, which a `u128` holds.
fn highest(digits: usize) -> u128 {
    (0..digits).fold(0, |number, _| number * 10 + 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    proptest::proptest! {
        #[test]
        fn build_then_parse_is_the_identity(a in ".+", b in "[#%A-F0-9]+", n in 0u64..1_000_000) {
            let fields = Fields::from([("A", a), ("B", b), ("N", n.to_string())]);
            for form in ["X#{A}#{B}#{N:6}", "{A}#{B}#{MAX-N:6}", "{B}#COUNT#{A}#{N:9}"] {
                let key = template(form).build(&fields).unwrap();
                proptest::prop_assert_eq!(template(form).parse_key(&key), Some(fields.clone()), "{}", key);
            }
        }

        #[test]
        fn different_fields_make_different_keys(a in "[#%2a]+", b in "[#%2a]+", c in "[#%2a]+", d in "[#%2a]+") {
            let one = template("{A}#{B}").build(&Fields::from([("A", &a), ("B", &b)])).unwrap();
            let two = template("{A}#{B}").build(&Fields::from([("A", &c), ("B", &d)])).unwrap();
            proptest::prop_assert_eq!(one == two, (a, b) == (c, d));
        }

        #[test]
        fn parsing_arbitrary_text_never_panics(text in ".*") {
            for form in ["X#{A}#{B:2}", "{A*}#COUNT#{B}#{C:2}", "EMP#{Path/}", "P#{A%8}", "{MAX-A:5}#{B}"] {
                let _fields = template(form).parse_key(&text);
            }
        }
    }

    #[test]
    fn a_raw_field_ends_at_the_last_place_where_the_rest_fits() {
        let form = template("{Target*}#COUNT#{Name}#{Shard:2}");
        let fields = form.parse_key("A#COUNT#b#01#COUNT#likes#07").unwrap();
        assert_eq!(fields, Fields::from([("Target", "A#COUNT#b#01"), ("Name", "likes"), ("Shard", "7")]));
    }

    #[test]
    fn a_key_of_another_form_is_not_parsed() {
        for (form, key) in [
            ("USER#{UserId}", "USER#"),
            ("USER#{UserId}", "GROUP#a"),
            ("USER#{UserId}", "USER#a#b"),
            ("COMMENT#{CreatedAt}#{CommentId}", "COMMENT#2024"),
            ("{A}#{A}", "x#y"),
            ("N#{N:2}", "N#1"),
            ("P#{Id%8}", "P#08"),
        ] {
            assert_eq!(template(form).parse_key(key), None, "{form} {key}");
        }
        assert!(template("P#{Id%8}").parse_key("P#07").is_some());
        assert!(template("{A}#{A}").parse_key("x#x").is_some());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_field_and_limit() {
        let build =
            |form: &str, value: &str| template(form).build(&Fields::from([("N", value)])).unwrap_err().to_string();
        assert_eq!(build("{N:3}", "1000"), "N does not fit in 3 digits");
        assert_eq!(build("{MAX-N:3}", "-1"), "N is not a whole number from 0 up");
        assert_eq!(build("{N}", ""), "N is empty; a key value must not be");
        assert_eq!(build("{M}", "x"), "M is missing; the key needs it");
        assert!(build("{N/}", "no path").starts_with("N is not a path"));
    }

    #[test]
    fn a_prefix_stops_at_the_first_field_that_is_not_given() {
        let form = template("COMMENT#{CreatedAt}#{CommentId}");
        assert_eq!(form.prefix(&Fields::new()).unwrap(), "COMMENT#");
        assert_eq!(form.prefix(&Fields::from([("CreatedAt", "2024")])).unwrap(), "COMMENT#2024#");
    }

    #[test]
    fn a_template_that_cannot_be_read_is_refused() {
        for text in ["", "{", "a}", "{A}{B}", "{A:0}", "{A:99}", "{}", "x{A*}", "{A%0}", "{A B}", "{A}-{B}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn descending_numbers_sort_the_other_way_round() {
        let key = |n: &str| template("{MAX-N:5}").build(&Fields::from([("N", n)])).unwrap();
        assert!(key("2") < key("1"));
        assert_eq!(key("1"), "99998");
    }
}
