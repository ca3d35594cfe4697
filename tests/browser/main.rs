//! The console in a browser: each view with real data of a running `ripple dev`, narrow and wide, dark and light, by
//! keyboard, and held to axe-core's rules.
//!
//! Without Chromium the tests say that they were skipped. With `BROWSER_TESTS` set, as in `.ci/run`, that is a failure.
//! With `UPDATE_SCREENSHOTS` set they write the pictures of `docs/console.md`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by a panic, and prints what it skipped"
)]

#[expect(dead_code, reason = "the benchmark of the console uses the rest")]
mod chromium;
#[path = "../end_to_end/database.rs"]
#[expect(dead_code, reason = "the other tests of the built command use all of it")]
mod database;
#[path = "../end_to_end/items.rs"]
#[expect(dead_code, reason = "as above")]
mod items;
#[path = "../end_to_end/ripple.rs"]
#[expect(dead_code, reason = "as above")]
mod ripple;
mod views;

const NOON: &str = "2024-03-01T12:00:00.000Z";
