//! Loops: items that stand in themselves, by way of their parents.

use std::collections::{BTreeMap, BTreeSet};

use keys::key::Key;

/// The keys that stand in a loop, where each has one parent or none.
pub(super) fn in_loops(parents: &BTreeMap<Key, Key>) -> BTreeSet<Key> {
    let (mut done, mut looped) = (BTreeSet::new(), BTreeSet::new());
    for start in parents.keys() {
        let (mut walk, mut at) = (Vec::new(), start);
        while done.insert(at) {
            walk.push(at);
            match parents.get(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        // Where this very walk came by before, the walk from there on is a loop.
        looped.extend(walk.into_iter().skip_while(|key| *key != at || !parents.contains_key(at)).cloned());
    }
    looped
}
