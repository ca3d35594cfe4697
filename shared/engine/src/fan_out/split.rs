//! Cutting a huge fan-out into parts that run side by side.
//!
//! A job that has looked at many items and is not at the end gives the rest away, all but its first piece: each piece
//! becomes a job of its own, which is never told of anything. It needs not be: a newer change tells the job that gave
//! the pieces away, which then goes through all itself; and where that has ended, the newer change begins another for
//! all. What two of them look at is written once, since the second finds it in step.
//!
//! Nothing is known of how the sort keys lie, so they are taken to lie evenly between the cursor and the last: by time
//! where both have one at the same place, else by their characters, with a digit where both have one, and a letter where
//! both have one. Pieces are of about the same size where keys are times, numbers or random ids, and where they are not,
//! some end sooner.

use derive::{
    effect::Find,
    guard::Guard,
    query::{Order, Query, SortKeys},
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    job::JobKey,
};
use store::Store;

use super::{FanOut, id_of};
use crate::{
    batch::Engine,
    ground::{Stop, Work},
    job::{Job, Task},
};

/// Characters that are looked at behind what two sort keys have in common: enough for the pieces that a job is cut into.
const PLACES: usize = 6;

/// How a time is written, with `0` for a digit.
const TIME: &[u8] = b"0000-00-00T00:00:00";

/// The parts of a time behind the year: where each stands in it, its least value, and how many it has. A month has 31
/// days here, which leaves gaps between pieces and none within.
const OF_TIME: [(usize, u64, u64); 5] = [(5, 1, 12), (8, 1, 31), (11, 0, 24), (14, 0, 60), (17, 0, 60)];

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
        let sort_key = |item: &Item| text(item, self.sort_key_name(&find.query)?).map(str::to_owned);
        let at = next.after.as_ref().and_then(|after| sort_key(&after.0));
        let last = last.items.first().and_then(sort_key);
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
        self.decided(writes, work).await.map(|_done_or_moved| true)
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
    if first >= last {
        return Vec::new();
    }
    let n_cuts = u64::from(n_texts);
    let evenly = |low: u64, high: u64| {
        (1..=n_cuts).map(move |cut| low + high.saturating_sub(low).saturating_mul(cut) / (n_cuts + 1))
    };
    let time_of = |at: usize| Some((at, seconds_of(first.get(at..)?)?, seconds_of(last.get(at..)?)?));
    // Not one that both have in common, which nothing lies between.
    let mut starts = (n_common + 1).saturating_sub(TIME.len())..=n_common;
    let texts: Vec<String> = if let Some((at, low, high)) = starts.find_map(time_of) {
        let before = first.get(..at).unwrap_or_default();
        evenly(low, high).map(|seconds| format!("{before}{}", time_of_seconds(seconds))).collect()
    } else {
        let common = first.get(..n_common).unwrap_or_default();
        let places: Vec<Place> = (n_common..n_common + PLACES).map(|at| Place::of(first, last, at)).collect();
        let (low, high) = (number_of(first, n_common, &places), number_of(last, n_common, &places));
        evenly(low, high).map(|number| format!("{common}{}", text_of(number, &places))).collect()
    };
    let mut cuts: Vec<String> =
        texts.into_iter().filter(|text| text.as_str() > first && text.as_str() <= last).collect();
    cuts.dedup();
    cuts
}

/// The seconds of the time that a text begins with, counted in months of 31 days.
fn seconds_of(text: &str) -> Option<u64> {
    let time = text.as_bytes().get(..TIME.len())?;
    let is_time = time.iter().zip(TIME).all(|(byte, form)| byte == form || (*form == b'0' && byte.is_ascii_digit()));
    let part = |at: usize, n_digits: usize| text.get(at..at + n_digits)?.parse::<u64>().ok();
    let year = part(0, 4).filter(|_| is_time)?;
    OF_TIME.iter().try_fold(year, |sum, (at, least, count)| Some(sum * count + part(*at, 2)?.saturating_sub(*least)))
}

fn time_of_seconds(mut seconds: u64) -> String {
    let mut time = String::from_utf8_lossy(TIME).into_owned();
    for (at, least, count) in OF_TIME.iter().rev() {
        time.replace_range(*at..at + 2, &format!("{:02}", seconds % count + least));
        seconds /= count;
    }
    time.replace_range(..4, &format!("{seconds:04}"));
    time
}

/// The characters that may stand at a place of a sort key, from the least to the greatest.
struct Place {
    least: u8,
    greatest: u8,
}

