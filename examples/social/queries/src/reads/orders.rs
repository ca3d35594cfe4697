//! AP-033 to AP-037, AP-042: orders and their items.

use derive::query::{Query, SortKeys};
use entities::{
    ids::{OrderId, ProductId, UserId},
    orders::{Order, OrderDetail, OrderDetailKey, OrderItem, OrderItemKey, OrderKey},
};
use keys::{entity::Entity, fields::Fields, number::Decimal};
use store::Store;

use super::{
    listing::ListPlan,
    projection::{Projected, projection},
    ranges,
    times::Times,
};
use crate::{
    Queries,
    page::{InvalidItem, Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

projection! {
    /// The projection of [`Order`] in GSI1.
    OrderByTotal of Order by OrderKey, "GSI1" {
        /// Its status.
        status: String = "Status",
        /// Its total price.
        total: Decimal = "Total",
        /// When the item was first written.
        created_at: String = "CreatedAt",
    }
}

projection! {
    /// The projection of an open [`Order`] in GSI2.
    OpenOrder of Order by OrderKey, "GSI2" {
        /// Its status.
        status: String = "Status",
        /// Its total price.
        total: Decimal = "Total",
        /// When the item was first written.
        created_at: String = "CreatedAt",
    }
}

projection! {
    /// The projection of an [`OrderItem`] in GSI1. It does not contain whether the item is cancelled.
    ItemOfProduct of OrderItem by OrderItemKey, "GSI1" {
        /// The price of one piece at the time of the order.
        price: Decimal = "Price",
        /// Number of pieces.
        quantity: i64 = "Quantity",
        /// When the item was first written.
        created_at: String = "CreatedAt",
    }
}

/// An order with all its items.
#[derive(Debug)]
#[must_use]
pub struct OrderWithItems {
    /// The order; `None` if it does not exist, or has no mirror yet.
    pub order: Option<OrderDetail>,
    /// Its items, by the product's ID.
    pub items: Vec<OrderItem>,
    /// Items that do not fit their declaration.
    pub unreadable: Vec<InvalidItem>,
}

enum OrderOrItem {
    Order(OrderDetail),
    Item(OrderItem),
}

impl<S: Store> Queries<S> {
    /// AP-033: the orders of a user, newest first, between two times; those of one status, if one is given. Pages are
    /// filled up.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn orders_of(
        &self,
        user: &UserId,
        times: &Times,
        status: Option<&str>,
        page: &PageRequest,
    ) -> Result<Page<Order>, ReadError> {
        let fields = Fields::from([("UserId", user.as_str())]);
        let query = ranges::collection::<Order>(&fields)?;
        let sk = ranges::between(Order::NAME, &Order::definition().key.sk, &fields, "PlacedAt", times.bounds())?;
        let is_wanted = |order: &Order| status.is_none_or(|status| order.status.as_deref() == Some(status));
        let take = |item: &_| Ok(Order::from_item(&self.layout, item)?.filter(is_wanted));
        let listing = ListPlan::of("AP-033", ranges::descending(Query { sk, ..query }), Box::new(take));
        self.list(&ListPlan { filter: status.unwrap_or_default().to_owned(), ..listing }, page).await
    }

    /// AP-034: an order by ID with all its items by the product's ID, in one query.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn order_with_items(&self, order: &OrderId) -> Result<OrderWithItems, ReadError> {
        let key = OrderDetail::primary_key(&OrderDetailKey { order_id: order.clone() })?;
        let range = SortKeys::Between(ranges::first::<OrderItem>()?, key.sk);
        let query = ranges::eventual(Query::of(None, key.pk, range));
        let take = |item: &_| {
            if let Some(order) = OrderDetail::from_item(&self.layout, item)? {
                return Ok(Some(OrderOrItem::Order(order)));
            }
            Ok(OrderItem::from_item(&self.layout, item)?.map(OrderOrItem::Item))
        };
        let listing = ListPlan::of("AP-034", query.clone(), Box::new(take));
        let mut page = Page::empty();
        // An order has few items, so they are not paged.
        for item in self.whole(&query).await? {
            listing.put(&self.layout, &item, &mut page);
        }
        let mut found = OrderWithItems { order: None, items: Vec::new(), unreadable: page.unreadable };
        for part in page.items {
            match part {
                OrderOrItem::Order(order) => found.order = Some(order),
                OrderOrItem::Item(item) => found.items.push(item),
            }
        }
        Ok(found)
    }

    /// AP-035: the items of an order, by the product's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn items_of_order(&self, order: &OrderId, page: &PageRequest) -> Result<Page<OrderItem>, ReadError> {
        let query = ranges::collection::<OrderItem>(&Fields::from([("OrderId", order.as_str())]))?;
        self.list(&ListPlan::all("AP-035", &self.layout, query), page).await
    }

    /// AP-036: the orders in an open status (pending, paid, packed), oldest first: a work queue. By GSI2, which may be
    /// stale; a worker's write requires the status of the order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn open_orders(&self, status: &str, page: &PageRequest) -> Result<Page<OpenOrder>, ReadError> {
        let queries = OpenOrder::entries(&Fields::from([("Status", status)]))?;
        self.merge(&OpenOrder::listing("AP-036", &self.layout, queries), page).await
    }

    /// AP-037: the orders that contain a product, by the order's ID, by GSI1, which may be stale.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn orders_with_product(
        &self,
        product: &ProductId,
        page: &PageRequest,
    ) -> Result<Page<ItemOfProduct>, ReadError> {
        let queries = ItemOfProduct::entries(&Fields::from([("ProductId", product.as_str())]))?;
        self.list(&ItemOfProduct::listing("AP-037", &self.layout, queries), page).await
    }

    /// AP-042: all orders by total, highest first, for an administrator; by GSI1, which may be stale.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn orders_by_total(&self, page: &PageRequest) -> Result<Page<OrderByTotal>, ReadError> {
        // The key contains the inverted total, so ascending order gives the highest first.
        let queries = OrderByTotal::entries(&Fields::new())?;
        self.merge(&OrderByTotal::listing("AP-042", &self.layout, queries), page).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-033",
            title: "orders of a user, newest first, between two times, optionally by status (pages are filled up)",
            input: "UserId, Times, status?, PageRequest",
            result: "Page<Order>",
            order: "PlacedAt, OrderId, descending",
            sample: sample!(|queries| {
                let times = Times::between("{From}", "{To}");
                let _page = queries.orders_of(&"{UserId}".into(), &times, None, &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-034",
            title: "order by ID with its items, one query",
            input: "OrderId",
            result: "OrderWithItems: OrderDetail, OrderItems",
            order: "ProductId",
            sample: sample!(|queries| {
                let _order = queries.order_with_items(&"{OrderId}".into()).await?;
            }),
        },
        AccessPattern {
            id: "AP-035",
            title: "items of an order",
            input: "OrderId, PageRequest",
            result: "Page<OrderItem>",
            order: "ProductId",
            sample: sample!(|queries| {
                let _page = queries.items_of_order(&"{OrderId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-036",
            title: "orders in an open status, oldest first (work queue)",
            input: "status, PageRequest",
            result: "Page<OpenOrder> (projection)",
            order: "PlacedAt, OrderId; the suffixes merged",
            sample: sample!(|queries| {
                let _page = queries.open_orders("{Status}", &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-037",
            title: "orders containing a product",
            input: "ProductId, PageRequest",
            result: "Page<ItemOfProduct> (projection)",
            order: "OrderId",
            sample: sample!(|queries| {
                let _page = queries.orders_with_product(&"{ProductId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-042",
            title: "orders by total, highest first (administrator)",
            input: "PageRequest",
            result: "Page<OrderByTotal> (projection)",
            order: "Total, descending, then OrderId; the suffixes merged",
            sample: sample!(|queries| {
                let _page = queries.orders_by_total(&sample_page()).await?;
            }),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reads::projection::check;

    #[test]
    fn the_projections_have_what_their_indexes_hold() {
        check::<OrderByTotal>();
        check::<OpenOrder>();
        check::<ItemOfProduct>();
    }
}
