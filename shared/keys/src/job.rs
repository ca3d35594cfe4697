//! Keys of jobs: the items in which long work keeps how far it is.
//!
//! A job stands in the application's table, since its records in the stream are what drives it. Jobs are spread over a
//! few partitions, so that all of them are found without a scan.
//!
//! ```
//! use keys::{job::JobKey, key::Key};
//!
//! let job = JobKey { derivation: "user-cascade".into(), id: "e1".into() };
//! assert_eq!(job.key(), Key::new("JOBS#05", "user-cascade#e1"));
//! assert_eq!(JobKey::parse(&job.key()), Some(job));
//! ```

use crate::{escape, key::Key};

/// Text of the type attribute of every job. Stored, so it is stable.
pub const JOB: &str = "Job";

/// Attribute that says how a job stands: [`WAITING`] or [`RUNNING`]. Stored, so it is stable.
pub const STATE: &str = "State";

/// State of a job that has not begun. Stored, so it is stable.
pub const WAITING: &str = "waiting";

/// State of a job that has begun. Stored, so it is stable.
pub const RUNNING: &str = "running";

/// Attribute of a job that an operator holds, whatever its state. Stored, so it is stable.
pub const PAUSED: &str = "Paused";

/// Attribute that counts how often a job moved on or took an order; each time makes a record, which drives it.
/// Stored, so it is stable.
pub const MOVES: &str = "Moves";

/// Partitions that jobs are spread over. Stored in keys, so it is stable.
pub const PARTITIONS: u32 = 8;

/// What the partition keys of all jobs begin with. Stored, so it is stable.
pub const PARTITION: &str = "JOBS#";

/// What a job is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Name of the derivation.
    pub derivation: String,
    /// Id of what started it, or of what it starts from, of which there is one job.
    pub id: String,
}

impl JobKey {
    /// The job's primary key.
    #[must_use]
    pub fn key(&self) -> Key {
        let sk = format!("{}#{}", escape::value(&self.derivation), escape::value(&self.id));
        Key::new(partition(crc32fast::hash(sk.as_bytes()) % PARTITIONS), sk)
    }

    /// The job of a primary key; `None` when it is no job's.
    #[must_use]
    pub fn parse(key: &Key) -> Option<Self> {
        let (derivation, id) = key.sk.split_once('#').filter(|(_, id)| !id.contains('#'))?;
        let job = Self { derivation: escape::restored(derivation), id: escape::restored(id) };
        (job.key() == *key).then_some(job)
    }
}

/// One of the partitions.
#[must_use]
pub fn partition(number: u32) -> String {
    format!("{PARTITION}{number:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_job_key_reads_back(derivation in "[a-z#%-]{1,9}", id in "[a-z0-9#%]{1,40}") {
            let job = JobKey { derivation, id };
            proptest::prop_assert_eq!(JobKey::parse(&job.key()), Some(job));
        }
    }

    #[test]
    fn what_is_no_job_is_not_taken_for_one() {
        for (pk, sk) in [("JOBS#00", "x"), ("JOBS#99", "user-cascade#e1"), ("USER#a", "user-cascade#e1")] {
            assert_eq!(JobKey::parse(&Key::new(pk, sk)), None, "{pk} {sk}");
        }
    }
}
