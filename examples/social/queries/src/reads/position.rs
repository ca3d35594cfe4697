//! Positions: behind which item of a query a page goes on.

use derive::query::Query;
use keys::{
    item::{Item, text},
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Cursor;

/// The key of the last item that was looked at, without the partition key that the query has anyway: the sort key, and
/// in an index the item's own key, which tells apart those of one sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemPosition(Vec<String>);

impl ItemPosition {
    /// The position behind an item of a query, or behind the one that the store's cursor names.
    pub(super) fn of(layout: &Layout, query: &Query, item: &Item) -> Self {
        let names = names(layout, query);
        Self(names.iter().map(|name| text(item, name).unwrap_or_default().to_owned()).collect())
    }

    /// The position that these texts are; `None` when they are none of this query.
    pub(super) fn read(layout: &Layout, query: &Query, texts: &[String]) -> Option<Self> {
        let fits = texts.len() == names(layout, query).len() && texts.iter().all(|text| !text.is_empty());
        let within = texts.first().is_some_and(|sk| query.sk.holds(sk));
        (fits && within).then(|| Self(texts.to_vec()))
    }

    /// Its texts.
    pub(super) fn texts(&self) -> &[String] {
        &self.0
    }

    /// Where the store goes on: always in the query's own partition.
    pub(super) fn start(&self, layout: &Layout, query: &Query) -> Cursor {
        let pk = query.index.as_deref().and_then(|name| layout.index(name)).map_or(&layout.pk, |index| &index.pk);
        let mut item = Item::from([(pk.clone(), AttributeValue::S(query.pk.clone()))]);
        for (name, text) in names(layout, query).into_iter().zip(&self.0) {
            item.insert(name.clone(), AttributeValue::S(text.clone()));
        }
        Cursor(item)
    }
}

/// The key attributes that a position holds; the first is the sort key that the query is in the order of.
fn names<'a>(layout: &'a Layout, query: &Query) -> Vec<&'a String> {
    match query.index.as_deref().and_then(|name| layout.index(name)) {
        Some(index) => vec![&index.sk, &layout.pk, &layout.sk],
        None => vec![&layout.sk],
    }
}
