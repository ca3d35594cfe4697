//! Checks of derivations.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::CatalogueError,
    derivation::Derivation,
    kind::Refresh,
    part::{Part, PartOf},
};
use keys::size::item_bytes;
use store::{Units, write_units};

use crate::{
    Design, price,
    review::{Check, ReviewFinding},
};

pub(super) fn findings(design: &Design) -> Vec<ReviewFinding> {
    let mut found = projected_rewrites(design);
    found.extend(displays_on_large_items(design));
    found.extend(endless(design));
    found.extend(not_derived(design));
    found
}

/// Items, attributes and index keys that are declared as derived, but that no derivation writes.
fn not_derived(design: &Design) -> Vec<ReviewFinding> {
    let layout = &design.schema.layout;
    let mut writes: BTreeMap<&str, Vec<&Part>> = BTreeMap::new();
    for part in design.catalogue.positioned().flat_map(|(at, _)| design.catalogue.writes(at)) {
        writes.entry(&part.entity).or_default().push(part);
    }
    let mut found = Vec::new();
    let mut add = |subject: String, what: String, advice| {
        let why = "readers wait for what nothing writes";
        found.push(ReviewFinding { check: Check::NotDerived, subject, what, why, advice });
    };
    for entity in design.schema.entities().filter(|entity| !entity.is_own()) {
        let name = &entity.name;
        let ours = writes.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        if entity.derived && !ours.iter().any(|part| part.of == PartOf::Existence) {
            let what = "it is declared as derived, and no derivation makes such items".to_owned();
            add(
                name.clone(),
                what,
                "declare a derivation that makes them: a mirror, a roll-up, or a count with `creates = true`; or leave out `derived = true`",
            );
            continue;
        }
        let is_written = |attribute: &str| ours.iter().any(|part| part.of.holds(attribute));
        for attribute in &entity.derived_attributes {
            if !layout.is_key(attribute) && !is_written(attribute) {
                let what = "it is declared as derived, and no derivation writes it".to_owned();
                let advice = "declare the derivation that writes it, or leave it out of `derived-attributes`";
                add(format!("{name}.{attribute}"), what, advice);
            }
        }
        for index in entity.indexes.iter().filter(|index| index.derived) {
            if layout.index(&index.index).is_some_and(|names| !is_written(&names.pk)) {
                let what =
                    "the key is declared as derived, and no derivation of the kind `index-key` makes it".to_owned();
                let advice =
                    "declare that derivation, or let the application write the key and leave out `derived = true`";
                add(format!("{name} in {}", index.index), what, advice);
            }
        }
    }
    found
}

/// Derivations without a bound that read from one item what they write to another.
fn endless(design: &Design) -> impl Iterator<Item = ReviewFinding> {
    let is_endless = |derivation: &&Derivation| {
        derivation.kind.refresh().is_some_and(Refresh::recurs)
            && derivation.kind.outline(&design.schema).depth_max.is_none()
    };
    let finding = |derivation: &Derivation| ReviewFinding {
        check: Check::Cycle,
        subject: derivation.label().to_owned(),
        what: "it reads from one item what it writes to another, without a bound on the depth".to_owned(),
        why: "items that name each other in a loop are then written without end",
        advice: "give it a bound, beyond which it writes nothing",
    };
    design.catalogue.derivations().filter(is_endless).map(finding)
}

/// Translates a catalogue's error to a finding; `None` if the error is a mistake and not a question of design.
///
/// A catalogue with a cycle, or with two writers of one attribute, cannot be built, so a review of a catalogue never
/// finds these.
#[must_use]
pub fn refused(error: &CatalogueError) -> Option<ReviewFinding> {
    match error {
        CatalogueError::Circle { names } => Some(ReviewFinding {
            check: Check::Cycle,
            subject: names.join(", "),
            what: "these derivations build on each other in a circle".to_owned(),
            why: "each write triggers the next one, and nothing ever comes to rest; such a catalogue is refused when it is \
                  built",
            advice: "let one of them read what the application writes",
        }),
        CatalogueError::WrittenTwice { one, other, part } => Some(ReviewFinding {
            check: Check::TwoWriters,
            subject: part.clone(),
            what: format!("{one} and {other} both write it"),
            why: "each corrects the other, without end; such a catalogue is refused when it is built",
            advice: "give one of them an attribute of its own",
        }),
        CatalogueError::Declaration { .. } | CatalogueError::NameTwice { .. } => None,
    }
}

fn in_words(units: Units) -> String {
    format!("{units} write unit{}", if units > 1.0 { "s" } else { "" })
}

