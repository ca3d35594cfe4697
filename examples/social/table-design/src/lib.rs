//! The design of the shipped table with its access patterns.
//!
//! The manifest declares items, derivations and reads. This crate adds what a manifest cannot: the requests of each write
//! of `queries`, an item of each entity with values of usual length, and the reasons that the findings of the review are
//! acceptable.

use std::{collections::BTreeMap, sync::LazyLock};

use derive::{catalogue::CatalogueError, schema::Schema, write::TRANSACT_ACTIONS_MAX};
use design::{
    Design, PatternRequests, document,
    review::{self, AnswersError, FindingAnswer},
    samples::Samples,
};
use keys::{error::KeyError, item::Item};
use queries::{
    write_error::LINES_MAX,
    writes::{
        folders::FOLDER_DEPTH_MAX,
        organizations::EMPLOYEE_DEPTH_MAX,
        patterns::{AccessPattern, SampleError},
    },
};
use serde_dynamo::AttributeValue;
use serde_json::Value;

/// Path of the page in the repository.
pub const PATH: &str = "examples/social/table-design.md";

/// The command that generates the page.
pub const WRITTEN_BY: &str = "cargo run --locked -p table-design > examples/social/table-design.md";

/// Why there is no design. Tests show that this does not happen.
#[derive(Debug, thiserror::Error)]
pub enum TableDesignError {
    /// The derivations do not fit the table.
    #[error("the shipped derivations do not fit the shipped table")]
    Catalogue(#[from] CatalogueError),
    /// A key of an item cannot be built.
    #[error("an item does not fit its declaration")]
    Item(#[from] KeyError),
    /// The values of an item, or the file of samples, cannot be read.
    #[error("samples.json")]
    Samples(#[from] serde_json::Error),
    /// An item has values of other types than DynamoDB's.
    #[error("an item has a value that is none of DynamoDB's")]
    Value(#[from] serde_dynamo::Error),
    /// The manifest declares no entity of this name.
    #[error("the manifest declares no entity {0}")]
    Undeclared(String),
    /// The file of answers cannot be read.
    #[error("answers.json")]
    Answers(#[from] AnswersError),
    /// A pattern does not run with placeholders.
    #[error("the pattern {id} does not run with placeholders")]
    Pattern {
        /// The pattern's id.
        id: &'static str,
        /// The cause.
        #[source]
        source: SampleError,
    },
}

/// The shipped table's design, with its access patterns.
///
/// # Errors
///
/// [`TableDesignError`], which tests show not to happen.
pub async fn design() -> Result<Design, TableDesignError> {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema)?;
    let samples = Samples::of(&schema, samples()?);
    let mut design = Design { samples, answers: answers()?, ..Design::declared(schema, catalogue) };
    for pattern in queries::writes::patterns::PATTERNS {
        design.patterns.push(asked(pattern).await?);
    }
    Ok(design)
}

/// A sample item of each entity, for the page and its prices. They belong together: Ada wrote the post that Grace comments
/// on, and bought the tea that Grace reviewed. Their sizes are typical.
///
/// # Errors
///
/// [`TableDesignError`], which a test shows not to happen.
pub fn samples() -> Result<Vec<Item>, TableDesignError> {
    let samples: BTreeMap<String, Value> = serde_json::from_str(include_str!("../../samples.json"))?;
    samples.into_iter().map(|(entity, values)| item(&entity, values)).collect()
}

/// An item of the shipped table with these values, its key and its index keys. A list of texts is a set, and null is no
/// value.
///
/// # Errors
///
/// [`TableDesignError`] if the entity is undeclared or the values make no key.
pub fn item(entity: &str, values: Value) -> Result<Item, TableDesignError> {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(catalogue::schema);
    let definition = SCHEMA.entity(entity).ok_or_else(|| TableDesignError::Undeclared(entity.to_owned()))?;
    let values: serde_dynamo::Item = serde_dynamo::to_item(values)?;
    let values = values.into_inner().into_iter().filter(|(_, value)| *value != AttributeValue::Null(true));
    let values = values.map(|(name, value)| (name, set_of_texts(&value).unwrap_or(value)));
    Ok(definition.item(&SCHEMA.layout, values.collect())?.1)
}

fn set_of_texts(value: &AttributeValue) -> Option<AttributeValue> {
    let AttributeValue::L(members) = value else { return None };
    let text = |member: &AttributeValue| if let AttributeValue::S(text) = member { Some(text.clone()) } else { None };
    members.iter().map(text).collect::<Option<_>>().map(AttributeValue::Ss)
}

/// The page of the shipped table's design.
///
/// # Errors
///
/// As [`design()`].
pub async fn page() -> Result<String, TableDesignError> {
    let design = design().await?;
    Ok(with_contents(&document::page(&design, WRITTEN_BY, &review::review(&design))))
}

/// The page with a list of its sections before the first one, since this table has dozens of writes.
fn with_contents(page: &str) -> String {
    let Some((introduction, sections)) = page.split_once("\n## ") else { return page.to_owned() };
    let mut contents = String::from("## Contents\n\n");
    let mut is_code = false;
    for line in format!("## {sections}").lines() {
        is_code ^= line.starts_with("```");
        let Some((hashes, heading)) = line.split_once(' ').filter(|_| !is_code) else { continue };
        match hashes {
            "##" => contents.extend([format!("- [{heading}](#{})\n", anchor(heading))]),
            "###" => contents.extend([format!("  - [{heading}](#{})\n", anchor(heading))]),
            _ => {}
        }
    }
    format!("{introduction}\n{contents}\n## {sections}")
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

async fn asked(pattern: &AccessPattern) -> Result<PatternRequests, TableDesignError> {
    let id = pattern.id;
    let requests = pattern.requests().await.map_err(|source| TableDesignError::Pattern { id, source })?;
    Ok(PatternRequests {
        name: id.to_owned(),
        id: id.to_owned(),
        title: pattern.title.to_owned(),
        input: pattern.input.to_owned(),
        result: pattern.result.to_owned(),
        order: String::new(),
        requests,
        filter: None,
        actions_max: actions_max(id),
    })
}

/// Most actions of a pattern's transaction that grows with its input. An order has one action for itself and two for
/// each line; a move checks every item above the new place.
fn actions_max(id: &str) -> Option<usize> {
    match id {
        "WP-08" => Some(1 + 2 * LINES_MAX),
        "WP-09" => Some(TRANSACT_ACTIONS_MAX),
        "WP-10" => Some(FOLDER_DEPTH_MAX),
        "WP-11" => Some(EMPLOYEE_DEPTH_MAX),
        _ => None,
    }
}

/// Why the findings about the shipped table are acceptable.
///
/// # Errors
///
/// [`AnswersError`], which tests show not to happen.
pub fn answers() -> Result<Vec<FindingAnswer>, AnswersError> {
    review::answers(include_str!("../../answers.json"))
}
