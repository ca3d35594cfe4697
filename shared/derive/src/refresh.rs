//! The refresh: how an item is looked at.
//!
//! From a [look](Look), what the item holds and what its sources hold, to a [verdict](Verdict): it is in step, or one
//! write brings it there. The engine fetches what a [`step`] asks for until the verdict is there.
//!
//! Why it is right under repeats and reordering: a verdict depends on what was read, never on the change that rang the
//! bell. A write that was decided on something old makes a record when it lands; that record rings the item's own
//! bell, and looking again corrects it. Looking ends when nothing differs, and computing after writing differs from
//! nothing.
//!
//! Example: a Follow of Bob by Ann is inserted. Its bell names the Follower item `USER#bob / FOLLOWER#ann`. Step one
//! asks for the Follow itself, since the Follower is its mirror; step two for Ann, whose name the Follower carries.
//! The item is not there, so the verdict is to put it, whole. Its INSERT record rings once more; now nothing differs.

mod difference;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use difference::Difference;

use crate::{
    catalogue::Catalogue,
    derivation::Items,
    effect::Find,
    flaw::Flaw,
    schema::{Image, Schema},
    tally::{Sum, Tally},
    write::{Action, Table, Wanted, Write},
};
use keys::{
    counter::{self, CounterKey},
    entity::Definition,
    item::Item,
    key::Key,
    value::whole_number,
};

/// An item to look at, and on whose behalf. Looks at one item are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The item, which need not exist.
    pub item: Key,
    /// Its entity.
    pub entity: String,
    /// Positions in the catalogue of the derivations that are concerned.
    pub derivations: BTreeSet<usize>,
    /// Sources that changes named.
    pub named: BTreeSet<Key>,
}

/// The item that a kind computes its part of.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// Its key.
    pub key: &'a Key,
    /// What items of its entity look like.
    pub definition: &'a Definition,
    /// Its attributes, as far as they are known; `None` when it does not exist.
    pub item: Option<&'a Item>,
    /// Sources that changes named.
    pub named: &'a BTreeSet<Key>,
}

/// Something that must be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An item.
    Item(Key),
    /// All counters of a target.
    Counters(Key),
}

/// What was read. What was read and is not there is known too.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    items: BTreeMap<Key, Option<Item>>,
    counts: BTreeMap<Key, BTreeMap<String, Tally>>,
}

/// How a level-triggered kind looks at an item.
pub trait Refresh: fmt::Debug + Send + Sync {
    /// Entity of the items that it writes into.
    fn target(&self) -> &str;

    /// Does it make the whole item?
    fn makes_item(&self) -> bool {
        false
    }

    /// Does it read in one item of its entity what it writes into another? Then it ends at a depth of its own.
    fn recurs(&self) -> bool {
        false
    }

    /// What must be read to compute its part of an item.
    fn sources(&self, schema: &Schema, target: &Target<'_>) -> Vec<Source>;

    /// Its part of an item that was not read, when the item names this source and has it of no other: the attributes by
    /// which it names it, beside its key, and the part. `None` where it takes more than that to tell.
    fn taken_from(&self, schema: &Schema, source: &Key, item: &Key, sources: &Sources) -> Option<(Item, Vec<Wanted>)> {
        let (_, _, _, _) = (schema, source, item, sources);
        None
    }

    /// Its part of an item, from what was read.
    fn compute(&self, schema: &Schema, target: &Target<'_>, sources: &Sources) -> Computed;

    /// The search for all items that follow from a source of this key, the same as a change of the source asks for;
    /// `None` where the source itself names the item.
    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        let (_, _) = (schema, source);
        None
    }

    /// May it derive nothing for an item that can be read?
    fn has_flaws(&self) -> bool {
        false
    }

    /// Items for which it derives nothing though all can be read. `items` are those that
    /// [`derive`](crate::kind::Kind::derive) is given.
    fn flaws(&self, schema: &Schema, items: &Items) -> Vec<Flaw> {
        let (_, _) = (schema, items);
        Vec::new()
    }
}

/// A derivation's part of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// Some attributes.
    Attributes(Vec<Wanted>),
    /// The whole item but for the attributes of other derivations; `None` when it should not exist.
    Item(Option<Item>),
}

/// What comes next in looking at an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// These must be read first.
    Read(Vec<Source>),
    /// It is decided.
    Decided(Verdict),
}

