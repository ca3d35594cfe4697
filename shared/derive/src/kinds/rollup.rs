//! Roll-up: the total of the values of a time span: of an hour, a day, a week or a month.
//!
//! *Keeps true*: a bucket has the count, the sum, the least and the greatest of the values that arrived in the table
//! with a time in its span. *From* the insert of a source item *to* its value for the bucket of each grain.
//!
//! *Additive, and a history.* One write adds to count and sum, and sets a bound that a value exceeds, on the condition that
//! both bounds are as they were read (module [`bucket`](crate::bucket)). Under watermarks it is one update, under receipts
//! a part of the transaction. The order of writes does not matter as long as each change counts once. As in a history count, only arrivals count:
//! time to live removes old readings, and a least value cannot be taken back. A value arrives in a bucket by an insert,
//! or by an update before which the item had no value there. A changed or removed value is a *late change*, which the
//! account reports and no bucket subtracts.
//!
//! An item that does not meet the condition, or has no value, takes no part. An item whose value is not a number, or
//! whose time cannot be cut or is not in UTC, counts as absent, and is listed; once it is corrected, it arrives and
//! counts.
//!
//! The existing items give a lower bound of the count alone: after a late change their values are not those that were
//! added. So a bucket is checked only by its count, and for having a sum and bounds at all.
//!
//! *Example*: `SENSOR#s#2024-01-15 / 2024-01-15T10:30:00.000Z` is put with `Value` 21.5. It goes into `SENSOR#s /
//! HOUR#2024-01-15T10` and `SENSOR#s / DAY#2024-01-15`.
//!
//! Buckets are in UTC, and a time without a zone is taken as UTC. A time with another offset would go into the bucket
//! of its text, which is hours away, so it is not accepted as a time.

use std::{collections::BTreeMap, sync::Arc};

use keys::{entity::Definition, key::Key};

use crate::{
    bucket::Bucket,
    change::Sight,
    condition::Condition,
    declaration::{Link, Rollup, declares, entity, gives},
    derived::{Counts, Derived, Items},
    effect::{BucketForm, Effect, Measure},
    expression::{
        Input,
        time::{self, TimeSpan},
    },
    kind::{Kind, Shape},
    outline::{Outline, linked},
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    tally::Sum,
};

impl Rollup {
    /// The item's fields and attributes that decide its value and buckets.
    fn decides(&self) -> impl Iterator<Item = &str> {
        let own = [&self.time, &self.value].into_iter().flat_map(Input::names);
        self.link.from_fields().chain(own).chain(self.condition.attributes())
    }

    /// The bucket of an item for one grain; `None` if the item lacks one of the fields.
    fn bucket(&self, target: &Definition, image: &Image<'_>, grain: TimeSpan) -> Result<Option<Key>, Unreadable> {
        let Some(time) = self.time.text_of(image)? else { return Ok(None) };
        let bucket = cut(grain, &time).ok_or_else(|| Unreadable {
            attribute: self.time.text().to_owned(),
            why: "is no time in ISO 8601 and UTC".to_owned(),
        })?;
        let Some(filled) = self.link.filled(target, image, None)? else { return Ok(None) };
        let field = |name: &str| match name {
            _ if name == self.grain => Some(grain.name()),
            _ if name == self.bucket => Some(&*bucket),
            _ => filled.iter().find(|(field, _)| *field == name).map(|(_, value)| &**value),
        };
        target.build_of(field).map(Some).map_err(|error| self.link.refused(error))
    }

