//! WP-19.

use expect_test::expect;
use keys::key::Key;
use store::Store;

use crate::writes::bed::{Bed, s};

pub(crate) async fn wp_19_a_user_subscribes_and_unsubscribes<S: Store>(bed: Bed<S>) {
    let (ada, subscription) = ("ada".into(), "s1".into());
    bed.queries.subscribe(&ada, &subscription, "monthly").await.unwrap();
    bed.holds(expect![[r#"
        USER#ada / SUB#s1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Subscription
            Plan = monthly
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
    bed.refuses(
        bed.queries.subscribe(&ada, &subscription, "yearly").await,
        "USER#ada / SUB#s1: there is one already; choose another id, or change that one",
    );
    assert!(bed.queries.unsubscribe(&ada, &subscription).await.unwrap());
    assert!(!bed.queries.unsubscribe(&ada, &subscription).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_19_a_cart_is_filled_and_emptied<S: Store>(bed: Bed<S>) {
    let (ada, cart, pen) = ("ada".into(), "c1".into(), "pen".into());
    bed.queries.put_into_cart(&ada, &cart, &pen, 1).await.unwrap();
    bed.set(&Key::new("USER#ada#CART#c1", "ITEM#pen"), [("Note", s("another client's"))]).await;
    bed.later();
    bed.queries.put_into_cart(&ada, &cart, &pen, 3).await.unwrap();
    bed.queries.put_into_cart(&ada, &cart, &pen, 3).await.unwrap();
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
        bed.queries.put_into_cart(&ada, &cart, &pen, 0).await,
        "product pen: a quantity is below 1; ask for one piece or more",
    );
    assert!(bed.queries.take_out_of_cart(&ada, &cart, &pen).await.unwrap());
    assert!(!bed.queries.take_out_of_cart(&ada, &cart, &pen).await.unwrap());
    assert!(bed.items().await.is_empty());
}
