//! Posts, and their comments, likes and views.
//!
//! A post is in its author's collection, the newest last. The mirror [`PostDetail`], which Ripple writes, finds it by
//! its id alone and has the counts.

use crate::{
    claim::Claim,
    ids::{CommentId, PostId, UserId},
};

/// Texts of [`Post::status`]. Stored, so they are stable.
pub mod status {
    /// Only its author sees it.
    pub const DRAFT: &str = "draft";
    /// Everybody sees it. It counts, and is in the index of recent posts.
    pub const PUBLISHED: &str = "published";
    /// In no list, but still found by its id.
    pub const ARCHIVED: &str = "archived";
}

keys::entity! {
    /// A post, in its author's collection.
    ground Post "E-02" {
        key PostKey("USER#{AuthorId}", "POST#{CreatedAt}#{PostId}") {
            /// The author.
            author_id: UserId = "AuthorId",
            /// When it was created, ISO 8601 UTC in milliseconds.
            created_at: String = "CreatedAt",
            /// The post.
            post_id: PostId = "PostId",
        }
        attributes {
            /// Title as shown.
            title: Option<String> = "Title",
            /// The body, or the URL of a large one.
            content: Option<String> = "Content",
            /// One of [`status`].
            status: Option<String> = "Status",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

keys::entity! {
    /// The mirror of a [`Post`] under the post's id, without its body, with the author and the counts.
    derived PostDetail "E-03" {
        key PostDetailKey("POST#{PostId}", "METADATA") {
            /// The post.
            post_id: PostId = "PostId",
        }
        index "GSI2" ("POSTS#{PostId%8}", "{CreatedAt}#{PostId}") only if "Status" = "published";
        attributes {
            /// The author, from the post's key.
            author_id: Option<UserId> = "AuthorId",
            /// When it was created, from the post's key, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// From the post.
            title: Option<String> = "Title",
            /// From the post.
            status: Option<String> = "Status",
            /// From the post.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Keys of all posts with this id; the mirror repeats the greatest that exists.
            claims: Option<Vec<Claim>> = "Claims",
            /// Copy of the author's name; absent while the author does not exist.
            author_name: Option<String> = "AuthorName",
            /// Copy of the author's picture.
            author_avatar: Option<String> = "AuthorAvatar",
            /// Display: number of comments; absent for 0.
            comment_count: Option<i64> = "CommentCount",
            /// Display: number of likes; absent for 0.
            like_count: Option<i64> = "LikeCount",
            /// Display: number of views, expired ones included; absent for 0.
            view_count: Option<i64> = "ViewCount",
        }
    }
}

keys::entity! {
    /// A comment on a post, in the post's collection.
    ground Comment "E-04" {
        key CommentKey("POST#{PostId}", "COMMENT#{CreatedAt}#{CommentId}") {
            /// The post.
            post_id: PostId = "PostId",
            /// When it was written, ISO 8601 UTC in milliseconds.
            created_at: String = "CreatedAt",
            /// The comment.
            comment_id: CommentId = "CommentId",
        }
        index "GSI1" ("USER#{UserId}", "COMMENT#{CreatedAt}#{CommentId}");
        attributes {
            /// The writer; the index key needs it.
            user_id: Option<UserId> = "UserId",
            /// The comment itself.
            text: Option<String> = "Text",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the writer's name; absent while the writer does not exist.
            user_name: Option<String> = "UserName",
            /// Copy of the writer's picture.
            user_avatar: Option<String> = "UserAvatar",
        }
    }
}

keys::entity! {
    /// A like of a post by a user.
    ground Like "E-05" {
        key LikeKey("USER#{UserId}", "LIKE#POST#{PostId}") {
            /// The user who likes the post.
            user_id: UserId = "UserId",
            /// The post.
            post_id: PostId = "PostId",
        }
        index "GSI1" ("POST#{PostId}", "LIKE#USER#{UserId}");
        attributes {
            /// When it was liked, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

keys::entity! {
    /// A view of a post by a user. DynamoDB removes it after it expires.
    ground View "E-06" {
        key ViewKey("USER#{UserId}", "VIEW#{ViewedAt}#{PostId}") {
            /// The viewer.
            user_id: UserId = "UserId",
            /// When it was viewed, ISO 8601 UTC in milliseconds.
            viewed_at: String = "ViewedAt",
            /// The post.
            post_id: PostId = "PostId",
        }
        attributes {
            /// When DynamoDB may remove it, in epoch seconds.
            expires_at: Option<i64> = "ExpiresAt",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

#[cfg(test)]
mod tests {
    use keys::{entity::Entity, item::Item, key::Key};
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::table::layout;

    fn detail(status: &str) -> PostDetail {
        PostDetail {
            key: PostDetailKey { post_id: PostId::from("p1") },
            author_id: Some(UserId::from("ada")),
            created_at: Some("2024-01-15T10:30:00.000Z".into()),
            title: None,
            status: Some(status.into()),
            updated_at: None,
            claims: Some(vec![Key::new("USER#ada", "POST#2024-01-15T10:30:00.000Z#p1").into()]),
            author_name: None,
            author_avatar: None,
            comment_count: None,
            like_count: Some(2),
            view_count: None,
        }
    }

    #[test]
    fn only_a_published_post_is_in_the_index_of_recent_posts() {
        for (status, inside) in [(status::DRAFT, false), (status::PUBLISHED, true), (status::ARCHIVED, false)] {
            let item = detail(status).to_item(&layout()).unwrap();
            assert_eq!(item.contains_key("GSI2PK"), inside, "{status}");
            assert_eq!(item.contains_key("GSI2SK"), inside, "{status}");
        }
    }

    #[test]
    fn claims_are_a_list_of_maps_of_pk_and_sk() {
        let item = detail(status::DRAFT).to_item(&layout()).unwrap();
        let map = [("PK", "USER#ada"), ("SK", "POST#2024-01-15T10:30:00.000Z#p1")];
        let map = map.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned())));
        assert_eq!(item.get("Claims"), Some(&AttributeValue::L(vec![AttributeValue::M(map.into())])));
    }

    #[test]
    fn what_another_client_left_out_is_absent_and_what_it_added_is_no_matter() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let item = Item::from([
            ("PK".to_owned(), text("POST#p1")),
            ("SK".to_owned(), text("COMMENT#yesterday#c1")),
            ("EntityType".to_owned(), text("Comment")),
            ("Mood".to_owned(), text("good")),
            ("Text".to_owned(), AttributeValue::Null(true)),
        ]);
        let comment = Comment::from_item(&layout(), &item).unwrap().unwrap();
        assert_eq!(comment.key.created_at, "yesterday");
        assert_eq!((comment.user_id, comment.text, comment.user_name), (None, None, None));
    }
}
