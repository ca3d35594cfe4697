//! The declared reads of the shipped table: the functions that `ripple types` prints in Rust find what a loop over all
//! items finds, in one page and in several.
//!
//! All read one crowded table: ids that begin like others, ids that need escapes, every other entity of the same
//! collection, counters, and items of undeclared entities.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::LazyLock,
};

use aws_sdk_dynamodb::{Client, types::AttributeValue as SdkValue};
use derive::{
    access::{Access, AccessQuery, AccessReads, NextField},
    query::Order,
    schema::Schema,
    write::{Action, Table, Transaction, Write},
};
use keys::{
    counter::CounterKey,
    fields::Fields,
    item::{Item, text},
    key::Key,
    number::Decimal,
};
use queries::reads::{self, Page, PageOptions, Range, Read, ReadError};
use serde_dynamo::AttributeValue;
use store::{Store as _, TransactOutcome, dynamo::DynamoStore};
use support::database::{client, create_table, embedded, unique_names};
use tokio::runtime::Runtime;

use crate::crowd::crowd;

macro_rules! printed {
    ($($name:ident),* $(,)?) => { [$(reads::$name::READ),*] };
}

/// The printed queries.
#[rustfmt::skip]
const RANGES: [Range; 38] = printed![
    UserByEmailRead, UsersRead, CollectionOfUserRead, PostsOfUserRead, PostsOfUserByStatusRead, RecentPostsRead,
    PostWithCommentsRead, CommentsOfPostRead, CommentsOfUserRead, LikesOfUserRead, LikesOfPostRead, FollowedByUserRead,
    FollowersOfUserRead, GroupsOfUserRead, MembersOfGroupRead, OrganizationWithTeamsRead, MembersOfOrganizationRead,
    OrganizationsOfUserRead, TeamRead, ReportsOfManagerRead, EmployeeRead, FolderWithFilesRead, FoldersOfFolderRead,
    ProductsOfCategoryRead, BestSellersRead, ReviewsOfProductRead, OrdersOfUserRead, OrdersOfUserByStatusRead,
    OrderWithItemsRead, ItemsOfOrderRead, OpenOrdersRead, OrdersWithProductRead, ReadingsOfDayRead, RollUpsRead,
    OrdersByTotalRead, ViewsOfUserRead, SubscriptionsOfUserRead, ItemsOfCartRead,
];

/// The printed reads of one item.
#[rustfmt::skip]
const GETS: [Read; 8] = printed![
    UserRead, EmailClaimRead, PostRead, LikeRead, FollowRead, MembershipRead, FileRead, ProductRead,
];

/// The printed reads of several items.
const BATCHES: [Read; 4] = printed![MembersRead, UsersByIdRead, PostsByIdRead, ProductsByIdRead];

/// The printed reads of counters.
#[rustfmt::skip]
const COUNTS: [Read; 6] = printed![
    PostCountsRead, UserCountsRead, GroupCountsRead, OrganizationCountsRead, FolderCountsRead, ProductCountsRead,
];

/// The crowded table, and what is in it.
struct Bed {
    runtime: Runtime,
    client: Client,
    table: String,
    schema: Schema,
    items: Vec<Item>,
}

static BED: LazyLock<Bed> = LazyLock::new(|| {
    let (runtime, endpoint) = embedded();
    let (client, names, schema) = (client(&endpoint), unique_names(), catalogue::schema());
    let (table, items) = (names.main.clone(), crowd());
    runtime.block_on(async {
        create_table(&client, &table, &schema.layout).await;
        let store = DynamoStore::new(client.clone(), schema.layout.clone(), names);
        for some in items.chunks(100) {
            let put = |item: &Item| {
                let key = schema.layout.key(item).unwrap();
                Write { table: Table::Main, key, action: Action::Put(item.clone()), guard: None }
            };
            let outcome = store.transact(&Transaction::new(some.iter().map(put).collect()).unwrap()).await.unwrap();
            assert!(matches!(outcome, TransactOutcome::Done { .. }), "{outcome:?}");
        }
    });
    Bed { runtime, client, table, schema, items }
});

/// What a caller gives, by name.
type Given = BTreeMap<String, String>;

impl Bed {
    fn access(&self, name: &str) -> &Access {
        self.schema.accesses.iter().find(|access| access.name == name).unwrap()
    }

