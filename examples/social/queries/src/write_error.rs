//! Why a write was refused.
//!
//! Every refusal names the item by its key or its ids. It contains no value of an attribute: no name, no text, and not
//! the taken email address.

use keys::{error::KeyError, key::Key};
use store::StoreError;

/// Most lines of an order. Each line has two actions and the order itself has one, all within the 100 of a transaction.
/// A cancellation needs as many.
pub const LINES_MAX: usize = 49;

/// Most readings in a batch. Source: the table's design, after DynamoDB's own batches.
pub const READINGS_MAX: usize = 25;

/// The best rating; the worst is 1.
pub const RATING_MAX: i64 = 5;

/// Why a write was not done.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The new item exists already.
    #[error("{item}: there is one already; choose another id, or change that one")]
    AlreadyExists {
        /// The item.
        item: Key,
    },
    /// The item does not exist.
    #[error("{item}: there is none; look for it again")]
    NotFound {
        /// The key of the missing item.
        item: Key,
    },
    /// Another user has the email address.
    #[error("user {user_id}: the email is taken by another user; choose another")]
    EmailTaken {
        /// The user who wants the address.
        user_id: String,
    },
    /// The profile was edited after that version.
    #[error("user {user_id}: version {version} is not the profile's any more; read it again")]
    VersionConflict {
        /// The user with the profile.
        user_id: String,
        /// The version that the caller read.
        version: i64,
    },
    /// The item already is as requested.
    #[error("{item}: {attribute} is that already; nothing is to be changed")]
    Unchanged {
        /// The item.
        item: Key,
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// The attribute has another value than the caller expects.
    #[error("{item}: {attribute} is not as it was read any more; read it again")]
    Changed {
        /// The item.
        item: Key,
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// Nobody follows themselves.
    #[error("user {user_id}: nobody follows themselves; choose another user")]
    SelfFollow {
        /// The user.
        user_id: String,
    },
    /// The stock has fewer pieces than requested.
    #[error("product {product_id}: not enough in stock for the order; order fewer")]
    NotEnough {
        /// The product.
        product_id: String,
    },
    /// The number of pieces is below 1.
    #[error("product {product_id}: a quantity is below 1; ask for one piece or more")]
    Quantity {
        /// The product.
        product_id: String,
    },
    /// The product has no price, or one below 0.
    #[error("product {product_id}: it has no price from 0 up that fits; set its price")]
    Price {
        /// The product.
        product_id: String,
    },
    /// The product's stock would go below 0.
    #[error("product {product_id}: the stock is from 0 up")]
    Stock {
        /// The product.
        product_id: String,
    },
    /// The order has no line.
    #[error("order {order_id}: it has no line; order at least one product")]
    NoLines {
        /// The order.
        order_id: String,
    },
    /// The order has too many lines for one transaction.
    #[error("order {order_id}: {n_lines} lines; the limit is {LINES_MAX}, so make several orders of it")]
    TooManyLines {
        /// The order.
        order_id: String,
        /// The number of lines after those of one product were merged.
        n_lines: usize,
    },
    /// An order with this id exists.
    #[error("order {order_id}: already placed; look at that one")]
    AlreadyPlaced {
        /// The order.
        order_id: String,
    },
    /// The order is cancelled, and stays so: its pieces are back in stock.
    #[error("order {order_id}: it is cancelled, and stays so; place another")]
    OrderCancelled {
        /// The order.
        order_id: String,
    },
    /// The folder would be below itself.
    #[error("folder {folder_id}: it would be below itself; choose a folder outside of it")]
    FolderUnderItself {
        /// The folder.
        folder_id: String,
    },
    /// The employee would report to themselves, directly or not.
    #[error("employee {employee_id}: they would report to themselves; choose somebody who does not report to them")]
    EmployeeUnderItself {
        /// The employee.
        employee_id: String,
    },
    /// A folder or an employee's path would be too deep.
    #[error("{item}: it would be more than {depth_max} deep; choose a place further up")]
    TooDeep {
        /// The item.
        item: Key,
        /// The limit, including the root and the item.
        depth_max: usize,
    },
    /// The folder is not empty.
    #[error("folder {folder_id} is not empty: move or delete its files and folders first")]
    NotEmpty {
        /// The folder.
        folder_id: String,
    },
    /// The employee has reports.
    #[error("employee {employee_id}: somebody reports to them; move those first")]
    HasReports {
        /// The employee.
        employee_id: String,
    },
    /// The batch has too many readings.
    #[error("{n_readings} readings; the limit is {READINGS_MAX}, so send several batches")]
    TooManyReadings {
        /// The number of readings.
        n_readings: usize,
    },
    /// The rating is out of range.
    #[error("{item}: the rating is not from 1 to {RATING_MAX}")]
    Rating {
        /// The review.
        item: Key,
    },
    /// The time is after the year 9999, from which on the texts of times are not in order.
    #[error("{at_ms} ms since the epoch: past the year 9999, which no time of an item may be")]
    Time {
        /// Milliseconds since the epoch.
        at_ms: u64,
    },
    /// All tries failed because of conflicts or throttles.
    #[error(
        "{item}: not done in {n_tries} tries{}; send it again later",
        if *is_uncertain { ", as far as it was answered" } else { "" }
    )]
    Busy {
        /// The item, or the first of several.
        item: Key,
        /// Number of tries.
        n_tries: u32,
        /// Did a call get no response, so that the write may have been done?
        is_uncertain: bool,
        /// The last error, if there was one.
        #[source]
        last: Option<StoreError>,
    },
    /// A key cannot be built from the values.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The manifest lacks an entity that the writes need.
    #[error("the manifest declares no entity {entity}")]
    Undeclared {
        /// Name of the entity.
        entity: &'static str,
    },
    /// The database refuses the write, and always will.
    #[error(transparent)]
    Store(#[from] StoreError),
}
