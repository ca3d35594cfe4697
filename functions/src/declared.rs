//! The declarations: the schema and the catalogue, from a manifest or the shipped ones.
//!
//! This is the one place that chooses. The functions pass the variable `CONFIG`, the command line passes `--config`.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, GlobalSecondaryIndexDescription, KeySchemaElement, KeyType, LocalSecondaryIndexDescription,
    MultiRegionConsistency, ProjectionType, StreamViewType, TableDescription,
};
use catalogue::{catalogue, schema};
use derive::{
    catalogue::{Catalogue, CatalogueError},
    derivation::Derivation,
    fit::{StoredIndex, StoredKey, StoredTable},
    kind::Shape,
    schema::Schema,
};
use manifest::error::{ManifestFileError, meant, meant_or_listed};

/// Stands for all derivations that delete the application's own items, in a list of derivations to switch off. It is
/// valid for a table without such derivations too. Stable.
pub const GROUND: &str = "ground";

/// The choice of declarations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// The manifest; `None` for the shipped table.
    pub manifest: Option<&'a Path>,
    /// DynamoDB names of the manifest's tables, as `NAME=TABLE` each, if they differ from the names in the manifest.
    pub tables: &'a [String],
    /// Names of derivations to switch off; [`GROUND`] stands for several. Spaces around a name and empty names mean
    /// nothing.
    pub disabled: &'a [String],
}

/// Why the declarations cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeclaredError {
    /// The manifest cannot be read, or is wrong.
    #[error(transparent)]
    Manifest(#[from] ManifestFileError),
    /// The shipped schema and catalogue do not fit each other; a test shows that they fit.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A derivation to switch off does not exist.
    #[error("there is no derivation {name} to switch off{}", meant_or_listed(name, known.iter().map(String::as_str)))]
    Unknown {
        /// The name.
        name: String,
        /// Names of the existing derivations.
        known: Vec<String>,
    },
    /// An entry names a table of a manifest with a single one.
    #[error("{0:?} names a table of [tables.NAME], which the manifest does not have: name its one table with --table")]
    OneTable(String),
    /// An entry for a table does not match the manifest's tables.
    #[error("{said:?} does not say what a table of the manifest is called: write NAME=TABLE{}", meant(name_in(said), known.iter().map(String::as_str)))]
    UnknownTable {
        /// The entry.
        said: String,
        /// Names of the manifest's tables.
        known: Vec<String>,
    },
    /// A remaining derivation builds on one that is switched off.
    #[error(
        "{} cannot be switched off alone, because {} built on it: switch off {}", disabled.join(", "),
        is_or_are(needing), [disabled.as_slice(), needing.as_slice()].concat().join(",")
    )]
    Needed {
        /// Names of the derivations to switch off.
        disabled: Vec<String>,
        /// Names of the remaining derivations that build on them.
        needing: Vec<String>,
    },
}

/// The schema and catalogue of a manifest, or the shipped ones without a manifest, without the derivations that are
/// switched off.
///
/// # Errors
///
/// [`DeclaredError`] with the file, line, key and suggestion, or with the derivations that cannot be switched off.
pub fn declared(choice: Choice<'_>) -> Result<(Arc<Schema>, Arc<Catalogue>), DeclaredError> {
    let (mut schema, catalogue) = if let Some(file) = choice.manifest {
        manifest::read(file)?
    } else {
        let schema = schema();
        let catalogue = catalogue(&schema)?;
        (schema, catalogue)
    };
    called(&mut schema, choice.tables)?;
    let catalogue = without(&schema, &catalogue, choice.disabled)?;
    Ok((Arc::new(schema), Arc::new(catalogue)))
}

/// The manifest's name in an entry for a table.
fn name_in(said: &str) -> &str {
    said.split_once('=').map_or(said, |(name, _)| name.trim())
}

