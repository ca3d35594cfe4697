//! Listings: several queries one after another, read page by page.
//!
//! Most patterns have one query. A listing of several queries continues with the next when one ends. If items are
//! skipped, the page is filled up, until it has looked at so many that it stops early.

use derive::{query::Query, write::Table};
use keys::{entity::Entity, error::EntityError, item::Item, key::Key, layout::Layout};
use store::Store;

use super::position::ItemPosition;
use crate::{
    Queries,
    cursor::{CursorError, CursorScope, PageCursor},
    page::{InvalidItem, LOOKED_AT_MAX, PAGE_ITEMS_MAX, Page, PageRequest},
    read_error::ReadError,
};

/// Converts an item, or returns `None` to skip it.
pub(super) type Take<'a, T> = Box<dyn Fn(&Item) -> Result<Option<T>, EntityError> + Send + Sync + 'a>;

/// Puts an item into a page, or skips it; returns the number of items in the page.
pub(super) type Put<'a> = dyn FnMut(&Item) -> usize + Send + 'a;

/// A pattern's queries, and how their items are converted.
pub(super) struct ListPlan<'a, T> {
    /// The pattern's ID, for the cursors.
    pub(super) pattern: &'static str,
    /// The queries in the order of the listing. The page sets their limits.
    pub(super) queries: Vec<Query>,
    /// A filter on the items that the queries do not contain, as a text; empty without a filter.
    pub(super) filter: String,
    /// How an item is converted.
    pub(super) take: Take<'a, T>,
}

impl<'a, E: Entity + 'a> ListPlan<'a, E> {
    /// All items of an entity that a query finds.
    pub(super) fn all(pattern: &'static str, layout: &'a Layout, query: Query) -> Self {
        Self::of(pattern, query, Box::new(|item| E::from_item(layout, item)))
    }
}

impl<'a, T> ListPlan<'a, T> {
    /// The items of one query, converted.
    pub(super) fn of(pattern: &'static str, query: Query, take: Take<'a, T>) -> Self {
        Self { pattern, queries: vec![query], filter: String::new(), take }
    }

    /// The scope of the listing's cursors.
    pub(super) fn scope(&self) -> CursorScope {
        CursorScope::new(self.pattern, &self.queries, &self.filter)
    }

    /// Converts an item and puts it into a page.
    pub(super) fn put(&self, layout: &Layout, item: &Item, page: &mut Page<T>) {
        match (self.take)(item) {
            Ok(taken) => page.items.extend(taken),
            Err(error) => {
                let key = layout.key(item).unwrap_or_else(|| Key::new("", ""));
                page.unreadable.push(InvalidItem { key, error });
            }
        }
    }
}

/// The query in which a page continues, and the position in it.
struct ListPosition {
    at: usize,
    after: Option<ItemPosition>,
}

impl ListPosition {
    fn read(texts: &[String], queries: &[Query], layout: &Layout) -> Option<Self> {
        let (at, after) = texts.split_first()?;
        let at: usize = at.parse().ok()?;
        let query = queries.get(at)?;
        let after = if after.is_empty() { None } else { Some(ItemPosition::read(layout, query, after)?) };
        Some(Self { at, after })
    }

    fn texts(&self) -> Vec<String> {
        let mut texts = vec![self.at.to_string()];
        texts.extend(self.after.iter().flat_map(|position| position.texts().iter().cloned()));
        texts
    }
}

impl<S: Store> Queries<S> {
    /// Reads a page of a listing.
    pub(super) async fn list<T: Send>(
        &self,
        listing: &ListPlan<'_, T>,
        request: &PageRequest,
    ) -> Result<Page<T>, ReadError> {
        let mut page = Page::empty();
        let mut put = |item: &Item| {
            listing.put(&self.layout, item, &mut page);
            page.items.len()
        };
        let next =
            self.walk((&listing.scope(), &listing.queries), !listing.filter.is_empty(), request, &mut put).await?;
        Ok(Page { next, ..page })
    }

