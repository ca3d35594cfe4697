//! From the text of an event to the writes on counters and the refresh requests, beside a bare typed decode of the same
//! text.
//!
//! `cargo bench -p benches`. `a_typed` is what a function that is written with `aws_lambda_events` pays before its
//! first line runs; the others are our own way, in steps. The rates of one run compare; those of two machines do not.
//!
//! Of the instructions of `d_aggregate` a third reads JSON, another allocates and frees, a tenth each plans, compares
//! and copies texts, and puts attributes in order. Next would be values that borrow from the event.

use aws_lambda_events::event::dynamodb;
use benches::record::Event;
use derive::{
    bucket::StoredBuckets,
    catalogue::Catalogue,
    coalesce::{Adds, Amount, Counted, amount_writes, chunks},
    effect::{Add, Effect},
    family::Family,
    plan::{Planned, plan},
    position::{DerivationAt, RecordAt},
    schema::Schema,
    tally::Tally,
    write::Write,
};
use divan::{Bencher, black_box, counter::ItemsCount};
use keys::counter::CounterKey;

/// Records in a batch: Lambda's default, and what the functions are set to take at most.
const SIZES: [usize; 2] = [100, 1_000];

fn main() {
    for n_records in SIZES {
        let n_bytes = benches::event(n_records).len();
        println!("{n_records} records: {} bytes of JSON each on average", n_bytes / n_records);
    }
    divan::main();
}

fn table() -> (Schema, Catalogue) {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).expect("the shipped catalogue");
    (schema, catalogue)
}

/// Times a step over an event of so many records, and the drop of what it makes: a function pays for both.
fn over<T>(bencher: Bencher<'_, '_>, n_records: usize, step: impl Fn(&str) -> T + Sync) {
    let event = benches::event(n_records);
    bencher.counter(ItemsCount::new(n_records)).bench(|| drop(black_box(step(black_box(&event)))));
}

#[divan::bench(args = SIZES)]
fn a_typed(bencher: Bencher<'_, '_>, n_records: usize) {
    over(bencher, n_records, |event| serde_json::from_str::<dynamodb::Event>(event).expect("an event"));
}

#[divan::bench(args = SIZES)]
fn b_split(bencher: Bencher<'_, '_>, n_records: usize) {
    over(bencher, n_records, |event| Event::parse(event).expect("an event").records.len());
}

#[divan::bench(args = SIZES)]
fn c_decode(bencher: Bencher<'_, '_>, n_records: usize) {
    let (schema, _) = table();
    over(bencher, n_records, |event| {
        drop(black_box(Event::parse(event).expect("an event").decoded(&schema.layout)));
    });
}

/// What the function that counts has to do.
#[divan::bench(args = SIZES)]
fn d_aggregate(bencher: Bencher<'_, '_>, n_records: usize) {
    let (schema, catalogue) = table();
    over(bencher, n_records, |event| coalesced(&schema, &catalogue, &[Family::Additive], event));
}

/// What the function that keeps everything else in step has to do.
#[divan::bench(args = SIZES)]
fn e_propagate(bencher: Bencher<'_, '_>, n_records: usize) {
    let (schema, catalogue) = table();
    over(bencher, n_records, |event| coalesced(&schema, &catalogue, &[Family::LevelTriggered], event));
}

/// Both at once, as the combined function does.
#[divan::bench(args = SIZES)]
fn f_combined(bencher: Bencher<'_, '_>, n_records: usize) {
    let (schema, catalogue) = table();
    over(bencher, n_records, |event| {
        coalesced(&schema, &catalogue, &[Family::Additive, Family::LevelTriggered], event)
    });
}

/// What an event asks for.
#[expect(dead_code, reason = "it is made and dropped")]
struct Asked {
    counts: Vec<(Write, DerivationAt)>,
    rest: Vec<(DerivationAt, Effect)>,
}

fn coalesced(schema: &Schema, catalogue: &Catalogue, families: &[Family], event: &str) -> Asked {
    let (mut counted, mut rest) = (Vec::new(), Vec::new());
    let records = Event::parse(event).expect("an event").decoded(&schema.layout);
    for (position, record) in records.iter().enumerate() {
        let change = record.change.as_ref().expect("a change");
        let Planned { effects, .. } = plan(schema, catalogue, families, change);
        let mut amounts = Vec::new();
        for (derivation, effect) in effects {
            match effect {
                Effect::Add(add) => amounts.push(amount(catalogue, derivation, add)),
                effect => rest.push((derivation, effect)),
            }
        }
        if !amounts.is_empty() {
            let (id, sequence_number) = (change.id.clone(), change.sequence_number.clone());
            counted.push(Counted { position: RecordAt(position), id, sequence_number, amounts });
        }
    }
    let counts = chunks(counted).iter().flat_map(|chunk| amount_writes(schema, chunk, &StoredBuckets::new())).collect();
    Asked { counts, rest }
}

fn amount(catalogue: &Catalogue, derivation: DerivationAt, add: Add) -> Amount {
    let counter = CounterKey::home(add.target, catalogue.name(derivation));
    let adds = Adds::Tally(Tally { count: add.count, sum: add.sum });
    Amount { item: counter.key().expect("a key"), derivation, adds }
}
