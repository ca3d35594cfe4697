//! Decides whether one key can match two forms, and finds such forms without comparing all pairs.
//!
//! No key may match two entities that Ripple writes. In a table without a type attribute, an item is known by its key
//! alone, so no key may match any two entities.
//!
//! A key begins with the text before the first field of its form. So two forms can only meet if one beginning is a
//! prefix of the other.

use std::collections::BTreeMap;

use crate::{
    entity::KeyTemplate,
    template::{Piece, Template, form::Form},
};

/// Values by the beginning of their form.
type ByBeginning<'a, T> = BTreeMap<&'a str, T>;

/// Key forms, each with its owner.
#[derive(Debug)]
pub struct KeyForms<'a, T> {
    /// By the beginning of the partition key, then of the sort key.
    forms: ByBeginning<'a, ByBeginning<'a, Vec<(&'a KeyTemplate, T)>>>,
}

impl<T> Default for KeyForms<'_, T> {
    fn default() -> Self {
        Self { forms: BTreeMap::new() }
    }
}

impl<'a, T> KeyForms<'a, T> {
    /// Adds a form.
    pub fn insert(&mut self, form: &'a KeyTemplate, of: T) {
        let by_sort_key = self.forms.entry(form.pk.beginning()).or_default();
        by_sort_key.entry(form.sk.beginning()).or_default().push((form, of));
    }

    /// The owners of the forms that a key of this form could match too.
    pub fn meeting<'f>(&'f self, form: &'f KeyTemplate) -> impl Iterator<Item = &'f T> {
        self.alike(form).filter(|(other, _)| other.meets(form)).map(|(_, of)| of)
    }

    /// The forms to compare with this one.
    fn alike<'f>(&'f self, form: &'f KeyTemplate) -> impl Iterator<Item = &'f (&'a KeyTemplate, T)> {
        let by_sort_key = alike(&self.forms, &form.pk);
        by_sort_key.flat_map(|forms| alike(forms, &form.sk)).flatten()
    }
}

/// The values whose beginnings are prefixes of the form's beginning, or have it as a prefix.
fn alike<'f, T>(by: &'f ByBeginning<'_, T>, form: &'f Template) -> impl Iterator<Item = &'f T> {
    let beginning = form.beginning();
    let shorter = beginning.char_indices().filter_map(move |(end, _)| by.get(beginning.get(..end)?));
    let longer = by.range(beginning..).take_while(move |(other, _)| other.starts_with(beginning));
    shorter.chain(longer.map(|(_, value)| value))
}

// ---- One key of two forms ----

/// A class of characters of a key.
#[derive(Clone, Copy, Debug)]
enum Class {
    Is(char),
    Digit,
    /// Any character except `#`, which is escaped in a value.
    InValue,
    Any,
}

impl Class {
    /// A character of both classes.
    fn common(self, other: Self) -> Option<char> {
        match (self, other) {
            (Self::Is(one), Self::Is(other)) => (one == other).then_some(one),
            (Self::Is(one), Self::Digit) | (Self::Digit, Self::Is(one)) => one.is_ascii_digit().then_some(one),
            (Self::Is(one), Self::InValue) | (Self::InValue, Self::Is(one)) => (one != '#').then_some(one),
            (Self::Is(one), Self::Any) | (Self::Any, Self::Is(one)) => Some(one),
            (Self::Digit, _) | (_, Self::Digit) => Some('0'),
            (Self::InValue | Self::Any, Self::InValue | Self::Any) => Some('x'),
        }
    }
}

/// One character, or any number of them.
#[derive(Clone, Copy, Debug)]
struct CharStep {
    class: Class,
    repeats: bool,
}

impl Template {
    /// True if one key text could match both forms. `false` is certain. A field that occurs twice is treated as two
    /// fields, so `true` may be wrong.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.meeting(other).is_some()
    }

    /// The shortest text that could match both forms; `None` is certain, as in [`meets`](Self::meets).
    #[must_use]
    pub fn meeting(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (self.steps(), other.steps());
        // Positions in both forms that one text can lead to, each once, with the position before and the character.
        let mut known: Vec<(usize, usize, usize, Option<char>)> = vec![(0, 0, 0, None)];
        let mut at = 0;
        while let Some(&(one, another, ..)) = known.get(at) {
            let (ours, theirs) = (ours.get(one), theirs.get(another));
            if ours.is_none() && theirs.is_none() {
                return Some(text_to(&known, at));
            }
            let mut lead = |one, another, character| {
                if !known.iter().any(|place| (place.0, place.1) == (one, another)) {
                    known.push((one, another, at, character));
                }
            };
            if ours.is_some_and(|step| step.repeats) {
                lead(one + 1, another, None);
            }
            if theirs.is_some_and(|step| step.repeats) {
                lead(one, another + 1, None);
            }
            if let (Some(ours), Some(theirs)) = (ours, theirs)
                && let Some(character) = ours.class.common(theirs.class)
            {
                lead(one + usize::from(!ours.repeats), another + usize::from(!theirs.repeats), Some(character));
            }
            at += 1;
        }
        None
    }

    fn steps(&self) -> Vec<CharStep> {
        self.pieces().iter().flat_map(Piece::steps).collect()
    }
}

/// The text of the characters that lead to this place.
fn text_to(known: &[(usize, usize, usize, Option<char>)], mut at: usize) -> String {
    let mut text = Vec::new();
    while let Some(&(.., before, character)) = known.get(at).filter(|_| at > 0) {
        text.extend(character);
        at = before;
    }
    text.into_iter().rev().collect()
}

