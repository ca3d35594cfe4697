//! Count: how many items of an entity belong to a target, and what a number of theirs comes to.
//!
//! *Keeps true*: the shards of a target's Counter add up to the number of source items that lead to the target and
//! meet the predicate, and to the sum of an attribute of theirs where one is named. *From* the two images of a source item *to* an amount for the old target and one for the new.
//!
//! *Additive.* The effect of a change is the difference of its images, so effects commute and any order is right, as
//! long as each change counts once; the ledger sees to that. A foreign key that moved takes one from the old target
//! and gives one to the new; a predicate that flips gives or takes one. The amount lives in a Counter item of our own,
//! so the target need not exist and a put over the target changes nothing.
//!
//! A *history* count takes inserts only, because the platform deletes its sources; what it counts cannot be told from
//! the ground, which gives a lower bound.
//!
//! The sum is exact, in decimals of 38 digits. An item without the summed attribute adds 0; one in which it is no number
//! counts as absent. Where the sum changes and the count does not, the effect is a difference of 0 in count.
//!
//! *Example*: a post moves from draft to published. Old image: no part in `post-count`. New image: one for its author.
//! Effect: +1 on the counter of `USER#ann / PROFILE`. An order of hers goes from 19.90 to 25: 0 and +5.1 on that of
//! `order-totals`.

use std::collections::BTreeMap;

use keys::key::Key;

use crate::{
    change::Sight,
    derivation::{Counts, Derived, Items, Part, Reach},
    effect::{Add, Effect},
    kind::{Kind, Shape},
    kinds::{Link, Predicate, entity, knows},
    outline::{Outline, linked},
    schema::{Image, Schema, Unreadable},
    tally::{Sum, Tally},
};

/// Shards of a counter at most: two digits stand for one in its key.
pub const SHARDS_MAX: u32 = 100;

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
    /// The attribute that is summed, if there is one.
    pub sum: Option<String>,
    /// How many shards the counter is spread over, 1 to 100.
    pub n_shards: u32,
    /// Does it count inserts only?
    pub history: bool,
}

