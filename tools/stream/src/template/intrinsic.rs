//! `CloudFormation`'s functions, as far as they can be computed without an account.

use std::collections::BTreeMap;

use super::{Parameters, document::Node};

/// How deep conditions may refer to each other: far more than anybody writes, and a circle ends.
const CONDITION_DEPTH_MAX: usize = 20;

/// A value with the functions computed. What was `AWS::NoValue` is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Text(String),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
    /// Known to AWS only: what it is, for an error, and the resource that it is of.
    Opaque {
        what: String,
        resource: Option<String>,
    },
}

/// A template with values for its parameters.
pub(super) struct TemplateScope<'a> {
    root: &'a Node,
    parameters: &'a Parameters,
}

impl<'a> TemplateScope<'a> {
    /// Refuses values for parameters that the template does not have or that it does not allow.
    pub(super) fn new(root: &'a Node, parameters: &'a Parameters) -> Result<Self, String> {
        for (name, value) in parameters {
            let Some(declared) = root.get("Parameters").and_then(|all| all.get(name)) else {
                return Err(format!("the template has no parameter {name}: declare it, with {value} among its values"));
            };
            if let Some(Node::List(allowed)) = declared.get("AllowedValues")
                && !allowed.iter().any(|one| one.text() == Some(value))
            {
                return Err(format!("the template's parameter {name} does not allow {value}"));
            }
        }
        Ok(Self { root, parameters })
    }

    /// The resource with this logical id, unless its condition is false.
    pub(super) fn resource(&self, id: &str) -> Result<Option<&'a Node>, String> {
        let Some(resource) = self.root.get("Resources").and_then(|all| all.get(id)) else { return Ok(None) };
        let is_there = match resource.get("Condition") {
            Some(condition) => self.condition(condition.text().unwrap_or_default(), 0)?,
            None => true,
        };
        Ok(is_there.then_some(resource))
    }

    /// A value; `None` for `AWS::NoValue`.
    pub(super) fn value(&self, node: &Node) -> Result<Option<Value>, String> {
        Ok(Some(match node {
            Node::Null => Value::Null,
            Node::Text(text) => Value::Text(text.clone()),
            Node::List(items) => {
                let items = items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?;
                Value::List(items.into_iter().flatten().collect())
            }
            Node::Map(entries) => {
                let mut values = BTreeMap::new();
                for (key, entry) in entries {
                    if let Some(value) = self.value(entry)? {
                        values.insert(key.clone(), value);
                    }
                }
                Value::Map(values)
            }
            Node::Call { name, argument } => return self.call(name, argument),
        }))
    }

    fn call(&self, name: &str, argument: &Node) -> Result<Option<Value>, String> {
        match (name, argument) {
            ("Ref", Node::Text(name)) if name == "AWS::NoValue" => Ok(None),
            ("Ref", Node::Text(name)) => Ok(Some(self.parameter(name).map_or_else(
                || Value::Opaque { what: format!("!Ref {name}"), resource: Some(name.clone()) },
                |value| Value::Text(value.to_owned()),
            ))),
            ("Fn::If", Node::List(parts)) => match parts.as_slice() {
                [Node::Text(condition), yes, no] => self.value(if self.condition(condition, 0)? { yes } else { no }),
                _ => Err("!If wants a condition's name and two values".to_owned()),
            },
            _ => Ok(Some(Value::Opaque { what: format!("!{}", short(name)), resource: resource_of(name, argument) })),
        }
    }

    /// The value of a parameter, where there is such a one and it has one.
    fn parameter(&self, name: &str) -> Option<&'a str> {
        let given = self.parameters.get(name).map(String::as_str);
        given.or_else(|| self.root.get("Parameters")?.get(name)?.get("Default")?.text())
    }

    /// Whether a condition holds.
    fn condition(&self, name: &str, depth: usize) -> Result<bool, String> {
        let condition = self.root.get("Conditions").and_then(|all| all.get(name));
        let condition = condition.ok_or_else(|| format!("the template has no condition {name}"))?;
        if depth > CONDITION_DEPTH_MAX {
            return Err(format!("condition {name} refers to itself"));
        }
        let holds = self.holds(condition, depth);
        if depth == 0 { holds.map_err(|problem| format!("condition {name}: {problem}")) } else { holds }
    }

    fn holds(&self, condition: &Node, depth: usize) -> Result<bool, String> {
        if let Some(name) = condition.get("Condition").and_then(Node::text) {
            return self.condition(name, depth + 1);
        }
        let Node::Call { name, argument } = condition else {
            return Err("it is none of !Equals, !Not, !And, !Or and !Condition".to_owned());
        };
        match (name.as_str(), argument.as_ref()) {
            ("Condition", Node::Text(name)) => self.condition(name, depth + 1),
            ("Fn::Equals", Node::List(sides)) => match sides.as_slice() {
                [one, other] => Ok(self.known(one)? == self.known(other)?),
                _ => Err("!Equals wants two values".to_owned()),
            },
            ("Fn::Not", Node::List(parts)) => match parts.as_slice() {
                [part] => self.holds(part, depth).map(|holds| !holds),
                _ => Err("!Not wants one condition".to_owned()),
            },
            ("Fn::And", Node::List(parts)) => {
                parts.iter().try_fold(true, |all, part| Ok(self.holds(part, depth)? && all))
            }
            ("Fn::Or", Node::List(parts)) => {
                parts.iter().try_fold(false, |any, part| Ok(self.holds(part, depth)? || any))
            }
            _ => Err(format!("!{} cannot be computed here", short(name))),
        }
    }

    /// A side of a comparison, which must have a value here.
    fn known(&self, node: &Node) -> Result<String, String> {
        match self.value(node)? {
            Some(Value::Text(text)) => Ok(text),
            Some(Value::Opaque { what, .. }) => Err(format!("{what} has no value here: give it a Default")),
            _ => Err("!Equals compares texts".to_owned()),
        }
    }
}

/// `!GetAtt` for `Fn::GetAtt`.
fn short(name: &str) -> &str {
    name.trim_start_matches("Fn::")
}

/// The resource that an attribute is of.
fn resource_of(name: &str, argument: &Node) -> Option<String> {
    match (name, argument) {
        ("Fn::GetAtt", Node::Text(path)) => path.split('.').next().map(str::to_owned),
        ("Fn::GetAtt", Node::List(parts)) => parts.first().and_then(Node::text).map(str::to_owned),
        _ => None,
    }
}
