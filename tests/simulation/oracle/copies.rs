//! D-09 to D-11, D-14, D-15, D-17 and D-27: copies of names and avatars.

use super::{
    Recount,
    table::{PlainTable, home},
};

/// Derivation; the item that holds the copy and the field that names the source; the source; what is copied to what.
type CopyRule =
    (&'static str, (&'static str, &'static str), (&'static str, &'static str), &'static [(&'static str, &'static str)]);

const COPIES: [CopyRule; 9] = [
    ("comment-author", ("Comment", "UserId"), ("User", "USER"), &[("Name", "UserName"), ("Avatar", "UserAvatar")]),
    (
        "post-author",
        ("PostDetail", "AuthorId"),
        ("User", "USER"),
        &[("Name", "AuthorName"), ("Avatar", "AuthorAvatar")],
    ),
    ("followee-name", ("Follow", "FolloweeId"), ("User", "USER"), &[("Name", "FolloweeName")]),
    ("follower-name", ("Follower", "FollowerId"), ("User", "USER"), &[("Name", "FollowerName")]),
    ("group-name", ("Membership", "GroupId"), ("Group", "GROUP"), &[("Name", "GroupName")]),
    ("group-user-name", ("GroupMember", "UserId"), ("User", "USER"), &[("Name", "UserName")]),
    ("member-user-name", ("Member", "UserId"), ("User", "USER"), &[("Name", "UserName")]),
    ("member-org-name", ("Member", "OrgId"), ("Organization", "ORG"), &[("Name", "OrgName")]),
    ("review-author", ("Review", "UserId"), ("User", "USER"), &[("Name", "UserName")]),
];

/// A copy is the source's value, whatever it is, and absent when the source is.
pub(crate) fn compare(table: &PlainTable, recount: &mut Recount) {
    for (derivation, (holder, names_it), (source, prefix), attributes) in COPIES {
        for row in table.each(holder) {
            let named = row.text(names_it);
            recount.n_unreadable += usize::from(named.is_none() && row.item.contains_key(names_it));
            let source = named.and_then(|id| table.get(source, &home(prefix, id)));
            for (from, to) in attributes {
                let derived = source.as_ref().and_then(|source| source.item.get(*from));
                recount.compare(derivation, row.at, row.item.get(*to), derived);
            }
        }
    }
}

/// Names of what is compared here.
pub(crate) fn covered() -> Vec<&'static str> {
    COPIES.iter().map(|(derivation, ..)| *derivation).collect()
}
