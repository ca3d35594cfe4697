//! Clients that do not use the query interface: plain puts and deletes of whole items.

use entities::{
    groups::{Group, GroupKey},
    people::{User, UserKey},
    posts::{Comment, Post, PostKey, status},
    products::{Product, ProductKey},
    table::layout,
};
use keys::{entity::Entity, error::EntityError, item::Item, key::Key};
use rand::Rng as _;
use serde_dynamo::AttributeValue;

use super::{
    Application,
    act::{Act, Plain},
    user_id,
};

pub(super) fn put<E: Entity>(entity: &E) -> Result<Plain, EntityError> {
    Ok(Plain::Put(E::primary_key(entity.key())?, entity.to_item(&layout())?))
}

fn text(name: &str, value: impl Into<String>) -> (String, AttributeValue) {
    (name.to_owned(), AttributeValue::S(value.into()))
}

impl Application {
    /// The next action; the numbers are of 50.
    pub(super) fn of_foreign_clients(&mut self) -> Result<(String, Act), EntityError> {
        let (subject, writes) = match self.chance.random_range(0..50) {
            0..=14 => self.put_back()?,
            15..=24 => self.move_post()?,
            25..=36 => self.reassign_comment()?,
            37..=42 => self.import_user()?,
            _ => self.audit_line(),
        };
        Ok((subject, Act::Foreign(writes)))
    }

    /// Puts back a whole user, product or group that was read earlier.
    fn put_back(&mut self) -> Result<(String, Vec<Plain>), EntityError> {
        let stamp = Item::from([text("UpdatedAt", self.now())]);
        let (n, product, group) =
            (self.chance.random_range(0..4), self.any(|app| &app.products), self.any(|app| &app.groups));
        let (subject, key) = match (n, product, group) {
            (2, Some(product_id), _) => {
                (product_id.as_str().to_owned(), Product::primary_key(&ProductKey { product_id })?)
            }
            (3, _, Some(group_id)) => (group_id.as_str().to_owned(), Group::primary_key(&GroupKey { group_id })?),
            _ => {
                let user_id = self.any_user();
                (user_id.as_str().to_owned(), User::primary_key(&UserKey { user_id })?)
            }
        };
        Ok((subject, vec![Plain::PutBack(key, stamp)]))
    }

    /// Gives a post another author or date, so that its key changes.
    fn move_post(&mut self) -> Result<(String, Vec<Plain>), EntityError> {
        let Some(old) = self.any(|app| &app.posts) else { return Ok(self.audit_line()) };
        let key = PostKey { author_id: self.any_user(), created_at: self.now(), post_id: old.post_id.clone() };
        let post = Post {
            title: Some(format!("Moved post {}", self.n_actions)),
            status: Some(status::PUBLISHED.to_owned()),
            updated_at: Some(self.now()),
            key: key.clone(),
            ..Post::default()
        };
        self.posts.iter_mut().filter(|post| **post == old).for_each(|post| *post = key.clone());
        let writes = vec![Plain::Delete(Post::primary_key(&old)?), put(&post)?];
        Ok((old.post_id.as_str().to_owned(), writes))
    }

    /// Gives a comment another author, so that its foreign key changes.
    fn reassign_comment(&mut self) -> Result<(String, Vec<Plain>), EntityError> {
        let Some(key) = self.any(|app| &app.comments) else { return Ok(self.audit_line()) };
        let subject = key.comment_id.as_str().to_owned();
        let comment = Comment {
            user_id: Some(self.any_user()),
            text: Some("Well said, by another.".to_owned()),
            updated_at: Some(self.now()),
            key,
            ..Comment::default()
        };
        Ok((subject, vec![put(&comment)?]))
    }

    /// A user without a claim on the email address.
    fn import_user(&mut self) -> Result<(String, Vec<Plain>), EntityError> {
        let user_id = user_id(self.users.len());
        let user = User {
            name: Some(format!("{}, imported", user_id.as_str())),
            email: Some(format!("{}@example.net", user_id.as_str())),
            created_at: Some(self.now()),
            updated_at: Some(self.now()),
            key: UserKey { user_id: user_id.clone() },
            ..User::default()
        };
        self.users.push(user_id.clone());
        Ok((user_id.as_str().to_owned(), vec![put(&user)?]))
    }

    /// An item of an undeclared entity.
    fn audit_line(&mut self) -> (String, Vec<Plain>) {
        let key = Key::new(format!("AUDIT#{}", self.n_actions), "LINE");
        let mut item = layout().key_item(&key);
        item.extend([text("UpdatedAt", self.now())]);
        if self.happens(1, 2) {
            item.extend([text("EntityType", "AuditLine")]);
        }
        (key.pk.clone(), vec![Plain::Put(key, item)])
    }
}