pub(super) struct DisplayedCount {
    /// Entity of the items with the attribute.
    pub(super) entity: String,
    /// The attribute that displays the count.
    pub(super) attribute: String,
    /// Name of the derivation.
    derivation: String,
}

pub(super) fn displays(design: &Design) -> impl Iterator<Item = DisplayedCount> {
    let shown = |derivation: &Derivation| {
        let writes = derivation.kind.reach(&design.schema).map(|reach| reach.writes).unwrap_or_default();
        let attribute = |part: derive::part::Part| match part.of {
            PartOf::Attribute(attribute) => {
                Some(DisplayedCount { entity: part.entity, attribute, derivation: derivation.label().to_owned() })
            }
            _ => None,
        };
        writes.into_iter().filter_map(attribute).collect::<Vec<_>>()
    };
    design.catalogue.derivations().filter(|derivation| derivation.kind.name() == "display").flat_map(shown)
}

fn displays_on_large_items(design: &Design) -> Vec<ReviewFinding> {
    let mut found = Vec::new();
    for DisplayedCount { entity, attribute, derivation } in displays(design) {
        let Some(bytes) = design.samples.item(&entity).map(item_bytes) else { continue };
        let units = write_units(bytes);
        if units > 1.0 {
            found.push(ReviewFinding {
                check: Check::DisplayOnLargeItem,
                subject: format!("{entity}.{attribute}"),
                what: format!(
                    "{derivation} writes a number into an item of {bytes} bytes: {} each time",
                    in_words(units)
                ),
                why: "a write costs the whole item, not the attribute, and a display is written with every change that \
                      it shows",
                advice: "move what is large to an item of its own, or read the counter instead of a display",
            });
        }
    }
    found
}

