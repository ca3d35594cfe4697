//! The syntax of a manifest, as data: the parser refuses every other key. The reference page of the language,
//! `docs/manifest.md`, and a JSON Schema for editors are generated from it.

use std::fmt::Write as _;

use derive::expression::function::SIGNATURES;
use keys::counter::COUNTER;
use serde_json::{Map, Value, json};

use crate::{access, entities, kinds, layout, tables};

/// A key of a table of the manifest.
#[derive(Clone, Copy, Debug)]
pub struct KeySyntax {
    /// The key.
    pub name: &'static str,
    /// Its value.
    pub value: ValueSyntax,
    /// Whether it is required, and its default otherwise.
    pub absent: Absent,
    /// Its description, as a sentence without its end.
    pub says: &'static str,
}

/// What an absent key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It is required.
    Required,
    /// The default, in words.
    Default(&'static str),
}

/// The value of a key.
#[derive(Clone, Copy, Debug)]
pub enum ValueSyntax {
    /// A text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A text, or a list of texts.
    TextOrTexts,
    /// `true` or `false`.
    Truth,
    /// A whole number between these, inclusive.
    WholeNumber(u32, u32),
    /// Pairs of texts.
    Pairs,
    /// One pair of texts.
    Pair,
    /// One attribute, with a text or a list of texts.
    PairOfTexts,
    /// Pairs of texts, or a list of texts.
    PairsOrTexts,
    /// A condition, or one pair of texts.
    Condition,
    /// A table with these keys.
    Table(&'static [KeySyntax]),
    /// A text, or a table with these keys.
    TextOrTable(&'static [KeySyntax]),
    /// An attribute of a key, or a list of them: each a text, or a table with a name and a type.
    KeyAttributes,
    /// A list of tables with these keys.
    Tables(&'static [KeySyntax]),
    /// Tables of the manifest, by name; the reference describes each kind of them separately.
    Sections,
}

impl KeySyntax {
    /// A required key.
    pub(crate) const fn required(name: &'static str, value: ValueSyntax, says: &'static str) -> Self {
        Self { name, value, absent: Absent::Required, says }
    }

    /// An optional key, with its default in words; empty if there is none.
    pub(crate) const fn optional(
        name: &'static str,
        value: ValueSyntax,
        absent: &'static str,
        says: &'static str,
    ) -> Self {
        Self { name, value, absent: Absent::Default(absent), says }
    }
}

/// The syntax of a kind of derivation.
#[derive(Clone, Copy, Debug)]
pub struct KindDescription {
    /// The value of `kind`.
    pub name: &'static str,
    /// What it keeps true.
    pub keeps: &'static str,
    /// Its family, as the functions run it.
    pub family: &'static str,
    /// What it costs in write units.
    pub costs: &'static str,
    /// An example.
    pub example: &'static str,
    /// Its keys besides the common ones.
    pub keys: &'static [KeySyntax],
}

/// The names of keys.
pub(crate) fn names(keys: &[KeySyntax]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

// ---- the reference page ----

/// The text before the tables.
const INTRODUCTION: &str = "\
# The language of a manifest

<!-- `ripple schema --reference` prints this page. -->

This page lists every key of a manifest, usually called `ripple.toml`.
[Declare your own table](own-table.md) explains forms of keys, links and conditions, and has a whole file.
`ripple check FILE` checks a file, and `ripple schema` prints a JSON Schema for editors.
A key that this page does not have is refused, with its line and what was meant.
Write units are those of items of up to 1 KB.
";

/// The page.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    let sections: [(&str, &str, &[KeySyntax]); 7] = [
        (
            "`[table]`",
            "The names of the attributes of one table with text keys, in which Ripple's own items are too. For any other \
             table, and for several, there is `[tables.NAME]`.",
            &layout::TABLE,
        ),
        (
            "`[index.NAME]`",
            "A global secondary index. Declare only indexes that Ripple searches, or that contain derived items.",
            &layout::INDEX,
        ),
        (
            "`[tables.NAME]`",
            "A table of any form, or one of several. [Several tables](own-table.md#several-tables-and-keys-of-other-types) \
             explains them.",
            &tables::TABLES,
        ),
        (
            "`[tables.NAME.index.INDEX]`",
            "A global secondary index. Items are in it while they have its attributes. Declare only indexes that Ripple searches.",
            &tables::TABLE_INDEX,
        ),
        (
            "`[entity.NAME]`",
            "Items of one kind. The name is the text of the type attribute, if there is one.",
            &entities::ENTITY,
        ),
        (
            "`[entity.Counter]`",
            "Counters are Ripple's own, and in every table. Only this can be said of them, and nothing has to be.",
            &entities::COUNTERS,
        ),
        ("`[entity.NAME.index.INDEX]`", "The keys that these items have in an index.", &entities::INDEX_KEY),
    ];
    for (title, about, keys) in sections {
        section(&mut page, title, about, keys);
    }
    section(&mut page, "`[derivation.NAME]`", "What is derived. Every kind has these keys.", &kinds::COMMON);
    for kind in kinds::descriptions() {
        of_kind(&mut page, &kind);
    }
    section(&mut page, "`[access.NAME]`", ACCESS, &access::ACCESS);
    expressions(&mut page);
    page
}

/// The text before the keys of an access pattern.
const ACCESS: &str = "\
A read of your application, which Ripple does not make itself. `ripple types` prints a [function](types.md#functions-for-your-reads) \
for it, and `ripple design`, `ripple cost` and the console show it. Each takes one of `get`, `batch-get`, `query` and `counts`.

```toml
[access.comments-of-post]
query = \"Comment\"
between = \"createdAt\"
order = \"descending\"
```
";

/// The text before the table of functions.
const EXPRESSIONS: &str = "
## Expressions

`where`, `link`, `sum`, `value`, `time`, and the source of a copied attribute take an expression, in DynamoDB's syntax.

```text
condition  = expression (= <> < <= > >=) expression | expression BETWEEN expression AND expression
           | expression IN (expression, …) | DynamoDB's functions | NOT condition | condition AND condition
           | condition OR condition | (condition)
expression = path | field | 'text' | number | true | false | null | function(expression, …)
           | expression (+ - * / ||) expression | (expression)
```

- A *path* is an attribute or a value inside one, such as `address.zip` or `lines[0].sku`; a *field* is one of the key's form. A field has the type that it has in the key: N for a number such as `{n:4}`, otherwise S.
- A text is in single quotes, and a quote in it is doubled. A name with other characters than letters, digits and `_` is in double quotes.
- `*` binds closer than `+`, `-` and `||`; `NOT` closer than `AND`, and `AND` closer than `OR`.
- What is calculated from a missing value is missing.
- A value of a type that a function does not take, and a number beyond 38 digits, make the item unreadable for the derivation: it counts as absent, and is listed.
- A condition is decided from left to right, as far as necessary: `attribute_type(a, 'N') AND a * 2 > 5` is decided for an item whose `a` is a text.
- A link by an expression is followed from the item to the target alone. A copy by such a link needs a mirror that has the value in its key, as in [own-table.md](own-table.md#expressions); a `latest` and an `extreme` take a mirror in place of the item.

| expression | takes | gives | |
|---|---|---|---|
";

/// The grammar of expressions, and their functions.
fn expressions(page: &mut String) {
    page.push_str(EXPRESSIONS);
    for signature in SIGNATURES {
        let form = signature.form.replace('|', "\\|");
        let takes = if signature.takes.is_empty() { "any".to_owned() } else { signature.takes.join(" or ") };
        let gives = signature.gives.unwrap_or("the same");
        write(page, format_args!("| `{form}` | {takes} | {gives} | {} |\n", signature.meaning));
    }
}

fn section(page: &mut String, title: &str, about: &str, keys: &[KeySyntax]) {
    write(page, format_args!("\n## {title}\n\n{about}\n"));
    table(page, keys);
}

fn of_kind(page: &mut String, kind: &KindDescription) {
    let KindDescription { name, keeps, family, costs, example, keys } = kind;
    write(page, format_args!("\n## `kind = \"{name}\"`\n\n{keeps}\n"));
    write(page, format_args!("\n- Family: {family}.\n- Write units: {costs}.\n\n```toml\n{}\n```\n", example.trim()));
    table(page, keys);
}

fn table(page: &mut String, keys: &[KeySyntax]) {
    write(page, format_args!("\n| key | value | without it | |\n|---|---|---|---|\n"));
    for KeySyntax { name, value, absent, says } in keys {
        let absent = match absent {
            Absent::Required => "required",
            Absent::Default(absent) => absent,
        };
        write(page, format_args!("| `{name}` | {} | {absent} | {says} |\n", words(*value)));
    }
    for KeySyntax { name, value, .. } in keys {
        let (ValueSyntax::Table(inner) | ValueSyntax::TextOrTable(inner) | ValueSyntax::Tables(inner)) = value else {
            continue;
        };
        let of = if matches!(value, ValueSyntax::Tables(_)) { "each table of " } else { "" };
        write(page, format_args!("\nKeys of {of}`{name}`:\n"));
        table(page, inner);
    }
}

fn words(value: ValueSyntax) -> String {
    match value {
        ValueSyntax::Text => "text".to_owned(),
        ValueSyntax::OneOf(texts) => texts.iter().map(|text| format!("`\"{text}\"`")).collect::<Vec<_>>().join(" or "),
        ValueSyntax::Texts => "list of texts".to_owned(),
        ValueSyntax::TextOrTexts => "text, or a list of texts".to_owned(),
        ValueSyntax::Truth => "`true` or `false`".to_owned(),
        ValueSyntax::WholeNumber(from, to) => format!("whole number, {from} to {to}"),
        ValueSyntax::Pairs => "pairs of texts".to_owned(),
        ValueSyntax::Pair => "one pair of texts".to_owned(),
        ValueSyntax::PairOfTexts => "one attribute, with a text or a list of texts".to_owned(),
        ValueSyntax::PairsOrTexts => "pairs of texts, or a list of texts".to_owned(),
        ValueSyntax::Condition => "condition, or one pair of texts".to_owned(),
        ValueSyntax::Table(_) | ValueSyntax::Sections => "table".to_owned(),
        ValueSyntax::TextOrTable(_) => "text or table".to_owned(),
        ValueSyntax::KeyAttributes => "text, `{ name = \"…\", type = \"N\" }`, or a list of them".to_owned(),
        ValueSyntax::Tables(_) => "list of tables".to_owned(),
    }
}

/// Adds to the page. Writing to a text cannot fail.
fn write(page: &mut String, text: std::fmt::Arguments<'_>) {
    let written = page.write_fmt(text);
    debug_assert!(written.is_ok(), "a text takes everything");
}

// ---- the JSON Schema, for editors that use one to complete and check TOML ----

/// The schema, of draft 2020-12.
#[must_use]
pub fn json_schema() -> Value {
    let entity = object(&entities::ENTITY, &[("index", named(&object(&entities::INDEX_KEY, &[])))]);
    let derivations: Vec<Value> = kinds::descriptions()
        .iter()
        .map(|kind| {
            let keys: Vec<KeySyntax> = kinds::COMMON.iter().chain(kind.keys).copied().collect();
            let mut derivation = object(&keys, &[("kind", json!({ "const": kind.name }))]);
            describe(&mut derivation, kind.keeps);
            derivation
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ripple manifest",
        "type": "object",
        "additionalProperties": false,
        "required": ["entity"],
        "oneOf": [{ "required": ["table"] }, { "required": ["tables"] }],
        "properties": {
            "table": object(&layout::TABLE, &[]),
            "index": named(&object(&layout::INDEX, &[])),
            "tables": named(&object(&tables::TABLES, &[("index", named(&object(&tables::TABLE_INDEX, &[])))])),
            "entity": {
                "type": "object",
                "properties": { COUNTER: object(&entities::COUNTERS, &[]) },
                "additionalProperties": entity,
            },
            "access": named(&object(&access::ACCESS, &[])),
            "derivation": named(&json!({ "type": "object", "oneOf": derivations })),
        },
    })
}

/// Tables by their names.
fn named(each: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": each })
}

/// A table with these keys; `instead` replaces the values of some of them.
fn object(keys: &[KeySyntax], instead: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let instead = instead.iter().find(|(name, _)| *name == key.name).map(|(_, value)| value.clone());
        let mut value = instead.unwrap_or_else(|| of_value(key.value));
        describe(&mut value, key.says);
        properties.insert(key.name.to_owned(), value);
    }
    let required: Vec<&str> = keys.iter().filter(|key| key.absent == Absent::Required).map(|key| key.name).collect();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn of_value(value: ValueSyntax) -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    let texts = || json!({ "type": "array", "uniqueItems": true, "items": text() });
    let pairs = || json!({ "type": "object", "additionalProperties": text() });
    let one = |each: &Value| json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": each });
    match value {
        ValueSyntax::Text => text(),
        ValueSyntax::OneOf(texts) => json!({ "enum": texts }),
        ValueSyntax::Texts => texts(),
        ValueSyntax::TextOrTexts => json!({ "anyOf": [text(), texts()] }),
        ValueSyntax::Truth => json!({ "type": "boolean" }),
        ValueSyntax::WholeNumber(from, to) => json!({ "type": "integer", "minimum": from, "maximum": to }),
        ValueSyntax::Pairs => pairs(),
        ValueSyntax::Pair => one(&text()),
        ValueSyntax::PairOfTexts => one(&json!({ "anyOf": [text(), texts()] })),
        ValueSyntax::PairsOrTexts => json!({ "anyOf": [pairs(), texts()] }),
        ValueSyntax::Condition => json!({ "anyOf": [text(), one(&text())] }),
        ValueSyntax::Table(keys) => object(keys, &[]),
        ValueSyntax::TextOrTable(keys) => json!({ "anyOf": [text(), object(keys, &[])] }),
        ValueSyntax::KeyAttributes => {
            let one = json!({ "anyOf": [text(), object(&tables::KEY_ATTRIBUTE, &[])] });
            json!({ "anyOf": [one, { "type": "array", "minItems": 1, "maxItems": 4, "items": one }] })
        }
        ValueSyntax::Tables(keys) => json!({ "type": "array", "items": object(keys, &[]) }),
        ValueSyntax::Sections => json!({ "type": "object" }),
    }
}

fn describe(value: &mut Value, says: &str) {
    if let Some(object) = value.as_object_mut() {
        object.insert("description".to_owned(), says.into());
    }
}
