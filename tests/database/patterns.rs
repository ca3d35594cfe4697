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
use serde_json::{Value, json};
use store::{Store as _, TransactOutcome, dynamo::DynamoStore};
use support::database::{client, create_table, embedded, unique_names};
use tokio::runtime::Runtime;

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

// ---- The crowd: items of every entity, with neighbours that a careless key would include ----

/// Times in order; the last was written by another client.
const TIMES: [&str; 4] =
    ["2024-01-15T10:30:00.000Z", "2024-01-15T10:30:00.001Z", "2024-01-16T00:00:00.000Z", "the other day"];

const CATEGORIES: [&str; 4] = ["tool", "tools", "tools#x", "tools/x"];

const ORDER_STATUSES: [&str; 5] = ["pending", "paid", "packed", "shipped", "cancelled"];

const POST_STATUSES: [&str; 3] = ["published", "draft", "archived"];

/// Days with readings; one day is left out.
const DAYS: [&str; 4] = ["2023-12-31", "2024-01-01", "2024-02-29", "2024-03-01"];

/// Ids that begin with each other or need escapes, in the order of their texts.
pub(crate) fn ids(letter: &str) -> Vec<String> {
    ["", "1", "1#x", "1%23x", "1%x", "1/x", "10"].map(|end| format!("{letter}{end}")).to_vec()
}

fn time(at: usize) -> &'static str {
    TIMES[at % TIMES.len()]
}

pub(crate) fn whole(at: usize) -> i64 {
    i64::try_from(at).unwrap()
}

/// All items of the table.
fn crowd() -> Vec<Item> {
    let mut items = Vec::new();
    people(&mut items);
    posts(&mut items);
    groups_and_organizations(&mut items);
    files(&mut items);
    products(&mut items);
    orders(&mut items);
    sensors(&mut items);
    counters(&mut items);
    strangers(&mut items);
    items
}

fn put(items: &mut Vec<Item>, entity: &str, values: Value) {
    items.push(table_design::item(entity, values).unwrap());
}

fn people(items: &mut Vec<Item>) {
    let more = (0..20).map(|n| format!("m{n}"));
    for (at, id) in ids("u").into_iter().chain(more).enumerate() {
        let email = format!("{id}@Example.org");
        put(items, "EmailClaim", json!({ "Email": email.to_lowercase(), "UserId": id }));
        let user = json!({
            "UserId": id, "Name": format!("name of {id}"), "Email": email, "Avatar": "not projected",
            "CreatedAt": time(at * 3), "FollowerCount": 3,
        });
        put(items, "User", user);
    }
    for (at, user) in ids("u").iter().enumerate() {
        for (other_at, other) in ids("u").iter().enumerate().filter(|(_, other)| *other != user) {
            put(items, "Follow", json!({ "FollowerId": user, "FolloweeId": other, "FolloweeName": other }));
            put(items, "Follower", json!({ "FolloweeId": user, "FollowerId": other, "FollowerName": other }));
            let id = format!("s{other}");
            put(items, "Subscription", json!({ "UserId": user, "SubscriptionId": id, "Plan": "gold" }));
            for cart in ["c", "c1", "c1#x"] {
                let quantity = at + other_at;
                let item = json!({ "UserId": user, "CartId": cart, "ProductId": other, "Quantity": quantity });
                put(items, "CartItem", item);
            }
        }
    }
}

fn posts(items: &mut Vec<Item>) {
    let users = ids("u");
    let more = (0..40).map(|n| format!("q{n}"));
    for (at, id) in ids("p").into_iter().chain(more).enumerate() {
        let status = POST_STATUSES[if at < 7 { 0 } else { at % 3 }];
        let detail = json!({
            "PostId": id, "AuthorId": users[at % 7], "CreatedAt": time(at), "Title": format!("title of {id}"),
            "Status": status, "AuthorName": "Ada", "CommentCount": 4,
        });
        put(items, "PostDetail", detail);
    }
    for (at, user) in users.iter().enumerate() {
        for (post_at, post) in ids("p").iter().enumerate() {
            let (created_at, status) = (time(post_at), POST_STATUSES[post_at % 2]);
            let body = json!({
                "AuthorId": user, "CreatedAt": created_at, "PostId": post, "Content": "a body", "Status": status,
            });
            put(items, "Post", body);
            put(items, "Like", json!({ "UserId": user, "PostId": post }));
            let viewed_at = time(post_at + 1);
            let view = json!({ "UserId": user, "ViewedAt": viewed_at, "PostId": post, "ExpiresAt": 1_900_000_000 });
            put(items, "View", view);
            // On the post with this number, each by another user.
            let comment = json!({
                "PostId": ids("p")[at], "CreatedAt": created_at, "CommentId": format!("c{post}"),
                "UserId": users[(at + post_at) % 7], "Text": format!("{at}, {post_at}"), "UserName": "not projected",
            });
            put(items, "Comment", comment);
        }
    }
}

