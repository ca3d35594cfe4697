//! AP-038 and AP-039: readings of sensors, and their roll-ups.

use derive::query::{Order, Query};
use entities::{
    ids::SensorId,
    sensors::{Grain, Reading, Rollup},
};
use keys::{entity::Entity, fields::Fields, key_template::KeyField};
use store::Store;

use super::{days::Day, listing::ListPlan, ranges, times::Times};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

/// Most days in one listing of readings: a year. Each day is a query, even if it is empty.
pub const DAYS_MAX: u32 = 366;

impl<S: Store> Queries<S> {
    /// AP-038: the readings of a sensor between two times, both included, oldest or newest first, over at most
    /// [`DAYS_MAX`] days: one query for each day, as far as the page goes.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn readings_of(
        &self,
        sensor: &SensorId,
        (from, to): (&str, &str),
        order: Order,
        page: &PageRequest,
    ) -> Result<Page<Reading>, ReadError> {
        let (first, last) = (Day::of(from).ok_or(ReadError::NoDay)?, Day::of(to).ok_or(ReadError::NoDay)?);
        if from > to {
            return Err(ReadError::TimesReversed);
        }
        let days = first.n_to(last);
        if days > DAYS_MAX {
            return Err(ReadError::TooManyDays { days, days_max: DAYS_MAX });
        }
        let mut queries = Vec::new();
        for day in first.to(last) {
            let fields = Fields::from([("SensorId", sensor.as_str()), ("Day", &day.to_string())]);
            let query = ranges::collection::<Reading>(&fields)?;
            let sk =
                ranges::between(Reading::NAME, &Reading::definition().key.sk, &fields, "At", (Some(from), Some(to)))?;
            queries.push(Query { sk, order, ..query });
        }
        if order == Order::Descending {
            queries.reverse();
        }
        let take = |item: &_| Reading::from_item(&self.layout, item);
        let listing = ListPlan { pattern: "AP-038", queries, filter: String::new(), take: Box::new(take) };
        self.list(&listing, page).await
    }

    /// AP-039: the roll-ups of a sensor's readings by hour or day, oldest first, between two hours such as
    /// `2024-01-15T10`, or two days.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn rollups_of(
        &self,
        sensor: &SensorId,
        grain: Grain,
        times: &Times,
        page: &PageRequest,
    ) -> Result<Page<Rollup>, ReadError> {
        let fields = Fields::from([("SensorId", sensor.as_str()), ("Grain", &grain.to_text())]);
        let query = ranges::collection::<Rollup>(&fields)?;
        let sk = ranges::between(Rollup::NAME, &Rollup::definition().key.sk, &fields, "Bucket", times.bounds())?;
        self.list(&ListPlan::all("AP-039", &self.layout, Query { sk, ..query }), page).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-038",
            title: "readings of a sensor between two times, across days (at most 366), one query a day",
            input: "SensorId, from, to, Order, PageRequest",
            result: "Page<Reading>",
            order: "At, ascending or descending",
            sample: sample!(|queries| {
                let times = ("2024-01-15T10:30:00.000Z", "2024-01-16T10:30:00.000Z");
                let _page = queries.readings_of(&"{SensorId}".into(), times, Order::Ascending, &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-039",
            title: "hourly or daily roll-ups of a sensor between two times",
            input: "SensorId, Grain, Times, PageRequest",
            result: "Page<Rollup>",
            order: "hour, or day",
            sample: sample!(|queries| {
                let times = Times::between("{From}", "{To}");
                let _page = queries.rollups_of(&"{SensorId}".into(), Grain::Hour, &times, &sample_page()).await?;
                let _page = queries.rollups_of(&"{SensorId}".into(), Grain::Day, &times, &sample_page()).await?;
            }),
        },
    ]
}
