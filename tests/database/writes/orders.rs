//! WP-08 and WP-09.

use expect_test::expect;
use keys::{key::Key, number::Decimal};
use queries::{
    write_error::LINES_MAX,
    writes::orders::{Line, OrderStatus, PlacedOrder},
};
use serde_json::json;
use store::Store;

use crate::writes::{
    bed::{Bed, n, s},
    products::product,
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
    let answer = bed.queries.place_order("ada", "o1", &lines).await;
    bed.refuses(answer, "product ink: not enough in stock for the order; order fewer");
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_08_a_product_that_is_not_there_or_has_no_price_is_refused<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    bed.given("Product", json!({ "ProductId": "nib", "Category": "desk", "Inventory": 1 })).await;
    let before = bed.items().await;
    let answer = bed.queries.place_order("ada", "o1", &[line("pen", 1), line("cap", 1)]).await;
    bed.refuses(answer, "PRODUCT#cap / METADATA: there is none; look for it again");
    let answer = bed.queries.place_order("ada", "o1", &[line("pen", 1), line("nib", 1)]).await;
    bed.refuses(answer, "product nib: it has no price from 0 up that fits; set its price");
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
    let none = bed.queries.place_order("ada", "o1", &[]).await;
    bed.refuses(none, "order o1: it has no line; order at least one product");
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
    let answer = bed.queries.place_order("ada", "o1", &lines).await;
    bed.refuses(answer, "order o1: 50 lines; the limit is 49, so make several orders of it");
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
    .assert_eq(&crate::writes::bed::shown(&seen));
}

pub(crate) async fn wp_09_an_unchanged_status_is_refused<S: Store>(bed: Bed<S>) {
    pens_and_inks(&bed).await;
    let order = place(&bed, "o1", &[line("pen", 1)]).await.key;
    let before = bed.items().await;
    bed.later();
    bed.refuses(
        bed.queries.change_order_status(&order, OrderStatus::Pending).await,
        "USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1: Status is that already; nothing is to be changed",
    );
    let other = Key::new(order.pk, order.sk.replace("o1", "o2"));
    for status in [OrderStatus::Paid, OrderStatus::Cancelled] {
        bed.refuses(
            bed.queries.change_order_status(&other, status).await,
            "USER#ada / ORDER#2024-01-15T10:30:00.000Z#o2: there is none; look for it again",
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
    let again = bed.queries.change_order_status(&order, OrderStatus::Cancelled).await;
    bed.refuses(
        again,
        "USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1: Status is that already; nothing is to be changed",
    );
    let paid = bed.queries.change_order_status(&order, OrderStatus::Paid).await;
    bed.refuses(paid, "order o1: it is cancelled, and stays so; place another");
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
    bed.refuses(
        bed.queries.subscribe(ada, subscription, "yearly").await,
        "USER#ada / SUB#s1: there is one already; choose another id, or change that one",
    );
    assert!(bed.queries.unsubscribe(ada, subscription).await.unwrap());
    assert!(!bed.queries.unsubscribe(ada, subscription).await.unwrap());
    assert!(bed.items().await.is_empty());
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
    assert!(bed.queries.take_out_of_cart(ada, cart, pen).await.unwrap());
    assert!(!bed.queries.take_out_of_cart(ada, cart, pen).await.unwrap());
    assert!(bed.items().await.is_empty());
}
