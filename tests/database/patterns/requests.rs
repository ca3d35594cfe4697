//! Each pattern's requests to the store, as the table's design shows them.

use derive::query::{Consistency, Order};
use entities::table::layout;
use expect_test::{Expect, expect};
use queries::pattern::{
    AccessPattern, reads,
    row::{Row, rows},
};

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
