//! Window: a sum over the buckets of the last hours or days, which moves with time.
//!
//! *Keeps true*: an existing target has the sum of one number of those buckets that lead to it and are of the last so
//! many hours or days, the current one among them. *From* a bucket that was created or removed, or whose number changed,
//! and *from* a target that was created or whose sum changed, *to* a refresh of the target; and to another one when the
//! bucket begins, if it is in the future, and when it leaves the window.
//!
//! The current hour is that of the [clock], an item that the refresh reads. The buckets of a target are
//! one range of one partition of the table, in the order of their times, so the refresh reads those of the window with
//! one consistent query.
//!
//! *Level-triggered.* Clock and buckets are read when the target is written, so nothing counts twice, and a refresh that
//! read an old hour is repeated as one that read an old bucket.
//!
//! *Example*: at noon of January 20, the bucket `SONG#s / DAY#2024-01-14` has 5 plays, and `SONG#s / DAY#2024-01-20` has
//! 2. `PlaysThisWeek` of the song, over 7 days, is 7. The first bucket requests a refresh at the beginning of January 21,
//! and then the sum is 2.

use keys::{entity::Definition, item::Item, key::Key};

use crate::{
    change::Sight,
    clock::{self, HOUR_MS},
    declaration::{Link, declares, entity, gives},
    derived::{Counts, Derived, Items},
    effect::{Effect, RefreshRequest},
    expression::{Input, time::TimeSpan},
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    kinds::latest::Latest,
    outline::{Outline, linked},
    part::{Part, Reach},
    query::{Query, SortKeys, first_behind},
    schema::{Image, Schema, Unreadable},
    sources::{FirstOf, Source, Sources, first_of},
    tally::Sum,
    write::Wanted,
};

/// Most buckets that a refresh reads, and so the longest window.
pub const BUCKETS_MAX: u32 = 400;

/// The declaration of a window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Entity of the buckets.
    pub source: String,
    /// Entity of the items that show the sum.
    pub target: String,
    /// How the target's key is built from a bucket.
    pub link: Link,
    /// The field of the bucket's key that says `HOUR` or `DAY`, if there is one.
    pub grain: Option<String>,
    /// The field of the bucket's key with the beginning of its time, in which the sort key ends.
    pub bucket: String,
    /// The time span of the buckets: hours or days.
    pub span: TimeSpan,
    /// How many of them the window has.
    pub length: u32,
    /// What of a bucket is added up.
    pub sum: Input,
    /// The attribute of the target that shows the sum.
    pub attribute: String,
    /// True if the attribute is absent in place of 0.
    pub zero_is_absent: bool,
}

impl Window {
    /// The query for the buckets that a target's window has in this hour; `None` for a key to which no bucket leads.
    fn buckets(&self, schema: &Schema, target: &Key, hour: u64) -> Option<FirstOf> {
        let (source, definition) = (schema.entity(&self.source)?, schema.entity(&self.target)?);
        let fields = definition.key.parse_key(target)?;
        definition.key.build(&fields).ok().filter(|built| built == target)?;
        let earlier = u64::from(self.length.saturating_sub(1)) * clock::hours(self.span)?;
        let key = |hour: u64| {
            let bucket = clock::text(hour, self.span)?;
            let field = |name: &str| match name {
                _ if name == self.bucket => Some(&*bucket),
                _ if Some(name) == self.grain.as_deref() => Some(self.span.name()),
                _ => fields.get(self.link.filled_by(name)?),
            };
            source.build_of(field).ok()
        };
        let (first, last) = (key(hour.saturating_sub(earlier))?, key(hour)?);
        let query = Query::of(None, last.pk, SortKeys::Between(first.sk, last.sk));
        let query = Query { limit: Some(BUCKETS_MAX), ..query };
        Some(FirstOf { query, entity: self.source.clone(), is_counted: false })
    }

    /// The text of a bucket's time; `None` if the bucket is of another time span.
    fn time<'a>(&self, image: &'a Image<'a>) -> Option<&'a str> {
        let field = |name: &str| image.field(name).ok().flatten();
        let is_meant = self.grain.as_deref().is_none_or(|grain| field(grain) == Some(self.span.name()));
        field(&self.bucket).filter(|_| is_meant)
    }

