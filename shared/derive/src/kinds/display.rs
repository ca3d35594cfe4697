//! Display: a count, a sum, an average, or the existence of anything, as an attribute of the target of the count.
//!
//! *Keeps true*: the attribute of an existing target is the total of its counter, home and satellites: the count, the
//! sum, or the sum divided by the count; or it is `true` while the count is above zero. *From* a counter that changed, or
//! a target that was created or whose display changed, *to* a refresh of the target.
//!
//! *Zero* depends on the declaration's [`Zero`]. `Absent` removes the attribute. `Write` writes 0 if the target had a
//! count before; the refresh judges that by stored data: a counter exists, or the attribute does. A target that never
//! had a count has neither, and gets no attribute. Without a counter, 0 and no attribute are both correct, so the sweep
//! may delete a counter of zero without another write; a display never changes between the two by itself, with either
//! declaration. `Always` writes 0 into every target, from its creation on. Without items, the average and the existence
//! are absent. `Display::wanted` is the only place that implements this.
//!
//! *Shown by the counting function.* With watermarks, the function that counts writes the display from the result of
//! its counter update, and the counter's revision beside it, in `{attribute}:rev`. The record of that counter update
//! requests nothing. Neither does the record of a target whose display moves to a later revision of its own counter, or
//! to the first one, without a change by the application. A first revision is a number of milliseconds near the time
//! of the record: an older one may be of a counter that is gone, put back by the application with the whole item. No
//! counter is deleted so soon after a change. The records of a home that has spread and of its satellites do request a
//! refresh. It writes the word `spread` in place of a revision, and since no number is above that, a direct write that
//! lands late fails. Any other change of the counter or the display requests a refresh, such as the count of another
//! item or an older one.
//!
//! *Level-triggered.* The counters are the authority and are read when the display is written, so any order of requests
//! ends at the newest sum. If a put over the target removes the display, the put's record requests the refresh that
//! restores it.
//!
//! *Example*: the counter `USER#bob / PROFILE#COUNT#follower-count#03` goes from 4 to 5. Refresh of `USER#bob /
//! PROFILE`: home and satellites add up to 12, `FollowerCount` is 11, so it becomes 12.

use std::iter;

use keys::{
    counter::{self, COUNTER, CounterKey, REVISION, SHOWN, SPREAD, SUM, VALUE},
    key::Key,
    shown::{is_shown_in, revision_ms, revision_of, shown_revision},
    value::below,
};
use serde_dynamo::AttributeValue;

use crate::{
    catalogue::sum_of,
    change::Sight,
    declaration::{declares, entity},
    derived::{Counts, Derived, Items},
    effect::Effect,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Revision, Source, Sources, tally, unreadable},
    tally::Tally,
    write::Wanted,
};

/// Replaces the revision of a counter that has spread. Stored, so it is stable.
const HAS_SPREAD: &str = "spread";

/// A first revision is at most so much older than the record of its display. A counter outlives its last change for
/// longer: by the horizon of watermarks, or by the time between a removal and its cascade.
const RECENT_MS: u64 = 10 * 60 * 1_000;

/// The declaration of a display.
#[derive(Clone, Debug)]
pub struct Display {
    /// Name of the derivation that counts.
    pub count: String,
    /// Entity of the items that display it.
    pub target: String,
    /// What it displays.
    pub shows: Shows,
    /// Attribute with the display.
    pub attribute: String,
    /// How zero is displayed.
    pub zero: Zero,
}

impl Display {
    /// The correct attribute of the target; the tally is `None` if no counter exists.
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

    /// The correct revision attribute of the target; `None` if the revision is unknown.
    fn wanted_revision(&self, target: &Key, revision: Option<&Revision>) -> Option<Wanted> {
        let value = match revision? {
            Revision::Of(number) => shown_revision(target, &self.attribute, number),
            Revision::Spread => AttributeValue::S(HAS_SPREAD.to_owned()),
        };
        Some(Wanted { name: revision_of(&self.attribute), value: Some(value), zero_is_absent: false })
    }

