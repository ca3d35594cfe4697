//! Clients that put and delete whole items without a condition.

use derive::write::{Action, Table, Write};
use keys::{item::Item, key::Key};
use rand::Rng as _;
use serde_dynamo::AttributeValue;

use super::{
    Application, Drawn, action,
    client::{AppAction, Step},
    field,
    items::{key, text},
    user_id, user_key,
};

impl Application {
    /// The next action. The numbers are out of 50.
    pub(super) fn of_foreign_clients(&mut self) -> Drawn {
        match self.chance.random_range(0..50) {
            0..=14 => self.put_back(),
            15..=24 => self.move_post(),
            25..=36 => self.reassign_comment(),
            37..=42 => self.import_user(),
            _ => self.audit_line(),
        }
    }

    /// Overwrites a user, product or group with the whole item that was read earlier.
    fn put_back(&mut self) -> Drawn {
        let (entity, id) = match self.chance.random_range(0..4) {
            2 => ("Product", "ProductId"),
            3 => ("Group", "GroupId"),
            _ => ("User", "UserId"),
        };
        let Some(fields) = self.any(entity) else { return self.audit_line() };
        let stamp = Item::from([("UpdatedAt".to_owned(), AttributeValue::S(self.items.now()))]);
        let steps = vec![Step::PutBack(self.items.key(entity, &fields)?, stamp)];
        Ok(AppAction { subject: field(&fields, id), steps })
    }

    /// Gives a post another author and date, so that its key changes.
    fn move_post(&mut self) -> Drawn {
        let Some(old) = self.any("Post") else { return self.audit_line() };
        let (author, post) = (self.any_user(), field(&old, "PostId"));
        let new = self.items.new_post(&author, &post);
        self.moved("Post", &old, &new);
        let attributes = [text("Title", self.new_name("Moved post")), text("Status", "published")];
        action(&post, [self.items.delete("Post", &old), self.items.put("Post", &new, &attributes)])
    }

    /// Gives a comment another author, so that its foreign key changes.
    fn reassign_comment(&mut self) -> Drawn {
        let Some(comment) = self.any("Comment") else { return self.audit_line() };
        let attributes = [text("UserId", self.any_user()), text("Text", "Well said, by another.")];
        action(&field(&comment, "CommentId"), [self.items.put("Comment", &comment, &attributes)])
    }

    /// Adds a user without a claim on the email address.
    fn import_user(&mut self) -> Drawn {
        let user = user_id(self.n_known("User"));
        self.remember("User", &user_key(&user));
        let attributes = [text("Name", format!("{user}, imported")), text("Email", format!("{user}@example.net"))];
        action(&user, [self.items.put("User", &key([("UserId", &user)]), &attributes)])
    }

    /// Adds an item of an undeclared entity, with or without a type.
    fn audit_line(&mut self) -> Drawn {
        let key = Key::new(format!("AUDIT#{}", self.items.n_actions()), "LINE");
        let attribute = |name: &str, text: &str| (name.to_owned(), AttributeValue::S(text.to_owned()));
        let mut item = Item::from([attribute("PK", &key.pk), attribute("SK", &key.sk)]);
        item.extend([attribute("UpdatedAt", &self.items.now())]);
        item.extend(self.happens(1, 2).then(|| attribute("EntityType", "AuditLine")));
        let subject = key.pk.clone();
        action(&subject, [Ok(Write { table: Table::Main, key, action: Action::Put(item), guard: None })])
    }
}
