//! The stream of the table: shards that split, and records that find their way to them.
//!
//! As on AWS, the records of one item keep their order, and those of different items may change places, even within a
//! transaction. A shard that splits is closed, and its two children continue. Sequence numbers grow within a shard and
//! along a lineage, with gaps and in length, so that sorting them as texts is wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{family::Family, tally::Sum};
use engine::record::Lane;
use keys::{
    item::{Item, text},
    key::Key,
    tables::Place,
};
use operate::verify::ShardRecords;
use support::record::{self, STREAM_ARN};

use crate::{
    chance::mixed,
    checks::WriteCounts,
    deployed::BOTH,
    items::new_value,
    platform::{Lost, corrupted},
    scene::Scene,
};

/// The first sequence numbers are a little below this, so that they soon have one more digit.
const NUMBERS_BEGIN: u128 = 1_000_000_000_000_000_000_000;

/// Step between sequence numbers, times a draw.
const NUMBER_STEP: u128 = 10_000_000_000_000;

/// How far a wrong time is ahead, in seconds: 16 years.
const AHEAD_S: u64 = 16 * 366 * 24 * 3_600;

/// A record as it stands in the stream.
#[derive(Debug)]
pub(crate) struct StreamRecord {
    pub(crate) key: Key,
    pub(crate) id: String,
    pub(crate) sequence_number: String,
    /// The entity of which an item stands there only since this record.
    arrived: Option<String>,
    /// The value that a reading has since this record.
    new_value: Option<Sum>,
    pub(crate) json: Arc<str>,
    /// Position of its shard.
    shard: usize,
    /// Its position in [`Stream::made`].
    pub(crate) made: usize,
    /// The true record, where the one in the stream is corrupt.
    corrupt_of: Option<Arc<str>>,
    /// Did an invocation read it although it is corrupt for others?
    pub(crate) was_read: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// The application itself.
    Application,
    /// Somebody who changes derived values by hand.
    Hand,
    /// Time to live.
    Expiry,
    Service,
}

/// A change of the table, in the order of the writes.
#[derive(Debug)]
pub(crate) struct TableChange {
    pub(crate) key: Key,
    pub(crate) old: Option<Item>,
    pub(crate) new: Option<Item>,
    pub(crate) at_ms: u64,
    pub(crate) author: Author,
}

/// A shard, open or closed.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) id: String,
    pub(crate) lane: Arc<Lane>,
    pub(crate) parent: Option<usize>,
    /// Positions of its records in the stream.
    pub(crate) records: Vec<usize>,
    is_open: bool,
    /// What its table is called.
    table: String,
    /// It holds the items whose hash begins with these bits.
    bits: u64,
    n_bits: u32,
    last_number: u128,
}

/// A write that is not in the stream yet.
#[derive(Debug)]
struct Pending {
    key: Key,
    old: Option<Item>,
    new: Option<Item>,
    at_ms: u64,
    is_expiry: bool,
    made: usize,
}

/// What the only table is called, or that of Ripple's own items.
const MAIN: &str = "Main";

/// The streams of all tables: their shards and records.
#[derive(Debug)]
pub(crate) struct Stream {
    scene: Arc<Scene>,
    pub(crate) records: Vec<StreamRecord>,
    pub(crate) shards: Vec<Shard>,
    on_their_way: Vec<Pending>,
    /// All changes so far, whether they have arrived or not.
    pub(crate) made: Vec<TableChange>,
    /// Does every record decode from now on?
    is_mended: bool,
    /// How often the table had another stream before.
    n_streams: usize,
    /// When the last change was written whose record has a time that is ahead, in milliseconds since the epoch.
    pub(crate) last_ahead_ms: u64,
    pub(crate) lost: Lost,
    /// How often each item was written.
    pub(crate) writes: WriteCounts,
}

/// A record as whoever follows the stream gets it.
#[derive(Clone, Debug)]
pub(crate) struct GivenRecord {
    lane: Arc<Lane>,
    json: Arc<str>,
}

/// The texts of these records, by lane.
pub(crate) fn by_shard(records: &[GivenRecord]) -> Vec<ShardRecords> {
    let mut shards: BTreeMap<&str, ShardRecords> = BTreeMap::new();
    for GivenRecord { lane, json } in records {
        let empty = || ShardRecords { lane: Arc::clone(lane), records: Vec::new() };
        shards
            .entry(lane.shard.as_deref().unwrap_or_default())
            .or_insert_with(empty)
            .records
            .push(json.as_ref().into());
    }
    shards.into_values().collect()
}

