//! The shipped table, which `examples/social/ripple.toml` declares.

use std::sync::LazyLock;

use derive::{
    catalogue::{Catalogue, CatalogueError},
    derivation::Derivation,
    schema::Schema,
};

/// The manifest's text.
const MANIFEST: &str = include_str!("../../ripple.toml");

#[expect(clippy::panic, reason = "the text is a part of the program, and a test shows that it is right")]
static SHIPPED: LazyLock<(Schema, Catalogue)> =
    LazyLock::new(|| manifest::load(MANIFEST).unwrap_or_else(|error| panic!("the shipped manifest is wrong: {error}")));

/// The shipped table.
#[must_use]
pub fn schema() -> Schema {
    SHIPPED.0.clone()
}

/// The shipped derivations for a schema, which may differ from the shipped one.
///
/// # Errors
///
/// [`CatalogueError`] if they do not fit this schema.
pub fn catalogue(schema: &Schema) -> Result<Catalogue, CatalogueError> {
    Catalogue::new(schema, derivations())
}

/// The shipped derivations, in the order in which they build on each other.
#[must_use]
pub fn derivations() -> Vec<Derivation> {
    SHIPPED.1.derivations().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_derivations_fit_the_shipped_table() {
        let schema = schema();
        let catalogue = catalogue(&schema).unwrap();
        assert_eq!(catalogue.derivations().count(), 53);
    }

    /// The definitions are stored in each table's registry: after a change of one, every table needs a backfill.
    #[test]
    fn what_each_derives_is_written_out() {
        let schema = schema();
        let outlines: Vec<String> = derivations()
            .iter()
            .map(|derivation| format!("{} = {}", derivation.name, derive::definition::definition(derivation, &schema)))
            .collect();
        expect_test::expect![[r#"
            follower-mirror = mirror: Follow into USER#{FolloweeId} / FOLLOWER#{FollowerId}; writes Follower
            follower-count = count: Follow into USER#{FolloweeId} / PROFILE; reads Follow.FolloweeId
            follower-count-display = display: Counter (Value of follower-count; zero is written) into USER#{UserId} / PROFILE; writes FollowerCount; reads Counter.follower-count; index keys EMAIL#{Email} / USER#{UserId} of GSI1, USERS#{UserId%8} / {CreatedAt}#{UserId} of GSI2
            following-count = count: Follow into USER#{FollowerId} / PROFILE; reads Follow.FollowerId
            following-count-display = display: Counter (Value of following-count; zero is written) into USER#{UserId} / PROFILE; writes FollowingCount; reads Counter.following-count; index keys EMAIL#{Email} / USER#{UserId} of GSI1, USERS#{UserId%8} / {CreatedAt}#{UserId} of GSI2
            followee-name = copy: User (Name as FolloweeName) into USER#{FollowerId} / FOLLOWS#{FolloweeId}; writes FolloweeName; reads Follow.FolloweeId, User.Name
            follower-name = copy: User (Name as FollowerName) into USER#{FolloweeId} / FOLLOWER#{FollowerId}; writes FollowerName; reads Follower.FollowerId, User.Name
            post-detail = mirror: Post (except Content) into POST#{PostId} / METADATA; writes PostDetail; index keys POSTS#{PostId%8} / {CreatedAt}#{PostId} of GSI2 while Status is published
            post-count = count: Post (where Status = 'published') into USER#{AuthorId} / PROFILE; reads Post.AuthorId, Post.Status
            post-count-display = display: Counter (Value of post-count; zero is written) into USER#{UserId} / PROFILE; writes PostCount; reads Counter.post-count; index keys EMAIL#{Email} / USER#{UserId} of GSI1, USERS#{UserId%8} / {CreatedAt}#{UserId} of GSI2
            comment-count = count: Comment into POST#{PostId} / METADATA; reads Comment.PostId
            comment-count-display = display: Counter (Value of comment-count; zero is written) into POST#{PostId} / METADATA; writes CommentCount; reads Counter.comment-count; index keys POSTS#{PostId%8} / {CreatedAt}#{PostId} of GSI2 while Status is published
            like-count = count: Like into POST#{PostId} / METADATA; reads Like.PostId
            like-count-display = display: Counter (Value of like-count; zero is written) into POST#{PostId} / METADATA; writes LikeCount; reads Counter.like-count; index keys POSTS#{PostId%8} / {CreatedAt}#{PostId} of GSI2 while Status is published
            view-count = history count: View (arrivals only) into POST#{PostId} / METADATA; reads View.PostId
            view-count-display = display: Counter (Value of view-count; zero is written) into POST#{PostId} / METADATA; writes ViewCount; reads Counter.view-count; index keys POSTS#{PostId%8} / {CreatedAt}#{PostId} of GSI2 while Status is published
            comment-author = copy: User (Name as UserName, Avatar as UserAvatar) into POST#{PostId} / COMMENT#{CreatedAt}#{CommentId}; writes UserAvatar, UserName; reads Comment.UserId, User.Avatar, User.Name; index keys USER#{UserId} / COMMENT#{CreatedAt}#{CommentId} of GSI1
            post-author = copy: User (Name as AuthorName, Avatar as AuthorAvatar) into POST#{PostId} / METADATA; writes AuthorAvatar, AuthorName; reads PostDetail.AuthorId, User.Avatar, User.Name; index keys POSTS#{PostId%8} / {CreatedAt}#{PostId} of GSI2 while Status is published
            group-member = mirror: Membership into GROUP#{GroupId} / USER#{UserId}; writes GroupMember
            member-count = count: Membership into GROUP#{GroupId} / METADATA; reads Membership.GroupId
            member-count-display = display: Counter (Value of member-count; zero is written) into GROUP#{GroupId} / METADATA; writes MemberCount; reads Counter.member-count
            group-name = copy: Group (Name as GroupName) into USER#{UserId} / GROUP#{GroupId}; writes GroupName; reads Group.Name, Membership.GroupId
            group-user-name = copy: User (Name as UserName) into GROUP#{GroupId} / USER#{UserId}; writes UserName; reads GroupMember.UserId, User.Name
            team-count = count: Team into ORG#{OrgId} / METADATA; reads Team.OrgId
            team-count-display = display: Counter (Value of team-count; zero is written) into ORG#{OrgId} / METADATA; writes TeamCount; reads Counter.team-count
            org-member-count = count: Member into ORG#{OrgId} / METADATA; reads Member.OrgId
            org-member-count-display = display: Counter (Value of org-member-count; zero is written) into ORG#{OrgId} / METADATA; writes MemberCount; reads Counter.org-member-count
            employee-count = count: Employee into ORG#{OrgId} / METADATA; reads Employee.OrgId
            employee-count-display = display: Counter (Value of employee-count; zero is written) into ORG#{OrgId} / METADATA; writes EmployeeCount; reads Counter.employee-count
            member-user-name = copy: User (Name as UserName) into ORG#{OrgId} / MEMBER#{UserId}; writes UserName; reads Member.UserId, User.Name; index keys USER#{UserId} / MEMBER#ORG#{OrgId} of GSI1
            member-org-name = copy: Organization (Name as OrgName) into ORG#{OrgId} / MEMBER#{UserId}; writes OrgName; reads Member.OrgId, Organization.Name; index keys USER#{UserId} / MEMBER#ORG#{OrgId} of GSI1
            file-detail = mirror: File into FILE#{FileId} / METADATA; writes FileDetail
            folder-path = path: Folder (Name below the Path of its Folder) into FOLDER#{FolderId} / METADATA, at most 64 deep; writes Path; reads Folder.Name, Folder.ParentId, Folder.Path; index keys FOLDER#{ParentId} / FOLDER#{Name}#{FolderId} of GSI1 while ParentId is there
            file-path = path: FileDetail (Name below the Path of its Folder) into FILE#{FileId} / METADATA, at most 65 deep; writes Path; reads FileDetail.FolderId, FileDetail.Name, Folder.Path
            employee-path = path: Employee (EmployeeId below the Path of its Employee) into ORG#{OrgId} / EMPLOYEE#{EmployeeId}, at most 27 deep; writes Path; reads Employee.EmployeeId, Employee.ManagerId, Employee.OrgId, Employee.Path; index keys EMP#{EmployeeId} / EMP of GSI1, MANAGER#{ManagerId} / EMP#{EmployeeId} of GSI2 while ManagerId is there
            org-chart = mirror: Employee into ORG#{OrgId} / EMP#{Path/}; writes OrgChart; reads Employee.Path
            review-author = copy: User (Name as UserName) into PRODUCT#{ProductId} / REVIEW#{CreatedAt}#{ReviewId}; writes UserName; reads Review.UserId, User.Name; index keys USER#{UserId} / REVIEW#{CreatedAt}#{ReviewId} of GSI1
            order-detail = mirror: Order into ORDER#{OrderId} / METADATA; writes OrderDetail
            folder-totals = count and sum: File (sum of SizeBytes) into FOLDER#{FolderId} / METADATA; reads File.FolderId, File.SizeBytes
            folder-totals-count-display = display: Counter (Value of folder-totals; zero is written) into FOLDER#{FolderId} / METADATA; writes FileCount; reads Counter.folder-totals; index keys FOLDER#{ParentId} / FOLDER#{Name}#{FolderId} of GSI1 while ParentId is there
            folder-totals-sum-display = display: Counter (Sum of folder-totals; zero is written) into FOLDER#{FolderId} / METADATA; writes TotalBytes; reads Counter.sum of folder-totals; index keys FOLDER#{ParentId} / FOLDER#{Name}#{FolderId} of GSI1 while ParentId is there
            product-rating = count and sum: Review (sum of Rating) into PRODUCT#{ProductId} / METADATA; reads Review.ProductId, Review.Rating
            product-rating-count-display = display: Counter (Value of product-rating; zero is written) into PRODUCT#{ProductId} / METADATA; writes ReviewCount; reads Counter.product-rating; index keys CAT#{Category} / PRODUCT#{ProductId} of GSI1
            product-rating-sum-display = display: Counter (Sum of product-rating; zero is written) into PRODUCT#{ProductId} / METADATA; writes RatingSum; reads Counter.sum of product-rating; index keys CAT#{Category} / PRODUCT#{ProductId} of GSI1
            order-totals = count and sum: Order (where Status <> 'cancelled'; sum of Total) into USER#{UserId} / PROFILE; reads Order.Status, Order.Total, Order.UserId
            order-totals-count-display = display: Counter (Value of order-totals; zero is written) into USER#{UserId} / PROFILE; writes OrderCount; reads Counter.order-totals; index keys EMAIL#{Email} / USER#{UserId} of GSI1, USERS#{UserId%8} / {CreatedAt}#{UserId} of GSI2
            order-totals-sum-display = display: Counter (Sum of order-totals; zero is written) into USER#{UserId} / PROFILE; writes LifetimeValue; reads Counter.sum of order-totals; index keys EMAIL#{Email} / USER#{UserId} of GSI1, USERS#{UserId%8} / {CreatedAt}#{UserId} of GSI2
            units-sold = count and sum: OrderItem (where NOT Cancelled = true; sum of Quantity) into PRODUCT#{ProductId} / METADATA; reads OrderItem.Cancelled, OrderItem.ProductId, OrderItem.Quantity
            units-sold-display = display: Counter (Sum of units-sold; zero is written) into PRODUCT#{ProductId} / METADATA; writes UnitsSold; reads Counter.sum of units-sold; index keys CAT#{Category} / PRODUCT#{ProductId} of GSI1
            best-sellers = index key: Product (UnitsSold above zero) into BESTSELLERS#{Category} / {MAX-UnitsSold:12}#{ProductId} of GSI2; writes GSI2PK, GSI2SK; reads Product.Category, Product.ProductId, Product.UnitsSold; index keys CAT#{Category} / PRODUCT#{ProductId} of GSI1
            readings-rollup = roll-up: Reading (Value by HOUR and DAY of At in UTC; arrivals only) into SENSOR#{SensorId} / {Grain}#{Bucket}; writes Count, Max, Min, Rollup, Sum; reads Reading.At, Reading.SensorId, Reading.Value
            post-cascade = cascade: Post, PostDetail (removed, and no PostDetail there) into POST#{PostId} / METADATA; writes Comment deleted, Counter of view-count deleted, Like deleted
            user-cascade = cascade: User (removed, and no User there) into USER#{UserId} / PROFILE; writes CartItem deleted, EmailClaim, named by what was removed, deleted while its UserId is the owner's, Follow deleted, Like deleted, Member deleted, Membership deleted, Post Status set to archived, Subscription deleted, View deleted"#]].assert_eq(&outlines.join("\n"));
    }
}
