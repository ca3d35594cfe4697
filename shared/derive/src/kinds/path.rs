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
    derived::{Counts, Derived, Items},
    effect::{Effect, Find},
    expression::document_path::root,
    flaw::Flaw,
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
    fn held<'a>(&self, schema: &Schema, key: &Key, item: Option<&'a Item>) -> Option<&'a str> {
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
                        let above = self.held(schema, &parent, items.get(&parent))?;
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
            into: schema.entity(&self.target).map(|target| format!("{} / {}", target.key.pk, target.key.sk)),
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
        let mut derived = Vec::new();
        for (key, item) in items {
            if schema.image(key, item).is_some_and(|image| image.is(&self.target)) {
                let attributes = vec![self.wanted(self.walked(schema, items, key))];
                derived.push(Derived::Attributes { key: key.clone(), attributes });
            }
        }
        derived
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
                below(self.held(schema, &parent, sources.item(&parent))?, [name].iter(), self.depth_max)
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
            let held = || self.held(schema, parent, items.get(parent)).map(str::to_owned);
            if self.recurs() { self.walked(schema, items, parent) } else { held() }
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
mod tests;
