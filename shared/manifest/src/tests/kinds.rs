//! The shipped table has every kind; each of these changes makes it invalid.

use super::*;

/// The shipped table.
const SOCIAL: &str = include_str!("../../../../examples/social/ripple.toml");

#[track_caller]
fn refused_in(cases: &[(&str, &str)], wanted: &Expect) {
    each_refused_without_place(SOCIAL, cases, wanted);
}

/// Checks the errors about a manifest, a line for each text whose first occurrence is replaced, without the place: the
/// examples' lines may change.
#[track_caller]
fn each_refused_without_place(text: &str, cases: &[(&str, &str)], wanted: &Expect) {
    let error = |&(from, to): &(&str, &str)| {
        assert!(text.contains(from), "{from}");
        let ManifestError { key, what, .. } = load(&text.replacen(from, to, 1)).map(drop).expect_err(to);
        format!("{key}: {what}\n")
    };
    wanted.assert_eq(&cases.iter().map(error).collect::<String>());
}

#[test]
fn the_shipped_table_is_a_manifest() {
    let (schema, catalogue) = load(SOCIAL).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((schema.entities().count(), catalogue.derivations().count()), (30, 53));
}

/// The declarations that the examples refer to.
const BASE: &str = include_str!("base.toml");

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
        &[
            (shows, "shows = { median = \"OrderCount\" }"),
            (shows, "shows = { sum = \"LifetimeValues\" }"),
            (shows, "shows = \"LifetimeValue\""),
            ("sum = \"Total\"\nshows", "shows"),
            ("sum = \"Total\"\n", "sum = \"Totals\"\n"),
            ("sum = \"Total\"\n", "sum = \"OrderId\"\n"),
            ("sum = \"Total\"\n", "sum = \"Total % 2\"\n"),
            ("into = \"User\"\nwhere", "into = \"User.OrderCount\"\nwhere"),
            (shows, "zero = \"absent\""),
        ],
        &expect![[r#"
            derivation.order-totals.shows.median: there is no such key: there are count, sum, average, exists
            derivation.order-totals.shows.sum: User does not declare as derived "LifetimeValues": did you mean "LifetimeValue"?
            derivation.order-totals.shows: is a text: write a table, [derivation.order-totals.shows], with its keys below
            derivation.order-totals.shows.sum: there is no sum: name the attribute to add up, as in sum = "total"
            derivation.order-totals.sum: Order has no field or attribute "Totals": did you mean "Total"?
            derivation.order-totals.sum: OrderId is S, and a number (N) is wanted: write number(OrderId)
            derivation.order-totals.sum: is no name and no expression: at character 7: an operator (+, -, *, /, ||) or the end is wanted before "%"
            derivation.order-totals.shows: shows and into both name an attribute: write into = "User"
            derivation.order-totals.zero: zero says how a count of zero is shown, and this count is not shown: name an attribute, as in into = "User.followerCount", or leave zero out
        "#]],
    );
}

