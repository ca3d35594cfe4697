//! What `latest` and `extreme` have in common: which items lead to a target, in which order.
//!
//! Items that are one range of the table in this order are read where they are. All others have entries beside the
//! target.

use derive::{
    condition::Condition,
    declaration::Link,
    derivation::Derivation,
    expression::{DocumentPath, Expression, Input, PathStep},
    kinds::{
        entries::Entries,
        latest::{Latest, SourceList},
    },
    query::{Order, first_behind, is_descending},
};
use keys::{
    entity::Definition,
    entry::{CARRIED, ENTRIES},
};

use super::{Rule, condition};
use crate::error::ManifestError;

/// The items that lead to each target, and what is taken of the first ones in an order.
pub(super) struct Ordered<'a> {
    pub(super) source: &'a Definition,
    pub(super) target: &'a Definition,
    pub(super) link: Link,
    /// The value that orders the items; `None` for the order of their sort keys.
    pub(super) by: Option<Input>,
    /// True if the greatest value is first.
    pub(super) is_greatest: bool,
    /// Pairs of (what of an item is taken; its name in the target).
    pub(super) attributes: Vec<(Input, String)>,
    pub(super) list: Option<SourceList>,
}

impl Ordered<'_> {
    /// The derivation that reads the items where they are; or else that of their entries, and the one that reads these.
    pub(super) fn derivations(self, rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
        let condition = condition::read(rule, self.source)?;
        let range = Latest::check_range(self.source, self.target, &self.link, None);
        let sort = &self.source.key.sk;
        let first = first_behind(sort, |name| self.link.from_fields().any(|linked| linked == name));
        let is_inverted = first.is_some_and(|name| is_descending(sort, name));
        let is_in_order = self.by.as_ref().is_none_or(|by| first.is_some() && by.name() == first);
        if condition == Condition::Always && is_in_order && range.is_ok() {
            let is_last = self.is_greatest != (is_inverted && self.by.is_some());
            return Ok(vec![rule.derivation(rule.name, self.latest(is_last))?]);
        }
        let by = match (&self.by, first, range) {
            (Some(by), ..) => by.clone(),
            (None, Some(first), Ok(())) => Input::of(first),
            (None, _, range) => {
                let why = range.err().unwrap_or_else(|| format!("nothing orders the items of {}", self.source.name));
                return Err(rule
                    .section
                    .place
                    .wrong(format!("name what orders the items, as in by = \"createdAt\": {why}")));
            }
        };
        let carried = |to: &str| {
            let steps = vec![PathStep::Name(to.to_owned())];
            Input::from(Expression::Path(DocumentPath { attribute: CARRIED.to_owned(), steps }))
        };
        let entity = format!("{}{ENTRIES}", rule.stored(rule.name));
        let entries = Entries {
            source: self.source.name.clone(),
            condition,
            beside: self.target.name.clone(),
            link: self.link.clone(),
            carried: self.attributes.clone(),
            entity: entity.clone(),
            by,
        };
        let is_last = self.is_greatest != (is_inverted && self.by.is_none());
        let latest = Latest {
            source: entity,
            link: None,
            attributes: self.attributes.iter().map(|(_, to)| (carried(to), to.clone())).collect(),
            ..self.latest(is_last)
        };
        let name = format!("{}{ENTRIES}", rule.name);
        Ok(vec![rule.derivation(&name, entries)?, rule.derivation(rule.name, latest)?])
    }

    /// The derivation that takes the last items of the source's own range, or the first.
    fn latest(self, is_last: bool) -> Latest {
        Latest {
            source: self.source.name.clone(),
            target: self.target.name.clone(),
            link: Some(self.link),
            order: if is_last { Order::Descending } else { Order::Ascending },
            attributes: self.attributes,
            list: self.list,
        }
    }
}
