//! One stream that several mappings read: a page that one mapping has read is given to the others, with the records as
//! converted for Lambda.
//!
//! On AWS each event source mapping has its own readers. Here all mappings share the processors with the functions and
//! the database.
//!
//! *Keeps true*: sharing a page does not change what a mapping reads, because an iterator returns the same records at
//! each use. Only a page that has records or ends its shard is shared. An empty page is valid only for the request that
//! read it, because records may have come since. A mapping that asks for fewer records than a page has reads for
//! itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::sdk::SdkStream;
use crate::source::{ApiError, IteratorAt, RecordPage, ShardPage, StreamApi};

/// The number of pages that are kept. A mapping that is further behind reads for itself.
const PAGES_MAX: usize = 4;

/// A stream that mappings read.
#[derive(Clone)]
pub struct Stream {
    pub(crate) api: Arc<dyn StreamApi>,
}

impl Stream {
    /// A stream of AWS or of an emulator.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodbstreams::Client, arn: &str) -> Self {
        let api = SdkStream::new(client, arn.to_owned());
        Self { api: Arc::new(ReadOnce::new(api)) }
    }

    /// A stream of anything else, such as one in memory.
    #[must_use]
    pub fn over(api: Arc<dyn StreamApi>) -> Self {
        Self { api }
    }
}

/// A page that was read or is being read.
type SharedPage = Arc<OnceCell<RecordPage>>;

/// Reads each page once.
pub(crate) struct ReadOnce<A> {
    inner: A,
    /// By iterator, the newest last.
    pages: Mutex<VecDeque<(String, SharedPage)>>,
}

impl<A: StreamApi> ReadOnce<A> {
    pub(crate) fn new(inner: A) -> Self {
        Self { inner, pages: Mutex::default() }
    }

    /// The page at an iterator, already read or still to be read.
    fn page(&self, iterator: &str) -> SharedPage {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, page)) = pages.iter().find(|(at, _)| at == iterator) {
            return Arc::clone(page);
        }
        if pages.len() >= PAGES_MAX {
            pages.pop_front();
        }
        let page = SharedPage::default();
        pages.push_back((iterator.to_owned(), Arc::clone(&page)));
        page
    }

    fn forget(&self, iterator: &str) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).retain(|(at, _)| at != iterator);
    }
}

impl<A: StreamApi> StreamApi for ReadOnce<A> {
    fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>> {
        self.inner.shards(after)
    }

    fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>> {
        self.inner.iterator(shard, at)
    }

    fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>> {
        Box::pin(async move {
            let (shared, mut is_read_here) = (self.page(iterator), false);
            let page = shared.get_or_try_init(|| {
                is_read_here = true;
                self.inner.records(iterator, limit)
            });
            let page = page.await;
            let is_for_others = page.as_ref().is_ok_and(|page| !page.records.is_empty() || page.next.is_none());
            if !is_for_others {
                self.forget(iterator);
            }
            match page {
                Ok(page) if is_read_here || (is_for_others && page.records.len() <= limit) => Ok(page.clone()),
                Ok(_) => self.inner.records(iterator, limit).await,
                Err(error) => Err(error),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use futures::future::{BoxFuture, join};

    use super::{PAGES_MAX, ReadOnce};
    use crate::source::{ApiError, IteratorAt, RecordPage, ShardPage, StreamApi};
    use crate::tests::memory_stream::MemoryStream;

    /// A stream whose reads take a while, so that another request can come during a read.
    struct Slow(MemoryStream);

    impl StreamApi for Slow {
        fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>> {
            self.0.shards(after)
        }

        fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>> {
            self.0.iterator(shard, at)
        }

        fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>> {
            Box::pin(async move {
                tokio::task::yield_now().await;
                self.0.records(iterator, limit).await
            })
        }
    }

    async fn at_the_oldest(n_records: usize) -> (ReadOnce<Slow>, String) {
        let stream = MemoryStream::default();
        stream.open("a", None);
        stream.insert("a", n_records, SystemTime::UNIX_EPOCH);
        let iterator = stream.iterator("a", &IteratorAt::TrimHorizon).await.unwrap();
        (ReadOnce::new(Slow(stream)), iterator)
    }

    #[tokio::test]
    async fn a_page_is_read_once_by_whoever_asks_at_once_or_later() {
        let (stream, iterator) = at_the_oldest(3).await;
        let (one, other) = join(stream.records(&iterator, 10), stream.records(&iterator, 10)).await;
        let (one, other, later) = (one.unwrap(), other.unwrap(), stream.records(&iterator, 3).await.unwrap());
        assert_eq!([one.records.len(), other.records.len(), later.records.len()], [3, 3, 3]);
        assert_eq!((&one.next, &one.next), (&other.next, &later.next));
        assert_eq!(stream.inner.0.n_records_read(), 3);
        // The records are converted for Lambda only once, too.
        let [made, taken] = [&one, &later].map(|page| page.readings("arn").next().unwrap().1);
        assert!(std::ptr::eq(made, taken));
    }

    #[tokio::test]
    async fn a_page_without_records_is_read_again() {
        let (stream, iterator) = at_the_oldest(0).await;
        // An empty page proves nothing for a request that came during the read.
        let (one, other) = join(stream.records(&iterator, 10), stream.records(&iterator, 10)).await;
        assert!(one.unwrap().records.is_empty() && other.unwrap().records.is_empty());
        assert_eq!(stream.inner.0.n_reads(), 2);
        stream.inner.0.insert("a", 2, SystemTime::UNIX_EPOCH);
        assert_eq!(stream.records(&iterator, 10).await.unwrap().records.len(), 2);
    }

    #[tokio::test]
    async fn who_asks_for_fewer_records_than_were_read_gets_no_more_than_that() {
        let (stream, iterator) = at_the_oldest(3).await;
        assert_eq!(stream.records(&iterator, 10).await.unwrap().records.len(), 3);
        assert_eq!(stream.records(&iterator, 2).await.unwrap().records.len(), 2);
    }

    #[tokio::test]
    async fn who_is_behind_by_more_pages_than_are_kept_reads_for_itself() {
        let (stream, first) = at_the_oldest(PAGES_MAX + 1).await;
        let mut iterator = first.clone();
        for _ in 0..=PAGES_MAX {
            iterator = stream.records(&iterator, 1).await.unwrap().next.unwrap();
        }
        assert_eq!(stream.records(&first, 1).await.unwrap().records.len(), 1);
        assert_eq!(stream.inner.0.n_records_read(), PAGES_MAX + 2);
    }

    #[tokio::test]
    async fn a_read_that_failed_is_made_again() {
        let (stream, iterator) = at_the_oldest(1).await;
        stream.inner.0.fail(&ApiError::ExpiredIterator, 1);
        assert!(stream.records(&iterator, 1).await.is_err());
        assert_eq!(stream.records(&iterator, 1).await.unwrap().records.len(), 1);
    }
}
