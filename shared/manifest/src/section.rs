//! Tables and values of a manifest, each with its place, so that every mistake has a line and a key.

use std::ops::Range;

use derive::expression::document_path::{DocumentPath, is_path};
use toml_edit::{Item, TableLike, Value};

use crate::{
    error::{ManifestError, meant},
    syntax::{KeySyntax, names},
};

/// A place in the file.
#[derive(Clone, Debug)]
pub(crate) struct TomlPlace<'a> {
    text: &'a str,
    /// Offset in the text, in bytes.
    at: usize,
    /// The key, with the tables that it is in.
    key: String,
}

impl TomlPlace<'_> {
    /// A mistake at this place.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> ManifestError {
        ManifestError::at(self.text, self.at, self.key.clone(), what.into())
    }

    /// The position of a key in the table at this position.
    fn below(&self, key: &str, span: Option<Range<usize>>) -> Self {
        let dot = if self.key.is_empty() { "" } else { "." };
        Self { text: self.text, at: span.map_or(self.at, |span| span.start), key: format!("{}{dot}{key}", self.key) }
    }
}

/// A text of the file, with its position.
#[derive(Clone, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) text: &'a str,
    pub(crate) place: TomlPlace<'a>,
}

impl Named<'_> {
    /// Its path into a map or a list, such as `profile.name` or `tags[0]`; `None` if it is the name of an attribute.
    pub(crate) fn path(&self) -> Result<Option<DocumentPath>, ManifestError> {
        if !is_path(self.text) {
            return Ok(None);
        }
        let path = self.text.parse::<DocumentPath>();
        path.map(Some)
            .map_err(|error| self.place.wrong(format!("\"{}\" is no path into an attribute: {error}", self.text)))
    }

    /// Refuses an attribute's name that reads as a path into a map or a list, such as `profile.name` or `tags[0]`.
    pub(crate) fn top_level(&self) -> Result<(), ManifestError> {
        let Some(end) = self.text.find(['.', '[']) else { return Ok(()) };
        let (text, outer) = (self.text, self.text.get(..end).unwrap_or_default());
        Err(self.place.wrong(format!(
            "\"{text}\" is a path into the attribute \"{outer}\": name a whole attribute here; \
             keys, declared and written attributes are never paths"
        )))
    }

    /// The mistake that the text is an unknown name, such as `there is no entity`; `names` are the valid ones.
    pub(crate) fn unknown<'n>(&self, there_is_no: &str, names: impl IntoIterator<Item = &'n str>) -> ManifestError {
        self.place.wrong(format!("{there_is_no} \"{}\"{}", self.text, meant(self.text, names)))
    }
}

/// A table of the file.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    pub(crate) place: TomlPlace<'a>,
    table: &'a dyn TableLike,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(crate) fn root(text: &'a str, table: &'a dyn TableLike) -> Self {
        Self { place: TomlPlace { text, at: 0, key: String::new() }, table }
    }

    /// Refuses every key that is not in this syntax.
    pub(crate) fn follows(&self, keys: &[KeySyntax]) -> Result<(), ManifestError> {
        self.only(&names(keys))
    }

    /// Refuses every key that is not one of these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ManifestError> {
        match self.entries().find(|entry| !known.contains(&entry.key)) {
            Some(entry) => {
                let what = format!("there is no such key{}", meant(entry.key, known.iter().copied()));
                Err(entry.place.wrong(what))
            }
            None => Ok(()),
        }
    }

    /// The entry of a key, if it exists.
    pub(crate) fn get(&self, key: &str) -> Option<Entry<'a>> {
        let (key, item) = self.table.get_key_value(key)?;
        Some(Entry { key: key.get(), place: self.place.below(key.get(), key.span()), item })
    }

    /// The entry of a key that is required for this purpose.
    pub(crate) fn required(&self, key: &str, purpose: &str) -> Result<Entry<'a>, ManifestError> {
        self.get(key).ok_or_else(|| self.place.wrong(format!("{key} is missing: {purpose}")))
    }

    /// All entries, in the order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a, '_> {
        self.table.iter().filter_map(|(key, _)| self.get(key))
    }

    /// The text of a key, if it exists.
    pub(crate) fn text(&self, key: &str) -> Result<Option<Named<'a>>, ManifestError> {
        self.get(key).map(|entry| entry.text()).transpose()
    }

    /// The list of texts of a key; empty if it does not exist.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<Named<'a>>, ManifestError> {
        self.get(key).map_or_else(|| Ok(Vec::new()), |entry| entry.texts())
    }

    /// True if a key says so.
    pub(crate) fn is_true(&self, key: &str) -> Result<bool, ManifestError> {
        self.get(key).map_or(Ok(false), |entry| entry.truth())
    }

    /// Which of these texts a key has; the first one if it does not exist.
    pub(crate) fn choice<'t>(&self, key: &str, [default, other]: [&'t str; 2]) -> Result<&'t str, ManifestError> {
        let Some(named) = self.text(key)? else { return Ok(default) };
        let chosen = [default, other].into_iter().find(|text| *text == named.text);
        chosen.ok_or_else(|| named.unknown("there is no value", [default, other]))
    }

    /// The place of a key, or that of the table if it does not exist.
    pub(crate) fn place_of(&self, key: &str) -> TomlPlace<'a> {
        self.get(key).map_or_else(|| self.place.clone(), |entry| entry.place)
    }

    /// The tables below a key: for `entity`, those of `[entity.User]` and `[entity.Order]`.
    pub(crate) fn sections(&self, key: &str) -> Result<Vec<(&'a str, Self)>, ManifestError> {
        let Some(entry) = self.get(key) else { return Ok(Vec::new()) };
        let named = |entry: Entry<'a>| Ok((entry.key, entry.section()?));
        entry.section()?.entries().map(named).collect()
    }
}

