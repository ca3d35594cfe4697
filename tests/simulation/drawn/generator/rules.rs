//! Derivations of each kind. A function adds one, or nothing where the schema has no place for it.

use crate::drawn::{
    description::{
        CLAIMS, Calculation, CopyRule, CountRule, DerivedAttribute, DrawnAttribute, DrawnEntity, DrawnIndexKey,
        FieldOf, Found, Hanging, Holds, LatestRule, MirrorRule, Piece, Ref, RollUpRule, Rule, Shown, UnreadRule, What,
        Where, WindowRule,
    },
    generator::{Draft, ENTITIES_MAX, KeyPlan, WORDS, is_text, key_of, pieces},
};

/// How often each kind is tried: counts, copies, mirrors, the latest, extremes, paths, index keys, roll-ups, cascades,
/// counts that create their targets, what is unread, and what is calculated.
const WEIGHTS: [usize; 12] = [8, 5, 4, 4, 3, 2, 3, 2, 2, 3, 4, 3];

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
            9 => self.groups(),
            10 => self.unread(),
            _ => self.calculated(),
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
        let Some((from, mut link)) = self.led(|_, _| true) else { return };
        let target = &self.of.entities[link.to];
        let is_member = |(to, _): &&mut (String, String)| target.field(to) == Some(FieldOf::Text);
        let mut each = None;
        // A member stands for one of the fields, in place of what leads there by itself.
        if self.of.entities[from].attribute("many").is_some()
            && self.chance.percent(60)
            && let Some((_, from)) = link.pairs.iter_mut().find(is_member)
        {
            "many".clone_into(from);
            each = Some(from.clone());
        }
        self.count_of(from, link, each, false);
    }

    /// A count of items of an entity into where they lead, or where their members lead.
    fn count_of(&mut self, from: usize, link: Ref, each: Option<String>, creates: bool) {
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
        let (is_history, zero) = (self.chance.percent(15), self.one(&["write", "write", "absent", "always"]).unwrap());
        self.add(What::Count(CountRule { from, to, link, each, condition, sum, shows, is_history, zero, creates }));
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
        let is_anywhere = self.chance.percent(50);
        let led = if is_anywhere { self.led(|_, _| true) } else { self.ranged(|_| true) };
        let Some((from, link)) = led else { return };
        let to = link.to;
        let of = &self.of.entities[from];
        let orders = |holds: Holds| matches!(holds, Holds::Number | Holds::Time | Holds::Word);
        let by: Vec<String> = of.attributes.iter().filter(|it| orders(it.holds)).map(|it| it.name.clone()).collect();
        let by = if is_anywhere { self.one(&by) } else { None };
        if is_anywhere && by.is_none() {
            return;
        }
        let condition = if is_anywhere { self.sometimes(40, from) } else { None };
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
        self.add(What::Latest(LatestRule { from, to, link, pairs, list, by, condition, is_first }));
    }

    fn extreme(&mut self) {
        let ordered = |of: &DrawnEntity| {
            let first = Self::first_own(of).map(|(_, field)| field);
            matches!(first, Some(FieldOf::Padded(_) | FieldOf::Inverted(_) | FieldOf::Number | FieldOf::Time))
        };
        let Some((from, link)) = self.ranged(ordered) else { return };
        let Some((field, _)) = Self::first_own(&self.of.entities[from]) else { return };
        let into = self.derives(link.to, false);
        let is_max = self.chance.percent(50);
        self.add(What::Extreme { from, to: link.to, link, field, into, is_max });
    }

    /// What is unread of one entity by an item of another that leads to the same hub.
    fn unread(&mut self) {
        let is_behind = |of: &DrawnEntity| !matches!(Self::first_own(of), None | Some((_, FieldOf::Inverted(_))));
        let Some((from, ranged)) = self.ranged(is_behind) else { return };
        let (field, field_of) = Self::first_own(&self.of.entities[from]).unwrap();
        let Some((to, by)) = self.led(|_, by| by.to == ranged.to) else { return };
        let given = |hub: &String| by.pairs.iter().find(|(field, _)| field == hub).map(|(_, from)| from.clone());
        let pair = |(hub, own): &(String, String)| Some((own.clone(), given(hub)?));
        let Some(pairs) = ranged.pairs.iter().map(pair).collect::<Option<Vec<_>>>() else { return };
        let is_alike = |(own, given): &(String, String)| {
            let own = self.of.entities[from].field(own).map(key_of);
            own.is_some() && own == self.fills(to, given).map(key_of)
        };
        let all_lead = by.pairs.iter().all(|(_, name)| pairs.iter().any(|(_, given)| given == name));
        if !all_lead || !pairs.iter().all(is_alike) {
            return;
        }
        let Some(found) = self.found(to, &by) else { return };
        let fits = |of: &&DrawnAttribute| key_of(field_of) == key_of(FieldOf::Text) && is_text(of.holds);
        let fitting = self.of.entities[to].attributes.iter().filter(fits).map(|of| of.name.clone()).collect::<Vec<_>>();
        let is_new = !self.of.entities[to].is_derived && (fitting.is_empty() || self.chance.percent(70));
        let after = if is_new { Some(self.name("r")) } else { self.one(&fitting) };
        let Some(after) = after else { return };
        if is_new {
            self.of.entities[to].attributes.push(super::attribute(&after, Holds::Id(field_of)));
        }
        let into = self.derives(to, true);
        let (limit, zero_is_absent) = (self.chance.between(1, 4), self.chance.percent(30));
        let rule = UnreadRule { from, to, pairs, field, after, into, limit, zero_is_absent, found };
        self.add(What::Unread(rule));
    }

    /// A number from two numbers of an item, which are not calculated themselves.
    fn calculated(&mut self) {
        let of = self.chance.below(self.of.entities.len());
        let entity = &self.of.entities[of];
        let is_calculated = |name: &String| {
            self.of.rules.iter().any(
                |rule| matches!(&rule.what, What::Calculated { of: other, into, .. } if *other == of && into == name),
            )
        };
        let own = entity.attributes.iter().filter(|it| it.holds == Holds::Number).map(|it| it.name.clone());
        let derived = entity.derived.iter().filter(|it| it.is_number).map(|it| it.name.clone());
        let numbers: Vec<String> = own.chain(derived).filter(|name| !is_calculated(name)).collect();
        let (Some(one), Some(other)) = (self.one(&numbers), self.one(&numbers)) else { return };
        let calculation =
            if self.chance.percent(50) { Calculation::Sum(one, other) } else { Calculation::Percentage(one, other) };
        let into = self.derives(of, true);
        self.add(What::Calculated { of, calculation, into });
    }

    /// The first field of the sort key that is not in the partition key.
    fn first_own(of: &DrawnEntity) -> Option<(String, FieldOf)> {
        let partition = Self::fields_of(&of.pk);
        of.sk.iter().find_map(|piece| match piece {
            Piece::Field(name, field) if !partition.contains(name) => Some((name.clone(), *field)),
            Piece::Field(..) | Piece::Text(_) => None,
        })
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
        self.of.entities[of].attributes.push(super::attribute("up", Holds::Id(field_of)));
        let link = Ref { to: of, pairs: vec![(field.clone(), "up".to_owned())] };
        let Some(name) = self.index_for(of, &link) else { return };
        let into = self.derives(of, false);
        let part = if self.chance.percent(50) { field } else { "word".to_owned() };
        let depth = self.chance.between(2, 6);
        self.add(What::Path { of, link, name: part, into, depth, found: Found::Index(name) });
    }
}

