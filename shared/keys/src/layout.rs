//! The names of a table's attributes and indexes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_dynamo::AttributeValue;

use crate::{
    counter::COUNTER,
    entity::Definition,
    item::{Item, text},
    key::Key,
    tables::{EntityBy, IndexForm, KeyAttribute, KeyType, NO_SORT_KEY, Place, TYPE, TableForm, TableForms},
};

/// Names of a table's key, type and time-to-live attributes, and its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Attribute of the partition key, of type S.
    pub pk: String,
    /// Attribute of the sort key, of type S.
    pub sk: String,
    /// Attribute that names the entity of an item, of type S. In a table without it, an item's key shows its entity; a
    /// derived item also names it, in [`TYPE`].
    pub entity_type: Option<String>,
    /// Attribute of the time to live in epoch seconds, of type N, if the table has one.
    pub time_to_live: Option<String>,
    /// Global secondary indexes.
    pub indexes: Vec<Index>,
    /// The stored tables behind this layout, if it is not one table's own: items are [converted](crate::tables) when
    /// they are read and written.
    pub forms: Option<Arc<TableForms>>,
    /// Undeclared attributes of index keys, by the name of their table in the manifest; the name is empty if there is
    /// only one table. They are known if the table was described.
    pub undeclared_keys: Arc<BTreeMap<String, BTreeSet<String>>>,
}

/// A global secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name of the index.
    pub name: String,
    /// Attribute of its partition key, of type S.
    pub pk: String,
    /// Attribute of its sort key, of type S.
    pub sk: String,
    /// Attributes that it projects besides the keys; `None` for all.
    pub projection: Option<Vec<String>>,
}

impl Index {
    /// True if it projects an attribute that is in no key.
    #[must_use]
    pub fn projects(&self, attribute: &str) -> bool {
        self.projection.as_ref().is_none_or(|names| names.iter().any(|name| name == attribute))
    }
}

impl Layout {
    /// A table with these key attributes, and nothing else.
    #[must_use]
    pub fn of(pk: &str, sk: &str) -> Self {
        let (pk, sk) = (pk.to_owned(), sk.to_owned());
        let (indexes, undeclared_keys) = (Vec::new(), Arc::default());
        Self { pk, sk, entity_type: None, time_to_live: None, indexes, forms: None, undeclared_keys }
    }

    /// The table whose keys are the layout's: the only table, or the one with Ripple's own items, which has no index.
    #[must_use]
    pub fn own_table(&self) -> TableForm {
        let text = KeyAttribute::of_form;
        let index = |index: &Index| IndexForm {
            name: index.name.clone(),
            pk: vec![text(&index.pk)],
            sk: vec![text(&index.sk)],
            projection: index.projection.clone(),
            entities: Vec::new(),
        };
        let indexes: &[Index] = if self.forms.is_some() { &[] } else { &self.indexes };
        TableForm {
            name: String::new(),
            called: String::new(),
            pk: text(&self.pk),
            sk: Some(text(&self.sk)),
            entity: self.entity_type.clone().map_or_else(|| EntityBy::Table(String::new()), EntityBy::Attribute),
            time_to_live: self.time_to_live.clone(),
            indexes: indexes.iter().map(index).collect(),
        }
    }

    /// The primary key of an item; `None` if it has none of type S.
    #[must_use]
    pub fn key(&self, item: &Item) -> Option<Key> {
        Some(Key::new(text(item, &self.pk)?, text(item, &self.sk)?))
    }

    /// The key of an item that a person names by its partition key and its sort key, as they are stored or as Ripple
    /// prints them; without a sort key in a table that has none.
    #[must_use]
    pub fn address(&self, pk: &str, sk: Option<&str>) -> Option<Key> {
        let own = || Some(Key::new(pk, sk?));
        let Some(forms) = &self.forms else { return own() };
        let table = forms.named(pk.split_once('#')?.0);
        let is_own = own().is_some_and(|key| forms.place(&key) == Place::Own);
        table.filter(|_| !is_own).map_or_else(own, |table| table.address(pk, sk))
    }

    /// The index of this name.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// The name of an attribute in an index; `None` if the index does not contain it.
    #[must_use]
    pub fn stored_in<'a>(&'a self, index: &Index, attribute: &'a str) -> Option<&'a str> {
        if let Some((table, form)) = self.forms.as_ref().and_then(|forms| forms.index(&index.name)) {
            return table.stored_name(attribute).filter(|stored| table.index_holds(form, stored));
        }
        let keys = [&self.pk, &self.sk, &index.pk, &index.sk];
        (index.projects(attribute) || keys.into_iter().any(|name| name == attribute)).then_some(attribute)
    }

