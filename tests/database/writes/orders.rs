//! Orders and products: WP-08, WP-09, WP-12, WP-15, WP-16 and WP-19.

use expect_test::expect;
use keys::{key::Key, number::Decimal};
use queries::{
    write_error::{LINES_MAX, READINGS_MAX},
    writes::{
        draft::Edit,
        orders::{Line, OrderStatus, PlacedOrder},
        products::{NewProduct, ProductEdit, ReviewEdit},
        readings::NewReading,
    },
};
use serde_json::json;
use store::Store;

use crate::{
    s,
    writes::{Bed, START_MS, n},
};

pub(crate) fn line(product_id: &str, quantity: i64) -> Line {
    Line { product_id: product_id.to_owned(), quantity }
}

async fn pens_and_inks<S: Store>(bed: &Bed<S>) {
    bed.queries.create_product("pen", product("1.5", 10)).await.unwrap();
    bed.queries.create_product("ink", product("0.99", 3)).await.unwrap();
}

async fn place<S: Store>(bed: &Bed<S>, order_id: &str, lines: &[Line]) -> PlacedOrder {
    bed.queries.place_order("ada", order_id, lines).await.unwrap()
}

async fn inventory<S: Store>(bed: &Bed<S>, product_id: &str) -> i64 {
    let item = bed.item(&Key::new(format!("PRODUCT#{product_id}"), "METADATA")).await.unwrap();
    keys::value::whole_number(item.get("Inventory").unwrap()).unwrap()
}

