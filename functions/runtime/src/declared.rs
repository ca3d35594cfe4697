//! What is declared: the schema and the catalogue that everything runs on, from a manifest or the shipped ones.
//!
//! The one place that decides which: the functions ask by the variable `CONFIG`, the command line by `--config`.

use std::{path::Path, sync::Arc};

use catalogue::{catalogue, schema};
use derive::{
    catalogue::{Catalogue, CatalogueError},
    schema::Schema,
};
use manifest::error::ReadError;

/// Declarations that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeclaredError {
    /// The manifest cannot be read, or says something that cannot be.
    #[error(transparent)]
    Manifest(#[from] ReadError),
    /// The shipped schema and catalogue do not fit each other; a test shows that they do.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

/// The schema and catalogue of this manifest, or the shipped ones where none is given.
///
/// # Errors
///
/// [`DeclaredError`] naming the file, and in it the line, the key and what was meant.
pub fn declared(manifest: Option<&Path>) -> Result<(Arc<Schema>, Arc<Catalogue>), DeclaredError> {
    let (schema, catalogue) = if let Some(file) = manifest {
        manifest::read(file)?
    } else {
        let schema = schema();
        let catalogue = catalogue(&schema)?;
        (schema, catalogue)
    };
    Ok((Arc::new(schema), Arc::new(catalogue)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_takes_the_place_of_the_shipped_table() {
        let (shipped, _) = declared(None).unwrap();
        assert_eq!(shipped.layout.entity_type.as_deref(), Some("EntityType"));
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");
        let (schema, catalogue) = declared(Some(Path::new(example))).unwrap();
        assert_eq!(schema.layout.entity_type.as_deref(), Some("Type"));
        assert!(catalogue.derivations().all(|derivation| derivation.id == derivation.name));
    }

    #[test]
    fn a_manifest_that_is_not_there_is_no_reason_to_take_the_shipped_table() {
        let error = declared(Some(Path::new("no/ripple.toml"))).unwrap_err();
        assert_eq!(error.to_string(), "cannot read no/ripple.toml");
    }
}
