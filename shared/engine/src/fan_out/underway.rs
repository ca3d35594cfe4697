//! A fan-out in progress: the items that it has still to reach.
//!
//! *Keeps true*: an item behind the fan-out's cursor that differs is not pending. Otherwise a source that changes all
//! the time would hide for good every error in the items that depend on it.
//!
//! *Example*: `ann` is renamed, and the job has copied the name to the comments of her partition up to `COMMENT#5`. A
//! wrong name in `COMMENT#3` is a finding; one in `COMMENT#7` is pending.

use derive::{
    position::DerivationAt,
    query::{Query, SortKeys},
    sources::Source,
};
use keys::{
    item::{Item, text},
    key::Key,
};

use crate::{
    context::Context,
    fan_out,
    job::{Job, Task},
};

/// A fan-out in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnderwayFanOut {
    /// The sort key of its job.
    pub(crate) job: String,
    /// True if an operator paused the job.
    pub(crate) is_paused: bool,
    /// The derivation of the items that it refreshes.
    pub(crate) derivation: DerivationAt,
    /// The source whose change started it.
    source: Key,
    /// The search; `None` if it leads to items with other keys than those that it finds.
    search: Option<Search>,
}

/// The search of a fan-out, and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Search {
    /// Attributes of the partition key and of the sort key of the index; `None` in the table.
    index: Option<(String, String)>,
    pk: String,
    sk: SortKeys,
    /// Sort key of the last item that was refreshed in this round.
    after: Option<String>,
    /// Sort key at which the second round ends.
    until: Option<String>,
    is_round: bool,
}

impl UnderwayFanOut {
    /// The fan-out of a job; `None` if the job is no fan-out, or has no search.
    pub(crate) fn of<S: store::Store>(context: &Context<S>, job: &Job) -> Option<Self> {
        let Task::FanOut(fan_out) = &job.task else { return None };
        let derivation = context.catalogue.position(&job.derivation)?;
        let find = fan_out::search_of(context, derivation, &fan_out.source)?;
        let Query { index, pk, sk, .. } = find.query;
        let layout = &context.schema.layout;
        let index = index.and_then(|name| layout.index(&name)).map(|index| (index.pk.clone(), index.sk.clone()));
        let name = index.as_ref().map_or(&layout.sk, |(_, sk)| sk);
        let after = job.after.as_ref().and_then(|after| text(&after.0, name)).map(str::to_owned);
        let (until, is_round) = (fan_out.until.clone(), fan_out.is_round);
        let search = (find.via == find.target).then_some(Search { index, pk, sk, after, until, is_round });
        Some(Self {
            job: job.key.sk.clone(),
            is_paused: job.is_paused,
            derivation,
            source: fan_out.source.clone(),
            search,
        })
    }

    /// True if the fan-out will still reach this item, which was decided by these sources. `held` is the stored item.
    /// No fan-out creates an item. If the found keys do not show the progress, every item that its source decides may
    /// be ahead.
    pub(crate) fn still_reaches(&self, item: &Key, held: Option<&Item>, sources: &[&Source]) -> bool {
        held.is_some_and(|held| match &self.search {
            Some(search) => search.is_ahead_of(item, held),
            // One source of a range may stand for others in it.
            None => sources.iter().any(|source| match source {
                Source::First(of) => of.query.pk == self.source.pk,
                source => source.may_be(&self.source),
            }),
        })
    }
}

impl Search {
    fn is_ahead_of(&self, item: &Key, held: &Item) -> bool {
        match &self.index {
            None => self.is_ahead(&item.pk, &item.sk),
            Some((pk, sk)) => text(held, pk).zip(text(held, sk)).is_some_and(|(pk, sk)| self.is_ahead(pk, sk)),
        }
    }

    /// Several items may have the last sort key, so an item with that key is still ahead.
    fn is_ahead(&self, pk: &str, sk: &str) -> bool {
        let is_behind_cursor = self.after.as_deref().is_some_and(|after| sk < after);
        let is_in_round = self.until.as_deref().is_none_or(|until| sk <= until);
        let is_left = match (self.is_round, self.until.is_some()) {
            (true, _) => !is_behind_cursor && is_in_round,
            (false, true) => !is_behind_cursor || is_in_round,
            (false, false) => !is_behind_cursor,
        };
        self.pk == pk && self.sk.holds(sk) && is_left
    }
}