    /// True if this change moves the target's display to a later revision of its counter, or to a first and recent one,
    /// written by the counting function. It changes only attributes that Ripple writes, and more than the revision,
    /// unless the changes of a batch cancel out. An item that an application puts has another item's revision, or an
    /// earlier one, or follows a change that requested a refresh: one that removed the display, or created the item.
    fn is_later(&self, sight: &Sight<'_>, old: &Image<'_>, new: &Image<'_>) -> bool {
        let name = revision_of(&self.attribute);
        let (before, after) = (old.attribute(&name), new.attribute(&name));
        sight.differing().len() > 1
            && sight.differing().iter().all(|name| new.definition.derives(name))
            && after.is_some_and(|after| {
                let is_first = || sight.created_ms().is_some_and(|created_ms| is_recent(after, created_ms));
                is_shown_in(new.key, &self.attribute, after)
                    && before.map_or_else(is_first, |before| below(before, after))
            })
    }

    /// The target of a changed counter, if this display shows that count.
    fn counted(&self, schema: &Schema, sight: &Sight<'_>) -> Option<Key> {
        let (old, new) = sight.entity(COUNTER);
        let counter = self.counter(schema, new.or(old)?)?;
        // A new counter changes an absent attribute to zero, even if it adds nothing to a sum. A removed counter may
        // leave a counter of one item, whose revision the target then displays. A counter that gets its first revision,
        // from changes that cancel out, gives the display one.
        let stands = |image: Option<&Image<'_>>| image.is_some_and(|image| tally(image.item).is_some());
        let differs = |name: &&str| sight.attribute_differs(old, new, name);
        let has_revision = |image: Option<&Image<'_>>| image.is_some_and(|image| image.attribute(REVISION).is_some());
        let is_other = stands(new) != stands(old) || has_revision(new) && !has_revision(old);
        // The target has the revision of a counter of one item, which may rise while the number stays.
        let is_revised = sight.attribute_differs(old, new, REVISION);
        let is_requested =
            is_other || is_revised && counter.satellite == 0 || self.shows.attributes().iter().any(differs);
        // The function that moved its watermark writes the display, unless the home has spread. If it cannot, it clears
        // the counter's `Shown` flag.
        let is_shown = |image: &Image<'_>| image.attribute(SHOWN) == Some(&AttributeValue::Bool(true));
        let (was_shown, is_shown) = (old.is_some_and(is_shown), new.is_some_and(is_shown));
        let is_left = was_shown && !is_shown && new.is_some();
        let has_spread = new.is_some_and(|image| image.attribute(SPREAD).is_some());
        let is_requested = is_requested && (has_spread || !(is_shown && is_revised));
        (is_requested || is_left).then_some(counter.target)
    }

    /// The key of a counter that this display shows; `None` for any other item.
    fn counter(&self, schema: &Schema, image: &Image<'_>) -> Option<CounterKey> {
        // Every display sees every counter, so the cheap tests come before parsing the key.
        if !image.is(COUNTER) || image.key_fields().get(counter::DERIVATION) != Some(&self.count) {
            return None;
        }
        let counter = CounterKey::parse(image.key).filter(|counter| counter.derivation == self.count)?;
        schema.entity(&self.target)?.key.parse_key(&counter.target).is_some().then_some(counter)
    }
}

