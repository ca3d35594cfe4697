//! WP-15 and WP-16.

use expect_test::expect;
use keys::{key::Key, number::Decimal};
use queries::{
    write_error::READINGS_MAX,
    writes::{
        draft::Edit,
        products::{NewProduct, ProductEdit, ReviewEdit},
        readings::NewReading,
    },
};
use store::Store;

use crate::writes::bed::{Bed, START_MS, n, s};

/// A product with this price and stock.
pub(crate) fn product(price: &str, inventory: i64) -> NewProduct {
    NewProduct {
        name: "Pen".to_owned(),
        price: Decimal::parse(price).unwrap(),
        category: "desk".to_owned(),
        inventory,
        tags: ["blue".to_owned(), "ink".to_owned()].into(),
    }
}

pub(crate) async fn wp_15_a_product_is_created_and_changed_with_its_index_key<S: Store>(bed: Bed<S>) {
    let pen = "pen";
    bed.queries.create_product(pen, product("1.50", 10)).await.unwrap();
    let derived = [("UnitsSold", n(4)), ("GSI2PK", s("BESTSELLERS#desk")), ("GSI2SK", s("999999999995#pen"))];
    bed.set(&Key::new("PRODUCT#pen", "METADATA"), derived).await;
    bed.holds(expect![[r#"
        PRODUCT#pen / METADATA
            Category = desk
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Product
            GSI1PK = CAT#desk
            GSI1SK = PRODUCT#pen
            GSI2PK = BESTSELLERS#desk
            GSI2SK = 999999999995#pen
            Inventory = 10
            Name = Pen
            Price = 1.5
            Tags = ["blue", "ink"]
            UnitsSold = 4
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
    bed.later();
    let edit = ProductEdit { category: Some("gifts #1".to_owned()), ..ProductEdit::default() };
    bed.queries.change_product(pen, edit).await.unwrap();
    let price = Decimal::parse("0");
    bed.queries
        .change_product(pen, ProductEdit { name: Some("Quill".to_owned()), price, category: None })
        .await
        .unwrap();
    bed.holds(expect![[r#"
        PRODUCT#pen / METADATA
            Category = gifts #1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Product
            GSI1PK = CAT#gifts %231
            GSI1SK = PRODUCT#pen
            GSI2PK = BESTSELLERS#desk
            GSI2SK = 999999999995#pen
            Inventory = 10
            Name = Quill
            Price = 0
            Tags = ["blue", "ink"]
            UnitsSold = 4
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    assert!(bed.queries.remove_product(pen).await.unwrap());
    assert!(!bed.queries.remove_product(pen).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_15_what_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    let (pen, ink) = ("pen", "ink");
    bed.queries.create_product(pen, product("1.5", 10)).await.unwrap();
    let before = bed.items().await;
    bed.refuses(
        bed.queries.create_product(pen, product("2", 1)).await,
        "PRODUCT#pen / METADATA: there is one already; choose another id, or change that one",
    );
    let none = "PRODUCT#ink / METADATA: there is none; look for it again";
    bed.refuses(bed.queries.change_product(ink, ProductEdit::default()).await, none);
    bed.refuses(bed.queries.add_tag(ink, "blue").await, none);
    bed.refuses(bed.queries.remove_tag(ink, "blue").await, none);
    bed.refuses(bed.queries.count_product_view(ink).await, none);
    bed.refuses(bed.queries.set_inventory(ink, 0, 1).await, none);
    let price = "product ink: it has no price from 0 up that fits; set its price";
    bed.refuses(bed.queries.create_product(ink, product("-1", 1)).await, price);
    bed.refuses(bed.queries.create_product(ink, product("1", -1)).await, "product ink: the stock is from 0 up");
    let edit = ProductEdit { price: Decimal::parse("-0.01"), ..ProductEdit::default() };
    bed.refuses(bed.queries.change_product(ink, edit).await, price);
    let nowhere = NewProduct { category: String::new(), ..product("1", 1) };
    bed.refuses(bed.queries.create_product(ink, nowhere).await, "Product.Category is empty; a key value must not be");
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_15_tags_come_and_go<S: Store>(bed: Bed<S>) {
    let pen = "pen";
    bed.queries.create_product(pen, product("1.5", 10)).await.unwrap();
    bed.later();
    for tag in ["new", "new", "ink"] {
        bed.queries.add_tag(pen, tag).await.unwrap();
    }
    bed.queries.remove_tag(pen, "blue").await.unwrap();
    bed.queries.remove_tag(pen, "blue").await.unwrap();
    bed.holds(expect![[r#"
        PRODUCT#pen / METADATA
            Category = desk
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Product
            GSI1PK = CAT#desk
            GSI1SK = PRODUCT#pen
            Inventory = 10
            Name = Pen
            Price = 1.5
            Tags = ["ink", "new"]
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    bed.queries.remove_tag(pen, "new").await.unwrap();
    bed.queries.remove_tag(pen, "ink").await.unwrap();
    let (_, pen) = bed.items().await.pop().unwrap();
    assert_eq!(pen.get("Tags"), None);
}

pub(crate) async fn wp_15_views_are_counted<S: Store>(bed: Bed<S>) {
    let pen = "pen";
    bed.queries.create_product(pen, product("1.5", 10)).await.unwrap();
    let (_, before) = bed.items().await.pop().unwrap();
    bed.later();
    for _ in 0..3 {
        bed.queries.count_product_view(pen).await.unwrap();
    }
    let (_, mut after) = bed.items().await.pop().unwrap();
    assert_eq!(after.remove("ViewCount"), Some(n(3)));
    assert_eq!(after, before);
}

pub(crate) async fn wp_15_the_stock_is_set_as_it_was_counted<S: Store>(bed: Bed<S>) {
    let pen = "pen";
    bed.queries.create_product(pen, product("1.5", 10)).await.unwrap();
    bed.later();
    bed.queries.set_inventory(pen, 10, 25).await.unwrap();
    let before = bed.items().await;
    bed.refuses(
        bed.queries.set_inventory(pen, 10, 30).await,
        "PRODUCT#pen / METADATA: Inventory is not as it was read any more; read it again",
    );
    bed.refuses(bed.queries.set_inventory(pen, 25, -1).await, "product pen: the stock is from 0 up");
    assert_eq!(bed.items().await, before);
    let (_, pen) = &before[0];
    assert_eq!((pen.get("Inventory"), pen.get("UpdatedAt")), (Some(&n(25)), Some(&s("2024-01-15T10:30:01.000Z"))));
}

pub(crate) async fn wp_16_a_review_is_written_edited_and_deleted<S: Store>(bed: Bed<S>) {
    let review = bed.queries.write_review("ada", "pen", "r1", 4, Some("It writes.")).await;
    let review = review.unwrap();
    bed.set(&Key::new("PRODUCT#pen", "REVIEW#2024-01-15T10:30:00.000Z#r1"), [("UserName", s("Ada"))]).await;
    bed.holds(expect![[r#"
        PRODUCT#pen / REVIEW#2024-01-15T10:30:00.000Z#r1
            EntityType = Review
            GSI1PK = USER#ada
            GSI1SK = REVIEW#2024-01-15T10:30:00.000Z#r1
            Rating = 4
            Text = It writes.
            UpdatedAt = 2024-01-15T10:30:00.000Z
            UserId = ada
            UserName = Ada
    "#]])
        .await;
    let again = bed.queries.write_review("bob", "pen", "r1", 1, None).await;
    bed.refuses(
        again,
        "PRODUCT#pen / REVIEW#2024-01-15T10:30:00.000Z#r1: there is one already; choose another id, or change that one",
    );
    bed.later();
    bed.queries.edit_review(&review, ReviewEdit { rating: Some(2), text: Edit::Clear }).await.unwrap();
    bed.holds(expect![[r#"
        PRODUCT#pen / REVIEW#2024-01-15T10:30:00.000Z#r1
            EntityType = Review
            GSI1PK = USER#ada
            GSI1SK = REVIEW#2024-01-15T10:30:00.000Z#r1
            Rating = 2
            UpdatedAt = 2024-01-15T10:30:01.000Z
            UserId = ada
            UserName = Ada
    "#]])
        .await;
    assert!(bed.queries.delete_review(&review).await.unwrap());
    assert!(!bed.queries.delete_review(&review).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_16_a_rating_out_of_range_is_refused<S: Store>(bed: Bed<S>) {
    let wanted = "PRODUCT#pen / REVIEW#2024-01-15T10:30:00.000Z#r1: the rating is not from 1 to 5";
    for rating in [0, 6, -1] {
        let answer = bed.queries.write_review("ada", "pen", "r1", rating, None).await;
        bed.refuses(answer, wanted);
    }
    let key = Key::new("PRODUCT#pen", "REVIEW#2024-01-15T10:30:00.000Z#r1");
    let edit = |rating| ReviewEdit { rating: Some(rating), text: Edit::Keep };
    bed.refuses(bed.queries.edit_review(&key, edit(6)).await, wanted);
    bed.refuses(
        bed.queries.edit_review(&key, edit(5)).await,
        "PRODUCT#pen / REVIEW#2024-01-15T10:30:00.000Z#r1: there is none; look for it again",
    );
    assert!(bed.items().await.is_empty());
}

// ---- WP-12 ----

fn reading(after_ms: u64, value: &str) -> NewReading {
    NewReading { sensor_id: "s1".to_owned(), at_ms: START_MS + after_ms, value: Decimal::parse(value).unwrap() }
}

pub(crate) async fn wp_12_a_reading_stands_in_its_day<S: Store>(bed: Bed<S>) {
    let exact = "21.123456789012345678901234567890123456";
    assert!(bed.queries.add_reading(&reading(1, exact)).await.unwrap());
    assert!(bed.queries.add_reading(&reading(86_400_000, "-3")).await.unwrap());
    bed.holds(expect![[r#"
        SENSOR#s1#2024-01-15 / 2024-01-15T10:30:00.001Z
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Reading
            UpdatedAt = 2024-01-15T10:30:00.000Z
            Value = 21.123456789012345678901234567890123456
        SENSOR#s1#2024-01-16 / 2024-01-16T10:30:00.000Z
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Reading
            UpdatedAt = 2024-01-15T10:30:00.000Z
            Value = -3
    "#]])
        .await;
    let never = NewReading { at_ms: u64::MAX, ..reading(0, "1") };
    bed.refuses(
        bed.queries.add_reading(&never).await,
        "18446744073709551615 ms since the epoch: past the year 9999, which no time of an item may be",
    );
}

pub(crate) async fn wp_12_the_same_reading_is_once_and_another_is_refused<S: Store>(bed: Bed<S>) {
    assert!(bed.queries.add_reading(&reading(1, "21.50")).await.unwrap());
    let before = bed.items().await;
    bed.later();
    assert!(!bed.queries.add_reading(&reading(1, "21.5")).await.unwrap());
    bed.refuses(
        bed.queries.add_reading(&reading(1, "22")).await,
        "SENSOR#s1#2024-01-15 / 2024-01-15T10:30:00.001Z: there is one already; choose another id, or change that one",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_12_a_batch_has_up_to_25_readings<S: Store>(bed: Bed<S>) {
    let batch: Vec<NewReading> = (0..=25).map(|at| reading(at, "1")).collect();
    bed.refuses(bed.queries.add_readings(&batch).await, "26 readings; the limit is 25, so send several batches");
    assert!(bed.items().await.is_empty());
    bed.queries.add_reading(&batch[3]).await.unwrap();
    assert_eq!(bed.queries.add_readings(&batch[..READINGS_MAX]).await.unwrap(), 24);
    assert_eq!(bed.queries.add_readings(&batch[..READINGS_MAX]).await.unwrap(), 0);
    assert_eq!(bed.items().await.len(), READINGS_MAX);
    assert_eq!(bed.queries.add_readings(&[]).await.unwrap(), 0);
}
