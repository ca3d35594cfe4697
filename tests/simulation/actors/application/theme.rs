//! Writes of the run's theme: see [`Theme`].

use derive::write::{Action, Table, Update};
use keys::item::Item;
use store::memory::MemoryStore;

use crate::{
    items::{USERS, indexed, s},
    scene::Theme,
    world::Application,
};

/// Followers of a famous user.
const N_FANS: usize = 7;

/// Of a hundred writes, how many are of the theme.
const OF_THE_THEME_PERCENT: usize = 45;

impl Application {
    /// Writes something of the run's theme; false when the write is to be any other.
    pub(super) fn keep_to_theme(&mut self, table: &MemoryStore) -> bool {
        if self.scene.theme == Theme::Mixed || !self.scene.chance.percent(OF_THE_THEME_PERCENT) {
            return false;
        }
        match self.scene.theme {
            Theme::Mixed => {}
            Theme::Famous => self.be_famous(table),
            Theme::Moves => self.move_about(table),
            Theme::Removals => self.remove_owners(table),
        }
        true
    }

    /// Somebody or something gets another name, mostly a user with followers.
    pub(crate) fn change_a_name(&mut self) {
        let scene = std::sync::Arc::clone(&self.scene);
        if let Some(drawn) = &scene.drawn {
            return self.change_a_word(drawn);
        }
        let table = scene.database.memory();
        if scene.chance.percent(70) { self.be_famous(table) } else { self.rename(table) }
    }

    fn be_famous(&mut self, table: &MemoryStore) {
        let schema = std::sync::Arc::clone(&self.schema);
        let fan = format!("fan{:02}", self.scene.chance.below(N_FANS));
        let star = *self.scene.chance.one_of(&USERS).unwrap();
        let follow = schema.entity("Follow").unwrap();
        let key = follow.build(&[("FollowerId", fan.as_str()), ("FolloweeId", star)].into_iter().collect()).unwrap();
        if !table.view(Table::Main, |items| items.contains_key(&key)) {
            let mut item = schema.layout.key_item(&key);
            item.extend(schema.layout.type_of(&follow.name));
            return self.put(table, indexed(&schema, follow, &key, item));
        }
        let user = schema.entity("User").unwrap();
        let key = user.build(&[("UserId", star)].into_iter().collect()).unwrap();
        // A name that nobody had before, so that an old one shows.
        let name = format!("{star} the {}", self.scene.chance.below(1_000_000));
        let mut set = Item::from([("Name".to_owned(), s(&name))]);
        set.extend(schema.layout.type_of(&user.name));
        self.act(table, key, Action::Update(Update::set(set)));
    }
}