impl Piece {
    fn steps(&self) -> Vec<CharStep> {
        let once = |class| CharStep { class, repeats: false };
        let some = |class| vec![once(class), CharStep { class, repeats: true }];
        match self {
            Self::Literal(literal) => literal.chars().map(|character| once(Class::Is(character))).collect(),
            Self::Field { form, .. } => match form {
                Form::Padded(width) | Form::Inverted(width) => vec![once(Class::Digit); width.digits],
                Form::Spread { .. } => vec![once(Class::Digit); 2],
                Form::Raw => some(Class::Any),
                Form::Text
                | Form::Plain
                | Form::Cased(_)
                | Form::Path
                | Form::LastSegment
                | Form::Number
                | Form::Bytes => some(Class::InValue),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Many entities, each with its own partition or sort key.
    const MANY: usize = 2_000;

    fn form(pk: &str, sk: &str) -> KeyTemplate {
        KeyTemplate::parse(pk, sk).unwrap()
    }

    proptest! {
        #[test]
        fn the_forms_that_meet_are_found(parts in proptest::collection::vec((0..8usize, 0..8usize), 1..12)) {
            let texts = ["A", "A#{a}", "A#B#{b}", "{a}", "{a}#B", "{a*}#X#{b:2}", "A#{a}#{b}", "B#{b:2}"];
            let forms: Vec<KeyTemplate> = parts.iter().map(|(pk, sk)| form(texts[*pk], texts[*sk])).collect();
            let mut all = KeyForms::default();
            for (at, form) in forms.iter().enumerate() {
                let mut found: Vec<usize> = all.meeting(form).copied().collect();
                found.sort_unstable();
                let compared: Vec<usize> = (0..at).filter(|other| forms[*other].meets(form)).collect();
                prop_assert_eq!(found, compared, "{:?}", form);
                all.insert(form, at);
            }
        }
    }

    #[test]
    fn forms_that_begin_otherwise_are_not_compared() {
        let one_table = |at: usize| form("USER#{userId}", &format!("KIND{at}#{{id}}"));
        let partitions = |at: usize| form(&format!("KIND{at}#{{id}}"), "ITEM");
        for forms in [(0..MANY).map(one_table).collect::<Vec<_>>(), (0..MANY).map(partitions).collect()] {
            let mut all = KeyForms::default();
            let mut n_compared = 0;
            for form in &forms {
                n_compared += all.alike(form).count();
                all.insert(form, ());
            }
            assert_eq!(n_compared, 0);
        }
    }

    fn check(one: &str, other: &str, meet: bool) {
        let [one, other] = [one, other].map(|text| Template::parse(text).unwrap());
        assert_eq!((one.meets(&other), other.meets(&one)), (meet, meet), "{one} and {other}");
    }

    #[test]
    fn a_text_of_both_forms_is_an_example() {
        let meeting = |one: &str, other: &str| Template::parse(one).unwrap().meeting(&Template::parse(other).unwrap());
        assert_eq!(meeting("SUB#{A}#SKU#{B}", "{C}#{D}#SKU#{E:2}").as_deref(), Some("SUB#x#SKU#00"));
        assert_eq!(meeting("{A}.{B}", "RED.{C:2}").as_deref(), Some("RED.00"));
        assert_eq!(meeting("SUB#{A}#SKU#{B}", "SUB#{A}#COUNT#paid#{C:2}"), None);
    }

    #[test]
    fn forms_meet_where_one_text_is_of_both() {
        check("USER#{A}", "USER#{B}", true);
        check("USER#{A}", "USER#ann", true);
        check("USER#{A}", "POST#{A}", false);
        check("USER#{A}", "USER#{A}#{B}", false);
        check("{A}", "{B}#{C}", false);
        check("A{A}", "{B}Z", true);
        check("A{A}", "B{B}", false);
        check("N#{A:3}", "N#042", true);
        check("N#{A:3}", "N#{B:4}", false);
        check("N#{A:3}", "N#x{B}", false);
        check("P#{A%8}", "P#{MAX-B:2}", true);
        check("FILE#{Path/}", "FILE#{Id}", true);
        check("{T*}#COUNT#{D}#{S:2}", "USER#{A}", false);
        check("{T*}#COUNT#{D}#{S:2}", "A#{B}#{C}#{D}#{E}", true);
        check("{T*}#COUNT#{D}#{S:2}", "{B}#{C}#{D:3}", false);
        check("PROFILE", "PROFIL", false);
    }

    proptest! {
        #[test]
        fn forms_that_share_a_key_meet(a in "[#A1]+", b in "[#A1]+", n in 0u64..100) {
            let forms = ["A#{A}", "{A}#{B}", "{A}#1#{B}", "{N:2}#{A}", "{A*}#{B}", "A{A}#{N:2}", "A#A"];
            let fields = crate::fields::Fields::from([("A", a), ("B", b), ("N", n.to_string())]);
            let forms = forms.map(|form| Template::parse(form).unwrap());
            for one in &forms {
                let key = one.build(&fields).unwrap();
                for other in forms.iter().filter(|other| other.parse_key(&key).is_some()) {
                    prop_assert!(one.meets(other), "{} is of {} and {}", key, one, other);
                }
            }
        }
    }
}
