//! Items of drawn tables as they are stored, their keys and fields, read and made without any code of the product.

use std::collections::BTreeMap;

use crate::{
    drawn::description::{Description, DrawnEntity, DrawnTable, FieldOf, KeyOf, KeyPart, Piece},
    oracle::table::{ONE, Plain, PlainItem, escaped, millionths},
};

/// Where an item is: its table, and its key as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) table: usize,
    pub(crate) pk: String,
    pub(crate) sk: String,
}

/// An item of a drawn entity.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) entity: usize,
    pub(crate) place: Place,
    pub(crate) item: PlainItem,
    /// The fields of its key.
    pub(crate) fields: BTreeMap<String, Plain>,
    /// What of the key decides the order: that of DynamoDB for the sort key.
    pub(crate) order: Plain,
}

/// What an item says of the key of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    To(Place),
    /// It lacks a field.
    Nowhere,
    /// A field cannot be in a key.
    Unreadable,
}

/// The attribute by which derived items name their entity in a table without a type attribute.
pub(crate) const MARK: &str = "RippleType";

/// Where an item is, of whatever entity it is.
pub(crate) fn place(of: &Description, table: usize, item: &PlainItem) -> Option<Place> {
    let form = &of.tables[table];
    let part = |part: &KeyPart| text_of(item.get(&part.name)?);
    let sk = form.sk.as_ref().map_or(Some(String::new()), part)?;
    Some(Place { table, pk: part(&form.pk)?, sk })
}

/// The item as one of a drawn entity; `None` where it is of none, or its key is not of the entity's form.
pub(crate) fn row(of: &Description, table: usize, item: &PlainItem) -> Option<Row> {
    let form = &of.tables[table];
    let is_meant = |entity: &DrawnEntity| match &form.type_attribute {
        Some(name) => item.get(name) == Some(&Plain::Text(entity.name.clone())),
        None if entity.is_derived => item.get(MARK) == Some(&Plain::Text(entity.name.clone())),
        None => true,
    };
    let mut meant = of.entities.iter().enumerate().filter(|(_, it)| it.table == table && is_meant(it));
    meant.find_map(|(entity, definition)| {
        let mut fields = BTreeMap::new();
        let pk = key_part(form, &form.pk, &definition.pk, item, &mut fields)?;
        let (mut sk, mut order) = (String::new(), Plain::Bool(true));
        if let Some(part) = &form.sk {
            sk = key_part(form, part, &definition.sk, item, &mut fields)?;
            order = item[&part.name].clone();
        }
        Some(Row { entity, place: Place { table, pk, sk }, item: item.clone(), fields, order })
    })
}

/// The text of a part of a key, with the fields that it has.
fn key_part(
    table: &DrawnTable,
    part: &KeyPart,
    pieces: &[Piece],
    item: &PlainItem,
    fields: &mut BTreeMap<String, Plain>,
) -> Option<String> {
    let value = item.get(&part.name)?;
    if table.has_forms {
        let Plain::Text(text) = value else { return None };
        return read(pieces, text, fields).then(|| text.clone());
    }
    let [Piece::Field(name, _)] = pieces else { return None };
    fields.insert(name.clone(), value.clone());
    text_of(value)
}

/// Reads the fields of a text of this form.
fn read(pieces: &[Piece], text: &str, fields: &mut BTreeMap<String, Plain>) -> bool {
    let mut text = text;
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(literal) => match text.strip_prefix(literal.as_str()) {
                Some(rest) => text = rest,
                None => return false,
            },
            Piece::Field(name, of) => {
                let end = match pieces.get(at + 1) {
                    Some(Piece::Text(literal)) => text.find(literal.as_str()),
                    _ => Some(text.len()),
                };
                let Some(value) = end.and_then(|end| unwritten(&text[..end], *of)) else { return false };
                text = &text[end.unwrap_or_default()..];
                let value = Plain::Text(value);
                if fields.insert(name.clone(), value.clone()).is_some_and(|before| before != value) {
                    return false;
                }
            }
        }
    }
    text.is_empty()
}

/// A field of a text, as the value that it is.
fn unwritten(text: &str, of: FieldOf) -> Option<String> {
    let digits = |width: usize| {
        let is_number = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    match of {
        FieldOf::Padded(width) => digits(width).map(|number| number.to_string()),
        FieldOf::Inverted(width) => digits(width).map(|number| (highest(width) - number).to_string()),
        _ if text.is_empty() || text.contains('#') => None,
        _ => Some(text.replace("%23", "#").replace("%2F", "/").replace("%25", "%")),
    }
}

fn highest(width: usize) -> u64 {
    10_u64.pow(u32::try_from(width).unwrap()) - 1
}

/// The attribute for which DynamoDB refuses an item: one of an index's key of another type, or empty.
pub(crate) fn refused<'a>(table: &'a DrawnTable, item: &PlainItem) -> Option<&'a str> {
    let is_refused = |part: &&KeyPart| match item.get(&part.name) {
        None => false,
        Some(Plain::Text(text)) => part.of != KeyOf::S || text.is_empty(),
        Some(Plain::Number(_)) => part.of != KeyOf::N,
        Some(Plain::Bytes(bytes)) => part.of != KeyOf::B || bytes.is_empty(),
        Some(_) => true,
    };
    table.indexes.iter().flat_map(|index| index.pk.iter().chain(&index.sk)).find(is_refused).map(|part| &*part.name)
}

