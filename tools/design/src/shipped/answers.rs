//! Why the findings about the shipped table are acceptable.

use crate::review::{answer::FindingAnswer, finding::Check};

/// The answers, by check.
const ANSWERS: [(Check, &str, &str); 10] = [
    (
        Check::ProjectedRewrite,
        "best-sellers in GSI2",
        "The index is ordered by what is derived: that is what it is for. A product is rewritten once a batch in which it \
         is sold, not once a sale.",
    ),
    (
        Check::ProjectedRewrite,
        "employee-path in GSI1",
        "An employee who is looked up by ID (AP-025) comes with the path, by which all below them are one query (AP-024). \
         Teams move seldom, and one unit for each employee below is less than another read at every look-up.",
    ),
    (
        Check::ProjectedRewrite,
        "folder-path in GSI1",
        "A list of sub-folders shows where they are (AP-028). Folders are renamed and moved seldom, and one unit for each \
         folder below is less than reading them apart at every listing.",
    ),
    (
        Check::ProjectedRewrite,
        "post-author in GSI2",
        "The list of recent posts shows who wrote them (AP-007), and is read far more often than authors change their \
         names. Only published posts are in the index.",
    ),
    (
        Check::ProjectedRewrite,
        "post-detail in GSI2",
        "The list of recent posts shows titles (AP-007). The mirror is written when its author writes the post, which is \
         as often as an index of the posts themselves would be.",
    ),
    (
        Check::CounterInListing,
        "AP-004",
        "The whole collection is asked for, and the counters are part of it; whoever wants less chooses kinds, each a \
         query of its own.",
    ),
    (
        Check::CounterInListing,
        "AP-006",
        "The exact counts are asked for with the post, and they are the counters: one query instead of two.",
    ),
    (
        Check::CounterInListing,
        "AP-020",
        "Organization and teams in one query lie on both sides of the counters. There are three of them, not sharded, and \
         they are dropped.",
    ),
    (Check::CounterInListing, "AP-040", "Counters are what it asks for."),
    (
        Check::UnreadTarget,
        "member-count-display",
        "A group is read by its key, for which no pattern is written down beside its exact counts (AP-040). The display is \
         there for clients that read the group itself, as every other count has one.",
    ),
];

pub(super) fn answers() -> Vec<FindingAnswer> {
    ANSWERS.into_iter().map(|(check, subject, reason)| FindingAnswer::new(check, subject, reason)).collect()
}
