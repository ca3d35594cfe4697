//! The streams of several tables, as one.

use std::sync::Arc;

use futures::future::select_all;
use store::Store;
use stream::poller::StreamError;
use tokio::task::JoinError;

use super::{
    EMPTY_PAGES_MS, Followed, ProgressSource, Spool,
    retained::{RetainedRecords, RetainedStreams},
};
use crate::{
    checkpoints::LedgerCheckpoints,
    failure::OperateError,
    tables::Deployment,
    verify::{Following, Retained, ShardRecords},
};

/// The streams of several tables.
pub(in crate::verifying) struct FollowedStreams(Vec<Followed>);

impl FollowedStreams {
    /// Follows all streams of the tables.
    pub(in crate::verifying) async fn start<S: Store + 'static>(
        opened: &Deployment<S>,
        handled: ProgressSource,
        spool: &Spool,
    ) -> Result<Self, OperateError> {
        let mut all = Vec::new();
        for stream in &opened.streams {
            let ledger = LedgerCheckpoints::new(Arc::clone(&opened.store), opened.schema.layout.clone(), &stream.arn);
            all.push(Followed::start(stream, handled, spool, ledger).await?);
        }
        Ok(Self(all))
    }

    /// Ends when one of the streams cannot be followed.
    pub(in crate::verifying) fn ended(
        &mut self,
    ) -> impl Future<Output = Result<Result<(), StreamError>, JoinError>> + use<> {
        let all: Vec<_> = self.0.iter_mut().filter_map(|followed| followed.task.take()).collect();
        async {
            if all.is_empty() {
                return std::future::pending().await;
            }
            select_all(all).await.0
        }
    }
}

/// What all of them have given or handled, they have together.
impl Following for FollowedStreams {
    fn records(&self) -> Vec<ShardRecords> {
        self.0.iter().flat_map(Followed::records).collect()
    }

    fn has_given(&self, moment_ms: u64) -> bool {
        self.0.iter().all(|followed| followed.has_given(moment_ms))
    }

    fn is_handled(&self, moment_ms: u64) -> Option<bool> {
        self.0.iter().try_fold(true, |all, followed| Some(followed.is_handled(moment_ms)? && all))
    }

    fn is_typed(&self) -> bool {
        self.0.iter().any(Followed::is_typed)
    }

    fn retained(&self, until_ms: u64) -> Box<dyn Retained + '_> {
        let read = |followed: &Followed| {
            let until_ms = until_ms.saturating_add(EMPTY_PAGES_MS);
            RetainedRecords::read(followed.mapping.clone(), &followed.stream, until_ms)
        };
        Box::new(RetainedStreams(self.0.iter().map(read).collect()))
    }
}
