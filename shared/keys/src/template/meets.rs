//! Decides whether one key can match two forms.
//!
//! No key may match two entities that Ripple writes. In a table without a type attribute, an item is known by its key
//! alone, so no key may match any two entities.

use super::{Form, Piece, Template};

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

    /// The text before its first field, with which every key of this form begins.
    #[must_use]
    pub fn beginning(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Literal(literal)) => literal,
            _ => "",
        }
    }

    /// The template with unescaped texts, for a table whose keys escape nothing.
    #[must_use]
    pub fn unescaped(self) -> Self {
        let mut template = self;
        for piece in &mut template.pieces {
            match piece {
                Piece::Field { name, form: form @ Form::Text } => {
                    *form = Form::Plain;
                    template.text = template.text.replace(&format!("{{{name}}}"), &format!("{{{name}!}}"));
                }
                Piece::Field { form: Form::Cased(casing), .. } => casing.is_escaped = false,
                Piece::Field { .. } | Piece::Literal(_) => {}
            }
        }
        template
    }

    fn steps(&self) -> Vec<CharStep> {
        self.pieces.iter().flat_map(Piece::steps).collect()
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
    use super::*;

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

    proptest::proptest! {
        #[test]
        fn forms_that_share_a_key_meet(a in "[#A1]+", b in "[#A1]+", n in 0u64..100) {
            let forms = ["A#{A}", "{A}#{B}", "{A}#1#{B}", "{N:2}#{A}", "{A*}#{B}", "A{A}#{N:2}", "A#A"];
            let fields = crate::fields::Fields::from([("A", a), ("B", b), ("N", n.to_string())]);
            let forms = forms.map(|form| Template::parse(form).unwrap());
            for one in &forms {
                let key = one.build(&fields).unwrap();
                for other in forms.iter().filter(|other| other.parse_key(&key).is_some()) {
                    proptest::prop_assert!(one.meets(other), "{} is of {} and {}", key, one, other);
                }
            }
        }
    }
}
