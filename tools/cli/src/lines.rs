//! The output of a running `ripple dev`: a line for each derived write, and a sentence for each problem.
//!
//! *Keeps true*: a line fits a terminal of 80 columns. A sentence is printed once until its problem is over, and names
//! the item, type or function concerned.
//!
//! *Example*: Grace follows Ada, whose profile exists. A like by another application cannot be read.
//!
//! ```text
//! follower-count  USER#ada / PROFILE  +1
//! follower-mirror  created Follower USER#ada / FOLLOWER#grace
//! USER#eve / LIKE#7 cannot be read by like-count: PostAt is N, and `{PostAt:13}` takes a text: store a text, or link by text(PostAt)
//! ```

mod changes;
mod sentences;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use derive::{
    catalogue::Catalogue,
    change::Change,
    clock,
    schema::{Schema, Seen},
};
use engine::{
    account::{Account, Parked},
    batch::Handled,
    record::decode,
};
use functions::{config::Mode, handler::Function};
use keys::{item::text, job::JobKey};
use manifest::meant::meant;
use operate::objects::key;
use serde_json::{Map, Value, json};
use stream::progress::{Invocation, InvocationOutcome, NOTHING_RESPONDS};

use crate::{events::Audience, exit::print, lines::sentences::Said, service::Witness, words::counted};

/// Widest line, in columns.
const COLUMNS_MAX: usize = 80;

/// Maximum number of items that a sentence names. It counts the rest.
const NAMED_MAX: usize = 3;

/// Prints the work of the functions.
pub(crate) struct Lines {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    audience: Audience,
    /// True if each batch has a line too.
    is_verbose: bool,
    /// True if the functions run in another process.
    is_elsewhere: bool,
    mode: Mode,
    endpoint: String,
    said: Mutex<Said>,
}

