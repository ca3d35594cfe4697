//! The infrastructure of a table: a SAM template of tables, functions, mappings with filters, roles, alarms and
//! dashboard.
//!
//! [`mod@mapping`] gives the same event source mappings with their filters as values, for the functions of
//! `ripple dev`. [`wrapped`] puts a template into what other tools deploy.
//!
//! The text stands in parts beside this file. A line that begins with flags, as in `@creates,expires|`, is there only
//! if all of them hold; `{{name}}` stands for a value.
//!
//! *Example*: `@attaches|    Default: {{pk}}` becomes `    Default: PK` in the template for an existing table.

pub mod mapping;
pub mod steps;
mod tables;
pub mod wrapped;

use std::collections::BTreeSet;

use derive::{catalogue::Catalogue, family::Family, schema::Schema};

use crate::{
    mapping::{BATCH_SIZE, BATCHING_WINDOW_S, LANES, Needed, RECORD_AGE_S, StreamTable, TUMBLING_WINDOW_S, needed},
    steps::{Deployed, IndexStep, next},
    tables::{StackTable, all, line, scalar},
};

const STACK: &str = include_str!("stack.yaml");
const READER: &str = include_str!("reader.yaml");
const MAPPING: &str = include_str!("mapping.yaml");
const ALARMS: &str = include_str!("alarms.yaml");
const MAPPING_ALARMS: &str = include_str!("mapping_alarms.yaml");
const GAUGE_ALARM: &str = include_str!("gauge_alarm.yaml");
const READER_OUTPUTS: &str = include_str!("reader_outputs.yaml");
const MAPPING_OUTPUTS: &str = include_str!("mapping_outputs.yaml");
const CUSTOMER_KEY: &str = include_str!("customer_key.yaml");
const TABLE: &str = include_str!("table.yaml");
const TABLE_PARAMETERS: &str = include_str!("table_parameters.yaml");
const TABLE_CONDITIONS: &str = r#"  Named{{Table}}Table: !Not [!Equals [!Ref {{Table}}TableName, ""]]
  Has{{Table}}TableStream: !Not [!Equals [!Ref {{Table}}TableStream, ""]]
"#;
const TABLE_OUTPUTS: &str = include_str!("table_outputs.yaml");

/// A pattern for a function without derivations, which no record matches.
pub const NOTHING: &str = r#"{"eventName":["NONE"]}"#;

/// The head of filters that are left out with a manifest of another table, and of those that always hold.
const CHOSEN: &str = "            FilterCriteria: !If\n              - OwnConfig\n              - !Ref AWS::NoValue\n              - \
                      Filters:\n";
const ALWAYS: &str = "            FilterCriteria:\n              Filters:\n";

/// A gauge of the sweep, and the alarm on it.
struct Gauge {
    alarm: &'static str,
    metric: &'static str,
    /// Who is notified: `Page` within hours, `Ticket` otherwise.
    topic: &'static str,
    means: &'static str,
    section: &'static str,
}

