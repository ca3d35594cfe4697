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

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use derive::{
    catalogue::Catalogue,
    change::Change,
    clock,
    position::DerivationAt,
    schema::{Schema, Seen},
};
use engine::{
    account::{Account, Commit, ListedItem, MuchUnreadable, Parked},
    batch::Handled,
    look::listing::ALL_DERIVATIONS,
    record::decode,
};
use functions::{config::Mode, handler::Function};
use keys::{item::text, job::JobKey, key::Key};
use manifest::error::meant;
use operate::{
    objects::key,
    words::{WrittenEffect, counted, written},
};
use serde_json::{Map, Value, json};
use stream::progress::{Invocation, InvocationOutcome, NOTHING_RESPONDS};

use crate::{
    exit::{Audience, print},
    service::Witness,
};

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
            for line in deed_lines(&self.schema, &self.catalogue, &handled.account.commits, self.mode) {
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

// ---- Ignored types ----

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

// ---- Changes: derivation, effect and item ----
//
// The first numbers of each derivation have a line each. The same write to many items is one line.

/// The subject of a line: the derivation, its effect, and the entity of the items.
type Deed = (DerivationAt, String, String);

/// The lines of a batch's writes, in the order of the derivations. An observing function writes no counters, so what it
/// would display is wrong.
fn deed_lines(schema: &Schema, catalogue: &Catalogue, commits: &[Commit], mode: Mode) -> Vec<String> {
    let is_display = |at| catalogue.derivation(at).is_some_and(|it| it.kind.name() == "display");
    let mut deeds: BTreeMap<Deed, Vec<(Key, String)>> = BTreeMap::new();
    for commit in commits {
        for (at, effect) in written(schema, catalogue, commit) {
            if mode == Mode::Observe && is_display(at) {
                continue;
            }
            let (deed, item) = match effect {
                WrittenEffect::Number { item, number } => ((at, String::new(), String::new()), (item, number)),
                WrittenEffect::Alike { what, entity } => ((at, what, entity), (commit.key.clone(), String::new())),
            };
            deeds.entry(deed).or_default().push(item);
        }
    }
    deeds.iter().flat_map(|((at, what, entity), items)| of_deed(catalogue.label(*at), what, entity, items)).collect()
}

fn of_deed(name: &str, what: &str, entity: &str, items: &[(Key, String)]) -> Vec<String> {
    match items {
        [(key, _)] if !what.is_empty() => vec![fitted(&format!("{name}  {what} {entity} "), key, "")],
        _ if !what.is_empty() => vec![cut(&format!("{name}  {what} {} {entity} items", items.len()), COLUMNS_MAX)],
        _ => {
            let first = items.iter().take(NAMED_MAX);
            let mut lines: Vec<String> =
                first.map(|(key, number)| fitted(&format!("{name}  "), key, &format!("  {number}"))).collect();
            let n_more = items.len().saturating_sub(NAMED_MAX);
            lines.extend((n_more > 0).then(|| cut(&format!("{name}  {n_more} more"), COLUMNS_MAX)));
            lines
        }
    }
}

/// A line whose key is cut if the line does not fit.
fn fitted(start: &str, key: &Key, end: &str) -> String {
    let left = COLUMNS_MAX.saturating_sub(start.chars().count() + end.chars().count());
    cut(&format!("{start}{}{end}", cut(&key.to_string(), left.max(NAMED_MAX))), COLUMNS_MAX)
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

// ---- Problems: each sentence is printed once until its problem is over ----

/// Maximum number of remembered reports of one sort. Beyond it they are forgotten, so a problem may be reported again.
const TOLD_MAX: usize = 10_000;

/// A problem is over if its reason has not occurred for this long: longer than any wait between two attempts.
const OVER_AFTER: Duration = Duration::from_mins(5);

/// When each reason occurred last, by function or mapping. Concurrent batches take turns, so the success of one does
/// not end the problem of another.
#[derive(Debug, Default)]
struct Reasons(BTreeMap<(String, String), Instant>);

impl Reasons {
    /// Notes a reason. True if it must be reported.
    fn is_new(&mut self, who: &str, why: &str, now: Instant) -> bool {
        if self.0.len() > TOLD_MAX {
            self.0.clear();
        }
        let before = self.0.insert((who.to_owned(), why.to_owned()), now);
        before.is_none_or(|before| now.duration_since(before) > OVER_AFTER)
    }
}

/// The reported problems that are not over.
#[derive(Debug, Default)]
struct Said {
    ignored: IgnoredTypes,
    /// Items that cannot be read, each with the derivation and the reason.
    unreadable: BTreeSet<(Key, String, String)>,
    is_braked: bool,
    /// Reasons of failed invocations, by mapping.
    failures: Reasons,
    /// Reasons of unfinished batches, by function.
    undone: Reasons,
    troubles: BTreeSet<String>,
    is_gone: bool,
}

impl Said {
    /// The new sentences about a batch.
    fn new_of(&mut self, schema: &Schema, function: Function, handled: &Handled) -> Vec<String> {
        let Handled { account, changes, .. } = handled;
        let mut sentences: Vec<String> =
            changes.iter().flatten().filter_map(|change| self.ignored(schema, change)).collect();
        sentences.extend(self.unreadable(&account.unreadable));
        sentences.extend(account.braked.and_then(|much| self.braked(much)));
        sentences.extend(parked(account, handled));
        sentences.extend(refused(account));
        sentences.extend(self.undone(function, account));
        sentences
    }

    /// The sentence about the item of a change, if it is ignored and its type is new.
    fn ignored(&mut self, schema: &Schema, change: &Change) -> Option<String> {
        self.ignored.new_of(schema, change)
    }

    /// One sentence for each derivation and reason.
    fn unreadable(&mut self, listed: &[ListedItem]) -> Vec<String> {
        if self.unreadable.len() > TOLD_MAX {
            self.unreadable.clear();
        }
        let mut by_reason: BTreeMap<(&str, String), Vec<&Key>> = BTreeMap::new();
        for ListedItem { key, derivation, why, .. } in listed {
            let why = why.to_string();
            if self.unreadable.insert((key.clone(), derivation.clone(), why.clone())) {
                by_reason.entry((derivation, why)).or_default().push(key);
            }
        }
        let sentence = |((derivation, why), keys): ((&str, String), Vec<&Key>)| {
            let by = if derivation == ALL_DERIVATIONS { "any derivation" } else { derivation };
            match keys.as_slice() {
                [key] => format!("{key} cannot be read by {by}: {why}"),
                keys => {
                    let named: Vec<String> = keys.iter().take(NAMED_MAX).map(ToString::to_string).collect();
                    let n = keys.len();
                    format!("{n} items cannot be read by {by}: {why}; among them {}", named.join(", "))
                }
            }
        };
        by_reason.into_iter().map(sentence).collect()
    }

    fn braked(&mut self, MuchUnreadable { n_unreadable, n_items }: MuchUnreadable) -> Option<String> {
        (!std::mem::replace(&mut self.is_braked, true)).then(|| {
            format!(
                "warning: {n_unreadable} of {n_items} items of a batch cannot be read; in Lambda the circuit breaker would stop it: \
                 see the setting UNREADABLE_PERCENT_MAX"
            )
        })
    }

    fn undone(&mut self, function: Function, account: &Account) -> Option<String> {
        let why = account.undone.values().next()?;
        let is_new = self.undone.is_new(&function.to_string(), why, Instant::now()) && !self.is_gone;
        is_new.then(|| format!("{function} tries a batch again: {why}"))
    }

    /// The sentence about a failed invocation, if its reason is new.
    fn failed(&mut self, mapping: &str, why: &str) -> Option<String> {
        let is_new = self.failures.is_new(mapping, why, Instant::now()) && !self.is_gone;
        is_new.then(|| format!("{mapping} failed, and tries again: {why}"))
    }

    /// Notes whether the database responds. True if that has changed.
    fn responds(&mut self, is_so: bool) -> bool {
        std::mem::replace(&mut self.is_gone, !is_so) == is_so
    }

    /// True if the problem must be reported.
    fn is_new_trouble(&mut self, line: &str) -> bool {
        if self.troubles.len() > TOLD_MAX {
            self.troubles.clear();
        }
        !self.is_gone && self.troubles.insert(line.to_owned())
    }
}

/// Sentences about parked changes: the first ones with their items, then the number of the rest.
fn parked(account: &Account, handled: &Handled) -> Vec<String> {
    let item = |at: usize| handled.changes.get(at)?.as_ref().map(|change| format!(" of {}", change.key));
    let mut sentences: Vec<String> = Vec::new();
    for parked in account.parked.iter().take(NAMED_MAX) {
        let of = item(parked.position.0).unwrap_or_default();
        sentences.push(format!("parked the change {}{of}: {}", parked.id, parked.cause));
    }
    let n_more = account.parked.len().saturating_sub(NAMED_MAX);
    if n_more > 0 {
        sentences.push(format!("parked {n_more} more; `ripple parked` lists them"));
    }
    sentences
}

fn refused(account: &Account) -> Option<String> {
    let first = account.refused.first()?;
    let n_more = account.refused.len() - 1;
    let more = if n_more == 0 { String::new() } else { format!(", and {n_more} more") };
    Some(format!("refused the change {}{more}: {}; `ripple parked` lists the counts to recount", first.id, first.why))
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_long_key_gives_way_to_the_number() {
        let key = Key::new("USER#".repeat(30), "PROFILE");
        let line = fitted("follower-count  ", &key, "  +1");
        assert_eq!(line.chars().count(), COLUMNS_MAX);
        assert!(line.ends_with("…  +1"), "{line}");
        assert_eq!(fitted("a  ", &Key::new("b", "c"), "  +1"), "a  b / c  +1");
    }

    #[test]
    fn what_goes_on_is_said_once_and_again_after_it_was_over() {
        let (mut reasons, start) = (Reasons::default(), Instant::now());
        // Two concurrent batches fail in turns, for different reasons.
        let mut is_new = |why, after_s| reasons.is_new("propagate", why, start + Duration::from_secs(after_s));
        let told = [("a", 0), ("b", 1), ("a", 200), ("b", 201), ("a", 400), ("b", 502)].map(|(why, s)| is_new(why, s));
        assert_eq!(told, [true, true, false, false, false, true]);
        assert!(reasons.is_new("aggregate", "a", start), "another mapping");
        let mut said = Said::default();
        let told: Vec<bool> = [true, false, false, true, true].map(|is_so| said.responds(is_so)).to_vec();
        assert_eq!(told, [false, true, false, true, false]);
        said.responds(false);
        assert!(!said.is_new_trouble("the stream cannot be listed"), "all follows from that");
        said.responds(true);
        assert!(said.is_new_trouble("the stream cannot be listed"));
        assert!(!said.is_new_trouble("the stream cannot be listed"));
    }
}
