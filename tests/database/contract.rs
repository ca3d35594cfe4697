//! The contract of `store::Store`: one suite for the model and for DynamoDB, so that the model cannot drift.
//!
//! Every case runs against the model (`memory::…`) and against the embedded DynamoDB (`embedded::…`), and, if
//! `CONTRACT_ENDPOINT` is set, against the DynamoDB there (`endpoint::…`; DynamoDB Local, or AWS with the standard
//! credentials in the environment):
//!
//! ```text
//! CONTRACT_ENDPOINT=http://localhost:8000 cargo nextest run -p tests --test database contract::
//! ```
//!
//! Tables at an endpoint have names of their own and are deleted afterwards.

mod bed;
mod conditions;
mod guards;
mod items;
mod protocol;
mod reads;
mod script;
mod updates;

/// Makes a test of every case for every store.
macro_rules! contract {
    ($($file:ident: [$($case:ident),* $(,)?])*) => {
        mod memory {
            $(mod $file { $(#[test] fn $case() { crate::contract::bed::on_memory(crate::contract::$file::$case); })* })*
        }
        mod embedded {
            $(mod $file { $(#[test] fn $case() { crate::contract::bed::on_embedded(crate::contract::$file::$case); })* })*
        }
        mod endpoint {
            $(mod $file { $(#[test] fn $case() { crate::contract::bed::on_endpoint(crate::contract::$file::$case); })* })*
        }
    };
}

contract! {
    guards: [
        a_guard_decides_over_a_single_write,
        a_guard_decides_over_a_transaction,
        a_transaction_checks_an_item_that_it_does_not_write,
        a_value_is_unchanged_whatever_its_form,
        every_ask_is_tried,
    ]
    updates: [
        an_update_sets_removes_and_adds,
        an_update_makes_a_missing_item,
        an_addition_is_exact,
        decimals_are_added_exactly,
        elements_are_added_to_and_taken_from_a_set,
        an_addition_to_a_text_is_refused,
        a_failed_guard_comes_before_a_wrong_type,
        an_attribute_may_have_any_name,
        an_update_cannot_grow_an_item_past_the_limit,
        reasons_stand_by_position,
        a_wrong_type_is_rejected_by_position,
        a_cancelled_transaction_does_nothing,
        a_transaction_spans_both_tables,
        an_item_is_deleted_while_its_owner_is_absent_and_it_is_still_theirs,
        a_transaction_has_a_hundred_actions,
    ]
    protocol: [
        receipts_say_by_position_which_changes_are_in,
        a_watermark_moves_only_past_what_it_is_below,
        a_change_is_excepted_once,
        a_change_is_parked_with_its_proof_and_once,
        a_parked_change_is_redriven_once,
        instances_publish_their_derivations_and_operators_read_them,
    ]
    reads: [
        items_are_read_by_key_in_any_number,
        a_query_goes_over_pages_in_order,
        a_key_that_no_item_can_have_is_read_as_nothing,
        a_query_under_a_key_that_no_item_can_have_finds_nothing,
        a_scan_goes_over_pages,
        a_query_takes_the_start_of_the_sort_key,
        a_query_takes_a_range_in_either_order_and_so_many_a_page,
        an_index_holds_what_it_projects,
        a_query_of_nothing_is_empty,
        the_ledger_is_queried_by_partition,
    ]
    items: [
        every_entity_from_e_01_to_e_29_comes_back,
        every_type_comes_back,
        numbers_come_back_in_full,
        a_put_costs_its_kilobytes,
        every_type_is_as_large_as_it_counts,
        an_update_costs_the_larger_image,
        a_delete_costs_what_was_there,
        a_transaction_costs_twice,
        an_index_costs_what_changes_in_it,
    ]
    conditions: [
        what_breaks_a_limit_is_refused_by_name,
        what_is_just_within_the_limits_is_taken,
        a_refused_write_in_a_transaction_is_named,
        an_unknown_index_is_refused,
    ]
}
