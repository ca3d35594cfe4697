//! Names of entities, indexes and fields as identifiers of a language.

use std::collections::BTreeSet;

/// Identifiers that are in use.
#[derive(Debug)]
pub(crate) struct Identifiers(BTreeSet<String>);

impl Identifiers {
    /// None but the reserved ones.
    pub(crate) fn without(reserved: &str) -> Self {
        Self(reserved.split_whitespace().map(str::to_owned).collect())
    }

    /// The identifier if it is free, else with `_` and maybe a number behind it.
    pub(crate) fn unused(&mut self, wanted: &str) -> String {
        let numbered = (2_u64..).map(|number| format!("{wanted}_{number}"));
        let mut wanted = [wanted.to_owned(), format!("{wanted}_")].into_iter().chain(numbered);
        let free = wanted.find(|name| self.0.insert(name.clone()));
        free.unwrap_or_default()
    }
}

/// `OrderLine`, of `order-line` or `orderLine`.
pub(crate) fn pascal(text: &str) -> String {
    let capital = |word: String| {
        let mut characters = word.chars();
        characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect::<String>()
    };
    valid(words(text).into_iter().map(capital).collect())
}

/// `orderLine`.
pub(crate) fn camel(text: &str) -> String {
    let pascal = pascal(text);
    let mut characters = pascal.chars();
    characters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(characters).collect()
}

/// `order_line`.
pub(crate) fn snake(text: &str) -> String {
    valid(words(text).join("_").to_ascii_lowercase())
}

fn valid(name: String) -> String {
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { format!("_{name}") }
}

/// The words of a name, without what is neither a letter nor a digit of ASCII.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let characters: Vec<char> = text.chars().collect();
    let mut begins = true;
    for (at, &character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            begins = true;
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(at + 1);
        let is_capital = character.is_ascii_uppercase();
        let follows_small = before.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
        let leads_small = after.is_some_and(char::is_ascii_lowercase);
        begins |= is_capital && (follows_small || leads_small);
        match words.last_mut().filter(|_| !begins) {
            Some(word) => word.push(character),
            None => words.push(character.to_string()),
        }
        begins = false;
    }
    if words.is_empty() { vec!["unnamed".to_owned()] } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_identifier() {
        for (name, pascal_, camel_, snake_) in [
            ("Order", "Order", "order", "order"),
            ("order-line", "OrderLine", "orderLine", "order_line"),
            ("orderedOn", "OrderedOn", "orderedOn", "ordered_on"),
            ("GSI1", "GSI1", "gSI1", "gsi1"),
            ("HTTPServer", "HTTPServer", "hTTPServer", "http_server"),
            ("2nd", "_2nd", "_2nd", "_2nd"),
            ("größe", "GrE", "grE", "gr_e"),
            ("…", "Unnamed", "unnamed", "unnamed"),
        ] {
            assert_eq!((pascal(name), camel(name), snake(name)), (pascal_.into(), camel_.into(), snake_.into()));
        }
    }

    #[test]
    fn no_identifier_is_used_twice() {
        let mut names = Identifiers::without("type self");
        let made = ["a", "a", "type", "a"].map(|name| names.unused(name));
        assert_eq!(made, ["a", "a_", "type_", "a_2"]);
    }
}
