//! Tables of any form, as one key space.
//!
//! The rest of the workspace knows one table whose keys are two texts. That is what a table with text keys, a sort key and
//! a type attribute is. Any other table, and several of them, are made the same at the edge, where items are read and
//! written: an item's address is the name of its table and its key as text.
//!
//! | the table has | outside | inside |
//! |---|---|---|
//! | a partition key | `authorId` = `ann` in `Posts` | [`PK`] = `Posts#ann` |
//! | a sort key of type N | `createdAt` = `1700` | [`SK`] = `04:1700`, which [sorts](crate::sortable) by value |
//! | no sort key | | [`SK`] = `-` |
//! | one entity, without a type attribute | | [`TYPE`] = `Post` |
//! | an index over plain attributes | `postId`, `createdAt` | two attributes more: `Posts/byPost/pk`, `Posts/byPost/sk` |
//! | an index over texts of declared forms | `GSI1PK` = `USER#ann` | those two attributes instead |
//!
//! What stands inside only is made when an item is [read](TableForm::inward) and taken away when it is
//! [written](TableForm::outward), so nothing of it is ever stored.
//! Ripple's own items, the counters and jobs, stand in a table of its own, whose key attributes are [`PK`] and [`SK`].

mod index_form;
mod key_attribute;
mod range;

use serde_dynamo::AttributeValue;

pub use self::{
    index_form::IndexForm,
    key_attribute::{KeyAttribute, KeyMisfit, KeyType},
    range::{KeyRange, stored_bytes},
};
use crate::{
    counter::CounterKey,
    entity::Definition,
    item::{Item, text},
    key::Key,
    layout::{Index, Layout},
    template::Piece,
};

/// Attribute of the partition key inside, and in a table of Ripple's own. Stored, so it is stable.
pub const PK: &str = "RipplePK";

/// Attribute of the sort key inside, and in a table of Ripple's own. Stored, so it is stable.
pub const SK: &str = "RippleSK";

/// Attribute that names an item's entity inside, and in a table of Ripple's own; and a derived item's in a table without a
/// type attribute. Stored, so it is stable.
pub const TYPE: &str = "RippleType";

/// Sort key, inside, of an item whose table has none.
pub const NO_SORT_KEY: &str = "-";

/// The application's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableForms(pub Vec<TableForm>);

/// A table of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableForm {
    /// Its name in the manifest.
    pub name: String,
    /// What the table itself is called.
    pub called: String,
    /// Its partition key.
    pub pk: KeyAttribute,
    /// Its sort key, if it has one.
    pub sk: Option<KeyAttribute>,
    /// How an item's entity is known.
    pub entity: EntityBy,
    /// Attribute of the time to live, if it has one.
    pub time_to_live: Option<String>,
    /// Its global secondary indexes.
    pub indexes: Vec<IndexForm>,
}

/// How an item's entity is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityBy {
    /// This attribute, of type S, names it.
    Attribute(String),
    /// All items of the table are of this one.
    Table(String),
}

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// In a table of the application.
    Table(&'a TableForm),
    /// In the table of Ripple's own items.
    Own,
}

impl TableForms {
    /// Where the item of this key stands.
    #[must_use]
    pub fn place(&self, key: &Key) -> Place<'_> {
        let table = self.named(key.pk.split_once('#').map_or("", |(name, _)| name));
        table.filter(|_| CounterKey::parse(key).is_none()).map_or(Place::Own, Place::Table)
    }

    /// The table of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&TableForm> {
        self.0.iter().find(|table| table.name == name)
    }

    /// The table in which an entity's items are.
    #[must_use]
    pub fn of_entity(&self, entity: &Definition) -> Option<&TableForm> {
        let Some(Piece::Literal(text)) = entity.key.pk.pieces().first() else { return None };
        self.named(text.split_once('#')?.0)
    }

    /// The table and the index that have this name inside.
    #[must_use]
    pub fn index(&self, inside: &str) -> Option<(&TableForm, &IndexForm)> {
        let of = |table: &'_ TableForm, index: &IndexForm| table.inside(&index.name) == inside;
        self.0.iter().find_map(|table| Some((table, table.indexes.iter().find(|index| of(table, index))?)))
    }

    /// What the rest of the workspace knows of these tables.
    #[must_use]
    pub fn layout(self) -> Layout {
        let index = |table: &TableForm, index: &IndexForm| {
            let name = table.inside(&index.name);
            let [pk, sk] = index_form::attributes(&table.name, &index.name);
            Index { name, pk, sk, projection: index.projection.clone().unwrap_or_default() }
        };
        let of_table = |table: &TableForm| table.indexes.iter().map(|it| index(table, it)).collect::<Vec<_>>();
        Layout {
            entity_type: Some(TYPE.to_owned()),
            indexes: self.0.iter().flat_map(of_table).collect(),
            forms: Some(self.into()),
            ..Layout::of(PK, SK)
        }
    }
}

impl TableForm {
    /// The name inside of an index of this table.
    #[must_use]
    pub fn inside(&self, index: &str) -> String {
        format!("{}.{index}", self.name)
    }

