//! Finds the sources of a counter: one query for all items that lead to a target, if such a query exists.
//!
//! A source leads to its target by its own fields. If these are also the partition key of the source, in the table or
//! in an index, the target's key gives that partition key. If not, only a scan of the whole table finds the sources.
//!
//! *Example*: the comments of `POST#p / METADATA` are `POST#p / COMMENT#…`. The followers of `USER#ann / PROFILE` are
//! stored with the following users, and are mirrored in her collection as `USER#ann / FOLLOWER#…`.

use keys::{
    entity::{Definition, KeyTemplate},
    item::Item,
    key::Key,
};

use crate::{
    catalogue::Catalogue,
    collection::CollectionCount,
    declaration::Link,
    derivation::Derivation,
    derived::{Counts, Derived, Items},
    kind::Shape,
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
        // A partition key with several forms would need several queries.
        let is_one = template.pk.suffixes().len() == 1;
        let is_one = is_one && !template.pk.field_names().iter().any(|name| template.pk.holds_number(name));
        let (pk, prefix) = (template.pk.build_of(field).ok()?, template.sk.prefix_of(field).ok()?);
        is_one.then(|| Query::prefix(index, pk, prefix))
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
}
