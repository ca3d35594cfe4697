//! The deployments that change the indexes of a table, one after the other.
//!
//! DynamoDB creates or deletes one global secondary index of a table in a call, and so does a deployment of
//! `CloudFormation`. It never changes the key or the projection of an index: another one needs another name.
//! Source: DynamoDB API reference, `UpdateTable`; DynamoDB developer guide, "Managing Global Secondary Indexes".
//!
//! [`Deployed`] reads a template that [`template`](crate::template) printed, with or without what wraps it, so that the
//! next template contains the next step only. It compares lines, because both templates are of one form.
//!
//! *Example*: the deployed template has the index `byAuthor`, and the manifest has `byTag` and `byDay` too. The next
//! template has `byAuthor` and `byTag`; the one after it, made from that one, has all three.

use std::{collections::BTreeMap, fmt};

use derive::{
    access::{Access, AccessReads},
    catalogue::Catalogue,
    fit::{StoredIndex, StoredKey, StoredTable},
    schema::Schema,
};
use keys::tables::{IndexForm, TableForm};

/// A difference between the declared and the deployed indexes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStep {
    /// The table, as the caller names it.
    pub table: String,
    /// The index.
    pub index: String,
    /// What to do.
    pub change: IndexChange,
    /// The derivations that find items by it, by their labels.
    pub derivations: Vec<String>,
    /// The reads that query it, by their names.
    pub reads: Vec<String>,
}

/// What to do about an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexChange {
    /// It is missing: the deployment of this number, counted from 1, creates it.
    Create(usize),
    /// It is not declared any more: the deployment of this number deletes it.
    Delete(usize),
    /// It has another key or projection, for this reason: no deployment can change it.
    Replace(String),
}

impl IndexStep {
    /// Notes the derivations and the reads that use the index.
    pub(crate) fn find_users(&mut self, schema: &Schema, catalogue: &Catalogue, form: &TableForm) {
        self.derivations = found_by(schema, catalogue, form, &self.index);
        self.reads = queried_by(schema, form, &self.index);
    }
}

impl fmt::Display for IndexStep {
    /// The step, in a sentence's part without its first letter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, index, change, derivations, reads } = self;
        match change {
            IndexChange::Create(deployment) => {
                write!(f, "deployment {deployment}: creates the index {index} of {table}")?;
                if *deployment > 1 && !derivations.is_empty() {
                    write!(f, "; until then switch {} off, which finds items by it", derivations.join(", "))?;
                }
                Ok(())
            }
            IndexChange::Delete(deployment) => {
                write!(f, "deployment {deployment}: deletes the index {index} of {table}")
            }
            IndexChange::Replace(why) => {
                write!(f, "the index {index} of {table} {why}")?;
                if !reads.is_empty() {
                    write!(f, " (read by {})", reads.join(", "))?;
                }
                f.write_str(", and DynamoDB never changes an index: declare it under another name, deploy that")?;
                for derivation in derivations {
                    write!(f, ", run `ripple backfill {derivation}`")?;
                }
                f.write_str(
                    ", and drop the old one in a later deployment; or delete it in one deployment and create it ",
                )?;
                f.write_str("in the next; or declare it as it is")
            }
        }
    }
}

// ---- Compared with the table ----

/// The steps from the indexes of a table, as the database describes it, to those that its form declares. Indexes that
/// are not declared are the application's own, and one may project more than is declared.
#[must_use]
pub fn of_table((schema, catalogue): (&Schema, &Catalogue), form: &TableForm, table: &StoredTable) -> Vec<IndexStep> {
    let mut deployment = 0;
    let step = |declared: &IndexForm| {
        let change = match table.indexes.iter().find(|stored| stored.name == declared.name) {
            None => {
                deployment += 1;
                IndexChange::Create(deployment)
            }
            Some(stored) => IndexChange::Replace(lacks(declared, stored)?),
        };
        let (derivations, reads) =
            (found_by(schema, catalogue, form, &declared.name), queried_by(schema, form, &declared.name));
        Some(IndexStep { table: table.name.clone(), index: declared.name.clone(), change, derivations, reads })
    };
    form.indexes.iter().filter_map(step).collect()
}

