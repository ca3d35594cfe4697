//! Outlines: the declaration of a derivation, for people and for the checks on a table's design.
//!
//! An outline is built from the values that plan and refresh use, so the two cannot disagree. Its keys and queries have
//! placeholders for the values of a change, such as `USER#{FolloweeId}`.

use keys::{entity::Definition, fields::Fields};

use crate::{
    catalogue::Catalogue, declaration::Link, derivation::Derivation, effect::Find, expression::Input, schema::Schema,
};

/// The declaration of a derivation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// Entities whose changes trigger it, the main one first.
    pub from: Vec<String>,
    /// Which of their items take part, and with what, in words; empty if all do.
    pub terms: Vec<String>,
    /// What it writes into attributes or an index, as a sentence about it; `None` if its parts are said otherwise.
    pub says: Option<String>,
    /// What entries of a collection it keeps.
    pub entries: Option<KeptEntries>,
    /// Which items of a collection it reads.
    pub taken: Option<TakenItems>,
    /// Key of the item that it writes into, as a template.
    pub into: Option<String>,
    /// What of a target names the item that it copies from; empty for all other kinds.
    pub named_by: Vec<String>,
    /// The queries that find the items to write into. Empty if the change itself names them.
    pub finds: Vec<Find>,
    /// The entity that its counters are about.
    pub counts: Option<String>,
    /// What it does with items of the application itself, in words; most derivations write only derived data.
    pub touches: Vec<String>,
    /// Its depth limit, if it reads from one of its own targets what it writes into another.
    pub depth_max: Option<usize>,
}

impl Outline {
    /// An outline of a derivation from one entity.
    #[must_use]
    pub fn from(entity: &str) -> Self {
        Self { from: vec![entity.to_owned()], ..Self::default() }
    }
}

/// The key that a link gives, as a template over the fields of the items that it starts from.
#[must_use]
pub fn linked(to: &Definition, link: &Link) -> String {
    [&to.key.pk, &to.key.sk].map(|template| renamed(&template.to_string(), link)).join(" / ")
}

pub(crate) fn renamed(template: &str, link: &Link) -> String {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('{');
        match part.split_once('}') {
            Some((name, rest)) => text.extend([link.filling(name).map_or(name, Input::text), "}", rest]),
            None => text.push_str(part),
        }
    }
    text
}

/// Entries of the items of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEntries {
    /// The value that orders them.
    pub by: String,
    /// Which items have one, such as `where active = true`; `None` if all do.
    pub condition: Option<String>,
    /// Pairs of (what of an item an entry carries; its name there).
    pub carried: Vec<(String, String)>,
}

/// The items that are read of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenItems {
    /// True for the last in the order.
    pub is_last: bool,
    /// Their number and the attribute of their list; `None` if it is one.
    pub list: Option<(u32, String)>,
}

/// What a derivation takes from the entries of a collection, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromEntries {
    /// Entity of the items that have the entries.
    pub source: String,
    /// Key of the target, as a template over the fields of these items.
    pub into: String,
    /// Which of the items: `greatest fee`.
    pub order: String,
    /// The condition of the items; empty if there is none.
    pub condition: String,
    /// What is copied: `fee as maxFee`.
    pub carried: String,
    /// The attribute, if it shows nothing but the value in the order: the derivation is an extreme.
    pub extreme: Option<String>,
    /// The number of items and the attribute of their list.
    pub list: Option<(u32, String)>,
}

impl FromEntries {
    /// What a derivation takes from entries; `None` if it reads none.
    #[must_use]
    pub fn of(schema: &Schema, catalogue: &Catalogue, derivation: &Derivation) -> Option<Self> {
        let outline = derivation.kind.outline(schema);
        let TakenItems { is_last, list } = outline.taken?;
        let makers = catalogue.derivations().filter(|it| it.kind.keeps_entries());
        let mut makers = makers.filter_map(|it| Some((it, it.kind.refresh()?)));
        let (maker, _) = makers.find(|(_, refresh)| outline.from.iter().any(|from| from == refresh.target()))?;
        let Outline { from, into, entries, .. } = maker.kind.outline(schema);
        let KeptEntries { by, condition, carried } = entries?;
        let extreme = match carried.as_slice() {
            [(value, attribute)] if *value == by && list.is_none() => Some(attribute.clone()),
            _ => None,
        };
        // A name that stays the same is given once.
        let pair = |(from, to): &(String, String)| if from == to { from.clone() } else { format!("{from} as {to}") };
        Some(Self {
            source: from.join(""),
            into: into.unwrap_or_default(),
            order: format!("{} {by}", if is_last { "greatest" } else { "least" }),
            condition: condition.unwrap_or_default(),
            carried: carried.iter().map(pair).collect::<Vec<_>>().join(", "),
            extreme,
            list,
        })
    }
}

/// Fields with placeholders for themselves: `UserId` is `{UserId}`.
#[must_use]
pub fn placeholders<'a>(names: impl IntoIterator<Item = &'a str>) -> Fields {
    names.into_iter().map(|name| (name, format!("{{{name}}}"))).collect()
}

#[cfg(test)]
mod tests {
    use crate::fixture::{derivations, schema};

