//! What each caller may do, by the policies of the template that `ripple infra` prints for the table.
//!
//! A call that the policy of its caller does not permit is denied, as on AWS, and fails the run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use derive::{
    catalogue::Catalogue,
    family::Family,
    schema::Schema,
    write::{Action, Table, Write},
};
use infra::Stack;
use store::faulty::Call;

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

/// The policies of a template.
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
