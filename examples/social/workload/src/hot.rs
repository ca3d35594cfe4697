//! Likes of one post, each by another user.

use entities::ids::{PostId, UserId};
use queries::writes::{posts::NewPost, users::NewUser};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{
    BEGIN_MS,
    act::{Act, AppAction},
    people::People,
    posts::Posts,
    user_id,
};

/// Number of possible first users; the seed selects one.
const FIRST_USERS: usize = 1_000_000;

/// The post, and who likes it next.
pub struct HotPost {
    author: UserId,
    post: PostId,
    first_user: usize,
    n_actions: u64,
}

impl HotPost {
    /// A post that is not written yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let first_user = StdRng::seed_from_u64(seed).random_range(0..FIRST_USERS);
        Self { author: UserId::from("author"), post: PostId::from("hot#post"), first_user, n_actions: 0 }
    }

    /// The post.
    #[must_use]
    pub fn post(&self) -> &PostId {
        &self.post
    }

    /// The actions before the likes: the author signs up, and publishes the post.
    pub fn setting(&mut self) -> Vec<AppAction> {
        let author = self.author.clone();
        let new = NewUser { name: "Ada".to_owned(), email: "ada@example.com".to_owned(), avatar: None };
        let sign_up = self.next(&author.clone(), Act::People(People::SignUp(author.clone(), new)));
        let content = Some("Lorem ipsum dolor sit amet. ".repeat(8));
        let post = NewPost { title: "The post that everybody likes".to_owned(), content, is_published: true };
        let act = Act::Posts(Posts::Create(author.clone(), self.post.clone(), post));
        vec![sign_up, self.next(&author, act)]
    }

    /// A like by the next user.
    pub fn like(&mut self) -> AppAction {
        let user_id = user_id(self.first_user + usize::try_from(self.n_actions).unwrap_or(usize::MAX));
        self.next(&user_id.clone(), Act::Posts(Posts::Like(user_id, self.post.clone())))
    }

    fn next(&mut self, subject: &UserId, act: Act) -> AppAction {
        self.n_actions += 1;
        AppAction { now_ms: BEGIN_MS + self.n_actions, subject: subject.as_str().to_owned(), act }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn drawn(seed: u64) -> Vec<String> {
        let mut hot = HotPost::new(seed);
        let mut actions = hot.setting();
        actions.extend((0..100).map(|_| hot.like()));
        actions.iter().map(|action| format!("{action:?}")).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_likes() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }

    #[test]
    fn nobody_likes_it_twice() {
        let mut hot = HotPost::new(1);
        let users: BTreeSet<String> = (0..1_000).map(|_| hot.like().subject).collect();
        assert_eq!(users.len(), 1_000);
    }
}
