//! The section on writes: each pattern with its transaction and its conditions, in words and in DynamoDB's notation.

use derive::{
    guard::Ask,
    write::{Action, Update, Write},
};
use keys::{item::Item, layout::Layout};
use store::recording::Request;

use super::{
    markdown::{code, codes, plain, table, value},
    requests::{Row, rows},
};
use crate::{Design, asked::PatternRequests, review::patterns::repeated};

const HEAD: [&str; 5] = ["operation", "item", "what it does", "only if", "condition as sent"];

pub(super) fn section(design: &Design) -> String {
    let writes: Vec<&PatternRequests> = design.patterns.iter().filter(|pattern| pattern.is_write()).collect();
    if writes.is_empty() {
        return String::new();
    }
    let mut text = "## Writes\n\n\
         In the order in which the pattern sends them.\n\
         A transaction does all of its actions or none. DynamoDB reports failed conditions by position, so a refusal \
         names the condition that failed.\n"
        .to_owned();
    for pattern in writes {
        text.extend([format!("\n### {} {}\n\n", pattern.id, pattern.title)]);
        text.extend([format!("Input: {}. Result: {}.", plain(&pattern.input), plain(&pattern.result))]);
        if let Some(n) = pattern.actions_max.filter(|_| !repeated(&design.schema, pattern).is_empty()) {
            text.extend([format!(" At most {n} actions.")]);
        }
        let rows: Vec<Vec<String>> =
            pattern.requests.iter().flat_map(|request| request_rows(&design.schema.layout, request)).collect();
        text.extend([format!("\n\n{}", table(&HEAD, &rows))]);
    }
    text
}

fn request_rows(layout: &Layout, request: &Request) -> Vec<Vec<String>> {
    match request {
        Request::Write(write) => vec![write_row(layout, store::operation(&write.action).to_owned(), write)],
        Request::Transact(transaction) => {
            let n = transaction.writes().len();
            let row = |(at, write): (usize, &Write)| {
                let operation = store::operation(&write.action).trim_end_matches("Item");
                write_row(layout, format!("TransactWriteItems {}/{n}: {operation}", at + 1), write)
            };
            transaction.writes().iter().enumerate().map(row).collect()
        }
        read => rows(layout, std::slice::from_ref(read)).iter().map(read_row).collect(),
    }
}

fn read_row(row: &Row) -> Vec<String> {
    let index = row.index.as_ref().map(|index| format!(" of {index}")).unwrap_or_default();
    vec![format!("{}{index}", row.operation), code(&row.keys), "reads".to_owned(), String::new(), String::new()]
}

fn write_row(layout: &Layout, operation: String, write: &Write) -> Vec<String> {
    let (words, sent) = match &write.guard {
        None => (String::new(), String::new()),
        Some(guard) => {
            let asks: Vec<String> = guard.asks.iter().map(words).collect();
            let condition = guard.condition(&layout.pk);
            let names = condition.names.iter().map(|(mark, name)| format!("`{mark}` = `{name}`"));
            let values = condition.values.iter().map(|(mark, held)| format!("`{mark}` = `{}`", value(held)));
            let legend: Vec<String> = names.chain(values).collect();
            (asks.join(", and "), format!("{}; {}", code(&condition.expression), legend.join(", ")))
        }
    };
    vec![operation, code(&write.key.to_string()), done(layout, &write.action), words, sent]
}

fn done(layout: &Layout, action: &Action) -> String {
    match action {
        Action::Put(item) => {
            let names = item.keys().filter(|name| *name != layout.pk && *name != layout.sk);
            format!("puts {}", codes(names))
        }
        Action::Update(update) => updated(update),
        Action::Delete => "deletes it".to_owned(),
        Action::Check => "checks it".to_owned(),
    }
}

fn updated(update: &Update) -> String {
    let amounts = |verb: &str, join: &str, amounts: &Item| -> Vec<String> {
        amounts.iter().map(|(name, amount)| format!("{verb} `{}` {join} `{name}`", value(amount))).collect()
    };
    let mut parts = Vec::new();
    if !update.set.is_empty() {
        parts.push(format!("sets {}", codes(update.set.keys())));
    }
    if !update.remove.is_empty() {
        parts.push(format!("removes {}", codes(&update.remove)));
    }
    parts.extend(amounts("adds", "to", &update.add));
    parts.extend(amounts("takes", "out of", &update.delete));
    parts.join("; ")
}

/// A condition in words.
fn words(ask: &Ask) -> String {
    match ask {
        Ask::Absent => "nothing is there".to_owned(),
        Ask::Present => "it is there".to_owned(),
        Ask::Lacks(attribute) => format!("it has no `{attribute}`"),
        Ask::Equal(attribute, held) => format!("its `{attribute}` is {}", code(&value(held))),
        Ask::Differs(attribute, held) => format!("its `{attribute}` is not {}", code(&value(held))),
        Ask::AtLeast(attribute, held) => format!("its `{attribute}` is at least {}", code(&value(held))),
        Ask::LacksOrEqual(attribute, held) => format!("its `{attribute}` is {} or not there", code(&value(held))),
        Ask::BelowOrLacksBoth(attribute, held, other) => {
            format!("its `{attribute}` is below {} or not there, nor is `{other}`", code(&value(held)))
        }
        Ask::LacksOrBelow(attribute, held) => format!("its `{attribute}` is below {} or not there", code(&value(held))),
    }
}
