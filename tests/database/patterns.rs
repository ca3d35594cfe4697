//! The patterns of the table's design: every read, by its ID, against the model and the embedded DynamoDB.
//!
//! All read one crowded table: ids that begin like others, ids that need escapes, every other entity of the same
//! collection, counters, and items of undeclared entities. Each result is compared with that of a plain loop over all
//! items, in exact order, in one page and in several.

mod bed;
mod crowd;
mod files;
mod orders;
mod organizations;
mod posts;
mod products;
mod requests;
mod sensors;
mod users;

use std::collections::BTreeSet;

/// Makes a test of every case for every store, and keeps the cases' names.
macro_rules! patterns {
    ($($file:ident: [$($case:ident),* $(,)?])*) => {
        mod memory {
            $(mod $file { $(#[test] fn $case() { crate::patterns::bed::on_memory(crate::patterns::$file::$case); })* })*
        }
        mod embedded {
            $(mod $file { $(#[test] fn $case() { crate::patterns::bed::on_embedded(crate::patterns::$file::$case); })* })*
        }
        /// The names of all cases.
        const CASES: &[&str] = &[$($(stringify!($case)),*),*];
    };
}

patterns! {
    users: [
        ap_001_a_user_by_id_is_that_user_and_no_other,
        ap_002_a_user_by_email_by_the_index_or_by_the_claim,
        ap_003_all_users_newest_first,
        ap_004_a_whole_collection_and_chosen_kinds_of_it,
        ap_014_whom_a_user_follows,
        ap_015_the_followers_of_a_user,
        ap_016_does_one_user_follow_another,
        ap_017_the_groups_of_a_user,
        ap_018_the_members_of_a_group,
        ap_019_a_membership_with_its_role,
        ap_041_many_items_by_id_with_the_missing_ones_named,
        ap_044_subscriptions_of_a_user_and_items_of_a_cart,
    ]
    posts: [
        ap_005_posts_of_a_user_newest_first_and_by_status,
        ap_006_a_post_with_displays_or_with_exact_counts,
        ap_007_recent_published_posts_of_all,
        ap_008_a_post_with_its_newest_comments,
        ap_009_comments_of_a_post_in_either_order_between_two_times,
        ap_010_comments_of_a_user_newest_first,
        ap_011_posts_that_a_user_likes,
        ap_012_users_who_like_a_post,
        ap_013_does_a_user_like_a_post,
        ap_040_exact_counts_of_a_target_are_the_sums_of_its_shards,
        ap_043_posts_that_a_user_looked_at_newest_first,
    ]
    organizations: [
        ap_020_an_organization_with_its_teams,
        ap_021_members_of_an_organization,
        ap_022_organizations_of_a_user_with_names,
        ap_023_a_team_by_id,
        ap_024_all_reports_of_a_manager_in_path_order,
        ap_025_an_employee_by_id,
    ]
    files: [
        ap_026_a_folder_with_its_files_newest_first,
        ap_027_a_file_with_its_path,
        ap_028_sub_folders_by_name,
    ]
    products: [
        ap_029_a_product_with_its_average_rating,
        ap_030_products_of_a_category,
        ap_031_best_sellers_of_a_category,
        ap_032_reviews_of_a_product_newest_first,
    ]
    orders: [
        ap_033_orders_of_a_user_between_two_times_and_by_status,
        ap_034_an_order_with_its_items,
        ap_035_items_of_an_order,
        ap_036_orders_in_an_open_status_oldest_first,
        ap_037_orders_that_contain_a_product,
        ap_042_orders_by_total_highest_first,
    ]
    sensors: [
        ap_038_readings_across_days,
        ap_039_roll_ups_by_the_hour_and_by_the_day,
    ]
    requests: [
        a_cursor_of_another_query_is_refused,
        a_damaged_cursor_is_refused,
        a_made_up_cursor_stays_within_its_own_query,
        a_page_of_no_items_or_too_many_is_refused,
    ]
}

// ---- Every ID of the table's design has a pattern and a case ----

#[test]
fn every_read_pattern_has_a_method_and_a_case() {
    let ids: Vec<String> = (1..=44).map(|number| format!("AP-{number:03}")).collect();
    let patterns: Vec<&str> = queries::pattern::reads().iter().map(|pattern| pattern.id).collect();
    assert_eq!(patterns, ids, "the patterns, in order");
    let id_of = |case: &str| case.starts_with("ap_").then(|| format!("AP-{}", &case[3..6]));
    let tested: BTreeSet<String> = crate::patterns::CASES.iter().filter_map(|case| id_of(case)).collect();
    assert_eq!(tested, ids.into_iter().collect(), "the cases");
}
