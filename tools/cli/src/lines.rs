//! What `ripple dev` prints while it runs: a line for each change that it makes, and a sentence for each problem.
//!
//! *Keeps true*: a line of a change fits a terminal of 80 columns; a sentence is said once, until what it says is over,
//! and names what is meant.
//!
//! *Example*: Grace follows Ada, whose profile exists, and one like of another application cannot be read.
//!
//! ```text
//! follower-count  USER#ada / PROFILE  +1
//! follower-mirror  made Follower USER#ada / FOLLOWER#grace
//! USER#eve / LIKE#7 cannot be read by like-count: PostAt is N, and `{PostAt:13}` wants S
//! ```

mod batch;
mod changes;
mod ignored;
mod sentences;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use derive::{catalogue::Catalogue, schema::Schema};
use engine::batch::Handled;
use functions::handler::Function;
use stream::progress::{Invocation, InvocationOutcome, NOTHING_RESPONDS};

use self::sentences::Said;
use crate::{
    exit::{print, report},
    service::Witness,
    words::counted,
};

/// Widest line, in columns.
const COLUMNS_MAX: usize = 80;

/// Items that a line names; of more it says how many.
const NAMED_MAX: usize = 3;

/// Prints what the functions do.
pub(crate) struct Lines {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    /// Is there a line for each batch too?
    is_verbose: bool,
    /// Do the functions run in another process?
    is_elsewhere: bool,
    endpoint: String,
    said: Mutex<Said>,
}

impl Lines {
    pub(crate) fn new(
        declared: (&Arc<Schema>, &Arc<Catalogue>),
        is_verbose: bool,
        is_elsewhere: bool,
        endpoint: &str,
    ) -> Self {
        let (schema, catalogue) = (Arc::clone(declared.0), Arc::clone(declared.1));
        let endpoint = endpoint.to_owned();
        Self { schema, catalogue, is_verbose, is_elsewhere, endpoint, said: Mutex::default() }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Lines {
    fn handled(&self, function: Function, handled: &Handled, elapsed: Duration) {
        for line in changes::lines(&self.schema, &self.catalogue, &handled.account.commits) {
            print(&line);
        }
        if self.is_verbose {
            print(&batch::lines(function, &handled.account, elapsed));
        }
        for sentence in self.said().new_of(&self.schema, function, handled) {
            report(&sentence);
        }
    }

    fn invoked(&self, invocation: &Invocation) {
        let Invocation { mapping, n_records, elapsed, .. } = invocation;
        let outcome = match &invocation.outcome {
            InvocationOutcome::Partial { lowest } => format!("to be tried again from {lowest}"),
            InvocationOutcome::Success => "done".to_owned(),
            InvocationOutcome::Failed { message } => {
                if let Some(sentence) = self.said().failed(mapping, message) {
                    report(&sentence);
                }
                return;
            }
        };
        if self.is_elsewhere {
            print(&format!("{mapping}  {}, {outcome}, {} ms", counted(*n_records, "record"), elapsed.as_millis()));
        }
    }

    fn responds(&self, is_so: bool) {
        if self.said().responds(is_so) {
            let what = if is_so { "responds again" } else { "does not respond: trying again until it does" };
            report(&format!("{} {what}", self.endpoint));
        }
    }

    fn trouble(&self, line: &str) {
        // While the database does not respond, everything else follows from that, and `responds` says it.
        if !line.ends_with(NOTHING_RESPONDS) && self.said().is_new_trouble(line) {
            report(line);
        }
    }
}
