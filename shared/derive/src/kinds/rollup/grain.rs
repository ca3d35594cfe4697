//! Grains: the lengths of time by which values are rolled up, and the bucket that a time falls into.
//!
//! Buckets are those of UTC, and a time without a zone is taken for one of UTC. One with another offset would go into
//! the bucket of its text, which is hours away, so it is no time here.

use std::ops::Range;

/// How long the time of a bucket is. Its name is stored, so it is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BucketSpan {
    /// An hour, such as `2024-01-15T10`.
    Hour,
    /// A day, such as `2024-01-15`.
    Day,
}

impl BucketSpan {
    pub(super) const ALL: [Self; 2] = [Self::Hour, Self::Day];

    /// Its name in keys.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hour => "HOUR",
            Self::Day => "DAY",
        }
    }

    /// The beginning of a time that names the bucket; `None` when the time is of another form, or not in UTC.
    pub(super) fn cut(self, time: &str) -> Option<&str> {
        let form = match self {
            Self::Hour => "dddd-dd-ddTdd",
            Self::Day => "dddd-dd-dd",
        };
        let (bucket, rest) = time.split_at_checked(form.len())?;
        let fits = |(form, found): (char, char)| if form == 'd' { found.is_ascii_digit() } else { form == found };
        let is_cut = !rest.starts_with(|next: char| next.is_ascii_digit()) && !has_offset(rest);
        let number = |range: Range<usize>| bucket.get(range).and_then(|digits| digits.parse::<u8>().ok());
        let is_time = matches!(number(5..7), Some(1..=12))
            && matches!(number(8..10), Some(1..=31))
            && (self == Self::Day || matches!(number(11..13), Some(0..=23)));
        (is_cut && is_time && form.chars().zip(bucket.chars()).all(fits)).then_some(bucket)
    }
}

/// Does it end in an offset from UTC, such as `+02:00`?
fn has_offset(rest: &str) -> bool {
    let Some((_, offset)) = rest.rsplit_once(['+', '-']) else { return false };
    let digits = offset.replace(':', "");
    let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_offset && digits.bytes().any(|digit| digit != b'0')
}
