//! Orders, carts and subscriptions.
//!
//! An order, its items and every inventory are placed in one transaction. Names and prices are those of the products at
//! that moment. They are read first, and the transaction requires that they are unchanged, so nothing is sold at an
//! outdated price; after a change the whole write starts again. Only the transaction checks the stock.
//!
//! An order is known by its id, but its key also contains the time, so an order with the same id at another time would
//! be another item. The items of the order, whose keys begin with the id, would collide. So a used id is found in two
//! ways: by a consistent read of the order's collection before the transaction, and by the conditions on its items. Two
//! orders with one id that are placed at the same moment for different products are both placed. Only two callers who
//! made the same id can cause that: a caller who retries sends the same products.
//!
//! A cancelled order stays cancelled: one transaction marks its items and puts its pieces back in stock. The condition
//! on the order's status makes that happen once, even if several clients cancel it at the same time.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    guard::Ask,
    query::Query,
    write::{Action, TRANSACT_ACTIONS_MAX, Update, Write},
};
use keys::{
    fields::Fields,
    item::{self, Item},
    key::Key,
    number::Decimal,
    value::whole_number,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{
    Queries,
    write_error::{LINES_MAX, WriteError},
    writes::{
        Attempts, Sent,
        draft::{Draft, as_read, check, decimal, number, text, texts, write},
    },
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
    fn collection(&self, order_id: &str) -> Result<String, WriteError> {
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

// ---- The status of an order: paid, packed, shipped, or cancelled ----

/// The status of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStatus {
    /// Placed, but not paid yet.
    Pending,
    /// Paid, and not packed yet.
    Paid,
    /// Packed, and not shipped yet.
    Packed,
    /// Shipped.
    Shipped,
    /// Cancelled.
    Cancelled,
}

impl OrderStatus {
    /// The stored text. Stable.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Packed => "packed",
            Self::Shipped => "shipped",
            Self::Cancelled => "cancelled",
        }
    }
}

impl<S: Store> Queries<S> {
    /// WP-09: changes an order's status. The transaction of a cancellation puts the pieces back in stock and marks the
    /// items.
    ///
    /// The pieces of a removed product are not put back. An item that another client adds to the order after this
    /// method read the items is not marked.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::Unchanged`]; [`WriteError::OrderCancelled`] for a status after that;
    /// [`WriteError::TooManyLines`] if another client made an order with more lines than a transaction can cancel.
    pub async fn change_order_status(&self, order: &Key, status: OrderStatus) -> Result<(), WriteError> {
        let fields = self.fields("Order", order)?;
        let order_id = fields.get("OrderId").unwrap_or_default();
        let (draft, mut attempts) = (self.status_change(order, status)?, self.attempts());
        let change = draft.write();
        let mut removed = BTreeSet::new();
        loop {
            let mut writes = vec![change.clone()];
            if status == OrderStatus::Cancelled {
                writes.extend(self.restocking(&mut attempts, order_id, &removed).await?);
            }
            if writes.len() > TRANSACT_ACTIONS_MAX {
                let n_lines = writes.len().saturating_sub(1) / 2;
                return Err(WriteError::TooManyLines { order_id: order_id.to_owned(), n_lines });
            }
            let Sent::Refused(positions) = attempts.send(&writes).await? else { return Ok(()) };
            if positions.contains(&0) {
                is_open_to(order_id, order, &attempts.existing(order).await?, status)?;
            }
            removed = attempts.removed(&writes, &positions).await?;
            attempts.again(order).await?;
        }
    }

    /// Sets the status, and the index key for open orders that depends on it.
    fn status_change(&self, order: &Key, status: OrderStatus) -> Result<Draft, WriteError> {
        let other_than = |status: &str| Ask::Differs("Status".to_owned(), text(status));
        let mut draft = Draft::of(order.clone(), &self.now()?).asking(other_than(status.as_str()));
        if status != OrderStatus::Cancelled {
            draft = draft.asking(other_than("cancelled"));
        }
        let draft = draft.set("Status", text(status.as_str()));
        self.indexed(draft, "Order", "GSI2", &[("Status", status.as_str())])
    }

