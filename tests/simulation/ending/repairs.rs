//! Counts that somebody made wrong by hand are found and repaired.

use engine::count::Target;
use operate::verify::Finding;

use crate::{
    actors::{repairing::target, rollout::unfilled},
    failure::Failure,
    world::World,
};

/// How often all that is wrong is repaired at the end.
const REPAIRS_MAX: usize = 6;

impl World {
    /// Only what somebody made wrong is found, and repairs mend it.
    pub(crate) fn faults_are_mended(&mut self) -> Result<(), Failure> {
        self.follow_repairs();
        for n_repairs in 0..REPAIRS_MAX {
            let unfilled = unfilled(&self.scene);
            let mut found = self.verified()?;
            let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
            found.retain(|finding| !lost.has_bucket(finding));
            let is_lost = |finding: &&Finding| finding.flaw.is_none() && lost.explains(finding);
            let is_unfilled = |it: &&Finding| it.flaw.is_none() && unfilled.contains(&it.derivation);
            let is_new = |finding: &&Finding| is_unfilled(finding) || is_lost(finding);
            let counted: Vec<Target> = found.iter().filter(|it| !is_new(it)).filter_map(target).collect();
            if let Some(wrong) = counted.iter().find(|target| !self.planted.left.contains_key(target)) {
                return Err(Failure::new("repair", format!("{wrong:?} is wrong, and nobody made it so: {found:?}")));
            }
            if counted.is_empty() && !found.iter().any(|finding| is_new(&finding)) {
                return Ok(());
            }
            self.scene.count_all("repaired at the end", usize::from(n_repairs == 0));
            // What is young is not repaired.
            if self.wait_until_ready() {
                self.settle()?;
            }
            self.begin_repair(self.proves_all());
            self.settle()?;
            self.follow_repairs();
        }
        Err(Failure::new("repair", "what was made wrong by hand is not mended"))
    }
}
