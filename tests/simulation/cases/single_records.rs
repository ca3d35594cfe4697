//! Single records and batches: past defects, changes that cannot be applied, items of the application under derived keys,
//! and items with very many attributes.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    catalogue::Catalogue,
    change::Sight,
    derivation::Derivation,
    derived::{Counts, Derived, Items},
    effect::{Effect, RefreshRequest},
    guard::Purpose,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    part::Reach,
    position::RecordAt,
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::{Action, Table, Wanted, Write},
};
use engine::{batch::Engine, park::parked, protocol::ProtocolStep};
use keys::{
    item::{Item, text},
    key::{Key, SORT_KEY_BYTES_MAX},
};
use operate::{repair::remedy::Repaired, verify::definition::compare};
use serde_json::Value;
use store::{Store, faulty::Fault};

use crate::{
    caller::now,
    cases::{Bed, FOLLOW, event_id, verification::index_keys_repaired},
    items::{n, s},
};

#[tokio::test]
async fn a_counter_that_cannot_be_added_to_parks_the_changes_that_count_there_and_no_others() {
    let mut bed = Bed::new();
    let counter = Key::new("USER#ann", "PROFILE#COUNT#following-count#00");
    bed.set(&counter, "EntityType", "Counter").await;
    bed.set_settled(&counter, "Value", "many").await;

    bed.put("Follow", &FOLLOW, &[]).await;
    bed.put("Follow", &[("FollowerId", "bob"), ("FolloweeId", "ann")], &[]).await;
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "cleo")], &[]).await;
    let all = bed.settle().await;
    let parked: BTreeSet<RecordAt> =
        all.iter().flat_map(|handled| &handled.account.parked).map(|p| p.position).collect();
    assert_eq!(parked, BTreeSet::from([0, 2].map(RecordAt)));
    assert_eq!(bed.shown(&counter, "Value"), "many");
    let parked = bed.parked();
    assert!(parked.iter().all(|key| key.starts_with("PARKED#additive")), "{parked:?}");
    // Both changes are parked whole, with what they would have added elsewhere.
    assert_eq!(bed.findings().len(), 3, "{:?}", bed.findings());
}

// ---- An item that is written back and forth ----

/// Batches after which a stream that is not quiet is taken for one without end.
const BATCHES_MAX: usize = 60;

/// A kind that looks at every user, and wants what this says. It may panic when it plans.
#[derive(Debug)]
struct OfUsers {
    plans: fn(&Image<'_>),
    computes: fn(&Schema, &RefreshTarget<'_>) -> Computed,
}

impl OfUsers {
    fn wanting(computes: fn(&Schema, &RefreshTarget<'_>) -> Computed) -> Self {
        Self { plans: |_| (), computes }
    }

    /// The shipped derivations, and this one.
    fn beside(self, schema: &Schema) -> Catalogue {
        let derivations = [catalogue::derivations(), vec![Derivation::new("D-00", "sides", self)]].concat();
        Catalogue::new(schema, derivations).unwrap()
    }
}

impl Kind for OfUsers {
    fn name(&self) -> &'static str {
        "of-users"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, _schema: &Schema) -> Result<Reach, String> {
        Ok(Reach::default())
    }

    fn entities(&self) -> Vec<&str> {
        vec!["User"]
    }

    fn plan(&self, _schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let Some(image) = sight.entity("User").1 else { return Vec::new() };
        (self.plans)(image);
        vec![Effect::Look(RefreshRequest { item: image.key.clone(), entity: "User".to_owned(), named: Vec::new() })]
    }

    fn unreadable(&self, _schema: &Schema, _image: &Image<'_>) -> Option<Unreadable> {
        None
    }

    fn derive(&self, _name: &str, _schema: &Schema, _items: &Items, _counts: &Counts) -> Vec<Derived> {
        Vec::new()
    }
}

impl Refresh for OfUsers {
    fn target(&self) -> &'static str {
        "User"
    }

    fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
        (self.computes)(schema, target)
    }
}

fn side(value: &str) -> Computed {
    Computed::Attributes(vec![Wanted { name: "Side".to_owned(), value: Some(s(value)), zero_is_absent: false }])
}

