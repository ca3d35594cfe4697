//! The values of a key template's fields, by name.

use smol_str::SmolStr;

/// Field values by attribute name, unescaped.
///
/// Sorted by name, in one allocation: a key has few fields, and every change's key is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(SmolStr, SmolStr)>);

impl Fields {
    /// No fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Sets a field, and returns its former value.
    pub fn insert(&mut self, name: impl Into<SmolStr>, value: impl Into<SmolStr>) -> Option<SmolStr> {
        let (name, value) = (name.into(), value.into());
        match self.0.binary_search_by(|(other, _)| other.cmp(&name)) {
            Ok(at) => self.0.get_mut(at).map(|(_, former)| std::mem::replace(former, value)),
            Err(at) => {
                self.0.insert(at, (name, value));
                None
            }
        }
    }

    /// Adds a field; false if it exists with another value, which then stays.
    pub(crate) fn agrees(&mut self, name: &SmolStr, value: SmolStr) -> bool {
        match self.0.binary_search_by(|(other, _)| other.cmp(name)) {
            Ok(at) => self.0.get(at).is_some_and(|(_, former)| *former == value),
            Err(at) => {
                self.0.insert(at, (name.clone(), value));
                true
            }
        }
    }

    /// Adds all of `other`, or nothing: false if a field is in both with different values.
    #[must_use]
    pub fn merge(&mut self, other: Self) -> bool {
        let agree = other.iter().all(|(name, value)| self.get(name).is_none_or(|former| former == value));
        agree && other.0.into_iter().all(|(name, value)| self.agrees(&name, value))
    }

    /// The fields in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<SmolStr>, V: Into<SmolStr>, const LEN: usize> From<[(N, V); LEN]> for Fields {
    fn from(pairs: [(N, V); LEN]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<N: Into<SmolStr>, V: Into<SmolStr>> FromIterator<(N, V)> for Fields {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        let mut fields = Self::new();
        for (name, value) in pairs {
            fields.insert(name, value);
        }
        fields
    }
}
