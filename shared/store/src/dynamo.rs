//! DynamoDB, through the SDK.
//!
//! What it keeps true: a call ends in an outcome, in an error to retry, or in one that a person must handle, and never
//! in silence. Names and values of a write are placeholders, and conditions only come from
//! [`Guard::condition`](derive::guard::Guard::condition).
//!
//! # Repeats
//!
//! The SDK resends a call by itself when its response is lost, as the client is configured.
//!
//! - A transaction carries a token that the SDK keeps for its resends, so it is done once. The response to a resend has
//!   read units instead of write units; they are passed on as they are.
//! - A single write has no token. A put, a delete, and an update that sets and removes have the same result when they
//!   are done twice. A guard may then fail because of the first time; code that handles [`Outcome::GuardFailed`] must
//!   allow for it. An update that *adds* would count twice after a lost response, and nothing would show it. So the
//!   engine only sends an addition with a proof that it is not done yet: in a transaction with the ledger's item, or on
//!   the condition that the counter's watermark is below it.
//!
//! # Message
//!
//! DynamoDB's message about a failure, without the values that it quotes.
//!
//! *Keeps true*: the part of a message that reaches an error names operations, attributes and rules, and no value of
//! any item, because errors are logged. DynamoDB quotes values in quotation marks, brackets or braces, or after
//! `value:` at the end.

mod call;
mod read;
mod write;

use std::borrow::Cow;

use aws_sdk_dynamodb::Client;
use call::{Calls, Failure};
use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{
    item::Item,
    key::Key,
    layout::Layout,
    tables::{IndexForm, NO_SORT_KEY, Place, TableForm},
};

use crate::{
    Busy, Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated,
    check::Refusal,
    outward::{form, outward, queried},
};

/// The names of the service's tables; equal if a deployment uses a single table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNames {
    /// The application's table; with tables of [other forms](keys::tables), the table of Ripple's own items.
    pub main: String,
    /// The ledger's table.
    pub ledger: String,
}

impl TableNames {
    /// The name of a table.
    #[must_use]
    pub fn of(&self, table: Table) -> &str {
        match table {
            Table::Main => &self.main,
            Table::Ledger => &self.ledger,
        }
    }
}

/// The two tables in DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoStore {
    calls: Calls,
    layout: Layout,
    names: TableNames,
}

impl DynamoStore {
    /// A store of these tables, with the configuration of this client. The layout is the main one's; the ledger has the
    /// same key attributes.
    #[must_use]
    pub fn new(client: Client, layout: Layout, names: TableNames) -> Self {
        Self { calls: Calls::new(client), layout, names }
    }
}

// A call waits for the network, so the allocation for its boxed future does not matter, and futures that wait for
// several calls stay small.
impl Store for DynamoStore {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        Box::pin(read::get(self, table, keys, consistency)).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        Box::pin(read::query(self, table, query, after)).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        Box::pin(read::scan(self, table, segment, after)).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        Box::pin(write::write(self, write)).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        Box::pin(write::update(self, write)).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        Box::pin(write::transact(self, transaction)).await
    }
}

// ---- DynamoDB's message about a failure, without the values that it quotes ----

/// Longest message that is reported, in bytes: the reason is at its beginning.
const BYTES_MAX: usize = 400;

/// Replaces what is left out.
const LEFT_OUT: &str = "…";

/// A message without its quoted values.
fn without_values(message: &str) -> String {
    let (mut kept, mut rest) = (String::new(), message);
    while let Some(at) = rest.find(['\'', '"', '`', '[', '{', ':']) {
        let (before, quoted) = rest.split_at(at);
        kept.push_str(before);
        let mark = quoted.chars().next().unwrap_or(':');
        let inner = quoted.get(1..).unwrap_or_default();
        if mark == ':' {
            kept.push(mark);
            if before.to_lowercase().ends_with("value") {
                kept.push_str(LEFT_OUT);
                rest = "";
            } else {
                rest = inner;
            }
        } else if is_apostrophe(mark, &kept, inner) {
            kept.push(mark);
            rest = inner;
        } else {
            kept.push_str(LEFT_OUT);
            rest = end_of(mark, inner).and_then(|end| inner.get(end..)).unwrap_or_default();
        }
    }
    kept.push_str(rest);
    kept.truncate(kept.floor_char_boundary(BYTES_MAX));
    kept
}

/// True if the apostrophe is within a word.
fn is_apostrophe(mark: char, before: &str, after: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    mark == '\'' && is_letter(before.chars().next_back()) && is_letter(after.chars().next())
}

/// End of a quoted value, after its closing mark; `None` without one.
///
/// The value may contain the mark itself, so the last one counts; for brackets and braces too.
fn end_of(mark: char, quoted: &str) -> Option<usize> {
    let end = match mark {
        '[' => ']',
        '{' => '}',
        mark => mark,
    };
    quoted.rfind(end).map(|at| at + end.len_utf8())
}

// ---- Which failures to retry ----

