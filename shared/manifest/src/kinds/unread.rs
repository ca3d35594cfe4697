//! `kind = "unread"`: how many items of one range are behind an attribute of their target.

use derive::{declaration::Link, derivation::Derivation, kinds::unread::Unread};
use keys::entity::Definition;

use super::{
    KindSyntax, Rule, attribute, found,
    link::{fields, known},
    zero_is_absent,
};
use crate::{
    error::ManifestError,
    section::Named,
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pair, Pairs, Text},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "unread",
        keeps: "Counts the items of a target's range that are later than an attribute of the target, up to a limit. An item \
                that comes or goes costs a query for each target of its range, which reads those later items, \
                consistently: 25 read units for 100 items of 1 KB. So it is for rooms of up to some hundred members; in a \
                larger room, query when a member opens it.",
        family: "level-triggered",
        costs: "1 for each target whose number changes, and for each index that projects it: at each message 1 for each \
                member below the limit, and 1 when a member reads",
        example: r#"
[derivation.unread]
kind = "unread"
from = "Message"
into = "Member.unread"
link = { roomId = "roomId" }
after = { sentAt = "lastReadAt" }
limit = 100
"#,
        keys: &KEYS,
    },
    read,
};

/// The greatest limit: each refresh of a target reads so many items.
const LIMIT_MAX: u32 = 1_000;

const KEYS: [KeySyntax; 7] = [
    KeySyntax::required(
        "from",
        Text,
        "the entity whose items are counted; those of one target must be one range of one partition of the table, as `ROOM#{roomId}` / \
         `MSG#{sentAt}#{messageId}` is for a room. To count only some, [mirror them](own-table.md#unread), and name the mirrors",
    ),
    KeySyntax::required("into", Text, "`Entity.attribute`: the target, and the attribute that shows the number"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the counted items' key, before that of `after`, and the field, attribute or [expression](#expressions) of \
         the target that gives it",
    ),
    KeySyntax::required(
        "after",
        Pair,
        "`{ sentAt = \"lastReadAt\" }`: the field with which the sort key of `from` continues behind the fields of the link, and the \
         attribute of the target that counted items are behind: their sort keys are greater than every one with this value. A \
         text, or a number for a field such as `{seq:12}`. A target without the attribute has all items behind it",
    ),
    KeySyntax::required(
        "limit",
        ValueSyntax::WholeNumber(1, LIMIT_MAX),
        "the greatest number: with 100, a target that shows 100 has that many items behind the attribute, or more",
    ),
    KeySyntax::optional(
        "zero",
        ValueSyntax::OneOf(&["always", "absent"]),
        "`\"always\"`",
        "what the attribute is when nothing is behind: 0, or absent, as for an index of those with unread items. A target whose \
         link leads nowhere has no attribute either way",
    ),
    KeySyntax::optional(
        "found",
        ValueSyntax::TextOrTable(&found::FOUND),
        "the target's own items, in the partition of the counted item",
        "how the targets are found when an item comes or goes, as for a [copy](#kind--copy)",
    ),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity whose items are counted")?;
    let (target, shown) = rule.shown_attribute("the attribute that shows the number, as in \"Member.unread\"")?;
    let purpose =
        "the field of the sort key and the attribute that counted items are behind, as in { sentAt = \"lastReadAt\" }";
    let entry = rule.section.required("after", purpose)?;
    let [(field, after)] = entry.pairs()?.try_into().map_err(|_| {
        entry
            .place
            .wrong("give one field of the sort key with one attribute of the target, as in { sentAt = \"lastReadAt\" }")
    })?;
    let sort = &source.key.sk;
    known(&field, &format!("the sort key of {} has no field", source.name), &sort.field_names())?;
    let after_text = attribute(target, &after)?;
    if !sort.holds_number(field.text) {
        rule.types.refuse(&target.name, &after, &format!("{} in the key of {}", field.text, source.name))?;
    }
    let link = link(rule, source, target, &field)?;
    let purpose = "the greatest number, as in limit = 100";
    let limit = rule.section.required("limit", purpose)?.whole_number(1..LIMIT_MAX + 1)?;
    let zero_is_absent = zero_is_absent(&rule.section)?;
    let found = found::read(rule, source, target, &link)?;
    let unread = Unread {
        source: source.name.clone(),
        target: target.name.clone(),
        link,
        field: field.text.to_owned(),
        after: after_text,
        attribute: shown,
        limit,
        zero_is_absent,
        found,
    };
    unread.check_range(source).map_err(|what| field.place.wrong(what))?;
    Ok(vec![rule.derivation(rule.name, unread)?])
}

/// The link, which gives the fields of the partition key, and those of the sort key before the one of `after`.
fn link(rule: &Rule<'_>, source: &Definition, target: &Definition, field: &Named<'_>) -> Result<Link, ManifestError> {
    let mut leading = source.key.pk.field_names();
    leading.extend(source.key.sk.field_names().into_iter().take_while(|name| *name != field.text));
    let but: Vec<&str> = source.key.field_names().into_iter().filter(|name| !leading.contains(name)).collect();
    let given = rule.section.get("link").map(|entry| entry.pairs()).transpose()?.unwrap_or_default();
    if let Some((behind, _)) = given.iter().find(|(to, _)| but.contains(&to.text)) {
        let what = format!(
            "is not before {} in the key of {}, so the items with one {} are no range: leave it out",
            field.text, source.name, behind.text
        );
        return Err(behind.place.wrong(what));
    }
    let is_given = |name: &str| given.iter().any(|(to, _)| to.text == name) || fields(target).contains(&name);
    if let Some(before) = leading.iter().find(|name| !source.key.pk.holds(name) && !is_given(name)) {
        let what = format!(
            "the sort key of {} has {before} before {}, and {} does not give it: name {before} here, or pair it in link",
            source.name, field.text, target.name
        );
        return Err(field.place.wrong(what));
    }
    rule.link_but(source, target, &but)
}
