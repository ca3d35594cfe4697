//! The shipped table has every kind; each of these changes makes it invalid.

use super::*;

/// The shipped table.
const SOCIAL: &str = include_str!("../../../../examples/social/ripple.toml");

#[track_caller]
fn refused_in(from: &str, to: &str, expect: &Expect) {
    assert!(SOCIAL.contains(from), "{from}");
    let refused = load(&SOCIAL.replacen(from, to, 1)).map(drop);
    // The example's lines may change.
    let ManifestError { key, what, .. } = refused.expect_err("it is refused");
    expect.assert_eq(&format!("{key}: {what}"));
}

#[test]
fn the_shipped_table_is_a_manifest() {
    let (schema, catalogue) = load(SOCIAL).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((schema.entities().count(), catalogue.derivations().count()), (30, 53));
}

/// The declarations that the examples refer to.
pub(super) const BASE: &str = include_str!("base.toml");

#[test]
fn each_example_of_a_kind_is_right() {
    for kind in crate::kinds::descriptions() {
        let text = format!("{BASE}{}", kind.example);
        if let Err(error) = load(&text) {
            panic!("{}: {error}\n{}", kind.name, kind.example);
        }
    }
}

#[test]
fn what_a_sum_shows_is_looked_up() {
    let shows = "shows = { count = \"OrderCount\", sum = \"LifetimeValue\" }";
    refused_in(
        shows,
        "shows = { median = \"OrderCount\" }",
        &expect!["derivation.order-totals.shows.median: there is no such key: there are count, sum, average, exists"],
    );
    refused_in(
        shows,
        "shows = { sum = \"LifetimeValues\" }",
        &expect![[
            r#"derivation.order-totals.shows.sum: User does not declare as derived "LifetimeValues": did you mean "LifetimeValue"?"#
        ]],
    );
    refused_in(
        shows,
        "shows = \"LifetimeValue\"",
        &expect![
            "derivation.order-totals.shows: is a text: write a table, [derivation.order-totals.shows], with its keys below"
        ],
    );
    refused_in(
        "sum = \"Total\"\nshows",
        "shows",
        &expect![[
            r#"derivation.order-totals.shows.sum: there is no sum: name the attribute to add up, as in sum = "total""#
        ]],
    );
    refused_in(
        "sum = \"Total\"\n",
        "sum = \"Totals\"\n",
        &expect![[r#"derivation.order-totals.sum: Order has no field or attribute "Totals": did you mean "Total"?"#]],
    );
    refused_in(
        "sum = \"Total\"\n",
        "sum = \"OrderId\"\n",
        &expect!["derivation.order-totals.sum: OrderId is S, and a number (N) is wanted: write number(OrderId)"],
    );
    refused_in(
        "sum = \"Total\"\n",
        "sum = \"Total % 2\"\n",
        &expect![[
            r#"derivation.order-totals.sum: is no name and no expression: at character 7: an operator (+, -, *, /, ||) or the end is wanted before "%""#
        ]],
    );
    refused_in(
        "into = \"User\"\nwhere",
        "into = \"User.OrderCount\"\nwhere",
        &expect![[r#"derivation.order-totals.shows: shows and into both name an attribute: write into = "User""#]],
    );
    refused_in(
        shows,
        "zero = \"absent\"",
        &expect![[
            r#"derivation.order-totals.zero: zero says how a count of zero is shown, and this count is not shown: name an attribute, as in into = "User.followerCount", or leave zero out"#
        ]],
    );
}

#[test]
fn a_path_needs_its_parts() {
    refused_in(
        "into = \"Folder.Path\"",
        "into = \"Folder\"",
        &expect![[
            r#"derivation.folder-path.into: names no attribute: the attribute that holds the path, as in "Folder.path""#
        ]],
    );
    refused_in(
        "into = \"Folder.Path\"",
        "into = \"Folder.Name\"",
        &expect![
            "derivation.folder-path.into: Folder lists Name in attributes, so the application writes it: name another attribute, or move it to derived-attributes"
        ],
    );
    refused_in(
        "depth = 64\n",
        "",
        &expect!["derivation.folder-path: depth is missing: how many parts a path has at most, as in 64"],
    );
    refused_in("depth = 64", "depth = 0", &expect!["derivation.folder-path.depth: is 0: it is from 1 to 1024"]);
    refused_in(
        "parent = \"Folder\"",
        "parent = \"Folders\"",
        &expect![[r#"derivation.folder-path.parent: there is no entity "Folders": did you mean "Folder"?"#]],
    );
    refused_in(
        "name = \"Name\"\ndepth = 64",
        "name = \"Title\"\ndepth = 64",
        &expect![[
            r#"derivation.folder-path.name: Folder has no field or attribute "Title": there are FolderId, Name, ParentId, CreatedAt, UpdatedAt, Path, FileCount, TotalBytes; one that your items have is declared in attributes"#
        ]],
    );
    refused_in(
        "by = { ParentId = \"FolderId\" }",
        "by = { ParentId = \"Name\" }",
        &expect![[
            r#"derivation.folder-path.found.by.ParentId: the key of Folder has no field "Name": there is FolderId"#
        ]],
    );
}

#[test]
fn an_index_key_is_declared_as_derived_and_ordered_by_a_derived_number() {
    refused_in(
        "index = \"GSI2\"\nnumber",
        "index = \"GSI1\"\nnumber",
        &expect![[
            r#"derivation.best-sellers.index: Product has no key with derived = true in the index "GSI1": did you mean "GSI2"?"#
        ]],
    );
    refused_in(
        "number = \"UnitsSold\"",
        "number = \"Price\"",
        &expect![
            "derivation.best-sellers.number: Product lists Price in attributes, so the application writes it: name another attribute, or move it to derived-attributes"
        ],
    );
    refused_in(
        "into = \"Product\"\nindex",
        "into = \"Products\"\nindex",
        &expect![[r#"derivation.best-sellers.into: there is no entity "Products": did you mean "Product"?"#]],
    );
    let with_average = SOCIAL.replace("sum = \"RatingSum\" }", "average = \"RatingSum\" }");
    let ordered = |form: &str| {
        let text = with_average.replace("{MAX-UnitsSold:12}", form);
        load(&text.replace("number = \"UnitsSold\"", "number = \"RatingSum\"")).map(drop)
    };
    assert_ne!(with_average, SOCIAL);
    ordered("{MAX-RatingSum:12.6}").unwrap();
    expect!["RatingSum is a quotient, with up to 6 digits behind the point, and the key has room for fewer: write {RatingSum:12.6} there, or {MAX-RatingSum:12.6}"].assert_eq(&ordered("{MAX-RatingSum:12}").unwrap_err().what);
    refused_in(
        "only-with = \"ManagerId\"",
        "only-with = \"Manager\"",
        &expect![[
            r#"entity.Employee.index.GSI2.only-with: Employee has no field or attribute "Manager": did you mean "ManagerId"?"#
        ]],
    );
    refused_in(
        "only-with = \"ManagerId\"",
        "only-with = \"ManagerId\"\nonly-if = { Name = \"x\" }",
        &expect!["entity.Employee.index.GSI2.only-with: give only-if or only-with, not both"],
    );
    refused_in(
        "only-if = { Status = \"published\" }",
        "only-if = { Status = [] }",
        &expect!["entity.PostDetail.index.GSI2.only-if.Status: is an empty list"],
    );
    refused_in(
        "only-if = { Status = \"published\" }",
        "only-if = { Status = 7 }",
        &expect!["entity.PostDetail.index.GSI2.only-if.Status: is a whole number: write a text in quotes"],
    );
}

#[test]
fn a_roll_up_needs_its_bucket() {
    refused_in(
        "grain = \"Grain\"",
        "grain = \"Size\"",
        &expect![[
            r#"derivation.readings-rollup.grain: the key of Rollup has no field "Size": there are Bucket, Grain, SensorId"#
        ]],
    );
    refused_in(
        "bucket = \"Bucket\"\n",
        "",
        &expect![
            "derivation.readings-rollup: bucket is missing: the field of the bucket's key that holds the beginning of the time"
        ],
    );
    refused_in(
        ", max = \"Max\" }",
        " }",
        &expect![[
            r#"derivation.readings-rollup.shows: max is missing: the bucket's attributes, as in { count = "count", sum = "sum", min = "min", max = "max" }"#
        ]],
    );
    refused_in(
        "time = \"At\"",
        "time = \"Time\"",
        &expect![[
            r#"derivation.readings-rollup.time: Reading has no field or attribute "Time": there are At, Day, SensorId, Value, CreatedAt, UpdatedAt; one that your items have is declared in attributes"#
        ]],
    );
    refused_in(
        "value = \"Value\"",
        "value = \"SensorId\"",
        &expect!["derivation.readings-rollup.value: SensorId is S, and a number (N) is wanted: write number(SensorId)"],
    );
    refused_in(
        "into = \"Rollup\"",
        "into = \"User\"",
        &expect![[r#"derivation.readings-rollup.grain: the key of User has no field "Grain": there is UserId"#]],
    );
}

#[test]
fn what_hangs_on_an_owner_is_found_by_its_key() {
    refused_in(
        "{ entity = \"Comment\" },",
        "{ entity = \"Coment\" },",
        &expect![[r#"derivation.post-cascade.hanging.entity: there is no entity "Coment": did you mean "Comment"?"#]],
    );
    refused_in(
        "{ entity = \"Comment\" },",
        "{ entity = \"Post\" },",
        &expect![
            "derivation.post-cascade.hanging: a change of PostDetail does not have AuthorId of Post, by which its Post items would be found: no entity and no index leads to all of them"
        ],
    );
    refused_in(
        "{ entity = \"Comment\" },",
        "\"Comment\",",
        &expect![
            "derivation.post-cascade.hanging: write a list of tables, as in [{ … }, { … }]: this element is no table"
        ],
    );
    refused_in(
        "{ entity = \"Comment\" },",
        "{ entities = \"Comment\" },",
        &expect![
            "derivation.post-cascade.hanging.entities: there is no such key: there are entity, through, index, by, key, counters, only-if, set"
        ],
    );
    refused_in(
        "{ counters = \"view-count\" },",
        "{ counters = \"views\" },",
        &expect![[
            r#"derivation.post-cascade.hanging.counters: there is no count "views": there are follower-count, following-count, post-count, comment-count, like-count, view-count, member-count, team-count, org-member-count, employee-count, folder-totals, product-rating, order-totals, units-sold"#
        ]],
    );
    refused_in(
        "{ counters = \"view-count\" },",
        "{ counters = \"like-count\" },",
        &expect![
            "derivation.post-cascade: the counters of like-count come to zero and go when what they count is deleted: name here only a count with history = true, whose items go unseen"
        ],
    );
    refused_in(
        "{ counters = \"view-count\" },",
        "{ counters = \"follower-count\" },",
        &expect![
            "derivation.post-cascade: the counters of follower-count stand beside items of User, and this is about those beside items of PostDetail"
        ],
    );
    refused_in(
        "{ counters = \"view-count\" },",
        "{ counters = \"view-count\", entity = \"View\" },",
        &expect!["derivation.post-cascade.hanging.entity: there is no such key: there is counters"],
    );
}

#[test]
fn something_hangs_on_an_owner() {
    let whole = format!("{BASE}[derivation.c]\nkind = \"cascade\"\nowner = \"User\"\nhanging = []\n");
    let refused = load(&whole).map(drop).expect_err("it is refused");
    let wanted = "names nothing: add what goes with the owner, as in [{ entity = \"Comment\" }]";
    assert_eq!((refused.key.as_str(), refused.what.as_str()), ("derivation.c.hanging", wanted));
}

#[test]
fn an_owner_and_what_becomes_of_what_hangs_on_it_are_looked_up() {
    refused_in(
        "from = [\"Post\"]",
        "from = [\"Comment\", \"Team\"]",
        &expect!["derivation.post-cascade.from: Team has no PostId, which the key of PostDetail is made of"],
    );
    refused_in(
        "set = { Status",
        "set = { State",
        &expect![[
            r#"derivation.user-cascade.hanging.set.State: Post has no attribute "State": there are Title, Content, Status, UpdatedAt"#
        ]],
    );
    refused_in(
        "set = { Status = \"archived\" }",
        "set = { Status = \"a\" }, only-if = { Status = \"b\" }",
        &expect![
            "derivation.user-cascade.hanging.only-if: give only-if or set, not both: an entry deletes items under a condition, or sets their attributes"
        ],
    );
    refused_in(
        "only-if = { UserId = \"UserId\" }",
        "only-if = { UserId = \"Email\" }",
        &expect![[
            r#"derivation.user-cascade.hanging.only-if.UserId: the key of User has no field "Email": there is UserId"#
        ]],
    );
    refused_in(
        "key = { Email = \"Email\" }",
        "key = { Email = \"Mail\" }",
        &expect![[
            r#"derivation.user-cascade.hanging.key.Email: User has no field or attribute "Mail": did you mean "Email"?"#
        ]],
    );
    refused_in(
        "key = { Email = \"Email\" }",
        "key = { Email = \"Email\" }, index = \"GSI1\"",
        &expect![
            "derivation.user-cascade.hanging.index: give index or key, not both: an entry finds its items by one of them"
        ],
    );
    refused_in(
        "owner = \"User\"",
        "owner = \"Users\"",
        &expect![[r#"derivation.user-cascade.owner: there is no entity "Users": did you mean "User"?"#]],
    );
}

/// Checks that the example of a kind is refused with this change in it, or in the base.
#[track_caller]
pub(super) fn refused_example(kind: &str, from: &str, to: &str, expect: &Expect) {
    let kind = crate::kinds::descriptions().into_iter().find(|it| it.name == kind).unwrap();
    let text = format!("{BASE}{}", kind.example);
    assert!(text.contains(from), "{from}");
    let ManifestError { key, what, .. } = load(&text.replacen(from, to, 1)).map(drop).expect_err("it is refused");
    expect.assert_eq(&format!("{key}: {what}"));
}

#[test]
fn a_count_creates_only_what_is_derived() {
    refused_example(
        "count",
        "derived = true\nderived-attributes = [\"orders\"]",
        "derived-attributes = [\"orders\"]",
        &expect![
            "derivation.orders-by-status.creates: Ripple creates only items that it also deletes: set derived = true in [entity.OrderStatus], or leave creates out"
        ],
    );
    refused_example(
        "count",
        "creates = true",
        "creates = \"yes\"",
        &expect!["derivation.orders-by-status.creates: is a text: write true or false"],
    );
    let twice = "creates = true\n[derivation.followed-by]\nkind = \"mirror\"\nfrom = \"Follow\"\nto = \"OrderStatus\"\n\
                 link = { status = \"followedId\" }";
    refused_example(
        "count",
        "creates = true",
        twice,
        &expect![
            "derivation.followed-by: writes OrderStatus, as orders-by-status does: name another attribute, or leave one of both out"
        ],
    );
}

#[test]
fn a_count_for_each_member_says_which_field_the_member_is() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("count", from, to, expect);
    let each = "each = \"ancestorIds\"\nlink = { commentId = \"ancestorIds\" }";
    refused(
        "each = \"ancestorIds\"",
        "each = \"ancestors\"",
        &expect![[r#"derivation.replies.each: Comment has no attribute "ancestors": did you mean "ancestorIds"?"#]],
    );
    refused(
        "each = \"ancestorIds\"",
        "each = \"commentId\"",
        &expect![[
            r#"derivation.replies.each: Comment has no attribute "commentId": there are ancestorIds, votes, replies"#
        ]],
    );
    refused(
        "each = \"ancestorIds\"",
        "each = \"thread.ids\"",
        &expect![[
            r#"derivation.replies.each: "thread.ids" is a path into the attribute "thread": name a whole attribute here; keys, declared and written attributes are never paths"#
        ]],
    );
    refused(
        "each = \"ancestorIds\"",
        "each = [\"ancestorIds\"]",
        &expect!["derivation.replies.each: is a list: write a text in quotes"],
    );
    refused(
        "each = \"ancestorIds\"",
        "each = \"replies\"",
        &expect![
            "derivation.replies.each: Comment.replies shows what replies counts (N), and each takes a list or a set: name an attribute that is one"
        ],
    );
    // Without a pair, the comment counts for itself, and not for its members.
    refused(
        each,
        "each = \"ancestorIds\"",
        &expect![[
            r#"derivation.replies.each: no field of the key of Comment is a member of ancestorIds: name the one that is (commentId, postId), as in link = { … = "ancestorIds" }"#
        ]],
    );
    refused(
        each,
        "each = \"ancestorIds\"\nlink = { commentId = \"upper(ancestorIds)\" }",
        &expect![
            "derivation.replies.each: Comment.ancestorIds is taken by `upper(ancestorIds)` in replies (S), and each takes a list or a set: name an attribute that is one"
        ],
    );
    refused(
        each,
        "each = \"ancestorIds\"\nlink = { comment = \"ancestorIds\" }",
        &expect![[
            r#"derivation.replies.link.comment: the key of Comment has no field "comment": did you mean "commentId"?"#
        ]],
    );
    refused(
        each,
        "each = \"votes\"\nwhere = \"votes > 3\"\nlink = { commentId = \"votes\" }",
        &expect![
            "derivation.replies.each: Comment.votes is compared with a value of type N by replies (N), and each takes a list or a set: name an attribute that is one"
        ],
    );
}

#[test]
fn a_mirror_for_each_member_says_which_field_the_member_is() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("mirror", from, to, expect);
    refused(
        "each = \"memberIds\"",
        "each = \"members\"",
        &expect![[r#"derivation.memberships.each: Channel has no attribute "members": did you mean "memberIds"?"#]],
    );
    refused(
        "each = \"memberIds\"",
        "each = \"archivedAt\"",
        &expect![[
            r#"derivation.memberships.each: no field of the key of Membership is a member of archivedAt: name the one that is (channelId, userId), as in link = { … = "archivedAt" }"#
        ]],
    );
    refused(
        "each = \"memberIds\"",
        "each = \"channelId\"",
        &expect![[
            r#"derivation.memberships.each: Channel has no attribute "channelId": there are memberIds, archivedAt"#
        ]],
    );
    refused(
        "{ userId = \"memberIds\" }",
        "{ user = \"memberIds\" }",
        &expect![[
            r#"derivation.memberships.link.user: the key of Membership has no field "user": there are channelId, userId"#
        ]],
    );
    refused(
        "attribute_not_exists(archivedAt)",
        "attribute_not_exists(archived)",
        &expect![[
            r#"derivation.memberships.where: Channel has no field or attribute "archived": did you mean "archivedAt"?"#
        ]],
    );
    refused(
        "attribute_not_exists(archivedAt)",
        "archivedAt = ",
        &expect![
            "derivation.memberships.where: is no condition: at character 14: it ends where an attribute or a value is wanted"
        ],
    );
}
