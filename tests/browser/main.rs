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
#[path = "../end_to_end/ripple.rs"]
#[expect(dead_code, reason = "as above")]
mod ripple;

use std::{fs, path::PathBuf};

use aws_sdk_dynamodb::Client;
use serde_json::json;

use crate::{
    chromium::Browser,
    database::{
        Key, alter, client, comment, delete, follow, key, like, make_unaddable, n, post, put, put_each, s, user,
    },
    ripple::Ripple,
};

const NOON: &str = "2024-03-01T12:00:00.000Z";

/// A telephone and a wide screen.
const SIZES: [(u32, u32); 2] = [(360, 740), (1600, 1000)];

/// Size of the pictures in the documentation.
const PICTURE: (u32, u32) = (1200, 760);

/// The views, each with its name and address.
const VIEWS: [(&str, &str); 12] = [
    ("overview", "/"),
    ("flow", "/flow"),
    ("step", "/step"),
    ("item", "/item?pk=USER%23ada&sk=PROFILE"),
    ("item-that-waits", "/item?pk=USER%23bob&sk=PROFILE"),
    ("query", "/collection?pk=USER%23ada"),
    ("parked-changes", "/parked"),
    ("redrive", "/parked/try"),
    ("jobs", "/jobs"),
    ("verify", "/verify"),
    ("cost", "/cost"),
    ("design", "/design"),
];

