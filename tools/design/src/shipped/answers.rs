//! Why the findings about the shipped table are acceptable.

use crate::review::{answer::FindingAnswer, finding::Check};

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

pub(super) fn answers() -> Vec<FindingAnswer> {
    ANSWERS.into_iter().map(|(check, subject, reason)| FindingAnswer::new(check, subject, reason)).collect()
}
