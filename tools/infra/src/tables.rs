//! The tables of a template: which it makes, and how it names them; and a text as a scalar of YAML.

use std::{collections::BTreeSet, fmt::Write as _, slice};

use derive::schema::Schema;
use keys::tables::{IndexForm, KeyAttribute, TableForm};

use crate::{mapping::StreamTable, steps::IndexText};

/// Beginnings of logical ids that the template has for itself: `LedgerTable`.
const TAKEN: &str = "Ledger";

/// A table with a stream.
pub(crate) struct StackTable<'a> {
    /// What its logical ids begin with: `Post` for `PostTable`, and nothing for the table whose keys are the layout's.
    pub(crate) id: String,
    pub(crate) stream_table: StreamTable<'a>,
    /// Does the template make it?
    pub(crate) is_made: bool,
    is_one_of_several: bool,
    /// Its indexes, as the template has them.
    pub(crate) indexes: Vec<IndexText>,
}

/// All tables of a template: first the one whose keys are the layout's.
pub(crate) fn all<'a>(schema: &'a Schema, attaches: bool) -> Vec<StackTable<'a>> {
    let is_one_of_several = schema.layout.forms.is_some();
    let mut ids = BTreeSet::from([TAKEN.to_owned()]);
    let mut id = |form: &TableForm| {
        let letters: String = form.name.chars().filter(char::is_ascii_alphanumeric).collect();
        let (first, rest) = letters.split_at(letters.len().min(1));
        let id = format!("{}{rest}", first.to_ascii_uppercase());
        let numbered = (2..).map(|number| format!("{id}{number}"));
        let free = [id.clone()].into_iter().chain(numbered).find(|id| ids.insert(id.clone()));
        free.unwrap_or(id)
    };
    let table = |stream_table: StreamTable<'a>| StackTable {
        id: stream_table.form().map(&mut id).unwrap_or_default(),
        stream_table,
        // The table of Ripple's own items is Ripple's to make.
        is_made: !attaches || (is_one_of_several && stream_table.form().is_none()),
        is_one_of_several,
        indexes: stream_table.declared().indexes.iter().map(index_text).collect(),
    };
    StreamTable::all(schema).map(table).collect()
}

impl StackTable<'_> {
    /// What `!Ref` takes for its name.
    pub(crate) fn reference(&self) -> String {
        format!("{}Table{}", self.id, if self.is_made { "" } else { "Name" })
    }

    /// Its ARN, inside of `!Sub`.
    pub(crate) fn arn(&self) -> String {
        let name = self.reference();
        if self.is_made {
            return format!("${{{name}.Arn}}");
        }
        format!("arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{{name}}}")
    }

    /// Its ARN.
    pub(crate) fn arn_value(&self) -> String {
        if self.is_made { format!("!GetAtt {}.Arn", self.reference()) } else { format!("!Sub {}", self.arn()) }
    }

    /// The ARN of its stream.
    pub(crate) fn stream(&self) -> String {
        if self.is_made {
            let table = self.reference();
            format!("!If [Has{table}Stream, !Ref {table}Stream, !GetAtt {table}.StreamArn]")
        } else {
            format!("!Ref {}StreamArn", self.id)
        }
    }

    /// The ARNs of its indexes; one pattern stands for those of an existing table.
    pub(crate) fn indexes(&self) -> Vec<String> {
        let declared = self.stream_table.declared();
        let names = declared.indexes.iter().map(|index| index.name.as_str());
        let names: Vec<&str> = if self.is_made { names.collect() } else { names.take(1).map(|_| "*").collect() };
        names.into_iter().map(|index| format!("!Sub {}/index/{index}", self.arn())).collect()
    }

    /// `the application's table`, in words.
    pub(crate) fn described(&self) -> String {
        match self.stream_table.form() {
            Some(form) => format!("the table {}", form.name),
            None if self.is_one_of_several => "the table of Ripple's own items".to_owned(),
            None => "the application's table".to_owned(),
        }
    }

    /// Its keys and indexes.
    pub(crate) fn keys(&self) -> String {
        let declared = self.stream_table.declared();
        let key = (slice::from_ref(&declared.pk), declared.sk.as_slice());
        let mut text = "      AttributeDefinitions:\n".to_owned();
        let mut defined: BTreeSet<String> = BTreeSet::new();
        let of_indexes = self.indexes.iter().flat_map(|index| index.defined.iter().cloned());
        for definition in key.0.iter().chain(key.1).map(definition).chain(of_indexes) {
            if defined.insert(definition.clone()) {
                line(&mut text, &definition);
            }
        }
        key_schema(&mut text, "      ", key);
        if !self.indexes.is_empty() {
            line(&mut text, "      GlobalSecondaryIndexes:");
        }
        self.indexes.iter().flat_map(|index| &index.lines).for_each(|of_index| line(&mut text, of_index));
        text.trim_end().to_owned()
    }
}

