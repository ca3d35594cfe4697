//! Typed values that fill the fields of a key.

/// A typed value that fills a field of a key.
pub trait KeyField: Sized {
    /// Its text.
    fn to_text(&self) -> String;
    /// The value of a text; `None` when it is none of this type.
    fn from_text(text: &str) -> Option<Self>;
}

impl KeyField for String {
    fn to_text(&self) -> String {
        self.clone()
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl KeyField for u32 {
    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
