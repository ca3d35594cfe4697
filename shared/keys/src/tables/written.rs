//! Keys as people write them.

use serde_dynamo::AttributeValue;

use super::{KeyAttribute, KeyType, NO_SORT_KEY, TableForm};
use crate::key::Key;

impl TableForm {
    /// The address of an item that a person names by its key as it is stored, behind the name of this table and a `#`;
    /// `None` if the values are of other types, or a sort key is missing or too many.
    #[must_use]
    pub fn address(&self, pk: &str, sk: Option<&str>) -> Option<Key> {
        let pk = self.pk.text_of_written(pk.strip_prefix(&self.name)?.strip_prefix('#')?)?;
        let sk = match (&self.sk, sk) {
            (Some(form), Some(sk)) => form.text_of_written(sk)?,
            (None, None | Some(NO_SORT_KEY)) => NO_SORT_KEY.to_owned(),
            (Some(_), None) | (None, Some(_)) => return None,
        };
        Some(Key { pk: format!("{}#{pk}", self.name), sk })
    }
}

impl KeyAttribute {
    /// The text of a value that a person writes: as this text, or as it is stored.
    fn text_of_written(&self, written: &str) -> Option<String> {
        let is_text = self.value(written).and_then(|value| self.text(&value)).is_some_and(|text| text == written);
        let value = match self.of {
            _ if is_text => return Some(written.to_owned()),
            KeyType::S => AttributeValue::S(written.to_owned()),
            KeyType::N => AttributeValue::N(written.to_owned()),
            KeyType::B => return None,
        };
        self.text(&value)
    }
}
