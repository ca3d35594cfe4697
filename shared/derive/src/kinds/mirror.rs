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
        for image in schema.images(items, &self.source) {
            for mirror in self.readable_keys(schema, Some(&image)) {
                claims.entry(mirror).or_default().push(image.key.clone());
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
        let stored = target.item.map(|item| claims(schema, item)).unwrap_or_default();
        let candidates: BTreeSet<Key> = stored.into_iter().chain(target.named.iter().cloned()).collect();
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
                let Some(stored) = source.item.get(&part.name) else { continue };
                let Some(misfit) = part.misfit(stored, bytes_max) else { continue };
                let (index, target) = (&index.name, &target.name);
                let why = match misfit {
                    KeyMisfit::Type => {
                        format!("is {}, and the index {index} of {target} wants {:?}", value::type_of(stored), part.of)
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
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::{
        change::Change,
        fixture::{catalogue, decided, derivations, effects, inserted, item, key_of, modified, removed, schema},
        refresh::{Look, Verdict},
        write::Action,
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("mirror", change));
    }

    const FOLLOW: &str = "USER#ann / FOLLOWS#bob Follow CreatedAt=2024";
    const FOLLOWER: &str = "USER#bob / FOLLOWER#ann Follower CreatedAt=2024 FollowerName=Ann";
    const POST: &str = "USER#ann / POST#2024#p Post Title=x Content=long";
    const DETAIL: &str = "POST#p / METADATA PostDetail Title=x Claims=CLAIMS:USER#ann/POST#2024#p";

    #[test]
    fn a_source_that_is_made_or_removed_rings_its_mirror() {
        for change in [inserted(FOLLOW), removed(FOLLOW)] {
            check(
                &change,
                &expect!["follower-mirror: look USER#bob / FOLLOWER#ann (Follower) named USER#ann / FOLLOWS#bob\n"],
            );
        }
    }

    #[test]
    fn an_attribute_that_is_mirrored_rings() {
        check(
            &modified(FOLLOW, "USER#ann / FOLLOWS#bob Follow CreatedAt=2025"),
            &expect!["follower-mirror: look USER#bob / FOLLOWER#ann (Follower) named USER#ann / FOLLOWS#bob\n"],
        );
        check(
            &modified(FOLLOW, &format!("{FOLLOW} Note=x")),
            &expect!["follower-mirror: look USER#bob / FOLLOWER#ann (Follower) named USER#ann / FOLLOWS#bob\n"],
        );
    }

    #[test]
    fn an_attribute_that_is_left_out_rings_nothing() {
        check(&modified(POST, "USER#ann / POST#2024#p Post Title=x Content=longer"), &expect!["nothing\n"]);
        check(&modified(POST, &format!("{POST} GSI1PK=a GSI1SK=b ExpiresAt=N:1")), &expect!["nothing\n"]);
        check(&modified(FOLLOW, &format!("{FOLLOW} FolloweeName=Bob")), &expect!["nothing\n"]);
    }

    #[test]
    fn a_mirror_that_a_hand_makes_alters_or_deletes_rings_itself() {
        for change in [
            removed(FOLLOWER),
            modified(FOLLOWER, &format!("{FOLLOWER} Note=x")),
            inserted(FOLLOWER),
            modified(FOLLOWER, "USER#bob / FOLLOWER#ann Gadget"),
        ] {
            check(&change, &expect!["follower-mirror: look USER#bob / FOLLOWER#ann (Follower)\n"]);
        }
    }

    #[test]
    fn what_other_derivations_write_into_a_mirror_rings_nothing() {
        check(
            &modified(FOLLOWER, "USER#bob / FOLLOWER#ann Follower CreatedAt=2024 FollowerName=Anna"),
            &expect!["nothing\n"],
        );
        check(&modified(DETAIL, &format!("{DETAIL} CommentCount=N:1 AuthorName=Ann")), &expect!["nothing\n"]);
    }

    #[test]
    fn a_source_that_changes_its_key_rings_by_both_of_its_keys() {
        check(
            &removed(POST),
            &expect!["post-detail: look POST#p / METADATA (PostDetail) named USER#ann / POST#2024#p\n"],
        );
        check(
            &inserted("USER#bob / POST#2025#p Post Title=x"),
            &expect!["post-detail: look POST#p / METADATA (PostDetail) named USER#bob / POST#2025#p\n"],
        );
    }

    #[test]
    fn a_derived_attribute_that_stands_in_the_mirrors_key_rings_both_keys() {
        let vp = "ORG#o / EMPLOYEE#vp Employee Name=Vi ManagerId=ceo Path=/ceo/vp";
        check(
            &modified(vp, &vp.replace("/ceo/vp", "/cto/vp")),
            &expect![[r#"
                org-chart: look ORG#o / EMP#/ceo/vp (OrgChart) named ORG#o / EMPLOYEE#vp
                org-chart: look ORG#o / EMP#/cto/vp (OrgChart) named ORG#o / EMPLOYEE#vp
            "#]],
        );
        check(
            &modified(vp, &vp.replace(" Path=/ceo/vp", "")),
            &expect!["org-chart: look ORG#o / EMP#/ceo/vp (OrgChart) named ORG#o / EMPLOYEE#vp\n"],
        );
        check(&inserted("ORG#o / EMPLOYEE#vp Employee Name=Vi ManagerId=ceo"), &expect!["nothing\n"]);
        check(
            &modified(vp, &vp.replace("/ceo/vp", "vp")),
            &expect![[r#"
                org-chart: look ORG#o / EMP#/ceo/vp (OrgChart) named ORG#o / EMPLOYEE#vp
                org-chart: list Path is not a path: it starts with `/`, and no segment is empty or holds `#`
            "#]],
        );
    }

    #[test]
    fn an_altered_list_of_claims_rings_with_all_that_either_image_names() {
        let stolen = "POST#p / METADATA PostDetail Title=x Claims=CLAIMS:USER#eve/POST#2024#p";
        check(
            &modified(DETAIL, stolen),
            &expect![[r#"
            post-detail: look POST#p / METADATA (PostDetail) named USER#ann / POST#2024#p, named USER#eve / POST#2024#p
        "#]],
        );
        for change in [modified(DETAIL, "POST#p / METADATA PostDetail Title=x Claims=N:1"), removed(DETAIL)] {
            check(&change, &expect!["post-detail: look POST#p / METADATA (PostDetail) named USER#ann / POST#2024#p\n"]);
        }
    }

    const DESK: &str = "DESK#d / METADATA Desk Place=hall Clerks=SS:ann,bob";

    #[test]
    fn a_source_has_a_mirror_for_each_member_and_a_member_that_comes_or_goes_rings_for_its_own() {
        check(
            &inserted(DESK),
            &expect![[r#"
                duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
                duties: look CLERK#bob / DESK#d (Duty) named DESK#d / METADATA
            "#]],
        );
        check(
            &modified(DESK, "DESK#d / METADATA Desk Place=hall Clerks=SS:bob,cid,dan,bob"),
            &expect![[r#"
                duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
                duties: look CLERK#cid / DESK#d (Duty) named DESK#d / METADATA
                duties: look CLERK#dan / DESK#d (Duty) named DESK#d / METADATA
            "#]],
        );
        check(
            &modified(DESK, "DESK#d / METADATA Desk Place=yard Clerks=SS:bob"),
            &expect![[r#"
                duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
                duties: look CLERK#bob / DESK#d (Duty) named DESK#d / METADATA
            "#]],
        );
    }

    #[test]
    fn a_source_that_no_longer_meets_the_condition_rings_for_all_its_mirrors() {
        check(
            &modified(DESK, &format!("{DESK} Closed=BOOL:true")),
            &expect![[r#"
                duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
                duties: look CLERK#bob / DESK#d (Duty) named DESK#d / METADATA
            "#]],
        );
        let closed = format!("{DESK} Closed=BOOL:true");
        check(&modified(&closed, &closed.replace("hall", "yard")), &expect!["nothing\n"]);
    }

    #[test]
    fn members_that_no_key_can_hold_are_told() {
        check(
            &inserted("DESK#d / METADATA Desk Clerks=ann"),
            &expect!["duties: list Clerks is S, and a list or a set of texts is wanted\n"],
        );
        check(
            &inserted("DESK#d / METADATA Desk Clerks=NS:1,2"),
            &expect!["duties: list Clerks has a member that is N, and S is wanted\n"],
        );
        check(
            &inserted("DESK#d / METADATA Desk Clerks=SS:ann,"),
            &expect!["duties: list Clerks has a member that is empty\n"],
        );
    }

    #[test]
    fn what_dynamodb_writes_and_keys_of_undeclared_indexes_are_not_mirrored() {
        let mut schema = schema();
        schema.layout.undeclared_keys = Arc::new([(String::new(), ["gsi1pk".to_owned()].into())].into());
        let catalogue = catalogue(&schema);
        let follow = item("USER#ann / FOLLOWS#bob Follow Note=x gsi1pk=y aws:rep:updatetime=N:1");
        let key = key_of(&item(FOLLOWER));
        let derivations = [catalogue.position("follower-mirror").unwrap()].into();
        let look = Look { item: key.clone(), entity: "Follower".to_owned(), derivations, named: BTreeSet::new() };
        let mut items = Items::from([(key_of(&follow), follow)]);
        let Verdict::Write { write, .. } = decided(&schema, &catalogue, &look, &items) else { unreachable!() };
        let Action::Put(mut mirror) = write.action else { unreachable!() };
        assert_eq!(mirror.keys().collect::<Vec<_>>(), ["EntityType", "Note", "PK", "SK"]);
        // DynamoDB's attribute on the mirror stays, and attributes that were mirrored before are removed.
        mirror.insert("aws:rep:updatetime", AttributeValue::N("7".to_owned()));
        items.insert(key.clone(), mirror.clone());
        assert_eq!(decided(&schema, &catalogue, &look, &items), Verdict::InStep);
        mirror.insert("gsi1pk", AttributeValue::S("y".to_owned()));
        items.insert(key, mirror);
        let Verdict::Write { write, .. } = decided(&schema, &catalogue, &look, &items) else { unreachable!() };
        let Action::Update(update) = write.action else { unreachable!() };
        assert_eq!((update.set.len(), update.remove.into_iter().collect::<Vec<_>>()), (0, vec!["gsi1pk".to_owned()]));
    }

    #[test]
    fn a_source_whose_mirror_has_too_long_a_key_in_an_index_is_unreadable() {
        let schema = schema();
        let derivations = derivations();
        let mirror = derivations.iter().find(|derivation| derivation.name == "post-detail").unwrap();
        let unreadable = |created: &str, status: &str| {
            let post = item(&format!("USER#ann / POST#{created}#p Post Status={status}"));
            let key = key_of(&post);
            mirror.unreadable(&schema, &schema.image(&key, &post).unwrap()).map(|why| why.to_string())
        };
        let longest = "2".repeat(1_024 - "#p".len());
        assert_eq!(unreadable(&longest, "published"), None);
        let longer = format!("{longest}2");
        assert_eq!(unreadable(&longer, "draft"), None, "it is not in the index");
        expect!["PostId makes a key of 1025 bytes; the limit is 1024, so the item is not in the index GSI2"]
            .assert_eq(&unreadable(&longer, "published").unwrap());
    }
}