/// Two deployments read one stream, and each undoes what the other writes.
#[tokio::test]
async fn two_deployments_that_want_different_values_of_an_item_stop_and_name_it() {
    let mut bed = Bed::new();
    let mut engines = Vec::new();
    for kind in [OfUsers::wanting(|_, _| side("one")), OfUsers::wanting(|_, _| side("other"))] {
        bed.catalogue = Arc::new(kind.beside(&bed.schema));
        engines.push(bed.engine());
    }
    bed.put("User", &[("UserId", "ann")], &[]).await;
    let mut causes = BTreeSet::new();
    let mut is_quiet = false;
    for _ in 0..BATCHES_MAX {
        let records = bed.records();
        is_quiet = records.is_empty();
        for engine in engines.iter().filter(|_| !is_quiet) {
            let handled = engine.handle(&bed.event(&records), bed.deadline_ms()).await.unwrap();
            assert_eq!(handled.failed_from, None);
            causes.extend(handled.account.parked.into_iter().map(|parked| parked.cause));
        }
    }
    assert!(is_quiet, "they write on");
    assert!(causes.iter().any(|cause| cause.contains("USER#ann / PROFILE is written back and forth")), "{causes:?}");
    let follow = bed.put_settled("Follow", &FOLLOW, &[]).await;
    assert_eq!(bed.shown(&Key::new("USER#ann", "PROFILE"), "FollowingCount"), "1", "{follow}");
}

/// What two derivations that disagree do: each time a user is looked at, it wants the other one of two values.
fn disagrees(_schema: &Schema, target: &RefreshTarget<'_>) -> Computed {
    let is_one = target.item.and_then(|item| item.get("Side")) == Some(&s("one"));
    side(if is_one { "other" } else { "one" })
}

fn disagreeing() -> Bed {
    let schema = catalogue::schema();
    let catalogue = OfUsers::wanting(disagrees).beside(&schema);
    Bed::with(schema, catalogue)
}

/// Delivers everything to one process until the stream is quiet; how many batches that takes, and the causes of what is parked.
async fn goes_on<S: Store>(bed: &mut Bed, engine: &Engine<S>) -> (usize, BTreeSet<String>) {
    let mut causes = BTreeSet::new();
    for n_batches in 0..BATCHES_MAX {
        let records = bed.records();
        if records.is_empty() {
            return (n_batches, causes);
        }
        let handled = engine.handle(&bed.event(&records), bed.deadline_ms()).await.unwrap();
        assert_eq!(handled.failed_from, None);
        causes.extend(handled.account.parked.into_iter().map(|parked| parked.cause));
    }
    (BATCHES_MAX, causes)
}

/// Derivations disagree about a user: does the stream come to rest?
pub(crate) async fn comes_to_rest(left_out: Option<ProtocolStep>) -> i64 {
    let mut bed = disagreeing().without(left_out);
    bed.put("User", &[("UserId", "ann")], &[]).await;
    let engine = bed.engine();
    i64::from(goes_on(&mut bed, &engine).await.0 < BATCHES_MAX)
}

#[tokio::test]
async fn an_item_that_is_written_back_and_forth_is_stopped_named_and_parked() {
    let mut bed = disagreeing();
    let engine = bed.engine();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let (n_batches, causes) = goes_on(&mut bed, &engine).await;
    assert!(n_batches < BATCHES_MAX);
    let cause = "the item USER#ann / PROFILE is written back and forth, 16 times in a row, here by sides: it is not written any \
                 more; see that only one derivation, of one deployment, and nobody else decides what it is, and redrive this \
                 change";
    assert_eq!(causes.into_iter().collect::<Vec<_>>(), [cause]);
    assert_eq!(parked(bed.memory()).await.unwrap().len(), 1);
    // What others ask of it is still done.
    bed.put("Follow", &FOLLOW, &[]).await;
    assert!(goes_on(&mut bed, &engine).await.0 < BATCHES_MAX);
    assert_eq!(bed.shown(&user, "FollowingCount"), "1");
}

