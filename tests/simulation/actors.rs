//! Everybody who acts in a run, one a file. [`World::happens`] is the one call that lets each of them act; how often is
//! in `pace`.

pub(crate) mod application;
pub(crate) mod expiry;
pub(crate) mod operator;
pub(crate) mod platform;
pub(crate) mod repairing;
pub(crate) mod rollout;
pub(crate) mod slices;
pub(crate) mod sweeper;
pub(crate) mod verifying;

use std::sync::Arc;

use engine::jobs::Order;

use crate::{actors::expiry::expire_ground, failure::Failure, pace::Step, stream::Author, world::World};

/// Shards of a run, closed ones included.
const SHARDS_MAX: usize = 12;

impl World {
    /// Lets this happen; false when it cannot.
    pub(crate) fn happens(&mut self, step: Step) -> Result<bool, Failure> {
        let scene = Arc::clone(&self.scene);
        Ok(match step {
            Step::Poll => return self.poll(),
            Step::Deliver => self.deliver(),
            Step::Arrive => (0..=scene.chance.below(6)).filter(|_| self.stream.arrive()).count() > 0,
            Step::Write => self.write(),
            Step::Land => self.land(),
            Step::CatchUp => {
                let n_behind = scene.database.n_behind();
                scene.database.catch_up(scene.chance.below(n_behind));
                scene.count_all("index lag", n_behind.min(1));
                n_behind > 0
            }
            _ if scene.is_healed() => false,
            Step::Split => self.stream.split(SHARDS_MAX),
            Step::Wait => {
                let seconds = scene.chance.between(1, 90);
                scene.trace.note(|| format!("{seconds} seconds pass"));
                scene.clock.advance(seconds as u64 * 1000);
                true
            }
            Step::Expire => {
                self.stream.take(Author::Service);
                let is_expired = expire_ground(&scene);
                self.stream.take(Author::Expiry);
                is_expired
            }
            Step::Redeliver => self.redeliver(),
            Step::SetBack => self.set_back(),
            Step::TimeOut => self.time_out(),
            Step::Replay => self.replay(),
            Step::Redrive => self.redrive(),
            Step::Pause => self.order(Order::Pause),
            Step::Resume => self.order(Order::Resume),
            Step::Sweep => self.sweep() && self.search_again(),
            Step::Slice => self.sweep_slice(),
            Step::Verify => self.verify(),
            Step::Repair => self.repair(),
            Step::Fault => self.plant_fault(),
            Step::RollOut => self.roll_out(),
            Step::Ready => self.wait_until_ready(),
        })
    }
}
