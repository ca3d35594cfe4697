//! The deployment is completed before the last checks.

use std::sync::Arc;

use engine::backoff::describe;

use crate::{actors::rollout::enter, engines::function, failure::Failure, scene::rollout::Stage, world::World};

impl World {
    /// Only instances of the new version are left, and all of them are registered.
    pub(crate) fn roll_out_the_rest(&mut self) -> Result<(), Failure> {
        if !self.scene.rollout.is_any() {
            return Ok(());
        }
        let scene = Arc::clone(&self.scene);
        scene.heal();
        enter(&scene, Stage::New);
        // By every clock, however far off.
        scene.clock.advance(scene.rollout.look_ms() + 2 * u64::try_from(scene.clocks_off_ms).unwrap());
        for at in 0..self.mappings.len() {
            let (name, families, ledger) =
                (self.mappings[at].name, self.mappings[at].families.clone(), self.mappings[at].ledger);
            let caller = self.caller(name);
            let engine = function(&scene, &families, ledger, Arc::clone(&caller.store), false);
            let deadline_ms = caller.deadline_ms;
            self.start(caller, None, async move {
                engine.publish(deadline_ms).await.map(|_| None).map_err(|error| describe(&error))
            });
        }
        self.settle()?;
        self.wait_until_ready();
        self.settle()
    }
}