impl StreamRecord {
    pub(crate) fn is_corrupt(&self) -> bool {
        self.corrupt_of.is_some()
    }
}

impl Shard {
    /// A text of the first stream, as it says it of the shard's own.
    pub(crate) fn named(&self, text: &str) -> String {
        let arn = self.lane.stream_arn.as_deref().unwrap_or_default();
        if arn == STREAM_ARN { text.to_owned() } else { text.replace(STREAM_ARN, arn) }
    }
}

impl Stream {
    /// A stream of two to four shards.
    pub(crate) fn new(scene: &Arc<Scene>) -> Self {
        let mut stream = Self {
            scene: Arc::clone(scene),
            records: Vec::new(),
            shards: Vec::new(),
            on_their_way: Vec::new(),
            made: Vec::new(),
            is_mended: false,
            n_streams: 0,
            lost: Lost::default(),
            last_ahead_ms: 0,
            writes: WriteCounts::default(),
        };
        stream.open_all();
        stream
    }

    /// Opens the first shards of each table's stream: several of the only table, and one or two of each of several.
    fn open_all(&mut self) {
        let scene = Arc::clone(&self.scene);
        let forms = scene.schema.layout.forms.iter().flat_map(|forms| &forms.0).map(|form| form.called.clone());
        let tables: Vec<String> = std::iter::once(MAIN.to_owned()).chain(forms).collect();
        for table in &tables {
            let n_shards = if tables.len() == 1 { scene.chance.between(2, 4) } else { scene.chance.between(1, 2) };
            let slices: &[(u64, u32)] = match n_shards {
                1 => &[(0, 0)],
                2 => &[(0, 1), (1, 1)],
                3 => &[(0, 1), (2, 2), (3, 2)],
                _ => &[(0, 2), (1, 2), (2, 2), (3, 2)],
            };
            for (bits, n_bits) in slices {
                let below = NUMBER_STEP * u128::try_from(scene.chance.between(1, 20_000)).unwrap();
                self.open(table, None, (*bits, *n_bits), NUMBERS_BEGIN - below);
            }
        }
    }

    /// The table gets another stream, with shards of its own. What is still on its way comes there.
    pub(crate) fn make_anew(&mut self) {
        self.n_streams += 1;
        self.shards.iter_mut().for_each(|shard| shard.is_open = false);
        self.open_all();
    }

    /// The functions of these families never get this record.
    pub(crate) fn loses(&mut self, record: usize, families: &[Family]) {
        let record = &self.records[record];
        self.lost.add(record.made, &record.id, families);
    }

    fn open(&mut self, table: &str, parent: Option<usize>, (bits, n_bits): (u64, u32), last_number: u128) {
        let at = self.shards.len();
        let id = format!("shardId-{:020}-{:08x}", 1_573_689_847_184 + at, mixed(at as u64) >> 32);
        let of_table = STREAM_ARN.replace(&format!("table/{MAIN}/"), &format!("table/{table}/"));
        let stream_arn = Some(format!("{of_table}{}", "1".repeat(self.n_streams)));
        let lane = Arc::new(Lane { stream_arn, shard: Some(id.clone()) });
        let (table, records) = (table.to_owned(), Vec::new());
        self.shards.push(Shard { id, lane, parent, records, is_open: true, table, bits, n_bits, last_number });
    }

    /// Takes over what this author wrote to the table since the last time.
    pub(crate) fn take(&mut self, author: Author) {
        use engine::clock::Clock as _;
        let at_ms = self.scene.clock.now_ms();
        for (key, old, new) in self.scene.database.take_records() {
            self.writes.note(author, &key);
            let (made, is_expiry) = (self.made.len(), author == Author::Expiry);
            let written = TableChange { key, old, new, at_ms, author };
            let (key, old, new) = (written.key.clone(), written.old.clone(), written.new.clone());
            self.on_their_way.push(Pending { key, old, new, at_ms, is_expiry, made });
            self.made.push(written);
        }
    }

