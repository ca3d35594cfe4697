//! Readings and roll-ups.

use std::{collections::BTreeSet, sync::Arc};

use derive::query::Order;
use entities::sensors::{Grain, Reading, Rollup};
use queries::{
    page::PageRequest,
    read_error::ReadError,
    reads::{sensors::DAYS_MAX, times::Times},
};
use store::recording::Request;

use crate::patterns::{
    bed::Bed,
    crowd::{ids, in_order},
};

type Held = Arc<Bed>;

pub(crate) async fn ap_038_readings_across_days(bed: Held) {
    for sensor in ids("s") {
        let id = sensor.clone().into();
        for order in [Order::Ascending, Order::Descending] {
            for (from, to) in [
                ("2023-12-31T00:00:00.000Z", "2024-03-01T23:59:59.999Z"),
                ("2023-12-31T10:30:00.000Z", "2024-01-01T10:30:00.000Z"),
                ("2024-01-01T00:00:00.000Z", "2024-01-01T23:59:59.999Z"),
                ("2024-01-01T00:00:00.001Z", "2024-02-29T23:59:59.998Z"),
                ("2024-01-01", "2024-01-02"),
            ] {
                let is_within =
                    |it: &Reading| it.key.sensor_id.as_str() == sensor && (from..=to).contains(&it.key.at.as_str());
                let wanted = in_order(bed.crowd.sorted(is_within, |it| it.key.at.clone()), order);
                let read = async |page| bed.queries.readings_of(&id, (from, to), order, &page).await;
                bed.lists((&sensor, order, from, to), &wanted, read).await;
            }
        }
    }
    let id = "s1".into();
    let ask =
        async |from, to| bed.queries.readings_of(&id, (from, to), Order::Ascending, &PageRequest::first(100)).await;
    bed.asked();
    let year = ask("2024-01-01", "2024-12-31T23:59:59.999Z").await.unwrap();
    assert_eq!(u32::try_from(bed.asked().len()).unwrap(), DAYS_MAX, "a page that is not full has asked for every day");
    assert!(year.items.len() == 9 && year.next.is_none());
    let times = ("2024-01-01", "2024-12-31T23:59:59.999Z");
    let page = bed.queries.readings_of(&id, times, Order::Ascending, &PageRequest::first(6)).await.unwrap();
    let asked = bed.asked();
    // A day with an item that is no reading may need two queries.
    let day = |request: &Request| if let Request::Query(_, query, _) = request { Some(query.pk.clone()) } else { None };
    let days: BTreeSet<String> = asked.iter().filter_map(day).collect();
    assert_eq!(days.len(), 60, "the days until the page is full");
    assert!(page.items.len() == 6 && page.next.is_some());
    let too_many = ask("2024-01-01", "2025-01-01").await.unwrap_err();
    assert_eq!(too_many.to_string(), "the times span 367 days; ask for at most 366 at once");
    assert!(matches!(ask("2024-01-02", "2024-01-01").await, Err(ReadError::TimesReversed)));
    assert!(matches!(ask("2024-01-02T11", "2024-01-02T10").await, Err(ReadError::TimesReversed)));
    assert!(matches!(ask("yesterday", "2024-01-02").await, Err(ReadError::NoDay)));
    assert!(matches!(ask("2024-01-02", "2023-02-29").await, Err(ReadError::NoDay)));
}

pub(crate) async fn ap_039_roll_ups_by_the_hour_and_by_the_day(bed: Held) {
    for sensor in ids("s") {
        for (grain, times) in [
            (Grain::Day, Times::all()),
            (Grain::Hour, Times::all()),
            (Grain::Day, Times::between("2023-12-31", "2024-02-29")),
            (Grain::Hour, Times::between("2024-01-01T10", "2024-03-01T00")),
            (Grain::Hour, Times { from: None, to: Some("2024-01-01T10".into()) }),
            (Grain::Hour, Times { from: Some("2024-02-29T00".into()), to: None }),
        ] {
            let is_wanted = |it: &Rollup| {
                it.key.sensor_id.as_str() == sensor
                    && it.key.grain == grain
                    && times.from.as_ref().is_none_or(|from| it.key.bucket >= *from)
                    && times.to.as_ref().is_none_or(|to| it.key.bucket <= *to)
            };
            let wanted = bed.crowd.sorted(is_wanted, |it| it.key.bucket.clone());
            let id = sensor.clone().into();
            let read = async |page| bed.queries.rollups_of(&id, grain, &times, &page).await;
            bed.lists((&sensor, grain, &times), &wanted, read).await;
        }
    }
}
