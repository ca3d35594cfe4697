//! The table as plain maps, its keys and its numbers.

use std::collections::BTreeMap;

/// Partition key and sort key.
pub(crate) type Address = (String, String);

pub(crate) type PlainItem = BTreeMap<String, Plain>;

type KeyFields = BTreeMap<&'static str, String>;

/// A value in a form in which equal values are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Plain {
    Text(String),
    /// In millionths.
    Number(i128),
    Bool(bool),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    /// In order.
    Set(Vec<Plain>),
    Map(BTreeMap<String, Plain>),
    Other(String),
}

/// One, in millionths.
pub(crate) const ONE: i128 = 1_000_000;

/// The forms of all keys that the loops read.
const KEYS: [(&str, &str, &str); 29] = [
    ("User", "USER#{UserId}", "PROFILE"),
    ("Post", "USER#{AuthorId}", "POST#{CreatedAt}#{PostId}"),
    ("PostDetail", "POST#{PostId}", "METADATA"),
    ("Comment", "POST#{PostId}", "COMMENT#{CreatedAt}#{CommentId}"),
    ("Like", "USER#{UserId}", "LIKE#POST#{PostId}"),
    ("View", "USER#{UserId}", "VIEW#{ViewedAt}#{PostId}"),
    ("Follow", "USER#{FollowerId}", "FOLLOWS#{FolloweeId}"),
    ("Follower", "USER#{FolloweeId}", "FOLLOWER#{FollowerId}"),
    ("Group", "GROUP#{GroupId}", "METADATA"),
    ("Membership", "USER#{UserId}", "GROUP#{GroupId}"),
    ("GroupMember", "GROUP#{GroupId}", "USER#{UserId}"),
    ("Organization", "ORG#{OrgId}", "METADATA"),
    ("Team", "ORG#{OrgId}", "TEAM#{TeamId}"),
    ("Member", "ORG#{OrgId}", "MEMBER#{UserId}"),
    ("Employee", "ORG#{OrgId}", "EMPLOYEE#{EmployeeId}"),
    ("OrgChart", "ORG#{OrgId}", "EMP#{Path}"),
    ("Folder", "FOLDER#{FolderId}", "METADATA"),
    ("File", "FOLDER#{FolderId}", "FILE#{UploadedAt}#{FileId}"),
    ("FileDetail", "FILE#{FileId}", "METADATA"),
    ("Product", "PRODUCT#{ProductId}", "METADATA"),
    ("Review", "PRODUCT#{ProductId}", "REVIEW#{CreatedAt}#{ReviewId}"),
    ("Order", "USER#{UserId}", "ORDER#{PlacedAt}#{OrderId}"),
    ("OrderDetail", "ORDER#{OrderId}", "METADATA"),
    ("OrderItem", "ORDER#{OrderId}", "ITEM#{ProductId}"),
    ("Reading", "SENSOR#{SensorId}#{Day}", "{At}"),
    ("Rollup", "SENSOR#{SensorId}", "{Grain}#{Bucket}"),
    ("EmailClaim", "EMAIL#{Email}", "CLAIM"),
    ("Subscription", "USER#{UserId}", "SUB#{SubscriptionId}"),
    ("CartItem", "USER#{UserId}#CART#{CartId}", "ITEM#{ProductId}"),
];

#[derive(Clone, Debug, Default)]
pub(crate) struct PlainTable(pub(crate) BTreeMap<Address, PlainItem>);

/// An item of a known entity.
pub(crate) struct Row<'a> {
    pub(crate) at: &'a Address,
    pub(crate) item: &'a PlainItem,
    fields: KeyFields,
}

impl PlainTable {
    /// The items of an entity, in order of their keys.
    pub(crate) fn each(&self, entity: &str) -> Vec<Row<'_>> {
        self.0.iter().filter_map(|(at, item)| row(entity, at, item)).collect()
    }

    /// The item with this key, if it is of this entity.
    pub(crate) fn get(&self, entity: &str, at: &Address) -> Option<Row<'_>> {
        let (at, item) = self.0.get_key_value(at)?;
        row(entity, at, item)
    }
}

/// The item, if its type and its key are those of the entity.
pub(crate) fn row<'a>(entity: &str, at: &'a Address, item: &'a PlainItem) -> Option<Row<'a>> {
    if item.get("EntityType") != Some(&Plain::Text(entity.to_owned())) {
        return None;
    }
    Some(Row { at, item, fields: fields(entity, at)? })
}

impl Row<'_> {
    /// A field of its key.
    pub(crate) fn id(&self, name: &str) -> &str {
        &self.fields[name]
    }

    /// A field of its key, else an attribute that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match (self.fields.get(name), self.item.get(name)) {
            (Some(field), _) => Some(field),
            (None, Some(Plain::Text(text))) if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

/// The fields of a key of an entity.
pub(crate) fn fields(entity: &str, at: &Address) -> Option<KeyFields> {
    let (_, pk, sk) = KEYS.iter().find(|(name, ..)| *name == entity)?;
    let mut fields = KeyFields::new();
    (read(pk, &at.0, &mut fields) && read(sk, &at.1, &mut fields)).then_some(fields)
}

/// Reads the fields of a text of this form.
fn read(form: &'static str, text: &str, fields: &mut KeyFields) -> bool {
    let (mut form, mut text) = (form, text);
    while let Some((literal, rest)) = form.split_once('{') {
        let Some(from) = text.strip_prefix(literal) else { return false };
        let (name, next) = rest.split_once('}').unwrap();
        let literal = next.split('{').next().unwrap();
        let end = if literal.is_empty() { Some(from.len()) } else { from.find(literal) };
        let Some(end) = end.filter(|end| *end > 0 && !from[..*end].contains('#')) else { return false };
        fields.insert(name, unescaped(&from[..end]));
        (form, text) = (next, &from[end..]);
    }
    text == form
}

/// The target and the derivation of a counter's key.
pub(crate) fn counter_of(at: &Address) -> Option<(Address, &str)> {
    let (target, counter) = at.1.rsplit_once("#COUNT#")?;
    let (derivation, _shard) = counter.split_once('#')?;
    Some(((at.0.clone(), target.to_owned()), derivation))
}

/// `#` and `%` as they stand in a key.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('#', "%23")
}

/// A segment of a path, in which `/` is escaped too.
pub(crate) fn segment(text: &str) -> String {
    escaped(text).replace('/', "%2F")
}

fn unescaped(text: &str) -> String {
    text.replace("%23", "#").replace("%2F", "/").replace("%25", "%")
}

/// A number in millionths. The application of the simulation writes none with more places.
pub(crate) fn millionths(text: &str) -> i128 {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    let shift = exponent.parse::<i32>().unwrap() + 6 - i32::try_from(places.len()).unwrap();
    let number: i128 = format!("{whole}{places}").parse().unwrap();
    let factor = 10_i128.pow(shift.unsigned_abs());
    if shift >= 0 {
        return number * factor;
    }
    assert_eq!(number % factor, 0, "{text} has too many places");
    number / factor
}

/// The key of a user, a post's detail, a group and so on.
pub(crate) fn home(of: &str, id: &str) -> Address {
    (format!("{of}#{}", escaped(id)), if of == "USER" { "PROFILE" } else { "METADATA" }.to_owned())
}
