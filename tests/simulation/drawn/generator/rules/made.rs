//! Derivations that make items: mirrors, groups and roll-ups, and places in an index.

use crate::drawn::{
    description::{
        CLAIMS, DerivedAttribute, DrawnAttribute, DrawnIndexKey, FieldOf, Holds, MirrorRule, Piece, Ref, RollUpRule,
        Shown, What,
    },
    generator::{
        Draft, ENTITIES_MAX, is_text, key_of,
        places::{KeyPlan, pieces},
    },
};

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

    pub(super) fn mirror(&mut self) {
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

    /// A count that creates its targets: for each word, or for each word of what leads to one item.
    pub(super) fn groups(&mut self) {
        if self.of.entities.len() >= ENTITIES_MAX {
            return;
        }
        let has_word = |at: &usize| self.of.entities[*at].attribute("word").is_some();
        let Some(from) = self.one(&(0..self.of.entities.len()).filter(has_word).collect::<Vec<_>>()) else { return };
        let by = self.one(&self.of.entities[from].refs).filter(|_| !self.chance.percent(25));
        let word = vec!["word".to_owned()];
        let (leading, tail) = match &by {
            Some(by) => (by.pairs.iter().map(|(_, from)| from.clone()).collect(), word),
            None => (word, Vec::new()),
        };
        let fits_plain = leading.len() == 1;
        let in_forms = self.in_forms(!fits_plain || self.chance.percent(50));
        if (!in_forms && !fits_plain) || leading.contains(&"word".to_owned()) && by.is_some() {
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
        self.count_of(from, Ref { to, pairs }, true);
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

    pub(super) fn roll_up(&mut self) {
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
                    possible.push((at, names, value.name.clone(), time.to_owned()));
                }
            }
        }
        let Some((from, names, value, time)) = self.one(&possible) else { return };
        let mut pairs = Vec::new();
        let mut pk = Vec::new();
        for name in names {
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
        self.add(What::RollUp(RollUpRule { from, to, link: Ref { to, pairs }, condition, time, value }));
    }

    pub(super) fn index_key(&mut self) {
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
