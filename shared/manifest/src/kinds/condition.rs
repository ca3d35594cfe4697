//! `where = "status IN ('paid', 'sent') AND total > 0"`, or short `where = { status = "paid" }`: which items take part.

use derive::{condition::Condition, expression::Expression};
use keys::entity::Definition;

use super::{
    Rule,
    given::{given, known_path},
};
use crate::{error::ManifestError, section::Named};

/// The condition of a derivation on the items of an entity.
pub(super) fn read(rule: &Rule<'_>, source: &Definition) -> Result<Condition, ManifestError> {
    let Some(entry) = rule.section.get("where") else { return Ok(Condition::Always) };
    if entry.is_table() {
        if let Some(other) = entry.section()?.entries().find(|entry| !entry.is_text()) {
            return Err(other.place.wrong(
                "is not a text, and this short form compares texts only: write the condition as text, as in where = \"total = 7\" or \
                 where = \"status IN ('paid', 'sent')\"",
            ));
        }
        let (named, is) = entry.pair()?;
        rule.types.refuse(&source.name, &named, "where")?;
        let name = given(source, &named, rule.types)?;
        rule.types.compare(source, &Named { text: &name, place: named.place.clone() }, "S")?;
        return Ok(Condition::is(&name, is.text));
    }
    let text = entry.text()?;
    let condition: Condition =
        text.text.parse().map_err(|error| text.place.wrong(format!("is no condition: {error}")))?;
    for path in condition.paths() {
        known_path(source, path, &text, rule.types)?;
    }
    for (path, of, call) in condition.operands().flat_map(Expression::taken) {
        rule.types.takes(source, path, (of, call), &text)?;
    }
    for (name, of) in condition.compared() {
        rule.types.compare(source, &Named { text: name, place: text.place.clone() }, of)?;
    }
    Ok(condition)
}
