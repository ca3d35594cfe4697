//! Items of the application, their attributes and index keys written out by hand.

use crate::database::{Item, s};

/// An item of these texts.
pub(crate) fn item<'a>(attributes: impl IntoIterator<Item = (&'a str, String)>) -> Item {
    attributes.into_iter().map(|(name, text)| (name.to_owned(), s(text))).collect()
}

/// An id as it stands in a key.
pub(crate) fn segment(id: &str) -> String {
    id.replace('%', "%25").replace('#', "%23")
}

/// The id of a segment of a key.
pub(crate) fn id(segment: &str) -> String {
    segment.replace("%23", "#").replace("%25", "%")
}

/// The suffix of a static partition key: CRC-32 of the id, mod 8, two digits.
pub(crate) fn spread(id: &str) -> String {
    let mut crc = u32::MAX;
    for byte in id.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    format!("{:02}", !crc % 8)
}

pub(crate) fn user(user: &str, name: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", "PROFILE".to_owned()),
        ("EntityType", "User".to_owned()),
        ("GSI1PK", format!("EMAIL#{}", segment(&format!("{user}@example.com")))),
        ("GSI1SK", format!("USER#{}", segment(user))),
        ("GSI2PK", format!("USERS#{}", spread(user))),
        ("GSI2SK", format!("{at}#{}", segment(user))),
        ("Name", name.to_owned()),
        ("Email", format!("{user}@example.com")),
        ("Avatar", format!("https://example.com/{name}.png")),
        ("CreatedAt", at.to_owned()),
        ("UpdatedAt", at.to_owned()),
    ])
}

pub(crate) fn follow(follower: &str, followee: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(follower))),
        ("SK", format!("FOLLOWS#{}", segment(followee))),
        ("EntityType", "Follow".to_owned()),
        ("CreatedAt", at.to_owned()),
        ("UpdatedAt", at.to_owned()),
    ])
}

/// A folder in another.
pub(crate) fn folder(folder: &str, parent: &str) -> Item {
    item([
        ("PK", format!("FOLDER#{folder}")),
        ("SK", "METADATA".to_owned()),
        ("EntityType", "Folder".to_owned()),
        ("GSI1PK", format!("FOLDER#{parent}")),
        ("GSI1SK", format!("FOLDER#{folder}#{folder}")),
        ("Name", folder.to_owned()),
        ("ParentId", parent.to_owned()),
    ])
}

pub(crate) fn post(author: &str, post: &str, at: &str, status: &str, title: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(author))),
        ("SK", format!("POST#{at}#{}", segment(post))),
        ("EntityType", "Post".to_owned()),
        ("Title", title.to_owned()),
        ("Content", "Lorem ipsum dolor sit amet.".to_owned()),
        ("Status", status.to_owned()),
    ])
}

pub(crate) fn comment(post: &str, comment: &str, at: &str, user: &str, text: &str) -> Item {
    item([
        ("PK", format!("POST#{}", segment(post))),
        ("SK", format!("COMMENT#{at}#{}", segment(comment))),
        ("EntityType", "Comment".to_owned()),
        ("GSI1PK", format!("USER#{}", segment(user))),
        ("GSI1SK", format!("COMMENT#{at}#{}", segment(comment))),
        ("UserId", user.to_owned()),
        ("Text", text.to_owned()),
    ])
}

pub(crate) fn like(user: &str, post: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", format!("LIKE#POST#{}", segment(post))),
        ("EntityType", "Like".to_owned()),
        ("GSI1PK", format!("POST#{}", segment(post))),
        ("GSI1SK", format!("LIKE#USER#{}", segment(user))),
        ("CreatedAt", at.to_owned()),
    ])
}

pub(crate) fn view(user: &str, post: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", format!("VIEW#{at}#{}", segment(post))),
        ("EntityType", "View".to_owned()),
    ])
}

pub(crate) fn group(group: &str, name: &str) -> Item {
    item([
        ("PK", format!("GROUP#{}", segment(group))),
        ("SK", "METADATA".to_owned()),
        ("EntityType", "Group".to_owned()),
        ("Name", name.to_owned()),
        ("Description", "Those who are in it".to_owned()),
    ])
}

pub(crate) fn membership(user: &str, group: &str, role: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", format!("GROUP#{}", segment(group))),
        ("EntityType", "Membership".to_owned()),
        ("Role", role.to_owned()),
    ])
}
