//! Single records and batches on a table of a few items: what the runs rarely meet, or cannot check exactly.

mod attempts;
mod bed;
mod brake;
mod copied;
mod deadline;
mod drift;
mod exceptions;
mod fan_out;
mod figures;
mod ground_records;
mod guards;
mod held_cascades;
mod jobs;
mod occupied;
mod pulse;
mod refusals;
mod rollups;
mod sharded_counters;
mod single_records;
mod steps;
mod verification;
mod watermarks;
mod wrong_manifest;
