//! Latest: attributes of the last item of a collection, or of its first, copied into the item that owns the collection.
//!
//! *Keeps true*: an existing target has the attributes of the source with the greatest sort key (or the least) among
//! the sources that lead to it, or a list of the first few of them in that order; without a source it lacks them.
//! *From* a source that was created or removed, or whose attributes changed, and *from* a target that was created or
//! whose derived attributes changed, *to* a refresh of the target.
//!
//! The sources of a target are one range of one partition of the table, so the refresh reads the end of the range with
//! one consistent query: if the latest source is removed, the query finds the one before it. An index cannot be used:
//! it may not contain a source yet, and no record would request a refresh once it does. Items that are not such a range,
//! or have another order, have [entries](super::entries) beside the target, which are.
//!
//! *Level-triggered.* The latest item is read when the target is written, so any order of requests ends at the same
//! value.
//!
//! *Example*: the comment `POST#p / COMMENT#2024-05-01` is deleted. Refresh of `POST#p / METADATA`: the last comment of
//! `POST#p` is now that of 2024-04-30, and `LastCommentBy` becomes its author's.

use std::collections::BTreeMap;

use keys::{
    entity::Definition,
    entry::{self, ENTRIES},
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    declaration::{Link, declares, entity, gives},
    derived::{Counts, Derived, Items},
    effect::Effect,
    expression::Input,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::{Outline, TakenItems, linked},
    part::{Part, Reach},
    query::{Order, Query, not_one_range},
    schema::{Image, Schema, Unreadable},
    sources::{FirstOf, Source, Sources, first_of},
    write::Wanted,
};

/// The declaration of a `latest` derivation.
#[derive(Clone, Debug)]
pub struct Latest {
    /// Entity of the items in the collection.
    pub source: String,
    /// Entity of the items that its attributes are copied into.
    pub target: String,
    /// How the target's key is built from the fields of a source's key; `None` if the sources are
    /// [entries](super::entries), whose keys name their target.
    pub link: Option<Link>,
    /// Which source: the greatest sort key (`Descending`), or the least.
    pub order: Order,
    /// Pairs of (what of the source is copied; attribute of the target, or name in an entry of the list).
    pub attributes: Vec<(Input, String)>,
    /// The list of several sources, if it copies more than one.
    pub list: Option<SourceList>,
}

/// A list of the latest sources, the latest one first. It is absent without sources.
#[derive(Clone, Debug)]
pub struct SourceList {
    /// Attribute of the target.
    pub attribute: String,
    /// Most entries.
    pub length: u32,
}

impl Latest {
    /// The query whose first items are the sources of a target; `None` for a key that no source leads to, such as one
    /// with fields in another escaped form.
    fn first(&self, schema: &Schema, target: &Key) -> Option<FirstOf> {
        let (source, definition) = (schema.entity(&self.source)?, schema.entity(&self.target)?);
        let fields = definition.key.parse_key(target)?;
        definition.key.build(&fields).ok().filter(|built| built == target)?;
        let (pk, prefix) = match &self.link {
            Some(link) => {
                let field = |name: &str| fields.get(link.filled_by(name)?);
                (source.key.pk.build_of(field).ok()?, source.key.sk.prefix_of(field).ok()?)
            }
            None => (target.pk.clone(), entry::prefix(target, self.source.strip_suffix(ENTRIES)?)),
        };
        let length = self.list.as_ref().map_or(1, |list| list.length);
        let query = Query { order: self.order, limit: Some(length), ..Query::prefix(None, pk, prefix) };
        Some(FirstOf { query, entity: self.source.clone(), is_counted: false })
    }

    /// Checks that the sources of a target are one range of one partition. `known` is one more field of their key that
    /// is given.
    ///
    /// # Errors
    ///
    /// A sentence with what keeps them from being one.
    pub fn check_range(
        source: &Definition,
        target: &Definition,
        link: &Link,
        known: Option<&str>,
    ) -> Result<(), String> {
        let calculated = link.0.iter().find(|(_, from)| from.name().is_none());
        let is_cased = |(to, from): &&(String, Input)| {
            target.key.casing(to).is_some_and(|casing| from.name().and_then(|it| source.key.casing(it)) != Some(casing))
        };
        if let Some((to, _)) = link.0.iter().find(is_cased) {
            return Err(format!(
                "the key of {} has {to} in lower or upper case, and the keys of the {} items have it unchanged",
                target.name, source.name
            ));
        }
        let given: Vec<&str> = link.from_fields().chain(known).collect();
        let calculated = calculated.map(|(_, from)| format!("`{from}` is calculated, so it is no part of their key"));
        let fault = calculated.or_else(|| not_one_range(source, &given, &format!("the key of {}", target.name)));
        let Some(fault) = fault else { return Ok(()) };
        let (from, to) = (&source.name, &target.name);
        Err(format!("the items of {from} that lead to one {to} are not consecutive items of one partition: {fault}"))
    }