    /// Marks the order's items, and puts their pieces back in stock.
    async fn restocking(
        &self,
        attempts: &mut Attempts<'_, S>,
        order_id: &str,
        removed: &BTreeSet<Key>,
    ) -> Result<Vec<Write>, WriteError> {
        let (now, prefix) = (self.now()?, self.entity("OrderItem")?.key.sk.prefix(&Fields::new())?);
        let items = attempts.page(&Query::prefix(None, self.collection(order_id)?, prefix)).await?.items;
        let (mut marks, mut stocks) = (Vec::new(), Vec::new());
        for item in items.iter().filter(|item| !is_cancelled(item)) {
            let Some(key) = self.schema.layout.key(item) else { continue };
            let Ok(fields) = self.fields("OrderItem", &key) else { continue };
            let mark = Draft::of(key, &now)
                .asking(as_read("Quantity", item))
                .asking(as_read("Cancelled", item))
                .set("Cancelled", AttributeValue::Bool(true));
            marks.push(mark.write());
            let quantity = item.get("Quantity").and_then(whole_number).filter(|quantity| *quantity > 0);
            if let Some(quantity) = quantity {
                stocks.push(self.restock(fields.get("ProductId").unwrap_or_default(), quantity, removed)?);
            }
        }
        Ok(marks.into_iter().chain(stocks).collect())
    }

    fn restock(&self, product_id: &str, quantity: i64, removed: &BTreeSet<Key>) -> Result<Write, WriteError> {
        let key = self.product(product_id)?;
        if removed.contains(&key) {
            return Ok(check(key, vec![Ask::Absent]));
        }
        Ok(write(key, stocked(quantity), vec![Ask::Present]))
    }
}

impl<S: Store> Attempts<'_, S> {
    /// The products at these positions of the writes that do not exist.
    async fn removed(&mut self, writes: &[Write], positions: &[usize]) -> Result<BTreeSet<Key>, WriteError> {
        let form = &self.queries.entity("Product")?.key;
        let products = writes.iter().map(|write| &write.key).filter(|key| form.parse_key(key).is_some());
        let products: Vec<Key> = products.cloned().collect();
        if positions == [0] {
            return Ok(BTreeSet::new());
        }
        let there: BTreeSet<Key> = self.items(&products).await?.into_iter().map(|(key, _)| key).collect();
        Ok(products.into_iter().filter(|key| !there.contains(key)).collect())
    }
}

fn is_cancelled(item: &Item) -> bool {
    item.get("Cancelled") == Some(&AttributeValue::Bool(true))
}

/// Can an order with the stored status get this one?
fn is_open_to(order_id: &str, item: &Key, stored: &Item, status: OrderStatus) -> Result<(), WriteError> {
    let is = |status: &str| stored.get("Status") == Some(&text(status));
    if is(status.as_str()) {
        return Err(WriteError::Unchanged { item: item.clone(), attribute: "Status" });
    }
    if is("cancelled") {
        return Err(WriteError::OrderCancelled { order_id: order_id.to_owned() });
    }
    Ok(())
}

// ---- Subscriptions and carts ----

impl<S: Store> Queries<S> {
    /// WP-19: a user subscribes to a plan.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if the user has a subscription with this id.
    pub async fn subscribe(&self, user_id: &str, subscription_id: &str, plan: &str) -> Result<(), WriteError> {
        let values = texts([("UserId", user_id), ("SubscriptionId", subscription_id), ("Plan", plan)]);
        self.create("Subscription", &self.now()?, values).await.map(drop)
    }

    /// WP-19: a user ends a subscription; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unsubscribe(&self, user_id: &str, subscription_id: &str) -> Result<bool, WriteError> {
        self.delete(self.key("Subscription", [("UserId", user_id), ("SubscriptionId", subscription_id)])?).await
    }

    /// WP-19: sets the number of pieces of a product in a cart, whatever it was before; a second time changes nothing.
    ///
    /// The cart's item is put if it does not exist, and changed if it does. The write starts again if another client
    /// removes the item in between.
    ///
    /// # Errors
    ///
    /// [`WriteError::Quantity`] below 1.
    pub async fn put_into_cart(
        &self,
        user_id: &str,
        cart_id: &str,
        product_id: &str,
        quantity: i64,
    ) -> Result<(), WriteError> {
        if quantity < 1 {
            return Err(WriteError::Quantity { product_id: product_id.to_owned() });
        }
        let (now, quantity) = (self.now()?, ("Quantity", number(quantity)));
        let key = texts([("UserId", user_id), ("CartId", cart_id), ("ProductId", product_id)]);
        let creation = self.creation("CartItem", &now, key.chain([quantity.clone()]))?;
        let change = Draft::of(creation.key.clone(), &now).set(quantity.0, quantity.1).write();
        let mut attempts = self.attempts();
        loop {
            for write in [&creation, &change] {
                if attempts.send(std::slice::from_ref(write)).await? == Sent::Done {
                    return Ok(());
                }
            }
            attempts.again(&creation.key).await?;
        }
    }

    /// WP-19: takes a product out of a cart; returns false if it was not in it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn take_out_of_cart(&self, user_id: &str, cart_id: &str, product_id: &str) -> Result<bool, WriteError> {
        let key = [("UserId", user_id), ("CartId", cart_id), ("ProductId", product_id)];
        self.delete(self.key("CartItem", key)?).await
    }
}