#[tokio::test]
async fn an_application_that_changes_an_item_often_stops_nothing() {
    let mut bed = Bed::new();
    let engine = bed.engine();
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let follow = bed.put("Follow", &[("FollowerId", "bob"), ("FolloweeId", "ann")], &[]).await;
    for n in 0..200 {
        // The whole item is put without what is derived, and what its copy comes from changes to and fro.
        bed.put("Follow", &[("FollowerId", "bob"), ("FolloweeId", "ann")], &[]).await;
        bed.set(&user, "Name", ["Ann", "Anna"][n % 2]).await;
        if n % 3 > 0 {
            let (n_batches, causes) = goes_on(&mut bed, &engine).await;
            assert!(n_batches < BATCHES_MAX && causes.is_empty(), "{causes:?}");
        }
    }
    goes_on(&mut bed, &engine).await;
    assert_eq!(bed.shown(&follow, "FolloweeName"), "Anna");
    assert_eq!(bed.findings(), Vec::<String>::new());
}

// ---- A kind that panics ----

/// Ann follows Bob, whose name makes a kind panic. Returns what is parked after their batch and at last, and the causes.
async fn panicking(kind: OfUsers) -> ([Vec<String>; 2], BTreeSet<String>) {
    let schema = catalogue::schema();
    let catalogue = kind.beside(&schema);
    let mut bed = Bed::with(schema, catalogue);
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let records = bed.records();
    let mut all = vec![bed.handle(&records).await];
    let first = bed.parked();
    all.extend(bed.settle().await);
    assert!(all.iter().all(|handled| handled.failed_from.is_none()));
    assert_eq!(bed.shown(&user, "FollowingCount"), "1");
    assert_eq!(bed.shown(&follow, "FolloweeName"), "Bob", "the follow requests it for itself");
    let parked = all.into_iter().flat_map(|handled| handled.account.parked);
    ([first, bed.parked()], parked.map(|parked| parked.cause).collect())
}

/// The assertion quotes the name, which must not come into a log.
fn not_bob(image: &Image<'_>) {
    assert_ne!(image.attribute("Name"), Some(&s("Bob")), "not him");
}

#[tokio::test]
async fn a_record_on_which_a_kind_panics_is_parked_and_its_neighbours_are_applied() {
    let kind = OfUsers { plans: not_bob, computes: |_, _| Computed::Attributes(Vec::new()) };
    let ([first, _], causes) = panicking(kind).await;
    let cause = "planning it panicked: its message may hold values; the log says where";
    assert_eq!(causes.into_iter().collect::<Vec<_>>(), [cause]);
    assert_eq!(first, ["additive", "level-triggered"].map(|family| format!("PARKED#{family} / {}#00", event_id(2))));
}

#[tokio::test]
async fn a_record_whose_look_panics_is_parked_and_its_neighbours_are_applied() {
    let kind = OfUsers::wanting(|schema, target| {
        target.image(schema).iter().for_each(not_bob);
        Computed::Attributes(Vec::new())
    });
    let ([_, parked], causes) = panicking(kind).await;
    let is_told = |cause: &String| cause.contains("panicked: its message may hold values");
    assert!(!causes.is_empty() && causes.iter().all(is_told), "{causes:?}");
    assert!(parked.iter().all(|key| key.starts_with("PARKED#level-triggered")), "{parked:?}");
}

// ---- Items of the application under the keys of derived items: they stay, are reported, and the derived item waits ----

const FOLLOWS: [(&str, &str); 2] = [("follower", "ann"), ("followee", "bob")];

/// Users, follows with their mirrors, orders, and an item for each status of a user's orders; with a type attribute or
/// without one. The key of a profile's note may be that of a mirror where items say what they are.
fn bed_of_orders(has_type: bool) -> Bed {
    let of_type = if has_type { "type = \"Kind\"" } else { "" };
    let (schema, catalogue) = manifest::load(&format!(
        r##"
        [table]
        partition-key = "pk"
        sort-key = "sk"
        {of_type}
        [entity.User]
        partition-key = "USER#{{id}}"
        sort-key = "PROFILE"
        [entity.Follow]
        partition-key = "USER#{{follower}}"
        sort-key = "FOLLOWS#{{followee}}"
        attributes = ["since"]
        [entity.Follower]
        partition-key = "USER#{{followee}}"
        sort-key = "FOLLOWER#{{follower}}"
        derived = true
        [entity.Order]
        partition-key = "USER#{{user}}"
        sort-key = "ORDER#{{order}}"
        attributes = ["status"]
        [entity.OrderStatus]
        partition-key = "USER#{{user}}"
        sort-key = "STATUS#{{status}}"
        derived = true
        derived-attributes = ["orders"]
        [derivation.followers]
        kind = "mirror"
        from = "Follow"
        to = "Follower"
        [derivation.by-status]
        kind = "count"
        from = "Order"
        into = "OrderStatus.orders"
        creates = true
        "##
    ))
    .unwrap();
    Bed::with(schema, catalogue)
}

