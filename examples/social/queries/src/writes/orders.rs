//! Placing an order: the order, its items and every inventory in one transaction.
//!
//! Names and prices are those of the products at that moment. They are read first, and the transaction requires that
//! they are unchanged, so nothing is sold at an outdated price; after a change the whole write starts again. Only the
//! transaction checks the stock.
//!
//! An order is known by its id, but its key also contains the time, so an order with the same id at another time would
//! be another item. The items of the order, whose keys begin with the id, would collide. So a used id is found in two
//! ways: by a consistent read of the order's collection before the transaction, and by the conditions on its items. Two
//! orders with one id that are placed at the same moment for different products are both placed. Only two callers who
//! made the same id can cause that: a caller who retries sends the same products.

use std::collections::BTreeMap;

use derive::{
    guard::Ask,
    query::Query,
    write::{Action, Update, Write},
};
use entities::{
    ids::{OrderId, ProductId, UserId},
    orders::{Order, OrderItem, OrderItemKey, OrderKey, status},
    products::{Product, ProductKey},
};
use keys::{
    attribute::Attribute,
    entity::Entity,
    item::{self, Item},
    key::Key,
    number::Decimal,
};
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{as_read, number, write},
};
use crate::{
    Queries,
    write_error::{LINES_MAX, WriteError},
};

/// One line of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The product.
    pub product_id: ProductId,
    /// Number of pieces, from 1 up.
    pub quantity: i64,
}

/// A placed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedOrder {
    /// Its key, which contains the time.
    pub key: OrderKey,
    /// The total price.
    pub total: Decimal,
}

/// The content of an order's transaction.
struct OrderRequest<'a> {
    key: OrderKey,
    now: String,
    quantities: &'a BTreeMap<ProductId, i64>,
}

impl<S: Store> Queries<S> {
    /// WP-08: places an order, or nothing. Lines of one product are merged.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotEnough`] with the product; [`WriteError::NotFound`] for a product;
    /// [`WriteError::AlreadyPlaced`]; [`WriteError::TooManyLines`], [`WriteError::NoLines`], [`WriteError::Quantity`];
    /// [`WriteError::Price`] for a product without a price.
    pub async fn place_order(
        &self,
        user_id: &UserId,
        order_id: &OrderId,
        lines: &[Line],
    ) -> Result<PlacedOrder, WriteError> {
        let quantities = merged(order_id, lines)?;
        let now = self.now()?;
        let key = OrderKey { user_id: user_id.clone(), placed_at: now.clone(), order_id: order_id.clone() };
        let wanted = OrderRequest { key, now, quantities: &quantities };
        let mut attempts = self.attempts();
        let collection = collection(order_id)?;
        let look = Query { limit: Some(1), ..Query::prefix(None, collection, "") };
        if !attempts.page(&look).await?.items.is_empty() {
            return Err(WriteError::AlreadyPlaced { order_id: order_id.clone() });
        }
        let n_lines = quantities.len();
        loop {
            let products = attempts.products(quantities.keys()).await?;
            let (writes, total) = self.placing(&wanted, &products)?;
            match attempts.send(&writes).await? {
                Sent::Done => return Ok(PlacedOrder { key: wanted.key, total }),
                Sent::Refused(positions) if positions.iter().any(|position| *position <= n_lines) => {
                    return Err(WriteError::AlreadyPlaced { order_id: order_id.clone() });
                }
                Sent::Refused(positions) => attempts.explain(&wanted, &positions).await?,
            }
            attempts.again(&Order::primary_key(&wanted.key)?).await?;
        }
    }

    /// The order, then its items, then the products, all in the order of the products' ids.
    fn placing(
        &self,
        wanted: &OrderRequest<'_>,
        products: &BTreeMap<ProductId, Item>,
    ) -> Result<(Vec<Write>, Decimal), WriteError> {
        let (mut items, mut stocks, mut total) = (Vec::new(), Vec::new(), Decimal::default());
        for (product_id, &quantity) in wanted.quantities {
            let key = Product::primary_key(&ProductKey { product_id: product_id.clone() })?;
            let product = products.get(product_id).ok_or_else(|| WriteError::NotFound { item: key.clone() })?;
            let no_price = || WriteError::Price { product_id: product_id.clone() };
            let price = product.get("Price").and_then(Decimal::from_value).filter(|price| *price >= Decimal::default());
            let price = price.ok_or_else(no_price)?;
            total = times(&price, quantity).and_then(|sum| total.plus(&sum)).ok_or_else(no_price)?;
            let item = OrderItem {
                key: OrderItemKey { order_id: wanted.key.order_id.clone(), product_id: product_id.clone() },
                product_name: item::text(product, "Name").map(str::to_owned),
                price: Some(price),
                quantity: Some(quantity),
                cancelled: false,
                created_at: Some(wanted.now.clone()),
                updated_at: Some(wanted.now.clone()),
            };
            items.push(self.creation(&item)?);
            let asks = vec![
                Ask::AtLeast("Inventory".to_owned(), number(quantity)),
                as_read("Price", product),
                as_read("Name", product),
            ];
            stocks.push(write(key, stocked(-quantity), asks));
        }
        let order = Order {
            key: wanted.key.clone(),
            status: Some(status::PENDING.to_owned()),
            total: Some(total.clone()),
            created_at: Some(wanted.now.clone()),
            updated_at: Some(wanted.now.clone()),
        };
        let mut writes = vec![self.creation(&order)?];
        writes.extend(items.into_iter().chain(stocks));
        Ok((writes, total))
    }
}

