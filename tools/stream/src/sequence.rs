//! The order of sequence numbers.
//!
//! They are decimal integers of up to 40 digits, padded with zeros by some emulators and not by AWS, so neither their
//! text (`"820…"` is behind `"1683…"`) nor a machine integer orders them.

/// A sort key: sequence numbers compare as their keys do.
///
/// ```
/// use stream::sequence::order;
/// assert!(order("820400000000000001192334") < order("1683700000000000001135967"));
/// assert_eq!(order("000000000000000000042"), order("42"));
/// ```
#[must_use]
pub fn order(sequence_number: &str) -> (usize, &str) {
    let digits = sequence_number.trim_start_matches('0');
    (digits.len(), digits)
}
