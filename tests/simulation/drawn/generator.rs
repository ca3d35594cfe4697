//! Draws a description that the reader takes, by construction: whatever a derivation needs is made with it.
//!
//! First come entities that others lead to (hubs), then entities that lead to them (children), by their keys or by attributes.
//! Then derivations are drawn one by one. Each adds what it writes as a new attribute or entity, and reads only what was there
//! before, so there is no circle; and each may build on what the ones before it derive. A new option of a kind is a draw in its
//! function of `rules`, a field of its rule in the description, a line of `toml`, and a loop of the oracle.

mod rules;

use crate::{
    chance::Chance,
    drawn::description::{
        DerivedAttribute, Description, DrawnAttribute, DrawnEntity, DrawnIndex, DrawnIndexKey, DrawnTable, FieldOf,
        Holds, KeyOf, KeyPart, Piece, Ref, What,
    },
    oracle::table::escaped,
};

/// Most tables of a manifest.
const TABLES_MAX: usize = 4;

/// Most entities, derived ones included.
const ENTITIES_MAX: usize = 8;

/// Fewest and most derivations, and how often one is tried: not every kind is possible in every schema.
const RULES: (usize, usize) = (3, 8);
const TRIES_MAX: usize = 40;

/// Of a hundred manifests, how many have `[table]`, and of a hundred of these, how many have no type.
const ONE_TABLE_PERCENT: usize = 45;
const UNTYPED_PERCENT: usize = 20;

/// Texts that fields of keys have. Of a hundred manifests, how many have one more, by which a key is as long as it may be.
const TEXTS: [&str; 4] = ["a", "b#c", "50%", "d/é"];
const LONG_PERCENT: usize = 20;

/// Words of the application that conditions ask for.
pub(super) const WORDS: [&str; 4] = ["open", "done", "50%", "x#y"];

/// How long a key may be. Source: DynamoDB developer guide, "Constraints".
const PARTITION_KEY_BYTES_MAX: usize = 2_048;
const SORT_KEY_BYTES_MAX: usize = 1_024;

/// The length of a number or of bytes in a key, and of what a counter's key has beside its target's.
const FIELD_BYTES_MAX: usize = 32;
const COUNTER_BYTES_MAX: usize = 64;

/// A description that grows.
struct Draft<'a> {
    chance: &'a Chance,
    of: Description,
    tables_max: usize,
    n_names: usize,
    /// Indexes by which the items of an entity are found that lead somewhere: entity, pairs and name.
    indexed: Vec<(usize, Ref, String)>,
    /// Sources of mirrors: mirror and source.
    mirrors: Vec<(usize, usize)>,
}

pub(super) fn draw(chance: &Chance) -> Description {
    let mut draft = Draft {
        chance,
        of: Description::default(),
        tables_max: TABLES_MAX,
        n_names: 0,
        indexed: Vec::new(),
        mirrors: Vec::new(),
    };
    if chance.percent(100 - ONE_TABLE_PERCENT) {
        draft.tables_max = *chance.one_of(&[TABLES_MAX, TABLES_MAX, 2, 1]).unwrap();
    } else {
        draft.one_table();
    }
    for _ in 0..chance.between(1, 2) {
        draft.hub();
    }
    let n_hubs = draft.of.entities.len();
    for _ in 0..chance.between(2, 3) {
        draft.child(n_hubs);
    }
    let n_rules = chance.between(RULES.0, RULES.1);
    for _ in 0..TRIES_MAX {
        if draft.of.rules.len() < n_rules {
            draft.rule();
        }
    }
    draft.of.texts = TEXTS.map(str::to_owned).into();
    // An entry has the keys of its target and of its item in its own.
    let has_entries = draft.of.rules.iter().any(|rule| matches!(&rule.what, What::Latest(rule) if rule.by.is_some()));
    if chance.percent(LONG_PERCENT) && !has_entries {
        let long = longest(&draft.of);
        draft.of.texts.push(long);
    }
    draft.of
}

/// The longest text that every field of every key may have at once.
fn longest(of: &Description) -> String {
    let text = |n_bytes: usize| format!("é#%{}", "x".repeat(n_bytes.saturating_sub(4)));
    let (mut n_bytes, mut too_many) = (4, PARTITION_KEY_BYTES_MAX);
    while n_bytes + 1 < too_many {
        let middle = n_bytes.midpoint(too_many);
        if has_room(of, &text(middle)) {
            n_bytes = middle;
        } else {
            too_many = middle;
        }
    }
    text(n_bytes)
}