/// A service with data of each view: users, posts, a rename, a parked change.
async fn with_data() -> (Ripple, Client, Key) {
    let mut service = Ripple::embedded(&["--ledger", "watermarks"]).await;
    let client = client(&service.endpoint);
    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    make_unaddable(&client, &counter).await;
    put_each(
        &client,
        [
            user("ada", "Ada", NOON),
            user("bob", "Bob", NOON),
            user("grace", "Grace", NOON),
            follow("grace", "ada", NOON),
            follow("bob", "ada", NOON),
            post("ada", "p1", NOON, "published", "Notes"),
            comment("p1", "c1", NOON, "grace", "First!"),
            like("grace", "p1", NOON),
        ],
    )
    .await;
    alter(&client, &key("USER#ada", "PROFILE"), "Name", Some(s("Ada Lovelace"))).await;
    service.line(|line| line.contains(" parked,")).await;
    service.caught_up(&client).await;
    (service, client, counter)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_view_fits_a_telephone_and_a_wide_screen_and_everybody_can_use_it() {
    let Some(mut browser) = Browser::start() else { return };
    let (service, ..) = with_data().await;
    let mut wrong = Vec::new();
    for (name, path) in VIEWS {
        for (size, is_dark) in [(SIZES[0], false), (SIZES[1], true)] {
            browser.dark(is_dark);
            browser.open(&format!("http://{}{path}", service.console), size);
            let what = format!("{name} at {} px", size.0);
            let wide = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            if wide != json!(0) {
                wrong.push(format!("{what}: {wide} px too wide"));
            }
            wrong.extend(browser.violations().into_iter().map(|it| format!("{what}: {it}")));
        }
        browser.dark(false);
        browser.open(&format!("http://{}{path}", service.console), PICTURE);
        keep(name, &mut browser);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rename_ripples_through_the_flow_and_a_parked_change_is_redriven_by_clicking() {
    let Some(mut browser) = Browser::start() else { return };
    let (service, client, counter) = with_data().await;
    browser.open(&format!("http://{}/flow?derivation=followee-name", service.console), PICTURE);
    alter(&client, &key("USER#ada", "PROFILE"), "Name", Some(s("Countess"))).await;
    browser.until("document.querySelector('#flow').textContent.includes('Countess')");
    browser.click("what followed");
    keep("change", &mut browser);
    browser.until("document.querySelector('main').textContent.includes('copied')");

    delete(&client, &counter).await;
    browser.open(&format!("http://{}/parked", service.console), PICTURE);
    browser.click("What a redrive would do");
    assert_eq!(
        browser.evaluate("document.querySelector('main').textContent.includes('It would be applied')"),
        json!(true)
    );
    browser.click("Redrive");
    assert_eq!(browser.evaluate("document.querySelector('main').textContent.includes('applied')"), json!(true));
    browser.click("What is parked now");
    assert_eq!(
        browser.evaluate("document.querySelector('main').textContent.includes('Nothing is parked')"),
        json!(true)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_reads_in_the_flow_stays_in_its_place_while_changes_come() {
    let Some(mut browser) = Browser::start() else { return };
    let (mut service, client, _) = with_data().await;
    // Each follow is a change that is shown, however the functions get them.
    for number in 0..15 {
        put(&client, follow(&format!("reader{number}"), "ada", NOON)).await;
    }
    service.caught_up(&client).await;
    browser.open(&format!("http://{}/flow", service.console), PICTURE);
    let read = "document.getElementById(window.readId)";
    browser.until("document.querySelectorAll('#flow > *').length > 12");
    browser.evaluate(&format!(
        "window.readId = document.querySelectorAll('#flow > *')[8].id; {read}.scrollIntoView(); scrollBy(0, -150)"
    ));
    browser.until("scrollY > 300");
    let place = browser.evaluate(&format!("{read}.getBoundingClientRect().top"));
    for name in ["hedy", "joan", "mary", "alan"] {
        put(&client, user(name, name, NOON)).await;
        put(&client, follow(name, "ada", NOON)).await;
    }
    browser.until("document.querySelector('#flow').textContent.includes('alan')");
    service.caught_up(&client).await;
    let moved = browser.evaluate(&format!("Math.abs({read}.getBoundingClientRect().top - {place})"));
    assert!(moved.as_f64().unwrap() < 2.0, "it moved by {moved} px");
    let more = browser.evaluate(&format!("[...document.querySelectorAll('#flow > *')].indexOf({read}) > 8"));
    assert_eq!(more, json!(true), "changes came above it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scene_is_played_by_keyboard_and_a_wrong_count_is_repaired() {
    let Some(mut browser) = Browser::start() else { return };
    let (mut service, client, _) = with_data().await;
    browser.open(&format!("http://{}/step", service.console), PICTURE);
    browser.evaluate("[...document.querySelectorAll('.scenes li')].find((it) => it.textContent.includes('killed')).querySelector('button').focus()");
    browser.press("Enter", 13);
    browser.loaded();
    while browser.evaluate("[...document.querySelectorAll('button')].some((it) => it.textContent === 'Do it')")
        == json!(true)
    {
        browser.click("Do it");
    }
    keep("scene", &mut browser);
    let ended = browser.evaluate("document.querySelector('main').textContent");
    assert!(ended.as_str().unwrap().contains("The scene has ended, and the value is right"), "{ended}");
    browser.open(&format!("http://{}/step", service.console), PICTURE);
    keep("held", &mut browser);
    browser.click("Resume the stream");

    alter(&client, &key("USER#ada", "PROFILE#COUNT#post-count#00"), "Value", Some(n(9))).await;
    service.caught_up(&client).await;
    browser.open(&format!("http://{}/verify", service.console), PICTURE);
    browser.click("Verify");
    shows(&mut browser, "Wrong: 1").await;
    keep("findings", &mut browser);
    browser.click("Plan a repair");
    shows(&mut browser, "1 would be repaired").await;
    keep("plan", &mut browser);
    browser.click("Repair");
    shows(&mut browser, "1 repaired").await;
}

/// Waits until a page that comes again by itself shows this.
async fn shows(browser: &mut Browser, text: &str) {
    let script = format!("document.querySelector('main')?.textContent.includes({}) ?? false", json!(text));
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
    for _ in 0..1_200 {
        looks.tick().await;
        if browser.look(&script) == Some(json!(true)) {
            return;
        }
    }
    panic!("{text} is not shown: {}", browser.evaluate("document.querySelector('main').textContent"));
}

/// Keeps a picture of the page for the documentation, if that is asked for and the page is in it.
fn keep(name: &str, browser: &mut Browser) {
    let page = include_str!("../../docs/console.md");
    if page.contains(&format!("console/{name}.png")) && std::env::var_os("UPDATE_SCREENSHOTS").is_some() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/console");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), browser.picture()).unwrap();
    }
}
