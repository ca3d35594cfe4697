//! Single records and batches on a table of a few items: what the runs rarely meet, or cannot check exactly.

mod attempts;
mod bed;
mod brake;
mod cascades;
mod discarded;
mod drift;
mod exceptions;
mod fan_out;
mod figures;
mod guards;
mod hot;
mod jobs;
mod occupied;
mod refusals;
mod single_records;
mod spread;
mod steps;
mod sums;
mod verification;
mod watermarks;
mod windows;
mod wrong_manifest;
