//! The definition of a derivation in words. The words are stored, so that a later change of the definition is detected.

use std::collections::BTreeSet;

use keys::{
    counter::COUNTER,
    entity::Definition,
    index_key::{IndexKey, OnlyIf},
};

use crate::{derivation::Derivation, outline::Outline, part::PartOf, schema::Schema};

/// The definition in words. They stay the same as long as the derivation gives the same values for the same items. The
/// number of shards of a counter, and how items are found, are left out: both may change at any time. The index keys of
/// the items that a level-triggered derivation writes are included, because a repair sets these keys too.
///
/// The words are stored, so that a change of the definition is detected. If the code of a kind changes its values, its
/// outline must change its words.
#[must_use]
pub fn definition(derivation: &Derivation, schema: &Schema) -> String {
    let kind = &derivation.kind;
    let Outline { from, terms, into, touches, depth_max, .. } = kind.outline(schema);
    let reach = kind.reach(schema).unwrap_or_default();
    let reads = reach.reads.iter().filter_map(|part| match &part.of {
        PartOf::Attribute(name) | PartOf::Inside { path: name, .. } => Some(format!("{}.{name}", part.entity)),
        PartOf::Existence | PartOf::AllBut(_) => None,
    });
    let writes = reach.writes.iter().filter(|part| part.entity != COUNTER).filter_map(|part| match &part.of {
        PartOf::Attribute(name) | PartOf::Inside { path: name, .. } => Some(name.clone()),
        PartOf::Existence => Some(part.entity.clone()),
        PartOf::AllBut(_) => None,
    });
    let listed = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
    let target = kind.refresh().and_then(|refresh| schema.entity(refresh.target()));
    let index_keys = target.map(index_keys).unwrap_or_default();
    let (reads, writes) = (listed(reads.collect()), listed(writes.chain(touches).collect()));
    let depth = depth_max.map(|depth| format!("at most {depth} deep"));
    let mut words = format!("{}: {}", kind.name(), from.join(", "));
    let parts = [
        (" (", terms.join("; "), ")"),
        (" into ", into.unwrap_or_default(), ""),
        (", ", depth.unwrap_or_default(), ""),
        ("; writes ", writes, ""),
        ("; reads ", reads, ""),
        ("; index keys ", index_keys, ""),
    ];
    for (before, part, after) in parts.iter().filter(|(_, part, _)| !part.is_empty()) {
        words.extend([before, part.as_str(), after]);
    }
    words
}

