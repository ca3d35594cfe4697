//! Tables, and the indexes that searches need.

use crate::drawn::{
    description::{
        Description, DrawnAttribute, DrawnEntity, DrawnIndex, DrawnIndexKey, DrawnTable, FieldOf, Holds, KeyOf,
        KeyPart, Piece, Ref,
    },
    generator::{Draft, UNTYPED_PERCENT, is_text, key_of},
};

/// Fields of a key, before it has a table: of the partition key and of the sort key.
pub(super) struct KeyPlan {
    pub(super) pk: Vec<(String, FieldOf)>,
    pub(super) sk: Vec<(String, FieldOf)>,
    /// What a partition key of a form begins with, where that is another entity's.
    pub(super) prefix: Option<String>,
}

impl Draft<'_> {
    /// `[table]`.
    pub(super) fn one_table(&mut self) {
        let names = [["pk", "sk"], ["PK", "SK"], ["hash", "range"]];
        let [pk, sk] = self.one(&names).unwrap();
        let type_attribute = if self.chance.percent(UNTYPED_PERCENT) { None } else { Some(self.type_name()) };
        self.of.tables.push(DrawnTable {
            name: String::new(),
            pk: text_part(pk),
            sk: Some(text_part(sk)),
            has_forms: true,
            type_attribute,
            expires: self.chance.percent(40),
            indexes: Vec::new(),
        });
    }

    fn type_name(&self) -> String {
        self.one(&["Type", "kind", "__typename"]).unwrap().to_owned()
    }

    /// Is the next entity in a table of forms? What is meant is so, if there is still room for another table.
    pub(super) fn in_forms(&self, is_meant: bool) -> bool {
        self.is_one_table() || is_meant || self.of.tables.len() + 1 >= self.tables_max + usize::from(self.has_forms())
    }

    fn has_forms(&self) -> bool {
        self.of.tables.iter().any(|table| table.has_forms && table.type_attribute.is_some() && table.sk.is_some())
    }

    /// An entity in a table of forms, or in one whose keys are values as they are.
    pub(super) fn placed(&mut self, name: &str, plan: KeyPlan, in_forms: bool) -> DrawnEntity {
        let (table, pk, sk) = if in_forms { self.formed(name, &plan) } else { self.plain(plan) };
        DrawnEntity {
            name: name.to_owned(),
            table,
            pk,
            sk,
            attributes: Vec::new(),
            derived: Vec::new(),
            is_derived: false,
            index_keys: Vec::new(),
            refs: Vec::new(),
        }
    }

    fn formed(&mut self, name: &str, plan: &KeyPlan) -> (usize, Vec<Piece>, Vec<Piece>) {
        let table = self.table_of_forms(plan.sk.is_empty());
        let prefix = plan.prefix.clone().unwrap_or_else(|| format!("{}#", name.to_uppercase()));
        let pk = pieces(&prefix, &plan.pk);
        let sk = if self.of.tables[table].sk.is_none() {
            Vec::new()
        } else if plan.sk.is_empty() {
            // Some repeat the partition key, as `USER#{id}` / `USER#{id}` does.
            if self.chance.percent(50) { pk.clone() } else { vec![Piece::Text(format!("{}!", name.to_uppercase()))] }
        } else {
            pieces(&format!("{}#", name.to_uppercase()), &plan.sk)
        };
        (table, pk, sk)
    }

    fn table_of_forms(&mut self, needs_no_sort_key: bool) -> usize {
        if self.is_one_table() {
            return 0;
        }
        let is_open = |table: &DrawnTable| table.has_forms && table.type_attribute.is_some() && table.sk.is_some();
        let open = self.of.tables.iter().position(is_open);
        let is_full = self.of.tables.len() >= self.tables_max;
        if let Some(open) = open.filter(|_| is_full || !self.chance.percent(30)) {
            return open;
        }
        let is_typed = open.is_none() || self.chance.percent(50);
        let has_sk = is_typed || !needs_no_sort_key || self.chance.percent(50);
        let table = DrawnTable {
            name: self.name("Tab"),
            pk: text_part("pk"),
            sk: has_sk.then(|| text_part("sk")),
            has_forms: true,
            type_attribute: is_typed.then(|| self.type_name()),
            expires: self.chance.percent(20),
            indexes: Vec::new(),
        };
        self.of.tables.push(table);
        self.of.tables.len() - 1
    }

    /// A table whose keys are these fields as they are, one for each part.
    fn plain(&mut self, plan: KeyPlan) -> (usize, Vec<Piece>, Vec<Piece>) {
        let part = |(name, field): &(String, FieldOf)| KeyPart { name: name.clone(), of: key_of(*field) };
        let (pk, sk) = (part(&plan.pk[0]), plan.sk.first().map(part));
        let whole =
            |fields: Vec<(String, FieldOf)>| fields.into_iter().map(|(name, of)| Piece::Field(name, of)).collect();
        let table = DrawnTable {
            name: self.name("Tab"),
            pk,
            sk,
            has_forms: false,
            type_attribute: self.chance.percent(40).then(|| self.type_name()),
            expires: self.chance.percent(20),
            indexes: Vec::new(),
        };
        self.of.tables.push(table);
        let table = self.of.tables.len() - 1;
        (table, whole(plan.pk), whole(plan.sk))
    }

    /// An index by which the items of an entity are found that lead somewhere; `None` where there can be none.
    pub(super) fn index_for(&mut self, entity: usize, by: &Ref) -> Option<String> {
        if let Some((.., name)) = self.indexed.iter().find(|(of, other, _)| *of == entity && other == by) {
            return Some(name.clone());
        }
        let of = &self.of.entities[entity];
        let names: Vec<&String> = by.pairs.iter().map(|(_, from)| from).collect();
        let has_forms = self.of.tables[of.table].has_forms;
        let part = |name: &String| {
            let of = match (of.field(name), of.attribute(name)) {
                (Some(field), _) => key_of(field),
                (None, Some(attribute)) if is_text(attribute.holds) => KeyOf::S,
                _ if has_forms => return None,
                (None, Some(DrawnAttribute { holds: Holds::Id(field), .. })) => key_of(*field),
                _ => KeyOf::N,
            };
            Some(KeyPart { name: name.clone(), of })
        };
        let parts: Vec<KeyPart> = names.iter().map(|name| part(name)).collect::<Option<_>>()?;
        let own = of.fields().first().map(|(name, field)| ((*name).to_owned(), *field))?;
        let table = of.table;
        let index_name = self.name("by");
        let index = if has_forms {
            let fields: Vec<(String, FieldOf)> = names.iter().map(|name| ((*name).clone(), FieldOf::Text)).collect();
            let key = DrawnIndexKey {
                index: self.of.tables[table].indexes.len(),
                pk: pieces("BY#", &fields),
                sk: pieces("OWN#", &[(own.0, FieldOf::Text)]),
                is_derived: false,
            };
            self.of.entities[entity].index_keys.push(key);
            self.index_of_forms(&index_name)
        } else {
            let is_sorted = self.chance.percent(60) && !parts.iter().any(|part| part.name == own.0);
            let sk = is_sorted.then(|| KeyPart { of: key_of(own.1), name: own.0 });
            DrawnIndex {
                name: index_name.clone(),
                pk: parts,
                sk: sk.into_iter().collect(),
                has_forms: false,
                is_narrow: self.chance.percent(40),
            }
        };
        self.of.tables[table].indexes.push(index);
        self.indexed.push((entity, by.clone(), index_name.clone()));
        Some(index_name)
    }

    /// An index whose keys are texts of forms, in attributes of its own.
    pub(super) fn index_of_forms(&self, name: &str) -> DrawnIndex {
        DrawnIndex {
            name: name.to_owned(),
            pk: vec![text_part(&format!("{name}pk"))],
            sk: vec![text_part(&format!("{name}sk"))],
            has_forms: true,
            // `[index]` projects only what it says.
            is_narrow: self.is_one_table() || self.chance.percent(40),
        }
    }
}

