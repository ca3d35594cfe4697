//! Ground entities.

use super::{Draft, key_of, places::KeyPlan};
use crate::drawn::description::{DrawnAttribute, DrawnEntity, FieldOf, Holds, KeyOf, Piece, Ref};

impl Draft<'_> {
    /// An entity that others lead to.
    pub(super) fn hub(&mut self) {
        let in_forms = self.in_forms(self.chance.percent(40));
        let field = |draft: &mut Self, name: String| {
            let of = if in_forms {
                [FieldOf::Text, FieldOf::Padded(6)][draft.chance.weighted(&[3, 1])]
            } else {
                [FieldOf::Text, FieldOf::Number, FieldOf::Bytes][draft.chance.weighted(&[3, 2, 1])]
            };
            (name, of)
        };
        let id = if in_forms || self.chance.percent(50) { self.name("k") } else { "id".to_owned() };
        let first = field(self, id);
        let mut plan = KeyPlan { pk: vec![first], sk: Vec::new(), prefix: None };
        if self.chance.percent(25) {
            let name = self.name("k");
            let second = field(self, name);
            plan.sk.push(second);
        }
        let name = self.name("Hub");
        let mut entity = self.placed(&name, plan, in_forms);
        entity.attributes = vec![attribute("word", Holds::Word), attribute("amount", Holds::Number)];
        self.of.entities.push(entity);
    }

    /// Another entity in a table whose items say their type, with the same key and the same ways to others.
    fn sibling(&mut self) -> bool {
        let is_shared = |of: &&DrawnEntity| {
            let table = &self.of.tables[of.table];
            !table.has_forms && table.type_attribute.is_some() && !of.refs.is_empty()
        };
        let Some(mut entity) = self.of.entities.iter().find(is_shared).cloned() else { return false };
        entity.name = self.name("Item");
        self.of.entities.push(entity);
        true
    }

    /// An entity that leads to hubs.
    pub(super) fn child(&mut self, n_hubs: usize) {
        if self.chance.percent(30) && self.sibling() {
            return;
        }
        let hub = self.chance.below(n_hubs);
        let other = self.chance.below(n_hubs);
        let in_forms = self.in_forms(self.chance.percent(35));
        let n_hub_fields = self.of.entities[hub].fields().len();
        let has_bytes = self.of.entities[hub].fields().iter().any(|(_, of)| *of == FieldOf::Bytes);
        // A field of a key of type B leads from no text of a form.
        let fits = (in_forms && !has_bytes) || (!in_forms && n_hub_fields == 1);
        let in_key = fits && self.chance.percent(70);
        let name = self.name("Item");
        let (plan, mut refs) =
            if in_key { self.led_by_key(hub, in_forms) } else { (self.own_id(in_forms), Vec::new()) };
        let mut attributes = vec![attribute("word", Holds::Word), attribute("amount", Holds::Number)];
        let mut by_attributes = |draft: &mut Self, hub: usize| {
            let fields = draft.of.entities[hub].fields().into_iter().map(|(name, of)| (name.to_owned(), of));
            let mut pairs = Vec::new();
            for (field, of) in fields.collect::<Vec<_>>() {
                let name = draft.name("r");
                attributes.push(attribute(&name, Holds::Id(of)));
                pairs.push((field, name));
            }
            refs.push(Ref { to: hub, pairs });
        };
        if !in_key {
            by_attributes(self, hub);
        }
        if self.chance.percent(60) {
            by_attributes(self, other);
        }
        if self.chance.percent(40) {
            attributes.push(attribute("at", Holds::Time));
        }
        if self.chance.percent(30) {
            attributes.push(attribute("many", Holds::Members));
        }
        let mut entity = self.placed(&name, plan, in_forms);
        (entity.attributes, entity.refs) = (attributes, refs);
        self.of.entities.push(entity);
    }

    /// The key has the fields of a hub, and one or two of its own behind them.
    fn led_by_key(&mut self, hub: usize, in_forms: bool) -> (KeyPlan, Vec<Ref>) {
        let fields = self.of.entities[hub].fields();
        let fields: Vec<(String, FieldOf)> = fields.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
        let mut pairs = Vec::new();
        let mut pk = Vec::new();
        for (field, of) in fields {
            // In a table of plain keys the names are the table's; in one of forms they are fields of the hub's names.
            let own = if in_forms && field != "id" { field.clone() } else { self.name("h") };
            pairs.push((field, own.clone()));
            let of = if !in_forms && key_of(of) == KeyOf::S { FieldOf::Text } else { of };
            pk.push((own, of));
        }
        let own = self.name("t");
        let mut sk = vec![(own, self.own_field(in_forms))];
        if in_forms && self.chance.percent(30) {
            sk.push((self.name("t"), FieldOf::Text));
        }
        // Many stand in the hub's own partition.
        let prefix = match self.of.entities[hub].pk.first() {
            Some(Piece::Text(prefix)) if in_forms && self.chance.percent(60) => Some(prefix.clone()),
            _ => None,
        };
        (KeyPlan { pk, sk, prefix }, vec![Ref { to: hub, pairs }])
    }

    fn own_field(&self, in_forms: bool) -> FieldOf {
        let of: [FieldOf; 4] = if in_forms {
            [FieldOf::Text, FieldOf::Padded(4), FieldOf::Inverted(4), FieldOf::Time]
        } else {
            [FieldOf::Text, FieldOf::Number, FieldOf::Bytes, FieldOf::Time]
        };
        of[self.chance.weighted(&[3, 3, 1, 2])]
    }

    /// A key of its own.
    fn own_id(&mut self, in_forms: bool) -> KeyPlan {
        let id = if in_forms || self.chance.percent(50) { self.name("k") } else { "id".to_owned() };
        let field = if in_forms { FieldOf::Text } else { self.own_field(false) };
        let mut plan = KeyPlan { pk: vec![(id, field)], sk: Vec::new(), prefix: None };
        if self.chance.percent(30) {
            let name = self.name("t");
            plan.sk.push((name, self.own_field(in_forms)));
        }
        plan
    }

    /// A new derived attribute of an entity.
    pub(super) fn derives(&mut self, entity: usize, is_number: bool) -> String {
        let name = self.name("d");
        let derived = crate::drawn::description::DerivedAttribute { name: name.clone(), is_number };
        self.of.entities[entity].derived.push(derived);
        name
    }

    /// The fields of a part of a key.
    pub(super) fn fields_of(pieces: &[Piece]) -> Vec<String> {
        let mut names = Vec::new();
        for piece in pieces {
            if let Piece::Field(name, _) = piece
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    }
}

pub(super) fn attribute(name: &str, holds: Holds) -> DrawnAttribute {
    DrawnAttribute { name: name.to_owned(), holds }
}
