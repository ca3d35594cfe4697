//! Index key: an item's place in an index that is ordered by a number which we derive.
//!
//! *Keeps true*: while the number is above zero and the item has what else the key is made of, the item holds the
//! index's key attributes as they follow from its own; otherwise it holds neither, and is not in the index. *From* an
//! item that was made, or whose key attributes or what they are made of changed, *to* a look at that item.
//!
//! *Level-triggered.* The key is computed from what the item holds when it is looked at, and in the same write in which
//! the number itself is brought in step, so that the two never differ for long. An application that puts the item with
//! an old key, or without one, rings the bell that brings it back.
//!
//! A number that is negative, fractional or of more digits than the key has room for gives no key. The item is not at
//! fault, so it is none that cannot be read; it is a flaw, since what was counted is.
//!
//! *Example*: `UnitsSold` of `PRODUCT#tea / METADATA` in the category `drinks` goes from 4 to 5. Its `GSI2PK` stays
//! `BESTSELLERS#drinks`; its `GSI2SK`, made of `{MAX-UnitsSold:12}#{ProductId}`, becomes `999999999994#tea`.

use keys::{entity::Definition, index_key, key::Key, layout::Index, value::is_zero};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    derivation::{Counts, Derived, Items, Part, Reach},
    effect::{Bell, Effect},
    flaw::Flaw,
    kind::{Kind, Shape},
    kinds::{declares, entity, knows},
    outline::Outline,
    refresh::{Computed, Refresh, Source, Sources, Target},
    schema::{Image, Schema, Unreadable},
    write::Wanted,
};

/// The declaration of an index key.
#[derive(Clone, Debug)]
pub struct IndexKey {
    /// Entity of the items.
    pub target: String,
    /// Name of the index; the target declares its key there as derived.
    pub index: String,
    /// The derived attribute that orders the index, of type N.
    pub number: String,
}

impl IndexKey {
    fn declared<'a>(&self, definition: &'a Definition) -> Option<&'a index_key::IndexKey> {
        definition.indexes.iter().find(|index| index.index == self.index && index.derived)
    }

    /// The names of the key attributes.
    fn names<'a>(&self, schema: &'a Schema) -> Option<&'a Index> {
        schema.layout.index(&self.index)
    }

    /// The key that follows from an item; `None` where it should have none.
    fn key(&self, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        let Some(index) = self.declared(image.definition) else { return Ok(None) };
        let names = index.key.field_names();
        let others = names.iter().filter(|name| **name != self.number);
        for name in others {
            if image.field(name)?.is_none() {
                return Ok(None);
            }
        }
        let number = match image.attribute(&self.number) {
            None => return Ok(None),
            Some(value) if is_zero(value) => return Ok(None),
            Some(AttributeValue::N(text)) => text.as_str(),
            Some(_) => {
                return Err(Unreadable { attribute: self.number.clone(), why: "is not of type N".to_owned() });
            }
        };
        let field = |name: &str| if name == self.number { Some(number) } else { image.field(name).ok().flatten() };
        let unreadable =
            |error: keys::error::KeyError| Unreadable { attribute: error.attribute, why: error.problem.to_string() };
        index.key.build_of(field).map(Some).map_err(unreadable)
    }

    fn wanted(&self, schema: &Schema, image: Option<&Image<'_>>) -> Vec<Wanted> {
        let Some(names) = self.names(schema) else { return Vec::new() };
        let key = image.and_then(|image| self.key(image).ok().flatten());
        let (pk, sk) = key.map(|key| (key.pk, key.sk)).unzip();
        let wanted = |(name, text): (&String, Option<String>)| Wanted {
            name: name.clone(),
            value: text.map(AttributeValue::S),
            zero_is_absent: false,
        };
        [(&names.pk, pk), (&names.sk, sk)].map(wanted).to_vec()
    }

    /// All attributes of which a change may change the key, and those of the key itself.
    fn concerned<'a>(&self, schema: &'a Schema) -> Vec<&'a str> {
        let declared = schema.entity(&self.target).and_then(|target| self.declared(target));
        let mut names = declared.map(|index| index.key.field_names()).unwrap_or_default();
        names.extend(self.names(schema).into_iter().flat_map(|names| [names.pk.as_str(), names.sk.as_str()]));
        names
    }
}

