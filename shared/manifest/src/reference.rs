//! The reference page of the language, `docs/manifest.md`, generated from the parser's syntax.

use std::fmt::Write as _;

use derive::expression::function::SIGNATURES;

use crate::{
    access, entities, index_keys, kinds, layout,
    syntax::{Absent, KeySyntax, KindDescription, ValueSyntax},
    tables,
};

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
        ("`[entity.NAME.index.INDEX]`", "The keys that these items have in an index.", &index_keys::INDEX_KEY),
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
