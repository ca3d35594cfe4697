//! The opening check: the tables and the functions' registry must fit the manifest.
//!
//! Every command runs it before it reads or writes anything else. Otherwise a forgotten `--config` would appear as an
//! error of the database, and a wrong manifest as a table without findings.

use std::path::Path;

use aws_sdk_dynamodb::types::TableDescription;
use derive::{
    catalogue::Catalogue,
    fit::{TablePart, of_ledger, of_table},
    schema::Schema,
};
use engine::registry::{
    Registry,
    difference::{CatalogueDifference, DerivationState, differences, is_fillable},
};
use functions::declared::described;

use crate::{exit::Usage, tables::options, words::named};

/// What an index that does not fit the manifest means for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexCheck {
    /// The command refuses to work.
    Refuses,
    /// The command reports it itself.
    Left,
    /// The command reads items alone, so only the table's key matters.
    KeyAlone,
}

/// The key and the indexes of the application's table must be those that the manifest declares, and a stream must have
/// both images.
pub(crate) fn fits(
    schema: &Schema,
    catalogue: &Catalogue,
    table: &TableDescription,
    indexes: IndexCheck,
) -> Result<(), Usage> {
    let stored = described(table);
    let misfits = of_table(schema, catalogue, &stored, options());
    // If the key differs, the other misfits mean nothing. A command that needs a stream reports a missing one itself.
    let has_key = !misfits.iter().any(|misfit| misfit.part == TablePart::Key);
    let is_told = |part: &TablePart| match part {
        TablePart::Key => true,
        _ if indexes == IndexCheck::KeyAlone => false,
        TablePart::Replicas => true,
        TablePart::Index(_) => has_key && indexes == IndexCheck::Refuses,
        TablePart::Stream => has_key && stored.view.is_some(),
    };
    let lines = misfits.into_iter().filter(|misfit| is_told(&misfit.part)).map(|misfit| misfit.line);
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { Ok(()) } else { Err(Usage(lines.join("\n        "))) }
}

/// The key of the ledger's table must be that of the application's.
pub(crate) fn ledger_fits(schema: &Schema, table: &TableDescription) -> Result<(), Usage> {
    of_ledger(&schema.layout, &described(table), options()).map_or(Ok(()), |misfit| Err(Usage(misfit.line)))
}

/// Compares the registry of the functions with a manifest.
pub(crate) struct RegistryCheck<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) registry: &'a Registry,
    pub(crate) now_ms: u64,
}

