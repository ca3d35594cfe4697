//! Keys of jobs: the items that store the progress of long work.
//!
//! A job is in the application's table, since its own stream records drive it. Jobs are spread over a few partitions,
//! so that all of them are found without a scan.
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

/// Attribute with a job's state: [`WAITING`] or [`RUNNING`]. Stored, so it is stable.
pub const STATE: &str = "State";

/// State of a job that has not begun. Stored, so it is stable.
pub const WAITING: &str = "waiting";

/// State of a job that has begun. Stored, so it is stable.
pub const RUNNING: &str = "running";

/// Attribute of a job that an operator has paused, in any state. Stored, so it is stable.
pub const PAUSED: &str = "Paused";

/// Attribute that counts how often a job progressed or took a command; each time creates a record, which drives it.
/// Stored, so it is stable.
pub const MOVES: &str = "Moves";

/// Partitions that jobs are spread over. Stored in keys, so it is stable.
pub const PARTITIONS: u32 = 8;

/// Prefix of the partition keys of all jobs. Stored, so it is stable.
pub const PARTITION: &str = "JOBS#";

/// Identifies a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Name of the derivation.
    pub derivation: String,
    /// Id of the event that started it, or of its source, which has at most one job.
    pub id: String,
}

impl JobKey {
    /// The job's primary key.
    #[must_use]
    pub fn key(&self) -> Key {
        let sk = format!("{}#{}", escape::value(&self.derivation), escape::value(&self.id));
        Key::new(partition(crc32fast::hash(sk.as_bytes()) % PARTITIONS), sk)
    }

    /// The job of a primary key; `None` if it is not a job's key.
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
