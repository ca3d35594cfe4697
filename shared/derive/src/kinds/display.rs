//! Display: a count, a sum, an average, or whether there is anything, shown as an attribute of the item that it is
//! about.
//!
//! *Keeps true*: the attribute of an existing target is what its counter's shards come to, in count, in sum, or in
//! the sum divided by the count; or it is `true` while the count is above zero.
//! *From* a counter that changed, or a target that was made or whose display changed, *to* a refresh of the target.
//!
//! *Zero*, by the declaration's [`Zero`]: `Absent` removes the attribute, and `Write` writes 0 where the target had a
//! count before, which is judged by what is stored at the refresh: a counter stands for it, or the attribute is there.
//! A target that nothing was ever counted for has neither, and gets no attribute. Where no counter stands, 0 and no
//! attribute are both right, so the sweep may collect a counter of zero and nothing has to be written; with either
//! declaration a display never changes from the one to the other by itself. `Always` writes 0 into every target, from
//! its birth on. The average and the existence of nothing are absent. `Display::wanted` is the only place that knows
//! this.
//!
//! *Shown by who counts.* Under watermarks the function that counts writes the display with what its update of the
//! counter returned, and the counter's revision beside it, in `{attribute}:rev`. Its record of the counter then
//! requests nothing, and neither does one that brings the target from one of its own revisions to a later one and
//! changes nothing of the application's. Whatever else changes the counter or the display requests a refresh, such as
//! another item's count or an old one.
//!
//! *Level-triggered.* The counters are the authority and are read when the display is written, so any order of requests
//! ends at the newest sum, and a put over the target that takes the display away requests the refresh that brings it
//! back.
//!
//! *Example*: the counter `USER#bob / PROFILE#COUNT#follower-count#03` goes from 4 to 5. Refresh of `USER#bob /
//! PROFILE`: its shards add up to 12, `FollowerCount` is 11, so it becomes 12.

use std::iter;

use keys::{
    counter::{self, COUNTER, CounterKey, REVISION, SHOWN, SUM, VALUE},
    key::Key,
    shown::{is_shown_in, revision_of, shown_revision},
    value::below,
};
use serde_dynamo::AttributeValue;

use crate::{
    catalogue::sum_of,
    change::Sight,
    declaration::{declares, entity},
    derived::{Counts, Derived, Items},
    effect::{Effect, RefreshRequest},
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Revision, Source, Sources, tally, unreadable},
    tally::Tally,
    write::Wanted,
};

/// What stands for the revision of a counter of several items. Stored, so it is stable.
const SHARDED: &str = "sharded";

/// The declaration of a display.
#[derive(Clone, Debug)]
pub struct Display {
    /// Name of the derivation that counts.
    pub count: String,
    /// Entity of the items that show it.
    pub target: String,
    /// What of it is shown.
    pub shows: Shows,
    /// Attribute that shows it.
    pub attribute: String,
    /// What stands for zero.
    pub zero: Zero,
}

impl Display {
    /// What the target should hold; the tally is `None` where no counter stands for it.
    fn wanted(&self, tally: Option<&Tally>) -> Wanted {
        let value = tally.and_then(|tally| self.shows.value(tally));
        let (value, zero_is_absent) = match (value, self.zero) {
            (None, _) if !self.shows.has_zero() => (None, false),
            (None, Zero::Absent) => (None, true),
            (None, Zero::Always) => (Some(AttributeValue::N("0".to_owned())), false),
            (None, Zero::Write) => (Some(AttributeValue::N("0".to_owned())), tally.is_none()),
            (value, _) => (value, false),
        };
        Wanted { name: self.attribute.clone(), value, zero_is_absent }
    }

    /// What the target should hold of the counter's revision; nothing where it is not known.
    fn wanted_revision(&self, target: &Key, revision: Option<&Revision>) -> Option<Wanted> {
        let value = match revision? {
            Revision::Of(number) => shown_revision(target, &self.attribute, number),
            Revision::Sharded => AttributeValue::S(SHARDED.to_owned()),
        };
        Some(Wanted { name: revision_of(&self.attribute), value: Some(value), zero_is_absent: false })
    }

