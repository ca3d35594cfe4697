//! Copy: attributes of one item, copied into all items that name it.
//!
//! *Keeps true*: an item that names a source has the source's current attributes; it lacks those that the source lacks.
//! A source that does not exist, or does not meet the condition, counts as lacking all. *From* a source whose
//! attributes changed *to* a refresh of all items that name it; *from* an item that was created, that names another
//! source now, or whose copy changed, *to* a refresh of that item.
//!
//! *Level-triggered.* The source is read when the copy is written, so the newest value wins in any order of requests.
//! An item that arrives before its source, or while a rename is fanned out, requests its own refresh. The copy depends
//! only on the fields by which the item names the source, so the item can be written without reading it.
//!
//! *Example*: Ann becomes Anna. The change of `USER#ann / PROFILE` finds her comments by the index, `GSI1PK = USER#ann`
//! and `begins_with(GSI1SK, "COMMENT#")`, and each is refreshed.

use std::{borrow::Cow, iter};

use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    condition::Condition,
    declaration::{FoundBy, Link, declares, entity, gives},
    derived::{Counts, Derived, Items},
    effect::{Effect, Find},
    expression::{Input, document_path::is_path},
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};

/// The declaration of a copy.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Entity that is copied from.
    pub source: String,
    /// Entity that is copied to.
    pub target: String,
    /// How the source's key is built from the target's fields.
    pub link: Link,
    /// Which sources are copied.
    pub condition: Condition,
    /// Pairs of (what of the source is copied, attribute of the target).
    pub attributes: Vec<(Input, String)>,
    /// How the targets of a source are found.
    pub found: FoundBy,
}

impl Copy {
    /// The source changed: find all that name it.
    fn source_changed(&self, schema: &Schema, sight: &Sight<'_>) -> Option<Effect> {
        let (old, new) = sight.entity(&self.source);
        // What is calculated may have a value without any of the attributes.
        let is_calculated = || self.attributes.iter().any(|(from, _)| from.name().is_none());
        let differs = self.read().any(|name| sight.attribute_differs(old, new, name))
            || (old.is_some() != new.is_some() && is_calculated());
        let source = new.or(old).filter(|_| differs)?;
        self.found.find(schema, source, &self.target)
    }

    /// The target was created, names another source now, or its copy changed: refresh it.
    fn target_changed(&self, sight: &Sight<'_>) -> Option<Effect> {
        let names = self.link.from_fields().chain(self.attributes.iter().map(|(_, to)| to.as_str()));
        sight.touched(&self.target, names).map(|item| Effect::look(item, &self.target))
    }

    /// The source's attributes that it reads.
    fn read(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().flat_map(|(from, _)| from.names()).chain(self.condition.attributes())
    }

    fn source_key(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        match schema.entity(&self.source) {
            Some(source) => self.link.key(source, image),
            None => Ok(None),
        }
    }

    fn wanted(&self, schema: &Schema, source: Option<&Key>, item: Option<&Item>) -> Vec<Wanted> {
        let is_copied = |image: &Image<'_>| image.is(&self.source) && self.condition.holds(image) == Ok(true);
        let source = source.zip(item).and_then(|(key, item)| schema.image(key, item)).filter(is_copied);
        let value = |from: &Input| source.as_ref().and_then(|image| from.value(image).ok()?.map(Cow::into_owned));
        let wanted =
            |(from, to): &(Input, String)| Wanted { name: to.clone(), value: value(from), zero_is_absent: false };
        self.attributes.iter().map(wanted).collect()
    }
}

impl Kind for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check(source, target)?;
        gives(source, self.read())?;
        declares(target, self.attributes.iter().map(|(_, to)| to.as_str()))?;
        self.found.check(schema, source, target)?;
        let mut reads = vec![Part::existence(&self.source), Part::existence(&self.target)];
        reads.extend(self.read().map(|name| Part::attribute(&self.source, name)));
        reads.extend(self.link.from_fields().map(|name| Part::attribute(&self.target, name)));
        let writes = self.attributes.iter().map(|(_, to)| Part::attribute(&self.target, to)).collect();
        Ok(Reach { reads, writes })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let names = self.attributes.iter().map(|(from, to)| format!("{from} as {to}"));
        Outline {
            terms: iter::once(names.collect::<Vec<_>>().join(", ")).chain(self.condition.words()).collect(),
            into: schema.entity(&self.target).map(|target| target.key.to_string()),
            named_by: self.link.0.iter().map(|(_, from)| from.text().to_owned()).collect(),
            finds: self.found.shown(schema, &self.source, &self.target).into_iter().collect(),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.target, &self.found.via]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let led = self.found.newly_led(schema, sight, &self.target).map(|target| Effect::look(target, &self.target));
        let requested = [self.source_changed(schema, sight), self.target_changed(sight), led];
        requested.into_iter().flatten().collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        let of_link = || self.link.key(schema.entity(&self.source)?, image).err();
        let of_source = || {
            let is_copied = match self.condition.holds(image) {
                Ok(is_copied) => is_copied,
                Err(unreadable) => return Some(unreadable),
            };
            let mut values = self.attributes.iter().filter(|_| is_copied);
            values.find_map(|(from, _)| from.unreadable(image))
        };
        let unreadable = image.is(&self.target).then(of_link).flatten();
        unreadable.or_else(|| image.is(&self.source).then(of_source).flatten())
    }

    fn condition(&self) -> Option<(&str, &Condition)> {
        Some((&self.source, &self.condition))
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let of = |image: Image<'_>| {
            let source = self.source_key(schema, &image).ok().flatten();
            let found = source.as_ref().and_then(|source| items.get(source));
            let attributes = self.wanted(schema, source.as_ref(), found);
            Derived::Attributes { key: image.key.clone(), attributes }
        };
        schema.images(items, &self.target).map(of).collect()
    }
}

