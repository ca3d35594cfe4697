//! Reads a part of each of the application's tables within a limit of read units a second.
//!
//! DynamoDB returns items in the order of a hash of their partition keys, so the first items are a fair sample.

use std::{collections::HashMap, time::Duration};

use anyhow::Context as _;
use aws_sdk_dynamodb::{
    Client,
    error::SdkError,
    operation::scan::ScanError,
    types::{AttributeValue, ReturnConsumedCapacity},
};
use keys::{item::Item, tables::TableForm};
use tokio::time::{Instant, sleep_until};

use crate::commands::preflight::Fitting;
use crate::{opened::Opened, tables::counted};

/// Maximum number of items in a page: few enough that a page of large items does not exceed the limit by much.
pub(in crate::commands) const PAGE_ITEMS: u32 = 250;

/// How much to read, and how fast.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct SampleLimits {
    pub(in crate::commands) n_items_max: u32,
    /// Number of equal segments of a table. Only the first is read.
    pub(in crate::commands) segments: u32,
    /// Most read units a second.
    pub(in crate::commands) units_per_second: u32,
}

/// The sample of one of the application's tables.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct SampledTable {
    /// Its size in bytes, as DynamoDB counted it some hours ago.
    pub(in crate::commands) bytes: u64,
    pub(in crate::commands) sample: TableSample,
    pub(in crate::commands) fitting: Fitting,
    /// The share of the table that was read, from 0 to 1; `None` if the table's size is unknown.
    pub(in crate::commands) share: Option<f64>,
}

impl SampledTable {
    /// Reads a part of each of the application's tables that `is_read` selects. Calls `read` with the number of items
    /// read so far from all tables.
    pub(in crate::commands) async fn read_all(
        opened: &Opened,
        limits: SampleLimits,
        is_read: impl Fn(&str) -> bool,
        read: impl Fn(u64),
    ) -> anyhow::Result<Vec<Self>> {
        let mut tables = Vec::new();
        let mut n_before = 0;
        for (description, form) in opened.application_tables() {
            let name = description.table_name.as_deref().unwrap_or_default();
            let mut table = Self { bytes: counted(description.table_size_bytes), ..Self::default() };
            if is_read(name) {
                let fitting = &mut table.fitting;
                let sample = TableSample::read(opened, name, limits, |items| {
                    for item in items {
                        fitting.add(&opened.schema, &opened.catalogue, inward(form, item));
                    }
                    read(n_before + fitting.n_items);
                });
                table.sample = sample.await?;
                table.share = table.sample.share(counted(description.item_count));
                n_before += table.fitting.n_items;
            }
            tables.push(table);
        }
        Ok(tables)
    }
}

/// An item in the form of the declarations.
fn inward(form: Option<&TableForm>, item: Item) -> Option<Item> {
    match form {
        Some(form) => form.inward(item),
        None => Some(item),
    }
}

/// The result of reading a part of a table.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct TableSample {
    pub(in crate::commands) n_items: u32,
    /// Number of equal segments of the table. Only the first was read.
    pub(in crate::commands) segments: u32,
    /// True if the whole segment was read.
    pub(in crate::commands) is_whole: bool,
    /// Consumed read units, as the database reports them.
    pub(in crate::commands) units: f64,
}

impl TableSample {
    /// Reads the segment of a table, and calls `each` with each page.
    async fn read(
        opened: &Opened,
        table: &str,
        bounds: SampleLimits,
        mut each: impl FnMut(Vec<Item>),
    ) -> anyhow::Result<Self> {
        let mut sample = Self { segments: bounds.segments, ..Self::default() };
        let started = Instant::now();
        let mut after = None;
        while sample.n_items < bounds.n_items_max {
            let n_left = bounds.n_items_max - sample.n_items;
            let limit = n_left.min(PAGE_ITEMS);
            let read = page(&opened.clients.dynamodb, table, (0, bounds.segments), limit, after).await;
            let read = read.with_context(|| format!("cannot read the table {table}"))?;
            sample.units += read.units;
            sample.n_items += u32::try_from(read.items.len())?;
            each(read.items);
            after = read.after;
            if after.is_none() {
                sample.is_whole = true;
                break;
            }
            sleep_until(started + Duration::from_secs_f64(sample.units / f64::from(bounds.units_per_second))).await;
        }
        Ok(sample)
    }

    /// The share of the table that was read, from 0 to 1; `None` if the table's size is unknown.
    fn share(&self, n_table: u64) -> Option<f64> {
        if self.is_whole {
            return Some(1.0 / f64::from(self.segments));
        }
        // The table's item count may be hours old.
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more than the 15 digits that stay exact")]
        let share = f64::from(self.n_items) / n_table as f64;
        (n_table > 0).then(|| share.min(1.0))
    }
}

/// A page of a segment of a table.
pub(in crate::commands) struct Page {
    pub(in crate::commands) items: Vec<Item>,
    /// Consumed read units, as the database reports them.
    pub(in crate::commands) units: f64,
    /// Where the next page starts, if this is not the last.
    pub(in crate::commands) after: Option<HashMap<String, AttributeValue>>,
}

/// Reads a page of at most `limit` items: of which segment, of how many.
pub(in crate::commands) async fn page(
    client: &Client,
    table: &str,
    (segment, segments): (u32, u32),
    limit: u32,
    after: Option<HashMap<String, AttributeValue>>,
) -> Result<Page, SdkError<ScanError>> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let call = client.scan().table_name(table).segment(number(segment)).total_segments(number(segments));
    let call = call.limit(number(limit)).set_exclusive_start_key(after);
    let answer = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await?;
    let units = answer.consumed_capacity.and_then(|capacity| capacity.capacity_units).unwrap_or_default();
    let items = answer.items.into_iter().flatten().map(of_sdk).collect();
    // Some emulators end with an empty key instead of none.
    let after = answer.last_evaluated_key.filter(|key| !key.is_empty());
    Ok(Page { items, units, after })
}

fn of_sdk(item: HashMap<String, AttributeValue>) -> Item {
    item.into_iter().map(|(name, value)| (name, value.into())).collect()
}
