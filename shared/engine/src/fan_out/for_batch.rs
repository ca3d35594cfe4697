//! Settling what came of looking for a batch: each item is mapped back to the records that rang for it.

use std::collections::BTreeSet;

use derive::{
    position::{DerivationAt, RecordAt},
    schema::Unreadable,
    sources::Sources,
};
use store::{Store, Units};

use crate::{
    account::{Account, Commit, ListedItem, undone},
    bells::{Bells, LookRequest, Looked, OccupiedKey, OwnImages, Rung, WrittenItem},
    context::Context,
    fan_out::search::{self, Notes},
    input::Batch,
    look::{self, is_correction, listing::entry_key, occupied, only_undoes},
    park,
};

/// Looks at all items whose bells a batch rang.
pub(crate) async fn look<S: Store>(
    context: &Context<S>,
    mut bells: Bells,
    images: Option<&OwnImages>,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    let listed = occupied::recall(context, &mut bells, batch.patience, account).await;
    let searched = search::search(context, &mut bells, Notes::Taken, batch.patience).await;
    account.commits.extend(searched.commits);
    for (causes, why) in searched.undone {
        undone(account, causes, &why);
    }
    for (derivations, causes, cause) in searched.refused {
        park(context, &derivations, causes, &cause, batch, account).await;
    }
    let mut sources = Sources::default();
    for items in bells.parts() {
        let request = LookRequest { items, images, patience: batch.patience };
        let looked = look::look_in_time(context, request, &mut sources).await;
        settle(context, looked, batch, account).await;
    }
    occupied::take_off(context, listed, batch.patience, account).await;
}

/// Reports a derived item that waits for its key.
fn report_occupied<S: Store>(
    context: &Context<S>,
    rung: &Rung,
    derivation: DerivationAt,
    units: Units,
    account: &mut Account,
) {
    let name = context.catalogue.label(derivation);
    let item = rung.look.item.for_log();
    tracing::warn!(derivation = name, item, "an item that is not Ripple's has the key of a derived item, which waits");
    let Some(position) = rung.causes.first().copied() else { return };
    let key = entry_key(context.catalogue.name(derivation), &rung.look.item);
    account.commits.push(context.ledger_commit(&key, units, position));
    let attribute = context.schema.layout.type_name().to_owned();
    let why = "is not that of the derived item that waits for the key".to_owned();
    account.unreadable.push(ListedItem {
        position,
        key: rung.look.item.clone(),
        derivation: name.to_owned(),
        why: Unreadable { attribute, why },
    });
}

/// Takes what came of looking into the account, and parks the records whose items are refused.
pub(crate) async fn settle<S: Store>(context: &Context<S>, looked: Looked, batch: &Batch<'_>, account: &mut Account) {
    let name = |at: DerivationAt| context.catalogue.label(at);
    account.n_in_step += looked.n_in_step;
    for (derivation, busy) in looked.met {
        account.contention.met(derivation.map(name), busy);
    }
    for derivations in looked.sent_again {
        account.sends_again(derivations);
    }
    for written in looked.written {
        context.corrections.note(&written, only_undoes(&written.rung, &written.write, batch));
        let WrittenItem { rung, write, derivations, at_ms, units } = written;
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
    for OccupiedKey { rung, derivation, units } in looked.occupied {
        report_occupied(context, &rung, derivation, units, account);
    }
    for (rung, why) in looked.undone {
        undone(account, rung.causes, &why);
    }
    for (rung, cause) in looked.refused {
        park(context, &rung.look.derivations, rung.causes, &cause, batch, account).await;
    }
}

async fn park<S: Store>(
    context: &Context<S>,
    derivations: &BTreeSet<DerivationAt>,
    causes: BTreeSet<RecordAt>,
    cause: &str,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    for position in causes {
        park::park(context, position, derivations.iter().copied(), cause, batch, account).await;
    }
}