    /// Does this change of the target show a later revision of its counter, written by whoever counted? It changes
    /// nothing but what Ripple writes, and more than this number, except where the changes of a batch cancel each other
    /// out. An item that an application puts has another item's revision, or an earlier one, or follows a change that
    /// requested a refresh.
    fn is_later(&self, sight: &Sight<'_>, old: &Image<'_>, new: &Image<'_>) -> bool {
        let name = revision_of(&self.attribute);
        let (before, after) = (old.attribute(&name), new.attribute(&name));
        sight.differing().len() > 1
            && sight.differing().iter().all(|name| new.definition.derives(name))
            && before
                .zip(after)
                .is_some_and(|(before, after)| below(before, after) && is_shown_in(new.key, &self.attribute, after))
    }

    fn request(&self, item: Key) -> Effect {
        Effect::Look(RefreshRequest { item, entity: self.target.clone(), named: Vec::new() })
    }

    /// The target of a changed counter, when it is this display's.
    fn counted(&self, schema: &Schema, sight: &Sight<'_>) -> Option<Key> {
        let (old, new) = sight.entity(COUNTER);
        let counter = self.counter(schema, new.or(old)?)?;
        // A counter that comes to stand makes a zero of an absent attribute, though it adds nothing to a sum, and one
        // that goes may leave a counter of one item, whose revision the target then holds; and one that comes to have a
        // revision, by changes that cancel each other out, makes the display have one.
        let stands = |image: Option<&Image<'_>>| image.is_some_and(|image| tally(image.item).is_some());
        let differs = |name: &&str| sight.attribute_differs(old, new, name);
        let has_revision = |image: Option<&Image<'_>>| image.is_some_and(|image| image.attribute(REVISION).is_some());
        let is_other = stands(new) != stands(old) || has_revision(new) && !has_revision(old);
        // The target holds the revision of a counter of one item, which may rise without another number.
        let is_revised = sight.attribute_differs(old, new, REVISION);
        let rings = is_other || is_revised && counter.shard == 0 || self.shows.attributes().iter().any(differs);
        // Whoever moved its watermark shows the count, and where that cannot be, the counter says no more that it is
        // shown.
        let is_shown = |image: &Image<'_>| image.attribute(SHOWN) == Some(&AttributeValue::Bool(true));
        let (was_shown, is_shown) = (old.is_some_and(is_shown), new.is_some_and(is_shown));
        let is_left = was_shown && !is_shown && new.is_some();
        let rings = rings && !(is_shown && is_revised);
        (rings || is_left).then_some(counter.target)
    }

    /// The key of a counter that this display shows; `None` for any other item.
    fn counter(&self, schema: &Schema, image: &Image<'_>) -> Option<CounterKey> {
        // Every display is asked about every counter, so most are turned away before a key is made.
        if !image.is(COUNTER) || image.key_fields().get(counter::DERIVATION) != Some(&self.count) {
            return None;
        }
        let counter = CounterKey::parse(image.key).filter(|counter| counter.derivation == self.count)?;
        schema.entity(&self.target)?.key.parse_key(&counter.target).is_some().then_some(counter)
    }
}

