//! Each pattern's requests to the store, as the table's design shows them.

use std::sync::Arc;

use derive::query::{Consistency, Order};
use design::document::requests::{Row, rows};
use entities::{
    ids::{PostId, UserId},
    table::layout,
};
use expect_test::{Expect, expect};
use queries::{
    cursor::{CursorError, PageCursor},
    page::PageRequest,
    pattern::{AccessPattern, reads},
    read_error::ReadError,
    reads::times::Times,
};

use crate::patterns::bed::Bed;

fn line(id: &str, row: &Row) -> String {
    let order = match row.order {
        Some(Order::Ascending) => ", ascending",
        Some(Order::Descending) => ", descending",
        None => "",
    };
    let consistency = match row.consistency {
        Some(Consistency::Strong) => ", strong",
        Some(Consistency::Eventual) => ", eventual",
        None => "",
    };
    let limit = row.limit.map_or(String::new(), |limit| format!(", limit {limit}"));
    let index = row.index.as_ref().map_or(String::new(), |index| format!(" {index}"));
    let times = if row.n_requests == 1 { String::new() } else { format!("{} x ", row.n_requests) };
    format!("{id} {times}{}{index} {}{order}{limit}{consistency}\n", row.operation, row.keys)
}

fn check(patterns: &[AccessPattern], wanted: &Expect) {
    let runtime = crate::patterns::bed::runtime();
    let mut text = String::new();
    for pattern in patterns {
        let requests = runtime.block_on(pattern.requests()).unwrap();
        let rows = rows(&layout(), &requests);
        assert!(!rows.is_empty(), "{} asks for nothing", pattern.id);
        assert!(rows.iter().all(|row| row.operation != "Scan"), "{} scans", pattern.id);
        text.extend(rows.iter().map(|row| line(pattern.id, row)));
    }
    wanted.assert_eq(&text);
}

