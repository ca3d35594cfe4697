//! Shared by the engine's own tests.

use keys::layout::Layout;

/// A table with the shipped names and no indexes.
pub(crate) fn layout() -> Layout {
    Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") }
}
