//! The types of a GraphQL schema with their fields and directives. Everything else is skipped.
//!
//! Source: the GraphQL specification of October 2021, "Type System Definition Language".

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::FileError;

/// Words that begin a definition.
const DEFINITIONS: [&str; 9] =
    ["type", "enum", "input", "interface", "union", "scalar", "schema", "directive", "extend"];

/// Deepest nesting of the value of an argument. Those of Amplify's directives have three levels.
const DEPTH_MAX: usize = 16;

/// The parts of a schema that describe tables.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) types: Vec<Type>,
    enums: BTreeSet<String>,
}

/// An object type.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) directives: Vec<Directive>,
    pub(super) fields: Vec<Field>,
}

/// A field of an object type.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// Name of its type, without `!` and brackets.
    pub(super) of: String,
    pub(super) is_list: bool,
    pub(super) directives: Vec<Directive>,
}

/// A directive with its arguments, an object.
#[derive(Debug)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// True if a text begins as a GraphQL schema does.
pub(super) fn is_schema(text: &str) -> bool {
    let mut tokens = Tokens::new(text).filter(|token| !token.is_text());
    let is_first = tokens.next().is_some_and(|token| DEFINITIONS.contains(&token.text));
    is_first && tokens.next().is_some_and(|token| token.is_name() || ["{", "@"].contains(&token.text))
}

/// Reads a schema.
pub(super) fn parse(text: &str) -> Result<Document, FileError> {
    let mut parser = Parser { tokens: Tokens::new(text).collect(), at: 0 };
    let mut document = Document::default();
    while let Some(token) = parser.next() {
        match token.text {
            "type" => document.types.push(parser.object()?),
            "enum" => {
                document.enums.insert(parser.name()?);
                parser.skip_definition();
            }
            // What is extended follows.
            "extend" => {}
            word if DEFINITIONS.contains(&word) => parser.skip_definition(),
            _ if token.is_text() => {}
            _ => return Err(token.unexpected("a definition such as `type`")),
        }
    }
    Ok(document)
}

// ---- Tokens ----

#[derive(Clone, Copy, Debug)]
struct Token<'t> {
    text: &'t str,
    line: usize,
}

impl Token<'_> {
    fn is_text(&self) -> bool {
        self.text.starts_with('"')
    }

    fn is_name(&self) -> bool {
        self.text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
    }

    fn unexpected(&self, what: &str) -> FileError {
        FileError::Table(format!("line {}: expected {what}, found `{}`", self.line, self.text))
    }
}

/// The tokens of a text, without comments and commas.
struct Tokens<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text.trim_start_matches('\u{feff}'), line: 1 }
    }

    /// Takes the first bytes of the rest, or all of it.
    fn take(&mut self, n_bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(n_bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += taken.matches('\n').count();
        taken
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let first = self.rest.chars().next()?;
            if first == '#' {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if first.is_whitespace() || first == ',' {
                self.take(first.len_utf8());
            } else {
                break;
            }
        }
        let line = self.line;
        let is_word = |it: char| it.is_alphanumeric() || ['_', '-', '+', '.'].contains(&it);
        let n_bytes = if let Some(block) = self.rest.strip_prefix("\"\"\"") {
            block.find("\"\"\"").map_or(self.rest.len(), |end| end + 6)
        } else if let Some(text) = self.rest.strip_prefix('"') {
            let mut is_escaped = false;
            let is_end = |it: char| {
                let ends = !is_escaped && (it == '"' || it == '\n');
                is_escaped = !is_escaped && it == '\\';
                ends
            };
            text.find(is_end).map_or(self.rest.len(), |end| end + 2)
        } else {
            let n_word = self.rest.find(|it: char| !is_word(it)).unwrap_or(self.rest.len());
            if n_word > 0 { n_word } else { self.rest.chars().next().map_or(0, char::len_utf8) }
        };
        Some(Token { text: self.take(n_bytes), line })
    }
}

