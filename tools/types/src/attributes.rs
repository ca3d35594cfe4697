//! Infers the type of each attribute, as far as the schema and the catalogue show it.
//!
//! A manifest declares the uses of attributes, not their types. An attribute in a number field of a key is a number. An
//! attribute in a link is a text. A display of a count is a number; a display of existence is a boolean. Copies, latest
//! items and mirrors have the types of their sources.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    declaration::Link,
    expression::Input,
    kind::{Kind, Shape},
    part::{Part, PartOf},
    schema::Schema,
};
use keys::{entity::KeyTemplate, index_key::OnlyIf};

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredType {
    /// S.
    Text,
    /// N.
    Number,
    /// BOOL.
    Boolean,
    /// The manifest does not show it.
    Unknown,
}

/// The known types, by entity and attribute.
#[derive(Debug, Default)]
pub struct ValueTypes(BTreeMap<(String, String), StoredType>);

impl ValueTypes {
    /// Infers the types of all attributes of a table.
    #[must_use]
    pub fn of(schema: &Schema, catalogue: &Catalogue) -> Self {
        let mut types = Self::default();
        for entity in schema.entities() {
            for index in &entity.indexes {
                types.key(&entity.name, &index.key);
                if let Some(OnlyIf::Is { attribute, .. }) = &index.only_if {
                    types.put(&entity.name, attribute, StoredType::Text);
                }
            }
            if let Some(time_to_live) = &schema.layout.time_to_live {
                types.put(&entity.name, time_to_live, StoredType::Number);
            }
        }
        for derivation in catalogue.derivations() {
            types.used(schema, derivation.kind.as_ref());
        }
        // A copied attribute may be copied or mirrored again, and the derivations are in no particular order.
        while catalogue.derivations().any(|derivation| types.spread(schema, derivation.kind.as_ref())) {}
        types
    }

    /// The type of an entity's attribute.
    #[must_use]
    pub fn get(&self, entity: &str, attribute: &str) -> StoredType {
        self.0.get(&(entity.to_owned(), attribute.to_owned())).copied().unwrap_or(StoredType::Unknown)
    }

    /// Records a type if none is known yet. Returns whether it did.
    fn put(&mut self, entity: &str, attribute: &str, value: StoredType) -> bool {
        let name = (entity.to_owned(), attribute.to_owned());
        let is_new = value != StoredType::Unknown && !self.0.contains_key(&name);
        if is_new {
            self.0.insert(name, value);
        }
        is_new
    }

    /// The type of a field of the key that is copied.
    fn field(schema: &Schema, entity: &str, field: &str) -> Option<StoredType> {
        let key = &schema.entity(entity)?.key;
        let value = if key.holds_number(field) { StoredType::Number } else { StoredType::Text };
        key.field_names().contains(&field).then_some(value)
    }

    fn key(&mut self, entity: &str, key: &KeyTemplate) {
        for field in key.field_names() {
            let value = if key.holds_number(field) { StoredType::Number } else { StoredType::Text };
            self.put(entity, field, value);
        }
    }

