//! AP-005 to AP-008, AP-011 to AP-013, AP-043: posts and their readers.

use derive::query::{Consistency, Query, SortKeys};
use entities::{
    ids::{PostId, UserId},
    posts::{Comment, Like, LikeKey, Post, PostDetail, PostDetailKey, View},
};
use keys::{entity::Entity, fields::Fields};
use store::Store;

use super::{
    counts::ExactCounts,
    listing::ListPlan,
    projection::{Projected, projection},
    ranges,
};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

projection! {
    /// The projection of a published post in GSI2.
    RecentPost of PostDetail by PostDetailKey, "GSI2" {
        /// From the post.
        title: String = "Title",
        /// `published`.
        status: String = "Status",
        /// Copy of the author's name.
        author_name: String = "AuthorName",
        /// Copy of the author's picture.
        author_avatar: String = "AuthorAvatar",
        /// When it was created.
        created_at: String = "CreatedAt",
    }
}

projection! {
    /// The projection of [`Like`] in GSI1.
    LikeOfPost of Like by LikeKey, "GSI1" {
        /// When it began.
        created_at: String = "CreatedAt",
    }
}

/// A post and some of its comments.
#[derive(Debug)]
#[must_use]
pub struct PostWithComments {
    /// The post, on the first page; `None` if it does not exist, or has no mirror yet.
    pub post: Option<PostDetail>,
    /// Its comments, newest first.
    pub comments: Page<Comment>,
}

/// A post with its exact counts.
#[derive(Debug)]
#[must_use]
pub struct PostWithCounts {
    /// The post; `None` if it does not exist, or has no mirror yet.
    pub post: Option<PostDetail>,
    /// Its counts, which exist without the post too.
    pub counts: ExactCounts,
}

enum PostOrComment {
    Post(PostDetail),
    Comment(Comment),
}

impl<S: Store> Queries<S> {
    /// AP-005: the posts of a user, newest first; those of one status, if one is given. Pages are filled up.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn posts_of(
        &self,
        author: &UserId,
        status: Option<&str>,
        page: &PageRequest,
    ) -> Result<Page<Post>, ReadError> {
        let query = ranges::collection::<Post>(&Fields::from([("AuthorId", author.as_str())]))?;
        let is_wanted = |post: &Post| status.is_none_or(|status| post.status.as_deref() == Some(status));
        let take = |item: &_| Ok(Post::from_item(&self.layout, item)?.filter(is_wanted));
        let listing = ListPlan::of("AP-005", ranges::descending(query), Box::new(take));
        self.list(&ListPlan { filter: status.unwrap_or_default().to_owned(), ..listing }, page).await
    }

    /// AP-006: a post by ID, with its author's name and the displays of its counts.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn post(&self, post: &PostId, consistency: Consistency) -> Result<Option<PostDetail>, ReadError> {
        self.one(&PostDetailKey { post_id: post.clone() }, consistency).await
    }

    /// AP-006: a post by ID, with its author's name and its exact counts, up to what the stream has delivered.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn post_with_counts(&self, post: &PostId) -> Result<PostWithCounts, ReadError> {
        let key = PostDetail::primary_key(&PostDetailKey { post_id: post.clone() })?;
        let query = Query::prefix(None, &key.pk, &key.sk);
        let mut found = PostWithCounts { post: None, counts: ExactCounts::default() };
        for item in self.whole(&query).await? {
            if self.layout.key(&item).as_ref() == Some(&key) {
                let post = PostDetail::from_item(&self.layout, &item);
                found.post = post.map_err(|source| ReadError::Item { key: key.clone(), source })?;
            } else {
                found.counts.add(&self.layout, &key, &item);
            }
        }
        Ok(found)
    }

    /// AP-007: the published posts of all users, newest first.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn recent_posts(&self, page: &PageRequest) -> Result<Page<RecentPost>, ReadError> {
        let queries = RecentPost::entries(&Fields::new())?.into_iter().map(ranges::descending).collect();
        self.merge(&RecentPost::listing("AP-007", &self.layout, queries), page).await
    }

    /// AP-008: a post with its newest comments, in one query. The post is one of the first page's items.
    ///
    /// The post's key is the last one in the range, before those of its counters, so neither counters nor likes are
    /// read.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn post_with_comments(&self, post: &PostId, page: &PageRequest) -> Result<PostWithComments, ReadError> {
        let key = PostDetail::primary_key(&PostDetailKey { post_id: post.clone() })?;
        let range = SortKeys::Between(ranges::first::<Comment>()?, key.sk);
        let query = ranges::descending(ranges::eventual(Query::of(None, key.pk, range)));
        let take = |item: &_| {
            if let Some(post) = PostDetail::from_item(&self.layout, item)? {
                return Ok(Some(PostOrComment::Post(post)));
            }
            Ok(Comment::from_item(&self.layout, item)?.map(PostOrComment::Comment))
        };
        let found = self.list(&ListPlan::of("AP-008", query, Box::new(take)), page).await?;
        let mut post = None;
        let mut comments = Page { items: Vec::new(), unreadable: found.unreadable, next: found.next };
        for part in found.items {
            match part {
                PostOrComment::Post(detail) => post = Some(detail),
                PostOrComment::Comment(comment) => comments.items.push(comment),
            }
        }
        Ok(PostWithComments { post, comments })
    }

    /// AP-011: the posts that a user likes, by the post's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn likes_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<Like>, ReadError> {
        let query = ranges::collection::<Like>(&Fields::from([("UserId", user.as_str())]))?;
        self.list(&ListPlan::all("AP-011", &self.layout, query), page).await
    }

    /// AP-012: the users who like a post, by the user's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn likes_of_post(&self, post: &PostId, page: &PageRequest) -> Result<Page<LikeOfPost>, ReadError> {
        let queries = LikeOfPost::entries(&Fields::from([("PostId", post.as_str())]))?;
        self.list(&LikeOfPost::listing("AP-012", &self.layout, queries), page).await
    }

    /// AP-013: a user's like of a post; `None` if there is none. Consistent, because it decides what the user may do
    /// next.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn like_of(&self, user: &UserId, post: &PostId) -> Result<Option<Like>, ReadError> {
        self.one(&LikeKey { user_id: user.clone(), post_id: post.clone() }, Consistency::Strong).await
    }

    /// AP-043: the posts that a user viewed, newest first. A post that was viewed twice is listed twice.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn views_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<View>, ReadError> {
        let query = ranges::collection::<View>(&Fields::from([("UserId", user.as_str())]))?;
        self.list(&ListPlan::all("AP-043", &self.layout, ranges::descending(query)), page).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    [posts(), likes_and_views()].concat()
}

