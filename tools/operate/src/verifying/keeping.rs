//! What a verification reports, kept in its file.

use std::{io, sync::Arc};

use engine::count::target::Target;
use keys::key::Key;

use super::{
    ABOUT_NOTHING, Difference, FINDING, UNDECIDED, UNLIKE, UNPROVEN, UNREADABLE, WAITING,
    spool::{ResultRow, Spool},
};
use crate::{
    progress::Progress,
    verify::{
        Finding, UnreadableItem,
        report::{Listener, VerifyEvent},
    },
};

/// Keeps what is reported in the file, and shows the progress.
pub(super) struct Keeping {
    pub(super) spool: Spool,
    pub(super) progress: Arc<dyn Progress>,
}

impl Keeping {
    fn keep_item(&mut self, kind: &'static str, item: &UnreadableItem) -> io::Result<()> {
        let UnreadableItem { derivation, pk, sk, .. } = item;
        let value = serde_json::to_string(item)?;
        self.spool.keep(&ResultRow { kind, derivation, pk, sk, is_flaw: false, value: &value })
    }
}

impl Listener for Keeping {
    fn report(&mut self, event: VerifyEvent) -> io::Result<()> {
        let (kind, finding, why) = match event {
            VerifyEvent::Finding(finding, belief) => (FINDING, finding, Some(belief.to_string())),
            VerifyEvent::Undecided(finding, why) => (UNDECIDED, finding, Some(why.to_string())),
            VerifyEvent::Waiting(finding) => (WAITING, finding, None),
            VerifyEvent::Unproven(Target { derivation, item: Key { pk, sk } }) => {
                return self.spool.keep(&ResultRow {
                    kind: UNPROVEN,
                    derivation: &derivation,
                    pk: &pk,
                    sk: &sk,
                    is_flaw: false,
                    value: "",
                });
            }
            VerifyEvent::AboutNothing(about) => {
                let (derivation, value) = (&about.derivation, serde_json::to_string(&about)?);
                let row = ResultRow { kind: ABOUT_NOTHING, derivation, pk: "", sk: "", is_flaw: false, value: &value };
                return self.spool.keep(&row);
            }
            VerifyEvent::Unreadable(item) => return self.keep_item(UNREADABLE, &item),
            VerifyEvent::Unlike(item) => return self.keep_item(UNLIKE, &item),
        };
        let difference = Difference { finding, why };
        let value = serde_json::to_string(&difference)?;
        let Finding { derivation, pk, sk, flaw, .. } = &difference.finding;
        self.spool.keep(&ResultRow { kind, derivation, pk, sk, is_flaw: flaw.is_some(), value: &value })
    }

    fn read(&mut self, n_items: usize) {
        self.progress.read(n_items);
    }

    fn looked(&mut self, n_items: usize) {
        self.progress.looked(n_items);
    }

    fn counted(&mut self, n_counts: usize) {
        self.progress.counted(n_counts);
    }
}
