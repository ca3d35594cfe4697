//! Futures that are polled by hand, so that the scheduler chooses which of them continues.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

/// Most turns of a task that runs alone. After these it counts as endless.
const TURNS_MAX: usize = 100_000;

/// A future that runs beside others, one turn at a time.
pub(crate) struct Task<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    gone: Gone,
}

/// Is a caller gone? Then its task is dropped at its next stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gone {
    is_gone: Arc<AtomicBool>,
    is_unnoted: Arc<AtomicBool>,
}

/// The state of a task after a turn.
pub(crate) enum Turn<T> {
    Runs,
    Ended(T),
    /// Its caller is gone; the task is to be dropped.
    Gone,
}

impl Gone {
    /// Another caller of the same process: both are gone at once.
    pub(crate) fn beside(&self) -> Self {
        Self { is_gone: Arc::clone(&self.is_gone), is_unnoted: Arc::default() }
    }

    pub(crate) fn set(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Was the end of its attempt written? If not, the next attempt assumes that it died.
    pub(crate) fn noted(&self, is_noted: bool) {
        self.is_unnoted.store(!is_noted, Ordering::Relaxed);
    }

    pub(crate) fn is_unnoted(&self) -> bool {
        self.is_unnoted.load(Ordering::Relaxed)
    }
}

impl<T> Task<T> {
    /// A task that has not begun.
    pub(crate) fn new(gone: &Gone, future: impl Future<Output = T> + 'static) -> Self {
        Self { future: Box::pin(future), gone: gone.clone() }
    }

    /// Runs it until its next stop.
    pub(crate) fn turn(&mut self) -> Turn<T> {
        let polled = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            _ if self.gone.is_set() => Turn::Gone,
            Poll::Ready(value) => Turn::Ended(value),
            Poll::Pending => Turn::Runs,
        }
    }

    /// Runs it for a turn. True when it has ended.
    pub(crate) fn ends(&mut self) -> bool {
        matches!(self.turn(), Turn::Ended(_))
    }

    /// Runs it alone to its end; `None` when its caller is gone before.
    pub(crate) fn finish(&mut self) -> Option<T> {
        for _ in 0..TURNS_MAX {
            match self.turn() {
                Turn::Runs => {}
                Turn::Ended(value) => return Some(value),
                Turn::Gone => return None,
            }
        }
        panic!("after {TURNS_MAX} turns it still runs");
    }
}

/// The value of a future that waits for nothing.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the model answers at once"),
    }
}