fn text_part(name: &str) -> KeyPart {
    KeyPart { name: name.to_owned(), of: KeyOf::S }
}

/// These fields behind a text, with `#` between them.
pub(super) fn pieces(prefix: &str, fields: &[(String, FieldOf)]) -> Vec<Piece> {
    let mut pieces = vec![Piece::Text(prefix.to_owned())];
    for (at, (name, of)) in fields.iter().enumerate() {
        if at > 0 {
            pieces.push(Piece::Text("#".to_owned()));
        }
        // A number or bytes that fill a field of a text stand there as text.
        let of = if matches!(of, FieldOf::Number | FieldOf::Bytes) { FieldOf::Text } else { *of };
        pieces.push(Piece::Field(name.clone(), of));
    }
    pieces
}

// ---- The same description with two derived entities whose keys meet ----

/// The description with a derived entity under keys of another one; `None` if no two of them fit.
pub(in crate::drawn) fn with_meeting_keys(of: &Description) -> Option<Description> {
    let derived: Vec<usize> = (0..of.entities.len()).filter(|at| of.entities[*at].is_derived).collect();
    for (n, one) in derived.iter().enumerate() {
        for other in derived.iter().skip(n + 1) {
            if let Some((pk, sk)) = under_keys_of(&of.entities[*one], &of.entities[*other]) {
                let mut meeting = of.clone();
                (meeting.entities[*other].pk, meeting.entities[*other].sk) = (pk, sk);
                return Some(meeting);
            }
        }
    }
    None
}

