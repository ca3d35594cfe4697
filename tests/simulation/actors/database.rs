//! The tables: late calls land, and indexes catch up.

use engine::clock::Clock as _;

use crate::{engines::FAN_OUT, world::World};

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
