//! Why a write was refused.
//!
//! Every refusal names the item, by its key or its ids, and never holds a value of an item's attributes: not a name,
//! not a text, and of a taken email only that it is taken.

use entities::ids::{EmployeeId, FolderId, OrderId, ProductId, UserId};
use keys::{
    error::{EntityError, KeyError},
    key::Key,
};
use store::StoreError;

/// Most lines of an order: two actions each, the order itself, and all within the 100 of a transaction. Cancelling
/// needs as many.
pub const LINES_MAX: usize = 49;

/// Most readings of a batch. Source: the table's design, after DynamoDB's own batches.
pub const READINGS_MAX: usize = 25;

/// The best rating; the worst is 1.
pub const RATING_MAX: i64 = 5;

/// A write that was not done, and why.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is an item already where a new one should be.
    #[error("{item}: there is one already; choose another id, or change that one")]
    AlreadyExists {
        /// The item.
        item: Key,
    },
    /// There is no such item.
    #[error("{item}: there is none; look for it again")]
    NotFound {
        /// The item that should be there.
        item: Key,
    },
    /// The email address is another user's.
    #[error("user {}: the email is taken by another user; choose another", user_id.as_str())]
    EmailTaken {
        /// The user who should have got it.
        user_id: UserId,
    },
    /// The profile was edited since that version.
    #[error("user {}: version {version} is not the profile's any more; read it again", user_id.as_str())]
    VersionConflict {
        /// Whose profile it is.
        user_id: UserId,
        /// The version that the caller knew.
        version: i64,
    },
    /// What is asked for is so already.
    #[error("{item}: {attribute} is that already; nothing is to be changed")]
    Unchanged {
        /// The item.
        item: Key,
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// The attribute has another value than the caller knew.
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
    /// There are fewer in stock than are wanted.
    #[error("product {}: not enough in stock for the order; order fewer", product_id.as_str())]
    NotEnough {
        /// The product.
        product_id: ProductId,
    },
    /// A number of pieces is not 1 or more.
    #[error("product {}: a quantity is below 1; ask for one piece or more", product_id.as_str())]
    Quantity {
        /// The product.
        product_id: ProductId,
    },
    /// A product has no price that an order could be made of, or its price is below 0.
    #[error("product {}: it has no price from 0 up that fits; set its price", product_id.as_str())]
    Price {
        /// The product.
        product_id: ProductId,
    },
    /// A product's stock would be below 0.
    #[error("product {}: the stock is from 0 up", product_id.as_str())]
    Stock {
        /// The product.
        product_id: ProductId,
    },
    /// An order has no line.
    #[error("order {}: it has no line; order at least one product", order_id.as_str())]
    NoLines {
        /// The order.
        order_id: OrderId,
    },
    /// An order has more lines than a transaction takes.
    #[error("order {}: {n_lines} lines; the limit is {LINES_MAX}, so make several orders of it", order_id.as_str())]
    TooManyLines {
        /// The order.
        order_id: OrderId,
        /// How many, those of one product merged.
        n_lines: usize,
    },
    /// There is an order of this id.
    #[error("order {}: already placed; look at that one", order_id.as_str())]
    AlreadyPlaced {
        /// The order.
        order_id: OrderId,
    },
    /// A cancelled order stays cancelled: its pieces are back in stock.
    #[error("order {}: it is cancelled, and stays so; place another", order_id.as_str())]
    OrderCancelled {
        /// The order.
        order_id: OrderId,
    },
    /// A folder would be below itself.
    #[error("folder {}: it would be below itself; choose a folder outside of it", folder_id.as_str())]
    FolderUnderItself {
        /// The folder.
        folder_id: FolderId,
    },
    /// Somebody would report to themselves, directly or not.
    #[error("employee {}: they would report to themselves; choose somebody who does not report to them", employee_id.as_str())]
    EmployeeUnderItself {
        /// Who should be moved.
        employee_id: EmployeeId,
    },
    /// A folder, or a place in an organization, would be too deep.
    #[error("{item}: it would be more than {depth_max} deep; choose a place further up")]
    TooDeep {
        /// The item.
        item: Key,
        /// The limit, the root and the item included.
        depth_max: usize,
    },
    /// A folder has something in it.
    #[error("folder {}: it is not empty; move or delete what is in it first", folder_id.as_str())]
    NotEmpty {
        /// The folder.
        folder_id: FolderId,
    },
    /// Somebody reports to them.
    #[error("employee {}: somebody reports to them; move those first", employee_id.as_str())]
    HasReports {
        /// Who should be dismissed.
        employee_id: EmployeeId,
    },
    /// A batch has more readings than it may.
    #[error("{n_readings} readings; the limit is {READINGS_MAX}, so send several batches")]
    TooManyReadings {
        /// How many.
        n_readings: usize,
    },
    /// A rating is out of its range.
    #[error("{item}: the rating is not from 1 to {RATING_MAX}")]
    Rating {
        /// The review.
        item: Key,
    },
    /// A time is past the year 9999, where the texts of times are not in order of time any more.
    #[error("{at_ms} ms since the epoch: past the year 9999, which no time of an item may be")]
    Time {
        /// Milliseconds since the epoch.
        at_ms: u64,
    },
    /// Other writers, or the database, left no room in all the tries.
    #[error(
        "{item}: not done in {n_tries} tries{}; send it again later",
        if *is_uncertain { ", as far as it was answered" } else { "" }
    )]
    Busy {
        /// The item, or the first of several.
        item: Key,
        /// How often it was tried.
        n_tries: u32,
        /// Was a call left unanswered, so that it may have been done?
        is_uncertain: bool,
        /// The last answer, where it was an error.
        #[source]
        last: Option<StoreError>,
    },
    /// An item cannot be made of the values.
    #[error(transparent)]
    Entity(#[from] EntityError),
    /// The database refuses it, whenever it comes.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<KeyError> for WriteError {
    fn from(error: KeyError) -> Self {
        Self::Entity(EntityError::Build(error))
    }
}
