//! Posts and their readers.

use entities::{
    ids::{CommentId, PostId, UserId},
    posts::{CommentKey, PostKey},
};
use queries::{
    Queries,
    write_error::WriteError,
    writes::{
        draft::Edit,
        posts::{NewPost, PostEdit},
    },
};
use rand::Rng as _;
use store::Store;

use super::Application;

/// Actions on posts.
#[derive(Clone, Debug)]
pub enum Posts {
    Create(UserId, PostId, NewPost),
    Publish(PostKey),
    Edit(PostKey, PostEdit),
    Archive(PostKey),
    Delete(PostKey),
    Comment(UserId, PostId, CommentId),
    EditComment(CommentKey),
    DeleteComment(CommentKey),
    Like(UserId, PostId),
    Unlike(UserId, PostId),
    View(UserId, PostId),
}

impl Application {
    /// The next action; the numbers are of 270.
    pub(super) fn of_posts(&mut self) -> (String, Posts) {
        match self.chance.random_range(0..270) {
            0..=44 => self.post(),
            45..=68 => self.change_post(),
            69..=76 => self.delete_post(),
            77..=134 => self.comment(),
            135..=150 => self.change_comment(),
            151..=216 => self.like(),
            217..=234 => self.unlike(),
            _ => self.view(),
        }
    }

    fn post(&mut self) -> (String, Posts) {
        let (author, post_id) = (self.any_user(), PostId::from(self.new_id("p")));
        let new = NewPost {
            title: format!("Post {}", self.n_actions),
            content: Some("Lorem ipsum dolor sit amet. ".repeat(8)),
            is_published: self.happens(2, 3),
        };
        self.posts.push(PostKey { author_id: author.clone(), created_at: self.now(), post_id: post_id.clone() });
        posts(post_id.as_str().to_owned(), Posts::Create(author, post_id, new))
    }

    fn change_post(&mut self) -> (String, Posts) {
        let Some(key) = self.any(|app| &app.posts) else { return self.post() };
        let subject = key.post_id.as_str().to_owned();
        let edit = PostEdit { title: Some(format!("Post {}, revised", self.n_actions)), content: Edit::Keep };
        posts(
            subject,
            match self.chance.random_range(0..3) {
                0 => Posts::Publish(key),
                1 => Posts::Edit(key, edit),
                _ => Posts::Archive(key),
            },
        )
    }

    fn delete_post(&mut self) -> (String, Posts) {
        let Some(key) = self.any(|app| &app.posts) else { return self.post() };
        self.posts.retain(|post| *post != key);
        posts(key.post_id.as_str().to_owned(), Posts::Delete(key))
    }

    fn comment(&mut self) -> (String, Posts) {
        let (user_id, post_id) = (self.any_user(), self.any_post());
        let comment_id = CommentId::from(self.new_id("c"));
        let created_at = self.now();
        self.comments.push(CommentKey { post_id: post_id.clone(), created_at, comment_id: comment_id.clone() });
        posts(comment_id.as_str().to_owned(), Posts::Comment(user_id, post_id, comment_id))
    }

    fn change_comment(&mut self) -> (String, Posts) {
        let Some(key) = self.any(|app| &app.comments) else { return self.comment() };
        let subject = key.comment_id.as_str().to_owned();
        posts(subject, if self.happens(1, 2) { Posts::EditComment(key) } else { Posts::DeleteComment(key) })
    }

    fn like(&mut self) -> (String, Posts) {
        let (user_id, post_id) = (self.any_user(), self.any_post());
        self.likes.push((user_id.clone(), post_id.clone()));
        posts(user_id.as_str().to_owned(), Posts::Like(user_id, post_id))
    }

    fn unlike(&mut self) -> (String, Posts) {
        let Some((user_id, post_id)) = self.any(|app| &app.likes) else { return self.like() };
        posts(user_id.as_str().to_owned(), Posts::Unlike(user_id, post_id))
    }

    fn view(&mut self) -> (String, Posts) {
        let (user_id, post_id) = (self.any_user(), self.any_post());
        posts(user_id.as_str().to_owned(), Posts::View(user_id, post_id))
    }
}

fn posts(subject: String, act: Posts) -> (String, Posts) {
    (subject, act)
}

impl Posts {
    pub(super) async fn perform<S: Store>(self, queries: &Queries<S>) -> Result<(), WriteError> {
        match self {
            Self::Create(author, post_id, new) => queries.create_post(&author, &post_id, new).await.map(drop),
            Self::Publish(post) => queries.publish_post(&post).await,
            Self::Edit(post, edit) => queries.edit_post(&post, edit).await,
            Self::Archive(post) => queries.archive_post(&post).await,
            Self::Delete(post) => queries.delete_post(&post).await.map(drop),
            Self::Comment(user_id, post_id, comment_id) => {
                queries.comment(&user_id, &post_id, &comment_id, "Well said.").await.map(drop)
            }
            Self::EditComment(comment) => queries.edit_comment(&comment, "Well said indeed.").await,
            Self::DeleteComment(comment) => queries.delete_comment(&comment).await.map(drop),
            Self::Like(user_id, post_id) => queries.like(&user_id, &post_id).await.map(drop),
            Self::Unlike(user_id, post_id) => queries.unlike(&user_id, &post_id).await.map(drop),
            Self::View(user_id, post_id) => queries.record_view(&user_id, &post_id).await.map(drop),
        }
    }
}
