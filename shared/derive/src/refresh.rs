//! The refresh: how an item is compared with its definition.
//!
//! From a [look](Look), the item and its sources to a [verdict](Verdict): the item is correct, or one write corrects
//! it. The engine reads what a [`step`] requests until there is a verdict.
//!
//! Why it is correct under repeats and reordering: a verdict depends on what was read, never on the change that
//! requested the refresh. A write that was decided on a stale read creates a record when it lands; that record requests
//! another refresh of the item, which corrects it. Refreshing ends when nothing differs, and a refresh right after a
//! correct write finds no difference.
//!
//! Example: a Follow of Bob by Ann is inserted. Its request names the Follower item `USER#bob / FOLLOWER#ann`. Step one
//! requests the Follow itself, since the Follower is its mirror; step two requests Ann, whose name the Follower copies.
//! The item does not exist, so the verdict is to put it, whole. Its INSERT record requests one more refresh, which
//! finds no difference.

use std::collections::BTreeSet;

use keys::{
    entity::Definition,
    item::{Item, is_stores_own},
    key::Key,
    layout::Layout,
    value::{is_zero, same},
};

use crate::{
    catalogue::Catalogue,
    guard::{Guard, Purpose},
    kind::{Computed, Refresh, RefreshTarget},
    position::DerivationAt,
    schema::Schema,
    sources::{Source, Sources},
    write::{Action, Table, UPDATE_ATTRIBUTES_MAX, Update, Wanted, Write},
};

/// An item to refresh, and the derivations that requested it. Refreshes of one item are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The item, which need not exist.
    pub item: Key,
    /// Its entity.
    pub entity: String,
    /// Positions in the catalogue of the derivations concerned.
    pub derivations: BTreeSet<DerivationAt>,
    /// Sources that changes named.
    pub named: BTreeSet<Key>,
}

/// The next step in refreshing an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// These must be read first.
    Read(Vec<Source>),
    /// It is decided.
    Decided(Verdict),
}

/// The outcome of refreshing an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The item is correct.
    InStep,
    /// A derived item should be under the key, but a foreign item is there, which stays. The position is that of the
    /// derivation that would create the derived item.
    Occupied(DerivationAt),
    /// This write corrects it.
    Write {
        /// The write.
        write: Box<Write>,
        /// Positions in the catalogue of the derivations whose part differed.
        derivations: Vec<DerivationAt>,
    },
}

impl Look {
    fn target<'a>(&'a self, definition: &'a Definition, item: Option<&'a Item>) -> RefreshTarget<'a> {
        RefreshTarget { key: &self.item, definition, item, named: &self.named, hour: None }
    }
}

