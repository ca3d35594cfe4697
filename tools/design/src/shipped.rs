//! The design of the shipped table.

use derive::{catalogue::CatalogueError, write::TRANSACT_ACTIONS_MAX};
use keys::error::EntityError;
use queries::{
    pattern::{AccessPattern, SampleError},
    write_error::LINES_MAX,
    writes::{employees::EMPLOYEE_DEPTH_MAX, folders::FOLDER_DEPTH_MAX},
};

use crate::{
    Design,
    asked::PatternRequests,
    document,
    review::{self, Check, FindingAnswer},
    samples::Samples,
};

/// Path of the page in the repository.
pub const PATH: &str = "docs/table-design.md";

/// The command that generates the page.
pub const WRITTEN_BY: &str = "cargo run -- design > docs/table-design.md";

/// Why there is no design. Tests show that this does not happen.
#[derive(Debug, thiserror::Error)]
pub enum ShippedError {
    /// The derivations do not fit the table.
    #[error("the shipped derivations do not fit the shipped table")]
    Catalogue(#[from] CatalogueError),
    /// A sample does not fit its entity.
    #[error("a sample item does not fit its declaration")]
    Sample(#[from] EntityError),
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

/// The shipped table's design.
///
/// # Errors
///
/// [`ShippedError`], which tests show not to happen.
pub async fn design() -> Result<Design, ShippedError> {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema)?;
    let mut patterns = Vec::new();
    for pattern in queries::pattern::reads().into_iter().chain(queries::pattern::writes()) {
        patterns.push(asked(&pattern).await?);
    }
    let samples = Samples::of(&schema, entities::samples::samples()?);
    Ok(Design { samples, patterns, answers: answers(), ..Design::declared(schema, catalogue) })
}

/// The page of the shipped table's design.
///
/// # Errors
///
/// As [`design`].
pub async fn page() -> Result<String, ShippedError> {
    let design = design().await?;
    Ok(document::page(&design, WRITTEN_BY, &review::review(&design)))
}

async fn asked(pattern: &AccessPattern) -> Result<PatternRequests, ShippedError> {
    let id = pattern.id;
    let requests = pattern.requests().await.map_err(|source| ShippedError::Pattern { id, source })?;
    Ok(PatternRequests {
        id: id.to_owned(),
        title: pattern.title.to_owned(),
        input: pattern.input.to_owned(),
        result: pattern.result.to_owned(),
        order: pattern.order.to_owned(),
        requests,
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

// ---- Why the findings about the shipped table are acceptable ----

/// The answers, by check.
const ANSWERS: [(Check, &str, &str); 10] = [
    (
        Check::ProjectedRewrite,
        "best-sellers in GSI2",
        "The purpose of the index is its order by a derived value. A product is rewritten once for each batch in which it \
         is sold, not once for each sale.",
    ),
    (
        Check::ProjectedRewrite,
        "employee-path in GSI1",
        "Reading an employee by ID (AP-025) also gives the path, with which one query finds everybody below (AP-024). \
         Teams rarely move, and one unit for each employee below costs less than another read each time.",
    ),
    (
        Check::ProjectedRewrite,
        "folder-path in GSI1",
        "A list of sub-folders shows their paths (AP-028). Folders are rarely renamed or moved, and one unit for each \
         folder below costs less than reading them separately for every list.",
    ),
    (
        Check::ProjectedRewrite,
        "post-author in GSI2",
        "The list of recent posts shows the authors (AP-007), and is read far more often than authors change their \
         names. Only published posts are in the index.",
    ),
    (
        Check::ProjectedRewrite,
        "post-detail in GSI2",
        "The list of recent posts shows titles (AP-007). The mirror is written whenever the post is, \
         which is as often as an index of the posts themselves would be.",
    ),
    (
        Check::CounterInListing,
        "AP-004",
        "The pattern reads the whole collection, and the counters are part of it; a caller who wants less chooses kinds, \
         each with a query of its own.",
    ),
    (
        Check::CounterInListing,
        "AP-006",
        "The pattern reads the post with its exact counts, which are the counters: one query instead of two.",
    ),
    (
        Check::CounterInListing,
        "AP-020",
        "One query reads organization and teams, with the counters between them. There are three counters without \
         shards, and they are skipped.",
    ),
    (Check::CounterInListing, "AP-040", "The pattern reads the counters."),
    (
        Check::UnreadTarget,
        "member-count-display",
        "No pattern reads a group by its key, except for its exact counts (AP-040). Clients that read the group itself \
         use the display, as with every other count.",
    ),
];

fn answers() -> Vec<FindingAnswer> {
    ANSWERS.into_iter().map(|(check, subject, reason)| FindingAnswer::new(check, subject, reason)).collect()
}
