//! `--scenario hot`: every user likes the same post. The exact count must be correct whenever the stream is quiet.

use derive::{query::Query, schema::Schema, write::Table};
use keys::{
    counter::{self, CounterKey, VALUE},
    key::Key,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde::Serialize;
use serde_dynamo::AttributeValue;
use store::Store as _;

use crate::commands::demo::{
    Running,
    famous::one,
    rounded,
    workload::{AppAction, Items, key, user_id},
};

const AUTHOR: &str = "author";

const POST: &str = "hot#post";

/// Number of possible first users; the seed selects one.
const FIRST_USERS: usize = 1_000_000;

/// Number of waves of likes. The stream becomes quiet after each.
const WAVES: u32 = 4;

/// The derivation that counts likes.
const LIKE_COUNT: &str = "like-count";

/// The report of the scenario. The names are stable.
#[derive(Debug, Serialize)]
pub(super) struct HotReport {
    likes: u32,
    /// The exact count at the end: the sum over the counter's home and satellites.
    exact: i64,
    /// The number of items of the counter: its home, and the satellites over which it has spread.
    counter_items: usize,
    /// Derived write units per like, since the first like.
    wcu_per_like: f64,
    /// The number of likes at each comparison of the exact count.
    #[serde(skip)]
    quiet_at: Vec<u32>,
}

/// Runs the scenario. Fails if the stream is quiet and the exact count differs from the number of likes.
pub(super) async fn run(running: &mut Running<'_>) -> anyhow::Result<HotReport> {
    let likes = running.args.writes();
    let mut hot = HotPost::new((*running.schema).clone(), running.args.seed);
    let setting = hot.setting()?;
    running.set(setting).await?;
    let units_before = running.book.book().derived_units();
    let post = hot.items.key("PostDetail", &key([("PostId", POST)]))?;
    let (mut n_done, mut exact, mut counter_items, mut quiet_at) = (0, 0, 0, Vec::new());
    for wave in 1..=WAVES {
        // The last wave includes the remainder of the division.
        let until = if wave == WAVES { likes } else { likes / WAVES * wave };
        running.write((n_done..until).map(|_| hot.like())).await?;
        n_done = until;
        running.quiet().await?;
        (exact, counter_items) = exact_count(running, &post).await?;
        compare(&post, exact, n_done)?;
        quiet_at.push(n_done);
    }
    let units = running.book.book().derived_units() - units_before;
    Ok(HotReport { likes, exact, counter_items, wcu_per_like: rounded(units / f64::from(likes)), quiet_at })
}

/// The sum over the counter's home and satellites, and the number of these items.
async fn exact_count(running: &Running<'_>, post: &Key) -> anyhow::Result<(i64, usize)> {
    let query = Query::prefix(None, &post.pk, counter::prefix(post));
    let (mut count, mut n_items, mut after) = (0_i64, 0, None);
    loop {
        let page = running.metered.query(Table::Main, &query, after).await?;
        for item in &page.items {
            let counter = running.schema.layout.key(item).and_then(|key| CounterKey::parse(&key));
            if let (Some(counter), Some(AttributeValue::N(value))) = (counter, item.get(VALUE))
                && counter.derivation == LIKE_COUNT
            {
                count = count.saturating_add(value.parse()?);
                n_items += 1;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok((count, n_items));
        }
    }
}

/// Fails if the exact count differs from the number of likes so far.
fn compare(post: &Key, exact: i64, n_likes: u32) -> anyhow::Result<()> {
    if exact == i64::from(n_likes) {
        return Ok(());
    }
    anyhow::bail!("{post}: the stream is quiet after {n_likes} likes, and the exact count of them is {exact}")
}

/// Draws the next user who likes the post.
struct HotPost {
    items: Items,
    first_user: usize,
}

impl HotPost {
    fn new(schema: Schema, seed: u64) -> Self {
        let first_user = StdRng::seed_from_u64(seed).random_range(0..FIRST_USERS);
        Self { items: Items::new(schema), first_user }
    }

    /// The actions before the likes: the author signs up, and publishes the post.
    fn setting(&mut self) -> anyhow::Result<Vec<AppAction>> {
        let mut actions = Vec::new();
        for is_post in [false, true] {
            self.items.begin();
            let write = if is_post {
                self.items.post(AUTHOR, POST, "The post that everybody likes")?
            } else {
                self.items.user(AUTHOR, "Ada", None)?
            };
            actions.push(one(AUTHOR, write));
        }
        Ok(actions)
    }

    /// A like by the next user.
    fn like(&mut self) -> anyhow::Result<AppAction> {
        self.items.begin();
        let user = user_id(self.first_user + usize::try_from(self.items.n_actions()).unwrap_or(usize::MAX));
        let like = self.items.create("Like", &key([("UserId", &user), ("PostId", POST)]), &[])?;
        Ok(one(&user, like))
    }
}

impl HotReport {
    pub(super) fn lines(&self) -> Vec<String> {
        let quiet_at: Vec<String> = self.quiet_at.iter().map(u32::to_string).collect();
        vec![
            format!("  exact count {}, right each time the stream was quiet: at {}", self.exact, quiet_at.join(", ")),
            match self.counter_items {
                0 | 1 => "  the counter is one item: few stream shards feed it".to_owned(),
                n => format!("  the counter has spread: a home and {} satellites", n - 1),
            },
            format!("  {} derived write units a like", self.wcu_per_like),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_count_that_is_not_the_number_of_likes_fails_with_the_posts_key() {
        let post = Key::new("POST#hot", "METADATA");
        assert!(compare(&post, 250, 250).is_ok());
        for exact in [0, 249, 251, -250] {
            let line = format!(
                "POST#hot / METADATA: the stream is quiet after 250 likes, and the exact count of them is {exact}"
            );
            assert_eq!(compare(&post, exact, 250).unwrap_err().to_string(), line);
        }
    }

    fn drawn(seed: u64) -> Vec<String> {
        let mut hot = HotPost::new(catalogue::schema(), seed);
        let mut actions = hot.setting().unwrap();
        actions.extend((0..100).map(|_| hot.like().unwrap()));
        actions.iter().map(|action| format!("{action:?}")).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_likes() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }

    #[test]
    fn nobody_likes_it_twice() {
        let mut hot = HotPost::new(catalogue::schema(), 1);
        let users: BTreeSet<String> = (0..1_000).map(|_| hot.like().unwrap().subject).collect();
        assert_eq!(users.len(), 1_000);
    }
}
