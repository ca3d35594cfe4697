//! Count: how many items of an entity belong to a target.
//!
//! *Keeps true*: the shards of a target's Counter add up to the number of source items that lead to the target and
//! meet the predicate. *From* the two images of a source item *to* an amount for the old target and one for the new.
//!
//! *Additive.* The effect of a change is the difference of its images, so effects commute and any order is right, as
//! long as each change counts once; the ledger sees to that. A foreign key that moved takes one from the old target
//! and gives one to the new; a predicate that flips gives or takes one. The amount lives in a Counter item of our own,
//! so the target need not exist and a put over the target changes nothing.
//!
//! A *history* count takes inserts only, because the platform deletes its sources; what it counts cannot be told from
//! the ground, which gives a lower bound.
//!
//! *Example*: a post moves from draft to published. Old image: no part in `post-count`. New image: one for its author.
//! Effect: +1 on the counter of `USER#ann / PROFILE`.

use std::collections::BTreeMap;

use keys::key::Key;

use crate::{
    change::Sight,
    derivation::{Counts, Derived, Family, Items, Kind, Part, Reach},
    effect::{Add, Effect},
    kinds::{Link, Predicate, entity, knows},
    schema::{Image, Schema, Unreadable},
};

/// The declaration of a count.
#[derive(Clone, Debug)]
pub struct Count {
    /// Entity of the items that are counted.
    pub source: String,
    /// Which of them.
    pub predicate: Predicate,
    /// Entity of the target.
    pub target: String,
    /// How the target's key is made.
    pub link: Link,
    /// How many shards the counter is spread over, 1 to 100.
    pub n_shards: u32,
    /// Does it count inserts only?
    pub history: bool,
}

impl Count {
    /// The target that an item counts for; `None` when it does not count.
    fn counted(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        if !self.predicate.holds(image)? {
            return Ok(None);
        }
        match schema.entity(&self.target) {
            Some(target) => self.link.key(target, image),
            None => Ok(None),
        }
    }
}

