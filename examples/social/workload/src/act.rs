//! An action as data, and how it is performed through the query interface.

use keys::{item::Item, key::Key};
use queries::{Queries, writes::readings::NewReading};
use store::Store;

use super::{
    act_error::ActError, files::Files, groups::Groups, organizations::Organizations, people::People, posts::Posts,
    shop::Shop,
};

/// One action of the application, at its time.
#[derive(Clone, Debug)]
pub struct AppAction {
    /// Time of the action, which no other action has, in milliseconds since the epoch.
    pub now_ms: u64,
    /// What the action concerns. Actions of one subject are performed in order.
    pub subject: String,
    /// What is done.
    pub act: Act,
}

/// What an action does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Users, and who follows whom.
    People(People),
    /// Posts, comments and likes.
    Posts(Posts),
    /// Groups and their members.
    Groups(Groups),
    /// Organizations, their teams, members and employees.
    Organizations(Organizations),
    /// Folders and files.
    Files(Files),
    /// Products, orders, reviews and carts.
    Shop(Shop),
    /// Readings of one sensor.
    Readings(Vec<NewReading>),
    /// Plain writes of a client that does not use the query interface, in order.
    Foreign(Vec<Plain>),
}

/// A plain write.
#[derive(Clone, Debug)]
pub enum Plain {
    /// Puts a whole item.
    Put(Key, Item),
    /// Deletes an item.
    Delete(Key),
    /// Puts back a whole item as it was read earlier, stale derived attributes included.
    PutBack(Key, Item),
}

/// Performs an action through the query interface. Foreign clients do not use this.
///
/// # Errors
///
/// Fails if the query interface refuses the action, or if the database fails: see [`ActError::is_refusal`].
pub async fn perform<S: Store>(act: Act, queries: &Queries<S>) -> Result<(), ActError> {
    match act {
        Act::People(act) => act.perform(queries).await,
        Act::Posts(act) => Ok(act.perform(queries).await?),
        Act::Groups(act) => Ok(act.perform(queries).await?),
        Act::Organizations(act) => Ok(act.perform(queries).await?),
        Act::Files(act) => Ok(act.perform(queries).await?),
        Act::Shop(act) => act.perform(queries).await,
        Act::Readings(readings) => match readings.as_slice() {
            [reading] => Ok(queries.add_reading(reading).await.map(drop)?),
            readings => Ok(queries.add_readings(readings).await.map(drop)?),
        },
        Act::Foreign(_) => Ok(()),
    }
}