    /// The first hour of a bucket; `None` if it is of another time span, or its time is none.
    fn first_hour(&self, image: &Image<'_>) -> Option<u64> {
        clock::first_hour(self.time(image)?, self.span)
    }

    /// When a bucket enters the window and when it leaves it, in hours since 1970.
    fn bounds(&self, image: &Image<'_>) -> Option<[u64; 2]> {
        let first = self.first_hour(image)?;
        Some([first, first + u64::from(self.length) * clock::hours(self.span)?])
    }

    /// The attribute with the sum over these buckets.
    fn wanted<'a>(&self, schema: &Schema, buckets: impl IntoIterator<Item = &'a Item>) -> Wanted {
        let mut sum = Sum::default();
        for item in buckets {
            let key = schema.layout.key(item);
            let image = key.as_ref().and_then(|key| schema.image(key, item));
            let image = image.filter(|image| self.first_hour(image).is_some());
            if let Some(Ok(Some(number))) = image.map(|image| self.sum.number(&image)) {
                sum.add(&number);
            }
        }
        let value = (!sum.is_zero() || !self.zero_is_absent).then(|| sum.to_value());
        Wanted { name: self.attribute.clone(), value, zero_is_absent: false }
    }

    /// Checks that the buckets of a target are one range of one partition, in the order of their times.
    ///
    /// # Errors
    ///
    /// A sentence with what is wrong with the key of the buckets.
    pub fn check_range(&self, source: &Definition, target: &Definition) -> Result<(), String> {
        let (name, sort) = (&source.name, &source.key.sk);
        let fields = sort.field_names();
        if fields.last() != Some(&self.bucket.as_str()) || source.key.pk.holds(&self.bucket) {
            return Err(format!("the sort key of {name} does not end with {}: {sort}", self.bucket));
        }
        let as_it_is = ["", "!", "*"].map(|mark| format!("{{{}{mark}}}", self.bucket));
        if sort.written(&self.bucket).is_none_or(|written| !as_it_is.contains(&written)) {
            return Err(format!(
                "the sort key {sort} of {name} changes its time {0}: write {{{0}}} there",
                self.bucket
            ));
        }
        let grain = self.grain.as_deref().unwrap_or_default();
        let of_other = [grain, &self.bucket].into_iter().find(|field| self.link.filled_by(field).is_some());
        if let Some(field) = of_other.or(Some(grain).filter(|grain| *grain == self.bucket)) {
            return Err(format!("{field} of the key of {name} cannot say both which bucket it is and something else"));
        }
        Latest::check_range(source, target, &self.link, self.grain.as_deref())?;
        let is_given = |field: &str| self.link.filled_by(field).is_some() || Some(field) == self.grain.as_deref();
        match first_behind(sort, is_given) {
            Some(first) if first != self.bucket => Err(format!(
                "{sort} of {name} has {first} before {}, so the buckets of one {} are not in the order of their times",
                self.bucket, target.name
            )),
            _ => Ok(()),
        }
    }
}