/// The outcome of looking at an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing is to be done.
    InStep,
    /// This write brings it in step.
    Write {
        /// The write.
        write: Box<Write>,
        /// Positions in the catalogue of the derivations whose part differed.
        derivations: Vec<usize>,
    },
}

impl Look {
    fn target<'a>(&'a self, definition: &'a Definition, item: Option<&'a Item>) -> Target<'a> {
        Target { key: &self.item, definition, item, named: &self.named }
    }
}

impl<'a> Target<'a> {
    /// The item as the schema sees it, when it is of the target's entity.
    #[must_use]
    pub fn image(&self, schema: &'a Schema) -> Option<Image<'a>> {
        schema.image(self.key, self.item?).filter(|image| image.definition.name == self.definition.name)
    }
}

impl Sources {
    /// Adds an item that was read, or that is not there.
    pub fn add_item(&mut self, key: Key, item: Option<Item>) {
        self.items.insert(key, item);
    }

    /// Adds the counters of a target: all items that its query gave.
    pub fn add_counters<'a>(&mut self, schema: &Schema, target: Key, items: impl IntoIterator<Item = &'a Item>) {
        let counts = sums(schema, items).into_iter().filter(|((of, _), _)| *of == target);
        let counts = counts.map(|((_, derivation), sum)| (derivation, sum)).collect();
        self.counts.insert(target, counts);
    }

    /// Has this been read?
    #[must_use]
    pub fn knows(&self, source: &Source) -> bool {
        match source {
            Source::Item(key) => self.items.contains_key(key),
            Source::Counters(target) => self.counts.contains_key(target),
        }
    }

    /// An item that was read.
    #[must_use]
    pub fn item(&self, key: &Key) -> Option<&Item> {
        self.items.get(key)?.as_ref()
    }

    /// A tally of a target, over all shards; `None` where there is none.
    #[must_use]
    pub fn tally(&self, target: &Key, derivation: &str) -> Option<&Tally> {
        self.counts.get(target)?.get(derivation)
    }
}

/// Tallies by target and derivation, shards added up. A part of a counter that cannot be read is left out.
#[must_use]
pub fn sums<'a>(schema: &Schema, items: impl IntoIterator<Item = &'a Item>) -> BTreeMap<(Key, String), Tally> {
    let mut sums: BTreeMap<_, Tally> = BTreeMap::new();
    for item in items {
        let is_counter = |attribute: &String| keys::item::text(item, attribute) == Some(counter::COUNTER);
        let typed = schema.layout.entity_type.as_ref().is_none_or(is_counter);
        let counter = schema.layout.key(item).as_ref().and_then(CounterKey::parse).filter(|_| typed);
        let (count, sum) = (item.get(counter::VALUE).and_then(whole_number), item.get(counter::SUM).and_then(Sum::of));
        if let (Some(counter), true) = (counter, count.is_some() || sum.is_some()) {
            let tally = Tally { count: count.unwrap_or(0), sum: sum.unwrap_or_default() };
            sums.entry((counter.target, counter.derivation)).or_default().add(&tally);
        }
    }
    sums
}

