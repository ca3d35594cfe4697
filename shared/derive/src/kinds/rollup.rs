//! Roll-up: the total of the values of a time span: of an hour, a day, a week or a month.
//!
//! *Keeps true*: a bucket has the count, the sum, the least and the greatest of the values that arrived in the table
//! with a time in its span. *From* the insert of a source item *to* its value for the bucket of each grain.
//!
//! *Additive, and a history.* A write adds to count and sum; it sets the least and greatest if they widen, under the
//! guard that the bucket is as it was read (module [`bucket`](crate::bucket)), in the ledger's transaction. All four
//! commute, so any order is correct as long as each change counts once. As in a history count, only arrivals count:
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
//! # Grain
//!
//! Grains: the time spans of buckets, and the bucket of a time.
//!
//! Buckets are in UTC, and a time without a zone is taken as UTC. A time with another offset would go into the bucket
//! of its text, which is hours away, so it is not accepted as a time.

use std::{borrow::Cow, collections::BTreeMap, ops::Range, sync::Arc};

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

    /// The value of an item; `None` if it has none.
    fn value(&self, image: &Image<'_>) -> Result<Option<Sum>, Unreadable> {
        self.value.number(image)
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
        let (Some(target), Some(value)) = (schema.entity(&self.form.entity), self.value(image)?) else {
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
        for (key, item) in items {
            let Some(image) = schema.image(key, item).filter(|image| image.is(&self.source)) else { continue };
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

/// The span of a time: for an hour and a day, the beginning of its text. `None` if the time has another form, or is not
/// in UTC.
fn cut(grain: TimeSpan, time: &str) -> Option<Cow<'_, str>> {
    let form = match grain {
        TimeSpan::Hour => "dddd-dd-ddTdd",
        TimeSpan::Day => "dddd-dd-dd",
        TimeSpan::Week | TimeSpan::Month => {
            let is_in_utc = !has_offset(time.get(10..)?);
            return time::span(time, grain, "").filter(|_| is_in_utc).map(Cow::Owned);
        }
    };
    let (bucket, rest) = time.split_at_checked(form.len())?;
    let fits = |(form, found): (char, char)| if form == 'd' { found.is_ascii_digit() } else { form == found };
    let is_cut = !rest.starts_with(|next: char| next.is_ascii_digit()) && !has_offset(rest);
    let number = |range: Range<usize>| bucket.get(range).and_then(|digits| digits.parse::<u8>().ok());
    let is_time = matches!(number(5..7), Some(1..=12))
        && matches!(number(8..10), Some(1..=31))
        && (grain == TimeSpan::Day || matches!(number(11..13), Some(0..=23)));
    let is_of_form = form.chars().zip(bucket.chars()).all(fits);
    (is_cut && is_time && is_of_form).then_some(Cow::Borrowed(bucket))
}

/// True if the text ends with an offset from UTC, such as `+02:00`.
fn has_offset(rest: &str) -> bool {
    let Some((_, offset)) = rest.rsplit_once(['+', '-']) else { return false };
    let digits = offset.replace(':', "");
    let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_offset && digits.bytes().any(|digit| digit != b'0')
}

#[cfg(test)]
mod tests;
