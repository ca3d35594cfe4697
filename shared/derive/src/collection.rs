//! Counts whose sources, or mirrors of them, are in the item collection of their target: such a count can be compared
//! with its sources without reading the rest of the table.
//!
//! *Example*: the posts of `USER#ann / PROFILE` are `USER#ann / POST#…`, and those who follow her are mirrored as
//! `USER#ann / FOLLOWER#…`. The likes of a post are stored with the users, so a like count is not one of these.
//!
//! A mirror serves only a count alone, without a condition: it may lack attributes that decide. For a history count
//! the sources may be gone, so no collection serves.

use keys::{entity::Definition, key::Key};

use crate::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link, Mirror},
    derivation::Derivation,
    expression::Input,
    kind::Shape,
    outline::renamed,
    position::DerivationAt,
    query::Query,
    schema::{Image, Schema},
    tally::Tally,
};

/// Key text for a percent sign, and a slash. Each can also be written in another form, so that a counted item may be in
/// another collection.
const IN_TWO_WAYS: [&str; 2] = ["%25", "/"];

/// A count whose sources are visible in the collection of its target.
#[derive(Clone, Debug)]
pub struct CollectionCount {
    /// Position of the count.
    pub count: DerivationAt,
    /// Position of the mirror whose items represent the sources; `None` if the sources are in the collection
    /// themselves.
    pub mirror: Option<DerivationAt>,
    /// Entity of the items that are counted.
    pub entity: String,
    /// How the target's key is built from their fields.
    link: Link,
    /// Prefix of their sort keys.
    prefix: String,
}

impl CollectionCount {
    /// All such counts, in the order of the catalogue.
    #[must_use]
    pub fn all(schema: &Schema, catalogue: &Catalogue) -> Vec<Self> {
        let of = |(at, derivation): (DerivationAt, &Derivation)| {
            let Shape::Count(count) = derivation.kind.shape() else { return None };
            // An item with a list counts in several collections.
            if count.is_lower_bound() || count.each.is_some() {
                return None;
            }
            let themselves = Self::of(schema, at, None, (&count.source, &count.target), count.link.clone());
            themselves.or_else(|| Self::mirrored(schema, catalogue, at, count))
        };
        catalogue.positioned().filter_map(of).collect()
    }

    fn mirrored(schema: &Schema, catalogue: &Catalogue, at: DerivationAt, count: &Count) -> Option<Self> {
        if count.condition != Condition::Always || count.sum.is_some() {
            return None;
        }
        let source = schema.entity(&count.source)?;
        let is_of_each = |mirror: &&Mirror| {
            let is_whole = mirror.condition == Condition::Always && mirror.each.is_none();
            mirror.source == count.source && is_whole && !mirror.lists_claims(source)
        };
        let mut mirrors = catalogue.positioned().map(|(at, derivation)| match derivation.kind.shape() {
            Shape::Mirror(mirror) => (at, Some(mirror).filter(is_of_each)),
            _ => (at, None),
        });
        let of = |(position, mirror): (DerivationAt, Option<&Mirror>)| {
            let mirror = mirror?;
            // The fields of the source's key that the mirror's key has give the target's key.
            let pairs = count.link.0.iter().map(|(to, from)| {
                let (held, _) = mirror.link.0.iter().find(|(_, by)| by == from)?;
                Some((to.clone(), Input::of(held)))
            });
            let link = Link(pairs.collect::<Option<_>>()?);
            Self::of(schema, at, Some(position), (&mirror.target, &count.target), link)
        };
        mirrors.find_map(of)
    }

    fn of(
        schema: &Schema,
        count: DerivationAt,
        mirror: Option<DerivationAt>,
        (entity, target): (&str, &str),
        link: Link,
    ) -> Option<Self> {
        let (held, target) = (schema.entity(entity)?, schema.entity(target)?);
        if renamed(&target.key.pk.to_string(), &link) != held.key.pk.to_string() || !is_one_text(held) {
            return None;
        }
        let prefix = held.key.sk.prefix_of(|_| None).ok()?;
        Some(Self { count, mirror, entity: entity.to_owned(), link, prefix })
    }

    /// The query for everything that may be counted for a target.
    #[must_use]
    pub fn query(&self, target: &Key) -> Query {
        Query::prefix(None, &target.pk, &self.prefix)
    }

