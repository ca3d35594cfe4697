//! Orders, and what was bought with them.
//!
//! An order stands in its buyer's collection, newest last, and its items in one of its own; there the mirror
//! [`OrderDetail`], which is ours, makes order and items one query.

use keys::number::Decimal;

use crate::{
    claim::Claim,
    ids::{OrderId, ProductId, UserId},
};

/// Texts of [`Order::status`]. Stored, so they are stable.
pub mod status {
    /// Placed, not paid yet.
    pub const PENDING: &str = "pending";
    /// Paid, to be packed.
    pub const PAID: &str = "paid";
    /// Packed, to be shipped.
    pub const PACKED: &str = "packed";
    /// On its way: nothing is left to be done.
    pub const SHIPPED: &str = "shipped";
    /// Called off; it counts no more.
    pub const CANCELLED: &str = "cancelled";
}

keys::entity! {
    /// An order, in its buyer's collection. While it is open, it is in the index of what is to be done.
    ground Order "E-21" {
        key OrderKey("USER#{UserId}", "ORDER#{PlacedAt}#{OrderId}") {
            /// Who ordered.
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
            /// What it costs in all, below 10^12 with at most two digits behind the point; its index key needs it.
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
    /// What was bought of one product with an order, as it was at the time.
    ground OrderItem "E-22" {
        key OrderItemKey("ORDER#{OrderId}", "ITEM#{ProductId}") {
            /// The order.
            order_id: OrderId = "OrderId",
            /// The product.
            product_id: ProductId = "ProductId",
        }
        index "GSI1" ("PRODUCT#{ProductId}", "ITEM#{OrderId}");
        attributes {
            /// The product's name when it was bought.
            product_name: Option<String> = "ProductName",
            /// What one cost when it was bought.
            price: Option<Decimal> = "Price",
            /// How many.
            quantity: Option<i64> = "Quantity",
            /// Was the order cancelled? Then these are not sold. Absent for no.
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
    /// The mirror of an [`Order`], beside its items.
    derived OrderDetail "E-27" {
        key OrderDetailKey("ORDER#{OrderId}", "METADATA") {
            /// The order.
            order_id: OrderId = "OrderId",
        }
        attributes {
            /// Who ordered, from the order's key.
            user_id: Option<UserId> = "UserId",
            /// When it was placed, from the order's key, ISO 8601 UTC in milliseconds.
            placed_at: Option<String> = "PlacedAt",
            /// The order's.
            status: Option<String> = "Status",
            /// The order's.
            total: Option<Decimal> = "Total",
            /// The order's.
            created_at: Option<String> = "CreatedAt",
            /// The order's.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Keys of the orders that say they are this one; the greatest of the living wins.
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
