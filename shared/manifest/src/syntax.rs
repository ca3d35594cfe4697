//! What a manifest can say, as data: the parser refuses every other key, and the reference page and the JSON Schema show it.

/// A key of a table of the manifest.
#[derive(Clone, Copy, Debug)]
pub struct KeySyntax {
    /// The key.
    pub name: &'static str,
    /// What it takes.
    pub value: ValueSyntax,
    /// Must it be there, or what holds where it is not.
    pub absent: Absent,
    /// What it says, as a sentence without its end.
    pub says: &'static str,
}

/// What holds where a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It must be there.
    Required,
    /// This, in words.
    Default(&'static str),
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum ValueSyntax {
    /// A text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// `true` or `false`.
    Truth,
    /// A whole number between these, the last one included.
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
    /// Tables of the manifest, by name; the reference shows each kind of them by itself.
    Sections,
}

impl KeySyntax {
    /// A key that must be there.
    pub(crate) const fn required(name: &'static str, value: ValueSyntax, says: &'static str) -> Self {
        Self { name, value, absent: Absent::Required, says }
    }

    /// A key that may be absent: what holds then, in words; empty where that is nothing.
    pub(crate) const fn optional(
        name: &'static str,
        value: ValueSyntax,
        absent: &'static str,
        says: &'static str,
    ) -> Self {
        Self { name, value, absent: Absent::Default(absent), says }
    }
}

/// A kind of derivation, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct KindDescription {
    /// What `kind` says.
    pub name: &'static str,
    /// What it keeps true.
    pub keeps: &'static str,
    /// Its family, as the functions run it.
    pub family: &'static str,
    /// What it costs in write units.
    pub costs: &'static str,
    /// An example.
    pub example: &'static str,
    /// Its keys beside those that all have.
    pub keys: &'static [KeySyntax],
}

/// The names of keys.
pub(crate) fn names(keys: &[KeySyntax]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}
