//! The line of a batch: what was in it, what it cost, and what stood in its way.

use std::time::Duration;

use engine::account::Account;
use functions::handler::Function;

use super::{COLUMNS_MAX, counted};

/// The line, with another line for what does not fit.
pub(super) fn lines(function: Function, account: &Account, elapsed: Duration) -> String {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let units = account.commits.iter().fold(0.0, |sum, commit| sum + commit.units);
    let notes = [
        (account.n_changes, "change"),
        (account.n_echoes, "echo"),
        (account.n_ignored, "ignored"),
        (account.n_late_changes, "late"),
        (account.n_duplicates, "in already"),
        (account.unreadable.len(), "unreadable"),
        (count(account.contention.n_conflicts()), "conflict"),
        (count(account.contention.n_throttles()), "throttle"),
        (account.parked.len(), "parked"),
        (account.refused.len(), "refused"),
        (account.undone.len(), "to be tried again"),
        (account.commits.len(), "write"),
    ];
    let noted = |(n, note): (usize, &str)| match note {
        "echo" if n != 1 => format!("{n} echoes"),
        "change" | "echo" | "conflict" | "throttle" | "write" => counted(n, note),
        _ => format!("{n} {note}"),
    };
    let mut parts = vec![counted(account.n_records, "record")];
    parts.extend(notes.into_iter().filter(|(n, _)| *n > 0).map(noted));
    parts.push(format!("{units:.1} write units"));
    parts.push(format!("{} ms", elapsed.as_millis()));
    wrapped(&format!("{function}  "), &parts)
}

/// Parts with commas between them, on as many lines as they need.
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
             10000 late, 10000 in already, 0.0 write units, 11 ms"
        );
    }
}
