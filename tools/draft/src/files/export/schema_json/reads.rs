//! The reads of a manifest as access patterns.

use std::collections::BTreeSet;

use derive::{
    access::{Access, AccessFilter, AccessQuery, AccessReads, NextField},
    condition::{Condition, Test},
    expression::{Expression, function::Function},
    query::{Consistency, Order},
};
use serde_json::{Value, json};

use super::{Entity, KEYLESS, Losses, Table, each_once, object};
use crate::text::kebab;

pub(super) const COUNTS: &str = "read of counters";
const BELOW: &str = "read below a path";
const RANGES: &str = "range behind several fields of a key";
const FILTERS: &str = "filter of this form";
const SEVERAL: &str = "choice of entities in a partition";
const ORDERS: &str = "descending order";
const LIMITS: &str = "limit of a page";
const IDS: &str = "id of a read other than a number of its own";
const NAMES: &str = "name of a read with capital letters or `_`";

/// The most items of a page, unless a manifest declares another number.
const LIMIT_DEFAULT: u32 = 100;

/// The number of each read: its id, if that is a number of its own.
pub(super) fn ids(accesses: &[Access], losses: &mut Losses) -> Vec<u64> {
    let number = |access: &Access| access.id.parse::<u64>().ok().filter(|id| id.to_string() == access.id);
    let mut taken = BTreeSet::new();
    let own: Vec<Option<u64>> = accesses.iter().map(|it| number(it).filter(|id| taken.insert(*id))).collect();
    let mut free = (1..).filter(|id| !taken.contains(id));
    let mut ids = Vec::new();
    for (access, own) in accesses.iter().zip(own) {
        if own.is_none() && access.id != access.name {
            losses.add(IDS, format!("`{}` of {}", access.id, access.name));
        }
        ids.extend(own.or_else(|| free.next()));
    }
    ids
}

impl Entity<'_> {
    /// True if a read is among the access patterns of this entity.
    pub(super) fn is_read_by(&self, access: &Access) -> bool {
        access.entities().first().is_some_and(|entity| *entity == self.of.name)
    }

    /// The access pattern of a read, if the form has it. `beside` are the entities of its partition that a reader finds.
    pub(super) fn pattern(
        &self,
        table: &Table<'_>,
        (access, id): (&Access, u64),
        beside: &[&str],
        losses: &mut Losses,
    ) -> Option<Value> {
        let members = match &access.reads {
            AccessReads::Get(_) => Ok(self.by_key("GetItem", "single_entity", None)),
            AccessReads::BatchGet(_) => Ok(self.by_key("BatchGetItem", "entity_list", Some("array"))),
            AccessReads::Query(query) => self.query(table, query),
            AccessReads::Counts(_) => Err(COUNTS),
        };
        let mut lose = |is_lost: bool, what| {
            if is_lost {
                losses.add(what, access.name.clone());
            }
        };
        let mut members = members.map_err(|what| lose(true, what)).ok()?;
        let name = access.name.replace('-', "_");
        lose(kebab(&[&name]) != access.name, NAMES);
        if let AccessReads::Query(query) = &access.reads {
            let is_all = query.index.is_none() && query.entities == beside;
            lose(query.entities.len() > 1 && !is_all, SEVERAL);
            lose(query.order == Order::Descending, ORDERS);
            lose(query.limit != LIMIT_DEFAULT, LIMITS);
        }
        members.extend([
            ("pattern_id", Some(json!(id))),
            ("name", Some(json!(name))),
            ("description", Some(json!(access.about))),
            ("consistent_read", Some(json!(access.consistency == Consistency::Strong))),
        ]);
        Some(object(members))
    }

    /// The type of an input that a condition of a filter compares; `None` if it does not compare this input.
    fn compared(&self, condition: &Value, input: &str) -> Option<&'static str> {
        let one = ["param", "param2"].into_iter().filter_map(|name| condition.get(name));
        let mut inputs = one.chain(condition.get("params").and_then(Value::as_array).into_iter().flatten());
        inputs.any(|it| it == input).then_some(())?;
        match (condition.get("operator"), condition.get("function")) {
            (Some(_), None) => Some(self.type_of(condition.get("field")?.as_str()?)),
            (Some(_), Some(_)) => Some("integer"),
            _ => None,
        }
    }

    fn by_key(&self, operation: &str, returned: &str, of: Option<&str>) -> Members {
        let names = each_once(self.key_fields(None).into_iter().flatten().flatten());
        let parameters = names.into_iter().map(|name| parameter(name, of.unwrap_or(self.type_of(name))));
        members(operation, returned, parameters.collect())
    }

    fn query(&self, table: &Table<'_>, query: &AccessQuery) -> Result<Members, &'static str> {
        let index = query.index.as_ref().map(|index| table.index(index).ok_or(KEYLESS)).transpose()?;
        let index = index.map(|index| index.name.as_str());
        let [pk, _] = self.key_fields(index).ok_or(KEYLESS)?;
        let fields = pk.into_iter().chain(query.fields.iter().map(String::as_str));
        let mut parameters: Vec<Value> = fields.map(|name| parameter(name, self.type_of(name))).collect();
        let range = match &query.next {
            NextField::Any => None,
            NextField::Below(_) => return Err(BELOW),
            NextField::Between(_) if parameters.len() > 1 => return Err(RANGES),
            NextField::Between(field) => {
                parameters.extend(["low", "high"].map(|name| parameter(name, self.type_of(field))));
                Some(json!("between"))
            }
        };
        let filter = query.filter.as_ref().map(|filter| filter_expression(filter).ok_or(FILTERS)).transpose()?;
        for name in query.filter.iter().flat_map(AccessFilter::inputs) {
            let compared = filter.iter().filter_map(|filter| filter.get("conditions")?.as_array()).flatten();
            let mut compared = compared.filter_map(|condition| self.compared(condition, name));
            parameters.push(parameter(name, compared.next().unwrap_or("string")));
        }
        let returned = if query.entities.len() > 1 { "mixed_data" } else { "entity_list" };
        let mut members = members("Query", returned, parameters);
        members.extend([
            ("index_name", index.map(|index| json!(index))),
            ("range_condition", range),
            ("filter_expression", filter),
        ]);
        Ok(members)
    }
}

