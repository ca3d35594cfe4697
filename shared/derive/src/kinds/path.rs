//! Path: an item's position in a tree, spelled out from the root.
//!
//! *Keeps true*: an item's path is its parent's path, `/`, and its own name with `/`, `#` and `%` escaped; an item of
//! the parents' own entity that names no parent is a root, and its path is `/` and its name. There is no path if the
//! name is missing, if the parent does not exist or has no path, or if the path would have more segments than the
//! declaration allows. *From* a parent whose path changed *to* a refresh of all its children; *from* an item that was
//! created, renamed or moved, or whose path changed, and from the creation of the item through which it is found, *to*
//! a refresh of that item.
//!
//! *Level-triggered.* The parent is read when the path is written, so the newest path wins in any order of requests. A
//! change at the root propagates level by level: the record of each written item finds its children.
//!
//! *Why it ends*: each write makes a path one segment longer than the parent's, and no path is longer than the bound.
//! In a loop an old path goes round, one segment longer at each item, until it is too long; then nothing in or under
//! the loop has a path. The definition agrees: it walks up from every item, and stops at the bound.
//!
//! *Example*: `/docs` is renamed to `/papers`. The folder gets its new path; that write's record finds the folders in
//! it.

use std::collections::{BTreeMap, BTreeSet};

use keys::{
    escape,
    item::{Item, text},
    key::Key,
};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    declaration::{FoundBy, Link, declares, entity, knows},
    derived::{Counts, Derived, Flaw, Items},
    effect::{Effect, Find},
    expression::document_path::root,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};

/// The declaration of a path.
#[derive(Clone, Debug)]
pub struct TreePath {
    /// Entity of the items that have a path.
    pub target: String,
    /// Entity of the parents. If it is the same, an item that names no parent is a root.
    pub parent: String,
    /// How the parent's key is built from the item's fields.
    pub link: Link,
    /// Attribute with an item's name, or a field of its key.
    pub name: String,
    /// Attribute with the path, of an item and of its parent.
    pub attribute: String,
    /// Most segments of a path.
    pub depth_max: usize,
    /// How the children of a parent are found.
    pub found: FoundBy,
}

/// An item's declared position, with its name.
enum TreePlace {
    Root(String),
    In(Key, String),
}

impl TreePath {
    /// An item's declared position; `None` if it lacks a name, or a required parent.
    fn place(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<TreePlace>, Unreadable> {
        let parent = match schema.entity(&self.parent) {
            Some(parent) => self.link.key(parent, image)?,
            None => None,
        };
        let Some(name) = image.field(&self.name)?.map(str::to_owned) else { return Ok(None) };
        Ok(match parent {
            Some(parent) => Some(TreePlace::In(parent, name)),
            None if self.recurs() => Some(TreePlace::Root(name)),
            None => None,
        })
    }

    /// The declared position of an item of a table. An unreadable item counts as absent.
    fn place_of(&self, schema: &Schema, items: &Items, key: &Key) -> Option<TreePlace> {
        let image = schema.image(key, items.get(key)?).filter(|image| image.is(&self.target))?;
        self.place(schema, &image).ok().flatten()
    }

    /// The stored path of a parent.
    fn stored<'a>(&self, schema: &Schema, key: &Key, item: Option<&'a Item>) -> Option<&'a str> {
        let item = item.filter(|item| schema.image(key, item).is_some_and(|image| image.is(&self.parent)))?;
        text(item, &self.attribute).filter(|path| path.starts_with('/'))
    }

    /// An item's path by definition: walked up from the item. A loop has no end, so it passes the bound.
    fn walked(&self, schema: &Schema, items: &Items, key: &Key) -> Option<String> {
        let (mut names, mut at) = (Vec::new(), key.clone());
        while names.len() < self.depth_max {
            match self.place_of(schema, items, &at)? {
                TreePlace::Root(name) => {
                    names.push(name);
                    return below("", names.iter().rev(), self.depth_max);
                }
                TreePlace::In(parent, name) => {
                    names.push(name);
                    if !self.recurs() {
                        let above = self.stored(schema, &parent, items.get(&parent))?;
                        return below(above, names.iter().rev(), self.depth_max);
                    }
                    at = parent;
                }
            }
        }
        None
    }

    fn wanted(&self, path: Option<String>) -> Wanted {
        Wanted { name: self.attribute.clone(), value: path.map(AttributeValue::S), zero_is_absent: false }
    }

    /// The parent's path changed: find all children.
    fn parent_changed(&self, schema: &Schema, sight: &Sight<'_>) -> Option<Effect> {
        let (old, new) = sight.entity(&self.parent);
        let differs = sight.attribute_differs(old, new, &self.attribute);
        let parent = new.or(old).filter(|_| differs)?;
        self.found.find(schema, parent, &self.target)
    }

    /// The item was created, renamed or moved, or its path changed: refresh it.
    fn target_changed(&self, sight: &Sight<'_>) -> Option<Effect> {
        let names = self.link.from_fields().chain([self.name.as_str(), self.attribute.as_str()]);
        sight.touched(&self.target, names).map(|item| Effect::look(item, &self.target))
    }
}