    /// A record as a version reads it.
    pub(crate) fn as_read<'a>(&self, record: &'a StreamRecord, is_old: bool) -> &'a Arc<str> {
        record.corrupt_of.as_ref().filter(|_| self.scene.rollout.reads(is_old)).unwrap_or(&record.json)
    }

    /// These records as an operator has them, each with its lane.
    pub(crate) fn given<'a>(&self, records: impl Iterator<Item = &'a StreamRecord>) -> Vec<GivenRecord> {
        let lane = |shard: usize| Arc::clone(&self.shards[shard].lane);
        let given = |record: &StreamRecord| GivenRecord {
            lane: lane(record.shard),
            json: Arc::clone(self.as_read(record, false)),
        };
        records.map(given).collect()
    }

    /// The position of the first change that is not in the stream yet; their number when all are.
    pub(crate) fn first_on_its_way(&self) -> usize {
        self.on_their_way.iter().map(|change| change.made).min().unwrap_or(self.made.len())
    }

    /// Is every write in the stream?
    pub(crate) fn is_complete(&self) -> bool {
        self.on_their_way.is_empty()
    }

    /// A record arrives, often not the one that has waited longest; false when there is none.
    pub(crate) fn arrive(&mut self) -> bool {
        if self.on_their_way.is_empty() {
            return false;
        }
        let one = self.scene.chance.below(self.on_their_way.len().min(6));
        let key = &self.on_their_way[one].key;
        let first = self.on_their_way.iter().position(|change| change.key == *key).unwrap();
        if first > 0 {
            self.scene.count("interleaved");
        }
        self.scene.count("records");
        let change = self.on_their_way.remove(first);
        let shard = self.shard_of(&change.key);
        let step = NUMBER_STEP * u128::try_from(self.scene.chance.below(1_000)).unwrap() + 1;
        self.shards[shard].last_number += step;
        self.add(shard, &change);
        true
    }

    fn add(&mut self, shard: usize, change: &Pending) {
        let number = self.records.len() + 1;
        let id = format!("{number:032x}");
        let sequence_number = self.shards[shard].last_number.to_string();
        let Pending { key, old, new, at_ms, is_expiry, .. } = change;
        let image = |item: &Option<Item>| item.as_ref().map(|item| self.outward(key, item));
        let (keys, old, new) = (self.outward(key, &self.scene.schema.layout.key_item(key)), image(old), image(new));
        let (old, new) = (old.as_ref(), new.as_ref());
        let record = record::Record {
            id: &id,
            sequence_number: &sequence_number,
            keys: &keys,
            old,
            new,
            at_ms: *at_ms,
            is_expiry: *is_expiry,
        };
        let is_ahead = self.is_ahead(change.made, number);
        let seconds = at_ms / 1_000;
        let mut json = in_other_unit(self.shards[shard].named(&record.json()), seconds, number);
        if is_ahead {
            // No count gets it and it starts no cascade, so it is lost, though whatever is refreshed follows it.
            json = json.replacen(&format!(r#"Time":{seconds}"#), &format!(r#"Time":{}"#, seconds + AHEAD_S), 1);
            self.lost.add(change.made, &id, &BOTH);
            self.last_ahead_ms = self.last_ahead_ms.max(*at_ms);
            self.scene.count("times ahead");
        }
        let [before, arrived] = [&change.old, &change.new].map(|item| text(item.as_ref()?, "EntityType"));
        let arrived = arrived.filter(|_| before != arrived).map(str::to_owned);
        // A pulse that is lost is followed by another.
        let corrupt = if self.is_mended || key.sk == "PULSE" { None } else { corrupted(&self.scene, &json) };
        let (json, corrupt_of) = match corrupt {
            Some(corrupt) => (corrupt.into(), Some(json.into())),
            None => (json.into(), None),
        };
        self.scene.trace.note(|| {
            let corrupt = if corrupt_of.is_some() { "corrupt " } else { "" };
            format!(
                "{corrupt}record e{number:x} of {} arrives at {} as {sequence_number}",
                change.key, self.shards[shard].id
            )
        });
        self.shards[shard].records.push(self.records.len());
        let new_value = new_value(&change.key, change.old.as_ref(), change.new.as_ref());
        let (key, made) = (change.key.clone(), change.made);
        let was_read = false;
        self.records.push(StreamRecord {
            key,
            id,
            sequence_number,
            arrived,
            new_value,
            json,
            shard,
            made,
            corrupt_of,
            was_read,
        });
    }

    /// Is the time of this record wrong by years? It takes no draw, and is never one of those in another unit.
    fn is_ahead(&self, made: usize, number: usize) -> bool {
        let may_be = self.scene.is_lossy && !self.scene.is_healed() && self.made[made].author != Author::Service;
        may_be && mixed(number as u64) % 64 == 4
    }

    /// Closes an open shard, and opens two in its place; false when there are enough shards.
    pub(crate) fn split(&mut self, shards_max: usize) -> bool {
        if self.shards.len() + 2 > shards_max {
            return false;
        }
        let open: Vec<usize> = (0..self.shards.len()).filter(|at| self.shards[*at].is_open).collect();
        let at = *self.scene.chance.one_of(&open).unwrap();
        let parent = &mut self.shards[at];
        parent.is_open = false;
        let (bits, n_bits, last_number, table) = (parent.bits, parent.n_bits, parent.last_number, parent.table.clone());
        self.open(&table, Some(at), (bits * 2, n_bits + 1), last_number);
        self.open(&table, Some(at), (bits * 2 + 1, n_bits + 1), last_number);
        self.scene.count("split");
        self.scene.trace.note(|| format!("{} splits", self.shards[at].id));
        true
    }

    /// The table of the item with this key.
    fn table(&self, key: &Key) -> &str {
        match self.scene.schema.layout.forms.as_ref().map(|forms| forms.place(key)) {
            Some(Place::Table(form)) => &form.called,
            Some(Place::Own) | None => MAIN,
        }
    }

    /// An item, or its key, as the record of its table has it.
    fn outward(&self, key: &Key, item: &Item) -> Item {
        match self.scene.schema.layout.forms.as_ref().map(|forms| forms.place(key)) {
            Some(Place::Table(form)) => form.outward(item).unwrap(),
            Some(Place::Own) | None => item.clone(),
        }
    }

    fn shard_of(&self, key: &Key) -> usize {
        let (hash, table) = (hash(key), self.table(key));
        let is_of = |shard: &Shard| shard.is_open && shard.table == table;
        let holds = |shard: &Shard| is_of(shard) && hash.checked_shr(64 - shard.n_bits).unwrap_or(0) == shard.bits;
        self.shards.iter().position(holds).unwrap()
    }

    pub(crate) fn corrupt(&self) -> BTreeSet<String> {
        self.records.iter().filter(|record| record.corrupt_of.is_some()).map(|record| record.id.clone()).collect()
    }

    /// The true records of the corrupt ones by their ids.
    pub(crate) fn true_records(&self) -> BTreeMap<String, Arc<str>> {
        self.records.iter().filter_map(|record| Some((record.id.clone(), record.corrupt_of.clone()?))).collect()
    }

    /// From now on every record decodes.
    pub(crate) fn mend(&mut self) {
        self.is_mended = true;
        for record in &mut self.records {
            if let Some(json) = record.corrupt_of.take() {
                record.json = json;
            }
        }
    }

    /// All new values of readings, with their keys, and whether they were lost.
    pub(crate) fn new_values(&self) -> impl Iterator<Item = (&Key, &Sum, bool)> {
        let is_lost = |record: &StreamRecord| self.lost.has(record.made, Family::Additive);
        self.records.iter().filter_map(move |record| Some((&record.key, record.new_value.as_ref()?, is_lost(record))))
    }

    /// Keys of an entity's items that arrived, one for each arrival, and whether its record was lost for counts.
    pub(crate) fn arrivals(&self, entity: &str) -> impl Iterator<Item = (&Key, bool)> {
        let of = self.records.iter().filter(move |record| record.arrived.as_deref() == Some(entity));
        of.map(|record| (&record.key, self.lost.has(record.made, Family::Additive)))
    }
}

/// The record with its time in another unit, or written otherwise, as some emulators and copies of a stream have it: one of
/// sixteen. It takes no draw, so that it changes no run.
fn in_other_unit(json: String, seconds: u64, number: usize) -> String {
    let written = match mixed(number as u64) % 64 {
        0 => format!("{seconds}000"),
        1 => format!("{seconds}000000"),
        2 => format!("{seconds}000000000"),
        3 => format!("{seconds}0e-1"),
        _ => return json,
    };
    json.replacen(&format!(r#"Time":{seconds}.0,"#), &format!(r#"Time":{written},"#), 1)
}

/// A hash of a key, spread over all 64 bits.
pub(crate) fn hash(key: &Key) -> u64 {
    let bytes = key.pk.bytes().chain([0]).chain(key.sk.bytes());
    mixed(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
}