    /// Records the types that a derivation's reads and writes imply.
    fn used(&mut self, schema: &Schema, kind: &dyn Kind) {
        let reach = kind.reach(schema).unwrap_or_default();
        let mut put = |parts: &[Part], value| {
            for (entity, attribute) in parts.iter().filter_map(named) {
                self.put(entity, attribute, value);
            }
        };
        // A name has the type that the derivation takes, and what is calculated the types that its functions take.
        let input = |entity: &str, input: &Input, value| {
            let taken = input.expression().taken().into_iter();
            let of_type = |of| if of == "N" { StoredType::Number } else { StoredType::Text };
            let taken = taken.map(|(path, of, _)| (Part::attribute(entity, &path.name()), of_type(of)));
            taken.chain(input.name().map(|name| (Part::attribute(entity, name), value))).collect::<Vec<_>>()
        };
        // A list whose members a link takes is no text.
        let links = |entity: &str, link: &Link, each: Option<&str>| {
            let from = link.0.iter().map(|(_, from)| from).filter(|from| from.name().is_none() || from.name() != each);
            from.flat_map(|from| input(entity, from, StoredType::Text)).collect::<Vec<_>>()
        };
        match kind.shape() {
            Shape::Count(count) => {
                let links = links(&count.source, &count.link, count.each.as_deref()).into_iter();
                let sums = count.sum.iter().flat_map(|sum| input(&count.source, sum, StoredType::Number));
                links.chain(sums).for_each(|(part, value)| put(&[part], value));
            }
            Shape::Rollup(rollup) => {
                let value = input(&rollup.source, &rollup.value, StoredType::Number).into_iter();
                let time = input(&rollup.source, &rollup.time, StoredType::Text);
                value.chain(time).for_each(|(part, value)| put(&[part], value));
                put(&reach.writes, StoredType::Number);
            }
            Shape::Mirror(mirror) => {
                let links = links(&mirror.source, &mirror.link, mirror.each.as_deref());
                for (part, value) in links {
                    put(&[part], value);
                }
            }
            Shape::Attributes(_) if kind.name() == "display" => {
                let shows_existence = kind.outline(schema).terms.iter().any(|term| term.starts_with("Exists of"));
                put(&reach.writes, if shows_existence { StoredType::Boolean } else { StoredType::Number });
            }
            Shape::Attributes(refresh) => {
                if kind.name() == "path" {
                    put(&reach.reads, StoredType::Text);
                }
                match refresh.gives() {
                    Some("N") => put(&reach.writes, StoredType::Number),
                    Some("S") => put(&reach.writes, StoredType::Text),
                    Some("BOOL") => put(&reach.writes, StoredType::Boolean),
                    _ => {}
                }
                // A copy reads attributes of its target as its link to the source.
                let target = reach.writes.first().map(|part| part.entity.clone()).unwrap_or_default();
                let links: Vec<Part> = reach.reads.iter().filter(|part| part.entity == target).cloned().collect();
                if kind.name() == "copy" && kind.entities().first().is_none_or(|source| *source != target) {
                    put(&links, StoredType::Text);
                }
            }
            Shape::Cascade(_) => {}
        }
    }

    /// Records the types that a copy, a latest item or a mirror takes from its source. Returns whether any is new.
    fn spread(&mut self, schema: &Schema, kind: &dyn Kind) -> bool {
        let mut is_more = false;
        if let Shape::Mirror(mirror) = kind.shape() {
            for name in schema.entity(&mirror.target).into_iter().flat_map(|target| &target.attributes) {
                let value = self.get(&mirror.source, name);
                is_more |= self.put(&mirror.target, name, value);
            }
        }
        if let (Some(refresh), [source, ..]) = (kind.refresh(), kind.entities().as_slice()) {
            for (from, to) in refresh.copied() {
                let value = match (from.name(), from.expression().type_of()) {
                    (Some(name), _) => Self::field(schema, source, name).unwrap_or_else(|| self.get(source, name)),
                    (None, Some("N")) => StoredType::Number,
                    (None, Some("S")) => StoredType::Text,
                    (None, _) => StoredType::Unknown,
                };
                is_more |= self.put(refresh.target(), to, value);
            }
        }
        is_more
    }
}

fn named(part: &Part) -> Option<(&str, &str)> {
    match &part.of {
        PartOf::Attribute(name) => Some((&part.entity, name)),
        // The content of a map or a list has no known type.
        PartOf::Inside { .. } | PartOf::Existence | PartOf::AllBut(_) => None,
    }
}

// ---- Names of entities, indexes and fields as identifiers of a language ----

/// The identifiers in use.
#[derive(Debug)]
pub(crate) struct Identifiers(BTreeSet<String>);

impl Identifiers {
    /// Only the reserved identifiers are in use.
    pub(crate) fn without(reserved: &str) -> Self {
        Self(reserved.split_whitespace().map(str::to_owned).collect())
    }

    /// The words that a language reserves, and what a runtime declares or imports, are in use.
    pub(crate) fn beside(reserved: &str, runtime: &str) -> Self {
        let mut names = Self::without(reserved);
        names.0.extend(runtime.lines().flat_map(declared).map(str::to_owned));
        names
    }

