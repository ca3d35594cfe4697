//! What the application does with users, follows and posts.

use entities::{
    ids::{CommentId, PostId, UserId},
    people::{Follow, FollowKey, User, UserKey},
    posts::{Comment, CommentKey, Like, LikeKey, Post, PostKey, View, ViewKey, status},
    table::layout,
};
use keys::{
    entity::{Entity, EntityKey},
    error::EntityError,
    item::Item,
    key::Key,
};
use rand::Rng as _;
use serde_dynamo::AttributeValue;

use super::{Action, Application, Ground, user_id};

pub(super) type Acted = Result<Action, EntityError>;

pub(super) fn put<E: Entity>(entity: &E) -> Result<Ground, EntityError> {
    Ok(Ground::Put(E::primary_key(entity.key())?, entity.to_item(&layout())?))
}

pub(super) fn delete<E: Entity>(key: &E::Key) -> Result<Ground, EntityError>
where
    E::Key: EntityKey,
{
    Ok(Ground::Delete(E::primary_key(key)?))
}

pub(super) fn text(name: &str, value: impl Into<String>) -> (String, AttributeValue) {
    (name.to_owned(), AttributeValue::S(value.into()))
}

fn name_of(id: &UserId, n: u64) -> String {
    format!("{} the {n}th", id.as_str())
}

impl Application {
    pub(super) fn update(&self, key: Key, set: Vec<(String, AttributeValue)>, remove: Vec<&'static str>) -> Ground {
        let mut set: Item = set.into_iter().collect();
        set.extend([text("UpdatedAt", self.now())]);
        Ground::Update(key, set, remove)
    }

    pub(super) fn sign_up(&mut self) -> Acted {
        let user_id = user_id(self.users.len());
        let user = User {
            name: Some(name_of(&user_id, 0)),
            email: Some(format!("{}@example.com", user_id.as_str())),
            avatar: Some(format!("https://example.com/{}.png", self.n_actions)),
            created_at: Some(self.now()),
            updated_at: Some(self.now()),
            key: UserKey { user_id: user_id.clone() },
            ..User::default()
        };
        self.users.push(user_id);
        Ok(vec![put(&user)?])
    }

    pub(super) fn rename_user(&mut self) -> Acted {
        let user_id = self.any(|app| &app.users).unwrap_or_default();
        let name = text("Name", name_of(&user_id, self.n_actions));
        let key = User::primary_key(&UserKey { user_id })?;
        if self.chance.random_ratio(1, 4) {
            return Ok(vec![self.update(key, vec![name], vec!["Avatar"])]);
        }
        Ok(vec![self.update(key, vec![name], Vec::new())])
    }

    /// Puts back a whole user that was read before.
    pub(super) fn touch_user(&mut self) -> Acted {
        let user_id = self.any(|app| &app.users).unwrap_or_default();
        let stamp = Item::from([text("UpdatedAt", self.now())]);
        Ok(vec![Ground::PutBack(User::primary_key(&UserKey { user_id })?, stamp)])
    }

    pub(super) fn delete_user(&mut self) -> Acted {
        let user_id = self.any(|app| &app.users).unwrap_or_default();
        Ok(vec![delete::<User>(&UserKey { user_id })?])
    }

    pub(super) fn follow(&mut self) -> Acted {
        let (one, other) = (self.any_user(), self.any_user());
        let mut pairs = vec![(one.clone(), other.clone())];
        if self.chance.random_ratio(1, 2) {
            pairs.push((other, one));
        }
        self.follows.extend(pairs.clone());
        let follow = |(follower_id, followee_id)| Follow {
            key: FollowKey { follower_id, followee_id },
            created_at: Some(self.now()),
            updated_at: Some(self.now()),
            ..Follow::default()
        };
        pairs.into_iter().map(|pair| put(&follow(pair))).collect()
    }

    pub(super) fn unfollow(&mut self) -> Acted {
        let (follower_id, followee_id) = self.any(|app| &app.follows).unwrap_or_default();
        if follower_id == UserId::default() {
            return self.follow();
        }
        Ok(vec![delete::<Follow>(&FollowKey { follower_id, followee_id })?])
    }

