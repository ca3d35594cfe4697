//! A ledger's table stays with the kind that it began with, until somebody switches it by the steps of docs/ledgers.md.

use aws_sdk_dynamodb::Client;
use support::database::embedded_endpoint;
use tokio::sync::watch;

use crate::{
    application::Application,
    database::{LEDGER, client, key, key_item},
    in_step,
    recount::right,
    ripple::{Ripple, ripple},
};

/// Actions of the application under each ledger.
const N_ACTIONS: usize = 150;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_of_one_kind_is_not_used_as_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", folder.path().to_str().unwrap()];
    let service = Ripple::embedded(&[&data[..], &["--ledger", "watermarks"]].concat()).await;
    assert_eq!(service.stop().code(), Some(0));

    let output = ripple("dev", &[&["--port", "0"], &data[..]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("ripple: the ledger is one of watermarks, and receipts is configured"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    let service = Ripple::embedded(&[&data[..], &["--ledger", "watermarks"]].concat()).await;
    assert_eq!(service.stop().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_with_data_is_switched_to_watermarks_and_back_by_the_documented_steps() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    for (seed, ledger) in (5..).zip(["receipts", "watermarks", "receipts"]) {
        let of = ["--endpoint", &endpoint, "--ledger", ledger];
        if seed > 5 {
            refused(&of, ledger);
            let settings = key("LEDGER", "SETTINGS");
            client.delete_item().table_name(LEDGER).set_key(Some(key_item(&settings))).send().await.unwrap();
        }
        let service = Ripple::dev(&of).await;
        written(&client, seed).await;
        // Nobody writes any more, and all is handled: what was written under each ledger is counted once.
        right(&client).await;
        in_step(&endpoint);
        assert_eq!(service.stop().code(), Some(0));
    }
}

/// The other kind does not start before the table is switched.
fn refused(arguments: &[&str], ledger: &str) {
    let output = ripple("dev", arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("and {ledger} is configured")) && said.contains("docs/ledgers.md"), "{said}");
}

/// An application writes beside the service.
async fn written(client: &Client, seed: u64) {
    let (_clients, here) = watch::channel(client.clone());
    let (done, _n_done) = watch::channel(0);
    Application::new(seed).run(N_ACTIONS, here, done).await;
}
