//! Mirror: a second item for a source under another key, so that it can be found from the other side.
//!
//! *Keeps true*: for every source item there is one mirror under the key that the source's fields give, with the
//! source's attributes and the fields of its key, and no mirror without a source. *From* a source that was put or
//! removed, or whose mirrored attributes changed, *to* a refresh of its mirror; *from* a mirror that any writer
//! created, changed or removed *to* a refresh of that mirror.
//!
//! *Level-triggered.* The source is read when the mirror is written. If the mirror's key gives the source's key (Follow
//! and Follower), that is the one source. If a source can change its key (a post whose date changes), the mirror keeps
//! the list of the sources that claim it: the refresh reads all of those and all that the records named. The greatest
//! key among the existing sources wins; if none exists, the mirror is deleted.
//!
//! The mirror's key may contain an attribute that is derived itself. A source without it has no mirror. When it
//! changes, the mirrors under the old key and under the new key are both refreshed; no source claims the old one, so it
//! is deleted.
//!
//! A source need not have exactly one mirror. A source that does not meet the condition has none. If an attribute of
//! the source lists members, it has a mirror for each member, under a key with the member; the list itself is not
//! mirrored. A new or removed member requests a refresh of its own mirror alone.
//!
//! Never mirrored: table and index keys, including those of undeclared indexes; the type; derived attributes of either
//! side; the time to live; DynamoDB's own attributes; the declared exceptions; and attributes that the mirror's table
//! could not store, since a key there has the name, or an index needs another type. A mirror's own index keys are built
//! from its content.
//!
//! *Example*: the Follow `USER#ann / FOLLOWS#bob` is removed. Refresh of `USER#bob / FOLLOWER#ann`: its source does not
//! exist, so the mirror is deleted.

use std::collections::{BTreeMap, BTreeSet};

use keys::{
    entity::Definition,
    fields::Fields,
    item::{Item, is_stores_own},
    key::{Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX},
    tables::{KeyMisfit, TableForm},
    value,
};