    /// The buckets that an item's value goes into, with the value; `None` if it takes no part.
    fn measured(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<(Vec<Key>, Sum)>, Unreadable> {
        if !self.condition.holds(image)? {
            return Ok(None);
        }
        let (Some(target), Some(value)) = (schema.entity(&self.form.entity), self.value.number(image)?) else {
            return Ok(None);
        };
        let mut buckets = Vec::with_capacity(self.grains.len());
        for grain in &self.grains {
            let Some(bucket) = self.bucket(target, image, *grain)? else { return Ok(None) };
            buckets.push(bucket);
        }
        Ok(Some((buckets, value)))
    }
}

impl Kind for Rollup {
    fn name(&self) -> &'static str {
        "roll-up"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Rollup(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.form.entity)?);
        let BucketForm { count, sum, min, max, .. } = self.form.as_ref();
        let made = [&self.grain, &self.bucket].map(|to| (to.clone(), self.time.clone())).into_iter();
        Link(self.link.0.iter().cloned().chain(made).collect()).check(target, source)?;
        gives(source, self.condition.attributes().into_iter().chain(self.value.names()))?;
        let names = [count, sum, min, max].map(String::as_str);
        declares(target, names)?;
        let mut reads: Vec<Part> = self.decides().map(|name| Part::attribute(&self.source, name)).collect();
        reads.push(Part::existence(&self.source));
        let mut writes: Vec<Part> = names.iter().map(|name| Part::attribute(&target.name, name)).collect();
        writes.push(Part::existence(&target.name));
        Ok(Reach { reads, writes })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let grains: Vec<&str> = self.grains.iter().map(|grain| grain.name()).collect();
        let mut terms = vec![format!("{} by {} of {} in UTC", self.value, grains.join(" and "), self.time)];
        terms.extend(self.condition.words());
        terms.push("arrivals only".to_owned());
        Outline {
            terms,
            into: schema.entity(&self.form.entity).map(|target| linked(target, &self.link)),
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
        let measured = |image: Option<&Image<'_>>| image.and_then(|image| self.measured(schema, image).ok().flatten());
        let (old, new) = (measured(old), measured(new));
        let late = (old.is_some() && old != new).then_some(Effect::Late);
        let (known, _) = old.unwrap_or_default();
        let (buckets, value) = new.unwrap_or_default();
        let measure = |bucket| Effect::Measure(Measure { bucket, form: Arc::clone(&self.form), value: value.clone() });
        buckets.into_iter().filter(|bucket| !known.contains(bucket)).map(measure).chain(late).collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(&self.source) {
            return None;
        }
        self.measured(schema, image).err()
    }

    fn condition(&self) -> Option<(&str, &Condition)> {
        Some((&self.source, &self.condition))
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut buckets: BTreeMap<Key, Bucket> = BTreeMap::new();
        for image in schema.images(items, &self.source) {
            let Ok(Some((keys, value))) = self.measured(schema, &image) else { continue };
            for key in keys {
                let one = Bucket::of(&value);
                buckets.entry(key).and_modify(|bucket| bucket.add(&one)).or_insert(one);
            }
        }
        let derived = |(key, bucket)| Derived::Bucket { key, bucket, form: Arc::clone(&self.form) };
        buckets.into_iter().map(derived).collect()
    }
}

// ---- The bucket of a time ----

