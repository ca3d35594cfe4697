//! Invocations that ended without an answer: one that was killed, or one whose function failed before it handled a record.
//!
//! Lambda delivers their records again. What such an invocation had written is written, so the flow shows it with each record.

use std::time::Duration;

use engine::{
    account::{Account, Commit},
    batch::Handled,
    record::{decode, event::Event},
};

use super::{Flow, entry::Trouble};

/// An invocation without an answer.
#[derive(Clone, Debug)]
pub struct UnansweredInvocation {
    /// The event that it got.
    pub event: String,
    /// What it had written.
    pub commits: Vec<Commit>,
    /// Why it did not answer.
    pub why: NoAnswer,
}

/// Why an invocation did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was ended, as at the function's time-out.
    Killed,
    /// The function failed, with this message.
    Failed(String),
}

impl Flow {
    /// Takes in an invocation that ended without an answer, and how long it took.
    pub fn take_in_unanswered(&self, function: &str, unanswered: &UnansweredInvocation, elapsed: Duration) {
        let UnansweredInvocation { event, commits, why } = unanswered;
        let Ok(event) = Event::parse(event) else { return };
        let changes = event.records.iter().map(|record| decode(&self.schema.layout, record.get()).ok()).collect();
        let account = Account { commits: commits.clone(), ..Account::default() };
        let handled = Handled { changes, account, failed_from: None, state: None };
        let trouble = match why {
            NoAnswer::Killed => {
                let items = operate::words::counted(commits.len(), "item");
                Trouble::Killed(format!("after it wrote {items}; the record comes again"))
            }
            NoAnswer::Failed(why) => Trouble::Again(why.clone()),
        };
        self.take_in_with(function, &handled, elapsed, Some(&trouble));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use derive::{catalogue::Catalogue, schema::Schema};
    use keys::layout::Layout;

    use super::{super::entry::FlowEntry, *};

    #[test]
    fn a_killed_invocation_is_shown_with_its_record_also_when_it_comes_again() {
        let schema = Arc::new(Schema::new(Layout::of("PK", "SK"), Vec::new()));
        let flow = Flow::new(&schema, &Arc::new(Catalogue::new(&schema, Vec::new()).unwrap()));
        let event = r#"{"Records": [{"eventID": "e", "eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb":
            {"Keys": {"PK": {"S": "p"}, "SK": {"S": "s"}}, "NewImage": {"PK": {"S": "p"}, "SK": {"S": "s"}},
             "SequenceNumber": "1", "StreamViewType": "NEW_AND_OLD_IMAGES"}}]}"#;
        let ended = |why| UnansweredInvocation { event: event.to_owned(), commits: Vec::new(), why };
        flow.take_in_unanswered("aggregate", &ended(NoAnswer::Killed), Duration::ZERO);
        let killed = |n: usize| flow.entries(|entry| entry.n_killed() == n, 10).0.len();
        assert_eq!(killed(1), 1);
        flow.take_in_unanswered("aggregate", &ended(NoAnswer::Failed("no".to_owned())), Duration::ZERO);
        let (entries, _) = flow.entries(FlowEntry::is_again, 10);
        let said: Vec<String> = entries[0].troubles().map(|(_, trouble)| trouble.said()).collect();
        assert_eq!((killed(1), said), (1, vec!["comes again: no".to_owned()]));
    }
}
