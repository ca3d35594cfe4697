//! Refreshes items for a batch, and maps each result to the records that requested it.

use std::collections::BTreeSet;

use derive::{
    clock,
    position::{DerivationAt, RecordAt},
    schema::Unreadable,
    sources::Sources,
    write::Table,
};
use store::{Store, Units};

use crate::{
    account::{Account, Commit, ListedItem, undone},
    context::Context,
    fan_out::search::{self, Notes},
    input::Batch,
    look::{self, is_correction, listing::entry_key, occupied, only_undoes},
    park,
    requests::{LookRequest, Looked, OccupiedKey, OwnImages, RefreshRequests, RequestedRefresh, WrittenItem},
};

/// Refreshes all items that a batch requested.
pub(crate) async fn look<S: Store>(
    context: &Context<S>,
    mut requests: RefreshRequests,
    images: Option<&OwnImages>,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    let listed = occupied::recall(context, &mut requests, batch.patience, account).await;
    let searched = search::search(context, &mut requests, Notes::Taken, batch.patience).await;
    account.commits.extend(searched.commits);
    for (causes, why) in searched.undone {
        undone(account, causes, &why);
    }
    for (derivations, causes, cause) in searched.refused {
        park(context, &derivations, causes, &cause, batch, account).await;
    }
    let mut sources = Sources::default();
    for items in requests.parts() {
        let request = LookRequest { items, images, patience: batch.patience };
        let looked = look::look_in_time(context, request, &mut sources).await;
        settle(context, looked, batch, account).await;
    }
    occupied::take_off(context, listed, batch.patience, account).await;
}

/// Reports a derived item that waits for its key.
fn report_occupied<S: Store>(
    context: &Context<S>,
    requested: &RequestedRefresh,
    derivation: DerivationAt,
    units: Units,
    account: &mut Account,
) {
    let name = context.catalogue.label(derivation);
    let item = requested.look.item.for_log();
    tracing::warn!(derivation = name, item, "an item that is not Ripple's has the key of a derived item, which waits");
    let Some(position) = requested.causes.first().copied() else { return };
    let key = entry_key(context.catalogue.name(derivation), &requested.look.item);
    account.commits.push(context.ledger_commit(&key, units, position));
    let attribute = context.schema.layout.type_name().to_owned();
    let why = "is not that of the derived item that waits for the key".to_owned();
    account.unreadable.push(ListedItem {
        position,
        key: requested.look.item.clone(),
        derivation: name.to_owned(),
        why: Unreadable { attribute, why },
    });
}

/// Adds the results of refreshes to the account, and parks the records whose items are refused.
pub(crate) async fn settle<S: Store>(context: &Context<S>, looked: Looked, batch: &Batch<'_>, account: &mut Account) {
    let name = |at: DerivationAt| context.catalogue.label(at);
    account.n_in_step += looked.n_in_step;
    account.commits.extend(looked.clock.map(|(causes, units)| Commit {
        key: clock::key(),
        table: Table::Main,
        action: None,
        at_ms: context.clock.now_ms(),
        units,
        derivations: Vec::new(),
        causes,
        is_correction: false,
    }));
    for (derivation, busy) in looked.met {
        account.contention.met(derivation.map(name), busy);
    }
    for derivations in looked.sent_again {
        account.sends_again(derivations);
    }
    for written in looked.written {
        context.corrections.note(&written, only_undoes(&written.requested, &written.write, batch));
        let WrittenItem { requested, write, derivations, at_ms, units } = written;
        account.commits.push(Commit {
            is_correction: is_correction(&requested, &write, batch),
            key: write.key,
            table: write.table,
            action: Some(write.action),
            at_ms,
            units,
            derivations: derivations.into_iter().map(|at| name(at).to_owned()).collect(),
            causes: requested.causes,
        });
    }
    for OccupiedKey { requested, derivation, units } in looked.occupied {
        report_occupied(context, &requested, derivation, units, account);
    }
    for (requested, why) in looked.undone {
        undone(account, requested.causes, &why);
    }
    for (requested, cause) in looked.refused {
        park(context, &requested.look.derivations, requested.causes, &cause, batch, account).await;
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
