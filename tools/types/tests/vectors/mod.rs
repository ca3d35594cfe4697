//! Keys of the test's table, as the crate `keys` builds and parses them: questions, and the answers that every language
//! must give.
//!
//! A line is words with spaces between; a text is `x` and its UTF-8 in hexadecimal digits.
//!
//! | question | answer |
//! |---|---|
//! | `build ENTITY INDEX NAME=VALUE …` | `key PARTITION SORT`, `none`, or `error TEXT` |
//! | `partitions ENTITY INDEX NAME=VALUE …` | `keys PARTITION …`, or `error TEXT` |
//! | `prefix ENTITY INDEX NAME=VALUE …` | `key PREFIX`, or `error TEXT` |
//! | `parse ENTITY INDEX PARTITION SORT` | `fields NAME=VALUE …` in order of the names, or `none` |
//!
//! `INDEX` is `x` for the table.

use std::fmt::Write as _;

use derive::schema::Schema;
use keys::{
    entity::{Definition, KeyTemplate},
    error::KeyError,
    fields::Fields,
    index_key::IndexKey,
    key::Key,
};

/// The table of the test.
const FORMS: &str = include_str!("../forms.toml");

/// The table of the test, and the same with keys that escape nothing.
pub(crate) fn tables() -> [String; 2] {
    [FORMS.to_owned(), FORMS.replacen("type = ", "escape = \"none\"\ntype = ", 1)]
}

/// How many keys of each form are drawn.
const ROUNDS: usize = 150;

/// Values of fields of text and of paths, separated by `|`.
const TEXTS: &str =
    "|a|b|#|%|%23|50%|a#b|%2F%2f|%2|ä€😀|\0|\n|a\n| |'\"\\|/a|/a/b|/|/a//b|/a#b|/a%2Fb/50%|open|it's \"late\"";

/// Values of fields of numbers, separated by `|`.
const NUMBERS: &str = "0|7|42|000042|999|999999|1000000|-1|-0|1.5|0.01|19.9|19.90|1E3|1e+3|1e-2|1.|+5|.5|.-5|.+5\
    |1e999999999999999999999999999999999999999999|0e99||NaN| 5|5\n|٣|1_000|--1|+-1|1e|e5|.|1.2.3|1E125|1E126\
    |1E-130|1E-131|0.00|0e9223372036854775808|0e-9223372036854775807|99999999999999.99|999999999999.99|0.0001\
    |12345678901234567890123456789012345678|123456789012345678901234567890123456789|0.1234";

/// Numbers that only look as if they were drawn: every run asks the same.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one_of<'a>(&mut self, those: &[&'a str]) -> &'a str {
        those[self.below(those.len())]
    }
}

/// A key of the table, or of an index.
struct Form<'a> {
    entity: &'a Definition,
    index: Option<&'a IndexKey>,
}

impl Form<'_> {
    fn key(&self) -> &KeyTemplate {
        self.index.map_or(&self.entity.key, |index| &index.key)
    }

    fn id(&self) -> String {
        format!("{} {}", hex(&self.entity.name), hex(self.index.map_or("", |index| &index.index)))
    }

    fn build(&self, fields: &Fields) -> Result<Option<Key>, KeyError> {
        match self.index {
            Some(index) => self.entity.index_key(index, fields),
            None => self.entity.build(fields).map(Some),
        }
    }

    fn fields(&self, draw: &mut Draw) -> Fields {
        let mut names: Vec<&str> = self.key().field_names();
        names.extend(self.index.and_then(|index| index.only_if.as_ref()).map(keys::index_key::OnlyIf::attribute));
        let long = ["é".repeat(600), "y".repeat(1_100), "z".repeat(2_100), "0".repeat(600) + "5", "9".repeat(60)];
        let [texts, numbers] = [TEXTS, NUMBERS].map(|all| all.split('|').collect::<Vec<_>>());
        let mut fields = Fields::new();
        for name in names {
            let of_number = self.key().holds_number(name);
            let value = match draw.below(24) {
                0 => continue,
                1 => long[draw.below(long.len())].clone(),
                2 => draw.one_of(&texts).to_owned(),
                3..8 if of_number => draw.below(1_000).to_string(),
                _ if of_number => draw.one_of(&numbers).to_owned(),
                _ if self.key().to_owned().pk.to_string().contains("/}") => draw.one_of(&texts[16..22]).to_owned(),
                _ => draw.one_of(&texts[1..]).to_owned(),
            };
            fields.insert(name, value);
        }
        fields
    }
}

