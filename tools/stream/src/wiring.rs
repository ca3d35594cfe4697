//! The mapping and its connections to the outside, which all parts of a running mapping share.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::checkpoint::Checkpoints;
use crate::function::LambdaFunction;
use crate::mapping::Mapping;
use crate::progress::Observer;
use crate::response::Destination;
use crate::source::StreamApi;

/// The wall clock, injected so that tests can control the age of records.
pub(crate) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// A mapping and its connections to the outside.
pub(crate) struct Wiring {
    pub(crate) mapping: Mapping,
    pub(crate) api: Arc<dyn StreamApi>,
    pub(crate) function: Arc<dyn LambdaFunction>,
    pub(crate) checkpoints: Arc<dyn Checkpoints>,
    pub(crate) destination: Arc<dyn Destination>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) clock: WallClock,
}

impl Wiring {
    pub(crate) fn trouble(&self, message: &str) {
        self.observer.trouble(&self.mapping.name, message);
    }
}

/// A problem of one or several tasks, reported once until it is over.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    is_reported: AtomicBool,
}

impl Complaint {
    pub(crate) fn report(&self, wiring: &Wiring, message: &str) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            wiring.trouble(message);
        }
    }

    pub(crate) fn over(&self) {
        self.is_reported.store(false, Ordering::Relaxed);
    }
}

/// An error and its causes in one line, without the causes that an error already quotes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !line.contains(&text) {
            // Writing to a string cannot fail.
            write!(line, ": {text}").unwrap_or_default();
        }
        source = cause.source();
    }
    line
}
