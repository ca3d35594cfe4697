//! The arguments of `ripple why`.

use clap::Args as Group;
use keys::key::Key;
use operate::about::About;
use serde::Deserialize;

use super::Connection;

/// `ripple why`
#[derive(Debug, Group)]
pub(crate) struct WhyArgs {
    /// Key of the item, as `PK / SK` or as the JSON object `{"pk": …, "sk": …}`; with `[tables]`, `TABLE#PK / SK`. The item
    /// need not exist.
    #[arg(value_name = "KEY", value_parser = about)]
    pub(crate) key: About,
    /// Explains only this attribute (default: all derived attributes).
    #[arg(value_name = "ATTRIBUTE")]
    pub(crate) attribute: Option<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Lists at most this many sources of a counter, and this many changes.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) list: u32,
    /// Reads at most this many source items of a counter. If there are more, the report does not decide whether the
    /// counter is correct.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) sources: u32,
    /// Reads the table's stream from its oldest record, for the changes that affected the values. This may take long on
    /// the real AWS, so it is the default only for an emulator.
    #[arg(long, overrides_with = "no_changes")]
    pub(crate) changes: bool,
    /// Does not read the table's stream.
    #[arg(long)]
    pub(crate) no_changes: bool,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl WhyArgs {
    /// True if the stream is read.
    pub(crate) const fn reads_stream(&self) -> bool {
        !self.no_changes && (self.changes || !self.connection.application.aws)
    }
}

/// A key, as `--json` prints it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyObject {
    pk: String,
    sk: String,
}

fn item(text: &str) -> Result<Key, String> {
    let text = text.trim();
    if text.starts_with('{') {
        let KeyObject { pk, sk } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        return Ok(Key::new(pk, sk));
    }
    match text.split(" / ").collect::<Vec<_>>().as_slice() {
        [pk, sk] if !pk.is_empty() && !sk.is_empty() => Ok(Key::new(*pk, *sk)),
        [_, _, _, ..] => Err(r#"it has several ` / `: give {"pk": "…", "sk": "…"}"#.to_owned()),
        _ => Err("it must be `PK / SK`, such as 'POST#p / METADATA'".to_owned()),
    }
}

/// Accepts the keys of an item, or a partition key alone.
pub(super) fn about(text: &str) -> Result<About, String> {
    let has_both = text.contains(" / ");
    let text = text.trim();
    if !has_both && !text.starts_with('{') {
        return if text.is_empty() || text.ends_with(" /") {
            Err("it must be `PK / SK` or `PK`, such as 'POST#p / METADATA'".to_owned())
        } else {
            Ok(About { pk: text.to_owned(), sk: None })
        };
    }
    item(text).map(|Key { pk, sk }| About { pk, sk: Some(sk) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_key_alone_stands_for_all_its_items() {
        let of = |pk: &str, sk: Option<&str>| About { pk: pk.to_owned(), sk: sk.map(str::to_owned) };
        assert_eq!(about("USER#ada "), Ok(of("USER#ada", None)));
        assert_eq!(about("USER#ada / PROFILE"), Ok(of("USER#ada", Some("PROFILE"))));
        assert_eq!(about(r#"{"pk": "a / b", "sk": "c"}"#), Ok(of("a / b", Some("c"))));
        assert!(about("").is_err() && about("USER#ada / ").is_err() && about(" / PROFILE").is_err());
    }

    #[test]
    fn a_key_is_two_texts_or_an_object() {
        assert_eq!(item(" POST#p / METADATA "), Ok(Key::new("POST#p", "METADATA")));
        assert_eq!(item(r#"{"pk": "a / b", "sk": "c"}"#), Ok(Key::new("a / b", "c")));
        for (wrong, why) in [
            ("POST#p", "it must be `PK / SK`"),
            (" / b", "it must be `PK / SK`"),
            ("a / b / c", "it has several ` / `"),
            (r#"{"pk": "a"}"#, "missing field `sk`"),
            (r#"{"PK": "a", "SK": "b"}"#, "unknown field `PK`"),
        ] {
            assert!(item(wrong).is_err_and(|error| error.contains(why)), "{wrong}: {:?}", item(wrong));
        }
    }
}