/// The label of the bucket that a time falls into, such as `2024-01-15T10`. `None` if the text is no time in UTC.
fn cut(grain: TimeSpan, text: &str) -> Option<String> {
    let (_, clock) = text.split_at_checked("dddd-dd-dd".len())?;
    let (_, offset) = clock.split_at(clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len()));
    let is_in_utc = time::offset_seconds(offset) == Some(0);
    time::span(text, grain, "").filter(|_| is_in_utc)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        catalogue::Catalogue,
        change::Change,
        fixture::{self, derived, effects, effects_in, ground, inserted, modified, named, removed},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("roll-up", change));
    }

    const READING: &str = "SENSOR#s%23#2024-01-15 / 2024-01-15T10:30:00.000Z Reading";

    #[test]
    fn an_insert_goes_into_the_hour_and_the_day() {
        check(
            &inserted(&format!("{READING} Value=N:21.50")),
            &expect![[r#"
            readings: N:21.5 into SENSOR#s%23 / HOUR#2024-01-15T10
            readings: N:21.5 into SENSOR#s%23 / DAY#2024-01-15
        "#]],
        );
    }

    #[test]
    fn a_later_change_or_removal_is_applied_nowhere() {
        let [warm, cold] = ["21.5", "-3"].map(|value| format!("{READING} Value=N:{value}"));
        check(&modified(&warm, &cold), &expect!["readings: late\n"]);
        check(&modified(&warm, READING), &expect!["readings: late\n"]);
        check(
            &modified(&warm, &format!("{READING} Value=hot")),
            &expect![[r#"
            readings: late
            readings: list Value is S, and N is wanted
        "#]],
        );
        check(&removed(&warm), &expect!["readings: late\n"]);
    }

    #[test]
    fn a_reading_whose_time_changes_arrives_in_the_buckets_where_it_was_not() {
        let mut rollup = derived("Rollup", ("SENSOR#{SensorId}", "{Grain}#{Bucket}"), &[]);
        rollup.derived_attributes = ["Count", "Sum", "Min", "Max"].map(str::to_owned).to_vec();
        let reading = ground("Reading", ("READING#{ReadingId}", "METADATA"), &["SensorId", "At", "Value"], &[]);
        let schema = Schema::new(fixture::schema().layout, [reading, rollup]);
        let catalogue = Catalogue::new(&schema, vec![named("readings", fixture::rollup())]).unwrap();
        let at = |at: &str| format!("READING#r / METADATA Reading SensorId=s Value=N:1 At={at}");
        let change = modified(&at("2024-01-15T10:30:00Z"), &at("2024-01-15T11:30:00Z"));
        expect![[r#"
            readings: N:1 into SENSOR#s / HOUR#2024-01-15T11
            readings: late
        "#]]
        .assert_eq(&effects_in(&schema, &catalogue, "roll-up", &change));
    }

    #[test]
    fn what_is_no_change_of_the_value_is_none_at_all() {
        let warm = format!("{READING} Value=N:21.5");
        check(&modified(&warm, &format!("{READING} Value=N:2.15E1 Note=x")), &expect!["nothing\n"]);
        check(&inserted(READING), &expect!["nothing\n"]);
        check(&removed(READING), &expect!["nothing\n"]);
    }

    #[test]
    fn an_unreadable_value_or_time_counts_as_absent_until_it_is_mended() {
        let hot = format!("{READING} Value=hot");
        check(&inserted(&hot), &expect!["readings: list Value is S, and N is wanted\n"]);
        check(
            &modified(&hot, &format!("{READING} Value=N:30")),
            &expect![[r#"
            readings: N:30 into SENSOR#s%23 / HOUR#2024-01-15T10
            readings: N:30 into SENSOR#s%23 / DAY#2024-01-15
            readings: take off the list
        "#]],
        );
        for change in [
            inserted("SENSOR#s#today / today Reading Value=N:1"),
            inserted("SENSOR#s#2024-01-15 / 2024-01-15 Reading Value=N:1"),
        ] {
            check(&change, &expect!["readings: list At is no time in ISO 8601 and UTC\n"]);
        }
    }

    #[test]
    fn a_time_is_cut_only_where_it_is_one() {
        let cut = |time: &str| {
            let spans = [TimeSpan::Hour, TimeSpan::Day, TimeSpan::Week, TimeSpan::Month];
            spans.map(|grain| cut(grain, time).unwrap_or_default())
        };
        assert_eq!(cut("2024-12-30T10:30:00.000Z"), ["2024-12-30T10", "2024-12-30", "2025-W01", "2024-12"]);
        assert_eq!(cut("2024-01-15"), ["", "2024-01-15", "2024-W03", "2024-01"]);
        let utc = ["T23", "T23:30", " 23:30:00", "T23:30:00.000Z", "t23:30:00z", "T23:30:00+00:00", "T23:30-0000"];
        for clock in utc {
            assert_eq!(
                cut(&format!("2024-01-15{clock}")),
                ["2024-01-15T23", "2024-01-15", "2024-W03", "2024-01"],
                "{clock}"
            );
        }
        // In UTC these are in other hours, and some are on another day.
        let moved = ["T23:30:00+02:00", "T23:30:00.000-05:30", "T23:30+0200", "T23-08", "T23:30+02:00[Europe/Paris]"];
        let no_clocks = ["T24:00", "T99:00", " soon", "T23:30+5:30", "T23:30+02:00:00", "T23:30-1", "5", "é"];
        for clock in moved.iter().chain(&no_clocks) {
            assert_eq!(cut(&format!("2024-01-15{clock}")), [""; 4], "{clock}");
        }
        for text in ["", "soon", "2024-01", "2024-13-15T10:00", "2024-02-30T10:00Z", "2024/01/15T10:00", "2024-01-1é"]
        {
            assert_eq!(cut(text), [""; 4], "{text}");
        }
    }

    /// It would go into the bucket of its text, two hours from its own.
    #[test]
    fn a_reading_whose_time_has_an_offset_is_listed_and_goes_into_no_bucket() {
        check(
            &inserted("SENSOR#s#2024-01-15 / 2024-01-15T23:30:00+02:00 Reading Value=N:1"),
            &expect!["readings: list At is no time in ISO 8601 and UTC\n"],
        );
    }

    #[test]
    fn a_reading_arrives_when_it_comes_to_meet_the_condition() {
        let schema = fixture::schema();
        let valid = "Broken <> 'yes'".parse().unwrap();
        let rollup = Rollup { condition: valid, ..fixture::rollup() };
        let mut reading = schema.entity("Reading").unwrap().clone();
        reading.attributes.push("Broken".to_owned());
        let schema = Schema::new(schema.layout.clone(), [reading, schema.entity("Rollup").unwrap().clone()]);
        let catalogue = Catalogue::new(&schema, vec![named("readings", rollup)]).unwrap();
        let [right, broken] = ["", " Broken=yes"].map(|broken| format!("{READING} Value=N:5{broken}"));
        let buckets =
            "readings: N:5 into SENSOR#s%23 / HOUR#2024-01-15T10\nreadings: N:5 into SENSOR#s%23 / DAY#2024-01-15\n";
        for (change, wanted) in [
            (inserted(&right), buckets),
            (inserted(&broken), "nothing\n"),
            (modified(&broken, &right), buckets),
            (modified(&right, &broken), "readings: late\n"),
        ] {
            assert_eq!(effects_in(&schema, &catalogue, "roll-up", &change), wanted, "{change:?}");
        }
    }
}