/// Looks at an item that holds `held`, as far as `sources` are known.
///
/// Its parts are computed in the catalogue's order, each on what those before it want; and a part that reads what
/// another is about to change is computed with it. So an item comes in step with one write.
#[must_use]
pub fn step(schema: &Schema, catalogue: &Catalogue, look: &Look, held: Option<&Item>, sources: &Sources) -> Step {
    let Some(definition) = schema.entity(&look.entity) else { return Step::Decided(Verdict::InStep) };
    let parts: Vec<usize> = catalogue.refreshing(&look.entity).collect();
    let maker = parts.iter().copied().find(|&at| catalogue.refresh(at).is_some_and(Refresh::makes_item));

    let made = match maker.filter(|at| look.derivations.contains(at)).and_then(|at| catalogue.refresh(at)) {
        None => None,
        Some(mirror) => match unknown(mirror.sources(schema, &look.target(definition, held)), sources) {
            missing if !missing.is_empty() => return Step::Read(missing),
            _ => match mirror.compute(schema, &look.target(definition, held), sources) {
                Computed::Item(item) => Some(item),
                Computed::Attributes(_) => None,
            },
        },
    };
    let is_held = held.is_some_and(|item| schema.image(&look.item, item).is_some_and(|image| image.is(&look.entity)));
    let (base, whole) = match (&made, held) {
        (Some(None), Some(_)) if is_held => return Step::Decided(removal(look, maker)),
        (Some(Some(item)), held) => (item, held.is_none()),
        (None, Some(item)) if is_held => (item, false),
        (None | Some(None), _) => return Step::Decided(Verdict::InStep),
    };

    let mut difference = Difference::default();
    if let (Some(at), Some(Some(item))) = (maker, &made) {
        difference.add(at, held, owned(definition, item, held));
        // What is written says what it is: were its type gone by hand, its record, with the claims, would not be seen.
        difference.set.extend(schema.layout.type_of(&definition.name).filter(|_| !difference.derivations.is_empty()));
    }
    let mut becoming = base.clone();
    if let (Some(_), Some(held)) = (&made, held) {
        let others = definition.derived_attributes.iter().filter(|name| !base.contains_key(name));
        becoming.extend(others.filter_map(|name| Some((name.clone(), held.get(name)?.clone()))));
    }
    let mut missing = BTreeSet::new();
    for at in parts.into_iter().filter(|at| Some(*at) != maker) {
        let concerned =
            whole || look.derivations.contains(&at) || catalogue.reads_any(at, &look.entity, difference.names());
        let Some(part) = catalogue.refresh(at).filter(|_| concerned) else { continue };
        let unknown = unknown(part.sources(schema, &look.target(definition, Some(&becoming))), sources);
        if !unknown.is_empty() {
            missing.extend(unknown);
        } else if let Computed::Attributes(wanted) =
            part.compute(schema, &look.target(definition, Some(&becoming)), sources)
        {
            for wanted in &wanted {
                wanted.apply(&mut becoming);
            }
            difference.add(at, held, wanted);
        }
    }
    if !missing.is_empty() {
        return Step::Read(missing.into_iter().collect());
    }
    Step::Decided(difference.verdict(look, whole))
}

fn unknown(wanted: Vec<Source>, sources: &Sources) -> Vec<Source> {
    let wanted: BTreeSet<Source> = wanted.into_iter().filter(|source| !sources.knows(source)).collect();
    wanted.into_iter().collect()
}

/// A mirror without a living source goes. Should a source have come meanwhile, the removal's own record rings, names
/// what the mirror held, and the mirror comes back; so it needs no guard.
fn removal(look: &Look, maker: Option<usize>) -> Verdict {
    Verdict::Write {
        write: Box::new(Write { table: Table::Main, key: look.item.clone(), action: Action::Delete, guard: None }),
        derivations: maker.into_iter().collect(),
    }
}

