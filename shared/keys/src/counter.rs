//! Keys of counters: the items with the counts and sums of a target, in its collection.
//!
//! A counter begins as one item, its *home*. A counter that has spread has *satellites* beside it; the count is the sum
//! over all of them.
//!
//! A counter's sort key starts with the target's own sort key, so that one query finds a target and everything about
//! it: `PK = …` and `begins_with(SK, "PROFILE")`. The form is the same in every table, whatever the target's keys look
//! like.
//!
//! ```
//! use keys::{counter::CounterKey, key::Key};
//!
//! let counter = CounterKey { target: Key::new("USER#a", "PROFILE"), derivation: "follower-count".into(), satellite: 3 };
//! let key = counter.key()?;
//! assert_eq!(key, Key::new("USER#a", "PROFILE#COUNT#follower-count#03"));
//! assert_eq!(CounterKey::parse(&key), Some(counter));
//! # Ok::<(), keys::error::KeyError>(())
//! ```

use crate::{
    error::{KeyError, Problem},
    escape,
    key::{Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX},
};

/// Text of the type attribute of every counter. Stored, so it is stable.
pub const COUNTER: &str = "Counter";

/// Attribute with a counter's count. Stored, so it is stable.
pub const VALUE: &str = "Value";

/// Attribute with the sum over a counter's sources, if the derivation sums. Stored, so it is stable.
pub const SUM: &str = "Sum";

/// Attribute with the number of times that a counter's watermarks have moved. It starts with the time in milliseconds,
/// so that a recreated counter is above its earlier revisions. Stored, so it is stable.
pub const REVISION: &str = "Rev";

/// Attribute that is true if the function that changed the count also wrote its display. Stored, so it is stable.
pub const SHOWN: &str = "Shown";

/// Attribute of a counter's home that has spread: the number of its satellites. It is set once and never changes.
/// Stored, so it is stable.
pub const SPREAD: &str = "Spread";

/// Template of a counter's partition key: the target's.
pub const PARTITION_KEY: &str = "{TargetPK*}";

/// Field of [`PARTITION_KEY`] with the target's partition key.
pub const TARGET_PARTITION: &str = "TargetPK";

/// Template of a counter's sort key.
pub const SORT_KEY: &str = "{TargetSK*}#COUNT#{Derivation}#{Satellite:2}";

/// Field of [`SORT_KEY`] with the derivation's name.
pub const DERIVATION: &str = "Derivation";

/// Separates a target's sort key from the name of the counting derivation. Stored, so it is stable.
pub const MARK: &str = "#COUNT#";

/// Identifies a counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterKey {
    /// Key of the item that the count is about; it need not exist.
    pub target: Key,
    /// Name of the derivation.
    pub derivation: String,
    /// 0 for the counter's home; from 1 to 99 for a satellite, an item beside the home of a counter that has spread.
    pub satellite: u32,
}

impl Default for CounterKey {
    /// The key of no counter.
    fn default() -> Self {
        Self { target: Key::new("", ""), derivation: String::new(), satellite: 0 }
    }
}

impl CounterKey {
    /// The home of a target's counter.
    #[must_use]
    pub fn home(target: Key, derivation: &str) -> Self {
        Self { target, derivation: derivation.to_owned(), satellite: 0 }
    }

    /// The counter's primary key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the satellite has more than two digits, or the target's key leaves no room.
    pub fn key(&self) -> Result<Key, KeyError> {
        if self.satellite > 99 {
            return Err(KeyError::new("Satellite", Problem::DoesNotFit { digits: 2 }).of(COUNTER));
        }
        let digits = [self.satellite / 10, self.satellite % 10].map(|digit| char::from_digit(digit, 10).unwrap_or('0'));
        let mut sk = derivation_prefix(&self.target, &self.derivation);
        sk.extend(digits);
        let key = Key { pk: self.target.pk.clone(), sk };
        let limits = [(TARGET_PARTITION, &key.pk, PARTITION_KEY_BYTES_MAX), ("TargetSK", &key.sk, SORT_KEY_BYTES_MAX)];
        for (field, text, bytes_max) in limits {
            if text.len() > bytes_max {
                return Err(KeyError::new(field, Problem::TooLong { bytes: text.len(), bytes_max }).of(COUNTER));
            }
        }
        Ok(key)
    }

