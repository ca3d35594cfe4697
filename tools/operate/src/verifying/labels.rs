//! What people call the derivations of a verification's entries, which are kept under the names that are stored.

use std::borrow::Cow;

use derive::catalogue::Catalogue;
use serde_json::Value;

use crate::failure::OperateError;

/// An entry with what people call its derivation.
pub(super) fn labelled<'a>(catalogue: &Catalogue, entry: &'a str) -> Result<Cow<'a, str>, OperateError> {
    if catalogue.derivations().all(|derivation| derivation.renamed.is_none()) {
        return Ok(Cow::Borrowed(entry));
    }
    let mut entry: Value = serde_json::from_str(entry)?;
    if let Some(Value::String(name)) = entry.get_mut("derivation") {
        catalogue.relabel(name);
    }
    Ok(Cow::Owned(entry.to_string()))
}
