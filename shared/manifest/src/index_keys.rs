//! `[entity.NAME.index.INDEX]`: the keys of items in an index.

use keys::{
    entity::{Definition, KeyTemplate, StoredForm},
    index_key::{IndexKey, OnlyIf},
    layout::Layout,
    tables::NO_SORT_KEY,
    template::Template,
};

use crate::{
    entities::{key, template},
    error::ManifestError,
    section::{Named, Section},
    syntax::{
        KeySyntax,
        ValueSyntax::{PairOfTexts, Text, Truth},
    },
};

/// Keys of `[entity.NAME.index.INDEX]`.
pub(crate) const INDEX_KEY: [KeySyntax; 5] = [
    KeySyntax::required(
        "partition-key",
        Text,
        "form of the index's partition key, from fields of the key and attributes",
    ),
    KeySyntax::required("sort-key", Text, "form of its sort key"),
    KeySyntax::optional(
        "only-if",
        PairOfTexts,
        "always",
        "`{ status = \"published\" }`: the item is in the index only while the attribute has this text, or one of these",
    ),
    KeySyntax::optional("only-with", Text, "always", "the item is in the index only while it has this attribute"),
    KeySyntax::optional(
        "derived",
        Truth,
        "`false`",
        "`true`: Ripple makes the key, by a derivation of the kind `index-key`; it may name a derived number",
    ),
];

/// The key of an entity's items in the index with this inner name.
pub(crate) fn index_key(
    name: &str,
    section: &Section<'_>,
    layout: &Layout,
    entity: &Definition,
) -> Result<IndexKey, ManifestError> {
    section.follows(&INDEX_KEY)?;
    if layout.index(name).is_none() {
        let named = Named { text: name, place: section.place.clone() };
        return Err(named.unknown("there is no index", layout.indexes.iter().map(|index| index.name.as_str())));
    }
    let key = index_form(section, layout, name)?;
    let derived = section.get("derived").map_or(Ok(false), |entry| entry.truth())?;
    let mut known = entity.key.field_names();
    known.extend(entity.attributes.iter().map(String::as_str));
    // A derived attribute cannot be part of a key that the application sets.
    known.extend(entity.derived_attributes.iter().map(String::as_str).filter(|_| derived));
    let must_be_known = |named: &Named<'_>| {
        let is_known = known.contains(&named.text);
        let unknown = || {
            if entity.derived_attributes.iter().any(|name| name == named.text) {
                let what =
                    "is derived, and the application makes this key: say derived = true here, and declare an index-key";
                return named.place.wrong(format!("{} {what}", named.text));
            }
            named.unknown(&format!("{} has no field or attribute", entity.name), known.iter().copied())
        };
        if is_known { Ok(()) } else { Err(unknown()) }
    };
    for (part, template) in [("partition-key", &key.pk), ("sort-key", &key.sk)] {
        for text in template.field_names() {
            let place = section.get(part).map_or_else(|| section.place.clone(), |entry| entry.place);
            must_be_known(&Named { text, place })?;
        }
    }
    let only_if = only_if(section)?;
    if let Some((attribute, _)) = &only_if {
        attribute.top_level()?;
        must_be_known(attribute)?;
    }
    let only_if = only_if.map(|(_, only_if)| only_if);
    Ok(IndexKey { index: name.to_owned(), key, only_if, derived })
}

/// The form of a key in an index; without a sort key in the index, there is no form for it.
fn index_form(section: &Section<'_>, layout: &Layout, name: &str) -> Result<KeyTemplate, ManifestError> {
    let index = layout.forms.as_ref().and_then(|forms| forms.index(name));
    if index.is_none_or(|(_, index)| !index.sk.is_empty()) {
        return key(section);
    }
    let pk = template(section, "partition-key", "its form, as in \"USER#{userId}\"")?;
    if let Some(entry) = section.get("sort-key") {
        return Err(entry.place.wrong("the index has no sort key: leave it out"));
    }
    let sk = Template::parse(NO_SORT_KEY).map_err(|e| section.place.wrong(e.to_string()))?;
    Ok(KeyTemplate { pk, sk, stored: StoredForm::Texts })
}

/// The condition for an item to be in an index, with its attribute; `None` means always.
fn only_if<'a>(section: &Section<'a>) -> Result<Option<(Named<'a>, OnlyIf)>, ManifestError> {
    let only_with = section.get("only-with").map(|entry| entry.text()).transpose()?;
    let Some(entry) = section.get("only-if") else {
        return Ok(only_with.map(|named| (named.clone(), OnlyIf::Has { attribute: named.text.to_owned() })));
    };
    if let Some(only_with) = only_with {
        return Err(only_with.place.wrong("give only-if or only-with, not both"));
    }
    let (attribute, any_of) = entry.pair_of_texts()?;
    let any_of = any_of.into_iter().map(|named| named.text.to_owned()).collect();
    let only_if = OnlyIf::Is { attribute: attribute.text.to_owned(), any_of };
    Ok(Some((attribute, only_if)))
}
