//! `kind = "mirror"`: a second item for a source under another key.

use derive::{claims::CLAIMS, declaration::Mirror, derivation::Derivation};
use keys::entity::Definition;

use super::{KindSyntax, Rule, condition};
use crate::{
    error::ManifestError,
    meant::meant,
    section::Named,
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text, Texts},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "mirror",
        keeps: "Stores a copy of an item under another key.",
        family: "level-triggered",
        costs: "1 for each change of the item, and 1 for each index of the mirror that changes with it",
        example: r#"
[derivation.followed-by]
kind = "mirror"
from = "Follow"
to = "FollowedBy"
except = ["note"]

[derivation.memberships]
kind = "mirror"
from = "Channel"
to = "Membership"
each = "memberIds"
link = { userId = "memberIds" }
where = "attribute_not_exists(archivedAt)"
"#,
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 6] = [
    KeySyntax::required("from", Text, "the entity that is mirrored"),
    KeySyntax::required("to", Text, "the entity of the mirrors, which says `derived = true`"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the mirror's key and the field, attribute or [expression](#expressions) of the source that gives it",
    ),
    KeySyntax::optional(
        "where",
        ValueSyntax::Condition,
        "all",
        "mirrors only items that meet this [condition](own-table.md#conditions)",
    ),
    KeySyntax::optional(
        "each",
        Text,
        "one mirror",
        "an attribute of the source that is a list or a set: there is a mirror for each of its members, and `link` says \
         which field of the mirror's key the member is. The mirrors do not repeat the list",
    ),
    KeySyntax::optional(
        "except",
        Texts,
        "none",
        "attributes to leave out, also undeclared ones; a mirror repeats all others of its source, also those that no entity declares, but for keys, the type, the time to live and derived attributes: a name that is copied onto the source is copied onto the mirror by a copy of its own",
    ),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity that is mirrored")?;
    let to = rule.section.required("to", "the entity of the mirrors")?;
    let target = super::entity(rule.schema, &to.text()?)?;
    if !target.derived {
        let what =
            format!("{0} is the application's: a mirror's entity says derived = true in [entity.{0}]", target.name);
        return Err(to.place.wrong(what));
    }
    let link = rule.link(target, source)?;
    let given = |field: &&str| link.filled_by(field).is_some();
    if let Some(field) = source.key.field_names().into_iter().find(|field| !given(field))
        && !target.derived_attributes.iter().any(|name| name == CLAIMS)
    {
        let what = format!(
            "the key of {0} does not contain {field} of its {1}: put it into that key, if each {1} has a {0} of its own; if \
             several may share one, add \"{CLAIMS}\", a list of them, to the derived-attributes of {0}",
            target.name, source.name
        );
        return Err(to.place.wrong(what));
    }
    let except = rule.section.get("except").map(|entry| entry.texts()).transpose()?.unwrap_or_default();
    let except = except.iter().map(|named| left_out(source, named)).collect::<Result<_, _>>()?;
    let condition = condition::read(rule, source)?;
    let each = rule.each((source, target), &link)?;
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![rule.derivation(rule.name, Mirror { source, target, link, condition, each, except })?])
}

/// An attribute that mirrors leave out, which the entity need not declare. One that is spelled almost like a declared
/// attribute is a mistake.
fn left_out(source: &Definition, named: &Named<'_>) -> Result<String, ManifestError> {
    named.top_level()?;
    let declared = || source.attributes.iter().chain(&source.derived_attributes).map(String::as_str);
    if declared().all(|name| name != named.text) && meant(named.text, declared()).ends_with('?') {
        return Err(named.unknown(&format!("{} has no attribute", source.name), declared()));
    }
    Ok(named.text.to_owned())
}
