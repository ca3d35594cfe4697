//! How the items of an entity are found that lead to a source, and what hangs on an owner.

use crate::drawn::{
    description::{CLAIMS, Found, Hanging, Holds, Ref, What},
    generator::Draft,
};

impl Draft<'_> {
    /// A way to find the items of an entity that lead somewhere.
    pub(super) fn found(&mut self, entity: usize, by: &Ref) -> Option<Found> {
        let of = &self.of.entities[entity];
        let names: Vec<&str> = by.pairs.iter().map(|(_, from)| from.as_str()).collect();
        let mut ways = Vec::new();
        if Self::fields_of(&of.pk).iter().all(|field| names.contains(&field.as_str())) {
            ways.push(Found::Partition);
        }
        for (mirror, _) in self.mirrors.iter().filter(|(_, source)| *source == entity) {
            let via = &self.of.entities[*mirror];
            let partition = Self::fields_of(&via.pk);
            let has = |field: &str| via.field(field).is_some() || via.attribute(field).is_some();
            // A mirror of several sources leads to one of them alone.
            if self.is_whole(*mirror)
                && !via.derives(CLAIMS)
                && partition.iter().all(|field| names.contains(&field.as_str()))
                && of.fields().iter().all(|(field, _)| has(field))
            {
                ways.push(Found::Through(*mirror));
            }
        }
        if (ways.is_empty() || self.chance.percent(25))
            && let Some(name) = self.index_for(entity, by)
        {
            return Some(Found::Index(name));
        }
        self.one(&ways)
    }

    /// Has every source one mirror? What is in its key beside the source's must be given, and stands in the partition key.
    fn is_whole(&self, mirror: usize) -> bool {
        self.of.rules.iter().any(|rule| match &rule.what {
            What::Mirror(rule) => rule.to == mirror && rule.condition.is_none() && rule.each.is_none(),
            _ => false,
        })
    }

    /// What is the application's goes with an owner, which is the application's too.
    pub(super) fn cascade(&mut self) {
        let has_one = self.of.rules.iter().any(|rule| matches!(rule.what, What::Cascade { .. }));
        if has_one {
            return;
        }
        let is_owner = |at: &usize| {
            let of = &self.of.entities[*at];
            !of.is_derived && of.refs.is_empty()
        };
        let owners: Vec<usize> = (0..self.of.entities.len()).filter(is_owner).collect();
        let Some(owner) = self.one(&owners) else { return };
        let mut hanging = Vec::new();
        for at in 0..self.of.entities.len() {
            let of = &self.of.entities[at];
            if of.is_derived || at == owner {
                continue;
            }
            let Some(by) = of.refs.iter().find(|by| by.to == owner).cloned() else { continue };
            let names: Vec<&str> = by.pairs.iter().map(|(_, from)| from.as_str()).collect();
            let is_partition = Self::fields_of(&of.pk).iter().all(|field| names.contains(&field.as_str()));
            // An index may still show an item that leads elsewhere by now, and only-if, which asks that, takes one pair.
            let is_readable = by.pairs.len() == 1
                && by.pairs.iter().all(|(_, from)| {
                    of.field(from).is_some() || of.attribute(from).is_some_and(|it| it.holds != Holds::Number)
                });
            if is_partition {
                hanging.push(Hanging { entity: at, index: None, by: by.pairs });
            } else if is_readable && let Some(index) = self.index_for(at, &by) {
                hanging.push(Hanging { entity: at, index: Some(index), by: by.pairs });
            }
        }
        if !hanging.is_empty() {
            self.add(What::Cascade { owner, hanging });
        }
    }
}
