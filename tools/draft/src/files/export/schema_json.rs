//! A `schema.json` of the DynamoDB MCP server.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    access::{Access, AccessFilter, AccessQuery, AccessReads, NextField},
    condition::{Condition, Test},
    expression::{Expression, function::Function},
    query::{Consistency, Order},
};
use keys::{
    entity::Definition,
    tables::{IndexForm, KeyAttribute, KeyType, TableForm},
    template::{Piece, Template, form::Form},
};
use serde_json::{Map, Value, json};
use types::attributes::{StoredType, ValueTypes};

use super::{Losses, Table, each_once, form, object};
use crate::{
    entities::{field_names, is_one_field},
    names::kebab,
};

const KEYS: &str = "key of this form";
const SPECIAL: &str = "mark of a path, or of a value with any text";
const BYTES: &str = "key of type B";
const NUMBERS: &str = "type of a key that no entity has";
const PROJECTED: &str = "projected attribute that no entity in the index has";
const EMPTY: &str = "table without entities";
const KEYLESS: &str = "read by a key that is left out";

/// The schema of these tables, without those of which it has no entity.
pub(super) fn file(tables: &[Table<'_>], known: &ValueTypes, accesses: &[Access], losses: &mut Losses) -> Value {
    let ids = ids(accesses, losses);
    let (mut written, mut read) = (Vec::new(), BTreeSet::new());
    for table in tables {
        let entities = table.entities.iter().filter_map(|entity| Entity::new(table, entity, known, losses));
        let entities: Vec<Entity<'_>> = entities.collect();
        let definitions: Vec<&Definition> = entities.iter().map(|entity| entity.of).collect();
        let found = Table::distinguishable(&definitions, losses);
        let mut objects = Map::new();
        for entity in &entities {
            let is_beside =
                |it: &&&Definition| entities.iter().any(|other| other.of.name == it.name && other.pk == entity.pk);
            let beside: Vec<&str> = found.iter().filter(is_beside).map(|it| it.name.as_str()).collect();
            let mut patterns = Vec::new();
            for (access, id) in accesses.iter().zip(&ids).filter(|(access, _)| entity.is_read_by(access)) {
                read.insert(&access.name);
                patterns.extend(entity.pattern(table, (access, *id), &beside, losses));
            }
            objects.insert(entity.of.name.clone(), entity.object(&patterns));
        }
        if entities.is_empty() {
            losses.add(EMPTY, table.form.name.clone());
            continue;
        }
        lose_types(table, &entities, losses);
        let indexes = table.form.indexes.iter().map(|index| index_object(table, index, &entities, losses));
        let indexes: Vec<Value> = indexes.collect();
        written.push(json!({ "table_config": config(&table.form), "gsi_list": indexes, "entities": objects }));
    }
    for access in accesses.iter().filter(|access| !read.contains(&access.name)) {
        let what = if matches!(access.reads, AccessReads::Counts(_)) { COUNTS } else { KEYLESS };
        losses.add(what, access.name.clone());
    }
    json!({ "tables": written })
}

fn config(table: &TableForm) -> Value {
    object([
        ("table_name", Some(json!(table.name))),
        ("partition_key", Some(json!(table.pk.name))),
        ("sort_key", table.sk.as_ref().map(|sk| json!(sk.name))),
    ])
}

/// An index. The form projects only attributes that an entity in the index has.
fn index_object(table: &Table<'_>, index: &IndexForm, entities: &[Entity<'_>], losses: &mut Losses) -> Value {
    let is_in = |entity: &&Entity<'_>| entity.indexes.iter().any(|(name, _)| *name == index.name);
    let entities: Vec<&Entity<'_>> = entities.iter().filter(is_in).collect();
    let has = |name: &String| entities.iter().any(|entity| entity.fields().contains(&name.as_str()));
    let projected: Option<Vec<&String>> =
        index.projection.as_ref().map(|all| all.iter().filter(|it| has(it)).collect());
    for name in index.projection.iter().flatten().filter(|name| !has(name)) {
        losses.add(PROJECTED, format!("{name} in {} of {}", index.name, table.form.name));
    }
    let projection = match &projected {
        None => "ALL",
        Some(all) if all.is_empty() => "KEYS_ONLY",
        Some(_) => "INCLUDE",
    };
    let names = |keys: &[KeyAttribute]| keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>();
    object([
        ("name", Some(json!(index.name))),
        ("partition_key", one_or_all(&names(&index.pk))),
        ("sort_key", one_or_all(&names(&index.sk))),
        ("projection", Some(json!(projection))),
        ("included_attributes", projected.filter(|all| !all.is_empty()).map(|all| json!(all))),
    ])
}