    /// True if this is the key of a counter's home. As [`parse`](Self::parse), but makes no texts: each count asks it.
    #[must_use]
    pub fn is_home(key: &Key) -> bool {
        let counter = key.sk.strip_suffix("#00").and_then(|sk| sk.rsplit_once(MARK));
        counter.is_some_and(|(target, name)| !target.is_empty() && !name.is_empty() && !name.contains('#'))
    }

    /// The counter of a primary key; `None` if it is not a counter's key.
    #[must_use]
    pub fn parse(key: &Key) -> Option<Self> {
        let (sk, satellite) = key.sk.rsplit_once('#')?;
        let (target, derivation) = sk.rsplit_once(MARK)?;
        let two_digits = satellite.len() == 2 && satellite.bytes().all(|byte| byte.is_ascii_digit());
        if target.is_empty() || derivation.is_empty() || derivation.contains('#') || !two_digits {
            return None;
        }
        Some(Self {
            target: Key::new(&key.pk, target),
            derivation: escape::restored(derivation),
            satellite: satellite.parse().ok()?,
        })
    }
}

/// Prefix of the sort keys of all counters of a target.
#[must_use]
pub fn prefix(target: &Key) -> String {
    format!("{}{MARK}", target.sk)
}

/// Prefix of the sort keys of the home and the satellites of one derivation's counter of a target.
#[must_use]
pub fn derivation_prefix(target: &Key, derivation: &str) -> String {
    // Reserves room for the satellite, since every planned amount builds one.
    let mut prefix = String::with_capacity(target.sk.len() + MARK.len() + derivation.len() + 8);
    prefix.extend([&target.sk, MARK, &escape::value(derivation), "#"]);
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{entity::KeyTemplate, fields::Fields};

    proptest::proptest! {
        #[test]
        fn a_counter_key_reads_back_and_is_what_its_template_says(
            pk in ".+", sk in "[A-Z#%]{1,9}", derivation in "[a-z#%-]{1,9}", satellite in 0u32..100
        ) {
            let counter = CounterKey { target: Key::new(pk, sk), derivation, satellite };
            let key = counter.key().unwrap();
            let template = KeyTemplate::parse(PARTITION_KEY, SORT_KEY).unwrap();
            proptest::prop_assert_eq!(CounterKey::parse(&key), Some(counter.clone()));
            proptest::prop_assert_eq!(CounterKey::is_home(&key), counter.satellite == 0);
            let fields = Fields::from([
                (TARGET_PARTITION, counter.target.pk),
                ("TargetSK", counter.target.sk),
                (DERIVATION, counter.derivation),
                ("Satellite", counter.satellite.to_string()),
            ]);
            proptest::prop_assert_eq!(template.build(&fields), Ok(key.clone()));
            proptest::prop_assert_eq!(template.parse_key(&key), Some(fields));
        }
    }

    #[test]
    fn what_is_no_counter_is_not_taken_for_one() {
        for sk in [
            "PROFILE",
            "#COUNT#a#00",
            "PROFILE#COUNT##00",
            "PROFILE#COUNT#a#0",
            "PROFILE#COUNT#a#000",
            "X#COUNT#a#b#00",
        ] {
            let key = Key::new("P", sk);
            assert_eq!((CounterKey::parse(&key), CounterKey::is_home(&key)), (None, false), "{sk}");
        }
    }

    #[test]
    fn a_satellite_past_two_digits_is_refused() {
        let counter = CounterKey { target: Key::new("a", "b"), derivation: "c".into(), satellite: 100 };
        assert_eq!(counter.key().unwrap_err().to_string(), "Counter.Satellite does not fit in 2 digits");
    }

    #[test]
    fn a_counter_whose_key_is_too_long_has_none() {
        let counter = |pk: usize, sk: usize| {
            let target = Key::new("p".repeat(pk), "s".repeat(sk));
            CounterKey::home(target, "n").key().map_err(|error| error.to_string())
        };
        assert!(counter(2_048, 1_013).is_ok());
        let wrong =
            |field, bytes, limit| Err(format!("Counter.{field} makes a key of {bytes} bytes; the limit is {limit}"));
        assert_eq!(counter(2_049, 1), wrong("TargetPK", 2_049, 2_048));
        assert_eq!(counter(1, 1_014), wrong("TargetSK", 1_025, 1_024));
    }
}
