//! Reads keys of a form in which a value may contain the text that ends its field, such as `{Choice}.{Shard}`.
//!
//! What it keeps true: a key is read only if it can be read in one way, so two sets of fields never share a key. `a.b.c`
//! could be `a` and `b.c`, or `a.b` and `c`, so it is read as neither. With `{Choice*}.{Shard}` it is `a.b` and `c`: the
//! marked field is as long as it can be, so the other values never contain the text.

use smol_str::SmolStr;

use super::{Form, Piece, Template};
use crate::{
    error::{KeyError, Problem},
    fields::Fields,
};

/// Most ends of fields that are tried for one key. Keys of people have a few separators; another key is in doubt.
const ENDS_MAX: usize = 1_000;

/// How a key can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// It has another form.
    None,
    /// In this way only.
    One(Fields),
    /// In several ways, or in more than can be tried.
    InDoubt,
}

/// The ways to read a key that were found.
struct Search {
    n_ends: usize,
    n_found: usize,
    /// The first one.
    first: Option<Fields>,
    /// The number of ways after which the search ends.
    enough: usize,
}

impl Template {
    /// How a key can be read.
    pub(super) fn read(&self, key: &str) -> Reading {
        let ends_raw = matches!(self.pieces.last(), Some(Piece::Field { form: Form::Raw, .. }));
        // The shortest values in front leave the longest one for the marked field at the end.
        let mut search = Search { n_ends: 0, n_found: 0, first: None, enough: if ends_raw { 1 } else { 2 } };
        let (pieces, fields) = match self.pieces.split_first() {
            Some((Piece::Literal(literal), rest)) => (rest, key.strip_prefix(literal.as_str())),
            _ => (self.pieces.as_slice(), Some(key)),
        };
        match (pieces.split_first(), fields) {
            (_, None) => return Reading::None,
            (Some((Piece::Field { name, form: Form::Raw }, rest)), Some(key)) => search.last_end(name, rest, key),
            (_, Some(key)) => search.pieces(pieces, key, &Fields::new()),
        }
        match search {
            Search { n_ends, .. } if n_ends > ENDS_MAX => Reading::InDoubt,
            Search { n_found: 0, .. } => Reading::None,
            Search { n_found: 1, first: Some(fields), .. } => Reading::One(fields),
            Search { .. } => Reading::InDoubt,
        }
    }

    /// Refuses a key that could be read in another way than by the values that it was built from.
    pub(super) fn certain<'a>(&self, key: &str, value: impl Fn(&str) -> Option<&'a str>) -> Result<(), KeyError> {
        let is_same = |fields: &Fields| {
            self.pieces.iter().all(|piece| match piece {
                Piece::Field { name, form: Form::Text | Form::Plain | Form::Path | Form::Raw } => {
                    fields.get(name) == value(name)
                }
                Piece::Field { name, form: Form::Cased(casing) } => {
                    fields.get(name) == value(name).map(|text| casing.of(text)).as_deref()
                }
                // The other forms have a fixed width, or show no text.
                Piece::Field { .. } | Piece::Literal(_) => true,
            })
        };
        if matches!(self.read(key), Reading::One(fields) if is_same(&fields)) {
            return Ok(());
        }
        let texts = || {
            self.pieces.iter().filter_map(|piece| match piece {
                Piece::Literal(text) if !text.contains('#') => Some(text.as_str()),
                Piece::Literal(_) | Piece::Field { .. } => None,
            })
        };
        let names = self.field_names().into_iter();
        let containing =
            |name| Some((name, texts().find(|text| value(name).is_some_and(|value| value.contains(*text)))?));
        let (name, text) =
            names.clone().find_map(containing).or_else(|| names.clone().zip(texts()).next()).unwrap_or_default();
        Err(KeyError::new(name, Problem::InDoubt { text: text.to_owned() }))
    }
}

impl Search {
    fn is_over(&self) -> bool {
        self.n_found >= self.enough || self.n_ends > ENDS_MAX
    }

    /// Reads these pieces, after the fields that were read.
    fn pieces(&mut self, pieces: &[Piece], key: &str, before: &Fields) {
        match pieces {
            [] if key.is_empty() => {
                self.n_found += 1;
                self.first.get_or_insert_with(|| before.clone());
            }
            [] => {}
            [Piece::Literal(literal), rest @ ..] => {
                if let Some(key) = key.strip_prefix(literal.as_str()) {
                    self.pieces(rest, key, before);
                }
            }
            [Piece::Field { name, form }, rest @ ..] => {
                for end in ends(rest, key) {
                    self.n_ends += 1;
                    if self.is_over() {
                        return;
                    }
                    let mut fields = before.clone();
                    if let Some((value, key)) = key.split_at_checked(end)
                        && form.read(name, value, &mut fields)
                    {
                        self.pieces(rest, key, &fields);
                    }
                }
            }
        }
    }