/// A note of the application under this key; without a type where there is `None`.
fn note(bed: &Bed, key: &Key, kind: Option<&str>) -> Item {
    let mut note = bed.schema.layout.key_item(key);
    note.extend(kind.and_then(|kind| bed.schema.layout.type_of(kind)));
    note.insert("text", s("precious"));
    let write = Write { table: Table::Main, key: key.clone(), action: Action::Put(note.clone()), guard: None };
    now(bed.memory().write(&write)).unwrap();
    note
}

/// The names of the derivations for which an item is listed; not of the items that no derivation can read.
fn listed_by(bed: &Bed) -> Vec<String> {
    let entries = bed.ledger("UNREADABLE");
    let names = entries.iter().filter_map(|entry| Some(text(entry, "Derivation")?.to_owned()));
    names.filter(|name| name != "*").collect()
}

#[tokio::test]
async fn an_applications_item_stays_under_a_derived_key_and_the_derived_item_waits() {
    // A type that nobody declared, no type, and that of a declared entity; in a table without types, no mark of Ripple's.
    for (has_type, kind) in [(true, Some("Note")), (true, None), (true, Some("User")), (false, None)] {
        for is_first in [true, false] {
            let mut bed = bed_of_orders(has_type);
            let mirror = Key::new("USER#bob", "FOLLOWER#ann");
            let status = Key::new("USER#ann", "STATUS#paid");
            let keys = [&mirror, &status];
            let of_first: Vec<Item> = keys.iter().filter(|_| is_first).map(|key| note(&bed, key, kind)).collect();
            bed.put("Follow", &FOLLOWS, &[("since", "today")]).await;
            bed.put_settled("Order", &[("user", "ann"), ("order", "1")], &[("status", "paid")]).await;
            let notes = if is_first { of_first } else { keys.map(|key| note(&bed, key, kind)).to_vec() };
            bed.settle().await;
            bed.put("Follow", &FOLLOWS, &[("since", "yesterday")]).await;
            bed.put_settled("Order", &[("user", "ann"), ("order", "2")], &[("status", "paid")]).await;

            let case = format!("{has_type} {kind:?} {is_first}");
            assert_eq!(keys.map(|key| bed.item(key).unwrap()).to_vec(), notes, "{case}");
            let waits = ["followers: USER#bob / FOLLOWER#ann", "by-status-created: USER#ann / STATUS#paid"];
            let mut found = bed.findings();
            found.sort();
            assert_eq!(found.len(), 2, "{case}: {found:?}");
            assert!(found.iter().any(|it| it == waits[0]) && found.iter().any(|it| it.ends_with(&waits[1][17..])));
            assert_eq!(listed_by(&bed).len(), 2, "{case}: {:?}", listed_by(&bed));

            bed.delete(&mirror).await;
            bed.delete_settled(&status).await;
            let (since, orders) = (bed.shown(&mirror, "since"), bed.shown(&status, "orders"));
            assert_eq!((since.as_str(), orders.as_str()), ("yesterday", "2"), "{case}");
            assert_eq!((bed.findings(), listed_by(&bed)), (Vec::new(), Vec::new()), "{case}");
        }
    }
}

/// A cascade finds the follows of a user by their mirrors, or by the key of one that is occupied.
#[tokio::test]
async fn a_cascade_deletes_what_it_finds_by_the_occupied_key_of_a_mirror() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "bob")], &[]).await;
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    let follow = bed.put_settled("Follow", &FOLLOW, &[]).await;
    bed.delete_settled(&user).await;
    bed.days_pass(2).await;
    assert_eq!((bed.item(&follow), bed.shown(&mirror, "text").as_str()), (None, "precious"));
    bed.delete_settled(&mirror).await;
    assert_eq!((bed.item(&mirror), bed.findings(), listed_by(&bed)), (None, Vec::new(), Vec::new()));
}