impl Kind for TreePath {
    fn name(&self) -> &'static str {
        "path"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (parent, target) = (entity(schema, &self.parent)?, entity(schema, &self.target)?);
        self.link.check(parent, target)?;
        if !target.key.field_names().contains(&self.name.as_str()) {
            knows(target, [self.name.as_str()])?;
        }
        knows(parent, [self.attribute.as_str()])?;
        declares(target, [self.attribute.as_str()])?;
        self.found.check(schema, parent, target)?;
        let mut reads = vec![Part::existence(&self.parent), Part::existence(&self.target)];
        reads.push(Part::attribute(&self.parent, &self.attribute));
        reads.push(Part::attribute(&self.target, &self.name));
        reads.extend(self.link.from_fields().map(|name| Part::attribute(&self.target, name)));
        Ok(Reach { reads, writes: vec![Part::attribute(&self.target, &self.attribute)] })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let path = format!("{} below the {} of its {}", self.name, self.attribute, self.parent);
        Outline {
            says: Some(format!("keeps in each {} its path: {path}", self.target)),
            terms: vec![path],
            into: schema.entity(&self.target).map(|target| target.key.to_string()),
            finds: self.found.shown(schema, &self.parent, &self.target).into_iter().collect(),
            depth_max: Some(self.depth_max),
            ..Outline::from(&self.target)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.parent, &self.target, &self.found.via]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let led = self.found.newly_led(schema, sight, &self.target).map(|target| Effect::look(target, &self.target));
        [self.parent_changed(schema, sight), self.target_changed(sight), led].into_iter().flatten().collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(&self.target) {
            return None;
        }
        self.place(schema, image).err()
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let of = |image: Image<'_>| {
            let attributes = vec![self.wanted(self.walked(schema, items, image.key))];
            Derived::Attributes { key: image.key.clone(), attributes }
        };
        schema.images(items, &self.target).map(of).collect()
    }
}

impl Refresh for TreePath {
    fn target(&self) -> &str {
        &self.target
    }

    fn gives(&self) -> Option<&'static str> {
        Some("S")
    }

    fn found(&self) -> Option<&FoundBy> {
        Some(&self.found)
    }

    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        let place = target.image(schema).and_then(|image| self.place(schema, &image).ok().flatten());
        match place {
            Some(TreePlace::In(parent, _)) => vec![Source::Item(parent)],
            Some(TreePlace::Root(_)) | None => Vec::new(),
        }
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let place = target.image(schema).and_then(|image| self.place(schema, &image).ok().flatten());
        let path = place.and_then(|place| match place {
            TreePlace::Root(name) => below("", [name].iter(), self.depth_max),
            TreePlace::In(parent, name) => {
                below(self.stored(schema, &parent, sources.item(&parent))?, [name].iter(), self.depth_max)
            }
        });
        Computed::Attributes(vec![self.wanted(path)])
    }

    fn recurs(&self) -> bool {
        self.target == self.parent
    }

    fn has_flaws(&self) -> bool {
        true
    }

    /// Items in a loop, and the topmost items that are too deep; items below those are not reported.
    fn flaws(&self, schema: &Schema, items: &Items) -> Vec<Flaw> {
        let parents = items.keys().filter_map(|key| match self.place_of(schema, items, key)? {
            TreePlace::In(parent, _) => Some((key.clone(), parent)),
            TreePlace::Root(_) => None,
        });
        let parents: BTreeMap<Key, Key> = parents.collect();
        let looped = if self.recurs() { in_loops(&parents) } else { BTreeSet::new() };
        let above = |parent: &Key| {
            let stored = || self.stored(schema, parent, items.get(parent)).map(str::to_owned);
            if self.recurs() { self.walked(schema, items, parent) } else { stored() }
        };
        let flaw = |(key, parent): (&Key, &Key)| {
            let why = if looped.contains(key) {
                "it stands in itself, by way of its parents: nothing in the loop or under it has a path".to_owned()
            } else if above(parent).is_some_and(|path| depth(&path) >= self.depth_max) {
                format!("it stands too deep: a path has {} segments at most", self.depth_max)
            } else {
                return None;
            };
            let attribute = root(self.link.from_fields().last().unwrap_or(&self.name)).into_owned();
            Some(Flaw { key: key.clone(), attribute, why })
        };
        parents.iter().filter_map(flaw).collect()
    }

    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        self.found.find_from(schema, &self.parent, source, &self.target)
    }
}

