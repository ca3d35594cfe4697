//! Organizations with teams, members and employees; folders with files; sensors; and the shop with its products, orders,
//! reviews, carts and subscriptions.

use derive::{guard::Ask, write::Action};
use keys::item::Item;
use operate::words::time;
use rand::Rng as _;
use serde_dynamo::AttributeValue;

use super::{
    AppAction, Application, Attribute, BEGIN_MS, Drawn, KeyFields, Step, action, asking, field, key, number, text,
    user_key,
};

/// Number of sensors.
const SENSORS: u32 = 12;

/// Time between two actions of a sensor, in milliseconds: large enough to reach many hours and days.
const STEP_MS: u64 = 60_000;

/// The subject of all folders: one, because moves of different folders must keep their order.
const FOLDERS: &str = "folders";

impl Application {
    // ---- Organizations. Each is one subject, because a manager must be written before the employees below them ----

    /// The next action. The numbers are out of 90.
    pub(super) fn of_organizations(&mut self) -> Drawn {
        let n = self.chance.random_range(0..90);
        let name = self.new_name("Organization");
        let (Some(organization), true) = (self.any("Organization"), n > 7) else {
            let id = self.items.new_id("o");
            self.remember("Organization", &key([("OrgId", &id)]));
            return action(&id, [self.items.create("Organization", &key([("OrgId", &id)]), &[text("Name", name)])]);
        };
        let id = field(&organization, "OrgId");
        match n {
            0..=15 => {
                let name = text("Name", format!("{name}, renamed"));
                action(&id, [self.items.update("Organization", &organization, &[name])])
            }
            16..=27 => {
                let (name, team) = (text("Name", self.new_name("Team")), self.items.new_id("t"));
                self.of_part("Team", &key([("OrgId", &id), ("TeamId", &team)]), name)
            }
            28..=51 => {
                let (role, user) = (text("Role", self.role()), self.any_user());
                self.of_part("Member", &key([("OrgId", &id), ("UserId", &user)]), role)
            }
            _ => self.of_employees(&id),
        }
    }

    /// Creates a team or member, or changes or deletes another one.
    fn of_part(&mut self, entity: &'static str, new: &KeyFields, attribute: Attribute) -> Drawn {
        let known = if self.happens(1, 2) { self.any(entity) } else { None };
        let (write, of) = match known {
            None => {
                self.remember(entity, new);
                (self.items.create(entity, new, &[attribute]), new.clone())
            }
            Some(known) if self.happens(1, 2) => (self.items.update(entity, &known, &[attribute]), known),
            Some(known) => (self.items.delete(entity, &known), known),
        };
        action(&field(&of, "OrgId"), [write])
    }

    fn of_employees(&mut self, org: &str) -> Drawn {
        let n = self.chance.random_range(0..10);
        let Some(employee) = self.any("Employee").filter(|_| n >= 5) else {
            let (id, name) = (self.items.new_id("e"), text("Name", self.new_name("Employee")));
            let fields = key([("OrgId", org), ("EmployeeId", &id)]);
            let manager = self.manager(org, &id);
            self.remember("Employee", &fields);
            return action(org, [self.items.create("Employee", &fields, &[name, ("ManagerId", manager)])]);
        };
        let (org, id) = (field(&employee, "OrgId"), field(&employee, "EmployeeId"));
        if n > 7 {
            return action(&org, [self.items.delete("Employee", &employee)]);
        }
        let manager = self.manager(&org, &id);
        action(&org, [self.items.update("Employee", &employee, &[("ManagerId", manager)])])
    }

    /// A new manager for an employee: a random one of the organization, and sometimes none.
    fn manager(&mut self, org: &str, employee: &str) -> Option<AttributeValue> {
        let of_org = |fields: &&KeyFields| field(fields, "OrgId") == org;
        let there: Vec<KeyFields> = self.known.get("Employee").into_iter().flatten().filter(of_org).cloned().collect();
        let at = self.chance.random_range(0..there.len().max(1));
        let manager = if self.happens(1, 8) { None } else { there.get(at).map(|fields| field(fields, "EmployeeId")) };
        self.below(employee, manager).map(AttributeValue::S)
    }

    /// Moves a folder or employee below `parent`. It goes to the top if there is no parent, or if the parent is below
    /// it.
    fn below(&mut self, id: &str, parent: Option<String>) -> Option<String> {
        let mut above = parent.as_ref();
        while let Some(other) = above {
            if other == id {
                self.parents.remove(id);
                return None;
            }
            above = self.parents.get(other);
        }
        match &parent {
            Some(parent) => self.parents.insert(id.to_owned(), parent.clone()),
            None => self.parents.remove(id),
        };
        parent
    }