const GAUGES: [Gauge; 7] = [
    Gauge {
        alarm: "StreamChanged",
        metric: "StreamChanged",
        topic: "Page",
        means: "A stream is disabled, or is not the one that the functions read.",
        section: "stream-changed",
    },
    Gauge {
        alarm: "Parked",
        metric: "ParkedChanges",
        topic: "Ticket",
        means: "Changes are parked: correct the cause, and redrive them.",
        section: "parked",
    },
    Gauge {
        alarm: "Recount",
        metric: "CountsToRecount",
        topic: "Ticket",
        means: "Counts are listed for a recount: verify and repair.",
        section: "recount",
    },
    Gauge {
        alarm: "Unreadable",
        metric: "UnreadableItems",
        topic: "Ticket",
        means: "Items have values that a derivation cannot interpret, so they count as absent.",
        section: "unreadable",
    },
    Gauge {
        alarm: "PossibleLoss",
        metric: "PossibleLosses",
        topic: "Ticket",
        means: "Records may be lost: verify and repair.",
        section: "possible-loss",
    },
    Gauge {
        alarm: "BlockedCascades",
        metric: "BlockedCascades",
        topic: "Ticket",
        means: "Cascades are due and blocked: items of a removed owner stay.",
        section: "blocked-cascades",
    },
    Gauge {
        alarm: "Drift",
        metric: "Drift",
        topic: "Ticket",
        means: "Derived values stay wrong, and no pending change corrects them.",
        section: "drift",
    },
];

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
    /// The table, or several.
    pub schema: &'a Schema,
    /// The derivations.
    pub catalogue: &'a Catalogue,
    /// Do the application's tables exist? Then the template makes the rest.
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
            let filled = self.filled(line);
            // A value of no lines takes its line along.
            if !filled.is_empty() || line.is_empty() {
                text.extend([filled.as_str(), "\n"]);
            }
        }
        text
    }

    /// The line with its values. A value that contains a placeholder, such as a name of the manifest, stays as it is.
    fn filled(&self, line: &str) -> String {
        let (mut text, mut rest) = (String::new(), line);
        while let Some((before, after)) = rest.split_once('{') {
            let found = self.values.iter().find_map(|(name, value)| {
                let after = after.strip_prefix(name.strip_prefix('{')?)?;
                Some((value.as_str(), after))
            });
            let (value, after) = found.unwrap_or(("{", after));
            text.extend([before, value]);
            rest = after;
        }
        text + rest
    }
}

/// The template.
#[must_use]
pub fn template(stack: &Stack<'_>) -> String {
    template_after(stack, None).0
}

/// The template of the next deployment after this one, and the steps that change the indexes of its tables. The first
/// step of each table is in the template.
#[must_use]
pub fn template_after(stack: &Stack<'_>, deployed: Option<&Deployed>) -> (String, Vec<IndexStep>) {
    let (mut tables, mut steps) = (all(stack.schema, stack.attaches), Vec::new());
    for table in tables.iter_mut().filter(|table| table.is_made) {
        let Some(deployed) = deployed else { continue };
        let id = table.reference();
        let (indexes, mut of_table) = next(&id, std::mem::take(&mut table.indexes), deployed.of(&id));
        table.indexes = indexes;
        for step in &mut of_table {
            step.find_users(stack.schema, stack.catalogue, &table.stream_table.declared());
        }
        steps.extend(of_table);
    }
    let filling = of_stack(stack, &tables);
    let each = |part: &str, wanted: &dyn Fn(&StackTable<'_>) -> bool| {
        let parts = tables.iter().filter(|table| wanted(table)).map(|table| of_table(&filling, table).fill(part));
        parts.collect::<String>().trim_end().to_owned()
    };
    let made: Vec<String> =
        tables.iter().filter(|it| it.is_made).map(|it| of_table(&filling, it).fill(TABLE)).collect();
    let conditions = each(TABLE_CONDITIONS, &|it| it.is_made);
    let readers = READERS.each_ref().map(|reader| of_reader(&filling, stack, reader, &tables));
    let each_reader = |part: &str| {
        let parts: Vec<String> = readers.iter().map(|reader| reader.fill(part)).collect();
        parts.join("\n").trim_end().to_owned()
    };
    let values = [
        ("{{table_parameters}}", each(TABLE_PARAMETERS, &|_| true)),
        ("{{table_conditions}}", conditions),
        ("{{tables}}", made.join("\n").trim_end().to_owned()),
        ("{{table_outputs}}", each(TABLE_OUTPUTS, &|_| true)),
        ("{{readers}}", each_reader(READER)),
        ("{{reader_outputs}}", each_reader(READER_OUTPUTS)),
        ("{{alarms}}", each_reader(ALARMS)),
        ("{{gauge_alarms}}", gauge_alarms(&filling)),
    ];
    (filling.with(&[], values).fill(STACK), steps)
}

