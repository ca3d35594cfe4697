//! Ids of the shipped entities: each a text of its own kind, so that a post's id is no user's.
//!
//! Any text that is not empty is an id; a key that would be built from an empty one is refused.

keys::id! {
    /// Id of a user.
    UserId
    /// Id of a post.
    PostId
    /// Id of a comment.
    CommentId
    /// Id of a group.
    GroupId
    /// Id of an organization.
    OrgId
    /// Id of a team, unique over all organizations.
    TeamId
    /// Id of an employee, unique over all organizations.
    EmployeeId
    /// Id of a folder.
    FolderId
    /// Id of a file, unique over all folders.
    FileId
    /// Id of a product.
    ProductId
    /// Id of a review.
    ReviewId
    /// Id of an order, unique over all users.
    OrderId
    /// Id of a sensor.
    SensorId
    /// Id of a subscription.
    SubscriptionId
    /// Id of a cart.
    CartId
}
