//! Why a write was refused.
//!
//! Every refusal names the item by its key or its ids. It contains no value of an attribute: no name, no text, and not
//! the taken email address.

use entities::ids::{EmployeeId, FolderId, OrderId, ProductId, UserId};
use keys::{
    error::{EntityError, KeyError},
    key::Key,
};
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
    #[error("user {}: the email is taken by another user; choose another", user_id.as_str())]
    EmailTaken {
        /// The user who wants the address.
        user_id: UserId,
    },
    /// The profile was edited after that version.
    #[error("user {}: version {version} is not the profile's any more; read it again", user_id.as_str())]
    VersionConflict {
        /// The user with the profile.
        user_id: UserId,
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
    #[error("user {}: nobody follows themselves; choose another user", user_id.as_str())]
    SelfFollow {
        /// The user.
        user_id: UserId,
    },
    /// The stock has fewer pieces than requested.
    #[error("product {}: not enough in stock for the order; order fewer", product_id.as_str())]
    NotEnough {
        /// The product.
        product_id: ProductId,
    },
    /// The number of pieces is below 1.
    #[error("product {}: a quantity is below 1; ask for one piece or more", product_id.as_str())]
    Quantity {
        /// The product.
        product_id: ProductId,
    },
    /// The product has no price, or one below 0.
    #[error("product {}: it has no price from 0 up that fits; set its price", product_id.as_str())]
    Price {
        /// The product.
        product_id: ProductId,
    },
    /// The product's stock would go below 0.
    #[error("product {}: the stock is from 0 up", product_id.as_str())]
    Stock {
        /// The product.
        product_id: ProductId,
    },
    /// The order has no line.
    #[error("order {}: it has no line; order at least one product", order_id.as_str())]
    NoLines {
        /// The order.
        order_id: OrderId,
    },
    /// The order has too many lines for one transaction.
    #[error("order {}: {n_lines} lines; the limit is {LINES_MAX}, so make several orders of it", order_id.as_str())]
    TooManyLines {
        /// The order.
        order_id: OrderId,
        /// The number of lines after those of one product were merged.
        n_lines: usize,
    },
    /// An order with this id exists.
    #[error("order {}: already placed; look at that one", order_id.as_str())]
    AlreadyPlaced {
        /// The order.
        order_id: OrderId,
    },
    /// The order is cancelled, and stays so: its pieces are back in stock.
    #[error("order {}: it is cancelled, and stays so; place another", order_id.as_str())]
    OrderCancelled {
        /// The order.
        order_id: OrderId,
    },
    /// The folder would be below itself.
    #[error("folder {}: it would be below itself; choose a folder outside of it", folder_id.as_str())]
    FolderUnderItself {
        /// The folder.
        folder_id: FolderId,
    },
    /// The employee would report to themselves, directly or not.
    #[error("employee {}: they would report to themselves; choose somebody who does not report to them", employee_id.as_str())]
    EmployeeUnderItself {
        /// The employee.
        employee_id: EmployeeId,
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
    #[error("folder {}: it is not empty; move or delete what is in it first", folder_id.as_str())]
    NotEmpty {
        /// The folder.
        folder_id: FolderId,
    },
    /// The employee has reports.
    #[error("employee {}: somebody reports to them; move those first", employee_id.as_str())]
    HasReports {
        /// The employee.
        employee_id: EmployeeId,
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
    /// The values make no valid item.
    #[error(transparent)]
    Entity(#[from] EntityError),
    /// The database refuses the write, and always will.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<KeyError> for WriteError {
    fn from(error: KeyError) -> Self {
        Self::Entity(EntityError::Build(error))
    }
}