#[test]
fn a_path_needs_its_parts() {
    refused_in(
        &[
            ("into = \"Folder.Path\"", "into = \"Folder\""),
            ("into = \"Folder.Path\"", "into = \"Folder.Name\""),
            ("depth = 64\n", ""),
            ("depth = 64", "depth = 0"),
            ("parent = \"Folder\"", "parent = \"Folders\""),
            ("name = \"Name\"\ndepth = 64", "name = \"Title\"\ndepth = 64"),
            ("by = { ParentId = \"FolderId\" }", "by = { ParentId = \"Name\" }"),
        ],
        &expect![[r#"
            derivation.folder-path.into: names no attribute: the attribute that holds the path, as in "Folder.path"
            derivation.folder-path.into: Folder lists Name in attributes, so the application writes it: name another attribute, or move it to derived-attributes
            derivation.folder-path: depth is missing: how many parts a path has at most, as in 64
            derivation.folder-path.depth: is 0: it is from 1 to 1024
            derivation.folder-path.parent: there is no entity "Folders": did you mean "Folder"?
            derivation.folder-path.name: Folder has no field or attribute "Title": there are FolderId, Name, ParentId, CreatedAt, UpdatedAt, Path, FileCount, TotalBytes; one that your items have is declared in attributes
            derivation.folder-path.found.by.ParentId: the key of Folder has no field "Name": there is FolderId
        "#]],
    );
}

#[test]
fn an_index_key_is_declared_as_derived_and_ordered_by_a_derived_number() {
    refused_in(
        &[
            ("index = \"GSI2\"\nnumber", "index = \"GSI1\"\nnumber"),
            ("number = \"UnitsSold\"", "number = \"Price\""),
            ("into = \"Product\"\nindex", "into = \"Products\"\nindex"),
        ],
        &expect![[r#"
            derivation.best-sellers.index: Product has no key with derived = true in the index "GSI1": did you mean "GSI2"?
            derivation.best-sellers.number: Product lists Price in attributes, so the application writes it: name another attribute, or move it to derived-attributes
            derivation.best-sellers.into: there is no entity "Products": did you mean "Product"?
        "#]],
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
        &[
            ("only-with = \"ManagerId\"", "only-with = \"Manager\""),
            ("only-with = \"ManagerId\"", "only-with = \"ManagerId\"\nonly-if = { Name = \"x\" }"),
            ("only-if = { Status = \"published\" }", "only-if = { Status = [] }"),
            ("only-if = { Status = \"published\" }", "only-if = { Status = 7 }"),
        ],
        &expect![[r#"
            entity.Employee.index.GSI2.only-with: Employee has no field or attribute "Manager": did you mean "ManagerId"?
            entity.Employee.index.GSI2.only-with: give only-if or only-with, not both
            entity.PostDetail.index.GSI2.only-if.Status: is an empty list
            entity.PostDetail.index.GSI2.only-if.Status: is a whole number: write a text in quotes
        "#]],
    );
}

#[test]
fn a_roll_up_needs_its_bucket() {
    refused_in(
        &[
            ("grain = \"Grain\"", "grain = \"Size\""),
            ("bucket = \"Bucket\"\n", ""),
            (", max = \"Max\" }", " }"),
            ("time = \"At\"", "time = \"Time\""),
            ("value = \"Value\"", "value = \"SensorId\""),
            ("into = \"Rollup\"", "into = \"User\""),
        ],
        &expect![[r#"
            derivation.readings-rollup.grain: the key of Rollup has no field "Size": there are Bucket, Grain, SensorId
            derivation.readings-rollup: bucket is missing: the field of the bucket's key that holds the beginning of the time
            derivation.readings-rollup.shows: max is missing: the bucket's attributes, as in { count = "count", sum = "sum", min = "min", max = "max" }
            derivation.readings-rollup.time: Reading has no field or attribute "Time": there are At, Day, SensorId, Value, CreatedAt, UpdatedAt; one that your items have is declared in attributes
            derivation.readings-rollup.value: SensorId is S, and a number (N) is wanted: write number(SensorId)
            derivation.readings-rollup.grain: the key of User has no field "Grain": there is UserId
        "#]],
    );
}

#[test]
fn what_hangs_on_an_owner_is_found_by_its_key() {
    refused_in(
        &[
            ("{ entity = \"Comment\" },", "{ entity = \"Coment\" },"),
            ("{ entity = \"Comment\" },", "{ entity = \"Post\" },"),
            ("{ entity = \"Comment\" },", "\"Comment\","),
            ("{ entity = \"Comment\" },", "{ entities = \"Comment\" },"),
            ("{ counters = \"view-count\" },", "{ counters = \"views\" },"),
            ("{ counters = \"view-count\" },", "{ counters = \"like-count\" },"),
            ("{ counters = \"view-count\" },", "{ counters = \"follower-count\" },"),
            ("{ counters = \"view-count\" },", "{ counters = \"view-count\", entity = \"View\" },"),
        ],
        &expect![[r#"
            derivation.post-cascade.hanging.entity: there is no entity "Coment": did you mean "Comment"?
            derivation.post-cascade.hanging: a change of PostDetail does not have AuthorId of Post, by which its Post items would be found: no entity and no index leads to all of them
            derivation.post-cascade.hanging: write a list of tables, as in [{ … }, { … }]: this element is no table
            derivation.post-cascade.hanging.entities: there is no such key: there are entity, through, index, by, key, counters, only-if, set
            derivation.post-cascade.hanging.counters: there is no count "views": there are follower-count, following-count, post-count, comment-count, like-count, view-count, member-count, team-count, org-member-count, employee-count, folder-totals, product-rating, order-totals, units-sold
            derivation.post-cascade: the counters of like-count come to zero and go when what they count is deleted: name here only a count with history = true, whose items go unseen
            derivation.post-cascade: the counters of follower-count stand beside items of User, and this is about those beside items of PostDetail
            derivation.post-cascade.hanging.entity: there is no such key: there is counters
        "#]],
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
        &[
            ("from = [\"Post\"]", "from = [\"Comment\", \"Team\"]"),
            ("set = { Status", "set = { State"),
            ("set = { Status = \"archived\" }", "set = { Status = \"a\" }, only-if = { Status = \"b\" }"),
            ("only-if = { UserId = \"UserId\" }", "only-if = { UserId = \"Email\" }"),
            ("key = { Email = \"Email\" }", "key = { Email = \"Mail\" }"),
            ("key = { Email = \"Email\" }", "key = { Email = \"Email\" }, index = \"GSI1\""),
            ("owner = \"User\"", "owner = \"Users\""),
        ],
        &expect![[r#"
            derivation.post-cascade.from: Team has no PostId, which the key of PostDetail is made of
            derivation.user-cascade.hanging.set.State: Post has no attribute "State": there are Title, Content, Status, UpdatedAt
            derivation.user-cascade.hanging.only-if: give only-if or set, not both: an entry deletes items under a condition, or sets their attributes
            derivation.user-cascade.hanging.only-if.UserId: the key of User has no field "Email": there is UserId
            derivation.user-cascade.hanging.key.Email: User has no field or attribute "Mail": did you mean "Email"?
            derivation.user-cascade.hanging.index: give index or key, not both: an entry finds its items by one of them
            derivation.user-cascade.owner: there is no entity "Users": did you mean "User"?
        "#]],
    );
}

/// Checks that the example of a kind is refused with this change in it, or in the base.
#[track_caller]
fn refused_example(kind: &str, cases: &[(&str, &str)], wanted: &Expect) {
    let kind = crate::kinds::descriptions().into_iter().find(|it| it.name == kind).unwrap();
    each_refused_without_place(&format!("{BASE}{}", kind.example), cases, wanted);
}

#[test]
fn a_count_creates_only_what_is_derived() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("count", cases, wanted);
    let twice = "creates = true\n[derivation.followed-by]\nkind = \"mirror\"\nfrom = \"Follow\"\nto = \"OrderStatus\"\n\
                 link = { status = \"followedId\" }";
    refused(
        &[
            ("derived = true\nderived-attributes = [\"orders\"]", "derived-attributes = [\"orders\"]"),
            ("creates = true", "creates = \"yes\""),
            ("creates = true", twice),
        ],
        &expect![[r#"
            derivation.orders-by-status.creates: Ripple creates only items that it also deletes: set derived = true in [entity.OrderStatus], or leave creates out
            derivation.orders-by-status.creates: is a text: write true or false
            derivation.followed-by: writes OrderStatus, as orders-by-status does: name another attribute, or leave one of both out
        "#]],
    );
}

#[test]
fn a_count_for_each_member_says_which_field_the_member_is() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("count", cases, wanted);
    let each = "each = \"ancestorIds\"\nlink = { commentId = \"ancestorIds\" }";
    refused(
        &[
            ("each = \"ancestorIds\"", "each = \"ancestors\""),
            ("each = \"ancestorIds\"", "each = \"commentId\""),
            ("each = \"ancestorIds\"", "each = \"thread.ids\""),
            ("each = \"ancestorIds\"", "each = [\"ancestorIds\"]"),
            ("each = \"ancestorIds\"", "each = \"replies\""),
        ],
        &expect![[r#"
            derivation.replies.each: Comment has no attribute "ancestors": did you mean "ancestorIds"?
            derivation.replies.each: Comment has no attribute "commentId": there are ancestorIds, votes, replies
            derivation.replies.each: "thread.ids" is a path into the attribute "thread": name a whole attribute here; keys, declared and written attributes are never paths
            derivation.replies.each: is a list: write a text in quotes
            derivation.replies.each: Comment.replies shows what replies counts (N), and each takes a list or a set: name an attribute that is one
        "#]],
    );
    // Without a pair, the comment counts for itself, and not for its members.
    refused(
        &[
            (each, "each = \"ancestorIds\""),
            (each, "each = \"ancestorIds\"\nlink = { commentId = \"upper(ancestorIds)\" }"),
            (each, "each = \"ancestorIds\"\nlink = { comment = \"ancestorIds\" }"),
            (each, "each = \"votes\"\nwhere = \"votes > 3\"\nlink = { commentId = \"votes\" }"),
        ],
        &expect![[r#"
            derivation.replies.each: no field of the key of Comment is a member of ancestorIds: name the one that is (commentId, postId), as in link = { … = "ancestorIds" }
            derivation.replies.each: Comment.ancestorIds is taken by `upper(ancestorIds)` in replies (S), and each takes a list or a set: name an attribute that is one
            derivation.replies.link.comment: the key of Comment has no field "comment": did you mean "commentId"?
            derivation.replies.each: Comment.votes is compared with a value of type N by replies (N), and each takes a list or a set: name an attribute that is one
        "#]],
    );
}

#[test]
fn a_mirror_for_each_member_says_which_field_the_member_is() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("mirror", cases, wanted);
    refused(
        &[
            ("each = \"memberIds\"", "each = \"members\""),
            ("each = \"memberIds\"", "each = \"archivedAt\""),
            ("each = \"memberIds\"", "each = \"channelId\""),
            ("{ userId = \"memberIds\" }", "{ user = \"memberIds\" }"),
            ("attribute_not_exists(archivedAt)", "attribute_not_exists(archived)"),
            ("attribute_not_exists(archivedAt)", "archivedAt = "),
        ],
        &expect![[r#"
            derivation.memberships.each: Channel has no attribute "members": did you mean "memberIds"?
            derivation.memberships.each: no field of the key of Membership is a member of archivedAt: name the one that is (channelId, userId), as in link = { … = "archivedAt" }
            derivation.memberships.each: Channel has no attribute "channelId": there are memberIds, archivedAt
            derivation.memberships.link.user: the key of Membership has no field "user": there are channelId, userId
            derivation.memberships.where: Channel has no field or attribute "archived": did you mean "archivedAt"?
            derivation.memberships.where: is no condition: at character 14: it ends where an attribute or a value is wanted
        "#]],
    );
}

// ---- the latest and the extreme: which items lead to a target, and in which order ----

#[test]
fn what_a_latest_carries_is_looked_up_and_has_an_order() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("latest", cases, wanted);
    refused(
        &[
            ("{ placedAt = \"lastOrderAt\" }", "{ placedOn = \"lastOrderAt\" }"),
            ("{ placedAt = \"lastOrderAt\" }", "{ placedAt = \"total\" }"),
            ("{ placedAt = \"lastOrderAt\" }", "{ placedAt = \"lastOrderAt\" }\nwhere = { state = \"paid\" }"),
            ("{ placedAt = \"lastOrderAt\" }", "{ placedAt = \"lastOrderAt\", orderId = \"lastOrderAt\" }"),
            ("{ placedAt = \"lastOrderAt\" }", "[]"),
            ("{ placedAt = \"lastOrderAt\" }", "{ placedAt = \"lastOrderAt\" }\nwhich = \"newest\""),
            ("attributes = { placedAt", "found = \"Order\"\nattributes = { placedAt"),
            (
                "partition-key = \"USER#{userId}\"\nsort-key = \"ORDER",
                "partition-key = \"DAY#{day}\"\nsort-key = \"{userId}#ORDER",
            ),
            ("attributes = { placedAt", "link = { userId = \"orderId\" }\nattributes = { placedAt"),
        ],
        &expect![[r#"
            derivation.last-order.attributes.placedOn: Order has no field or attribute "placedOn": did you mean "placedAt"?
            derivation.last-order.attributes.placedAt: User does not declare as derived "total": there are followerCount, orderCount, lifetimeValue, lastOrderAt, firstOrderAt, recentOrders, largestTotal, largestOrder
            derivation.last-order.where.state: Order has no field or attribute "state": there are orderId, placedAt, userId, total, status; one that your items have is declared in attributes
            derivation.last-order.attributes.orderId: placedAt and orderId both give "lastOrderAt", and only one can: name another attribute for one of them
            derivation.last-order.attributes: names nothing to copy: add an attribute
            derivation.last-order.which: there is no value "newest": there are last, first
            derivation.last-order.found: there is no such key: there are kind, id, was, from, to, into, n, link, by, where, attributes, which
            derivation.last-order: name what orders the items, as in by = "createdAt": the items of Order that lead to one User are not consecutive items of one partition: the key of User does not give day of their partition key
            derivation.last-order: name what orders the items, as in by = "createdAt": the items of Order that lead to one User are not consecutive items of one partition: the key of User does not give userId of their partition key
        "#]],
    );
}

#[test]
fn an_extreme_is_of_one_value() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("extreme", cases, wanted);
    refused(
        &[
            ("min = \"placedAt\"\n", ""),
            ("min = \"placedAt\"\n", "min = \"placedAt\"\nmax = \"placedAt\"\n"),
            ("min = \"placedAt\"", "min = \"totl\""),
            (
                "min = \"placedAt\"",
                "min = \"total\"\n[entity.first-order-entries]\npartition-key = \"X#{x}\"\nsort-key = \"X\"",
            ),
            ("into = \"User.firstOrderAt\"", "into = \"User\""),
            ("into = \"User.firstOrderAt\"", "into = \"User.firstOrder\""),
        ],
        &expect![[r#"
            derivation.first-order: min or max is missing: the value whose extreme is shown
            derivation.first-order.max: give min or max, not both: declare two derivations
            derivation.first-order.min: Order has no field or attribute "totl": did you mean "total"?
            derivation.first-order: Ripple's entries for it are of an entity first-order-entries: give the declared one another name
            derivation.first-order.into: names no attribute: the attribute that shows it, as in "Product.lowestPrice"
            derivation.first-order.into: User does not declare as derived "firstOrder": did you mean "firstOrderAt"?
        "#]],
    );
}

#[test]
fn an_extreme_takes_the_end_of_the_collection_at_which_it_stands() {
    let order = |field: &str, which: &str| {
        let text =
            format!("{BASE}{}", crate::kinds::descriptions().iter().find(|it| it.name == "extreme").unwrap().example);
        let text = text.replacen("ORDER#{placedAt}", &format!("ORDER#{field}"), 1).replacen(
            "min = ",
            &format!("{which} = "),
            1,
        );
        let (schema, catalogue) = load(&text).unwrap_or_else(|error| panic!("{error}"));
        let derivation = catalogue.derivations().find(|it| it.name == "first-order").unwrap();
        derivation.kind.outline(&schema).terms.join("")
    };
    assert_eq!(order("{placedAt}", "min"), "the first: placedAt as firstOrderAt");
    assert_eq!(order("{placedAt}", "max"), "the last: placedAt as firstOrderAt");
    assert_eq!(order("{MAX-placedAt:12}", "max"), "the first: placedAt as firstOrderAt");
    assert_eq!(order("{MAX-placedAt:12}", "min"), "the last: placedAt as firstOrderAt");
}

#[test]
fn what_is_no_range_in_the_wanted_order_has_entries() {
    let kinds = |from: &str, to: &str| {
        let example = crate::kinds::descriptions().iter().find(|it| it.name == "latest").unwrap().example;
        let text = format!("{BASE}{example}");
        assert!(text.contains(from), "{from}");
        let (schema, catalogue) = load(&text.replacen(from, to, 1)).unwrap_or_else(|error| panic!("{error}"));
        let ours = catalogue.derivations().filter(|it| it.name.starts_with("last-order"));
        let terms = |it: &derive::derivation::Derivation| it.kind.outline(&schema).terms.join(", ");
        ours.map(|it| format!("{} ({}): {}", it.name, it.kind.name(), terms(it))).collect::<Vec<_>>().join("\n")
    };
    let last = "attributes = { placedAt = \"lastOrderAt\" }";
    let with = |line: &str| kinds(last, &format!("{line}\n{last}"));
    let mut shown = Vec::new();
    for line in [
        "",
        "by = \"placedAt\"",
        "by = \"total\"",
        "where = { status = \"paid\" }",
        "by = \"size(status) * 2\"\nwhich = \"first\"",
    ] {
        shown.extend([format!("# {line}"), with(line)]);
    }
    let elsewhere =
        "partition-key = \"DAY#{day}\"\nsort-key = \"ORDER#{MAX-rank:4}#{placedAt}\"\nattributes = [\"userId\", ";
    let moved = |line: &str| {
        let order = "partition-key = \"USER#{userId}\"\nsort-key = \"ORDER#{placedAt}#{orderId}\"\nattributes = [";
        let base = BASE.replace(order, elsewhere);
        let text = format!(
            "{base}[derivation.last-order]\nkind = \"latest\"\nfrom = \"Order\"\nto = \"User\"\n{line}\n{last}\n"
        );
        load(&text).map(|(_, catalogue)| catalogue.derivations().count()).map_err(|error| error.to_string())
    };
    shown.extend([format!("{:?}", moved("")), format!("{:?}", moved("by = \"placedAt\""))]);
    expect![[r##"
        # 
        last-order (latest): the last: placedAt as lastOrderAt
        # by = "placedAt"
        last-order (latest): the last: placedAt as lastOrderAt
        # by = "total"
        last-order-entries (entries): by total, carrying placedAt as lastOrderAt
        last-order (latest): the last: lastOrderAt
        # where = { status = "paid" }
        last-order-entries (entries): by placedAt, where status = 'paid', carrying placedAt as lastOrderAt
        last-order (latest): the last: lastOrderAt
        # by = "size(status) * 2"
        which = "first"
        last-order-entries (entries): by size(status) * 2, carrying placedAt as lastOrderAt
        last-order (latest): the first: lastOrderAt
        Err("184:13: derivation.last-order: name what orders the items, as in by = \"createdAt\": the items of Order that lead to one User are not consecutive items of one partition: the key of User does not give day of their partition key")
        Ok(4)"##]].assert_eq(&shown.join("\n"));
}

#[test]
fn a_list_of_the_latest_says_where_it_is_and_how_long() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("latest", cases, wanted);
    refused(
        &[
            ("n = 5\n", ""),
            ("n = 5", "n = 0"),
            ("n = 5", "n = 101"),
            ("into = \"User.recentOrders\"\n", ""),
            ("into = \"User.recentOrders\"\n", "to = \"User\"\n"),
            ("into = \"User.recentOrders\"\n", "to = \"User\"\ninto = \"User.recentOrders\"\n"),
            ("into = \"User.recentOrders\"", "into = \"User\""),
            ("into = \"User.recentOrders\"", "into = \"User.recent\""),
            ("[\"placedAt\", \"total\"]", "[\"placedAt\", \"totals\"]"),
        ],
        &expect![[r#"
            derivation.recent-orders.into: names a list: give its greatest length, as in n = 5
            derivation.recent-orders.n: is 0: it is from 1 to 100
            derivation.recent-orders.n: is 101: it is from 1 to 100
            derivation.recent-orders.n: n is the length of a list: name the list's attribute instead of to, as in into = "User.recent"
            derivation.recent-orders.n: n is the length of a list: name the list's attribute instead of to, as in into = "User.recent"
            derivation.recent-orders.into: give into for a list on the target, or to for attributes of one item, not both
            derivation.recent-orders.into: names no attribute: the attribute that holds the list, as in "User.recentOrders"
            derivation.recent-orders.into: User does not declare as derived "recent": there are followerCount, orderCount, lifetimeValue, lastOrderAt, firstOrderAt, recentOrders, largestTotal, largestOrder
            derivation.recent-orders.attributes: Order has no field or attribute "totals": did you mean "total"?
        "#]],
    );
}

#[test]
fn the_entries_of_a_derivation_that_is_called_entries_are_its_own() {
    let example = crate::kinds::descriptions().iter().find(|it| it.name == "extreme").unwrap().example;
    let named = example.replace("[derivation.cheapest]", "[derivation.offer-entries]");
    let (schema, catalogue) = load(&format!("{BASE}{named}")).unwrap_or_else(|error| panic!("{error}"));
    let entries = catalogue.derivations().find(|it| it.name == "offer-entries-entries").unwrap();
    let target = entries.kind.refresh().unwrap().target().to_owned();
    assert!(schema.entity(&target).is_some_and(keys::entity::Definition::is_own), "{target}");
}

// ---- unread ----

#[test]
fn what_is_unread_is_behind_an_attribute_in_the_order_of_the_sort_key() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("unread", cases, wanted);
    let after = "{ sentAt = \"lastReadAt\" }";
    refused(
        &[
            (after, "{ sent = \"lastReadAt\" }"),
            (after, "{ messageId = \"lastReadAt\" }"),
            (after, "{ sentAt = \"lastRead\" }"),
            (after, "{ sentAt = \"lastReadAt\", messageId = \"lastReadAt\" }"),
            (&format!("after = {after}\n"), ""),
            ("limit = 100\n", ""),
            ("limit = 100", "limit = 0"),
            ("limit = 100", "limit = 1001"),
            ("limit = 100", "limit = 100\nzero = \"write\""),
            ("limit = 100", "limit = 100\nwhere = \"attribute_not_exists(deletedAt)\""),
            ("\"Member.unread\"", "\"Member.lastReadAt\""),
            ("\"Member.unread\"", "\"Member\""),
        ],
        &expect![[r#"
            derivation.unread.after.sent: the sort key of Message has no field "sent": there are sentAt, messageId
            derivation.unread.after.messageId: the sort key of Message has sentAt before messageId, and Member does not give it: name sentAt here, or pair it in link
            derivation.unread.after.sentAt: Member has no attribute "lastRead": did you mean "lastReadAt"?
            derivation.unread.after: give one field of the sort key with one attribute of the target, as in { sentAt = "lastReadAt" }
            derivation.unread: after is missing: the field of the sort key and the attribute that counted items are behind, as in { sentAt = "lastReadAt" }
            derivation.unread: limit is missing: the greatest number, as in limit = 100
            derivation.unread.limit: is 0: it is from 1 to 1000
            derivation.unread.limit: is 1001: it is from 1 to 1000
            derivation.unread.zero: there is no value "write": there are always, absent
            derivation.unread.where: the kind unread takes no condition: mirror the items that meet it, and name the mirrors here
            derivation.unread.into: Member lists lastReadAt in attributes, so the application writes it: name another attribute, or move it to derived-attributes
            derivation.unread.into: names no attribute: the attribute that shows the number, as in "Member.unread"
        "#]],
    );
}

#[test]
fn what_is_unread_is_one_range_and_its_targets_are_found() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("unread", cases, wanted);
    let link = "link = { roomId = \"roomId\" }";
    refused(
        &[
            (link, "link = { roomId = \"userId\", messageId = \"userId\" }"),
            (link, "link = { room = \"roomId\" }"),
            (link, "link = { roomId = \"userId\" }"),
            ("limit = 100", "limit = 100\nfound = \"Membership\""),
            ("limit = 100", "limit = 100\nfound = { index = \"byPost\" }"),
        ],
        &expect![[r#"
            derivation.unread.link.messageId: is not before sentAt in the key of Message, so the items with one messageId are no range: leave it out
            derivation.unread.link.room: the key of Message has no field "room": there are messageId, roomId, sentAt
            derivation.unread: a change of Message does not have roomId of Member, by which its Member items would be found: no entity and no index leads to all of them
            derivation.unread.found: a change of Message does not have userId of Membership, by which its Member items would be found: no entity and no index leads to all of them
            derivation.unread.found.index: Member has no key in an index "byPost": there is none
        "#]],
    );
    let sort = "MSG#{sentAt}#{messageId}";
    refused(
        &[
            (sort, "MSG#{MAX-sentAt:12}#{messageId}"),
            (sort, "MSG#{sentAt}.{messageId}"),
            (
                "partition-key = \"ROOM#{roomId}\"\nsort-key = \"MSG",
                "partition-key = \"MSG#{id}\"\nsort-key = \"{roomId}#MSG",
            ),
        ],
        &expect![[r#"
            derivation.unread.after.sentAt: MSG#{MAX-sentAt:12}#{messageId} of Message has the greatest sentAt first, so newer items are before the value: mirror them under a sort key without MAX-, and count the mirrors
            derivation.unread.after.sentAt: a value of sentAt may contain the text that ends it in MSG#{sentAt}.{messageId} of Message: write # there
            derivation.unread: nothing gives id of the key of Message: name the attribute of Member with its value (roomId, userId, lastReadAt, unread), as in link = { id = "…" }
        "#]],
    );
}

#[test]
fn a_number_is_no_text_that_was_read_last() {
    let counted = "limit = 100\n[derivation.messages]\nkind = \"count\"\nfrom = \"Message\"\ninto = \"Member.read\"\nlink = { roomId = \"roomId\", userId = \"roomId\" }";
    let base = BASE.replacen("derived-attributes = [\"unread\"]", "derived-attributes = [\"unread\", \"read\"]", 1);
    let example = crate::kinds::descriptions().into_iter().find(|it| it.name == "unread").unwrap().example;
    let text = format!("{base}{}", example.replacen("limit = 100", counted, 1).replacen("lastReadAt", "read", 1));
    let ManifestError { key, what, .. } = load(&text).map(drop).expect_err("it is refused");
    expect!["derivation.unread.after.sentAt: Member.read shows what messages counts (N), and sentAt in the key of Message takes text (S): name an attribute of text"].assert_eq(&format!("{key}: {what}"));
}

#[test]
fn a_number_may_be_what_was_read_last() {
    let example = crate::kinds::descriptions().into_iter().find(|it| it.name == "unread").unwrap().example;
    let text = format!("{BASE}{example}zero = \"absent\"\n").replace("MSG#{sentAt}", "MSG#{sentAt:12}");
    let (schema, catalogue) = load(&text).unwrap_or_else(|error| panic!("{error}"));
    let derivation = catalogue.derivations().find(|it| it.name == "unread").unwrap();
    let outline = derivation.kind.outline(&schema);
    expect!["those whose sentAt is behind its lastReadAt, up to 100, as unread, absent for zero; roomId is its roomId"]
        .assert_eq(&outline.terms.join(""));
}

// ---- windows and calculated attributes: what they read, and what a window adds up ----

#[test]
fn a_window_is_over_the_last_hours_or_days_of_buckets() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("window", cases, wanted);
    let last = "last = \"7 days\"";
    refused(
        &[
            (last, ""),
            (last, "last = 7"),
            (last, "last = \"7\""),
            (last, "last = \"a week\""),
            (last, "last = \"1 week\""),
            (last, "last = \"24 hours\""),
            (last, "last = \"0 days\""),
            (last, "last = \"900 hours\""),
        ],
        &expect![[r#"
            derivation.plays-this-week: last is missing: how long the window is, as in last = "7 days"
            derivation.plays-this-week.last: is a whole number: write a text in quotes
            derivation.plays-this-week.last: is a number of hours or days, as in "24 hours" or "7 days"
            derivation.plays-this-week.last: is in hours or days: write 7 days for a week, or 30 days for a month
            derivation.plays-this-week.last: is in hours or days: write 7 days for a week, or 30 days for a month
            derivation.plays-this-week.last: the buckets of SongDay are by day, and last is by hour: make both the same
            derivation.plays-this-week.last: is from 1 to 400 hours or days
            derivation.plays-this-week.last: is from 1 to 400 hours or days
    "#]],
    );
}

#[test]
fn the_parts_of_a_window_are_looked_up() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("window", cases, wanted);
    refused(
        &[("sum = \"plays\"", ""), ("sum = \"plays\"", "sum = \"play\""), ("sum = \"plays\"", "sum = \"day\"")],
        &expect![[r#"
            derivation.plays-this-week: sum is missing: the attribute of a bucket that is added up
            derivation.plays-this-week.sum: SongDay has no field or attribute "play": did you mean "plays"?
            derivation.plays-this-week.sum: day is S, and a number (N) is wanted: write number(day)
        "#]],
    );
}

#[test]
fn the_bucket_and_the_target_of_a_window_are_looked_up() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("window", cases, wanted);
    refused(
        &[
            ("bucket = \"day\"\n", ""),
            ("bucket = \"day\"", "bucket = \"date\""),
            ("bucket = \"day\"", "bucket = \"songId\""),
            ("bucket = \"day\"", "bucket = \"day\"\ngrain = \"span\""),
            ("bucket = \"day\"", "bucket = \"day\"\nzero = \"write\""),
            ("bucket = \"day\"", "bucket = \"day\"\nwhere = \"plays > 1\""),
            ("into = \"Song.playsThisWeek\"", "into = \"Song\""),
            ("into = \"Song.playsThisWeek\"", "into = \"Song.title\""),
            ("from = \"SongDay\"", "from = \"Play\""),
        ],
        &expect![[r#"
            derivation.plays-this-week: bucket is missing: the field with which the sort key of SongDay ends, an hour or a day
            derivation.plays-this-week.bucket: the key of SongDay has no field "date": there are day, songId
            derivation.plays-this-week.bucket: the sort key of SongDay does not end with songId: DAY#{day}
            derivation.plays-this-week.grain: the key of SongDay has no field "span": there are day, songId
            derivation.plays-this-week.zero: there is no value "write": there are always, absent
            derivation.plays-this-week.where: the kind window takes no condition: mirror the items that meet it, and name the mirrors here
            derivation.plays-this-week.into: names no attribute: the attribute that shows the sum, as in "Song.playsThisWeek"
            derivation.plays-this-week.into: Song lists title in attributes, so the application writes it: name another attribute, or move it to derived-attributes
            derivation.plays-this-week.sum: Play has no field or attribute "plays": there are at, userId, songId; one that your items have is declared in attributes
        "#]],
    );
}

#[test]
fn a_window_over_a_roll_up_takes_its_fields_and_one_of_its_time_spans() {
    let window = |grains: &str, last: &str| {
        let readings = crate::kinds::descriptions().into_iter().find(|it| it.name == "roll-up").unwrap().example;
        let readings = readings.replace("value = \"value\"", &format!("value = \"value\"\n{grains}"));
        let sensor = "[entity.Sensor]\npartition-key = \"SENSOR#{sensorId}\"\nsort-key = \"SENSOR\"\n\
                      derived-attributes = [\"recent\"]";
        let window = format!(
            "[derivation.recent]\nkind = \"window\"\nfrom = \"ReadingTotals\"\ninto = \"Sensor.recent\"\nlast = \"{last}\"\n\
             sum = \"count\"\n"
        );
        load(&format!("{BASE}{readings}{sensor}\n{window}"))
    };
    let outline = |grains: &str, last: &str| {
        let (schema, catalogue) = window(grains, last).unwrap();
        let derivation = catalogue.derivations().find(|it| it.name == "recent").unwrap();
        derivation.kind.outline(&schema).terms.join("; ")
    };
    assert_eq!(outline("", "24 hours"), "sum of count of the last 24 hours in UTC, as recent");
    assert_eq!(outline("", "1 day"), "sum of count of the last 1 day in UTC, as recent");
    let refused = window("grains = [\"hour\"]", "7 days").map(drop).unwrap_err();
    expect![[r#"ReadingTotals has no buckets by day: add "day" to the grains of its roll-up"#]]
        .assert_eq(&refused.what);
}

#[test]
fn a_calculated_attribute_is_an_expression_over_its_own_item() {
    let refused = |cases: &[(&str, &str)], wanted: &Expect| refused_example("calculated", cases, wanted);
    let value = "value = \"100 * if_not_exists(doneCount, 0) / taskCount\"";
    refused(
        &[
            (value, ""),
            (value, "value = \"100\""),
            (value, "value = \"100 * doneCount / tasks\""),
            (value, "value = \"100 * doneCount / \""),
            (value, "value = \"doneCount % taskCount\""),
            (value, "value = \"lower(budget * 2)\""),
            (value, "value = \"name / 2 + projectId\""),
            (value, "value = \"percentDone + 1\""),
            (value, "value = \"doneCount\"\nfrom = \"Project\""),
        ],
        &expect![[r#"
            derivation.percent-done: value is missing: what it is, as in "100 * doneCount / taskCount"
            derivation.percent-done.value: Project has no field or attribute "100": there are projectId, name, budget, doneCount, taskCount, percentDone; one that your items have is declared in attributes
            derivation.percent-done.value: Project has no field or attribute "tasks": there are projectId, name, budget, doneCount, taskCount, percentDone; one that your items have is declared in attributes; a text stands in single quotes
            derivation.percent-done.value: is no name and no expression: at character 19: it ends where an attribute or a value is wanted
            derivation.percent-done.value: is no name and no expression: at character 11: an operator (+, -, *, /, ||) or the end is wanted before "%"
            derivation.percent-done.value: is no name and no expression: at character 1: lower(a) takes S, and budget * 2 is N: write text(…) for the text of a number
            derivation.percent-done.value: Project.projectId is in the key (S), and `name / 2 + projectId` takes N: write number(projectId) for a number that is stored as text
            derivation.percent-done: it reads what it writes
            derivation.percent-done.from: there is no such key: there are kind, id, was, into, value
    "#]],
    );
    refused(
        &[
            ("into = \"Project.percentDone\"", "into = \"Project.name\""),
            ("into = \"Project.percentDone\"", "into = \"percentDone\""),
        ],
        &expect![[r#"
            derivation.percent-done.into: Project lists name in attributes, so the application writes it: name another attribute, or move it to derived-attributes
            derivation.percent-done.into: names no attribute: the attribute that has the value, as in "Project.percentDone"
        "#]],
    );
}

#[test]
fn a_number_that_is_calculated_has_a_type() {
    let refused = |value: &str| {
        let text = format!(
            "{BASE}[derivation.percent]\nkind = \"calculated\"\ninto = \"Project.percentDone\"\nvalue = \"{value}\"\n\
             [derivation.by]\nkind = \"mirror\"\nfrom = \"Project\"\nto = \"SongDay\"\n\
             link = {{ songId = \"percentDone\", day = \"projectId\" }}\n"
        );
        load(&text).map(drop)
    };
    let number = refused("doneCount * 2").unwrap_err();
    expect!["derivation.by.link.songId: Project.percentDone shows what percent derives (N), and a link takes text (S): name an attribute of text"].assert_eq(&format!("{}: {}", number.key, number.what));
    assert_eq!(refused("lower(name)"), Ok(()));
}
