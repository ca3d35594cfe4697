//! The values that fill a key template, by name.

use std::collections::BTreeMap;

/// Field values by attribute name, unescaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<String, String>);

impl Fields {
    /// No fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets a field, and gives its former value.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) -> Option<String> {
        self.0.insert(name.into(), value.into())
    }

    /// Adds all of `other`; false when a field is in both with different values.
    #[must_use]
    pub fn merge(&mut self, other: Self) -> bool {
        let mut agree = true;
        for (name, value) in other.0 {
            if let Some(former) = self.0.insert(name, value.clone()) {
                agree &= former == value;
            }
        }
        agree
    }

    /// The fields in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>, const LEN: usize> From<[(N, V); LEN]> for Fields {
    fn from(pairs: [(N, V); LEN]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Fields {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