/// The definition of an attribute of a key.
fn definition(attribute: &KeyAttribute) -> String {
    format!("        - {{ AttributeName: {}, AttributeType: {:?} }}", scalar(&attribute.name), attribute.of)
}

/// An index as a template has it.
fn index_text(index: &IndexForm) -> IndexText {
    let name = scalar(&index.name);
    let mut text = format!("        - IndexName: {name}\n");
    key_schema(&mut text, "          ", (&index.pk, &index.sk));
    projected(&mut text, index.projection.as_deref());
    IndexText {
        name,
        lines: text.lines().map(str::to_owned).collect(),
        defined: index.parts().map(definition).collect(),
    }
}

fn key_schema(text: &mut String, indent: &str, (pk, sk): (&[KeyAttribute], &[KeyAttribute])) {
    line(text, &format!("{indent}KeySchema:"));
    for (attributes, part) in [(pk, "HASH"), (sk, "RANGE")] {
        for attribute in attributes {
            line(text, &format!("{indent}  - {{ AttributeName: {}, KeyType: {part} }}", scalar(&attribute.name)));
        }
    }
}

/// The projection of an index; `None` is all attributes.
fn projected(text: &mut String, projection: Option<&[String]>) {
    line(text, "          Projection:");
    match projection {
        None => line(text, "            ProjectionType: ALL"),
        Some([]) => line(text, "            ProjectionType: KEYS_ONLY"),
        Some(names) => {
            line(text, "            ProjectionType: INCLUDE");
            line(text, "            NonKeyAttributes:");
            for name in names {
                line(text, &format!("              - {}", scalar(name)));
            }
        }
    }
}

pub(crate) fn line(text: &mut String, line: &str) {
    // Writing to a text does not fail.
    let _is_written = writeln!(text, "{line}");
}

// ---- YAML ----
//
// *Keeps true*: every reader of YAML, of version 1.1 or 1.2, reads the same text again, and reads it as a text.
// `CloudFormation` reads YAML 1.1, where `on` is a truth and `0x10` a number.

/// Words that YAML 1.1 does not read as texts, in lower case. Source: <https://yaml.org/type/bool.html> and `null.html`.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// The text, quoted if it could be read as anything else.
pub(crate) fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    if text.chars().all(is_printable) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        // Writing to a text does not fail.
        let _is_written = match character {
            '"' | '\\' => write!(quoted, "\\{character}"),
            _ if is_printable(character) => write!(quoted, "{character}"),
            _ => write!(quoted, "\\U{:08x}", u32::from(character)),
        };
    }
    quoted + "\""
}

/// True for a word that begins with a letter: it is no number, no time and no sign of YAML.
fn is_plain(text: &str) -> bool {
    let is_of_word = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(is_of_word)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// True if a quoted text may contain the character as it is. Line breaks would be folded.
fn is_printable(character: char) -> bool {
    let is_break = matches!(character, '\u{2028}' | '\u{2029}');
    let is_allowed = matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
        || character >= '\u{10000}';
    is_allowed && !is_break
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_could_be_read_as_anything_else_is_quoted() {
        for plain in ["PK", "GSI1PK", "by-author", "a_b.c", "nope", "e3"] {
            assert_eq!(scalar(plain), plain);
        }
        for (text, written) in [
            ("", "''"),
            ("@type", "'@type'"),
            ("#pk", "'#pk'"),
            ("a: b", "'a: b'"),
            ("on", "'on'"),
            ("No", "'No'"),
            ("0x10", "'0x10'"),
            ("null", "'null'"),
            ("1e3", "'1e3'"),
            ("=", "'='"),
            ("~", "'~'"),
            ("2024-01-15", "'2024-01-15'"),
            ("it's", "'it''s'"),
            ("${AWS::Region}", "'${AWS::Region}'"),
            ("a\"b\nc", "\"a\\\"b\\U0000000ac\""),
            ("\u{feff}", "\"\\U0000feff\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }
}
