//! D-01, D-04, D-12, D-18, D-21 (the chart) and D-30: mirrors.

use std::collections::BTreeMap;

use super::{
    Recount,
    paths::employee_path,
    table::{Address, Plain, PlainItem, PlainTable, Row, escaped, home},
};

/// What is never mirrored: keys, the type, the time to live.
const NEVER: [&str; 8] = ["PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK", "EntityType", "ExpiresAt"];

/// Derivation, entity of the mirror, and the mirror's attributes of other derivations.
const MIRRORS: [(&str, &str, &[&str]); 6] = [
    ("follower-mirror", "Follower", &["FollowerName"]),
    ("post-detail", "PostDetail", &OF_A_POST),
    ("group-member", "GroupMember", &["UserName"]),
    ("file-detail", "FileDetail", &["Path"]),
    ("org-chart", "OrgChart", &[]),
    ("order-detail", "OrderDetail", &[]),
];

/// What other derivations write into the detail of a post.
const OF_A_POST: [&str; 8] = [
    "AuthorName",
    "AuthorAvatar",
    "CommentCount",
    "LikeCount",
    "ViewCount",
    "LastCommentBy",
    "LastCommentAt",
    "FirstCommentAt",
];

pub(crate) fn compare(table: &PlainTable, recount: &mut Recount) {
    for (derivation, entity, others) in MIRRORS {
        let derived = mirrors(table, entity);
        // An item of the application that has the key of a mirror stays, and the mirror waits.
        let is_taken = |at: &Address| table.0.get(at).is_some_and(|item| item.get("EntityType") != Some(&text(entity)));
        for (at, mirror) in derived.iter().filter(|(at, _)| !is_taken(at)) {
            let stored = table.0.get(at).map(|item| without(item, others));
            recount.compare(derivation, at, stored, Some(mirror.clone()));
        }
        for left in table.each(entity).iter().filter(|row| !derived.contains_key(row.at)) {
            recount.compare(derivation, left.at, Some(without(left.item, others)), None);
        }
    }
}

fn mirrors(table: &PlainTable, entity: &str) -> BTreeMap<Address, PlainItem> {
    let mut mirrors = Mirrors { entity: entity.to_owned(), made: BTreeMap::new() };
    match entity {
        "Follower" => {
            for follow in table.each("Follow") {
                let sk = format!("FOLLOWER#{}", escaped(follow.id("FollowerId")));
                let at = (format!("USER#{}", escaped(follow.id("FolloweeId"))), sk);
                mirrors.add(at, &follow, &["FolloweeName", "FollowerName"], &[]);
            }
        }
        "PostDetail" => {
            let left_out = [&["Content", "Claims"][..], &OF_A_POST].concat();
            for post in table.each("Post") {
                let at = home("POST", post.id("PostId"));
                mirrors.add(at.clone(), &post, &left_out, &["AuthorId", "CreatedAt"]);
                mirrors.claim(&at, post.at);
                if post.item.get("Status") == Some(&text("published")) {
                    let id = post.id("PostId");
                    let mirror = mirrors.made.get_mut(&at).unwrap();
                    mirror.insert("GSI2PK".to_owned(), text(&format!("POSTS#{:02}", crc32(id) % 8)));
                    let sk = format!("{}#{}", escaped(post.id("CreatedAt")), escaped(id));
                    mirror.insert("GSI2SK".to_owned(), text(&sk));
                }
            }
        }
        "GroupMember" => {
            for membership in table.each("Membership") {
                let sk = format!("USER#{}", escaped(membership.id("UserId")));
                let at = (format!("GROUP#{}", escaped(membership.id("GroupId"))), sk);
                mirrors.add(at, &membership, &["GroupName", "UserName"], &[]);
            }
        }
        "FileDetail" => {
            for file in table.each("File") {
                let at = home("FILE", file.id("FileId"));
                mirrors.add(at.clone(), &file, &["Claims", "Path"], &["FolderId", "UploadedAt"]);
                mirrors.claim(&at, file.at);
            }
        }
        "OrgChart" => {
            for employee in table.each("Employee") {
                let Some(path) = employee_path(table, employee.at) else { continue };
                let at = (employee.at.0.clone(), format!("EMP#{path}"));
                mirrors.add(at.clone(), &employee, &["Claims", "Path"], &["EmployeeId"]);
                mirrors.claim(&at, employee.at);
            }
        }
        _ => {
            for order in table.each("Order") {
                let at = home("ORDER", order.id("OrderId"));
                mirrors.add(at.clone(), &order, &["Claims"], &["UserId", "PlacedAt"]);
                mirrors.claim(&at, order.at);
            }
        }
    }
    mirrors.made
}

struct Mirrors {
    entity: String,
    made: BTreeMap<Address, PlainItem>,
}

impl Mirrors {
    /// The mirror of a source. Of several with one key the last one wins, and the claims of all stay.
    fn add(&mut self, at: Address, source: &Row<'_>, left_out: &[&str], from_key: &[&str]) {
        let mut mirror = without(&without(source.item, &NEVER), left_out);
        for name in from_key {
            mirror.insert((*name).to_owned(), text(source.id(name)));
        }
        mirror.insert("PK".to_owned(), text(&at.0));
        mirror.insert("SK".to_owned(), text(&at.1));
        mirror.insert("EntityType".to_owned(), text(&self.entity));
        let claims = self.made.get(&at).and_then(|before| before.get("Claims").cloned());
        mirror.extend(claims.map(|claims| ("Claims".to_owned(), claims)));
        self.made.insert(at, mirror);
    }

    /// The mirror lists the keys of all its sources.
    fn claim(&mut self, at: &Address, source: &Address) {
        let key = [("PK", &source.0), ("SK", &source.1)].map(|(name, part)| (name.to_owned(), text(part)));
        let mirror = self.made.get_mut(at).unwrap();
        let claims = mirror.entry("Claims".to_owned()).or_insert(Plain::List(Vec::new()));
        let Plain::List(claims) = claims else { unreachable!("the source's own is left out") };
        claims.push(Plain::Map(BTreeMap::from(key)));
    }
}

/// An item without these attributes, and without the revisions that stand beside counts.
fn without(item: &PlainItem, names: &[&str]) -> PlainItem {
    let kept = item.iter().filter(|(name, _)| !names.contains(&name.as_str()) && !name.ends_with(":rev"));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn text(text: &str) -> Plain {
    Plain::Text(text.to_owned())
}

/// CRC-32, bit by bit.
fn crc32(text: &str) -> u32 {
    let mut crc = u32::MAX;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// Names of what is compared here.
pub(crate) fn covered() -> Vec<&'static str> {
    MIRRORS.iter().map(|(derivation, ..)| *derivation).collect()
}

#[test]
fn the_checksum_is_the_known_one() {
    assert_eq!(crc32("123456789"), 0xCBF4_3926);
}
