//! Finds the sources of a counter: one query for all items that lead to a target, if such a query exists.
//!
//! A source leads to its target by its own fields. If these are also the partition key of the source, in the table or
//! in an index, the target's key gives that partition key. If not, only a scan of the whole table finds the sources.
//!
//! *Example*: the comments of `POST#p / METADATA` are `POST#p / COMMENT#…`. The followers of `USER#ann / PROFILE` are
//! stored with the following users, and are mirrored in her collection as `USER#ann / FOLLOWER#…`.
//!
//! A [count](CollectionCount) whose sources, or mirrors of them, are in the item collection of their target can be
//! compared with its sources without reading the rest of the table. The likes of a post are stored with the users, so a
//! like count is not one of these. A mirror serves only a count alone, without a condition: it may lack attributes that
//! decide. For a history count the sources may be gone, so no collection serves.

use keys::{
    entity::{Definition, KeyTemplate},
    item::Item,
    key::Key,
    template::Template,
};

use crate::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link, Mirror},
    derivation::Derivation,
    derived::{Counts, Derived, Items},
    expression::Input,
    kind::Shape,
    outline::renamed,
    position::DerivationAt,
    query::Query,
    schema::{Image, Schema},
    tally::Tally,
};

/// How the sources of a target are found.
#[derive(Clone, Debug)]
pub struct Gathering {
    /// The query that finds them all.
    pub query: Query,
    /// Entity of the items to use: the sources, or the mirrors that represent them.
    pub entity: String,
    /// The count whose sources are in the target's own collection, if it is one.
    beside: Option<CollectionCount>,
}

impl Gathering {
    /// How the sources of a target of an additive derivation are found; `None` if no query finds them.
    #[must_use]
    pub fn of(schema: &Schema, catalogue: &Catalogue, at: DerivationAt, target: &Key) -> Option<Self> {
        let beside = CollectionCount::all(schema, catalogue).into_iter().find(|beside| beside.count == at);
        if let Some(beside) = beside.filter(|beside| beside.is_sure(target)) {
            return Some(Self {
                query: beside.query(target),
                entity: beside.entity.clone(),
                beside: beside.mirror.is_some().then_some(beside),
            });
        }
        let (source, entity, link, each) = match catalogue.derivation(at)?.kind.shape() {
            Shape::Count(count) => (&count.source, &count.target, &count.link, count.each.as_deref()),
            Shape::Rollup(rollup) => (&rollup.source, &rollup.form.entity, &rollup.link, None),
            Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => return None,
        };
        let query = query(schema.entity(source)?, schema.entity(entity)?, (link, each), target)?;
        Some(Self { query, entity: source.clone(), beside: None })
    }

