//! Mistakes in names, types and paths: entities, attributes, fields and derivations.

use derive::derived::{Derived, Items};
use expect_test::{Expect, expect};
use serde_dynamo::AttributeValue;

use super::*;

#[test]
fn a_name_that_is_declared_nowhere_is_refused_with_what_was_meant() {
    refused(
        &[
            ("kind = \"mirror\"", "kind = \"miror\""),
            ("kind = \"mirror\"", "kind = \"sum\""),
            ("from = \"Order\"\ninto", "from = \"Ordre\"\ninto"),
            ("into = \"Customer.orderCount\"", "into = \"Costumer.orderCount\""),
            ("into = \"Customer.orderCount\"", "into = \"Customer.OrdersCount\""),
            ("into = \"Customer.orderCount\"", "into = \"Customer.customerName\""),
            ("derived-attributes = [\"orderCount\"]", ""),
            ("to = \"OrderById\"\nexcept", "to = \"Orders\"\nexcept"),
            ("except = [\"note\"]", "except = [\n  \"status\",\n  \"notes\",\n]"),
        ],
        &expect![[r#"
            44:1: derivation.order-by-id.kind: there is no kind "miror": did you mean "mirror"?
            44:1: derivation.order-by-id.kind: there is no kind "sum": sum is shown by a count, as in shows = { sum = "…" }
            37:1: derivation.order-count.from: there is no entity "Ordre": did you mean "Order"?
            38:1: derivation.order-count.into: there is no entity "Costumer": did you mean "Customer"?
            38:1: derivation.order-count.into: Customer does not declare as derived "OrdersCount": did you mean "orderCount"?
            38:1: derivation.order-count.into: Customer lists customerName in attributes, so the application writes it: name another attribute, or move it to derived-attributes
            38:1: derivation.order-count.into: Customer declares no derived attribute: add derived-attributes = ["orderCount"] to [entity.Customer]
            46:1: derivation.order-by-id.to: there is no entity "Orders": did you mean "Order"?
            49:3: derivation.order-by-id.except: Order has no attribute "notes": did you mean "note"?
        "#]],
    );
}

#[test]
fn a_copied_attribute_and_how_it_is_found_are_looked_up() {
    refused(
        &[
            ("{ customerName = \"buyerName\" }", "{ custommerName = \"buyerName\" }"),
            ("{ customerName = \"buyerName\" }", "{ customerName = \"byerName\" }"),
            ("found = { index = \"byCustomer\" }", "found = { index = \"byCustmer\" }"),
            ("found = { index = \"byCustomer\" }", "found = \"Orders\""),
            ("{ status = \"paid\" }\nshards", "{ state = \"paid\" }\nshards"),
            ("{ status = \"paid\" }\n\n", "{ stats = \"paid\" }\n\n"),
        ],
        &expect![[r#"
            54:16: derivation.buyer-name.attributes.custommerName: Customer has no field or attribute "custommerName": did you mean "customerName"?
            54:16: derivation.buyer-name.attributes.customerName: Order does not declare as derived "byerName": did you mean "buyerName"?
            55:11: derivation.buyer-name.found.index: Order has no key in an index "byCustmer": did you mean "byCustomer"?
            55:1: derivation.buyer-name.found: there is no entity "Orders": did you mean "Order"?
            40:11: derivation.order-count.where.state: Order has no field or attribute "state": there are orderId, orderedOn, shopId, buyerId, status, note, buyerName; one that your items have is declared in attributes
            26:13: entity.Order.index.byCustomer.only-if.stats: Order has no field or attribute "stats": did you mean "status"?
        "#]],
    );
}

#[test]
fn a_field_of_a_key_is_looked_up() {
    refused(
        &[
            ("[entity.Order.index.byCustomer]", "[entity.Order.index.byCostumer]"),
            ("\"CUSTOMER#{buyerId}\"", "\"CUSTOMER#{byerId}\""),
            ("link = { customerId = \"buyerId\" }\nwhere", "link = { customer = \"buyerId\" }\nwhere"),
            ("link = { customerId = \"buyerId\" }\nwhere", "link = { customerId = \"byuerId\" }\nwhere"),
            ("by = { buyerId = \"customerId\" }", "by = { buyerId = \"custId\" }"),
        ],
        &expect![[r#"
            23:21: entity.Order.index.byCostumer: there is no index "byCostumer": did you mean "byCustomer"?
            24:1: entity.Order.index.byCustomer.partition-key: Order has no field or attribute "byerId": did you mean "buyerId"?
            39:10: derivation.order-count.link.customer: the key of Customer has no field "customer": did you mean "customerId"?
            39:10: derivation.order-count.link.customerId: Order has no field or attribute "byuerId": did you mean "buyerId"?
            63:59: derivation.buyer-name-by-id.found.by.buyerId: the key of Customer has no field "custId": there is customerId
        "#]],
    );
}

#[test]
fn a_template_that_cannot_be_read_is_refused() {
    refused(
        &[
            ("partition-key = \"SHOP#{shopId}\"", "partition-key = \"SHOP#{shopId\""),
            ("partition-key = \"SHOP#{shopId}\"", "partition-key = \"SHOP#{shop id}\""),
            ("partition-key = \"SHOP#{shopId}\"", "partition-key = \"{shopId}{orderId}\""),
            ("partition-key = \"SHOP#{shopId}\"", "partition-key = \"\""),
        ],
        &expect![[r#"
            19:1: entity.Order.partition-key: key template `SHOP#{shopId`: a `{` without its `}`
            19:1: entity.Order.partition-key: key template `SHOP#{shop id}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits
            19:1: entity.Order.partition-key: key template `{shopId}{orderId}`: two fields need text between them
            19:1: entity.Order.partition-key: is empty
        "#]],
    );
}

#[test]
fn an_attribute_has_one_use() {
    refused(
        &[
            ("sort-key = \"sk\"", "sort-key = \"pk\""),
            ("type = \"Type\"", "type = \"gsk\""),
            ("time-to-live = \"expiresOn\"", "time-to-live = \"Type\""),
            ("\"status\", \"note\"", "\"status\", \"gpk\""),
            ("\"status\", \"note\"", "\"status\", \"Type\""),
            ("derived-attributes = [\"buyerName\"]", "derived-attributes = [\"buyerName\", \"expiresOn\"]"),
            ("\"status\", \"note\"", "\"status\", \"orderId\""),
            ("\"status\", \"note\"", "\"status\", \"status\""),
            ("\"status\", \"note\"", "\"status\", \"buyerName\""),
            ("[entity.OrderById]", "[entity.Counter]"),
        ],
        &expect![[r#"
            3:1: table.sort-key: names an attribute that is a key, or has another use already: name another
            4:1: table.type: names an attribute that is a key, or has another use already: name another
            5:1: table.time-to-live: names an attribute that is a key, or has another use already: name another
            21:36: entity.Order.attributes: "gpk" is an attribute of a key: leave it out
            21:36: entity.Order.attributes: "Type" is the attribute of the type: leave it out
            22:36: entity.Order.derived-attributes: "expiresOn" is the attribute of the time to live: leave it out
            21:36: entity.Order.attributes: "orderId" is a field of the key: leave it out
            21:36: entity.Order.attributes: names "status" twice
            22:23: entity.Order.derived-attributes: "buyerName" is declared twice: leave it out
            29:1: entity.Counter.partition-key: every manifest has counters, and only their id can be declared: leave this out
        "#]],
    );
}

#[test]
fn derivations_that_cannot_be_are_refused() {
    refused(
        &[
            ("link = { customerId = \"buyerId\" }\nwhere", "where"),
            ("derived = true\n", ""),
            ("\"Claims\", ", ""),
            ("found = { index = \"byCustomer\" }", ""),
            ("found = { index = \"byCustomer\" }", "found = \"OrderById\""),
            ("through = \"Order\", index = \"byCustomer\", ", "through = \"Customer\", "),
            ("projection = [\"Type\", \"status\"]\n", "projection = [\"status\"]\n"),
            ("[derivation.order-by-id]", "[derivation.order-count-display]"),
        ],
        &expect![[r#"
            35:13: derivation.order-count: nothing gives customerId of the key of Customer: name the attribute of Order with its value (orderId, orderedOn, shopId, buyerId, status, note, buyerName), as in link = { customerId = "…" }
            45:1: derivation.order-by-id.to: OrderById is the application's: a mirror's entity says derived = true in [entity.OrderById]
            46:1: derivation.order-by-id.to: the key of OrderById does not contain orderedOn of its Order: put it into that key, if each Order has a OrderById of its own; if several may share one, add "Claims", a list of them, to the derived-attributes of OrderById
            49:13: derivation.buyer-name: a change of Customer does not have shopId of Order, by which its Order items would be found: write found = { index = "byCustomer" }
            55:1: derivation.buyer-name.found: a change of Customer does not have orderId of OrderById, by which its Order items would be found: write found = { index = "byCustomer" }
            63:1: derivation.buyer-name-by-id.found: a change of Customer does not have customerId of Customer, by which its OrderById items would be found: write found = { through = "Order", index = "byCustomer" }
            55:1: derivation.buyer-name.found: byCustomer does not project "Type", which Ripple needs to find the Order items: add it to the projection of [index.byCustomer]
            43:13: derivation.order-count-display: there is another derivation of this name; that of a count's display ends with -display, that of the items that it creates with -item, and that of the entries of a latest or an extreme with -entries
        "#]],
    );
    let again = "[derivation.also]\nkind = \"mirror\"\nfrom = \"Order\"\nto = \"OrderById\"\n\n[derivation.buyer-name]";
    refused(
        &[("[derivation.buyer-name]", again)],
        &expect![[r#"
            49:13: derivation.also: writes OrderById, as order-by-id does: name another attribute, or leave one of both out
        "#]],
    );
}

#[test]
fn names_that_cannot_be_stored_or_mean_something_else_are_refused() {
    refused(
        &[("[derivation.order-by-id]", "[derivation.\"order by id\"]")],
        &expect![[r#"
            43:13: derivation.order by id: a derivation's name has only letters, digits, - and _, because it is stored in keys
        "#]],
    );
    let long = format!("[derivation.{}]", "o".repeat(65));
    refused(
        &[
            ("[derivation.order-by-id]", &long),
            ("[derivation.order-by-id]", "[derivation.ground]"),
            ("[entity.OrderById]", "[entity.\"\"]"),
        ],
        &expect![[r#"
            43:13: derivation.ooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo: a derivation's name has at most 64 characters, because it is stored in keys
            43:13: derivation.ground: DISABLED takes this name for all derivations that delete items: give it another one
            28:9: entity.: the name of an entity is empty: items have it as their type
        "#]],
    );
}

#[test]
fn a_circle_is_refused_at_the_first_of_it() {
    let text = r##"
        table = { partition-key = "pk", sort-key = "sk", type = "Type" }
        [entity.A]
        partition-key = "A#{id}"
        sort-key = "A"
        derived-attributes = ["name"]
        [entity.B]
        partition-key = "A#{id}"
        sort-key = "B"
        derived-attributes = ["name"]
        [derivation]
        a = { kind = "copy", from = "B", to = "A", attributes = ["name"] }
        b = { kind = "copy", from = "A", to = "B", attributes = ["name"] }
    "##;
    refused_whole(text, &expect!["12:9: derivation.a: derivations build on each other in a circle: a, b"]);
}

#[test]
fn a_path_into_a_map_is_refused_where_an_attribute_is_declared_or_written_or_a_key_is_made_of_it() {
    let places = [
        ("sort-key = \"sk\"", "sort-key = \"s.k\""),
        ("partition-key = \"gpk\"", "partition-key = \"g[0]\""),
        ("attributes = [\"customerName\"]\nderived", "attributes = [\"profile.name\"]\nderived"),
        ("derived-attributes = [\"orderCount\"]", "derived-attributes = [\"counts.orders\"]"),
        ("partition-key = \"CUSTOMER#{buyerId}\"", "partition-key = \"CUSTOMER#{buyer.id}\""),
        ("only-if = { status = ", "only-if = { \"order.status\" = "),
        ("into = \"Customer.orderCount\"", "into = \"Customer.counts.orders\""),
        ("{ customerName = \"buyerName\" }", "{ customerName = \"buyer.name\" }"),
        ("except = [\"note\"]", "except = [\"note.text\"]"),
    ];
    let mut said = String::new();
    for (piece, instead) in places {
        assert_eq!(SHOP.matches(piece).count(), 1, "{piece} stands there once");
        let error = load(&SHOP.replace(piece, instead)).expect_err(instead).to_string();
        let (place, what) = error.split_once(" is a path into the attribute ").unwrap_or((&error, "no path"));
        let (outer, _) = what.split_once(": name a whole attribute here").unwrap_or((what, ""));
        said.extend([place, " in ", outer, "\n"]);
    }
    expect![[r#"
        3:1: table.sort-key: "s.k" in "s"
        8:1: index.byCustomer.partition-key: "g[0]" in "g"
        15:15: entity.Customer.attributes: "profile.name" in "profile"
        16:23: entity.Customer.derived-attributes: "counts.orders" in "counts"
        24:1: entity.Order.index.byCustomer.partition-key: key template `CUSTOMER#{buyer.id}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits in no path
        26:13: entity.Order.index.byCustomer.only-if.order.status: "order.status" in "order"
        38:1: derivation.order-count.into: "counts.orders" in "counts"
        54:16: derivation.buyer-name.attributes.customerName: "buyer.name" in "buyer"
        47:11: derivation.order-by-id.except: "note.text" in "note"
    "#]].assert_eq(&said);
}

#[test]
fn an_attribute_that_is_known_to_hold_a_number_is_refused_where_text_is_taken() {
    let customers = r##"
[entity.CustomerByName]
partition-key = "NAME#{customerName}"
sort-key = "CUSTOMER#{customerId}"
derived = true
attributes = ["orderCount"]
derived-attributes = ["Claims"]

[entity.Rank]
partition-key = "RANK#{rank}"
sort-key = "RANK"
derived-attributes = ["customers"]

[derivation.customer-by-name]
kind = "mirror"
from = "Customer"
to = "CustomerByName"

"##;
    let ranked = |from: &str, rest: &str| {
        let count =
            format!("[derivation.ranked]\nkind = \"count\"\nfrom = \"{from}\"\ninto = \"Rank.customers\"\n{rest}\n");
        load(&format!("{SHOP}{customers}{count}")).expect_err(rest).to_string()
    };
    let said = [
        ranked("Customer", "link = { rank = \"orderCount\" }"),
        ranked("CustomerByName", "link = { rank = \"orderCount\" }"),
        ranked("Customer", "link = { rank = \"customerName\" }\nwhere = { orderCount = \"3\" }"),
    ];
    expect![[r#"
        86:10: derivation.ranked.link.rank: Customer.orderCount shows what order-count counts (N), and a link takes text (S): name an attribute of text
        86:10: derivation.ranked.link.rank: CustomerByName.orderCount shows what order-count counts (N), and a link takes text (S): name an attribute of text
        87:11: derivation.ranked.where.orderCount: Customer.orderCount shows what order-count counts (N), and where takes text (S): name an attribute of text
    "#]]
    .assert_eq(&(said.join("\n") + "\n"));
}

// ---- manifests of people who know DynamoDB but not this language ----

/// A table for each model.
const MODELS: &str = r#"
[tables.Post]
partition-key = "id"
[tables.Comment]
partition-key = "id"
[tables.Comment.index.byPost]
partition-key = "postId"
[tables.Comment.index.byLikes]
partition-key = "postId"
sort-key = { name = "likeCount", type = "N" }
[tables.Like]
partition-key = "id"
[tables.Like.index.byComment]
partition-key = "commentId"

[entity.Post]
table = "Post"
attributes = ["title"]
derived-attributes = ["commentCount", "stars"]
[entity.Comment]
table = "Comment"
attributes = ["postId", "rating"]
derived-attributes = ["likeCount", "isLiked", "postTitle"]
[entity.Like]
table = "Like"
attributes = ["commentId"]

[derivation.likes]
kind = "count"
from = "Like"
into = "Comment"
link = { id = "commentId" }
shows = { count = "likeCount", exists = "isLiked" }

[derivation.comments]
kind = "count"
from = "Comment"
into = "Post"
link = { id = "postId" }
sum = "rating"
shows = { count = "commentCount", sum = "stars" }

[derivation.title]
kind = "copy"
from = "Post"
to = "Comment"
link = { id = "postId" }
attributes = { title = "postTitle" }
found = { index = "byPost" }

[derivation.comments-of-post]
kind = "cascade"
owner = "Post"
hanging = [{ entity = "Comment", index = "byPost", by = { postId = "id" } }]
"#;

#[track_caller]
fn misled(cases: &[(&str, &str)], mistakes: &Expect) {
    each_refused(MODELS, cases, mistakes);
}

#[test]
fn what_is_right_is_taken() {
    load(MODELS).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn sides_and_names_that_are_mistaken_are_told_apart() {
    misled(
        &[
            ("link = { id = \"commentId\" }", "link = { commentId = \"id\" }"),
            ("found = { index = \"byPost\" }", "found = \"byPost\""),
            (
                "found = { index = \"byPost\" }",
                "found = { through = \"Like\", index = \"byComment\", by = { commentId = \"id\" } }",
            ),
            ("into = \"Comment\"\n", "into = \"likeCount\"\n"),
            ("kind = \"copy\"", "kind = \"sum\""),
            ("kind = \"copy\"", "kind = \"max\""),
            ("[\"commentId\"]", "[\"commentId\", \"\"]"),
            ("partition-key = \"commentId\"", "partition-key = \"commentId\"\nsort-key = \"commentId\""),
        ],
        &expect![[r#"
            32:10: derivation.likes.link.commentId: the sides are swapped: id is of the key of Comment and stands on the left, as in { id = "commentId" }
            49:1: derivation.title.found: byPost is an index: write found = { index = "byPost" }
            49:1: derivation.title.found: the id of Like is its own, and leads to no Comment: with [tables] a field called id is found through a mirror only
            31:1: derivation.likes.into: there is no entity "likeCount": there are Comment, Like, Post; the target and its attribute are written as in "User.followerCount"
            44:1: derivation.title.kind: there is no kind "sum": sum is shown by a count, as in shows = { sum = "…" }
            44:1: derivation.title.kind: there is no kind "max": max is an extreme, as in max = "placedAt"
            26:28: entity.Like.attributes: contains an empty text: leave it out
            13:20: tables.Like.index.byComment: has commentId in its key twice
        "#]],
    );
}

#[test]
fn what_goes_with_an_owner_goes_once() {
    misled(
        &[(
            "[derivation.comments-of-post]",
            "[derivation.all-of-post]\nkind = \"cascade\"\nowner = \"Post\"\nhanging = [{ entity = \"Comment\", index = \
         \"byPost\", by = { postId = \"id\" } }]\n[derivation.comments-of-post]",
        )],
        &expect![[r#"
            55:13: derivation.comments-of-post: all-of-post deletes the Comment items of a Post already: remove one of the two entries
        "#]],
    );
}

#[test]
fn numbers_and_truths_are_not_taken_for_texts() {
    misled(
        &[
            ("sum = \"rating\"", "sum = \"rating\"\nwhere = \"rating > '0'\""),
            ("sum = \"rating\"", "sum = \"rating\"\nwhere = \"rating = true\""),
            ("sum = \"rating\"", "sum = \"rating\"\nwhere = \"isLiked = 'yes'\""),
            ("sum = \"rating\"", "sum = \"rating\"\nwhere = \"isLiked = 1\""),
            ("sum = \"rating\"", "sum = \"rating\"\nwhere = \"id = 7\""),
            ("{ name = \"likeCount\", type = \"N\" }", "\"likeCount\""),
            ("{ name = \"likeCount\", type = \"N\" }", "\"isLiked\""),
            ("into = \"Post\"\n", "into = \"Post.commentCount\"\n"),
        ],
        &expect![[r#"
            41:1: derivation.comments.where: Comment.rating is summed by comments (N), and is compared with a value of type S: values of different types are never equal, so compare it with one of type N
            41:1: derivation.comments.where: Comment.rating is summed by comments (N), and is compared with a value of type BOOL: values of different types are never equal, so compare it with one of type N
            41:1: derivation.comments.where: Comment.isLiked shows what likes counts (BOOL), and is compared with a value of type S: values of different types are never equal, so compare it with one of type BOOL
            41:1: derivation.comments.where: Comment.isLiked shows what likes counts (BOOL), and is compared with a value of type N: values of different types are never equal, so compare it with one of type BOOL
            41:1: derivation.comments.where: Comment.id is in the key (S), and is compared with a value of type N: values of different types are never equal, so compare it with one of type S
            28:13: derivation.likes: Comment.likeCount shows what likes counts (N), and the index byLikes has it as type S: declare it there as { name = "likeCount", type = "N" }
            28:13: derivation.likes: Comment.isLiked shows what likes counts (BOOL), and the index byLikes has it as type S: leave it out of that key
            41:1: derivation.comments.shows: shows and into both name an attribute: write into = "Post"
        "#]],
    );
}

#[test]
fn a_sum_that_nothing_shows_is_refused() {
    let shows = "into = \"Post\"\nlink = { id = \"postId\" }\nsum = \"rating\"\nshows = { count = \"commentCount\", sum = \"stars\" }";
    misled(
        &[(shows, "into = \"Post.stars\"\nlink = { id = \"postId\" }\nsum = \"rating\"")],
        &expect![[r#"
            40:1: derivation.comments.sum: into = "Post.stars" shows the number of items, and nothing shows the sum: write into = "Post" and shows = { sum = "…" }
        "#]],
    );
}

#[test]
fn a_cascade_that_would_come_back_to_its_beginning_is_refused() {
    let back = "[derivation.post-of-comment]\nkind = \"cascade\"\nowner = \"Comment\"\nhanging = [{ entity = \"Post\", by = { id = \"id\" } }]\n";
    refused_whole(
        &format!("{MODELS}\n{back}"),
        &expect![
            "51:13: derivation.comments-of-post: it and post-of-comment delete in a circle: each deletes the items that start the other; remove one of the two entries"
        ],
    );
    let tree =
        back.replace("\"Post\", by = { id = \"id\" }", "\"Comment\", index = \"byPost\", by = { postId = \"id\" }");
    load(&format!("{MODELS}\n{tree}")).unwrap_or_else(|error| panic!("a comment may take its answers along: {error}"));
    misled(
        &[("hanging = [", "where = \"title = 'x'\"\nhanging = [")],
        &expect![[r#"
            54:1: derivation.comments-of-post.where: a cascade takes no condition: an entry of hanging has only-if, for one attribute
        "#]],
    );
}

#[test]
fn a_form_of_a_programming_language_is_none_here() {
    let form = |key: &str| {
        MODELS.replacen(
            "[entity.Like]\ntable = \"Like\"\n",
            &format!("[entity.Like]\ntable = \"Like\"\npartition-key = \"{key}\"\n"),
            1,
        )
    };
    refused_whole(
        &form("LIKE#${likeId}"),
        &expect!["26:1: entity.Like.partition-key: a field is written {name}, without $ before it"],
    );
    refused_whole(
        &form("LIKE#{MAX-likeId}"),
        &expect![
            "26:1: entity.Like.partition-key: key template `LIKE#{MAX-likeId}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits"
        ],
    );
}

// ---- declarations that conflict with the types of attributes, as far as the manifest determines them ----

/// Sensor readings with a number as their time, and their buckets.
const READINGS: &str = r#"[tables.Reading]
partition-key = "sensor"
sort-key = { name = "at", type = "N" }
[tables.Reading.index.byName]
partition-key = "name"
sort-key = { name = "seen", type = "N" }
[tables.Total]
partition-key = "pk"
sort-key = "sk"
type = "Type"
[entity.Reading]
table = "Reading"
attributes = ["name", "seen", "day", "value", "tags"]
[entity.Sensor]
table = "Total"
partition-key = "SENSOR#{sensor}"
sort-key = "SENSOR"
derived = true
derived-attributes = ["n", "total"]
[entity.ByTag]
table = "Total"
partition-key = "TAG#{tag}"
sort-key = "{sensor}#{at}"
derived = true
[entity.Bucket]
table = "Total"
partition-key = "SENSOR#{sensor}"
sort-key = "{grain}#{bucket}"
derived = true
derived-attributes = ["n", "sum", "min", "max"]
[derivation.buckets]
kind = "roll-up"
from = "Reading"
into = "Bucket"
time = "day"
value = "value"
grain = "grain"
bucket = "bucket"
shows = { count = "n", sum = "sum", min = "min", max = "max" }
[derivation.by-tag]
kind = "mirror"
from = "Reading"
to = "ByTag"
each = "tags"
link = { tag = "tags" }
where = "day <> 'never' AND tags[0] <> 'no'"
[derivation.totals]
kind = "count"
from = "Reading"
into = "Sensor"
creates = true
sum = "value"
shows = { count = "n", sum = "total" }
"#;

#[track_caller]
fn check(cases: &[(&str, &str)], wanted: &Expect) {
    each_refused(READINGS, cases, wanted);
}

#[test]
fn a_time_that_is_a_number_is_refused() {
    load(READINGS).unwrap();
    check(
        &[
            ("time = \"day\"", "time = \"at\""),
            ("time = \"day\"", "time = \"seen\""),
            ("time = \"day\"", "time = \"value\""),
        ],
        &expect![[r#"
            35:1: derivation.buckets.time: Reading.at is in the key (N), and a time is text (S), such as 2024-01-15T10:30:00.000Z: name an attribute of text, or write millis(…) or seconds(…) for an epoch number
            35:1: derivation.buckets.time: Reading.seen is in the key of the index byName (N), and a time is text (S), such as 2024-01-15T10:30:00.000Z: name an attribute of text, or write millis(…) or seconds(…) for an epoch number
            35:1: derivation.buckets.time: Reading.value is summed by totals (N), and a time is text (S), such as 2024-01-15T10:30:00.000Z: name an attribute of text, or write millis(…) or seconds(…) for an epoch number
        "#]],
    );
}

#[test]
fn members_of_a_text_or_a_number_are_refused() {
    check(
        &[
            ("each = \"tags\"\nlink = { tag = \"tags\" }", "each = \"name\"\nlink = { tag = \"name\" }"),
            ("each = \"tags\"\nlink = { tag = \"tags\" }", "each = \"day\"\nlink = { tag = \"day\" }"),
        ],
        &expect![[r#"
            44:1: derivation.by-tag.each: Reading.name is in the key of the index byName (S), and each takes a list or a set: name an attribute that is one
            44:1: derivation.by-tag.each: Reading.day is the time of buckets (S), and each takes a list or a set: name an attribute that is one
        "#]],
    );
}

#[test]
fn a_path_into_a_text_or_a_number_is_refused() {
    let tag = "each = \"tags\"\nlink = { tag = \"tags\" }";
    check(
        &[
            (tag, "link = { tag = \"name[0]\" }"),
            ("value = \"value\"", "value = \"seen.value\""),
            ("tags[0] <> 'no'", "size(day.hour) > 1"),
        ],
        &expect![[r#"
            44:10: derivation.by-tag.link.tag: Reading.name is in the key of the index byName (S), and "name[0]" is inside of it, where it has no parts: name an attribute that is a map or a list
            36:1: derivation.buckets.value: Reading.seen is in the key of the index byName (N), and "seen.value" is inside of it, where it has no parts: name an attribute that is a map or a list
            46:1: derivation.by-tag.where: Reading.day is the time of buckets (S), and "day.hour" is inside of it, where it has no parts: name an attribute that is a map or a list
        "#]],
    );
}

#[test]
fn a_number_that_is_all_of_a_key_is_summed() {
    let (schema, catalogue) = load(&READINGS.replace("sum = \"value\"", "sum = \"at\"")).unwrap();
    let table = schema.layout.forms.as_ref().unwrap().named("Reading").unwrap();
    let reading = |at: &str| {
        let stored = [("sensor", AttributeValue::S("s".to_owned())), ("at", AttributeValue::N(at.to_owned()))];
        let item = table.inward(stored.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()).unwrap();
        (schema.layout.key(&item).unwrap(), item)
    };
    let items: Items = [reading("20.5"), reading("-3")].into();
    let totals = catalogue.derivations().find(|derivation| derivation.name == "totals").unwrap();
    let derived = totals.kind.derive("totals", &schema, &items, &derive::derived::Counts::default());
    let [Derived::Count { tally, .. }] = &derived[..] else { panic!("{derived:?}") };
    assert_eq!((tally.count, tally.sum.to_string().as_str()), (2, "17.5"));
}

// ---- copies that are found through mirrors: refused where an item may have no mirror of its own ----

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

// ---- paths of values inside attributes ----

/// The manifest with these pieces replaced.
fn changed(pieces: &[(&str, &str)]) -> String {
    pieces.iter().fold(SHOP.to_owned(), |text, (piece, instead)| {
        assert_eq!(text.matches(piece).count(), 1, "{piece} stands there once");
        text.replace(piece, instead)
    })
}

const ATTRIBUTES: (&str, &str) =
    ("[\"buyerId\", \"status\", \"note\"]", "[\"buyer\", \"buyerId\", \"state\", \"note\", \"lines\"]");

#[test]
fn a_path_is_read_wherever_an_attribute_of_a_source_is() {
    let text = changed(&[
        ATTRIBUTES,
        ("attributes = [\"customerName\"]\nderived", "attributes = [\"profile\"]\nderived"),
        ("only-if = { status = \"paid\" }\n", ""),
        ("into = \"Customer.orderCount\"", "into = \"Customer\"\nshows = { count = \"orderCount\" }"),
        (
            "customerId = \"buyerId\" }\nwhere = { status = ",
            "customerId = \" buyer . id\" }\nsum = \"lines[0].total\"\nwhere = { \"state.now\" = ",
        ),
        ("{ customerName = \"buyerName\" }", "{ \"profile.\\\"first name\\\"\" = \"buyerName\" }"),
        ("attributes = [\"customerName\"]\nfound", "attributes = { \"profile.names[0]\" = \"customerName\" }\nfound"),
    ]);
    let (schema, catalogue) = load(&text).unwrap();
    let definitions = catalogue.derivations().map(|it| derive::definition::definition(it, &schema));
    expect![[r#"
        count and sum: Order (where state.now = 'paid'; sum of lines[0].total) into CUSTOMER#{buyer.id} / CUSTOMER#{buyer.id}; reads Order.buyer.id, Order.lines[0].total, Order.state
        display: Counter (Value of order-count; zero is written) into CUSTOMER#{customerId} / CUSTOMER#{customerId}; writes orderCount; reads Counter.order-count
        mirror: Order (except note) into ORDER#{orderId} / ORDER#{orderId}; writes OrderById
        copy: Customer (profile."first name" as buyerName) into SHOP#{shopId} / ORDER#{orderedOn}#{orderId}; writes buyerName; reads Customer.profile."first name", Order.buyerId; index keys CUSTOMER#{buyerId} / ORDER#{orderedOn}#{orderId} of byCustomer
        copy: Customer (profile.names[0] as customerName) into ORDER#{orderId} / ORDER#{orderId}; writes customerName; reads Customer.profile.names[0], OrderById.buyerId
    "#]]
    .assert_eq(&(definitions.collect::<Vec<_>>().join("\n") + "\n"));
}

#[test]
fn a_path_that_leads_nowhere_is_refused() {
    let link = "customerId = \"buyerId\" }\nwhere";
    let linked = |path: &str| format!("customerId = {path} }}\nwhere");
    refused(
        &[
            (link, &linked("\"nota.id\"")),
            (link, &linked("\"shopId.id\"")),
            (link, &linked("\"note[a]\"")),
            (link, &linked("\"note.first-name\"")),
            (link, &linked("\"note.\"")),
            ("shards = 4", "sum = \"stotus.amount\""),
            ("{ customerName = \"buyerName\" }", "{ \"customer.name\" = \"buyerName\" }"),
            ("attributes = [\"customerName\"]\nfound", "attributes = [\"customerName.first\"]\nfound"),
            ("where = { status = \"paid\" }", "where = { \"order.status\" = \"paid\" }"),
        ],
        &expect![[r#"
            39:10: derivation.order-count.link.customerId: "nota.id" is inside of an attribute "nota", and Order has none of this name: did you mean "note"?
            39:10: derivation.order-count.link.customerId: "shopId.id" is inside of shopId, which is a field of the key of Order, and that has no parts
            39:10: derivation.order-count.link.customerId: "note[a]" is no path into an attribute: at character 6: a position in the list is wanted, from 0
            39:10: derivation.order-count.link.customerId: Order has no field or attribute "name": there are orderId, orderedOn, shopId, buyerId, status, note, buyerName; one that your items have is declared in attributes; a text stands in single quotes, and a name with - in it in double quotes
            39:10: derivation.order-count.link.customerId: "note." is no path into an attribute: at character 6: it ends where an attribute or a value is wanted
            41:1: derivation.order-count.sum: "stotus.amount" is inside of an attribute "stotus", and Order has none of this name: did you mean "status"?
            54:16: derivation.buyer-name.attributes.customer.name: "customer.name" is inside of an attribute "customer", and Customer has none of this name: there are customerName, orderCount
            62:15: derivation.buyer-name-by-id.attributes: "customerName.first" is a path into the attribute "customerName": name a whole attribute here; keys, declared and written attributes are never paths
            40:11: derivation.order-count.where.order.status: "order.status" is inside of an attribute "order", and Order has none of this name: there are buyerId, status, note, buyerName
        "#]],
    );
}

#[test]
fn the_items_of_a_copy_by_a_path_are_found_through_a_mirror() {
    let mirror = r##"
[entity.OrderOfCustomer]
partition-key = "CUSTOMER#{buyerId}"
sort-key = "ORDER#{shopId}#{orderedOn}#{orderId}"
derived = true

[derivation.order-of-customer]
kind = "mirror"
from = "Order"
to = "OrderOfCustomer"
link = { buyerId = "note.id" }
"##;
    let link = "link = { customerId = \"buyerId\" }\nattributes = { customerName = \"buyerName\" }\nfound = { index = \"byCustomer\" }";
    let by_path = link.replace("buyerId", "note.id");
    let by_default = by_path.replace("{ index = \"byCustomer\" }", "\"OrderOfCustomer\"");
    let error = load(&format!("{}{mirror}", changed(&[(link, &by_default)]))).expect_err("nothing gives buyerId");
    expect![[r#"55:1: derivation.buyer-name.found: a change of Customer does not have buyerId of OrderOfCustomer, by which its Order items would be found: a path of the link gives no field of a key, so add by, as in found = { through = "OrderOfCustomer", by = { buyerId = "…" } }"#]].assert_eq(&error.to_string());
    let found = by_default
        .replace("\"OrderOfCustomer\"", "{ through = \"OrderOfCustomer\", by = { buyerId = \"customerId\" } }");
    load(&format!("{}{mirror}", changed(&[(link, &found)]))).unwrap();
}
