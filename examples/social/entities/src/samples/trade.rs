//! Products, reviews, orders and carts.

use keys::{entity::Entity, error::EntityError, item::Item, key::Key, number::Decimal};

use super::AT;
use crate::{
    carts::{CartItem, CartItemKey},
    orders::{Order, OrderDetail, OrderDetailKey, OrderItem, OrderItemKey, OrderKey, status},
    products::{Product, ProductKey, Review, ReviewKey},
    table::layout,
};

pub(super) fn samples() -> Result<Vec<Item>, EntityError> {
    let layout = layout();
    Ok(vec![
        product().to_item(&layout)?,
        Review {
            key: ReviewKey { product_id: "tea".into(), created_at: AT.to_owned(), review_id: "r-31".into() },
            user_id: Some("grace".into()),
            rating: Some(5),
            text: Some("As strong as it should be.".into()),
            updated_at: Some(AT.into()),
            user_name: Some("Grace Hopper".into()),
        }
        .to_item(&layout)?,
        order().to_item(&layout)?,
        OrderItem {
            key: OrderItemKey { order_id: "o-880".into(), product_id: "tea".into() },
            product_name: Some("Black tea, 250 g".into()),
            price: Decimal::parse("9.95"),
            quantity: Some(2),
            cancelled: false,
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        OrderDetail {
            key: OrderDetailKey { order_id: "o-880".into() },
            user_id: Some("ada".into()),
            placed_at: Some(AT.into()),
            status: Some(status::PAID.into()),
            total: Decimal::parse("19.9"),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            claims: Some(vec![Key::new("USER#ada", format!("ORDER#{AT}#o-880")).into()]),
        }
        .to_item(&layout)?,
        CartItem {
            key: CartItemKey { user_id: "ada".into(), cart_id: "k-1".into(), product_id: "tea".into() },
            quantity: Some(2),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
    ])
}

fn product() -> Product {
    Product {
        key: ProductKey { product_id: "tea".into() },
        name: Some("Black tea, 250 g".into()),
        price: Decimal::parse("9.95"),
        category: Some("drinks".into()),
        inventory: Some(140),
        tags: ["loose", "organic"].map(str::to_owned).into(),
        view_count: Some(9_310),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        review_count: Some(42),
        rating_sum: Some(Decimal::from(189)),
        units_sold: Some(Decimal::from(640)),
    }
}

fn order() -> Order {
    Order {
        key: OrderKey { user_id: "ada".into(), placed_at: AT.to_owned(), order_id: "o-880".into() },
        status: Some(status::PAID.into()),
        total: Decimal::parse("19.9"),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    }
}
