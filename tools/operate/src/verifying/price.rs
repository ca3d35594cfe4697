//! What a verification will read, before it begins.

use std::fmt;

use crate::verify::scan::WINDOW_BYTES;

/// Bytes that a strongly consistent read unit reads. Source: DynamoDB, read consistency and capacity modes.
pub(super) const UNIT_BYTES: usize = 4_096;

/// The expected price of one verification of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPrice {
    /// Items of the table, as it last counted them.
    pub n_items: u64,
    /// Their size in bytes, as the table last added them up.
    pub bytes: u64,
    /// Read units of one consistent read of the whole table.
    pub units: u64,
    /// Does the table fit into one [window](crate::verify::scan), so that what it has read is not read again?
    pub is_one_window: bool,
}

impl ReadPrice {
    /// The price for a table of so many items and bytes that is read in so many segments.
    #[must_use]
    pub fn of(n_items: u64, bytes: u64, segments: u32) -> Self {
        let unit_bytes = u64::try_from(UNIT_BYTES).unwrap_or(u64::MAX);
        let is_one_window = usize::try_from(bytes).is_ok_and(|bytes| bytes <= WINDOW_BYTES);
        // The last page of each segment ends within a unit.
        Self { n_items, bytes, units: bytes / unit_bytes + u64::from(segments.max(1)), is_one_window }
    }
}

impl fmt::Display for ReadPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_items, bytes, units, is_one_window } = self;
        if *n_items == 0 {
            return f.write_str(
                "the table has not counted its items yet; reading it takes one read unit for each 4 KB of items",
            );
        }
        let (items, unit) =
            (if *n_items == 1 { "item" } else { "items" }, if *units == 1 { "read unit" } else { "read units" });
        write!(f, "reading about {n_items} {items}, {} KB: about {units} {unit}", bytes.div_ceil(1_000))?;
        f.write_str(if *is_one_window {
            ", and more for what differs"
        } else {
            ", up to one more for each item that is compared with another, and more for what differs"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_is_that_of_the_bytes_and_of_what_no_window_holds() {
        let lines = [(0, 0), (1, 100), (250, 75_000), (1_000_000, 300_000_000)]
            .map(|(n_items, bytes)| ReadPrice::of(n_items, bytes, 4).to_string())
            .join("\n");
        expect_test::expect![[r#"
            the table has not counted its items yet; reading it takes one read unit for each 4 KB of items
            reading about 1 item, 1 KB: about 4 read units, and more for what differs
            reading about 250 items, 75 KB: about 22 read units, and more for what differs
            reading about 1000000 items, 300000 KB: about 73246 read units, up to one more for each item that is compared with another, and more for what differs"#]]
        .assert_eq(&lines);
    }
}