    /// The key attributes of an item with this key.
    #[must_use]
    pub fn key_item(&self, key: &Key) -> Item {
        Item::from([
            (self.pk.clone(), AttributeValue::S(key.pk.clone())),
            (self.sk.clone(), AttributeValue::S(key.sk.clone())),
        ])
    }

    /// The names of the stored key attributes of an entity's items, such as `PK, SK`.
    #[must_use]
    pub fn stored_key(&self, entity: &Definition) -> String {
        match self.forms.as_ref().and_then(|forms| forms.of_entity(entity)) {
            Some(form) => {
                let names = [Some(&form.pk), form.sk.as_ref()].into_iter().flatten().map(|key| key.name.as_str());
                names.collect::<Vec<_>>().join(", ")
            }
            None => format!("{}, {}", self.pk, self.sk),
        }
    }

    /// The type attribute of an item of this entity, if the table has one.
    #[must_use]
    pub fn type_of(&self, entity: &str) -> Option<(String, AttributeValue)> {
        Some((self.entity_type.clone()?, AttributeValue::S(entity.to_owned())))
    }

    /// The attribute that names the entity of an item: of each item, or of derived items if the table has no type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        self.entity_type.as_deref().unwrap_or(TYPE)
    }

    /// True if items of this entity name it. In a table without a type attribute derived items do, so that an item of
    /// the application under the key of a derived one is not taken for it. A counter is known by its key.
    fn is_named_by(&self, entity: &Definition) -> bool {
        self.entity_type.is_some() || (entity.derived && entity.name != COUNTER)
    }

    /// The attribute by which an item of this entity names it; `None` if its key alone shows the entity.
    #[must_use]
    pub fn mark_of(&self, entity: &Definition) -> Option<(String, AttributeValue)> {
        let mark = || (self.type_name().to_owned(), AttributeValue::S(entity.name.clone()));
        self.is_named_by(entity).then(mark)
    }

    /// True if an item names this entity, or its items need not.
    #[must_use]
    pub fn names(&self, entity: &Definition, item: &Item) -> bool {
        !self.is_named_by(entity) || text(item, self.type_name()) == Some(&entity.name)
    }

    /// True for an undeclared attribute of an index key in the table of this entity. If the entity declares the
    /// attribute, it belongs to the item.
    #[must_use]
    pub fn is_undeclared_key(&self, entity: &Definition, attribute: &str) -> bool {
        let table = self.forms.as_ref().and_then(|forms| forms.of_entity(entity)).map_or("", |table| &table.name);
        let is_key = self.undeclared_keys.get(table).is_some_and(|keys| keys.contains(attribute));
        is_key && !entity.attributes.iter().any(|name| name == attribute)
    }

    /// The attributes of the times to live: at most one per table.
    pub fn times_to_live(&self) -> impl Iterator<Item = &String> {
        let of_forms = self.forms.iter().flat_map(|forms| &forms.0).filter_map(|form| form.time_to_live.as_ref());
        self.time_to_live.iter().chain(of_forms)
    }

    /// True for an attribute of the primary key or of an index key.
    #[must_use]
    pub fn is_key(&self, attribute: &str) -> bool {
        attribute == self.pk
            || attribute == self.sk
            || self.indexes.iter().any(|i| attribute == i.pk || attribute == i.sk)
    }
}

// ---- Keys as people write them ----

impl TableForm {
    /// The address of an item that a person names by its key as it is stored, behind the name of this table and a `#`;
    /// `None` if the values are of other types, or a sort key is missing or too many.
    fn address(&self, pk: &str, sk: Option<&str>) -> Option<Key> {
        let pk = self.pk.text_of_written(pk.strip_prefix(&self.name)?.strip_prefix('#')?)?;
        let sk = match (&self.sk, sk) {
            (Some(form), Some(sk)) => form.text_of_written(sk)?,
            (None, None | Some(NO_SORT_KEY)) => NO_SORT_KEY.to_owned(),
            (Some(_), None) | (None, Some(_)) => return None,
        };
        Some(Key { pk: format!("{}#{pk}", self.name), sk })
    }
}

impl KeyAttribute {
    /// The text of a value that a person writes: as this text, or as it is stored.
    fn text_of_written(&self, written: &str) -> Option<String> {
        let is_text = self.value(written).and_then(|value| self.text(&value)).is_some_and(|text| text == written);
        let value = match self.of {
            _ if is_text => return Some(written.to_owned()),
            KeyType::S => AttributeValue::S(written.to_owned()),
            KeyType::N => AttributeValue::N(written.to_owned()),
            KeyType::B => return None,
        };
        self.text(&value)
    }
}