    #[test]
    fn an_outline_says_where_a_derivation_writes_and_how_it_finds_that() {
        let schema = schema();
        let mut shown = String::new();
        for derivation in derivations() {
            let outline = derivation.kind.outline(&schema);
            let finds = outline.finds.iter().map(|find| {
                let place = find.query.index.as_deref().unwrap_or("the table");
                format!(" by {} {} {}", place, find.query.pk, find.query.sk.first())
            });
            let finds: String = finds.collect();
            let (from, terms) = (outline.from.join("+"), outline.terms.join("; "));
            shown.extend([format!("{}: {from} ({terms}) into {:?}{finds}\n", derivation.name, outline.into)]);
        }
        expect_test::expect![[r#"
            follower-mirror: Follow () into Some("USER#{FolloweeId} / FOLLOWER#{FollowerId}")
            follower-count: Follow () into Some("USER#{FolloweeId} / PROFILE")
            follower-shown: Counter (Value of follower-count; zero is written) into Some("USER#{UserId} / PROFILE")
            post-detail: Post (except Content) into Some("POST#{PostId} / METADATA")
            post-count: Post (where Status = 'published') into Some("USER#{AuthorId} / PROFILE")
            post-shown: Counter (Value of post-count) into Some("USER#{UserId} / PROFILE")
            comment-count: Comment () into Some("POST#{PostId} / METADATA")
            comment-shown: Counter (Value of comment-count; zero is written) into Some("POST#{PostId} / METADATA")
            writer-count: Comment () into Some("USER#{UserId} / PROFILE")
            view-count: View (arrivals only) into Some("POST#{PostId} / METADATA")
            comment-author: User (Name as UserName) into Some("POST#{PostId} / COMMENT#{CommentId}") by GSI1 USER#{UserId} COMMENT#
            post-author: User (Name as AuthorName) into Some("POST#{PostId} / METADATA") by the table USER#{UserId} POST#
            followee-name: User (Name as FolloweeName) into Some("USER#{FollowerId} / FOLLOWS#{FolloweeId}") by the table USER#{UserId} FOLLOWER#
            follower-name: User (Name as FollowerName) into Some("USER#{FolloweeId} / FOLLOWER#{FollowerId}") by the table USER#{UserId} FOLLOWS#
            user-cascade: User (removed, and no User there) into Some("USER#{UserId} / PROFILE")
            post-cascade: Post+PostDetail (removed, and no PostDetail there) into Some("POST#{PostId} / METADATA") by the table POST#{PostId} COMMENT#
            employee-path: Employee (EmployeeId below the Path of its Employee) into Some("ORG#{OrgId} / EMPLOYEE#{EmployeeId}") by GSI2 MANAGER#{EmployeeId} EMP#
            org-chart: Employee () into Some("ORG#{OrgId} / EMP#{Path/}")
            folder-path: Folder (Name below the Path of its Folder) into Some("FOLDER#{FolderId} / METADATA") by GSI1 FOLDER#{FolderId} FOLDER#
            file-detail: File () into Some("FILE#{FileId} / METADATA")
            file-path: FileDetail (Name below the Path of its Folder) into Some("FILE#{FileId} / METADATA") by the table FOLDER#{FolderId} FILE#
            best-sellers: Product (UnitsSold above zero) into Some("BESTSELLERS#{Category} / {MAX-UnitsSold:12}#{ProductId} of GSI2")
            sale-count: Sale (arrivals only) into Some("PRODUCT#{ProductId} / METADATA")
            sale-shown: Counter (Value of sale-count; zero is written) into Some("PRODUCT#{ProductId} / METADATA")
            sold: Line (where Status <> 'cancelled'; sum of Quantity) into Some("WARE#{ProductId} / METADATA")
            sold-count: Counter (Value of sold; zero is written) into Some("WARE#{ProductId} / METADATA")
            sold-sum: Counter (Sum of sold; zero is written) into Some("WARE#{ProductId} / METADATA")
            sold-average: Counter (Average of sold) into Some("WARE#{ProductId} / METADATA")
            sold-exists: Counter (Exists of sold) into Some("WARE#{ProductId} / METADATA")
            kept: Line (where NOT Cancelled = true) into Some("WARE#{ProductId} / METADATA")
            readings: Reading (Value by HOUR and DAY of At in UTC; arrivals only) into Some("SENSOR#{SensorId} / {Grain}#{Bucket}")
            last-hours: Rollup (sum of Sum of the last 3 hours in UTC, as LastHours) into Some("SENSOR#{SensorId} / METADATA")
            average: Rollup (Sum / Count as Average) into Some("SENSOR#{SensorId} / {Grain}#{Bucket}")
            last-message: Message (the last: By as LastBy, At as LastAt) into Some("ROOM#{RoomId} / METADATA")
            first-message: Message (the first: At as FirstAt) into Some("ROOM#{RoomId} / METADATA")
            newest-messages: Message (the last 2 in Newest: By as By, At as At) into Some("ROOM#{RoomId} / METADATA")
            unread-messages: Message (those whose At is behind its ReadAt, up to 3, as Unread; RoomId is its RoomId) into Some("ROOM#{RoomId} / USER#{UserId}") by the table ROOM#{RoomId} USER#
            tickets: Ticket () into Some("DESK#{DeskId} / STATUS#{Status}")
            tickets-item: Counter (while tickets is above zero) into Some("DESK#{DeskId} / STATUS#{Status}")
            tickets-shown: Counter (Value of tickets; zero is written) into Some("DESK#{DeskId} / STATUS#{Status}")
            statuses: StatusGroup () into Some("DESK#{DeskId} / METADATA")
            statuses-shown: Counter (Value of statuses; zero is written) into Some("DESK#{DeskId} / METADATA")
            duties: Desk (for each member of Clerks; where NOT Closed = true) into Some("CLERK#{Clerks} / DESK#{DeskId}")
            desk-place: Desk (Place as DeskPlace; where NOT Closed = true) into Some("DESK#{DeskId} / TICKET#{TicketId}") by the table DESK#{DeskId} TICKET#
        "#]].assert_eq(&shown);
    }
}
