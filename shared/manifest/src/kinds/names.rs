//! The names of derivations, and `was`: the first name of one that is renamed.

use std::collections::BTreeMap;

use crate::{
    error::ManifestError,
    section::{Section, TomlPlace},
};

/// Longest name of a derivation, in bytes: a counter's sort key holds it beside the target's key, and has 1,024.
const NAME_MAX: usize = 64;

/// What `DISABLED` and `--disable` take for several derivations.
const RESERVED: &str = "ground";

/// What those derivations were that are renamed, by the names that they have now. What one was is the name of no other,
/// because what is stored under it would be of both.
pub(super) fn renamed<'a>(declared: &[(&'a str, Section<'a>)]) -> Result<BTreeMap<&'a str, &'a str>, ManifestError> {
    let mut renamed = BTreeMap::new();
    for (name, section) in declared {
        let Some(was) = section.get("was").map(|entry| entry.text()).transpose()? else { continue };
        storable(was.text, &was.place)?;
        if was.text == *name {
            return Err(was.place.wrong("is the name that it has: leave it out, or say the name that it had first"));
        }
        if declared.iter().any(|(other, _)| *other == was.text) {
            let what = format!("there is a derivation {}, and what is stored under this name is of that one", was.text);
            return Err(was.place.wrong(what));
        }
        if let Some((other, _)) = renamed.iter().find(|(_, other)| **other == was.text) {
            let what = format!("{other} was {} too, and what is stored under this name is of one of them", was.text);
            return Err(was.place.wrong(what));
        }
        renamed.insert(*name, was.text);
    }
    Ok(renamed)
}

/// The name stands in the keys of counters, in metrics and in what commands print.
pub(super) fn storable(name: &str, place: &TomlPlace<'_>) -> Result<(), ManifestError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(place.wrong("a derivation's name is of letters, digits, - and _, since it is stored in keys"));
    }
    if name.len() > NAME_MAX {
        return Err(
            place.wrong(format!("a derivation's name has at most {NAME_MAX} letters, since it is stored in keys"))
        );
    }
    if name == RESERVED {
        return Err(place.wrong("DISABLED takes this name for all derivations that delete items: give it another one"));
    }
    Ok(())
}
