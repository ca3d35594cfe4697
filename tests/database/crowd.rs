//! The crowd: items of every entity, with neighbours that a careless key would include.

use keys::item::Item;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};

/// Times in order; the last was written by another client.
pub(crate) const TIMES: [&str; 4] =
    ["2024-01-15T10:30:00.000Z", "2024-01-15T10:30:00.001Z", "2024-01-16T00:00:00.000Z", "the other day"];

pub(crate) const CATEGORIES: [&str; 4] = ["tool", "tools", "tools#x", "tools/x"];

pub(crate) const ORDER_STATUSES: [&str; 5] = ["pending", "paid", "packed", "shipped", "cancelled"];

const POST_STATUSES: [&str; 3] = ["published", "draft", "archived"];

/// Days with readings; one day is left out.
pub(crate) const DAYS: [&str; 4] = ["2023-12-31", "2024-01-01", "2024-02-29", "2024-03-01"];

/// Ids that begin with each other or need escapes, in the order of their texts.
pub(crate) fn ids(letter: &str) -> Vec<String> {
    ["", "1", "1#x", "1%23x", "1%x", "1/x", "10"].map(|end| format!("{letter}{end}")).to_vec()
}

fn time(at: usize) -> &'static str {
    TIMES[at % TIMES.len()]
}

pub(crate) fn whole(at: usize) -> i64 {
    i64::try_from(at).unwrap()
}

/// All items of the table.
pub(crate) fn crowd() -> Vec<Item> {
    let mut items = Vec::new();
    people(&mut items);
    posts(&mut items);
    groups_and_organizations(&mut items);
    files(&mut items);
    products(&mut items);
    orders(&mut items);
    sensors(&mut items);
    counters(&mut items);
    strangers(&mut items);
    items
}

fn put(items: &mut Vec<Item>, entity: &str, values: Value) {
    items.push(table_design::item(entity, values).unwrap());
}

fn people(items: &mut Vec<Item>) {
    let more = (0..20).map(|n| format!("m{n}"));
    for (at, id) in ids("u").into_iter().chain(more).enumerate() {
        let email = format!("{id}@Example.org");
        put(items, "EmailClaim", json!({ "Email": email.to_lowercase(), "UserId": id }));
        let user = json!({
            "UserId": id, "Name": format!("name of {id}"), "Email": email, "Avatar": "not projected",
            "CreatedAt": time(at * 3), "FollowerCount": 3,
        });
        put(items, "User", user);
    }
    for (at, user) in ids("u").iter().enumerate() {
        for (other_at, other) in ids("u").iter().enumerate().filter(|(_, other)| *other != user) {
            put(items, "Follow", json!({ "FollowerId": user, "FolloweeId": other, "FolloweeName": other }));
            put(items, "Follower", json!({ "FolloweeId": user, "FollowerId": other, "FollowerName": other }));
            let id = format!("s{other}");
            put(items, "Subscription", json!({ "UserId": user, "SubscriptionId": id, "Plan": "gold" }));
            for cart in ["c", "c1", "c1#x"] {
                let quantity = at + other_at;
                let item = json!({ "UserId": user, "CartId": cart, "ProductId": other, "Quantity": quantity });
                put(items, "CartItem", item);
            }
        }
    }
}

fn posts(items: &mut Vec<Item>) {
    let users = ids("u");
    let more = (0..40).map(|n| format!("q{n}"));
    for (at, id) in ids("p").into_iter().chain(more).enumerate() {
        let status = POST_STATUSES[if at < 7 { 0 } else { at % 3 }];
        let detail = json!({
            "PostId": id, "AuthorId": users[at % 7], "CreatedAt": time(at), "Title": format!("title of {id}"),
            "Status": status, "AuthorName": "Ada", "CommentCount": 4,
        });
        put(items, "PostDetail", detail);
    }
    for (at, user) in users.iter().enumerate() {
        for (post_at, post) in ids("p").iter().enumerate() {
            let (created_at, status) = (time(post_at), POST_STATUSES[post_at % 2]);
            let body = json!({
                "AuthorId": user, "CreatedAt": created_at, "PostId": post, "Content": "a body", "Status": status,
            });
            put(items, "Post", body);
            put(items, "Like", json!({ "UserId": user, "PostId": post }));
            let viewed_at = time(post_at + 1);
            let view = json!({ "UserId": user, "ViewedAt": viewed_at, "PostId": post, "ExpiresAt": 1_900_000_000 });
            put(items, "View", view);
            // On the post with this number, each by another user.
            let comment = json!({
                "PostId": ids("p")[at], "CreatedAt": created_at, "CommentId": format!("c{post}"),
                "UserId": users[(at + post_at) % 7], "Text": format!("{at}, {post_at}"), "UserName": "not projected",
            });
            put(items, "Comment", comment);
        }
    }
}