/// Questions and their answers.
pub(crate) fn vectors(schema: &Schema) -> Vec<(String, String)> {
    let mut forms = Vec::new();
    for entity in schema.entities().filter(|entity| !entity.is_own()) {
        forms.push(Form { entity, index: None });
        forms.extend(entity.indexes.iter().map(|index| Form { entity, index: Some(index) }));
    }
    let (mut draw, mut vectors, mut keys) = (Draw(1), Vec::new(), Vec::new());
    for form in &forms {
        for _ in 0..ROUNDS {
            let fields = form.fields(&mut draw);
            let listed = listed(&fields);
            let built = form.build(&fields);
            keys.extend(built.clone().ok().flatten().filter(|key| key.sk.len() < 200));
            let key =
                |key: Option<Key>| key.map_or("none".into(), |key| format!("key {} {}", hex(&key.pk), hex(&key.sk)));
            vectors.push((format!("build {}{listed}", form.id()), built.map_or_else(|error| refused(&error), key)));
            let of = |error: KeyError| refused(&error.of(&form.entity.name));
            let suffixes = form.key().pk.suffixes();
            let partitions: Result<Vec<String>, KeyError> = suffixes.iter().map(|it| it.build(&fields)).collect();
            let shown = |keys: Vec<String>| keys.iter().fold("keys".to_owned(), |all, key| all + " " + &hex(key));
            vectors.push((format!("partitions {}{listed}", form.id()), partitions.map_or_else(of, shown)));
            let prefix = form.key().sk.prefix(&fields);
            let shown = |prefix: String| format!("key {}", hex(&prefix));
            vectors.push((format!("prefix {}{listed}", form.id()), prefix.map_or_else(of, shown)));
        }
    }
    keys.sort();
    keys.dedup();
    for key in &keys {
        for form in &forms {
            // The keys of other forms are asked for now and then.
            let is_own = form.key().parse_key(key).is_some();
            for round in 0..if is_own { 3 } else { usize::from(draw.below(8) == 0) } {
                let altered = if round == 0 { key.clone() } else { altered(key, &mut draw) };
                let parsed = form.key().parse_key(&altered);
                let shown = |fields: Fields| format!("fields{}", self::listed(&fields));
                let question = format!("parse {} {} {}", form.id(), hex(&altered.pk), hex(&altered.sk));
                vectors.push((question, parsed.map_or("none".into(), shown)));
            }
        }
    }
    vectors
}

/// The key with a character more, less, or another one.
fn altered(key: &Key, draw: &mut Draw) -> Key {
    let mut altered = key.clone();
    let part = if draw.below(2) == 0 { &mut altered.pk } else { &mut altered.sk };
    let mut characters: Vec<char> = part.chars().collect();
    let at = draw.below(characters.len());
    match draw.below(3) {
        0 => _ = characters.remove(at),
        1 => characters.insert(at, ['#', '%', '0', '/', 'é'][draw.below(5)]),
        _ => characters[at] = ['#', '%', '9', '/', '٣'][draw.below(5)],
    }
    *part = characters.into_iter().collect();
    altered
}

fn refused(error: &KeyError) -> String {
    format!("error {}", hex(&error.to_string()))
}

fn listed(fields: &Fields) -> String {
    fields.iter().fold(String::new(), |all, (name, value)| format!("{all} {}={}", hex(name), hex(value)))
}

/// `x` and the UTF-8 of a text.
fn hex(text: &str) -> String {
    text.bytes().fold("x".to_owned(), |mut all, byte| {
        write!(all, "{byte:02x}").unwrap();
        all
    })
}
