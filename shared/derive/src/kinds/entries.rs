//! Entries: one of Ripple's own items beside a target for each item that leads to it, in the order of a value.
//!
//! *Keeps true*: each source that leads to a target, meets the condition and has the value has one entry beside that
//! target, with the carried values; there is no other entry. *From* a source that was created, removed or changed *to* a
//! refresh of its entry before and after; *from* an entry that any writer changed *to* a refresh of that entry.
//!
//! [Latest](super::latest) reads the first or the last entry of a target. So the sources may be stored anywhere, and be
//! ordered by any attribute.
//!
//! *Level-triggered.* An entry's key names its source, which is read when the entry is written.
//!
//! *Example*: the offer `OFFER#o` of product `p` goes from 15 to 9.50. The entry
//! `PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER` is deleted, and `…#n01:9.5#OFFER%23o#OFFER` is created.

use std::{collections::BTreeSet, iter};

use keys::{
    entity::Definition,
    entry::{self, CARRIED},
    item::{Item, is_stores_own},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    condition::Condition,
    declaration::{Link, entity, gives},
    derived::{Counts, Derived, Items},
    effect::Effect,
    expression::Input,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::{KeptEntries, Outline, linked},
    part::{Part, PartOf, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
};

/// The name of the kind.
pub(crate) const NAME: &str = "entries";

/// The declaration of entries.
#[derive(Clone, Debug)]
pub struct Entries {
    /// Entity of the items that have entries.
    pub source: String,
    /// Which of the items have one.
    pub condition: Condition,
    /// Entity of the targets, which the entries are beside.
    pub beside: String,
    /// How the target's key is built from the fields of a source.
    pub link: Link,
    /// The value that orders the entries, a number or a text; an item without it has no entry.
    pub by: Input,
    /// Pairs of (what of the source an entry carries; its name there).
    pub carried: Vec<(Input, String)>,
    /// Entity of the entries: see [`entry::definition`].
    pub entity: String,
}

impl Entries {
    /// The key of an item's entry; `None` if it has none.
    fn entry(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        let (Some(target), Some(definition)) = (schema.entity(&self.beside), schema.entity(&self.entity)) else {
            return Ok(None);
        };
        if !image.is(&self.source) || !self.condition.holds(image)? {
            return Ok(None);
        }
        let Some(target) = self.link.key(target, image)? else { return Ok(None) };
        let Some(value) = self.by.value(image)? else { return Ok(None) };
        let unreadable = |why: String| Unreadable { attribute: self.by.text().to_owned(), why };
        let Some(by) = entry::by(&value) else {
            return Err(match &*value {
                AttributeValue::N(_) => unreadable("has more than 99 digits before the decimal point".to_owned()),
                stored => Unreadable::type_of(self.by.text(), stored, "N or S is wanted"),
            });
        };
        let fields = entry::fields(&target, &by, image.key);
        definition.build(&fields).map(Some).map_err(|error| unreadable(error.problem.to_string()))
    }

    /// The key of a readable item's entry.
    fn readable(&self, schema: &Schema, image: Option<&Image<'_>>) -> Option<Key> {
        self.entry(schema, image?).ok().flatten()
    }

    /// The source that an entry names.
    fn source_of(definition: &Definition, key: &Key) -> Option<Key> {
        entry::source(&definition.key.parse_key(key)?)
    }

    /// The entry of an item.
    fn made(&self, layout: &Layout, definition: &Definition, key: &Key, source: &Image<'_>) -> Item {
        let value = |(from, to): &(Input, String)| Some((to.clone(), from.value(source).ok()??.into_owned()));
        let mut item = layout.key_item(key);
        item.extend(layout.mark_of(definition));
        item.insert(CARRIED.to_owned(), AttributeValue::M(self.carried.iter().filter_map(value).collect()));
        item
    }

    /// The item's fields and attributes that decide its entry.
    fn decides(&self) -> impl Iterator<Item = &str> {
        let carried = self.carried.iter().flat_map(|(from, _)| from.names());
        self.link.from_fields().chain(self.condition.attributes()).chain(self.by.names()).chain(carried)
    }
}

impl Kind for Entries {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.beside)?);
        entity(schema, &self.entity)?;
        self.link.check(target, source)?;
        gives(source, self.decides().filter(|name| !self.link.from_fields().any(|linked| linked == *name)))?;
        let mut reads: Vec<Part> = self.decides().map(|name| Part::attribute(&self.source, name)).collect();
        reads.push(Part::existence(&self.source));
        let rest = Part { entity: self.entity.clone(), of: PartOf::AllBut(BTreeSet::new()) };
        Ok(Reach { reads, writes: vec![Part::existence(&self.entity), rest] })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let carried: Vec<String> = self.carried.iter().map(|(from, to)| format!("{from} as {to}")).collect();
        let carrying = format!("carrying {}", carried.join(", "));
        let terms = iter::once(format!("by {}", self.by)).chain(self.condition.words()).chain([carrying]).collect();
        let into = schema.entity(&self.beside).map(|target| linked(target, &self.link));
        let entries = KeptEntries {
            by: self.by.to_string(),
            condition: self.condition.words(),
            carried: self.carried.iter().map(|(from, to)| (from.to_string(), to.clone())).collect(),
        };
        Outline { terms, into, entries: Some(entries), ..Outline::from(&self.source) }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.entity]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        let differs = old.is_some() != new.is_some() || self.decides().any(|name| sight.differs_in(name));
        let images = [old, new].into_iter().filter(|_| differs);
        let mut entries: BTreeSet<Key> = images.filter_map(|image| self.readable(schema, image)).collect();
        let (old, new) = sight.entity(&self.entity);
        let is_ours = |name: &&str| !is_stores_own(name);
        let differs = old.is_some() != new.is_some() || sight.differing().iter().any(is_ours);
        entries.extend(new.or(old).filter(|_| differs).map(|image| image.key.clone()));
        entries.into_iter().map(|key| Effect::look(key, &self.entity)).collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        match self.entry(schema, image) {
            Err(unreadable) => Some(unreadable),
            Ok(None) => None,
            Ok(Some(_)) => self.carried.iter().find_map(|(from, _)| from.unreadable(image)),
        }
    }

    fn condition(&self) -> Option<(&str, &Condition)> {
        Some((&self.source, &self.condition))
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let Some(definition) = schema.entity(&self.entity) else { return Vec::new() };
        let made = |(key, item)| {
            let image = schema.image(key, item)?;
            let key = self.readable(schema, Some(&image))?;
            let item = self.made(&schema.layout, definition, &key, &image);
            Some(Derived::Item { key, item })
        };
        items.iter().filter_map(made).collect()
    }
}

