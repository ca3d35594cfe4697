//! Users, follows, posts with comments and likes, and groups; and foreign clients, which put and delete whole items
//! without a condition.

use derive::write::{Action, Table, Write};
use keys::{item::Item, key::Key};
use rand::Rng as _;
use serde_dynamo::AttributeValue;

use super::{AppAction, Application, BEGIN_MS, Drawn, Step, action, field, key, lorem, text, user_id, user_key};

/// Number of groups that are created before the first membership.
const GROUPS_MIN: usize = 3;

/// Lifetime of a view in seconds: 30 days.
const VIEW_SECONDS: u64 = 2_592_000;

impl Application {
    // ---- Users ----

    /// The next action. The numbers are out of 270.
    pub(super) fn of_people(&mut self) -> Drawn {
        match self.chance.random_range(0..270) {
            0..=49 => self.sign_up(),
            50..=99 => self.edit_profile(),
            100..=107 => {
                let user = self.any_user();
                action(&user, [self.items.delete("User", &user_key(&user))])
            }
            108..=219 => self.follow(),
            _ => match self.any("Follow") {
                Some(follow) => action(&field(&follow, "FollowerId"), [self.items.delete("Follow", &follow)]),
                None => self.follow(),
            },
        }
    }

    pub(super) fn sign_up(&mut self) -> Drawn {
        let user = user_id(self.n_known("User"));
        // Sometimes the address of another user, so that the claim on it fails.
        let taken = if self.happens(1, 20) { self.any("User") } else { None };
        let email = format!("{}@example.com", taken.map_or_else(|| user.clone(), |taken| field(&taken, "UserId")));
        let avatar = format!("https://example.com/{}.png", self.items.n_actions());
        self.remember("User", &user_key(&user));
        let claim = self.items.create("EmailClaim", &key([("Email", &email)]), &[text("UserId", &user)])?;
        action(&user, [Ok(claim), self.items.user(&user, &format!("{user}, who is new"), Some(avatar))])
    }

    fn edit_profile(&mut self) -> Drawn {
        let (user, n) = (self.any_user(), self.items.n_actions());
        let edited = |attribute| self.items.update("User", &user_key(&user), &[attribute]);
        match self.chance.random_range(0..6) {
            0..=2 => action(&user, [edited(text("Name", format!("{user} the {n}th")))]),
            3 => action(&user, [edited(text("Avatar", format!("https://example.com/{n}.png")))]),
            4 => action(&user, [edited(("Avatar", None))]),
            _ => {
                let of = if self.happens(1, 4) { self.any_user() } else { user.clone() };
                let email = format!("{of}@example.{}", if n.is_multiple_of(2) { "org" } else { "com" });
                let claim = self.items.create("EmailClaim", &key([("Email", &email)]), &[text("UserId", &user)])?;
                action(&user, [Ok(claim), self.items.update("User", &user_key(&user), &[text("Email", email)])])
            }
        }
    }

    /// One user follows another. In half of the cases, the other follows back.
    fn follow(&mut self) -> Drawn {
        let (one, other) = (self.any_user(), self.any_user());
        let mut steps = Vec::new();
        let back = self.happens(1, 2).then_some((&other, &one));
        for (one, other) in [(&one, &other)].into_iter().chain(back) {
            let follow = key([("FollowerId", one), ("FolloweeId", other)]);
            self.remember("Follow", &follow);
            steps.push(Step::Write(self.items.create("Follow", &follow, &[])?));
        }
        Ok(AppAction { subject: one, steps })
    }

    // ---- Posts ----

    /// The next action. The numbers are out of 270.
    pub(super) fn of_posts(&mut self) -> Drawn {
        match self.chance.random_range(0..270) {
            0..=44 => self.post(),
            45..=76 => self.change_post(),
            77..=134 => self.comment(),
            135..=150 => self.change_comment(),
            151..=216 => self.like(),
            217..=234 => match self.any("Like") {
                Some(like) => action(&field(&like, "UserId"), [self.items.delete("Like", &like)]),
                None => self.like(),
            },
            _ => {
                let (user, post, now) = (self.any_user(), self.any_post(), self.items.now());
                let view = key([("UserId", &user), ("ViewedAt", &now), ("PostId", &post)]);
                let expires = AttributeValue::N((BEGIN_MS / 1_000 + VIEW_SECONDS).to_string());
                action(&user, [self.items.create("View", &view, &[("ExpiresAt", Some(expires))])])
            }
        }
    }