impl Kind for IndexKey {
    fn name(&self) -> &'static str {
        "index key"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let target = entity(schema, &self.target)?;
        let index = self.declared(target);
        let index = index.ok_or_else(|| format!("{} has no derived key in the index {}", target.name, self.index))?;
        let names = self.names(schema).ok_or_else(|| format!("the table has no index {}", self.index))?;
        declares(target, [self.number.as_str()])?;
        if !index.key.holds_number(&self.number) {
            return Err(format!("the key of {} in {} is not ordered by {}", target.name, self.index, self.number));
        }
        let fields = index.key.field_names();
        knows(target, fields.iter().copied().filter(|name| !target.key.holds(name)))?;
        let mut reads = vec![Part::existence(&self.target)];
        reads.extend(fields.into_iter().map(|name| Part::attribute(&self.target, name)));
        let writes = [&names.pk, &names.sk].map(|name| Part::attribute(&self.target, name)).to_vec();
        Ok(Reach { reads, writes })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let declared = schema.entity(&self.target).and_then(|target| self.declared(target));
        Outline {
            terms: vec![format!("{} above zero", self.number)],
            into: declared.map(|index| format!("{} / {} of {}", index.key.pk, index.key.sk, self.index)),
            ..Outline::from(&self.target)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.target]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.target);
        let Some(new) = new else { return Vec::new() };
        let mut concerned = self.concerned(schema).into_iter();
        if old.is_some() && !concerned.any(|name| sight.attribute_differs(old, Some(new), name)) {
            return Vec::new();
        }
        vec![Effect::Look(Bell { item: new.key.clone(), entity: self.target.clone(), named: Vec::new() })]
    }

    fn unreadable(&self, _schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(&self.target) {
            return None;
        }
        self.key(image).err().filter(|unreadable| unreadable.attribute != self.number)
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut derived = Vec::new();
        for (key, item) in items {
            if let Some(image) = schema.image(key, item).filter(|image| image.is(&self.target)) {
                let attributes = self.wanted(schema, Some(&image));
                derived.push(Derived::Attributes { key: key.clone(), attributes });
            }
        }
        derived
    }
}

impl Refresh for IndexKey {
    fn target(&self) -> &str {
        &self.target
    }

    fn sources(&self, _schema: &Schema, _target: &Target<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, schema: &Schema, target: &Target<'_>, _sources: &Sources) -> Computed {
        Computed::Attributes(self.wanted(schema, target.image(schema).as_ref()))
    }

    fn has_flaws(&self) -> bool {
        true
    }

    /// Items whose number is none that the key can hold.
    fn flaws(&self, schema: &Schema, items: &Items) -> Vec<Flaw> {
        let flaw = |(key, item)| {
            let image = schema.image(key, item).filter(|image| image.is(&self.target))?;
            let unreadable = self.key(&image).err().filter(|unreadable| unreadable.attribute == self.number)?;
            let why = format!("it is not in the index {}: {unreadable}", self.index);
            Some(Flaw { key: key.clone(), attribute: unreadable.attribute, why })
        };
        items.iter().filter_map(flaw).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{
        change::Change,
        derivation::{Counts, Derived},
        fixture::{
            effects, inserted, item, key_of, modified, products::best_sellers, removed, schema, short, table::Table,
        },
        kind::Kind as _,
        refresh::Refresh as _,
        whole,
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("index key", change));
    }

    const TEA: &str = "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4 GSI2PK=BESTSELLERS#drinks \
                       GSI2SK=999999999995#tea";

