//! A mixed workload, as an application would write it: the same seed gives the same writes.
//!
//! It follows, likes, comments, joins and renames; moves posts and comments; deletes; puts whole items back that it
//! read long before; writes items that are none of the service's; and does all that in any order, so that a comment
//! may come before its post and a follow before both users.

mod actions;
mod belonging;
pub(crate) mod writer;

use entities::{
    ids::{OrgId, PostId, UserId},
    posts::{CommentKey, PostKey},
};
use keys::{item::Item, key::Key};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

/// One write of the application.
#[derive(Clone, Debug)]
pub(crate) enum Ground {
    /// Puts a whole item.
    Put(Key, Item),
    /// Sets attributes, and removes others.
    Update(Key, Item, Vec<&'static str>),
    /// Deletes an item.
    Delete(Key),
    /// Puts back the whole item as it was read some time ago, stale derived attributes included.
    PutBack(Key, Item),
}

impl Ground {
    /// The item.
    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Put(key, _) | Self::Update(key, ..) | Self::Delete(key) | Self::PutBack(key, _) => key,
        }
    }
}

/// One action of the application: its writes, in their order.
pub(crate) type Action = Vec<Ground>;

/// The application: what it has written, as far as it must know to go on.
pub(crate) struct Application {
    chance: StdRng,
    n_actions: u64,
    users: Vec<UserId>,
    posts: Vec<PostKey>,
    comments: Vec<CommentKey>,
    follows: Vec<(UserId, UserId)>,
    likes: Vec<(UserId, PostId)>,
    memberships: Vec<(UserId, u32)>,
    n_groups: u32,
    orgs: Vec<(OrgId, u32)>,
}

impl Application {
    /// An application that has written nothing yet.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            chance: StdRng::seed_from_u64(seed),
            n_actions: 0,
            users: Vec::new(),
            posts: Vec::new(),
            comments: Vec::new(),
            follows: Vec::new(),
            likes: Vec::new(),
            memberships: Vec::new(),
            n_groups: 0,
            orgs: Vec::new(),
        }
    }

    /// What it does next.
    pub(crate) fn next(&mut self) -> Result<Action, keys::error::EntityError> {
        self.n_actions += 1;
        if self.users.len() < 20 {
            return self.sign_up();
        }
        // Of 200: how often each action is taken.
        match self.chance.random_range(0..200) {
            0..=7 => self.sign_up(),
            8..=15 => self.rename_user(),
            16..=19 => self.touch_user(),
            20..=55 => self.follow(),
            56..=65 => self.unfollow(),
            66..=77 => self.post(),
            78..=85 => self.change_status(),
            86..=89 => self.move_post(),
            90..=91 => self.delete_post(),
            92..=117 => self.comment(),
            118..=121 => self.reassign_comment(),
            122..=125 => self.delete_comment(),
            126..=151 => self.like(),
            152..=157 => self.unlike(),
            158..=167 => self.view(),
            168..=177 => self.join_group(),
            178..=181 => self.leave_group(),
            182..=184 => self.name_group(),
            185..=187 => self.found_organization(),
            188..=193 => self.hire(),
            194..=195 => self.name_organization(),
            196..=197 => self.delete_user(),
            _ => Ok(self.foreign_item()),
        }
    }

    /// A time that no other write has, ISO 8601 UTC in milliseconds.
    fn now(&self) -> String {
        let ms = self.n_actions;
        let (day, ms) = (1 + ms / 86_400_000, ms % 86_400_000);
        let (hour, ms) = (ms / 3_600_000, ms % 3_600_000);
        let (minute, ms) = (ms / 60_000, ms % 60_000);
        format!("2024-01-{day:02}T{hour:02}:{minute:02}:{:02}.{:03}Z", ms / 1_000, ms % 1_000)
    }

    /// One of several; now and then none, as when there is nothing yet.
    fn any<T: Clone>(&mut self, of: impl Fn(&Self) -> &[T]) -> Option<T> {
        let n = of(self).len();
        let at = if n == 0 { 0 } else { self.chance.random_range(0..n) };
        of(self).get(at).cloned()
    }

    fn any_user(&mut self) -> UserId {
        // One in forty does not exist (yet).
        if self.chance.random_ratio(1, 40) {
            return user_id(self.users.len() + self.chance.random_range(0..5));
        }
        self.any(|app| &app.users).unwrap_or_default()
    }

    fn any_post(&mut self) -> PostId {
        let missing = self.posts.is_empty() || self.chance.random_ratio(1, 40);
        if missing {
            return PostId::from(format!("missing-{}", self.chance.random_range(0..5)));
        }
        self.any(|app| &app.posts).map(|post| post.post_id).unwrap_or_default()
    }
}

/// Some ids hold the characters that join keys.
fn user_id(at: usize) -> UserId {
    match at % 10 {
        7 => UserId::from(format!("u{at}#x")),
        8 => UserId::from(format!("u{at}%23")),
        _ => UserId::from(format!("u{at}")),
    }
}
