//! The tallies of a verification in memory. A command keeps them in a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use derive::{derived::Items, tally::Tally};
use engine::counters::Target;
use keys::{item::Item, key::Key};
use operate::verify::{
    Finding,
    tallies::{Contribution, Reached, Tallies, Undecided},
};

/// Tallies in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryTallies {
    items: BTreeMap<Key, Vec<Contribution>>,
    targets: BTreeMap<Target, Undecided>,
    decided: BTreeSet<Target>,
    seen: BTreeMap<Key, bool>,
    counters: BTreeMap<Key, Option<Item>>,
    is_closed: bool,
    reached: BTreeMap<u32, Reached>,
}

impl MemoryTallies {
    fn target(&mut self, target: &Target) -> &mut Undecided {
        if self.is_closed && !self.targets.contains_key(target) {
            self.decided.insert(target.clone());
        }
        self.targets.entry(target.clone()).or_insert_with(|| Undecided {
            target: target.clone(),
            tally: Tally::default(),
            touched_at_ms: 0,
            compared: None,
        })
    }

    fn add(&mut self, adds: &[Contribution], is_taken_back: bool, now_ms: u64) {
        for Contribution { target, tally } in adds {
            let target = self.target(target);
            if is_taken_back {
                target.tally.subtract(tally);
            } else {
                target.tally.add(tally);
            }
            target.touched_at_ms = target.touched_at_ms.max(now_ms);
        }
    }
}

impl Tallies for MemoryTallies {
    fn scanned(&mut self, item: &Key, adds: &[Contribution]) -> io::Result<()> {
        if !self.items.contains_key(item) {
            self.items.insert(item.clone(), adds.to_vec());
            self.add(adds, false, 0);
        }
        Ok(())
    }

    fn report(&mut self, item: &Key, adds: &[Contribution], now_ms: u64) -> io::Result<()> {
        let before = self.items.insert(item.clone(), adds.to_vec());
        if before.as_deref() != Some(adds) {
            self.add(&before.unwrap_or_default(), true, now_ms);
            self.add(adds, false, now_ms);
        }
        Ok(())
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    fn target_scanned(&mut self, item: &Key) -> io::Result<()> {
        self.seen.entry(item.clone()).or_insert(true);
        Ok(())
    }

    fn target_reported(&mut self, item: &Key, is_there: bool) -> io::Result<()> {
        self.seen.insert(item.clone(), is_there);
        Ok(())
    }

    fn about_nothing(&mut self, derivation: &str, n_examples: usize) -> io::Result<(usize, Vec<Key>)> {
        let is_there = |target: &Key| self.seen.get(target) == Some(&true);
        let targets = self.targets.values().filter(|it| it.target.derivation == derivation && it.tally.count != 0);
        let missing: Vec<&Key> = targets.map(|it| &it.target.item).filter(|item| !is_there(item)).collect();
        Ok((missing.len(), missing.into_iter().take(n_examples).cloned().collect()))
    }

    fn has_counter(&mut self, target: &Target) -> io::Result<()> {
        self.target(target);
        Ok(())
    }

    fn counter_scanned(&mut self, key: &Key, item: &Item) -> io::Result<()> {
        self.counters.entry(key.clone()).or_insert_with(|| Some(item.clone()));
        Ok(())
    }

    fn counter_reported(&mut self, key: &Key, item: Option<&Item>) -> io::Result<()> {
        self.counters.insert(key.clone(), item.cloned());
        Ok(())
    }

    fn counters(&mut self, pk: &str, sk_prefix: &str) -> io::Result<Items> {
        let from = self.counters.range(Key::new(pk, sk_prefix)..);
        let of = from.take_while(|(key, _)| key.pk == pk && key.sk.starts_with(sk_prefix));
        Ok(of.filter_map(|(key, item)| Some((key.clone(), item.clone()?))).collect())
    }

    fn undecided(&mut self, after: Option<&Target>, n_max: usize) -> io::Result<Vec<Undecided>> {
        let left = self.targets.values().filter(|left| after.is_none_or(|after| left.target > *after));
        Ok(left.filter(|left| !self.decided.contains(&left.target)).take(n_max).cloned().collect())
    }

    fn compared(&mut self, target: &Target, finding: Option<&Finding>) -> io::Result<()> {
        self.target(target).compared = finding.cloned();
        Ok(())
    }

    fn decided(&mut self, target: &Target) -> io::Result<()> {
        self.decided.insert(target.clone());
        Ok(())
    }

    fn reached(&mut self, segment: u32) -> io::Result<Reached> {
        Ok(self.reached.get(&segment).cloned().unwrap_or_default())
    }

    fn reach(&mut self, segment: u32, reached: &Reached) -> io::Result<()> {
        self.reached.insert(segment, reached.clone());
        Ok(())
    }
}
