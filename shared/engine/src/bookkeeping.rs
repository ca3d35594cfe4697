//! The service's own items, as data: a sample of each, for the table's design.
//!
//! The code that writes an item also creates its sample, with placeholders such as `{EventId}` in its key, so keys and
//! attributes here match the written ones.

use std::collections::BTreeSet;

use derive::{
    coalesce::Counted,
    effect::Removal,
    family::Family,
    position::RecordAt,
    schema::Unreadable,
    write::{Action, Table, Write},
};
use keys::{item::Item, job::JobKey, key::Key, layout::Layout};

use crate::{
    account::Target,
    batch::{
        SETTLE_MS,
        attempts::{self, Attempt, NOTE_KEPT_S},
        brake::UnreadableReason,
    },
    count::{self, exceptions::excepting},
    fan_out,
    job::Job,
    jobs::{
        deletions::{Listed, page_of_list},
        pulse::{Heard, pulse},
    },
    ledger::{self, LedgerKind, PROOF_KEPT_S, announcing, receipt, receipt_of, shard_key},
    look::listing,
    loss::{Mark, POSSIBLE_LOSS_MS},
    park::Parking,
    record::{Head, Lane},
    registry,
    sweep::{
        Round,
        suspects::{SUSPECT_KEPT_S, Suspect},
    },
};

/// One of the service's own items.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The name that documents give it.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Its table.
    pub table: Table,
    /// Its key, with placeholders.
    pub key: Key,
    /// Its other attributes, by name.
    pub attributes: Item,
    /// How long it is kept.
    pub life: Life,
}

/// How long an item is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// This many seconds, by time to live; DynamoDB may take days longer.
    Seconds(u64),
    /// Until this happens.
    Until(&'static str),
    /// As long as the table.
    Forever,
}

/// A sample of each of the service's own items.
#[must_use]
pub fn kept(layout: &Layout) -> Vec<Kept> {
    let mut samples = Samples { layout, kept: Vec::new() };
    for add in [proofs, parked, lists, notes, loss, pulses, jobs, swept, repairs, registered] {
        add(&mut samples, layout);
    }
    samples.kept
}

/// The samples so far.
struct Samples<'a> {
    layout: &'a Layout,
    kept: Vec<Kept>,
}

impl Samples<'_> {
    /// Adds a sample of the item of each of these writes.
    fn add(&mut self, name: &'static str, purpose: &'static str, life: Life, writes: impl IntoIterator<Item = Write>) {
        let is_key = |name: &str| name == self.layout.pk || name == self.layout.sk;
        self.kept.extend(writes.into_iter().map(|write| {
            let attributes = match write.action {
                Action::Put(item) => item,
                Action::Update(update) => update.set.into_iter().chain(update.add).collect(),
                Action::Delete | Action::Check => Item::default(),
            };
            let attributes = attributes.into_iter().filter(|(name, _)| !is_key(name)).collect();
            Kept { name, purpose, table: write.table, key: write.key, attributes, life }
        }));
    }
}

const EVENT: &str = "{EventId}";

fn proofs(samples: &mut Samples<'_>, layout: &Layout) {
    let shard = shard_key(&lane());
    samples.add(
        "receipt",
        "proof that a change is in; in the transaction of its effects, put if absent",
        Life::Seconds(PROOF_KEPT_S),
        [receipt(layout, EVENT, 0)],
    );
    samples.add("stream shard",
        "under watermarks: the numbers of counter shards with which the stream shard began (`Shards:{Derivation}`), and \
         whether it has exceptions",
        Life::Seconds(PROOF_KEPT_S),
        shard.as_ref().map(|key| announcing(key, 0)),
    );
    samples.add("exception",
        "under watermarks: a change of the stream shard that is parked although no watermark says so. Its sequence number \
         has 41 digits, so that a batch reads its exceptions by a range",
        Life::Seconds(PROOF_KEPT_S),
        shard.as_ref().map(|key| excepting(layout, key, &change(), None, 0)),
    );
    samples.add(
        "settings",
        "of which kind the ledger is; a function configured otherwise refuses to start",
        Life::Forever,
        [ledger::kind_record(layout, LedgerKind::Receipts)],
    );
}

fn parked(samples: &mut Samples<'_>, layout: &Layout) {
    let head = Head { id: Some(EVENT.to_owned()), ..Head::default() };
    let lane = Lane::default();
    for family in [Family::Additive, Family::LevelTriggered] {
        let (counter, exception) = (None, None);
        let parking = Parking { head: &head, record: "{}", cause: "why", family, lane: &lane, counter, exception };
        let purpose =
            "a change that cannot be applied: the whole record, compressed, in parts of 350 KB, with its cause";
        samples.add("parked change", purpose, Life::Until("it is redriven"), parking.writes(layout, 0));
    }
}