    /// The identifier if it is free; otherwise with `_`, and if necessary a number, after it.
    pub(crate) fn unused(&mut self, wanted: &str) -> String {
        let numbered = (2_u64..).map(|number| format!("{wanted}_{number}"));
        let mut wanted = [wanted.to_owned(), format!("{wanted}_")].into_iter().chain(numbered);
        let free = wanted.find(|name| self.0.insert(name.clone()));
        free.unwrap_or_default()
    }
}

/// The identifiers that a line at the top of a file declares or imports.
fn declared(line: &str) -> Vec<&str> {
    const DECLARING: &str = "class const def enum fn function interface let struct type";
    let words: Vec<&str> = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    match words.as_slice() {
        ["import" | "from" | "use", ..] => words,
        // An indented declaration is in the scope of another.
        ["", ..] => Vec::new(),
        words => {
            let is_declaring = |word: &&str| DECLARING.split(' ').any(|declares| declares == *word);
            let declared = words.iter().skip_while(|word| !is_declaring(word)).nth(1);
            let assigned =
                words.first().filter(|_| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' ')));
            declared.or(assigned).copied().into_iter().collect()
        }
    }
}

/// `OrderLine`, from `order-line` or `orderLine`.
pub(crate) fn pascal(text: &str) -> String {
    let capital = |word: String| {
        let mut characters = word.chars();
        characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect::<String>()
    };
    valid(words(text).into_iter().map(capital).collect())
}

/// `orderLine`.
pub(crate) fn camel(text: &str) -> String {
    let pascal = pascal(text);
    let mut characters = pascal.chars();
    characters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(characters).collect()
}

/// `order_line`.
pub(crate) fn snake(text: &str) -> String {
    valid(words(text).join("_").to_ascii_lowercase())
}

fn valid(name: String) -> String {
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { format!("_{name}") }
}

/// The words of a name. Other characters than ASCII letters and digits separate them, and a capital starts a word, as
/// in `orderLine`.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let characters: Vec<char> = text.chars().collect();
    let mut begins = true;
    for (at, &character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            begins = true;
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(at + 1);
        let is_capital = character.is_ascii_uppercase();
        let follows_small = before.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
        let leads_small = after.is_some_and(char::is_ascii_lowercase);
        begins |= is_capital && (follows_small || leads_small);
        match words.last_mut().filter(|_| !begins) {
            Some(word) => word.push(character),
            None => words.push(character.to_string()),
        }
        begins = false;
    }
    if words.is_empty() { vec!["unnamed".to_owned()] } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_identifier() {
        for (name, pascal_, camel_, snake_) in [
            ("Order", "Order", "order", "order"),
            ("order-line", "OrderLine", "orderLine", "order_line"),
            ("orderedOn", "OrderedOn", "orderedOn", "ordered_on"),
            ("GSI1", "GSI1", "gSI1", "gsi1"),
            ("HTTPServer", "HTTPServer", "hTTPServer", "http_server"),
            ("2nd", "_2nd", "_2nd", "_2nd"),
            ("größe", "GrE", "grE", "gr_e"),
            ("…", "Unnamed", "unnamed", "unnamed"),
        ] {
            assert_eq!((pascal(name), camel(name), snake(name)), (pascal_.into(), camel_.into(), snake_.into()));
        }
    }

    #[test]
    fn what_a_runtime_declares_is_in_use() {
        let of = |line| declared(line).into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
        assert_eq!(of("export async function fill(client: Client) {"), ["fill"]);
        assert_eq!(of("declare function setTimeout(call: () => void): unknown;"), ["setTimeout"]);
        assert_eq!(of("export class KeyForm<Fields extends object> {"), ["KeyForm"]);
        assert_eq!(of("pub(crate) struct Page {"), ["Page"]);
        assert_eq!(of("Of = TypeVar(\"Of\")"), ["Of"]);
        assert_eq!(of("from typing import Any, Generic"), ["from", "typing", "import", "Any", "Generic"]);
        assert!(of("    const inner = 1;").is_empty() && of("}").is_empty());
    }

    #[test]
    fn no_identifier_is_used_twice() {
        let mut names = Identifiers::without("type self");
        let made = ["a", "a", "type", "a"].map(|name| names.unused(name));
        assert_eq!(made, ["a", "a_", "type_", "a_2"]);
    }
}