impl Lines {
    pub(crate) fn new(
        declared: (&Arc<Schema>, &Arc<Catalogue>),
        audience: Audience,
        is_verbose: bool,
        is_elsewhere: bool,
        mode: Mode,
        endpoint: &str,
    ) -> Self {
        let (schema, catalogue) = (Arc::clone(declared.0), Arc::clone(declared.1));
        let endpoint = endpoint.to_owned();
        Self { schema, catalogue, audience, is_verbose, is_elsewhere, mode, endpoint, said: Mutex::default() }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Lines {
    fn handled(&self, function: Function, handled: &Handled, elapsed: Duration) {
        if self.audience == Audience::People {
            for line in changes::lines(&self.schema, &self.catalogue, &handled.account.commits, self.mode) {
                print(&line);
            }
        }
        if self.is_verbose || self.audience == Audience::Program {
            let line = || lines(function, &handled.account, elapsed);
            self.audience.print(line, "batch", || batch(function, handled, elapsed));
        }
        for sentence in self.said().new_of(&self.schema, function, handled) {
            self.audience.problem(&sentence);
        }
    }

    fn invoked(&self, invocation: &Invocation) {
        let Invocation { mapping, n_records, elapsed, .. } = invocation;
        let outcome = match &invocation.outcome {
            InvocationOutcome::Partial { lowest } => format!("to be tried again from {lowest}"),
            InvocationOutcome::Success => "done".to_owned(),
            InvocationOutcome::Failed { message } => {
                if let Some(sentence) = self.said().failed(mapping, message) {
                    self.audience.problem(&sentence);
                }
                return;
            }
        };
        if self.is_elsewhere {
            print(&format!("{mapping}  {}, {outcome}, {} ms", counted(*n_records, "record"), elapsed.as_millis()));
        }
    }

    // No function sees the record. So this is the only place that can report an item of an undeclared type.
    fn filtered_out(&self, record: &str) {
        let Ok(change) = decode(&self.schema.layout, record) else { return };
        if let Some(sentence) = self.said().ignored(&self.schema, &change) {
            self.audience.problem(&sentence);
        }
    }

    fn responds(&self, is_so: bool) {
        if self.said().responds(is_so) {
            let what = if is_so { "responds again" } else { "does not respond: trying again until it does" };
            self.audience.problem(&format!("{} {what}", self.endpoint));
        }
    }

    fn trouble(&self, line: &str) {
        // While the database does not respond, every other problem follows from that, and `responds` reports it.
        if !line.ends_with(NOTHING_RESPONDS) && self.said().is_new_trouble(line) {
            self.audience.problem(line);
        }
    }
}

// ---- The line of a batch: its records, its cost, and its problems ----

/// The counts of a batch, each with its word in the line and its name in the object.
fn counts(account: &Account) -> [(usize, &'static str, &'static str); 12] {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    [
        (account.n_changes, "change", "changes"),
        (account.n_echoes, "echo", "echoes"),
        (account.n_ignored, "ignored", "ignored"),
        (account.n_late_changes, "late", "late"),
        (account.n_duplicates, "already counted", "already_counted"),
        (account.unreadable.len(), "unreadable", "unreadable"),
        (count(account.contention.n_conflicts()), "conflict", "conflicts"),
        (count(account.contention.n_throttles()), "throttle", "throttles"),
        (account.parked.len(), "parked", "parked"),
        (account.refused.len(), "refused", "refused"),
        (account.undone.len(), "to be tried again", "undone"),
        (account.commits.len(), "write", "writes"),
    ]
}

fn units(account: &Account) -> f64 {
    account.commits.iter().fold(0.0, |sum, commit| sum + commit.units)
}

/// The names of the object of a batch.
fn batch(function: Function, handled: &Handled, elapsed: Duration) -> Value {
    let Handled { account, changes, .. } = handled;
    let mut batch: Map<String, Value> =
        counts(account).into_iter().map(|(n, _, name)| (name.to_owned(), n.into())).collect();
    let item = |at: usize| changes.get(at)?.as_ref().map(|change| key(&change.key));
    let parked = account.parked.iter().map(|parked| {
        let Parked { position, id, cause } = parked;
        json!({ "id": id, "item": item(position.0), "cause": cause })
    });
    batch.extend([
        ("function".to_owned(), function.to_string().into()),
        ("records".to_owned(), account.n_records.into()),
        ("parked".to_owned(), parked.collect()),
        ("write_units".to_owned(), units(account).into()),
        ("elapsed_ms".to_owned(), u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).into()),
    ]);
    batch.into()
}

/// The line, with further lines for the parts that do not fit.
fn lines(function: Function, account: &Account, elapsed: Duration) -> String {
    let noted = |(n, note, _): (usize, &str, &str)| match note {
        "echo" if n != 1 => format!("{n} echoes"),
        "change" | "echo" | "conflict" | "throttle" | "write" => counted(n, note),
        _ => format!("{n} {note}"),
    };
    let mut parts = vec![counted(account.n_records, "record")];
    parts.extend(counts(account).into_iter().filter(|(n, ..)| *n > 0).map(noted));
    parts.push(format!("{:.1} write units", units(account)));
    parts.push(format!("{} ms", elapsed.as_millis()));
    wrapped(&format!("{function}  "), &parts)
}

/// Joins the parts with commas, on as many lines as they need.
fn wrapped(start: &str, parts: &[String]) -> String {
    let (mut text, mut width) = (start.to_owned(), start.chars().count());
    for (at, part) in parts.iter().enumerate() {
        let comma = if at + 1 == parts.len() { "" } else { "," };
        let n_columns = part.chars().count() + comma.len();
        let is_first = at == 0;
        if !is_first && width + 1 + n_columns > COLUMNS_MAX {
            text.push_str("\n   ");
            width = 3;
        }
        if !is_first {
            text.push(' ');
            width += 1;
        }
        text.push_str(part);
        text.push_str(comma);
        width += n_columns;
    }
    text
}

// ---- ignored ----

/// Maximum number of ignored types to report. No application has so many by mistake, so further ones are not reported.
const TYPES_MAX: usize = 100;

/// The ignored types that were reported.
#[derive(Debug, Default)]
struct IgnoredTypes(BTreeSet<Option<String>>);

impl IgnoredTypes {
    /// A sentence about the item of a change, if it is ignored and its type was not reported before.
    fn new_of(&mut self, schema: &Schema, change: &Change) -> Option<String> {
        // Jobs and the clock are items of the service itself, without an entity.
        if JobKey::parse(&change.key).is_some() || change.key == clock::key() {
            return None;
        }
        let image = change.new_image().or(change.old_image())?;
        let attribute = schema.layout.entity_type.as_deref();
        let (name, what) = match (schema.see(&change.key, image), attribute) {
            (Seen::Untyped, Some(attribute)) => (None, format!("items without {attribute} are ignored")),
            (Seen::Unknown, None) => (None, "items with the key of no entity are ignored".to_owned()),
            (Seen::Unknown, Some(attribute)) => {
                let name = text(image, attribute)?;
                let near = meant(name, schema.entities().map(|entity| entity.name.as_str()));
                let what = format!("items of the type \"{name}\" are ignored, because there is no such entity{near}");
                (Some(name.to_owned()), what)
            }
            (Seen::Untyped | Seen::Known(_) | Seen::Misfit(_), _) => return None,
        };
        let is_new = self.0.len() < TYPES_MAX && self.0.insert(name);
        is_new.then(|| match what.strip_suffix('?') {
            Some(what) => format!("{what}? One is {}", change.key),
            None => format!("{what}; one is {}", change.key),
        })
    }
}

#[cfg(test)]
mod ignored_tests {
    use derive::change::Images;
    use functions::declared::{Choice, declared};
    use keys::{item::Item, job::JOB, key::Key};
    use serde_dynamo::AttributeValue;