/// The alarms on the gauges of the sweep.
fn gauge_alarms(filling: &Filling) -> String {
    let of_gauge = |gauge: &Gauge| {
        let values = [
            ("{{Gauge}}", gauge.alarm.to_owned()),
            ("{{gauge_metric}}", gauge.metric.to_owned()),
            ("{{gauge_topic}}", gauge.topic.to_owned()),
            ("{{gauge_means}}", gauge.means.to_owned()),
            ("{{gauge_section}}", gauge.section.to_owned()),
        ];
        filling.with(&[], values).fill(GAUGE_ALARM)
    };
    GAUGES.each_ref().map(of_gauge).join("\n").trim_end().to_owned()
}

/// The statements for a customer key, indented so far.
fn customer_key(writes: bool, indent: usize) -> String {
    let text =
        Filling { flags: BTreeSet::new(), values: Vec::new() }.with(&[("writes", writes)], []).fill(CUSTOMER_KEY);
    text.lines().map(|line| format!("{:indent$}{line}", "")).collect::<Vec<_>>().join("\n")
}

/// The tables with a stream, each with the id of the event by which a function reads it.
#[must_use]
pub fn stream_events(schema: &Schema) -> Vec<(StreamTable<'_>, String)> {
    let tables = all(schema, false);
    tables.into_iter().map(|table| (table.stream_table, format!("{}Stream", table.id))).collect()
}

/// What is the same in all parts.
fn of_stack(stack: &Stack<'_>, tables: &[StackTable<'_>]) -> Filling {
    let Stack { schema, attaches, shipped, zipped, command, .. } = *stack;
    let (layout, is_several) = (&schema.layout, schema.layout.forms.is_some());
    let streams: Vec<String> = tables.iter().map(StackTable::stream).collect();
    let indexes: Vec<String> = tables.iter().flat_map(StackTable::indexes).collect();
    let arns: Vec<String> = tables.iter().map(StackTable::arn_value).collect();
    let any_stream: Vec<String> = tables.iter().map(|table| format!("!Sub {}/stream/*", table.arn())).collect();
    let called = tables.iter().map(|table| format!("\\\"${{{}}}\\\"", table.reference()));
    let names = tables
        .iter()
        .filter_map(|table| Some(format!("{}=${{{}}}", table.stream_table.form()?.name, table.reference())));
    let ledger = |own: &str, attached: &str| if attaches && !is_several { attached.to_owned() } else { scalar(own) };
    Filling { flags: BTreeSet::new(), values: Vec::new() }.with(
        &[
            ("attaches", attaches),
            ("creates", !attaches),
            ("single", !is_several),
            ("several", is_several),
            ("shipped", shipped),
            ("declared", !shipped),
            ("zipped", zipped),
            ("built", !zipped),
            ("indexes", !indexes.is_empty()),
        ],
        [
            ("{{command}}", command.replace(char::is_control, " ")),
            ("{{gauges}}", GAUGES.each_ref().map(|gauge| format!("\\\"{}\\\"", gauge.metric)).join(" OR ")),
            ("{{customer_key 14}}", customer_key(true, 14)),
            ("{{customer_key 10}}", customer_key(true, 10)),
            ("{{customer_key read 10}}", customer_key(false, 10)),
            ("{{pk}}", scalar(&layout.pk)),
            ("{{sk}}", scalar(&layout.sk)),
            ("{{ledger_pk}}", ledger(&layout.pk, "!Ref PartitionKey")),
            ("{{ledger_sk}}", ledger(&layout.sk, "!Ref SortKey")),
            ("{{table}}", tables.first().map(StackTable::reference).unwrap_or_default()),
            ("{{names}}", names.collect::<Vec<_>>().join(",")),
            ("{{called}}", called.collect::<Vec<_>>().join(" OR ")),
            ("{{A}}", if is_several { "A table's" } else { "The table's" }.to_owned()),
            (
                "{{stream_arn}}",
                if is_several { format!("!Join [\",\", [{}]]", streams.join(", ")) } else { streams.concat() },
            ),
            ("{{table_arns 18}}", list(&arns, 18)),
            ("{{table_arns 14}}", list(&arns, 14)),
            ("{{streams_any 18}}", list(&any_stream, 18)),
            ("{{streams_any 14}}", list(&any_stream, 14)),
            ("{{indexes 18}}", list(&indexes, 18)),
            ("{{indexes 14}}", list(&indexes, 14)),
        ],
    )
}

