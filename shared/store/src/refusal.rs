//! Why a write is refused without sending it to DynamoDB, which would refuse it too.

use derive::write::ITEM_BYTES_MAX;

use crate::{
    StoreError, TRANSACT_BYTES_MAX,
    expression::{EXPRESSION_BYTES_MAX, OPERATORS_MAX},
};

/// A rule of DynamoDB that a call breaks at any time.
///
/// It is the source of [`StoreError::Reject`], which names the item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A key attribute is empty.
    #[error("the key attribute {attribute} is empty")]
    KeyEmpty {
        /// The attribute.
        attribute: String,
    },
    /// A key attribute is too long.
    #[error("the key attribute {attribute} has {bytes} bytes; the limit is {bytes_max}")]
    KeyTooLong {
        /// The attribute.
        attribute: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// A key attribute, of the table or of an index, does not have the type of the key.
    #[error("the key attribute {attribute} is not of the type of its key")]
    KeyType {
        /// The attribute.
        attribute: String,
    },
    /// A put's item has another key than the put.
    #[error("the attributes hold another key")]
    KeyDiffers,
    /// An update would change the item's key.
    #[error("the key attribute {attribute} cannot be updated")]
    KeyUpdated {
        /// The attribute.
        attribute: String,
    },
    /// An update changes an attribute twice.
    #[error("the attribute {attribute} is updated twice")]
    UpdatedTwice {
        /// The attribute.
        attribute: String,
    },
    /// A check that is not part of a transaction.
    #[error("a check of an item stands in a transaction only")]
    CheckAlone,
    /// A check without any test.
    #[error("a check of an item asks for nothing")]
    CheckEmpty,
    /// A consistent read of an index.
    #[error("the index {index} cannot be read consistently")]
    IndexConsistent {
        /// The index.
        index: String,
    },
    /// An update without any change.
    #[error("the update changes no attribute")]
    UpdateEmpty,
    /// An update changes too many attributes.
    #[error("the update expression has {bytes} bytes; the limit is {EXPRESSION_BYTES_MAX}")]
    UpdateTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A condition is too long.
    #[error("the condition has {bytes} bytes; the limit is {EXPRESSION_BYTES_MAX}")]
    ConditionTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A condition has too many operators.
    #[error("the condition has {n_operators} operators; the limit is {OPERATORS_MAX}")]
    ConditionOperators {
        /// How many it has.
        n_operators: usize,
    },
    /// An amount is added to an attribute that is not a number.
    #[error("the attribute {attribute} is not of type N, nothing can be added to it")]
    AddType {
        /// The attribute.
        attribute: String,
    },
    /// A number has too many digits, is too large or too small, or is not a number.
    #[error("the attribute {attribute} holds a number that DynamoDB cannot hold")]
    Number {
        /// The attribute.
        attribute: String,
    },
    /// A set is empty, or contains a value twice.
    #[error("the attribute {attribute} holds a set that is empty or has a value twice")]
    Set {
        /// The attribute.
        attribute: String,
    },
    /// A null is false.
    #[error("the attribute {attribute} holds a null that is false")]
    Null {
        /// The attribute.
        attribute: String,
    },
    /// A value is nested too deeply.
    #[error("the attribute {attribute} is nested too deep")]
    Depth {
        /// The attribute.
        attribute: String,
    },
    /// An attribute has no name.
    #[error("an attribute has no name")]
    NameEmpty,
    /// The item is too large.
    #[error("the item has {bytes} bytes; the limit is {ITEM_BYTES_MAX}")]
    ItemTooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// The transaction is too large.
    #[error("the transaction has {bytes} bytes; the limit is {TRANSACT_BYTES_MAX}")]
    TransactionTooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// There is no such index.
    #[error("the layout has no index {index}")]
    UnknownIndex {
        /// The index.
        index: String,
    },
}

impl Refusal {
    /// The refusal of an operation on an item, named as logs may name it.
    pub(crate) fn of(self, operation: &'static str, item: &str) -> StoreError {
        StoreError::Reject { operation, item: item.to_owned(), source: Box::new(self) }
    }
}
