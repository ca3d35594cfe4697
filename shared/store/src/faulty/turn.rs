//! A turn for the others.

use std::{
    future::poll_fn,
    task::Poll::{Pending, Ready},
};

/// Is ready at the second poll, and asks for that one at once.
pub(super) async fn turn() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Ready(());
        }
        context.waker().wake_by_ref();
        Pending
    })
    .await;
}