impl Place {
    /// Those at a place of two texts, and of the texts between them: what lies evenly among digits does not among all
    /// that can be seen, of which digits are a tenth.
    fn of(first: &str, last: &str, at: usize) -> Self {
        let of = |text: &str| text.as_bytes().get(at).copied();
        let (least, greatest) = match (of(first).or(of(last)), of(last).or(of(first))) {
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => (b'0', b'9'),
            // What separates the parts of a time or an id, as `T` and `:` do.
            (Some(a), Some(b)) if a == b => (a, a),
            (Some(a), Some(b)) if a.is_ascii_lowercase() && b.is_ascii_lowercase() => (b'a', b'z'),
            (Some(a), Some(b)) if a.is_ascii_uppercase() && b.is_ascii_uppercase() => (b'A', b'Z'),
            // All of ASCII that can be seen, which are the same in bytes as in text.
            _ => (b'!', b'~'),
        };
        Self { least, greatest }
    }

    fn base(&self) -> u64 {
        u64::from(self.greatest - self.least) + 1
    }
}

/// What follows in a text, read as a number of these places.
fn number_of(text: &str, from: usize, places: &[Place]) -> u64 {
    let bytes = text.bytes().map(Some).skip(from).chain(std::iter::repeat(None));
    places.iter().zip(bytes).fold(0, |number, (place, byte)| {
        let byte = byte.unwrap_or(place.least).clamp(place.least, place.greatest);
        number * place.base() + u64::from(byte - place.least)
    })
}

fn text_of(mut number: u64, places: &[Place]) -> String {
    let mut digits: Vec<char> = Vec::new();
    for place in places.iter().rev() {
        let digit = u8::try_from(number % place.base()).unwrap_or(0);
        digits.push(char::from(place.least + digit));
        number /= place.base();
    }
    digits.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these sorted keys are in each piece.
    fn pieces(keys: &[String], n_cuts: u32) -> Vec<usize> {
        let (first, last) = (keys.first().unwrap(), keys.last().unwrap());
        let cuts = between(first, last, n_cuts);
        assert!(cuts.is_sorted() && cuts.iter().all(|cut| cut > first && cut <= last), "{cuts:?}");
        let ends: Vec<usize> =
            cuts.iter().map(|cut| keys.partition_point(|key| key < cut)).chain([keys.len()]).collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(&ends).map(|(start, end)| end - start).collect()
    }

    /// None is more than twice what it would be if all were the same.
    fn are_even(keys: &[String], n_cuts: u32) {
        let pieces = pieces(keys, n_cuts);
        let n_pieces = usize::try_from(n_cuts).unwrap() + 1;
        assert!(pieces.len() == n_pieces && pieces.iter().all(|n| n * n_pieces <= 2 * keys.len()), "{pieces:?}");
    }

    #[test]
    fn times_are_cut_into_pieces_of_about_the_same_size_whatever_span_they_have() {
        let time = |second: usize| {
            let (minute, hour, day) = (second / 60, second / 3_600, second / 86_400);
            let (month, day, hour) = (1 + day / 28 % 12, 1 + day % 28, hour % 24);
            format!(
                "COMMENT#2024-{month:02}-{day:02}T{hour:02}:{:02}:{:02}.000Z#c{second:08}",
                minute % 60,
                second % 60
            )
        };
        // Eleven hours, three days, three weeks and nine months.
        for (n_keys, step) in [(40_000, 1), (43_000, 6), (30_000, 60), (20_000, 1_000)] {
            let keys: Vec<String> = (0..n_keys).map(|at| time(at * step)).collect();
            for n_cuts in [1, 8] {
                are_even(&keys, n_cuts);
            }
        }
    }

    #[test]
    fn numbers_and_ids_are_cut_too() {
        are_even(&(0..20_000).map(|at| format!("COMMENT#c{at:07}")).collect::<Vec<_>>(), 8);
        let spread = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut hexadecimal: Vec<String> = (0..20_000).map(|at| format!("ITEM#{:016x}", spread(at))).collect();
        hexadecimal.sort();
        are_even(&hexadecimal, 1);
        let letters = |at: u64| {
            (0..8).map(|place| char::from(b'a' + u8::try_from((spread(at) >> (7 * place)) % 26).unwrap())).collect()
        };
        let mut letters: Vec<String> = (0..20_000).map(letters).collect();
        letters.sort();
        are_even(&letters, 8);
    }

    #[test]
    fn what_has_one_time_is_cut_by_what_follows() {
        let keys: Vec<String> = (0..20_000).map(|at| format!("COMMENT#2024-01-15T10:30:00.000Z#c{at:07}")).collect();
        are_even(&keys, 8);
        let keys: Vec<String> = (0..1_000).map(|at| format!("COMMENT#2024-01-15T10:30:00.{at:03}Z#c")).collect();
        are_even(&keys, 8);
    }

    #[test]
    fn what_has_no_text_between_is_not_cut() {
        assert!(between("COMMENT#a", "COMMENT#a", 8).is_empty());
        assert!(between("COMMENT#b", "COMMENT#a", 8).is_empty());
        assert_eq!(between("é", "ü", 1).len(), between("é", "ü", 1).iter().filter(|cut| cut.as_str() > "é").count());
    }
}