    fn post(&mut self) -> Drawn {
        let (author, post, title) = (self.any_user(), self.items.new_id("p"), self.new_name("Post"));
        let fields = self.items.new_post(&author, &post);
        self.remember("Post", &fields);
        if self.happens(2, 3) {
            return action(&post, [self.items.post(&author, &post, &title)]);
        }
        let draft = [text("Title", title), text("Content", lorem()), text("Status", "draft")];
        action(&post, [self.items.create("Post", &fields, &draft)])
    }

    fn change_post(&mut self) -> Drawn {
        let Some(post) = self.any("Post") else { return self.post() };
        let title = format!("{}, revised", self.new_name("Post"));
        let changed = |attribute| self.items.update("Post", &post, &[attribute]);
        let write = match self.chance.random_range(0..4) {
            0 => changed(text("Status", "published")),
            1 => changed(text("Title", title)),
            2 => changed(text("Status", "archived")),
            _ => self.items.delete("Post", &post),
        };
        action(&field(&post, "PostId"), [write])
    }

    fn comment(&mut self) -> Drawn {
        let (user, post, comment) = (self.any_user(), self.any_post(), self.items.new_id("c"));
        let fields = self.items.new_comment(&post, &comment);
        self.remember("Comment", &fields);
        action(&comment, [self.items.comment(&post, &comment, &user)])
    }

    fn change_comment(&mut self) -> Drawn {
        let Some(comment) = self.any("Comment") else { return self.comment() };
        let write = if self.happens(1, 2) {
            self.items.update("Comment", &comment, &[text("Text", "Well said indeed.")])
        } else {
            self.items.delete("Comment", &comment)
        };
        action(&field(&comment, "CommentId"), [write])
    }

    fn like(&mut self) -> Drawn {
        let (user, post) = (self.any_user(), self.any_post());
        let like = key([("UserId", &user), ("PostId", &post)]);
        self.remember("Like", &like);
        action(&user, [self.items.create("Like", &like, &[])])
    }

    // ---- Groups ----

    /// The next action. The numbers are out of 70.
    pub(super) fn of_groups(&mut self) -> Drawn {
        let n = self.chance.random_range(0..70);
        let group = if self.n_known("Group") < GROUPS_MIN { None } else { self.any("Group") };
        let (Some(group), true) = (group, n > 3) else {
            let (id, name) = (self.items.new_id("g"), self.new_name("Group"));
            self.remember("Group", &key([("GroupId", &id)]));
            return action(&id, [self.items.create("Group", &key([("GroupId", &id)]), &[text("Name", name)])]);
        };
        let id = field(&group, "GroupId");
        match n {
            0..=13 => {
                let name = format!("{}, renamed", self.new_name("Group"));
                action(&id, [self.items.update("Group", &group, &[text("Name", name)])])
            }
            14 => action(&id, [self.items.delete("Group", &group)]),
            _ => self.of_memberships(n, &id),
        }
    }

    fn of_memberships(&mut self, n: u32, group: &str) -> Drawn {
        let role = text("Role", self.role());
        let membership = if n <= 44 { None } else { self.any("Membership") };
        let Some(membership) = membership else {
            let (user, joined) = (self.any_user(), text("JoinedAt", self.items.now()));
            let fields = key([("UserId", &user), ("GroupId", group)]);
            self.remember("Membership", &fields);
            return action(&user, [self.items.create("Membership", &fields, &[role, joined])]);
        };
        let user = field(&membership, "UserId");
        if n <= 54 {
            return action(&user, [self.items.update("Membership", &membership, &[role])]);
        }
        action(&user, [self.items.delete("Membership", &membership)])
    }
}

// ---- Foreign clients ----

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