use crate::{
    change::Sight,
    claims::{CLAIMS, claims, claims_value},
    condition::Condition,
    declaration::{Mirror, cased, declares, entity, gives},
    derived::{Counts, Derived, Items},
    effect::{Effect, RefreshRequest},
    expression::document_path::root,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::{Outline, linked},
    part::{Part, PartOf, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
};

impl Mirror {
    fn definitions<'a>(&self, schema: &'a Schema) -> Option<(&'a Definition, &'a Definition)> {
        Some((schema.entity(&self.source)?, schema.entity(&self.target)?))
    }

    /// True if a mirror's key does not give its source's key. Then the mirror lists its claims.
    #[must_use]
    pub fn lists_claims(&self, source: &Definition) -> bool {
        source.key.field_names().iter().any(|name| self.link.filled_by(name).is_none())
    }

    /// The one source that a mirror's key gives.
    fn source_of(&self, source: &Definition, target: &Definition, key: &Key) -> Option<Key> {
        let fields = target.key.parse_key(key)?;
        let fields: Fields =
            self.link.0.iter().filter_map(|(to, from)| Some((from.name()?, fields.get(to)?))).collect();
        source.build(&fields).ok()
    }

    /// True if this attribute of the source is not mirrored.
    fn leaves_out(&self, schema: &Schema, source: &Definition, target: &Definition, name: &str) -> bool {
        let layout = &schema.layout;
        layout.is_key(name)
            || is_stores_own(name)
            || layout.is_undeclared_key(target, name)
            || layout.type_name() == name
            || layout.times_to_live().any(|other| other == name)
            || self.except.iter().chain(&self.each).any(|other| other == name)
            || source.derives(name)
            || target.derives(name)
            || stored_outside(schema, target).any(|other| other == name)
    }

    /// All attributes that are not mirrored and whose names are known.
    fn left_out(&self, schema: &Schema, source: &Definition, target: &Definition) -> BTreeSet<String> {
        let layout = &schema.layout;
        let mut left_out: BTreeSet<String> = self.except.iter().chain(&self.each).cloned().collect();
        left_out.extend([layout.pk.clone(), layout.sk.clone()]);
        left_out.insert(layout.type_name().to_owned());
        left_out.extend(layout.times_to_live().cloned());
        left_out.extend(layout.indexes.iter().flat_map(|index| [index.pk.clone(), index.sk.clone()]));
        left_out.extend(source.derived_attributes.iter().chain(&target.derived_attributes).cloned());
        left_out.extend(stored_outside(schema, target).map(str::to_owned));
        left_out
    }

    /// The whole mirror of a source, without the attributes of other derivations.
    fn mirrored(&self, schema: &Schema, key: &Key, source: &Image<'_>, claims: &[Key]) -> Option<Item> {
        let (_, target) = self.definitions(schema)?;
        let unfit = self.unfit(schema, source, target);
        let is_left_out = |name: &str| {
            self.leaves_out(schema, source.definition, target, name) || unfit.iter().any(|it| it.attribute == name)
        };
        let kept = source.item.iter().filter(|(name, _)| !is_left_out(name));
        let mut item: Item = kept.map(|(name, value)| (name, value.clone())).collect();
        let in_key = target.key.field_names();
        for (name, value) in source.key_fields().iter().filter(|(name, _)| !in_key.contains(name)) {
            item.extend(source.definition.key.typed(name, value).map(|value| (name.to_owned(), value)));
        }
        if self.lists_claims(source.definition) {
            item.insert(CLAIMS.to_owned(), claims_value(schema, claims));
        }
        let fields = target.fields(key, &item).unwrap_or_default();
        for (name, value) in target.index_attributes(&schema.layout, &fields) {
            if let Some(value) = value {
                item.insert(name, value);
            }
        }
        item.extend(schema.layout.mark_of(target));
        item.extend(schema.layout.key_item(key));
        Some(item)
    }

    /// The source's fields and attributes that decide the keys of its mirrors.
    fn decides(&self) -> impl Iterator<Item = &str> {
        self.link.from_fields().chain(self.condition.attributes()).chain(self.each.as_deref())
    }

    fn request(&self, item: Key, named: Vec<Key>) -> Effect {
        Effect::Look(RefreshRequest { item, entity: self.target.clone(), named })
    }

    fn source_changed(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        let Some((source, target)) = self.definitions(schema) else { return Vec::new() };
        let mirrored = |name: &&str| !self.leaves_out(schema, source, target, name);
        let differs = old.is_some() != new.is_some() || sight.differing().iter().any(mirrored);
        if !differs && !self.decides().any(|name| sight.differs_in(name)) {
            return Vec::new();
        }
        let [old_keys, new_keys] = [old, new].map(|image| self.readable_keys(schema, image));
        // If only inputs of the keys differ, a mirror that keeps its key is correct.
        let mirrors: BTreeSet<Key> = if differs { &old_keys | &new_keys } else { &old_keys ^ &new_keys };
        let named: Vec<Key> = new.or(old).map(|image| image.key.clone()).into_iter().collect();
        mirrors.into_iter().map(|mirror| self.request(mirror, named.clone())).collect()
    }

    fn target_changed(&self, schema: &Schema, sight: &Sight<'_>) -> Option<Effect> {
        let (old, new) = sight.entity(&self.target);
        let (_, target) = self.definitions(schema)?;
        let ours = |name: &&str| *name == CLAIMS || !target.derives(name) && !is_stores_own(name);
        let differs = old.is_some() != new.is_some() || sight.differing().iter().any(ours);
        let image = new.or(old).filter(|_| differs)?;
        let named: BTreeSet<Key> =
            [old, new].into_iter().flatten().flat_map(|image| claims(schema, image.item)).collect();
        Some(self.request(image.key.clone(), named.into_iter().collect()))
    }
}

/// The key attributes of an entity's table, where its items cannot store other values.
fn stored_outside<'a>(schema: &'a Schema, entity: &Definition) -> impl Iterator<Item = &'a str> {
    let table = schema.layout.forms.as_ref().and_then(|forms| forms.of_entity(entity));
    table.into_iter().flat_map(TableForm::outside)
}

