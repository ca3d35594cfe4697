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
#[path = "../../../tests/end_to_end/items.rs"]
#[expect(dead_code, reason = "as above")]
mod items;
#[path = "console/load.rs"]
mod load;
#[path = "../../../tests/end_to_end/ripple.rs"]
#[expect(dead_code, reason = "as above")]
mod ripple;
#[path = "console/watched.rs"]
mod watched;

use std::time::Duration;

use chromium::Browser;
use ripple::Ripple;

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
    let mut load = load::SteadyLoad::new(client, options.rate);
    load.begin().await;
    drop(load.run(WARM_UP).await);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..2 * options.pairs {
        // Without, with, with, without: what grows meanwhile is the same for both.
        let is_with = [1, 2].contains(&(round % 4));
        browser.open(if is_with { &page } else { "about:blank" }, WINDOW);
        let watching = is_with.then(|| watched::Watching::begin(&mut browser));
        let ran = load.run(Duration::from_secs(options.seconds)).await;
        println!("{} the page: {ran}", if is_with { "with" } else { "without" });
        if let Some(watching) = watching {
            println!("  {}", watching.end(&mut browser));
        }
        if is_with { &mut with } else { &mut without }.extend(ran.lags_ms);
    }
    let (without, with) = (load::percentile(&mut without, 99), load::percentile(&mut with, 99));
    println!("lag p99 with the page is {:.2} times that without: {with} ms and {without} ms", ratio(with, without));
    Ok(())
}

fn ratio(with: u64, without: u64) -> f64 {
    let number = |ms: u64| f64::from(u32::try_from(ms).unwrap_or(u32::MAX));
    number(with) / number(without.max(1))
}
