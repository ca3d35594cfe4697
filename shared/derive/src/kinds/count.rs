//! Count: the number of items that belong to a target, and optionally the sum of one of their attributes.
//!
//! *Keeps true*: the items of a target's counter add up to the number of source items that lead to the target and meet
//! the condition, and to the sum of their attribute, if one is declared. *From* the two images of a source item *to* an
//! amount for the old target and one for the new.
//!
//! *Additive.* The effect of a change is the difference of its images, so effects commute and any order is correct, as
//! long as each change counts once; the ledger ensures that. A changed foreign key subtracts one from the old target
//! and adds one to the new; a condition that flips adds or subtracts one. The amount is in a counter item of Ripple's
//! own, so the target need not exist and a put over the target changes nothing.
//!
//! A *history* count only counts arrivals, because DynamoDB's time to live deletes its sources. An item arrives at a
//! target by its insert, or by an update after which it counts there and before which it did not; so an item that
//! leaves and returns counts again. The existing items only give a lower bound of the count.
//!
//! A count with *what expires stays* takes nothing back when DynamoDB removes an item by its time to live; the record's
//! `userIdentity` says that. An edit or a removal by a client counts as in any other count. So the existing items give
//! a lower bound here too.
//!
//! If an attribute of the item lists members, the item counts for the target of each different member, and adds its
//! amount to the sum of each. A changed list takes from the targets that left it, and gives to those that came. An item
//! with a member that gives no key, or whose counter has too long a key, counts for no target.
//!
//! The sum is exact, in decimals of 38 digits. An item without the summed attribute adds 0; one whose attribute is not
//! a number counts as absent. If the sum changes and the count does not, the effect has a difference of 0 in count.
//!
//! *Example*: a post moves from draft to published. Old image: not in `post-count`. New image: one for its author.
//! Effect: +1 on the counter of `USER#ann / PROFILE`. An order of hers goes from 19.90 to 25: 0 and +5.1 on the counter
//! of `order-totals`.

use std::collections::{BTreeMap, BTreeSet};

use keys::{
    counter::CounterKey,
    key::{Key, PARTITION_KEY_BYTES_MAX},
};

use crate::{
    change::Sight,
    condition::Condition,
    declaration::{Count, entity, gives},
    derived::{Counts, Derived, Items},
    effect::{Add, Effect},
    expression::Input,
    kind::{Kind, Shape},
    outline::{Outline, linked},
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    tally::{Sum, Tally},
};

/// The key of a counter surely fits if the target's sort key and the derivation's name together have fewer bytes than
/// this; then it need not be built to check it.
const SURELY_FITS: usize = 512;

/// The targets that an item counts for. At most one needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// The target of a count without a list.
    one: Option<Key>,
    /// The targets of the members of a list.
    each: BTreeSet<Key>,
}

impl Targets {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.one.iter().chain(&self.each)
    }

    fn into_iter(self) -> impl Iterator<Item = Key> {
        self.one.into_iter().chain(self.each)
    }

    /// Takes this target out; returns true if it was one of them.
    fn take(&mut self, target: &Key) -> bool {
        self.one.take_if(|one| one == target).is_some() || self.each.remove(target)
    }
}

impl Count {
    /// The targets that an item counts for, and what it adds to the sum of each; none if it does not count.
    pub(crate) fn counted(&self, schema: &Schema, image: &Image<'_>) -> Result<(Targets, Sum), Unreadable> {
        let is_counted = self.condition.holds(image)?;
        let Some(target) = schema.entity(&self.target).filter(|_| is_counted) else {
            return Ok((Targets::default(), Sum::default()));
        };
        let sum = self.amount(image)?;
        let targets = match &self.each {
            Some(list) => Targets { each: self.link.keys(target, image, list)?, one: None },
            None => Targets { one: self.link.key(target, image)?, each: BTreeSet::new() },
        };
        Ok((targets, sum))
    }