    /// The target that an item counts for, with what it adds; `None` if it adds nothing, or has no target in its
    /// collection.
    #[must_use]
    pub fn adds(&self, schema: &Schema, catalogue: &Catalogue, image: &Image<'_>) -> Option<(Key, Tally)> {
        let derivation = catalogue.derivation(self.count).filter(|_| image.is(&self.entity))?;
        let Shape::Count(count) = derivation.kind.shape() else { return None };
        let (target, tally) = if self.mirror.is_some() {
            (self.link.key(schema.entity(&count.target)?, image).ok()??, Tally::of(1))
        } else {
            let (targets, sum) = count.counted(schema, image).ok()?;
            (targets.iter().next()?.clone(), Tally { count: 1, sum })
        };
        (target.pk == image.key.pk).then_some((target, tally))
    }

    /// True if a foreign item has the key of a mirror. Then the mirror cannot be created, but its source counts.
    #[must_use]
    pub fn is_taken(&self, schema: &Schema, key: &Key, image: Option<&Image<'_>>) -> bool {
        let is_of = image.is_some_and(|image| image.is(&self.entity));
        let mirrored = schema.entity(&self.entity).filter(|_| self.mirror.is_some() && !is_of);
        mirrored.is_some_and(|entity| entity.key.parse_key(key).is_some())
    }

    /// True if no other form of this key exists: the key of the target, or of an item that is counted for it.
    #[must_use]
    pub fn is_sure(&self, key: &Key) -> bool {
        let is_one = |text: &str| !IN_TWO_WAYS.iter().any(|two| text.contains(two));
        is_one(&key.pk) && (self.mirror.is_none() || is_one(&key.sk))
    }
}

/// True if the partition key of such items has only one form. Numbers have several, and so has a spread key.
fn is_one_text(definition: &Definition) -> bool {
    let pk = &definition.key.pk;
    pk.suffixes().len() == 1 && !pk.field_names().iter().any(|name| pk.holds_number(name))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::fixture::{derivations, item, key_of, schema};

    fn found() -> (Schema, Catalogue, Vec<CollectionCount>) {
        let schema = schema();
        let catalogue = Catalogue::new(&schema, derivations()).unwrap();
        let all = CollectionCount::all(&schema, &catalogue);
        (schema, catalogue, all)
    }

    #[test]
    fn a_count_is_told_from_the_sources_or_the_mirrors_beside_its_target_and_from_nothing_else() {
        let (_, catalogue, all) = found();
        let line = |it: &CollectionCount| {
            let through = it.mirror.map(|at| format!(" of {}", catalogue.name(at))).unwrap_or_default();
            let query = it.query(&Key::new("PK", "SK"));
            format!("{}: {}{through}, {:?}\n", catalogue.name(it.count), it.entity, query.sk)
        };
        expect![[r#"
            follower-count: Follower of follower-mirror, Prefix("FOLLOWER#")
            post-count: Post, Prefix("POST#")
            comment-count: Comment, Prefix("COMMENT#")
            tickets: Ticket, Prefix("TICKET#")
            statuses: StatusGroup, Prefix("STATUS#")
        "#]]
        .assert_eq(&all.iter().map(line).collect::<String>());
    }

    #[test]
    fn an_item_adds_to_the_target_beside_it() {
        let (schema, catalogue, all) = found();
        let adds = |text: &str| {
            let item = item(text);
            let key = key_of(&item);
            let image = schema.image(&key, &item).unwrap();
            let adds = all.iter().filter_map(|it| {
                let (target, tally) = it.adds(&schema, &catalogue, &image)?;
                Some(format!("{} {target} {}", catalogue.name(it.count), tally.count))
            });
            adds.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(adds("USER#ann / POST#2024#p Post Status=published"), "post-count USER#ann / PROFILE 1");
        assert_eq!(adds("USER#ann / POST#2024#p Post Status=draft"), "");
        assert_eq!(adds("USER#bob / FOLLOWER#ann Follower"), "follower-count USER#bob / PROFILE 1");
        assert_eq!(adds("USER#ann / FOLLOWS#bob Follow"), "");
    }

    #[test]
    fn what_can_be_written_in_two_ways_is_not_sure() {
        let (_, catalogue, all) = found();
        let of = |name: &str| all.iter().find(|it| catalogue.name(it.count) == name).unwrap();
        let is_sure = |name: &str, pk: &str, sk: &str| of(name).is_sure(&Key::new(pk, sk));
        assert!(is_sure("post-count", "USER#a%23", "POST#2024#a%25") && !is_sure("post-count", "USER#a%25", "PROFILE"));
        assert!(is_sure("follower-count", "USER#ann", "FOLLOWER#b"));
        assert!(!is_sure("follower-count", "USER#ann", "FOLLOWER#b/c"));
    }
}