fn groups_and_organizations(items: &mut Vec<Item>) {
    for (group, org) in ids("g").iter().zip(ids("o")) {
        put(items, "Group", json!({ "GroupId": group, "Name": "a group" }));
        put(items, "Organization", json!({ "OrgId": org, "Name": org, "TeamCount": 7 }));
        for user in ids("u") {
            let role = format!("role of {user} in {group}");
            let membership = json!({ "UserId": user, "GroupId": group, "Role": role, "GroupName": group });
            put(items, "Membership", membership);
            put(items, "GroupMember", json!({ "GroupId": group, "UserId": user, "Role": role }));
            put(items, "Member", json!({ "OrgId": org, "UserId": user, "Role": role, "OrgName": org }));
            let team = json!({ "OrgId": org, "TeamId": format!("t{user}@{org}"), "Name": format!("team {user}") });
            put(items, "Team", team);
        }
        for place in PLACES {
            let ids: Vec<String> = place.iter().map(|id| format!("{id}@{org}")).collect();
            let path: String = ids.iter().flat_map(|id| ["/".to_owned(), keys::escape::segment(id)]).collect();
            let employee = json!({
                "OrgId": org, "EmployeeId": ids.last(), "Name": place.join(" of "), "ManagerId": ids.iter().rev().nth(1),
                "Path": path,
            });
            put(items, "OrgChart", employee.clone());
            put(items, "Employee", employee);
        }
    }
}

/// Paths of employees; ids are unique over all organizations, so each contains its organization's id.
const PLACES: [&[&str]; 10] = [
    &["ceo"],
    &["ceo", "e"],
    &["ceo", "e", "a"],
    &["ceo", "e", "a", "b/c"],
    &["ceo", "e", "a", "b/c", "d"],
    &["ceo", "e", "z"],
    &["ceo", "e#x"],
    &["ceo", "e/x"],
    &["ceo", "e1"],
    &["ceo", "e1", "f"],
];

fn files(items: &mut Vec<Item>) {
    for folder in ids("f") {
        put(items, "Folder", json!({ "FolderId": folder, "Name": "a root", "FileCount": 7 }));
        for (at, file) in ids("x").iter().enumerate() {
            let uploaded = json!({
                "FolderId": folder, "UploadedAt": time(at), "FileId": file, "Name": file, "SizeBytes": 9,
            });
            put(items, "File", uploaded);
            // Names that occur twice, that begin like others, or that need escapes.
            let (id, name) = (format!("sub {file} of {folder}"), ["a", "a b", "a#b", "b"][at % 4]);
            let path = format!("/{folder}");
            put(items, "Folder", json!({ "FolderId": id, "Name": name, "ParentId": folder, "Path": path }));
        }
    }
    for file in ids("x") {
        put(items, "FileDetail", json!({ "FileId": file, "Path": format!("/of/{file}") }));
    }
}

fn products(items: &mut Vec<Item>) {
    for category in CATEGORIES {
        for (at, product) in ids("k").iter().enumerate() {
            let id = format!("{product}@{category}");
            let price: Value = format!("{at}.5").parse().unwrap();
            let mut item = json!({
                "ProductId": id, "Name": format!("name of {product}"), "Price": price, "Category": category,
                "Inventory": 5, "ReviewCount": at, "RatingSum": at * 4,
            });
            // Ripple makes this index key, and no writer does. The last product has sold nothing.
            if at < 6 {
                let units_sold = at * 7 % 5 + 1;
                item["UnitsSold"] = json!(units_sold);
                item["GSI2PK"] = json!(format!("BESTSELLERS#{}", keys::escape::value(category)));
                item["GSI2SK"] = json!(format!("{}#{}", 999_999_999_999 - units_sold, keys::escape::value(&id)));
            }
            put(items, "Product", item);
        }
    }
    for product in ids("k") {
        for (at, review) in ids("r").iter().enumerate() {
            let review = json!({
                "ProductId": format!("{product}@tools"), "CreatedAt": time(at), "ReviewId": review,
                "UserId": ids("u")[at], "Rating": 4, "Text": "good",
            });
            put(items, "Review", review);
        }
    }
}

