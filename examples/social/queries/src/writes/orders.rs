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
use keys::{
    item::{self, Item},
    key::Key,
    number::Decimal,
};
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{as_read, decimal, number, text, texts, write},
};
use crate::{
    Queries,
    write_error::{LINES_MAX, WriteError},
};

/// One line of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The product.
    pub product_id: String,
    /// Number of pieces, from 1 up.
    pub quantity: i64,
}

/// A placed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedOrder {
    /// Its key, which contains the time.
    pub key: Key,
    /// The total price.
    pub total: Decimal,
}

/// The content of an order's transaction.
struct OrderRequest<'a> {
    user_id: &'a str,
    order_id: &'a str,
    now: String,
    quantities: &'a BTreeMap<String, i64>,
}

impl<S: Store> Queries<S> {
    /// WP-08: places an order, or nothing. Lines of one product are merged.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotEnough`] with the product; [`WriteError::NotFound`] for a product;
    /// [`WriteError::AlreadyPlaced`]; [`WriteError::TooManyLines`], [`WriteError::NoLines`], [`WriteError::Quantity`];
    /// [`WriteError::Price`] for a product without a price.
    pub async fn place_order(&self, user_id: &str, order_id: &str, lines: &[Line]) -> Result<PlacedOrder, WriteError> {
        let quantities = merged(order_id, lines)?;
        let wanted = OrderRequest { user_id, order_id, now: self.now()?, quantities: &quantities };
        let key = self.key("Order", [("UserId", user_id), ("PlacedAt", &wanted.now), ("OrderId", order_id)])?;
        let mut attempts = self.attempts();
        let look = Query { limit: Some(1), ..Query::prefix(None, self.collection(order_id)?, "") };
        if !attempts.page(&look).await?.items.is_empty() {
            return Err(WriteError::AlreadyPlaced { order_id: order_id.to_owned() });
        }
        let n_lines = quantities.len();
        loop {
            let products = attempts.products(quantities.keys()).await?;
            let (writes, total) = self.placing(&wanted, &products)?;
            match attempts.send(&writes).await? {
                Sent::Done => return Ok(PlacedOrder { key, total }),
                Sent::Refused(positions) if positions.iter().any(|position| *position <= n_lines) => {
                    return Err(WriteError::AlreadyPlaced { order_id: order_id.to_owned() });
                }
                Sent::Refused(positions) => attempts.explain(&wanted, &positions).await?,
            }
            attempts.again(&key).await?;
        }
    }

    /// The order, then its items, then the products, all in the order of the products' ids.
    fn placing(
        &self,
        wanted: &OrderRequest<'_>,
        products: &BTreeMap<Key, Item>,
    ) -> Result<(Vec<Write>, Decimal), WriteError> {
        let OrderRequest { user_id, order_id, now, quantities } = wanted;
        let (mut items, mut stocks, mut total) = (Vec::new(), Vec::new(), Decimal::default());
        for (product_id, &quantity) in *quantities {
            let key = self.product(product_id)?;
            let product = products.get(&key).ok_or_else(|| WriteError::NotFound { item: key.clone() })?;
            let no_price = || WriteError::Price { product_id: product_id.clone() };
            let price = decimal(product, "Price").filter(|price| *price >= Decimal::default()).ok_or_else(no_price)?;
            let sum = price.times(&Decimal::from(quantity));
            total = sum.and_then(|sum| total.plus(&sum)).ok_or_else(no_price)?;
            let name = item::text(product, "Name").map(|name| ("ProductName", text(name)));
            let values = texts([("OrderId", *order_id), ("ProductId", product_id)]).chain(name);
            let values = values.chain([("Price", number(price)), ("Quantity", number(quantity))]);
            items.push(self.creation("OrderItem", now, values)?);
            let asks = vec![
                Ask::AtLeast("Inventory".to_owned(), number(quantity)),
                as_read("Price", product),
                as_read("Name", product),
            ];
            stocks.push(write(key, stocked(-quantity), asks));
        }
        let key = texts([("UserId", *user_id), ("PlacedAt", now), ("OrderId", order_id), ("Status", "pending")]);
        let mut writes = vec![self.creation("Order", now, key.chain([("Total", number(total.clone()))]))?];
        writes.extend(items.into_iter().chain(stocks));
        Ok((writes, total))
    }

    /// The partition key of an order's own collection.
    pub(super) fn collection(&self, order_id: &str) -> Result<String, WriteError> {
        // Any product will do: only the sort key contains it.
        Ok(self.key("OrderItem", [("OrderId", order_id), ("ProductId", "-")])?.pk)
    }
}

impl<S: Store> Attempts<'_, S> {
    async fn products(&mut self, ids: impl Iterator<Item = &String>) -> Result<BTreeMap<Key, Item>, WriteError> {
        let keys = ids.map(|product_id| self.queries.product(product_id)).collect::<Result<Vec<Key>, _>>()?;
        Ok(self.items(&keys).await?.into_iter().collect())
    }

    /// The first product at these positions with too little stock; `None` if only prices or names changed.
    async fn explain(&mut self, wanted: &OrderRequest<'_>, positions: &[usize]) -> Result<(), WriteError> {
        let n_lines = wanted.quantities.len();
        let lines = wanted.quantities.iter().enumerate();
        let refused: Vec<(&String, &i64)> =
            lines.filter(|(at, _)| positions.contains(&(1 + n_lines + at))).map(|(_, line)| line).collect();
        let products = self.products(refused.iter().map(|(product_id, _)| *product_id)).await?;
        for (product_id, &quantity) in refused {
            let enough = Ask::AtLeast("Inventory".to_owned(), number(quantity));
            if let Some(product) = products.get(&self.queries.product(product_id)?)
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

fn merged(order_id: &str, lines: &[Line]) -> Result<BTreeMap<String, i64>, WriteError> {
    let mut quantities = BTreeMap::<String, i64>::new();
    for Line { product_id, quantity } in lines {
        let refused = || WriteError::Quantity { product_id: product_id.clone() };
        if *quantity < 1 {
            return Err(refused());
        }
        let merged = quantities.entry(product_id.clone()).or_default();
        *merged = merged.checked_add(*quantity).ok_or_else(refused)?;
    }
    match quantities.len() {
        0 => Err(WriteError::NoLines { order_id: order_id.to_owned() }),
        1..=LINES_MAX => Ok(quantities),
        n_lines => Err(WriteError::TooManyLines { order_id: order_id.to_owned(), n_lines }),
    }
}
