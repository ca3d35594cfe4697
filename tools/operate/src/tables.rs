//! What an operator works on, and what is asked for.

use std::{path::PathBuf, sync::Arc};

use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use engine::{batch::Engine, clock::SystemClock, registry::watch::RegistryWatch};
use store::Store;
use stream::shared::Stream;

use crate::{failure::OperateError, verify::scope::Scope};

/// How often an operator's engine looks at the registry, in milliseconds.
const LEARN_MS: u64 = 1_000;

/// The application's table and the ledger's, with what is declared of them.
pub struct Deployment<S> {
    /// The schema.
    pub schema: Arc<Schema>,
    /// The catalogue.
    pub catalogue: Arc<Catalogue>,
    /// Both tables.
    pub store: Arc<S>,
    /// Name of the application's table.
    pub name: String,
    /// ARN of the application's table.
    pub arn: String,
    /// Its stream; `None` where it has none.
    pub stream: Option<TableStream>,
    /// About how many items it has.
    pub n_items: u64,
    /// Is it on the real AWS, where nobody can read how far the functions are?
    pub is_aws: bool,
}

/// The stream of a table.
pub struct TableStream {
    /// Its ARN.
    pub arn: String,
    /// The stream.
    pub stream: Stream,
}

impl<S: Store> Deployment<S> {
    /// An engine that runs all derivations, as an operator's command has it.
    #[must_use]
    pub fn engine(&self) -> Engine<Arc<S>> {
        let families = vec![Family::Additive, Family::LevelTriggered];
        let (schema, catalogue) = (Arc::clone(&self.schema), Arc::clone(&self.catalogue));
        let engine = Engine::new(schema, catalogue, families, Arc::clone(&self.store), Arc::new(SystemClock));
        engine.watching(RegistryWatch::reading(LEARN_MS))
    }
}

/// What is verified, and how.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Only these derivations; all where none is named.
    pub derivation: Vec<String>,
    /// Only items of these entities, and counts about them; all where none is named.
    pub entity: Vec<String>,
    /// Only items, and counts about items, whose partition key begins so.
    pub pk: String,
    /// Only items, and counts about items, of this sort key.
    pub sk: Option<String>,
    /// Segments of the table that are read side by side.
    pub segments: u32,
    /// Most read units a second.
    pub read_units: Option<u32>,
    /// Does nobody write, and has no function anything left to do?
    pub at_rest: bool,
    /// On the real AWS, the greatest iterator age that the functions reported lately, in seconds.
    pub iterator_age: Option<u64>,
    /// How long the functions are waited for, in seconds, before what differs is undecided.
    pub wait: u64,
    /// File that keeps what was read; one that goes with the verification where none is named.
    pub resume: Option<PathBuf>,
}

impl Default for VerifyOptions {
    /// All of a table, while writes go on.
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
            resume: None,
        }
    }
}

/// What is verified, in words.
pub(crate) fn part(args: &VerifyOptions) -> String {
    let VerifyOptions { derivation, entity, pk, sk, .. } = args;
    let listed = [("derivation", derivation.join(",")), ("entity", entity.join(",")), ("pk", pk.clone())];
    let given = listed.into_iter().chain([("sk", sk.clone().unwrap_or_default())]);
    let given: Vec<String> =
        given.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name} {value}")).collect();
    if given.is_empty() { "all".to_owned() } else { given.join(", ") }
}

/// What is asked for, as far as it is declared.
pub(crate) fn scope<S>(opened: &Deployment<S>, args: &VerifyOptions) -> Result<Scope, OperateError> {
    for name in &args.derivation {
        if opened.catalogue.position(name).is_none() {
            return Err(OperateError::Usage(format!("there is no derivation {name}; `ripple design` lists them")));
        }
    }
    for name in &args.entity {
        if opened.schema.entity(name).is_none() {
            return Err(OperateError::Usage(format!("there is no entity {name}; `ripple design` lists them")));
        }
    }
    Ok(Scope {
        derivations: args.derivation.iter().cloned().collect(),
        entities: args.entity.iter().cloned().collect(),
        pk_prefix: args.pk.clone(),
        sk: args.sk.clone(),
    })
}