/// A text for one, a list for several, and nothing for none.
fn one_or_all(texts: &[String]) -> Option<Value> {
    match texts {
        [] => None,
        [one] => Some(json!(one)),
        all => Some(json!(all)),
    }
}

/// Notes types of keys that the fields of entities do not show.
fn lose_types(table: &Table<'_>, entities: &[Entity<'_>], losses: &mut Losses) {
    let mut keys = vec![&table.form.pk];
    keys.extend(&table.form.sk);
    keys.extend(table.form.indexes.iter().flat_map(IndexForm::parts));
    let known: BTreeSet<&str> = entities.iter().flat_map(|it| it.types.keys().map(String::as_str)).collect();
    for name in each_once(keys.iter().filter(|key| key.of == KeyType::B).map(|key| key.name.as_str())) {
        losses.add(BYTES, format!("`{name}` of {}", table.form.name));
    }
    let unknown = keys.iter().filter(|key| key.of == KeyType::N && !known.contains(key.name.as_str()));
    for name in each_once(unknown.map(|key| key.name.as_str())) {
        losses.add(NUMBERS, format!("`{name}` of {}", table.form.name));
    }
}

/// An entity whose key the form has.
struct Entity<'s> {
    of: &'s Definition,
    pk: String,
    sk: Option<String>,
    /// Its keys in indexes, by their names.
    indexes: Vec<(String, [Vec<String>; 2])>,
    /// The types of the fields of keys.
    types: BTreeMap<String, &'static str>,
    attributes: Vec<&'s str>,
    known: &'s ValueTypes,
}

impl<'s> Entity<'s> {
    fn new(table: &Table<'_>, of: &'s Definition, known: &'s ValueTypes, losses: &mut Losses) -> Option<Self> {
        let (pk, sk) = table.key(of);
        let whole = sk.iter().fold(pk.clone(), |pk, sk| format!("{pk} / {sk}"));
        let templates_of = template(&pk).zip(sk.as_deref().map_or(Some(None), |sk| template(sk).map(Some)));
        let Some((pk, sk)) = templates_of else {
            losses.add(KEYS, format!("`{whole}` of {}", of.name));
            return None;
        };
        let mut keys = vec![(vec![table.form.pk.clone()], vec![pk.clone()])];
        keys.extend(table.form.sk.iter().cloned().zip(&sk).map(|(key, sk)| (vec![key], vec![sk.clone()])));
        let mut special = is_special(&of.key.pk) || is_special(&of.key.sk);
        let mut indexes = Vec::new();
        for (index, key) in of.indexes.iter().filter_map(|key| Some((table.index(&key.index)?, key))) {
            let parts = [templates(&index.pk, &key.key.pk), templates(&index.sk, &key.key.sk)];
            let [Some(pk), Some(sk)] = parts else {
                let whole = format!("{} / {}", key.key.pk, key.key.sk).replace("!}", "}");
                losses.add(KEYS, format!("`{whole}` of {} in {}", of.name, index.name));
                continue;
            };
            special |= is_special(&key.key.pk) || is_special(&key.key.sk);
            keys.extend([(index.pk.clone(), pk.clone()), (index.sk.clone(), sk.clone())]);
            indexes.push((index.name.clone(), [pk, sk]));
        }
        if special {
            losses.add(SPECIAL, format!("`{whole}` of {}", of.name));
        }
        let keys: Vec<(KeyAttribute, String)> =
            keys.into_iter().flat_map(|(keys, all)| keys.into_iter().zip(all)).collect();
        Some(Self { of, pk, sk, indexes, types: types(&keys), attributes: table.attributes(of), known })
    }

