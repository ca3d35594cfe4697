//! `kind = "cascade"`: deletes the dependent items of a removed item.

use derive::{
    declaration::{Cascade, Fate, Hanging, Link, Way},
    derivation::Derivation,
    expression::Input,
};
use keys::{counter::COUNTER, entity::Definition};

use super::{KindSyntax, Rule, attribute, count, entity, link};
use crate::{
    error::ManifestError,
    section::{Named, Section},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pair, Pairs, Text, Texts},
    },
};

pub(super) const CASCADE: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "cascade",
        keeps: "Deletes what depends on a deleted item, two days and two hours later, unless the item is there again: after a day and an hour it is listed, and after another day and hour what has not changed since is deleted. `ripple dev` does not wait.",
        family: "level-triggered",
        costs: "2 for each item that is deleted, and 2 for each transaction of up to 24 of them",
        example: r#"
[derivation.post-cascade]
kind = "cascade"
owner = "PostDetail"
from = ["Post"]
hanging = [
    { entity = "Comment" },
    { entity = "Like", index = "byPost" },
    { counters = "view-count" },
    { entity = "Draft", set = { status = "archived" } },
]

[derivation.comments-of-a-removed-article]
kind = "cascade"
owner = "Article"
hanging = [{ entity = "Remark", index = "byArticle", by = { articleId = "articleId" } }]
"#,
        keys: &CASCADE_KEYS,
    },
    read: cascade,
};

const CASCADE_KEYS: [KeySyntax; 3] = [
    KeySyntax::required("owner", Text, "the entity on which the others hang"),
    KeySyntax::optional(
        "from",
        Texts,
        "the owner is removed by the application",
        "where the owner is a mirror: the entities that it is a mirror of",
    ),
    KeySyntax::required("hanging", ValueSyntax::Tables(&HANGING), "what goes with the owner, in this order"),
];

/// Keys of an entry of `hanging`.
const HANGING: [KeySyntax; 8] = [
    KeySyntax::optional("entity", Text, "", "the entity of what hangs on the owner"),
    KeySyntax::optional("through", Text, "the entity", "the entity to query for it"),
    KeySyntax::optional("index", Text, "the table", "the index to query"),
    KeySyntax::optional(
        "by",
        Pairs,
        "fields of the same names",
        "pairs of a field of the queried key and a field of the owner's key",
    ),
    KeySyntax::optional(
        "key",
        Pairs,
        "it is found by a query",
        "its one item, by its key: pairs of a field of that key and the attribute of the removed owner whose text, in lower case and without blanks around it, fills the field, such as `{ email = \"email\" }` for a claim of an address",
    ),
    KeySyntax::optional(
        "counters",
        Text,
        "",
        "instead of an entity: the owner's counters of this count with `history = true`; others go by themselves when what they count is deleted",
    ),
    KeySyntax::optional(
        "only-if",
        Pair,
        "always",
        "it is deleted only while its attribute holds this field of the owner's key",
    ),
    KeySyntax::optional("set", Pair, "it is deleted", "it stays, with this attribute set to this text"),
];

fn cascade(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let owner = rule.entity("owner", "the entity on which the others hang")?;
    not_derived(rule, owner, "owner")?;
    let from = rule.section.texts("from")?;
    let mut starts = Vec::new();
    for named in &from {
        let start = entity(rule.schema, named)?;
        starts.push((start.name.clone(), own(owner, start, named)?));
    }
    starts.push((owner.name.clone(), fields_of_key(owner)));
    let purpose = "what goes with the owner, as in [{ entity = \"Comment\" }]";
    let entry = rule.section.required("hanging", purpose)?;
    let entries = entry.sections()?;
    if entries.is_empty() {
        return Err(entry.place.wrong(format!("names nothing: add {purpose}")));
    }
    let hanging = entries.iter().map(|section| hanging(rule, section, owner)).collect::<Result<_, _>>()?;
    Ok(vec![rule.derivation(rule.name, Cascade { owner: owner.name.clone(), starts, hanging })?])
}