    /// The items of an entity, with the fields of their keys.
    fn of<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = (Given, &'a Item)> {
        self.items.iter().filter_map(move |item| {
            let key = self.schema.layout.key(item)?;
            let fields = self.schema.image(&key, item).filter(|image| image.is(entity))?.key_fields().clone();
            Some((fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), item))
        })
    }

    /// An item's partition key and sort key in the table or the index that a query reads.
    fn queried<'a>(&self, query: &AccessQuery, item: &'a Item) -> Option<(&'a str, &'a str)> {
        let index = query.index.as_ref().map(|index| self.schema.layout.index(index).unwrap());
        let (pk, sk) = index.map_or(("PK", "SK"), |index| (&index.pk, &index.sk));
        Some((text(item, pk)?, text(item, sk)?))
    }

    /// What a caller can give that finds something, each once.
    fn questions(&self, query: &AccessQuery) -> BTreeSet<Given> {
        let names = query.partition_fields(&self.schema);
        let below = match &query.next {
            NextField::Below(field) => Some(field.as_str()),
            _ => None,
        };
        let names = names.into_iter().chain(query.fields.iter().map(String::as_str)).chain(below);
        let names: Vec<&str> = names.chain(query.filter.iter().flat_map(|filter| filter.inputs())).collect();
        let question = |(fields, item): (Given, &Item)| {
            self.queried(query, item)?;
            let value = |name: &&str| {
                let value = fields.get(*name).cloned().or_else(|| text(item, name).map(str::to_owned))?;
                Some(((*name).to_owned(), value))
            };
            names.iter().map(value).collect::<Option<Given>>()
        };
        self.of(&query.entities[0]).filter_map(question).collect()
    }

    /// The sort keys and the primary keys of the items that a query finds, in its order, by a loop.
    fn wanted(&self, query: &AccessQuery, given: &Given, bounds: [Option<&str>; 2]) -> Vec<(String, (String, String))> {
        let first = query.key_of(self.schema.entity(&query.entities[0]).unwrap()).unwrap();
        let given_fields: Fields = given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let partitions: Vec<String> =
            first.pk.suffixes().iter().map(|partition| partition.build(&given_fields).unwrap()).collect();
        let mut found = Vec::new();
        for entity in &query.entities {
            let key = query.key_of(self.schema.entity(entity).unwrap()).unwrap();
            for (_, item) in self.of(entity) {
                let Some((pk, sk)) = self.queried(query, item) else { continue };
                let fields = key.sk.parse_key(sk).unwrap();
                let value = |name: &str| fields.get(name).unwrap();
                let is_between = |field: &str| {
                    let is_number = key.sk.holds_number(field);
                    let order = |bound: &str| {
                        if is_number {
                            Decimal::parse(value(field)).cmp(&Decimal::parse(bound))
                        } else {
                            value(field).cmp(bound)
                        }
                    };
                    bounds[0].is_none_or(|low| order(low).is_ge()) && bounds[1].is_none_or(|high| order(high).is_le())
                };
                let is_next = match &query.next {
                    NextField::Any => true,
                    NextField::Between(field) => is_between(field),
                    NextField::Below(field) => value(field).starts_with(&format!("{}/", given[field])),
                };
                let passes = query.filter.as_ref().is_none_or(|filter| {
                    let mut item = item.clone();
                    for input in filter.inputs() {
                        item.insert(format!(":{input}"), AttributeValue::S(given[input].clone()));
                    }
                    filter.condition.holds(&item).unwrap()
                });
                let is_given = query.fields.iter().all(|field| value(field) == given[field]);
                if partitions.iter().any(|partition| partition == pk) && is_given && is_next && passes {
                    found.push((sk.to_owned(), (text(item, "PK").unwrap().into(), text(item, "SK").unwrap().into())));
                }
            }
        }
        found.sort();
        if query.order == Order::Descending {
            found.reverse();
        }
        found
    }

    /// The items of all pages.
    fn pages(&self, range: &Range, given: &Given, options: &PageOptions) -> Vec<HashMap<String, SdkValue>> {
        let (mut items, mut options) = (Vec::new(), options.clone());
        loop {
            let page = self.page(range, given, &options).unwrap();
            assert!(page.items.len() <= usize::from(options.limit.unwrap()), "{}", range.read.name);
            items.extend(page.items);
            options.cursor = page.cursor;
            if options.cursor.is_none() {
                return items;
            }
        }
    }

    fn page(&self, range: &Range, given: &Given, options: &PageOptions) -> Result<Page, ReadError> {
        let values: Vec<SdkValue> = given.values().map(|value| SdkValue::S(value.clone())).collect();
        let inputs: Vec<_> = given.keys().map(|name| &*name.clone().leak()).zip(&values).collect();
        let fields = fields(given);
        self.runtime.block_on(range.page(&self.client, &self.table, (&fields, &inputs), options))
    }
}