impl Kind for Count {
    fn kind(&self) -> &'static str {
        if self.history { "history count" } else { "count" }
    }

    fn family(&self) -> Family {
        Family::Additive
    }

    fn is_history(&self) -> bool {
        self.history
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check(target, source)?;
        knows(source, self.predicate.attribute())?;
        if !(1..=100).contains(&self.n_shards) {
            return Err(format!("{} shards; a counter has 1 to 100", self.n_shards));
        }
        let names = self.link.from_fields().chain(self.predicate.attribute());
        let mut reads: Vec<Part> = names.map(|name| Part::attribute(&self.source, name)).collect();
        reads.push(Part::existence(&self.source));
        Ok(Reach { reads, writes: Vec::new() })
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        if self.history && sight.old.is_some() {
            return Vec::new();
        }
        let mut decides = self.link.from_fields().chain(self.predicate.attribute());
        if old.is_some() && new.is_some() && !decides.any(|name| sight.differs_in(name)) {
            return Vec::new();
        }
        let counted = |image: Option<&Image<'_>>| image.and_then(|image| self.counted(schema, image).ok().flatten());
        let (old, new) = (counted(old), counted(new));
        if old == new {
            return Vec::new();
        }
        let add = |target: Option<Key>, amount| {
            target.map(|target| Effect::Add(Add { target, n_shards: self.n_shards, amount }))
        };
        [add(old, -1), add(new, 1)].into_iter().flatten().collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(&self.source) {
            return None;
        }
        match self.predicate.holds(image) {
            Ok(true) => self.link.unreadable(schema.entity(&self.target)?, image),
            Ok(false) => None,
            Err(unreadable) => Some(unreadable),
        }
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut counts: BTreeMap<Key, i64> = BTreeMap::new();
        for (key, item) in items {
            let Some(image) = schema.image(key, item).filter(|image| image.is(&self.source)) else { continue };
            if let Ok(Some(target)) = self.counted(schema, &image) {
                *counts.entry(target).or_default() += 1;
            }
        }
        let at_least = self.history;
        counts.into_iter().map(|(target, value)| Derived::Count { target, value, at_least }).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{
        change::Change,
        fixture::{effects, inserted, modified, removed},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("count", change));
    }

    const DRAFT: &str = "USER#ann / POST#2024#p Post Status=draft";
    const PUBLISHED: &str = "USER#ann / POST#2024#p Post Status=published";
    const UNREADABLE: &str = "USER#ann / POST#2024#p Post Status=N:1";

    #[test]
    fn an_insert_counts_for_the_target_that_its_key_names() {
        check(
            &inserted("USER#ann / FOLLOWS#bob Follow"),
            &expect![[r#"
            follower-count: +1 USER#bob / PROFILE
        "#]],
        );
    }

    #[test]
    fn a_remove_takes_the_count_back() {
        check(
            &removed("USER#ann / FOLLOWS#bob Follow FolloweeName=Bob"),
            &expect![[r#"
            follower-count: -1 USER#bob / PROFILE
        "#]],
        );
    }

    #[test]
    fn a_moved_foreign_key_takes_from_the_old_target_and_gives_to_the_new() {
        let comment = "POST#p / COMMENT#c Comment";
        check(
            &modified(&format!("{comment} UserId=ann"), &format!("{comment} UserId=bob")),
            &expect![[r#"
            writer-count: -1 USER#ann / PROFILE
            writer-count: +1 USER#bob / PROFILE
        "#]],
        );
        check(
            &modified(&format!("{comment} UserId=ann"), comment),
            &expect![[r#"
            writer-count: -1 USER#ann / PROFILE
        "#]],
        );
    }

    #[test]
    fn a_predicate_that_flips_gives_and_takes() {
        check(
            &modified(DRAFT, PUBLISHED),
            &expect![[r#"
            post-count: +1 USER#ann / PROFILE
        "#]],
        );
        check(
            &modified(PUBLISHED, DRAFT),
            &expect![[r#"
            post-count: -1 USER#ann / PROFILE
        "#]],
        );
        check(
            &inserted(DRAFT),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn an_unreadable_item_counts_as_absent_and_adds_up_when_it_is_corrected() {
        check(
            &modified(PUBLISHED, UNREADABLE),
            &expect![[r#"
            post-count: -1 USER#ann / PROFILE
            post-count: list Status: is not of type S
        "#]],
        );
        check(
            &modified(UNREADABLE, PUBLISHED),
            &expect![[r#"
            post-count: +1 USER#ann / PROFILE
            post-count: take off the list
        "#]],
        );
        check(
            &removed(UNREADABLE),
            &expect![[r#"
            post-count: take off the list
        "#]],
        );
        check(
            &inserted("POST#p / COMMENT#c Comment UserId=N:1"),
            &expect![[r#"
            comment-count: +1 POST#p / METADATA
            writer-count: list UserId: is not of type S
        "#]],
        );
    }

    #[test]
    fn a_history_count_takes_inserts_only() {
        check(
            &inserted("USER#ann / VIEW#p View"),
            &expect![[r#"
            view-count: +1 POST#p / METADATA
        "#]],
        );
        check(
            &removed("USER#ann / VIEW#p View"),
            &expect![[r#"
            nothing
        "#]],
        );
        check(
            &modified("USER#ann / VIEW#p View", "USER#ann / VIEW#p View Note=x"),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn a_change_of_type_is_a_removal_of_the_one_and_an_insert_of_the_other() {
        let [known, unknown, untyped] = ["Follow", "Gadget", "X=y"].map(|t| format!("USER#ann / FOLLOWS#bob {t}"));
        check(
            &modified(&known, &unknown),
            &expect![[r#"
            follower-count: -1 USER#bob / PROFILE
        "#]],
        );
        check(
            &modified(&untyped, &known),
            &expect![[r#"
            follower-count: +1 USER#bob / PROFILE
        "#]],
        );
        check(
            &modified(&unknown, &untyped),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn what_no_count_reads_counts_nothing() {
        check(
            &modified(PUBLISHED, &format!("{PUBLISHED} Title=x")),
            &expect![[r#"
            nothing
        "#]],
        );
        check(
            &inserted("JUNK / PROFILE User"),
            &expect![[r#"
            nothing
        "#]],
        );
    }
}
