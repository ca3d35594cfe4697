//! The tables of a template: which it makes, and how it names them.

use std::{collections::BTreeSet, fmt::Write as _, slice};

use derive::schema::Schema;
use keys::tables::{KeyAttribute, KeyType, TableForm};

use crate::filters::StreamTable;

/// Beginnings of logical ids that the template has for itself: `LedgerTable`.
const TAKEN: &str = "Ledger";

/// A table with a stream.
pub(super) struct StackTable<'a> {
    /// What its logical ids begin with: `Post` for `PostTable`, and nothing for the table whose keys are the layout's.
    pub(super) id: String,
    pub(super) stream_table: StreamTable<'a>,
    /// Does the template make it?
    pub(super) is_made: bool,
    is_one_of_several: bool,
}

/// All tables of a template: first the one whose keys are the layout's.
pub(super) fn all<'a>(schema: &'a Schema, attaches: bool) -> Vec<StackTable<'a>> {
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
    };
    StreamTable::all(schema).map(table).collect()
}

impl StackTable<'_> {
    /// What `!Ref` takes for its name.
    pub(super) fn reference(&self) -> String {
        format!("{}Table{}", self.id, if self.is_made { "" } else { "Name" })
    }

    /// Its ARN, inside of `!Sub`.
    pub(super) fn arn(&self) -> String {
        let name = self.reference();
        if self.is_made {
            return format!("${{{name}.Arn}}");
        }
        format!("arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{{name}}}")
    }

    /// Its ARN.
    pub(super) fn arn_value(&self) -> String {
        if self.is_made { format!("!GetAtt {}.Arn", self.reference()) } else { format!("!Sub {}", self.arn()) }
    }

    /// The ARN of its stream.
    pub(super) fn stream(&self) -> String {
        if self.is_made {
            format!("!GetAtt {}.StreamArn", self.reference())
        } else {
            format!("!Ref {}StreamArn", self.id)
        }
    }

    /// The ARNs of its indexes; one pattern stands for those of an existing table.
    pub(super) fn indexes(&self) -> Vec<String> {
        let declared = self.stream_table.declared();
        let names = declared.indexes.iter().map(|index| index.name.as_str());
        let names: Vec<&str> = if self.is_made { names.collect() } else { names.take(1).map(|_| "*").collect() };
        names.into_iter().map(|index| format!("!Sub {}/index/{index}", self.arn())).collect()
    }

    /// `the application's table`, in words.
    pub(super) fn described(&self) -> String {
        match self.stream_table.form() {
            Some(form) => format!("the table {}", form.name),
            None if self.is_one_of_several => "the table of Ripple's own items".to_owned(),
            None => "the application's table".to_owned(),
        }
    }

    /// Its keys and indexes.
    pub(super) fn keys(&self) -> String {
        let declared = self.stream_table.declared();
        let TableForm { pk, sk, indexes, .. } = &*declared;
        let key = (slice::from_ref(pk), sk.as_slice());
        let keys = [key].into_iter().chain(indexes.iter().map(|index| (index.pk.as_slice(), index.sk.as_slice())));
        let mut text = "      AttributeDefinitions:\n".to_owned();
        let mut defined = BTreeSet::new();
        for attribute in keys.flat_map(|(pk, sk)| pk.iter().chain(sk)) {
            if defined.insert(&attribute.name) {
                let of = of_type(attribute.of);
                line(&mut text, &format!("        - {{ AttributeName: {}, AttributeType: {of} }}", attribute.name));
            }
        }
        key_schema(&mut text, "      ", key);
        if !indexes.is_empty() {
            line(&mut text, "      GlobalSecondaryIndexes:");
        }
        for index in indexes {
            line(&mut text, &format!("        - IndexName: {}", index.name));
            key_schema(&mut text, "          ", (&index.pk, &index.sk));
            projected(&mut text, index.projection.as_deref());
        }
        text.trim_end().to_owned()
    }
}

fn of_type(of: KeyType) -> &'static str {
    match of {
        KeyType::S => "S",
        KeyType::N => "N",
        KeyType::B => "B",
    }
}

fn key_schema(text: &mut String, indent: &str, (pk, sk): (&[KeyAttribute], &[KeyAttribute])) {
    line(text, &format!("{indent}KeySchema:"));
    for (attributes, part) in [(pk, "HASH"), (sk, "RANGE")] {
        for attribute in attributes {
            line(text, &format!("{indent}  - {{ AttributeName: {}, KeyType: {part} }}", attribute.name));
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
                line(text, &format!("              - {name}"));
            }
        }
    }
}

pub(super) fn line(text: &mut String, line: &str) {
    // Writing to a text does not fail.
    let _is_written = writeln!(text, "{line}");
}
