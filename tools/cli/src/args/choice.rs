//! What the options of a command say of the declarations.

use functions::declared::Choice;

use super::{Connection, Dev};

impl Connection {
    /// The choice of declarations.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.config.as_deref(), tables: &self.tables, disabled: &self.disable }
    }
}

impl Dev {
    /// The choice of declarations.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.config.as_deref(), tables: &self.tables, disabled: &self.disable }
    }
}