/// With several tables, a cascade must not depend on derived items: whether a derived item is missing depends on the
/// streams of other tables, and nothing shows that the functions handle each of them.
fn not_derived(rule: &Rule<'_>, entity: &Definition, key: &str) -> Result<(), ManifestError> {
    if !entity.derived || rule.schema.layout.forms.is_none() {
        return Ok(());
    }
    let place = rule.section.place_of(key);
    Err(place.wrong(format!(
        "{} is derived, and with [tables] nothing shows whether the functions have handled all that it is derived from: name \
         an entity that the application writes",
        entity.name
    )))
}

/// A link to the owner's key from fields and attributes of the same names.
fn own(owner: &Definition, start: &Definition, named: &Named<'_>) -> Result<Link, ManifestError> {
    let known = link::fields(start);
    match owner.key.field_names().into_iter().find(|field| !known.contains(field)) {
        Some(field) => {
            let what = format!("{} has no {field}, which the key of {} is made of", start.name, owner.name);
            Err(named.place.wrong(what))
        }
        None => Ok(fields_of_key(owner)),
    }
}

fn fields_of_key(owner: &Definition) -> Link {
    Link(owner.key.field_names().into_iter().map(|field| (field.to_owned(), Input::of(field))).collect())
}

fn hanging(rule: &Rule<'_>, section: &Section<'_>, owner: &Definition) -> Result<Hanging, ManifestError> {
    if let Some(counters) = section.get("counters") {
        section.only(&["counters"])?;
        let named = counters.text()?;
        let counts: Vec<&str> = rule.of_kind(count::COUNT.description.name).map(|(name, _)| *name).collect();
        link::known(&named, "there is no count", &counts)?;
        let found = Way::Counters(rule.stored(named.text).to_owned());
        return Ok(Hanging { entity: COUNTER.to_owned(), found, fate: Fate::Deleted });
    }
    section.follows(&HANGING)?;
    let target = entity(rule.schema, &section.required("entity", "the entity of what hangs on the owner")?.text()?)?;
    let found = if let Some(key) = section.get("key") {
        if let Some(other) = link::FOUND.iter().find_map(|key| section.get(key.name)) {
            return Err(other
                .place
                .wrong(format!("give {} or key, not both: an entry finds its items by one of them", other.key)));
        }
        let link = Link(link::pairs(&key, target, owner, rule.types)?);
        if let Some((field, input)) = link.0.iter().find(|(_, input)| input.name().is_none()) {
            let what =
                format!("`{input}` is calculated, and a key of what hangs takes {field} from an attribute as it is");
            return Err(key.place.wrong(what));
        }
        Way::Named(link)
    } else {
        if rule.schema.layout.forms.is_some() && section.get("by").is_none() && owner.key.field_names().contains(&"id")
        {
            let what = format!(
                "name the field of the queried key that is the id of {0}, with the index whose key it is in, as in index = \
                 \"by{0}\", by = {{ ownerId = \"id\" }}",
                owner.name
            );
            return Err(section.place.wrong(what));
        }
        let found = link::found_in(section, rule.schema, owner, target, |_| fields_of_key(owner))?;
        if let Some(via) = rule.schema.entity(&found.via) {
            not_derived(rule, via, "hanging")?;
        }
        link::finds(rule, owner, target, (&found, true), &section.place)?;
        Way::Found(found)
    };
    Ok(Hanging { entity: target.name.clone(), found, fate: fate(section, target, owner)? })
}

/// What happens to a dependent item.
fn fate(section: &Section<'_>, target: &Definition, owner: &Definition) -> Result<Fate, ManifestError> {
    match (section.get("set"), section.get("only-if")) {
        (None, None) => Ok(Fate::Deleted),
        (Some(set), None) => {
            let (named, text) = set.pair()?;
            Ok(Fate::Set { attribute: attribute(target, &named)?, text: text.text.to_owned() })
        }
        (None, Some(only_if)) => {
            let (named, field) = only_if.pair()?;
            link::known(&field, &format!("the key of {} has no field", owner.name), &owner.key.field_names())?;
            Ok(Fate::DeletedWhere { attribute: attribute(target, &named)?, field: field.text.to_owned() })
        }
        (Some(_), Some(only_if)) => Err(only_if.place.wrong(
            "give only-if or set, not both: an entry deletes items under a condition, or sets their attributes",
        )),
    }
}
