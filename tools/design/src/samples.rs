//! A sample item of each entity, for the page and for prices.
//!
//! An entity without a given sample has one made from its declaration, with placeholders such as `{UserId}` as values.
//! Its size is a guess: that of the names.

mod meeting;

use std::collections::BTreeMap;

use derive::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{count::Count, mirror::Mirror},
    derivation::Derivation,
    kind::shape::Shape,
    schema::{Schema, Seen},
};
use keys::{
    entity::{Definition, KeyTemplate},
    fields::Fields,
    index_key::OnlyIf,
    item::Item,
};
use serde_dynamo::AttributeValue;

use crate::template::{FieldForm, fields};

/// A sample item of each entity, by the entity's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    items: BTreeMap<String, Item>,
    /// Entities with a given sample.
    given: Vec<String>,
}

impl Samples {
    /// Samples made from the declarations alone.
    #[must_use]
    pub fn made_up(schema: &Schema) -> Self {
        let item = |definition: &Definition| Some((definition.name.clone(), made_up(schema, definition)?));
        Self { items: schema.entities().filter_map(item).collect(), given: Vec::new() }
    }

    /// These samples, and made-up ones for the other entities.
    #[must_use]
    pub fn of(schema: &Schema, items: Vec<Item>) -> Self {
        let mut samples = Self::made_up(schema);
        for item in items {
            let Some(key) = schema.layout.key(&item) else { continue };
            if let Seen::Known(image) = schema.see(&key, &item) {
                let name = image.definition.name.clone();
                samples.given.push(name.clone());
                samples.items.insert(name, item);
            }
        }
        samples
    }

    /// With what derivations take of made-up items: a number where they add, one member in each list whose members have
    /// mirrors, and what their conditions ask for, as far as one item can meet them all.
    #[must_use]
    pub fn as_read_by(mut self, catalogue: &Catalogue) -> Self {
        for derivation in catalogue.derivations() {
            let (source, name, value) = match derivation.kind.shape() {
                Shape::Mirror(Mirror { source, each: Some(list), .. }) => {
                    (source, list, AttributeValue::L(vec![AttributeValue::S(format!("{{{list}}}"))]))
                }
                Shape::Count(Count { source, sum: Some(sum), .. }) => (source, sum, AttributeValue::N("1".to_owned())),
                _ => continue,
            };
            if !self.is_given(source)
                && let Some(item) = self.items.get_mut(source).filter(|item| item.contains_key(name))
            {
                item.insert(name.clone(), value);
            }
        }
        let mut met: Vec<(&str, &Condition)> = Vec::new();
        for (source, condition) in catalogue.derivations().filter_map(conditioned) {
            if self.is_given(source) {
                continue;
            }
            let keeps = |item: &Item| met.iter().all(|(of, other)| *of != source || other.holds(item));
            if let Some(item) = self.items.get(source).and_then(|item| meeting::meeting(condition, item)).filter(keeps)
            {
                self.items.insert(source.to_owned(), item);
                met.push((source, condition));
            }
        }
        self
    }

    /// The sample of a derivation's source, changed so that it meets the derivation's condition. `None` without a sample, and
    /// where no change of it meets the condition.
    #[must_use]
    pub(crate) fn source_of(&self, derivation: &Derivation) -> Option<Item> {
        let (source, condition) = conditioned(derivation)?;
        meeting::meeting(condition, self.item(source)?)
    }

    /// The sample of an entity.
    #[must_use]
    pub fn item(&self, entity: &str) -> Option<&Item> {
        self.items.get(entity)
    }

    /// Was the sample given, so that its size means something?
    #[must_use]
    pub fn is_given(&self, entity: &str) -> bool {
        self.given.iter().any(|given| given == entity)
    }
}

/// The source of a derivation, and the condition that its items meet to take part.
fn conditioned(derivation: &Derivation) -> Option<(&str, &Condition)> {
    match derivation.kind.shape() {
        Shape::Count(count) => Some((&count.source, &count.condition)),
        Shape::Rollup(rollup) => Some((&rollup.source, &rollup.condition)),
        Shape::Mirror(mirror) => Some((&mirror.source, &mirror.condition)),
        Shape::Attributes(_) | Shape::Cascade(_) => None,
    }
}

/// An item of an entity with everything that is declared; `None` if its key cannot be made up.
fn made_up(schema: &Schema, definition: &Definition) -> Option<Item> {
    let layout = &schema.layout;
    let mut values = key_values(&definition.key);
    let mut item = Item::new();
    for name in definition.attributes.iter().chain(&definition.derived_attributes) {
        let is_number = definition.indexes.iter().any(|index| index.key.holds_number(name));
        let value =
            if is_number { AttributeValue::N("1".to_owned()) } else { AttributeValue::S(format!("{{{name}}}")) };
        item.insert(name.clone(), value);
    }
    for index in &definition.indexes {
        for (name, value) in key_values(&index.key).iter() {
            if values.get(name).is_none() {
                values.insert(name, value);
            }
        }
        if let Some(OnlyIf::Is { attribute, any_of }) = &index.only_if
            && let Some(text) = any_of.first()
        {
            values.insert(attribute.clone(), text.clone());
            item.insert(attribute.clone(), AttributeValue::S(text.clone()));
        }
    }
    let key = definition.build(&values).ok()?;
    for index in &definition.indexes {
        if let (Some(names), Ok(Some(key))) = (layout.index(&index.index), definition.index_key(index, &values)) {
            item.insert(names.pk.clone(), AttributeValue::S(key.pk));
            item.insert(names.sk.clone(), AttributeValue::S(key.sk));
        }
    }
    item.extend(layout.key_item(&key));
    item.extend(layout.type_of(&definition.name));
    Some(item)
}

/// A value for each field of a key: a placeholder if the field accepts any text.
fn key_values(key: &KeyTemplate) -> Fields {
    let value = |name: &str, form: FieldForm| match form {
        FieldForm::Number => "1".to_owned(),
        FieldForm::Text | FieldForm::Spread | FieldForm::Other => format!("{{{name}}}"),
        FieldForm::Path => format!("/{{{name}}}"),
    };
    let all = fields(&key.pk).into_iter().chain(fields(&key.sk));
    all.map(|field| (field.name.clone(), value(&field.name, field.form))).collect()
}
