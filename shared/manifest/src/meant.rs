//! Suggestions for a name that does not exist.

/// Most names that are listed if none of them is similar.
const LISTED_MAX: usize = 16;

/// The end of a sentence about an unknown name: a suggestion, or else the valid names.
#[must_use]
pub fn meant<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if let Some(near) = nearest(name, &names) {
        return format!(": did you mean \"{near}\"?");
    }
    match names.as_slice() {
        [] => ": there is none".to_owned(),
        [one] => format!(": there is {one}"),
        few if few.len() <= LISTED_MAX => format!(": there are {}", few.join(", ")),
        _ => String::new(),
    }
}

/// The end of such a sentence for a person at a terminal, with the command that lists the names.
#[must_use]
pub fn meant_or_listed<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let meant = meant(name, names);
    if meant.is_empty() { "; `ripple design` lists all".to_owned() } else { meant }
}

/// The nearest name within one or two typing errors; the first one if several are equally near.
fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let distance = |other: &str| strsim::damerau_levenshtein(&lower, &other.to_lowercase());
    let near = names.iter().map(|other| (distance(other), *other));
    let edits_max = (name.chars().count() / 3).clamp(1, 2);
    near.filter(|(edits, _)| *edits <= edits_max).min_by_key(|(edits, _)| *edits).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_seen_and_another_word_is_not() {
        let names = ["Follow", "FollowedBy", "User"];
        assert_eq!(meant("Folow", names), ": did you mean \"Follow\"?");
        assert_eq!(meant("followedby", names), ": did you mean \"FollowedBy\"?");
        assert_eq!(meant("Usre", names), ": did you mean \"User\"?");
        assert_eq!(meant("Order", names), ": there are Follow, FollowedBy, User");
        assert_eq!(meant("Order", ["User"]), ": there is User");
        assert_eq!(meant("Order", []), ": there is none");
    }
}
