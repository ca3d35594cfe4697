//! Step mode of the console: the stream is held, each record is delivered as a test says, and the values come right.

use aws_sdk_dynamodb::Client;

use crate::{
    NOON,
    console::Console,
    database::{client, key, put, scan},
    items::{follow, user},
    ripple::Ripple,
};

/// Every scene, for the shipped table under either ledger, ends with the value right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scene_ends_with_the_value_right() {
    for ledger in ["receipts", "watermarks"] {
        let mut service = Ripple::embedded(&["--ledger", ledger]).await;
        let (client, console) = (client(&service.endpoint), Console::of(&service));
        service.caught_up(&client).await;
        let page = console.get("/step").body;
        let scenes: Vec<&str> =
            page.split("name=\"scene\" value=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
        assert_eq!(scenes.len(), 9, "{page}");
        for scene in scenes {
            let ended = played(&console, scene);
            let states: Vec<&str> = ended.split("<dt>so it is</dt>").skip(1).collect();
            assert!(states.last().unwrap().contains("class=\"right\""), "{ledger} {scene}: {ended}");
            // A scene that shows nothing wrong, or nothing that comes again, would show nothing.
            let shows = match scene {
                "repeated" | "at-once" => "It is counted already",
                "killed" => "The invocation was killed before it could answer",
                "old-record" => "as it should be, so nothing is written there",
                "parked" => "It cannot be applied, so it is parked",
                "counter" => "1 repaired, 0 left to an operator",
                _ => "restored",
            };
            assert!(ended.contains(shows), "{ledger} {scene}: {ended}");
        }
    }
}

/// The items of a scene are made of a manifest's declarations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scene_fits_the_table_of_a_manifest_or_says_why_not() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");
    let service = Ripple::embedded(&["--config", manifest]).await;
    let console = Console::of(&service);
    for scene in ["repeated", "old-record", "deleted", "counter"] {
        let ended = played(&console, scene);
        assert!(ended.contains("The scene has ended, and the value is <span class=\"right\">"), "{scene}: {ended}");
    }
    // It counts, and copies nothing.
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/02-review-average/ripple.toml");
    let service = Ripple::embedded(&["--config", manifest]).await;
    let console = Console::of(&service);
    let refused = console.order("/step", "/step/scene/begin", &[("scene", "old-record")]);
    assert!(refused.status == 400 && refused.body.contains("copies nothing"), "{}", refused.body);
}

/// Plays a scene to its end, and gives its page.
fn played(console: &Console, scene: &str) -> String {
    let begun = console.order("/step", "/step/scene/begin", &[("scene", scene)]);
    assert_eq!(begun.status, 303, "{scene}: {}", begun.body);
    loop {
        let page = console.get("/step/scene").body;
        if !page.contains(">Do it</button>") {
            return page;
        }
        let next = console.click("/step/scene", "Do it");
        assert_eq!(next.status, 303, "{scene}: {}", next.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_record_is_delivered_again_twice_at_once_and_to_an_invocation_that_is_killed() {
    for ledger in ["receipts", "watermarks"] {
        let mut service = Ripple::embedded(&["--ledger", ledger]).await;
        let (client, console) = (client(&service.endpoint), Console::of(&service));
        for item in [user("ann", "Ann", NOON), user("bob", "Bob", NOON)] {
            put(&client, item).await;
        }
        service.caught_up(&client).await;
        assert_eq!(console.click("/step", "Pause the stream").status, 303);
        put(&client, follow("bob", "ann", NOON)).await;
        let held = console.shows("/step", &["FOLLOWS#ann", "<h3>aggregate</h3>"]).await;
        assert!(held.contains("The stream is paused."), "{held}");
        assert_eq!(followers(&client).await, None, "nothing is delivered by itself");

        let aggregate = [("function", "aggregate")];
        let deliver = |fields: &[(&str, &str)]| {
            let ordered = console.order("/step", "/step/deliver", &[&aggregate[..], fields].concat());
            assert_eq!(ordered.status, 303, "{}", ordered.body);
            console.get("/step").body
        };
        console.until("/step", |answer| answer.body.matches("<b>Next: </b>").count() == 2).await;
        let killed = deliver(&[("way", "killed"), ("writes", "1")]);
        assert!(
            killed.contains("The invocation was killed") && killed.contains("Lambda delivers it again"),
            "{killed}"
        );
        let flow = console.get("/flow?outcome=killed").body;
        assert!(flow.contains("killed after ") && flow.contains("; Lambda delivers the record again"), "{flow}");
        let event = flow.split("/change?event=").nth(1).and_then(|it| it.split('"').next()).unwrap().to_owned();
        let twice = deliver(&[("way", "at-once")]);
        // Each of the two counts may be written by either invocation.
        assert!(twice.contains("again, twice at once"), "{twice}");
        let number = twice.split("name=\"again\" value=\"").nth(1).and_then(|it| it.split('"').next()).unwrap();
        let again = deliver(&[("way", "once"), ("again", number)]);
        assert!(again.contains("It is counted already"), "{again}");
        let followed = console.get(&format!("/change?event={event}")).body;
        assert!(followed.contains(" was killed after "), "{followed}");
        let object = console.get("/flow.json?outcome=killed").body;
        assert!(object.contains("\"outcome\":\"killed\""), "{object}");

        assert_eq!(console.click("/step", "Resume the stream").status, 303);
        service.caught_up(&client).await;
        assert_eq!(followers(&client).await.as_deref(), Some("1"), "{ledger}");
        for (fields, why) in [
            (&[("function", "none"), ("way", "once")][..], "There is no function none"),
            (&[("function", "aggregate"), ("way", "thrice")], "A record is delivered"),
            (&[("function", "aggregate"), ("way", "killed"), ("writes", "9")], "after 1 to 5 writes"),
        ] {
            let refused = console.order("/step", "/step/deliver", fields);
            assert!(refused.status == 400 && refused.body.contains(why), "{}", refused.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_whose_stream_is_held_stops_and_loses_nothing() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let mut service = Ripple::embedded(&["--data", folder]).await;
    let (before, console) = (client(&service.endpoint), Console::of(&service));
    for item in [user("ann", "Ann", NOON), user("bob", "Bob", NOON)] {
        put(&before, item).await;
    }
    service.caught_up(&before).await;
    assert_eq!(console.click("/step", "Pause the stream").status, 303);
    put(&before, follow("bob", "ann", NOON)).await;
    console.shows("/step", &["FOLLOWS#ann"]).await;
    assert!(service.stop().success());
    let mut service = Ripple::embedded(&["--data", folder]).await;
    let client = client(&service.endpoint);
    service.caught_up(&client).await;
    assert_eq!(followers(&client).await.as_deref(), Some("1"));
}

/// The count on Ann's profile.
async fn followers(client: &Client) -> Option<String> {
    let items = scan(client, crate::TABLE).await;
    let profile = items.get(&key("USER#ann", "PROFILE"))?;
    profile.get("FollowerCount").and_then(|count| count.as_n().ok().cloned())
}
