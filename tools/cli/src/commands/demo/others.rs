//! Other users, who follow each other, like each other's posts, and undo it, during a rename.
//!
//! Each action changes something, and affects only items of these users. So the key of an item shows whether a derived
//! write belongs to them.

use std::collections::BTreeSet;

use derive::schema::Schema;
use keys::key::Key;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::workload::{
    client::{AppAction, Step},
    items::{Items, key},
};

/// Number of users. Each has a post.
const OTHERS: usize = 100;

/// Prefix of the ids of these users and their posts. No other id has it.
const MARK: &str = "other-";

/// The other users, with their follows and likes.
pub(super) struct Others {
    chance: StdRng,
    items: Items,
    follows: BTreeSet<(usize, usize)>,
    likes: BTreeSet<(usize, usize)>,
}

/// True if the item belongs to these users.
pub(super) fn is_theirs(key: &Key) -> bool {
    key.pk.split_once('#').is_some_and(|(_, id)| id.starts_with(MARK))
}

impl Others {
    /// The other users, before they sign up.
    pub(super) fn new(schema: Schema, seed: u64) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        Self { chance, items: Items::new(schema), follows: BTreeSet::new(), likes: BTreeSet::new() }
    }

    /// The actions before the scenario: each signs up, and posts something.
    pub(super) fn setting(&mut self) -> anyhow::Result<Vec<AppAction>> {
        let mut actions = Vec::new();
        for at in 0..OTHERS {
            let subject = id(at);
            self.items.begin();
            let steps = vec![
                Step::Write(self.items.user(&subject, &format!("Other {at}"), None)?),
                Step::Write(self.items.post(&subject, &subject, &format!("Post of {at}"))?),
            ];
            actions.push(AppAction { subject, steps });
        }
        Ok(actions)
    }

    /// The next action: one follows another or likes their post, or undoes it.
    pub(super) fn next_action(&mut self) -> anyhow::Result<AppAction> {
        self.items.begin();
        let one = self.chance.random_range(0..OTHERS);
        let other = (one + self.chance.random_range(1..OTHERS)) % OTHERS;
        let (subject, other_id) = (id(one), id(other));
        let (entity, fields, is_new) = if self.chance.random_ratio(1, 2) {
            let fields = key([("FollowerId", &subject), ("FolloweeId", &other_id)]);
            ("Follow", fields, is_new(&mut self.follows, (one, other)))
        } else {
            let fields = key([("UserId", &subject), ("PostId", &other_id)]);
            ("Like", fields, is_new(&mut self.likes, (one, other)))
        };
        let write = if is_new { self.items.create(entity, &fields, &[]) } else { self.items.delete(entity, &fields) };
        Ok(AppAction { subject, steps: vec![Step::Write(write?)] })
    }
}

/// Adds the pair if it is new, and removes it if not. True if it was new.
fn is_new(pairs: &mut BTreeSet<(usize, usize)>, pair: (usize, usize)) -> bool {
    let is_new = pairs.insert(pair);
    if !is_new {
        pairs.remove(&pair);
    }
    is_new
}

/// Some ids contain characters that have a meaning in keys: `#` and `%`.
fn id(at: usize) -> String {
    match at % 10 {
        7 => format!("{MARK}{at}#x"),
        8 => format!("{MARK}{at}%23"),
        _ => format!("{MARK}{at}"),
    }
}

#[cfg(test)]
mod tests {
    use derive::write::Action;

    use super::*;

    fn drawn(seed: u64) -> Vec<String> {
        let mut others = Others::new(catalogue::schema(), seed);
        let mut actions = others.setting().unwrap();
        actions.extend((0..500).map(|_| others.next_action().unwrap()));
        actions.iter().map(|action| format!("{action:?}")).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_actions() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }

    #[test]
    fn who_follows_already_is_unfollowed_before_they_follow_again() {
        let mut others = Others::new(catalogue::schema(), 1);
        let mut written = BTreeSet::new();
        let mut n_undone = 0;
        for _ in 0..30_000 {
            for step in others.next_action().unwrap().steps {
                let Step::Write(write) = step else { panic!("{step:?}") };
                if write.action == Action::Delete {
                    n_undone += 1;
                    assert!(written.remove(&write.key), "{}", write.key);
                } else {
                    assert!(written.insert(write.key));
                }
            }
        }
        assert!(n_undone > 1_000);
    }

    #[test]
    fn their_items_are_known_by_their_keys() {
        for (pk, theirs) in [
            ("USER#other-7%23x", true),
            ("POST#other-12", true),
            ("USER#u7", false),
            ("USER#another-7", false),
            ("other-7", false),
        ] {
            assert_eq!(is_theirs(&Key::new(pk, "PROFILE")), theirs, "{pk}");
        }
    }
}