/// Refreshes an item with the stored content `stored`, as far as `sources` are known.
///
/// Its parts are computed in the catalogue's order. Each builds on the correct values of those before it, so that one
/// write corrects the item.
#[must_use]
pub fn step(schema: &Schema, catalogue: &Catalogue, look: &Look, stored: Option<&Item>, sources: &Sources) -> Step {
    let Some(definition) = schema.entity(&look.entity) else { return Step::Decided(Verdict::InStep) };
    let parts: Vec<DerivationAt> = catalogue.refreshing(&look.entity).collect();
    let maker = parts.iter().copied().find(|&at| catalogue.refresh(at).is_some_and(Refresh::makes_item));

    let made = match maker.filter(|at| look.derivations.contains(at)).and_then(|at| catalogue.refresh(at)) {
        None => None,
        Some(mirror) => match unknown(mirror.sources(schema, &look.target(definition, stored)), sources) {
            missing if !missing.is_empty() => return Step::Read(missing),
            _ => match mirror.compute(schema, &look.target(definition, stored), sources) {
                Computed::Item(item) => Some(item),
                Computed::Attributes(_) => None,
            },
        },
    };
    let is_held = stored.is_some_and(|item| schema.image(&look.item, item).is_some_and(|image| image.is(&look.entity)));
    let (base, whole) = match (&made, stored) {
        (Some(None), Some(item)) if is_held => return Step::Decided(removal(&schema.layout, look, item, maker)),
        (Some(Some(item)), stored) if is_held || stored.is_none() => (item, stored.is_none()),
        (Some(Some(_)), Some(_)) => return Step::Decided(maker.map_or(Verdict::InStep, Verdict::Occupied)),
        (None, Some(item)) if is_held => (item, false),
        (None | Some(_), _) => return Step::Decided(Verdict::InStep),
    };

    let mut difference = ItemDifference::default();
    if let (Some(at), Some(Some(item))) = (maker, &made) {
        difference.add(at, stored, owned(definition, item, stored));
    }
    let mut becoming = base.clone();
    if let (Some(_), Some(stored)) = (&made, stored) {
        let others = stored.iter().filter(|(name, _)| definition.derives(name) && !base.contains_key(name));
        becoming.extend(others.map(|(name, value)| (name.to_owned(), value.clone())));
    }
    let mut missing = BTreeSet::new();
    for at in parts.into_iter().filter(|at| Some(*at) != maker) {
        let concerned =
            whole || look.derivations.contains(&at) || catalogue.reads_any(at, &look.entity, difference.names());
        let Some(part) = catalogue.refresh(at).filter(|_| concerned) else { continue };
        let hour = if part.reads_clock() { sources.hour() } else { None };
        let target = RefreshTarget { hour, ..look.target(definition, Some(&becoming)) };
        let unknown = unknown(part.sources(schema, &target), sources);
        if !unknown.is_empty() {
            missing.extend(unknown);
        } else if let Computed::Attributes(wanted) = part.compute(schema, &target, sources) {
            for wanted in &wanted {
                wanted.apply(&mut becoming, stored);
            }
            difference.add(at, stored, wanted);
        }
    }
    if !missing.is_empty() {
        return Step::Read(missing.into_iter().collect());
    }
    // If another item took the key meanwhile, it is not changed.
    let purpose = if made.is_some() { Purpose::MirrorType } else { Purpose::Update };
    // A mirror belongs to Ripple, so the whole content of a mirror with many differing attributes is known and put.
    let put = whole || (is_held && matches!(made, Some(Some(_))) && difference.is_large());
    let guard = Guard::same_type(purpose, &schema.layout, stored);
    Step::Decided(difference.verdict(look, put.then_some(becoming), guard))
}

/// What decides the refresh of an item with the stored content `stored`, as far as these sources are known.
#[must_use]
pub fn decided_by(
    schema: &Schema,
    catalogue: &Catalogue,
    look: &Look,
    stored: Option<&Item>,
    sources: &Sources,
) -> BTreeSet<Source> {
    // A step requests the sources that it does not know.
    let (mut asked, mut own, mut is_known) = (BTreeSet::new(), Sources::default(), true);
    while is_known && let Step::Read(more) = step(schema, catalogue, look, stored, &own) {
        is_known = more.iter().all(|source| own.add_known(schema, source, sources));
        asked.extend(more);
    }
    asked
}

fn unknown(wanted: Vec<Source>, sources: &Sources) -> Vec<Source> {
    let wanted: BTreeSet<Source> = wanted.into_iter().filter(|source| !sources.knows(source)).collect();
    wanted.into_iter().collect()
}

/// A mirror without an existing source is deleted, unless another item took its key meanwhile. If a source appeared
/// meanwhile, the deletion's own record requests a refresh with the claims of the mirror, and the mirror is recreated.
fn removal(layout: &Layout, look: &Look, stored: &Item, maker: Option<DerivationAt>) -> Verdict {
    let guard = Some(Guard::same_type(Purpose::MirrorType, layout, Some(stored)));
    Verdict::Write {
        write: Box::new(Write { table: Table::Main, key: look.item.clone(), action: Action::Delete, guard }),
        derivations: maker.into_iter().collect(),
    }
}

/// The attributes that a mirror should have, besides those of other derivations: exactly the computed ones.
#[must_use]
pub fn owned(definition: &Definition, item: &Item, stored: Option<&Item>) -> Vec<Wanted> {
    let is_ours = |name: &&str| !item.contains_key(name) && !definition.derives(name) && !is_stores_own(name);
    let gone = stored.into_iter().flat_map(Item::keys).filter(is_ours);
    let gone = gone.map(|name| Wanted { name: name.to_owned(), value: None, zero_is_absent: false });
    let there = item.iter().map(|(name, value)| Wanted {
        name: name.to_owned(),
        value: Some(value.clone()),
        zero_is_absent: false,
    });
    gone.chain(there).collect()
}