/// What a stored index lacks of a declared one.
fn lacks(declared: &IndexForm, stored: &StoredIndex) -> Option<String> {
    let parts = declared.parts().map(|part| (part.name.clone(), format!("{:?}", part.of)));
    let key = StoredKey(parts.collect());
    if key != stored.key {
        return Some(format!("has the key {}, and {key} is declared", stored.key));
    }
    let held = stored.projection.as_ref()?;
    let Some(projected) = &declared.projection else {
        return Some("does not project all attributes".to_owned());
    };
    let is_key = |name: &String| stored.key.0.iter().any(|(key, _)| key == name);
    let lacking: Vec<&str> =
        projected.iter().filter(|name| !held.contains(*name) && !is_key(name)).map(String::as_str).collect();
    (!lacking.is_empty()).then(|| format!("does not project {}", lacking.join(", ")))
}

/// The derivations that find items by an index of a table, by their labels.
fn found_by(schema: &Schema, catalogue: &Catalogue, form: &TableForm, index: &str) -> Vec<String> {
    let inside = inside(form, index);
    let derivations = catalogue.derivations().filter(|derivation| {
        let finds = derivation.kind.outline(schema).finds;
        finds.iter().any(|find| find.query.index.as_deref() == Some(inside.as_str()))
    });
    derivations.map(|derivation| derivation.label().to_owned()).collect()
}

/// The reads that query an index of a table, by their names.
#[must_use]
pub fn queried_by(schema: &Schema, form: &TableForm, index: &str) -> Vec<String> {
    let inside = inside(form, index);
    let queries =
        |access: &&Access| matches!(&access.reads, AccessReads::Query(it) if it.index.as_deref() == Some(&*inside));
    schema.accesses.iter().filter(queries).map(|access| access.name.clone()).collect()
}

/// The inner name of an index.
#[must_use]
pub fn inside(form: &TableForm, index: &str) -> String {
    if form.name.is_empty() { index.to_owned() } else { form.inside(index) }
}

// ---- Compared with the deployed template ----

/// An index in a template: its name and its lines, and the definitions of its key's attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexText {
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
    pub(crate) defined: Vec<String>,
}

/// The tables of a deployed template, each with its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed(BTreeMap<String, Vec<IndexText>>);

/// The head of a table's lines, and of the list of its indexes.
const TABLE: &str = "    Type: AWS::DynamoDB::Table";
const INDEXES: &str = "      GlobalSecondaryIndexes:";
const INDEX: &str = "        - IndexName: ";
const DEFINED: &str = "        - { AttributeName: ";
const KEY: &str = "            - { AttributeName: ";

impl Deployed {
    /// Reads a template that this crate printed; `None` if the text is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let mut tables = BTreeMap::new();
        for (at, pair) in lines.windows(2).enumerate() {
            let [id, head] = pair else { continue };
            if *head != TABLE {
                continue;
            }
            let below = lines.iter().skip(at + 2).take_while(|line| line.starts_with("    "));
            let below: Vec<&str> = below.copied().collect();
            tables.insert(id.trim().trim_end_matches(':').to_owned(), indexes(&below));
        }
        (!tables.is_empty()).then_some(Self(tables))
    }

    /// The indexes of the table with this logical id; `None` if the template does not make it.
    pub(crate) fn of(&self, id: &str) -> Option<&[IndexText]> {
        self.0.get(id).map(Vec::as_slice)
    }
}

