//! The infrastructure of a table: a SAM template of tables, functions, mappings with filters, roles, alarms and dashboard.
//!
//! The text stands in three parts beside this file. A line that begins with flags, as in `@creates,expires|`, is there only
//! if all of them hold; `{{name}}` stands for a value.
//!
//! *Example*: `@attaches|    Default: {{pk}}` becomes `    Default: PK` in the template for an existing table.

pub mod wrapped;

use std::{collections::BTreeSet, fmt::Write as _};

use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use keys::layout::Layout;

use crate::filters::{Needed, needed};

const STACK: &str = include_str!("infra/stack.yaml");
const READER: &str = include_str!("infra/reader.yaml");
const ALARMS: &str = include_str!("infra/alarms.yaml");

/// ARN of an existing table.
const ATTACHED: &str = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${TableName}";

/// A pattern for a function without derivations, which no record matches.
const NOTHING: &str = r#"{"eventName":["NONE"]}"#;

/// The head of filters that are left out with a manifest of another table, and of those that always hold.
const CHOSEN: &str = "            FilterCriteria: !If\n              - OwnConfig\n              - !Ref AWS::NoValue\n              - \
                      Filters:\n";
const ALWAYS: &str = "            FilterCriteria:\n              Filters:\n";

/// A function that reads the stream.
struct StreamReader {
    name: &'static str,
    condition: &'static str,
    about: &'static str,
    sid: &'static str,
    families: &'static [Family],
}

const READERS: [StreamReader; 3] = [
    StreamReader {
        name: "Aggregate",
        condition: "TwoReaders",
        about: "Counts: counters, and the proof of what is in, in one transaction; roll-ups, which it reads before.",
        sid: "Counters",
        families: &[Family::Additive],
    },
    StreamReader {
        name: "Propagate",
        condition: "TwoReaders",
        about: "Copies, mirrors and displays: looks at items and writes those that differ.",
        sid: "DerivedItems",
        families: &[Family::LevelTriggered],
    },
    StreamReader {
        name: "Combined",
        condition: "OneReader",
        about: "Both, for a stream that has one reader left.",
        sid: "DerivedItems",
        families: &[Family::Additive, Family::LevelTriggered],
    },
];

/// What a template is for.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// The table.
    pub schema: &'a Schema,
    /// Its derivations.
    pub catalogue: &'a Catalogue,
    /// Does the table exist? Then the template makes the rest.
    pub attaches: bool,
    /// Is it the shipped table? Then the template can take a manifest of another one, without filters.
    pub shipped: bool,
    /// Do the functions come as packages in a bucket? Otherwise `sam build` builds them.
    pub zipped: bool,
    /// The command that writes the template, for its head.
    pub command: &'a str,
}

/// The values and flags of a template.
struct Filling {
    flags: BTreeSet<&'static str>,
    values: Vec<(&'static str, String)>,
}

impl Filling {
    fn with<const N: usize>(&self, flags: &[(&'static str, bool)], values: [(&'static str, String); N]) -> Self {
        let flags = flags.iter().filter(|(_, is)| *is).map(|(flag, _)| *flag);
        let flags = self.flags.iter().copied().chain(flags).collect();
        Self { flags, values: self.values.iter().cloned().chain(values).collect() }
    }

