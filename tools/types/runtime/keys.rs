use std::{collections::BTreeMap, fmt};

const PARTITION_KEY_BYTES_MAX: usize = 2_048;
const SORT_KEY_BYTES_MAX: usize = 1_024;

/// A value that the key cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKey {
    pub entity: &'static str,
    pub attribute: String,
    pub problem: String,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} {}", self.entity, self.attribute, self.problem)
    }
}

impl std::error::Error for InvalidKey {}

/// The two attributes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub partition: String,
    pub sort: String,
}

/// A piece of the form of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Literal(&'static str),
    Text(&'static str),
    Plain(&'static str),
    Path(&'static str),
    Last(&'static str),
    Padded(&'static str, usize, usize),
    Inverted(&'static str, usize, usize),
    Spread(&'static str, u32),
    Raw(&'static str),
    /// In lower case; 1 if `#` and `%` are escaped, 0 if the value is written as it is.
    Lower(&'static str, u32),
    Upper(&'static str, u32),
}

/// The texts of fields by their names.
pub type Fields = BTreeMap<&'static str, String>;

/// The form of a key in the table, or in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyForm {
    pub entity: &'static str,
    pub index: Option<&'static str>,
    /// The names of the key's two attributes. One that holds a value as it is has no name here, and an empty text.
    pub names: [&'static str; 2],
    pub partition: &'static [Piece],
    pub sort: &'static [Piece],
    /// The item is in the index only while the attribute has one of the texts, or is there.
    pub only_if: Option<(&'static str, Option<&'static [&'static str]>)>,
}

impl KeyForm {
    /// The key of these fields, also if `only_if` does not hold.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] with the field that is missing, empty or does not fit.
    pub fn build(&self, fields: &[(&str, Option<&str>)]) -> Result<Key, InvalidKey> {
        let partition = self.limited(self.partition, fields, PARTITION_KEY_BYTES_MAX)?;
        let sort = self.limited(self.sort, fields, SORT_KEY_BYTES_MAX)?;
        Ok(Key { partition, sort })
    }

    /// The key of these fields; `None` if the item is not in the index.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_if(&self, fields: &[(&str, Option<&str>)]) -> Result<Option<Key>, InvalidKey> {
        let holds = |(attribute, texts): (&str, Option<&[&str]>)| match (value(attribute, fields), texts) {
            (Some(held), Some(texts)) => texts.contains(&held),
            (held, _) => held.is_some(),
        };
        if self.only_if.is_none_or(holds) { self.build(fields).map(Some) } else { Ok(None) }
    }

    /// The fields of a key; `None` if it is of another form.
    #[must_use]
    pub fn parse(&self, partition: &str, sort: &str) -> Option<Fields> {
        let mut fields = Fields::new();
        (read(self.partition, partition, &mut fields) && read(self.sort, sort, &mut fields)).then_some(fields)
    }

    /// The partition keys that a reader queries: one, or one for each suffix of a spread.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn partition_keys(&self, fields: &[(&str, Option<&str>)]) -> Result<Vec<String>, InvalidKey> {
        let spread = self.partition.iter().find_map(|piece| match piece {
            Piece::Spread(_, suffixes) => Some(*suffixes),
            _ => None,
        });
        let of = |suffix: u32| self.built(self.partition, fields, false, Some(suffix));
        (0..spread.unwrap_or(1)).map(of).collect()
    }

    /// The longest start of the sort key that these fields decide, for `begins_with`.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn sort_key_prefix(&self, fields: &[(&str, Option<&str>)]) -> Result<String, InvalidKey> {
        self.built(self.sort, fields, true, None)
    }

    fn limited(&self, pieces: &[Piece], fields: &[(&str, Option<&str>)], limit: usize) -> Result<String, InvalidKey> {
        let key = self.built(pieces, fields, false, None)?;
        if key.len() <= limit {
            return Ok(key);
        }
        let mut names: Vec<&str> = Vec::new();
        for name in pieces.iter().filter_map(|piece| piece.name()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let longest = names.last().map_or(key.as_str(), |name| name).to_owned();
        let problem = format!("makes a key of {} bytes; the limit is {limit}", key.len());
        Err(InvalidKey { entity: self.entity, attribute: longest, problem })
    }

    /// The key of these pieces, up to the first missing field of a prefix, or with this suffix of a spread.
    fn built(
        &self,
        pieces: &[Piece],
        fields: &[(&str, Option<&str>)],
        is_prefix: bool,
        suffix: Option<u32>,
    ) -> Result<String, InvalidKey> {
        let mut key = String::new();
        for piece in pieces {
            match (piece, suffix) {
                (Piece::Literal(literal), _) => key.push_str(literal),
                (Piece::Spread(..), Some(suffix)) => key.push_str(&format!("{suffix:02}")),
                _ => {
                    let name = piece.name().unwrap_or_default();
                    let held = value(name, fields);
                    if held.is_none() && is_prefix {
                        break;
                    }
                    let text = match held {
                        None => Err("is missing; the key needs it".to_owned()),
                        Some("") => Err("is empty; a key value must not be".to_owned()),
                        Some(held) => piece.text(held),
                    };
                    let wrong = |problem| InvalidKey { entity: self.entity, attribute: name.to_owned(), problem };
                    key.push_str(&text.map_err(wrong)?);
                }
            }
        }
        if !is_prefix && is_open(pieces) {
            self.certain(pieces, &key, fields)?;
        }
        Ok(key)
    }

    /// Refuses a key that can be read in another way than by these values.
    fn certain(&self, pieces: &[Piece], key: &str, fields: &[(&str, Option<&str>)]) -> Result<(), InvalidKey> {
        let read = read_open(pieces, key);
        let is_same = |read: &Fields| {
            pieces.iter().all(|piece| match piece.name() {
                Some(name) if piece.is_text() => read.get(name) == value(name, fields).map(|it| piece.cased(it)).as_ref(),
                _ => true,
            })
        };
        if read.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let texts = || pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(text) if !text.contains('#') => Some(*text),
            _ => None,
        });
        let names = || pieces.iter().filter_map(|piece| piece.name());
        let held = |name| Some((name, texts().find(|text| value(name, fields).is_some_and(|it| it.contains(text)))?));
        let (name, text) = names().find_map(held).or_else(|| names().zip(texts()).next()).unwrap_or_default();
        let problem = format!(
            "makes a key that can be read in two ways, as `{text}` separates its values: use `#` there, or mark one field \
             whose values hold it with `*`, as in {{name*}}"
        );
        Err(InvalidKey { entity: self.entity, attribute: name.to_owned(), problem })
    }
}

fn value<'a>(name: &str, fields: &[(&str, Option<&'a str>)]) -> Option<&'a str> {
    fields.iter().find(|(other, _)| *other == name).and_then(|(_, value)| *value)
}

impl Piece {
    fn name(&self) -> Option<&'static str> {
        match self {
            Piece::Literal(_) => None,
            Piece::Text(name) | Piece::Plain(name) | Piece::Path(name) => Some(name),
            Piece::Last(name) | Piece::Raw(name) | Piece::Lower(name, _) | Piece::Upper(name, _) => Some(name),
            Piece::Padded(name, ..) | Piece::Inverted(name, ..) | Piece::Spread(name, _) => Some(name),
        }
    }

    /// True if the key contains the value as a text.
    fn is_text(&self) -> bool {
        !matches!(
            self,
            Piece::Literal(_) | Piece::Last(_) | Piece::Padded(..) | Piece::Inverted(..) | Piece::Spread(..)
        )
    }

    /// The value in the case that the key has it in.
    fn cased(&self, value: &str) -> String {
        match self {
            Piece::Lower(..) => value.to_lowercase(),
            Piece::Upper(..) => value.to_uppercase(),
            _ => value.to_owned(),
        }
    }

    /// The form of a value in one case, apart from its case.
    fn in_case(name: &'static str, is_escaped: u32) -> Piece {
        if is_escaped == 1 { Piece::Text(name) } else { Piece::Plain(name) }
    }

    fn text(&self, value: &str) -> Result<String, String> {
        Ok(match *self {
            Piece::Lower(name, escaped) | Piece::Upper(name, escaped) => {
                return Piece::in_case(name, escaped).text(&self.cased(value));
            }
            Piece::Text(_) => escaped(value),
            Piece::Plain(_) if value.contains('#') => {
                return Err("holds `#`, which a key of this table cannot hold in a value".to_owned());
            }
            Piece::Path(_) => {
                let segments = segments(value)?.into_iter();
                segments.map(|segment| format!("/{}", escaped(&segment).replace('/', "%2F"))).collect()
            }
            Piece::Last(_) => escaped(segments(value)?.last().map_or("", String::as_str)),
            Piece::Padded(_, digits, places) => padded(value, digits, places)?,
            Piece::Inverted(_, digits, places) => complement(&padded(value, digits, places)?),
            Piece::Spread(_, suffixes) => format!("{:02}", crc32(value) % suffixes),
            Piece::Literal(_) | Piece::Raw(_) | Piece::Plain(_) => value.to_owned(),
        })
    }

    /// The value of a field, if it is read back; `Err` if the text is not of its form.
    fn read(&self, text: &str) -> Result<Option<String>, ()> {
        let is_number = |digits: usize| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        match *self {
            Piece::Text(_) if !text.is_empty() && !text.contains('#') && escaped(&restored(text)) == text => {
                Ok(Some(restored(text)))
            }
            Piece::Plain(_) if !text.is_empty() && !text.contains('#') => Ok(Some(text.to_owned())),
            // In another case, two keys would have the same fields.
            Piece::Lower(name, escaped) | Piece::Upper(name, escaped) => {
                let read = Piece::in_case(name, escaped).read(text)?;
                if read.as_ref().is_some_and(|it| self.cased(it) == *it) { Ok(read) } else { Err(()) }
            }
            Piece::Raw(_) if !text.is_empty() => Ok(Some(text.to_owned())),
            Piece::Path(_) if self.text(text).as_deref() == Ok(text) => Ok(Some(text.to_owned())),
            Piece::Padded(_, digits, places) if is_number(digits) => Ok(Some(plain(text, places))),
            Piece::Inverted(_, digits, places) if is_number(digits) => Ok(Some(plain(&complement(text), places))),
            Piece::Spread(_, suffixes) if is_number(2) && text.parse().is_ok_and(|it: u32| it < suffixes) => Ok(None),
            Piece::Last(_) if !text.is_empty() => Ok(None),
            _ => Err(()),
        }
    }
}

impl Piece {
    /// Adds the value of a field; false if the text is not of its form.
    fn adds(&self, text: &str, fields: &mut Fields) -> bool {
        match (self.read(text), self.name()) {
            // A field may occur twice; then both must hold the same.
            (Ok(Some(value)), Some(name)) => *fields.entry(name).or_insert_with(|| value.clone()) == value,
            (read, _) => read.is_ok(),
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('#', "%23")
}

fn restored(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let known = [("23", '#'), ("25", '%'), ("2F", '/')].into_iter().find(|(code, _)| part.starts_with(code));
        match known {
            Some((code, character)) => out.extend([&character.to_string(), &part[code.len()..]]),
            None => out.extend(["%", part]),
        }
    }
    out
}

fn segments(text: &str) -> Result<Vec<String>, String> {
    let segments: Vec<String> = text.split('/').skip(1).map(restored).collect();
    if !text.starts_with('/') || text.contains('#') || segments.iter().any(String::is_empty) {
        return Err("is not a path: it starts with `/`, and no segment is empty or holds `#`".to_owned());
    }
    Ok(segments)
}

/// The number in the unit of its last place, padded with zeros.
fn padded(value: &str, digits: usize, places: usize) -> Result<String, String> {
    let unit = if places == 0 && value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.trim_start_matches('0').to_owned()
    } else {
        let number = decimal(value).filter(|(is_negative, _, power)| !is_negative && (places > 0 || *power >= 0));
        let no_number = if places == 0 {
            "is not a whole number from 0 up"
        } else {
            "is not a number from 0 up, of at most 38 digits"
        };
        let (_, significant, power) = number.ok_or(no_number)?;
        // Too many places do not fit, as too many digits do not.
        let zeros = usize::try_from(power + places as i64).unwrap_or(digits + 1);
        significant + &"0".repeat(zeros)
    };
    if unit.len() > digits {
        let behind = if places == 0 { String::new() } else { format!(", {places} of them behind the point") };
        return Err(format!("does not fit in {digits} digits{behind}"));
    }
    Ok("0".repeat(digits - unit.len()) + &unit)
}

/// Whether a number is negative, its digits without zeros around them, and the power of ten of the last.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (base, power) = match text.split_once(['e', 'E']) {
        Some((base, power)) => (base, power.parse::<i128>().ok()?),
        None => (text, 0),
    };
    let (whole, places) = base.split_once('.').unwrap_or((base, ""));
    let number = format!("{whole}{places}");
    let digits = number.strip_prefix(['+', '-']).unwrap_or(&number);
    let scale = i64::try_from((places.len() as i128).checked_sub(power)?).ok()?;
    if text.len() > 512 || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some((false, String::new(), 0));
    }
    let significant = digits.trim_end_matches('0');
    let power = (digits.len() - significant.len()) as i128 - i128::from(scale);
    let first = significant.len() as i128 + power - 1;
    let fits = significant.len() <= 38 && (-130..=125).contains(&first);
    fits.then_some((number.starts_with('-'), significant.to_owned(), power as i64))
}

