use proptest::prelude::*;

use super::*;
use crate::{
    entity::{KeyTemplate, StoredForm},
    error::KeyError,
    fields::Fields,
};

/// A table of one entity with a numeric sort key, one without a sort key, and one with texts of declared forms.
fn forms() -> TableForms {
    let form = |name: &str, pk, sk, entity, indexes| TableForm {
        name: name.to_owned(),
        called: format!("prod-{name}"),
        pk,
        sk,
        entity,
        time_to_live: None,
        indexes,
    };
    let by_status = IndexForm {
        name: "byStatus".to_owned(),
        pk: vec![KeyAttribute::plain("status", KeyType::S), KeyAttribute::plain("region", KeyType::S)],
        sk: vec![KeyAttribute::plain("createdAt", KeyType::N)],
        projection: None,
        entities: vec!["Post".to_owned()],
    };
    let index = |name: &str, pk: &str, sk: Option<&str>| IndexForm {
        name: name.to_owned(),
        pk: vec![KeyAttribute::of_form(pk)],
        sk: sk.iter().map(|sk| KeyAttribute::of_form(sk)).collect(),
        projection: None,
        entities: Vec::new(),
    };
    let (by_text, inverted) = (index("byText", "title", None), index("inverted", "sk", Some("pk")));
    let posts = EntityBy::Table("Post".to_owned());
    let users = EntityBy::Table("User".to_owned());
    TableForms(vec![
        form(
            "Posts",
            KeyAttribute::plain("authorId", KeyType::S),
            Some(KeyAttribute::plain("createdAt", KeyType::N)),
            posts,
            vec![by_status],
        ),
        form("Users", KeyAttribute::plain("id", KeyType::B), None, users, Vec::new()),
        form(
            "Mixed",
            KeyAttribute::of_form("pk"),
            Some(KeyAttribute::of_form("sk")),
            EntityBy::Attribute("__typename".to_owned()),
            vec![by_text, inverted],
        ),
    ])
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

#[test]
fn an_item_has_an_address_its_type_and_the_keys_of_its_indexes_inside() {
    let forms = forms();
    let stored: Item = [
        ("authorId", s("a#b")),
        ("createdAt", n("1700")),
        ("status", s("open")),
        ("region", s("e#u")),
        ("title", s("t")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let inside = forms.0[0].inward(stored.clone()).unwrap();
    let shown: Vec<String> = inside.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    assert_eq!(
        shown,
        [
            r#"Posts/byStatus/pk=S("open#e%23u")"#,
            r#"Posts/byStatus/sk=S("04:1700")"#,
            r#"RipplePK=S("Posts#a%23b")"#,
            r#"RippleSK=S("04:1700")"#,
            r#"RippleType=S("Post")"#,
            r#"region=S("e#u")"#,
            r#"status=S("open")"#,
            r#"title=S("t")"#,
        ]
    );
    assert_eq!(forms.0[0].outward(&inside), Some(stored));
}

#[test]
fn an_item_without_its_key_is_none_and_one_without_an_index_key_is_in_no_index() {
    let posts = &forms().0[0];
    assert_eq!(posts.inward(Item::from([("authorId", s("a"))])), None);
    assert_eq!(posts.inward(Item::from([("authorId", s("a")), ("createdAt", s("1"))])), None);
    let without = Item::from([("authorId", s("a")), ("createdAt", n("1")), ("status", s("open"))]);
    assert!(!posts.inward(without).unwrap().keys().any(|name| name.starts_with("Posts.")));
}

#[test]
fn an_address_leads_to_its_table_and_a_counter_to_ripples_own() {
    let forms = forms();
    let name = |pk: &str, sk: &str| match forms.place(&Key::new(pk, sk)) {
        Place::Table(table) => table.name.clone(),
        Place::Own => "own".to_owned(),
    };
    assert_eq!(name("Posts#a", "04:1700"), "Posts");
    assert_eq!(name("Users#00ff", NO_SORT_KEY), "Users");
    for (pk, sk) in [
        ("Users#00ff", "-#COUNT#posts#00"),
        ("Users#00ff", "-#RIPPLE#last#n01:7#Posts%23a#04:1700"),
        ("JOBS#05", "x"),
        ("Others#a", "-"),
        ("Posts", "-"),
    ] {
        assert_eq!(name(pk, sk), "own", "{pk} / {sk}");
    }
    let counter = CounterKey::home(Key::new("Users#00ff", NO_SORT_KEY), "posts");
    assert_eq!(CounterKey::parse(&counter.key().unwrap()), Some(counter));
}

#[test]
fn a_query_of_a_key_asks_its_attributes() {
    let forms = forms();
    let (_, index) = forms.index("Posts.byStatus").unwrap();
    let partition = KeyRange::partition(&index.pk, "open#e%23u").unwrap();
    assert_eq!(partition.equal, [("status".to_owned(), s("open")), ("region".to_owned(), s("e#u"))]);
    assert_eq!(KeyRange::partition(&index.pk, "open"), None);
    assert_eq!(KeyRange::prefix(&index.sk, ""), KeyRange::default());
    assert_eq!(KeyRange::prefix(&index.sk, "04:1700").equal, [("createdAt".to_owned(), n("1700"))]);
    let between = KeyRange::between(&index.sk, "01:5", "02:10").between;
    assert_eq!(between, Some(("createdAt".to_owned(), [n("5"), n("10")])));
    assert_eq!(KeyRange::after(&index.sk, "01:5").after, Some(("createdAt".to_owned(), n("5"))));
    let texts = [KeyAttribute::of_form("sk")];
    assert_eq!(KeyRange::prefix(&texts, "POST#").begins_with, Some(("sk".to_owned(), s("POST#"))));
    let several = [KeyAttribute::plain("day", KeyType::S), KeyAttribute::plain("at", KeyType::N)];
    let of_day = KeyRange::prefix(&several, "2024#");
    assert_eq!((of_day.equal, of_day.begins_with), (vec![("day".to_owned(), s("2024"))], None));
    let days = KeyRange::prefix(&several, "2024");
    assert_eq!((days.equal, days.begins_with), (Vec::new(), Some(("day".to_owned(), s("2024")))));
}

#[test]
fn an_index_over_texts_of_forms_takes_their_attributes() {
    let mixed = &forms().0[2];
    let stored = Item::from([("pk", s("USER#a")), ("sk", s("POST#b")), ("title", s("T#1")), ("__typename", s("Post"))]);
    let inside = mixed.inward(stored.clone()).unwrap();
    let shown: Vec<String> = inside.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    assert_eq!(
        shown,
        [
            r#"Mixed/byText/pk=S("T#1")"#,
            r#"Mixed/byText/sk=S("-")"#,
            r#"Mixed/inverted/pk=S("POST#b")"#,
            r#"Mixed/inverted/sk=S("USER#a")"#,
            r#"RipplePK=S("Mixed#USER#a")"#,
            r#"RippleSK=S("POST#b")"#,
            r#"RippleType=S("Post")"#,
        ]
    );
    assert_eq!(mixed.outward(&inside), Some(stored));
    let names = ["Mixed/byText/pk", "Mixed/byText/sk", "Mixed/inverted/pk", "Mixed/other/pk", TYPE, PK];
    let stored = [Some("title"), None, None, Some("Mixed/other/pk"), Some("__typename"), None];
    assert_eq!(names.map(|name| mixed.stored_name(name)), stored);
}

fn value(of: KeyType) -> BoxedStrategy<AttributeValue> {
    match of {
        KeyType::S => "[ -~]{1,6}".prop_map(AttributeValue::S).boxed(),
        KeyType::N => any::<i32>().prop_map(|number| n(&number.to_string())).boxed(),
        KeyType::B => prop::collection::vec(any::<u8>(), 1..4).prop_map(AttributeValue::B).boxed(),
    }
}

fn stored(form: &TableForm) -> BoxedStrategy<Item> {
    let keys: Vec<KeyAttribute> = form.sk.iter().chain([&form.pk]).cloned().collect();
    let keys: Vec<_> =
        keys.into_iter().map(|key| value(key.of).prop_map(move |value| (key.name.clone(), value))).collect();
    let others = prop::collection::vec(
        (prop::sample::select(vec!["status", "region", "title", "__typename"]), value(KeyType::S)),
        0..4,
    );
    (keys, others)
        .prop_map(|(keys, others)| {
            keys.into_iter().chain(others.into_iter().map(|(name, value)| (name.to_owned(), value))).collect()
        })
        .boxed()
}

proptest! {
    #[test]
    fn what_goes_in_and_out_is_the_same_item(of in 0usize..3, items in Just(()).prop_flat_map(|()| {
        forms().0.iter().map(stored).collect::<Vec<_>>()
    })) {
        let (forms, item) = (forms(), &items[of]);
        let form = &forms.0[of];
        let inside = form.inward(item.clone()).unwrap();
        prop_assert_eq!(form.outward(&inside), Some(item.clone()));
        let key = Key::new(text(&inside, PK).unwrap(), text(&inside, SK).unwrap());
        prop_assert_eq!(form.key(item), Some(key.clone()));
        let keys: Item = form.sk.iter().chain([&form.pk]).map(|it| (it.name.clone(), item.get(&it.name).unwrap().clone())).collect();
        prop_assert_eq!(form.key_item(&key), Some(keys));
        for index in form.indexes.iter().map(Some).chain([None]) {
            let cursor = form.cursor_inward(index, item).unwrap();
            // An item that is not in an index cannot be the cursor of one of its pages.
            let index = index.filter(|_| cursor.len() > 2);
            prop_assert_eq!(form.cursor_inward(index, &form.cursor_outward(index, &cursor).unwrap()), Some(cursor));
        }
    }
}

#[test]
fn a_key_is_as_long_as_it_is_stored() {
    let of = |pk: &str, sk: &str, stored: StoredForm| KeyTemplate { stored, ..KeyTemplate::parse(pk, sk).unwrap() };
    let stored = |prefix: &str, pk: KeyAttribute, sk: KeyAttribute| StoredForm::Values {
        prefix: prefix.to_owned(),
        pk: vec![pk],
        sk: vec![sk],
    };
    let texts = stored("T#", KeyAttribute::plain("a", KeyType::S), KeyAttribute::plain("b", KeyType::S));
    let plain = of("T#{a}", "{b}", texts);
    let fields = |a: String, b: String| Fields::from([("a", a), ("b", b)]);
    assert!(plain.build(&fields("%".repeat(2_048), "#".repeat(1_024))).is_ok());
    let why = |built: Result<Key, KeyError>| built.unwrap_err().to_string();
    assert_eq!(
        why(plain.build(&fields("%".repeat(2_049), "b".into()))),
        "a makes a key of 2049 bytes; the limit is 2048"
    );
    assert_eq!(
        why(plain.build(&fields("a".into(), "#".repeat(1_025)))),
        "b makes a key of 1025 bytes; the limit is 1024"
    );
    let bytes = stored("T#", KeyAttribute::plain("a", KeyType::B), KeyAttribute::plain("b", KeyType::B));
    let of_bytes = of("T#{a:B}", "{b:B}", bytes);
    assert!(of_bytes.build(&fields("ff".repeat(2_048), "00".repeat(1_024))).is_ok());
    assert!(of_bytes.build(&fields("ff".repeat(2_049), "00".into())).is_err());
    let as_texts = of("{a}", "{b}", StoredForm::Texts);
    assert!(as_texts.build(&fields("%".repeat(683), "b".into())).is_err(), "2,049 bytes are stored");
}

#[test]
fn an_item_is_named_by_its_stored_key_or_by_its_address() {
    let layout = forms().layout();
    let named = |pk: &str, sk| layout.address(pk, sk).map(|key| key.to_string());
    assert_eq!(named("Posts#B #7", Some("1796000000000")), named("Posts#B %237", Some("1796000000000")));
    let address = layout.key(&Item::from([(PK.to_owned(), s("Posts#B %237")), (SK.to_owned(), s("x"))])).unwrap();
    assert!(named("Posts#B #7", Some("5")).is_some_and(|key| key.starts_with(&address.pk)));
    assert_eq!(named("Posts#a", Some("noon")), None, "the sort key is a number");
    assert_eq!(named("Posts#a", None), None, "the sort key is missing");
    assert_eq!(named("Users#0a", None).as_deref(), Some("Users#0a / -"));
    assert_eq!(named("JOBS#00", Some("x")).as_deref(), Some("JOBS#00 / x"));
}
