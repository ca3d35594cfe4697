//! Projections: types for the attributes that an index has of an entity.
//!
//! An index does not have the whole item, so its result never has the entity's type: an attribute that is not projected
//! would seem absent. A reader who needs more reads the item by its key, which every projection has.

/// Declares the projection of an entity in an index, and how it is read.
macro_rules! projection {
    ($(#[$doc:meta])* $name:ident of $entity:ident by $key:ty, $index:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $attribute:literal),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// Key of the item in the table.
            pub key: $key,
            $($(#[$field_doc])* pub $field: Option<$type>,)*
        }

        impl $crate::reads::projection::Projected for $name {
            type Of = $entity;

            const INDEX: &'static str = $index;

            #[cfg(test)]
            const ATTRIBUTES: &'static [&'static str] = &[$($attribute),*];

            fn of(entity: $entity) -> Self {
                Self { key: entity.key, $($field: entity.$field,)* }
            }
        }
    };
}
pub(super) use projection;

use derive::query::Query;
use keys::{entity::Entity, fields::Fields, layout::Layout};

use super::{
    listing::{ListPlan, Take},
    ranges,
};
use crate::read_error::ReadError;

/// The attributes of an entity in an index.
pub(super) trait Projected: Sized {
    /// The entity.
    type Of: Entity;

    /// Name of the index.
    const INDEX: &'static str;

    /// The attributes that it has.
    #[cfg(test)]
    const ATTRIBUTES: &'static [&'static str];

    /// Reads an entry of the index.
    fn of(entity: Self::Of) -> Self;

    /// The queries for the entries with these fields.
    fn entries(fields: &Fields) -> Result<Vec<Query>, ReadError> {
        ranges::entries::<Self::Of>(Self::INDEX, fields)
    }

    /// How an entry is converted.
    fn taken<'a>(layout: &'a Layout) -> Take<'a, Self>
    where
        Self: 'a,
    {
        Box::new(|item| Ok(Self::Of::from_item(layout, item)?.map(Self::of)))
    }

    /// Lists all entries that the queries find.
    fn listing<'a>(pattern: &'static str, layout: &'a Layout, queries: Vec<Query>) -> ListPlan<'a, Self>
    where
        Self: 'a,
    {
        ListPlan { pattern, queries, filter: String::new(), take: Self::taken(layout) }
    }
}

/// Checks that a projection has exactly the attributes that its index projects of the entity.
#[cfg(test)]
#[track_caller]
pub(super) fn check<P: Projected>() {
    let layout = entities::table::layout();
    let projected = &layout.index(P::INDEX).unwrap().projection;
    let definition = P::Of::definition();
    let mut of_entity = definition.attributes.iter().chain(&definition.derived_attributes);
    let mut wanted: Vec<&str> = of_entity.by_ref().map(String::as_str).collect();
    wanted.retain(|name| projected.iter().any(|other| other == name));
    wanted.sort_unstable();
    let mut attributes = P::ATTRIBUTES.to_vec();
    attributes.sort_unstable();
    assert_eq!(attributes, wanted, "{} in {}", P::Of::NAME, P::INDEX);
}
