//! AP-029 to AP-032: products and their reviews.

use derive::query::Consistency;
use entities::{
    ids::ProductId,
    products::{Product, ProductKey, Review},
};
use keys::{entity::Entity, fields::Fields, item::text, number::Decimal};
use store::Store;

use super::{
    listing::ListPlan,
    projection::{Projected, projection},
    ranges,
};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

projection! {
    /// The projection of [`Product`] in GSI1.
    ProductOfCategory of Product by ProductKey, "GSI1" {
        /// Name as shown.
        name: String = "Name",
        /// Price of one piece.
        price: Decimal = "Price",
        /// When it was first offered.
        created_at: String = "CreatedAt",
    }
}

projection! {
    /// The projection of [`Product`] in GSI2.
    ProductSold of Product by ProductKey, "GSI2" {
        /// Name as shown.
        name: String = "Name",
        /// Price of one piece.
        price: Decimal = "Price",
        /// When it was first offered.
        created_at: String = "CreatedAt",
    }
}

/// A product among the best sellers.
#[derive(Clone, Debug, PartialEq)]
pub struct BestSeller {
    /// The attributes in the index.
    pub product: ProductSold,
    /// Number of sold pieces, from the index key.
    pub units_sold: Decimal,
}

/// The average rating as an exact fraction, so that only the reader rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rating {
    /// The sum of all ratings.
    pub sum: Decimal,
    /// Number of ratings, at least 1.
    pub count: i64,
}

/// A product with its rating.
#[derive(Clone, Debug, PartialEq)]
pub struct RatedProduct {
    /// The product, with the displays of its counts.
    pub product: Product,
    /// Its average rating; `None` before the first review.
    pub rating: Option<Rating>,
}

impl Rating {
    /// The average with this many decimals, rounded half up; `None` if it has more than 38 digits.
    #[must_use]
    pub fn average(&self, places: u32) -> Option<String> {
        let (sum, scale) = scaled(&self.sum.to_string())?;
        let count = i128::from(self.count).checked_mul(10_i128.checked_pow(scale)?)?;
        let doubled = sum.checked_mul(10_i128.checked_pow(places)?)?.checked_mul(2)?.checked_add(count)?;
        let rounded = doubled.checked_div_euclid(count.checked_mul(2)?)?;
        let sign = if rounded < 0 { "-" } else { "" };
        let digits = format!("{:0width$}", rounded.unsigned_abs(), width = usize::try_from(places).ok()? + 1);
        let (whole, fraction) = digits.split_at_checked(digits.len() - usize::try_from(places).ok()?)?;
        Some(if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
    }
}

/// The digits of a plain number, and the number of its decimals.
fn scaled(text: &str) -> Option<(i128, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    Some((format!("{whole}{fraction}").parse().ok()?, u32::try_from(fraction.len()).ok()?))
}

impl<S: Store> Queries<S> {
    /// AP-029: a product by ID, with its counts and its average rating.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn product(&self, product: &ProductId) -> Result<Option<RatedProduct>, ReadError> {
        let found: Option<Product> =
            self.one(&ProductKey { product_id: product.clone() }, Consistency::Eventual).await?;
        Ok(found.map(|product| {
            let count = product.review_count.unwrap_or_default();
            let sum = product.rating_sum.clone().unwrap_or_default();
            RatedProduct { product, rating: (count > 0).then_some(Rating { sum, count }) }
        }))
    }

    /// AP-030: the products of a category, by ID, by GSI1, which may be stale.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn products_of(&self, category: &str, page: &PageRequest) -> Result<Page<ProductOfCategory>, ReadError> {
        let queries = ProductOfCategory::entries(&Fields::from([("Category", category)]))?;
        self.list(&ProductOfCategory::listing("AP-030", &self.layout, queries), page).await
    }

    /// AP-031: the best sellers of a category, most sold first, as many as the page has; by GSI2, which may be stale.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn best_sellers_of(&self, category: &str, page: &PageRequest) -> Result<Page<BestSeller>, ReadError> {
        let queries = ProductSold::entries(&Fields::from([("Category", category)]))?;
        let take = |item: &_| {
            let Some(product) = ProductSold::taken(&self.layout)(item)? else { return Ok(None) };
            let place = self.layout.index(ProductSold::INDEX).and_then(|index| text(item, &index.sk));
            let indexes = &Product::definition().indexes;
            let template = indexes.iter().find(|key| key.index == ProductSold::INDEX).map(|key| &key.key.sk);
            let fields = template.zip(place).and_then(|(template, place)| template.parse_key(place));
            let units_sold = fields.and_then(|fields| Decimal::parse(fields.get("UnitsSold")?));
            Ok(units_sold.map(|units_sold| BestSeller { product, units_sold }))
        };
        let listing = ListPlan { pattern: "AP-031", queries, filter: String::new(), take: Box::new(take) };
        self.list(&listing, page).await
    }

    /// AP-032: the reviews of a product, newest first.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn reviews_of(&self, product: &ProductId, page: &PageRequest) -> Result<Page<Review>, ReadError> {
        let query = ranges::collection::<Review>(&Fields::from([("ProductId", product.as_str())]))?;
        self.list(&ListPlan::all("AP-032", &self.layout, ranges::descending(query)), page).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-029",
            title: "product by ID with counts and average rating",
            input: "ProductId",
            result: "RatedProduct: Product, sum and count of its ratings; if there",
            order: "",
            sample: sample!(|queries| {
                queries.product(&"{ProductId}".into()).await?;
            }),
        },
        AccessPattern {
            id: "AP-030",
            title: "products of a category",
            input: "category, PageRequest",
            result: "Page<ProductOfCategory> (projection)",
            order: "ProductId",
            sample: sample!(|queries| {
                let _page = queries.products_of("{Category}", &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-031",
            title: "best sellers of a category, top N",
            input: "category, PageRequest of N",
            result: "Page<BestSeller> (projection)",
            order: "UnitsSold, descending; then ProductId",
            sample: sample!(|queries| {
                let _page = queries.best_sellers_of("{Category}", &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-032",
            title: "reviews of a product, newest first",
            input: "ProductId, PageRequest",
            result: "Page<Review>",
            order: "CreatedAt, ReviewId, descending",
            sample: sample!(|queries| {
                let _page = queries.reviews_of(&"{ProductId}".into(), &sample_page()).await?;
            }),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reads::projection::check;

    #[test]
    fn the_projections_have_what_their_indexes_hold() {
        check::<ProductOfCategory>();
        check::<ProductSold>();
    }

    #[test]
    fn an_average_is_exact_to_the_place_that_is_asked_for() {
        let average =
            |sum: &str, count: i64, places: u32| Rating { sum: Decimal::parse(sum).unwrap(), count }.average(places);
        for (sum, count, places, wanted) in [
            ("13", 3, 2, "4.33"),
            ("14", 3, 2, "4.67"),
            ("9", 2, 0, "5"),
            ("9", 2, 1, "4.5"),
            ("1", 8, 2, "0.13"),
            ("4.5", 1, 2, "4.50"),
            ("-1", 4, 2, "-0.25"),
        ] {
            assert_eq!(average(sum, count, places).as_deref(), Some(wanted), "{sum}/{count}");
        }
        assert_eq!(average("1E37", 3, 9), None);
    }
}
