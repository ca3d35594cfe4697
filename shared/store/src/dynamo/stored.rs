//! Items and writes as they are stored, where the tables are of [other forms](keys::tables) than they are to the rest.

use std::borrow::Cow;

use derive::{
    guard::{Ask, Guard},
    query::{Query, SortKeys},
    write::{Action, Table, Update, Write},
};
use keys::{
    counter::MARK,
    item::Item,
    key::Key,
    tables::{EntityBy, IndexForm, NO_SORT_KEY, Place, TYPE, TableForm},
};
use serde_dynamo::AttributeValue;

use super::DynamoStore;
use crate::{Cursor, refusal::Refusal};

/// A table that a call goes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stands<'a> {
    /// Its name.
    pub(super) table: &'a str,
    /// Its form, where that is not what the layout says.
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

    /// An item as the rest sees it; `None` for one whose key is not of the table's form.
    pub(super) fn inward(self, item: Item) -> Option<Item> {
        match self.form {
            Some(form) => form.inward(item),
            None => Some(item),
        }
    }
}

impl DynamoStore {
    /// The table in which the item of this key stands.
    pub(super) fn stands(&self, table: Table, key: &Key) -> Stands<'_> {
        match self.layout.forms.as_ref().filter(|_| table == Table::Main).map(|forms| forms.place(key)) {
            Some(Place::Table(form)) => Stands::of(form),
            Some(Place::Own) | None => Stands { table: self.names.of(table), form: None },
        }
    }

    /// The table and the index that a query goes to.
    pub(super) fn queried<'a>(&'a self, table: Table, query: &Query) -> (Stands<'a>, Option<&'a IndexForm>) {
        let forms = self.layout.forms.as_ref().filter(|_| table == Table::Main);
        if let Some((form, index)) = forms.zip(query.index.as_ref()).and_then(|(forms, name)| forms.index(name)) {
            return (Stands::of(form), Some(index));
        }
        // The counters of an item stand with Ripple's own items, although their keys begin with the item's.
        let is_of_counters = matches!(&query.sk, SortKeys::Prefix(prefix) if prefix.contains(MARK));
        if is_of_counters {
            return (Stands { table: self.names.of(table), form: None }, None);
        }
        (self.stands(table, &Key::new(&query.pk, query.sk.first())), None)
    }

    /// The table that a scan reads, where in it, and where the scan goes on behind it.
    pub(super) fn scanned(&self, table: Table, after: Option<Cursor>) -> (Stands<'_>, Option<Cursor>, Option<Cursor>) {
        let own = Stands { table: self.names.of(table), form: None };
        let Some(forms) = self.layout.forms.as_ref().filter(|_| table == Table::Main) else {
            return (own, after, None);
        };
        let key = after.as_ref().and_then(|Cursor(after)| self.layout.key(after));
        let named = |name: &str| forms.0.iter().position(|form| form.name == name);
        let (at, after) = match key {
            None => (Some(0), None),
            // A beginning: no item has an empty partition key.
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

    /// The key attributes of the item of this key; `None` where no stored item can have it.
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
    /// [`Refusal`] where no stored item can have its key.
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

/// A write as the table has its attributes; `None` where no stored item can have its key.
fn outward(form: &TableForm, write: &Write) -> Option<Write> {
    let action = match &write.action {
        Action::Put(item) => Action::Put(form.outward(item)?),
        Action::Update(Update { set, remove, add, delete, count_from }) => Action::Update(Update {
            set: form.stored(set),
            remove: remove.iter().filter_map(|name| form.stored_name(name).map(str::to_owned)).collect(),
            add: form.stored(add),
            delete: form.stored(delete),
            count_from: form.stored(count_from),
        }),
        Action::Delete | Action::Check => write.action.clone(),
    };
    Some(Write { action, guard: write.guard.as_ref().map(|guard| asked(form, guard)), ..write.clone() })
}

/// A guard as the table has its attributes.
fn asked(form: &TableForm, guard: &Guard) -> Guard {
    let asks = guard.asks.iter().flat_map(|ask| asked_of(form, &guard.asks, ask));
    Guard { purpose: guard.purpose, asks: asks.collect() }
}

/// What the table can be asked instead. What follows from the key, from the table or from other attributes is asked as
/// whether there is an item; what never holds is asked as both.
fn asked_of(form: &TableForm, all: &[Ask], ask: &Ask) -> Vec<Ask> {
    let Some(attribute) = ask.attribute() else { return vec![ask.clone()] };
    if let Some(stored) = form.stored_name(attribute) {
        return vec![ask.asked_of(stored)];
    }
    // The item that is there under this key, as far as it is known. Of an index over plain attributes they are asked
    // themselves, so that the key has the value which is asked.
    let mut item = Item::new();
    if let (TYPE, EntityBy::Table(entity)) = (attribute, &form.entity) {
        item.insert(TYPE, AttributeValue::S(entity.clone()));
    } else {
        let equal = all.iter().filter(|ask| ask.attribute() == Some(attribute)).find_map(Ask::value);
        item.extend(equal.map(|(name, value)| (name.to_owned(), value.clone())));
    }
    match (ask.holds(Some(&item)), ask.holds(None)) {
        (true, true) => Vec::new(),
        (true, false) => vec![Ask::Present],
        (false, true) => vec![Ask::Absent],
        (false, false) => vec![Ask::Absent, Ask::Present],
    }
}

#[cfg(test)]
mod tests {
    use derive::guard::Purpose;
    use keys::tables::{KeyAttribute, KeyType, PK, SK};

    use super::*;

    fn form(entity: EntityBy) -> TableForm {
        let attribute = KeyAttribute::plain;
        let index = IndexForm {
            name: "byAuthor".to_owned(),
            pk: vec![attribute("authorId", KeyType::S)],
            sk: Vec::new(),
            projection: None,
            entities: vec!["Post".to_owned()],
        };
        TableForm {
            name: "Posts".to_owned(),
            called: "Posts".to_owned(),
            pk: attribute("id", KeyType::S),
            sk: None,
            entity,
            time_to_live: None,
            indexes: vec![index],
        }
    }

    #[test]
    fn a_guard_asks_what_the_table_has() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let guard = Guard {
            purpose: Purpose::MirrorType,
            asks: vec![
                Ask::Equal(PK.to_owned(), text("Posts#a")),
                Ask::Equal(TYPE.to_owned(), text("Post")),
                Ask::Equal("Posts/byAuthor/pk".to_owned(), text("ann")),
                Ask::Lacks("title".to_owned()),
            ],
        };
        let of_table = asked(&form(EntityBy::Table("Post".to_owned())), &guard);
        let present = || Ask::Present;
        assert_eq!(of_table.asks, [present(), present(), present(), Ask::Lacks("title".to_owned())]);
        let by_type = asked(&form(EntityBy::Attribute("__typename".to_owned())), &guard);
        let equal = Ask::Equal("__typename".to_owned(), text("Post"));
        assert_eq!(by_type.asks, [present(), equal, present(), Ask::Lacks("title".to_owned())]);
        let of_another = Guard { asks: vec![Ask::Equal(TYPE.to_owned(), text("User"))], ..guard.clone() };
        assert_eq!(asked(&form(EntityBy::Table("Post".to_owned())), &of_another).asks, [Ask::Absent, Ask::Present]);
        let of_key = Guard { asks: vec![Ask::Equal(SK.to_owned(), text("-"))], ..guard };
        assert_eq!(asked(&form(EntityBy::Table("Post".to_owned())), &of_key).asks, [Ask::Present]);
    }
}
