//! Which changes of the flow a page shows, as its address says it.

use derive::plan::RecordKind;
use serde::{Deserialize, Serialize};

use super::entry::{FlowEntry, Trouble};

/// What the address of the flow says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Selection {
    /// Only of this entity; of all if empty.
    pub(crate) entity: String,
    /// Only of this derivation; of all if empty.
    pub(crate) derivation: String,
    /// Only of items whose key, as a page writes it, holds this.
    pub(crate) key: String,
    /// Only with this [outcome](OUTCOMES); with any if empty.
    pub(crate) outcome: String,
    /// Is every record shown? Otherwise only those that ask for something, or could not be applied.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) echoes: bool,
}

/// The outcomes that can be asked for, each with what it is called.
pub(crate) const OUTCOMES: [(&str, &str); 5] = [
    ("written", "something was written"),
    ("trouble", "could not be applied"),
    ("again", "delivered again"),
    ("killed", "an invocation was killed"),
    ("nothing", "nothing to write"),
];

impl Selection {
    pub(crate) fn holds(&self, entry: &FlowEntry) -> bool {
        let has_trouble = entry.troubles().next().is_some();
        let is_echo = entry.record != RecordKind::Change && entry.writes().next().is_none() && !has_trouble;
        (self.echoes || !is_echo)
            && (self.entity.is_empty() || entry.entity == self.entity)
            && (self.derivation.is_empty() || entry.is_of(&self.derivation))
            && (self.key.is_empty() || entry.item.to_string().contains(&self.key))
            && match self.outcome.as_str() {
                "written" => entry.writes().next().is_some(),
                "trouble" => has_trouble,
                "again" => entry.is_again(),
                "killed" => entry.n_killed() > 0,
                "nothing" => !has_trouble && entry.writes().next().is_none(),
                _ => true,
            }
    }

    /// The address of a page, with what is selected.
    pub(crate) fn address(&self, page: &str) -> String {
        // Texts have a form for an address, whatever they hold.
        format!("{page}?{}", serde_urlencoded::to_string(self).unwrap_or_default())
    }
}

impl FlowEntry {
    /// Did a function get it more than once?
    pub(crate) fn is_again(&self) -> bool {
        let of = |function: &str| self.deliveries.iter().filter(|delivery| delivery.function == function).count();
        self.deliveries.iter().any(|delivery| of(&delivery.function) > 1)
    }
}

impl Trouble {
    /// What it is, in words.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Again(why) => format!("comes again: {why}"),
            Self::Killed(why) => format!("killed {why}"),
            Self::Parked(why) => format!("parked: {why}"),
            Self::Refused(why) => format!("refused: {why}"),
            Self::Unreadable(why) => format!("cannot be read: {why}"),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
