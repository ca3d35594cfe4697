//! The outcome for a finding, in words.

use std::fmt;

use super::Mended;
use crate::repair::{Remedy, Repaired};

impl fmt::Display for Mended {
    /// The planned remedy, or its result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.remedy {
            Remedy::Refresh => "derive it anew".to_owned(),
            Remedy::Add { count, sum } if sum.is_zero() => format!("add {count}"),
            Remedy::Add { count, sum } => format!("add {count} and {sum}"),
            Remedy::SetIndexKeys => "set its index keys".to_owned(),
            Remedy::Delete => "delete it".to_owned(),
            Remedy::None { why } => return write!(f, "left to an operator: {why}"),
        };
        match &self.repaired {
            None => write!(f, "would {what}"),
            Some(Repaired::Done) => write!(f, "done: {what}"),
            Some(Repaired::NotNeeded) => f.write_str("is right already"),
            Some(Repaired::Refused { why }) => write!(f, "left to an operator: {why}"),
            Some(Repaired::Overtaken) => f.write_str("not done: another repair has started"),
        }
    }
}
