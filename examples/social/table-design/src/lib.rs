//! The design of the shipped table with its access patterns.
//!
//! The manifest declares items, derivations and reads. This crate adds what a manifest cannot: the requests of each write
//! of `queries`, an item of each entity with values of usual length, and the reasons that the findings of the review are
//! acceptable.

use derive::{catalogue::CatalogueError, write::TRANSACT_ACTIONS_MAX};
use design::{
    Design,
    asked::PatternRequests,
    document,
    review::{self, AnswersError, FindingAnswer},
    samples::Samples,
};
use keys::error::EntityError;
use queries::{
    pattern::{AccessPattern, SampleError},
    write_error::LINES_MAX,
    writes::{employees::EMPLOYEE_DEPTH_MAX, folders::FOLDER_DEPTH_MAX},
};

/// Path of the page in the repository.
pub const PATH: &str = "docs/table-design.md";

/// The command that generates the page.
pub const WRITTEN_BY: &str = "cargo run --locked -p table-design > docs/table-design.md";

/// Why there is no design. Tests show that this does not happen.
#[derive(Debug, thiserror::Error)]
pub enum TableDesignError {
    /// The derivations do not fit the table.
    #[error("the shipped derivations do not fit the shipped table")]
    Catalogue(#[from] CatalogueError),
    /// A sample does not fit its entity.
    #[error("a sample item does not fit its declaration")]
    Sample(#[from] EntityError),
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
    let samples = Samples::of(&schema, entities::samples::samples()?);
    let mut design = Design { samples, answers: answers()?, ..Design::declared(schema, catalogue) };
    for pattern in queries::pattern::writes() {
        design.patterns.push(asked(&pattern).await?);
    }
    Ok(design)
}

/// The page of the shipped table's design.
///
/// # Errors
///
/// As [`design()`].
pub async fn page() -> Result<String, TableDesignError> {
    let design = design().await?;
    Ok(document::page(&design, WRITTEN_BY, &review::review(&design)))
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
