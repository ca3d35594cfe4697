//! Reads a part of each of the application's tables within a limit of read units a second.
//!
//! DynamoDB returns items in the order of a hash of their partition keys, so the first items are a fair sample.

use std::time::Duration;

use anyhow::Context as _;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use keys::{item::Item, tables::TableForm};
use tokio::time::{Instant, sleep_until};

use crate::commands::preflight::Fitting;
use crate::{opened::Opened, tables::counted};

/// Maximum number of items in a page: few enough that a page of large items does not exceed the limit by much.
const PAGE_ITEMS: u32 = 250;

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
            let call = opened.clients.dynamodb.scan().table_name(table);
            let call = call.segment(0).total_segments(i32::try_from(bounds.segments)?);
            let call = call.limit(i32::try_from(n_left.min(PAGE_ITEMS))?).set_exclusive_start_key(after);
            let answer = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let answer = answer.with_context(|| format!("cannot read the table {table}"))?;
            sample.units += answer.consumed_capacity.and_then(|capacity| capacity.capacity_units).unwrap_or_default();
            let items: Vec<Item> = answer.items.into_iter().flatten().map(of_sdk).collect();
            sample.n_items += u32::try_from(items.len())?;
            each(items);
            // Some emulators end with an empty key instead of none.
            after = answer.last_evaluated_key.filter(|key| !key.is_empty());
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

fn of_sdk(item: std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>) -> Item {
    item.into_iter().map(|(name, value)| (name, value.into())).collect()
}