impl Refresh for Entries {
    fn target(&self) -> &str {
        &self.entity
    }

    fn makes_item(&self) -> bool {
        true
    }

    fn sources(&self, _schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        Self::source_of(target.definition, target.key).map(Source::Item).into_iter().collect()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let made = || {
            let key = Self::source_of(target.definition, target.key)?;
            let source = schema.image(&key, sources.item(&key)?)?;
            self.readable(schema, Some(&source)).filter(|entry| entry == target.key)?;
            Some(self.made(&schema.layout, target.definition, target.key, &source))
        };
        Computed::Item(made())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use keys::key::SORT_KEY_BYTES_MAX;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        catalogue::Catalogue,
        expression::pairs,
        fixture::{TestTable, effects_in, ground, inserted, item, key_of, modified, named, removed, short},
        kinds::latest::{Latest, SourceList},
        query::Order,
    };

    fn entries(name: &str, carried: &[(&str, &str)]) -> Entries {
        Entries {
            source: "Offer".into(),
            condition: "Ended <> 'x'".parse().unwrap(),
            beside: "Product".into(),
            link: Link::of(&[("ProductId", "ProductId")]),
            by: Input::of("Price"),
            carried: pairs(carried),
            entity: format!("{name}-entries"),
        }
    }

    fn read(name: &str, order: Order, attributes: &[(&str, &str)], list: Option<SourceList>) -> Latest {
        Latest {
            source: format!("{name}-entries"),
            target: "Product".into(),
            link: None,
            order,
            attributes: pairs(attributes),
            list,
        }
    }

