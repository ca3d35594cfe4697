//! What is parked, page by page: a page of parked items is in memory, and the parts of one change, however much is
//! parked.

use derive::{family::Family, query::Query};
use keys::item::{Item, text};
use store::{Cursor, Page};

use super::{COUNTER_PK, COUNTER_SK, EVENT_ID, partition, redrive::ParkedChange};

/// Reads what is parked on behalf of a family, in order of the events' ids.
///
/// Whoever reads asks for the page of [`next`](Self::next), and gives it to [`take`](Self::take).
#[derive(Debug)]
pub struct ParkedPages {
    family: Family,
    query: Query,
    after: Option<Cursor>,
    is_end: bool,
    /// Parts of a change of which the next page may have more.
    parts: Vec<Item>,
}

impl ParkedPages {
    /// Begins with the first page.
    #[must_use]
    pub fn of(family: Family) -> Self {
        let query = Query::prefix(None, partition(family), "");
        Self { family, query, after: None, is_end: false, parts: Vec::new() }
    }

    /// The query of the next page of the ledger's table, and where it begins; `None` at the end.
    #[must_use]
    pub fn next(&self) -> Option<(Query, Option<Cursor>)> {
        (!self.is_end).then(|| (self.query.clone(), self.after.clone()))
    }

    /// The changes that are whole with this page.
    pub fn take(&mut self, page: Page) -> Vec<ParkedChange> {
        let mut changes = Vec::new();
        for item in page.items {
            // Parts of one change stand behind one another.
            let differs = |first: &Item| {
                [EVENT_ID, COUNTER_PK, COUNTER_SK].iter().any(|name| text(first, name) != text(&item, name))
            };
            if self.parts.first().is_some_and(differs) {
                changes.extend(ParkedChange::of(self.family, std::mem::take(&mut self.parts)));
            }
            self.parts.push(item);
        }
        self.is_end = page.next.is_none();
        self.after = page.next;
        if self.is_end {
            changes.extend(ParkedChange::of(self.family, std::mem::take(&mut self.parts)));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use serde_dynamo::AttributeValue;

    use super::*;

    fn part(id: &str) -> Item {
        Item::from([(EVENT_ID.to_owned(), AttributeValue::S(id.to_owned()))])
    }

    #[test]
    fn a_change_whose_parts_are_on_two_pages_is_one_change_and_no_earlier_page_is_kept() {
        let mut pages = ParkedPages::of(Family::Additive);
        let all = [&["a", "b"][..], &["b"], &["b", "c", "d"], &[]];
        let mut taken = Vec::new();
        for (at, ids) in all.iter().enumerate() {
            let (_, after) = pages.next().unwrap();
            assert_eq!(after, (at > 0).then(|| Cursor(part(&at.to_string()))));
            let next = (at + 1 < all.len()).then(|| Cursor(part(&(at + 1).to_string())));
            let changes = pages.take(Page { items: ids.iter().map(|id| part(id)).collect(), next });
            let lengths = changes.iter().map(|change| (change.id.clone(), change.n_held_parts()));
            taken.push((lengths.collect::<Vec<_>>(), pages.parts.len()));
        }
        let change = |id: &str, n_parts: usize| (id.to_owned(), n_parts);
        let expected = [
            (vec![change("a", 1)], 1),
            (vec![], 2),
            (vec![change("b", 3), change("c", 1)], 1),
            (vec![change("d", 1)], 0),
        ];
        assert_eq!(taken, expected);
        assert_eq!(pages.next(), None);
    }
}