/// The members of an access pattern.
type Members = Vec<(&'static str, Option<Value>)>;

fn members(operation: &str, returned: &str, parameters: Vec<Value>) -> Members {
    let (operation, returned) = (Some(json!(operation)), Some(json!(returned)));
    vec![("operation", operation), ("return_type", returned), ("parameters", Some(Value::Array(parameters)))]
}

fn parameter(name: &str, of: &str) -> Value {
    json!({ "name": name, "type": of })
}

fn filter_expression(filter: &AccessFilter) -> Option<Value> {
    let (all, operator) = match &filter.condition {
        Condition::And(all) => (all.as_slice(), "AND"),
        Condition::Or(all) => (all.as_slice(), "OR"),
        one => (std::slice::from_ref(one), "AND"),
    };
    let conditions = all.iter().map(condition).collect::<Option<Vec<_>>>()?;
    Some(json!({ "conditions": conditions, "logical_operator": operator }))
}

fn condition(of: &Condition) -> Option<Value> {
    let Condition::Test(test, operands) = of else { return None };
    let (tested, values) = operands.split_first()?;
    let (field, is_size) = match tested {
        Expression::Call(Function::Size, arguments) => (attribute(arguments.first()?)?, true),
        tested => (attribute(tested)?, false),
    };
    let values: Vec<&str> = values.iter().map(|value| attribute(value)?.strip_prefix(':')).collect::<Option<_>>()?;
    let (key, word) = match test {
        Test::Equal => ("operator", "="),
        Test::Differs => ("operator", "<>"),
        Test::Below => ("operator", "<"),
        Test::AtMost => ("operator", "<="),
        Test::Above => ("operator", ">"),
        Test::AtLeast => ("operator", ">="),
        Test::Between => ("operator", "between"),
        Test::In => ("operator", "in"),
        Test::Exists => ("function", "attribute_exists"),
        Test::Lacks => ("function", "attribute_not_exists"),
        Test::BeginsWith => ("function", "begins_with"),
        Test::Contains => ("function", "contains"),
        Test::Type => return None,
    };
    if field.starts_with(':') || (is_size && key == "function") {
        return None;
    }
    let word = Some(json!(word));
    let (operator, function) = match key {
        "operator" => (word, is_size.then(|| json!("size"))),
        _ => (None, word),
    };
    let mut param = values.iter().filter(|_| *test != Test::In).map(|name| json!(name));
    Some(object([
        ("field", Some(json!(field))),
        ("operator", operator),
        ("function", function),
        ("param", param.next()),
        ("param2", param.next()),
        ("params", (*test == Test::In).then(|| json!(values))),
    ]))
}

/// The name of an attribute as a whole; that of a value of the caller begins with a colon.
fn attribute(of: &Expression) -> Option<&str> {
    match of {
        Expression::Path(path) if path.steps.is_empty() => Some(&path.attribute),
        _ => None,
    }
}
