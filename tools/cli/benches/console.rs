//! What the page of the flow costs: the browser's time a frame, its memory, and the lag of the service beside it.
//!
//! Run `cargo bench -p cli --bench console`, with `-- --seconds 60 --pairs 2 --rate 200` for other loads. It needs Chromium, as
//! `tests/browser` does. There are two processes besides this one: `ripple dev`, and Chromium.
//!
//! A client writes so many changes a second, three likes to one follow. Each round of that is either *without* a page or
//! *with* the page of the flow open in the browser; they alternate as without, with, with, without.
//!
//! - *Frame*: a loop of `requestAnimationFrame` in the page notes the time between two frames. 60 frames a second are 16.7 ms.
//! - *Memory*: the used JavaScript heap, and the memory of the page's process, shared pages in parts (PSS), at the end of each
//!   round with the page.
//! - *Lag*: ten of the follows a second are watched, from the answer of their write until their mirror is read. They are read
//!   every 5 ms, so a lag is up to that much too long.
//! - *Script* and *layout*: what the page's thread did meanwhile, as Chromium reports it.
//!
//! On a machine with shared processors, all processes wait for processor time; compare the rounds of one run.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "it prints what it measured, and stops when it cannot"
)]

#[path = "../../../tests/browser/chromium.rs"]
#[expect(dead_code, reason = "the tests of the views use all of it")]
mod chromium;
#[path = "../../../tests/end_to_end/database.rs"]
#[expect(dead_code, reason = "the tests of the built command use all of it")]
mod database;
#[path = "../../../tests/end_to_end/ripple.rs"]
#[expect(dead_code, reason = "as above")]
mod ripple;

use std::{fmt, fs, process::Command, sync::Arc, time::Duration};

use aws_sdk_dynamodb::Client;
use serde_json::Value;
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    chromium::Browser,
    database::{TABLE, follow, key, key_item, like, post, put, user},
    ripple::Ripple,
};

/// Size of the window.
const WINDOW: (u32, u32) = (1600, 1000);

/// Time of the first load, which is not measured.
const WARM_UP: Duration = Duration::from_secs(10);

struct Options {
    seconds: u64,
    pairs: usize,
    rate: u32,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = Options::of(&arguments)?;
    tokio::runtime::Runtime::new()?.block_on(measure(&options))
}

impl Options {
    fn of(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self { seconds: 60, pairs: 2, rate: 200 };
        // What `cargo bench` gives to all.
        let mut arguments = arguments.iter().map(String::as_str).filter(|argument| *argument != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_default();
            match name {
                "--seconds" => options.seconds = value.parse()?,
                "--pairs" => options.pairs = value.parse()?,
                "--rate" => options.rate = value.parse()?,
                other => anyhow::bail!("{other} is none of --seconds, --pairs and --rate"),
            }
        }
        Ok(options)
    }
}

async fn measure(options: &Options) -> anyhow::Result<()> {
    let Some(mut browser) = Browser::start() else { anyhow::bail!("it needs Chromium") };
    let service = Ripple::embedded(&[]).await;
    let client = database::client(&service.endpoint);
    let page = format!("http://{}/flow", service.console);
    let mut load = SteadyLoad::new(client, options.rate);
    load.begin().await;
    drop(load.run(WARM_UP).await);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..2 * options.pairs {
        // Without, with, with, without: what grows meanwhile is the same for both.
        let is_with = [1, 2].contains(&(round % 4));
        browser.open(if is_with { &page } else { "about:blank" }, WINDOW);
        let watching = is_with.then(|| Watching::begin(&mut browser));
        let ran = load.run(Duration::from_secs(options.seconds)).await;
        println!("{} the page: {ran}", if is_with { "with" } else { "without" });
        if let Some(watching) = watching {
            println!("  {}", watching.end(&mut browser));
        }
        if is_with { &mut with } else { &mut without }.extend(ran.lags_ms);
    }
    let (without, with) = (percentile(&mut without, 99), percentile(&mut with, 99));
    println!("lag p99 with the page is {:.2} times that without: {with} ms and {without} ms", ratio(with, without));
    Ok(())
}

fn ratio(with: u64, without: u64) -> f64 {
    let number = |ms: u64| f64::from(u32::try_from(ms).unwrap_or(u32::MAX));
    number(with) / number(without.max(1))
}

// ---- Writes at a steady rate, and the lag of some of them ----

const NOON: &str = "2024-03-01T12:00:00.000Z";

/// People who are followed, and posts that are liked.
const TARGETS: u64 = 50;

/// Time between two reads of a mirror that does not exist yet.
const READ_EVERY: Duration = Duration::from_millis(5);

/// Watched follows a second.
const WATCHED: u64 = 10;

