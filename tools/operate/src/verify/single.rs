//! Findings about an item by itself, and about those above it: keys of indexes that its writer makes, flaws, items that
//! several claim, and counters that nothing explains.

use std::collections::BTreeSet;

use derive::{
    claims::claims,
    derived::Items,
    kind::{Refresh, RefreshTarget},
    position::DerivationAt,
    schema::Image,
    sources::{Source, Sources},
};
use engine::{
    backoff::{GaveUp, Patience},
    input::caught,
};
use keys::{counter::COUNTER, counter::CounterKey, item::Item, key::Key, value::same};
use store::Store;

use super::{Finding, finding, judge::Judge};
use crate::verify::candidates::ReadFrom;
use crate::verify::counts::only;

/// Name of the derivation in a finding about an index key, which the item's writer makes.
pub(crate) const INDEX_KEYS: &str = "index keys";

/// What was found of an item, and what it was decided by, beside the item.
#[derive(Debug, Default)]
pub(crate) struct SingleFinding {
    pub(crate) findings: Vec<Finding>,
    pub(super) read: BTreeSet<ReadFrom>,
}

impl<S: Store> Judge<'_, S> {
    /// The findings about an item. Reads only what is not among the sources, and adds it to them.
    pub(crate) async fn single(
        &self,
        key: &Key,
        item: &Item,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<SingleFinding, GaveUp> {
        let mut found = SingleFinding::default();
        let Some(image) = self.engine.schema().image(key, item) else { return Ok(found) };
        found.findings.extend(self.index_keys(&image));
        found.findings.extend(self.unexplained(&image));
        found.findings.extend(self.claimed_twice(&image));
        for (at, derivation) in self.engine.catalogue().positioned() {
            let target = derivation.kind.refresh().filter(|refresh| image.is(refresh.target()));
            if let Some(refresh) = target.filter(|refresh| refresh.has_flaws() && self.lacks_part(&image, at)) {
                let items = self.above(&image, refresh, (sources, &mut found.read), patience).await?;
                let flaws = caught("looking for flaws", || refresh.flaws(self.engine.schema(), &items));
                let own = flaws.unwrap_or_default().into_iter().filter(|flaw| flaw.key == *key);
                found.findings.extend(own.map(|flaw| {
                    let stored = Some(only(item, &[&flaw.attribute]));
                    Finding { flaw: Some(flaw.why), ..finding(&derivation.name, key, stored, Some(Item::new())) }
                }));
            }
        }
        Ok(found)
    }

    /// Keys of indexes that the item's writer makes, and that are not what its other attributes give.
    fn index_keys(&self, image: &Image<'_>) -> Option<Finding> {
        let schema = self.engine.schema();
        let mut derivations = self.engine.catalogue().derivations();
        // An unreadable item is listed as such: which key is right is known once its writer has corrected it.
        let is_long = image.long_index_key().is_some();
        if image.definition.derived || is_long || derivations.any(|it| it.unreadable(schema, image).is_some()) {
            return None;
        }
        let fields = image.definition.fields(image.key, image.item)?;
        let wanted = image.definition.index_attributes(&self.engine.schema().layout, &fields);
        let differing: Vec<_> =
            wanted.into_iter().filter(|(name, value)| !same(image.item.get(name), value.as_ref())).collect();
        if differing.is_empty() {
            return None;
        }
        let names: Vec<&str> = differing.iter().map(|(name, _)| name.as_str()).collect();
        let stored = only(image.item, &names);
        let derived = differing.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
        Some(finding(INDEX_KEYS, image.key, Some(stored), Some(derived)))
    }

    /// A counter of a derivation that is not declared.
    fn unexplained(&self, image: &Image<'_>) -> Option<Finding> {
        let counter = CounterKey::parse(image.key).filter(|_| image.is(COUNTER))?;
        let is_known = self.engine.catalogue().position(&counter.derivation).is_some();
        (!is_known).then(|| finding(&counter.derivation, image.key, Some(image.item.clone()), None))
    }

    /// A mirror that several living items claim.
    fn claimed_twice(&self, image: &Image<'_>) -> Option<Finding> {
        let claims = claims(self.engine.schema(), image.item);
        let mut parts = self.engine.catalogue().refreshing(&image.definition.name);
        let maker = parts.find(|at| self.engine.catalogue().refresh(*at).is_some_and(Refresh::makes_item))?;
        if claims.len() < 2 {
            return None;
        }
        let all: Vec<String> = claims.iter().map(ToString::to_string).collect();
        let why = format!("several items claim it, and the last of them has it: {}", all.join(", "));
        let stored = Some(only(image.item, &[derive::claims::CLAIMS]));
        let name = self.engine.catalogue().name(maker);
        Some(Finding { flaw: Some(why), ..finding(name, image.key, stored, Some(Item::new())) })
    }

    /// Does an item lack something that a derivation writes? Nothing is derived of one with a flaw.
    fn lacks_part(&self, image: &Image<'_>, derivation: DerivationAt) -> bool {
        let kind = self.engine.catalogue().derivation(derivation).map(|derivation| &derivation.kind);
        let reach = kind.and_then(|kind| kind.reach(self.engine.schema()).ok()).unwrap_or_default();
        let is_lacking = |name: &str| image.item.get(name).is_none();
        reach.writes.iter().any(|part| image.is(&part.entity) && part.of.attribute().is_some_and(is_lacking))
    }

    /// An item with all above it, as far as a derivation reads them.
    async fn above(
        &self,
        image: &Image<'_>,
        refresh: &dyn Refresh,
        (sources, read): (&mut Sources, &mut BTreeSet<ReadFrom>),
        patience: Patience<'_>,
    ) -> Result<Items, GaveUp> {
        let mut items = Items::from([(image.key.clone(), image.item.clone())]);
        let mut next = vec![image.key.clone()];
        while let Some(key) = next.pop() {
            let Some(definition) = self.engine.schema().entity(refresh.target()) else { break };
            let item = items.get(&key);
            let target = RefreshTarget { key: &key, definition, item, named: &BTreeSet::new() };
            for source in refresh.sources(self.engine.schema(), &target) {
                read.insert(ReadFrom::from(source.clone()));
                let Source::Item(above) = source else { continue };
                if items.contains_key(&above) {
                    continue;
                }
                let wanted = Source::Item(above.clone());
                if !sources.knows(&wanted) {
                    self.engine.read(BTreeSet::from([wanted]), sources, patience).await?;
                }
                if let Some(item) = sources.item(&above) {
                    items.insert(above.clone(), item.clone());
                    next.push(above);
                }
            }
        }
        Ok(items)
    }
}