    /// Reads a marked field at the start: it ends at the last place where the rest can be read.
    fn last_end(&mut self, name: &SmolStr, rest: &[Piece], key: &str) {
        for end in ends(rest, key).into_iter().rev() {
            self.n_ends += 1;
            let Some((value, key)) = key.split_at_checked(end).filter(|_| end > 0) else { return };
            self.pieces(rest, key, &Fields::from([(name.clone(), value)]));
            if self.n_found > 0 || self.is_over() {
                return;
            }
        }
    }
}

/// The places where a field may end: before each text that follows it, also where two of them overlap.
fn ends(rest: &[Piece], key: &str) -> Vec<usize> {
    let Some(Piece::Literal(literal)) = rest.first() else { return vec![key.len()] };
    let begins = |at: &usize| key.get(*at..).is_some_and(|key| key.starts_with(literal.as_str()));
    key.char_indices().map(|(at, _)| at).filter(begins).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    #[track_caller]
    fn reads(form: &str, key: &str, wanted: &[(&str, &str)]) {
        let fields: Fields = wanted.iter().copied().collect();
        assert_eq!(template(form).parse_key(key), Some(fields.clone()), "{form} {key}");
        assert_eq!(template(form).build(&fields).as_deref(), Ok(key), "{form} {key}");
    }

    #[test]
    fn any_text_may_stand_between_two_fields() {
        reads("{Choice}.{Shard}", "GOOD.4", &[("Choice", "GOOD"), ("Shard", "4")]);
        reads("{Choice}.{Shard}", "50%25.4", &[("Choice", "50%"), ("Shard", "4")]);
        reads("{A}:{B}", "a:b", &[("A", "a"), ("B", "b")]);
        reads("user-{Id}", "user-a-b", &[("Id", "a-b")]);
        reads("$edb_e#{Id}", "$edb_e#7", &[("Id", "7")]);
        reads("{A}-x", "a-x-x", &[("A", "a-x")]);
        reads("{A}.{B}-{C}", "a.b-c.d", &[("A", "a"), ("B", "b"), ("C", "c.d")]);
        reads("{Choice}.{Shard:2}", "PCMR.2.07", &[("Choice", "PCMR.2"), ("Shard", "7")]);
    }

    #[test]
    fn a_marked_field_takes_as_much_as_it_can() {
        reads("{Room}:{At*}", "r:10:30:00Z", &[("Room", "r"), ("At", "10:30:00Z")]);
        reads("{Choice*}.{Shard}", "PCMR.2.7", &[("Choice", "PCMR.2"), ("Shard", "7")]);
        reads("A#{A}.{B}.{C*}", "A#a.b.c.d#e", &[("A", "a"), ("B", "b"), ("C", "c.d#e")]);
        reads("Votes#{Choice*}.{Shard}", "Votes#PCMR.2.7", &[("Choice", "PCMR.2"), ("Shard", "7")]);
        reads("{A*}", "a#b%2", &[("A", "a#b%2")]);
        reads("X#{A*}", "X#a#b%2", &[("A", "a#b%2")]);
    }

    #[test]
    fn a_key_that_can_be_read_in_two_ways_is_not_read_and_not_built() {
        for (form, key) in
            [("{A}.{B}", "a.b.c"), ("{A}--{B}", "a---b"), ("{A}.{B}.{C}", "a.b.c.d"), ("{A}:{B}", "r:10:30:00Z")]
        {
            assert_eq!((template(form).parse_key(key), template(form).is_in_doubt(key)), (None, true), "{form} {key}");
        }
        let build = |form: &str, a: &str, b: &str| {
            let error = template(form).build(&Fields::from([("A", a), ("B", b)])).unwrap_err();
            (error.attribute.clone(), error.to_string())
        };
        let (attribute, message) = build("{A}.{B}", "a", "b.c");
        assert_eq!(attribute, "B");
        assert_eq!(
            message,
            "B makes a key that can be read in two ways, as `.` separates its values: use `#` there, or mark one field \
             whose values hold it with `*`, as in {name*}"
        );
        assert_eq!(build("{A*}.{B}", "a", "b.c").0, "B");
        assert_eq!(build("{A}--{B}", "a-", "b").0, "A");
        for (form, key) in [("{A}.{B}", "ab"), ("{A}.{B}", ".b"), ("{A}.{B}", "a."), ("{A*}.{B}", ".b")] {
            assert_eq!((template(form).parse_key(key), template(form).is_in_doubt(key)), (None, false), "{form} {key}");
        }
    }

    #[test]
    fn a_key_with_too_many_separators_is_in_doubt_at_once() {
        let key = format!("{}x", ".".repeat(1_023));
        for form in ["{A}.{B}.{C}.{D:3}", "{A}.{B}.{C}.{D:3}.{E*}", "{A*}.{B}.{C}.{D:3}"] {
            assert_eq!(template(form).parse_key(&key), None, "{form}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_key_that_is_built_reads_back(
            a in "[.:|_#%aB-]{1,6}", b in "[.:|_#%aB-]{1,6}", c in "[.:|_#%aB-]{1,6}", n in 0u64..1_000
        ) {
            let fields = |names: &[&str]| -> Fields {
                let all = [("A", a.clone()), ("B", b.clone()), ("C", c.clone()), ("N", n.to_string())];
                all.into_iter().filter(|(name, _)| names.contains(name)).collect()
            };
            for form in [
                "{A}.{B}", "{A}:{B}", "{A}|{B}", "{A}_{B}", "{A}--{B}", "a{A}", "{A}-a", "{A}.{B}.{C}", "{A}#{B}.{C}",
                "{A}.{B}#{C}", "{A}.{N:3}", "{N:3}.{B}", "{A*}.{B}", "{A}.{B*}", "{A*}.{N:3}", "a-{A}_{B}.{C*}", "{A!}.{B!}",
            ] {
                let template = template(form);
                let fields = fields(&template.field_names());
                if let Ok(key) = template.build(&fields) {
                    proptest::prop_assert_eq!(template.parse_key(&key), Some(fields), "{} {}", form, key);
                }
            }
        }

        #[test]
        fn a_value_without_the_text_is_never_in_doubt(a in "[a-zA-Z0-9#%-]{1,6}", b in "[a-zA-Z0-9#%-]{1,6}") {
            let fields = Fields::from([("A", a), ("B", b)]);
            for form in ["{A}.{B}", "{A}:{B}", "{A}|{B}", "{A}_{B}", "{A*}.{B}", "{A}.{B*}"] {
                let key = template(form).build(&fields);
                proptest::prop_assert!(key.is_ok(), "{} {:?}", form, key);
                proptest::prop_assert_eq!(template(form).parse_key(&key.unwrap()), Some(fields.clone()), "{}", form);
            }
        }

        #[test]
        fn different_fields_make_different_keys(
            a in "[.a]{1,3}", b in "[.a]{1,3}", c in "[.a]{1,3}", d in "[.a]{1,3}"
        ) {
            for form in ["{A}.{B}", "{A*}.{B}", "{A}.{B*}", "{A}..{B}"] {
                let one = template(form).build(&Fields::from([("A", &a), ("B", &b)]));
                let two = template(form).build(&Fields::from([("A", &c), ("B", &d)]));
                if let (Ok(one), Ok(two)) = (one, two) {
                    proptest::prop_assert_eq!(one == two, (&a, &b) == (&c, &d), "{} {}", form, one);
                }
            }
        }

        #[test]
        fn a_key_that_is_read_is_the_one_that_its_fields_make(text in "[.#%235Fa]{1,9}") {
            for form in ["{A}.{B}", "{A*}.{B}", "{A}.{B*}", "{A}..{B}", "{A}.{B:2}", "{lower(A)}", "{upper(A)}.{B}"] {
                if let Some(fields) = template(form).parse_key(&text) {
                    proptest::prop_assert_eq!(template(form).build(&fields), Ok(text.clone()), "{}", form);
                }
            }
        }

        #[test]
        fn a_text_in_one_case_is_read_in_that_case(a in ".{1,6}") {
            let fields = Fields::from([("A", a.as_str())]);
            for (form, cased) in [("K#{lower(A)}", a.to_lowercase()), ("K#{upper(A)}", a.to_uppercase())] {
                let key = template(form).build(&fields).unwrap();
                // A few letters have no one form in a case, and are refused when they are read.
                if let Some(read) = template(form).parse_key(&key) {
                    proptest::prop_assert_eq!(read, Fields::from([("A", cased)]), "{}", key);
                }
            }
        }
    }
}
