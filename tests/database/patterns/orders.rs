//! Orders and their items.

use std::{cmp::Reverse, sync::Arc};

use entities::{
    ids::UserId,
    orders::{Order, OrderDetail, OrderItem},
};
use queries::{page::PageRequest, read_error::ReadError, reads::times::Times};

use crate::patterns::{
    bed::{Bed, mapped},
    crowd::{ORDER_STATUSES, TIMES, ids},
};

type Held = Arc<Bed>;

pub(crate) async fn ap_033_orders_of_a_user_between_two_times_and_by_status(bed: Held) {
    for user in ids("u").into_iter().map(UserId::from) {
        let newest = bed
            .crowd
            .reversed(|it: &Order| it.key.user_id == user, |it| (it.key.placed_at.clone(), it.key.order_id.clone()));
        for times in [Times::all(), Times::between(TIMES[0], TIMES[2]), Times { from: Some(TIMES[1].into()), to: None }]
        {
            let is_within = |it: &&Order| {
                times.from.as_ref().is_none_or(|from| it.key.placed_at >= *from)
                    && times.to.as_ref().is_none_or(|to| it.key.placed_at <= *to)
            };
            let wanted: Vec<Order> = newest.iter().filter(is_within).cloned().collect();
            let read = async |page| bed.queries.orders_of(&user, &times, None, &page).await;
            bed.lists((&user, &times), &wanted, read).await;
            for status in ORDER_STATUSES {
                let wanted: Vec<Order> =
                    wanted.iter().filter(|it| it.status.as_deref() == Some(status)).cloned().collect();
                // Each status is rare, but pages are full.
                let first = bed.queries.orders_of(&user, &times, Some(status), &PageRequest::first(1)).await.unwrap();
                bed.same(&first.items, &wanted.iter().take(1).cloned().collect(), (&user, status));
                let all = bed.queries.orders_of(&user, &times, Some(status), &PageRequest::first(9)).await.unwrap();
                bed.same(&all.items, &wanted, (&user, status));
                assert!(all.next.is_none());
            }
        }
        let reversed = Times::between(TIMES[1], TIMES[0]);
        let refused = bed.queries.orders_of(&user, &reversed, None, &PageRequest::first(1)).await;
        assert!(matches!(refused, Err(ReadError::TimesReversed)));
    }
}

pub(crate) async fn ap_034_an_order_with_its_items(bed: Held) {
    for order in bed.crowd.sorted(|_: &OrderDetail| true, |_| ()) {
        let id = order.key.order_id.clone();
        let items = bed.crowd.sorted(|it: &OrderItem| it.key.order_id == id, |it| it.key.product_id.clone());
        bed.asked();
        let found = bed.queries.order_with_items(&id).await.unwrap();
        bed.same(&bed.asked().len(), &1, "requests");
        bed.same(&found.order, &Some(order), &id);
        bed.same(&found.items, &items, &id);
        assert!(found.unreadable.is_empty());
    }
    let none = bed.queries.order_with_items(&"o1@u2".into()).await.unwrap();
    assert!(none.order.is_none() && none.items.is_empty());
}

pub(crate) async fn ap_035_items_of_an_order(bed: Held) {
    for order in bed.crowd.sorted(|_: &OrderDetail| true, |_| ()) {
        let id = order.key.order_id;
        let wanted = bed.crowd.sorted(|it: &OrderItem| it.key.order_id == id, |it| it.key.product_id.clone());
        bed.lists(&id, &wanted, async |page| bed.queries.items_of_order(&id, &page).await).await;
    }
}

pub(crate) async fn ap_036_orders_in_an_open_status_oldest_first(bed: Held) {
    for status in &ORDER_STATUSES[..3] {
        let is_open = |it: &Order| it.status.as_deref() == Some(status);
        let oldest = bed.crowd.sorted(is_open, |it| (it.key.placed_at.clone(), it.key.order_id.clone()));
        let wanted: Vec<_> = oldest.into_iter().map(|it| (it.key, it.status, it.total)).collect();
        bed.lists(status, &wanted, async |page| {
            Ok(mapped(bed.queries.open_orders(status, &page).await?, |it| (it.key, it.status, it.total)))
        })
        .await;
    }
    for closed in &ORDER_STATUSES[3..] {
        assert!(bed.queries.open_orders(closed, &PageRequest::first(9)).await.unwrap().items.is_empty(), "{closed}");
    }
}

pub(crate) async fn ap_037_orders_that_contain_a_product(bed: Held) {
    for product in ids("k") {
        let holds = |it: &OrderItem| it.key.product_id.as_str() == product;
        let lines = bed.crowd.sorted(holds, |it| it.key.order_id.clone());
        let wanted: Vec<_> = lines.into_iter().map(|it| (it.key, it.price, it.quantity)).collect();
        let id = product.clone().into();
        bed.lists(&product, &wanted, async |page| {
            Ok(mapped(bed.queries.orders_with_product(&id, &page).await?, |it| (it.key, it.price, it.quantity)))
        })
        .await;
    }
}

pub(crate) async fn ap_042_orders_by_total_highest_first(bed: Held) {
    let highest = |it: &Order| (Reverse(it.total.clone()), it.key.order_id.clone());
    let wanted: Vec<_> = bed.crowd.sorted(|_| true, highest).into_iter().map(|it| (it.key, it.total)).collect();
    assert_eq!(wanted.len(), 49);
    bed.lists("orders by total", &wanted, async |page| {
        Ok(mapped(bed.queries.orders_by_total(&page).await?, |it| (it.key, it.total)))
    })
    .await;
}
