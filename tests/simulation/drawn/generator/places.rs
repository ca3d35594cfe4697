//! Tables, and the indexes that searches need.

use super::{Draft, UNTYPED_PERCENT, is_text, key_of};
use crate::drawn::description::{
    DrawnAttribute, DrawnEntity, DrawnIndex, DrawnIndexKey, DrawnTable, FieldOf, Holds, KeyOf, KeyPart, Piece, Ref,
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
