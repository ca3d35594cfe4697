//! Cursors of other queries.

use std::sync::Arc;

use derive::query::Order;
use entities::ids::{PostId, UserId};
use queries::{
    cursor::{CursorError, PageCursor},
    page::PageRequest,
    read_error::ReadError,
    reads::times::Times,
};

use crate::patterns::bed::Bed;

type Held = Arc<Bed>;

async fn cursor(bed: &Bed, user: &str, status: Option<&str>) -> PageCursor {
    bed.queries.posts_of(&user.into(), status, &PageRequest::first(1)).await.unwrap().next.unwrap()
}

fn refusal<T>(answer: Result<T, ReadError>) -> CursorError {
    match answer {
        Err(ReadError::Cursor(error)) => error,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the cursor was taken"),
    }
}

pub(crate) async fn a_cursor_of_another_query_is_refused(bed: Held) {
    let queries = &bed.queries;
    let page = |cursor: &PageCursor| PageRequest::after(2, cursor.clone());
    let of_u1 = cursor(&bed, "u1", None).await;
    assert!(queries.posts_of(&"u1".into(), None, &page(&of_u1)).await.is_ok());
    let other = |pattern| CursorError::OtherQuery { pattern };
    // Another pattern, another partition, another filter.
    assert_eq!(refusal(queries.views_of(&"u1".into(), &page(&of_u1)).await), other("AP-043"));
    assert_eq!(refusal(queries.users_newest_first(&page(&of_u1)).await), other("AP-003"));
    for user in ["u10", "u", "u1#x"] {
        assert_eq!(refusal(queries.posts_of(&user.into(), None, &page(&of_u1)).await), other("AP-005"));
    }
    let drafts = queries.posts_of(&"u1".into(), Some("draft"), &page(&of_u1)).await;
    assert_eq!(refusal(drafts), other("AP-005"));
    // Another order, other times.
    let post = PostId::from("p1");
    let comments = async |times, order, page| queries.comments_of_post(&post, &times, order, &page).await;
    let upward = comments(Times::all(), Order::Ascending, PageRequest::first(1)).await.unwrap().next.unwrap();
    assert!(comments(Times::all(), Order::Ascending, page(&upward)).await.is_ok());
    assert_eq!(refusal(comments(Times::all(), Order::Descending, page(&upward)).await), other("AP-009"));
    let later = Times { from: Some("2024".into()), to: None };
    assert_eq!(refusal(comments(later, Order::Ascending, page(&upward)).await), other("AP-009"));
    // The same for merged reads.
    let pending = queries.open_orders("pending", &PageRequest::first(1)).await.unwrap().next.unwrap();
    assert!(queries.open_orders("pending", &page(&pending)).await.is_ok());
    assert_eq!(refusal(queries.open_orders("paid", &page(&pending)).await), other("AP-036"));
    assert_eq!(refusal(queries.orders_by_total(&page(&pending)).await), other("AP-042"));
}

pub(crate) async fn a_damaged_cursor_is_refused(bed: Held) {
    let good = cursor(&bed, "u1", None).await.to_string();
    let damaged = CursorError::Damaged { pattern: "AP-005" };
    for text in ["", "x", "ü", &good[1..], &good[..good.len() - 1], &good.to_lowercase(), &format!("{good}A")] {
        let page = PageRequest::after(2, PageCursor::from(text));
        assert_eq!(refusal(bed.queries.posts_of(&"u1".into(), None, &page).await), damaged, "{text}");
    }
    assert_eq!(
        damaged.to_string(),
        "AP-005: the cursor is damaged, or of another version; ask for the first page again"
    );
}

/// Somebody who knows the form of a cursor may forge one, but it contains no partition key to change.
pub(crate) async fn a_made_up_cursor_stays_within_its_own_query(bed: Held) {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let sum = |text: &str| {
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, add))
    };
    let made_up = async |user: UserId, sk: &str| {
        let good = cursor(&bed, user.as_str(), None).await.to_string();
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(good).unwrap()).unwrap();
        let head: Vec<&str> = text.split('#').take(4).collect();
        let text = format!("{}#{}", head.join("#"), keys::escape::value(sk));
        let cursor = PageCursor::from(URL_SAFE_NO_PAD.encode(format!("{text}#{}", sum(&text))));
        bed.queries.posts_of(&user, None, &PageRequest::after(100, cursor)).await
    };
    let page = made_up("u1".into(), "POST#zzz").await.unwrap();
    assert_eq!(page.items.len(), 7, "all of the user's own posts");
    assert!(page.items.iter().all(|post| post.key.author_id.as_str() == "u1"));
    for outside in ["PROFILE", "POST", "VIEW#2024", ""] {
        assert_eq!(refusal(made_up("u1".into(), outside).await), CursorError::Damaged { pattern: "AP-005" });
    }
}

pub(crate) async fn a_page_of_no_items_or_too_many_is_refused(bed: Held) {
    for limit in [0, 1_001, u32::MAX] {
        let refused = bed.queries.posts_of(&"u1".into(), None, &PageRequest::first(limit)).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("a page of {limit} items was asked for; ask for 1 to 1000"));
    }
}