#[cfg(test)]
mod tests {
    use derive::sources::FirstOf;

    use super::*;

    fn search(after: Option<&str>, until: Option<&str>, is_round: bool) -> Search {
        let [after, until] = [after, until].map(|text| text.map(str::to_owned));
        Search { index: None, pk: "p".into(), sk: SortKeys::Prefix("C#".into()), after, until, is_round }
    }

    #[test]
    fn what_it_has_been_to_is_behind_until_it_goes_round_once_more() {
        let ahead = |after, until, is_round| {
            let is_ahead = |sk: &&str| search(after, until, is_round).is_ahead("p", sk);
            ["C#1", "C#3", "C#5", "C#7"].into_iter().filter(is_ahead).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ahead(None, None, false), "C#1 C#3 C#5 C#7");
        assert_eq!(ahead(Some("C#5"), None, false), "C#5 C#7", "others may have the last sort key");
        assert_eq!(ahead(Some("C#5"), Some("C#3"), false), "C#1 C#3 C#5 C#7");
        assert_eq!(ahead(Some("C#5"), Some("C#1"), false), "C#1 C#5 C#7");
        assert_eq!(ahead(None, Some("C#3"), true), "C#1 C#3");
        assert_eq!(ahead(Some("C#2"), Some("C#3"), true), "C#3");
        assert!(!search(None, None, false).is_ahead("q", "C#1"), "it is in another partition");
        assert!(!search(None, None, false).is_ahead("p", "D#1"), "it is not searched for");
    }

    #[test]
    fn an_item_is_found_in_an_index_by_its_index_keys() {
        let index = Some(("gpk".to_owned(), "gsk".to_owned()));
        let search = Search { index, ..search(Some("C#5"), None, false) };
        let source = Key::new("p", "source");
        let (job, is_paused) = (String::new(), false);
        let fan_out = UnderwayFanOut {
            job,
            is_paused,
            derivation: DerivationAt(0),
            source: source.clone(),
            search: Some(search),
        };
        let (key, held) = (Key::new("a", "b"), |sk: &str| {
            Item::from([("gpk", "p"), ("gsk", sk)].map(|(name, value)| (name.to_owned(), crate::attribute::s(value))))
        });
        let reaches = |held: Option<&Item>| fan_out.still_reaches(&key, held, &[&Source::Item(source.clone())]);
        assert!(reaches(Some(&held("C#7"))));
        assert!(!reaches(Some(&held("C#3"))));
        assert!(!reaches(Some(&Item::default())), "the search never finds it");
        assert!(!reaches(None), "no fan-out makes it");
    }

    #[test]
    fn what_is_found_through_others_is_ahead_if_the_source_decides_it() {
        let (source, key, held) = (Key::new("USER#ann", "PROFILE"), Key::new("a", "b"), Item::default());
        let (job, is_paused) = (String::new(), false);
        let fan_out =
            UnderwayFanOut { job, is_paused, derivation: DerivationAt(0), source: source.clone(), search: None };
        let first = |pk: &str| {
            let query = Query { limit: Some(9), ..Query::prefix(None, pk, "MSG#") };
            Source::First(FirstOf { query, entity: "Message".to_owned(), is_counted: true })
        };
        let [source, own] = [source, key.clone()].map(Source::Item);
        assert!(fan_out.still_reaches(&key, Some(&held), &[&own, &source]));
        assert!(!fan_out.still_reaches(&key, Some(&held), &[&own]), "it follows another");
        assert!(!fan_out.still_reaches(&key, None, &[&source]), "no fan-out makes it");
        assert!(fan_out.still_reaches(&key, Some(&held), &[&first("USER#ann")]), "it may be in its range");
        assert!(!fan_out.still_reaches(&key, Some(&held), &[&first("USER#bob")]), "it is in another range");
    }
}
