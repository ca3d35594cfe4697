//! The time range of a listing.

/// Two optional times, both included, as the keys contain them: ISO 8601 UTC in milliseconds. The order of the texts is
/// the order of the times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The first time; `None` for the beginning.
    pub from: Option<String>,
    /// The last time; `None` for the end.
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
