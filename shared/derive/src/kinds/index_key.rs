//! Index key: an item's key in an index that is ordered by a derived number.
//!
//! *Keeps true*: while the number is above zero and the item has the other attributes of the key, the item has the
//! index's key attributes that they give; otherwise it has neither, and is not in the index. *From* an item that was
//! created, or whose key attributes or their inputs changed, *to* a refresh of that item.
//!
//! *Level-triggered.* The refresh computes the key from the item's content, in the same write that corrects the number
//! itself, so that the two never differ for long. If an application puts the item with an old key, or without one, the
//! record requests the refresh that restores it.
//!
//! A number that is fractional or has too many digits for the key gives no key. The item itself is not at fault, so it
//! does not count as unreadable; the invalid data is in the counted items.
//!
//! *Example*: `UnitsSold` of `PRODUCT#tea / METADATA` in the category `drinks` goes from 4 to 5. Its `GSI2PK` stays
//! `BESTSELLERS#drinks`; its `GSI2SK`, built from `{MAX-UnitsSold:12}#{ProductId}`, becomes `999999999994#tea`.

use keys::{entity::Definition, index_key, key::Key, layout::Index, value::is_zero};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    declaration::{declares, entity, knows},
    derived::{Counts, Derived, Flaw, Items},
    effect::Effect,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};

/// The declaration of an index key.
#[derive(Clone, Debug)]
pub struct DerivedIndexKey {
    /// Entity of the items.
    pub target: String,
    /// Name of the index; the target declares its key there as derived.
    pub index: String,
    /// The derived attribute that orders the index, of type N.
    pub number: String,
}

impl DerivedIndexKey {
    fn declared<'a>(&self, definition: &'a Definition) -> Option<&'a index_key::IndexKey> {
        definition.indexes.iter().find(|index| index.index == self.index && index.derived)
    }

    /// The names of the key attributes.
    fn names<'a>(&self, schema: &'a Schema) -> Option<&'a Index> {
        schema.layout.index(&self.index)
    }

    /// The key that an item gives; `None` if it should have none.
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
            Some(AttributeValue::N(text)) if text.starts_with('-') => return Ok(None),
            Some(AttributeValue::N(text)) => text.as_str(),
            Some(stored) => return Err(Unreadable::type_of(&self.number, stored, "N is wanted")),
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

    /// All attributes that the key depends on, and those of the key itself.
    fn concerned<'a>(&self, schema: &'a Schema) -> Vec<&'a str> {
        let declared = schema.entity(&self.target).and_then(|target| self.declared(target));
        let mut names = declared.map(|index| index.key.field_names()).unwrap_or_default();
        names.extend(self.names(schema).into_iter().flat_map(|names| [names.pk.as_str(), names.sk.as_str()]));
        names
    }
}

impl Kind for DerivedIndexKey {
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
            let (name, index, number) = (&target.name, &self.index, &self.number);
            return Err(format!(
                "the key of {name} in {index} does not have {number} as a padded number: put it there, as in {{{number}:12}}"
            ));
        }
        let fields = index.key.field_names();
        knows(target, fields.iter().copied().filter(|name| !target.key.holds(name)))?;
        let mut reads = vec![Part::existence(&self.target)];
        reads.extend(fields.into_iter().map(|name| Part::attribute(&self.target, name)));
        let writes = [&names.pk, &names.sk].map(|name| Part::attribute(&self.target, name)).to_vec();
        Ok(Reach { reads, writes })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let Self { target, number, index, .. } = self;
        let declared = schema.entity(target).and_then(|target| self.declared(target));
        let key = declared.map(|index| index.key.to_string());
        Outline {
            terms: vec![format!("{number} above zero")],
            says: key
                .as_ref()
                .map(|key| format!("puts each {target} with {number} above zero into the index {index}, under {key}")),
            into: key.map(|key| format!("{key} of {index}")),
            ..Outline::from(&self.target)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.target]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let itself = sight.touched(&self.target, self.concerned(schema).into_iter());
        itself.map(|item| Effect::look(item, &self.target)).into_iter().collect()
    }

    fn unreadable(&self, _schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(&self.target) {
            return None;
        }
        self.key(image).err().filter(|unreadable| unreadable.attribute != self.number)
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let of =
            |it: Image<'_>| Derived::Attributes { key: it.key.clone(), attributes: self.wanted(schema, Some(&it)) };
        schema.images(items, &self.target).map(of).collect()
    }
}

