//! Positions: the item of a query after which a page continues.

use derive::query::Query;
use keys::{
    item::{Item, text},
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Cursor;

/// The key of the last item that was read, without the query's partition key: the sort key, and in an index also the
/// item's own key, because several items may share a sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemPosition(Vec<String>);

impl ItemPosition {
    /// The position after an item of a query, or after the item that the store's cursor names.
    pub(super) fn of(layout: &Layout, query: &Query, item: &Item) -> Self {
        let names = names(layout, query);
        Self(names.iter().map(|name| text(item, name).unwrap_or_default().to_owned()).collect())
    }

    /// Parses a position; `None` if the texts do not belong to this query.
    pub(super) fn read(layout: &Layout, query: &Query, texts: &[String]) -> Option<Self> {
        let fits = texts.len() == names(layout, query).len() && texts.iter().all(|text| !text.is_empty());
        let within = texts.first().is_some_and(|sk| query.sk.holds(sk));
        (fits && within).then(|| Self(texts.to_vec()))
    }

    /// The texts of the position in a cursor.
    pub(super) fn texts(&self) -> &[String] {
        &self.0
    }

    /// The store's cursor, always in the query's own partition.
    pub(super) fn start(&self, layout: &Layout, query: &Query) -> Cursor {
        let pk = query.index.as_deref().and_then(|name| layout.index(name)).map_or(&layout.pk, |index| &index.pk);
        let mut item = Item::from([(pk.clone(), AttributeValue::S(query.pk.clone()))]);
        for (name, text) in names(layout, query).into_iter().zip(&self.0) {
            item.insert(name.clone(), AttributeValue::S(text.clone()));
        }
        Cursor(item)
    }
}

/// The key attributes in a position; the first is the query's sort key.
fn names<'a>(layout: &'a Layout, query: &Query) -> Vec<&'a String> {
    match query.index.as_deref().and_then(|name| layout.index(name)) {
        Some(index) => vec![&index.sk, &layout.pk, &layout.sk],
        None => vec![&layout.sk],
    }
}
