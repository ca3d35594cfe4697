//! D-25: the key of a product in the list of best sellers of its category.

use super::{
    Recount,
    counts::Counted,
    table::{ONE, Plain, PlainTable, escaped},
};

/// The largest number of units that the key can hold.
const UNITS_MAX: i128 = 999_999_999_999;

pub(crate) const COVERED: [&str; 1] = ["best-sellers"];

pub(crate) fn compare(table: &PlainTable, counted: &Counted, recount: &mut Recount) {
    for product in table.each("Product") {
        let (_, sold) = counted.get(&(product.at.clone(), "units-sold")).copied().unwrap_or_default();
        // Absent, zero, negative, fractional and too large ones give no key.
        let is_listed = sold > 0 && sold % ONE == 0 && sold / ONE <= UNITS_MAX;
        let category = product.text("Category").filter(|_| is_listed);
        let key = category.map(|category| {
            let units = format!("{:012}", UNITS_MAX - sold / ONE);
            [format!("BESTSELLERS#{}", escaped(category)), format!("{units}#{}", escaped(product.id("ProductId")))]
        });
        let stored = ["GSI2PK", "GSI2SK"].map(|name| product.item.get(name).cloned());
        let derived = key.map_or([None, None], |key| key.map(|text| Some(Plain::Text(text))));
        recount.compare(COVERED[0], product.at, stored, derived);
    }
}
