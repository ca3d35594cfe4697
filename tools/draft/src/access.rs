//! The access patterns that a file declares, as sections of the manifest.

use std::collections::BTreeSet;

use crate::{
    entities::Found,
    names::free,
    text::{list, string},
};

/// The section of each pattern of these entities, each with the position of its table.
pub(crate) fn sections(live: &[(usize, &Found<'_>)]) -> Vec<Vec<String>> {
    let mut taken = BTreeSet::new();
    let mut sections = Vec::new();
    for (table, found) in live {
        for pattern in found.declared.iter().flat_map(|declared| &declared.patterns) {
            let name = free(&pattern.name, |name| taken.contains(name));
            let is_beside = |(other, it): &&(usize, &Found<'_>)| other == table && it.pk == found.pk;
            let beside: Vec<&str> = live.iter().filter(is_beside).map(|(_, it)| it.name.as_str()).collect();
            let read = match beside.as_slice() {
                several @ [_, _, ..] if pattern.is_of_partition => list(several),
                _ => string(&found.name),
            };
            let head = [format!("[access.{name}]"), format!("{} = {read}", pattern.reads)];
            sections.push(head.into_iter().chain(pattern.lines.iter().cloned()).collect());
            taken.insert(name);
        }
    }
    sections
}
