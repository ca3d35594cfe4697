//! Callers of the store: their tasks, what they may do, and the faults of their calls, which are drawn, counted and traced.
//!
//! A call that the policy of its caller does not permit is denied, as on AWS, and fails the run.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use derive::{
    catalogue::Catalogue,
    family::Family,
    guard::Guard,
    schema::Schema,
    write::{Action, Table, Write},
};
use engine::clock::Clock as _;
use infra::Stack;
use store::faulty::{Call, Decider, Fault, Side, TORN};

use crate::scene::Scene;

/// Faults of a read, and of a write before and after it is done, with their weights. Before it is done a write meets others
/// where they overlap; the resend of one that was done may meet them too.
const OF_A_READ: [(FaultKind, usize); 3] =
    [(FaultKind::Unanswered, 4), (FaultKind::Throttle, 2), (FaultKind::Killed, 1)];
const BEFORE_A_WRITE: [(FaultKind, usize); 4] =
    [(FaultKind::Unanswered, 3), (FaultKind::Throttle, 3), (FaultKind::Killed, 1), (FaultKind::Late, 2)];
const AFTER_A_WRITE: [(FaultKind, usize); 5] = [
    (FaultKind::Unanswered, 3),
    (FaultKind::Conflict, 3),
    (FaultKind::Throttle, 3),
    (FaultKind::Killed, 1),
    (FaultKind::Late, 2),
];

#[derive(Clone, Copy)]
enum FaultKind {
    Unanswered,
    Conflict,
    Throttle,
    Killed,
    Late,
}

/// One caller of the store: an invocation, or an operator's command.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    scene: Arc<Scene>,
    name: Arc<str>,
    role: Role,
    gone: Gone,
    /// When its time is over, in milliseconds since the epoch.
    deadline_ms: u64,
    /// Does DynamoDB refuse each call, since its signature has a wrong time?
    is_refused: bool,
}

impl Caller {
    pub(crate) fn new(scene: &Arc<Scene>, name: &Arc<str>, role: Role, gone: &Gone, deadline_ms: u64) -> Self {
        Self {
            scene: Arc::clone(scene),
            name: Arc::clone(name),
            role,
            gone: gone.clone(),
            deadline_ms,
            is_refused: false,
        }
    }

    /// The same, and whether DynamoDB refuses each call.
    pub(crate) fn refused(self, is_refused: bool) -> Self {
        Self { is_refused, ..self }
    }

    /// A deadly call never ends, and takes all of the caller's time.
    fn dies(&self, call: &Call<'_>) {
        self.scene.count("deadly");
        self.scene.trace.note(|| format!("{} {call} : deadly; it is gone", self.name));
        self.scene.clock.advance(self.deadline_ms.saturating_sub(self.scene.clock.now_ms()));
        self.gone.set();
    }

    fn drawn(&self, call: &Call<'_>) -> Option<(Side, FaultKind)> {
        let chance = &self.scene.chance;
        if self.scene.is_healed() || self.scene.per_mille == 0 || chance.below(1000) < 1000 - self.scene.per_mille {
            return None;
        }
        let side = if chance.below(2) == 0 { Side::Before } else { Side::After };
        let kinds: &[(FaultKind, usize)] = match side {
            _ if call.is_read() => &OF_A_READ,
            Side::Before => &BEFORE_A_WRITE,
            Side::After => &AFTER_A_WRITE,
        };
        let weights: Vec<usize> = kinds.iter().map(|(_, weight)| *weight).collect();
        Some((side, kinds[chance.weighted(&weights)].0))
    }

    fn throttled(&self, n_writes: usize) -> BTreeSet<usize> {
        let chance = &self.scene.chance;
        (0..chance.between(1, 3)).map(|_| chance.below(n_writes)).collect()
    }
}

impl Decider for Caller {
    fn fault(&self, call: &Call<'_>) -> Option<(Side, Fault)> {
        if let Some(denied) = self.scene.permissions.denied(self.role, call) {
            self.scene.denied.note(denied);
            return Some((Side::Before, Fault::Denied));
        }
        if self.is_refused {
            return Some((Side::Before, Fault::Unanswered));
        }
        if self.scene.is_deadly(call) {
            self.dies(call);
            return Some((Side::Before, Fault::Killed));
        }
        let (side, kind) = self.drawn(call)?;
        let (name, fault) = match kind {
            FaultKind::Unanswered => ("unanswered", Fault::Unanswered),
            FaultKind::Conflict => ("conflict", Fault::Conflict(self.scene.chance.below(call.n_writes()))),
            FaultKind::Throttle => ("throttle", Fault::Throttle(self.throttled(call.n_writes()))),
            FaultKind::Killed => ("killed", Fault::Killed),
            FaultKind::Late => ("late", Fault::Late),
        };
        self.scene.count_call(name, side);
        if matches!((side, kind), (_, FaultKind::Killed) | (Side::Before, FaultKind::Late)) {
            self.scene.trace.note(|| format!("{} {call} : {fault:?}, {side:?}; it is gone", self.name));
            self.gone.set();
        }
        Some((side, fault))
    }

