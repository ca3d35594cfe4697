//! Cutting a huge fan-out into parts that run side by side.
//!
//! A job that has looked at many items and is not at the end gives the rest away, all but its first piece: each piece
//! becomes a job of its own, which is never told of anything. It needs not be: a newer change tells the job that gave
//! the pieces away, which then goes through all itself; and where that has ended, the newer change begins another for
//! all. What two of them look at is written once, since the second finds it in step.
//!
//! Nothing is known of how the sort keys lie, so they are taken to lie evenly between the cursor and the last: pieces
//! are of about the same size where keys are times or random ids, and where they are not, some end sooner.

use derive::{
    effect::Find,
    guard::Guard,
    query::{Order, Query, SortKeys},
    write::{Action, Table, Write},
};
use keys::job::JobKey;
use store::Store;

use super::{FanOut, id_of};
use crate::{
    batch::Engine,
    ground::{Stop, Touched, Work},
    job::{Job, Task},
};

/// Characters of which the texts between two sort keys are made: those of ASCII that can be seen, which are the same in
/// bytes as in text.
const DIGITS: std::ops::RangeInclusive<u8> = b'!'..=b'~';

/// Characters that are looked at behind what two sort keys have in common: enough for 10^8 pieces.
const PLACES: usize = 4;

impl<S: Store> Engine<S> {
    /// Is the job so large that the rest is to be cut?
    pub(super) fn is_due_for_split(&self, job: &Job) -> bool {
        let Task::FanOut(fan_out) = &job.task else { return false };
        let is_whole = !fan_out.is_part() && fan_out.to.is_none() && !fan_out.is_round;
        is_whole && self.fan_out.parts > 0 && job.n_touched >= self.fan_out.split_after
    }

    /// Cuts the rest of a job, and moves it to `next`; false when it cannot be cut.
    pub(super) async fn split(
        &self,
        job: &Job,
        next: &mut Job,
        find: &Find,
        work: &mut Work<'_>,
    ) -> Result<bool, Stop> {
        let newest = Query { order: Order::Descending, limit: Some(1), ..find.query.clone() };
        let last = work.batch.patience.call(|| self.store.query(Table::Main, &newest, None)).await?;
        let at = next.after.as_ref().and_then(|after| self.sort_key(next, &after.0));
        let last = last.items.first().and_then(|item| self.sort_key(next, item));
        let (Some(at), Some(last), Some(_)) = (at, last, beyond(&find.query.sk)) else { return Ok(false) };
        let cuts = between(&at, &last, self.fan_out.parts);
        let (Some(first), Task::FanOut(fan_out)) = (cuts.first(), &mut next.task) else { return Ok(false) };
        fan_out.to = Some(first.clone());
        let source = fan_out.source.clone();
        let now_ms = self.clock.now_ms();
        next.moved_at_ms = now_ms;
        let mut writes = vec![job.moves_to(next)];
        for (number, from) in cuts.iter().enumerate() {
            let id = format!("{}#{}-{number}", id_of(&source), next.n_moves);
            let part =
                FanOut { from: Some(from.clone()), to: cuts.get(number + 1).cloned(), ..FanOut::of_all(&source) };
            let key = JobKey { derivation: job.derivation.clone(), id };
            let part = Job::running(&key, Task::FanOut(part), now_ms);
            let action = Action::Put(part.item(&self.schema.layout));
            writes.push(Write { table: Table::Main, key: part.key, action, guard: Some(Guard::Absent) });
        }
        // Where a guard does not hold, the job was moved by somebody whose record goes on.
        Ok(matches!(self.decided(writes, work).await?, Touched::Done | Touched::Unheld(_)))
    }
}

/// A sort key behind all of a search; `None` where there is no such that is sure to be one.
pub(super) fn beyond(sort_keys: &SortKeys) -> Option<String> {
    let SortKeys::Prefix(prefix) = sort_keys else { return None };
    let last = prefix.chars().next_back().filter(char::is_ascii)?;
    let next = char::from(u8::try_from(last).ok()? + 1);
    let mut beyond = prefix.strip_suffix(last)?.to_owned();
    beyond.push(next);
    next.is_ascii().then_some(beyond)
}

/// Up to so many texts that lie evenly between two, each greater than the one before it.
fn between(first: &str, last: &str, n_texts: u32) -> Vec<String> {
    let n_common = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    let n_common = first.floor_char_boundary(n_common).min(last.floor_char_boundary(n_common));
    let (Some(common), true) = (first.get(..n_common), first < last) else { return Vec::new() };
    let (low, high) = (number_of(first, n_common), number_of(last, n_common));
    let n_cuts = u64::from(n_texts);
    let at = |cut: u64| low + (high - low).saturating_mul(cut) / (n_cuts + 1);
    let texts = (1..=n_cuts).map(|cut| format!("{common}{}", text_of(at(cut))));
    let mut cuts: Vec<String> = texts.filter(|text| text.as_str() > first && text.as_str() <= last).collect();
    cuts.dedup();
    cuts
}

/// What follows in a text, read as a number of some places.
fn number_of(text: &str, from: usize) -> u64 {
    let bytes = text.bytes().skip(from).chain(std::iter::repeat(*DIGITS.start())).take(PLACES);
    let digit = |byte: u8| u64::from(byte.clamp(*DIGITS.start(), *DIGITS.end()) - DIGITS.start());
    bytes.fold(0, |number, byte| number * base() + digit(byte))
}

fn text_of(mut number: u64) -> String {
    let mut digits: Vec<char> = Vec::new();
    for _ in 0..PLACES {
        let digit = u8::try_from(number % base()).unwrap_or(0);
        digits.push(char::from(DIGITS.start() + digit));
        number /= base();
    }
    digits.into_iter().rev().collect()
}

fn base() -> u64 {
    u64::from(DIGITS.end() - DIGITS.start()) + 1
}