    /// The address of the item that has these attributes; `None` where one of its key is missing or of another type.
    #[must_use]
    pub fn key(&self, item: &Item) -> Option<Key> {
        let sk = match &self.sk {
            Some(sk) => sk.text(item.get(&sk.name)?)?,
            None => NO_SORT_KEY.to_owned(),
        };
        Some(Key { pk: format!("{}#{}", self.name, self.pk.text(item.get(&self.pk.name)?)?), sk })
    }

    /// The key attributes of the item of this address; `None` where it is the address of none.
    #[must_use]
    pub fn key_item(&self, key: &Key) -> Option<Item> {
        let pk = self.pk.value(key.pk.strip_prefix(&self.name)?.strip_prefix('#')?)?;
        let mut item = Item::from([(self.pk.name.clone(), pk)]);
        if let Some(sk) = &self.sk {
            item.insert(sk.name.clone(), sk.value(&key.sk)?);
        }
        Some(item)
    }

    /// An item as it stands inside; `None` where its key is not of this table's form.
    #[must_use]
    pub fn inward(&self, mut item: Item) -> Option<Item> {
        let key = self.key(&item)?;
        let entity = match &self.entity {
            EntityBy::Attribute(attribute) => text(&item, attribute).map(str::to_owned),
            EntityBy::Table(entity) => Some(entity.clone()),
        };
        let of_indexes: Vec<_> =
            self.indexes.iter().flat_map(|index| index.inward(&self.name, entity.as_deref(), &item)).collect();
        for name in self.outside() {
            item.remove(name);
        }
        item.insert(PK, AttributeValue::S(key.pk));
        item.insert(SK, AttributeValue::S(key.sk));
        item.extend(entity.map(|entity| (TYPE.to_owned(), AttributeValue::S(entity))));
        item.extend(of_indexes);
        Some(item)
    }

    /// The attributes of an item that stands inside as they are stored; `None` where it has no address in this table.
    #[must_use]
    pub fn outward(&self, item: &Item) -> Option<Item> {
        let key = Key::new(text(item, PK)?, text(item, SK)?);
        let mut stored = self.stored(item);
        stored.extend(self.key_item(&key)?);
        Some(stored)
    }

    /// Attributes as they are stored, without those of keys.
    #[must_use]
    pub fn stored(&self, attributes: &Item) -> Item {
        let stored = |(name, value): (&str, &AttributeValue)| Some((self.stored_name(name)?.to_owned(), value.clone()));
        attributes.iter().filter_map(stored).collect()
    }

    /// The name under which an attribute is stored; `None` for one of a key, and for one that stands inside only.
    #[must_use]
    pub fn stored_name<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match name {
            PK | SK => None,
            TYPE => self.type_attribute(),
            name => match self.indexes.iter().find_map(|index| Some((index, index.part(&self.name, name)?))) {
                Some((index, part)) => {
                    let stored = part.first().filter(|_| !index.is_plain()).map(|attribute| attribute.name.as_str());
                    stored.filter(|stored| !self.is_of_key(stored))
                }
                None => Some(name),
            },
        }
    }

    /// The key by which a query of an index goes on, as it stands inside.
    #[must_use]
    pub fn cursor_inward(&self, index: Option<&IndexForm>, stored: &Item) -> Option<Item> {
        let key = self.key(stored)?;
        let mut cursor = Item::from([(PK, AttributeValue::S(key.pk)), (SK, AttributeValue::S(key.sk))]);
        cursor.extend(index.and_then(|index| index.key(&self.name, stored)).into_iter().flatten());
        Some(cursor)
    }

    /// The same key as it is stored.
    #[must_use]
    pub fn cursor_outward(&self, index: Option<&IndexForm>, cursor: &Item) -> Option<Item> {
        let mut stored = self.key_item(&Key::new(text(cursor, PK)?, text(cursor, SK)?))?;
        if let Some(index) = index {
            stored.extend(index.cursor(&self.name, cursor)?);
        }
        Some(stored)
    }

    /// The attribute that names an item's entity, if one does.
    #[must_use]
    pub fn type_attribute(&self) -> Option<&str> {
        match &self.entity {
            EntityBy::Attribute(attribute) => Some(attribute),
            EntityBy::Table(_) => None,
        }
    }

    /// Is this an attribute of the primary key?
    #[must_use]
    pub fn is_of_key(&self, stored: &str) -> bool {
        self.pk.name == stored || self.sk.as_ref().is_some_and(|sk| sk.name == stored)
    }

    /// Does an index of this table hold this attribute, as it is stored?
    #[must_use]
    pub fn index_holds(&self, index: &IndexForm, stored: &str) -> bool {
        let projected = || index.projection.as_ref().is_none_or(|names| names.iter().any(|name| name == stored));
        self.is_of_key(stored) || index.parts().any(|part| part.name == stored) || projected()
    }

    /// The attributes that do not stand inside under their own names.
    pub fn outside(&self) -> impl Iterator<Item = &str> {
        let of_key = [Some(&*self.pk.name), self.sk.as_ref().map(|sk| &*sk.name), self.type_attribute()];
        let of_indexes = self.indexes.iter().filter(|index| !index.is_plain());
        let of_indexes = of_indexes.flat_map(IndexForm::parts).map(|it| it.name.as_str());
        of_key.into_iter().flatten().chain(of_indexes)
    }
}

#[cfg(test)]
mod tests;
