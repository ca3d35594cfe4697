//! The tables that an operator works on, and the options of a verification.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use derive::{catalogue::Catalogue, derivation::Derivation, family::Family, schema::Schema};
use engine::{batch::Engine, clock::SystemClock, registry::RegistryWatch};
use manifest::error::meant_or_listed;
use store::Store;
use stream::source::Stream;

use crate::{OperateError, verify::Scope};

/// Time between two reads of the registry by an operator's engine, in milliseconds.
const LEARN_MS: u64 = 1_000;

/// The application's and the ledger's table, with their declarations.
pub struct Deployment<S> {
    /// The schema.
    pub schema: Arc<Schema>,
    /// The catalogue.
    pub catalogue: Arc<Catalogue>,
    /// Both tables.
    pub store: Arc<S>,
    /// Name of the application's table. With several tables: of the one with Ripple's own items.
    pub name: String,
    /// ARN of that table.
    pub arn: String,
    /// The streams of the application's tables.
    pub streams: Vec<TableStream>,
    /// Number of items, as DynamoDB last counted them.
    pub n_items: u64,
    /// Size of the items in bytes, as DynamoDB last added them up.
    pub bytes: u64,
    /// True on the real AWS, where the functions' progress cannot be read.
    pub is_aws: bool,
}

/// The stream of a table.
#[derive(Clone)]
pub struct TableStream {
    /// Its ARN.
    pub arn: String,
    /// The stream.
    pub stream: Stream,
}

impl<S: Store> Deployment<S> {
    /// An engine that runs all derivations, for an operator's command.
    #[must_use]
    pub fn engine(&self) -> Engine<Arc<S>> {
        self.engine_over(Arc::clone(&self.store), LEARN_MS)
    }

    /// The same over another store, with this time between two reads of the registry, in milliseconds.
    #[must_use]
    pub fn engine_over<T: Store>(&self, store: T, learn_ms: u64) -> Engine<T> {
        let families = vec![Family::Additive, Family::LevelTriggered];
        let (schema, catalogue) = (Arc::clone(&self.schema), Arc::clone(&self.catalogue));
        let engine = Engine::new(schema, catalogue, families, store, Arc::new(SystemClock));
        engine.watching(RegistryWatch::reading(learn_ms))
    }
}

/// The options of a verification.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Only these derivations; all if empty.
    pub derivation: Vec<String>,
    /// Only items of these entities, and counts about them; all if empty.
    pub entity: Vec<String>,
    /// Only items, and counts about items, whose partition key begins with this.
    pub pk: String,
    /// Only items, and counts about items, with this sort key.
    pub sk: Option<String>,
    /// Number of segments of the table to read in parallel.
    pub segments: u32,
    /// Limit on read units a second.
    pub read_units: Option<u32>,
    /// Treats every difference as a finding: no program writes, and the functions have no work left.
    pub at_rest: bool,
    /// The greatest recent iterator age of the functions, in seconds; for the real AWS.
    pub iterator_age: Option<u64>,
    /// How long to wait for the functions, in seconds, before a difference is undecided.
    pub wait: u64,
    /// True if unreadable items do not count as a failure.
    pub allow_unreadable: bool,
    /// File that keeps the progress; a temporary one if `None`.
    pub progress: Option<PathBuf>,
}

impl Default for VerifyOptions {
    /// The whole table, while writes continue.
    fn default() -> Self {
        Self {
            derivation: Vec::new(),
            entity: Vec::new(),
            pk: String::new(),
            sk: None,
            segments: 4,
            read_units: None,
            at_rest: false,
            iterator_age: None,
            wait: 60,
            allow_unreadable: false,
            progress: None,
        }
    }
}

/// The scope in words.
pub(crate) fn part(args: &VerifyOptions) -> String {
    let given = given(args, ["derivation", "entity", "pk", "sk"]);
    if given.is_empty() { "all".to_owned() } else { given.join(", ") }
}

/// The options that select items, if any is given.
pub(crate) fn selection(args: &VerifyOptions) -> Option<String> {
    let args = VerifyOptions { derivation: Vec::new(), ..args.clone() };
    let given = given(&args, ["--derivation", "--entity", "--pk", "--sk"]);
    (!given.is_empty()).then(|| given.join(" "))
}

/// What is given for a derivation, entity, partition key and sort key, under these names.
fn given(args: &VerifyOptions, names: [&str; 4]) -> Vec<String> {
    let VerifyOptions { derivation, entity, pk, sk, .. } = args;
    let values = [derivation.join(","), entity.join(","), pk.clone(), sk.clone().unwrap_or_default()];
    let named = names.into_iter().zip(values).filter(|(_, value)| !value.is_empty());
    named.map(|(name, value)| format!("{name} {value}")).collect()
}

/// The error for the name of a derivation that does not exist.
pub(crate) fn no_derivation(catalogue: &Catalogue, name: &str) -> OperateError {
    let counted = name.strip_suffix("-display").filter(|count| catalogue.called(count).is_some());
    let near = match counted {
        Some(count) => format!(": its values are corrected with those of {count}, so name {count}"),
        None => meant_or_listed(name, catalogue.derivations().map(Derivation::label)),
    };
    OperateError::Usage(format!("there is no derivation {name}{near}"))
}

/// The scope; an error if it names something undeclared.
pub(crate) fn scope<S>(opened: &Deployment<S>, args: &VerifyOptions) -> Result<Scope, OperateError> {
    let mut derivations = BTreeSet::new();
    for name in &args.derivation {
        let Some(at) = opened.catalogue.called(name) else { return Err(no_derivation(&opened.catalogue, name)) };
        derivations.insert(opened.catalogue.name(at).to_owned());
    }
    for name in &args.entity {
        if opened.schema.entity(name).is_none() {
            let near = meant_or_listed(name, opened.schema.entities().map(|entity| entity.name.as_str()));
            return Err(OperateError::Usage(format!("there is no entity {name}{near}")));
        }
    }
    Ok(Scope {
        derivations,
        entities: args.entity.iter().cloned().collect(),
        pk_prefix: args.pk.clone(),
        sk: args.sk.clone(),
    })
}