impl Refresh for Copy {
    fn target(&self) -> &str {
        &self.target
    }

    fn copied(&self) -> &[(Input, String)] {
        &self.attributes
    }

    fn found(&self) -> Option<&FoundBy> {
        Some(&self.found)
    }

    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        let key = target.image(schema).and_then(|image| self.source_key(schema, &image).ok().flatten());
        key.map(Source::Item).into_iter().collect()
    }

    fn taken_from(&self, schema: &Schema, source: &Key, item: &Key, sources: &Sources) -> Option<(Item, Vec<Wanted>)> {
        let (from, to) = (schema.entity(&self.source)?, schema.entity(&self.target)?);
        let (named, stored) = (from.key.parse_key(source)?, to.key.parse_key(item)?);
        let mut names = Item::new();
        for field in from.key.field_names() {
            let (by, text) = (self.link.filling(field)?.name()?, named.get(field)?);
            // The attribute that names the source may have its text in another case.
            if from.key.casing(field).is_some() {
                return None;
            }
            match stored.get(by) {
                Some(stored) if stored == text => {}
                Some(_) => return None,
                // A condition cannot test a part of an attribute here.
                None if is_path(by) => return None,
                // Bytes, or else text; a number could be stored in many forms.
                None => {
                    let bytes = from.key.typed(field, text).filter(|value| matches!(value, AttributeValue::B(_)));
                    names.insert(by.to_owned(), bytes.unwrap_or_else(|| AttributeValue::S(text.to_owned())));
                }
            }
        }
        Some((names, self.wanted(schema, Some(source), sources.item(source))))
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let key = target.image(schema).and_then(|image| self.source_key(schema, &image).ok().flatten());
        let item = key.as_ref().and_then(|key| sources.item(key));
        Computed::Attributes(self.wanted(schema, key.as_ref(), item))
    }

    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        self.found.find_from(schema, &self.source, source, &self.target)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        change::Change,
        fixture::{catalogue, effects, inserted, item, key_of, modified, removed, schema, short},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("copy", change));
    }

    /// What an item that names Ann copies from her, and the attributes by which it must name her.
    fn taken(source: &str, name: &str, item_key: &str) -> Option<String> {
        let (schema, source) = (schema(), item(source));
        let catalogue = catalogue(&schema);
        let mut sources = Sources::default();
        sources.add_item(key_of(&source), Some(source.clone()));
        let refresh = catalogue.refresh(catalogue.position(name).unwrap()).unwrap();
        let (names, wanted) = refresh.taken_from(&schema, &key_of(&source), &key_of(&item(item_key)), &sources)?;
        let names = names.iter().map(|(name, value)| format!("if {name}={} ", short(value)));
        let wanted = wanted.iter().map(|wanted| {
            let value = wanted.value.as_ref().map_or("nothing".to_owned(), short);
            format!("{}={value}", wanted.name)
        });
        Some(names.chain(wanted).collect())
    }

    #[test]
    fn what_an_item_takes_can_be_told_from_its_key_and_the_source() {
        assert_eq!(taken(ANN, "comment-author", "POST#p / COMMENT#c").unwrap(), "if UserId=ann UserName=Ann");
        assert_eq!(taken(ANN, "follower-name", "USER#bob / FOLLOWER#ann").unwrap(), "FollowerName=Ann");
        assert_eq!(taken(ANN, "follower-name", "USER#ann / FOLLOWER#bob"), None, "it names bob");
        assert_eq!(taken(ANN, "comment-author", "POST#p / METADATA"), None, "it is no comment's key");
        let nameless = "USER#ann / PROFILE User";
        assert_eq!(taken(nameless, "comment-author", "POST#p / COMMENT#c").unwrap(), "if UserId=ann UserName=nothing");
        let other = "USER#ann / PROFILE Gadget Name=x";
        assert_eq!(taken(other, "comment-author", "POST#p / COMMENT#c").unwrap(), "if UserId=ann UserName=nothing");
    }

    const ANN: &str = "USER#ann / PROFILE User Name=Ann";
    const COMMENT: &str = "POST#p / COMMENT#c Comment UserId=ann UserName=Ann";
    const FOLLOWER: &str = "USER#bob / FOLLOWER#ann Follower FollowerName=Ann";

    #[test]
    fn a_source_that_is_renamed_or_removed_asks_for_all_that_carry_its_name() {
        for change in [
            modified(ANN, "USER#ann / PROFILE User Name=Anna"),
            // It loses the attribute.
            modified(ANN, "USER#ann / PROFILE User Name=N:1"),
            modified(ANN, "USER#ann / PROFILE User"),
            // It is gone.
            removed(ANN),
            modified(ANN, "USER#ann / PROFILE Gadget Name=Ann"),
        ] {
            check(
                &change,
                &expect![[r#"
                    comment-author: find GSI1 USER#ann / COMMENT#… via Comment -> Comment
                    post-author: find table USER#ann / POST#… via Post -> PostDetail
                    followee-name: find table USER#ann / FOLLOWER#… via Follower -> Follow
                    follower-name: find table USER#ann / FOLLOWS#… via Follow -> Follower
                "#]],
            );
        }
    }

    #[test]
    fn an_attribute_that_nobody_copies_rings_nothing() {
        check(&modified(ANN, &format!("{ANN} Avatar=a FollowerCount=N:2")), &expect!["nothing\n"]);
        check(&inserted("USER#ann / PROFILE User Avatar=a"), &expect!["nothing\n"]);
        check(&modified(COMMENT, &format!("{COMMENT} Text=x")), &expect!["nothing\n"]);
    }

    #[test]
    fn a_target_that_is_made_is_looked_at() {
        check(&inserted(COMMENT), &expect!["comment-author: look POST#p / COMMENT#c (Comment)\n"]);
        check(&removed(COMMENT), &expect!["nothing\n"]);
    }

    #[test]
    fn a_target_that_names_another_source_is_looked_at() {
        check(
            &modified(COMMENT, "POST#p / COMMENT#c Comment UserId=bob UserName=Ann"),
            &expect!["comment-author: look POST#p / COMMENT#c (Comment)\n"],
        );
    }

    #[test]
    fn a_put_back_that_drops_or_alters_the_copy_is_looked_at() {
        for change in [
            modified(COMMENT, "POST#p / COMMENT#c Comment UserId=ann"),
            modified(COMMENT, "POST#p / COMMENT#c Comment UserId=ann UserName=Old"),
        ] {
            check(&change, &expect!["comment-author: look POST#p / COMMENT#c (Comment)\n"]);
        }
    }

    #[test]
    fn an_item_through_which_a_target_is_found_rings_the_target_when_it_is_made() {
        check(
            &inserted("USER#bob / FOLLOWER#ann Follower FollowerName=Ann"),
            &expect![[r#"
            followee-name: look USER#ann / FOLLOWS#bob (Follow)
            follower-name: look USER#bob / FOLLOWER#ann (Follower)
        "#]],
        );
        check(&inserted("USER#ann / POST#2024#p Post"), &expect!["post-author: look POST#p / METADATA (PostDetail)\n"]);
        check(&removed("USER#bob / FOLLOWER#ann Follower FollowerName=Ann"), &expect!["nothing\n"]);
    }

    #[test]
    fn a_target_that_comes_into_the_index_or_to_another_place_in_it_is_looked_at() {
        for old in [COMMENT.to_owned(), format!("{COMMENT} GSI1PK=USER#ann GSI1SK=COMMENT#b")] {
            check(
                &modified(&old, &format!("{COMMENT} GSI1PK=USER#ann GSI1SK=COMMENT#c")),
                &expect!["comment-author: look POST#p / COMMENT#c (Comment)\n"],
            );
        }
        check(&modified(&format!("{FOLLOWER} GSI1PK=a"), FOLLOWER), &expect!["nothing\n"]);
    }

    #[test]
    fn the_search_of_a_source_is_known_by_its_key_alone() {
        let schema = crate::fixture::schema();
        let catalogue = crate::fixture::catalogue(&schema);
        let source = keys::key::Key::new("USER#ann", "PROFILE");
        let at = catalogue.position("comment-author").unwrap();
        let find = catalogue.derivation(at).unwrap().kind.refresh().unwrap().find_from(&schema, &source).unwrap();
        let (query, via, target) = (find.query, find.via, find.target);
        assert_eq!((query.pk.as_str(), query.sk.first(), via.as_str()), ("USER#ann", "COMMENT#", target.as_str()));
    }

    #[test]
    fn a_source_name_that_cannot_be_read_is_listed_until_it_can() {
        check(
            &modified(COMMENT, "POST#p / COMMENT#c Comment UserId=N:1 UserName=Ann"),
            &expect![[r#"
            comment-author: look POST#p / COMMENT#c (Comment)
            comment-author: list UserId is N, and `{UserId}` takes a text: store a text, or link by text(UserId)
        "#]],
        );
        check(
            &modified("POST#p / COMMENT#c Comment UserId=N:1", COMMENT),
            &expect![[r#"
            comment-author: look POST#p / COMMENT#c (Comment)
            comment-author: take off the list
        "#]],
        );
    }
}
