//! AP-009 and AP-010: comments.

use derive::query::{Order, Query};
use entities::{
    ids::{PostId, UserId},
    posts::{Comment, CommentKey},
};
use keys::{entity::Entity, fields::Fields};
use store::Store;

use super::{
    listing::ListPlan,
    projection::{Projected, projection},
    ranges,
    times::Times,
};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

projection! {
    /// The projection of [`Comment`] in GSI1.
    CommentOfUser of Comment by CommentKey, "GSI1" {
        /// What it says.
        text: String = "Text",
    }
}

impl<S: Store> Queries<S> {
    /// AP-009: the comments of a post, oldest or newest first, between two times.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn comments_of_post(
        &self,
        post: &PostId,
        times: &Times,
        order: Order,
        page: &PageRequest,
    ) -> Result<Page<Comment>, ReadError> {
        let fields = Fields::from([("PostId", post.as_str())]);
        let query = ranges::collection::<Comment>(&fields)?;
        let template = &Comment::definition().key.sk;
        let sk = ranges::between(Comment::NAME, template, &fields, "CreatedAt", times.bounds())?;
        self.list(&ListPlan::all("AP-009", &self.layout, Query { sk, order, ..query }), page).await
    }

    /// AP-010: the comments of a user, newest first.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn comments_of_user(&self, user: &UserId, page: &PageRequest) -> Result<Page<CommentOfUser>, ReadError> {
        let queries = CommentOfUser::entries(&Fields::from([("UserId", user.as_str())]))?;
        let queries = queries.into_iter().map(ranges::descending).collect();
        self.list(&CommentOfUser::listing("AP-010", &self.layout, queries), page).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-009",
            title: "comments of a post, oldest or newest first, between two times",
            input: "PostId, Times, Order, PageRequest",
            result: "Page<Comment>",
            order: "CreatedAt, CommentId, ascending or descending",
            sample: sample!(|queries| {
                let times = Times::between("{From}", "{To}");
                let _page =
                    queries.comments_of_post(&"{PostId}".into(), &times, Order::Ascending, &sample_page()).await?;
                let _page =
                    queries.comments_of_post(&"{PostId}".into(), &times, Order::Descending, &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-010",
            title: "comments of a user, newest first",
            input: "UserId, PageRequest",
            result: "Page<CommentOfUser> (projection)",
            order: "CreatedAt, CommentId, descending",
            sample: sample!(|queries| {
                let _page = queries.comments_of_user(&"{UserId}".into(), &sample_page()).await?;
            }),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reads::projection::check;

    #[test]
    fn the_projection_has_what_its_index_holds() {
        check::<CommentOfUser>();
    }
}
