//! WP-12.

use expect_test::expect;
use keys::number::Decimal;
use queries::{write_error::READINGS_MAX, writes::readings::NewReading};
use store::Store;

use crate::writes::bed::{Bed, START_MS};

fn reading(after_ms: u64, value: &str) -> NewReading {
    NewReading { sensor_id: "s1".into(), at_ms: START_MS + after_ms, value: Decimal::parse(value).unwrap() }
}

pub(crate) async fn wp_12_a_reading_stands_in_its_day<S: Store>(bed: Bed<S>) {
    let exact = "21.123456789012345678901234567890123456";
    assert!(bed.queries.add_reading(&reading(1, exact)).await.unwrap());
    assert!(bed.queries.add_reading(&reading(86_400_000, "-3")).await.unwrap());
    bed.holds(expect![[r#"
        SENSOR#s1#2024-01-15 / 2024-01-15T10:30:00.001Z
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Reading
            UpdatedAt = 2024-01-15T10:30:00.000Z
            Value = 21.123456789012345678901234567890123456
        SENSOR#s1#2024-01-16 / 2024-01-16T10:30:00.000Z
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Reading
            UpdatedAt = 2024-01-15T10:30:00.000Z
            Value = -3
    "#]])
        .await;
    let never = NewReading { at_ms: u64::MAX, ..reading(0, "1") };
    bed.refuses(
        bed.queries.add_reading(&never).await,
        "18446744073709551615 ms since the epoch: past the year 9999, which no time of an item may be",
    );
}

pub(crate) async fn wp_12_the_same_reading_is_once_and_another_is_refused<S: Store>(bed: Bed<S>) {
    assert!(bed.queries.add_reading(&reading(1, "21.50")).await.unwrap());
    let before = bed.items().await;
    bed.later();
    assert!(!bed.queries.add_reading(&reading(1, "21.5")).await.unwrap());
    bed.refuses(
        bed.queries.add_reading(&reading(1, "22")).await,
        "SENSOR#s1#2024-01-15 / 2024-01-15T10:30:00.001Z: there is one already; choose another id, or change that one",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_12_a_batch_has_up_to_25_readings<S: Store>(bed: Bed<S>) {
    let batch: Vec<NewReading> = (0..=25).map(|at| reading(at, "1")).collect();
    bed.refuses(bed.queries.add_readings(&batch).await, "26 readings; the limit is 25, so send several batches");
    assert!(bed.items().await.is_empty());
    bed.queries.add_reading(&batch[3]).await.unwrap();
    assert_eq!(bed.queries.add_readings(&batch[..READINGS_MAX]).await.unwrap(), 24);
    assert_eq!(bed.queries.add_readings(&batch[..READINGS_MAX]).await.unwrap(), 0);
    assert_eq!(bed.items().await.len(), READINGS_MAX);
    assert_eq!(bed.queries.add_readings(&[]).await.unwrap(), 0);
}
