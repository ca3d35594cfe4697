//! A user with many comments, who is renamed.

use entities::ids::{CommentId, PostId, UserId};
use queries::writes::{
    posts::NewPost,
    users::{NewUser, ProfileEdit},
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{
    BEGIN_MS,
    act::{Act, AppAction},
    people::People,
    posts::Posts,
    user_id,
};

/// Number of posts with the user's comments, and so of partitions.
const POSTS: usize = 100;

/// The user, and the draws of the posts that receive a comment.
pub struct FamousUser {
    chance: StdRng,
    user: UserId,
    n_actions: u64,
}

impl FamousUser {
    /// A user who has not signed up yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { chance: StdRng::seed_from_u64(seed), user: UserId::from("famous#1"), n_actions: 0 }
    }

    /// The actions before the comments: the user signs up, and some authors write a post each.
    pub fn setting(&mut self) -> Vec<AppAction> {
        let user = self.user.clone();
        let mut actions = vec![self.sign_up(&user)];
        for at in 0..POSTS {
            let author = user_id(at);
            actions.push(self.sign_up(&author));
            let new = NewPost { title: format!("Post {at}"), content: None, is_published: true };
            let act = Act::Posts(Posts::Create(author.clone(), post_id(at), new));
            actions.push(self.next(author.as_str(), act));
        }
        actions
    }

    /// The next comment.
    pub fn comment(&mut self) -> AppAction {
        let post = post_id(self.chance.random_range(0..POSTS));
        let comment = CommentId::from(format!("c{}", self.n_actions));
        let act = Act::Posts(Posts::Comment(self.user.clone(), post, comment.clone()));
        self.next(comment.as_str(), act)
    }

    /// Renames the user; the name contains the number of the rename.
    pub fn rename(&mut self, nth: u32) -> AppAction {
        let edit = ProfileEdit { name: Some(format!("Grace the {nth}.")), ..ProfileEdit::default() };
        let user = self.user.clone();
        self.next(user.clone().as_str(), Act::People(People::Edit(user, edit)))
    }

    fn sign_up(&mut self, user_id: &UserId) -> AppAction {
        let new = NewUser {
            name: format!("{}, who is new", user_id.as_str()),
            email: format!("{}@example.com", user_id.as_str()),
            avatar: None,
        };
        self.next(user_id.as_str(), Act::People(People::SignUp(user_id.clone(), new)))
    }

    fn next(&mut self, subject: &str, act: Act) -> AppAction {
        self.n_actions += 1;
        AppAction { now_ms: BEGIN_MS + self.n_actions, subject: subject.to_owned(), act }
    }
}

/// Some ids contain the characters that join keys.
fn post_id(at: usize) -> PostId {
    match at % 10 {
        3 => PostId::from(format!("p{at}#x")),
        4 => PostId::from(format!("p{at}%23")),
        _ => PostId::from(format!("p{at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Vec<String> {
        let mut famous = FamousUser::new(seed);
        let mut actions = famous.setting();
        actions.extend((0..300).map(|_| famous.comment()));
        actions.extend((1..=3).map(|nth| famous.rename(nth)));
        actions.iter().map(|action| format!("{action:?}")).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_comments_and_renames() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }
}