    pub(super) fn post(&mut self) -> Acted {
        let key = PostKey {
            author_id: self.any_user(),
            created_at: self.now(),
            post_id: PostId::from(format!("p{}", self.posts.len())),
        };
        self.posts.push(key.clone());
        let published = self.chance.random_ratio(2, 3);
        let post = Post {
            title: Some(format!("Post {}", self.n_actions)),
            content: Some("Lorem ipsum dolor sit amet. ".repeat(8)),
            status: Some(if published { status::PUBLISHED } else { status::DRAFT }.to_owned()),
            updated_at: Some(self.now()),
            key,
        };
        Ok(vec![put(&post)?])
    }

    pub(super) fn change_status(&mut self) -> Acted {
        let Some(key) = self.any(|app| &app.posts) else { return self.post() };
        let status = [status::DRAFT, status::PUBLISHED, status::ARCHIVED];
        let status = status.get(self.chance.random_range(0..status.len())).copied().unwrap_or(status::DRAFT);
        let set = vec![text("Status", status), text("EntityType", Post::NAME)];
        Ok(vec![self.update(Post::primary_key(&key)?, set, Vec::new())])
    }

    /// A post gets another author or date: another key of the same post.
    pub(super) fn move_post(&mut self) -> Acted {
        let Some(old) = self.any(|app| &app.posts) else { return self.post() };
        let key = PostKey { author_id: self.any_user(), created_at: self.now(), post_id: old.post_id.clone() };
        let post = Post {
            title: Some(format!("Moved post {}", self.n_actions)),
            status: Some(status::PUBLISHED.to_owned()),
            updated_at: Some(self.now()),
            key: key.clone(),
            ..Post::default()
        };
        self.posts.iter_mut().filter(|post| **post == old).for_each(|post| *post = key.clone());
        Ok(vec![delete::<Post>(&old)?, put(&post)?])
    }

    pub(super) fn delete_post(&mut self) -> Acted {
        let Some(key) = self.any(|app| &app.posts) else { return self.post() };
        Ok(vec![delete::<Post>(&key)?])
    }

    pub(super) fn comment(&mut self) -> Acted {
        let key = CommentKey {
            post_id: self.any_post(),
            created_at: self.now(),
            comment_id: CommentId::from(format!("c{}", self.n_actions)),
        };
        self.comments.push(key.clone());
        let comment = Comment {
            user_id: Some(self.any_user()),
            text: Some("Well said.".to_owned()),
            updated_at: Some(self.now()),
            key,
            ..Comment::default()
        };
        Ok(vec![put(&comment)?])
    }

    /// A comment is somebody else's: its foreign key moves.
    pub(super) fn reassign_comment(&mut self) -> Acted {
        let Some(key) = self.any(|app| &app.comments) else { return self.comment() };
        let comment = Comment {
            user_id: Some(self.any_user()),
            text: Some("Well said, by another.".to_owned()),
            updated_at: Some(self.now()),
            key,
            ..Comment::default()
        };
        Ok(vec![put(&comment)?])
    }

    pub(super) fn delete_comment(&mut self) -> Acted {
        let Some(key) = self.any(|app| &app.comments) else { return self.comment() };
        Ok(vec![delete::<Comment>(&key)?])
    }

    pub(super) fn like(&mut self) -> Acted {
        let key = LikeKey { user_id: self.any_user(), post_id: self.any_post() };
        self.likes.push((key.user_id.clone(), key.post_id.clone()));
        let like = Like { key, created_at: Some(self.now()), updated_at: Some(self.now()) };
        Ok(vec![put(&like)?])
    }

    pub(super) fn unlike(&mut self) -> Acted {
        match self.any(|app| &app.likes) {
            None => self.like(),
            Some((user_id, post_id)) => Ok(vec![delete::<Like>(&LikeKey { user_id, post_id })?]),
        }
    }

    pub(super) fn view(&mut self) -> Acted {
        let key = ViewKey { user_id: self.any_user(), viewed_at: self.now(), post_id: self.any_post() };
        let view = View { updated_at: Some(self.now()), key, ..View::default() };
        Ok(vec![put(&view)?])
    }

    /// An item that is none of the service's.
    pub(super) fn foreign_item(&mut self) -> Action {
        let key = Key::new(format!("AUDIT#{}", self.n_actions), "LINE");
        let mut item = layout().key_item(&key);
        item.extend([text("UpdatedAt", self.now())]);
        if self.chance.random_ratio(1, 2) {
            item.extend([text("EntityType", "AuditLine")]);
        }
        vec![Ground::Put(key, item)]
    }
}