impl Kind for Window {
    fn name(&self) -> &'static str {
        "window"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check(target, source)?;
        self.check_range(source, target)?;
        gives(source, self.sum.names())?;
        declares(target, [self.attribute.as_str()])?;
        let mut reads = vec![Part::existence(&self.source), Part::existence(&self.target)];
        reads.extend(self.sum.names().map(|name| Part::attribute(&self.source, name)));
        Ok(Reach { reads, writes: vec![Part::attribute(&self.target, &self.attribute)] })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let Self { source, target, sum, length, attribute, .. } = self;
        let span = if self.span == TimeSpan::Hour { "hour" } else { "day" };
        let plural = if *length == 1 { "" } else { "s" };
        let absent = if self.zero_is_absent { ", absent for zero" } else { "" };
        Outline {
            terms: vec![format!("sum of {sum} of the last {length} {span}{plural} in UTC, as {attribute}{absent}")],
            says: Some(format!(
                "shows in {target}.{attribute} the sum of {source}.{sum} over the last {length} UTC {span}{plural}{absent}"
            )),
            into: schema.entity(&self.target).map(|target| linked(target, &self.link)),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.target]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        let is_other = old.is_some() != new.is_some();
        let differs = is_other || self.sum.names().any(|name| sight.attribute_differs(old, new, name));
        let source = new.or(old).filter(|source| differs && self.first_hour(source).is_some());
        let led =
            source.zip(schema.entity(&self.target)).and_then(|(image, to)| self.link.key(to, image).ok().flatten());
        let bounds = new.filter(|_| old.is_none()).and_then(|new| self.bounds(new));
        let later = led.clone().zip(bounds).into_iter().flat_map(|(key, bounds)| {
            bounds
                .map(|hour| Effect::Later(RefreshRequest::of(key.clone(), &self.target), hour.saturating_mul(HOUR_MS)))
        });
        let itself = sight.touched(&self.target, [self.attribute.as_str()].into_iter());
        let items = led.iter().cloned().chain(itself);
        items.map(|item| Effect::look(item, &self.target)).chain(later).collect()
    }

    fn unreadable(&self, _schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        let time = self.time(image).filter(|_| image.is(&self.source))?;
        if clock::first_hour(time, self.span).is_none() {
            let of = if self.span == TimeSpan::Hour { "hour such as 2024-01-15T10" } else { "day such as 2024-01-15" };
            return Some(Unreadable { attribute: self.bucket.clone(), why: format!("is no {of}") });
        }
        self.sum.number(image).err()
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        // Without a clock nothing is known, and what is stored stays.
        let Some(hour) = items.get(&clock::key()).and_then(clock::hour) else { return Vec::new() };
        let of = |image: Image<'_>| {
            let of = self.buckets(schema, image.key, hour);
            let buckets = of.map(|of| first_of(schema, &of, items.range(of.begin()..))).unwrap_or_default();
            Derived::Attributes { key: image.key.clone(), attributes: vec![self.wanted(schema, buckets)] }
        };
        schema.images(items, &self.target).map(of).collect()
    }
}

impl Refresh for Window {
    fn target(&self) -> &str {
        &self.target
    }

