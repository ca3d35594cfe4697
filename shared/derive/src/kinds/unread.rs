//! Unread: how many items of one range are behind an attribute of their target, up to a limit.
//!
//! *Keeps true*: an existing target has the number of the sources in its range that are behind its attribute, at most
//! the limit. A source is behind it if its sort key is greater than every sort key of the range that has the
//! attribute's value in the declared field. A target without the attribute has all of its range behind it. *From* a
//! source that was created or removed *to* a refresh of all targets of its range; *from* a target that was created, or
//! whose attribute, link or count changed, *to* a refresh of that target.
//!
//! The sources of a target are one range of one partition of the table, in the order of the field, so the refresh reads
//! what is behind the attribute with one consistent query, and at most as many items as the limit.
//!
//! *Level-triggered.* The range is read when the target is written, so nothing counts twice, in any order of requests.
//!
//! *Example*: `MEMBER#ann` of `ROOM#r` has read up to 10:00, and the message `ROOM#r / MSG#10:05#m` is put. The search
//! for the members of `ROOM#r` finds her, the query of `ROOM#r` behind `MSG#10:00#` finds one message, and her item
//! gets the number 1.

use std::borrow::Cow;

use keys::{
    entity::Definition,
    error::Problem,
    item::Item,
    key::{Key, SORT_KEY_BYTES_MAX},
    template::{Piece, form::Form},
};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    declaration::{FoundBy, Link, declares, entity, knows},
    derived::{Counts, Derived, Items},
    effect::{Effect, Find},
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    query::{Query, SortKeys, past},
    range::{first_behind, not_one_range},
    schema::{Image, Schema, Unreadable},
    sources::{FirstOf, Source, Sources, first_of},
    write::Wanted,
};

/// The declaration of an `unread` derivation.
#[derive(Clone, Debug)]
pub struct Unread {
    /// Entity of the items that are counted.
    pub source: String,
    /// Entity of the items that show the number.
    pub target: String,
    /// What gives the range: pairs of (field of the sources' key, what of the target gives it).
    pub link: Link,
    /// The field of the sources' sort key whose order decides.
    pub field: String,
    /// The attribute of the target with the last value of the field that does not count.
    pub after: String,
    /// The attribute of the target that shows the number.
    pub attribute: String,
    /// The greatest number.
    pub limit: u32,
    /// True if the attribute is absent in place of 0.
    pub zero_is_absent: bool,
    /// How the targets of a source are found.
    pub found: FoundBy,
}

impl Unread {
    /// The attributes of the target that decide its number.
    fn read(&self) -> impl Iterator<Item = &str> {
        self.link.from_fields().chain([self.after.as_str()])
    }

    /// The query for the sources behind a target's attribute; `None` if the target names no range.
    fn behind(&self, schema: &Schema, target: &Image<'_>) -> Result<Option<FirstOf>, Unreadable> {
        let Some(source) = schema.entity(&self.source) else { return Ok(None) };
        let Some(filled) = self.link.filled(source, target, None)? else { return Ok(None) };
        let given = |name: &str| filled.iter().rfind(|(field, _)| *field == name).map(|(_, value)| &**value);
        let pk = source.key.pk.build_of(given).map_err(|error| self.link.refused(error))?;
        let prefix = source.key.sk.prefix_of(given).map_err(|error| self.link.refused(error))?;
        let query = match self.last(source, target)? {
            Some(last) => {
                let value = |name: &str| given(name).or((name == self.field).then_some(&*last));
                Query::of(None, pk, self.sort_keys(source, &prefix, value)?)
            }
            None => Query::prefix(None, pk, prefix),
        };
        let query = Query { limit: Some(self.limit), ..query };
        Ok(Some(FirstOf { query, entity: self.source.clone(), is_counted: true }))
    }

    /// The value of the field up to which nothing counts, as the key takes it.
    fn last<'a>(&self, source: &Definition, target: &'a Image<'a>) -> Result<Option<Cow<'a, str>>, Unreadable> {
        match target.attribute(&self.after) {
            Some(AttributeValue::N(number)) if source.key.sk.holds_number(&self.field) => Ok(Some(number.into())),
            held => Image::value_filling(&self.after, held, &source.key, &self.field),
        }
    }

    /// The sort keys with this prefix behind all those that have these values.
    fn sort_keys<'a>(
        &self,
        source: &Definition,
        prefix: &str,
        value: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<SortKeys, Unreadable> {
        let sort = &source.key.sk;
        let refused = |problem: Problem| Unreadable { attribute: self.after.clone(), why: problem.to_string() };
        let last = sort.prefix_of(&value).map_err(|error| refused(error.problem))?;
        let is_whole = sort.field_names().into_iter().all(|name| value(name).is_some());
        // No key continues the longest one.
        let is_continued = is_whole && last.len() < SORT_KEY_BYTES_MAX;
        let behind = if is_continued { Some(format!("{last}\0")) } else { past(&last) };
        let sort_keys = match (past(prefix), behind) {
            (Some(until), Some(behind)) => SortKeys::Between(behind, until),
            (None, Some(behind)) if !is_whole => SortKeys::After(behind),
            _ => SortKeys::After(last),
        };
        // Bytes have two digits each.
        let n_digits = if source.key.is_of_bytes(&self.field) { 2 } else { 1 };
        let bytes = sort_keys.first().len() / n_digits;
        if bytes > SORT_KEY_BYTES_MAX {
            return Err(refused(Problem::TooLong { bytes, bytes_max: SORT_KEY_BYTES_MAX }));
        }
        Ok(sort_keys)
    }

