//! An application that is not ours: it writes over few ids in any order, so that everything happens to everything.

use std::time::Duration;

use aws_sdk_dynamodb::{Client, error::SdkError};
use tokio::{
    sync::watch,
    time::{Instant, interval},
};

use crate::database::{
    Item, Key, TABLE, comment, follow, group, key, key_item, like, membership, post, s, segment, user, view,
};

/// Some ids hold the characters that join keys.
const USERS: [&str; 7] = ["ada", "bob", "cy", "dee", "u#1", "50%", "e#%23"];
const POSTS: [&str; 5] = ["p1", "p2", "p3", "p4", "p5"];
const GROUPS: [&str; 3] = ["g1", "g2", "g3"];
const COMMENTS: usize = 12;

/// How long a write is tried while the database is away.
const WRITE_WAIT: Duration = Duration::from_mins(1);

/// How often it is tried.
const WRITE_POLL: Duration = Duration::from_millis(20);

/// What the application does next. Doing it twice in a row is doing it once.
#[derive(Clone, Debug)]
enum Action {
    Put(Item),
    /// Sets an attribute, or removes it.
    Alter(Key, &'static str, Option<String>),
    Delete(Key),
    /// Reads an item, to put it back later.
    Read(Key),
}

/// The application.
pub(crate) struct Application {
    chance: u64,
    n_actions: usize,
    /// Whole items that it read, some long ago.
    read: Vec<Item>,
}

impl Application {
    /// An application that has done nothing yet. The same seed does the same.
    pub(crate) fn new(seed: u64) -> Self {
        Self { chance: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, n_actions: 0, read: Vec::new() }
    }

    /// Takes so many actions, at whichever database is there, and one more that marks the end. Counts them.
    pub(crate) async fn run(mut self, n_actions: usize, clients: watch::Receiver<Client>, done: watch::Sender<usize>) {
        for at in 0..n_actions {
            self.act(&clients).await;
            done.send_replace(at + 1);
        }
        self.take(Action::Put(follow("the last", "of all", &time(0))), &clients).await;
    }

    /// Takes one action, at whichever database is there.
    pub(crate) async fn act(&mut self, clients: &watch::Receiver<Client>) {
        let action = self.next();
        self.take(action, clients).await;
    }

    async fn take(&mut self, action: Action, clients: &watch::Receiver<Client>) {
        let deadline = Instant::now() + WRITE_WAIT;
        let mut again = interval(WRITE_POLL);
        loop {
            again.tick().await;
            let client = clients.borrow().clone();
            match self.send(&client, action.clone()).await {
                Ok(()) => return,
                Err(why) => assert!(Instant::now() < deadline, "no answer to {action:?}: {why}"),
            }
        }
    }

    /// Sends an action. The error is that the database is away.
    async fn send(&mut self, client: &Client, action: Action) -> Result<(), String> {
        match action {
            Action::Put(item) => {
                let sent = client.put_item().table_name(TABLE).set_item(Some(item)).send().await;
                answered(sent).map(drop)
            }
            Action::Alter(key, name, value) => {
                let update = client.update_item().table_name(TABLE).set_key(Some(key_item(&key)));
                let update = update.expression_attribute_names("#a", name);
                let update = match value {
                    Some(text) => update.update_expression("SET #a = :a").expression_attribute_values(":a", s(text)),
                    None => update.update_expression("REMOVE #a"),
                };
                answered(update.send().await).map(drop)
            }
            Action::Delete(key) => {
                let sent = client.delete_item().table_name(TABLE).set_key(Some(key_item(&key))).send().await;
                answered(sent).map(drop)
            }
            Action::Read(key) => {
                let sent = client.get_item().table_name(TABLE).set_key(Some(key_item(&key))).send().await;
                self.read.extend(answered(sent)?.item);
                Ok(())
            }
        }
    }

    fn next(&mut self) -> Action {
        self.n_actions += 1;
        let now = time(self.n_actions);
        let (one, other) = (self.any(&USERS), self.any(&USERS));
        let (about, group_id) = (self.any(&POSTS), self.any(&GROUPS));
        let profile = key(format!("USER#{}", segment(one)), "PROFILE");
        // A post id is claimed by several posts, and a comment keeps its time whoever writes it.
        let posted = time(self.below(2));
        let comment_id = self.below(COMMENTS);
        let commented = (format!("c{comment_id}"), time(comment_id));
        match self.below(100) {
            0..=9 => Action::Put(user(one, &format!("{one} the {}th", self.n_actions), &time(0))),
            10..=18 => Action::Alter(profile, "Name", Some(format!("{one} as of {now}"))),
            19..=20 => Action::Alter(profile, "Avatar", None),
            21..=23 => Action::Delete(profile),
            24..=37 => Action::Put(follow(one, other, &now)),
            38..=43 => Action::Delete(key_of(&follow(one, other, ""))),
            44..=52 => Action::Put(like(one, about, &now)),
            53..=56 => Action::Delete(key_of(&like(one, about, ""))),
            57..=63 => {
                let status = self.any(&["draft", "published", "published", "archived"]);
                Action::Put(post(one, about, &posted, status, &now))
            }
            64..=66 => Action::Delete(key_of(&post(one, about, &posted, "", ""))),
            67..=76 => Action::Put(comment(about, &commented.0, &commented.1, one, &now)),
            77..=79 => Action::Delete(key_of(&comment(about, &commented.0, &commented.1, "", ""))),
            80..=84 => Action::Put(membership(one, group_id, &now)),
            85..=86 => Action::Delete(key_of(&membership(one, group_id, ""))),
            87..=88 => Action::Put(group(group_id, &now)),
            89..=90 => Action::Put(view(one, about, &now)),
            91..=95 => Action::Read(match self.below(4) {
                0 => key_of(&follow(one, other, "")),
                1 => key_of(&comment(about, &commented.0, &commented.1, "", "")),
                2 => key_of(&membership(one, group_id, "")),
                _ => profile,
            }),
            _ => self.put_back(&now).unwrap_or(Action::Read(profile)),
        }
    }

    /// A whole item as it was when it was read, which may be deleted by now, with the derived attributes of then.
    fn put_back(&mut self, now: &str) -> Option<Action> {
        if self.read.is_empty() {
            return None;
        }
        let at = self.below(self.read.len());
        let mut item = self.read.swap_remove(at);
        item.insert("UpdatedAt".to_owned(), s(now));
        Some(Action::Put(item))
    }

    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A number below a limit: xorshift, which needs no crate.
    fn below(&mut self, limit: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        usize::try_from((self.chance >> 33) % limit as u64).unwrap()
    }
}

/// An answer; what the database refuses is a mistake in the test.
fn answered<T, E: std::fmt::Debug, R: std::fmt::Debug>(sent: Result<T, SdkError<E, R>>) -> Result<T, String> {
    match sent {
        Ok(output) => Ok(output),
        Err(SdkError::ServiceError(refused)) => panic!("{refused:?}"),
        Err(away) => Err(format!("{away:?}")),
    }
}

fn key_of(item: &Item) -> Key {
    key(item["PK"].as_s().unwrap(), item["SK"].as_s().unwrap())
}

/// The time of an action, ISO 8601 UTC in milliseconds.
fn time(at: usize) -> String {
    format!("2024-03-01T10:{:02}:{:02}.000Z", at / 60 % 60, at % 60)
}