fn orders(items: &mut Vec<Item>) {
    for (user_at, user) in ids("u").iter().enumerate() {
        for (at, order) in ids("o").iter().enumerate() {
            let (id, status) = (format!("{order}@{user}"), ORDER_STATUSES[(at + user_at) % 5]);
            let total: Value = format!("{}.{}", (at * 5 + user_at * 3) % 11, at).parse().unwrap();
            let order =
                json!({ "UserId": user, "PlacedAt": time(at), "OrderId": id, "Status": status, "Total": total });
            put(items, "Order", order);
            put(items, "OrderDetail", json!({ "OrderId": id, "UserId": user, "Status": status, "Total": total }));
            for product in &ids("k")[..if at == 0 { 7 } else { 3 }] {
                let price: Value = format!("{at}.25").parse().unwrap();
                let line = json!({
                    "OrderId": id, "ProductId": product, "ProductName": "as bought", "Price": price, "Quantity": 2,
                    "Cancelled": (at % 2 == 0).then_some(true),
                });
                put(items, "OrderItem", line);
            }
        }
    }
}

fn sensors(items: &mut Vec<Item>) {
    for sensor in ids("s") {
        for day in DAYS {
            for time in ["00:00:00.000", "10:30:00.000", "23:59:59.999"] {
                let at = format!("{day}T{time}Z");
                put(items, "Reading", json!({ "SensorId": sensor, "Day": day, "At": at, "Value": 21.5 }));
            }
            for (grain, bucket) in
                [("DAY", day.to_owned()), ("HOUR", format!("{day}T00")), ("HOUR", format!("{day}T10"))]
            {
                let rollup = json!({ "SensorId": sensor, "Grain": grain, "Bucket": bucket, "Count": 3, "Sum": 64.5 });
                put(items, "Rollup", rollup);
            }
        }
    }
}

fn counters(items: &mut Vec<Item>) {
    let targets = [("USER#", "u", "PROFILE"), ("POST#", "p", "METADATA"), ("ORG#", "o", "METADATA")];
    let more = [("GROUP#", "g", "METADATA"), ("FOLDER#", "f", "METADATA"), ("PRODUCT#", "k", "METADATA")];
    for (start, letter, sk) in targets.into_iter().chain(more) {
        for (at, id) in ids(letter).iter().enumerate() {
            for (derivation, satellite, value, sum) in [
                ("plain-count", 0, whole(5 + at), None),
                ("spread-count", 0, 1, None),
                ("spread-count", 3, -2, None),
                ("spread-count", 15, 40, None),
                ("spread-count~2", 1, 7, None),
                ("summed", 0, 2, Some(0.1)),
                ("summed", 1, 3, Some(0.2)),
            ] {
                let counter = json!({
                    "TargetPK": format!("{start}{}", keys::escape::value(id)), "TargetSK": sk, "Derivation": derivation,
                    "Satellite": satellite, "Value": value, "Sum": sum,
                });
                put(items, "Counter", counter);
            }
        }
    }
}

/// An item of an unknown entity, or without one, beside every third item: in the same collection and at the same places
/// of the indexes.
fn strangers(items: &mut Vec<Item>) {
    let beside: Vec<Item> = items.iter().step_by(3).cloned().collect();
    for (at, mut item) in beside.into_iter().enumerate() {
        let Some(AttributeValue::S(sk)) = item.get("SK").cloned() else { continue };
        item.insert("SK".to_owned(), AttributeValue::S(format!("{sk}#STRANGER")));
        item.remove("EntityType");
        if at % 2 == 0 {
            item.insert("EntityType".to_owned(), AttributeValue::S("Stranger".to_owned()));
        }
        items.push(item);
    }
}