/// The largest number of so many digits, less this one.
fn complement(digits: &str) -> String {
    digits.bytes().map(|digit| char::from(b'0' + (b'9' - digit))).collect()
}

fn plain(unit: &str, places: usize) -> String {
    let unit = unit.trim_start_matches('0');
    let digits = "0".repeat((places + 1).saturating_sub(unit.len())) + unit;
    let (whole, rest) = digits.split_at(digits.len() - places);
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { whole.to_owned() } else { format!("{whole}.{rest}") }
}

fn crc32(text: &str) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !text.bytes().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

/// True if a text that separates fields may be in a value.
fn is_open(pieces: &[Piece]) -> bool {
    let inside = pieces.iter().skip_while(|piece| matches!(piece, Piece::Literal(_)));
    inside.into_iter().any(|piece| matches!(piece, Piece::Literal(text) if !text.contains('#')))
}

/// The most ends of fields that are tried.
const ENDS_MAX: usize = 1_000;

/// The ways to read a key that were found.
struct Search {
    n_ends: usize,
    enough: usize,
    found: Vec<Fields>,
}

/// The fields of a key that can be read in one way only. A raw field is as long as it can be.
fn read_open(pieces: &[Piece], key: &str) -> Option<Fields> {
    let enough = if matches!(pieces.last(), Some(Piece::Raw(_))) { 1 } else { 2 };
    let mut search = Search { n_ends: 0, enough, found: Vec::new() };
    let (pieces, key) = match pieces {
        [Piece::Literal(literal), rest @ ..] => (rest, key.strip_prefix(literal)?),
        pieces => (pieces, key),
    };
    match pieces {
        [Piece::Raw(name), rest @ ..] => {
            for end in ends(rest, key).into_iter().rev() {
                search.n_ends += 1;
                if end == 0 {
                    break;
                }
                search.pieces(rest, &key[end..], &Fields::from([(*name, key[..end].to_owned())]));
                if !search.found.is_empty() || search.n_ends > ENDS_MAX {
                    break;
                }
            }
        }
        pieces => search.pieces(pieces, key, &Fields::new()),
    }
    let is_one = search.found.len() == 1 && search.n_ends <= ENDS_MAX;
    search.found.pop().filter(|_| is_one)
}