// ---- How the items of an entity are found that lead to a source, and what hangs on an owner ----

impl Draft<'_> {
    /// A way to find the items of an entity that lead somewhere.
    fn found(&mut self, entity: usize, by: &Ref) -> Option<Found> {
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
    fn cascade(&mut self) {
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

// ---- Derivations that make items: mirrors, groups and roll-ups, and places in an index ----

impl Draft<'_> {
    /// What fills a key: a field of the key of an entity, or an attribute.
    fn fills(&self, entity: usize, name: &str) -> Option<FieldOf> {
        let of = &self.of.entities[entity];
        let by_attribute = || match of.attribute(name)?.holds {
            Holds::Id(field) => Some(field),
            // Each member fills it.
            Holds::Members => Some(FieldOf::Text),
            holds if is_text(holds) => Some(FieldOf::Text),
            _ => None,
        };
        of.field(name).or_else(by_attribute)
    }

    fn mirror(&mut self) {
        if self.of.entities.len() >= ENTITIES_MAX {
            return;
        }
        let is_source = |at: &usize| !self.of.entities[*at].derived.iter().any(|it| it.name == "n");
        let sources: Vec<usize> = (0..self.of.entities.len()).filter(is_source).collect();
        let Some(from) = self.one(&sources) else { return };
        let fields: Vec<String> = self.of.entities[from].fields().iter().map(|(name, _)| (*name).to_owned()).collect();
        let by = self.one(&self.of.entities[from].refs);
        // Under what another item has in its key, or by the last field of its own.
        let has_members = self.of.entities[from].attribute("many").is_some();
        let each = (has_members && self.chance.percent(50)).then(|| "many".to_owned());
        let leading: Vec<String> = match (&each, &by) {
            (Some(each), _) => vec![each.clone()],
            (None, Some(by)) if !self.chance.percent(30) => by.pairs.iter().map(|(_, from)| from.clone()).collect(),
            _ => vec![fields[fields.len() - 1].clone()],
        };
        let rest: Vec<String> = fields.iter().filter(|field| !leading.contains(field)).cloned().collect();
        let is_whole = !self.chance.percent(25);
        let tail: Vec<String> = if is_whole { rest } else { Vec::new() };
        let fits_plain = leading.len() == 1 && tail.len() <= 1;
        let in_forms = self.in_forms(!fits_plain || self.chance.percent(50));
        if !in_forms && !fits_plain {
            return;
        }
        // Without a type, a sort key of many fields may be that of a counter.
        let is_untyped = self.is_one_table() && self.of.tables[0].type_attribute.is_none();
        if is_untyped && tail.len() > 2 {
            return;
        }
        let Some((plan, pairs)) = self.mirror_key(from, &leading, &tail, in_forms) else { return };
        let name = self.name("Mirror");
        let mut entity = self.placed(&name, plan, in_forms);
        entity.is_derived = true;
        let source = &self.of.entities[from];
        let attributes = source.attributes.iter().map(|it| it.name.clone());
        let unused: Vec<String> = attributes.filter(|name| !pairs.iter().any(|(_, from)| from == name)).collect();
        let except: Vec<String> = unused.into_iter().filter(|_| self.chance.percent(15)).collect();
        let lists_claims = fields.iter().any(|field| !pairs.iter().any(|(_, from)| from == field));
        let own = |name: &str| entity.field(name).is_some() || each.as_deref() == Some(name);
        let source = &self.of.entities[from];
        let carried = source.attributes.iter().filter(|it| !except.contains(&it.name) && !own(&it.name)).cloned();
        let of_key = source.fields().into_iter().filter(|(name, _)| !own(name));
        let of_key = of_key.map(|(name, of)| DrawnAttribute { name: name.to_owned(), holds: Holds::Id(of) });
        let attributes: Vec<DrawnAttribute> = carried.chain(of_key).collect();
        let renamed = |name: &str| {
            let of_key = pairs.iter().find(|(_, from)| from == name).map(|(to, _)| to.clone());
            let stays = attributes.iter().any(|it| it.name == name).then(|| name.to_owned());
            of_key.or(stays)
        };
        let led = |by: &Ref| {
            let pair = |(to, from): &(String, String)| Some((to.clone(), renamed(from)?));
            Some(Ref { to: by.to, pairs: by.pairs.iter().map(pair).collect::<Option<_>>()? })
        };
        let refs = source.refs.iter().filter_map(led).collect();
        (entity.attributes, entity.refs) = (attributes, refs);
        if lists_claims {
            entity.derived.push(DerivedAttribute { name: CLAIMS.to_owned(), is_number: false });
        }
        let to = self.of.entities.len();
        let has_its_key = each.is_none()
            && !lists_claims
            && fields.len() == pairs.len()
            && fields.iter().all(|it| pairs.iter().any(|(_, of)| of == it));
        self.of.entities.push(entity);
        if has_its_key {
            self.lead_to_mirror(from, to, &pairs);
        }
        self.mirrors.push((to, from));
        let condition = self.sometimes(30, from);
        self.add(What::Mirror(MirrorRule { from, to, pairs, condition, each, except }));
    }

    /// What leads to a source of this key leads to its mirror too, if the fields of both are of one type.
    fn lead_to_mirror(&mut self, from: usize, to: usize, pairs: &[(String, String)]) {
        let of = |entity: usize, name: &str| self.of.entities[entity].field(name).map(key_of);
        if pairs.iter().any(|(field, name)| of(to, field) != of(from, name)) {
            return;
        }
        let to_mirror = |by: &Ref| {
            let field = |name: &String| pairs.iter().find(|(_, from)| from == name).map(|(to, _)| to.clone());
            let pair = |(to, from): &(String, String)| Some((field(to)?, from.clone()));
            Some(Ref { to, pairs: by.pairs.iter().map(pair).collect::<Option<_>>()? })
        };
        for other in &mut self.of.entities {
            let more: Vec<Ref> = other.refs.iter().filter(|by| by.to == from).filter_map(to_mirror).collect();
            other.refs.extend(more);
        }
    }

    /// A count that creates its targets: for each word or member, or for each of these of what leads to one item.
    fn groups(&mut self) {
        if self.of.entities.len() >= ENTITIES_MAX {
            return;
        }
        let has_word = |at: &usize| self.of.entities[*at].attribute("word").is_some();
        let Some(from) = self.one(&(0..self.of.entities.len()).filter(has_word).collect::<Vec<_>>()) else { return };
        let by = self.one(&self.of.entities[from].refs).filter(|_| !self.chance.percent(25));
        let has_members = self.of.entities[from].attribute("many").is_some();
        let each = (has_members && self.chance.percent(50)).then(|| "many".to_owned());
        let value = vec![each.clone().unwrap_or_else(|| "word".to_owned())];
        let (leading, tail) = match &by {
            Some(by) => (by.pairs.iter().map(|(_, from)| from.clone()).collect(), value.clone()),
            None => (value.clone(), Vec::new()),
        };
        let fits_plain = leading.len() == 1;
        let in_forms = self.in_forms(!fits_plain || self.chance.percent(50));
        if (!in_forms && !fits_plain) || leading.contains(&value[0]) && by.is_some() {
            return;
        }
        let Some((plan, pairs)) = self.mirror_key(from, &leading, &tail, in_forms) else { return };
        let name = self.name("Group");
        let mut entity = self.placed(&name, plan, in_forms);
        entity.is_derived = true;
        let own = |name: &String| pairs.iter().find(|(_, from)| from == name).map(|(to, _)| to.clone());
        let led = |by: &Ref| {
            let pair = |(to, from): &(String, String)| Some((to.clone(), own(from)?));
            Some(Ref { to: by.to, pairs: by.pairs.iter().map(pair).collect::<Option<_>>()? })
        };
        entity.refs = by.iter().filter_map(led).collect();
        let to = self.of.entities.len();
        self.of.entities.push(entity);
        self.count_of(from, Ref { to, pairs }, each, true);
    }

    /// The key of a mirror, with the pairs of its fields and what gives them; `None` where one cannot be in such a key.
    fn mirror_key(
        &mut self,
        from: usize,
        leading: &[String],
        tail: &[String],
        in_forms: bool,
    ) -> Option<(KeyPlan, Vec<(String, String)>)> {
        let mut pairs = Vec::new();
        let mut part = |draft: &mut Self, names: &[String]| {
            let mut fields = Vec::new();
            for name in names {
                let of = draft.fills(from, name)?;
                let is_attribute = draft.of.entities[from].field(name).is_none();
                let is_other = of == FieldOf::Bytes || (is_attribute && key_of(of) != key_of(FieldOf::Text));
                if in_forms && is_other {
                    return None;
                }
                // A text of a padded number is a text where nothing pads it.
                let of = if in_forms || matches!(of, FieldOf::Number | FieldOf::Bytes) { of } else { FieldOf::Text };
                let own = if in_forms && name != "id" { name.clone() } else { draft.name("m") };
                pairs.push((own.clone(), name.clone()));
                fields.push((own, of));
            }
            Some(fields)
        };
        let pk = part(self, leading)?;
        let sk = part(self, tail)?;
        Some((KeyPlan { pk, sk, prefix: None }, pairs))
    }

    fn roll_up(&mut self) {
        if self.of.entities.len() >= ENTITIES_MAX || !self.in_forms(false) && self.of.tables.len() >= 4 {
            return;
        }
        let mut possible = Vec::new();
        for (at, of) in self.of.entities.iter().enumerate() {
            let value = of.attributes.iter().find(|it| it.holds == Holds::Number);
            let of_key = of.fields().into_iter().find(|(_, field)| *field == FieldOf::Time).map(|(name, _)| name);
            let time = of.attributes.iter().find(|it| it.holds == Holds::Time).map(|it| it.name.as_str()).or(of_key);
            let (Some(value), Some(time)) = (value, time) else { continue };
            for by in &of.refs {
                let names: Vec<String> = by.pairs.iter().map(|(_, from)| from.clone()).collect();
                let fits = names.iter().all(|name| {
                    let is_text = self.fills(at, name).is_some_and(|of| key_of(of) == key_of(FieldOf::Text));
                    name != time && of.field(name).map_or(is_text, |of| of != FieldOf::Bytes)
                });
                if fits {
                    possible.push((at, by.clone(), value.name.clone(), time.to_owned()));
                }
            }
        }
        let Some((from, by, value, time)) = self.one(&possible) else { return };
        let mut pairs = Vec::new();
        let mut pk = Vec::new();
        for name in by.pairs.iter().map(|(_, from)| from.clone()) {
            let own = self.name("b");
            pk.push((own.clone(), FieldOf::Text));
            pairs.push((own, name));
        }
        let sk = ["grain", "bucket"].map(|name| (name.to_owned(), FieldOf::Text)).to_vec();
        let name = self.name("Bucket");
        let mut entity = self.placed(&name, KeyPlan { pk, sk, prefix: None }, true);
        entity.is_derived = true;
        let derived = |name: &str| DerivedAttribute { name: name.to_owned(), is_number: true };
        entity.derived = ["n", "sum", "least", "greatest"].map(derived).to_vec();
        let to = self.of.entities.len();
        self.of.entities.push(entity);
        let condition = self.sometimes(30, from);
        let link = Ref { to, pairs };
        self.window(&by, &link);
        self.add(What::RollUp(RollUpRule { from, to, link, condition, time, value }));
    }

    /// The sum over the last buckets of a roll-up, in the items that the values lead to.
    fn window(&mut self, by: &Ref, buckets: &Ref) {
        let is_text = self.of.entities[by.to].fields().iter().all(|(_, field)| *field == FieldOf::Text);
        if !is_text || self.chance.percent(20) {
            return;
        }
        let own = |name: &String| buckets.pairs.iter().find(|(_, from)| from == name).map(|(own, _)| own.clone());
        let pair = |(to, from): &(String, String)| Some((to.clone(), own(from)?));
        let Some(pairs) = by.pairs.iter().map(pair).collect() else { return };
        let sum = self.one(&["n", "sum"]).unwrap().to_owned();
        let (is_of_days, length) = (self.chance.percent(60), self.chance.between(1, 3));
        let (into, zero_is_absent) = (self.derives(by.to, true), self.chance.percent(30));
        let (from, to, link) = (buckets.to, by.to, Ref { to: by.to, pairs });
        self.add(What::Window(WindowRule { from, to, link, is_of_days, length, sum, into, zero_is_absent }));
    }

    fn index_key(&mut self) {
        let counted = |of: usize, name: &str| {
            self.of.rules.iter().any(|rule| match &rule.what {
                // The digits of an average behind the point do not fit the key.
                What::Count(count) => {
                    let fits = |(what, shown): &(Shown, String)| *what != Shown::Average && shown == name;
                    count.to == of && count.shows.iter().any(fits)
                }
                _ => false,
            })
        };
        let mut possible = Vec::new();
        for (at, of) in self.of.entities.iter().enumerate() {
            if self.of.tables[of.table].has_forms && !of.is_derived {
                let numbers = of.derived.iter().filter(|it| it.is_number && counted(at, &it.name));
                possible.extend(numbers.map(|number| (at, number.name.clone())));
            }
        }
        let Some((of, number)) = self.one(&possible) else { return };
        let name = self.name("rank");
        let index = self.index_of_forms(&name);
        let entity = &self.of.entities[of];
        let own = entity.fields()[0].0.to_owned();
        let grouped = self.chance.percent(50) && entity.attribute("word").is_some();
        let group = if grouped { vec![("word".to_owned(), FieldOf::Text)] } else { Vec::new() };
        let table = entity.table;
        let key = DrawnIndexKey {
            index: self.of.tables[table].indexes.len(),
            pk: if grouped { pieces("RANK#", &group) } else { vec![Piece::Text("RANK".to_owned())] },
            sk: vec![
                Piece::Field(number.clone(), FieldOf::Inverted(12)),
                Piece::Text("#".to_owned()),
                Piece::Field(own, FieldOf::Text),
            ],
            is_derived: true,
        };
        self.of.tables[table].indexes.push(index);
        let entity = &mut self.of.entities[of];
        entity.index_keys.push(key);
        let index_key = entity.index_keys.len() - 1;
        self.add(What::IndexKey { of, index_key, number });
    }
}