fn posts() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-005",
            title: "posts of a user, newest first, optionally by status (pages are filled up)",
            input: "UserId of the author, status?, PageRequest",
            result: "Page<Post>",
            order: "CreatedAt, PostId, descending",
            sample: sample!(|queries| {
                let _page = queries.posts_of(&"{AuthorId}".into(), None, &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-006",
            title: "post by ID with author name and counts: by the displays, or with exact counts",
            input: "PostId, Consistency; or PostId",
            result: "PostDetail, if there; or PostWithCounts: PostDetail, ExactCounts",
            order: "",
            sample: sample!(|queries| {
                queries.post(&"{PostId}".into(), Consistency::Eventual).await?;
                let _post = queries.post_with_counts(&"{PostId}".into()).await?;
            }),
        },
        AccessPattern {
            id: "AP-007",
            title: "recent published posts of all users, newest first",
            input: "PageRequest",
            result: "Page<RecentPost> (projection)",
            order: "CreatedAt, PostId, descending; the suffixes merged",
            sample: sample!(|queries| {
                let _page = queries.recent_posts(&sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-008",
            title: "post with its newest comments, one query",
            input: "PostId, PageRequest",
            result: "PostWithComments: PostDetail, Page<Comment>",
            order: "CreatedAt, CommentId, descending",
            sample: sample!(|queries| {
                let _page = queries.post_with_comments(&"{PostId}".into(), &sample_page()).await?;
            }),
        },
    ]
}

fn likes_and_views() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-011",
            title: "posts liked by a user",
            input: "UserId, PageRequest",
            result: "Page<Like>",
            order: "PostId",
            sample: sample!(|queries| {
                let _page = queries.likes_of(&"{UserId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-012",
            title: "users who liked a post",
            input: "PostId, PageRequest",
            result: "Page<LikeOfPost> (projection)",
            order: "UserId",
            sample: sample!(|queries| {
                let _page = queries.likes_of_post(&"{PostId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-013",
            title: "does user U like post P",
            input: "UserId, PostId",
            result: "Like, if there",
            order: "",
            sample: sample!(|queries| {
                queries.like_of(&"{UserId}".into(), &"{PostId}".into()).await?;
            }),
        },
        AccessPattern {
            id: "AP-043",
            title: "posts viewed by a user, newest first",
            input: "UserId, PageRequest",
            result: "Page<View>",
            order: "ViewedAt, PostId, descending",
            sample: sample!(|queries| {
                let _page = queries.views_of(&"{UserId}".into(), &sample_page()).await?;
            }),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reads::projection::check;

    #[test]
    fn the_projections_have_what_their_indexes_hold() {
        check::<RecentPost>();
        check::<LikeOfPost>();
    }
}
