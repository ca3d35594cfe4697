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
        for (key, item) in items {
            let Some(image) = schema.image(key, item).filter(|image| image.is(&self.source)) else { continue };
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
mod tests;