/// A text, or a table.
pub(crate) enum TextOrSection<'a> {
    Text(Named<'a>),
    Section(Section<'a>),
}

/// A key with its value.
#[derive(Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a str,
    pub(crate) place: TomlPlace<'a>,
    item: &'a Item,
}

impl<'a> Entry<'a> {
    /// A table, in braces or below a header.
    pub(crate) fn section(&self) -> Result<Section<'a>, ManifestError> {
        let table = self.item.as_table_like().ok_or_else(|| {
            let what = format!("is {}: write a table, [{}], with its keys below", self.is(), self.place.key);
            self.place.wrong(what)
        })?;
        Ok(Section { place: self.place.clone(), table })
    }

    /// A text that is not empty.
    pub(crate) fn text(&self) -> Result<Named<'a>, ManifestError> {
        let text = self.item.as_str().ok_or_else(|| self.is_not("a text in quotes"))?;
        if text.is_empty() {
            return Err(self.place.wrong("is empty"));
        }
        Ok(Named { text, place: self.place.clone() })
    }

    /// True if it is a text, rather than a list or a table.
    pub(crate) fn is_text(&self) -> bool {
        self.item.is_str()
    }

    /// True if it is a table, in braces or below a header.
    pub(crate) fn is_table(&self) -> bool {
        self.item.is_table_like()
    }

    /// True if it is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.item.is_array()
    }

    /// A text or a table.
    pub(crate) fn text_or_section(&self, wanted: &str) -> Result<TextOrSection<'a>, ManifestError> {
        if self.is_text() {
            return Ok(TextOrSection::Text(self.text()?));
        }
        if self.is_table() { Ok(TextOrSection::Section(self.section()?)) } else { Err(self.is_not(wanted)) }
    }

    /// A text or a table, or a list of them.
    pub(crate) fn texts_or_sections(&self, wanted: &str) -> Result<Vec<TextOrSection<'a>>, ManifestError> {
        let Some(list) = self.item.as_array() else { return Ok(vec![self.text_or_section(wanted)?]) };
        let each = |value: &'a Value| {
            let place = TomlPlace { at: value.span().map_or(self.place.at, |span| span.start), ..self.place.clone() };
            match value {
                Value::String(text) if !text.value().is_empty() => {
                    Ok(TextOrSection::Text(Named { text: text.value(), place }))
                }
                Value::InlineTable(table) => Ok(TextOrSection::Section(Section { place, table })),
                _ => Err(place.wrong(format!("write {wanted}, or a list of them"))),
            }
        };
        list.iter().map(each).collect()
    }

    /// A list of texts without duplicates.
    pub(crate) fn texts(&self) -> Result<Vec<Named<'a>>, ManifestError> {
        let list = self.item.as_array().ok_or_else(|| self.is_not("a list of texts, as in [\"a\", \"b\"]"))?;
        let mut texts: Vec<Named<'a>> = Vec::new();
        for value in list {
            let place = TomlPlace { at: value.span().map_or(self.place.at, |span| span.start), ..self.place.clone() };
            let Some(text) = value.as_str() else {
                return Err(place.wrong("must be a list of texts"));
            };
            if text.is_empty() {
                return Err(place.wrong("contains an empty text: leave it out"));
            }
            if texts.iter().any(|other| other.text == text) {
                return Err(place.wrong(format!("names \"{text}\" twice")));
            }
            texts.push(Named { text, place });
        }
        Ok(texts)
    }

    /// Pairs of texts: key and value, as in `{ userId = "followedId" }`.
    pub(crate) fn pairs(&self) -> Result<Vec<(Named<'a>, Named<'a>)>, ManifestError> {
        let table = self.item.as_table_like().ok_or_else(|| self.is_not("pairs of texts, as in { a = \"b\" }"))?;
        let pair = |entry: Entry<'a>| Ok((Named { text: entry.key, place: entry.place.clone() }, entry.text()?));
        Section { place: self.place.clone(), table }.entries().map(pair).collect()
    }

    /// A list of tables, in braces or each below a header in double brackets.
    pub(crate) fn sections(&self) -> Result<Vec<Section<'a>>, ManifestError> {
        let wanted = "a list of tables, as in [{ … }, { … }]";
        let at = |span: Option<Range<usize>>| TomlPlace {
            at: span.map_or(self.place.at, |span| span.start),
            ..self.place.clone()
        };
        if let Some(tables) = self.item.as_array_of_tables() {
            return Ok(tables.iter().map(|table| Section { place: at(table.span()), table }).collect());
        }
        let list = self.item.as_array().ok_or_else(|| self.is_not(wanted))?;
        let section = |value: &'a Value| {
            let table = value
                .as_inline_table()
                .ok_or_else(|| at(value.span()).wrong(format!("write {wanted}: this element is no table")))?;
            Ok(Section { place: at(value.span()), table })
        };
        list.iter().map(section).collect()
    }

    /// One pair of texts.
    pub(crate) fn pair(&self) -> Result<(Named<'a>, Named<'a>), ManifestError> {
        let mut pairs = self.pairs()?.into_iter();
        match (pairs.next(), pairs.next()) {
            (Some(pair), None) => Ok(pair),
            _ => Err(self.place.wrong("write one attribute with its text, as in { status = \"published\" }")),
        }
    }

    /// One attribute, and a text or a list of texts.
    pub(crate) fn pair_of_texts(&self) -> Result<(Named<'a>, Vec<Named<'a>>), ManifestError> {
        let wrong = || self.place.wrong("write one attribute with its text or texts, as in { status = \"published\" }");
        let table = self.item.as_table_like().ok_or_else(wrong)?;
        let section = Section { place: self.place.clone(), table };
        let mut entries = section.entries();
        let (Some(entry), None) = (entries.next(), entries.next()) else { return Err(wrong()) };
        let texts = if entry.is_list() { entry.texts()? } else { vec![entry.text()?] };
        if texts.is_empty() {
            return Err(entry.place.wrong("is an empty list"));
        }
        Ok((Named { text: entry.key, place: entry.place.clone() }, texts))
    }

    /// A whole number in this range.
    pub(crate) fn whole_number(&self, range: Range<u32>) -> Result<u32, ManifestError> {
        let number = self.item.as_integer().ok_or_else(|| self.is_not("a whole number"))?;
        let fits = u32::try_from(number).ok().filter(|number| range.contains(number));
        let from_to = || format!("is {number}: it is from {} to {}", range.start, range.end - 1);
        fits.ok_or_else(|| self.place.wrong(from_to()))
    }

    /// `true` or `false`.
    pub(crate) fn truth(&self) -> Result<bool, ManifestError> {
        self.item.as_bool().ok_or_else(|| self.is_not("true or false"))
    }

    /// The mistake that the value is not what is wanted.
    pub(crate) fn is_not(&self, wanted: &str) -> ManifestError {
        self.place.wrong(format!("is {}: write {wanted}", self.is()))
    }

    /// Its type, in TOML's words.
    fn is(&self) -> &'static str {
        match self.item {
            Item::None => "nothing",
            Item::Table(_) | Item::Value(Value::InlineTable(_)) => "a table",
            Item::ArrayOfTables(_) => "a list of tables",
            Item::Value(Value::Array(_)) => "a list",
            Item::Value(Value::String(_)) => "a text",
            Item::Value(Value::Integer(_)) => "a whole number",
            Item::Value(Value::Float(_)) => "a number",
            Item::Value(Value::Boolean(_)) => "true or false",
            Item::Value(Value::Datetime(_)) => "a date without quotes",
        }
    }
}
