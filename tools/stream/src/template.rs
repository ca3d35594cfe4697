//! The mappings of a SAM template, so that what is tried here is what is deployed.
//!
//! A function's event source mapping is its event of type `DynamoDB`, or one of several. Every property of it that SAM knows is read; one
//! that is unknown, or has a value that cannot be known here, is an error that names it, because a setting that is passed
//! over in silence would be tried differently from how it is deployed.
//!
//! Of `CloudFormation`'s functions, `Ref` of a parameter, `Fn::If` and the conditions (`Fn::Equals`, `Fn::Not`, `Fn::And`,
//! `Fn::Or`) are computed, with the values of parameters that are given, or their defaults. Anything else has no value
//! here, which matters only where a setting needs one: a stream's ARN, for one, is given by who runs the mapping.

mod event;

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use thiserror::Error;

use crate::mapping::Mapping;

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct SamTemplateError {
    /// The line, counted from 1: that of the function, or where the text is no YAML.
    pub line: usize,
    what: String,
}

/// A SAM template.
#[derive(Debug, Clone)]
pub struct SamTemplate {
    text: String,
    root: Node,
}

/// Values of a template's parameters, by their names. One that is not given has its default.
pub type Parameters = BTreeMap<String, String>;

/// What a template does not say of a mapping.
#[derive(Debug, Clone)]
pub struct Local<'a> {
    /// See [`Mapping::name`].
    pub name: &'a str,
    /// See [`Mapping::stream_arn`].
    pub stream_arn: &'a str,
    /// The id of the event that reads this stream, where the function has several.
    pub event: &'a str,
    /// See [`Mapping::idle_poll_ms`].
    pub idle_poll_ms: u64,
}

impl SamTemplate {
    /// Reads the text of a template.
    ///
    /// # Errors
    ///
    /// [`SamTemplateError`] where it is no YAML.
    pub fn parse(text: &str) -> Result<Self, SamTemplateError> {
        match parse(text) {
            Ok(root) => Ok(Self { text: text.to_owned(), root }),
            Err((line, what)) => Err(SamTemplateError { line, what }),
        }
    }

    /// The event source mapping of the function with this logical id.
    ///
    /// # Errors
    ///
    /// [`SamTemplateError`] where there is no such function with these parameters, or a setting of its event is unknown, has
    /// no value here, or is one that Lambda would refuse.
    pub fn mapping(
        &self,
        function: &str,
        parameters: &Parameters,
        local: &Local<'_>,
    ) -> Result<Mapping, SamTemplateError> {
        let wrong = |what: String| SamTemplateError { line: self.line(function), what };
        let scope = TemplateScope::new(&self.root, parameters).map_err(wrong)?;
        let mapping = event::mapping(&scope, function, local);
        mapping.map_err(|problem| wrong(format!("the template's {function}: {problem}")))
    }

    /// The ids of a function's events of type `DynamoDB`: one for each stream that it reads.
    #[must_use]
    pub fn stream_events(&self, function: &str) -> Vec<&str> {
        let resource = self.root.get("Resources").and_then(|all| all.get(function));
        let events = resource.and_then(event::events).into_iter().flat_map(event::streams);
        events.map(|(id, _)| id.as_str()).collect()
    }

    /// The line where a function is declared, in YAML or JSON; the first one if it is not.
    fn line(&self, function: &str) -> usize {
        let is_here =
            |line: &str| line.split_once(':').is_some_and(|(name, _)| name.trim().trim_matches('"') == function);
        self.text.lines().position(is_here).unwrap_or_default() + 1
    }

    /// Whether it declares a parameter.
    #[must_use]
    pub fn has_parameter(&self, name: &str) -> bool {
        self.root.get("Parameters").is_some_and(|all| all.get(name).is_some())
    }
}

// ---- A template's text as a tree, with `CloudFormation`'s functions apart from data ----