    /// Puts items into a page until it is full, and returns the next cursor.
    async fn walk(
        &self,
        (scope, queries): (&CursorScope, &[Query]),
        is_filtered: bool,
        request: &PageRequest,
        put: &mut Put<'_>,
    ) -> Result<Option<PageCursor>, ReadError> {
        let limit = request.limit()?;
        let mut place = self.place(queries, scope, request)?;
        let (mut n_put, mut n_looked_at) = (0, 0);
        while let Some(query) = queries.get(place.at) {
            // The limit doubles while most items are skipped.
            let n_asked = if is_filtered { limit.max(n_looked_at) } else { limit - n_put };
            let n_asked = u32::try_from(n_asked).unwrap_or(u32::MAX).min(PAGE_ITEMS_MAX);
            let asked = Query { limit: Some(n_asked), ..query.clone() };
            let start = place.after.as_ref().map(|position| position.start(&self.layout, query));
            let found = self.store.query(Table::Main, &asked, start).await?;
            let n_found = found.items.len();
            n_looked_at += n_found;
            for (n_before, item) in found.items.iter().enumerate() {
                n_put = put(item);
                if n_put == limit && (n_before + 1 < n_found || found.next.is_some()) {
                    place.after = Some(ItemPosition::of(&self.layout, query, item));
                    return Ok(Some(scope.seal(&place.texts())));
                }
            }
            place = match found.next {
                Some(next) => {
                    ListPosition { at: place.at, after: Some(ItemPosition::of(&self.layout, query, &next.0)) }
                }
                None => ListPosition { at: place.at + 1, after: None },
            };
            let is_done = n_put == limit || n_looked_at >= LOOKED_AT_MAX;
            if is_done && place.at < queries.len() {
                return Ok(Some(scope.seal(&place.texts())));
            }
        }
        Ok(None)
    }

    fn place(
        &self,
        queries: &[Query],
        scope: &CursorScope,
        request: &PageRequest,
    ) -> Result<ListPosition, CursorError> {
        let Some(cursor) = request.cursor() else {
            return Ok(ListPosition { at: 0, after: None });
        };
        let texts = scope.open(cursor)?;
        ListPosition::read(&texts, queries, &self.layout).ok_or_else(|| scope.damaged())
    }
}

#[cfg(test)]
mod tests {
    use entities::{
        ids::UserId,
        posts::{Post, PostKey},
    };
    use serde_dynamo::AttributeValue;
    use store::memory::MemoryStore;

    use super::*;

    /// Posts of one user, all of them drafts; every fifth has a title that is a number.
    fn queries(n_posts: usize) -> Queries<MemoryStore> {
        let queries = Queries::new(MemoryStore::new(entities::table::layout()), || 0);
        for at in 0..n_posts {
            let key = PostKey { author_id: "u".into(), created_at: format!("{at:06}"), post_id: "p".into() };
            let post = Post { key, status: Some("draft".to_owned()), ..Post::default() };
            let mut item = post.to_item(&queries.layout).unwrap();
            if at % 5 == 4 {
                item.insert("Title".to_owned(), AttributeValue::N("1".to_owned()));
            }
            queries.store.put_raw(Table::Main, item).unwrap();
        }
        queries
    }

    #[tokio::test]
    async fn an_item_that_cannot_be_read_is_named_and_stops_nobodys_page() {
        let (queries, user) = (queries(12), UserId::from("u"));
        let page = queries.posts_of(&user, None, &PageRequest::first(6)).await.unwrap();
        assert_eq!(page.items.len(), 6);
        let named: Vec<String> = page.unreadable.iter().map(|it| format!("{}: {}", it.key, it.error)).collect();
        assert_eq!(named, ["USER#u / POST#000009#p: Post.Title should be a text (S)"]);
        let rest = queries.posts_of(&user, None, &PageRequest::after(6, page.next.unwrap())).await.unwrap();
        assert_eq!((rest.items.len(), rest.unreadable.len(), rest.next), (4, 1, None));
    }

    #[tokio::test]
    async fn a_page_that_passes_over_too_much_gives_way_and_is_gone_on_from() {
        let (queries, user) = (queries(LOOKED_AT_MAX + 1_500), UserId::from("u"));
        let read = async |page| queries.posts_of(&user, Some("published"), &page).await.unwrap();
        let page = read(PageRequest::first(100)).await;
        assert!(page.items.is_empty(), "{} items", page.items.len());
        let rest = read(PageRequest::after(100, page.next.unwrap())).await;
        assert!(rest.items.is_empty() && rest.next.is_none());
    }
}