impl Refresh for DerivedIndexKey {
    fn target(&self) -> &str {
        &self.target
    }

    fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
        Computed::Attributes(self.wanted(schema, target.image(schema).as_ref()))
    }

    fn has_flaws(&self) -> bool {
        true
    }

    /// Items whose number does not fit the key.
    fn flaws(&self, schema: &Schema, items: &Items) -> Vec<Flaw> {
        let flaw = |image: Image<'_>| {
            let unreadable = self.key(&image).err().filter(|unreadable| unreadable.attribute == self.number)?;
            let why = format!("it is not in the index {}: {unreadable}", self.index);
            Some(Flaw { key: image.key.clone(), attribute: unreadable.attribute, why })
        };
        schema.images(items, &self.target).filter_map(flaw).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        change::Change,
        fixture::{TestTable, best_sellers, effects, inserted, item, key_of, modified, removed, schema, short},
        whole,
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("index key", change));
    }

    const TEA: &str = "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4 GSI2PK=BESTSELLERS#drinks \
                       GSI2SK=999999999995#tea";

    #[test]
    fn a_number_or_a_category_that_changed_rings() {
        for change in
            [modified(TEA, &TEA.replace("N:4", "N:5")), modified(TEA, &TEA.replace("Category=drinks", "Category=food"))]
        {
            check(&change, &expect!["best-sellers: look PRODUCT#tea / METADATA (Product)\n"]);
        }
        check(&modified(TEA, &TEA.replace("N:4", "N:4.0")), &expect!["nothing\n"]);
        check(&modified(TEA, &format!("{TEA} Price=N:3")), &expect!["nothing\n"]);
    }

    #[test]
    fn a_put_that_drops_or_alters_the_key_rings() {
        for change in [
            modified(TEA, "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4"),
            modified(TEA, &TEA.replace("995#tea", "990#tea")),
            inserted(TEA),
        ] {
            check(&change, &expect!["best-sellers: look PRODUCT#tea / METADATA (Product)\n"]);
        }
        check(&removed(TEA), &expect!["nothing\n"]);
    }

    #[test]
    fn a_category_that_cannot_be_read_is_listed_and_a_number_is_not() {
        check(
            &inserted(&TEA.replace("Category=drinks", "Category=N:1")),
            &expect![[r#"
            best-sellers: look PRODUCT#tea / METADATA (Product)
            best-sellers: list Category is N, and S is wanted
        "#]],
        );
        check(
            &inserted(&TEA.replace("N:4", "N:-4")),
            &expect!["best-sellers: look PRODUCT#tea / METADATA (Product)\n"],
        );
    }

    /// The keys of products with these numbers of units sold.
    fn defined(sold: &[&str], wanted: &Expect) {
        let mut table = TestTable::new();
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
            PRODUCT#0: N:0, - / -
            PRODUCT#1: N:1, BESTSELLERS#drinks / 999999999998#1
            PRODUCT#2: N:12, BESTSELLERS#drinks / 999999999987#2
            PRODUCT#3: N:999999999999, BESTSELLERS#drinks / 000000000000#3
            PRODUCT#4: N:1000000000000, - / -
            PRODUCT#5: N:-1, - / -
            best-sellers: PRODUCT#4 / METADATA it is not in the index GSI2: UnitsSold does not fit in 12 digits
        "#]],
        );
    }

    #[test]
    fn a_number_that_is_fractional_or_none_at_all_gives_no_key_and_is_told() {
        for value in ["N:0.5", "N:1e12", "four"] {
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
