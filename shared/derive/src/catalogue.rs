//! The catalogue: the list of derivations of a table, checked against its schema.
//!
//! A catalogue is a graph of parts of items: a derivation that reads what another writes comes after it. A cycle is
//! refused when the catalogue is built, so that whatever our own writes ring comes to an end. One that recurs over its
//! own target may read what it writes itself, since it ends at a depth of its own.

use std::collections::{BTreeMap, BTreeSet};

use keys::counter::COUNTER;

use crate::{
    change::Sight,
    derivation::{Derivation, Family, Part, PartOf},
    kind::Shape,
    refresh::Refresh,
    schema::Schema,
};

/// Derivations in an order in which each comes after those that it builds on.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<Entry>,
    /// By entity, so that a change asks only those that its item may concern.
    concerns: BTreeMap<String, Concern>,
}

/// What the change of an entity's item may concern.
#[derive(Clone, Debug, Default)]
struct Concern {
    /// Positions of the derivations that look at such items, ascending.
    derivations: Vec<(usize, Family)>,
    /// The parts of such items that derivations read, each once.
    reads: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Entry {
    derivation: Derivation,
    reads: Vec<Part>,
    writes: Vec<Part>,
}

/// A catalogue that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// A declaration does not fit the schema.
    #[error("derivation {derivation}: {problem}")]
    Declaration {
        /// The derivation.
        derivation: String,
        /// What does not fit.
        problem: String,
    },
    /// Two derivations have one name.
    #[error("two derivations are called {name}")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// Two derivations write the same part of an item.
    #[error("derivations {one} and {other} both write {part}")]
    WrittenTwice {
        /// The one.
        one: String,
        /// The other.
        other: String,
        /// What both write.
        part: String,
    },
    /// Derivations build on each other in a circle.
    #[error("derivations build on each other in a circle: {}", names.join(", "))]
    Circle {
        /// Those in the circle, and those that build on it.
        names: Vec<String>,
    },
}

impl Catalogue {
    /// A catalogue of these derivations.
    ///
    /// # Errors
    ///
    /// [`CatalogueError`] naming the derivation and what does not fit.
    pub fn new(schema: &Schema, derivations: Vec<Derivation>) -> Result<Self, CatalogueError> {
        let mut names = BTreeSet::new();
        let mut entries = Vec::new();
        for derivation in derivations {
            if !names.insert(derivation.name.clone()) {
                return Err(CatalogueError::NameTwice { name: derivation.name });
            }
            let reach = derivation
                .kind
                .reach(schema)
                .map_err(|problem| CatalogueError::Declaration { derivation: derivation.name.clone(), problem })?;
            let mut writes = reach.writes;
            // A count writes a part of the counters, which has the derivation's name.
            if let Shape::Count(count) = derivation.kind.shape() {
                writes.push(Part::attribute(COUNTER, &derivation.name));
                writes.extend(count.sum.as_ref().map(|_| Part::attribute(COUNTER, &sum_of(&derivation.name))));
            }
            entries.push(Entry { derivation, reads: reach.reads, writes });
        }
        written_once(&entries)?;
        counted(&entries)?;
        let entries = sorted(entries)?;
        let concerns = concerns(&entries);
        Ok(Self { entries, concerns })
    }

    /// The derivations, each after those that it builds on.
    pub fn derivations(&self) -> impl Iterator<Item = &Derivation> {
        self.entries.iter().map(|entry| &entry.derivation)
    }

    /// The derivations of these families that a change may concern, with their positions, in their order.
    pub fn looking_at(&self, sight: &Sight<'_>, families: &[Family]) -> impl Iterator<Item = (usize, &Derivation)> {
        let [old, new] = self.concerns_of(sight).map(|concern| concern.map_or(&[][..], |it| it.derivations.as_slice()));
        let mut ours: Vec<usize> = Vec::with_capacity(old.len() + new.len());
        ours.extend(old.iter().chain(new).filter(|(_, family)| families.contains(family)).map(|(at, _)| *at));
        if !old.is_empty() {
            ours.sort_unstable();
            ours.dedup();
        }
        ours.into_iter().filter_map(|at| Some((at, self.derivation(at)?)))
    }

