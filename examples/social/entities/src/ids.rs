//! Ids of the shipped entities. Each is a type of its own, so nobody can pass a post's id as a user's.
//!
//! Any text that is not empty is an id; a key with an empty id is refused.

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