/// The indexes among the lines of a table.
fn indexes(lines: &[&str]) -> Vec<IndexText> {
    let defined: Vec<&str> = lines.iter().filter(|line| line.starts_with(DEFINED)).copied().collect();
    let of_list = lines.iter().skip_while(|line| **line != INDEXES).skip(1);
    let of_list = of_list.take_while(|line| line.starts_with("        "));
    let mut all: Vec<IndexText> = Vec::new();
    for line in of_list {
        if let Some(name) = line.strip_prefix(INDEX) {
            all.push(IndexText { name: name.to_owned(), lines: Vec::new(), defined: Vec::new() });
        }
        let Some(index) = all.last_mut() else { continue };
        index.lines.push((*line).to_owned());
        let Some((name, _)) = line.strip_prefix(KEY).and_then(|rest| rest.rsplit_once(", KeyType: ")) else { continue };
        let definition = format!("{DEFINED}{name}, AttributeType: ");
        index
            .defined
            .extend(defined.iter().filter(|line| line.starts_with(&definition)).map(|line| (*line).to_owned()));
    }
    all
}

/// The indexes of a table after the next deployment, and the steps to those that are declared.
pub(crate) fn next(
    table: &str,
    declared: Vec<IndexText>,
    deployed: Option<&[IndexText]>,
) -> (Vec<IndexText>, Vec<IndexStep>) {
    // A new table is made with all of its indexes.
    let Some(deployed) = deployed else { return (declared, Vec::new()) };
    let named = |all: &[IndexText], name: &str| all.iter().find(|index| index.name == name).cloned();
    // The id of the one table of `[table]` is no name.
    let table = if table == "Table" { "the table" } else { table };
    let (mut next, mut steps, mut deployment) = (Vec::new(), Vec::new(), 0);
    let mut step = |index: &IndexText, change: IndexChange| {
        let name = index.name.trim_matches('\'').to_owned();
        steps.push(IndexStep {
            table: table.to_owned(),
            index: name,
            change,
            derivations: Vec::new(),
            reads: Vec::new(),
        });
    };
    for index in &declared {
        if let Some(stored) = named(deployed, &index.name) {
            if stored != *index {
                step(index, IndexChange::Replace("has another key or projection".to_owned()));
            }
            next.push(stored);
        } else {
            deployment += 1;
            step(index, IndexChange::Create(deployment));
            next.extend((deployment == 1).then(|| index.clone()));
        }
    }
    for index in deployed.iter().filter(|index| named(&declared, &index.name).is_none()) {
        deployment += 1;
        step(index, IndexChange::Delete(deployment));
        next.extend((deployment > 1).then(|| index.clone()));
    }
    (next, steps)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Stack, template_after};

    /// Posts with these indexes, each over one attribute, with what it projects.
    fn manifest(indexes: &[(&str, &[&str])]) -> String {
        let index = |(name, projection): &(&str, &[&str])| {
            format!("[tables.Post.index.{name}]\npartition-key = \"{name}Key\"\nprojection = {projection:?}\n")
        };
        let indexes: String = indexes.iter().map(index).collect();
        format!("[tables.Post]\npartition-key = \"id\"\n{indexes}[entity.Post]\ntable = \"Post\"\n")
    }

    fn printed(indexes: &[(&str, &[&str])], deployed: Option<&str>) -> (String, Vec<String>) {
        let (schema, catalogue) = manifest::load(&manifest(indexes)).unwrap();
        let stack = Stack {
            schema: &schema,
            catalogue: &catalogue,
            attaches: false,
            shipped: false,
            zipped: true,
            command: "ripple infra",
        };
        let deployed = deployed.map(|text| Deployed::read(text).unwrap());
        let (text, steps) = template_after(&stack, deployed.as_ref());
        (text, steps.iter().map(ToString::to_string).collect())
    }

    fn names(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix(INDEX)).collect()
    }

    #[test]
    fn two_new_indexes_are_two_deployments() {
        let all: &[(&str, &[&str])] = &[("byAuthor", &[]), ("byTag", &["title"]), ("byDay", &[])];
        let (first, steps) = printed(&all[..1], None);
        assert_eq!((names(&first), steps), (vec!["byAuthor"], Vec::new()));
        let (second, steps) = printed(all, Some(&first));
        assert_eq!(names(&second), ["byAuthor", "byTag"]);
        assert_eq!(
            steps,
            [
                "deployment 1: creates the index byTag of PostTable",
                "deployment 2: creates the index byDay of PostTable"
            ]
        );
        // An attribute that no key uses would be refused.
        assert!(second.contains("AttributeName: byTagKey, AttributeType") && !second.contains("byDayKey"));
        let (third, steps) = printed(all, Some(&second));
        assert_eq!((names(&third), steps.len()), (vec!["byAuthor", "byTag", "byDay"], 1));
        let (last, steps) = printed(all, Some(&third));
        assert_eq!((last == third, steps), (true, Vec::new()));
        assert_eq!(printed(all, None).0, third, "the template without an earlier one is that of the last step");
    }

    #[test]
    fn an_index_that_is_declared_otherwise_stays_as_it_is_and_is_named() {
        let (first, _) = printed(&[("byTag", &["title"])], None);
        let (second, steps) = printed(&[("byTag", &["title", "text"])], Some(&first));
        assert_eq!(second, first);
        let what = "the index byTag of PostTable has another key or projection, and DynamoDB never changes an index: declare \
                    it under another name, deploy that, and drop the old one in a later deployment; or delete it in one \
                    deployment and create it in the next; or declare it as it is";
        assert_eq!(steps, [what]);
    }

    #[test]
    fn an_index_is_deleted_after_the_new_ones_are_created() {
        let (first, _) = printed(&[("byTag", &[]), ("byAge", &[])], None);
        let (second, steps) = printed(&[("byTag2", &["title"])], Some(&first));
        assert_eq!(names(&second), ["byTag2", "byTag", "byAge"]);
        assert_eq!(steps.len(), 3, "{steps:?}");
        let (third, _) = printed(&[("byTag2", &["title"])], Some(&second));
        assert_eq!(names(&third), ["byTag2", "byAge"]);
        let (fourth, steps) = printed(&[("byTag2", &["title"])], Some(&third));
        assert_eq!((names(&fourth), steps.len()), (vec!["byTag2"], 1));
        assert_eq!(Deployed::read("no template"), None);
    }

    #[test]
    fn a_table_lacks_indexes_and_attributes_that_are_declared() {
        let (schema, catalogue) =
            manifest::load(&manifest(&[("byAuthor", &["a", "b"]), ("byTag", &[]), ("byDay", &[])])).unwrap();
        let form = &schema.layout.forms.as_ref().unwrap().0[0];
        let key = |name: &str| StoredKey(vec![(name.to_owned(), "S".to_owned())]);
        let index = |name: &str, key: StoredKey, projection: Option<&[&str]>| StoredIndex {
            name: name.to_owned(),
            key,
            projection: projection.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        };
        let steps = |indexes: Vec<StoredIndex>| {
            let table = StoredTable {
                name: "posts".to_owned(),
                key: key("id"),
                indexes,
                index_keys: BTreeSet::new(),
                has_stream: true,
                view: None,
                is_strong_global: false,
            };
            of_table((&schema, &catalogue), form, &table).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let own = || index("own", key("x"), None);
        assert_eq!(
            steps(vec![own(), index("byAuthor", key("byAuthorKey"), Some(&["a"]))]),
            [
                "the index byAuthor of posts does not project b, and DynamoDB never changes an index: declare it under \
                 another name, deploy that, and drop the old one in a later deployment; or delete it in one deployment \
                 and create it in the next; or declare it as it is",
                "deployment 1: creates the index byTag of posts",
                "deployment 2: creates the index byDay of posts",
            ]
        );
        let other = steps(vec![index("byAuthor", key("author"), None)]);
        assert!(other[0].contains("has the key author (S), and byAuthorKey (S) is declared"), "{other:?}");
        let all = ["byAuthor", "byTag", "byDay"].map(|name| index(name, key(&format!("{name}Key")), None));
        assert_eq!(steps(all.to_vec()), [""; 0], "more than is declared is projected");
    }
}
