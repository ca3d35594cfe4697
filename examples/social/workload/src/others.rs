//! Other people, who follow each other and like each other's posts, and undo it, beside a rename.
//!
//! Each action changes something, and touches only their own items, so the keys of the items show what follows from it.

use std::collections::BTreeSet;

use entities::ids::{PostId, UserId};
use keys::key::Key;
use queries::writes::{posts::NewPost, users::NewUser};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{
    BEGIN_MS,
    act::{Act, AppAction},
    people::People,
    posts::Posts,
};

/// Number of people. Each has a post.
const OTHERS: usize = 100;

/// Prefix of their ids and of those of their posts. No other id has it.
const MARK: &str = "other-";

/// The others: who follows whom, and who likes whose post.
pub struct Others {
    chance: StdRng,
    follows: BTreeSet<(usize, usize)>,
    likes: BTreeSet<(usize, usize)>,
    n_actions: u64,
}

/// Does the item belong to them?
#[must_use]
pub fn is_theirs(key: &Key) -> bool {
    key.pk.split_once('#').is_some_and(|(_, id)| id.starts_with(MARK))
}

impl Others {
    /// Others who have not signed up yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        Self { chance, follows: BTreeSet::new(), likes: BTreeSet::new(), n_actions: 0 }
    }

    /// The actions before the scenario: each signs up, and posts something.
    pub fn setting(&mut self) -> Vec<AppAction> {
        let mut actions = Vec::new();
        for at in 0..OTHERS {
            let user = user_id(at);
            let email = format!("{}@example.com", user.as_str());
            let new = NewUser { name: format!("Other {at}"), email, avatar: None };
            actions.push(self.action(at, Act::People(People::SignUp(user.clone(), new))));
            let new = NewPost { title: format!("Post of {at}"), content: None, is_published: true };
            actions.push(self.action(at, Act::Posts(Posts::Create(user, post_id(at), new))));
        }
        actions
    }

    /// The next action: one follows another or likes their post, or undoes it.
    pub fn next_action(&mut self) -> AppAction {
        let one = self.chance.random_range(0..OTHERS);
        let other = (one + self.chance.random_range(1..OTHERS)) % OTHERS;
        let act = if self.chance.random_ratio(1, 2) {
            let (one_id, other_id) = (user_id(one), user_id(other));
            Act::People(if is_new(&mut self.follows, (one, other)) {
                People::Follow(one_id, other_id, false)
            } else {
                People::Unfollow(one_id, other_id)
            })
        } else {
            let (user, post) = (user_id(one), post_id(other));
            Act::Posts(if is_new(&mut self.likes, (one, other)) {
                Posts::Like(user, post)
            } else {
                Posts::Unlike(user, post)
            })
        };
        self.action(one, act)
    }

    fn action(&mut self, of: usize, act: Act) -> AppAction {
        self.n_actions += 1;
        AppAction { now_ms: BEGIN_MS + self.n_actions, subject: user_id(of).as_str().to_owned(), act }
    }
}

/// Adds the pair if it is new, and removes it if not.
fn is_new(pairs: &mut BTreeSet<(usize, usize)>, pair: (usize, usize)) -> bool {
    let is_new = pairs.insert(pair);
    if !is_new {
        pairs.remove(&pair);
    }
    is_new
}

fn user_id(at: usize) -> UserId {
    UserId::from(id(at))
}

fn post_id(at: usize) -> PostId {
    PostId::from(id(at))
}

/// Some ids contain the characters that join keys.
fn id(at: usize) -> String {
    match at % 10 {
        7 => format!("{MARK}{at}#x"),
        8 => format!("{MARK}{at}%23"),
        _ => format!("{MARK}{at}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Vec<String> {
        let mut others = Others::new(seed);
        let mut actions = others.setting();
        actions.extend((0..500).map(|_| others.next_action()));
        actions.iter().map(|action| format!("{action:?}")).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_actions() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }

    #[test]
    fn who_follows_already_is_unfollowed_before_they_follow_again() {
        let mut others = Others::new(1);
        let mut follows = BTreeSet::new();
        let mut n_unfollows = 0;
        for _ in 0..30_000 {
            match others.next_action().act {
                Act::People(People::Follow(one, other, _)) => assert!(follows.insert((one, other))),
                Act::People(People::Unfollow(one, other)) => {
                    n_unfollows += 1;
                    assert!(follows.remove(&(one, other)));
                }
                _ => {}
            }
        }
        assert!(n_unfollows > 1_000);
    }

    #[test]
    fn their_items_are_known_by_their_keys() {
        for (pk, theirs) in [
            ("USER#other-7%23x", true),
            ("POST#other-12", true),
            ("USER#u7", false),
            ("USER#another-7", false),
            ("EMAIL#other-7@example.com", true),
            ("other-7", false),
        ] {
            assert_eq!(is_theirs(&Key::new(pk, "PROFILE")), theirs, "{pk}");
        }
    }
}
