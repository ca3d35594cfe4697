//! Orders and their items.
//!
//! An order is in its buyer's collection, the newest last, and its items are in a collection of their own. Ripple
//! writes the mirror [`OrderDetail`] there, so that one query reads the order with its items.

use keys::number::Decimal;

use crate::{
    claim::Claim,
    ids::{OrderId, ProductId, UserId},
};

/// Texts of [`Order::status`]. Stored, so they are stable.
pub mod status {
    /// Placed, but not paid yet.
    pub const PENDING: &str = "pending";
    /// Paid, and not packed yet.
    pub const PAID: &str = "paid";
    /// Packed, and not shipped yet.
    pub const PACKED: &str = "packed";
    /// Shipped; nothing is left to do.
    pub const SHIPPED: &str = "shipped";
    /// Cancelled; it no longer counts.
    pub const CANCELLED: &str = "cancelled";
}

keys::entity! {
    /// An order, in its buyer's collection. An open order is also in the index of open orders.
    ground Order "E-21" {
        key OrderKey("USER#{UserId}", "ORDER#{PlacedAt}#{OrderId}") {
            /// The buyer.
            user_id: UserId = "UserId",
            /// When it was placed, ISO 8601 UTC in milliseconds.
            placed_at: String = "PlacedAt",
            /// The order.
            order_id: OrderId = "OrderId",
        }
        index "GSI1" ("ORDERS#{OrderId%8}", "{MAX-Total:14.2}#{OrderId}");
        index "GSI2" ("ORDERS#{Status}#{OrderId%8}", "{PlacedAt}#{OrderId}")
            only if "Status" = "pending" | "paid" | "packed";
        attributes {
            /// One of [`status`].
            status: Option<String> = "Status",
            /// Total price, below 10^12 and with two decimals at most; the index key needs it.
            total: Option<Decimal> = "Total",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

keys::entity! {
    /// A product of an order, as it was at the time of the order.
    ground OrderItem "E-22" {
        key OrderItemKey("ORDER#{OrderId}", "ITEM#{ProductId}") {
            /// The order.
            order_id: OrderId = "OrderId",
            /// The product.
            product_id: ProductId = "ProductId",
        }
        index "GSI1" ("PRODUCT#{ProductId}", "ITEM#{OrderId}");
        attributes {
            /// The product's name at the time of the order.
            product_name: Option<String> = "ProductName",
            /// The price of one piece at the time of the order.
            price: Option<Decimal> = "Price",
            /// Number of pieces.
            quantity: Option<i64> = "Quantity",
            /// Was the order cancelled? Cancelled items do not count as sold. Absent for no.
            cancelled: bool = "Cancelled",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

keys::entity! {
    /// The mirror of an [`Order`], in the collection of its items.
    derived OrderDetail "E-27" {
        key OrderDetailKey("ORDER#{OrderId}", "METADATA") {
            /// The order.
            order_id: OrderId = "OrderId",
        }
        attributes {
            /// The buyer, from the order's key.
            user_id: Option<UserId> = "UserId",
            /// When it was placed, from the order's key, ISO 8601 UTC in milliseconds.
            placed_at: Option<String> = "PlacedAt",
            /// From the order.
            status: Option<String> = "Status",
            /// From the order.
            total: Option<Decimal> = "Total",
            /// From the order.
            created_at: Option<String> = "CreatedAt",
            /// From the order.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Keys of all orders with this id; the mirror repeats the greatest that exists.
            claims: Option<Vec<Claim>> = "Claims",
        }
    }
}

#[cfg(test)]
mod tests {
    use keys::{
        entity::Entity,
        item::{Item, text},
    };
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::table::layout;

    fn order(status: &str, total: &str) -> Order {
        Order {
            key: OrderKey { user_id: "ada".into(), placed_at: "2024-01-15".to_owned(), order_id: "o1".into() },
            status: Some(status.to_owned()),
            total: Decimal::parse(total),
            ..Order::default()
        }
    }

    #[test]
    fn only_an_open_order_is_in_the_index_of_what_is_to_be_done() {
        for (status, inside) in [
            (status::PENDING, true),
            (status::PAID, true),
            (status::PACKED, true),
            (status::SHIPPED, false),
            (status::CANCELLED, false),
        ] {
            let item = order(status, "1").to_item(&layout()).unwrap();
            assert_eq!(item.contains_key("GSI2PK"), inside, "{status}");
            assert_eq!(item.contains_key("GSI2SK"), inside, "{status}");
        }
    }

    #[test]
    fn an_order_of_a_higher_total_comes_first() {
        let key = |total: &str| {
            let item = order(status::PAID, total).to_item(&layout()).unwrap();
            text(&item, "GSI1SK").unwrap().to_owned()
        };
        assert!(key("1000") < key("999.99") && key("999.99") < key("99.5") && key("0.01") < key("0"));
    }

    #[test]
    fn a_total_that_the_index_cannot_hold_is_refused() {
        let refusal = |total: &str| order(status::PAID, total).to_item(&layout()).unwrap_err().to_string();
        let width = "Order.Total does not fit in 14 digits, 2 of them behind the point";
        assert_eq!(refusal("1E12"), width);
        assert_eq!(refusal("0.001"), width);
        assert_eq!(refusal("-1"), "Order.Total is not a number from 0 up, of at most 38 digits");
        assert!(order(status::PAID, "999999999999.99").to_item(&layout()).is_ok());
    }

    #[test]
    fn an_index_takes_a_number_from_an_attribute_of_type_n_and_a_text_from_one_of_type_s() {
        let keys = |attributes: &[(&str, AttributeValue)]| {
            let key = Order::primary_key(&order("", "0").key).unwrap();
            let item: Item = attributes.iter().cloned().collect();
            let fields = Order::definition().fields(&key, &item).unwrap();
            let attributes = Order::definition().index_attributes(&layout(), &fields);
            attributes.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name).collect::<Vec<_>>()
        };
        let (n, s) = (|text: &str| AttributeValue::N(text.into()), |text: &str| AttributeValue::S(text.into()));
        assert_eq!(keys(&[("Status", s("paid")), ("Total", n("19.90"))]), ["GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"]);
        assert_eq!(keys(&[("Status", n("1")), ("Total", n("1E1"))]), ["GSI1PK", "GSI1SK"]);
        assert_eq!(keys(&[("Status", s("paid")), ("Total", s("19.90"))]), ["GSI2PK", "GSI2SK"]);
        assert_eq!(keys(&[("Total", AttributeValue::Bool(true))]), Vec::<String>::new());
    }

    #[test]
    fn an_item_that_says_nothing_is_not_cancelled() {
        let line = OrderItem { quantity: Some(2), ..OrderItem::default() };
        assert!(!line.attributes().contains_key("Cancelled"));
        let cancelled = OrderItem { cancelled: true, ..line };
        assert_eq!(cancelled.attributes().get("Cancelled"), Some(&AttributeValue::Bool(true)));
        let no = Item::from([("Cancelled", AttributeValue::Bool(false))]);
        for (item, is_cancelled) in [(Item::new(), false), (no, false), (cancelled.attributes(), true)] {
            assert_eq!(OrderItem::read(OrderItemKey::default(), &item).unwrap().cancelled, is_cancelled);
        }
    }
}
