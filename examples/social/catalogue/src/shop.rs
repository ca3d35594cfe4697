//! D-25, D-27 and D-30: best sellers, the reviewers' names, and orders by their id.

use derive::{
    declaration::{link::Link, mirror::Mirror},
    derivation::Derivation,
    kinds::index_key::DerivedIndexKey,
};

use crate::{copy, found};

pub(crate) fn shop() -> Vec<Derivation> {
    let best_sellers =
        DerivedIndexKey { target: "Product".to_owned(), index: "GSI2".to_owned(), number: "UnitsSold".to_owned() };
    vec![
        Derivation::new("D-25", "best-sellers", best_sellers),
        copy(
            "D-27",
            "review-author",
            ("User", "Review", &[("UserId", "UserId")]),
            &[("Name", "UserName")],
            found("Review", Some("GSI1"), &[("UserId", "UserId")]),
        ),
        Derivation::new(
            "D-30",
            "order-detail",
            Mirror {
                source: "Order".to_owned(),
                target: "OrderDetail".to_owned(),
                link: Link::of(&[("OrderId", "OrderId")]),
                except: Vec::new(),
            },
        ),
    ]
}
