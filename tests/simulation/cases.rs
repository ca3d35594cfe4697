//! Single records and batches on a table of a few items: what the runs rarely meet, or cannot check exactly.

mod attempts;
mod back_and_forth;
mod bed;
mod brake;
mod contention;
mod deadline;
mod drift;
mod fan_out;
mod figures;
mod ground_records;
mod guards;
mod held_cascades;
mod jobs;
mod listing;
mod panicking_look;
mod pulse;
mod refusals;
mod rollups;
mod sharded_counters;
mod single_records;
mod steps;
mod times;
mod verification;
mod watermarks;
mod wide_items;
mod wrong_manifest;