    /// The attributes of a target whose sources are these items.
    fn wanted(&self, schema: &Schema, sources: &[&Item]) -> Vec<Wanted> {
        let wanted = |name: &str, value| Wanted { name: name.to_owned(), value, zero_is_absent: false };
        if let Some(list) = &self.list {
            let entry = |item: &&Item| AttributeValue::M(self.taken(schema, Some(item)).collect());
            let entries: Vec<AttributeValue> = sources.iter().map(entry).collect();
            return vec![wanted(&list.attribute, (!entries.is_empty()).then_some(AttributeValue::L(entries)))];
        }
        let mut taken: BTreeMap<String, AttributeValue> = self.taken(schema, sources.first().copied()).collect();
        self.attributes.iter().map(|(_, to)| wanted(to, taken.remove(to))).collect()
    }

    /// The attributes copied from a source, under their target names.
    fn taken(&self, schema: &Schema, source: Option<&Item>) -> impl Iterator<Item = (String, AttributeValue)> {
        let key = source.and_then(|item| schema.layout.key(item));
        let image = key.as_ref().zip(source).and_then(|(key, item)| schema.image(key, item));
        let value = |(from, to): &(Input, String)| Some((to.clone(), from.value(image.as_ref()?).ok()??.into_owned()));
        self.attributes.iter().filter_map(value).collect::<Vec<_>>().into_iter()
    }

    /// The fields and attributes of a source that it reads.
    fn read(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().flat_map(|(from, _)| from.names())
    }

    /// The attributes that it writes.
    fn written(&self) -> impl Iterator<Item = &str> {
        let list = self.list.as_ref().map(|list| list.attribute.as_str());
        let own = self.attributes.iter().filter(move |_| list.is_none()).map(|(_, to)| to.as_str());
        list.into_iter().chain(own)
    }
}

impl Kind for Latest {
    fn name(&self) -> &'static str {
        if self.list.is_some() { "latest list" } else { "latest" }
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        if let Some(link) = &self.link {
            link.check(target, source)?;
            Self::check_range(source, target, link, None)?;
        }
        gives(source, self.read())?;
        declares(target, self.written())?;
        let mut reads = vec![Part::existence(&self.source), Part::existence(&self.target)];
        reads.extend(self.read().map(|name| Part::attribute(&self.source, name)));
        let writes = self.written().map(|name| Part::attribute(&self.target, name)).collect();
        Ok(Reach { reads, writes })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let names = self.attributes.iter().map(|(from, to)| match &self.link {
            Some(_) => format!("{from} as {to}"),
            None => to.clone(),
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let which = if self.order == Order::Descending { "the last" } else { "the first" };
        let items = format!("of its {} items by sort key", self.source);
        let (taken, says) = match &self.list {
            Some(SourceList { attribute, length }) => (
                format!("{which} {length} in {attribute}"),
                format!("keeps in {}.{attribute} a list of {names} of {which} {length} {items}", self.target),
            ),
            None => (which.to_owned(), format!("copies {names} into each {}, of {which} {items}", self.target)),
        };
        Outline {
            terms: vec![format!("{taken}: {names}")],
            says: Some(says),
            taken: Some(TakenItems {
                is_last: self.order == Order::Descending,
                list: self.list.as_ref().map(|list| (list.length, list.attribute.clone())),
            }),
            into: schema.entity(&self.target).map(|target| match &self.link {
                Some(link) => linked(target, link),
                None => target.key.to_string(),
            }),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.target]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        let differs = old.is_some() != new.is_some() || self.read().any(|name| sight.attribute_differs(old, new, name));
        let source = new.or(old).filter(|_| differs);
        let led = source.zip(schema.entity(&self.target)).and_then(|(image, to)| match &self.link {
            Some(link) => link.key(to, image).ok().flatten(),
            None => entry::target(image.key_fields()),
        });
        let itself = sight.touched(&self.target, self.written());
        led.into_iter().chain(itself).map(|key| Effect::look(key, &self.target)).collect()
    }

    fn unreadable(&self, _schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        let mut values = self.attributes.iter().filter(|_| image.is(&self.source));
        values.find_map(|(from, _)| from.unreadable(image))
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let of = |image: Image<'_>| {
            let first = self.first(schema, image.key);
            let found = first.map(|of| first_of(schema, &of, items.range(of.begin()..))).unwrap_or_default();
            Derived::Attributes { key: image.key.clone(), attributes: self.wanted(schema, &found) }
        };
        schema.images(items, &self.target).map(of).collect()
    }
}