// ---- difference ----

/// The attributes that differ from the stored ones.
#[derive(Default)]
struct ItemDifference {
    /// The attributes to set.
    set: Item,
    remove: BTreeSet<String>,
    /// Positions in the catalogue of the derivations whose part differs.
    derivations: Vec<DerivationAt>,
}

impl ItemDifference {
    /// Adds the attributes that a derivation wants and the item does not have.
    fn add(&mut self, derivation: DerivationAt, stored: Option<&Item>, wanted: Vec<Wanted>) {
        let mut differs = false;
        for wanted in wanted {
            if wanted.is_held_by(stored) {
                continue;
            }
            differs = true;
            match wanted.value {
                Some(value) => drop(self.set.insert(wanted.name, value)),
                None => drop(self.remove.insert(wanted.name)),
            }
        }
        if differs {
            self.derivations.push(derivation);
        }
    }

    /// Names of the attributes that differ.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.set.keys().chain(self.remove.iter().map(String::as_str))
    }

    /// True if more attributes differ than one update can change.
    fn is_large(&self) -> bool {
        self.set.len() + self.remove.len() > UPDATE_ATTRIBUTES_MAX
    }

    /// The write that corrects the item, if anything differs; `whole` is the whole item if it is to be put.
    ///
    /// If there is too much for one update, a part is written. The record of that write requests a refresh, which
    /// writes more.
    fn verdict(self, look: &Look, whole: Option<Item>, guard: Guard) -> Verdict {
        if self.derivations.is_empty() {
            return Verdict::InStep;
        }
        let action = whole.map_or_else(
            || {
                let set: Item = self.set.into_iter().take(UPDATE_ATTRIBUTES_MAX).collect();
                let remove = self.remove.into_iter().take(UPDATE_ATTRIBUTES_MAX - set.len()).collect();
                Action::Update(Update { set, remove, ..Update::default() })
            },
            Action::Put,
        );
        let write = Write { table: Table::Main, key: look.item.clone(), action, guard: Some(guard) };
        Verdict::Write { write: Box::new(write), derivations: self.derivations }
    }
}

impl Wanted {
    /// True if the item has the attribute as wanted.
    #[must_use]
    pub fn is_held_by(&self, held: Option<&Item>) -> bool {
        let stored = held.and_then(|item| item.get(&self.name));
        same(stored, self.value.as_ref()) || (self.zero_is_absent && stored.is_none_or(is_zero))
    }

