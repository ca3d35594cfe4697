//! Copies that are found through mirrors: refused where an item may have no mirror of its own.

use expect_test::{Expect, expect};

use super::refused_whole;
use crate::load;

/// Members of teams in both directions, with the name of the user on each.
const MEMBERS: &str = r#"
[table]
partition-key = "pk"
sort-key = "sk"
type = "type"

[entity.User]
partition-key = "USER#{userId}"
sort-key = "USER"
attributes = ["name"]

[entity.Member]
partition-key = "TEAM#{teamId}"
sort-key = "MEMBER#{userId}"
attributes = ["role", "tags"]
derived-attributes = ["userName"]

[entity.TeamOfUser]
partition-key = "USER#{userId}"
sort-key = "TEAM#{teamId}"
derived = true
attributes = ["role"]
derived-attributes = ["Claims", "userName"]

[derivation.teams-of-user]
kind = "mirror"
from = "Member"
to = "TeamOfUser"

[derivation.user-name]
kind = "copy"
from = "User"
to = "Member"
attributes = { name = "userName" }
found = "TeamOfUser"
"#;

fn refused_with(mirror: &str, key: &str, wanted: &Expect) {
    let text = MEMBERS.replace("to = \"TeamOfUser\"\n", &format!("to = \"TeamOfUser\"\n{mirror}\n"));
    let text = text.replace("derived = true\nattributes = [\"role\"]", "derived = true");
    refused_whole(&text.replace("sort-key = \"TEAM#{teamId}\"", key), wanted);
}

#[test]
fn what_is_found_through_a_mirror_has_one_each() {
    load(MEMBERS).unwrap();
    let key = "sort-key = \"TEAM#{teamId}\"";
    refused_with(
        "where = { role = \"owner\" }",
        key,
        &expect![
            "30:13: derivation.user-name: not every Member has a TeamOfUser by which it is found, since by teams-of-user only an item of Member that meets a condition has one of TeamOfUser: use an index"
        ],
    );
    let of_tag = "sort-key = \"TEAM#{teamId}#{tag}\"";
    refused_with(
        "each = \"tags\"\nlink = { tag = \"tags\" }",
        of_tag,
        &expect![
            "31:13: derivation.user-name: not every Member has a TeamOfUser by which it is found, since by teams-of-user an item of Member without members of tags has none of TeamOfUser: use an index"
        ],
    );
    refused_with(
        "link = { rank = \"role\" }",
        "sort-key = \"RANK#{rank}\"\nattributes = [\"teamId\"]",
        &expect![
            "31:13: derivation.user-name: not every Member has a TeamOfUser by which it is found, since by teams-of-user one item of TeamOfUser may be that of several of Member: use an index"
        ],
    );
}

/// Members, and the receipts of a team, which are mirrored under the user instead.
fn mirrored_receipts() -> String {
    let receipts = r#"[entity.Receipt]
partition-key = "TEAM#{teamId}"
sort-key = "RECEIPT#{userId}"
attributes = ["role"]

[derivation.user-name]"#;
    MEMBERS.replace("[derivation.user-name]", receipts).replace("from = \"Member\"", "from = \"Receipt\"")
}

/// A member without a receipt would not be found.
#[test]
fn what_is_found_through_a_mirror_is_what_was_mirrored() {
    let text = mirrored_receipts();
    refused_whole(
        &text,
        &expect![
            "35:13: derivation.user-name: not every Member has a TeamOfUser by which it is found, since TeamOfUser is a mirror of other items: use an index, or a mirror of Member"
        ],
    );
    refused_whole(
        &text.replace("found = \"TeamOfUser\"\n", ""),
        &expect![
            "35:13: derivation.user-name: a change of User does not have teamId of Member, by which its Member items would be found: no entity and no index leads to all of them"
        ],
    );
    let cascade = r#"[derivation.members-of-user]
kind = "cascade"
owner = "User"
hanging = [{ entity = "Member", through = "TeamOfUser" }]
"#;
    let with_cascade = |text: &str| text.split("[derivation.user-name]").next().unwrap().to_owned() + cascade;
    load(&with_cascade(MEMBERS)).unwrap();
    refused_whole(
        &with_cascade(&text),
        &expect![
            "35:13: derivation.members-of-user: not every Member has a TeamOfUser by which it is found, since TeamOfUser is a mirror of other items: use an index, or a mirror of Member"
        ],
    );
}

/// Mirrors of some of the members are all mirrors that there are.
#[test]
fn mirrors_that_lead_to_themselves_may_be_of_some_items_only() {
    let owners = MEMBERS.replace("to = \"TeamOfUser\"\n", "to = \"TeamOfUser\"\nwhere = { role = \"owner\" }\n");
    let of_mirror = owners.replace("to = \"Member\"\nattributes", "to = \"TeamOfUser\"\nattributes");
    load(&of_mirror.replace("derived = true\nattributes = [\"role\"]", "derived = true")).unwrap();
}

#[test]
fn a_mirror_for_each_member_is_not_found_through_its_source() {
    let tagged = MEMBERS.replace("sort-key = \"TEAM#{teamId}\"", "sort-key = \"TEAM#{teamId}#{tags}\"");
    let tagged = tagged.replace("to = \"TeamOfUser\"\n", "to = \"TeamOfUser\"\neach = \"tags\"\n");
    let team = "[entity.Team]\npartition-key = \"TEAM#{teamId}\"\nsort-key = \"TEAM\"\nattributes = [\"name\"]\n\n[derivation.user-name]";
    let of_team = tagged.replace("[derivation.user-name]", team).replace("from = \"User\"", "from = \"Team\"");
    let of_team = of_team.replace("to = \"Member\"", "to = \"TeamOfUser\"");
    refused_whole(
        &of_team.replace("found = \"TeamOfUser\"", "found = \"Member\""),
        &expect![
            "36:13: derivation.user-name: not every TeamOfUser has a Member by which it is found, since by teams-of-user an item of Member has a mirror for each member of a list: use an index"
        ],
    );
}
