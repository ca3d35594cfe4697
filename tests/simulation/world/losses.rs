//! What a run remembers of its losses.

/// What stops, and loses what waits there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// One lane of a function.
    Lane,
    /// All of a function.
    Mapping,
    /// All functions; the table has another stream from then on.
    Stream,
}

/// The losses so far, and what operators know of them.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) n: usize,
    /// What has stopped.
    pub(crate) stopped: Option<Loss>,
    /// When the last loss was that no mark shows yet, in milliseconds since the epoch. Until a function is at work again, no
    /// pulse comes, so no cascade begins.
    pub(crate) unmarked_since_ms: Option<u64>,
    /// Has no repair ended that began after the last loss, and decided everything?
    pub(crate) is_open: bool,
    /// Did an item wait for what is under way in the last repair that ended?
    pub(crate) waits: bool,
    /// Verifications since then that were begun and may have removed the marks.
    pub(crate) n_verified: usize,
    /// Repairs of losses that were begun.
    pub(crate) n_tries: usize,
}
