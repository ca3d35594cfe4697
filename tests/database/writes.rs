//! The write patterns WP-01 to WP-19, by their IDs: each on the model and on the embedded DynamoDB, with the whole
//! table afterwards, index keys and derived attributes included.
//!
//! Races and lost responses are tested on the model with faults (`store::faulty`), which lets others run during every
//! call.

mod answers;
mod bed;
mod files;
mod groups;
mod orders;
mod posts;
mod products;
mod races;
mod requests;
mod users;

use std::collections::BTreeSet;

/// Makes a test of every case for both stores, and a list of their names.
macro_rules! writes {
    ($($file:ident: [$($case:ident),* $(,)?])*) => {
        mod memory {
            $(mod $file { $(#[test] fn $case() { crate::writes::bed::on_memory(crate::writes::$file::$case); })* })*
        }
        mod embedded {
            $(mod $file { $(#[test] fn $case() { crate::writes::bed::on_embedded(crate::writes::$file::$case); })* })*
        }
        const CASES: &[&str] = &[$($(stringify!($case)),*),*];
    };
}

writes! {
    users: [
        wp_01_a_user_is_created_with_the_claim_of_their_email,
        wp_01_an_existing_id_is_refused,
        wp_01_a_taken_email_is_refused_without_saying_it,
        wp_01_a_claim_that_is_left_of_the_same_user_is_taken_over,
        wp_02_a_profile_is_edited_under_its_version,
        wp_02_a_profile_of_another_client_has_version_0,
        wp_02_an_old_version_is_refused,
        wp_02_a_new_email_moves_the_claim,
        wp_02_another_form_of_the_same_email_keeps_the_claim,
        wp_02_somebody_elses_claim_stays_where_it_is,
        wp_02_a_taken_email_is_refused_and_nothing_is_changed,
        wp_06_a_follow_is_once,
        wp_06_nobody_follows_themselves,
        wp_18_a_user_is_deleted_and_nothing_else,
    ]
    posts: [
        wp_03_a_post_goes_from_draft_to_archive,
        wp_03_a_post_that_is_not_there_is_refused,
        wp_03_a_post_of_the_same_time_and_id_is_refused,
        wp_04_a_comment_is_edited_and_deleted,
        wp_04_a_comment_that_is_not_there_is_refused,
        wp_05_a_like_is_once,
        wp_17_a_view_expires,
    ]
    groups: [
        wp_07_a_user_joins_changes_role_and_leaves,
        wp_07_who_is_in_cannot_join_and_who_is_out_has_no_role,
        wp_13_a_group_is_created_renamed_and_deleted,
        wp_13_a_group_that_is_there_or_is_not_is_refused,
        wp_14_an_organization_is_created_and_renamed,
        wp_14_teams_and_members_come_change_and_go,
        wp_14_what_is_there_or_is_not_is_refused,
    ]
    orders: [
        wp_08_an_order_is_placed_in_one_transaction,
        wp_08_not_enough_of_one_product_places_nothing,
        wp_08_a_product_that_is_not_there_or_has_no_price_is_refused,
        wp_08_quantities_below_one_and_no_lines_are_refused,
        wp_08_an_order_has_at_most_49_lines,
        wp_08_the_same_order_again_is_already_placed,
        wp_08_a_total_that_no_index_holds_is_refused,
        wp_09_an_order_leaves_the_work_queue_when_it_is_shipped,
        wp_09_an_unchanged_status_is_refused,
        wp_09_cancelling_restocks_and_marks_the_items,
        wp_09_a_removed_product_is_not_put_back,
        wp_09_a_cancelled_order_stays_so,
        wp_09_an_order_of_49_lines_is_cancelled,
        wp_19_a_user_subscribes_and_unsubscribes,
        wp_19_a_cart_is_filled_and_emptied,
    ]
    files: [
        wp_10_a_file_is_uploaded_renamed_moved_and_deleted,
        wp_10_a_file_needs_its_folder,
        wp_10_a_move_to_the_same_folder_is_refused,
        wp_10_a_folder_is_renamed_with_its_place_in_the_index,
        wp_10_a_folder_moves_and_becomes_a_root,
        wp_10_a_folder_under_itself_is_refused,
        wp_10_only_an_empty_folder_is_deleted,
        wp_10_a_folder_that_is_there_or_is_not_is_refused,
        wp_10_a_folder_is_not_moved_too_deep,
        wp_11_an_employee_is_hired_below_a_manager,
        wp_11_an_employee_that_is_there_or_a_manager_who_is_not_is_refused,
        wp_11_a_move_changes_the_manager_and_its_index_key_alone,
        wp_11_a_move_under_a_report_is_refused,
        wp_11_a_report_is_known_by_the_manager_and_not_by_the_chart,
        wp_11_who_has_reports_is_not_dismissed,
        wp_11_nobody_is_hired_or_moved_too_deep,
        wp_11_an_employee_of_another_organization_is_not_found,
        wp_11_nobody_is_hired_below_somebody_who_names_them,
    ]
    products: [
        wp_15_a_product_is_created_and_changed_with_its_index_key,
        wp_15_what_is_there_or_is_not_is_refused,
        wp_15_tags_come_and_go,
        wp_15_views_are_counted,
        wp_15_the_stock_is_set_as_it_was_counted,
        wp_16_a_review_is_written_edited_and_deleted,
        wp_16_a_rating_out_of_range_is_refused,
        wp_12_a_reading_stands_in_its_day,
        wp_12_the_same_reading_is_once_and_another_is_refused,
        wp_12_a_batch_has_up_to_25_readings,
    ]
}

#[test]
fn every_write_pattern_has_a_test() {
    let tested: BTreeSet<&str> = CASES.iter().filter_map(|case| case.get(..5)).collect();
    let wanted: Vec<String> = (1..=19).map(|number| format!("wp_{number:02}")).collect();
    assert_eq!(tested.into_iter().collect::<Vec<_>>(), wanted);
}