    /// The part with its values, without the lines whose flags do not hold.
    fn fill(&self, part: &str) -> String {
        let mut text = String::new();
        for line in part.lines() {
            let flagged = line.strip_prefix('@').and_then(|line| line.split_once('|'));
            let (flags, line) = flagged.unwrap_or(("", line));
            if !flags.split(',').all(|flag| flag.is_empty() || self.flags.contains(flag)) {
                continue;
            }
            let filled = self.values.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
            // A value of no lines takes its line along.
            if !filled.is_empty() || line.is_empty() {
                text.extend([filled.as_str(), "\n"]);
            }
        }
        text
    }
}

/// The template.
#[must_use]
pub fn template(stack: &Stack<'_>) -> String {
    let Stack { schema, catalogue, attaches, shipped, zipped, command } = *stack;
    let layout = &schema.layout;
    let own = |own: &str, attached: &str| if attaches { attached.to_owned() } else { own.to_owned() };
    let arn = own("${Table.Arn}", ATTACHED);
    let filling = Filling { flags: BTreeSet::new(), values: Vec::new() }.with(
        &[
            ("attaches", attaches),
            ("creates", !attaches),
            ("shipped", shipped),
            ("declared", !shipped),
            ("zipped", zipped),
            ("built", !zipped),
            ("indexes", !layout.indexes.is_empty()),
            ("expires", layout.time_to_live.is_some()),
        ],
        [
            ("{{command}}", command.to_owned()),
            ("{{pk}}", layout.pk.clone()),
            ("{{sk}}", layout.sk.clone()),
            ("{{ledger_pk}}", own(&layout.pk, "!Ref PartitionKey")),
            ("{{ledger_sk}}", own(&layout.sk, "!Ref SortKey")),
            ("{{time_to_live}}", layout.time_to_live.clone().unwrap_or_default()),
            ("{{keys}}", keys(layout)),
            ("{{table}}", own("Table", "TableName")),
            ("{{stream}}", own("!GetAtt Table.StreamArn", "!Ref StreamArn")),
            ("{{table_arn}}", own("!GetAtt Table.Arn", &format!("!Sub {ATTACHED}"))),
            ("{{indexes 18}}", indexes(layout, attaches, &arn, 18)),
            ("{{indexes 14}}", indexes(layout, attaches, &arn, 14)),
            ("{{arn}}", arn),
        ],
    );
    let of_reader = |reader: &StreamReader, part: &str| {
        let counts = reader.families.contains(&Family::Additive);
        let looks = reader.families.contains(&Family::LevelTriggered);
        let values = [
            ("{{Reader}}", reader.name.to_owned()),
            ("{{reader}}", reader.name.to_lowercase()),
            ("{{condition}}", reader.condition.to_owned()),
            ("{{about}}", reader.about.to_owned()),
            ("{{sid}}", reader.sid.to_owned()),
            ("{{filters}}", filters(&needed(schema, catalogue, reader.families), shipped)),
        ];
        filling.with(&[("counts", counts), ("lanes", !counts), ("looks", looks)], values).fill(part)
    };
    let each = |part: &str| READERS.map(|reader| of_reader(&reader, part)).join("\n").trim_end().to_owned();
    filling.with(&[], [("{{readers}}", each(READER)), ("{{alarms}}", each(ALARMS))]).fill(STACK)
}

/// The table's keys and indexes.
fn keys(layout: &Layout) -> String {
    let mut text = "      AttributeDefinitions:\n".to_owned();
    let of_indexes = layout.indexes.iter().flat_map(|index| [&index.pk, &index.sk]);
    let mut defined = BTreeSet::new();
    for name in [&layout.pk, &layout.sk].into_iter().chain(of_indexes).filter(|name| defined.insert(*name)) {
        line(&mut text, &format!("        - {{ AttributeName: {name}, AttributeType: S }}"));
    }
    let schema = |text: &mut String, indent: &str, [pk, sk]: [&str; 2]| {
        line(text, &format!("{indent}KeySchema:"));
        line(text, &format!("{indent}  - {{ AttributeName: {pk}, KeyType: HASH }}"));
        line(text, &format!("{indent}  - {{ AttributeName: {sk}, KeyType: RANGE }}"));
    };
    schema(&mut text, "      ", [&layout.pk, &layout.sk]);
    if !layout.indexes.is_empty() {
        line(&mut text, "      GlobalSecondaryIndexes:");
    }
    for index in &layout.indexes {
        line(&mut text, &format!("        - IndexName: {}", index.name));
        schema(&mut text, "          ", [&index.pk, &index.sk]);
        line(&mut text, "          Projection:");
        if index.projection.is_empty() {
            line(&mut text, "            ProjectionType: KEYS_ONLY");
            continue;
        }
        line(&mut text, "            ProjectionType: INCLUDE");
        line(&mut text, "            NonKeyAttributes:");
        for name in &index.projection {
            line(&mut text, &format!("              - {name}"));
        }
    }
    text.trim_end().to_owned()
}

/// The ARNs of the indexes; one pattern stands for those of an existing table.
fn indexes(layout: &Layout, attaches: bool, arn: &str, indent: usize) -> String {
    let item = |index: &str| format!("{:indent$}- !Sub {arn}/index/{index}", "");
    let names = layout.indexes.iter().map(|index| index.name.as_str());
    let names: Vec<&str> = if attaches { names.take(1).map(|_| "*").collect() } else { names.collect() };
    names.into_iter().map(item).collect::<Vec<_>>().join("\n")
}

/// The filters of a mapping.
fn filters(needed: &Needed, shipped: bool) -> String {
    let patterns: &[String] = match needed {
        Needed::Matching(patterns) => patterns,
        Needed::Nothing => &[NOTHING.to_owned()],
        // Every record is needed.
        Needed::Everything => return String::new(),
    };
    let (head, indent) = if shipped { (CHOSEN, 18) } else { (ALWAYS, 16) };
    let mut text = head.to_owned();
    for pattern in patterns {
        line(&mut text, &format!("{:indent$}- Pattern: '{}'", "", pattern.replace('\'', "''")));
    }
    text.trim_end().to_owned()
}

fn line(text: &mut String, line: &str) {
    // Writing to a text does not fail.
    let _is_written = writeln!(text, "{line}");
}
