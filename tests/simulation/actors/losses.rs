//! Losses: a lane is given up for good, a mapping is off for more than a day, a stream is made anew.
//!
//! A stream keeps a record for 24 hours, so a record that no function handled for longer is gone. A lane or a mapping stops
//! first, while all else goes on; the application waits. When nothing else is left to do, 25 hours pass, and what waited is
//! gone. The functions that are at work again handle a pulse, which leaves the mark of a possible loss; an operator repairs,
//! and takes the mark away.

use derive::{
    family::Family,
    write::{Action, Table, Update, Write},
};
use engine::clock::Clock as _;
use keys::{
    item::{Item, text},
    job::PARTITION,
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::Store as _;

use crate::{
    caller::now,
    deployed::FAN_OUT,
    items::n,
    platform::{mapping::Mapping, stream::Author},
    scene::Scene,
    world::{Loss, World},
};

const LOSSES_MAX: usize = 2;

/// How many repairs may fail in a run.
const TRIES_MAX: usize = 3;

/// How long nothing is handled, in milliseconds: longer than a stream keeps a record.
const LOST_AFTER_MS: u64 = 25 * 3_600 * 1_000;

/// The clock of an instance that leaves a mark is off by less, in milliseconds.
const CLOCKS_OFF_MS: u64 = 60_000;

/// The partition key of what is known of pulses, and the sort key of the pulse.
const PULSE: &str = "PULSE";

/// The item that the sweep writes at each of its runs.
pub(crate) fn pulse_key() -> Key {
    Key::new(format!("{PARTITION}{PULSE}"), PULSE)
}

impl World {
    /// A lane, a mapping or the whole stream stops; false when nothing waits there.
    pub(crate) fn stop(&mut self) -> bool {
        let is_known = |items: &derive::derived::Items| items.keys().any(|key| key.pk == PULSE);
        let is_heard = self.scene.database.memory().view(Table::Ledger, is_known);
        if self.losses.n >= LOSSES_MAX || self.losses.stopped.is_some() || !is_heard {
            return false;
        }
        let loss = [Loss::Lane, Loss::Mapping, Loss::Stream][self.scene.chance.below(3)];
        let at = self.scene.chance.below(self.mappings.len());
        self.mappings.iter_mut().for_each(|mapping| mapping.take(&self.stream));
        if !self.mappings[at].is_behind() {
            return false;
        }
        let is_stopped = match loss {
            Loss::Lane => self.mappings[at].stop_lane(&self.stream),
            Loss::Mapping => self.mappings[at].stop(),
            Loss::Stream => self.mappings.iter_mut().all(Mapping::stop),
        };
        if is_stopped {
            self.scene.trace.note(|| format!("{loss:?} of {} stops", self.mappings[at].name));
            self.losses.stopped = Some(loss);
        }
        is_stopped
    }

    /// All else is done. A day later what has stopped goes on, without what waited there; false when nothing has stopped.
    pub(crate) fn lose(&mut self) -> bool {
        let Some(loss) = self.losses.stopped.take() else { return false };
        while self.land() {}
        self.scene.trace.note(|| "more than a day passes".to_owned());
        self.scene.clock.advance(LOST_AFTER_MS);
        self.mappings.iter_mut().for_each(|mapping| mapping.take(&self.stream));
        let mut n_lost = 0;
        for mapping in &mut self.mappings {
            let records = mapping.give_up();
            n_lost += records.len();
            let (name, families) = (mapping.name, &mapping.families);
            self.scene.trace.note(|| format!("{name} never gets {records:?}"));
            if !records.is_empty() && families.contains(&Family::LevelTriggered) {
                self.losses.unmarked_since_ms = Some(self.scene.clock.now_ms());
            }
            for record in records {
                self.stream.loses(record, families);
            }
        }
        if matches!(loss, Loss::Stream) {
            self.stream.make_anew();
        }
        self.scene.count(match loss {
            Loss::Lane => "lanes given up",
            Loss::Mapping => "mappings off",
            Loss::Stream => "streams anew",
        });
        self.scene.count_all("records lost", n_lost);
        (self.losses.n, self.losses.is_open) = (self.losses.n + 1, true);
        self.beat();
        true
    }

    /// The sweep writes a pulse.
    pub(crate) fn beat(&mut self) {
        self.stream.take(Author::Service);
        let key = pulse_key();
        let set = Item::from([("WrittenAt".to_owned(), n(&self.scene.clock.now_ms().to_string()))]);
        self.application.untyped.insert(key.clone());
        let write = Write { table: Table::Main, key, action: Action::Update(Update::set(set)), guard: None };
        now(self.scene.database.memory().write(&write)).unwrap();
        self.stream.take(Author::Service);
    }

    /// Looks whether a mark shows the last loss by now.
    pub(crate) fn follow_losses(&mut self) {
        let Some(since_ms) = self.losses.unmarked_since_ms else { return };
        let shows = |(key, item): (&Key, &Item)| {
            let until_ms = item.get("Until").and_then(keys::value::whole_number).unwrap_or(0);
            key.pk == "LOSS"
                && text(item, "Family") == Some("level-triggered")
                && u64::try_from(until_ms).unwrap() + CLOCKS_OFF_MS >= since_ms
        };
        if self.scene.database.memory().view(Table::Ledger, |items| items.iter().any(shows)) {
            self.scene.trace.note(|| "a mark shows the loss".to_owned());
            self.losses.unmarked_since_ms = None;
        }
    }

    /// The operator repairs what was lost. Where too many calls fail for that, they end now.
    pub(crate) fn repair_what_was_lost(&mut self) -> bool {
        self.losses.n_tries += 1;
        if self.losses.n_tries > TRIES_MAX {
            self.scene.heal();
            self.scene.mend();
        }
        self.scene.count("losses repaired");
        let is_proven = self.proves_all();
        drop(self.begin_repair(is_proven));
        true
    }
}

// ---- The tables: late calls land, and indexes catch up ----

impl World {
    /// A late call lands; false when there is none.
    pub(crate) fn land(&mut self) -> bool {
        let n_late = self.scene.database.n_late();
        match self.scene.database.land(self.scene.chance.below(n_late)) {
            None => false,
            Some(landed) => {
                self.scene.trace.note(|| format!("late: {} : {}", landed.call, landed.how));
                true
            }
        }
    }

    /// An index takes up one change; false when none lags.
    pub(crate) fn catch_up(&mut self) -> bool {
        let n_behind = self.scene.database.n_behind();
        self.scene.database.catch_up(self.scene.chance.below(n_behind));
        self.scene.count_all("index lag", n_behind.min(1));
        n_behind > 0
    }

    /// Lets an index catch up that has lagged for half of the allowed time.
    pub(crate) fn limit_index_lag(&mut self) {
        let now_ms = self.scene.clock.now_ms();
        if self.scene.database.n_behind() == 0 {
            self.behind_since_ms = None;
        } else if now_ms.saturating_sub(*self.behind_since_ms.get_or_insert(now_ms)) > FAN_OUT.index_lag_ms / 2 {
            while self.scene.database.n_behind() > 0 {
                self.scene.database.catch_up(0);
            }
        }
    }
}

// ---- Items that are removed by their time to live ----

/// Removes one expired item of the main table; false when there is none.
pub(crate) fn expire_ground(scene: &Scene) -> bool {
    let is_expired = expire(scene, Table::Main);
    if is_expired {
        scene.count("expired");
    }
    is_expired
}

/// Removes one expired item of the ledger; false when there is none.
pub(crate) fn expire_ledger(scene: &Scene) -> bool {
    expire(scene, Table::Ledger)
}

fn expire(scene: &Scene, table: Table) -> bool {
    let now_s = scene.clock.now_ms() / 1000;
    let is_past = |(_, item): &(&Key, &Item)| match item.get("ExpiresAt") {
        Some(AttributeValue::N(text)) => text.parse::<u64>().is_ok_and(|at_s| at_s <= now_s),
        _ => false,
    };
    let key = scene.database.memory().view(table, |items| {
        let place = scene.chance.below(items.len());
        let past = items.iter().skip(place).chain(items.iter().take(place)).find(is_past);
        past.map(|(key, _)| key.clone())
    });
    let Some(key) = key else { return false };
    scene.trace.note(|| format!("{table:?} expires {key}"));
    now(scene.database.memory().write(&Write { table, key, action: Action::Delete, guard: None })).unwrap();
    true
}