/// True if a revision began at most [`RECENT_MS`] before this time.
fn is_recent(revision: &AttributeValue, created_ms: u64) -> bool {
    revision_ms(revision).is_some_and(|ms| ms.saturating_add(RECENT_MS) >= created_ms)
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
        let shown = format!("{} of {}", self.shows.word(), self.count);
        let zero = self.zero.word().filter(|_| self.shows.has_zero()).map(str::to_owned);
        Outline {
            terms: iter::once(shown).chain(zero).collect(),
            into: schema.entity(&self.target).map(|target| target.key.to_string()),
            ..Outline::from(COUNTER)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.target, COUNTER]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.target);
        if let Some(target) = self.counted(schema, sight) {
            return vec![Effect::look(target, &self.target)];
        }
        let is_requested = match (old, new) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(old), Some(new)) => {
                let differs = |name: &str| sight.attribute_differs(Some(old), Some(new), name);
                (differs(&self.attribute) || differs(&revision_of(&self.attribute))) && !self.is_later(sight, old, new)
            }
        };
        new.filter(|_| is_requested).map(|new| Effect::look(new.key.clone(), &self.target)).into_iter().collect()
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
        let of = |image: Image<'_>| {
            let tally = counts.get(&(image.key.clone(), self.count.clone()));
            Derived::Attributes { key: image.key.clone(), attributes: vec![self.wanted(tally)] }
        };
        schema.images(items, &self.target).map(of).collect()
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

// ---- What a display shows of a tally, and how it shows zero ----

/// How a display shows zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zero {
    /// The attribute is removed.
    Absent,
    /// The attribute is 0 if the target had a count before.
    #[default]
    Write,
    /// The attribute is 0, even if nothing was ever counted.
    Always,
}

impl Zero {
    /// Its stored words.
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
    /// The count.
    Count,
    /// The sum.
    Sum,
    /// The average.
    Average,
    /// `true` while the count is above zero.
    Exists,
}

