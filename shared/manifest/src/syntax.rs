//! The syntax of a manifest, as data: the parser refuses every other key, and the reference page and the JSON Schema
//! describe it.

/// A key of a table of the manifest.
#[derive(Clone, Copy, Debug)]
pub struct KeySyntax {
    /// The key.
    pub name: &'static str,
    /// Its value.
    pub value: ValueSyntax,
    /// Whether it is required, and its default otherwise.
    pub absent: Absent,
    /// Its description, as a sentence without its end.
    pub says: &'static str,
}

/// What an absent key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It is required.
    Required,
    /// The default, in words.
    Default(&'static str),
}

/// The value of a key.
#[derive(Clone, Copy, Debug)]
pub enum ValueSyntax {
    /// A text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A text, or a list of texts.
    TextOrTexts,
    /// `true` or `false`.
    Truth,
    /// A whole number between these, inclusive.
    WholeNumber(u32, u32),
    /// Pairs of texts.
    Pairs,
    /// One pair of texts.
    Pair,
    /// One attribute, with a text or a list of texts.
    PairOfTexts,
    /// Pairs of texts, or a list of texts.
    PairsOrTexts,
    /// A condition, or one pair of texts.
    Condition,
    /// A table with these keys.
    Table(&'static [KeySyntax]),
    /// A text, or a table with these keys.
    TextOrTable(&'static [KeySyntax]),
    /// An attribute of a key, or a list of them: each a text, or a table with a name and a type.
    KeyAttributes,
    /// A list of tables with these keys.
    Tables(&'static [KeySyntax]),
    /// Tables of the manifest, by name; the reference describes each kind of them separately.
    Sections,
}

impl KeySyntax {
    /// A required key.
    pub(crate) const fn required(name: &'static str, value: ValueSyntax, says: &'static str) -> Self {
        Self { name, value, absent: Absent::Required, says }
    }

    /// An optional key, with its default in words; empty if there is none.
    pub(crate) const fn optional(
        name: &'static str,
        value: ValueSyntax,
        absent: &'static str,
        says: &'static str,
    ) -> Self {
        Self { name, value, absent: Absent::Default(absent), says }
    }
}

/// The syntax of a kind of derivation.
#[derive(Clone, Copy, Debug)]
pub struct KindDescription {
    /// The value of `kind`.
    pub name: &'static str,
    /// What it keeps true.
    pub keeps: &'static str,
    /// Its family, as the functions run it.
    pub family: &'static str,
    /// What it costs in write units.
    pub costs: &'static str,
    /// An example.
    pub example: &'static str,
    /// Its keys besides the common ones.
    pub keys: &'static [KeySyntax],
}

/// The names of keys.
pub(crate) fn names(keys: &[KeySyntax]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}
