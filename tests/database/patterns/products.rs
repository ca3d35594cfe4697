//! Products and reviews.

use std::sync::Arc;

use entities::products::{Product, Review};
use keys::number::Decimal;
use queries::page::PageRequest;

use crate::patterns::{
    bed::{Bed, mapped},
    crowd::{CATEGORIES, ids},
};

type Held = Arc<Bed>;

pub(crate) async fn ap_029_a_product_with_its_average_rating(bed: Held) {
    for product in bed.crowd.sorted(|_: &Product| true, |_| ()) {
        let id = product.key.product_id.clone();
        let found = bed.queries.product(&id).await.unwrap().unwrap();
        let average = found.rating.and_then(|rating| rating.average(1));
        let wanted = (product.review_count != Some(0)).then(|| "4.0".to_owned());
        bed.same(&average, &wanted, &id);
        bed.same(&found.product, &product, &id);
    }
    assert!(bed.queries.product(&"k1".into()).await.unwrap().is_none());
}

pub(crate) async fn ap_030_products_of_a_category(bed: Held) {
    for category in CATEGORIES {
        let is_of = |it: &Product| it.category.as_deref() == Some(category);
        let wanted: Vec<_> = bed.crowd.sorted(is_of, |it| it.key.product_id.clone());
        let wanted: Vec<_> = wanted.into_iter().map(|it| (it.key, it.name, it.price)).collect();
        bed.lists(category, &wanted, async |page| {
            Ok(mapped(bed.queries.products_of(category, &page).await?, |it| (it.key, it.name, it.price)))
        })
        .await;
    }
    assert!(bed.queries.products_of("too", &PageRequest::first(9)).await.unwrap().items.is_empty());
}

pub(crate) async fn ap_031_best_sellers_of_a_category(bed: Held) {
    for category in CATEGORIES {
        let is_sold = |it: &Product| it.category.as_deref() == Some(category) && it.units_sold.is_some();
        let most_first = |it: &Product| {
            (std::cmp::Reverse(it.units_sold.clone().and_then(|units| units.whole())), it.key.product_id.clone())
        };
        let wanted: Vec<_> = bed.crowd.sorted(is_sold, most_first);
        assert_eq!(wanted.len(), 6, "the one that sold nothing is not among them");
        assert_ne!(wanted[0].units_sold, Some(Decimal::from(1)));
        let wanted: Vec<_> = wanted.into_iter().map(|it| (it.key, it.name, it.units_sold)).collect();
        bed.lists(category, &wanted, async |page| {
            let page = bed.queries.best_sellers_of(category, &page).await?;
            Ok(mapped(page, |it| (it.product.key, it.product.name, Some(it.units_sold))))
        })
        .await;
        let top = bed.queries.best_sellers_of(category, &PageRequest::first(2)).await.unwrap();
        bed.same(&top.items.len(), &2, category);
    }
}

pub(crate) async fn ap_032_reviews_of_a_product_newest_first(bed: Held) {
    for product in ids("k") {
        let product = format!("{product}@tools");
        let wanted = bed.crowd.reversed(
            |it: &Review| it.key.product_id.as_str() == product,
            |it| (it.key.created_at.clone(), it.key.review_id.clone()),
        );
        let id = product.clone().into();
        bed.lists(&product, &wanted, async |page| bed.queries.reviews_of(&id, &page).await).await;
    }
}