/// What a mirror wants of all attributes that are not other derivations': what it computed, and nothing else.
#[must_use]
pub fn owned(definition: &Definition, item: &Item, held: Option<&Item>) -> Vec<Wanted> {
    let others = |name: &str| definition.derived_attributes.iter().any(|other| other == name);
    let gone = held.into_iter().flat_map(Item::keys).filter(|name| !item.contains_key(name) && !others(name));
    let gone = gone.map(|name| Wanted { name: name.to_owned(), value: None, zero_is_absent: false });
    let there = item.iter().map(|(name, value)| Wanted {
        name: name.to_owned(),
        value: Some(value.clone()),
        zero_is_absent: false,
    });
    gone.chain(there).collect()
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::{
        derivation::Items,
        fixture::{catalogue, item, key_of, schema, short, table},
        guard::Purpose,
        write::Update,
    };

    /// Looks at an item of a table, on behalf of all derivations that write into its entity, and gives the verdict.
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
        table::decided(&schema, &catalogue, &look, items)
    }

    fn check(table: &[&str], entity: &str, key: &str, named: &[&str], wanted: &Expect) {
        wanted.assert_eq(&text(&verdict(table, entity, key, named)));
    }

    fn text(verdict: &Verdict) -> String {
        let Verdict::Write { write, derivations } = verdict else { return "in step\n".to_owned() };
        let catalogue = catalogue(&schema());
        let mut lines = match (&write.action, &write.guard) {
            (Action::Put(_), None) => format!("put {}\n", write.key),
            (Action::Update(_), Some(guard)) if guard.purpose == Purpose::Update => {
                format!("update {} if it exists\n", write.key)
            }
            (Action::Delete, None) => format!("delete {}\n", write.key),
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
            put POST#p / METADATA
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
        check(
            &[ANN, FOLLOW, FOLLOWER],
            "Follower",
            FOLLOWER,
            &[],
            &expect![[r#"
            in step
        "#]],
        );
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
                update USER#bob / FOLLOWER#ann if it exists
                  CreatedAt=2024
                  EntityType=Follower
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
        check(
            &[ANN],
            "Comment",
            comment,
            &[],
            &expect![[r#"
            in step
        "#]],
        );
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
                update USER#bob / FOLLOWER#ann if it exists
                  EntityType=Follower
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
            put USER#bob / FOLLOWER#ann
              CreatedAt=2024
              EntityType=Follower
              for follower-mirror
        "#]],
        );
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
                update POST#p / METADATA if it exists
                  AuthorId=bob
                  AuthorName=Bob
                  Claims=CLAIMS:USER#ann/POST#2024#p,USER#bob/POST#2025#p
                  CreatedAt=2025
                  EntityType=PostDetail
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
                update POST#p / METADATA if it exists
                  Claims=CLAIMS:USER#ann/POST#2024#p
                  EntityType=PostDetail
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
            delete POST#p / METADATA
              for post-detail
        "#]],
        );
        check(
            &[ANN, FOLLOWER],
            "Follower",
            FOLLOWER,
            &[],
            &expect![[r#"
            delete USER#bob / FOLLOWER#ann
              for follower-mirror
        "#]],
        );
        check(
            &[ANN],
            "Follower",
            FOLLOWER,
            &[],
            &expect![[r#"
            in step
        "#]],
        );
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

    #[test]
    fn a_display_of_zero_is_as_good_as_none() {
        check(
            &[&format!("{ANN} FollowerCount=N:0.0")],
            "User",
            ANN,
            &[],
            &expect![[r#"
            in step
        "#]],
        );
        check(
            &[&format!("{ANN} FollowerCount=N:1")],
            "User",
            ANN,
            &[],
            &expect![[r#"
            update USER#ann / PROFILE if it exists
              without FollowerCount
              for follower-shown
        "#]],
        );
        check(
            &[&format!("{ANN} FollowerCount=zero")],
            "User",
            ANN,
            &[],
            &expect![[r#"
            update USER#ann / PROFILE if it exists
              without FollowerCount
              for follower-shown
        "#]],
        );
    }

    #[test]
    fn an_item_of_another_entity_is_left_alone_unless_a_mirror_must_stand_there() {
        let gadget = "USER#bob / FOLLOWER#ann Gadget Colour=red";
        check(
            &[ANN, gadget],
            "Follower",
            gadget,
            &[],
            &expect![[r#"
            in step
        "#]],
        );
        check(
            &[ANN, gadget, FOLLOW],
            "Follower",
            gadget,
            &[],
            &expect![[r#"
            update USER#bob / FOLLOWER#ann if it exists
              CreatedAt=2024
              EntityType=Follower
              FollowerName=Ann
              without Colour
              for follower-mirror, follower-name
        "#]],
        );
        check(
            &[ANN, "POST#p / COMMENT#c Gadget UserId=ann"],
            "Comment",
            "POST#p / COMMENT#c",
            &[],
            &expect![[r#"
            in step
        "#]],
        );
    }

    /// The verdict of a look on behalf of one derivation.
    fn verdict_for(table: &[&str], derivation: &str, entity: &str, key: &str) -> Verdict {
        let schema = schema();
        let catalogue = catalogue(&schema);
        let at = catalogue.derivations().position(|other| other.name == derivation).unwrap();
        let items = table.iter().map(|text| item(text)).map(|item| (key_of(&item), item)).collect();
        let (item, entity) = (key_of(&item(key)), entity.to_owned());
        let look = Look { item, entity, derivations: [at].into(), named: BTreeSet::new() };
        table::decided(&schema, &catalogue, &look, &items)
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
            update FILE#f / METADATA if it exists
              EntityType=FileDetail
              Name=b
              Path=/docs/b
              for file-detail, file-path
        "#]]
        .assert_eq(&text(&verdict_for(&table, "file-detail", "FileDetail", detail)));
    }

    #[test]
    fn a_part_that_reads_nothing_of_what_another_changes_is_left_for_its_own_bell() {
        let tea = "PRODUCT#tea / METADATA Product Category=drinks UnitsSold=N:4 GSI2PK=stale";
        expect![[r#"
            in step
        "#]]
        .assert_eq(&text(&verdict_for(
            &[tea, "PRODUCT#tea / METADATA#COUNT#sale-count#00 Counter Value=N:4"],
            "sale-shown",
            "Product",
            tea,
        )));
    }

    /// Items of a table: which there are, and attributes in forms that DynamoDB would keep otherwise.
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

    /// The value as DynamoDB may give it back: another form of the same.
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
        let written = table::written(items.get(&write.key), &write.action);
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
