//! Calculated: an attribute of an item that an expression gives from the item itself.
//!
//! *Keeps true*: each item of the entity has the value of the expression, or no such attribute where that is missing.
//! *From* an item that was created, or in which the attribute or what the expression reads changed, *to* a refresh of
//! that item.
//!
//! What it reads may be derived: the counts of the item, or the sum and the number of values of a bucket.
//!
//! *Level-triggered.* The refresh computes the value from the item's content, in the write that corrects what it reads,
//! if that differs too.
//!
//! *Example*: `Done` of `PROJECT#p` is 3 and `Total` is 4. `Percent`, by `100 * Done / Total`, is 75.

use crate::{
    change::Sight,
    declaration::{declares, entity, gives},
    derived::{Counts, Derived, Items},
    effect::Effect,
    expression::Input,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};

/// The declaration of a calculated attribute.
#[derive(Clone, Debug)]
pub struct Calculated {
    /// Entity of the items.
    pub target: String,
    /// The attribute.
    pub attribute: String,
    /// What gives its value.
    pub value: Input,
}

impl Calculated {
    fn wanted(&self, image: Option<&Image<'_>>) -> Vec<Wanted> {
        let value = image.and_then(|image| self.value.value(image).ok()?.map(std::borrow::Cow::into_owned));
        vec![Wanted { name: self.attribute.clone(), value, zero_is_absent: false }]
    }
}

impl Kind for Calculated {
    fn name(&self) -> &'static str {
        "calculated"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let target = entity(schema, &self.target)?;
        gives(target, self.value.names())?;
        declares(target, [self.attribute.as_str()])?;
        let mut reads = vec![Part::existence(&self.target)];
        reads.extend(self.value.names().map(|name| Part::attribute(&self.target, name)));
        Ok(Reach { reads, writes: vec![Part::attribute(&self.target, &self.attribute)] })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        Outline {
            terms: vec![format!("{} as {}", self.value, self.attribute)],
            says: Some(format!("sets {}.{} to {}", self.target, self.attribute, self.value)),
            into: schema.entity(&self.target).map(|target| target.key.to_string()),
            ..Outline::from(&self.target)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.target]
    }

    fn plan(&self, _schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let itself = sight.touched(&self.target, self.value.names().chain([self.attribute.as_str()]));
        itself.map(|item| Effect::look(item, &self.target)).into_iter().collect()
    }

    fn unreadable(&self, _schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        image.is(&self.target).then(|| self.value.value(image).err()).flatten()
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let of = |it: Image<'_>| Derived::Attributes { key: it.key.clone(), attributes: self.wanted(Some(&it)) };
        schema.images(items, &self.target).map(of).collect()
    }
}

impl Refresh for Calculated {
    fn target(&self) -> &str {
        &self.target
    }

    fn gives(&self) -> Option<&'static str> {
        self.value.expression().type_of()
    }

    fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
        Computed::Attributes(self.wanted(target.image(schema).as_ref()))
    }
}
