//! What DynamoDB says of a failure, without the values that it quotes.
//!
//! *Keeps true*: what of a message reaches an error names operations, attributes and rules, and no value of any item:
//! errors are logged. DynamoDB quotes values in quotation marks, brackets or braces, or at the end, behind `value:`.

/// Longest message that is shown, in bytes: what says why stands in front.
const BYTES_MAX: usize = 400;

/// Stands for what is left out.
const LEFT_OUT: &str = "…";

/// A message, without what it quotes.
pub(super) fn without_values(message: &str) -> String {
    let (mut kept, mut rest) = (String::new(), message);
    while let Some(at) = rest.find(['\'', '"', '`', '[', '{', ':']) {
        let (before, quoted) = rest.split_at(at);
        kept.push_str(before);
        let mark = quoted.chars().next().unwrap_or(':');
        let inner = quoted.get(1..).unwrap_or_default();
        if mark == ':' {
            kept.push(mark);
            if before.to_lowercase().ends_with("value") {
                kept.push_str(LEFT_OUT);
                rest = "";
            } else {
                rest = inner;
            }
        } else if is_apostrophe(mark, &kept, inner) {
            kept.push(mark);
            rest = inner;
        } else {
            kept.push_str(LEFT_OUT);
            rest = end_of(mark, inner).and_then(|end| inner.get(end..)).unwrap_or_default();
        }
    }
    kept.push_str(rest);
    kept.truncate(kept.floor_char_boundary(BYTES_MAX));
    kept
}

/// Does it stand within a word?
fn is_apostrophe(mark: char, before: &str, after: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    mark == '\'' && is_letter(before.chars().next_back()) && is_letter(after.chars().next())
}

/// Where what is quoted ends, behind the mark that ends it; `None` where nothing does.
///
/// What is quoted may hold the mark itself, so the last one counts; of brackets and braces too.
fn end_of(mark: char, quoted: &str) -> Option<usize> {
    let end = match mark {
        '[' => ']',
        '{' => '}',
        mark => mark,
    };
    quoted.rfind(end).map(|at| at + end.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_quotes_is_left_out() {
        let messages = [
            "The parameter cannot be converted to a numeric value: Ada Lovelace",
            "1 validation error detected: Value 'Ada's \"own\"' at 'item.name' failed to satisfy constraint",
            "One or more parameter values were invalid: Input collection [Ada, [Bob], Ada] contains duplicates",
            "One or more parameter values were invalid: Type mismatch for key PK expected: S actual: N",
            "The item's size has exceeded the maximum allowed size",
            "Invalid value: {\"S\": \"Ada\"}",
            "An attribute is `Ada",
        ];
        let kept: Vec<String> = messages.map(without_values).into();
        expect_test::expect![[r#"
            The parameter cannot be converted to a numeric value:…
            1 validation error detected: Value … failed to satisfy constraint
            One or more parameter values were invalid: Input collection … contains duplicates
            One or more parameter values were invalid: Type mismatch for key PK expected: S actual: N
            The item's size has exceeded the maximum allowed size
            Invalid value:…
            An attribute is …"#]]
        .assert_eq(&kept.join("\n"));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let kept = without_values(&"é".repeat(BYTES_MAX));
        assert_eq!(kept.len(), BYTES_MAX);
    }
}