fn groups_and_organizations(items: &mut Vec<Item>) {
    for (group, org) in ids("g").iter().zip(ids("o")) {
        put(items, "Group", json!({ "GroupId": group, "Name": "a group" }));
        put(items, "Organization", json!({ "OrgId": org, "Name": org, "TeamCount": 7 }));
        for user in ids("u") {
            let role = format!("role of {user} in {group}");
            let membership = json!({ "UserId": user, "GroupId": group, "Role": role, "GroupName": group });
            put(items, "Membership", membership);
            put(items, "GroupMember", json!({ "GroupId": group, "UserId": user, "Role": role }));
            put(items, "Member", json!({ "OrgId": org, "UserId": user, "Role": role, "OrgName": org }));
            let team = json!({ "OrgId": org, "TeamId": format!("t{user}@{org}"), "Name": format!("team {user}") });
            put(items, "Team", team);
        }
        for place in PLACES {
            let ids: Vec<String> = place.iter().map(|id| format!("{id}@{org}")).collect();
            let path: String = ids.iter().flat_map(|id| ["/".to_owned(), keys::escape::segment(id)]).collect();
            let employee = json!({
                "OrgId": org, "EmployeeId": ids.last(), "Name": place.join(" of "), "ManagerId": ids.iter().rev().nth(1),
                "Path": path,
            });
            put(items, "OrgChart", employee.clone());
            put(items, "Employee", employee);
        }
    }
}

/// Paths of employees; ids are unique over all organizations, so each contains its organization's id.
const PLACES: [&[&str]; 10] = [
    &["ceo"],
    &["ceo", "e"],
    &["ceo", "e", "a"],
    &["ceo", "e", "a", "b/c"],
    &["ceo", "e", "a", "b/c", "d"],
    &["ceo", "e", "z"],
    &["ceo", "e#x"],
    &["ceo", "e/x"],
    &["ceo", "e1"],
    &["ceo", "e1", "f"],
];

fn files(items: &mut Vec<Item>) {
    for folder in ids("f") {
        put(items, "Folder", json!({ "FolderId": folder, "Name": "a root", "FileCount": 7 }));
        for (at, file) in ids("x").iter().enumerate() {
            let uploaded = json!({
                "FolderId": folder, "UploadedAt": time(at), "FileId": file, "Name": file, "SizeBytes": 9,
            });
            put(items, "File", uploaded);
            // Names that occur twice, that begin like others, or that need escapes.
            let (id, name) = (format!("sub {file} of {folder}"), ["a", "a b", "a#b", "b"][at % 4]);
            let path = format!("/{folder}");
            put(items, "Folder", json!({ "FolderId": id, "Name": name, "ParentId": folder, "Path": path }));
        }
    }
    for file in ids("x") {
        put(items, "FileDetail", json!({ "FileId": file, "Path": format!("/of/{file}") }));
    }
}

fn products(items: &mut Vec<Item>) {
    for category in CATEGORIES {
        for (at, product) in ids("k").iter().enumerate() {
            let id = format!("{product}@{category}");
            let price: Value = format!("{at}.5").parse().unwrap();
            let mut item = json!({
                "ProductId": id, "Name": format!("name of {product}"), "Price": price, "Category": category,
                "Inventory": 5, "ReviewCount": at, "RatingSum": at * 4,
            });
            // Ripple makes this index key, and no writer does. The last product has sold nothing.
            if at < 6 {
                let units_sold = at * 7 % 5 + 1;
                item["UnitsSold"] = json!(units_sold);
                item["GSI2PK"] = json!(format!("BESTSELLERS#{}", keys::escape::value(category)));
                item["GSI2SK"] = json!(format!("{}#{}", 999_999_999_999 - units_sold, keys::escape::value(&id)));
            }
            put(items, "Product", item);
        }
    }
    for product in ids("k") {
        for (at, review) in ids("r").iter().enumerate() {
            let review = json!({
                "ProductId": format!("{product}@tools"), "CreatedAt": time(at), "ReviewId": review,
                "UserId": ids("u")[at], "Rating": 4, "Text": "good",
            });
            put(items, "Review", review);
        }
    }
}

