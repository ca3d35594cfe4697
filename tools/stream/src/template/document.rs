//! A template's text as a tree, with `CloudFormation`'s functions apart from data.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};

/// A part of a template. Scalars are kept as text, since `CloudFormation` takes a number as text and the other way around.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
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
pub(super) fn parse(text: &str) -> Result<Node, (usize, String)> {
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
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.get(key),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}