    /// Products with their lowest price, and a list of the two dearest offers, which are stored anywhere.
    fn shop() -> (Schema, Catalogue) {
        let ours = ["LowestPrice", "LowestBy", "Dearest"];
        let entities = [
            ground("Product", ("PRODUCT#{ProductId}", "PRODUCT"), &["Name"], &ours),
            ground("Offer", ("OFFER#{OfferId}", "OFFER"), &["ProductId", "Price", "Seller", "Ended"], &[]),
        ];
        let own = ["cheapest", "dearest"].map(|name| entry::definition(name).unwrap());
        let schema = Schema::new(crate::fixture::schema().layout, entities).with(own);
        let dearest = SourceList { attribute: "Dearest".into(), length: 2 };
        let derivations = vec![
            named("cheapest-entries", entries("cheapest", &[("Price", "LowestPrice"), ("Seller", "LowestBy")])),
            named(
                "cheapest",
                read(
                    "cheapest",
                    Order::Ascending,
                    &[("Carried.LowestPrice", "LowestPrice"), ("Carried.LowestBy", "LowestBy")],
                    None,
                ),
            ),
            named("dearest-entries", entries("dearest", &[("Price", "at")])),
            named("dearest", read("dearest", Order::Descending, &[("Carried.at", "at")], Some(dearest))),
        ];
        let catalogue = Catalogue::new(&schema, derivations).unwrap();
        (schema, catalogue)
    }

    const OFFER: &str = "OFFER#o / OFFER Offer ProductId=p Price=N:15 Seller=ann";