    use super::*;

    #[test]
    fn a_type_is_told_once_and_a_job_of_the_service_never() {
        let (schema, _) = declared(Choice::default()).unwrap();
        let mut ignored = IgnoredTypes::default();
        let mut said = |key: Key, kind: &str| {
            let item = Item::from([("EntityType".to_owned(), AttributeValue::S(kind.to_owned()))]);
            let images = Images::Inserted(item);
            let change = Change { id: String::new(), sequence_number: String::new(), created_ms: None, key, images };
            ignored.new_of(&schema, &change)
        };
        let job = JobKey { derivation: "comment-author".to_owned(), id: "e1".to_owned() };
        assert_eq!(said(job.key(), JOB), None);
        let what = "items of the type \"Usre\" are ignored, because there is no such entity: did you mean \"User\"? One is \
                    a / b";
        assert_eq!(said(Key::new("a", "b"), "Usre").as_deref(), Some(what));
        for key in [Key::new("a", "c"), Key::new("USER#ada", "PROFILE"), Key::new("USER#ada", "FOLLOWER#bob")] {
            assert_eq!(said(key, "Usre"), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_a_line_with_what_there_is_and_no_line_is_too_long() {
        let elapsed = Duration::from_millis(11);
        let small = Account { n_records: 1, n_echoes: 1, ..Account::default() };
        assert_eq!(lines(Function::Propagate, &small, elapsed), "propagate  1 record, 1 echo, 0.0 write units, 11 ms");
        let [n_records, n_changes, n_echoes, n_ignored, n_late_changes, n_duplicates] = [10_000; 6];
        let large =
            Account { n_records, n_changes, n_echoes, n_ignored, n_late_changes, n_duplicates, ..Account::default() };
        assert_eq!(
            lines(Function::Aggregate, &large, elapsed),
            "aggregate  10000 records, 10000 changes, 10000 echoes, 10000 ignored,\n    \
             10000 late, 10000 already counted, 0.0 write units, 11 ms"
        );
    }
}