    /// What an item adds to a target; `None` if it adds nothing.
    #[must_use]
    pub fn adds(
        &self,
        schema: &Schema,
        catalogue: &Catalogue,
        at: DerivationAt,
        (target, image): (&Key, &Image<'_>),
    ) -> Option<Tally> {
        if let Some(beside) = &self.beside {
            return beside.adds(schema, catalogue, image).filter(|(of, _)| of == target).map(|(_, tally)| tally);
        }
        let adds = contributed(catalogue.derivation(at)?, schema, image.key, image.item);
        adds.into_iter().find(|(of, _)| of == target).map(|(_, tally)| tally)
    }
}

/// The query of the table, or else of an index with all items, whose partition key is built from the target's key. A
/// member of the target's key does not give the list that it is of.
fn query(source: &Definition, target: &Definition, (link, each): (&Link, Option<&str>), key: &Key) -> Option<Query> {
    let fields = target.key.parse_key(key)?;
    let of = |index: Option<&str>, template: &KeyTemplate| {
        // A text that the target's key has in one case only does not give a key that has it as it is.
        let gives = |name: &str, to: &&str| target.key.casing(to).is_none_or(|it| template.casing(name) == Some(it));
        let field = |name: &str| fields.get(link.filled_by(name).filter(|to| Some(name) != each && gives(name, to))?);
        let (pk, prefix) = (template.pk.build_of(field).ok()?, template.sk.prefix_of(field).ok()?);
        // A partition key with several forms would need several queries.
        is_one_text(&template.pk).then(|| Query::prefix(index, pk, prefix))
    };
    let whole = source.indexes.iter().filter(|index| index.only_if.is_none() && !index.derived);
    of(None, &source.key).or_else(|| whole.into_iter().find_map(|index| of(Some(&index.index), &index.key)))
}

/// What an item adds to the targets of an additive derivation, by the definition; for a roll-up, the count alone.
#[must_use]
pub fn contributed(derivation: &Derivation, schema: &Schema, key: &Key, item: &Item) -> Vec<(Key, Tally)> {
    let items = Items::from([(key.clone(), item.clone())]);
    let derived = derivation.derive(schema, &items, &Counts::new());
    let adds = derived.into_iter().filter_map(|part| match part {
        Derived::Count { target, tally, .. } => Some((target, tally)),
        Derived::Bucket { key, bucket, .. } => Some((key, Tally::of(bucket.tally.count))),
        Derived::Item { .. } | Derived::Attributes { .. } => None,
    });
    adds.collect()
}

// ---- Counts whose sources are in the collection of their target ----

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
                let (stored, _) = mirror.link.0.iter().find(|(_, by)| by == from)?;
                Some((to.clone(), Input::of(stored)))
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
        let (stored, target) = (schema.entity(entity)?, schema.entity(target)?);
        if renamed(&target.key.pk.to_string(), &link) != stored.key.pk.to_string() || !is_one_text(&stored.key.pk) {
            return None;
        }
        let prefix = stored.key.sk.prefix_of(|_| None).ok()?;
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

/// True if a partition key of this template has only one form. Numbers have several, and so has a spread key.
fn is_one_text(pk: &Template) -> bool {
    pk.suffixes().len() == 1 && !pk.field_names().iter().any(|name| pk.holds_number(name))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::fixture::{catalogue, ground, item, key_of, schema};

    #[test]
    fn the_sources_of_a_counter_stand_where_its_targets_key_says() {
        let (schema, mut shown) = (schema(), String::new());
        let catalogue = catalogue(&schema);
        for (name, pk, sk) in [
            ("comment-count", "POST#p", "METADATA"),
            ("follower-count", "USER#ann", "PROFILE"),
            ("writer-count", "USER#ann", "PROFILE"),
            ("post-count", "USER#ann", "PROFILE"),
            ("sold", "WARE#w", "METADATA"),
            ("readings", "SENSOR#s", "DAY#2024-01-15"),
        ] {
            let at = catalogue.position(name).unwrap();
            let found = Gathering::of(&schema, &catalogue, at, &Key::new(pk, sk)).map(|found| {
                let place = found.query.index.as_deref().unwrap_or("the table").to_owned();
                format!("{} in {place}: {} {:?}", found.entity, found.query.pk, found.query.sk)
            });
            shown.extend([format!("{name}: {}\n", found.unwrap_or_else(|| "nowhere".to_owned()))]);
        }
        expect![[r#"
            comment-count: Comment in the table: POST#p Prefix("COMMENT#")
            follower-count: Follower in the table: USER#ann Prefix("FOLLOWER#")
            writer-count: Comment in GSI1: USER#ann Prefix("COMMENT#")
            post-count: Post in the table: USER#ann Prefix("POST#")
            sold: nowhere
            readings: nowhere
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn a_member_does_not_give_the_key_that_has_its_list() {
        let source = ground("Reply", ("THREAD#{Above}", "REPLY#{ReplyId}"), &["Above"], &[]);
        let target = ground("Thread", ("THREAD#{ThreadId}", "METADATA"), &[], &[]);
        let (link, key) = (Link::of(&[("ThreadId", "Above")]), Key::new("THREAD#t", "METADATA"));
        let found = |each: Option<&str>| query(&source, &target, (&link, each), &key).map(|query| query.pk);
        assert_eq!((found(None).as_deref(), found(Some("Above"))), (Some("THREAD#t"), None));
    }

    #[test]
    fn a_source_or_its_mirror_adds_to_the_target_that_it_leads_to_and_to_no_other() {
        let schema = schema();
        let catalogue = catalogue(&schema);
        let adds = |name: &str, target: &str, text: &str| {
            let (at, target) = (catalogue.position(name).unwrap(), Key::new(target, "PROFILE"));
            let item = item(text);
            let key = key_of(&item);
            let image = schema.image(&key, &item).unwrap();
            let found = Gathering::of(&schema, &catalogue, at, &target).unwrap();
            found.adds(&schema, &catalogue, at, (&target, &image)).map_or(0, |tally| tally.count)
        };
        let mirror = "USER#bob / FOLLOWER#ann Follower";
        assert_eq!((adds("follower-count", "USER#bob", mirror), adds("follower-count", "USER#ann", mirror)), (1, 0));
        let post = |status: &str| format!("USER#ann / POST#2024#p Post Status={status}");
        assert_eq!(adds("post-count", "USER#ann", &post("published")), 1);
        assert_eq!(adds("post-count", "USER#ann", &post("draft")), 0);
    }

    fn beside() -> (Schema, Catalogue, Vec<CollectionCount>) {
        let schema = schema();
        let catalogue = catalogue(&schema);
        let all = CollectionCount::all(&schema, &catalogue);
        (schema, catalogue, all)
    }

    #[test]
    fn a_count_is_told_from_the_sources_or_the_mirrors_beside_its_target_and_from_nothing_else() {
        let (_, catalogue, all) = beside();
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
        let (schema, catalogue, all) = beside();
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
        let (_, catalogue, all) = beside();
        let of = |name: &str| all.iter().find(|it| catalogue.name(it.count) == name).unwrap();
        let is_sure = |name: &str, pk: &str, sk: &str| of(name).is_sure(&Key::new(pk, sk));
        assert!(is_sure("post-count", "USER#a%23", "POST#2024#a%25") && !is_sure("post-count", "USER#a%25", "PROFILE"));
        assert!(is_sure("follower-count", "USER#ann", "FOLLOWER#b"));
        assert!(!is_sure("follower-count", "USER#ann", "FOLLOWER#b/c"));
    }
}