/// The key of the other entity with the texts of this one's, if a value of each of its fields can be one of this one's.
fn under_keys_of(one: &DrawnEntity, other: &DrawnEntity) -> Option<(Vec<Piece>, Vec<Piece>)> {
    let with_texts = |one: &[Piece], other: &[Piece]| -> Option<Vec<Piece>> {
        let piece = |(one, other): (&Piece, &Piece)| match (one, other) {
            (Piece::Text(text), Piece::Text(_)) => Some(Piece::Text(text.clone())),
            (Piece::Field(_, a), Piece::Field(_, b)) => is_alike(*a, *b).then(|| other.clone()),
            _ => None,
        };
        if one.len() != other.len() {
            return None;
        }
        one.iter().zip(other).map(piece).collect()
    };
    if one.table != other.table {
        return None;
    }
    Some((with_texts(&one.pk, &other.pk)?, with_texts(&one.sk, &other.sk)?))
}

/// Is a value in a field of the one form also one in a field of the other?
fn is_alike(one: FieldOf, other: FieldOf) -> bool {
    one == other || [one, other].iter().all(|of| matches!(of, FieldOf::Text | FieldOf::Time)) || {
        let is_padded = |of| matches!(of, FieldOf::Padded(_) | FieldOf::Inverted(_));
        (one == FieldOf::Text && is_padded(other)) || (other == FieldOf::Text && is_padded(one))
    }
}

// ---- Ground entities ----

impl Draft<'_> {
    /// An entity that others lead to.
    pub(in crate::drawn::generator) fn hub(&mut self) {
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
    pub(in crate::drawn::generator) fn child(&mut self, n_hubs: usize) {
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
    pub(in crate::drawn::generator) fn derives(&mut self, entity: usize, is_number: bool) -> String {
        let name = self.name("d");
        let derived = crate::drawn::description::DerivedAttribute { name: name.clone(), is_number };
        self.of.entities[entity].derived.push(derived);
        name
    }

    /// The fields of a part of a key.
    pub(in crate::drawn::generator) fn fields_of(pieces: &[Piece]) -> Vec<String> {
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

pub(in crate::drawn::generator) fn attribute(name: &str, holds: Holds) -> DrawnAttribute {
    DrawnAttribute { name: name.to_owned(), holds }
}
