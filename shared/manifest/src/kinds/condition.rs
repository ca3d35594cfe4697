//! `where = "status IN ('paid', 'sent') AND total > 0"`, or short `where = { status = "paid" }`: which items take part.

use derive::condition::Condition;
use keys::entity::Definition;

use super::{Rule, attribute, given::held};
use crate::{error::ManifestError, section::Named};

/// The condition of a derivation on the items of an entity.
pub(super) fn read(rule: &Rule<'_>, source: &Definition) -> Result<Condition, ManifestError> {
    let Some(entry) = rule.section.get("where") else { return Ok(Condition::Always) };
    if entry.is_table() {
        if let Some(other) = entry.section()?.entries().find(|entry| !entry.is_text()) {
            return Err(other.place.wrong(
                "is no text, and this short form takes one: write the condition as text, as in where = \"total = 7\" or \
                 where = \"status IN ('paid', 'sent')\"",
            ));
        }
        let (named, is) = entry.pair()?;
        rule.types.refuse(&source.name, &named, "where")?;
        return Ok(Condition::is(&held(source, &named, rule.types)?, is.text));
    }
    let text = entry.text()?;
    let condition: Condition =
        text.text.parse().map_err(|error| text.place.wrong(format!("is no condition: {error}")))?;
    let named = |name| Named { text: name, place: text.place.clone() };
    for name in condition.attributes() {
        if source.key.holds(name) {
            let what = format!("{name} is a field of the key of {}, and a condition is about attributes", source.name);
            return Err(text.place.wrong(what));
        }
        attribute(source, &named(name)).map_err(|mut error| {
            if !error.what.ends_with('?') {
                error.what.push_str("; a text in a condition stands in single quotes");
            }
            error
        })?;
    }
    for (path, name) in condition.paths() {
        let taken =
            format!("\"{path}\" is inside of it, where it has no parts: name an attribute that is a map or a list");
        rule.types.with_parts(source, &named(name), name, &taken)?;
    }
    for (name, of) in condition.compared() {
        rule.types.compare(&source.name, &named(name), of)?;
    }
    Ok(condition)
}
