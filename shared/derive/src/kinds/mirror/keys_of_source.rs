//! Which mirrors a source has.

use std::collections::BTreeSet;

use keys::{
    entity::Definition,
    key::{Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX},
    tables::KeyMisfit,
    value,
};
use serde_dynamo::AttributeValue;

use crate::{
    declaration::mirror::Mirror,
    schema::{Image, Schema, Unreadable},
};

impl Mirror {
    /// The keys of a source's mirrors: one, or one for each member; none if it does not meet the condition.
    pub(super) fn target_keys(&self, schema: &Schema, source: &Image<'_>) -> Result<BTreeSet<Key>, Unreadable> {
        let Some(target) = schema.entity(&self.target) else { return Ok(BTreeSet::new()) };
        if !self.condition.holds(source.item) {
            return Ok(BTreeSet::new());
        }
        let Some(list) = &self.each else { return Ok(self.link.key(target, source)?.into_iter().collect()) };
        let key = |member: &AttributeValue| self.link.key_with(target, source, Some((list, member))).transpose();
        members(list, source.attribute(list))?.iter().filter_map(key).collect()
    }

    /// Attributes that a mirror cannot have, since they are of the key of an index there and of another type, empty or too
    /// long: DynamoDB would refuse the mirror.
    pub(super) fn unfit(&self, schema: &Schema, source: &Image<'_>, target: &Definition) -> Vec<Unreadable> {
        let Some(table) = schema.layout.forms.as_ref().and_then(|forms| forms.of_entity(target)) else {
            return Vec::new();
        };
        let mut unfit = Vec::new();
        for index in table.indexes.iter().filter(|index| index.is_plain()) {
            let of_pk = index.pk.iter().map(|part| (part, PARTITION_KEY_BYTES_MAX));
            for (part, bytes_max) in of_pk.chain(index.sk.iter().map(|part| (part, SORT_KEY_BYTES_MAX))) {
                if table.is_of_key(&part.name) || self.leaves_out(schema, source.definition, target, &part.name) {
                    continue;
                }
                let Some(held) = source.item.get(&part.name) else { continue };
                let Some(misfit) = part.misfit(held, bytes_max) else { continue };
                let (index, target) = (&index.name, &target.name);
                let why = match misfit {
                    KeyMisfit::Type => {
                        format!("is {}, and the index {index} of {target} wants {:?}", value::type_of(held), part.of)
                    }
                    KeyMisfit::Empty => format!("is empty, and the index {index} of {target} wants {:?}", part.of),
                    KeyMisfit::TooLong { bytes } => {
                        format!("has {bytes} bytes, and the index {index} of {target} takes {bytes_max}")
                    }
                };
                unfit.push(Unreadable { attribute: part.name.clone(), why });
            }
        }
        unfit
    }

    /// Why a mirror of this source is not in an index: its key there would be too long.
    pub(super) fn long_index_key(&self, schema: &Schema, source: &Image<'_>) -> Option<Unreadable> {
        let target = schema.entity(&self.target).filter(|target| target.written_indexes().next().is_some())?;
        let carried = |name: &str| {
            let is_carried =
                source.key_fields().get(name).is_some() || !self.leaves_out(schema, source.definition, target, name);
            is_carried.then(|| source.plain(name)).flatten()
        };
        self.readable_keys(schema, Some(source)).iter().find_map(|key| {
            let fields = target.key.parse_key(key)?;
            target.long_index_key(|name| fields.get(name).or_else(|| carried(name))).map(Unreadable::long_index_key)
        })
    }

    /// Checks that an index of the mirror's table takes the fields of the source's key that a mirror has as attributes.
    pub(super) fn check_indexes(schema: &Schema, source: &Definition, target: &Definition) -> Result<(), String> {
        let Some(table) = schema.layout.forms.as_ref().and_then(|forms| forms.of_entity(target)) else { return Ok(()) };
        for index in table.indexes.iter().filter(|index| index.is_plain()) {
            for part in index.parts() {
                let is_carried = source.key.holds(&part.name) && !target.key.holds(&part.name);
                let has = source.key.type_of(&part.name);
                if is_carried && has != part.of {
                    let (index, name, wanted) = (&index.name, &part.name, part.of);
                    return Err(format!(
                        "the index {index} of {} wants {name} of type {wanted:?}, and in the key of {} it is of type {has:?}",
                        target.name, source.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// The keys of a source's mirrors; none where it cannot be interpreted.
    pub(super) fn readable_keys(&self, schema: &Schema, source: Option<&Image<'_>>) -> BTreeSet<Key> {
        source.and_then(|source| self.target_keys(schema, source).ok()).unwrap_or_default()
    }
}

/// The members of a list or of a set.
fn members(name: &str, held: Option<&AttributeValue>) -> Result<Vec<AttributeValue>, Unreadable> {
    match held {
        None => Ok(Vec::new()),
        Some(AttributeValue::Ss(members)) => Ok(members.iter().cloned().map(AttributeValue::S).collect()),
        Some(AttributeValue::Ns(members)) => Ok(members.iter().cloned().map(AttributeValue::N).collect()),
        Some(AttributeValue::L(members)) => Ok(members.clone()),
        Some(held) => Err(Unreadable::type_of(name, held, "a list or a set of texts is wanted")),
    }
}
