//! The crowded tables, and helpers for the cases.

use std::{
    fmt::Debug,
    future::Future,
    sync::{Arc, LazyLock},
};

use derive::{
    query::{Consistency, Query},
    write::{Action, Table, Transaction, Write},
};
use futures::FutureExt;
use keys::{item::Item, key::Key};
use queries::{
    Queries,
    cursor::PageCursor,
    page::{Page, PageRequest},
    read_error::ReadError,
};
use store::{
    Outcome, Store, StoreError, TransactOutcome, Updated,
    dynamo::DynamoStore,
    memory::MemoryStore,
    recording::{Recording, Request},
};
use support::database::{client, create_table, embedded_endpoint, unique_names};
use tokio::runtime::Runtime;

use crate::patterns::crowd::{Crowd, crowd};

pub(crate) type Recorded = Arc<Recording<Either>>;

/// A crowded table, which no case writes to.
pub(crate) struct Bed {
    /// The store's name, for messages.
    pub(crate) name: &'static str,
    pub(crate) queries: Queries<Recorded>,
    pub(crate) crowd: &'static Crowd,
    recorded: Recorded,
}

/// One of the two stores in one type, so that each case is compiled once.
#[derive(Clone)]
pub(crate) enum Either {
    Memory(Arc<MemoryStore>),
    Embedded(Arc<DynamoStore>),
}

impl Store for Either {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        match self {
            Self::Memory(store) => store.read(table, keys, consistency).boxed(),
            Self::Embedded(store) => store.read(table, keys, consistency).boxed(),
        }
        .await
    }

    async fn query(
        &self,
        table: Table,
        query: &Query,
        after: Option<store::Cursor>,
    ) -> Result<store::Page, StoreError> {
        match self {
            Self::Memory(store) => store.query(table, query, after).boxed(),
            Self::Embedded(store) => store.query(table, query, after).boxed(),
        }
        .await
    }

    async fn scan(
        &self,
        table: Table,
        segment: store::Segment,
        after: Option<store::Cursor>,
    ) -> Result<store::Page, StoreError> {
        match self {
            Self::Memory(store) => store.scan(table, segment, after).boxed(),
            Self::Embedded(store) => store.scan(table, segment, after).boxed(),
        }
        .await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        match self {
            Self::Memory(store) => store.write(write).boxed(),
            Self::Embedded(store) => store.write(write).boxed(),
        }
        .await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        match self {
            Self::Memory(store) => store.update(write).boxed(),
            Self::Embedded(store) => store.update(write).boxed(),
        }
        .await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        match self {
            Self::Memory(store) => store.transact(transaction).boxed(),
            Self::Embedded(store) => store.transact(transaction).boxed(),
        }
        .await
    }
}

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());

static CROWD: LazyLock<Crowd> = LazyLock::new(crowd);

static MEMORY: LazyLock<Either> = LazyLock::new(|| {
    let store = Either::Memory(Arc::new(MemoryStore::new(entities::table::layout())));
    RUNTIME.block_on(fill(&store));
    store
});

static EMBEDDED: LazyLock<Either> = LazyLock::new(|| {
    RUNTIME.block_on(async {
        let (client, names) = (client(&embedded_endpoint().await), unique_names());
        let layout = entities::table::layout();
        create_table(&client, &names.main, &layout).await;
        let store = Either::Embedded(Arc::new(DynamoStore::new(client, layout, names)));
        fill(&store).await;
        store
    })
});

/// A runtime of two threads, which all cases share.
pub(crate) fn runtime() -> &'static Runtime {
    &RUNTIME
}

/// A page of converted items.
pub(crate) fn mapped<T, U>(page: Page<T>, of: impl Fn(T) -> U) -> Page<U> {
    Page { items: page.items.into_iter().map(of).collect(), unreadable: page.unreadable, next: page.next }
}

/// Runs a case against the model.
pub(crate) fn on_memory<F: Future<Output = ()>>(case: impl FnOnce(Arc<Bed>) -> F) {
    run("memory", &MEMORY, case);
}

/// Runs a case against the embedded DynamoDB.
pub(crate) fn on_embedded<F: Future<Output = ()>>(case: impl FnOnce(Arc<Bed>) -> F) {
    run("embedded", &EMBEDDED, case);
}

fn run<F: Future<Output = ()>>(name: &'static str, store: &Either, case: impl FnOnce(Arc<Bed>) -> F) {
    let recorded = Arc::new(Recording::new(store.clone()));
    let queries = Queries::new(Arc::clone(&recorded), || 0);
    let bed = Arc::new(Bed { name, queries, crowd: &CROWD, recorded: Arc::clone(&recorded) });
    RUNTIME.block_on(case(bed));
    let n_scans = recorded.take().iter().filter(|request| matches!(request, Request::Scan(_))).count();
    assert_eq!(n_scans, 0, "{name}: a pattern scans");
}

async fn fill(store: &Either) {
    let layout = entities::table::layout();
    for some in CROWD.items.chunks(100) {
        let put = |item: &Item| {
            let key = layout.key(item).unwrap();
            Write { table: Table::Main, key, action: Action::Put(item.clone()), guard: None }
        };
        let outcome = store.transact(&Transaction::new(some.iter().map(put).collect()).unwrap()).await.unwrap();
        assert!(matches!(outcome, TransactOutcome::Done { .. }), "{outcome:?}");
    }
}

impl Bed {
    /// Checks that a listing is exactly this, in one page, and in three or more whose cursors are stored as text.
    pub(crate) async fn lists<T: PartialEq + Debug>(
        &self,
        about: impl Debug,
        wanted: &[T],
        read: impl AsyncFn(PageRequest) -> Result<Page<T>, ReadError>,
    ) {
        assert!(wanted.len() >= 3, "{about:?}: the crowd has {} of them", wanted.len());
        // At most half of all items but one, so that there are three pages.
        let third = u32::try_from((wanted.len() - 1) / 2).unwrap();
        for limit in [1_000, third, 1] {
            let (mut found, mut n_pages, mut next) = (Vec::new(), 0, None);
            loop {
                let request = match next.take() {
                    None => PageRequest::first(limit),
                    Some(cursor) => PageRequest::after(limit, cursor),
                };
                let page = read(request).await.unwrap();
                assert!(page.unreadable.is_empty(), "{about:?}: {:?}", page.unreadable);
                let is_full = page.items.len() == limit as usize;
                assert!(is_full || page.next.is_none(), "{about:?}: a page of {}", page.items.len());
                found.extend(page.items);
                n_pages += 1;
                // A client stores the text of a cursor.
                next = page.next.map(|cursor| PageCursor::from(cursor.to_string()));
                if next.is_none() {
                    break;
                }
            }
            assert_eq!(found, wanted, "{}, {about:?}, in pages of {limit}", self.name);
            assert!(n_pages >= 3 || limit == 1_000, "{about:?}: {n_pages} pages of {limit}");
        }
    }

    /// Checks a result.
    #[track_caller]
    pub(crate) fn same<T: PartialEq + Debug>(&self, found: &T, wanted: &T, about: impl Debug) {
        assert_eq!(found, wanted, "in the {} store, about {about:?}", self.name);
    }

    /// The requests to the store since the last call.
    pub(crate) fn asked(&self) -> Vec<Request> {
        self.recorded.take()
    }
}