// ---- Definitions ----

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Takes the next token if it is this one.
    fn accept(&mut self, text: &str) -> bool {
        let is_it = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(is_it);
        is_it
    }

    fn required(&mut self, what: &str) -> Result<Token<'t>, FileError> {
        let end = self.tokens.last().map_or(1, |token| token.line);
        self.next().ok_or_else(|| FileError::Table(format!("line {end}: expected {what}, and the file ends")))
    }

    fn expect(&mut self, text: &str) -> Result<(), FileError> {
        let what = format!("`{text}`");
        let token = self.required(&what)?;
        if token.text == text { Ok(()) } else { Err(token.unexpected(&what)) }
    }

    fn name(&mut self) -> Result<String, FileError> {
        let token = self.required("a name")?;
        if token.is_name() { Ok(token.text.to_owned()) } else { Err(token.unexpected("a name")) }
    }

    /// Skips the rest of a definition: up to a word outside all brackets that begins the next one, or to its description.
    fn skip_definition(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token.text {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                word if depth == 0 && (DEFINITIONS.contains(&word) || token.is_text()) => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// An object type, behind `type`.
    fn object(&mut self) -> Result<Type, FileError> {
        let name = self.name()?;
        if self.accept("implements") {
            while self.accept("&") || self.peek().is_some_and(|token| token.is_name() && !self.begins_definition()) {
                self.at += usize::from(self.peek().is_some_and(|token| token.is_name()));
            }
        }
        let directives = self.directives()?;
        let mut fields = Vec::new();
        if self.accept("{") {
            while !self.accept("}") {
                if self.peek().is_some_and(|token| token.is_text()) {
                    self.at += 1;
                    continue;
                }
                fields.push(self.field()?);
            }
        }
        Ok(Type { name, directives, fields })
    }

    fn begins_definition(&self) -> bool {
        self.peek().is_some_and(|token| DEFINITIONS.contains(&token.text))
    }

    fn field(&mut self) -> Result<Field, FileError> {
        let name = self.name()?;
        if self.accept("(") {
            let mut depth = 1;
            while depth > 0 {
                match self.required("`)`")?.text {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
            }
        }
        self.expect(":")?;
        let mut is_list = false;
        while self.accept("[") {
            is_list = true;
        }
        let of = self.name()?;
        while self.accept("]") || self.accept("!") {}
        Ok(Field { name, of, is_list, directives: self.directives()? })
    }

    fn directives(&mut self) -> Result<Vec<Directive>, FileError> {
        let mut all = Vec::new();
        while self.accept("@") {
            let name = self.name()?;
            let arguments = if self.accept("(") { self.pairs(")", 0)? } else { Value::Object(Map::new()) };
            all.push(Directive { name, arguments });
        }
        Ok(all)
    }

    /// Names with values, up to the closing bracket.
    fn pairs(&mut self, end: &str, depth: usize) -> Result<Value, FileError> {
        let mut all = Map::new();
        while !self.accept(end) {
            let name = self.name()?;
            self.expect(":")?;
            all.insert(name, self.value(depth + 1)?);
        }
        Ok(Value::Object(all))
    }

    fn value(&mut self, depth: usize) -> Result<Value, FileError> {
        let token = self.required("a value")?;
        if depth > DEPTH_MAX {
            return Err(token.unexpected("a value of fewer levels"));
        }
        match token.text {
            "[" => {
                let mut all = Vec::new();
                while !self.accept("]") {
                    all.push(self.value(depth + 1)?);
                }
                Ok(Value::Array(all))
            }
            "{" => self.pairs("}", depth),
            "null" => Ok(Value::Null),
            "true" | "false" => Ok(Value::Bool(token.text == "true")),
            text if token.is_text() => Ok(Value::String(text.trim_matches('"').to_owned())),
            // Numbers and names of enums are not told apart, since no directive here takes a number that matters.
            word if word.starts_with(|it: char| it.is_alphanumeric() || ['_', '-'].contains(&it)) => {
                Ok(Value::String(word.to_owned()))
            }
            _ => Err(token.unexpected("a value")),
        }
    }
}
