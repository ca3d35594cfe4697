//! What the engine's own tests share.

use keys::layout::Layout;

/// A table with the shipped names, and without indexes.
pub(crate) fn layout() -> Layout {
    Layout {
        pk: "PK".into(),
        sk: "SK".into(),
        entity_type: Some("EntityType".into()),
        time_to_live: None,
        indexes: Vec::new(),
    }
}
