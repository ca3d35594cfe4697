//! A mixed workload of an application and some foreign clients. A seed always gives the same writes.
//!
//! The application writes single items, on the condition that an item is new or exists. Its knowledge may be outdated,
//! so some conditions fail. The foreign clients put whole items without a condition, including items that they read
//! long before. The order is arbitrary: a comment may come before its post, and a follow before both users.

pub(crate) mod client;
mod foreign;
pub(crate) mod items;
mod places;
mod shop;
mod social;

use std::collections::BTreeMap;

use derive::{schema::Schema, write::Write};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use client::{AppAction, Step};
use items::{Items, KeyFields, key};

/// Users who sign up before anything else happens.
const USERS_MIN: usize = 20;

/// The application, with its knowledge of its own actions. It does not know which of them were refused.
pub(crate) struct Application {
    chance: StdRng,
    items: Items,
    /// Keys of the items that it created, by entity.
    known: BTreeMap<&'static str, Vec<KeyFields>>,
    /// The parents of folders and the managers of employees.
    parents: BTreeMap<String, String>,
    /// The names of folders.
    names: BTreeMap<String, String>,
    /// The products of orders.
    lines: BTreeMap<String, Vec<String>>,
}

/// An action, or the error that a key does not fit the schema.
type Drawn = anyhow::Result<AppAction>;

/// An action with these writes.
fn action<const N: usize>(subject: &str, writes: [anyhow::Result<Write>; N]) -> Drawn {
    let steps = writes.into_iter().map(|write| write.map(Step::Write)).collect::<anyhow::Result<_>>()?;
    Ok(AppAction { subject: subject.to_owned(), steps })
}

/// The value of a key field.
fn field(fields: &KeyFields, name: &str) -> String {
    fields.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone()).unwrap_or_default()
}

impl Application {
    /// An application that has not written anything yet.
    pub(crate) fn new(schema: Schema, seed: u64) -> Self {
        Self {
            chance: StdRng::seed_from_u64(seed),
            items: Items::new(schema),
            known: BTreeMap::new(),
            parents: BTreeMap::new(),
            names: BTreeMap::new(),
            lines: BTreeMap::new(),
        }
    }

    /// Draws the next action. The numbers are percentages.
    ///
    /// # Errors
    ///
    /// Fails if a key does not fit the schema.
    pub(crate) fn next_action(&mut self) -> Drawn {
        self.items.begin();
        if self.n_known("User") < USERS_MIN {
            return self.sign_up();
        }
        match self.chance.random_range(0..100) {
            0..=26 => self.of_people(),
            27..=53 => self.of_posts(),
            54..=60 => self.of_groups(),
            61..=69 => self.of_organizations(),
            70..=78 => self.of_files(),
            79..=91 => self.of_the_shop(),
            92..=94 => self.of_readings(),
            _ => self.of_foreign_clients(),
        }
    }

    /// A name that no other action uses, such as `Group 12`.
    fn new_name(&self, what: &str) -> String {
        format!("{what} {}", self.items.n_actions())
    }

    fn n_known(&self, entity: &str) -> usize {
        self.known.get(entity).map_or(0, Vec::len)
    }

    fn remember(&mut self, entity: &'static str, fields: &KeyFields) {
        self.known.entry(entity).or_default().push(fields.clone());
    }

    /// Remembers the new key of an item.
    fn moved(&mut self, entity: &str, old: &KeyFields, new: &KeyFields) {
        let known = self.known.get_mut(entity).into_iter().flatten();
        known.filter(|fields| *fields == old).for_each(|fields| new.clone_into(fields));
    }

    /// A random item among those that it created; `None` if there are none yet.
    fn any(&mut self, entity: &str) -> Option<KeyFields> {
        let n = self.n_known(entity);
        let at = if n == 0 { 0 } else { self.chance.random_range(0..n) };
        self.known.get(entity)?.get(at).cloned()
    }

    /// True in `times` of `of` cases.
    fn happens(&mut self, times: u32, of: u32) -> bool {
        self.chance.random_ratio(times, of)
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        let at = self.chance.random_range(0..texts.len().max(1));
        texts.get(at).copied().unwrap_or_default()
    }

    fn any_user(&mut self) -> String {
        // One user in forty does not exist, or not yet.
        if self.happens(1, 40) {
            return user_id(self.n_known("User") + self.chance.random_range(0..5));
        }
        self.any("User").map(|user| field(&user, "UserId")).unwrap_or_default()
    }

    fn any_post(&mut self) -> String {
        match if self.happens(1, 40) { None } else { self.any("Post") } {
            Some(post) => field(&post, "PostId"),
            None => format!("missing-{}", self.chance.random_range(0..5)),
        }
    }

    fn role(&mut self) -> &'static str {
        if self.happens(1, 5) { "admin" } else { "member" }
    }
}

/// Some ids contain characters that have a meaning in keys: `#` and `%`.
pub(crate) fn user_id(at: usize) -> String {
    match at % 10 {
        7 => format!("u{at}#x"),
        8 => format!("u{at}%23"),
        _ => format!("u{at}"),
    }
}

/// The key of a user.
fn user_key(user: &str) -> KeyFields {
    key([("UserId", user)])
}