impl Count {
    /// The target that an item counts for, and what it adds to the sum; `None` when it does not count.
    pub(crate) fn counted(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<(Key, Sum)>, Unreadable> {
        if !self.predicate.holds(image)? {
            return Ok(None);
        }
        let Some(target) = schema.entity(&self.target) else { return Ok(None) };
        let amount = self.amount(image)?;
        Ok(self.link.key(target, image)?.map(|key| (key, amount)))
    }

    /// What an item adds to the sum.
    fn amount(&self, image: &Image<'_>) -> Result<Sum, Unreadable> {
        let Some(name) = &self.sum else { return Ok(Sum::default()) };
        Sum::read(name, image.attribute(name)).map(Option::unwrap_or_default)
    }

    /// The item's fields and attributes that decide what it adds.
    fn decides(&self) -> impl Iterator<Item = &str> {
        self.link.from_fields().chain(self.predicate.attribute()).chain(self.sum.as_deref())
    }

    fn add(&self, target: Key, count: i64, sum: Sum) -> Effect {
        Effect::Add(Add { target, n_shards: self.n_shards, count, sum })
    }
}

/// A sum taken the other way.
fn less(sum: &Sum) -> Sum {
    let mut less = Sum::default();
    less.subtract(sum);
    less
}

impl Kind for Count {
    fn name(&self) -> &'static str {
        match (self.history, self.sum.is_some()) {
            (false, false) => "count",
            (false, true) => "count and sum",
            (true, false) => "history count",
            (true, true) => "history count and sum",
        }
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Count(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check(target, source)?;
        knows(source, self.predicate.attribute().into_iter().chain(self.sum.as_deref()))?;
        if !(1..=SHARDS_MAX).contains(&self.n_shards) {
            return Err(format!("{} shards; a counter has 1 to {SHARDS_MAX}", self.n_shards));
        }
        let mut reads: Vec<Part> = self.decides().map(|name| Part::attribute(&self.source, name)).collect();
        reads.push(Part::existence(&self.source));
        Ok(Reach { reads, writes: Vec::new() })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let mut terms = self.predicate.words();
        terms.extend(self.sum.as_ref().map(|sum| format!("sum of {sum}")));
        if self.history {
            terms.push("inserts only".to_owned());
        }
        Outline {
            terms,
            into: schema.entity(&self.target).map(|target| linked(target, &self.link)),
            counts: Some((self.target.clone(), self.n_shards)),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        if self.history && sight.old.is_some() {
            return Vec::new();
        }
        if old.is_some() && new.is_some() && !self.decides().any(|name| sight.differs_in(name)) {
            return Vec::new();
        }
        let counted = |image: Option<&Image<'_>>| image.and_then(|image| self.counted(schema, image).ok().flatten());
        match (counted(old), counted(new)) {
            (Some((old, less)), Some((new, mut sum))) if old == new => {
                sum.subtract(&less);
                if sum.is_zero() { Vec::new() } else { vec![self.add(new, 0, sum)] }
            }
            (old, new) => {
                let taken = old.map(|(target, sum)| self.add(target, -1, less(&sum)));
                let given = new.map(|(target, sum)| self.add(target, 1, sum));
                taken.into_iter().chain(given).collect()
            }
        }
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(&self.source) {
            return None;
        }
        match self.predicate.holds(image) {
            Ok(true) => {
                let of_link = || self.link.unreadable(schema.entity(&self.target)?, image);
                self.amount(image).err().or_else(of_link)
            }
            Ok(false) => None,
            Err(unreadable) => Some(unreadable),
        }
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut counts: BTreeMap<Key, Tally> = BTreeMap::new();
        for (key, item) in items {
            let Some(image) = schema.image(key, item).filter(|image| image.is(&self.source)) else { continue };
            if let Ok(Some((target, sum))) = self.counted(schema, &image) {
                counts.entry(target).or_default().add(&Tally { count: 1, sum });
            }
        }
        let at_least = self.history;
        counts.into_iter().map(|(target, tally)| Derived::Count { target, tally, at_least }).collect()
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

    const LINE: &str = "ORDER#o / LINE#1 Line";

    /// What a change asks of the counts that sum.
    fn check_sum(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("count and sum", change));
    }

    #[test]
    fn what_is_summed_is_added_with_the_count_and_taken_back_with_it() {
        let line = format!("{LINE} ProductId=p Quantity=N:1.50");
        check_sum(
            &inserted(&line),
            &expect![[r#"
            sold: +1 and N:1.5 WARE#p / METADATA
        "#]],
        );
        check_sum(
            &removed(&line),
            &expect![[r#"
            sold: -1 and N:-1.5 WARE#p / METADATA
        "#]],
        );
        check_sum(
            &inserted(&format!("{LINE} ProductId=p")),
            &expect![[r#"
            sold: +1 WARE#p / METADATA
        "#]],
        );
    }

    #[test]
    fn an_amount_that_changed_is_a_difference_of_0_in_count() {
        let line = format!("{LINE} ProductId=p");
        check_sum(
            &modified(&format!("{line} Quantity=N:19.90"), &format!("{line} Quantity=N:25")),
            &expect![[r#"
            sold: +0 and N:5.1 WARE#p / METADATA
        "#]],
        );
        check_sum(
            &modified(&format!("{line} Quantity=N:2"), &line),
            &expect![[r#"
            sold: +0 and N:-2 WARE#p / METADATA
        "#]],
        );
        check_sum(
            &modified(&format!("{line} Quantity=N:2"), &format!("{line} Quantity=N:2.0 Note=x")),
            &expect![[r#"
            nothing
        "#]],
        );
        let [digits, less] = ["12345678901234567890123456789012345678", "12345678901234567890123456789012345677"];
        let [digits, less] = [digits, less].map(|digits| format!("{line} Quantity=N:0.{digits}"));
        check_sum(
            &modified(&less, &digits),
            &expect![[r#"
            sold: +0 and N:0.00000000000000000000000000000000000001 WARE#p / METADATA
        "#]],
        );
    }

    #[test]
    fn a_moved_key_takes_the_old_amount_and_gives_the_new() {
        let [old, new] = ["p Quantity=N:2", "q Quantity=N:3"].map(|product| format!("{LINE} ProductId={product}"));
        check_sum(
            &modified(&old, &new),
            &expect![[r#"
            sold: -1 and N:-2 WARE#p / METADATA
            sold: +1 and N:3 WARE#q / METADATA
        "#]],
        );
    }

    #[test]
    fn a_predicate_that_flips_takes_and_gives_the_amount() {
        let line = format!("{LINE} ProductId=p Quantity=N:2");
        let cancelled = format!("{line} Status=cancelled");
        check_sum(
            &modified(&line, &format!("{line} Status=paid")),
            &expect![[r#"
            nothing
        "#]],
        );
        check_sum(
            &modified(&line, &cancelled),
            &expect![[r#"
            sold: -1 and N:-2 WARE#p / METADATA
        "#]],
        );
        check_sum(
            &modified(&cancelled, &format!("{LINE} ProductId=p Quantity=N:5 Status=paid")),
            &expect![[r#"
            sold: +1 and N:5 WARE#p / METADATA
        "#]],
        );
        check_sum(
            &removed(&cancelled),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn an_amount_that_cannot_be_read_counts_as_absent_with_its_item() {
        let line = format!("{LINE} ProductId=p Quantity");
        check_sum(
            &inserted(&format!("{line}=many")),
            &expect![[r#"
            sold: list Quantity: is not a number of type N
        "#]],
        );
        check_sum(
            &modified(&format!("{line}=N:2"), &format!("{line}=SS:2")),
            &expect![[r#"
            sold: -1 and N:-2 WARE#p / METADATA
            sold: list Quantity: is not a number of type N
        "#]],
        );
        check_sum(
            &modified(&format!("{line}=many"), &format!("{line}=N:2")),
            &expect![[r#"
            sold: +1 and N:2 WARE#p / METADATA
            sold: take off the list
        "#]],
        );
        let digits_39 = "1".repeat(39);
        check_sum(
            &inserted(&format!("{line}=N:{digits_39}")),
            &expect![[r#"
            sold: list Quantity: is not a number of type N
        "#]],
        );
        check_sum(
            &inserted(&format!("{line}=many Status=cancelled")),
            &expect![[r#"
            nothing
        "#]],
        );
        check_sum(
            &inserted(&format!("{line}=N:2 Status=N:1")),
            &expect![[r#"
            sold: list Status: is not of type S
        "#]],
        );
    }

    #[test]
    fn a_truth_that_excludes_does_so_only_when_it_is_true() {
        let line = format!("{LINE} ProductId=p");
        let [yes, no, text] = ["BOOL:true", "BOOL:false", "yes"].map(|truth| format!("{line} Cancelled={truth}"));
        check(
            &inserted(&yes),
            &expect![[r#"
            nothing
        "#]],
        );
        check(
            &modified(&line, &no),
            &expect![[r#"
            nothing
        "#]],
        );
        check(
            &modified(&no, &yes),
            &expect![[r#"
            kept: -1 WARE#p / METADATA
        "#]],
        );
        check(
            &modified(&yes, &text),
            &expect![[r#"
            kept: list Cancelled: is not of type BOOL
        "#]],
        );
        check(
            &modified(&text, &line),
            &expect![[r#"
            kept: +1 WARE#p / METADATA
            kept: take off the list
        "#]],
        );
    }
}