fn orders(items: &mut Vec<Item>) {
    for (user_at, user) in ids("u").iter().enumerate() {
        for (at, order) in ids("o").iter().enumerate() {
            let (id, status) = (format!("{order}@{user}"), ORDER_STATUSES[(at + user_at) % 5]);
            let total: Value = format!("{}.{}", (at * 5 + user_at * 3) % 11, at).parse().unwrap();
            let order =
                json!({ "UserId": user, "PlacedAt": time(at), "OrderId": id, "Status": status, "Total": total });
            put(items, "Order", order);
            put(items, "OrderDetail", json!({ "OrderId": id, "UserId": user, "Status": status, "Total": total }));
            for product in &ids("k")[..if at == 0 { 7 } else { 3 }] {
                let price: Value = format!("{at}.25").parse().unwrap();
                let line = json!({
                    "OrderId": id, "ProductId": product, "ProductName": "as bought", "Price": price, "Quantity": 2,
                    "Cancelled": (at % 2 == 0).then_some(true),
                });
                put(items, "OrderItem", line);
            }
        }
    }
}

fn sensors(items: &mut Vec<Item>) {
    for sensor in ids("s") {
        for day in DAYS {
            for time in ["00:00:00.000", "10:30:00.000", "23:59:59.999"] {
                let at = format!("{day}T{time}Z");
                put(items, "Reading", json!({ "SensorId": sensor, "Day": day, "At": at, "Value": 21.5 }));
            }
            for (grain, bucket) in
                [("DAY", day.to_owned()), ("HOUR", format!("{day}T00")), ("HOUR", format!("{day}T10"))]
            {
                let rollup = json!({ "SensorId": sensor, "Grain": grain, "Bucket": bucket, "Count": 3, "Sum": 64.5 });
                put(items, "Rollup", rollup);
            }
        }
    }
}

fn counters(items: &mut Vec<Item>) {
    let targets = [("USER#", "u", "PROFILE"), ("POST#", "p", "METADATA"), ("ORG#", "o", "METADATA")];
    let more = [("GROUP#", "g", "METADATA"), ("FOLDER#", "f", "METADATA"), ("PRODUCT#", "k", "METADATA")];
    for (start, letter, sk) in targets.into_iter().chain(more) {
        for (at, id) in ids(letter).iter().enumerate() {
            for (derivation, satellite, value, sum) in [
                ("plain-count", 0, whole(5 + at), None),
                ("spread-count", 0, 1, None),
                ("spread-count", 3, -2, None),
                ("spread-count", 15, 40, None),
                ("spread-count~2", 1, 7, None),
                ("summed", 0, 2, Some(0.1)),
                ("summed", 1, 3, Some(0.2)),
            ] {
                let counter = json!({
                    "TargetPK": format!("{start}{}", keys::escape::value(id)), "TargetSK": sk, "Derivation": derivation,
                    "Satellite": satellite, "Value": value, "Sum": sum,
                });
                put(items, "Counter", counter);
            }
        }
    }
}

/// An item of an unknown entity, or without one, beside every third item: in the same collection and at the same places
/// of the indexes.
fn strangers(items: &mut Vec<Item>) {
    let beside: Vec<Item> = items.iter().step_by(3).cloned().collect();
    for (at, mut item) in beside.into_iter().enumerate() {
        let Some(AttributeValue::S(sk)) = item.get("SK").cloned() else { continue };
        item.insert("SK".to_owned(), AttributeValue::S(format!("{sk}#STRANGER")));
        item.remove("EntityType");
        if at % 2 == 0 {
            item.insert("EntityType".to_owned(), AttributeValue::S("Stranger".to_owned()));
        }
        items.push(item);
    }
}