impl Kind for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Mirror(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check(target, source)?;
        self.link.check_each(target, source, self.each.as_deref())?;
        gives(source, self.condition.attributes())?;
        if !target.derived {
            return Err(format!("{} is not declared as derived", target.name));
        }
        if source.key.meets(&target.key) {
            return Err(format!(
                "an item of {0} may have the key of one of {1}, and Ripple would replace and delete items of {1}: give {0} a \
                 key of another form, or a table of its own",
                target.name, source.name
            ));
        }
        for (to, from) in &self.link.0 {
            let of_source = from.name().filter(|name| source.key.holds(name));
            let is_other = |name: &str| source.key.casing(name) != target.key.casing(to);
            if target.key.casing(to).is_some() && of_source.is_some_and(is_other) {
                return Err(format!(
                    "the key of {0} has {to} in lower or upper case, so it does not give the key of its {1}: write {to} unchanged \
                     in that key, and write {2} for an attribute of {1}",
                    target.name,
                    source.name,
                    cased(target.key.casing(to), "…")
                ));
            }
        }
        Self::check_indexes(schema, source, target)?;
        if self.lists_claims(source) {
            declares(target, [CLAIMS])?;
        }
        let all = PartOf::AllBut(self.left_out(schema, source, target));
        let mut reads = vec![Part::existence(&self.source), Part { entity: self.source.clone(), of: all }];
        let derived = |name: &&str| source.derived_attributes.iter().any(|derived| *derived == root(name));
        reads.extend(self.link.from_fields().filter(derived).map(|name| Part::attribute(&self.source, name)));
        let decides = self.condition.attributes().into_iter().chain(self.each.as_deref());
        reads.extend(decides.map(|name| Part::attribute(&self.source, name)));
        let others = target.derived_attributes.iter().filter(|name| *name != CLAIMS).cloned().collect();
        let rest = Part { entity: self.target.clone(), of: PartOf::AllBut(others) };
        Ok(Reach { reads, writes: vec![Part::existence(&self.target), rest] })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let mut terms: Vec<String> = self.each.iter().map(|list| format!("for each member of {list}")).collect();
        terms.extend(self.condition.words());
        terms.extend((!self.except.is_empty()).then(|| format!("except {}", self.except.join(", "))));
        let into = schema.entity(&self.target).map(|target| linked(target, &self.link));
        Outline { terms, into, ..Outline::from(&self.source) }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.target]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let mut effects = self.source_changed(schema, sight);
        effects.extend(self.target_changed(schema, sight));
        effects
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        let target = schema.entity(&self.target).filter(|_| image.is(&self.source))?;
        let unfit = || self.unfit(schema, image, target).into_iter().next();
        self.target_keys(schema, image).err().or_else(unfit).or_else(|| self.long_index_key(schema, image))
    }

    fn condition(&self) -> Option<(&str, &Condition)> {
        Some((&self.source, &self.condition))
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut claims: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
        for (key, item) in items {
            let Some(image) = schema.image(key, item).filter(|image| image.is(&self.source)) else { continue };
            for mirror in self.readable_keys(schema, Some(&image)) {
                claims.entry(mirror).or_default().push(key.clone());
            }
        }
        let mut derived = Vec::new();
        for (key, claims) in claims {
            let winner = claims.last().and_then(|winner| items.get_key_value(winner));
            let image = winner.and_then(|(key, item)| schema.image(key, item));
            if let Some(item) = image.and_then(|image| self.mirrored(schema, &key, &image, &claims)) {
                derived.push(Derived::Item { key, item });
            }
        }
        derived
    }
}

impl Refresh for Mirror {
    fn target(&self) -> &str {
        &self.target
    }

    fn makes_item(&self) -> bool {
        true
    }

    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        let Some((source, definition)) = self.definitions(schema) else { return Vec::new() };
        if !self.lists_claims(source) {
            return self.source_of(source, definition, target.key).map(Source::Item).into_iter().collect();
        }
        let held = target.item.map(|item| claims(schema, item)).unwrap_or_default();
        let candidates: BTreeSet<Key> = held.into_iter().chain(target.named.iter().cloned()).collect();
        candidates.into_iter().map(Source::Item).collect()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let mut living: Vec<(Key, &Item)> = Vec::new();
        for source in self.sources(schema, target) {
            let Source::Item(key) = source else { continue };
            let Some(item) = sources.item(&key) else { continue };
            let image = schema.image(&key, item).filter(|image| image.is(&self.source));
            if self.readable_keys(schema, image.as_ref()).contains(target.key) {
                living.push((key, item));
            }
        }
        let claims: Vec<Key> = living.iter().map(|(key, _)| key.clone()).collect();
        let image = living.last().and_then(|(key, item)| schema.image(key, item));
        Computed::Item(image.and_then(|image| self.mirrored(schema, target.key, &image, &claims)))
    }
}

// ---- Which mirrors a source has ----

impl Mirror {
    /// The keys of a source's mirrors: one, or one for each member; none if it does not meet the condition.
    fn target_keys(&self, schema: &Schema, source: &Image<'_>) -> Result<BTreeSet<Key>, Unreadable> {
        let Some(target) = schema.entity(&self.target) else { return Ok(BTreeSet::new()) };
        if !self.condition.holds(source)? {
            return Ok(BTreeSet::new());
        }
        match &self.each {
            Some(list) => self.link.keys(target, source, list),
            None => Ok(self.link.key(target, source)?.into_iter().collect()),
        }
    }

    /// Attributes that a mirror cannot have, since they are in an index key there and have another type, are empty or
    /// too long: DynamoDB would refuse the mirror.
    fn unfit(&self, schema: &Schema, source: &Image<'_>, target: &Definition) -> Vec<Unreadable> {
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
    fn long_index_key(&self, schema: &Schema, source: &Image<'_>) -> Option<Unreadable> {
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

    /// Checks that an index of the mirror's table accepts the fields of the source's key that a mirror has as
    /// attributes.
    fn check_indexes(schema: &Schema, source: &Definition, target: &Definition) -> Result<(), String> {
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

    /// The keys of a source's mirrors; empty if the source cannot be interpreted.
    fn readable_keys(&self, schema: &Schema, source: Option<&Image<'_>>) -> BTreeSet<Key> {
        source.and_then(|source| self.target_keys(schema, source).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
