//! The mappings of a SAM template, so that what is tried here is what is deployed.
//!
//! A function's event source mapping is its event of type `DynamoDB`, or one of several. Every property of it that SAM knows is read; one
//! that is unknown, or has a value that cannot be known here, is an error that names it, because a setting that is passed
//! over in silence would be tried differently from how it is deployed.
//!
//! Of `CloudFormation`'s functions, `Ref` of a parameter, `Fn::If` and the conditions (`Fn::Equals`, `Fn::Not`, `Fn::And`,
//! `Fn::Or`) are computed, with the values of parameters that are given, or their defaults. Anything else has no value
//! here, which matters only where a setting needs one: a stream's ARN, for one, is given by who runs the mapping.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::mapping::Mapping;

mod document;
mod event;
mod intrinsic;

use document::Node;

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
        match document::parse(text) {
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
        let scope = intrinsic::TemplateScope::new(&self.root, parameters).map_err(wrong)?;
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

#[cfg(test)]
mod tests;