    /// The concerns of the old image's entity, where that is another than the new one's, and of the new image's.
    fn concerns_of(&self, sight: &Sight<'_>) -> [Option<&Concern>; 2] {
        let new = sight.new.as_ref().map(|image| image.definition.name.as_str());
        let old = sight.old.as_ref().map(|image| image.definition.name.as_str()).filter(|old| Some(*old) != new);
        [old, new].map(|entity| entity.and_then(|entity| self.concerns.get(entity)))
    }

    /// The derivation at a position.
    #[must_use]
    pub fn derivation(&self, at: usize) -> Option<&Derivation> {
        self.entries.get(at).map(|entry| &entry.derivation)
    }

    /// The name of the derivation at a position.
    #[must_use]
    pub fn name(&self, at: usize) -> &str {
        self.derivation(at).map_or("", |derivation| derivation.name.as_str())
    }

    /// The position of the derivation of this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.derivation.name == name)
    }

    /// Positions of the derivations that write into items of an entity by looking at them.
    pub fn refreshing(&self, entity: &str) -> impl Iterator<Item = usize> {
        let refreshes =
            move |entry: &Entry| entry.derivation.kind.refresh().is_some_and(|part| part.target() == entity);
        self.entries.iter().enumerate().filter(move |(_, entry)| refreshes(entry)).map(|(at, _)| at)
    }

    /// How the derivation at a position looks at an item.
    #[must_use]
    pub fn refresh(&self, at: usize) -> Option<&dyn Refresh> {
        self.derivation(at)?.kind.refresh()
    }

    /// Does the derivation at a position read one of these attributes of an entity's items?
    pub(crate) fn reads_any<'a>(&self, at: usize, entity: &str, mut names: impl Iterator<Item = &'a str>) -> bool {
        let reads = self.entries.get(at).map_or(&[][..], |entry| entry.reads.as_slice());
        names.any(|name| reads.iter().any(|part| part.entity == entity && part.of.holds(name)))
    }

    /// Does a change of a ground item differ in something that a derivation reads?
    #[must_use]
    pub fn reads_difference(&self, sight: &Sight<'_>) -> bool {
        let image = sight.new.as_ref().or(sight.old.as_ref());
        let Some(ground) = image.filter(|image| !image.definition.derived) else { return false };
        let derived = &ground.definition.derived_attributes;
        let is_ground = |part: &Part| !matches!(&part.of, PartOf::Attribute(name) if derived.contains(name));
        let mut reads = self.concerns_of(sight).into_iter().flatten().flat_map(|concern| &concern.reads);
        reads.any(|part| is_ground(part) && part.differs(sight))
    }
}

fn concerns(entries: &[Entry]) -> BTreeMap<String, Concern> {
    let mut concerns: BTreeMap<String, Concern> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let entities: BTreeSet<&str> = entry.derivation.kind.entities().into_iter().collect();
        for entity in entities {
            concerns.entry(entity.to_owned()).or_default().derivations.push((at, entry.derivation.kind.family()));
        }
        for part in &entry.reads {
            let reads = &mut concerns.entry(part.entity.clone()).or_default().reads;
            if !reads.contains(part) {
                reads.push(part.clone());
            }
        }
    }
    concerns
}

const SUM_OF: &str = "sum of ";

/// The part of the counters that holds a derivation's sum.
#[must_use]
pub fn sum_of(derivation: &str) -> String {
    format!("{SUM_OF}{derivation}")
}

/// A count or sum that is read is one that is declared.
fn counted(entries: &[Entry]) -> Result<(), CatalogueError> {
    for entry in entries {
        let mut read = entry.reads.iter().filter(|part| part.entity == COUNTER);
        if let Some(Part { of: PartOf::Attribute(name), .. }) =
            read.find(|part| !entries.iter().any(|other| other.writes.contains(part)))
        {
            let what = if name.starts_with(SUM_OF) { "" } else { "count " };
            let problem = format!("there is no {what}{name}");
            return Err(CatalogueError::Declaration { derivation: entry.derivation.name.clone(), problem });
        }
    }
    Ok(())
}

fn written_once(entries: &[Entry]) -> Result<(), CatalogueError> {
    for (at, one) in entries.iter().enumerate() {
        for other in entries.iter().skip(at + 1) {
            if let Some(part) = one.writes.iter().find(|part| other.writes.iter().any(|other| part.meets(other))) {
                return Err(CatalogueError::WrittenTwice {
                    one: one.derivation.name.clone(),
                    other: other.derivation.name.clone(),
                    part: match &part.of {
                        PartOf::Attribute(name) => format!("{}.{name}", part.entity),
                        PartOf::Existence | PartOf::AllBut(_) => part.entity.clone(),
                    },
                });
            }
        }
    }
    Ok(())
}