    fn conflicts(&self, call: &Call<'_>) -> bool {
        self.scene.count_call("conflict", Side::Before);
        self.scene.trace.note(|| format!("{} {call} : meets another caller's on an item", self.name));
        true
    }

    fn ended(&self, call: &Call<'_>, how: &str) {
        self.scene.trace.note(|| format!("{} {call} : {how}", self.name));
        if how == TORN {
            self.scene.count(if matches!(call, Call::Get(..)) { "torn reads" } else { "torn pages" });
        }
        if matches!(call, Call::Write(write) if write.key.pk.starts_with("ATTEMPTS#")) {
            self.gone.noted(!how.starts_with("not done"));
        }
    }

    fn sends(&self, guard: &Guard) -> bool {
        self.scene.config.mutant.is_none_or(|mutant| mutant.sends(guard))
    }
}

// ---- Futures that are polled by hand, so that the scheduler chooses which of them continues ----

/// Most turns of a task that runs alone. After these it counts as endless.
const TURNS_MAX: usize = 100_000;

/// A future that runs beside others, one turn at a time.
pub(crate) struct Task<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    gone: Gone,
}

/// Is a caller gone? Then its task is dropped at its next stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gone {
    is_gone: Arc<AtomicBool>,
    is_unnoted: Arc<AtomicBool>,
}

/// The state of a task after a turn.
pub(crate) enum Turn<T> {
    Runs,
    Ended(T),
    /// Its caller is gone; the task is to be dropped.
    Gone,
}

impl Gone {
    /// Another caller of the same process: both are gone at once.
    pub(crate) fn beside(&self) -> Self {
        Self { is_gone: Arc::clone(&self.is_gone), is_unnoted: Arc::default() }
    }

    pub(crate) fn set(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Was the end of its attempt written? If not, the next attempt assumes that it died.
    pub(crate) fn noted(&self, is_noted: bool) {
        self.is_unnoted.store(!is_noted, Ordering::Relaxed);
    }

    pub(crate) fn is_unnoted(&self) -> bool {
        self.is_unnoted.load(Ordering::Relaxed)
    }
}

impl<T> Task<T> {
    /// A task that has not begun.
    pub(crate) fn new(gone: &Gone, future: impl Future<Output = T> + 'static) -> Self {
        Self { future: Box::pin(future), gone: gone.clone() }
    }

    /// Runs it until its next stop.
    pub(crate) fn turn(&mut self) -> Turn<T> {
        let polled = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            _ if self.gone.is_set() => Turn::Gone,
            Poll::Ready(value) => Turn::Ended(value),
            Poll::Pending => Turn::Runs,
        }
    }

    /// Runs it for a turn. True when it has ended.
    pub(crate) fn ends(&mut self) -> bool {
        matches!(self.turn(), Turn::Ended(_))
    }

    /// Runs it alone to its end; `None` when its caller is gone before.
    pub(crate) fn finish(&mut self) -> Option<T> {
        for _ in 0..TURNS_MAX {
            match self.turn() {
                Turn::Runs => {}
                Turn::Ended(value) => return Some(value),
                Turn::Gone => return None,
            }
        }
        panic!("after {TURNS_MAX} turns it still runs");
    }
}

/// The value of a future that waits for nothing.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the model answers at once"),
    }
}

// ---- What each caller may do, by the policies of the template that `ripple infra` prints for the table ----

/// Whose policy decides about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Aggregate,
    Propagate,
    Combined,
    Sweep,
    Operator,
}

const ROLES: [Role; 5] = [Role::Aggregate, Role::Propagate, Role::Combined, Role::Sweep, Role::Operator];

impl Role {
    /// The role of a caller of this name.
    pub(crate) fn of(caller: &str) -> Self {
        match caller {
            "aggregate" => Self::Aggregate,
            "propagate" => Self::Propagate,
            "combined" => Self::Combined,
            "sweeper" | "slice" => Self::Sweep,
            "operator" | "wrong operator" | "verify" | "repair" | "careless repair" => Self::Operator,
            other => panic!("no role is known for {other}"),
        }
    }

    /// The role of the function that runs these families.
    pub(crate) fn of_function(families: &[Family]) -> Self {
        match families {
            [Family::Additive] => Self::Aggregate,
            [Family::LevelTriggered] => Self::Propagate,
            _ => Self::Combined,
        }
    }

    /// The resource of a template that has its policy.
    fn resource(self) -> &'static str {
        match self {
            Self::Aggregate => "AggregateRole",
            Self::Propagate => "PropagateRole",
            Self::Combined => "CombinedRole",
            Self::Sweep => "SweepRole",
            Self::Operator => "OperatorPolicy",
        }
    }
}

/// The names of permitted actions on one resource.
type Actions = BTreeSet<String>;