    fn wanted(&self, number: Option<usize>) -> Vec<Wanted> {
        let number = number.filter(|number| *number > 0 || !self.zero_is_absent);
        let value = number.map(|number| AttributeValue::N(number.to_string()));
        vec![Wanted { name: self.attribute.clone(), value, zero_is_absent: false }]
    }

    /// Checks that the sources of a target are one range of one partition, in the order of the field.
    ///
    /// # Errors
    ///
    /// A sentence with what to write instead.
    pub fn check_range(&self, source: &Definition) -> Result<(), String> {
        let given: Vec<&str> = self.link.0.iter().map(|(to, _)| to.as_str()).collect();
        let (name, field, sort) = (&source.name, &self.field, &source.key.sk);
        if let Some(fault) = not_one_range(source, &given, "the link") {
            return Err(format!("the items of {name} are not consecutive items of one partition: {fault}"));
        }
        if first_behind(sort, |name| given.contains(&name)) != Some(field) {
            return Err(format!(
                "{name} items are not in the order of {field}: their sort key is {sort}, and behind the fields of the link it must \
                 begin with {{{field}}}, as MSG#{{{field}}}#{{id}} does; mirror them under such a key, and count the mirrors"
            ));
        }
        let is_it = |piece: &&Piece| matches!(piece, Piece::Field { name, .. } if name == field);
        let ends = sort.pieces().last().is_some_and(|last| is_it(&last));
        let of = sort.pieces().iter().find(is_it);
        match of {
            Some(Piece::Field { form: Form::Inverted(_), .. }) => Err(format!(
                "{sort} of {name} has the greatest {field} first, so newer items are before the value: mirror them under a sort \
                 key without MAX-, and count the mirrors"
            )),
            Some(Piece::Field { form: Form::Padded(_) | Form::Number | Form::Bytes, .. }) => Ok(()),
            Some(Piece::Field { form: Form::Text | Form::Plain | Form::Cased(_), .. }) if !sort.is_open() => Ok(()),
            Some(Piece::Field { form: Form::Raw, .. }) if ends => Ok(()),
            Some(Piece::Field { form: Form::Text | Form::Plain | Form::Cased(_) | Form::Raw, .. }) => {
                Err(format!("a value of {field} may contain the text that ends it in {sort} of {name}: write # there"))
            }
            _ => Err(format!("{field} in {sort} of {name} is no value as it is: name a text or a number")),
        }
    }
}

impl Kind for Unread {
    fn name(&self) -> &'static str {
        "unread"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check_given(source, target)?;
        self.check_range(source)?;
        knows(target, [self.after.as_str()])?;
        declares(target, [self.attribute.as_str()])?;
        self.found.check(schema, source, target)?;
        let mut reads = vec![Part::existence(&self.source), Part::existence(&self.target)];
        reads.extend(self.read().map(|name| Part::attribute(&self.target, name)));
        Ok(Reach { reads, writes: vec![Part::attribute(&self.target, &self.attribute)] })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let Self { source, field, after, limit, attribute, .. } = self;
        let absent = if self.zero_is_absent { ", absent for zero" } else { "" };
        let pairs: Vec<String> = self.link.0.iter().map(|(to, from)| format!("{to} is its {from}")).collect();
        let (pairs, target) = (pairs.join(", "), schema.entity(&self.target));
        Outline {
            terms: vec![format!(
                "those whose {field} is behind its {after}, up to {limit}, as {attribute}{absent}; {pairs}"
            )],
            says: Some(format!(
                "shows in {}.{attribute} the number of the {source} items whose {field} is after its {after}, up to \
                 {limit}{absent}; {pairs}",
                self.target
            )),
            into: target.map(|target| format!("{} / {}", target.key.pk, target.key.sk)),
            finds: self.found.shown(schema, &self.source, &self.target).into_iter().collect(),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.target, &self.found.via]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        let source = new.or(old).filter(|_| old.is_some() != new.is_some());
        let all = source.and_then(|source| self.found.find(schema, source, &self.target));
        let itself = sight.touched(&self.target, self.read().chain([self.attribute.as_str()]));
        let led = self.found.newly_led(schema, sight, &self.target);
        let items = itself.into_iter().chain(led);
        all.into_iter().chain(items.map(|item| Effect::look(item, &self.target))).collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        image.is(&self.target).then(|| self.behind(schema, image).err()).flatten()
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let number = |of: FirstOf| first_of(schema, &of, items.range(of.begin()..)).len();
        let of = |(key, item): (&Key, &Item)| {
            let image = schema.image(key, item).filter(|image| image.is(&self.target))?;
            let behind = self.behind(schema, &image).ok().flatten();
            Some(Derived::Attributes { key: key.clone(), attributes: self.wanted(behind.map(number)) })
        };
        items.iter().filter_map(of).collect()
    }
}

impl Refresh for Unread {
    fn target(&self) -> &str {
        &self.target
    }

    fn gives(&self) -> Option<&'static str> {
        Some("N")
    }

    fn found(&self) -> Option<&FoundBy> {
        Some(&self.found)
    }

    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        let behind = target.image(schema).and_then(|image| self.behind(schema, &image).ok().flatten());
        behind.map(Source::First).into_iter().collect()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let behind = target.image(schema).and_then(|image| self.behind(schema, &image).ok().flatten());
        Computed::Attributes(self.wanted(behind.map(|of| sources.first(schema, &of).len())))
    }

    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        self.found.find_from(schema, &self.source, source, &self.target)
    }
}

#[cfg(test)]
mod tests;
