//! Stored forms of items and writes, for tables of [other forms](keys::tables).

use std::borrow::Cow;

use derive::{
    query::Query,
    write::{Table, Write},
};
use keys::{
    item::Item,
    key::Key,
    tables::{IndexForm, NO_SORT_KEY, Place, TableForm},
};

use super::DynamoStore;
use crate::{
    Cursor,
    outward::{form, outward, queried},
    refusal::Refusal,
};

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