/// The permitted actions of one policy.
#[derive(Debug, Default)]
struct Policy {
    table: Actions,
    ledger: Actions,
    /// By the names of the schema.
    indexes: BTreeMap<String, Actions>,
}

#[derive(Debug)]
pub(crate) struct Permissions(BTreeMap<Role, Policy>);

impl Permissions {
    /// Those of the template that makes the tables of this schema. They do not depend on the derivations, whose filters take
    /// most of the time that a template takes.
    pub(crate) fn of(schema: &Schema) -> Self {
        let catalogue = &Catalogue::new(schema, Vec::new()).unwrap();
        let stack = Stack { schema, catalogue, attaches: false, shipped: false, zipped: true, command: "" };
        let template = infra::template(&stack);
        Self(ROLES.into_iter().map(|role| (role, Policy::read(&template, role.resource(), schema))).collect())
    }

    /// The first action of a call that the role does not permit, as a message.
    pub(crate) fn denied(&self, role: Role, call: &Call<'_>) -> Option<String> {
        let policy = &self.0[&role];
        let denies =
            |(resource, action): &(Resource<'_>, &str)| !policy.on(*resource).is_some_and(|it| it.contains(*action));
        let (resource, action) = actions(call).into_iter().find(denies)?;
        Some(format!("{} permits no dynamodb:{action} on {resource:?}: {call}", role.resource()))
    }
}

/// What a statement is about.
#[derive(Clone, Copy, Debug)]
enum Resource<'a> {
    Table(Table),
    Index(&'a str),
}

/// The actions of a call, as a policy names them.
fn actions<'a>(call: &Call<'a>) -> Vec<(Resource<'a>, &'static str)> {
    let of_write = |write: &Write| {
        let action = match &write.action {
            Action::Put(_) => "PutItem",
            Action::Update(_) => "UpdateItem",
            Action::Delete => "DeleteItem",
            Action::Check => "ConditionCheckItem",
        };
        (Resource::Table(write.table), action)
    };
    match *call {
        Call::Get(_, []) => Vec::new(),
        Call::Get(table, [_]) => vec![(Resource::Table(table), "GetItem")],
        Call::Get(table, _) => vec![(Resource::Table(table), "BatchGetItem")],
        Call::Query(table, query) => {
            let resource = query.index.as_deref().map_or(Resource::Table(table), Resource::Index);
            vec![(resource, "Query")]
        }
        Call::Scan(table) => vec![(Resource::Table(table), "Scan")],
        Call::Write(write) => vec![of_write(write)],
        Call::Transact(transaction) => transaction.writes().iter().map(of_write).collect(),
    }
}

impl Policy {
    fn on(&self, resource: Resource<'_>) -> Option<&Actions> {
        match resource {
            Resource::Table(Table::Main) => Some(&self.table),
            Resource::Table(Table::Ledger) => Some(&self.ledger),
            Resource::Index(name) => self.indexes.get(name),
        }
    }

    /// Reads the statements of a resource of the template, whose lines end with an empty one.
    fn read(template: &str, resource: &str, schema: &Schema) -> Self {
        let (_, rest) = template.split_once(&format!("\n  {resource}:\n")).unwrap();
        let lines = rest.lines().take_while(|line| !line.is_empty()).map(|line| line.trim().trim_start_matches("- "));
        let lines: Vec<&str> = lines.collect();
        let mut policy = Self::default();
        for statement in lines.split(|line| line.starts_with("Sid: ")).skip(1) {
            let actions: Actions =
                statement.iter().filter_map(|line| line.strip_prefix("dynamodb:")).map(str::to_owned).collect();
            if actions.is_empty() {
                continue;
            }
            let resources = statement.iter().map(|line| line.trim_start_matches("Resource: "));
            for arn in resources.filter(|line| line.starts_with('!')) {
                policy.permit(&actions, arn, schema);
            }
        }
        policy
    }

    fn permit(&mut self, actions: &Actions, arn: &str, schema: &Schema) {
        if arn == "!GetAtt LedgerTable.Arn" {
            self.ledger.extend(actions.clone());
        } else if let Some((_, stored)) = arn.split_once("/index/") {
            let forms = schema.layout.forms.as_deref();
            let is_it = |inside: &str| match forms.and_then(|forms| forms.index(inside)) {
                Some((_, form)) => form.name == stored,
                None => inside == stored,
            };
            let indexes = schema.layout.indexes.iter().filter(|index| is_it(&index.name));
            self.indexes.extend(indexes.map(|index| (index.name.clone(), actions.clone())));
        } else if arn.ends_with("Table.Arn") {
            self.table.extend(actions.clone());
        }
    }
}

/// The first call of a run that was denied.
#[derive(Debug, Default)]
pub(crate) struct Denied(OnceLock<String>);

impl Denied {
    /// Notes a call that was denied.
    pub(crate) fn note(&self, denied: String) {
        self.0.get_or_init(|| denied);
    }

    pub(crate) fn first(&self) -> Option<&String> {
        self.0.get()
    }
}