impl Kind for Display {
    fn name(&self) -> &'static str {
        "display"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        declares(entity(schema, &self.target)?, [self.attribute.as_str()])?;
        entity(schema, COUNTER)?;
        let shown = self.shows.attributes().iter().map(|name| match *name {
            SUM => sum_of(&self.count),
            _ => self.count.clone(),
        });
        let shown = shown.map(|shown| Part::attribute(COUNTER, &shown));
        Ok(Reach {
            reads: iter::once(Part::existence(&self.target)).chain(shown).collect(),
            writes: vec![Part::attribute(&self.target, &self.attribute)],
        })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let target = schema.entity(&self.target);
        let shown = format!("{} of {}", self.shows.word(), self.count);
        let zero = self.zero.word().filter(|_| self.shows.has_zero()).map(str::to_owned);
        Outline {
            terms: iter::once(shown).chain(zero).collect(),
            into: target.map(|target| format!("{} / {}", target.key.pk, target.key.sk)),
            ..Outline::from(COUNTER)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.target, COUNTER]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.target);
        if let Some(target) = self.counted(schema, sight) {
            return vec![self.request(target)];
        }
        let rings = match (old, new) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(old), Some(new)) => {
                let differs = |name: &str| sight.attribute_differs(Some(old), Some(new), name);
                (differs(&self.attribute) || differs(&revision_of(&self.attribute))) && !self.is_later(sight, old, new)
            }
        };
        new.filter(|_| rings).map(|new| self.request(new.key.clone())).into_iter().collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(COUNTER) {
            return None;
        }
        let fault = |name: &&'static str| Some((*name, unreadable(name, image.attribute(name))?));
        let (name, why) = self.shows.attributes().iter().find_map(fault)?;
        self.counter(schema, image).map(|_| Unreadable { attribute: name.to_owned(), why: why.to_owned() })
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, counts: &Counts) -> Vec<Derived> {
        let mut derived = Vec::new();
        for (key, item) in items {
            if schema.image(key, item).is_some_and(|image| image.is(&self.target)) {
                let tally = counts.get(&(key.clone(), self.count.clone()));
                derived.push(Derived::Attributes { key: key.clone(), attributes: vec![self.wanted(tally)] });
            }
        }
        derived
    }
}

impl Refresh for Display {
    fn target(&self) -> &str {
        &self.target
    }

    fn sources(&self, _schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        vec![Source::Counters(target.key.clone())]
    }

    fn compute(&self, _schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let wanted = self.wanted(sources.tally(target.key, &self.count));
        let revision = self.wanted_revision(target.key, sources.revision(target.key, &self.count));
        Computed::Attributes(iter::once(wanted).chain(revision).collect())
    }

    fn shows(&self) -> Option<&str> {
        Some(&self.count)
    }
}

// ---- What a display shows of a tally, and what it makes of zero ----

/// What a display makes of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zero {
    /// The attribute is removed.
    Absent,
    /// The attribute is 0, where the target had a count before.
    #[default]
    Write,
    /// The attribute is 0, also where nothing was ever counted.
    Always,
}

impl Zero {
    /// It, in words that are stored.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Absent => None,
            Self::Write => Some("zero is written"),
            Self::Always => Some("zero is always written"),
        }
    }
}

/// What a display shows of a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// How many.
    Count,
    /// What they come to.
    Sum,
    /// What they come to on average.
    Average,
    /// `true` while there are any.
    Exists,
}

impl Shows {
    /// The counter's attributes that say it.
    fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Count | Self::Exists => &[VALUE],
            Self::Sum => &[SUM],
            Self::Average => &[VALUE, SUM],
        }
    }

    /// It, in words that are stored.
    fn word(self) -> &'static str {
        match self {
            Self::Count => VALUE,
            Self::Sum => SUM,
            Self::Average => "Average",
            Self::Exists => "Exists",
        }
    }

    /// Does it show a number, which can be zero?
    fn has_zero(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    /// It, as an attribute; `None` for a count or sum of zero, and for the average or the existence of nothing.
    fn value(self, tally: &Tally) -> Option<AttributeValue> {
        match self {
            Self::Count => (tally.count != 0).then(|| AttributeValue::N(tally.count.to_string())),
            Self::Sum => (!tally.sum.is_zero()).then(|| tally.sum.to_value()),
            Self::Average => tally.average().map(|average| average.to_value()),
            Self::Exists => (tally.count > 0).then_some(AttributeValue::Bool(true)),
        }
    }
}

#[cfg(test)]
mod tests;
