use super::*;

fn counted(position: usize, counters: &[&str]) -> Counted {
    let adds = Adds::Tally(Tally::of(1));
    let amount =
        |counter: &&str| Amount { item: Key::new(*counter, "C"), derivation: DerivationAt(0), adds: adds.clone() };
    let id = position.to_string();
    Counted {
        position: RecordAt(position),
        id: id.clone(),
        sequence_number: id,
        amounts: counters.iter().map(amount).collect(),
    }
}

#[test]
fn a_chunk_holds_99_changes_of_one_counter() {
    let chunks = chunks((0..100).map(|at| counted(at, &["a"])).collect());
    assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [99, 1]);
}

#[test]
fn a_chunk_holds_50_changes_of_50_counters() {
    let names: Vec<String> = (0..100).map(|at| at.to_string()).collect();
    let changes = names.iter().enumerate().map(|(at, name)| counted(at, &[name.as_str()])).collect();
    assert_eq!(chunks(changes).iter().map(Vec::len).collect::<Vec<_>>(), [50, 50]);
}

#[test]
fn chunks_follow_stream_order_and_lose_nothing() {
    let changes: Vec<Counted> = (0..250).map(|at| counted(at, &["a", ["b", "c", "d"][at % 3]])).collect();
    let positions: Vec<usize> = chunks(changes).into_iter().flatten().map(|change| change.position.0).collect();
    assert_eq!(positions, (0..250).collect::<Vec<_>>());
}

fn schema() -> Schema {
    let layout =
        keys::layout::Layout { entity_type: Some("EntityType".into()), ..keys::layout::Layout::of("PK", "SK") };
    Schema::new(layout, [])
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

fn sum(text: &str) -> Sum {
    Sum::of(&n(text)).unwrap()
}

/// A change that adds this amount to the counter `a`.
fn tallied(position: usize, count: i64, text: &str) -> Counted {
    let mut change = counted(position, &["a"]);
    change.amounts[0].adds = Adds::Tally(Tally { count, sum: sum(text) });
    change
}

fn added(chunk: &[Counted]) -> Vec<Item> {
    let added = |(write, _): (Write, DerivationAt)| match write.action {
        Action::Update(update) => update.add,
        other => panic!("{other:?}"),
    };
    amount_writes(&schema(), chunk, &HeldBuckets::new()).into_iter().map(added).collect()
}

#[test]
fn amounts_on_one_counter_become_one_write_and_a_zero_sum_none() {
    let writes =
        amount_writes(&schema(), &[counted(0, &["a"]), counted(1, &["b"]), tallied(2, -1, "0")], &HeldBuckets::new());
    let keys: Vec<&str> = writes.iter().map(|(write, _)| write.key.pk.as_str()).collect();
    assert_eq!(keys, ["b"]);
}

#[test]
fn what_is_nothing_in_count_and_something_in_sum_is_written_and_the_other_way_round() {
    let item = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, text)| ((*name).to_owned(), n(text))).collect();
    let zero = tallied(0, 1, "19.90");
    assert_eq!(added(&[zero.clone(), tallied(1, -1, "-20")]), [item(&[("Value", "0"), ("Sum", "-0.1")])]);
    assert_eq!(added(&[zero.clone(), tallied(1, 1, "-1.99E1")]), [item(&[("Value", "2")])]);
    assert_eq!(added(&[zero, tallied(1, -1, "-19.9")]), Vec::<Item>::new());
}

#[test]
fn values_of_one_bucket_become_one_write_that_sets_what_widens() {
    let form = Arc::new(BucketForm {
        entity: "Rollup".into(),
        count: "Count".into(),
        sum: "Sum".into(),
        min: "Min".into(),
        max: "Max".into(),
    });
    let measured = |position, text| {
        let mut change = counted(position, &["a"]);
        change.amounts[0].adds = Adds::Value(Arc::clone(&form), sum(text));
        change
    };
    let chunk = [measured(0, "1"), measured(1, "4.0")];
    let key = Key::new("a", "C");
    assert_eq!(buckets(&chunk), std::slice::from_ref(&key));
    let held: Item = [("Min", n("2")), ("Max", n("5"))].map(|(name, value)| (name.to_owned(), value)).into();
    for (held, set, [min, max]) in [
        (None, vec![("Max", "4"), ("Min", "1")], [None, None]),
        (Some(held), vec![("Min", "1")], [Some(n("2")), Some(n("5"))]),
    ] {
        let held: HeldBuckets = held.map(|item| (key.clone(), item)).into_iter().collect();
        let writes = amount_writes(&schema(), &chunk, &held);
        let [(Write { action: Action::Update(update), guard: Some(found), .. }, DerivationAt(0))] = writes.as_slice()
        else {
            panic!("{writes:?}");
        };
        let mut wanted: Item = set.into_iter().map(|(name, text)| (name.to_owned(), n(text))).collect();
        wanted.insert("EntityType".to_owned(), AttributeValue::S("Rollup".to_owned()));
        assert_eq!(
            (&update.set, update.add.get("Count"), update.add.get("Sum")),
            (&wanted, Some(&n("2")), Some(&n("5")))
        );
        let mut guard = Guard::as_read(Purpose::Bucket, [("Min", min), ("Max", max)]);
        guard.asks.push(Ask::LacksOrEqual("EntityType".to_owned(), AttributeValue::S("Rollup".to_owned())));
        assert_eq!(*found, guard);
    }
}