/// Does no key become too long, with this text in each of its fields? A counter has its target's key in its own, escaped.
fn has_room(of: &Description, text: &str) -> bool {
    let bytes = |pieces: &[Piece], has_forms: bool| -> usize {
        let of_piece = |piece: &Piece| match piece {
            Piece::Text(literal) => literal.len(),
            // A time may be the id of another item, which is any text.
            Piece::Field(_, FieldOf::Text | FieldOf::Time) if has_forms => escaped(text).len(),
            Piece::Field(_, FieldOf::Text | FieldOf::Time) => text.len(),
            Piece::Field(_, FieldOf::Padded(width) | FieldOf::Inverted(width)) => *width,
            Piece::Field(_, FieldOf::Number | FieldOf::Bytes) => FIELD_BYTES_MAX,
        };
        pieces.iter().map(of_piece).sum()
    };
    let fits = |(pk, sk): (&[Piece], &[Piece]), has_forms: bool, beside: usize| {
        bytes(pk, has_forms) + beside <= PARTITION_KEY_BYTES_MAX && bytes(sk, has_forms) + beside <= SORT_KEY_BYTES_MAX
    };
    // An index over values takes any attribute as it is.
    let values = of.tables.iter().flat_map(|table| &table.indexes).filter(|index| !index.has_forms);
    let bytes_max = |index: &DrawnIndex| if index.sk.is_empty() { PARTITION_KEY_BYTES_MAX } else { SORT_KEY_BYTES_MAX };
    let fits_values = values.map(bytes_max).all(|bytes_max| text.len() <= bytes_max);
    fits_values
        && of.entities.iter().enumerate().all(|(at, entity)| {
            let form = &of.tables[entity.table];
            let is_counted = of.rules.iter().any(|rule| match &rule.what {
                What::Count(rule) => rule.to == at,
                What::RollUp(rule) => rule.to == at,
                What::Extreme { to, .. } => *to == at,
                _ => false,
            });
            let beside = if is_counted { COUNTER_BYTES_MAX } else { 0 };
            let keys = entity.index_keys.iter().all(|key| fits((&key.pk, &key.sk), true, 0));
            keys && fits((&entity.pk, &entity.sk), form.has_forms || is_counted, beside)
        })
}

impl Draft<'_> {
    fn name(&mut self, prefix: &str) -> String {
        self.n_names += 1;
        format!("{prefix}{}", self.n_names)
    }

    fn is_one_table(&self) -> bool {
        self.of.tables.first().is_some_and(|table| table.name.is_empty())
    }

    fn one<T: Clone>(&self, of: &[T]) -> Option<T> {
        self.chance.one_of(of).cloned()
    }
}

/// The type of a key that is such a field as it is.
fn key_of(field: FieldOf) -> KeyOf {
    match field {
        FieldOf::Number => KeyOf::N,
        FieldOf::Bytes => KeyOf::B,
        _ => KeyOf::S,
    }
}

/// Is an attribute of this a text that a key can be made of?
fn is_text(holds: Holds) -> bool {
    match holds {
        Holds::Word | Holds::Time => true,
        Holds::Id(field) => key_of(field) == KeyOf::S,
        Holds::Number | Holds::Members => false,
    }
}

// ---- Tables, and the indexes that searches need ----

/// Fields of a key, before it has a table: of the partition key and of the sort key.
struct KeyPlan {
    pk: Vec<(String, FieldOf)>,
    sk: Vec<(String, FieldOf)>,
    /// What a partition key of a form begins with, where that is another entity's.
    prefix: Option<String>,
}

impl Draft<'_> {
    /// `[table]`.
    fn one_table(&mut self) {
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
    fn in_forms(&self, is_meant: bool) -> bool {
        self.is_one_table() || is_meant || self.of.tables.len() + 1 >= self.tables_max + usize::from(self.has_forms())
    }

    fn has_forms(&self) -> bool {
        self.of.tables.iter().any(|table| table.has_forms && table.type_attribute.is_some() && table.sk.is_some())
    }

    /// An entity in a table of forms, or in one whose keys are values as they are.
    fn placed(&mut self, name: &str, plan: KeyPlan, in_forms: bool) -> DrawnEntity {
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
    fn index_for(&mut self, entity: usize, by: &Ref) -> Option<String> {
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
    fn index_of_forms(&self, name: &str) -> DrawnIndex {
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
fn pieces(prefix: &str, fields: &[(String, FieldOf)]) -> Vec<Piece> {
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
pub(super) fn with_meeting_keys(of: &Description) -> Option<Description> {
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
    fn hub(&mut self) {
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
    fn child(&mut self, n_hubs: usize) {
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
    fn derives(&mut self, entity: usize, is_number: bool) -> String {
        let name = self.name("d");
        let derived = DerivedAttribute { name: name.clone(), is_number };
        self.of.entities[entity].derived.push(derived);
        name
    }

    /// The fields of a part of a key.
    fn fields_of(pieces: &[Piece]) -> Vec<String> {
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

fn attribute(name: &str, holds: Holds) -> DrawnAttribute {
    DrawnAttribute { name: name.to_owned(), holds }
}