#[tokio::test]
async fn an_item_that_becomes_the_derived_one_ends_the_wait() {
    let mut bed = bed_of_orders(true);
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    bed.put_settled("Follow", &FOLLOWS, &[("since", "today")]).await;
    bed.set_settled(&mirror, "Kind", "Follower").await;
    assert_eq!((bed.shown(&mirror, "since"), bed.shown(&mirror, "text")), ("today".to_owned(), String::new()));
    assert_eq!((bed.findings(), listed_by(&bed)), (Vec::new(), Vec::new()));
}

/// A mirror whose key does not give its source's key: the post's detail.
const DETAIL: [(&str, &str); 3] = [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", "p")];

#[tokio::test]
async fn a_mirror_that_lists_its_sources_is_created_from_those_that_named_it_while_it_waited() {
    for is_first in [true, false] {
        let mut bed = Bed::new();
        let detail = Key::new("POST#p", "METADATA");
        if is_first {
            note(&bed, &detail, Some("Note"));
        }
        bed.put_settled("Post", &DETAIL, &[("Title", "one")]).await;
        note(&bed, &detail, Some("Note"));
        bed.settle().await;
        assert_eq!(bed.shown(&detail, "text"), "precious");
        bed.delete_settled(&detail).await;
        assert_eq!((bed.shown(&detail, "Title").as_str(), bed.findings()), ("one", Vec::new()), "{is_first}");
    }
}

/// The wait of a post's detail ends, and before its entry goes the detail waits once more: is it there at last?
pub(crate) async fn waits_again_before_the_entry_goes(mut bed: Bed) -> bool {
    let detail = Key::new("POST#p", "METADATA");
    note(&bed, &detail, Some("Note"));
    bed.put_settled("Post", &DETAIL, &[]).await;
    bed.delete(&detail).await;
    let records = bed.records();
    let mut late = bed.start(&bed.event(&records));
    bed.stops_before(&mut late, Purpose::KeyWait);
    note(&bed, &detail, Some("Note"));
    bed.settle().await;
    bed.delete(&detail).await;
    late.finish();
    bed.settle().await;
    bed.item(&detail).is_some()
}

/// The item that has the key of a mirror goes: is the mirror there?
pub(crate) async fn vacated(mut bed: Bed) -> bool {
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    bed.put_settled("Follow", &FOLLOW, &[]).await;
    bed.delete_settled(&mirror).await;
    bed.item(&mirror).is_some()
}

/// The application's item leaves the key, and a record that follows in the batch cannot be done: both are redelivered.
#[tokio::test]
async fn an_entry_goes_when_a_record_of_the_same_item_is_done_later_than_the_one_that_freed_the_key() {
    let mut bed = Bed::new();
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let follow = bed.put_settled("Follow", &FOLLOW, &[]).await;
    assert_eq!(listed_by(&bed).len(), 1);
    bed.set(&follow, "FolloweeName", "Bobby").await;
    bed.records();
    bed.delete(&mirror).await;
    bed.put("Follower", &[("FolloweeId", "bob"), ("FollowerId", "ann")], &[]).await;
    let records = bed.records();
    assert_eq!(records.len(), 2);
    bed.writes_fail(Fault::Unanswered, move |key| *key == follow);
    let handled = bed.handle(&records).await;
    bed.fails(|_| None);
    let number = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
    let from = records.iter().position(|record| number(record) == handled.failed_from).unwrap();
    bed.handle_settled(&records[from..]).await;
    assert_eq!((bed.findings(), listed_by(&bed)), (Vec::new(), Vec::new()));
}

// ---- Items with more attributes than a condition can compare ----

/// More than the 150 comparisons of the longest condition.
const N_ATTRIBUTES: usize = 400;

/// Puts an item with many attributes of its own, whose names are short or long.
async fn put_wide(bed: &Bed, entity: &str, fields: &[(&str, &str)], attributes: &[(&str, &str)], name: &str) -> Key {
    let names: Vec<String> = (0..N_ATTRIBUTES).map(|number| format!("{name}{number}")).collect();
    let own = names.iter().map(|name| (name.as_str(), "N:1"));
    bed.put(entity, fields, &own.chain(attributes.iter().copied()).collect::<Vec<_>>()).await
}

/// The sort key in `GSI1` of a folder with this name and the id `f` has so many bytes more.
const AROUND_NAME: usize = "FOLDER##f".len();

/// Items of the list of those that cannot be read, with the reason of each.
fn listed(bed: &Bed) -> Vec<String> {
    let entry = |item: Item| {
        let shown =
            ["Derivation", "ItemPK", "Attribute", "Why"].map(|name| text(&item, name).unwrap_or_default().to_owned());
        shown.join(" ")
    };
    let ledger = bed.memory().snapshot(Table::Ledger);
    ledger.into_iter().filter(|(key, _)| key.pk == "UNREADABLE").map(|(_, item)| entry(item)).collect()
}

#[tokio::test]
async fn an_item_whose_key_in_an_index_would_be_too_long_is_listed_until_it_is_shorter() {
    let mut bed = Bed::new();
    let longest = "n".repeat(SORT_KEY_BYTES_MAX - AROUND_NAME);
    let folder = bed.put_settled("Folder", &[("FolderId", "f")], &[("Name", &longest), ("ParentId", "top")]).await;
    assert_eq!((bed.shown(&folder, "GSI1SK").len(), listed(&bed)), (SORT_KEY_BYTES_MAX, Vec::new()));

    let too_long = format!("{longest}n");
    bed.put_settled("Folder", &[("FolderId", "f")], &[("Name", &too_long), ("ParentId", "top")]).await;
    let why = "makes a key of 1025 bytes; the limit is 1024, so the item is not in the index GSI1";
    assert_eq!(listed(&bed), [format!("* FOLDER#f FolderId {why}")]);
    let items = bed.memory().snapshot(Table::Main);
    let unreadable = compare(&bed.schema, &bed.catalogue, &items).unreadable;
    assert_eq!(
        unreadable.iter().map(|it| (&*it.derivation, &*it.why)).collect::<Vec<_>>(),
        [("*", &*format!("FolderId {why}"))]
    );

    bed.put_settled("Folder", &[("FolderId", "f")], &[("Name", "short"), ("ParentId", "top")]).await;
    assert_eq!((listed(&bed), bed.findings()), (Vec::new(), Vec::new()));
}

/// A mirror is Ripple's own, so it is written whole however many of its attributes change.
#[tokio::test]
async fn a_mirror_of_which_300_attributes_change_at_once_is_in_step_after_one_write() {
    let mut bed = Bed::new();
    let names: Vec<String> = (0..300).map(|number| format!("Note{number}")).collect();
    for value in ["N:1", "N:2"] {
        let attributes: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value)).collect();
        bed.put("Follow", &FOLLOW, &attributes).await;
        let handled = bed.settle().await;
        let writes = |derivation: &str| {
            let commits = handled.iter().flat_map(|it| &it.account.commits);
            commits.filter(|commit| commit.key.sk == derivation).count()
        };
        assert_eq!((writes("FOLLOWER#ann"), bed.findings()), (1, Vec::new()), "{value}");
    }
    let mirror = bed.item(&Key::new("USER#bob", "FOLLOWER#ann")).unwrap();
    assert!(names.iter().all(|name| mirror.get(name) == Some(&n("2"))), "{mirror:?}");
}