/// Puts each entry after those whose writes it reads, and otherwise keeps the order.
fn sorted(mut waiting: Vec<Entry>) -> Result<Vec<Entry>, CatalogueError> {
    let mut sorted = Vec::new();
    while !waiting.is_empty() {
        let free = |entry: &Entry| {
            let recurs_to = |other: &Entry| {
                other.derivation.name == entry.derivation.name
                    && entry.derivation.kind.refresh().is_some_and(Refresh::recurs)
            };
            let builds_on =
                |other: &Entry| other.writes.iter().any(|part| entry.reads.iter().any(|read| read.meets(part)));
            !waiting.iter().any(|other| builds_on(other) && !recurs_to(other))
        };
        let Some(at) = waiting.iter().position(free) else {
            let names = waiting.into_iter().map(|entry| entry.derivation.name).collect();
            return Err(CatalogueError::Circle { names });
        };
        sorted.push(waiting.remove(at));
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        fixture::{self, copy, count, derivations, display, ground, mirror, named, schema},
        kinds::{
            Link, Predicate,
            copy::{Copy, Found},
            count::Count,
            display::{Display, Shows},
            mirror::Mirror,
        },
    };

    fn check(schema: &Schema, derivations: Vec<Derivation>, wanted: &Expect) {
        wanted.assert_eq(&Catalogue::new(schema, derivations).unwrap_err().to_string());
    }

    fn count_only_if(attribute: &str) -> Count {
        let predicate = Predicate::Is { attribute: attribute.into(), text: "published".into() };
        Count { predicate, ..count("Post", "User", &[("UserId", "AuthorId")]) }
    }

    fn check_one(derivation: Derivation, wanted: &Expect) {
        check(&schema(), vec![derivation], wanted);
    }

    #[test]
    fn a_derivation_comes_after_those_that_it_builds_on() {
        let mut backwards = derivations();
        backwards.reverse();
        let catalogue = Catalogue::new(&schema(), backwards).unwrap();
        let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
        let at = |name: &str| names.iter().position(|other| *other == name);
        for (first, second) in [("follower-count", "follower-shown"), ("post-detail", "post-author")] {
            assert!(at(first) < at(second), "{names:?}");
        }
    }

    #[test]
    fn a_circle_is_refused() {
        let name = |to: &str, target: &str, from: &str| {
            let copy = copy(target, ("UserId", to), None, (target, "UserId"));
            Copy { source: from.into(), attributes: vec![("Name".into(), to.into())], ..copy }
        };
        let entity = |name: &str| {
            let sk = if name == "A" { "A" } else { "B" };
            ground(name, ("USER#{UserId}", sk), &[], &["Name"])
        };
        let schema = Schema::new(fixture::schema().layout, [entity("A"), entity("B")]);
        let both = vec![named("a", name("Name", "A", "B")), named("b", name("Name", "B", "A"))];
        check(&schema, both, &expect!["derivations build on each other in a circle: a, b"]);
    }

    #[test]
    fn a_kind_that_recurs_over_its_own_target_is_no_circle_and_any_other_is() {
        let path = || named("path", fixture::files::folder_path());
        assert!(Catalogue::new(&schema(), vec![path()]).is_ok());
        let own_name = |to: &str| Copy {
            source: "Folder".into(),
            target: "Folder".into(),
            link: Link::of(&[("FolderId", "ParentId")]),
            attributes: vec![("Path".into(), to.into())],
            found: fixture::files::folder_path().found,
        };
        check_one(named("a", own_name("Path")), &expect!["derivations build on each other in a circle: a"]);
        // Two that build on each other, of which one recurs.
        let schema = Schema::new(
            fixture::schema().layout,
            fixture::files::entities().map(|mut entity| {
                entity.derived_attributes.push("Name".into());
                entity
            }),
        );
        check(
            &schema,
            vec![path(), named("b", own_name("Name"))],
            &expect!["derivations build on each other in a circle: path, b"],
        );
    }

    #[test]
    fn one_attribute_has_one_writer() {
        let one = display("follower-count", "User", "FollowerCount");
        let other = display("post-count", "User", "FollowerCount");
        check(
            &schema(),
            vec![named("one", one), named("other", other)],
            &expect!["derivations one and other both write User.FollowerCount"],
        );
    }

    #[test]
    fn one_mirror_has_one_source() {
        let both = [("FolloweeId", "FolloweeId"), ("FollowerId", "FollowerId")];
        let one = || mirror("Follow", "Follower", &both);
        check(
            &schema(),
            vec![named("one", one()), named("other", one())],
            &expect!["derivations one and other both write Follower"],
        );
    }

    #[test]
    fn one_name_is_one_derivations() {
        let one = || count("View", "User", &[("UserId", "UserId")]);
        check(&schema(), vec![named("one", one()), named("one", one())], &expect!["two derivations are called one"]);
    }

    #[test]
    fn a_name_that_the_schema_does_not_know_is_refused() {
        check_one(
            named("a", count("Viev", "User", &[("UserId", "UserId")])),
            &expect!["derivation a: there is no entity Viev"],
        );
        check_one(
            named("a", count("View", "User", &[("UserId", "UserID")])),
            &expect!["derivation a: View has no field or attribute UserID"],
        );
        check_one(
            named("a", count("View", "User", &[("Id", "UserId")])),
            &expect!["derivation a: nothing gives UserId of the key of User"],
        );
        check_one(named("a", count_only_if("Sttaus")), &expect!["derivation a: Post has no attribute Sttaus"]);
        check_one(
            named("a", display("no-count", "User", "PostCount")),
            &expect!["derivation a: there is no count no-count"],
        );
        let sum = Display { shows: Shows::Sum, ..display("post-count", "User", "PostCount") };
        check(
            &schema(),
            vec![named("post-count", count("Post", "User", &[("UserId", "AuthorId")])), named("a", sum)],
            &expect!["derivation a: there is no sum of post-count"],
        );
        check_one(
            named("a", display("a", "User", "Followers")),
            &expect!["derivation a: User does not declare Followers as derived"],
        );
        let typo = Mirror { except: vec!["Contents".into()], ..mirror("Post", "PostDetail", &[("PostId", "PostId")]) };
        check_one(named("a", typo), &expect!["derivation a: Post has no attribute Contents"]);
        let right = || copy("Comment", ("UserId", "UserName"), Some("GSI1"), ("Comment", "UserId"));
        let typo = Copy { attributes: vec![("Nmae".into(), "UserName".into())], ..right() };
        check_one(named("a", typo), &expect!["derivation a: User has no attribute Nmae"]);
        let typo = Found { by: Link::of(&[("UserId", "Id")]), ..right().found };
        check_one(
            named("a", Copy { found: typo, ..right() }),
            &expect!["derivation a: the key of User has no Id, by which the targets would be found"],
        );
        check_one(
            named("a", mirror("Follow", "User", &[("UserId", "FolloweeId")])),
            &expect!["derivation a: User is not declared as derived"],
        );
        check_one(
            named("a", mirror("View", "Follower", &[("FolloweeId", "UserId"), ("FollowerId", "UserId")])),
            &expect!["derivation a: Follower does not declare Claims as derived"],
        );
        check_one(
            named("a", copy("Comment", ("UserId", "Text"), Some("GSI1"), ("Comment", "UserId"))),
            &expect!["derivation a: Comment does not declare Text as derived"],
        );
        check_one(
            named("a", copy("Comment", ("UserId", "UserName"), Some("GSI2"), ("Comment", "UserId"))),
            &expect!["derivation a: Comment is not in the index GSI2"],
        );
        check_one(
            named("a", copy("Comment", ("UserId", "UserName"), None, ("Comment", "UserId"))),
            &expect!["derivation a: nothing gives PostId of the key by which the targets are found"],
        );
    }

    #[test]
    fn a_counter_has_1_to_100_shards() {
        let one = count("View", "User", &[("UserId", "UserId")]);
        check_one(
            named("a", Count { n_shards: 0, ..one.clone() }),
            &expect!["derivation a: 0 shards; a counter has 1 to 100"],
        );
        check_one(
            named("a", Count { n_shards: 101, ..one }),
            &expect!["derivation a: 101 shards; a counter has 1 to 100"],
        );
    }
}