    /// Sets the attribute as wanted, or as stored if that is correct: dependent parts build on the value that will be
    /// stored.
    pub fn apply(&self, item: &mut Item, held: Option<&Item>) {
        let stored = held.and_then(|item| item.get(&self.name));
        let value = if self.is_held_by(held) { stored } else { self.value.as_ref() };
        match value {
            Some(value) => drop(item.insert(self.name.clone(), value.clone())),
            None => drop(item.remove(&self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::{
        derived::Items,
        fixture::{self, catalogue, item, key_of, schema, short},
        guard::Ask,
    };

    /// Refreshes an item of a table for all derivations that write into its entity, and returns the verdict.
    fn verdict(table: &[&str], entity: &str, key: &str, named: &[&str]) -> Verdict {
        let items = table.iter().map(|text| item(text)).map(|item| (key_of(&item), item)).collect();
        let named = named.iter().map(|key| key_of(&item(key))).collect();
        decided(&items, entity, &key_of(&item(key)), &named)
    }

    fn decided(items: &Items, entity: &str, key: &Key, named: &BTreeSet<Key>) -> Verdict {
        let schema = schema();
        let catalogue = catalogue(&schema);
        let derivations = catalogue.refreshing(entity).collect();
        let look = Look { item: key.clone(), entity: entity.to_owned(), derivations, named: named.clone() };
        fixture::decided(&schema, &catalogue, &look, items)
    }

    fn check(table: &[&str], entity: &str, key: &str, named: &[&str], wanted: &Expect) {
        wanted.assert_eq(&text(&verdict(table, entity, key, named)));
    }

    fn text(verdict: &Verdict) -> String {
        let catalogue = catalogue(&schema());
        let (write, derivations) = match verdict {
            Verdict::InStep => return "in step\n".to_owned(),
            Verdict::Occupied(at) => return format!("waits for its key, for {}\n", catalogue.name(*at)),
            Verdict::Write { write, derivations } => (write, derivations),
        };
        let mut lines = match (&write.action, &write.guard) {
            (Action::Put(_), Some(guard)) if *guard == Guard::absent(Purpose::MirrorType) => {
                format!("put {} if there is nothing\n", write.key)
            }
            (Action::Update(_), Some(guard)) if guard.purpose == Purpose::Update => {
                format!("update {} if it exists\n", write.key)
            }
            (action @ (Action::Update(_) | Action::Delete), Some(guard)) if guard.purpose == Purpose::MirrorType => {
                let verb = if *action == Action::Delete { "delete" } else { "update" };
                let kind = match guard.asks.as_slice() {
                    [Ask::Present, Ask::Equal(_, kind)] => short(kind),
                    [Ask::Present, Ask::Lacks(_)] => "item without a type".to_owned(),
                    other => format!("{other:?}"),
                };
                format!("{verb} {} if it is a {kind}\n", write.key)
            }
            other => format!("{other:?}\n"),
        };
        let (set, remove) = match &write.action {
            Action::Put(item) => (item.clone(), BTreeSet::new()),
            Action::Update(Update { set, remove, .. }) => (set.clone(), remove.clone()),
            Action::Delete | Action::Check => (Item::new(), BTreeSet::new()),
        };
        let keys = ["PK", "SK"].map(str::to_owned);
        lines.extend(
            set.iter()
                .filter(|(n, _)| !keys.iter().any(|key| key == n))
                .map(|(n, value)| format!("  {n}={}\n", short(value))),
        );
        lines.extend(remove.iter().map(|name| format!("  without {name}\n")));
        let names: Vec<&str> = derivations.iter().map(|at| catalogue.name(*at)).collect();
        lines.extend(["  for ", names.join(", ").as_str(), "\n"]);
        lines
    }

    const ANN: &str = "USER#ann / PROFILE User Name=Ann";
    const BOB: &str = "USER#bob / PROFILE User Name=Bob";
    const FOLLOW: &str =
        "USER#ann / FOLLOWS#bob Follow CreatedAt=2024 FolloweeName=Bob GSI1PK=a GSI1SK=b ExpiresAt=N:1";
    const FOLLOWER: &str = "USER#bob / FOLLOWER#ann Follower CreatedAt=2024 FollowerName=Ann";
    const POST: &str = "USER#ann / POST#2024#p Post Title=x Content=long Status=published";
    const NEWER: &str = "USER#bob / POST#2025#p Post Title=y Status=draft";
    const COMMENTS: &str = "POST#p / METADATA#COUNT#comment-count#00 Counter Value=N:2";

    #[test]
    fn a_mirror_that_is_not_there_is_made_whole_with_copies_and_displays() {
        let table = [ANN, POST, COMMENTS];
        check(
            &table,
            "PostDetail",
            "POST#p / METADATA",
            &["USER#ann / POST#2024#p"],
            &expect![[r#"
                put POST#p / METADATA if there is nothing
                  AuthorId=ann
                  AuthorName=Ann
                  Claims=CLAIMS:USER#ann/POST#2024#p
                  CommentCount=N:2
                  CreatedAt=2024
                  EntityType=PostDetail
                  GSI2PK=POSTS
                  GSI2SK=2024#p
                  Status=published
                  Title=x
                  for post-detail, comment-shown, post-author
            "#]],
        );
    }

    #[test]
    fn a_mirror_in_step_is_left_alone() {
        check(&[ANN, FOLLOW, FOLLOWER], "Follower", FOLLOWER, &[], &expect!["in step\n"]);
    }

    #[test]
    fn a_partial_update_asks_that_the_item_exists() {
        let old = "USER#bob / FOLLOWER#ann Follower CreatedAt=2023 FollowerName=Ann";
        check(
            &[ANN, FOLLOW, old],
            "Follower",
            old,
            &[],
            &expect![[r#"
                update USER#bob / FOLLOWER#ann if it is a Follower
                  CreatedAt=2024
                  for follower-mirror
            "#]],
        );
        let comment = "POST#p / COMMENT#c Comment UserId=ann UserName=Old";
        check(
            &[ANN, comment],
            "Comment",
            comment,
            &[],
            &expect![[r#"
            update POST#p / COMMENT#c if it exists
              UserName=Ann
              for comment-author
        "#]],
        );
        check(&[ANN], "Comment", comment, &[], &expect!["in step\n"]);
    }

    #[test]
    fn an_attribute_that_only_the_mirror_holds_is_removed() {
        let more = format!("{FOLLOWER} Note=x ExpiresAt=N:1 GSI1PK=a GSI1SK=b");
        check(
            &[ANN, FOLLOW, &more],
            "Follower",
            FOLLOWER,
            &[],
            &expect![[r#"
                update USER#bob / FOLLOWER#ann if it is a Follower
                  without ExpiresAt
                  without GSI1PK
                  without GSI1SK
                  without Note
                  for follower-mirror
            "#]],
        );
    }

    #[test]
    fn table_keys_index_keys_type_derived_names_and_time_to_live_are_not_mirrored() {
        check(
            &[FOLLOW],
            "Follower",
            FOLLOWER,
            &[],
            &expect![[r#"
                put USER#bob / FOLLOWER#ann if there is nothing
                  CreatedAt=2024
                  EntityType=Follower
                  for follower-mirror
            "#]],
        );
    }

    #[test]
    fn a_mirror_of_which_more_changes_than_an_update_can_say_is_put_whole() {
        let many = |value: usize| {
            let own: Vec<String> = (0..400).map(|number| format!(" Own{number}=N:{value}")).collect();
            own.concat()
        };
        let (source, mirror) = (format!("{FOLLOW}{}", many(1)), format!("{FOLLOWER}{}", many(2)));
        let Verdict::Write { write, .. } = verdict(&[ANN, BOB, &source, &mirror], "Follower", FOLLOWER, &[]) else {
            panic!("it differs");
        };
        let Action::Put(put) = &write.action else { panic!("{write:?}") };
        assert_eq!(put, &item(&format!("{FOLLOWER}{}", many(1))));
        let stored = item(&mirror);
        assert_eq!(write.guard, Some(Guard::same_type(Purpose::MirrorType, &schema().layout, Some(&stored))));
    }

    #[test]
    fn an_update_that_is_too_much_for_one_is_written_in_parts() {
        let mut difference = ItemDifference::default();
        let wanted = |number: usize| Wanted {
            name: format!("Copied{number}"),
            value: number.is_multiple_of(2).then(|| AttributeValue::N(number.to_string())),
            zero_is_absent: false,
        };
        let mut stored: Item = (0..600).map(|number| (format!("Copied{number}"), AttributeValue::Bool(true))).collect();
        let look = Look {
            item: Key::new("P", "S"),
            entity: String::new(),
            derivations: BTreeSet::new(),
            named: BTreeSet::new(),
        };
        for n_parts in 0.. {
            difference.add(DerivationAt(0), Some(&stored), (0..600).map(wanted).collect());
            let verdict = std::mem::take(&mut difference).verdict(&look, None, Guard::present(Purpose::Update));
            let Verdict::Write { write, .. } = verdict else {
                assert_eq!((n_parts, stored.keys().count()), (3, 300));
                return;
            };
            let Action::Update(Update { set, remove, .. }) = write.action else { panic!("{write:?}") };
            assert!(set.keys().count() + remove.len() <= UPDATE_ATTRIBUTES_MAX);
            stored.extend(set);
            stored.retain(|name, _| !remove.contains(name));
        }
    }

    #[test]
    fn the_greatest_living_claim_wins() {
        let detail = "POST#p / METADATA PostDetail Title=x Status=published AuthorId=ann CreatedAt=2024 AuthorName=Ann \
                      GSI2PK=POSTS GSI2SK=2024#p Claims=CLAIMS:USER#ann/POST#2024#p,USER#dead/POST#2020#p";
        let newer = ["USER#bob / POST#2025#p"];
        check(
            &[ANN, BOB, POST, NEWER, detail],
            "PostDetail",
            detail,
            &newer,
            &expect![[r#"
                update POST#p / METADATA if it is a PostDetail
                  AuthorId=bob
                  AuthorName=Bob
                  Claims=CLAIMS:USER#ann/POST#2024#p,USER#bob/POST#2025#p
                  CreatedAt=2025
                  Status=draft
                  Title=y
                  without GSI2PK
                  without GSI2SK
                  for post-detail, post-author
            "#]],
        );
        check(
            &[ANN, BOB, POST, detail],
            "PostDetail",
            detail,
            &newer,
            &expect![[r#"
                update POST#p / METADATA if it is a PostDetail
                  Claims=CLAIMS:USER#ann/POST#2024#p
                  for post-detail
            "#]],
        );
    }

    #[test]
    fn a_mirror_without_a_living_source_goes_while_it_holds_the_list_that_was_read() {
        let detail = "POST#p / METADATA PostDetail Title=x Claims=CLAIMS:USER#ann/POST#2024#p";
        check(
            &[ANN, detail],
            "PostDetail",
            detail,
            &[],
            &expect![[r#"
                delete POST#p / METADATA if it is a PostDetail
                  for post-detail
            "#]],
        );
        check(
            &[ANN, FOLLOWER],
            "Follower",
            FOLLOWER,
            &[],
            &expect![[r#"
                delete USER#bob / FOLLOWER#ann if it is a Follower
                  for follower-mirror
            "#]],
        );
        check(&[ANN], "Follower", FOLLOWER, &[], &expect!["in step\n"]);
    }

    #[test]
    fn a_copy_is_whatever_the_source_holds() {
        let comment = "POST#p / COMMENT#c Comment UserId=ann UserName=Ann";
        check(
            &["USER#ann / PROFILE User Name=SS:b,a", comment],
            "Comment",
            comment,
            &[],
            &expect![[r#"
            update POST#p / COMMENT#c if it exists
              UserName=SS:b,a
              for comment-author
        "#]],
        );
        check(
            &["USER#ann / PROFILE User", comment],
            "Comment",
            comment,
            &[],
            &expect![[r#"
            update POST#p / COMMENT#c if it exists
              without UserName
              for comment-author
        "#]],
        );
        check(
            &["USER#ann / PROFILE Gadget Name=Ann", comment],
            "Comment",
            comment,
            &[],
            &expect![[r#"
            update POST#p / COMMENT#c if it exists
              without UserName
              for comment-author
        "#]],
        );
    }

    #[test]
    fn a_display_adds_up_the_shards_that_can_be_read() {
        let shard =
            |shard: &str, value: &str| format!("USER#ann / PROFILE#COUNT#follower-count#{shard} Counter Value={value}");
        let (one, two, other) = (shard("00", "N:3"), shard("07", "N:-1.0"), shard("05", "many"));
        check(
            &[ANN, &one, &two, &other],
            "User",
            ANN,
            &[],
            &expect![[r#"
            update USER#ann / PROFILE if it exists
              FollowerCount=N:2
              for follower-shown
        "#]],
        );
    }

    /// A counter of Ann's followers that has reached zero.
    const NONE_LEFT: &str = "USER#ann / PROFILE#COUNT#follower-count#00 Counter Value=N:0";

    #[test]
    fn a_display_of_zero_and_none_are_both_right_where_no_counter_stands() {
        for stored in [ANN.to_owned(), format!("{ANN} FollowerCount=N:0.0")] {
            check(&[&stored], "User", &stored, &[], &expect!["in step\n"]);
        }
    }

    #[test]
    fn zero_is_written_where_a_counter_stands_or_the_display_is_something_else() {
        let zero = expect![[r#"
            update USER#ann / PROFILE if it exists
              FollowerCount=N:0
              for follower-shown
        "#]];
        check(&[ANN, NONE_LEFT], "User", ANN, &[], &zero);
        for other in ["N:1", "zero"] {
            let stored = format!("{ANN} FollowerCount={other}");
            check(&[&stored], "User", &stored, &[], &zero);
            check(&[&stored, NONE_LEFT], "User", &stored, &[], &zero);
        }
    }

    #[test]
    fn zero_is_removed_where_the_declaration_says_so() {
        let counter = "USER#ann / PROFILE#COUNT#post-count#00 Counter Value=N:0";
        let stored = format!("{ANN} PostCount=N:1");
        for sources in [&[stored.as_str(), counter][..], &[stored.as_str()]] {
            check(
                sources,
                "User",
                &stored,
                &[],
                &expect![[r#"
                    update USER#ann / PROFILE if it exists
                      without PostCount
                      for post-shown
                "#]],
            );
        }
        // A zero that the application wrote stays.
        for stored in [ANN.to_owned(), format!("{ANN} PostCount=N:0")] {
            check(&[&stored, counter], "User", &stored, &[], &expect!["in step\n"]);
        }
    }

    #[test]
    fn a_counter_of_zero_may_go_and_come_back() {
        // The sweep deletes the counter after the display was written: nothing is left to write, with and without it.
        let stored = format!("{ANN} FollowerCount=N:0");
        for sources in [&[stored.as_str(), NONE_LEFT][..], &[stored.as_str()]] {
            check(sources, "User", &stored, &[], &expect!["in step\n"]);
        }
    }

    #[test]
    fn an_item_of_another_entity_is_left_alone_also_where_a_mirror_must_be_there() {
        let gadget = "USER#bob / FOLLOWER#ann Gadget Colour=red";
        check(&[ANN, gadget], "Follower", gadget, &[], &expect!["in step\n"]);
        check(&[ANN, gadget, FOLLOW], "Follower", gadget, &[], &expect!["waits for its key, for follower-mirror\n"]);
        check(
            &[ANN, "POST#p / COMMENT#c Gadget UserId=ann"],
            "Comment",
            "POST#p / COMMENT#c",
            &[],
            &expect!["in step\n"],
        );
    }

    /// The verdict of a refresh for one derivation.
    fn verdict_for(table: &[&str], derivation: &str, entity: &str, key: &str) -> Verdict {
        let schema = schema();
        let catalogue = catalogue(&schema);
        let at = catalogue.position(derivation).unwrap();
        let items = table.iter().map(|text| item(text)).map(|item| (key_of(&item), item)).collect();
        let (item, entity) = (key_of(&item(key)), entity.to_owned());
        let look = Look { item, entity, derivations: [at].into(), named: BTreeSet::new() };
        fixture::decided(&schema, &catalogue, &look, &items)
    }

    #[test]
    fn a_part_that_reads_what_another_changes_is_written_with_it() {
        let tea = "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4 GSI2PK=BESTSELLERS#drinks \
                   GSI2SK=999999999995#tea";
        let sold = "PRODUCT#tea / METADATA#COUNT#sale-count#00 Counter Value=N:5";
        expect![[r#"
            update PRODUCT#tea / METADATA if it exists
              GSI2SK=999999999994#tea
              UnitsSold=N:5
              for sale-shown, best-sellers
        "#]]
        .assert_eq(&text(&verdict_for(&[tea, sold], "sale-shown", "Product", tea)));
        let detail = "FILE#f / METADATA FileDetail Name=a FolderId=d Claims=CLAIMS:FOLDER#d/FILE#f Path=/docs/a";
        let table = ["FOLDER#d / METADATA Folder Path=/docs", "FOLDER#d / FILE#f File Name=b", detail];
        expect![[r#"
            update FILE#f / METADATA if it is a FileDetail
              Name=b
              Path=/docs/b
              for file-detail, file-path
        "#]]
        .assert_eq(&text(&verdict_for(&table, "file-detail", "FileDetail", detail)));
    }

    #[test]
    fn a_part_that_reads_nothing_of_what_another_changes_is_left_for_its_own_bell() {
        let tea = "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4 GSI2PK=stale";
        expect!["in step\n"].assert_eq(&text(&verdict_for(
            &[tea, "PRODUCT#tea / METADATA#COUNT#sale-count#00 Counter Value=N:4"],
            "sale-shown",
            "Product",
            tea,
        )));
    }

    /// Items of a table: a subset, and attributes in forms that DynamoDB would normalize.
    fn tables() -> impl Strategy<Value = Vec<String>> {
        let keys = [
            "USER#ann / PROFILE User",
            "USER#ann / FOLLOWS#bob Follow",
            "USER#bob / FOLLOWER#ann Follower",
            "USER#ann / POST#2024#p Post",
            "USER#bob / POST#2025#p Post",
            "POST#p / METADATA PostDetail Claims=CLAIMS:USER#ann/POST#2024#p,USER#dead/POST#2020#p",
            "POST#p / COMMENT#c Comment UserId=ann",
            "POST#p / METADATA#COUNT#comment-count#00 Counter",
            "USER#ann / PROFILE#COUNT#follower-count#03 Counter",
            "FOLDER#top / METADATA Folder",
            "FOLDER#d / METADATA Folder ParentId=top",
            "FOLDER#d / FILE#f File",
            "FILE#f / METADATA FileDetail Claims=CLAIMS:FOLDER#d/FILE#f",
            "PRODUCT#tea / METADATA Product",
            "PRODUCT#tea / METADATA#COUNT#sale-count#00 Counter",
        ];
        let item = |key: &'static str| attributes().prop_map(move |attributes| format!("{key}{attributes}"));
        let items = keys.map(|key| prop::option::weighted(0.8, item(key)));
        Vec::from(items).prop_map(|items| items.into_iter().flatten().collect())
    }

    fn attributes() -> impl Strategy<Value = String> {
        let values = ["a", "b", "/a", "published", "N:2.0", "N:0", "N:1e2", "N:0.5", "SS:b,a", "NS:2.0,1"];
        let names = ["Title", "Status", "Content", "Note", "ExpiresAt", "GSI2PK", "AuthorId", "AuthorName", "Name"];
        let paths = ["Path", "ParentId", "FolderId", "Category", "UnitsSold", "GSI2SK"];
        let more = ["CommentCount", "Claims", "UserId", "FollowerName", "CreatedAt", "Value", "FollowerCount"];
        let names = names.into_iter().chain(more).chain(paths).collect::<Vec<_>>();
        let attribute = (prop::sample::select(names), prop::sample::select(values.to_vec()));
        prop::collection::vec(attribute, 0..6).prop_map(|attributes| {
            attributes.iter().fold(String::new(), |text, (name, value)| format!("{text} {name}={value}"))
        })
    }

    /// The value as DynamoDB may return it: in another form.
    fn given_back(value: &AttributeValue) -> AttributeValue {
        let number = |text: &str| bigdecimal::BigDecimal::from_str(text).unwrap().normalized().to_plain_string();
        match value {
            AttributeValue::N(text) => AttributeValue::N(number(text)),
            AttributeValue::Ns(set) => AttributeValue::Ns(set.iter().rev().map(|text| number(text)).collect()),
            AttributeValue::Ss(set) => AttributeValue::Ss(set.iter().rev().cloned().collect()),
            other => other.clone(),
        }
    }

    fn write(items: &mut Items, write: &Write) {
        let written = fixture::written(items.get(&write.key), &write.action);
        items.remove(&write.key);
        let written = written.map(|item| item.iter().map(|(name, value)| (name, given_back(value))).collect());
        items.extend(written.map(|item: Item| (write.key.clone(), item)));
    }

    proptest! {
        #[test]
        fn an_item_that_was_written_is_in_step(table in tables()) {
            let mut items: Items = table.iter().map(|text| item(text)).map(|item| (key_of(&item), item)).collect();
            let sources: BTreeSet<Key> = items.keys().cloned().collect();
            let looks = [
                ("Follower", "USER#bob / FOLLOWER#ann"),
                ("PostDetail", "POST#p / METADATA"),
                ("Follow", "USER#ann / FOLLOWS#bob"),
                ("Comment", "POST#p / COMMENT#c"),
                ("User", "USER#ann / PROFILE"),
                ("Folder", "FOLDER#top / METADATA"),
                ("Folder", "FOLDER#d / METADATA"),
                ("FileDetail", "FILE#f / METADATA"),
                ("Product", "PRODUCT#tea / METADATA"),
            ];
            for (entity, key) in looks {
                let key = key_of(&item(key));
                if let Verdict::Write { write: decided, .. } = decided(&items, entity, &key, &sources) {
                    write(&mut items, &decided);
                }
                prop_assert_eq!(decided(&items, entity, &key, &sources), Verdict::InStep);
                prop_assert_eq!(decided(&items, entity, &key, &BTreeSet::new()), Verdict::InStep, "without a name");
            }
        }
    }
}
