//! Percent escapes, so that a value may contain the separators of key parts.
//!
//! `#` and `%` are escaped in every value, `/` in a path segment too. A text without these, which is the common case,
//! is unchanged. Unescaping only undoes the escapes that are produced here; any other `%` is literal. A key template
//! only accepts a value as it is written here, so a key with the value `50%` matches no form; items derived from that
//! value have `50%25`.

/// Escapes `#` and `%`.
#[must_use]
pub fn value(text: &str) -> String {
    escaped(text, &['#', '%'])
}

/// Escapes `#`, `%` and `/`: a segment of a path.
#[must_use]
pub fn segment(text: &str) -> String {
    escaped(text, &['#', '%', '/'])
}

/// Undoes `%23`, `%25` and `%2F`.
#[must_use]
pub fn restored(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (character, len) = match from.get(..3) {
            Some("%23") => ('#', 3),
            Some("%25") => ('%', 3),
            Some("%2F") => ('/', 3),
            _ => ('%', 1),
        };
        out.push(character);
        rest = from.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn escaped(text: &str, reserved: &[char]) -> String {
    if !text.contains(reserved) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '#' if reserved.contains(&'#') => out.push_str("%23"),
            '%' if reserved.contains(&'%') => out.push_str("%25"),
            '/' if reserved.contains(&'/') => out.push_str("%2F"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_that_is_no_escape_stands_for_itself() {
        assert_eq!(restored("50% of %41 and %2"), "50% of %41 and %2");
        assert_eq!(restored("50%25"), "50%");
        assert_eq!(restored("%2523"), "%23");
    }

    proptest::proptest! {
        #[test]
        fn escaping_then_restoring_is_the_identity(text in ".*") {
            proptest::prop_assert_eq!(restored(&value(&text)), text.clone());
            proptest::prop_assert_eq!(restored(&segment(&text)), text);
        }
    }
}
