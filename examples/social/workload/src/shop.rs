//! Products, orders, reviews, carts and subscriptions.

use entities::{
    ids::{CartId, OrderId, ProductId, ReviewId, SubscriptionId, UserId},
    orders::OrderKey,
    products::ReviewKey,
};
use queries::{
    Queries,
    writes::{
        draft::Edit,
        order_status::OrderStatus,
        orders::Line,
        products::{NewProduct, ProductEdit},
        reviews::ReviewEdit,
    },
};
use rand::Rng as _;
use store::Store;

use super::{Application, act_error::ActError};

const CATEGORIES: [&str; 4] = ["books", "games", "garden", "tools"];

const TAGS: [&str; 3] = ["new", "sale", "last pieces"];

/// Actions in the shop.
#[derive(Clone, Debug)]
pub enum Shop {
    Create(ProductId, NewProduct),
    Change(ProductId, ProductEdit),
    /// Adds to the stock.
    Restock(ProductId, i64),
    Remove(ProductId),
    AddTag(ProductId, &'static str),
    RemoveTag(ProductId, &'static str),
    LookAt(ProductId),
    Order(UserId, OrderId, Vec<Line>),
    ChangeOrder(OrderKey, OrderStatus),
    Review(UserId, ProductId, ReviewId, i64),
    EditReview(ReviewKey, i64),
    DeleteReview(ReviewKey),
    PutIntoCart(UserId, ProductId, i64),
    TakeOutOfCart(UserId, ProductId),
    Subscribe(UserId, SubscriptionId),
    Unsubscribe(UserId, SubscriptionId),
}

impl Application {
    /// The next action; the numbers are of 130.
    pub(super) fn of_the_shop(&mut self) -> (String, Shop) {
        let n = self.chance.random_range(0..130);
        let Some(product_id) = self.any(|app| &app.products) else { return self.create_product() };
        match n {
            0..=9 => self.create_product(),
            10..=31 => self.change_product(product_id),
            32..=59 => self.order(product_id),
            60..=77 => self.change_order(product_id),
            78..=107 => self.of_reviews(product_id),
            108..=119 => self.of_carts(product_id),
            _ => self.of_subscriptions(),
        }
    }

    fn create_product(&mut self) -> (String, Shop) {
        let product_id = ProductId::from(self.new_id("x"));
        self.products.push(product_id.clone());
        let new = NewProduct {
            name: format!("Product {}", self.n_actions),
            price: self.chance.random_range(1..200).into(),
            category: self.one_of(&CATEGORIES).to_owned(),
            inventory: self.chance.random_range(0..60),
            tags: [self.one_of(&TAGS).to_owned()].into(),
        };
        shop(product_id.as_str().to_owned(), Shop::Create(product_id, new))
    }

    fn change_product(&mut self, product_id: ProductId) -> (String, Shop) {
        let subject = product_id.as_str().to_owned();
        let (name, category) =
            (format!("Product {}, new edition", self.n_actions), self.one_of(&CATEGORIES).to_owned());
        let (price, tag) = (self.chance.random_range(1_i64..200), self.one_of(&TAGS));
        let renamed = ProductEdit { name: Some(name), price: Some(price.into()), category: None };
        let relisted = ProductEdit { category: Some(category), ..ProductEdit::default() };
        let act = match self.chance.random_range(0..20) {
            0..=2 => Shop::Change(product_id, renamed),
            3..=5 => Shop::Change(product_id, relisted),
            6..=10 => Shop::Restock(product_id, price),
            11 => Shop::Remove(product_id),
            12..=13 => Shop::AddTag(product_id, tag),
            14..=15 => Shop::RemoveTag(product_id, tag),
            _ => Shop::LookAt(product_id),
        };
        shop(subject, act)
    }

    fn order(&mut self, first: ProductId) -> (String, Shop) {
        let (user_id, order_id) = (self.any_user(), OrderId::from(self.new_id("b")));
        let more: Vec<ProductId> =
            (0..self.chance.random_range(0..3)).filter_map(|_| self.any(|app| &app.products)).collect();
        let mut lines = Vec::new();
        for product_id in [first].into_iter().chain(more) {
            lines.push(Line { product_id, quantity: self.chance.random_range(1..6) });
        }
        self.orders.push(OrderKey { user_id: user_id.clone(), placed_at: self.now(), order_id: order_id.clone() });
        shop(order_id.as_str().to_owned(), Shop::Order(user_id, order_id, lines))
    }

    fn change_order(&mut self, product_id: ProductId) -> (String, Shop) {
        let Some(order) = self.any(|app| &app.orders) else { return self.order(product_id) };
        let status = match self.chance.random_range(0..8) {
            0..=1 => OrderStatus::Paid,
            2..=3 => OrderStatus::Packed,
            4 => OrderStatus::Shipped,
            5 => OrderStatus::Pending,
            _ => OrderStatus::Cancelled,
        };
        shop(order.order_id.as_str().to_owned(), Shop::ChangeOrder(order, status))
    }

    fn of_reviews(&mut self, product_id: ProductId) -> (String, Shop) {
        let (n, rating) = (self.chance.random_range(0..10), self.chance.random_range(1..6));
        let Some(review) = self.any(|app| &app.reviews).filter(|_| n >= 6) else {
            let (user_id, review_id) = (self.any_user(), ReviewId::from(self.new_id("r")));
            let created_at = self.now();
            let key = ReviewKey { product_id: product_id.clone(), created_at, review_id: review_id.clone() };
            self.reviews.push(key);
            return shop(review_id.as_str().to_owned(), Shop::Review(user_id, product_id, review_id, rating));
        };
        let subject = review.review_id.as_str().to_owned();
        shop(subject, if n < 8 { Shop::EditReview(review, rating) } else { Shop::DeleteReview(review) })
    }

    fn of_carts(&mut self, product_id: ProductId) -> (String, Shop) {
        let taken = if self.happens(1, 3) { self.any(|app| &app.carts) } else { None };
        if let Some((user_id, product_id)) = taken {
            return shop(user_id.as_str().to_owned(), Shop::TakeOutOfCart(user_id, product_id));
        }
        let (user_id, quantity) = (self.any_user(), self.chance.random_range(1..4));
        self.carts.push((user_id.clone(), product_id.clone()));
        shop(user_id.as_str().to_owned(), Shop::PutIntoCart(user_id, product_id, quantity))
    }

    fn of_subscriptions(&mut self) -> (String, Shop) {
        let ended = if self.happens(1, 3) { self.any(|app| &app.subscriptions) } else { None };
        let id = |n: u64| SubscriptionId::from(format!("s{n}"));
        if let Some((user_id, n)) = ended {
            return shop(user_id.as_str().to_owned(), Shop::Unsubscribe(user_id, id(n)));
        }
        let user_id = self.any_user();
        self.subscriptions.push((user_id.clone(), self.n_actions));
        shop(user_id.as_str().to_owned(), Shop::Subscribe(user_id, id(self.n_actions)))
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        let at = self.chance.random_range(0..texts.len().max(1));
        texts.get(at).copied().unwrap_or_default()
    }
}

fn shop(subject: String, act: Shop) -> (String, Shop) {
    (subject, act)
}

impl Shop {
    pub(super) async fn perform<S: Store>(self, queries: &Queries<S>) -> Result<(), ActError> {
        // Each user has one cart.
        let cart = CartId::from("cart");
        match self {
            Self::Create(product_id, new) => queries.create_product(&product_id, new).await?,
            Self::Change(product_id, edit) => queries.change_product(&product_id, edit).await?,
            Self::Restock(product_id, more) => {
                let product = queries.product(&product_id).await?;
                let counted = product.and_then(|rated| rated.product.inventory).unwrap_or_default();
                queries.set_inventory(&product_id, counted, counted + more).await?;
            }
            Self::Remove(product_id) => queries.remove_product(&product_id).await.map(drop)?,
            Self::AddTag(product_id, tag) => queries.add_tag(&product_id, tag).await?,
            Self::RemoveTag(product_id, tag) => queries.remove_tag(&product_id, tag).await?,
            Self::LookAt(product_id) => queries.count_product_view(&product_id).await?,
            Self::Order(user_id, order_id, lines) => {
                queries.place_order(&user_id, &order_id, &lines).await.map(drop)?;
            }
            Self::ChangeOrder(order, status) => queries.change_order_status(&order, status).await?,
            Self::Review(user_id, product_id, review_id, rating) => {
                queries
                    .write_review(&user_id, &product_id, &review_id, rating, Some("As described."))
                    .await
                    .map(drop)?;
            }
            Self::EditReview(review, rating) => {
                let edit = ReviewEdit { rating: Some(rating), text: Edit::Keep };
                queries.edit_review(&review, edit).await?;
            }
            Self::DeleteReview(review) => queries.delete_review(&review).await.map(drop)?,
            Self::PutIntoCart(user_id, product_id, quantity) => {
                queries.put_into_cart(&user_id, &cart, &product_id, quantity).await?;
            }
            Self::TakeOutOfCart(user_id, product_id) => {
                queries.take_out_of_cart(&user_id, &cart, &product_id).await.map(drop)?;
            }
            Self::Subscribe(user_id, subscription) => queries.subscribe(&user_id, &subscription, "monthly").await?,
            Self::Unsubscribe(user_id, subscription) => queries.unsubscribe(&user_id, &subscription).await.map(drop)?,
        }
        Ok(())
    }
}