fn names() -> [String; 2] {
    ["Note".to_owned(), "Note".repeat(60)]
}

#[tokio::test]
async fn the_index_keys_of_an_item_of_400_attributes_are_repaired() {
    for name in names() {
        let bed = Bed::new();
        let attributes = [("Name", "new"), ("ParentId", "top")];
        let folder = put_wide(&bed, "Folder", &[("FolderId", "f")], &attributes, &name).await;
        bed.set(&folder, "GSI1SK", "by hand").await;
        let repaired = index_keys_repaired(&bed.engine(), &folder, bed.deadline_ms()).await;
        assert_eq!(repaired, Repaired::Done);
        assert_eq!(bed.shown(&folder, "GSI1SK"), "FOLDER#new#f");
    }
}

#[tokio::test]
async fn a_cascade_deletes_an_item_of_400_attributes() {
    for name in names() {
        let mut bed = Bed::new();
        let user = bed.put("User", &[("UserId", "ann")], &[]).await;
        let fields = [("UserId", "ann"), ("SubscriptionId", "s")];
        let subscription = put_wide(&bed, "Subscription", &fields, &[], &name).await;
        bed.settle().await;
        bed.delete_settled(&user).await;
        bed.days_pass(2).await;
        assert!(!bed.has(&subscription));
        assert_eq!(bed.parked(), Vec::<String>::new());
    }
}