    /// The problem with the key of a target's counter if it is too long to be stored, for example after a long sort
    /// key.
    pub(crate) fn too_long(name: &str, target: &Key) -> Option<String> {
        if target.pk.len() <= PARTITION_KEY_BYTES_MAX && target.sk.len() + name.len() < SURELY_FITS {
            return None;
        }
        let counter = CounterKey::home(target.clone(), name);
        counter.key().err().map(|error| error.problem.to_string())
    }

    /// What an item adds to the sum.
    fn amount(&self, image: &Image<'_>) -> Result<Sum, Unreadable> {
        let Some(sum) = &self.sum else { return Ok(Sum::default()) };
        sum.number(image).map(Option::unwrap_or_default)
    }

    /// The item's fields and attributes that decide what it adds.
    fn decides(&self) -> impl Iterator<Item = &str> {
        self.link.from_fields().chain(self.condition.attributes()).chain(self.sum.iter().flat_map(Input::names))
    }
}

fn add(target: Key, count: i64, sum: Sum) -> Effect {
    Effect::Add(Add { target, count, sum })
}

/// The negated sum.
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
        self.link.check_each(target, source, self.each.as_deref())?;
        gives(source, self.condition.attributes().into_iter().chain(self.sum.iter().flat_map(Input::names)))?;
        let mut reads: Vec<Part> = self.decides().map(|name| Part::attribute(&self.source, name)).collect();
        reads.push(Part::existence(&self.source));
        Ok(Reach { reads, writes: Vec::new() })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let mut terms: Vec<String> = self.each.iter().map(|list| format!("for each member of {list}")).collect();
        terms.extend(self.condition.words());
        terms.extend(self.sum.as_ref().map(|sum| format!("sum of {sum}")));
        if self.history {
            terms.push("arrivals only".to_owned());
        }
        if self.expired_stays {
            terms.push("what expires stays".to_owned());
        }
        Outline {
            terms,
            into: schema.entity(&self.target).map(|target| linked(target, &self.link)),
            counts: Some(self.target.clone()),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        if old.is_some() && new.is_some() && !self.decides().any(|name| sight.differs_in(name)) {
            return Vec::new();
        }
        if self.expired_stays && sight.expires() {
            return Vec::new();
        }
        let counted = |image: Option<&Image<'_>>| image.and_then(|image| self.counted(schema, image).ok());
        let [(old, taken), (mut new, given)] = [old, new].map(|image| counted(image).unwrap_or_default());
        let mut change = given.clone();
        change.subtract(&taken);
        let mut effects = Vec::new();
        for target in old.into_iter() {
            let is_kept = new.take(&target);
            match is_kept {
                _ if self.history => {}
                true if change.is_zero() => {}
                true => effects.push(add(target, 0, change.clone())),
                false => effects.push(add(target, -1, less(&taken))),
            }
        }
        effects.extend(new.into_iter().map(|target| add(target, 1, given.clone())));
        effects
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if image.is(&self.source) { self.counted(schema, image).err() } else { None }
    }

    fn condition(&self) -> Option<(&str, &Condition)> {
        Some((&self.source, &self.condition))
    }

    fn derive(&self, name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut counts: BTreeMap<Key, Tally> = BTreeMap::new();
        for image in schema.images(items, &self.source) {
            let Ok((targets, sum)) = self.counted(schema, &image) else { continue };
            if targets.iter().any(|target| Self::too_long(name, target).is_some()) {
                continue;
            }
            for target in targets.into_iter() {
                counts.entry(target).or_default().add(&Tally { count: 1, sum: sum.clone() });
            }
        }
        let at_least = self.is_lower_bound();
        counts.into_iter().map(|(target, tally)| Derived::Count { target, tally, at_least }).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        catalogue::Catalogue,
        change::Change,
        definition,
        fixture::{count, effects, effects_in, expired, inserted, item, key_of, modified, named, removed, schema},
        gathering::CollectionCount,
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("count", change));
    }

    const DRAFT: &str = "USER#ann / POST#2024#p Post Status=draft";
    const PUBLISHED: &str = "USER#ann / POST#2024#p Post Status=published";
    const WRITTEN: &str = "POST#p / COMMENT#c Comment UserId=ann";
    const UNREADABLE: &str = "POST#p / COMMENT#c Comment UserId=N:1";
    const SALE: &str = "SALE#s / METADATA Sale";

    #[test]
    fn an_insert_counts_for_the_target_that_its_key_names() {
        check(&inserted("USER#ann / FOLLOWS#bob Follow"), &expect!["follower-count: +1 USER#bob / PROFILE\n"]);
    }

    #[test]
    fn a_remove_takes_the_count_back() {
        check(
            &removed("USER#ann / FOLLOWS#bob Follow FolloweeName=Bob"),
            &expect!["follower-count: -1 USER#bob / PROFILE\n"],
        );
    }

    #[test]
    fn what_expires_is_taken_back_unless_it_stays() {
        let (schema, stays) =
            (schema(), Count { expired_stays: true, ..count("Follow", "User", &[("UserId", "FolloweeId")]) });
        let catalogue = Catalogue::new(&schema, vec![named("followers", stays)]).unwrap();
        let [taken, nothing] = ["followers: -1 USER#bob / PROFILE\n", "nothing\n"];
        let follow = "USER#ann / FOLLOWS#bob Follow";
        for (change, wanted) in [
            (expired(follow), nothing),
            (removed(follow), taken),
            (modified(follow, "USER#ann / FOLLOWS#bob Other"), taken),
            (inserted(follow), "followers: +1 USER#bob / PROFILE\n"),
        ] {
            assert_eq!(effects_in(&schema, &catalogue, "count", &change), wanted, "{change:?}");
        }
        check(&expired(follow), &expect!["follower-count: -1 USER#bob / PROFILE\n"]);
        let derived = catalogue.derivations().next().unwrap();
        assert!(derived.kind.is_history(), "what expired is gone, so the existing items are a lower bound");
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
        check(&modified(&format!("{comment} UserId=ann"), comment), &expect!["writer-count: -1 USER#ann / PROFILE\n"]);
    }

    #[test]
    fn a_condition_that_flips_gives_and_takes() {
        check(&modified(DRAFT, PUBLISHED), &expect!["post-count: +1 USER#ann / PROFILE\n"]);
        check(&modified(PUBLISHED, DRAFT), &expect!["post-count: -1 USER#ann / PROFILE\n"]);
        check(&inserted(DRAFT), &expect!["nothing\n"]);
    }

    #[test]
    fn an_unreadable_item_counts_as_absent_and_adds_up_when_it_is_corrected() {
        check(
            &modified(WRITTEN, UNREADABLE),
            &expect![[r#"
            writer-count: -1 USER#ann / PROFILE
            writer-count: list UserId is N, and `{UserId}` takes a text: store a text, or link by text(UserId)
        "#]],
        );
        check(
            &modified(UNREADABLE, WRITTEN),
            &expect![[r#"
            writer-count: +1 USER#ann / PROFILE
            writer-count: take off the list
        "#]],
        );
        check(
            &removed(UNREADABLE),
            &expect![[r#"
            comment-count: -1 POST#p / METADATA
            writer-count: take off the list
        "#]],
        );
        check(
            &inserted(UNREADABLE),
            &expect![[r#"
            comment-count: +1 POST#p / METADATA
            writer-count: list UserId is N, and `{UserId}` takes a text: store a text, or link by text(UserId)
        "#]],
        );
    }

    #[test]
    fn an_attribute_of_another_type_than_the_condition_names_meets_it_as_dynamodb_says() {
        check(
            &modified(PUBLISHED, "USER#ann / POST#2024#p Post Status=N:1"),
            &expect!["post-count: -1 USER#ann / PROFILE\n"],
        );
    }

    #[test]
    fn a_history_count_takes_arrivals_only() {
        let view = "USER#ann / VIEW#p View";
        check(&inserted(view), &expect!["view-count: +1 POST#p / METADATA\n"]);
        check(&removed(view), &expect!["nothing\n"]);
        check(&modified(view, &format!("{view} Note=x")), &expect!["nothing\n"]);
        check(&modified("USER#ann / VIEW#p Gadget", view), &expect!["view-count: +1 POST#p / METADATA\n"]);
    }

    #[test]
    fn in_a_history_count_an_item_that_comes_to_another_target_arrives_there_and_is_taken_from_none() {
        let sale = |product| format!("{SALE}{product}");
        check(
            &modified(&sale(" ProductId=a"), &sale(" ProductId=b")),
            &expect!["sale-count: +1 PRODUCT#b / METADATA\n"],
        );
        check(&modified(&sale(" ProductId=a"), &sale("")), &expect!["nothing\n"]);
        check(&modified(&sale(""), &sale(" ProductId=a")), &expect!["sale-count: +1 PRODUCT#a / METADATA\n"]);
        check(
            &modified(&sale(" ProductId=N:1"), &sale(" ProductId=a")),
            &expect![[r#"
            sale-count: +1 PRODUCT#a / METADATA
            sale-count: take off the list
        "#]],
        );
    }

    #[test]
    fn a_change_of_type_is_a_removal_of_the_one_and_an_insert_of_the_other() {
        let [known, unknown, untyped] = ["Follow", "Gadget", "X=y"].map(|t| format!("USER#ann / FOLLOWS#bob {t}"));
        check(&modified(&known, &unknown), &expect!["follower-count: -1 USER#bob / PROFILE\n"]);
        check(&modified(&untyped, &known), &expect!["follower-count: +1 USER#bob / PROFILE\n"]);
        check(&modified(&unknown, &untyped), &expect!["nothing\n"]);
    }

    #[test]
    fn what_no_count_reads_counts_nothing() {
        check(&modified(PUBLISHED, &format!("{PUBLISHED} Title=x")), &expect!["nothing\n"]);
        check(&inserted("JUNK / PROFILE User"), &expect!["nothing\n"]);
    }

    const LINE: &str = "ORDER#o / LINE#1 Line";

    /// Checks the effects of a change for the counts with a sum.
    fn check_sum(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("count and sum", change));
    }

    #[test]
    fn what_is_summed_is_added_with_the_count_and_taken_back_with_it() {
        let line = format!("{LINE} ProductId=p Quantity=N:1.50");
        check_sum(&inserted(&line), &expect!["sold: +1 and N:1.5 WARE#p / METADATA\n"]);
        check_sum(&removed(&line), &expect!["sold: -1 and N:-1.5 WARE#p / METADATA\n"]);
        check_sum(&inserted(&format!("{LINE} ProductId=p")), &expect!["sold: +1 WARE#p / METADATA\n"]);
    }

    #[test]
    fn an_amount_that_changed_is_a_difference_of_0_in_count() {
        let line = format!("{LINE} ProductId=p");
        check_sum(
            &modified(&format!("{line} Quantity=N:19.90"), &format!("{line} Quantity=N:25")),
            &expect!["sold: +0 and N:5.1 WARE#p / METADATA\n"],
        );
        check_sum(&modified(&format!("{line} Quantity=N:2"), &line), &expect!["sold: +0 and N:-2 WARE#p / METADATA\n"]);
        check_sum(
            &modified(&format!("{line} Quantity=N:2"), &format!("{line} Quantity=N:2.0 Note=x")),
            &expect!["nothing\n"],
        );
        let [digits, less] = ["12345678901234567890123456789012345678", "12345678901234567890123456789012345677"];
        let [digits, less] = [digits, less].map(|digits| format!("{line} Quantity=N:0.{digits}"));
        check_sum(
            &modified(&less, &digits),
            &expect!["sold: +0 and N:0.00000000000000000000000000000000000001 WARE#p / METADATA\n"],
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
    fn a_condition_that_flips_takes_and_gives_the_amount() {
        let line = format!("{LINE} ProductId=p Quantity=N:2");
        let cancelled = format!("{line} Status=cancelled");
        check_sum(&modified(&line, &format!("{line} Status=paid")), &expect!["nothing\n"]);
        check_sum(&modified(&line, &cancelled), &expect!["sold: -1 and N:-2 WARE#p / METADATA\n"]);
        check_sum(
            &modified(&cancelled, &format!("{LINE} ProductId=p Quantity=N:5 Status=paid")),
            &expect!["sold: +1 and N:5 WARE#p / METADATA\n"],
        );
        check_sum(&removed(&cancelled), &expect!["nothing\n"]);
    }

    #[test]
    fn an_amount_that_cannot_be_read_counts_as_absent_with_its_item() {
        let line = format!("{LINE} ProductId=p Quantity");
        check_sum(&inserted(&format!("{line}=many")), &expect!["sold: list Quantity is S, and N is wanted\n"]);
        check_sum(
            &modified(&format!("{line}=N:2"), &format!("{line}=SS:2")),
            &expect![[r#"
            sold: -1 and N:-2 WARE#p / METADATA
            sold: list Quantity is SS, and N is wanted
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
            &expect!["sold: list Quantity is no number that DynamoDB holds\n"],
        );
        check_sum(&inserted(&format!("{line}=many Status=cancelled")), &expect!["nothing\n"]);
        // A status that is not a text is not equal to `cancelled`.
        check_sum(&inserted(&format!("{line}=N:2 Status=N:1")), &expect!["sold: +1 and N:2 WARE#p / METADATA\n"]);
    }

    #[test]
    fn a_truth_that_excludes_does_so_only_when_it_is_true() {
        let line = format!("{LINE} ProductId=p");
        let [yes, no, text] = ["BOOL:true", "BOOL:false", "yes"].map(|truth| format!("{line} Cancelled={truth}"));
        check(&inserted(&yes), &expect!["nothing\n"]);
        check(&modified(&line, &no), &expect!["nothing\n"]);
        check(&modified(&no, &yes), &expect!["kept: -1 WARE#p / METADATA\n"]);
        check(&modified(&yes, &text), &expect!["kept: +1 WARE#p / METADATA\n"]);
        check(&modified(&text, &line), &expect!["nothing\n"]);
    }

    /// A count of desks for each of their clerks, with the sum of what `Place` is.
    fn clerked() -> Count {
        Count {
            condition: Condition::not("Closed"),
            sum: Some("Place".into()),
            each: Some("Clerks".to_owned()),
            ..count("Desk", "User", &[("UserId", "Clerks")])
        }
    }

    /// Checks the effects of changes of a desk, from its attributes before and after; `None` where there is no desk.
    #[track_caller]
    fn check_each(count: Count, changes: &[(Option<&str>, Option<&str>, &str)]) {
        let (schema, of) = (schema(), if count.history { "history count and sum" } else { "count and sum" });
        let catalogue = Catalogue::new(&schema, vec![named("desks", count)]).unwrap();
        let desk = |attributes: &str| format!("DESK#d / METADATA Desk {attributes}");
        for (old, new, wanted) in changes {
            let change = match (old.map(desk), new.map(desk)) {
                (None, Some(new)) => inserted(&new),
                (Some(old), Some(new)) => modified(&old, &new),
                (old, _) => removed(&old.unwrap()),
            };
            let effects = effects_in(&schema, &catalogue, of, &change);
            let shown = effects.lines().map(|line| line.trim_start_matches("desks: ").replace(" / PROFILE", ""));
            assert_eq!(shown.collect::<Vec<_>>().join("; "), *wanted, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn an_item_counts_once_for_each_different_member() {
        let two = Some("Clerks=L:ann,bob Place=N:2");
        check_each(
            clerked(),
            &[
                (None, two, "+1 and N:2 USER#ann; +1 and N:2 USER#bob"),
                (two, None, "-1 and N:-2 USER#ann; -1 and N:-2 USER#bob"),
                // The same members.
                (None, Some("Clerks=L:ann,ann"), "+1 USER#ann"),
                (two, Some("Clerks=SS:bob,ann Place=N:2"), "nothing"),
                (two, Some("Clerks=L:bob,ann,bob Place=N:2.0"), "nothing"),
                // Others.
                (two, Some("Clerks=L:cid,bob Place=N:2"), "-1 and N:-2 USER#ann; +1 and N:2 USER#cid"),
                (two, Some("Clerks=SS:ann Place=N:2"), "-1 and N:-2 USER#bob"),
                (Some("Clerks=SS:ann"), Some("Clerks=SS:ann,bob,cid"), "+1 USER#bob; +1 USER#cid"),
                (two, Some("Place=N:2"), "-1 and N:-2 USER#ann; -1 and N:-2 USER#bob"),
                // Another amount, for those that stay; the old one is taken, and the new one given.
                (two, Some("Clerks=L:ann,bob Place=N:5"), "+0 and N:3 USER#ann; +0 and N:3 USER#bob"),
                (
                    two,
                    Some("Clerks=L:bob,cid Place=N:5"),
                    "-1 and N:-2 USER#ann; +0 and N:3 USER#bob; +1 and N:5 USER#cid",
                ),
                // The condition.
                (
                    two,
                    Some("Clerks=L:ann,bob Place=N:2 Closed=BOOL:true"),
                    "-1 and N:-2 USER#ann; -1 and N:-2 USER#bob",
                ),
                (Some("Clerks=SS:ann Closed=BOOL:true"), Some("Clerks=SS:bob"), "+1 USER#bob"),
                (Some("Clerks=SS:ann Closed=BOOL:true"), Some("Clerks=SS:bob Closed=BOOL:true"), "nothing"),
                // What does not decide.
                (two, Some("Clerks=L:ann,bob Place=N:2 Note=x"), "nothing"),
            ],
        );
    }

    #[test]
    fn an_item_with_an_unreadable_member_counts_for_none() {
        let number = "list Clerks has a member that is N, and S is wanted";
        let long = format!("Clerks=L:ann,{}", "x".repeat(3_000));
        let too_long = "list Clerks makes a key of 3005 bytes; the limit is 2048";
        check_each(
            clerked(),
            &[
                (None, Some("Clerks=L:ann,N:1"), number),
                (Some("Clerks=SS:ann"), Some("Clerks=L:ann,N:1"), &format!("-1 USER#ann; {number}")),
                (Some("Clerks=L:ann,N:1"), Some("Clerks=L:ann,bob"), "+1 USER#ann; +1 USER#bob; take off the list"),
                (Some("Clerks=L:ann,N:1"), None, "take off the list"),
                (None, Some("Clerks=SS:ann,"), "list Clerks has a member that is empty"),
                (None, Some("Clerks=NS:1,2"), number),
                (None, Some("Clerks=ann"), "list Clerks is S, and a list or a set of texts is wanted"),
                (None, Some(&long), too_long),
                (None, Some("Clerks=SS:ann Place=hall"), "list Place is S, and N is wanted"),
                (None, Some("Clerks=L:ann,N:1 Closed=BOOL:true"), "nothing"),
            ],
        );
    }

    #[test]
    fn a_member_whose_counter_cannot_be_stored_leaves_no_other_counter() {
        // A desk's group has its status in the sort key, in front of the counter's part.
        let group = Count {
            each: Some("Clerks".to_owned()),
            ..count("Desk", "StatusGroup", &[("DeskId", "DeskId"), ("Status", "Clerks")])
        };
        let schema = schema();
        let catalogue = Catalogue::new(&schema, vec![named("groups", group)]).unwrap();
        let desk = |clerks: &str| format!("DESK#d / METADATA Desk Clerks=L:{clerks}");
        let long = desk(&format!("ann,{}", "x".repeat(1_010)));
        let effects = |change: &Change| effects_in(&schema, &catalogue, "count", change);
        let why = "Clerks leads to a counter whose key makes a key of 1033 bytes; the limit is 1024";
        assert_eq!(effects(&inserted(&long)), format!("groups: list {why}\n"));
        let left = "groups: -1 DESK#d / STATUS#ann\n";
        assert_eq!(effects(&modified(&desk("ann"), &long)), format!("{left}groups: list {why}\n"));
        let given = "groups: +1 DESK#d / STATUS#ann\n";
        assert_eq!(effects(&modified(&long, &desk("ann"))), format!("{given}groups: take off the list\n"));
        let item = item(&long);
        let items = Items::from([(key_of(&item), item)]);
        let derivation = catalogue.derivations().next().unwrap();
        assert!(derivation.derive(&schema, &items, &Counts::new()).is_empty());
    }

    #[test]
    fn in_a_history_each_member_that_comes_arrives() {
        let two = Some("Clerks=L:ann,bob Place=N:2");
        check_each(
            Count { history: true, ..clerked() },
            &[
                (None, two, "+1 and N:2 USER#ann; +1 and N:2 USER#bob"),
                (two, None, "nothing"),
                (two, Some("Clerks=SS:bob,cid Place=N:5"), "+1 and N:5 USER#cid"),
                (two, Some("Clerks=L:bob,ann Place=N:5"), "nothing"),
                (Some("Clerks=SS:ann Closed=BOOL:true"), Some("Clerks=SS:ann"), "+1 USER#ann"),
                (Some("Clerks=L:ann,N:1"), Some("Clerks=L:ann"), "+1 USER#ann; take off the list"),
            ],
        );
    }

    #[test]
    fn an_item_in_its_own_list_counts_for_itself_and_the_definition_adds_up_all() {
        let schema = schema();
        let own = Count { each: Some("Clerks".to_owned()), ..count("Desk", "Desk", &[("DeskId", "Clerks")]) };
        let catalogue = Catalogue::new(&schema, vec![named("desks", own)]).unwrap();
        let derivation = catalogue.derivations().next().unwrap();
        let desks = ["d Desk Clerks=L:d,e,d", "e Desk Clerks=SS:d", "f Desk Clerks=L:d,N:1", "g Desk"];
        let items = desks.map(|desk| item(&format!("DESK#{}", desk.replacen(' ', " / METADATA ", 1))));
        let items: Items = items.into_iter().map(|item| (key_of(&item), item)).collect();
        let derived = derivation.derive(&schema, &items, &Counts::new()).into_iter().map(|part| match part {
            Derived::Count { target, tally, .. } => format!("{target}: {}", tally.count),
            other => panic!("{other:?}"),
        });
        assert_eq!(derived.collect::<Vec<_>>(), ["DESK#d / METADATA: 2", "DESK#e / METADATA: 1"]);
        let change = inserted("DESK#d / METADATA Desk Clerks=L:e,d");
        let wanted = "desks: +1 DESK#d / METADATA\ndesks: +1 DESK#e / METADATA\n";
        assert_eq!(effects_in(&schema, &catalogue, "count", &change), wanted);
    }

    #[test]
    fn the_list_is_in_the_definition_and_leads_to_no_collection() {
        let schema = schema();
        let definition = |count: Count| definition::definition(&named("desks", count), &schema);
        let one = count("Desk", "User", &[("UserId", "Clerks")]);
        assert_eq!(definition(one.clone()), "count: Desk into USER#{Clerks} / PROFILE; reads Desk.Clerks");
        let each = Count { each: Some("Clerks".to_owned()), ..one };
        assert_eq!(
            definition(each.clone()),
            "count: Desk (for each member of Clerks) into USER#{Clerks} / PROFILE; reads Desk.Clerks"
        );
        let refused = |each: &str| {
            let count = Count { each: Some(each.to_owned()), ..count("Desk", "User", &[("UserId", "Clerks")]) };
            Catalogue::new(&schema, vec![named("desks", count)]).unwrap_err().to_string()
        };
        assert_eq!(refused("Clerk"), "derivation desks: Desk has no attribute Clerk");
        assert_eq!(
            refused("Place"),
            "derivation desks: each is Place, and no field of the key of User is a member of it"
        );
        // Beside the desk are its groups.
        let group = count("Desk", "StatusGroup", &[("DeskId", "DeskId"), ("Status", "Clerks")]);
        for (each, is_beside) in [(None, true), (Some("Clerks".to_owned()), false)] {
            let catalogue = Catalogue::new(&schema, vec![named("groups", Count { each, ..group.clone() })]).unwrap();
            assert_eq!(!CollectionCount::all(&schema, &catalogue).is_empty(), is_beside);
        }
    }
}
