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
//! The sum is exact, in decimals of 38 digits. An item without the summed attribute adds 0; one whose attribute is not
//! a number counts as absent. If the sum changes and the count does not, the effect has a difference of 0 in count.
//!
//! *Example*: a post moves from draft to published. Old image: not in `post-count`. New image: one for its author.
//! Effect: +1 on the counter of `USER#ann / PROFILE`. An order of hers goes from 19.90 to 25: 0 and +5.1 on the counter
//! of `order-totals`.

use std::collections::BTreeMap;

use keys::key::Key;

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

impl Count {
    /// The target that an item counts for, and what it adds to the sum; `None` if it does not count.
    pub(crate) fn counted(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<(Key, Sum)>, Unreadable> {
        if !self.condition.holds(image)? {
            return Ok(None);
        }
        let Some(target) = schema.entity(&self.target) else { return Ok(None) };
        let amount = self.amount(image)?;
        Ok(self.link.key(target, image)?.map(|key| (key, amount)))
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
        gives(source, self.condition.attributes().into_iter().chain(self.sum.iter().flat_map(Input::names)))?;
        let mut reads: Vec<Part> = self.decides().map(|name| Part::attribute(&self.source, name)).collect();
        reads.push(Part::existence(&self.source));
        Ok(Reach { reads, writes: Vec::new() })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let mut terms: Vec<String> = self.condition.words().into_iter().collect();
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
        let counted = |image: Option<&Image<'_>>| image.and_then(|image| self.counted(schema, image).ok().flatten());
        match (counted(old), counted(new)) {
            (old, Some((new, sum))) if self.history => {
                let arrives = old.is_none_or(|(old, _)| old != new);
                arrives.then(|| add(new, 1, sum)).into_iter().collect()
            }
            (_, None) if self.history => Vec::new(),
            (Some((old, less)), Some((new, mut sum))) if old == new => {
                sum.subtract(&less);
                if sum.is_zero() { Vec::new() } else { vec![add(new, 0, sum)] }
            }
            (old, new) => {
                let taken = old.map(|(target, sum)| add(target, -1, less(&sum)));
                let given = new.map(|(target, sum)| add(target, 1, sum));
                taken.into_iter().chain(given).collect()
            }
        }
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        self.counted(schema, image).err().filter(|_| image.is(&self.source))
    }

    fn condition(&self) -> Option<(&str, &Condition)> {
        Some((&self.source, &self.condition))
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut counts: BTreeMap<Key, Tally> = BTreeMap::new();
        for (key, item) in items {
            let Some(image) = schema.image(key, item).filter(|image| image.is(&self.source)) else { continue };
            if let Ok(Some((target, sum))) = self.counted(schema, &image) {
                counts.entry(target).or_default().add(&Tally { count: 1, sum });
            }
        }
        let at_least = self.is_lower_bound();
        counts.into_iter().map(|(target, tally)| Derived::Count { target, tally, at_least }).collect()
    }
}

#[cfg(test)]
mod tests;