/// The index keys of an entity's items, as their writer sets them, in words; empty if there are none.
#[must_use]
pub fn index_keys(definition: &Definition) -> String {
    let all: BTreeSet<String> = definition.written_indexes().map(index_key).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

/// An item's key in an index, and the condition for being in the index.
fn index_key(IndexKey { index, key, only_if, .. }: &IndexKey) -> String {
    let only_if = only_if.as_ref().map(|only_if| match only_if {
        OnlyIf::Is { attribute, any_of } => format!(" while {attribute} is {}", any_of.join(" or ")),
        OnlyIf::Has { attribute } => format!(" while {attribute} is there"),
    });
    format!("{key} of {index}{}", only_if.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use keys::entity::KeyTemplate;

    use super::*;
    use crate::fixture::{derivations, schema};

    #[test]
    fn another_template_of_an_index_key_is_another_definition() {
        let schema = schema();
        let changed = |definition: &Definition| {
            let mut definition = definition.clone();
            for index in definition.indexes.iter_mut().filter(|index| !index.derived) {
                index.key = KeyTemplate::parse("ALL", &index.key.sk.to_string()).unwrap();
            }
            definition
        };
        let other = Schema::new(schema.layout.clone(), schema.entities().map(changed));
        let differs = |name: &str| {
            let all = derivations();
            let derivation = all.iter().find(|derivation| derivation.name == name).unwrap();
            definition(derivation, &schema) != definition(derivation, &other)
        };
        for (name, is_other) in [
            ("post-detail", true),
            ("comment-author", true),
            ("folder-path", true),
            // Its target has no index key.
            ("followee-name", false),
            // A counter is not in an index.
            ("comment-count", false),
        ] {
            assert_eq!(differs(name), is_other, "{name}");
        }
    }

    #[test]
    fn the_definition_of_a_derivation_says_what_it_derives() {
        let schema = schema();
        let shown: Vec<String> = derivations()
            .iter()
            .map(|derivation| format!("{} = {}", derivation.name, definition(derivation, &schema)))
            .collect();
        expect_test::expect![[r#"
            follower-mirror = mirror: Follow into USER#{FolloweeId} / FOLLOWER#{FollowerId}; writes Follower
            follower-count = count: Follow into USER#{FolloweeId} / PROFILE; reads Follow.FolloweeId
            follower-shown = display: Counter (Value of follower-count; zero is written) into USER#{UserId} / PROFILE; writes FollowerCount; reads Counter.follower-count
            post-detail = mirror: Post (except Content) into POST#{PostId} / METADATA; writes PostDetail; index keys POSTS / {CreatedAt}#{PostId} of GSI2 while Status is published
            post-count = count: Post (where Status = 'published') into USER#{AuthorId} / PROFILE; reads Post.AuthorId, Post.Status
            post-shown = display: Counter (Value of post-count) into USER#{UserId} / PROFILE; writes PostCount; reads Counter.post-count
            comment-count = count: Comment into POST#{PostId} / METADATA; reads Comment.PostId
            comment-shown = display: Counter (Value of comment-count; zero is written) into POST#{PostId} / METADATA; writes CommentCount; reads Counter.comment-count; index keys POSTS / {CreatedAt}#{PostId} of GSI2 while Status is published
            writer-count = count: Comment into USER#{UserId} / PROFILE; reads Comment.UserId
            view-count = history count: View (arrivals only) into POST#{PostId} / METADATA; reads View.PostId
            comment-author = copy: User (Name as UserName) into POST#{PostId} / COMMENT#{CommentId}; writes UserName; reads Comment.UserId, User.Name; index keys USER#{UserId} / COMMENT#{CommentId} of GSI1
            post-author = copy: User (Name as AuthorName) into POST#{PostId} / METADATA; writes AuthorName; reads PostDetail.AuthorId, User.Name; index keys POSTS / {CreatedAt}#{PostId} of GSI2 while Status is published
            followee-name = copy: User (Name as FolloweeName) into USER#{FollowerId} / FOLLOWS#{FolloweeId}; writes FolloweeName; reads Follow.FolloweeId, User.Name
            follower-name = copy: User (Name as FollowerName) into USER#{FolloweeId} / FOLLOWER#{FollowerId}; writes FollowerName; reads Follower.FollowerId, User.Name
            user-cascade = cascade: User (removed, and no User there) into USER#{UserId} / PROFILE; writes EmailClaim, named by what was removed, deleted while its UserId is the owner's
            post-cascade = cascade: Post, PostDetail (removed, and no PostDetail there) into POST#{PostId} / METADATA; writes Comment deleted
            employee-path = path: Employee (EmployeeId below the Path of its Employee) into ORG#{OrgId} / EMPLOYEE#{EmployeeId}, at most 4 deep; writes Path; reads Employee.EmployeeId, Employee.ManagerId, Employee.OrgId, Employee.Path; index keys MANAGER#{ManagerId} / EMP#{EmployeeId} of GSI2
            org-chart = mirror: Employee into ORG#{OrgId} / EMP#{Path/}; writes OrgChart; reads Employee.Path
            folder-path = path: Folder (Name below the Path of its Folder) into FOLDER#{FolderId} / METADATA, at most 5 deep; writes Path; reads Folder.Name, Folder.ParentId, Folder.Path; index keys FOLDER#{ParentId} / FOLDER#{Name}#{FolderId} of GSI1
            file-detail = mirror: File into FILE#{FileId} / METADATA; writes FileDetail
            file-path = path: FileDetail (Name below the Path of its Folder) into FILE#{FileId} / METADATA, at most 6 deep; writes Path; reads FileDetail.FolderId, FileDetail.Name, Folder.Path
            best-sellers = index key: Product (UnitsSold above zero) into BESTSELLERS#{Category} / {MAX-UnitsSold:12}#{ProductId} of GSI2; writes GSI2PK, GSI2SK; reads Product.Category, Product.ProductId, Product.UnitsSold
            sale-count = history count: Sale (arrivals only) into PRODUCT#{ProductId} / METADATA; reads Sale.ProductId
            sale-shown = display: Counter (Value of sale-count; zero is written) into PRODUCT#{ProductId} / METADATA; writes UnitsSold; reads Counter.sale-count
            sold = count and sum: Line (where Status <> 'cancelled'; sum of Quantity) into WARE#{ProductId} / METADATA; reads Line.ProductId, Line.Quantity, Line.Status
            sold-count = display: Counter (Value of sold; zero is written) into WARE#{ProductId} / METADATA; writes SoldCount; reads Counter.sold
            sold-sum = display: Counter (Sum of sold; zero is written) into WARE#{ProductId} / METADATA; writes Sold; reads Counter.sum of sold
            sold-average = display: Counter (Average of sold) into WARE#{ProductId} / METADATA; writes SoldAverage; reads Counter.sold, Counter.sum of sold
            sold-exists = display: Counter (Exists of sold) into WARE#{ProductId} / METADATA; writes IsSold; reads Counter.sold
            kept = count: Line (where NOT Cancelled = true) into WARE#{ProductId} / METADATA; reads Line.Cancelled, Line.ProductId
            readings = roll-up: Reading (Value by HOUR and DAY of At in UTC; arrivals only) into SENSOR#{SensorId} / {Grain}#{Bucket}; writes Count, Max, Min, Rollup, Sum; reads Reading.At, Reading.SensorId, Reading.Value
            last-hours = window: Rollup (sum of Sum of the last 3 hours in UTC, as LastHours) into SENSOR#{SensorId} / METADATA; writes LastHours; reads Rollup.Sum
            average = calculated: Rollup (Sum / Count as Average) into SENSOR#{SensorId} / {Grain}#{Bucket}; writes Average; reads Rollup.Count, Rollup.Sum
            last-message = latest: Message (the last: By as LastBy, At as LastAt) into ROOM#{RoomId} / METADATA; writes LastAt, LastBy; reads Message.At, Message.By
            first-message = latest: Message (the first: At as FirstAt) into ROOM#{RoomId} / METADATA; writes FirstAt; reads Message.At
            newest-messages = latest list: Message (the last 2 in Newest: By as By, At as At) into ROOM#{RoomId} / METADATA; writes Newest; reads Message.At, Message.By
            unread-messages = unread: Message (those whose At is behind its ReadAt, up to 3, as Unread; RoomId is its RoomId) into ROOM#{RoomId} / USER#{UserId}; writes Unread; reads Member.ReadAt, Member.RoomId
            tickets = count: Ticket into DESK#{DeskId} / STATUS#{Status}; reads Ticket.DeskId, Ticket.Status
            tickets-item = counted item: Counter (while tickets is above zero) into DESK#{DeskId} / STATUS#{Status}; writes StatusGroup; reads Counter.tickets
            tickets-shown = display: Counter (Value of tickets; zero is written) into DESK#{DeskId} / STATUS#{Status}; writes Tickets; reads Counter.tickets
            statuses = count: StatusGroup into DESK#{DeskId} / METADATA; reads StatusGroup.DeskId
            statuses-shown = display: Counter (Value of statuses; zero is written) into DESK#{DeskId} / METADATA; writes Statuses; reads Counter.statuses
            duties = mirror: Desk (for each member of Clerks; where NOT Closed = true) into CLERK#{Clerks} / DESK#{DeskId}; writes Duty; reads Desk.Clerks, Desk.Closed
            desk-place = copy: Desk (Place as DeskPlace; where NOT Closed = true) into DESK#{DeskId} / TICKET#{TicketId}; writes DeskPlace; reads Desk.Closed, Desk.Place, Ticket.DeskId"#]].assert_eq(&shown.join("\n"));
    }
}