    #[test]
    fn a_changed_source_requests_its_entry_before_and_after() {
        let (schema, catalogue) = shop();
        let mut requested = String::new();
        for change in [
            inserted(OFFER),
            removed(OFFER),
            modified(OFFER, "OFFER#o / OFFER Offer ProductId=p Price=N:9.5 Seller=ann"),
            modified(OFFER, "OFFER#o / OFFER Offer ProductId=q Price=N:15 Seller=ann"),
            modified(OFFER, &format!("{OFFER} Ended=x")),
            modified(OFFER, "OFFER#o / OFFER Offer ProductId=p Price=N:15 Seller=bob"),
            modified(OFFER, &format!("{OFFER} Note=x")),
            modified(OFFER, "OFFER#o / OFFER Offer ProductId=p Price=SS:15 Seller=ann"),
        ] {
            requested += &effects_in(&schema, &catalogue, "entries", &change);
            requested += "\n";
        }
        expect![[r#"
            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n01:9.5#OFFER%23o#OFFER (cheapest-entries)
            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n01:9.5#OFFER%23o#OFFER (dearest-entries)
            dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            cheapest-entries: look PRODUCT#q / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)
            dearest-entries: look PRODUCT#q / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)

            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)

            nothing

            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            cheapest-entries: list Price is SS, and N or S is wanted
            dearest-entries: look PRODUCT#p / PRODUCT#RIPPLE#dearest#n02:15#OFFER%23o#OFFER (dearest-entries)
            dearest-entries: list Price is SS, and N or S is wanted

        "#]]
        .assert_eq(&requested);
    }

    #[test]
    fn a_changed_entry_requests_its_target_and_itself() {
        let (schema, catalogue) = shop();
        let entry = "PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER cheapest-entries";
        expect![[r#"
            cheapest-entries: look PRODUCT#p / PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER (cheapest-entries)
            cheapest: look PRODUCT#p / PRODUCT (Product)
        "#]]
        .assert_eq(&effects_in(&schema, &catalogue, "", &inserted(entry)));
    }

    #[test]
    fn an_item_that_has_no_place_in_the_order_is_unreadable_and_one_without_the_value_has_none() {
        let (schema, catalogue) = shop();
        let derivation = catalogue.derivations().next().unwrap();
        let why = |text: &str| {
            let item = item(text);
            let key = key_of(&item);
            let image = schema.image(&key, &item).unwrap();
            derivation.unreadable(&schema, &image).map(|unreadable| unreadable.to_string())
        };
        assert_eq!(why(OFFER), None);
        assert_eq!(why("OFFER#o / OFFER Offer ProductId=p"), None);
        let long = format!("OFFER#o / OFFER Offer ProductId=p Price={}", "x".repeat(SORT_KEY_BYTES_MAX));
        let mut shown = String::new();
        for text in
            ["OFFER#o / OFFER Offer ProductId=p Price=SS:1", "OFFER#o / OFFER Offer ProductId=p Price=N:1E120", &long]
        {
            shown += &(why(text).unwrap_or_default() + "\n");
        }
        expect![[r#"
            Price is SS, and N or S is wanted
            Price has more than 99 digits before the decimal point
            Price makes a key of 1065 bytes; the limit is 1024
        "#]]
        .assert_eq(&shown);
    }

    /// What a product shows after these offers, in order of arrival.
    fn stored(offers: &[&str]) -> String {
        let (schema, catalogue) = shop();
        let mut table = TestTable { schema, catalogue, ..TestTable::new() };
        for text in [&["PRODUCT#p / PRODUCT Product"], offers].concat() {
            let item = item(text);
            table.replace(key_of(&item), Some(item));
            table.settle(&[0]);
        }
        assert_eq!(table.differing(), Vec::<String>::new());
        let product = &table.items[&Key::new("PRODUCT#p", "PRODUCT")];
        let names =
            ["LowestPrice", "LowestBy", "Dearest"].into_iter().filter_map(|name| Some((name, product.get(name)?)));
        names.map(|(name, value)| format!("{name}={}", short(value))).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_extreme_follows_changes_removals_and_ties() {
        let offer = |id: &str, rest: &str| format!("OFFER#{id} / OFFER Offer ProductId=p {rest}");
        assert_eq!(stored(&[]), "");
        let [a, b, c] =
            [("a", "Price=N:15 Seller=ann"), ("b", "Price=N:-2 Seller=bob"), ("c", "Price=N:15 Seller=cat")]
                .map(|(id, rest)| offer(id, rest));
        assert!(stored(&[&a, &b, &c]).starts_with("LowestPrice=N:-2 LowestBy=bob"), "{}", stored(&[&a, &b, &c]));
        let ended = offer("b", "Price=N:-2 Seller=bob Ended=x");
        assert!(
            stored(&[&b, &c, &a, &ended]).starts_with("LowestPrice=N:15 LowestBy=ann"),
            "the first of two by its key"
        );
        assert!(stored(&[&b, &offer("b", "Price=N:100 Seller=bob"), &a]).starts_with("LowestPrice=N:15 LowestBy=ann"));
        assert!(
            stored(&[&b, "OFFER#b / OFFER Offer ProductId=q Price=N:1", &c])
                .starts_with("LowestPrice=N:15 LowestBy=cat")
        );
    }

    const ITEMS: [&str; 9] = [
        "PRODUCT#p / PRODUCT Product",
        "PRODUCT#p / PRODUCT Product LowestPrice=N:1",
        "PRODUCT#q / PRODUCT Product",
        "OFFER#a / OFFER Offer ProductId=p Price=N:15",
        "OFFER#a / OFFER Offer ProductId=q Price=N:-7",
        "OFFER#b / OFFER Offer ProductId=p Price=N:15 Seller=bob",
        "OFFER#b / OFFER Offer ProductId=p Price=N:0.5 Ended=x",
        "OFFER#c / OFFER Offer ProductId=p Price=x#%20",
        "PRODUCT#p / PRODUCT#RIPPLE#cheapest#n01:1#OFFER%23a#OFFER cheapest-entries",
    ];

    proptest! {
        #[test]
        fn any_order_of_records_and_late_writes_ends_as_defined(
            steps in prop::collection::vec((0usize..9, 0usize..6, any::<bool>()), 1..40),
            choices in prop::collection::vec(0usize..50, 1..30),
        ) {
            let (schema, catalogue) = shop();
            let mut table = TestTable { schema, catalogue, ..TestTable::new() };
            table.run(&ITEMS, steps, &choices);
            prop_assert_eq!(table.differing(), Vec::<String>::new());
        }
    }
}
