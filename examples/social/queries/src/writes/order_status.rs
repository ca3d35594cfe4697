//! The status of an order: paid, packed, shipped, or cancelled.
//!
//! A cancelled order stays cancelled: one transaction marks its items and puts its pieces back in stock. The condition
//! on the order's status makes that happen once, even if several clients cancel it at the same time.

use std::collections::BTreeSet;

use derive::{
    guard::Ask,
    query::Query,
    write::{TRANSACT_ACTIONS_MAX, Write},
};
use keys::{fields::Fields, item::Item, key::Key, value::whole_number};
use serde_dynamo::AttributeValue;
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{Draft, as_read, check, text, write},
    orders::stocked,
};
use crate::{Queries, write_error::WriteError};

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
