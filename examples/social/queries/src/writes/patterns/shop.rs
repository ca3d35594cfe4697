//! Samples of the writes of products, orders, reviews, carts and readings.

use entities::{
    orders::OrderKey,
    products::{Product, ProductKey, ReviewKey},
};
use keys::{entity::Entity, number::Decimal};

use super::write;
use crate::{
    pattern::{AccessPattern, SampleError, SampleQueries, sample},
    writes::{
        draft::Edit,
        order_status::OrderStatus,
        orders::Line,
        products::{NewProduct, ProductEdit},
        readings::NewReading,
        reviews::ReviewEdit,
    },
};

/// The patterns of this file.
pub(super) const PATTERNS: &[AccessPattern] = &[
    write(
        "WP-08",
        "place an order",
        "UserId, OrderId, lines of ProductId and quantity",
        "PlacedOrder; refused: not enough of a product, no such product, more than 49 lines, an order of the same ID",
        sample!(|queries| {
            let lines = stock(queries)?;
            queries.place_order(&"{UserId}".into(), &"{OrderId}".into(), &lines).await?;
        }),
    ),
    write(
        "WP-09",
        "change an order's status",
        "OrderKey, OrderStatus",
        "nothing; refused: unchanged, cancelled, none there",
        sample!(|queries| {
            let order = placed(queries).await?;
            queries.change_order_status(&order, OrderStatus::Paid).await?;
        }),
    ),
    write(
        "WP-09",
        "cancel an order, restock it and mark its items",
        "OrderKey, OrderStatus",
        "nothing; refused: unchanged, none there",
        sample!(|queries| {
            let order = placed(queries).await?;
            queries.change_order_status(&order, OrderStatus::Cancelled).await?;
        }),
    ),
    write(
        "WP-12",
        "add a reading",
        "NewReading",
        "was it new; refused: another value at the same time",
        sample!(|queries| {
            queries.add_reading(&reading(0)).await?;
        }),
    ),
    write(
        "WP-12",
        "add up to 25 readings",
        "NewReadings",
        "how many were new; refused: another value at the same time, more than 25",
        sample!(|queries| {
            queries.add_readings(&[reading(0), reading(1)]).await?;
        }),
    ),
    write(
        "WP-15",
        "create a product",
        "ProductId, NewProduct",
        "nothing; refused: an existing ID",
        sample!(|queries| {
            let tags = ["{Tag}".to_owned()].into();
            let (name, category) = ("{Name}".to_owned(), "{Category}".to_owned());
            let new = NewProduct { name, price: Decimal::from(2), category, inventory: 10, tags };
            queries.create_product(&"{ProductId}".into(), new).await?;
        }),
    ),
    write(
        "WP-15",
        "change a product",
        "ProductId, ProductEdit",
        "nothing; refused: none there",
        sample!(|queries| {
            stock(queries)?;
            let edit = ProductEdit { category: Some("{Category}".to_owned()), ..ProductEdit::default() };
            queries.change_product(&"{ProductId}".into(), edit).await?;
        }),
    ),
    write(
        "WP-15",
        "set how many of a product are in stock",
        "ProductId, the stock when it was counted, the stock",
        "nothing; refused: another stock than counted, none there",
        sample!(|queries| {
            stock(queries)?;
            queries.set_inventory(&"{ProductId}".into(), 10, 20).await?;
        }),
    ),
    write(
        "WP-15",
        "remove a product",
        "ProductId",
        "was it there",
        sample!(|queries| {
            queries.remove_product(&"{ProductId}".into()).await?;
        }),
    ),
    write(
        "WP-15",
        "add a tag to a product",
        "ProductId, tag",
        "nothing; refused: none there",
        sample!(|queries| {
            stock(queries)?;
            queries.add_tag(&"{ProductId}".into(), "{Tag}").await?;
        }),
    ),
    write(
        "WP-15",
        "remove a tag from a product",
        "ProductId, tag",
        "nothing; refused: none there",
        sample!(|queries| {
            stock(queries)?;
            queries.remove_tag(&"{ProductId}".into(), "{Tag}").await?;
        }),
    ),
    write(
        "WP-15",
        "count a view of a product",
        "ProductId",
        "nothing; refused: none there",
        sample!(|queries| {
            stock(queries)?;
            queries.count_product_view(&"{ProductId}".into()).await?;
        }),
    ),
    write(
        "WP-16",
        "review a product",
        "UserId, ProductId, ReviewId, rating, text",
        "ReviewKey; refused: a rating out of range, one of the same product, time and ID",
        sample!(|queries| {
            review(queries).await?;
        }),
    ),
    write(
        "WP-16",
        "edit a review",
        "ReviewKey, ReviewEdit",
        "nothing; refused: a rating out of range, none there",
        sample!(|queries| {
            let review = review(queries).await?;
            queries.forget();
            queries.edit_review(&review, ReviewEdit { rating: Some(4), text: Edit::Keep }).await?;
        }),
    ),
    write(
        "WP-16",
        "delete a review",
        "ReviewKey",
        "was it there",
        sample!(|queries| {
            let review = review(queries).await?;
            queries.forget();
            queries.delete_review(&review).await?;
        }),
    ),
    write(
        "WP-19",
        "put a product into a cart",
        "UserId, CartId, ProductId, quantity",
        "nothing; refused: a quantity below 1",
        sample!(|queries| {
            queries.put_into_cart(&"{UserId}".into(), &"{CartId}".into(), &"{ProductId}".into(), 1).await?;
        }),
    ),
    write(
        "WP-19",
        "take a product out of a cart",
        "UserId, CartId, ProductId",
        "was it there",
        sample!(|queries| {
            queries.take_out_of_cart(&"{UserId}".into(), &"{CartId}".into(), &"{ProductId}".into()).await?;
        }),
    ),
];

/// Adds a product to the stock, and gives an order of it.
fn stock(queries: &SampleQueries) -> Result<[Line; 1], SampleError> {
    let product = Product {
        key: ProductKey { product_id: "{ProductId}".into() },
        name: Some("{Name}".to_owned()),
        price: Some(Decimal::from(2)),
        category: Some("{Category}".to_owned()),
        inventory: Some(10),
        ..Product::default()
    };
    queries.given(product.to_item(&queries.layout)?)?;
    Ok([Line { product_id: "{ProductId}".into(), quantity: 3 }])
}

async fn placed(queries: &SampleQueries) -> Result<OrderKey, SampleError> {
    let lines = stock(queries)?;
    let placed = queries.place_order(&"{UserId}".into(), &"{OrderId}".into(), &lines).await?;
    queries.forget();
    Ok(placed.key)
}

async fn review(queries: &SampleQueries) -> Result<ReviewKey, SampleError> {
    let (user, product, id) = ("{UserId}".into(), "{ProductId}".into(), "{ReviewId}".into());
    Ok(queries.write_review(&user, &product, &id, 5, Some("{Text}")).await?)
}

fn reading(at_ms: u64) -> NewReading {
    NewReading { sensor_id: "{SensorId}".into(), at_ms, value: Decimal::from(1) }
}
