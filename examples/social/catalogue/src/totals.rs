//! Totals of files, reviews, orders and readings: D-19, D-22, D-23, D-24 and D-26.

use std::sync::Arc;

use derive::{
    condition::Condition,
    declaration::{link::Link, rollup::Rollup},
    derivation::Derivation,
    effect::BucketForm,
    kinds::display::Shows,
};

use crate::CountRule;

/// The declarations, in the order of their ids.
pub(crate) fn totals() -> Vec<Derivation> {
    let product = |source| CountRule::each(source, "Product", &[("ProductId", "ProductId")]);
    let file = CountRule::each("File", "Folder", &[("FolderId", "FolderId")]);
    let order = CountRule::each("Order", "User", &[("UserId", "UserId")]);
    let open = Condition::is_not("Status", "cancelled");
    let kept = Condition::not("Cancelled");
    let mut all = Vec::new();
    all.extend(file.sum("SizeBytes").both_shown("D-19", "folder-totals", ("FileCount", "TotalBytes")));
    all.extend(product("Review").sum("Rating").both_shown("D-22", "product-rating", ("ReviewCount", "RatingSum")));
    all.extend(order.sum("Total").when(open).both_shown("D-23", "order-totals", ("OrderCount", "LifetimeValue")));
    all.extend(product("OrderItem").sum("Quantity").when(kept).sum_shown("D-24", "units-sold", "UnitsSold"));
    all.push(Derivation::new("D-26", "readings-rollup", readings()));
    all
}

fn readings() -> Rollup {
    let [count, sum, min, max] = ["Count", "Sum", "Min", "Max"].map(str::to_owned);
    Rollup {
        source: "Reading".to_owned(),
        time: "At".to_owned(),
        value: "Value".to_owned(),
        link: Link::of(&[("SensorId", "SensorId")]),
        grain: "Grain".to_owned(),
        bucket: "Bucket".to_owned(),
        form: Arc::new(BucketForm { entity: "Rollup".to_owned(), count, sum, min, max }),
    }
}

impl CountRule {
    fn sum(mut self, attribute: &str) -> Self {
        self.0.sum = Some(attribute.to_owned());
        self
    }

    fn when(mut self, condition: Condition) -> Self {
        self.0.condition = condition;
        self
    }

    /// The sum and its display.
    fn sum_shown(self, id: &str, name: &str, attribute: &str) -> [Derivation; 2] {
        let shown = self.display(name, Shows::Sum, attribute);
        [Derivation::new(id, name, self.0), Derivation::new(id, &format!("{name}-display"), shown)]
    }

    /// The count and the sum, each with its display.
    fn both_shown(self, id: &str, name: &str, (count, sum): (&str, &str)) -> [Derivation; 3] {
        let count = self.display(name, Shows::Count, count);
        let sum = self.display(name, Shows::Sum, sum);
        [
            Derivation::new(id, name, self.0),
            Derivation::new(id, &format!("{name}-count-display"), count),
            Derivation::new(id, &format!("{name}-sum-display"), sum),
        ]
    }
}
