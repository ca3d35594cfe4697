//! Nothing: this package holds the tests that belong to no single crate. They are its test targets, a file each.