fn lists(samples: &mut Samples<'_>, layout: &Layout) {
    let (item, derivation) = (Key::new("{ItemPK}", "{ItemSK}"), "{Derivation}");
    let unreadable = Unreadable { attribute: "name".to_owned(), why: "why".to_owned() };
    let target = Target { derivation: derivation.to_owned(), item: item.clone() };
    samples.add(
        "unreadable item",
        "an item that a derivation cannot interpret, and so counts as absent",
        Life::Until("the item can be read"),
        [listing::listed(layout, derivation, &item, Some(&unreadable), 0)],
    );
    samples.add("held reason",
        "since when batches were held for items that cannot be read for this reason; they are held once under a catalogue",
        Life::Forever,
        [UnreadableReason::of(derivation, &unreadable).note(layout, "{CatalogueDigest}", 0)],
    );
    samples.add(
        "count to be recounted",
        "the target of a change that was refused, since the ledger does not show whether it is in",
        Life::Until("a person deletes it"),
        count::listed(layout, &change(), &[target], "why", 0),
    );
}

fn notes(samples: &mut Samples<'_>, layout: &Layout) {
    let note = attempts::key(&["{Families}".to_owned()], EVENT);
    samples.add(
        "note of an attempt",
        "which attempt at a batch this is, and which record was in progress; named by the batch's first record",
        Life::Seconds(NOTE_KEPT_S),
        [Attempt::whole(EVENT).note(layout, note, Some(EVENT), 0)],
    );
}

fn loss(samples: &mut Samples<'_>, layout: &Layout) {
    let mut mark = Mark::new(Family::Additive, &lane(), POSSIBLE_LOSS_MS, 0);
    "{Family}".clone_into(&mut mark.family);
    let purpose = "a batch came whose oldest record was 20 hours old or older, so that the stream may have dropped others; \
                   put once an hour at most";
    samples.add(
        "mark of a possible loss",
        purpose,
        Life::Until("a verify finds nothing of the family that can be corrected"),
        [mark.write(layout)],
    );
}

fn pulses(samples: &mut Samples<'_>, layout: &Layout) {
    let purpose = "the sweep writes it at each run, if there may be cascades; its record shows a function at work";
    samples.add("pulse", purpose, Life::Forever, [pulse(0)]);
    let purpose = "when a function handled its first pulse and its last; without a late one no cascade begins";
    samples.add("handled pulse", purpose, Life::Forever, [Heard::sample("{Families}").write(layout)]);
    let purpose = "the current hour, for the sums of the last hours or days";
    samples.add("clock", purpose, Life::Forever, [derive::clock::moves_to(0)]);
}

fn jobs(samples: &mut Samples<'_>, layout: &Layout) {
    let (derivation, key) = ("{Derivation}", Key::new("{ItemPK}", "{ItemSK}"));
    let job = JobKey { derivation: derivation.to_owned(), id: EVENT.to_owned() };
    let removal = Removal { owner: key.clone(), absent: vec![key.clone()], named: Vec::new() };
    let waiting = Job::waiting(&job, removal, 0, SETTLE_MS);
    let (item, due) = (waiting.item(layout), waiting.entry().put(layout));
    let job_key = job.key();
    let job = Write { table: Table::Main, key: job_key.clone(), action: Action::Put(item), guard: None };
    let started = receipt_of(layout, &Key::new(format!("RECEIPT#{EVENT}"), derivation), 0);
    samples.add(
        "job",
        "a cascade: what was removed, and how far the deletion is; its records in the stream drive it. Spread over 8 \
         partitions, `JOBS#00` to `JOBS#07`",
        Life::Until("it has ended; it lists 25 hours after the removal, and deletes 25 hours after that"),
        [job],
    );
    samples.add(
        "entry of the queue",
        "when a job is to be looked at: when a cascade is due, and when a job that runs would have stood still for 20 \
         minutes. Spread over 8 partitions, `DUE#00` to `DUE#07`",
        Life::Until("the sweeper has looked at the job"),
        [due],
    );
    let listed = Listed { key: key.clone(), digest: "{Digest}".to_owned() };
    samples.add(
        "list of a cascade",
        "what hung on the removed item when the job listed it, with a digest of each; nothing else is deleted",
        Life::Seconds(PROOF_KEPT_S),
        [page_of_list(layout, &job_key, (0, 0), &[listed], 0)],
    );
    let (job, noted) = fan_out::samples(layout, derivation, &key);
    samples.add("job of a fan-out",
        "which source changed, and how far the items that follow from it are looked at; its records in the stream drive \
         it. `Until` is where it goes on to when the source changed meanwhile, and `Round` \
         says that it has been to the end; `FreeAt` is when it may write again. `Paused` stands on a job of either kind \
         that an operator holds",
        Life::Until("it has ended"),
        [job],
    );
    samples.add("note of a search",
        "what an index was searched for, to be searched for again when it has had time; and, in each partition, how far \
         a sweep is. Spread over 8 partitions, `AGAIN#00` to `AGAIN#07`",
        Life::Until("it is searched for again, a quarter of an hour later"),
        noted,
    );
    samples.add(
        "receipt of a start",
        "proof that a removal has started its cascade, under either ledger",
        Life::Seconds(PROOF_KEPT_S),
        [started],
    );
}