/// The parts of a table.
fn of_table(filling: &Filling, table: &StackTable<'_>) -> Filling {
    let described = table.described();
    let time_to_live = table.stream_table.declared().time_to_live.clone();
    filling.with(
        &[("made", table.is_made), ("attached", !table.is_made), ("expires", time_to_live.is_some())],
        [
            ("{{Table}}", table.id.clone()),
            ("{{The table}}", capitalized(&described)),
            ("{{the table}}", described),
            ("{{keys}}", table.keys()),
            ("{{time_to_live}}", scalar(&time_to_live.unwrap_or_default())),
            ("{{stream}}", table.stream()),
        ],
    )
}

/// The parts of a function that reads the streams: a mapping, with its alarms, for each table that it needs records of.
fn of_reader(filling: &Filling, stack: &Stack<'_>, reader: &StreamReader, tables: &[StackTable<'_>]) -> Filling {
    let counts = reader.families.contains(&Family::Additive);
    let looks = reader.families.contains(&Family::LevelTriggered);
    let values = [
        ("{{Reader}}", reader.name.to_owned()),
        ("{{reader}}", reader.name.to_lowercase()),
        ("{{condition}}", reader.condition.to_owned()),
        ("{{about}}", reader.about.to_owned()),
        ("{{sid}}", reader.sid.to_owned()),
    ];
    let filling = filling.with(&[("counts", counts), ("lanes", !counts), ("looks", looks)], values);
    let each = tables.iter().map(|table| (table, needed(table.stream_table, stack.catalogue, reader.families)));
    let mut read: Vec<(&StackTable<'_>, Needed)> = each.collect();
    // A function without derivations reads no stream of several; SAM wants one event all the same.
    if read.iter().any(|(_, needed)| *needed != Needed::Nothing) {
        read.retain(|(_, needed)| *needed != Needed::Nothing);
    } else {
        read.truncate(1);
    }
    let is_several = tables.len() > 1;
    let mapping = |(table, needed): &(&StackTable<'_>, Needed), part: &str| {
        let described = if is_several { table.described() } else { "the table".to_owned() };
        let of_table = if is_several { format!(" of {described}") } else { String::new() };
        let values = [
            ("{{Table}}", table.id.clone()),
            ("{{The table}}", capitalized(&described)),
            ("{{the table}}", described.clone()),
            ("{{of_table}}", of_table),
            ("{{written}}", table.reference()),
            ("{{stream}}", table.stream()),
            ("{{filters}}", filters(needed, stack.shipped)),
            ("{{batch_size}}", BATCH_SIZE.to_string()),
            ("{{batching_window}}", BATCHING_WINDOW_S.to_string()),
            ("{{tumbling_window}}", TUMBLING_WINDOW_S.to_string()),
            ("{{lanes}}", LANES.to_string()),
            ("{{record_age}}", RECORD_AGE_S.to_string()),
        ];
        filling.with(&[], values).fill(part)
    };
    let mappings: String = read.iter().map(|it| mapping(it, MAPPING)).collect();
    let alarms: Vec<String> = read.iter().map(|it| mapping(it, MAPPING_ALARMS)).collect();
    let outputs: String = read.iter().map(|it| mapping(it, MAPPING_OUTPUTS)).collect();
    let streams: Vec<String> = read.iter().map(|(table, _)| table.stream()).collect();
    let values = [
        ("{{mappings}}", mappings.trim_end().to_owned()),
        ("{{mapping_outputs}}", outputs.trim_end().to_owned()),
        ("{{mapping_alarms}}", alarms.join("\n").trim_end().to_owned()),
        ("{{streams 18}}", list(&streams, 18)),
    ];
    filling.with(&[], values)
}

/// The items of a list, a line each.
fn list(items: &[String], indent: usize) -> String {
    items.iter().map(|item| format!("{:indent$}- {item}", "")).collect::<Vec<_>>().join("\n")
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
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
        line(&mut text, &format!("{:indent$}- Pattern: {}", "", scalar(pattern)));
    }
    text.trim_end().to_owned()
}
