//! `kind = "count"`: how many items of an entity belong to a target, with its display where `into` names an attribute.
//!
//! ```toml
//! [derivation.follower-count]
//! kind = "count"
//! from = "Follow"
//! into = "User.followerCount"
//! link = { userId = "followedId" }
//! shards = 8
//! zero = "absent"
//! ```

use derive::{
    declaration::count::Count,
    derivation::Derivation,
    kinds::display::{Display, Shows, Zero},
};

use super::{DISPLAY, KindSyntax, Rule, condition, derived_attribute, entity, named};
use crate::{error::ManifestError, section::Named};

/// Most shards of a counter, and one: two digits of its key hold them.
const SHARDS_END: u32 = 101;

pub(super) const KIND: KindSyntax =
    KindSyntax { name: "count", keys: &["from", "into", "link", "where", "shards", "history", "zero"], read };

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity whose items are counted")?;
    let into = rule.section.required("into", "where the count is shown, as in \"User.followerCount\"")?.text()?;
    let (target, shown) = match into.text.split_once('.') {
        Some((target, shown)) => (target, Some(Named { text: shown, place: into.place.clone() })),
        None => (into.text, None),
    };
    let target = entity(rule.schema, &Named { text: target, place: into.place.clone() })?;
    let zero = zero(rule, shown.is_some())?;
    let attribute_shown = shown.map(|shown| derived_attribute(target, &shown)).transpose()?;
    let count = Count {
        source: source.name.clone(),
        condition: condition::read(rule, source)?,
        sum: None,
        target: target.name.clone(),
        link: rule.link(target, source)?,
        n_shards: rule.section.get("shards").map_or(Ok(1), |entry| entry.whole_number(1..SHARDS_END))?,
        history: rule.section.get("history").map_or(Ok(false), |entry| entry.truth())?,
    };
    let mut derivations = vec![named(rule.name, count)];
    if let Some(attribute) = attribute_shown {
        let (count, target) = (rule.name.to_owned(), target.name.clone());
        let display = Display { count, target, shows: Shows::Count, attribute, zero };
        derivations.push(named(&format!("{}{DISPLAY}", rule.name), display));
    }
    Ok(derivations)
}

/// What the display makes of zero.
fn zero(rule: &Rule<'_>, is_shown: bool) -> Result<Zero, ManifestError> {
    let Some(entry) = rule.section.get("zero") else { return Ok(Zero::default()) };
    if !is_shown {
        let what = "zero says how a count of zero is shown, and this count is not shown: name an attribute, as in into = \
                    \"User.followerCount\", or leave zero out";
        return Err(entry.place.wrong(what));
    }
    let named = entry.text()?;
    match named.text {
        "absent" => Ok(Zero::Absent),
        "write" => Ok(Zero::Write),
        _ => Err(named.unknown("zero is \"write\" or \"absent\", not", ["write", "absent"])),
    }
}