    #[test]
    fn a_number_or_a_category_that_changed_rings() {
        check(
            &modified(TEA, &TEA.replace("N:4", "N:5")),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
        "#]],
        );
        check(
            &modified(TEA, &TEA.replace("Category=drinks", "Category=food")),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
        "#]],
        );
        check(
            &modified(TEA, &TEA.replace("N:4", "N:4.0")),
            &expect![[r#"
            nothing
        "#]],
        );
        check(
            &modified(TEA, &format!("{TEA} Price=N:3")),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn a_put_that_drops_or_alters_the_key_rings() {
        check(
            &modified(TEA, "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4"),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
        "#]],
        );
        check(
            &modified(TEA, &TEA.replace("995#tea", "990#tea")),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
        "#]],
        );
        check(
            &inserted(TEA),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
        "#]],
        );
        check(
            &removed(TEA),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn a_category_that_cannot_be_read_is_listed_and_a_number_is_not() {
        check(
            &inserted(&TEA.replace("Category=drinks", "Category=N:1")),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
            best-sellers: list Category: is not of type S
        "#]],
        );
        check(
            &inserted(&TEA.replace("N:4", "N:-4")),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
        "#]],
        );
    }

    /// The keys of products of which so much was sold.
    fn defined(sold: &[&str], wanted: &Expect) {
        let mut table = Table::new();
        for (at, sold) in sold.iter().enumerate() {
            let counter = format!("PRODUCT#{at} / METADATA#COUNT#sale-count#00 Counter Value=N:{sold}");
            let product = format!("PRODUCT#{at} / METADATA Product Category=drinks GSI2PK=x UnitsSold=N:77");
            for text in [counter, product] {
                let item = item(&text);
                table.replace(key_of(&item), Some(item));
            }
        }
        table.settle(&[]);
        assert_eq!(table.differing(), [""; 0]);
        let shown = |item: &keys::item::Item, name: &str| item.get(name).map_or("-".to_owned(), short);
        let products = table.items.iter().filter(|(key, _)| key.sk == "METADATA");
        let mut lines: Vec<String> = products
            .map(|(key, item)| {
                let [number, pk, sk] = ["UnitsSold", "GSI2PK", "GSI2SK"].map(|name| shown(item, name));
                format!("{}: {number}, {pk} / {sk}\n", key.pk)
            })
            .collect();
        let whole = whole::derive(&table.schema, &table.catalogue, &table.items);
        lines.extend(whole.flaws.iter().map(|(name, flaw)| format!("{name}: {} {}\n", flaw.key, flaw.why)));
        wanted.assert_eq(&lines.concat());
    }

    #[test]
    fn only_a_whole_number_above_zero_that_fits_gives_a_key() {
        defined(
            &["0", "1", "12", "999999999999", "1000000000000", "-1"],
            &expect![[r#"
            PRODUCT#0: -, - / -
            PRODUCT#1: N:1, BESTSELLERS#drinks / 999999999998#1
            PRODUCT#2: N:12, BESTSELLERS#drinks / 999999999987#2
            PRODUCT#3: N:999999999999, BESTSELLERS#drinks / 000000000000#3
            PRODUCT#4: N:1000000000000, - / -
            PRODUCT#5: N:-1, - / -
            best-sellers: PRODUCT#4 / METADATA it is not in the index GSI2: UnitsSold: does not fit in 12 digits
            best-sellers: PRODUCT#5 / METADATA it is not in the index GSI2: UnitsSold: is not a whole number from 0 up
        "#]],
        );
    }

    #[test]
    fn a_number_that_is_fractional_or_none_at_all_gives_no_key_and_is_told() {
        for value in ["N:0.5", "N:-1", "N:1e12", "four"] {
            let schema = schema();
            let item = item(&TEA.replace("N:4", value));
            let items = [(key_of(&item), item)].into();
            let kind = best_sellers();
            let [Derived::Attributes { attributes, .. }] = &kind.derive("", &schema, &items, &Counts::new())[..] else {
                panic!("a product has a part")
            };
            assert!(attributes.iter().all(|wanted| wanted.value.is_none()), "{value}");
            assert_eq!(kind.flaws(&schema, &items).len(), 1, "{value}");
        }
    }

    #[test]
    fn a_product_without_a_category_is_in_no_index_and_without_fault() {
        let schema = schema();
        let item = item(&TEA.replace(" Category=drinks", ""));
        let items = [(key_of(&item), item)].into();
        let kind = best_sellers();
        let derived = kind.derive("", &schema, &items, &Counts::new());
        assert!(matches!(&derived[..], [Derived::Attributes { attributes, .. }] if attributes[0].value.is_none()));
        assert_eq!(kind.flaws(&schema, &items), []);
    }
}
