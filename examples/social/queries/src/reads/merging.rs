//! Merged reads: all suffixes of a spread partition key, in one order.
//!
//! Each suffix is in order, so the next item of all is the first item of some suffix. A cursor contains the position in
//! each suffix, so pages neither repeat nor skip an item, however the items are distributed.

use std::collections::VecDeque;

use derive::{
    query::{Order, Query},
    write::Table,
};
use futures::future::try_join_all;
use keys::{
    item::{Item, text},
    layout::Layout,
};
use store::{Store, StoreError};

use super::{
    listing::{ListPlan, Put},
    position::ItemPosition,
};
use crate::{
    Queries,
    cursor::{CursorError, CursorScope, PageCursor},
    page::{LOOKED_AT_MAX, PAGE_ITEMS_MAX, Page, PageRequest},
    read_error::ReadError,
};

/// States of a suffix in a cursor. Clients store cursors, so they are stable.
const START: &str = "start";
const WITHIN: &str = "within";
const END: &str = "end";

/// One suffix, and how far it was read.
struct SuffixRead<'a> {
    query: &'a Query,
    /// The last item that was taken.
    after: Option<ItemPosition>,
    /// The items that were read after it, in order.
    ahead: VecDeque<Item>,
    /// Is nothing left after those?
    is_read: bool,
}

impl<'a> SuffixRead<'a> {
    fn read(layout: &Layout, query: &'a Query, texts: &mut impl Iterator<Item = String>) -> Option<Self> {
        let lane = Self { query, after: None, ahead: VecDeque::new(), is_read: false };
        match texts.next()?.as_str() {
            START => Some(lane),
            END => Some(Self { is_read: true, ..lane }),
            WITHIN => {
                // The sort key, and the item's own key.
                let position: Vec<String> = texts.take(3).collect();
                Some(Self { after: Some(ItemPosition::read(layout, query, &position)?), ..lane })
            }
            _ => None,
        }
    }

    fn texts(&self) -> Vec<String> {
        match &self.after {
            _ if self.is_ended() => vec![END.to_owned()],
            Some(position) => [&[WITHIN.to_owned()], position.texts()].concat(),
            None => vec![START.to_owned()],
        }
    }

    fn is_ended(&self) -> bool {
        self.is_read && self.ahead.is_empty()
    }

    /// Must it be read before the next item is known?
    fn is_behind(&self) -> bool {
        !self.is_read && self.ahead.is_empty()
    }

    /// Reads more; returns the number of items.
    async fn fill(&mut self, store: &impl Store, layout: &Layout, n_asked: u32) -> Result<usize, StoreError> {
        let asked = Query { limit: Some(n_asked), ..self.query.clone() };
        let start = self.after.as_ref().map(|position| position.start(layout, self.query));
        let found = store.query(Table::Main, &asked, start).await?;
        self.is_read = found.next.is_none();
        if let (true, Some(next)) = (found.items.is_empty(), &found.next) {
            self.after = Some(ItemPosition::of(layout, self.query, &next.0));
        }
        self.ahead = found.items.into();
        Ok(self.ahead.len())
    }

    /// The sort key of its next item.
    fn next_sk<'b>(&'b self, layout: &Layout) -> Option<&'b str> {
        let index = self.query.index.as_deref().and_then(|name| layout.index(name));
        text(self.ahead.front()?, index.map_or(&layout.sk, |index| &index.sk))
    }
}

impl<S: Store> Queries<S> {
    /// Reads a page of the listing. Each of its queries is one suffix.
    pub(super) async fn merge<T: Send>(
        &self,
        listing: &ListPlan<'_, T>,
        request: &PageRequest,
    ) -> Result<Page<T>, ReadError> {
        let mut page = Page::empty();
        let mut put = |item: &Item| {
            listing.put(&self.layout, item, &mut page);
            page.items.len()
        };
        let next = self.walk_all(&listing.scope(), &listing.queries, request, &mut put).await?;
        Ok(Page { next, ..page })
    }

    /// Puts items into a page until it is full, and returns the next cursor.
    async fn walk_all(
        &self,
        scope: &CursorScope,
        queries: &[Query],
        request: &PageRequest,
        put: &mut Put<'_>,
    ) -> Result<Option<PageCursor>, ReadError> {
        let limit = request.limit()?;
        let mut lanes = self.lanes(queries, scope, request)?;
        // Twice the average share of a suffix in a page, so that most pages need one round.
        let n_asked = u32::try_from(2 * limit.div_ceil(lanes.len().max(1))).unwrap_or(u32::MAX).min(PAGE_ITEMS_MAX);
        let (mut n_put, mut n_looked_at) = (0, 0);
        while lanes.iter().any(|lane| !lane.is_ended()) {
            if n_put == limit || n_looked_at >= LOOKED_AT_MAX {
                return Ok(Some(scope.seal(&lanes.iter().flat_map(SuffixRead::texts).collect::<Vec<_>>())));
            }
            let behind = lanes.iter_mut().filter(|lane| lane.is_behind());
            let filled = try_join_all(behind.map(|lane| lane.fill(&self.store, &self.layout, n_asked))).await?;
            n_looked_at += filled.into_iter().sum::<usize>();
            while n_put < limit && !lanes.iter().any(SuffixRead::is_behind) {
                let Some(item) = take_next(&mut lanes, &self.layout) else { break };
                n_put = put(&item);
            }
        }
        Ok(None)
    }

    fn lanes<'a>(
        &self,
        queries: &'a [Query],
        scope: &CursorScope,
        request: &PageRequest,
    ) -> Result<Vec<SuffixRead<'a>>, CursorError> {
        let mut texts = match request.cursor() {
            Some(cursor) => scope.open(cursor)?,
            None => vec![START.to_owned(); queries.len()],
        }
        .into_iter();
        let lanes: Option<Vec<_>> =
            queries.iter().map(|query| SuffixRead::read(&self.layout, query, &mut texts)).collect();
        lanes.filter(|_| texts.next().is_none()).ok_or_else(|| scope.damaged())
    }
}

/// Takes the least item of all; among equal sort keys, that of the first suffix.
fn take_next(lanes: &mut [SuffixRead<'_>], layout: &Layout) -> Option<Item> {
    let mut first: Option<(usize, &str)> = None;
    for (at, lane) in lanes.iter().enumerate() {
        let Some(sk) = lane.next_sk(layout) else { continue };
        let is_before = |(_, other): (usize, &str)| match lane.query.order {
            Order::Ascending => sk < other,
            Order::Descending => sk > other,
        };
        if first.is_none_or(is_before) {
            first = Some((at, sk));
        }
    }
    let (at, _) = first?;
    let lane = lanes.get_mut(at)?;
    let item = lane.ahead.pop_front()?;
    lane.after = Some(ItemPosition::of(layout, lane.query, &item));
    Some(item)
}