// ---- Loops: items that are their own ancestors ----

/// The keys in a loop, if each key has at most one parent.
fn in_loops(parents: &BTreeMap<Key, Key>) -> BTreeSet<Key> {
    let (mut done, mut looped) = (BTreeSet::new(), BTreeSet::new());
    for start in parents.keys() {
        let (mut walk, mut at) = (Vec::new(), start);
        while done.insert(at) {
            walk.push(at);
            match parents.get(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        // If this walk has already passed the key, the walk from there on is a loop.
        looped.extend(walk.into_iter().skip_while(|key| *key != at || !parents.contains_key(at)).cloned());
    }
    looped
}

// ---- Segments: the text of a path ----

/// Number of segments of a path.
fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// The path with these segments below another; `None` if it would have more than `depth_max`.
fn below<'a>(above: &str, names: impl DoubleEndedIterator<Item = &'a String>, depth_max: usize) -> Option<String> {
    let mut path = above.to_owned();
    for name in names {
        path.push('/');
        path.push_str(&escape::segment(name));
    }
    (depth(&path) <= depth_max).then_some(path)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        change::Change,
        fixture::{TestTable, effects, inserted, item, key_of, modified, removed},
        whole,
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("path", change));
    }

    const DOCS: &str = "FOLDER#d / METADATA Folder Name=docs ParentId=top Path=/top/docs";
    const FILE: &str = "FOLDER#d / FILE#f File Name=a.txt";
    const DETAIL: &str = "FILE#f / METADATA FileDetail Name=a.txt FolderId=d Path=/top/docs/a.txt";

    #[test]
    fn a_path_that_changed_asks_for_what_stands_in_the_folder_and_looks_again() {
        for change in [
            modified(DOCS, "FOLDER#d / METADATA Folder Name=docs ParentId=top Path=/docs"),
            modified(DOCS, "FOLDER#d / METADATA Folder Name=docs ParentId=top"),
        ] {
            check(
                &change,
                &expect![[r#"
            folder-path: find GSI1 FOLDER#d / FOLDER#… via Folder -> Folder
            folder-path: look FOLDER#d / METADATA (Folder)
            file-path: find table FOLDER#d / FILE#… via File -> FileDetail
        "#]],
            );
        }
    }

    #[test]
    fn a_folder_that_is_made_or_removed_with_a_path_asks_for_what_stands_in_it() {
        check(
            &inserted(DOCS),
            &expect![[r#"
            folder-path: find GSI1 FOLDER#d / FOLDER#… via Folder -> Folder
            folder-path: look FOLDER#d / METADATA (Folder)
            file-path: find table FOLDER#d / FILE#… via File -> FileDetail
        "#]],
        );
        check(
            &inserted("FOLDER#d / METADATA Folder Name=docs ParentId=top"),
            &expect!["folder-path: look FOLDER#d / METADATA (Folder)\n"],
        );
        for change in [removed(DOCS), modified(DOCS, "FOLDER#d / METADATA Gadget Path=/top/docs")] {
            check(
                &change,
                &expect![[r#"
            folder-path: find GSI1 FOLDER#d / FOLDER#… via Folder -> Folder
            file-path: find table FOLDER#d / FILE#… via File -> FileDetail
        "#]],
            );
        }
    }

    #[test]
    fn a_folder_that_is_renamed_or_moved_is_looked_at() {
        for change in [
            modified(DOCS, &DOCS.replace("Name=docs", "Name=papers")),
            modified(DOCS, &DOCS.replace("ParentId=top", "ParentId=low")),
            modified(DOCS, &DOCS.replace(" ParentId=top", "")),
        ] {
            check(&change, &expect!["folder-path: look FOLDER#d / METADATA (Folder)\n"]);
        }
        check(&modified(DOCS, &format!("{DOCS} FileCount=N:2")), &expect!["nothing\n"]);
    }

    #[test]
    fn a_mirror_that_is_made_or_altered_is_looked_at_and_so_is_that_of_a_new_file() {
        for change in [inserted(DETAIL), modified(DETAIL, &DETAIL.replace("FolderId=d", "FolderId=e"))] {
            check(&change, &expect!["file-path: look FILE#f / METADATA (FileDetail)\n"]);
        }
        check(&removed(DETAIL), &expect!["nothing\n"]);
        check(&inserted(FILE), &expect!["file-path: look FILE#f / METADATA (FileDetail)\n"]);
        check(&modified(FILE, &format!("{FILE} SizeBytes=N:3")), &expect!["nothing\n"]);
    }

    #[test]
    fn a_path_that_changed_asks_for_those_below_and_rings_the_mirrors_under_both_paths() {
        let vp = "ORG#o / EMPLOYEE#vp Employee ManagerId=ceo Path=/ceo/vp";
        check(
            &modified(vp, &vp.replace("/ceo/vp", "/cto/vp")),
            &expect![[r#"
            employee-path: find GSI2 MANAGER#vp / EMP#… via Employee -> Employee
            employee-path: look ORG#o / EMPLOYEE#vp (Employee)
        "#]],
        );
        check(
            &modified(vp, &vp.replace("=ceo", "=cto")),
            &expect!["employee-path: look ORG#o / EMPLOYEE#vp (Employee)\n"],
        );
    }

    #[test]
    fn an_employee_stands_below_whom_they_name_in_their_own_organization() {
        let employee = |org: &str, id: &str, manager: &str| {
            format!(
                "ORG#{org} / EMPLOYEE#{id} Employee ManagerId={manager} GSI2PK=MANAGER#{manager} GSI2SK=EMP#{id} Path=/stale/{id}"
            )
        };
        let below = [
            employee("o", "b", "a"),
            employee("o", "c/d", "b"),
            employee("o", "e", "c/d"),
            employee("o", "f", "e"),
            employee("p", "g", "b"),
            employee("o", "h", "i"),
            employee("o", "i", "h"),
            employee("o", "j", "nobody"),
        ];
        let mut table: Vec<&str> = below.iter().map(String::as_str).collect();
        table.extend(["ORG#o / EMPLOYEE#a Employee Name=Ann", "ORG#o / EMP#/gone OrgChart EmployeeId=gone"]);
        defined(
            &table,
            &expect![[r#"
                ORG#o / EMP#/a
                ORG#o / EMP#/a/b
                ORG#o / EMP#/a/b/c%2Fd
                ORG#o / EMP#/a/b/c%2Fd/e
                ORG#o / EMPLOYEE#a: /a
                ORG#o / EMPLOYEE#b: /a/b
                ORG#o / EMPLOYEE#c/d: /a/b/c%2Fd
                ORG#o / EMPLOYEE#e: /a/b/c%2Fd/e
                ORG#o / EMPLOYEE#f: -
                ORG#o / EMPLOYEE#h: -
                ORG#o / EMPLOYEE#i: -
                ORG#o / EMPLOYEE#j: -
                ORG#p / EMPLOYEE#g: -
                employee-path: ORG#o / EMPLOYEE#f ManagerId: it stands too deep: a path has 4 segments at most
                employee-path: ORG#o / EMPLOYEE#h ManagerId: it stands in itself, by way of its parents: nothing in the loop or under it has a path
                employee-path: ORG#o / EMPLOYEE#i ManagerId: it stands in itself, by way of its parents: nothing in the loop or under it has a path
            "#]],
        );
    }

    #[test]
    fn a_name_or_a_parent_that_cannot_be_read_is_listed() {
        check(
            &inserted("FOLDER#d / METADATA Folder Name=N:1"),
            &expect![[r#"
            folder-path: look FOLDER#d / METADATA (Folder)
            folder-path: list Name is N, and S is wanted
        "#]],
        );
        check(
            &inserted("FOLDER#d / METADATA Folder Name=docs ParentId=SS:a"),
            &expect![[r#"
            folder-path: look FOLDER#d / METADATA (Folder)
            folder-path: list ParentId is SS, and `{FolderId}` takes a text
        "#]],
        );
        check(
            &inserted("FOLDER#d / METADATA Folder Name=docs ParentId="),
            &expect![[r#"
            folder-path: look FOLDER#d / METADATA (Folder)
            folder-path: list ParentId is empty
        "#]],
        );
    }

    /// The paths of a table by definition, and the invalid data that a person should correct.
    fn defined(table: &[&str], wanted: &Expect) {
        let mut given = TestTable::new();
        for item in table.iter().map(|text| item(text)) {
            given.replace(key_of(&item), Some(item));
        }
        given.settle(&[]);
        assert_eq!(given.differing(), [""; 0]);
        let text = |name: &str, item: &Item| keys::item::text(item, name).unwrap_or("-").to_owned();
        let line = |(key, item): (&Key, &Item)| match text("EntityType", item).as_str() {
            "Folder" | "FileDetail" => Some(format!("{}: {}\n", key.pk, text("Path", item))),
            "Employee" => Some(format!("{key}: {}\n", text("Path", item))),
            "OrgChart" => Some(format!("{key}\n")),
            _ => None,
        };
        let mut lines: Vec<String> = given.items.iter().filter_map(line).collect();
        let whole = whole::derive(&given.schema, &given.catalogue, &given.items);
        lines.extend(
            whole.flaws.iter().map(|(name, flaw)| format!("{name}: {} {}: {}\n", flaw.key, flaw.attribute, flaw.why)),
        );
        wanted.assert_eq(&lines.concat());
    }

    #[test]
    fn a_path_is_the_parents_path_and_the_escaped_name() {
        defined(
            &[
                "FOLDER#a / METADATA Folder Name=a/b",
                "FOLDER#b / METADATA Folder Name=50%#1 ParentId=a GSI1PK=FOLDER#a GSI1SK=FOLDER#50%25%231#b",
                "FOLDER#b / FILE#f File Name=x/y.txt",
            ],
            &expect![[r#"
                FILE#f: /a%2Fb/50%25%231/x%2Fy.txt
                FOLDER#a: /a%2Fb
                FOLDER#b: /a%2Fb/50%25%231
            "#]],
        );
    }

    #[test]
    fn without_a_name_or_a_parent_with_a_path_there_is_none() {
        defined(
            &[
                "FOLDER#a / METADATA Folder Path=/stale",
                "FOLDER#b / METADATA Folder Name=b ParentId=a GSI1PK=FOLDER#a GSI1SK=FOLDER#b#b Path=/stale/b",
                "FOLDER#c / METADATA Folder Name=c ParentId=gone Path=/gone/c",
                "FOLDER#d / METADATA Gadget Name=d Path=/d",
                "FOLDER#e / METADATA Folder Name=e ParentId=d",
                "FOLDER#f / METADATA Folder Name=f ParentId=N:1 Path=/f",
                "FOLDER#b / FILE#x File Name=x",
                "FOLDER#gone / FILE#y File Name=y",
            ],
            &expect![[r#"
                FILE#x: -
                FILE#y: -
                FOLDER#a: -
                FOLDER#b: -
                FOLDER#c: -
                FOLDER#e: -
                FOLDER#f: -
            "#]],
        );
    }

    #[test]
    fn what_is_in_a_loop_or_too_deep_has_no_path_and_its_cause_is_told() {
        let folder = |id: &str, parent: &str| {
            format!(
                "FOLDER#{id} / METADATA Folder Name={id} ParentId={parent} GSI1PK=FOLDER#{parent} GSI1SK=FOLDER#{id}#{id} Path=/stale"
            )
        };
        let in_loop =
            [folder("a", "b"), folder("b", "c"), folder("c", "a"), folder("under", "b"), folder("self", "self")];
        let chain =
            ["2", "3", "4", "5", "6", "7"].map(|at: &str| folder(at, &(at.parse::<u32>().unwrap() - 1).to_string()));
        let mut table: Vec<&str> = in_loop.iter().chain(&chain).map(String::as_str).collect();
        table.extend([
            "FOLDER#1 / METADATA Folder Name=1",
            "FOLDER#5 / FILE#fits File Name=fits",
            "FOLDER#6 / FILE#not File Name=not",
        ]);
        defined(
            &table,
            &expect![[r#"
            FILE#fits: /1/2/3/4/5/fits
            FILE#not: -
            FOLDER#1: /1
            FOLDER#2: /1/2
            FOLDER#3: /1/2/3
            FOLDER#4: /1/2/3/4
            FOLDER#5: /1/2/3/4/5
            FOLDER#6: -
            FOLDER#7: -
            FOLDER#a: -
            FOLDER#b: -
            FOLDER#c: -
            FOLDER#self: -
            FOLDER#under: -
            folder-path: FOLDER#6 / METADATA ParentId: it stands too deep: a path has 5 segments at most
            folder-path: FOLDER#a / METADATA ParentId: it stands in itself, by way of its parents: nothing in the loop or under it has a path
            folder-path: FOLDER#b / METADATA ParentId: it stands in itself, by way of its parents: nothing in the loop or under it has a path
            folder-path: FOLDER#c / METADATA ParentId: it stands in itself, by way of its parents: nothing in the loop or under it has a path
            folder-path: FOLDER#self / METADATA ParentId: it stands in itself, by way of its parents: nothing in the loop or under it has a path
        "#]],
        );
    }

    /// Events on a table of a few folders, in any order.
    #[derive(Clone, Debug)]
    enum Happening {
        Put { folder: usize, name: usize, parent: usize },
        Remove(usize),
        Forge { folder: usize, path: usize },
        File { folder: usize, is_there: bool },
        Take { place: usize, is_late: bool },
        TakeAgain(usize),
        Land(usize),
    }

    fn happenings() -> impl Strategy<Value = Vec<Happening>> {
        let folder = || 0..FOLDERS.len();
        let happening = prop_oneof![
            4 => (folder(), 0..NAMES.len(), 0..PARENTS.len())
                .prop_map(|(folder, name, parent)| Happening::Put { folder, name, parent }),
            1 => folder().prop_map(Happening::Remove),
            1 => (folder(), 0..PATHS.len()).prop_map(|(folder, path)| Happening::Forge { folder, path }),
            1 => (folder(), any::<bool>()).prop_map(|(folder, is_there)| Happening::File { folder, is_there }),
            6 => (0..99usize, prop::bool::weighted(0.2)).prop_map(|(place, is_late)| Happening::Take { place, is_late }),
            1 => (0..99usize).prop_map(Happening::TakeAgain),
            1 => (0..99usize).prop_map(Happening::Land),
        ];
        prop::collection::vec(happening, 1..80)
    }

    const FOLDERS: [&str; 7] = ["1", "2", "3", "4", "5", "6", "7"];
    const NAMES: [&str; 4] = ["Name=a", "Name=b/c", "Name=N:1", "Note=x"];
    /// Mostly other folders of the few, so that there are loops.
    const PARENTS: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "gone", ""];
    const PATHS: [&str; 4] = ["/a", "/a/b/a/b/a", "a", "N:1"];

    fn happen(table: &mut TestTable, happening: &Happening) {
        let key = |folder: usize| format!("FOLDER#{} / METADATA", FOLDERS[folder]);
        match happening {
            Happening::Put { folder, name, parent } => {
                let parent = PARENTS[*parent];
                let mut text = format!("{} Folder {}", key(*folder), NAMES[*name]);
                if !parent.is_empty() {
                    let id = FOLDERS[*folder];
                    text = format!("{text} ParentId={parent} GSI1PK=FOLDER#{parent} GSI1SK=FOLDER#x#{id}");
                }
                let item = item(&text);
                table.replace(key_of(&item), Some(item));
            }
            Happening::Remove(folder) => table.replace(key_of(&item(&key(*folder))), None),
            Happening::Forge { folder, path } => {
                let key = key_of(&item(&key(*folder)));
                if let Some(mut stored) = table.items.get(&key).cloned() {
                    stored.extend(
                        item(&format!("x / x Path={}", PATHS[*path])).remove("Path").map(|path| ("Path", path)),
                    );
                    table.replace(key, Some(stored));
                }
            }
            Happening::File { folder, is_there } => {
                let item = item(&format!("FOLDER#{} / FILE#f File Name=f", FOLDERS[*folder]));
                table.replace(key_of(&item), is_there.then_some(item));
            }
            Happening::Take { place, is_late } => table.take(*place, *is_late),
            Happening::TakeAgain(place) => table.take_again(*place),
            Happening::Land(place) => table.land(*place),
        }
    }

    const EMPLOYEES: [&str; 5] = ["1", "2", "3", "4", "5"];
    const MANAGERS: [&str; 7] = ["1", "2", "3", "4", "5", "gone", ""];
    const FORGED: [&str; 4] = ["Path=/1", "Path=/2/1/2", "Path=x", "Path=N:1"];

    /// An event on an organization of a few employees; the numbers choose the action, the employee and the other one.
    fn happen_at_work(table: &mut TestTable, (what, who, other): (usize, usize, usize)) {
        let id = EMPLOYEES[who];
        let key = key_of(&item(&format!("ORG#o / EMPLOYEE#{id}")));
        match what {
            0..=4 => {
                let manager = MANAGERS[other % MANAGERS.len()];
                let below = format!(" ManagerId={manager} GSI2PK=MANAGER#{manager} GSI2SK=EMP#{id}");
                let below = if manager.is_empty() { "" } else { below.as_str() };
                // Like an application that keeps foreign attributes, or one that puts the whole item.
                let path = table.items.get(&key).filter(|_| what > 0).and_then(|item| item.get("Path")).cloned();
                let mut employee = item(&format!("ORG#o / EMPLOYEE#{id} Employee{below}"));
                employee.extend(path.map(|path| ("Path".to_owned(), path)));
                table.replace(key, Some(employee));
            }
            5 => table.replace(key, None),
            6 => {
                let Some(mut stored) = table.items.get(&key).cloned() else { return };
                stored.extend(
                    item(&format!("x / x {}", FORGED[other % FORGED.len()]))
                        .remove("Path")
                        .map(|it| ("Path".to_owned(), it)),
                );
                table.replace(key, Some(stored));
            }
            7 => {
                let charted = table.items.keys().filter(|key| key.sk.starts_with("EMP#")).nth(other % 3).cloned();
                if let Some(key) = charted {
                    table.replace(key, None);
                }
            }
            8 => table.land(other),
            9 => table.take_again(other),
            _ => table.take(other, what == 10),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// The same test with employees, each with a mirror under their path: no mirror stays under another path.
        #[test]
        fn whoever_works_for_whomever_paths_and_mirrors_end_as_they_are_defined(
            happenings in prop::collection::vec((0..16usize, 0..EMPLOYEES.len(), 0..99usize), 1..80),
            choices in prop::collection::vec(0..99usize, 20),
        ) {
            let mut table = TestTable::new();
            for happening in &happenings {
                happen_at_work(&mut table, *happening);
            }
            table.settle(&choices);
            prop_assert_eq!(table.differing(), [""; 0]);
        }

        /// Loops that appear and break, folders without a parent and too deep, in any order of records, with late writes
        /// and redelivered records: everything ends, and ends as defined.
        #[test]
        fn whatever_stands_wherever_paths_end_as_they_are_defined(
            happenings in happenings(),
            choices in prop::collection::vec(0..99usize, 20),
        ) {
            let mut table = TestTable::new();
            for happening in &happenings {
                happen(&mut table, happening);
            }
            table.settle(&choices);
            prop_assert_eq!(table.differing(), [""; 0]);
        }
    }
}