#[test]
fn the_read_patterns_up_to_ap_022_ask_what_their_rows_say() {
    check(
        &reads()[..22],
        &expect![[r#"
        AP-001 GetItem PK = USER#{UserId}, SK = PROFILE, eventual
        AP-001 GetItem PK = USER#{UserId}, SK = PROFILE, strong
        AP-002 Query GSI1 GSI1PK = EMAIL#{Email} and begins_with(GSI1SK, 'USER#'), ascending, limit 1, eventual
        AP-002 GetItem PK = EMAIL#{email}, SK = CLAIM, strong
        AP-002 GetItem PK = USER#{UserId}, SK = PROFILE, strong
        AP-003 8 x Query GSI2 GSI2PK = USERS#{spread}, descending, limit 6, eventual
        AP-004 Query PK = USER#{UserId}, ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'FOLLOWER#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'FOLLOWS#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'GROUP#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'LIKE#POST#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'ORDER#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'POST#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and SK between 'PROFILE' and 'PROFILE', ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'PROFILE#COUNT#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'SUB#'), ascending, limit 20, eventual
        AP-004 Query PK = USER#{UserId} and begins_with(SK, 'VIEW#'), ascending, limit 20, eventual
        AP-005 Query PK = USER#{AuthorId} and begins_with(SK, 'POST#'), descending, limit 20, eventual
        AP-006 GetItem PK = POST#{PostId}, SK = METADATA, eventual
        AP-006 Query PK = POST#{PostId} and begins_with(SK, 'METADATA'), ascending, strong
        AP-007 8 x Query GSI2 GSI2PK = POSTS#{spread}, descending, limit 6, eventual
        AP-008 Query PK = POST#{PostId} and SK between 'COMMENT#' and 'METADATA', descending, limit 20, eventual
        AP-009 Query PK = POST#{PostId} and SK between 'COMMENT#{From}#' and 'COMMENT#{To}$', ascending, limit 20, eventual
        AP-009 Query PK = POST#{PostId} and SK between 'COMMENT#{From}#' and 'COMMENT#{To}$', descending, limit 20, eventual
        AP-010 Query GSI1 GSI1PK = USER#{UserId} and begins_with(GSI1SK, 'COMMENT#'), descending, limit 20, eventual
        AP-011 Query PK = USER#{UserId} and begins_with(SK, 'LIKE#POST#'), ascending, limit 20, eventual
        AP-012 Query GSI1 GSI1PK = POST#{PostId} and begins_with(GSI1SK, 'LIKE#USER#'), ascending, limit 20, eventual
        AP-013 GetItem PK = USER#{UserId}, SK = LIKE#POST#{PostId}, strong
        AP-014 Query PK = USER#{UserId} and begins_with(SK, 'FOLLOWS#'), ascending, limit 20, eventual
        AP-015 Query PK = USER#{UserId} and begins_with(SK, 'FOLLOWER#'), ascending, limit 20, eventual
        AP-016 GetItem PK = USER#{FollowerId}, SK = FOLLOWS#{FolloweeId}, strong
        AP-017 Query PK = USER#{UserId} and begins_with(SK, 'GROUP#'), ascending, limit 20, eventual
        AP-018 Query PK = GROUP#{GroupId} and begins_with(SK, 'USER#'), ascending, limit 20, eventual
        AP-019 GetItem PK = USER#{UserId}, SK = GROUP#{GroupId}, strong
        AP-020 Query PK = ORG#{OrgId} and SK between 'METADATA' and 'TEAM$', ascending, limit 20, eventual
        AP-021 Query PK = ORG#{OrgId} and begins_with(SK, 'MEMBER#'), ascending, limit 20, eventual
        AP-022 Query GSI1 GSI1PK = USER#{UserId} and begins_with(GSI1SK, 'MEMBER#ORG#'), ascending, limit 20, eventual
        AP-022 BatchGetItem PK = ORG#{OrgId 2}, SK = MEMBER#{UserId}; PK = ORG#{OrgId}, SK = MEMBER#{UserId}, eventual
    "#]],
    );
}

#[test]
fn the_read_patterns_from_ap_023_ask_what_their_rows_say() {
    check(
        &reads()[22..],
        &expect![[r#"
        AP-023 Query GSI1 GSI1PK = TEAM#{TeamId} and begins_with(GSI1SK, 'TEAM'), ascending, limit 1, eventual
        AP-024 Query PK = ORG#{OrgId} and begins_with(SK, 'EMP#/{Manager}/'), ascending, limit 20, eventual
        AP-025 Query GSI1 GSI1PK = EMP#{EmployeeId} and begins_with(GSI1SK, 'EMP'), ascending, limit 1, eventual
        AP-026 Query PK = FOLDER#{FolderId} and SK between 'FILE#' and 'METADATA', descending, limit 20, eventual
        AP-027 GetItem PK = FILE#{FileId}, SK = METADATA, eventual
        AP-028 Query GSI1 GSI1PK = FOLDER#{ParentId} and begins_with(GSI1SK, 'FOLDER#'), ascending, limit 20, eventual
        AP-029 GetItem PK = PRODUCT#{ProductId}, SK = METADATA, eventual
        AP-030 Query GSI1 GSI1PK = CAT#{Category} and begins_with(GSI1SK, 'PRODUCT#'), ascending, limit 20, eventual
        AP-031 Query GSI2 GSI2PK = BESTSELLERS#{Category}, ascending, limit 20, eventual
        AP-032 Query PK = PRODUCT#{ProductId} and begins_with(SK, 'REVIEW#'), descending, limit 20, eventual
        AP-033 Query PK = USER#{UserId} and SK between 'ORDER#{From}#' and 'ORDER#{To}$', descending, limit 20, eventual
        AP-034 Query PK = ORDER#{OrderId} and SK between 'ITEM#' and 'METADATA', ascending, eventual
        AP-035 Query PK = ORDER#{OrderId} and begins_with(SK, 'ITEM#'), ascending, limit 20, eventual
        AP-036 8 x Query GSI2 GSI2PK = ORDERS#{Status}#{spread}, ascending, limit 6, eventual
        AP-037 Query GSI1 GSI1PK = PRODUCT#{ProductId} and begins_with(GSI1SK, 'ITEM#'), ascending, limit 20, eventual
        AP-038 Query PK = SENSOR#{SensorId}#2024-01-15 and SK between '2024-01-15T10:30:00.000Z' and '2024-01-16T10:30:00.000Z', ascending, limit 20, eventual
        AP-038 Query PK = SENSOR#{SensorId}#2024-01-16 and SK between '2024-01-15T10:30:00.000Z' and '2024-01-16T10:30:00.000Z', ascending, limit 20, eventual
        AP-039 Query PK = SENSOR#{SensorId} and SK between 'HOUR#{From}' and 'HOUR#{To}', ascending, limit 20, eventual
        AP-039 Query PK = SENSOR#{SensorId} and SK between 'DAY#{From}' and 'DAY#{To}', ascending, limit 20, eventual
        AP-040 Query PK = USER#{UserId} and begins_with(SK, 'PROFILE#COUNT#'), ascending, strong
        AP-041 BatchGetItem PK = USER#{Id}, SK = PROFILE; PK = USER#{Id 2}, SK = PROFILE, eventual
        AP-041 BatchGetItem PK = POST#{Id}, SK = METADATA; PK = POST#{Id 2}, SK = METADATA, eventual
        AP-041 BatchGetItem PK = PRODUCT#{Id}, SK = METADATA; PK = PRODUCT#{Id 2}, SK = METADATA, eventual
        AP-042 8 x Query GSI1 GSI1PK = ORDERS#{spread}, ascending, limit 6, eventual
        AP-043 Query PK = USER#{UserId} and begins_with(SK, 'VIEW#'), descending, limit 20, eventual
        AP-044 Query PK = USER#{UserId} and begins_with(SK, 'SUB#'), ascending, limit 20, eventual
        AP-044 Query PK = USER#{UserId}#CART#{CartId} and begins_with(SK, 'ITEM#'), ascending, limit 20, strong
    "#]],
    );
}

// ---- Cursors of other queries ----

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
