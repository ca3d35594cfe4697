//! Products, orders, reviews, carts and subscriptions.

use derive::{guard::Ask, write::Action};
use keys::item::Item;
use rand::Rng as _;
use serde_dynamo::AttributeValue;

use super::{
    Application, Drawn, action,
    client::{AppAction, Step},
    field,
    items::{Attribute, KeyFields, asking, key, number, text},
    user_key,
};

const CATEGORIES: [&str; 4] = ["books", "games", "garden", "tools"];

const TAGS: [&str; 3] = ["new", "sale", "last pieces"];

/// Each user has one cart.
const CART: &str = "cart";

impl Application {
    /// The next action. The numbers are out of 130.
    pub(super) fn of_the_shop(&mut self) -> Drawn {
        let n = self.chance.random_range(0..130);
        let (Some(product), true) = (self.any("Product"), n > 9) else { return self.product() };
        match n {
            0..=31 => self.change_product(&product),
            32..=59 => self.order(&product),
            60..=77 => self.change_order(&product),
            78..=107 => self.of_reviews(&product),
            108..=119 => self.of_carts(&product),
            _ => self.of_subscriptions(),
        }
    }

    fn product(&mut self) -> Drawn {
        let id = self.items.new_id("x");
        self.remember("Product", &key([("ProductId", &id)]));
        let tags = AttributeValue::Ss(vec![self.one_of(&TAGS).to_owned()]);
        let attributes = [
            text("Name", self.new_name("Product")),
            number("Price", self.chance.random_range(1..200)),
            text("Category", self.one_of(&CATEGORIES)),
            number("Inventory", self.chance.random_range(0..60)),
            ("Tags", Some(tags)),
        ];
        action(&id, [self.items.create("Product", &key([("ProductId", &id)]), &attributes)])
    }

    fn change_product(&mut self, product: &KeyFields) -> Drawn {
        let name = text("Name", format!("{}, new edition", self.new_name("Product")));
        let (category, price) = (text("Category", self.one_of(&CATEGORIES)), self.chance.random_range(1..200));
        let changed = |attributes: &[Attribute]| self.items.update("Product", product, attributes);
        let write = match self.chance.random_range(0..20) {
            0..=2 => changed(&[name, number("Price", price)]),
            3..=5 => changed(&[category]),
            6..=10 => self.items.add("Product", product, "Inventory", price),
            11 => self.items.delete("Product", product),
            12..=15 => self.tag(product),
            _ => self.items.add("Product", product, "ViewCount", 1),
        };
        action(&field(product, "ProductId"), [write])
    }

    /// Adds a tag to a product's set of tags, or removes one.
    fn tag(&mut self, product: &KeyFields) -> anyhow::Result<derive::write::Write> {
        let tags = Item::from([("Tags".to_owned(), AttributeValue::Ss(vec![self.one_of(&TAGS).to_owned()]))]);
        let is_added = self.happens(1, 2);
        let mut write = self.items.update("Product", product, &[])?;
        if let Action::Update(update) = &mut write.action {
            *(if is_added { &mut update.add } else { &mut update.delete }) = tags;
        }
        Ok(write)
    }

    /// Takes each line from the stock, and writes the order at the end. The action ends at a product that is out of
    /// stock; the lines before it are then items without an order.
    fn order(&mut self, first: &KeyFields) -> Drawn {
        let (user, order, now) = (self.any_user(), self.items.new_id("b"), self.items.now());
        let mut products = vec![field(first, "ProductId")];
        for _ in 0..self.chance.random_range(0..3) {
            products.extend(self.any("Product").map(|product| field(&product, "ProductId")));
        }
        products.sort();
        products.dedup();
        let (mut steps, mut total) = (Vec::new(), 0);
        for product in &products {
            let (price, quantity) = (self.chance.random_range(1..200), self.chance.random_range(1..6));
            total += price * quantity;
            let line = [text("ProductName", "Product"), number("Price", price), number("Quantity", quantity)];
            let fields = key([("OrderId", &order), ("ProductId", product)]);
            steps.push(self.items.add("Product", &key([("ProductId", product)]), "Inventory", -quantity)?);
            steps.push(self.items.create("OrderItem", &fields, &line)?);
        }
        let fields = key([("UserId", &user), ("PlacedAt", &now), ("OrderId", &order)]);
        steps.push(self.items.create("Order", &fields, &[text("Status", "pending"), number("Total", total)])?);
        self.remember("Order", &fields);
        self.lines.insert(order.clone(), products);
        Ok(AppAction { subject: order, steps: steps.into_iter().map(Step::Write).collect() })
    }

    /// Changes the status of an order that is not cancelled. A cancelled order cancels its lines.
    fn change_order(&mut self, product: &KeyFields) -> Drawn {
        let Some(fields) = self.any("Order") else { return self.order(product) };
        let status = self.one_of(&["paid", "paid", "packed", "packed", "shipped", "pending", "cancelled", "cancelled"]);
        let order = field(&fields, "OrderId");
        let changed = self.items.update("Order", &fields, &[text("Status", status)])?;
        let is_cancelled = Ask::Differs("Status".to_owned(), AttributeValue::S("cancelled".to_owned()));
        let mut steps = vec![Step::Write(asking(changed, is_cancelled))];
        for product in self.lines.get(&order).into_iter().flatten().filter(|_| status == "cancelled") {
            let line = key([("OrderId", &order), ("ProductId", product)]);
            let cancelled = ("Cancelled", Some(AttributeValue::Bool(true)));
            steps.push(Step::Write(self.items.update("OrderItem", &line, &[cancelled])?));
        }
        Ok(AppAction { subject: order, steps })
    }

    fn of_reviews(&mut self, product: &KeyFields) -> Drawn {
        let (n, rating) = (self.chance.random_range(0..10), number("Rating", self.chance.random_range(1..6)));
        let Some(review) = self.any("Review").filter(|_| n >= 6) else {
            let (id, now, user) = (self.items.new_id("r"), self.items.now(), text("UserId", self.any_user()));
            let fields = key([("ProductId", &field(product, "ProductId")), ("CreatedAt", &now), ("ReviewId", &id)]);
            self.remember("Review", &fields);
            return action(&id, [self.items.create("Review", &fields, &[user, rating, text("Text", "As described.")])]);
        };
        let write =
            if n < 8 { self.items.update("Review", &review, &[rating]) } else { self.items.delete("Review", &review) };
        action(&field(&review, "ReviewId"), [write])
    }

    fn of_carts(&mut self, product: &KeyFields) -> Drawn {
        let taken = if self.happens(1, 3) { self.any("CartItem") } else { None };
        if let Some(item) = taken {
            return action(&field(&item, "UserId"), [self.items.delete("CartItem", &item)]);
        }
        let (user, quantity) = (self.any_user(), number("Quantity", self.chance.random_range(1..4)));
        let item = key([("UserId", &user), ("CartId", CART), ("ProductId", &field(product, "ProductId"))]);
        self.remember("CartItem", &item);
        action(&user, [self.items.put("CartItem", &item, &[quantity])])
    }

    fn of_subscriptions(&mut self) -> Drawn {
        let ended = if self.happens(1, 3) { self.any("Subscription") } else { None };
        if let Some(subscription) = ended {
            return action(&field(&subscription, "UserId"), [self.items.delete("Subscription", &subscription)]);
        }
        let (user, id) = (self.any_user(), self.items.new_id("s"));
        let fields = user_key(&user).into_iter().chain(key([("SubscriptionId", &id)])).collect();
        self.remember("Subscription", &fields);
        action(&user, [self.items.create("Subscription", &fields, &[text("Plan", "monthly")])])
    }
}
