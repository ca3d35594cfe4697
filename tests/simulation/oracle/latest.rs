//! S-01 to S-03: the last and the first comment of a post, and whether an organization has teams.

use super::{
    Recount,
    table::{Plain, PlainTable},
};

pub(crate) const COVERED: [&str; 3] = ["last-comment", "first-comment", "team-exists"];

pub(crate) fn compare(table: &PlainTable, recount: &mut Recount) {
    let (comments, teams) = (table.each("Comment"), table.each("Team"));
    for post in table.each("PostDetail") {
        let of_it = || comments.iter().filter(|comment| comment.at.0 == post.at.0);
        let at = |name: &str| Plain::Text(name.to_owned());
        let (last, first) = (of_it().max_by_key(|comment| &comment.at.1), of_it().min_by_key(|comment| &comment.at.1));
        let last_by = last.and_then(|comment| comment.item.get("UserId"));
        recount.compare("last-comment", post.at, post.item.get("LastCommentBy"), last_by);
        for (derivation, attribute, comment) in
            [("last-comment", "LastCommentAt", last), ("first-comment", "FirstCommentAt", first)]
        {
            let derived = comment.map(|comment| at(comment.id("CreatedAt")));
            recount.compare(derivation, post.at, post.item.get(attribute), derived.as_ref());
        }
    }
    for organization in table.each("Organization") {
        let has_teams = teams.iter().any(|team| team.id("OrgId") == organization.id("OrgId"));
        let derived = has_teams.then_some(Plain::Bool(true));
        recount.compare("team-exists", organization.at, organization.item.get("HasTeams"), derived.as_ref());
    }
}
