//! Calls that take long, or that no waiting helps: a function always answers, before its deadline.

use engine::{batch::Handled, ledger::LedgerKind};
use serde_json::Value;
use store::faulty::{Fault, Side};

use crate::cases::bed::{Bed, INVOCATION_MS, counts};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];

/// A call of the additive functions that is never answered: the time goes by, and the caller waits.
fn hangs(bed: &Bed, side: Side) {
    let clock = bed.clock.clone();
    bed.fails(move |call| {
        counts(call).then(|| {
            // Until it is time to answer.
            clock.advance(INVOCATION_MS - 500);
            (side, Fault::Hung)
        })
    });
}

/// Delivers records whose invocation has no more time when it answers.
fn delivered(bed: &Bed, records: &[Value]) -> Handled {
    bed.clock.advance(INVOCATION_MS + 1);
    bed.start(&bed.event(records)).finish().expect("it answers").unwrap()
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_with_the_deadline_and_parks_nothing_however_often() {
    for ledger in LEDGERS {
        for side in [Side::Before, Side::After] {
            let mut bed = Bed::new().under(ledger);
            let records = bed.joins(2).await;
            hangs(&bed, side);
            for _ in 0..6 {
                let handled = delivered(&bed, &records);
                let why = handled.account.undone.values().next().map(String::as_str);
                if side == Side::Before || why.is_some() {
                    assert_eq!(handled.failed_from.as_deref(), Some("1001"), "{ledger} {side:?}");
                    assert!(why.is_some_and(|why| why.contains("not answered before the deadline")), "{why:?}");
                }
            }
            bed.fails(|_| None);
            let handled = bed.handle(&records).await;
            assert_eq!((handled.failed_from, bed.parked().len()), (None, 0), "{ledger} {side:?}");
            assert_eq!(bed.counted("member-count"), 2, "{ledger} {side:?}");
        }
    }
}

#[tokio::test]
async fn an_invocation_that_is_throttled_to_its_end_is_no_death_of_its_records() {
    let mut bed = Bed::new();
    let records = bed.joins(2).await;
    for _ in 0..8 {
        bed.fails(|call| (!call.is_read()).then(|| (Side::Before, Fault::Throttle([0].into()))));
        bed.clock.advance(INVOCATION_MS + 1);
        assert_eq!(bed.handle(&records).await.failed_from.as_deref(), Some("1001"));
    }
    bed.fails(|_| None);
    assert_eq!(bed.handle(&records).await.failed_from, None);
    assert_eq!((bed.counted("member-count"), bed.parked().len()), (2, 0));
}

#[tokio::test]
async fn a_missing_permission_ends_the_invocation_at_once_and_fails_it() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let records = bed.joins(2).await;
        bed.fails(|call| counts(call).then_some((Side::Before, Fault::Denied)));
        let began_ms = engine::clock::Clock::now_ms(&bed.clock);
        let handled = bed.handle(&records).await;
        assert_eq!(engine::clock::Clock::now_ms(&bed.clock), began_ms, "it does not wait");
        assert_eq!((handled.failed_from.as_deref(), bed.parked().len()), (Some("1001"), 0));
        let failure = functions::handler::answer(&handled).unwrap_err().to_string();
        let operation = if ledger == LedgerKind::Receipts { "TransactWriteItems" } else { "UpdateItem" };
        let begins = format!("the function cannot work until its set-up is changed: {operation} on");
        assert!(failure.starts_with(&begins), "{failure}");
        assert!(failure.ends_with("AccessDeniedException"), "{failure}");

        bed.fails(|_| None);
        let handled = bed.handle(&records).await;
        assert!(functions::handler::answer(&handled).is_ok());
        assert_eq!(bed.counted("member-count"), 2);
    }
}
