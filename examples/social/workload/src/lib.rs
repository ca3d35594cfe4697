//! A mixed workload of an application and some foreign clients. A seed always gives the same actions.
//!
//! The application uses the whole query interface, which refuses some actions, because the application acts on what it
//! knew last. The foreign clients do not use it: they put whole items, also items that they read long
//! before. The order is arbitrary, so a comment may come before its post, and a follow before both users.

pub mod act;
pub mod act_error;
pub mod famous;
mod files;
mod foreign;
mod groups;
pub mod hot;
mod organizations;
pub mod others;
mod people;
mod posts;
mod readings;
mod shop;

use entities::{
    files::FileKey,
    ids::{EmployeeId, GroupId, OrgId, PostId, ProductId, TeamId, UserId},
    orders::OrderKey,
    posts::{CommentKey, PostKey},
    products::ReviewKey,
};
use keys::error::EntityError;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use act::{Act, AppAction};
use files::FolderPlace;
use readings::Taken;

/// Time of the first action, in milliseconds since the epoch: 2030-01-01, so that no view expires during the run.
const BEGIN_MS: u64 = 1_893_456_000_000;

/// Users who sign up before anything else happens.
const USERS_MIN: usize = 20;

/// The application, and what it knows of its own actions. It does not know which of them were refused.
pub struct Application {
    chance: StdRng,
    n_actions: u64,
    users: Vec<UserId>,
    posts: Vec<PostKey>,
    comments: Vec<CommentKey>,
    follows: Vec<(UserId, UserId)>,
    likes: Vec<(UserId, PostId)>,
    groups: Vec<GroupId>,
    memberships: Vec<(UserId, GroupId)>,
    orgs: Vec<OrgId>,
    teams: Vec<(OrgId, TeamId)>,
    members: Vec<(OrgId, UserId)>,
    employees: Vec<(OrgId, EmployeeId)>,
    folders: Vec<FolderPlace>,
    files: Vec<(u64, FileKey)>,
    products: Vec<ProductId>,
    orders: Vec<OrderKey>,
    reviews: Vec<ReviewKey>,
    subscriptions: Vec<(UserId, u64)>,
    carts: Vec<(UserId, ProductId)>,
    readings: Vec<Taken>,
}

fn done<T>((subject, what): (String, T), act: impl Fn(T) -> Act) -> (String, Act) {
    (subject, act(what))
}

impl Application {
    /// An application that has not written anything yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            chance: StdRng::seed_from_u64(seed),
            n_actions: 0,
            users: Vec::new(),
            posts: Vec::new(),
            comments: Vec::new(),
            follows: Vec::new(),
            likes: Vec::new(),
            groups: Vec::new(),
            memberships: Vec::new(),
            orgs: Vec::new(),
            teams: Vec::new(),
            members: Vec::new(),
            employees: Vec::new(),
            folders: Vec::new(),
            files: Vec::new(),
            products: Vec::new(),
            orders: Vec::new(),
            reviews: Vec::new(),
            subscriptions: Vec::new(),
            carts: Vec::new(),
            readings: Vec::new(),
        }
    }

    /// The next action.
    ///
    /// # Errors
    ///
    /// Fails if an item of a foreign client breaks the rules of its entity.
    pub fn next_action(&mut self) -> Result<AppAction, EntityError> {
        self.n_actions += 1;
        let (subject, act) =
            if self.users.len() < USERS_MIN { done(self.sign_up(), Act::People) } else { self.draw()? };
        Ok(AppAction { now_ms: self.now_ms(), subject, act })
    }

    /// Chooses the next action. The numbers are percentages.
    fn draw(&mut self) -> Result<(String, Act), EntityError> {
        Ok(match self.chance.random_range(0..100) {
            0..=26 => done(self.of_people(), Act::People),
            27..=53 => done(self.of_posts(), Act::Posts),
            54..=60 => done(self.of_groups(), Act::Groups),
            61..=69 => done(self.of_organizations(), Act::Organizations),
            70..=78 => done(self.of_files(), Act::Files),
            79..=91 => done(self.of_the_shop(), Act::Shop),
            92..=94 => self.of_readings()?,
            _ => self.of_foreign_clients()?,
        })
    }

    /// The time of the action, which no other action has.
    fn now_ms(&self) -> u64 {
        BEGIN_MS + self.n_actions
    }

    fn now(&self) -> String {
        time_text(self.now_ms())
    }

    /// An id that no other action makes.
    fn new_id(&self, kind: &str) -> String {
        format!("{kind}{}", self.n_actions)
    }

    /// One of several at random; `None` if there are none yet.
    fn any<T: Clone>(&mut self, of: impl Fn(&Self) -> &[T]) -> Option<T> {
        let n = of(self).len();
        let at = if n == 0 { 0 } else { self.chance.random_range(0..n) };
        of(self).get(at).cloned()
    }

    /// True in `times` of `of` cases.
    fn happens(&mut self, times: u32, of: u32) -> bool {
        self.chance.random_ratio(times, of)
    }

    fn any_user(&mut self) -> UserId {
        // One in forty does not exist (yet).
        if self.happens(1, 40) {
            return user_id(self.users.len() + self.chance.random_range(0..5));
        }
        self.any(|app| &app.users).unwrap_or_else(|| user_id(0))
    }

    fn any_post(&mut self) -> PostId {
        let missing = self.posts.is_empty() || self.happens(1, 40);
        if missing {
            return PostId::from(format!("missing-{}", self.chance.random_range(0..5)));
        }
        self.any(|app| &app.posts).map(|post| post.post_id).unwrap_or_default()
    }
}

/// The text of a time. All times of the workload are long before the year 9999, after which a time has no text.
fn time_text(ms: u64) -> String {
    queries::writes::time::text(ms).unwrap_or_default()
}

/// Some ids contain the characters that join keys.
fn user_id(at: usize) -> UserId {
    match at % 10 {
        7 => UserId::from(format!("u{at}#x")),
        8 => UserId::from(format!("u{at}%23")),
        _ => UserId::from(format!("u{at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Vec<String> {
        let mut application = Application::new(seed);
        (0..500).map(|_| format!("{:?}", application.next_action().unwrap())).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_actions() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }
}
