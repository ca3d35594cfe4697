//! A ledger's table stays with the kind that it began with.

use crate::ripple::{Ripple, ripple};

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
