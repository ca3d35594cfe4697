//! `--scenario hot`: everybody likes one post. The exact count is right whenever the stream is quiet.

use std::sync::Arc;

use entities::posts::{PostDetail, PostDetailKey};
use keys::entity::Entity as _;
use queries::Queries;
use serde::Serialize;
use workload::hot::HotPost;

use crate::commands::demo::Running;
use crate::commands::demo::rounded;

/// Number of waves of likes. The stream becomes quiet after each.
const WAVES: u32 = 4;

/// The derivation that counts likes.
const LIKE_COUNT: &str = "like-count";

/// The report of the scenario. The names are stable.
#[derive(Debug, Serialize)]
pub(super) struct HotReport {
    likes: u32,
    /// The exact count at the end, read by the query interface.
    exact: i64,
    /// Derived write units since the first like, per like.
    wcu_per_like: f64,
    /// The number of likes at each moment when the exact count was compared.
    #[serde(skip)]
    quiet_at: Vec<u32>,
}

/// Runs the scenario. Fails if the stream is quiet and the exact count differs from the number of likes.
pub(super) async fn run(running: &mut Running<'_>) -> anyhow::Result<HotReport> {
    let likes = running.args.writes;
    let mut hot = HotPost::new(running.args.seed);
    let setting = hot.setting();
    running.set(setting).await?;
    let units_before = running.book.book().derived_units();
    let post = PostDetailKey { post_id: hot.post().clone() };
    let (mut n_done, mut exact, mut quiet_at) = (0, 0, Vec::new());
    for wave in 1..=WAVES {
        // The last wave takes the remainder of the division.
        let until = if wave == WAVES { likes } else { likes / WAVES * wave };
        running.write((n_done..until).map(|_| Ok(hot.like()))).await?;
        n_done = until;
        running.quiet().await?;
        exact = exact_count(running, &post).await?;
        compare(&post, exact, n_done)?;
        quiet_at.push(n_done);
    }
    let units = running.book.book().derived_units() - units_before;
    Ok(HotReport { likes, exact, wcu_per_like: rounded(units / f64::from(likes)), quiet_at })
}

/// AP-040, as an application reads it.
async fn exact_count(running: &Running<'_>, post: &PostDetailKey) -> anyhow::Result<i64> {
    let queries = Queries::new(Arc::clone(&running.metered), || 0);
    let counts = queries.counts_of::<PostDetail>(post).await?;
    counts.of(LIKE_COUNT).value.ok_or_else(|| anyhow::anyhow!("the exact count of likes is more than a count can be"))
}

/// Fails if the exact count differs from the number of likes so far.
fn compare(post: &PostDetailKey, exact: i64, n_likes: u32) -> anyhow::Result<()> {
    if exact == i64::from(n_likes) {
        return Ok(());
    }
    let post = PostDetail::primary_key(post)?;
    anyhow::bail!("{post}: the stream is quiet after {n_likes} likes, and the exact count of them is {exact}")
}

impl HotReport {
    pub(super) fn lines(&self) -> Vec<String> {
        let quiet_at: Vec<String> = self.quiet_at.iter().map(u32::to_string).collect();
        vec![
            format!("  exact count {}, right each time the stream was quiet: at {}", self.exact, quiet_at.join(", ")),
            format!("  {} derived write units a like", self.wcu_per_like),
        ]
    }
}

#[cfg(test)]
mod tests {
    use entities::ids::PostId;

    use super::*;

    #[test]
    fn a_count_that_is_not_the_number_of_likes_fails_with_the_posts_key() {
        let post = PostDetailKey { post_id: PostId::from("hot") };
        assert!(compare(&post, 250, 250).is_ok());
        for exact in [0, 249, 251, -250] {
            let line = format!(
                "POST#hot / METADATA: the stream is quiet after 250 likes, and the exact count of them is {exact}"
            );
            assert_eq!(compare(&post, exact, 250).unwrap_err().to_string(), line);
        }
    }
}
