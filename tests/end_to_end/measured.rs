//! `ripple rates` counts what was written, and `ripple cost` takes what it prints.

use serde_json::Value;

use crate::{
    NOON,
    database::{client, put},
    items::{comment, like, user},
    ripple::{Ripple, json, ripple, said},
};

/// How many changes of an entity, or fan-outs of a derivation, a rate stands for.
fn n_of(rates: &Value, list: &str, by: &str, name: &str) -> f64 {
    let entry = rates[list].as_array().unwrap().iter().find(|entry| entry[by] == name);
    (entry.map_or(0.0, |entry| entry["a_second"].as_f64().unwrap()) * rates["seconds"].as_f64().unwrap()).round()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_are_those_of_what_was_written_and_cost_takes_them() {
    let mut service = Ripple::embedded(&[]).await;
    let client = client(&service.endpoint);
    for id in ["ann", "bob"] {
        put(&client, user(id, id, NOON)).await;
    }
    for id in ["c1", "c2", "c3"] {
        put(&client, comment("p", id, NOON, "ann", "Well said.")).await;
    }
    for post in ["p", "q"] {
        put(&client, like("bob", post, NOON)).await;
    }
    service.caught_up(&client).await;
    put(&client, user("ann", "Anna", NOON)).await;
    service.caught_up(&client).await;

    let (code, rates) = json("rates", &service.endpoint, &[]);
    assert_eq!(code, Some(0), "{rates}");
    for (entity, n) in [("User", 2.0), ("Comment", 3.0), ("Like", 2.0), ("Follow", 0.0)] {
        assert!((n_of(&rates, "entities", "entity", entity) - n).abs() < 0.5, "{entity}: {rates}");
    }
    assert!((n_of(&rates, "fan_outs", "derivation", "comment-author") - 1.0).abs() < 0.5, "{rates}");
    let fan_outs = rates["fan_outs"].as_array().unwrap();
    let items = fan_outs.iter().find(|it| it["derivation"] == "comment-author").map(|it| it["items"].as_f64());
    assert_eq!(items, Some(Some(3.0)), "the three comments were written again, after each had got a name: {rates}");
    let targets = rates["targets"].as_array().unwrap();
    let likes = targets.iter().find(|it| it["derivation"] == "like-count").map(|it| it["targets"].as_u64());
    assert_eq!(likes, Some(Some(2)));

    let options = said("rates", &service.endpoint, &[]).stdout;
    let words: Vec<&str> = options.split_whitespace().collect();
    let cost = ripple("cost", &words).output().unwrap();
    assert!(cost.status.success(), "{options}: {}", String::from_utf8_lossy(&cost.stderr));
}