fn projected_rewrites(design: &Design) -> Vec<ReviewFinding> {
    let mut found = Vec::new();
    for derivation in design.catalogue.derivations() {
        let Some(refresh) = derivation.kind.refresh() else { continue };
        let Some(new) = design.samples.item(refresh.target()) else { continue };
        let old = price::rewritten(design, derivation, new);
        for index in &design.schema.layout.indexes {
            let units = price::changed_in(&design.schema.layout, index, Some(&old), Some(new)).unwrap_or_default();
            if units > 0.0 {
                let changed = new.iter().filter(|(name, value)| old.get(name) != Some(value));
                let is_key = |name: &str| [&index.pk, &index.sk].into_iter().any(|key| key == name);
                let changed = changed.filter(|(name, _)| !is_key(name));
                let written: BTreeSet<&str> =
                    changed.filter_map(|(name, _)| design.schema.layout.stored_in(index, name)).collect();
                let written: Vec<&str> = written.into_iter().collect();
                // The index exists for its keys.
                if written.is_empty() {
                    continue;
                }
                found.push(ReviewFinding {
                    check: Check::ProjectedRewrite,
                    subject: format!("{} in {}", derivation.label(), index.name),
                    what: format!(
                        "the index holds {} of {}, which it rewrites: {} more for each item",
                        written.join(", "),
                        refresh.target(),
                        in_words(units)
                    ),
                    why: "a change of what an index holds is a write of the index too, and of a key of it two; a fan-out \
                          pays that for every item",
                    advice: if index.projection.is_some() {
                        "leave it out of the projection, and read the items that are shown by BatchGetItem"
                    } else {
                        "declare a projection without it, in an index of another name if this one exists, and read the \
                         items that are shown by BatchGetItem"
                    },
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use derive::{
        catalogue::Catalogue,
        change::Sight,
        declaration::{FoundBy, Link},
        derivation::Derivation,
        derived::{Counts, Derived, Items},
        effect::Effect,
        kind::{Computed, Kind, RefreshTarget, Shape},
        kinds::copy::Copy,
        outline::Outline,
        part::{Part, Reach},
        schema::{Image, Schema, Unreadable},
        sources::{Source, Sources},
    };
    use expect_test::{Expect, expect};
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::review::tests::Reviewing;

    #[test]
    fn what_is_declared_as_derived_and_made_by_nothing_is_found() {
        let manifest = r##"
            [index.byBuyer]
            partition-key = "gpk"
            sort-key = "gsk"
            [entity.User]
            partition-key = "USER#{userId}"
            sort-key = "USER"
            derived-attributes = ["orders", "total"]
            [entity.User.index.byBuyer]
            partition-key = "USERS#{userId%8}"
            sort-key = "{orders:8}#{userId}"
            derived = true
            [entity.Order]
            partition-key = "USER#{userId}"
            sort-key = "ORDER#{orderId}"
            [entity.OrderById]
            partition-key = "ORDER#{orderId}"
            sort-key = "ORDER"
            derived = true
            derived-attributes = ["userName", "Claims"]
            [derivation.orders]
            kind = "count"
            from = "Order"
            into = "User.orders"
        "##;
        Reviewing::table(manifest).check(
            Check::NotDerived,
            &expect![[r#"
            OrderById: it is declared as derived, and no derivation makes such items
            User in byBuyer: the key is declared as derived, and no derivation of the kind `index-key` makes it
            User.total: it is declared as derived, and no derivation writes it"#]],
        );
        let made = format!(
            "{manifest}\n[derivation.place]\nkind = \"index-key\"\ninto = \"User\"\nindex = \"byBuyer\"\nnumber = \
             \"orders\"\n[derivation.by-id]\nkind = \"mirror\"\nfrom = \"Order\"\nto = \"OrderById\"\n"
        );
        Reviewing::table(&made).check(
            Check::NotDerived,
            &expect![[r#"
            OrderById.userName: it is declared as derived, and no derivation writes it
            User.total: it is declared as derived, and no derivation writes it"#]],
        );
    }

    /// Users and their comments, in an index with this projection.
    fn table(projection: &str) -> Reviewing {
        Reviewing::table(&format!(
            r#"
            [index.by-user]
            partition-key = "gpk"
            sort-key = "gsk"
            projection = ["type", {projection}]
            [entity.User]
            partition-key = "USER#{{userId}}"
            sort-key = "USER"
            attributes = ["name", "about"]
            derived-attributes = ["comments"]
            [entity.Comment]
            partition-key = "POST#{{postId}}"
            sort-key = "COMMENT#{{at}}"
            attributes = ["userId", "text"]
            derived-attributes = ["userName"]
            [entity.Comment.index.by-user]
            partition-key = "USER#{{userId}}"
            sort-key = "COMMENT#{{at}}"
            [derivation.comment-author]
            kind = "copy"
            from = "User"
            to = "Comment"
            attributes = {{ name = "userName" }}
            found = {{ index = "by-user" }}
            [derivation.comment-count]
            kind = "count"
            from = "Comment"
            into = "User.comments"
            "#
        ))
    }

    #[test]
    fn an_index_that_holds_what_is_rewritten_is_found_with_the_price() {
        table("\"text\", \"userName\"").check(Check::ProjectedRewrite, &expect!["comment-author in by-user: the index holds userName of Comment, which it rewrites: 1 write unit more for each item"]);
        table("\"text\"").check(Check::ProjectedRewrite, &expect![""]);
        // An index of a table with its own form projects all attributes, or lists them.
        let several = r#"
            [tables.User]
            partition-key = "id"
            [tables.Post]
            partition-key = "id"
            [tables.Post.index.byAuthor]
            partition-key = "authorId"
            [entity.User]
            table = "User"
            attributes = ["name"]
            [entity.Post]
            table = "Post"
            attributes = ["authorId"]
            derived-attributes = ["authorName"]
            [derivation.author]
            kind = "copy"
            from = "User"
            to = "Post"
            link = { id = "authorId" }
            attributes = { name = "authorName" }
            found = { index = "byAuthor" }
        "#;
        Reviewing::of(several).check(Check::ProjectedRewrite, &expect!["author in Post.byAuthor: the index holds authorName of Post, which it rewrites: 1 write unit more for each item"]);
        let some = several.replace(
            "\"authorId\"\n            [entity.User]",
            "\"authorId\"\n            projection = []\n            [entity.User]",
        );
        assert_ne!(some, several);
        Reviewing::of(&some).check(Check::ProjectedRewrite, &expect![""]);
    }

    #[test]
    fn a_display_on_an_item_of_more_than_a_write_unit_is_found() {
        let check = |bytes: usize, wanted: &Expect| {
            let about = ("about", AttributeValue::S("x".repeat(bytes)));
            table("").sample("User", ("USER#a", "USER"), &[about]).check(Check::DisplayOnLargeItem, wanted);
        };
        check(
            2_000,
            &expect![
                "User.comments: comment-count-display writes a number into an item of 2027 bytes: 2 write units each time"
            ],
        );
        check(900, &expect![""]);
    }

    /// A kind that reads from one item what it writes to another.
    #[derive(Debug)]
    struct Heir {
        depth_max: Option<usize>,
    }

    impl Kind for Heir {
        fn name(&self) -> &'static str {
            "heir"
        }

        fn shape(&self) -> Shape<'_> {
            Shape::Attributes(self)
        }

        fn reach(&self, _schema: &Schema) -> Result<Reach, String> {
            let title = vec![Part::attribute("User", "comments")];
            Ok(Reach { reads: title.clone(), writes: title })
        }

        fn outline(&self, _schema: &Schema) -> Outline {
            Outline { depth_max: self.depth_max, ..Outline::from("User") }
        }

        fn entities(&self) -> Vec<&str> {
            vec!["User"]
        }

        fn plan(&self, _schema: &Schema, _sight: &Sight<'_>) -> Vec<Effect> {
            Vec::new()
        }

        fn unreadable(&self, _schema: &Schema, _image: &Image<'_>) -> Option<Unreadable> {
            None
        }

        fn derive(&self, _name: &str, _schema: &Schema, _items: &Items, _counts: &Counts) -> Vec<Derived> {
            Vec::new()
        }
    }

    impl Refresh for Heir {
        fn target(&self) -> &'static str {
            "User"
        }

        fn recurs(&self) -> bool {
            true
        }

        fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
            Vec::new()
        }

        fn compute(&self, _schema: &Schema, _target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
            Computed::Attributes(Vec::new())
        }
    }

    #[test]
    fn a_derivation_that_recurs_without_a_bound_is_found() {
        let check = |depth_max, wanted: &Expect| {
            table("").derives("title-heir", Heir { depth_max }).check(Check::Cycle, wanted);
        };
        check(
            None,
            &expect!["title-heir: it reads from one item what it writes to another, without a bound on the depth"],
        );
        check(Some(64), &expect![""]);
    }

    #[test]
    fn an_index_that_is_ordered_by_a_derived_number_is_no_finding() {
        let manifest = r##"
            [index.ranking]
            partition-key = "gpk"
            sort-key = "gsk"
            projection = ["type"]
            [entity.User]
            partition-key = "USER#{userId}"
            sort-key = "USER"
            derived-attributes = ["orders"]
            [entity.User.index.ranking]
            partition-key = "USERS#{userId%8}"
            sort-key = "{orders:8}#{userId}"
            derived = true
            [entity.Order]
            partition-key = "USER#{userId}"
            sort-key = "ORDER#{orderId}"
            [derivation.orders]
            kind = "count"
            from = "Order"
            into = "User.orders"
            [derivation.place]
            kind = "index-key"
            into = "User"
            index = "ranking"
            number = "orders"
        "##;
        Reviewing::table(manifest).check(Check::ProjectedRewrite, &expect![""]);
    }

    fn check_refused(derivations: &[(&str, Copy)], wanted: &Expect) {
        let schema = two_names();
        let derivations = derivations.iter().map(|(name, copy)| Derivation::new(name, name, copy.clone())).collect();
        let found = match Catalogue::new(&schema, derivations) {
            Ok(_) => "nothing".to_owned(),
            Err(error) => refused(&error).map_or("no finding".to_owned(), |finding| finding.to_string()),
        };
        wanted.assert_eq(&found);
    }

    /// Two entities whose names are derived from each other.
    fn two_names() -> Schema {
        let manifest = r#"
            [table]
            partition-key = "pk"
            sort-key = "sk"
            type = "type"
            [entity.One]
            partition-key = "X#{id}"
            sort-key = "ONE"
            attributes = ["title"]
            derived-attributes = ["name"]
            [entity.Other]
            partition-key = "X#{id}"
            sort-key = "OTHER"
            derived-attributes = ["name"]
        "#;
        manifest::load(manifest).unwrap().0
    }

    fn copied((source, from): (&str, &str), (target, to): (&str, &str)) -> Copy {
        Copy {
            source: source.to_owned(),
            target: target.to_owned(),
            link: Link::of(&[("id", "id")]),
            condition: derive::condition::Condition::Always,
            attributes: vec![(from.into(), to.to_owned())],
            found: FoundBy { via: target.to_owned(), index: None, by: Link::of(&[("id", "id")]) },
        }
    }

    #[test]
    fn a_circle_and_two_writers_are_refused_when_the_catalogue_is_built() {
        let there = ("there", copied(("One", "name"), ("Other", "name")));
        let back = ("back", copied(("Other", "name"), ("One", "name")));
        let again = ("again", copied(("One", "title"), ("Other", "name")));
        check_refused(
            &[there.clone(), back],
            &expect!["cycle there, back: these derivations build on each other in a circle"],
        );
        check_refused(
            &[there.clone(), again.clone()],
            &expect!["two-writers Other.name: there and again both write it"],
        );
        check_refused(&[there.clone(), there], &expect!["no finding"]);
        check_refused(&[again], &expect!["nothing"]);
    }
}
