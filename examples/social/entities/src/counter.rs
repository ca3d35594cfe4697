//! Counters: the authority for every count and sum, in the collection of their target.
//!
//! A reader adds up the existing shards; the attribute on the target is a display of that sum. The form of the key is
//! the same in every table: [`keys::counter`].

use keys::{
    counter::{self, CounterKey},
    number::Decimal,
};

keys::entity! {
    /// One shard of a derivation's count for one target. The target need not exist.
    derived Counter "E-25" {
        key type CounterKey(counter::PARTITION_KEY, counter::SORT_KEY);
        attributes {}
        derived {
            /// The count of this shard. It may be negative if other shards make up for it.
            value: Option<i64> = "Value",
            /// The sum of this shard, if the derivation also sums.
            sum: Option<Decimal> = "Sum",
        }
    }
}

#[cfg(test)]
mod tests {
    use keys::entity::Entity;

    use super::*;

    #[test]
    fn the_declaration_says_what_the_machinery_writes() {
        assert_eq!(Counter::NAME, counter::COUNTER);
        assert!(Counter::definition().derived_attributes.iter().any(|name| name == counter::VALUE));
    }
}