    /// The fields of its key in the table, or in the index with this name, if it is in it.
    fn key_fields(&self, index: Option<&str>) -> Option<[Vec<&str>; 2]> {
        let (pk, sk): (Vec<&String>, Vec<&String>) = match index {
            None => (vec![&self.pk], self.sk.iter().collect()),
            Some(index) => {
                let (_, [pk, sk]) = self.indexes.iter().find(|(name, _)| name == index)?;
                (pk.iter().collect(), sk.iter().collect())
            }
        };
        Some([pk, sk].map(|parts| parts.into_iter().flat_map(|part| field_names(part)).collect()))
    }

    /// The type of a field. One that the manifest does not show is a text here.
    fn type_of(&self, field: &str) -> &'static str {
        let of_value = || match self.known.get(&self.of.name, field) {
            StoredType::Number => "decimal",
            StoredType::Boolean => "boolean",
            StoredType::Text | StoredType::Unknown => "string",
        };
        self.types.get(field).copied().unwrap_or_else(of_value)
    }

    /// The names of its fields: those of its keys, and its attributes.
    fn fields(&self) -> Vec<&str> {
        each_once(self.types.keys().map(String::as_str).chain(self.attributes.iter().copied()))
    }

    fn object(&self, patterns: &[Value]) -> Value {
        let field =
            |name: &str| json!({ "name": name, "type": self.type_of(name), "required": self.types.contains_key(name) });
        let fields: Vec<Value> = self.fields().into_iter().map(field).collect();
        let mapping = |(name, [pk, sk]): &(String, [Vec<String>; 2])| {
            object([("name", Some(json!(name))), ("pk_template", one_or_all(pk)), ("sk_template", one_or_all(sk))])
        };
        object([
            ("entity_type", Some(json!(self.of.name))),
            ("pk_template", Some(json!(self.pk))),
            ("sk_template", self.sk.as_ref().map(|sk| json!(sk))),
            ("gsi_mappings", Some(self.indexes.iter().map(mapping).collect())),
            ("fields", Some(json!(fields))),
            ("access_patterns", Some(json!(patterns))),
        ])
    }
}

/// The types of the fields of these keys.
fn types(keys: &[(KeyAttribute, String)]) -> BTreeMap<String, &'static str> {
    let mut types = BTreeMap::new();
    for (key, template) in keys {
        for name in field_names(template) {
            let is_whole = is_one_field(template) && !template.contains(':');
            let of = match key.of {
                KeyType::N => "decimal",
                KeyType::S | KeyType::B if is_whole => "string",
                KeyType::S | KeyType::B => {
                    if template.contains(&format!("{{{name}:")) {
                        "integer"
                    } else {
                        ""
                    }
                }
            };
            // A reader takes a key that is one numeric field for a number.
            let known = types.entry(name.to_owned()).or_insert(of);
            if known.is_empty() || of == "string" {
                *known = of;
            }
        }
    }
    types.values_mut().filter(|of| of.is_empty()).for_each(|of| *of = "string");
    types
}

/// The templates of a part of a key, if the form has them.
fn templates(attributes: &[KeyAttribute], of: &Template) -> Option<Vec<String>> {
    match attributes {
        [] => Some(Vec::new()),
        [only] => Some(vec![template(&form(std::slice::from_ref(only), of))?]),
        all => Some(all.iter().map(|key| format!("{{{}}}", key.name)).collect()),
    }
}

/// The template that gives each key the same text as this form; `None` if there is none.
fn template(form: &str) -> Option<String> {
    let mut text = String::new();
    for piece in Template::parse(form).ok()?.pieces() {
        match piece {
            Piece::Literal(literal) => text += literal,
            Piece::Field { name, form } => {
                let is_word = name.chars().all(|it| it.is_alphanumeric() || it == '_');
                let width = match form {
                    Form::Text | Form::Plain | Form::Path | Form::Raw => String::new(),
                    Form::Padded(width) if width.places == 0 => format!(":0{}d", width.digits),
                    _ => return None,
                };
                text += &is_word.then(|| format!("{{{name}{width}}}"))?;
            }
        }
    }
    Some(text)
}

fn is_special(template: &Template) -> bool {
    template.pieces().iter().any(|piece| matches!(piece, Piece::Field { form: Form::Path | Form::Raw, .. }))
}

// ---- the reads of a manifest as access patterns ----

const COUNTS: &str = "read of counters";
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
    fn is_read_by(&self, access: &Access) -> bool {
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
