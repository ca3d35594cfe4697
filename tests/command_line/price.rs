//! What a verification reads, beside a service that runs.

use support::database::client;
use tokio::runtime::Runtime;

use super::{
    input::Dev,
    ripple,
    waits::{follow, put, waited},
};

/// Segments in which a table is read where nothing else is said.
const SEGMENTS: f64 = 4.0;

/// 60 users with a follow, a mirror and counters each: more than 240 items. `verify` compares each with others.
#[test]
fn a_small_table_in_step_is_read_once_and_the_price_is_told_before() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    runtime.block_on(async {
        for name in 0..60 {
            let (pk, name) = (format!("USER#f{name}"), format!("Name {name}"));
            put(&client, &[("PK", &pk), ("SK", "PROFILE"), ("EntityType", "User"), ("Name", &name)]).await;
        }
        follow(&client, 0..60).await;
    });
    waited(&dev.endpoint);
    let described = runtime.block_on(client.describe_table().table_name("ripple").send()).unwrap().table.unwrap();
    let (n_items, bytes) = (described.item_count.unwrap(), described.table_size_bytes.unwrap());
    assert!(n_items > 240, "{n_items}");

    let verified = ripple(&["verify", "--endpoint", &dev.endpoint]);
    let price = f64::from(u32::try_from(bytes / 4_096).unwrap()) + SEGMENTS;
    let says = format!(
        "reading about {n_items} items, {} KB: about {price} read units, and more for what differs\n",
        u64::try_from(bytes).unwrap().div_ceil(1_000)
    );
    assert_eq!((verified.code, verified.stderr), (Some(0), says));

    let verified = ripple(&["verify", "--json", "--endpoint", &dev.endpoint]);
    let printed: serde_json::Value = serde_json::from_str(&verified.stdout).unwrap();
    let read_units = printed["read_units"].as_f64().unwrap();
    // The ledger's list of parked changes is one unit more.
    assert!(read_units <= price + 1.0, "{read_units} read units instead of {price}");
    assert!(read_units >= price - SEGMENTS, "{read_units} read units instead of {price}");
}
