//! Names of the attributes with the revision of a counter, beside the attribute that shows its count.

use crate::entity::Definition;

/// What follows the name of the attribute that shows the count. Stored, so it is stable.
const REVISION_SUFFIX: &str = ":rev";

/// Name of the attribute with the revision of the counter whose count this attribute shows.
#[must_use]
pub fn revision_of(attribute: &str) -> String {
    format!("{attribute}{REVISION_SUFFIX}")
}

/// Is this the name of such an attribute?
#[must_use]
pub fn is_revision(attribute: &str) -> bool {
    attribute.ends_with(REVISION_SUFFIX)
}

impl Definition {
    /// Does this service write an attribute of this name: a derived attribute, or the revision of one?
    #[must_use]
    pub fn derives(&self, name: &str) -> bool {
        let name = name.strip_suffix(REVISION_SUFFIX).unwrap_or(name);
        self.derived_attributes.iter().any(|derived| derived == name)
    }
}