impl Shows {
    /// The counter's attributes that it depends on.
    fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Count | Self::Exists => &[VALUE],
            Self::Sum => &[SUM],
            Self::Average => &[VALUE, SUM],
        }
    }

    /// Its stored words.
    fn word(self) -> &'static str {
        match self {
            Self::Count => VALUE,
            Self::Sum => SUM,
            Self::Average => "Average",
            Self::Exists => "Exists",
        }
    }

    /// True if it shows a number that can be zero.
    fn has_zero(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    /// Its attribute; `None` for a count or sum of zero, and for the average or the existence of nothing.
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
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        change::Change,
        fixture::{TestTable, display, effects, inserted, item, key_of, modified, removed, short},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("display", change));
    }

    const COUNTER: &str = "USER#bob / PROFILE#COUNT#follower-count#03 Counter";
    const BOB: &str = "USER#bob / PROFILE User FollowerCount=N:12";

    #[test]
    fn a_counter_that_changed_rings_its_target() {
        check(
            &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:5")),
            &expect!["follower-shown: look USER#bob / PROFILE (User)\n"],
        );
        check(&inserted(&format!("{COUNTER} Value=N:1")), &expect!["follower-shown: look USER#bob / PROFILE (User)\n"]);
        check(&removed(&format!("{COUNTER} Value=N:1")), &expect!["follower-shown: look USER#bob / PROFILE (User)\n"]);
    }

    #[test]
    fn a_counter_whose_value_is_the_same_rings_nothing() {
        check(
            &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:4.0 Note=x")),
            &expect!["nothing\n"],
        );
    }

    #[test]
    fn a_counter_of_another_derivation_rings_nothing() {
        check(&inserted("USER#bob / PROFILE#COUNT#writer-count#00 Counter Value=N:1"), &expect!["nothing\n"]);
        check(&inserted("POST#p / METADATA#COUNT#view-count#00 Counter Value=N:1"), &expect!["nothing\n"]);
    }

    #[test]
    fn a_target_that_is_made_rings_for_each_of_its_displays() {
        check(
            &inserted(BOB),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
            post-shown: look USER#bob / PROFILE (User)
        "#]],
        );
        check(&removed(BOB), &expect!["nothing\n"]);
    }

    #[test]
    fn a_display_that_is_altered_or_dropped_rings() {
        check(&modified(BOB, "USER#bob / PROFILE User"), &expect!["follower-shown: look USER#bob / PROFILE (User)\n"]);
        check(
            &modified(BOB, "USER#bob / PROFILE User FollowerCount=many"),
            &expect!["follower-shown: look USER#bob / PROFILE (User)\n"],
        );
        check(&modified(BOB, &format!("{BOB} Name=Bob")), &expect!["nothing\n"]);
    }

    /// The target with a display and its revision.
    fn shown(count: u32, revision: &str, rest: &str) -> String {
        let key = key_of(&item("USER#bob / PROFILE User"));
        let revision = short(&shown_revision(&key, "FollowerCount", revision));
        format!("USER#bob / PROFILE User FollowerCount=N:{count} FollowerCount:rev={revision}{rest}")
    }

    /// The counting function writes the count with its revision, so no refresh is needed.
    #[test]
    fn a_later_revision_of_the_same_item_rings_nothing_and_whatever_else_shows_another_count_rings() {
        let requested = "follower-shown: look USER#bob / PROFILE (User)\n";
        let before = shown(1, "1705315200001", "");
        let of_another = "USER#bob / PROFILE User FollowerCount=N:5 FollowerCount:rev=N:1705315200005.1".to_owned();
        for (before, after, wanted) in [
            (before.as_str(), shown(2, "1705315200002", ""), "nothing\n"),
            // Only the revision changes, only the count changes, an earlier revision, and a first one at an unknown time.
            (&before, shown(1, "1705315200002", ""), requested),
            (&before, shown(2, "1705315200001", ""), requested),
            (&before, shown(3, "1705315100009", ""), requested),
            ("USER#bob / PROFILE User", shown(1, "1705315200001", ""), requested),
            // Another item's revision, and one together with an attribute of the application.
            (&before, of_another, requested),
            (&before, shown(2, "1705315200002", " Name=Bob"), requested),
        ] {
            assert_eq!(effects("display", &modified(before, &after)), wanted, "{after}");
        }
    }

    /// The counting function writes the first display soon after the counter's first revision. An older one may have been put
    /// back by the application, with the item that it once read, when the counter is gone.
    #[test]
    fn a_first_revision_rings_nothing_if_it_is_recent() {
        const REVISION: u64 = 1_705_315_200_001;
        let (requested, limit_ms) = ("follower-shown: look USER#bob / PROFILE (User)\n", 10 * 60 * 1_000);
        let first = |rest: &str, created_ms| {
            let change = modified("USER#bob / PROFILE User", &shown(1, &REVISION.to_string(), rest));
            effects("display", &Change { created_ms: Some(created_ms), ..change })
        };
        // The time of a record is rounded down.
        for created_ms in [REVISION - 60_000, REVISION, REVISION + limit_ms] {
            assert_eq!(first("", created_ms), "nothing\n", "{created_ms}");
        }
        assert_eq!(first("", REVISION + limit_ms + 1), requested);
        assert_eq!(first(" Name=Bob", REVISION), requested);
    }

    /// A like and its removal in one batch, the first under watermarks of a counter that was created with receipts.
    #[test]
    fn a_counter_that_comes_to_have_a_revision_rings_though_it_comes_to_the_same() {
        let before = format!("{COUNTER} Value=N:4");
        check(
            &modified(&before, &format!("{before} Rev=N:1")),
            &expect!["follower-shown: look USER#bob / PROFILE (User)\n"],
        );
        check(&modified(&format!("{before} Rev=N:1"), &format!("{before} Rev=N:2")), &expect!["nothing\n"]);
        check(&modified(&before, &format!("{before} Rev=N:1 Shown=BOOL:true")), &expect!["nothing\n"]);
    }

    #[test]
    fn a_counter_that_cannot_be_read_is_listed() {
        check(
            &inserted(&format!("{COUNTER} Value=many")),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
            follower-shown: list Value is not a whole number of type N
        "#]],
        );
    }

    /// Changes that cancel out raise the counter's revision and leave its value. The target has the revision of a counter
    /// that is one item, so it must be refreshed, unless the counting function writes the display itself.
    #[test]
    fn a_later_revision_of_the_first_shard_rings_though_it_comes_to_the_same() {
        let first = |rest: &str| format!("USER#bob / PROFILE#COUNT#follower-count#00 Counter Value=N:4 {rest}");
        check(
            &modified(&first("Rev=N:1"), &first("Rev=N:2")),
            &expect!["follower-shown: look USER#bob / PROFILE (User)\n"],
        );
        check(&modified(&first("Rev=N:1 Shown=BOOL:true"), &first("Rev=N:2 Shown=BOOL:true")), &expect!["nothing\n"]);
    }

    const SOLD: &str = "WARE#p / METADATA#COUNT#sold#00 Counter";

    #[test]
    fn each_display_of_a_counter_is_rung_by_what_it_shows() {
        let before = format!("{SOLD} Value=N:4 Sum=N:19.90");
        check(
            &modified(&before, &format!("{SOLD} Value=N:5 Sum=N:19.9")),
            &expect![[r#"
                sold-count: look WARE#p / METADATA (Ware)
                sold-average: look WARE#p / METADATA (Ware)
                sold-exists: look WARE#p / METADATA (Ware)
            "#]],
        );
        check(
            &modified(&before, &format!("{SOLD} Value=N:4 Sum=N:25")),
            &expect![[r#"
                sold-sum: look WARE#p / METADATA (Ware)
                sold-average: look WARE#p / METADATA (Ware)
            "#]],
        );
        for change in [
            inserted(&before),
            // It has no sum.
            inserted(&format!("{SOLD} Value=N:1")),
            // One of two shards is deleted. The other is then the whole counter, and its revision is that of each display.
            removed("WARE#p / METADATA#COUNT#sold#01 Counter Value=N:0 Rev=N:1"),
        ] {
            check(
                &change,
                &expect![[r#"
                    sold-count: look WARE#p / METADATA (Ware)
                    sold-sum: look WARE#p / METADATA (Ware)
                    sold-average: look WARE#p / METADATA (Ware)
                    sold-exists: look WARE#p / METADATA (Ware)
                "#]],
            );
        }
    }

    #[test]
    fn a_sum_that_cannot_be_read_is_listed() {
        check(
            &inserted(&format!("{SOLD} Value=N:1 Sum=much")),
            &expect![[r#"
                sold-count: look WARE#p / METADATA (Ware)
                sold-sum: look WARE#p / METADATA (Ware)
                sold-sum: list Sum is no number of type N
                sold-average: look WARE#p / METADATA (Ware)
                sold-average: list Sum is no number of type N
                sold-exists: look WARE#p / METADATA (Ware)
            "#]],
        );
    }

    #[test]
    fn existence_is_shown_while_the_count_is_above_zero() {
        let mut table = TestTable::new();
        let ware = item("WARE#p / METADATA Ware");
        let mut shown = |line: &str, is_there: bool| {
            let line = item(line);
            table.replace(key_of(&line), is_there.then_some(line));
            table.settle(&[0]);
            table.items[&key_of(&ware)].get("IsSold").map(short)
        };
        assert_eq!(shown("WARE#p / METADATA Ware", true), None);
        let [one, two] = ["ORDER#o / LINE#1 Line ProductId=p", "ORDER#o / LINE#2 Line ProductId=p"];
        let all = [(one, true), (two, true), (one, false), (two, false)].map(|(line, is_there)| shown(line, is_there));
        assert_eq!(all.map(Option::unwrap_or_default), ["Bool(true)", "Bool(true)", "Bool(true)", ""]);
    }

    #[test]
    fn zero_is_always_there_where_the_declaration_says_so() {
        let wanted = Display { zero: Zero::Always, ..display("follower-count", "User", "FollowerCount") }.wanted(None);
        for (stored, is_right) in [("", false), ("FollowerCount=N:0", true), ("FollowerCount=N:1", false)] {
            let stored = item(&format!("USER#ann / PROFILE User {stored}"));
            assert_eq!(wanted.is_held_by(Some(&stored)), is_right, "{stored:?}");
        }
    }
}