fn fields(given: &Given) -> Vec<(&'static str, Option<&str>)> {
    given.iter().map(|(name, value)| (&*name.clone().leak(), Some(value.as_str()))).collect()
}

fn key_of(item: &HashMap<String, SdkValue>) -> (String, String) {
    let part = |name: &str| item[name].as_s().unwrap().clone();
    (part("PK"), part("SK"))
}

#[test]
fn every_declared_read_is_printed_and_every_row_of_the_design_has_one() {
    let ranges = RANGES.iter().map(|range| range.read);
    let printed: BTreeSet<&str> = ranges.chain(GETS).chain(BATCHES).chain(COUNTS).map(|read| read.name).collect();
    let declared: BTreeSet<&str> = BED.schema.accesses.iter().map(|access| access.name.as_str()).collect();
    assert_eq!(printed, declared);
    let rows: BTreeSet<String> = BED.schema.accesses.iter().map(|access| access.id.clone()).collect();
    assert_eq!(rows, (1..=44).map(|number| format!("AP-{number:03}")).collect());
}

#[test]
fn a_query_finds_what_a_loop_finds_page_by_page() {
    for range in RANGES {
        let AccessReads::Query(query) = &BED.access(range.read.name).reads else { panic!("{}", range.read.name) };
        let questions = BED.questions(query);
        assert!(!questions.is_empty(), "{}", range.read.name);
        let (mut n_found, mut n_pages) = (0, 0);
        for given in &questions {
            let all = BED.wanted(query, given, [None, None]);
            let mut bounds = vec![[None, None]];
            if let NextField::Between(field) = &query.next {
                let key = query.key_of(BED.schema.entity(&query.entities[0]).unwrap()).unwrap();
                let middle = key.sk.parse_key(&all[all.len() / 2].0).unwrap().get(field).unwrap().to_owned();
                bounds.extend([
                    [Some(middle.clone()), None],
                    [None, Some(middle.clone())],
                    [Some(middle.clone()), Some(middle)],
                ]);
            }
            for [low, high] in bounds {
                let wanted = BED.wanted(query, given, [low.as_deref(), high.as_deref()]);
                let options = PageOptions { low, high, limit: Some(1_000), ..PageOptions::default() };
                for limit in [1_000, 7, 1] {
                    let options = PageOptions { limit: Some(limit), ..options.clone() };
                    let found = BED.pages(&range, given, &options);
                    let sort =
                        |item: &HashMap<String, SdkValue>| item[range.read.form.names[1]].as_s().unwrap().clone();
                    let about = format!("{} of {given:?} in pages of {limit}", range.read.name);
                    let sorts: Vec<String> = found.iter().map(sort).collect();
                    assert_eq!(sorts, wanted.iter().map(|(sort, _)| sort.clone()).collect::<Vec<_>>(), "{about}");
                    let keys: BTreeSet<_> = found.iter().map(key_of).collect();
                    assert_eq!(keys, wanted.iter().map(|(_, key)| key.clone()).collect(), "{about}");
                    n_pages += usize::from(found.len() > usize::from(limit));
                }
                let reversed = PageOptions { descending: Some(query.order == Order::Ascending), ..options };
                let mut found: Vec<_> = BED.pages(&range, given, &reversed).iter().map(key_of).collect();
                found.sort();
                let mut keys: Vec<_> = wanted.iter().map(|(_, key)| key.clone()).collect();
                keys.sort();
                assert_eq!(found, keys, "{} of {given:?} in the other order", range.read.name);
                n_found += wanted.len();
            }
        }
        assert!(n_found > 0 && (n_pages > 0 || query.limit == 1), "{}: {n_found} items", range.read.name);
    }
}

#[test]
fn one_item_or_several_are_found_by_their_keys_and_others_are_missing() {
    let nobody = |given: &Given| -> Given { given.keys().map(|name| (name.clone(), "nobody".to_owned())).collect() };
    for read in GETS {
        let [entity] = BED.access(read.name).entities() else { panic!("{}", read.name) };
        for (given, item) in BED.of(entity) {
            let get = |given: &Given| {
                BED.runtime.block_on(read.get(&BED.client, &BED.table, &fields(given), Some(true))).unwrap()
            };
            let found = get(&given).unwrap();
            assert_eq!(key_of(&found), (text(item, "PK").unwrap().into(), text(item, "SK").unwrap().into()));
            assert_eq!(found.len(), item.len(), "the whole item");
            assert_eq!(get(&nobody(&given)), None);
        }
    }
    for read in BATCHES {
        let [entity] = BED.access(read.name).entities() else { panic!("{}", read.name) };
        let mut all: Vec<Given> = BED.of(entity).map(|(given, _)| given).collect();
        let n_there = all.len();
        all.insert(1, nobody(&all[0]));
        all.push(all[0].clone());
        let keys = all.iter().map(|given| read.key(&fields(given)));
        let (items, missing) = BED.runtime.block_on(read.batch_get(&BED.client, &BED.table, keys, None)).unwrap();
        assert_eq!((items.len(), missing), (n_there, vec![1]), "{}", read.name);
        assert!(n_there >= 7, "{n_there}");
    }
}

