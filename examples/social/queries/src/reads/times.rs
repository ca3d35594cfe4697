//! Times that a listing is between.

/// From a time to another, both included and each optional, as they stand in the keys: ISO 8601 UTC in milliseconds.
/// The order of their texts is the order in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The first; none is from the beginning.
    pub from: Option<String>,
    /// The last; none is to the end.
    pub to: Option<String>,
}

impl Times {
    /// All times.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// From one time to another.
    #[must_use]
    pub fn between(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { from: Some(from.into()), to: Some(to.into()) }
    }

    /// The bounds.
    pub(crate) fn bounds(&self) -> (Option<&str>, Option<&str>) {
        (self.from.as_deref(), self.to.as_deref())
    }
}