impl Refresh for Latest {
    fn target(&self) -> &str {
        &self.target
    }

    fn copied(&self) -> &[(Input, String)] {
        if self.list.is_none() { &self.attributes } else { &[] }
    }

    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        self.first(schema, target.key).map(Source::First).into_iter().collect()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let found = self.first(schema, target.key).map(|of| sources.first(schema, &of)).unwrap_or_default();
        Computed::Attributes(self.wanted(schema, &found))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        catalogue::Catalogue,
        change::Change,
        fixture::{TestTable, effects, inserted, item, key_of, latest, modified, named, removed, schema, short},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("latest", change));
    }

    fn rings_for_both() -> Expect {
        expect![[r#"
            last-message: look ROOM#r / METADATA (Room)
            first-message: look ROOM#r / METADATA (Room)
        "#]]
    }

    const ROOM: &str = "ROOM#r / METADATA Room Topic=tea";
    const MESSAGE: &str = "ROOM#r / MESSAGE#1 Message By=ann Text=x";

    #[test]
    fn a_source_that_comes_or_goes_rings_its_target_once_for_each_that_reads_it() {
        let both = rings_for_both();
        check(&inserted(MESSAGE), &both);
        check(&removed(MESSAGE), &both);
        check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Gadget By=ann"), &both);
    }

    #[test]
    fn a_change_of_what_nobody_takes_rings_nobody() {
        check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Message By=ann Text=y"), &expect!["nothing\n"]);
        check(&modified(ROOM, "ROOM#r / METADATA Room Topic=coffee"), &expect!["nothing\n"]);
        check(&removed(ROOM), &expect!["nothing\n"]);
        let by_bob = "ROOM#r / MESSAGE#1 Message By=bob Text=x";
        check(&modified(MESSAGE, by_bob), &expect!["last-message: look ROOM#r / METADATA (Room)\n"]);
    }

    #[test]
    fn a_target_that_is_made_or_whose_part_was_changed_is_looked_at() {
        let both = rings_for_both();
        check(&inserted(ROOM), &both);
        check(&modified(ROOM, &format!("{ROOM} LastBy=me")), &expect!["last-message: look ROOM#r / METADATA (Room)\n"]);
    }

    /// The content of a room after these messages, in order of arrival.
    fn stored(messages: &[&str]) -> String {
        let mut table = TestTable::new();
        for text in [&[ROOM], messages].concat() {
            let item = item(text);
            table.replace(key_of(&item), Some(item));
        }
        table.settle(&[0]);
        assert_eq!(table.differing(), Vec::<String>::new());
        let room = &table.items[&key_of(&item(ROOM))];
        let names = ["LastBy", "LastAt", "FirstAt"].into_iter().filter_map(|name| Some((name, room.get(name)?)));
        names.map(|(name, value)| format!("{name}={}", short(value))).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_last_and_the_first_are_by_sort_key_whatever_came_first_and_items_of_others_are_passed_over() {
        assert_eq!(stored(&[]), "");
        assert_eq!(stored(&[MESSAGE]), "LastBy=ann LastAt=1 FirstAt=1");
        let later = "ROOM#r / MESSAGE#2 Message By=bob";
        assert_eq!(stored(&[later, MESSAGE]), "LastBy=bob LastAt=2 FirstAt=1");
        assert_eq!(stored(&[MESSAGE, later, "ROOM#r / MESSAGE#3 Message"]), "LastAt=3 FirstAt=1");
        let others =
            ["ROOM#r / MESSAGE#0#PIN Pin By=pin", "ROOM#r / MESSAGE#9#PIN Pin By=pin", "ROOM#q / MESSAGE#9 Message"];
        assert_eq!(stored(&[&others[..], &[MESSAGE]].concat()), "LastBy=ann LastAt=1 FirstAt=1");
    }

    #[test]
    fn a_list_has_the_last_few_in_their_order() {
        let newest = |messages: &[&str]| {
            let mut table = TestTable::new();
            for text in [&[ROOM], messages].concat() {
                let item = item(text);
                table.replace(key_of(&item), Some(item));
                table.settle(&[0]);
            }
            assert_eq!(table.differing(), Vec::<String>::new());
            let entry = |entry: &AttributeValue| {
                let AttributeValue::M(entry) = entry else { panic!("no map: {entry:?}") };
                ["At", "By"].map(|name| entry.get(name).map(short).unwrap_or_default()).join(" ")
            };
            match table.items[&key_of(&item(ROOM))].get("Newest") {
                Some(AttributeValue::L(entries)) => entries.iter().map(entry).collect::<Vec<_>>().join(", "),
                other => format!("{other:?}"),
            }
        };
        assert_eq!(newest(&[]), "None");
        assert_eq!(newest(&[MESSAGE]), "1 ann");
        let more =
            ["ROOM#r / MESSAGE#3 Message By=cat", "ROOM#r / MESSAGE#2 Message", "ROOM#r / MESSAGE#2#PIN Pin By=dan"];
        assert_eq!(newest(&[&[MESSAGE], &more[..]].concat()), "3 cat, 2 ");
        assert_eq!(newest(&[MESSAGE, more[0], "ROOM#r / MESSAGE#3 Gadget"]), "1 ann");
    }

    #[test]
    fn a_key_that_is_escaped_in_another_way_has_no_sources() {
        let room = "ROOM#%61 / METADATA";
        let kind = latest(Order::Descending, &[("By", "LastBy")]);
        assert!(kind.first(&schema(), &key_of(&item(&format!("{room} Room")))).is_none());
        assert!(kind.first(&schema(), &key_of(&item("ROOM#a / METADATA Room"))).is_some());
    }

    #[test]
    fn sources_that_are_not_one_range_of_one_partition_are_refused() {
        let schema = schema();
        let refused = |kind: Latest| Catalogue::new(&schema, vec![named("last", kind)]).unwrap_err().to_string();
        let room = || latest(Order::Descending, &[("By", "LastBy")]);
        let all = [
            Latest { link: Some(Link::of(&[("RoomId", "At")])), ..room() },
            Latest { link: Some(Link::of(&[("RoomId", "By")])), ..room() },
            Latest { source: "Pin".into(), link: Some(Link::of(&[])), ..room() },
            latest(Order::Descending, &[("Nothing", "LastBy")]),
            latest(Order::Descending, &[("By", "Topic")]),
        ];
        let shown: String = all.into_iter().map(|kind| refused(kind) + "\n").collect();
        expect![[r#"
            derivation last: the items of Message that lead to one Room are not consecutive items of one partition: the key of Room does not give RoomId of their partition key
            derivation last: the items of Message that lead to one Room are not consecutive items of one partition: the key of Room does not give RoomId of their partition key
            derivation last: nothing gives RoomId of the key of Room
            derivation last: Message has no attribute Nothing
            derivation last: Room does not declare Topic as derived
        "#]].assert_eq(&shown);
    }

    /// Changes of a small domain.
    fn steps() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
        prop::collection::vec((0usize..9, 0usize..6, any::<bool>()), 1..40)
    }

    const KEYS: [&str; 9] = [
        "ROOM#r / METADATA Room",
        "ROOM#r / METADATA Room Topic=x LastBy=me",
        "ROOM#r / MESSAGE#1 Message By=ann",
        "ROOM#r / MESSAGE#1 Message By=bob",
        "ROOM#r / MESSAGE#2 Message By=cat",
        "ROOM#r / MESSAGE#2#PIN Pin By=dan",
        "ROOM#r / MESSAGE#3 Message",
        "ROOM#r / MESSAGE#3 Gadget By=eve",
        "ROOM#q / MESSAGE#3 Message By=eve",
    ];

    proptest! {
        #[test]
        fn any_order_of_records_and_late_writes_ends_as_defined(steps in steps(), choices in prop::collection::vec(0usize..50, 1..30)) {
            let mut table = TestTable::new();
            table.run(&KEYS, steps, &choices);
            prop_assert_eq!(table.differing(), Vec::<String>::new());
        }
    }
}