    // ---- Folders and files ----

    /// The next action. The numbers are out of 90.
    pub(super) fn of_files(&mut self) -> Drawn {
        let n = self.chance.random_range(0..90);
        let (Some(folder), true) = (self.any("Folder"), n > 19) else {
            let id = self.items.new_id("d");
            let attributes = self.place(&id, true, self.new_name("folder"));
            self.remember("Folder", &key([("FolderId", &id)]));
            return action(FOLDERS, [self.items.create("Folder", &key([("FolderId", &id)]), &attributes)]);
        };
        let id = field(&folder, "FolderId");
        match n {
            0..=34 => {
                let is_renamed = n <= 27;
                let name = if is_renamed { None } else { self.names.get(&id).cloned() };
                let name = name.unwrap_or_else(|| format!("{}, renamed", self.new_name("folder")));
                let attributes = self.place(&id, !is_renamed, name);
                action(FOLDERS, [self.items.update("Folder", &folder, &attributes)])
            }
            35..=39 => action(FOLDERS, [self.items.delete("Folder", &folder)]),
            _ => self.of_folder(n > 64, &id),
        }
    }

    /// The name and the parent of a folder, which are its key in an index. In one of six cases, a moved folder goes to
    /// the top.
    fn place(&mut self, id: &str, is_moved: bool, name: String) -> [Attribute; 2] {
        let parent = if is_moved {
            let to =
                if self.happens(1, 6) { None } else { self.any("Folder").map(|folder| field(&folder, "FolderId")) };
            self.below(id, to)
        } else {
            self.parents.get(id).cloned()
        };
        self.names.insert(id.to_owned(), name.clone());
        [text("Name", name), ("ParentId", parent.map(AttributeValue::S))]
    }

    /// Uploads a file to a folder, or moves, renames or deletes a file. A moved file has another key.
    fn of_folder(&mut self, is_change: bool, folder: &str) -> Drawn {
        let attributes = [
            text("Name", format!("{}.txt", self.new_name("file"))),
            number("SizeBytes", self.chance.random_range(0..5_000_000)),
        ];
        let known = if is_change { self.any("File") } else { None };
        let Some(file) = known else {
            let (id, now) = (self.items.new_id("f"), self.items.now());
            let fields = key([("FolderId", folder), ("UploadedAt", &now), ("FileId", &id)]);
            self.remember("File", &fields);
            return action(&id, [self.items.create("File", &fields, &attributes)]);
        };
        let (id, uploaded) = (field(&file, "FileId"), field(&file, "UploadedAt"));
        match self.chance.random_range(0..3) {
            0 => {
                let moved = key([("FolderId", folder), ("UploadedAt", &uploaded), ("FileId", &id)]);
                self.moved("File", &file, &moved);
                action(&id, [self.items.delete("File", &file), self.items.put("File", &moved, &attributes)])
            }
            1 => action(&id, [self.items.update("File", &file, &attributes)]),
            _ => action(&id, [self.items.delete("File", &file)]),
        }
    }

    // ---- Sensors ----

    /// One reading or several. In one of ten cases, another client corrects or removes an earlier one, which changes no
    /// roll-up.
    pub(super) fn of_readings(&mut self) -> Drawn {
        let sensor = format!("sensor-{}", self.chance.random_range(0..SENSORS));
        let n = match self.chance.random_range(0..10) {
            0..=5 => 1,
            6..=8 => self.chance.random_range(2..=12),
            _ => match self.any("Reading") {
                Some(reading) => return self.correct(&reading),
                None => 1,
            },
        };
        let mut steps = Vec::new();
        for at in 0..n {
            let at = time(BEGIN_MS + self.items.n_actions() * STEP_MS + at);
            let day = at.split('T').next().unwrap_or_default();
            let fields = key([("SensorId", &sensor), ("Day", day), ("At", &at)]);
            self.remember("Reading", &fields);
            let value = number("Value", self.chance.random_range(-20..40));
            steps.push(Step::Write(self.items.create("Reading", &fields, &[value])?));
        }
        Ok(AppAction { subject: sensor, steps })
    }

    fn correct(&mut self, reading: &KeyFields) -> Drawn {
        let value = number("Value", self.chance.random_range(-20..40));
        let write = if self.happens(1, 3) {
            self.items.delete("Reading", reading)
        } else {
            self.items.put("Reading", reading, &[value])
        };
        action(&field(reading, "SensorId"), [write])
    }
}

// ---- The shop ----

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