impl RegistryCheck<'_> {
    /// The manifest must declare what the functions have. Derivations that the operator switched off may be missing. An
    /// empty registry agrees with every manifest.
    pub(crate) fn agrees(&self, is_off: impl Fn(&str) -> bool) -> Result<(), Usage> {
        if self.registry.is_empty() {
            return Ok(());
        }
        let ManifestDifference { added, changed, missing } = self.manifest_difference(is_off);
        let index_keys = self.registry.index_keys_beside(self.schema);
        let index_keys: Vec<&str> = index_keys.iter().map(String::as_str).collect();
        let index_keys = (!index_keys.is_empty()).then(|| named(&index_keys));
        let lines = [
            added.map(|names| format!("declares {names}, which no function has")),
            changed.map(|names| format!("declares {names}, which the functions declare differently")),
            missing.map(|names| format!("lacks {names}, which the functions have")),
            index_keys.map(|names| format!("has other index keys of {names} than the functions")),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Usage(format!(
            "the manifest is not that of the functions: it {}; give theirs with {}, or deploy this one first (`ripple \
             catalogue diff` shows each difference)",
            lines.join("; it "),
            options().config
        )))
    }

    /// The manifest must keep the derivations of the folder's last manifest. It may add others.
    pub(crate) fn keeps(&self, data: &Path, is_off: impl Fn(&str) -> bool) -> Result<(), Usage> {
        let ManifestDifference { changed, missing, .. } = self.manifest_difference(is_off);
        let lines = [
            missing.map(|names| format!("lacks {names}")),
            changed.map(|names| format!("declares {names} differently")),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Usage(format!(
            "the data in {} was created with another manifest: this one {}; give that one with {}, another folder with \
             --data, or --redeploy to make this one its new version",
            data.display(),
            lines.join(" and "),
            options().config
        )))
    }

    /// How the manifest differs from the registry, in words.
    pub(crate) fn difference(&self) -> String {
        let ManifestDifference { added, changed, missing } = self.manifest_difference(|_| false);
        let parts = [("adds", added), ("changes", changed), ("drops", missing)];
        let parts: Vec<String> =
            parts.into_iter().filter_map(|(verb, names)| Some(format!("{verb} {}", names?))).collect();
        if parts.is_empty() {
            return "changes no derivation; after a change of keys or of the type, run `ripple repair`".to_owned();
        }
        parts.join(", ")
    }

    /// The differences between the manifest and the registry. Derivations that are switched off are not missing.
    fn manifest_difference(&self, is_off: impl Fn(&str) -> bool) -> ManifestDifference {
        let differences = self.differences();
        let names = |is_so: &dyn Fn(&CatalogueDifference) -> bool| {
            let all: Vec<&str> = differences.iter().filter(|it| is_so(it)).map(|it| it.name.as_str()).collect();
            (!all.is_empty()).then(|| named(&all))
        };
        ManifestDifference {
            added: names(&|it| matches!(it.state, DerivationState::Added { .. })),
            changed: names(&|it| matches!(it.state, DerivationState::Changed { .. })),
            missing: names(&|it| matches!(it.state, DerivationState::Undeclared) && !is_off(&it.name)),
        }
    }

    /// The manifest must share a derivation with the registry. Otherwise it is for another table, and the functions
    /// would mark all registered derivations as dropped.
    pub(crate) fn is_of_this_table(&self, data: Option<&Path>) -> Result<(), Usage> {
        use DerivationState::{Added, Dropped, Undeclared};
        let differences = self.differences();
        let is_shared = |it: &CatalogueDifference| !matches!(it.state, Added { .. } | Undeclared | Dropped { .. });
        if self.registry.is_empty() || differences.iter().any(is_shared) {
            return Ok(());
        }
        let of_others = differences.iter().filter(|it| matches!(it.state, Undeclared | Dropped { .. }));
        let names: Vec<&str> = of_others.map(|it| it.name.as_str()).collect();
        let (tables, others) = match data {
            Some(folder) => (format!("the data in {} was", folder.display()), "give another folder with --data"),
            None => ("these tables were".to_owned(), "use other tables"),
        };
        Err(Usage(format!(
            "{tables} made for another manifest, with {}: give that one with {}, or {others}",
            named(&names),
            options().config
        )))
    }

    /// Names of the derivations that may not cover items written before now, so that they need a backfill.
    pub(crate) fn to_fill(&self) -> Vec<String> {
        use DerivationState::{Added, Changed, Unfilled, Young};
        let is_to_fill =
            |state: &DerivationState| matches!(state, Added { .. } | Changed { .. } | Young { .. } | Unfilled { .. });
        let to_fill = self.differences().into_iter().filter(|it| is_to_fill(&it.state));
        let fillable = to_fill.filter(|it| {
            let derivation = self.catalogue.called(&it.name).and_then(|at| self.catalogue.derivation(at));
            derivation.is_some_and(is_fillable)
        });
        fillable.map(|it| it.name).collect()
    }

    fn differences(&self) -> Vec<CatalogueDifference> {
        differences(self.schema, self.catalogue, self.registry, self.now_ms)
    }
}

/// Names of the derivations that the manifest adds, changes or lacks, compared with the registry.
struct ManifestDifference {
    added: Option<String>,
    changed: Option<String>,
    missing: Option<String>,
}
