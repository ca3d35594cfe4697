//! Counters: the authority for every count and sum, in the collection of what they count.
//!
//! A reader adds up the shards that are there; the attribute on the target is a display of that.
//! The form of the key is the same in every table, so it is [`keys::counter`]'s.

use keys::{
    counter::{self, CounterKey},
    number::Decimal,
};

keys::entity! {
    /// One shard of one derivation's count about one target, which need not exist.
    derived Counter "E-25" {
        key type CounterKey(counter::PARTITION_KEY, counter::SORT_KEY);
        attributes {}
        derived {
            /// How many, in this shard; may be negative, while its siblings make up for it.
            value: Option<i64> = "Value",
            /// Their sum in this shard, where the derivation sums too.
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
