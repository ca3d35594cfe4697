//! What must be true of every invocation that ends: its account is what the store answered.

use engine::batch::Handled;
use store::Units;

use crate::failure::Failure;

/// How far the units of an account may be off, which are parts of a sum.
const UNITS_OFF_MAX: Units = 1e-6;

/// The account of an invocation that ended says what the store answered to it, and no more.
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