/// A client that writes.
struct SteadyLoad {
    client: Client,
    /// Changes a second.
    rate: u32,
    /// Changes so far.
    n: u64,
}

/// The result of a load: what was written, and the lags.
struct RanLoad {
    n: u64,
    elapsed: Duration,
    lags_ms: Vec<u64>,
}

impl SteadyLoad {
    fn new(client: Client, rate: u32) -> Self {
        Self { client, rate, n: 0 }
    }

    /// Writes the users to follow and the posts to like.
    async fn begin(&self) {
        for n in 0..TARGETS {
            put(&self.client, user(&format!("v{n}"), "Somebody", NOON)).await;
            put(&self.client, post("v0", &format!("p{n}"), NOON, "published", "Notes")).await;
        }
    }

    /// Writes for this time, whether or not the responses keep pace.
    async fn run(&mut self, time: Duration) -> RanLoad {
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

/// Waits until the mirror of a follow exists.
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
fn percentile(times_ms: &mut [u64], percent: usize) -> u64 {
    times_ms.sort_unstable();
    let at = (times_ms.len() * percent).div_ceil(100).saturating_sub(1);
    times_ms.get(at).copied().unwrap_or_default()
}

// ---- What a page does in a browser: its frames, its memory, and the work of its thread ----

/// Notes the time between two frames, from now on.
const FRAMES: &str = "(() => { window.frames_ms = []; let last = performance.now();
    const next = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(next); };
    requestAnimationFrame((now) => { last = now; requestAnimationFrame(next); }); return true; })()";

/// Median, 99th percentile and number of these times, and how many changes the page shows.
const SUMMARY: &str = "(() => { const all = window.frames_ms.sort((a, b) => a - b);
    const at = (part) => all[Math.min(all.length - 1, Math.floor(all.length * part))];
    return [at(.5), at(.99), all.at(-1), all.length, document.querySelectorAll('#flow > article').length]; })()";

/// A page that is watched.
struct Watching {
    /// Seconds of work at the start.
    work: [f64; 4],
}

/// Metrics of Chromium, in seconds since the page began.
const WORK: [&str; 4] = ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration"];

impl Watching {
    fn begin(browser: &mut Browser) -> Self {
        browser.evaluate(FRAMES);
        Self { work: work(&browser.metrics()) }
    }

    /// The measurements as text.
    fn end(self, browser: &mut Browser) -> String {
        let frames: Vec<f64> = serde_json::from_value(browser.evaluate(SUMMARY)).unwrap();
        let metrics = browser.metrics();
        let heap_mb = metric(&metrics, "JSHeapUsedSize") / 1e6;
        let [script, layout, style, all] = work(&metrics);
        let [script_0, layout_0, style_0, all_0] = self.work;
        format!(
            "frame p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms, of {} frames; {} changes shown; heap {heap_mb:.1} MB, \
             process {:.1} MB; script {:.1} s, layout {:.1} s, style {:.1} s of {:.1} s of work",
            frames[0],
            frames[1],
            frames[2],
            frames[3],
            frames[4],
            page_mb(browser.pid()),
            script - script_0,
            layout - layout_0,
            style - style_0,
            all - all_0,
        )
    }
}

fn work(metrics: &Value) -> [f64; 4] {
    WORK.map(|name| metric(metrics, name))
}

fn metric(metrics: &Value, name: &str) -> f64 {
    let all = metrics["metrics"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["name"] == name).and_then(|it| it["value"].as_f64()).unwrap_or_default()
}

/// The memory of the largest process that shows a page, in MB. Shared memory counts in parts.
fn page_mb(browser: u32) -> f64 {
    let listed = Command::new("ps").args(["-eo", "pid=,ppid=,args="]).output().expect("ps runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let lines: Vec<(u32, u32, &str)> = listed.lines().filter_map(line).collect();
    let mut ours = vec![browser];
    // A child may be listed before its parent.
    for _ in 0..5 {
        let children = lines.iter().filter(|(pid, parent, _)| ours.contains(parent) && !ours.contains(pid));
        let children: Vec<u32> = children.map(|(pid, ..)| *pid).collect();
        ours.extend(children);
    }
    let pages = lines.iter().filter(|(pid, _, args)| ours.contains(pid) && args.contains("--type=renderer"));
    pages.map(|(pid, ..)| pss_kb(*pid)).fold(0.0, f64::max) / 1e3
}

fn line(line: &str) -> Option<(u32, u32, &str)> {
    let (pid, rest) = line.trim().split_once(' ')?;
    let (parent, args) = rest.trim().split_once(' ')?;
    Some((pid.parse().ok()?, parent.parse().ok()?, args))
}

fn pss_kb(pid: u32) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    pss.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