/// A value of a key as text: a number in its one form, bytes in hexadecimal digits.
pub(crate) fn text_of(value: &Plain) -> Option<String> {
    match value {
        Plain::Text(text) => Some(text.clone()),
        Plain::Number(number) => Some(number_text(*number)),
        Plain::Bytes(bytes) => Some(hexadecimal(bytes)),
        _ => None,
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// A number of so many millionths.
pub(crate) fn number_text(millionths: i128) -> String {
    let (sign, number) = if millionths < 0 { ("-", -millionths) } else { ("", millionths) };
    let text = format!("{sign}{}.{:06}", number / ONE, number % ONE);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The number of a text, in millionths.
pub(crate) fn number_of(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, places) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits(whole) && is_digits(places) && places.len() <= 6).then(|| millionths(text))
}

/// A field of the item: of its key, else an attribute of type S, or of the type of the key of type N or B that it fills.
pub(crate) fn filling(row: &Row, name: &str, to: FieldOf) -> Result<Option<String>, ()> {
    match (row.fields.get(name), row.item.get(name)) {
        (Some(field), _) => Ok(text_of(field)),
        (None, None) => Ok(None),
        (None, Some(Plain::Bytes(bytes))) if to == FieldOf::Bytes && !bytes.is_empty() => Ok(Some(hexadecimal(bytes))),
        (None, Some(_)) if to == FieldOf::Bytes => Err(()),
        (None, Some(Plain::Text(text))) if !text.is_empty() => Ok(Some(text.clone())),
        (None, Some(Plain::Number(number))) if to == FieldOf::Number => Ok(Some(number_text(*number))),
        (None, Some(_)) => Err(()),
    }
}

/// Where an item leads by these pairs of a field of the other's key and what of the item gives it.
pub(crate) fn lead(of: &Description, row: &Row, to: usize, pairs: &[(String, String)]) -> Lead {
    let mut values = BTreeMap::new();
    for (field, from) in pairs {
        let form = of.entities[to].field(field).unwrap();
        match filling(row, from, form) {
            Ok(Some(text)) => drop(values.insert(field.clone(), text)),
            Ok(None) => return Lead::Nowhere,
            Err(()) => return Lead::Unreadable,
        }
    }
    built(of, to, &values).map_or(Lead::Unreadable, Lead::To)
}

/// The place of the item of an entity with these fields; `None` where one of them cannot be in its key.
pub(crate) fn built(of: &Description, entity: usize, values: &BTreeMap<String, String>) -> Option<Place> {
    let definition = &of.entities[entity];
    let has_forms = of.tables[definition.table].has_forms;
    let text = |pieces: &[Piece]| written(pieces, has_forms, |name| values.get(name).cloned());
    Some(Place { table: definition.table, pk: text(&definition.pk)?, sk: text(&definition.sk)? })
}

/// A key of these pieces.
pub(crate) fn written(pieces: &[Piece], has_forms: bool, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut key = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(literal) => key.push_str(literal),
            Piece::Field(name, of) => {
                let value = value(name).filter(|value| !value.is_empty())?;
                match of {
                    FieldOf::Padded(width) | FieldOf::Inverted(width) => {
                        let number: u64 = if value.bytes().all(|it| it.is_ascii_digit()) {
                            value.parse().ok()?
                        } else {
                            return None;
                        };
                        let number = if *of == FieldOf::Padded(*width) {
                            Some(number)
                        } else {
                            highest(*width).checked_sub(number)
                        };
                        let digits = number.filter(|number| *number <= highest(*width))?.to_string();
                        key.push_str(&"0".repeat(width.saturating_sub(digits.len())));
                        key.push_str(&digits);
                    }
                    FieldOf::Number => key.push_str(&number_text(number_of(&value)?)),
                    FieldOf::Bytes => {
                        key.push_str(Some(value).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))?.as_str());
                    }
                    FieldOf::Text | FieldOf::Time if has_forms => key.push_str(&escaped(&value)),
                    FieldOf::Text | FieldOf::Time => key.push_str(&value),
                }
            }
        }
    }
    Some(key)
}

#[test]
fn keys_and_numbers_read_back() {
    let form = [
        Piece::Text("A#".to_owned()),
        Piece::Field("a".to_owned(), FieldOf::Text),
        Piece::Text("#".to_owned()),
        Piece::Field("n".to_owned(), FieldOf::Inverted(4)),
    ];
    let values = BTreeMap::from([("a".to_owned(), "x#50%".to_owned()), ("n".to_owned(), "7".to_owned())]);
    let text = written(&form, true, |name| values.get(name).cloned()).unwrap();
    assert_eq!(text, "A#x%2350%25#9992");
    let mut fields = BTreeMap::new();
    assert!(read(&form, &text, &mut fields));
    assert_eq!(fields, values.into_iter().map(|(name, text)| (name, Plain::Text(text))).collect());
    for (text, millionths) in
        [("-3", -3_000_000), ("0.5", 500_000), ("12345678901234567890", 12_345_678_901_234_567_890_000_000)]
    {
        assert_eq!(number_of(text), Some(millionths));
        assert_eq!(number_text(millionths), text);
    }
    assert_eq!(["", "x", "1e3", "1.", "--1"].map(number_of), [None; 5]);
}
