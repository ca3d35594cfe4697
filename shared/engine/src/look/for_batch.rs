//! Settling what came of looking for a batch: each item is mapped back to the records that rang for it.

use std::collections::BTreeSet;

use derive::{position::DerivationAt, sources::Sources};
use store::Store;

use crate::{
    account::{Account, Commit, undone},
    batch::input::Batch,
    context::Context,
    fan_out::search::{Notes, Searcher},
    look::{
        Looker,
        bells::Bells,
        correction::is_correction,
        looked::{LookRequest, Looked, WrittenItem},
        own_image::OwnImages,
    },
    park::Parker,
};

/// Looks for a batch.
pub(crate) struct BatchLooker<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> BatchLooker<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> BatchLooker<'_, S> {
    /// Looks at all items whose bells a batch rang.
    pub(crate) async fn look(
        &self,
        mut bells: Bells,
        images: Option<&OwnImages>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let searched = Searcher::new(self.context).search(&mut bells, Notes::Taken, batch.patience).await;
        account.commits.extend(searched.commits);
        for (causes, why) in searched.undone {
            undone(account, causes, &why);
        }
        let mut sources = Sources::default();
        for items in bells.parts() {
            let request = LookRequest { items, images, patience: batch.patience };
            let looked = Looker::new(self.context).look_in_time(request, &mut sources).await;
            self.settle(looked, batch, account).await;
        }
    }

    /// Takes what came of looking into the account, and parks the records whose items are refused.
    pub(crate) async fn settle(&self, looked: Looked, batch: &Batch<'_>, account: &mut Account) {
        let name = |at: DerivationAt| self.context.catalogue.label(at);
        account.n_in_step += looked.n_in_step;
        for (derivation, busy) in looked.met {
            account.contention.met(derivation.map(name), busy);
        }
        for derivations in looked.sent_again {
            account.sends_again(derivations);
        }
        for WrittenItem { rung, write, derivations, at_ms, units } in looked.written {
            account.commits.push(Commit {
                is_correction: is_correction(&rung, &write, batch),
                key: write.key,
                table: write.table,
                action: Some(write.action),
                at_ms,
                units,
                derivations: derivations.into_iter().map(|at| name(at).to_owned()).collect(),
                causes: rung.causes,
            });
        }
        for (rung, why) in looked.undone {
            undone(account, rung.causes, &why);
        }
        for (rung, cause) in looked.refused {
            for position in &rung.causes {
                let derivations: BTreeSet<DerivationAt> = rung.look.derivations.clone();
                Parker::new(self.context).park(*position, derivations, &cause, batch, account).await;
            }
        }
    }
}