/// Codes of failures caused by the request itself, so that it would be refused at any time. Source: DynamoDB developer
/// guide, "Error handling", and the SDK's error types.
///
/// All other failures may pass: throttles, conflicts, lost connections, missing permissions, expired credentials,
/// missing tables. Once an operator corrects a policy or a table's name, no change without a fault must be left parked.
const REFUSED_CODES: &[&str] =
    &["ItemCollectionSizeLimitExceededException", "SerializationException", "ValidationException"];

/// Codes of failures that tell a caller to slow down. Source: as above.
const THROTTLED_CODES: &[&str] =
    &["ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"];

/// Codes of failures that last until an operator changes the set-up. Source: DynamoDB developer guide, "Error
/// handling"; the codes that begin with `KMS` concern the table's encryption key.
const STANDING_CODES: &[&str] = &[
    "AccessDeniedException",
    "MissingAuthenticationTokenException",
    "ResourceNotFoundException",
    "UnrecognizedClientException",
];
const KMS: &str = "KMS";

/// A failed call as an error: retry or reject.
fn failed(operation: &'static str, item: String, failure: Failure) -> StoreError {
    let retry = |busy, is_standing, is_unreachable, why: String| StoreError::Retry {
        operation,
        item: item.clone(),
        busy,
        is_standing,
        is_unreachable,
        source: why.into(),
    };
    match failure {
        Failure::NoAnswer { is_unreachable, why } => retry(None, false, is_unreachable, without_values(&why)),
        Failure::Refused(error) => {
            let message = error.message.map(|message| format!(": {}", without_values(&message)));
            let (code, why) = (error.code.as_str(), format!("{}{}", error.code, message.unwrap_or_default()));
            if REFUSED_CODES.contains(&code) {
                return StoreError::Reject { operation, item, source: why.into() };
            }
            let busy = match code {
                "TransactionConflictException" => Some(Busy::Conflict),
                code if THROTTLED_CODES.contains(&code) => Some(Busy::Throttled),
                _ => None,
            };
            retry(busy, STANDING_CODES.contains(&code) || code.starts_with(KMS), false, why)
        }
    }
}

// ---- Stored forms of items and writes, for tables of other forms ----

/// A table that a call goes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stands<'a> {
    /// Its name.
    pub(super) table: &'a str,
    /// Its form, if it differs from the layout.
    pub(super) form: Option<&'a TableForm>,
}

/// A write as it is sent.
pub(super) struct StoredWrite<'a> {
    pub(super) table: &'a str,
    /// Attribute of the partition key.
    pub(super) pk: &'a str,
    pub(super) key: Item,
    pub(super) write: Cow<'a, Write>,
}

impl<'a> Stands<'a> {
    fn of(form: &'a TableForm) -> Self {
        Self { table: &form.called, form: Some(form) }
    }

    /// An item in the inner form; `None` if its key does not have the table's form.
    pub(super) fn inward(self, item: Item) -> Option<Item> {
        match self.form {
            Some(form) => form.inward(item),
            None => Some(item),
        }
    }
}