fn swept(samples: &mut Samples<'_>, layout: &Layout) {
    let item = Key::new("{ItemPK}", "{ItemSK}");
    let round =
        Round { after: Some(item.clone()), after_suspect: Some(String::new()), last_ms: Some(0), ..Round::default() };
    let suspect = Suspect {
        item: item.clone(),
        entity: "{Entity}".to_owned(),
        derivations: vec!["{Derivation}".to_owned()],
        named: BTreeSet::from([item]),
        difference: "checksum".to_owned(),
        noted_at_ms: 0,
    };
    samples.add(
        "place of the sweep",
        "how far the sweep's round over the table is, and how long the one before took; moved while it stands where it \
         was read",
        Life::Forever,
        [round.write(layout)],
    );
    samples.add(
        "suspect",
        "an item of which a derived part differed when the sweep looked; of values a checksum alone",
        Life::Seconds(SUSPECT_KEPT_S),
        [suspect.note(layout, None)],
    );
}

fn repairs(samples: &mut Samples<'_>, layout: &Layout) {
    let counter = Key::new("{ItemPK}", "{ItemSK}");
    samples.add(
        "right to repair counts",
        "the run of `ripple repair` that began last; no other adds to a count",
        Life::Forever,
        [ledger::right(layout, "{Run}", 0)],
    );
    samples.add(
        "receipt of a repair",
        "proof that a run has repaired a count; in the transaction of what it adds, put if absent",
        Life::Seconds(PROOF_KEPT_S),
        [ledger::repair_receipt(layout, "{Run}", "{Derivation}", &counter, 0)],
    );
}

fn registered(samples: &mut Samples<'_>, layout: &Layout) {
    let families = [Family::Additive, Family::LevelTriggered];
    samples.add(
        "registry",
        "which derivations the functions of a family have, as what, since when, and since when they are filled; each \
         instance looks at it, and publishes its own when it has others. An item for each family",
        Life::Forever,
        families.map(|family| registry::sample(layout, family)),
    );
}

fn lane() -> Lane {
    let stream_arn = Some("arn:aws:dynamodb:region:account:table/name/stream/{StreamLabel}".to_owned());
    Lane { stream_arn, shard: Some("{ShardId}".to_owned()) }
}

fn change() -> Counted {
    Counted { position: RecordAt(0), id: EVENT.to_owned(), sequence_number: "1".to_owned(), amounts: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::layout;

    #[test]
    fn every_item_has_a_key_of_its_own_form() {
        let layout = layout();
        let shown: Vec<String> = kept(&layout).iter().map(|kept| format!("{}: {}", kept.name, kept.key)).collect();
        expect_test::expect![[r#"
            receipt: RECEIPT#{EventId} / RECEIPT
            stream shard: SHARD#{StreamLabel}#{ShardId} / SHARD
            exception: SHARD#{StreamLabel}#{ShardId} / EXCEPTION#00000000000000000000000000000000000000001#{EventId}
            settings: LEDGER / SETTINGS
            parked change: PARKED#additive / {EventId}#00
            parked change: PARKED#level-triggered / {EventId}#00
            unreadable item: UNREADABLE / {Derivation}#{ItemPK}#{ItemSK}
            held reason: HELD / {CatalogueDigest}#{Derivation}#name#why
            count to be recounted: RECOUNT / {Derivation}#{ItemPK}#{ItemSK}
            note of an attempt: ATTEMPTS#{EventId} / {Families}
            mark of a possible loss: LOSS / {Family}#{StreamLabel}#{ShardId}
            pulse: JOBS#PULSE / PULSE
            handled pulse: PULSE / {Families}
            clock: JOBS#CLOCK / CLOCK
            job: JOBS#05 / {Derivation}#{EventId}
            entry of the queue: DUE#05 / 000000090000000#{Derivation}#{EventId}
            list of a cascade: LISTED#JOBS#05#{Derivation}#{EventId} / 0000000000
            job of a fan-out: JOBS#01 / {Derivation}#8:{ItemPK}|{ItemSK}
            note of a search: AGAIN#05 / 000000000000001#8:{ItemPK}|{ItemSK}
            note of a search: AGAIN#00 / ~
            receipt of a start: RECEIPT#{EventId} / {Derivation}
            place of the sweep: SWEEP / ROUND
            suspect: SUSPECTS / {Entity}#{ItemPK}#{ItemSK}
            right to repair counts: REPAIR / RIGHT
            receipt of a repair: REPAIR#{Run} / {Derivation}#{ItemPK}#{ItemSK}
            registry: CATALOGUE / additive
            registry: CATALOGUE / level-triggered"#]]
        .assert_eq(&shown.join("\n"));
    }
}