pub(crate) async fn wp_08_an_order_is_placed_in_one_transaction<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    bed.set(&Key::new("PRODUCT#pen", "METADATA"), [("UnitsSold", n(4)), ("ViewCount", n(9))]).await;
    bed.later();
    let placed = place(&bed, "o1", &[line("pen", 2), line("ink", 3), line("pen", 1)]).await;
    assert_eq!(placed.total, Decimal::parse("7.47").unwrap());
    bed.holds(expect![[r#"
        ORDER#o1 / ITEM#ink
            CreatedAt = 2024-01-15T10:30:01.000Z
            EntityType = OrderItem
            GSI1PK = PRODUCT#ink
            GSI1SK = ITEM#o1
            Price = 0.99
            ProductName = Pen
            Quantity = 3
            UpdatedAt = 2024-01-15T10:30:01.000Z
        ORDER#o1 / ITEM#pen
            CreatedAt = 2024-01-15T10:30:01.000Z
            EntityType = OrderItem
            GSI1PK = PRODUCT#pen
            GSI1SK = ITEM#o1
            Price = 1.5
            ProductName = Pen
            Quantity = 3
            UpdatedAt = 2024-01-15T10:30:01.000Z
        PRODUCT#ink / METADATA
            Category = desk
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Product
            GSI1PK = CAT#desk
            GSI1SK = PRODUCT#ink
            Inventory = 0
            Name = Pen
            Price = 0.99
            Tags = ["blue", "ink"]
            UpdatedAt = 2024-01-15T10:30:00.000Z
        PRODUCT#pen / METADATA
            Category = desk
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Product
            GSI1PK = CAT#desk
            GSI1SK = PRODUCT#pen
            Inventory = 7
            Name = Pen
            Price = 1.5
            Tags = ["blue", "ink"]
            UnitsSold = 4
            UpdatedAt = 2024-01-15T10:30:00.000Z
            ViewCount = 9
        USER#ada / ORDER#2024-01-15T10:30:01.000Z#o1
            CreatedAt = 2024-01-15T10:30:01.000Z
            EntityType = Order
            GSI1PK = ORDERS#05
            GSI1SK = 99999999999252#o1
            GSI2PK = ORDERS#pending#05
            GSI2SK = 2024-01-15T10:30:01.000Z#o1
            Status = pending
            Total = 7.47
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
}

pub(crate) async fn wp_08_not_enough_of_one_product_places_nothing<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let before = bed.items().await;
    let lines = [line("pen", 10), line("ink", 2), line("ink", 2)];
    bed.refuses(
        bed.queries.place_order("ada", "o1", &lines).await,
        "product ink: not enough in stock for the order; order fewer",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_08_a_product_that_is_not_there_or_has_no_price_is_refused<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    bed.given("Product", json!({ "ProductId": "nib", "Category": "desk", "Inventory": 1 })).await;
    let before = bed.items().await;
    bed.lacks(bed.queries.place_order("ada", "o1", &[line("pen", 1), line("cap", 1)]).await, "PRODUCT#cap / METADATA");
    bed.refuses(
        bed.queries.place_order("ada", "o1", &[line("pen", 1), line("nib", 1)]).await,
        "product nib: it has no price from 0 up that fits; set its price",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_08_quantities_below_one_and_no_lines_are_refused<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let before = bed.items().await;
    let wanted = "product ink: a quantity is below 1; ask for one piece or more";
    for lines in
        [[line("pen", 1), line("ink", 0)], [line("pen", 1), line("ink", -1)], [line("ink", i64::MAX), line("ink", 1)]]
    {
        bed.refuses(bed.queries.place_order("ada", "o1", &lines).await, wanted);
    }
    bed.refuses(
        bed.queries.place_order("ada", "o1", &[]).await,
        "order o1: it has no line; order at least one product",
    );
    assert_eq!(bed.items().await, before);
}

async fn forty_nine_lines<S: Store>(bed: &Bed<S>) -> Vec<Line> {
    let lines: Vec<Line> = (0..LINES_MAX).map(|at| line(&format!("p{at}"), 1)).collect();
    for Line { product_id, .. } in &lines {
        bed.queries.create_product(product_id, product("1", 1)).await.unwrap();
    }
    lines
}

pub(crate) async fn wp_08_an_order_has_at_most_49_lines<S: Store>(bed: Bed<S>) {
    let mut lines = forty_nine_lines(&bed).await;
    let before = bed.items().await;
    lines.push(line("pen", 1));
    bed.refuses(
        bed.queries.place_order("ada", "o1", &lines).await,
        "order o1: 50 lines; the limit is 49, so make several orders of it",
    );
    assert_eq!(bed.items().await, before);
    lines.pop();
    let placed = place(&bed, "o1", &lines).await;
    assert_eq!(placed.total, Decimal::from(49));
    assert_eq!(bed.items().await.len(), before.len() + 1 + LINES_MAX);
    assert_eq!(inventory(&bed, "p48").await, 0);
}

pub(crate) async fn wp_08_the_same_order_again_is_already_placed<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    place(&bed, "o1", &[line("pen", 2)]).await;
    let before = bed.items().await;
    let wanted = "order o1: already placed; look at that one";
    for _ in 0..2 {
        let same = bed.queries.place_order("ada", "o1", &[line("pen", 2)]).await;
        bed.refuses(same, wanted);
        let other = bed.queries.place_order("bob", "o1", &[line("ink", 1)]).await;
        bed.refuses(other, wanted);
        bed.later();
    }
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_08_a_total_that_no_index_holds_is_refused<S: Store>(bed: Bed<S>) {
    bed.queries.create_product("pen", product("0.001", 10)).await.unwrap();
    bed.queries.create_product("moon", product("999999999999", 10)).await.unwrap();
    let before = bed.items().await;
    let wanted = "Order.Total does not fit in 14 digits, 2 of them behind the point";
    for lines in [[line("pen", 1)], [line("moon", 2)]] {
        bed.refuses(bed.queries.place_order("ada", "o1", &lines).await, wanted);
    }
    assert_eq!(bed.items().await, before);
    assert_eq!(place(&bed, "o1", &[line("pen", 10)]).await.total, Decimal::parse("0.01").unwrap());
}

pub(crate) async fn wp_09_an_order_leaves_the_work_queue_when_it_is_shipped<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let order = place(&bed, "o1", &[line("pen", 1)]).await.key;
    let key = Key::new("USER#ada", "ORDER#2024-01-15T10:30:00.000Z#o1");
    bed.set(&key, [("Note", s("another client's"))]).await;
    let mut seen = Vec::new();
    for status in [OrderStatus::Paid, OrderStatus::Packed, OrderStatus::Shipped, OrderStatus::Pending] {
        bed.later();
        bed.queries.change_order_status(&order, status).await.unwrap();
        seen.push((key.clone(), bed.item(&key).await.unwrap()));
    }
    expect![[r#"
        USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Order
            GSI1PK = ORDERS#05
            GSI1SK = 99999999999849#o1
            GSI2PK = ORDERS#paid#05
            GSI2SK = 2024-01-15T10:30:00.000Z#o1
            Note = another client's
            Status = paid
            Total = 1.5
            UpdatedAt = 2024-01-15T10:30:01.000Z
        USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Order
            GSI1PK = ORDERS#05
            GSI1SK = 99999999999849#o1
            GSI2PK = ORDERS#packed#05
            GSI2SK = 2024-01-15T10:30:00.000Z#o1
            Note = another client's
            Status = packed
            Total = 1.5
            UpdatedAt = 2024-01-15T10:30:02.000Z
        USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Order
            GSI1PK = ORDERS#05
            GSI1SK = 99999999999849#o1
            Note = another client's
            Status = shipped
            Total = 1.5
            UpdatedAt = 2024-01-15T10:30:03.000Z
        USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Order
            GSI1PK = ORDERS#05
            GSI1SK = 99999999999849#o1
            GSI2PK = ORDERS#pending#05
            GSI2SK = 2024-01-15T10:30:00.000Z#o1
            Note = another client's
            Status = pending
            Total = 1.5
            UpdatedAt = 2024-01-15T10:30:04.000Z
    "#]]
    .assert_eq(&crate::writes::shown(&seen));
}

pub(crate) async fn wp_09_an_unchanged_status_is_refused<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let order = place(&bed, "o1", &[line("pen", 1)]).await.key;
    let before = bed.items().await;
    bed.later();
    bed.has_it(
        bed.queries.change_order_status(&order, OrderStatus::Pending).await,
        "USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1",
        "Status",
    );
    let other = Key::new(order.pk, order.sk.replace("o1", "o2"));
    for status in [OrderStatus::Paid, OrderStatus::Cancelled] {
        bed.lacks(
            bed.queries.change_order_status(&other, status).await,
            "USER#ada / ORDER#2024-01-15T10:30:00.000Z#o2",
        );
    }
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_09_cancelling_restocks_and_marks_the_items<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let order = place(&bed, "o1", &[line("pen", 2), line("ink", 3)]).await.key;
    bed.queries.change_order_status(&order, OrderStatus::Paid).await.unwrap();
    bed.later();
    bed.queries.change_order_status(&order, OrderStatus::Cancelled).await.unwrap();
    bed.holds(expect![[r#"
        ORDER#o1 / ITEM#ink
            Cancelled = true
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = OrderItem
            GSI1PK = PRODUCT#ink
            GSI1SK = ITEM#o1
            Price = 0.99
            ProductName = Pen
            Quantity = 3
            UpdatedAt = 2024-01-15T10:30:01.000Z
        ORDER#o1 / ITEM#pen
            Cancelled = true
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = OrderItem
            GSI1PK = PRODUCT#pen
            GSI1SK = ITEM#o1
            Price = 1.5
            ProductName = Pen
            Quantity = 2
            UpdatedAt = 2024-01-15T10:30:01.000Z
        PRODUCT#ink / METADATA
            Category = desk
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Product
            GSI1PK = CAT#desk
            GSI1SK = PRODUCT#ink
            Inventory = 3
            Name = Pen
            Price = 0.99
            Tags = ["blue", "ink"]
            UpdatedAt = 2024-01-15T10:30:00.000Z
        PRODUCT#pen / METADATA
            Category = desk
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Product
            GSI1PK = CAT#desk
            GSI1SK = PRODUCT#pen
            Inventory = 10
            Name = Pen
            Price = 1.5
            Tags = ["blue", "ink"]
            UpdatedAt = 2024-01-15T10:30:00.000Z
        USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Order
            GSI1PK = ORDERS#05
            GSI1SK = 99999999999402#o1
            Status = cancelled
            Total = 5.97
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
}

pub(crate) async fn wp_09_a_removed_product_is_not_put_back<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let order = place(&bed, "o1", &[line("pen", 2), line("ink", 3)]).await.key;
    bed.queries.remove_product("ink").await.unwrap();
    bed.queries.change_order_status(&order, OrderStatus::Cancelled).await.unwrap();
    assert_eq!(bed.item(&Key::new("PRODUCT#ink", "METADATA")).await, None);
    assert_eq!(inventory(&bed, "pen").await, 10);
}

pub(crate) async fn wp_09_a_cancelled_order_stays_so<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let order = place(&bed, "o1", &[line("pen", 2)]).await.key;
    bed.queries.change_order_status(&order, OrderStatus::Cancelled).await.unwrap();
    let before = bed.items().await;
    bed.later();
    bed.has_it(
        bed.queries.change_order_status(&order, OrderStatus::Cancelled).await,
        "USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1",
        "Status",
    );
    bed.refuses(
        bed.queries.change_order_status(&order, OrderStatus::Paid).await,
        "order o1: it is cancelled, and stays so; place another",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_09_an_order_of_49_lines_is_cancelled<S: Store>(bed: Bed<S>) {
    let lines = forty_nine_lines(&bed).await;
    let before = bed.items().await;
    let order = place(&bed, "o1", &lines).await.key;
    bed.given("OrderItem", json!({ "OrderId": "o1", "ProductId": "pen", "Quantity": 1 })).await;
    bed.refuses(
        bed.queries.change_order_status(&order, OrderStatus::Cancelled).await,
        "order o1: 50 lines; the limit is 49, so make several orders of it",
    );
    bed.set(&Key::new("ORDER#o1", "ITEM#pen"), [("Cancelled", serde_dynamo::AttributeValue::Bool(true))]).await;
    bed.queries.change_order_status(&order, OrderStatus::Cancelled).await.unwrap();
    let products: Vec<_> = bed.items().await.into_iter().filter(|(key, _)| key.pk.starts_with("PRODUCT#")).collect();
    assert_eq!(products, before);
}

// ---- WP-19 ----

pub(crate) async fn wp_19_a_user_subscribes_and_unsubscribes<S: Store>(bed: Bed<S>) {
    let (ada, subscription) = ("ada", "s1");
    bed.queries.subscribe(ada, subscription, "monthly").await.unwrap();
    bed.holds(expect![[r#"
        USER#ada / SUB#s1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Subscription
            Plan = monthly
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
    bed.exists(bed.queries.subscribe(ada, subscription, "yearly").await, "USER#ada / SUB#s1");
    bed.is_emptied_by(async || bed.queries.unsubscribe(ada, subscription).await).await;
}

pub(crate) async fn wp_19_a_cart_is_filled_and_emptied<S: Store>(bed: Bed<S>) {
    let (ada, cart, pen) = ("ada", "c1", "pen");
    bed.queries.put_into_cart(ada, cart, pen, 1).await.unwrap();
    bed.set(&Key::new("USER#ada#CART#c1", "ITEM#pen"), [("Note", s("another client's"))]).await;
    bed.later();
    bed.queries.put_into_cart(ada, cart, pen, 3).await.unwrap();
    bed.queries.put_into_cart(ada, cart, pen, 3).await.unwrap();
    bed.holds(expect![[r#"
        USER#ada#CART#c1 / ITEM#pen
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = CartItem
            GSI1PK = USER#ada
            GSI1SK = CART#c1#ITEM#pen
            Note = another client's
            Quantity = 3
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    bed.refuses(
        bed.queries.put_into_cart(ada, cart, pen, 0).await,
        "product pen: a quantity is below 1; ask for one piece or more",
    );
    bed.is_emptied_by(async || bed.queries.take_out_of_cart(ada, cart, pen).await).await;
}

// ---- WP-15 and WP-16 ----

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
    bed.is_emptied_by(async || bed.queries.remove_product(pen).await).await;
}

pub(crate) async fn wp_15_what_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    let (pen, ink) = ("pen", "ink");
    bed.queries.create_product(pen, product("1.5", 10)).await.unwrap();
    let before = bed.items().await;
    bed.exists(bed.queries.create_product(pen, product("2", 1)).await, "PRODUCT#pen / METADATA");
    let none = "PRODUCT#ink / METADATA";
    bed.lacks(bed.queries.change_product(ink, ProductEdit::default()).await, none);
    bed.lacks(bed.queries.add_tag(ink, "blue").await, none);
    bed.lacks(bed.queries.remove_tag(ink, "blue").await, none);
    bed.lacks(bed.queries.count_product_view(ink).await, none);
    bed.lacks(bed.queries.set_inventory(ink, 0, 1).await, none);
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
    bed.exists(
        bed.queries.write_review("bob", "pen", "r1", 1, None).await,
        "PRODUCT#pen / REVIEW#2024-01-15T10:30:00.000Z#r1",
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
    bed.is_emptied_by(async || bed.queries.delete_review(&review).await).await;
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
    bed.lacks(bed.queries.edit_review(&key, edit(5)).await, "PRODUCT#pen / REVIEW#2024-01-15T10:30:00.000Z#r1");
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
    bed.exists(bed.queries.add_reading(&reading(1, "22")).await, "SENSOR#s1#2024-01-15 / 2024-01-15T10:30:00.001Z");
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