impl DynamoStore {
    /// The table of the item with this key.
    pub(super) fn stands(&self, table: Table, key: &Key) -> Stands<'_> {
        self.of(table, form(&self.layout, table, key))
    }

    /// The table and the index of a query.
    pub(super) fn queried<'a>(&'a self, table: Table, query: &Query) -> (Stands<'a>, Option<&'a IndexForm>) {
        let (form, index) = queried(&self.layout, table, query);
        (self.of(table, form), index)
    }

    /// The table of this form; Ripple's own if `None`.
    fn of<'a>(&'a self, table: Table, form: Option<&'a TableForm>) -> Stands<'a> {
        form.map_or_else(|| Stands { table: self.names.of(table), form: None }, Stands::of)
    }

    /// The table that a scan reads, the position in it, and where the scan continues after this table.
    pub(super) fn scanned(&self, table: Table, after: Option<Cursor>) -> (Stands<'_>, Option<Cursor>, Option<Cursor>) {
        let own = Stands { table: self.names.of(table), form: None };
        let Some(forms) = self.layout.forms.as_ref().filter(|_| table == Table::Main) else {
            return (own, after, None);
        };
        let key = after.as_ref().and_then(|Cursor(after)| self.layout.key(after));
        let named = |name: &str| forms.0.iter().position(|form| form.name == name);
        let (at, after) = match key {
            None => (Some(0), None),
            // A start of a table: no item has an empty partition key.
            Some(Key { pk, .. }) if pk == "#" => (None, None),
            Some(Key { pk, .. }) if pk.strip_suffix('#').and_then(named).is_some() => {
                (pk.strip_suffix('#').and_then(named), None)
            }
            Some(key) => match forms.place(&key) {
                Place::Table(form) => (named(&form.name), after),
                Place::Own => (None, after),
            },
        };
        let Some((at, form)) = at.and_then(|at| Some((at, forms.0.get(at)?))) else { return (own, after, None) };
        let following = forms.0.get(at + 1).map_or("", |form| &form.name);
        let beginning = Key::new(format!("{following}#"), NO_SORT_KEY);
        (Stands::of(form), after, Some(Cursor(self.layout.key_item(&beginning))))
    }

    /// The key attributes of the item with this key; `None` if no stored item can have it.
    pub(super) fn key_item(&self, stands: Stands<'_>, key: &Key) -> Option<Item> {
        match stands.form {
            Some(form) => form.key_item(key),
            None => Some(self.layout.key_item(key)),
        }
    }

    /// A write as it is sent.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if no stored item can have its key.
    pub(super) fn stored<'a>(&'a self, write: &'a Write) -> Result<StoredWrite<'a>, Refusal> {
        let stands = self.stands(write.table, &write.key);
        let pk = stands.form.map_or(self.layout.pk.as_str(), |form| form.pk.name.as_str());
        let refusal = || Refusal::KeyType { attribute: pk.to_owned() };
        let key = self.key_item(stands, &write.key).ok_or_else(refusal)?;
        let write = match stands.form {
            Some(form) => Cow::Owned(outward(form, write).ok_or_else(refusal)?),
            None => Cow::Borrowed(write),
        };
        Ok(StoredWrite { table: stands.table, pk, key, write })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::{call::ServiceError, *};

    fn answered(code: &str) -> StoreError {
        let error = ServiceError { code: code.to_owned(), ..ServiceError::default() };
        failed("UpdateItem", "a / b".to_owned(), Failure::Refused(error))
    }

    #[test]
    fn what_passes_is_sent_again() {
        for code in ["ThrottlingException", "TransactionConflictException", "ExpiredTokenException"] {
            assert!(answered(code).is_retry(), "{code}");
        }
        assert!(answered("Whatever").is_retry());
        let late = Failure::NoAnswer { is_unreachable: true, why: "late".to_owned() };
        assert!(failed("UpdateItem", "a / b".to_owned(), late).is_retry());
    }

    #[test]
    fn an_error_holds_nothing_that_a_message_quotes() {
        let (code, message) = ("ValidationException".to_owned(), Some("numeric value: Ada".to_owned()));
        let error = Failure::Refused(ServiceError { code, message, ..ServiceError::default() });
        let error = failed("UpdateItem", "a / b".to_owned(), error);
        assert!(!format!("{error:?}").contains("Ada"), "{error:?}");
        assert_eq!(error.source().unwrap().to_string(), "ValidationException: numeric value:…");
    }

    #[test]
    fn a_conflict_and_a_throttle_are_told_apart() {
        assert_eq!(answered("TransactionConflictException").busy(), Some(Busy::Conflict));
        for code in THROTTLED_CODES {
            assert_eq!(answered(code).busy(), Some(Busy::Throttled), "{code}");
        }
        for code in ["ExpiredTokenException", "ValidationException"] {
            assert_eq!(answered(code).busy(), None, "{code}");
        }
    }

    #[test]
    fn a_missing_permission_or_table_is_no_fault_of_the_change() {
        for code in ["AccessDeniedException", "ResourceNotFoundException", "KMSDisabledException"] {
            let error = answered(code);
            assert!(error.is_retry() && error.is_standing(), "{code}");
        }
        assert!(!answered("ThrottlingException").is_standing());
        assert!(!answered("ExpiredTokenException").is_standing(), "new credentials come by themselves");
    }

    #[test]
    fn what_never_will_be_done_is_refused_and_names_the_item() {
        for code in REFUSED_CODES {
            let error = answered(code);
            assert!(!error.is_retry(), "{code}");
            assert_eq!(error.to_string(), "UpdateItem on a / b: refused");
        }
    }

    #[test]
    fn what_a_message_quotes_is_left_out() {
        let messages = [
            "The parameter cannot be converted to a numeric value: Ada Lovelace",
            "1 validation error detected: Value 'Ada's \"own\"' at 'item.name' failed to satisfy constraint",
            "One or more parameter values were invalid: Input collection [Ada, [Bob], Ada] contains duplicates",
            "One or more parameter values were invalid: Type mismatch for key PK expected: S actual: N",
            "The item's size has exceeded the maximum allowed size",
            "Invalid value: {\"S\": \"Ada\"}",
            "An attribute is `Ada",
        ];
        let kept: Vec<String> = messages.map(without_values).into();
        expect_test::expect![[r#"
            The parameter cannot be converted to a numeric value:…
            1 validation error detected: Value … failed to satisfy constraint
            One or more parameter values were invalid: Input collection … contains duplicates
            One or more parameter values were invalid: Type mismatch for key PK expected: S actual: N
            The item's size has exceeded the maximum allowed size
            Invalid value:…
            An attribute is …"#]]
        .assert_eq(&kept.join("\n"));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let kept = without_values(&"é".repeat(BYTES_MAX));
        assert_eq!(kept.len(), BYTES_MAX);
    }
}
