//! What a write of an item of a size costs, and how large a transaction may be.

use derive::write::{ITEM_BYTES_MAX, TRANSACT_ACTIONS_MAX};

use crate::Units;

/// Bytes of one write unit. Source: DynamoDB, "Read and write operations".
pub const WRITE_UNIT_BYTES: usize = 1_024;

/// Most bytes of a transaction. Source: DynamoDB service quotas.
pub const TRANSACT_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Write units of an item of this size: one for every started KB, and at least one.
#[must_use]
pub fn write_units(bytes: usize) -> Units {
    let units = bytes.div_ceil(WRITE_UNIT_BYTES).clamp(1, UNITS_MAX);
    u32::try_from(units).map_or(Units::INFINITY, Units::from)
}

/// More than a transaction of the largest items: keeps the conversion to [`Units`] exact.
const UNITS_MAX: usize = ITEM_BYTES_MAX / WRITE_UNIT_BYTES * TRANSACT_ACTIONS_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_kilobyte_is_a_unit() {
        for (bytes, units) in [(0, 1.0), (1, 1.0), (1_024, 1.0), (1_025, 2.0), (409_600, 400.0)] {
            assert!((write_units(bytes) - units).abs() < f64::EPSILON, "{bytes}");
        }
    }
}
