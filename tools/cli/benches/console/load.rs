//! Writes at a steady rate, and the lag of some of them.

use std::{fmt, sync::Arc, time::Duration};

use aws_sdk_dynamodb::Client;
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    database::{TABLE, key, key_item, put},
    items::{follow, like, post, user},
};

const NOON: &str = "2024-03-01T12:00:00.000Z";

/// People who are followed, and posts that are liked.
const TARGETS: u64 = 50;

/// Time between two reads of a mirror that is waited for.
const READ_EVERY: Duration = Duration::from_millis(5);

/// Watched follows a second.
const WATCHED: u64 = 10;

/// A client that writes.
pub(crate) struct SteadyLoad {
    client: Client,
    /// Changes a second.
    rate: u32,
    /// Changes so far.
    n: u64,
}

/// What was written, and how late the service was.
pub(crate) struct RanLoad {
    n: u64,
    elapsed: Duration,
    pub(crate) lags_ms: Vec<u64>,
}

impl SteadyLoad {
    pub(crate) fn new(client: Client, rate: u32) -> Self {
        Self { client, rate, n: 0 }
    }

    /// Writes what is followed and liked.
    pub(crate) async fn begin(&self) {
        for n in 0..TARGETS {
            put(&self.client, user(&format!("v{n}"), "Somebody", NOON)).await;
            put(&self.client, post("v0", &format!("p{n}"), NOON, "published", "Notes")).await;
        }
    }

    /// Writes for so long, whether the answers come or not.
    pub(crate) async fn run(&mut self, time: Duration) -> RanLoad {
        let (began, first) = (Instant::now(), self.n);
        let lags = Arc::new(Mutex::new(Vec::new()));
        let mut ticks = interval(Duration::from_secs(1) / self.rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut writes = JoinSet::new();
        let every = 4 * (u64::from(self.rate) / 4 / WATCHED).max(1);
        while began.elapsed() < time {
            ticks.tick().await;
            let (client, n, lags) = (self.client.clone(), self.n, Arc::clone(&lags));
            self.n += 1;
            writes.spawn(async move {
                let (person, target) = (format!("u{n}"), n % TARGETS);
                if n % 4 != 0 {
                    return put(&client, like(&person, &format!("p{target}"), NOON)).await;
                }
                put(&client, follow(&person, &format!("v{target}"), NOON)).await;
                if n % every == 0 {
                    let written = Instant::now();
                    mirrored(&client, &person, target).await;
                    lags.lock().await.push(u64::try_from(written.elapsed().as_millis()).unwrap_or(u64::MAX));
                }
            });
            while writes.try_join_next().is_some() {}
        }
        let elapsed = began.elapsed();
        while writes.join_next().await.is_some() {}
        let lags_ms = std::mem::take(&mut *lags.lock().await);
        RanLoad { n: self.n - first, elapsed, lags_ms }
    }
}

/// Waits until the mirror of a follow is there.
async fn mirrored(client: &Client, person: &str, target: u64) {
    let key = key_item(&key(format!("USER#v{target}"), format!("FOLLOWER#{person}")));
    let mut looks = interval(READ_EVERY);
    loop {
        looks.tick().await;
        let read = client.get_item().table_name(TABLE).set_key(Some(key.clone())).consistent_read(true).send().await;
        if read.expect("the database answers").item.is_some() {
            return;
        }
    }
}

impl fmt::Display for RanLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lags = self.lags_ms.clone();
        let [p50, p99, max] = [50, 99, 100].map(|at| percentile(&mut lags, at));
        let n = f64::from(u32::try_from(self.n).unwrap_or(u32::MAX));
        let rate = n / self.elapsed.as_secs_f64();
        write!(f, "{rate:.1} changes a second; lag of {} follows: p50 {p50} ms, p99 {p99} ms, max {max} ms", lags.len())
    }
}

/// A percentile of some times; 0 of none.
pub(crate) fn percentile(times_ms: &mut [u64], percent: usize) -> u64 {
    times_ms.sort_unstable();
    let at = (times_ms.len() * percent).div_ceil(100).saturating_sub(1);
    times_ms.get(at).copied().unwrap_or_default()
}