impl<S: Store> Attempts<'_, S> {
    async fn products(
        &mut self,
        ids: impl Iterator<Item = &ProductId>,
    ) -> Result<BTreeMap<ProductId, Item>, WriteError> {
        let keys = ids.map(|product_id| Product::primary_key(&ProductKey { product_id: product_id.clone() }));
        let items = self.items(&keys.collect::<Result<Vec<Key>, _>>()?).await?;
        Ok(items.into_iter().filter_map(|(key, item)| Some((Product::parse_key(&key)?.product_id, item))).collect())
    }

    /// The first product at these positions with too little stock; `None` if only prices or names changed.
    async fn explain(&mut self, wanted: &OrderRequest<'_>, positions: &[usize]) -> Result<(), WriteError> {
        let n_lines = wanted.quantities.len();
        let lines = wanted.quantities.iter().enumerate();
        let refused: Vec<(&ProductId, &i64)> =
            lines.filter(|(at, _)| positions.contains(&(1 + n_lines + at))).map(|(_, line)| line).collect();
        let products = self.products(refused.iter().map(|(product_id, _)| *product_id)).await?;
        for (product_id, &quantity) in refused {
            let enough = Ask::AtLeast("Inventory".to_owned(), number(quantity));
            if let Some(product) = products.get(product_id)
                && !enough.holds(Some(product))
            {
                return Err(WriteError::NotEnough { product_id: product_id.clone() });
            }
        }
        Ok(())
    }
}

/// Changes the number of pieces in stock.
///
/// This is no edit of the product, so `UpdatedAt` stays.
pub(super) fn stocked(change: i64) -> Action {
    Action::Update(Update { add: [("Inventory", number(change))].into(), ..Update::default() })
}

/// The partition key of an order's own collection.
pub(super) fn collection(order_id: &OrderId) -> Result<String, WriteError> {
    // Any product will do: only the sort key contains it.
    let key = OrderItemKey { order_id: order_id.clone(), product_id: "-".into() };
    Ok(OrderItem::primary_key(&key)?.pk)
}

fn merged(order_id: &OrderId, lines: &[Line]) -> Result<BTreeMap<ProductId, i64>, WriteError> {
    let mut quantities = BTreeMap::<ProductId, i64>::new();
    for Line { product_id, quantity } in lines {
        let refused = || WriteError::Quantity { product_id: product_id.clone() };
        if *quantity < 1 {
            return Err(refused());
        }
        let merged = quantities.entry(product_id.clone()).or_default();
        *merged = merged.checked_add(*quantity).ok_or_else(refused)?;
    }
    match quantities.len() {
        0 => Err(WriteError::NoLines { order_id: order_id.clone() }),
        1..=LINES_MAX => Ok(quantities),
        n_lines => Err(WriteError::TooManyLines { order_id: order_id.clone(), n_lines }),
    }
}

/// The exact price of this many pieces, computed by doubling along the bits of the quantity. `None` if it is out of
/// range.
fn times(price: &Decimal, quantity: i64) -> Option<Decimal> {
    let (mut total, mut doubled, mut left) = (Decimal::default(), price.clone(), quantity);
    while left > 0 {
        if left % 2 == 1 {
            total = total.plus(&doubled)?;
        }
        left /= 2;
        if left > 0 {
            doubled = doubled.plus(&doubled)?;
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_multiplied_exactly() {
        let of =
            |price: &str, quantity| times(&Decimal::parse(price).unwrap(), quantity).map(|total| total.to_string());
        assert_eq!(of("19.99", 1).as_deref(), Some("19.99"));
        assert_eq!(of("19.99", 1_000_003).as_deref(), Some("19990059.97"));
        assert_eq!(of("0", i64::MAX).as_deref(), Some("0"));
        assert_eq!(of("0.1", i64::MAX).as_deref(), Some("922337203685477580.7"));
        assert_eq!(of("9E125", 2), None);
    }
}