/// Sets the DynamoDB names of the tables.
fn called(schema: &mut Schema, tables: &[String]) -> Result<(), DeclaredError> {
    let Some(forms) = &mut schema.layout.forms else {
        return match tables.first() {
            Some(said) => Err(DeclaredError::OneTable(said.clone())),
            None => Ok(()),
        };
    };
    let forms = Arc::make_mut(forms);
    let known: Vec<String> = forms.0.iter().map(|form| form.name.clone()).collect();
    for said in tables {
        let pair = said.split_once('=').map(|(name, table)| (name.trim(), table.trim()));
        let named = pair.filter(|(_, table)| !table.is_empty());
        let found = named.and_then(|(name, table)| Some((forms.0.iter_mut().find(|form| form.name == name)?, table)));
        let Some((form, table)) = found else {
            return Err(DeclaredError::UnknownTable { said: said.clone(), known });
        };
        table.clone_into(&mut form.called);
    }
    Ok(())
}

fn without(schema: &Schema, catalogue: &Catalogue, disabled: &[String]) -> Result<Catalogue, DeclaredError> {
    let names = disabled.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    let disabled: Vec<String> = names.map(str::to_owned).collect();
    let is_known = |name: &str| name == GROUND || catalogue.called(name).is_some();
    if let Some(name) = disabled.iter().find(|name| !is_known(name)) {
        let known = catalogue.derivations().map(|derivation| derivation.label().to_owned()).collect();
        return Err(DeclaredError::Unknown { name: name.clone(), known });
    }
    let all_ground = disabled.iter().any(|name| name == GROUND);
    let is_named = |it: &Derivation| disabled.iter().any(|name| it.is_called(name));
    let is_off = |it: &Derivation| is_named(it) || (all_ground && touches_ground(it));
    let mut left: Vec<Derivation> = catalogue.derivations().filter(|derivation| !is_off(derivation)).cloned().collect();
    let mut needing = Vec::new();
    loop {
        match Catalogue::new(schema, left.clone()) {
            Ok(catalogue) if needing.is_empty() => return Ok(catalogue),
            Ok(_) => return Err(DeclaredError::Needed { disabled, needing }),
            Err(CatalogueError::Declaration { derivation, problem }) => {
                let Some(at) = left.iter().position(|it| it.name == derivation) else {
                    return Err(CatalogueError::Declaration { derivation, problem }.into());
                };
                needing.push(left.remove(at).label().to_owned());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_or_are(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

/// True if it deletes the application's own items.
fn touches_ground(derivation: &Derivation) -> bool {
    matches!(derivation.kind.shape(), Shape::Cascade(_))
}

// ---- Translates the response of `DescribeTable` for the comparison by [`derive::fit`] ----

/// The parts of the description that the comparison needs.
#[must_use]
pub fn described(table: &TableDescription) -> StoredTable {
    let attributes = table.attribute_definitions();
    let stream = table.stream_specification().filter(|stream| stream.stream_enabled);
    StoredTable {
        name: table.table_name().unwrap_or_default().to_owned(),
        key: key(table.key_schema(), attributes),
        index_keys: index_keys(table),
        indexes: table.global_secondary_indexes().iter().map(|it| index(it, attributes)).collect(),
        has_stream: stream.is_some(),
        view: stream.and_then(|stream| stream.stream_view_type()).map(StreamViewType::as_str).map(str::to_owned),
        is_strong_global: table.multi_region_consistency() == Some(&MultiRegionConsistency::Strong),
    }
}

fn index_keys(table: &TableDescription) -> BTreeSet<String> {
    let global = table.global_secondary_indexes().iter().map(GlobalSecondaryIndexDescription::key_schema);
    let local = table.local_secondary_indexes().iter().map(LocalSecondaryIndexDescription::key_schema);
    global.chain(local).flatten().map(|element| element.attribute_name().to_owned()).collect()
}

fn key(key: &[KeySchemaElement], attributes: &[AttributeDefinition]) -> StoredKey {
    let of = |part: KeyType| key.iter().filter(move |element| *element.key_type() == part);
    let typed = of(KeyType::Hash).chain(of(KeyType::Range)).map(|element| {
        let name = element.attribute_name();
        let definition = attributes.iter().find(|attribute| attribute.attribute_name() == name);
        (name.to_owned(), definition.map_or("?", |definition| definition.attribute_type().as_str()).to_owned())
    });
    StoredKey(typed.collect())
}

fn index(index: &GlobalSecondaryIndexDescription, attributes: &[AttributeDefinition]) -> StoredIndex {
    let projection = index.projection();
    let is_all = projection.and_then(|it| it.projection_type()) == Some(&ProjectionType::All);
    let named: BTreeSet<String> =
        projection.map(|it| it.non_key_attributes().iter().cloned().collect()).unwrap_or_default();
    StoredIndex {
        name: index.index_name().unwrap_or_default().to_owned(),
        key: key(index.key_schema(), attributes),
        projection: (!is_all).then_some(named),
    }
}

#[cfg(test)]
mod described_tests {
    use aws_sdk_dynamodb::types::{Projection, ScalarAttributeType, StreamSpecification};

    use super::*;

    fn schema(pk: &str, sk: &str) -> Vec<KeySchemaElement> {
        let element =
            |name: &str, part| KeySchemaElement::builder().attribute_name(name).key_type(part).build().unwrap();
        // A description may have the other order.
        vec![element(sk, KeyType::Range), element(pk, KeyType::Hash)]
    }

    fn attribute(name: &str, of: ScalarAttributeType) -> AttributeDefinition {
        AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().unwrap()
    }

    fn projecting(of: ProjectionType, names: &[&str]) -> GlobalSecondaryIndexDescription {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let projection = Projection::builder().projection_type(of).set_non_key_attributes(Some(names)).build();
        let index = GlobalSecondaryIndexDescription::builder().index_name("by-b").projection(projection);
        index.set_key_schema(Some(schema("B", "C"))).build()
    }

    fn table(index: GlobalSecondaryIndexDescription, has_stream: bool) -> StoredTable {
        let stream = StreamSpecification::builder().stream_enabled(has_stream);
        let stream = stream.stream_view_type(StreamViewType::KeysOnly).build().unwrap();
        let description = TableDescription::builder().table_name("shop").set_key_schema(Some(schema("A", "B")));
        let description = description.attribute_definitions(attribute("A", ScalarAttributeType::S));
        let description = description.attribute_definitions(attribute("B", ScalarAttributeType::N));
        described(&description.global_secondary_indexes(index).stream_specification(stream).build())
    }

    #[test]
    fn keys_are_described_with_their_types() {
        let table = table(projecting(ProjectionType::All, &[]), true);
        assert_eq!((table.name.as_str(), table.key.to_string().as_str()), ("shop", "A (S) and B (N)"));
        assert_eq!(table.indexes[0].name, "by-b");
        assert_eq!(table.indexes[0].key.to_string(), "B (N) and C (?)");
    }

    #[test]
    fn a_projection_is_all_or_what_it_names() {
        let projection = |index| table(index, true).indexes.remove(0).projection;
        assert_eq!(projection(projecting(ProjectionType::All, &[])), None);
        assert_eq!(projection(projecting(ProjectionType::KeysOnly, &[])), Some(BTreeSet::new()));
        let named = Some(BTreeSet::from(["D".to_owned()]));
        assert_eq!(projection(projecting(ProjectionType::Include, &["D"])), named);
    }

    #[test]
    fn a_global_table_is_strong_or_not() {
        let strong = |consistency: Option<MultiRegionConsistency>| {
            described(&TableDescription::builder().set_multi_region_consistency(consistency).build()).is_strong_global
        };
        assert!(strong(Some(MultiRegionConsistency::Strong)));
        assert!(!strong(Some(MultiRegionConsistency::Eventual)) && !strong(None));
    }

    #[test]
    fn a_stream_that_is_off_is_none() {
        let stream = |has_stream| {
            let table = table(projecting(ProjectionType::All, &[]), has_stream);
            (table.has_stream, table.view)
        };
        assert_eq!(stream(true), (true, Some("KEYS_ONLY".to_owned())));
        assert_eq!(stream(false), (false, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_called_as_is_said_and_what_says_nothing_is_refused() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/models/ripple.toml");
        let called = |tables: &[&str]| {
            let tables: Vec<String> = tables.iter().map(|&it| it.to_owned()).collect();
            let choice = Choice { manifest: Some(Path::new(example)), tables: &tables, ..Choice::default() };
            declared(choice).map(|(schema, _)| {
                let forms = schema.layout.forms.as_ref().unwrap();
                forms.0.iter().map(|form| form.called.clone()).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(called(&[]).unwrap(), "User Post Comment Like");
        assert_eq!(called(&["Post=prod-Post", " Like = likes"]).unwrap(), "User prod-Post Comment likes");
        let error = called(&["Posts=x"]).unwrap_err().to_string();
        assert!(error.ends_with("write NAME=TABLE: did you mean \"Post\"?"), "{error}");
        for wrong in ["Post", "Posts=x", "Post=", "=x"] {
            assert!(matches!(called(&[wrong]), Err(DeclaredError::UnknownTable { .. })), "{wrong}");
        }
        let of_one = ["Post=x".to_owned()];
        let error = declared(Choice { tables: &of_one, ..Choice::default() }).unwrap_err().to_string();
        assert!(error.starts_with("\"Post=x\" names a table of [tables.NAME], which the manifest does not"), "{error}");
    }

    #[test]
    fn a_manifest_takes_the_place_of_the_shipped_table() {
        let (shipped, _) = declared(Choice::default()).unwrap();
        assert_eq!(shipped.layout.entity_type.as_deref(), Some("EntityType"));
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/own-table/ripple.toml");
        let (schema, catalogue) = declared(Choice { manifest: Some(Path::new(example)), ..Choice::default() }).unwrap();
        assert_eq!(schema.layout.entity_type.as_deref(), Some("Type"));
        assert!(catalogue.derivations().all(|derivation| derivation.id == derivation.name));
    }

    fn disabled(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let declared = declared(Choice { disabled: &names, ..Choice::default() });
        let names = |catalogue: Arc<Catalogue>| catalogue.derivations().map(|it| it.name.clone()).collect();
        declared.map(|(_, catalogue)| names(catalogue)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_deletes_can_be_switched_off() {
        let all = disabled(&[]).unwrap();
        let left = disabled(&["user-cascade", "post-cascade"]).unwrap();
        assert_eq!(left.len() + 2, all.len());
        assert!(left.iter().all(|name| !name.ends_with("-cascade")));
    }

    #[test]
    fn one_word_switches_all_off_that_touches_ground_items_and_fits_a_table_that_has_none() {
        let both = disabled(&["user-cascade", "post-cascade"]).unwrap();
        assert_eq!(disabled(&[GROUND]).unwrap(), both);
        let shown = disabled(&["follower-count-display", GROUND]).unwrap();
        assert_eq!(shown.len() + 1, both.len());
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/own-table/ripple.toml");
        let own = |disabled: &[String]| {
            let (_, catalogue) =
                declared(Choice { manifest: Some(Path::new(example)), disabled, ..Choice::default() }).unwrap();
            catalogue.derivations().count()
        };
        assert_eq!(own(&[GROUND.to_owned()]), own(&[]));
    }

    #[test]
    fn what_is_not_there_or_is_built_on_cannot_be_switched_off() {
        let unknown = disabled(&["user-cascades"]).unwrap_err();
        assert_eq!(unknown, "there is no derivation user-cascades to switch off: did you mean \"user-cascade\"?");
        let needed = disabled(&["follower-count"]).unwrap_err();
        let what = "follower-count cannot be switched off alone, because follower-count-display is built on it: switch off \
                    follower-count,follower-count-display";
        assert_eq!(needed, what);
    }

    #[test]
    fn a_manifest_that_is_not_there_is_no_reason_to_take_the_shipped_table() {
        let error = declared(Choice { manifest: Some(Path::new("no/ripple.toml")), ..Choice::default() }).unwrap_err();
        assert_eq!(error.to_string(), "cannot read no/ripple.toml");
    }
}