#[test]
fn counts_are_the_sums_of_all_counters_of_a_target() {
    for read in COUNTS {
        let AccessReads::Counts(entity) = &BED.access(read.name).reads else { panic!("{}", read.name) };
        let mut n_counts = 0;
        // A count exists whether or not its target does.
        let counters = BED.items.iter().filter_map(|item| CounterKey::parse(&BED.schema.layout.key(item)?));
        let targets: BTreeSet<Key> = counters.map(|counter| counter.target).collect();
        for target in targets {
            let Some(fields_of) = BED.schema.entity(entity).unwrap().key.parse_key(&target) else { continue };
            let given: Given = fields_of.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let mut wanted: BTreeMap<String, (i64, Option<Decimal>)> = BTreeMap::new();
            for item in &BED.items {
                let key = BED.schema.layout.key(item).unwrap();
                let Some(counter) = CounterKey::parse(&key).filter(|counter| counter.target == target) else {
                    continue;
                };
                let decimal = |name: &str| match item.get(name) {
                    Some(AttributeValue::N(number)) => Decimal::parse(number),
                    _ => None,
                };
                let counted = wanted.entry(counter.derivation).or_default();
                counted.0 += decimal("Value").unwrap().to_string().parse::<i64>().unwrap();
                counted.1 = decimal("Sum")
                    .map(|sum| counted.1.take().unwrap_or_default().plus(&sum).unwrap())
                    .or(counted.1.take());
            }
            let found = BED.runtime.block_on(read.counts(&BED.client, &BED.table, &fields(&given))).unwrap();
            let found: BTreeMap<String, (i64, Option<Decimal>)> = found
                .into_iter()
                .map(|(name, it)| (name, (it.count, it.sum.map(|sum| Decimal::parse(&sum).unwrap()))))
                .collect();
            assert_eq!(found, wanted, "{target}");
            n_counts += wanted.len();
        }
        assert!(n_counts >= 20, "{}: {n_counts}", read.name);
    }
}

#[test]
fn a_cursor_that_is_damaged_or_of_another_query_is_refused() {
    let range = reads::CommentsOfPostRead::READ;
    let AccessReads::Query(query) = &BED.access(range.read.name).reads else { panic!("a query") };
    let questions = BED.questions(query);
    let mut given = questions.iter();
    let (one, other) = (given.next().unwrap(), given.next().unwrap());
    let options = PageOptions { limit: Some(1), ..PageOptions::default() };
    let cursor = BED.page(&range, one, &options).unwrap().cursor.unwrap();
    let refused = |given: &Given, options: PageOptions| BED.page(&range, given, &options).unwrap_err().to_string();
    let says = "the cursor is damaged, or not one of comments-of-post with these values";
    let with = |cursor: &str| PageOptions { cursor: Some(cursor.to_owned()), ..options.clone() };
    assert_eq!(refused(other, with(&cursor)), says);
    assert_eq!(refused(one, PageOptions { low: Some("2024".to_owned()), ..with(&cursor) }), says);
    assert_eq!(refused(one, PageOptions { descending: Some(true), ..with(&cursor) }), says);
    for at in 0..cursor.len() {
        let damaged: String = cursor
            .chars()
            .enumerate()
            .map(|(it, c)| if it == at { if c == '0' { '1' } else { '0' } } else { c })
            .collect();
        assert_eq!(refused(one, with(&damaged)), says);
        assert_eq!(refused(one, with(&cursor[..at])), says);
    }
    for limit in [0, 1_001] {
        let refused = refused(one, PageOptions { limit: Some(limit), ..options.clone() });
        assert_eq!(refused, "limit is from 1 to 1000");
    }
    let reversed = PageOptions { low: Some("2".to_owned()), high: Some("1".to_owned()), ..options.clone() };
    let says = "Comment.CreatedAt has a low that is behind its high in the order of the key";
    assert_eq!(refused(one, reversed), says);
    let empty = Given::from([("PostId".to_owned(), String::new())]);
    assert_eq!(refused(&empty, options.clone()), "Comment.PostId is empty; a key value must not be");
}
