//! Derivations of each kind. A function adds one, or nothing where the schema has no place for it.

mod found;
mod made;

use super::Draft;
use crate::drawn::description::{
    CLAIMS, CopyRule, CountRule, DrawnEntity, FieldOf, Found, Holds, LatestRule, Piece, Ref, Rule, Shown, What, Where,
};

/// How often each kind is tried: counts, copies, mirrors, the latest, extremes, paths, index keys, roll-ups, cascades, and
/// counts that create their targets.
const WEIGHTS: [usize; 10] = [8, 5, 4, 4, 3, 2, 3, 2, 2, 3];

/// Words of the application that conditions ask for.
pub(in crate::drawn) const WORDS: [&str; 4] = ["open", "done", "50%", "x#y"];

impl Draft<'_> {
    /// A derivation of some kind, if it is possible.
    pub(super) fn rule(&mut self) {
        match self.chance.weighted(&WEIGHTS) {
            0 => self.count(),
            1 => self.copy(),
            2 => self.mirror(),
            3 => self.latest(),
            4 => self.extreme(),
            5 => self.path(),
            6 => self.index_key(),
            7 => self.roll_up(),
            8 => self.cascade(),
            _ => self.groups(),
        }
    }

    fn add(&mut self, what: What) {
        let name = self.name("rule-");
        self.of.rules.push(Rule { name, what });
    }

    /// An entity with one of its ways to another.
    fn led(&self, is_meant: impl Fn(&DrawnEntity, &Ref) -> bool) -> Option<(usize, Ref)> {
        let mut led = Vec::new();
        for (at, entity) in self.of.entities.iter().enumerate() {
            led.extend(entity.refs.iter().filter(|by| is_meant(entity, by)).map(|by| (at, by.clone())));
        }
        self.one(&led)
    }

    fn count(&mut self) {
        let Some((from, link)) = self.led(|_, _| true) else { return };
        self.count_of(from, link, false);
    }

    /// A count of items of an entity into where they lead.
    fn count_of(&mut self, from: usize, link: Ref, creates: bool) {
        let to = link.to;
        let of = &self.of.entities[from];
        let numbers = of.attributes.iter().filter(|it| it.holds == Holds::Number).map(|it| it.name.clone());
        let derived = of.derived.iter().filter(|it| it.is_number).map(|it| it.name.clone());
        let (numbers, derived): (Vec<String>, Vec<String>) = (numbers.collect(), derived.collect());
        let numbers = if derived.is_empty() || self.chance.percent(40) { numbers } else { derived };
        let sum = if self.chance.percent(45) { self.one(&numbers) } else { None };
        let condition = self.sometimes(45, from);
        let possible: &[Shown] = match sum {
            Some(_) => &[Shown::Count, Shown::Sum, Shown::Average, Shown::Exists],
            None => &[Shown::Count, Shown::Exists],
        };
        let mut shown: Vec<Shown> = possible.iter().copied().filter(|_| self.chance.percent(50)).collect();
        if shown.is_empty() {
            shown.push(if sum.is_some() { Shown::Sum } else { Shown::Count });
        }
        let shows = shown.into_iter().map(|what| (what, self.derives(to, what != Shown::Exists))).collect();
        let shards = self.one(&[1, 1, 1, 3, 8]).unwrap();
        let (is_history, zero) = (self.chance.percent(15), self.one(&["write", "write", "absent", "always"]).unwrap());
        self.add(What::Count(CountRule { from, to, link, condition, sum, shows, shards, is_history, zero, creates }));
    }

    /// In some cases a condition on an entity's items.
    fn sometimes(&self, percent: usize, entity: usize) -> Option<Where> {
        self.chance.percent(percent).then(|| self.condition(entity)).flatten()
    }

    /// A condition on an entity's items.
    fn condition(&self, entity: usize) -> Option<Where> {
        let of = &self.of.entities[entity];
        let named = |holds: Holds| -> Vec<String> {
            of.attributes.iter().filter(|it| it.holds == holds).map(|it| it.name.clone()).collect()
        };
        let (words, numbers) = (named(Holds::Word), named(Holds::Number));
        let derived: Vec<String> = of.derived.iter().filter(|it| it.is_number).map(|it| it.name.clone()).collect();
        let word = || self.one(&WORDS).unwrap().to_owned();
        let simple = |depth: usize| {
            let above = |name: String| Where::Above(name, i64::try_from(self.chance.below(12)).unwrap() - 4);
            match self.chance.below(8) {
                0 | 1 => self.one(&words).map(|name| Where::Is(name, word())),
                2 => self.one(&words).map(|name| Where::IsNot(name, word())),
                3 => self.one(&words).map(|name| Where::OneOf(name, vec![word(), word()])),
                4 => self.one(&numbers).map(above),
                5 => self.one(&derived).map(above),
                6 => self.one(&numbers).map(Where::Has),
                _ if depth > 0 => self.one(&words).map(Where::Lacks),
                _ => self.one(&numbers).map(Where::Lacks),
            }
        };
        let first = simple(0)?;
        Some(match self.chance.below(6) {
            3 => Where::Both(Box::new(first), Box::new(simple(1)?)),
            4 => Where::Either(Box::new(first), Box::new(simple(1)?)),
            5 => Where::Not(Box::new(first)),
            _ => first,
        })
    }

    fn copy(&mut self) {
        let Some((to, link)) = self.led(|_, _| true) else { return };
        let from = link.to;
        let Some(found) = self.found(to, &link) else { return };
        let of = &self.of.entities[from];
        let own = of.attributes.iter().map(|it| (it.name.clone(), false));
        let all: Vec<(String, bool)> = own.chain(of.derived.iter().map(|it| (it.name.clone(), it.is_number))).collect();
        if all.is_empty() {
            return;
        }
        let mut copied: Vec<(String, bool)> = Vec::new();
        for _ in 0..self.chance.between(1, 2) {
            // What is derived itself stands last, and is copied most.
            let last = if self.chance.percent(50) { all.len() } else { all.len().min(2) };
            let at = all.len() - 1 - self.chance.below(last);
            if all[at].0 != CLAIMS && !copied.contains(&all[at]) {
                copied.push(all[at].clone());
            }
        }
        if copied.is_empty() {
            return;
        }
        let pairs = copied.into_iter().map(|(name, is_number)| (name, self.derives(to, is_number))).collect();
        let condition = self.sometimes(25, from);
        self.add(What::Copy(CopyRule { from, to, link, condition, pairs, found }));
    }

    /// A way whose items are one range of one partition.
    fn ranged(&self, is_meant: impl Fn(&DrawnEntity) -> bool) -> Option<(usize, Ref)> {
        self.led(|of, by| {
            let mut linked: Vec<&String> = by.pairs.iter().map(|(_, from)| from).collect();
            let mut partition = Self::fields_of(&of.pk);
            linked.sort();
            partition.sort();
            !of.sk.is_empty() && linked.into_iter().eq(&partition) && is_meant(of)
        })
    }

    fn latest(&mut self) {
        let Some((from, link)) = self.ranged(|_| true) else { return };
        let to = link.to;
        let of = &self.of.entities[from];
        let fields = of.fields().into_iter().map(|(name, _)| (name.to_owned(), false));
        let own = of.attributes.iter().map(|it| (it.name.clone(), false));
        let derived = of.derived.iter().map(|it| (it.name.clone(), it.is_number));
        let mut all: Vec<(String, bool)> = fields.chain(own).chain(derived).collect();
        all.retain(|(name, _)| name != CLAIMS);
        let list = self.chance.percent(40).then(|| (self.derives(to, false), self.chance.between(1, 4)));
        let mut pairs = Vec::new();
        for _ in 0..self.chance.between(1, 3) {
            let (name, is_number) = self.one(&all).unwrap();
            if !pairs.iter().any(|(other, _)| *other == name) {
                let into = if list.is_some() { self.name("e") } else { self.derives(to, is_number) };
                pairs.push((name, into));
            }
        }
        let is_first = self.chance.percent(40);
        self.add(What::Latest(LatestRule { from, to, link, pairs, list, is_first }));
    }

    fn extreme(&mut self) {
        let ordered = |of: &DrawnEntity| {
            let partition = Self::fields_of(&of.pk);
            let first = of.sk.iter().find(|piece| match piece {
                Piece::Field(name, _) => !partition.contains(name),
                Piece::Text(_) => false,
            });
            matches!(
                first,
                Some(Piece::Field(_, FieldOf::Padded(_) | FieldOf::Inverted(_) | FieldOf::Number | FieldOf::Time))
            )
        };
        let Some((from, link)) = self.ranged(ordered) else { return };
        let of = &self.of.entities[from];
        let partition = Self::fields_of(&of.pk);
        let Some(field) = Self::fields_of(&of.sk).into_iter().find(|name| !partition.contains(name)) else { return };
        let into = self.derives(link.to, false);
        let is_max = self.chance.percent(50);
        self.add(What::Extreme { from, to: link.to, link, field, into, is_max });
    }

    fn path(&mut self) {
        let hubs: Vec<usize> = (0..self.of.entities.len())
            .filter(|at| {
                let of = &self.of.entities[*at];
                let is_tree = of.attributes.iter().any(|it| it.name == "up");
                let fields = of.fields();
                !of.is_derived && !is_tree && fields.len() == 1 && fields[0].1 != FieldOf::Bytes && of.refs.is_empty()
            })
            .collect();
        let Some(of) = self.one(&hubs) else { return };
        let (field, field_of) = {
            let fields = self.of.entities[of].fields();
            (fields[0].0.to_owned(), fields[0].1)
        };
        self.of.entities[of].attributes.push(super::entities::attribute("up", Holds::Id(field_of)));
        let link = Ref { to: of, pairs: vec![(field.clone(), "up".to_owned())] };
        let Some(name) = self.index_for(of, &link) else { return };
        let into = self.derives(of, false);
        let part = if self.chance.percent(50) { field } else { "word".to_owned() };
        let depth = self.chance.between(2, 6);
        self.add(What::Path { of, link, name: part, into, depth, found: Found::Index(name) });
    }
}