    fn gives(&self) -> Option<&'static str> {
        Some("N")
    }

    fn reads_clock(&self) -> bool {
        true
    }

    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        let buckets = target.hour.and_then(|hour| self.buckets(schema, target.key, hour)).map(Source::First);
        [Source::Item(clock::key())].into_iter().chain(buckets).collect()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let Some(hour) = sources.hour() else { return Computed::Attributes(Vec::new()) };
        let buckets = self.buckets(schema, target.key, hour).map(|of| sources.first(schema, &of)).unwrap_or_default();
        Computed::Attributes(vec![self.wanted(schema, buckets)])
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        change::Change,
        fixture::{TestTable, effects, ground, inserted, item, key_of, modified, removed, schema, short, window},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("window", change));
    }

    /// 2024-01-15T10, in hours since 1970.
    const TEN: u64 = 473_698;

    const SENSOR: &str = "SENSOR#s / METADATA Sensor";
    const BUCKET: &str = "SENSOR#s / HOUR#2024-01-15T10 Rollup Sum=N:5";

    #[test]
    fn a_bucket_refreshes_its_target_now_when_it_begins_and_when_it_leaves() {
        check(
            &inserted(BUCKET),
            &expect![[r#"
                last-hours: look SENSOR#s / METADATA (Sensor)
                last-hours: look SENSOR#s / METADATA (Sensor) at hour 473698
                last-hours: look SENSOR#s / METADATA (Sensor) at hour 473701
            "#]],
        );
        let itself = expect!["last-hours: look SENSOR#s / METADATA (Sensor)\n"];
        check(&removed(BUCKET), &itself);
        check(&modified(BUCKET, "SENSOR#s / HOUR#2024-01-15T10 Rollup Sum=N:6"), &itself);
        check(&modified(BUCKET, &format!("{BUCKET} Max=N:6")), &expect!["nothing\n"]);
        check(&inserted("SENSOR#s / DAY#2024-01-15 Rollup Sum=N:5"), &expect!["nothing\n"]);
        check(
            &inserted("SENSOR#s / HOUR#tea Rollup Sum=N:5"),
            &expect!["last-hours: list Bucket is no hour such as 2024-01-15T10\n"],
        );
        check(&inserted(SENSOR), &itself);
        check(&modified(SENSOR, &format!("{SENSOR} LastHours=N:1")), &itself);
        check(&modified(SENSOR, &format!("{SENSOR} Name=x")), &expect!["nothing\n"]);
    }

    /// A table at this hour with a sensor and these buckets.
    fn table(hour: u64, buckets: &[&str]) -> TestTable {
        let mut table = TestTable::new();
        let clock = format!("JOBS#CLOCK / CLOCK Hour=N:{hour}");
        let buckets: Vec<String> = buckets.iter().map(|rest| format!("SENSOR#s / {rest}")).collect();
        for text in [clock.as_str(), SENSOR].into_iter().chain(buckets.iter().map(String::as_str)) {
            let item = item(text);
            table.replace(key_of(&item), Some(item));
        }
        table.settle(&[0]);
        table
    }

    fn shown(table: &TestTable) -> String {
        table.items[&key_of(&item(SENSOR))].get("LastHours").map_or("none".to_owned(), short)
    }

    #[test]
    fn the_buckets_of_the_window_are_added_up_and_no_others() {
        let buckets = [
            "HOUR#2024-01-15T07 Rollup Sum=N:1000",
            "HOUR#2024-01-15T08 Rollup Sum=N:100",
            "HOUR#2024-01-15T09 Rollup Sum=tea",
            "HOUR#2024-01-15T09x Rollup Sum=N:7",
            "HOUR#2024-01-15T10 Rollup Sum=N:0.5",
            "HOUR#2024-01-15T11 Rollup Sum=N:20",
            "DAY#2024-01-15 Rollup Sum=N:9",
            "HOUR#2024-01-15T10#PIN Pin Sum=N:9",
        ];
        for (hour, wanted) in
            [(TEN - 1, "N:1100"), (TEN, "N:100.5"), (TEN + 1, "N:20.5"), (TEN + 3, "N:20"), (TEN + 9, "N:0")]
        {
            let table = table(hour, &buckets);
            assert_eq!((shown(&table).as_str(), table.differing()), (wanted, Vec::<String>::new()), "{hour}");
        }
    }

    #[test]
    fn a_window_moves_with_the_clock_when_its_target_is_refreshed() {
        let mut table = table(TEN, &["HOUR#2024-01-15T10 Rollup Sum=N:5"]);
        let clock = item(&format!("JOBS#CLOCK / CLOCK Hour=N:{}", TEN + 3));
        table.replace(key_of(&clock), Some(clock));
        table.settle(&[0]);
        assert_eq!(shown(&table), "N:5", "the clock alone requests nothing");
        assert_eq!(table.differing().len(), 1);
        let touched = item(&format!("{SENSOR} LastHours=N:6"));
        table.replace(key_of(&touched), Some(touched));
        table.settle(&[0]);
        assert_eq!((shown(&table).as_str(), table.differing()), ("N:0", Vec::new()));
    }

    #[test]
    fn without_a_clock_nothing_is_shown() {
        let mut table = TestTable::new();
        for text in [SENSOR, BUCKET] {
            let item = item(text);
            table.replace(key_of(&item), Some(item));
        }
        table.settle(&[0]);
        assert_eq!((shown(&table).as_str(), table.differing()), ("none", Vec::new()));
    }

    #[test]
    fn buckets_that_are_no_range_in_the_order_of_their_times_are_refused() {
        let schema = schema();
        let target = schema.entity("Sensor").unwrap();
        let refused = |window: Window, sk: &str| {
            let source = ground("Rollup", ("SENSOR#{SensorId}", sk), &["Sum"], &[]);
            window.check_range(&source, target).unwrap_err()
        };
        let by_day = || Window { span: TimeSpan::Day, ..window() };
        let shown = [
            refused(window(), "{Bucket}#{Grain}"),
            refused(window(), "{Grain}#{Bucket:12}"),
            refused(by_day(), "{Place}#{Grain}#{Bucket}"),
            refused(Window { grain: None, ..by_day() }, "{Grain}#{Bucket}"),
            refused(Window { link: Link::of(&[("SensorId", "Bucket")]), ..by_day() }, "{Grain}#{Bucket}"),
        ];
        expect![[r#"
            the sort key of Rollup does not end with Bucket: {Bucket}#{Grain}
            the sort key {Grain}#{Bucket:12} of Rollup changes its time Bucket: write {Bucket} there
            the items of Rollup that lead to one Sensor are not consecutive items of one partition: Grain is not at the beginning of their key
            {Grain}#{Bucket} of Rollup has Grain before Bucket, so the buckets of one Sensor are not in the order of their times
            Bucket of the key of Rollup cannot say both which bucket it is and something else"#]].assert_eq(&shown.join("\n"));
    }
}
