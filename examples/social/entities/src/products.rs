//! Products and their reviews.

use std::collections::BTreeSet;

use keys::number::Decimal;

use crate::ids::{ProductId, ReviewId, UserId};

keys::entity! {
    /// A product.
    ground Product "E-19" {
        key ProductKey("PRODUCT#{ProductId}", "METADATA") {
            /// The product.
            product_id: ProductId = "ProductId",
        }
        index "GSI1" ("CAT#{Category}", "PRODUCT#{ProductId}");
        derived index "GSI2" ("BESTSELLERS#{Category}", "{MAX-UnitsSold:12}#{ProductId}");
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// Current price of one piece.
            price: Option<Decimal> = "Price",
            /// The category that lists it; the index keys need it.
            category: Option<String> = "Category",
            /// Number of pieces in stock.
            inventory: Option<i64> = "Inventory",
            /// Search words; absent for none.
            tags: BTreeSet<String> = "Tags",
            /// Number of views. The application counts them.
            view_count: Option<i64> = "ViewCount",
            /// When it was first offered, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Display: number of reviews; absent for 0.
            review_count: Option<i64> = "ReviewCount",
            /// Display: sum of the ratings, from which readers compute the average; absent for 0.
            rating_sum: Option<Decimal> = "RatingSum",
            /// Display: number of sold pieces, without cancelled ones; absent for 0.
            units_sold: Option<Decimal> = "UnitsSold",
        }
    }
}

keys::entity! {
    /// A review of a product, in the product's collection.
    ground Review "E-20" {
        key ReviewKey("PRODUCT#{ProductId}", "REVIEW#{CreatedAt}#{ReviewId}") {
            /// The product.
            product_id: ProductId = "ProductId",
            /// When it was written, ISO 8601 UTC in milliseconds.
            created_at: String = "CreatedAt",
            /// The review.
            review_id: ReviewId = "ReviewId",
        }
        index "GSI1" ("USER#{UserId}", "REVIEW#{CreatedAt}#{ReviewId}");
        attributes {
            /// The writer; the index key needs it.
            user_id: Option<UserId> = "UserId",
            /// From 1, the worst, to 5.
            rating: Option<i64> = "Rating",
            /// The review itself.
            text: Option<String> = "Text",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the writer's name; absent while the writer does not exist.
            user_name: Option<String> = "UserName",
        }
    }
}

#[cfg(test)]
mod tests {
    use keys::entity::Entity;
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::table::layout;

    fn product(tags: &[&str]) -> Product {
        Product {
            key: ProductKey { product_id: ProductId::from("p") },
            category: Some("tools".to_owned()),
            tags: tags.iter().copied().map(str::to_owned).collect(),
            units_sold: Some(Decimal::from(3)),
            ..Product::default()
        }
    }

    #[test]
    fn tags_are_a_string_set_and_none_are_no_attribute() {
        let tags = |tags: &[&str]| product(tags).to_item(&layout()).unwrap().get("Tags").cloned();
        assert_eq!(tags(&["b", "a"]), Some(AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()])));
        assert_eq!(tags(&[]), None);
        assert_eq!(
            Product::from_item(&layout(), &product(&[]).to_item(&layout()).unwrap()).unwrap(),
            Some(product(&[]))
        );
    }

    #[test]
    fn no_writer_makes_the_key_in_the_index_of_best_sellers() {
        let item = product(&[]).to_item(&layout()).unwrap();
        assert!(item.contains_key("GSI1PK") && !item.contains_key("GSI2PK") && !item.contains_key("GSI2SK"));
        let definition = Product::definition();
        let fields = definition.fields(&layout().key(&item).unwrap(), &item).unwrap();
        let names: Vec<String> =
            definition.index_attributes(&layout(), &fields).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["GSI1PK", "GSI1SK"]);
    }
}
