//! What the engine's own tests share.

use keys::layout::Layout;

/// A table with the shipped names, and without indexes.
pub(crate) fn layout() -> Layout {
    Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") }
}
