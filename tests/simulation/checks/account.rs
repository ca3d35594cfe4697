//! The account of every invocation that ends matches what the store answered.

use engine::batch::Handled;
use store::Units;

use crate::failure::Failure;

/// Largest difference in units: an account splits them into parts, so their sum is rounded.
const UNITS_OFF_MAX: Units = 1e-6;

pub(crate) fn account_matches(name: &str, handled: &Handled, answered: Units) -> Result<(), Failure> {
    let counted: Units = handled.account.commits.iter().map(|commit| commit.units).sum();
    if (counted - answered).abs() <= UNITS_OFF_MAX {
        return Ok(());
    }
    Err(Failure::new(
        "account",
        format!("{name} accounts for {counted} write units, and the store answered {answered}"),
    ))
}