impl Search {
    fn pieces(&mut self, pieces: &[Piece], key: &str, before: &Fields) {
        match pieces {
            [] if key.is_empty() => self.found.push(before.clone()),
            [] => {}
            [Piece::Literal(literal), rest @ ..] => {
                if let Some(key) = key.strip_prefix(literal) {
                    self.pieces(rest, key, before);
                }
            }
            [piece, rest @ ..] => {
                for end in ends(rest, key) {
                    self.n_ends += 1;
                    if self.found.len() >= self.enough || self.n_ends > ENDS_MAX {
                        return;
                    }
                    let mut fields = before.clone();
                    if piece.adds(&key[..end], &mut fields) {
                        self.pieces(rest, &key[end..], &fields);
                    }
                }
            }
        }
    }
}

/// Where a field may end: before each text that follows it.
fn ends(rest: &[Piece], key: &str) -> Vec<usize> {
    let Some(Piece::Literal(literal)) = rest.first() else { return vec![key.len()] };
    key.char_indices().map(|(at, _)| at).filter(|at| key[*at..].starts_with(literal)).collect()
}

fn read(pieces: &[Piece], key: &str, fields: &mut Fields) -> bool {
    if is_open(pieces) {
        let Some(found) = read_open(pieces, key) else { return false };
        let agree = found.iter().all(|(name, value)| fields.get(name).is_none_or(|former| former == value));
        fields.extend(found);
        return agree;
    }
    match pieces {
        [] => key.is_empty(),
        [Piece::Literal(literal), rest @ ..] => key.strip_prefix(literal).is_some_and(|key| read(rest, key, fields)),
        [Piece::Raw(name), rest @ ..] => read_raw(name, rest, key, fields),
        [piece, rest @ ..] => {
            let end = match rest.first() {
                Some(Piece::Literal(literal)) => key.find(literal),
                _ => Some(key.len()),
            };
            let Some((text, key)) = end.map(|end| key.split_at(end)) else { return false };
            piece.adds(text, fields) && read(rest, key, fields)
        }
    }
}

/// A raw field may hold anything, so the last place where the rest fits ends it.
fn read_raw(name: &'static str, rest: &[Piece], key: &str, fields: &mut Fields) -> bool {
    let Some(Piece::Literal(literal)) = rest.first() else {
        fields.insert(name, key.to_owned());
        return !key.is_empty();
    };
    for (end, _) in key.rmatch_indices(literal).filter(|(end, _)| *end > 0) {
        let mut found = Fields::new();
        if read(rest, &key[end..], &mut found) {
            found.insert(name, key[..end].to_owned());
            if found.iter().all(|(name, value)| fields.get(name).is_none_or(|former| former == value)) {
                fields.extend(found);
                return true;
            }
        }
    }
    false
}
