//! What goes on beside a verification: the records of the table's stream, and how far the functions are with them.

/// Follows a table's stream, and knows the functions that read it.
///
/// A moment is in milliseconds since the epoch, by the clock of the engine.
pub trait Following: Send + Sync {
    /// The records that came since the last call, JSON as in an event, those of one item in their order. What was given
    /// by the call before this one has been taken up, and need not be given again.
    fn records(&self) -> Vec<String>;

    /// Was every record given that was made before this moment?
    fn has_given(&self, moment_ms: u64) -> bool;

    /// Have the functions handled every record that was made before this moment? `None` if unknown.
    fn is_handled(&self, moment_ms: u64) -> Option<bool>;
}

/// A table at rest: nobody writes, and what was written is handled, or never will be.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtRest;

impl Following for AtRest {
    fn records(&self) -> Vec<String> {
        Vec::new()
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        true
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        Some(true)
    }
}