/// A part of a template. Scalars are kept as text, since `CloudFormation` takes a number as text and the other way around.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
    /// A function: `Ref`, `Condition`, or `Fn::…`, whichever way it was written.
    Call {
        name: String,
        argument: Box<Node>,
    },
}

/// Reads a template, or says on which line what is wrong with it.
fn parse(text: &str) -> Result<Node, (usize, String)> {
    let documents = Yaml::load_from_str(text)
        .map_err(|error| (error.marker().line(), format!("the template is no YAML: {}", error.info())))?;
    match documents.as_slice() {
        [document] => node(document).map_err(|what| (1, what)),
        _ => Err((1, format!("the template has {} YAML documents: it must be one", documents.len()))),
    }
}

fn node(yaml: &Yaml<'_>) -> Result<Node, String> {
    Ok(match yaml {
        Yaml::Value(scalar) => self::scalar(scalar),
        Yaml::Sequence(items) => Node::List(items.iter().map(node).collect::<Result<_, _>>()?),
        Yaml::Mapping(entries) => {
            let entry = |(key, value): (&Yaml<'_>, &Yaml<'_>)| Ok((self::key(key)?, node(value)?));
            let mut entries: BTreeMap<String, Node> = entries.iter().map(entry).collect::<Result<_, String>>()?;
            let is_call = entries.len() == 1;
            match entries.pop_first() {
                Some((name, argument)) if is_call && (name == "Ref" || name.starts_with("Fn::")) => {
                    Node::Call { name, argument: Box::new(argument) }
                }
                first => Node::Map(first.into_iter().chain(entries).collect()),
            }
        }
        Yaml::Tagged(tag, tagged) => {
            let name = tag.suffix.trim_start_matches('!');
            let name = if ["Ref", "Condition"].contains(&name) { name.to_owned() } else { format!("Fn::{name}") };
            Node::Call { name, argument: Box::new(node(tagged)?) }
        }
        Yaml::Representation(..) | Yaml::Alias(_) | Yaml::BadValue => {
            return Err("the template has an alias or a value of a type that cannot be read".to_owned());
        }
    })
}

fn scalar(scalar: &Scalar<'_>) -> Node {
    match scalar {
        Scalar::Null => Node::Null,
        Scalar::Boolean(flag) => Node::Text(flag.to_string()),
        Scalar::Integer(number) => Node::Text(number.to_string()),
        Scalar::FloatingPoint(number) => Node::Text(number.to_string()),
        Scalar::String(text) => Node::Text(text.to_string()),
    }
}

fn key(yaml: &Yaml<'_>) -> Result<String, String> {
    match yaml {
        Yaml::Value(key) => match scalar(key) {
            Node::Text(text) => Ok(text),
            _ => Err("the template has a key that is null".to_owned()),
        },
        _ => Err("the template has a key that is no text".to_owned()),
    }
}

impl Node {
    /// What is under a key, where this has keys.
    fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.get(key),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

// ---- `CloudFormation`'s functions, as far as they can be computed without an account ----

/// How deep conditions may refer to each other: far more than anybody writes, and a circle ends.
const CONDITION_DEPTH_MAX: usize = 20;

/// A value with the functions computed. What was `AWS::NoValue` is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
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
struct TemplateScope<'a> {
    root: &'a Node,
    parameters: &'a Parameters,
}

impl<'a> TemplateScope<'a> {
    /// Refuses values for parameters that the template does not have or that it does not allow.
    fn new(root: &'a Node, parameters: &'a Parameters) -> Result<Self, String> {
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
    fn resource(&self, id: &str) -> Result<Option<&'a Node>, String> {
        let Some(resource) = self.root.get("Resources").and_then(|all| all.get(id)) else { return Ok(None) };
        let is_there = match resource.get("Condition") {
            Some(condition) => self.condition(condition.text().unwrap_or_default(), 0)?,
            None => true,
        };
        Ok(is_there.then_some(resource))
    }

    /// A value; `None` for `AWS::NoValue`.
    fn value(&self, node: &Node) -> Result<Option<Value>, String> {
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

#[cfg(test)]
mod tests;
