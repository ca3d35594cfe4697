//! Paths in keys: `/ceo/vp/engineer`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    error::{KeyError, Problem},
    escape,
};

/// A path of one segment or more; a segment is any non-empty text.
///
/// Its text form starts with `/` and escapes `/`, `#` and `%` within a segment, so that the text of a path is a
/// prefix of the text of everything below it, up to the next `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Path(Vec<String>);

impl Path {
    /// A path of these segments.
    ///
    /// # Errors
    ///
    /// [`Problem::NotAPath`] if there is no segment or one is empty.
    pub fn new(segments: Vec<String>) -> Result<Self, KeyError> {
        if segments.is_empty() || segments.iter().any(String::is_empty) {
            return Err(KeyError::new("Path", Problem::NotAPath));
        }
        Ok(Self(segments))
    }

    /// The segments, unescaped, from the root down.
    #[must_use]
    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| write!(f, "/{}", escape::segment(segment)))
    }
}

impl FromStr for Path {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let segments = text.strip_prefix('/').ok_or_else(|| KeyError::new("Path", Problem::NotAPath))?;
        if segments.contains('#') {
            return Err(KeyError::new("Path", Problem::NotAPath));
        }
        Self::new(segments.split('/').map(escape::restored).collect())
    }
}

impl TryFrom<String> for Path {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_path_reads_back_as_it_was_built(segments in proptest::collection::vec(".+", 1..5)) {
            let path = Path::new(segments).unwrap();
            proptest::prop_assert_eq!(path.to_string().parse::<Path>().unwrap(), path);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "/", "a/b", "/a//b", "/a#b"] {
            assert!(text.parse::<Path>().is_err(), "{text}");
        }
    }
}
