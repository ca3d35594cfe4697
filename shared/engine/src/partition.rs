//! Reading a whole partition of a table.

use derive::{query::Query, write::Table};
use keys::item::Item;
use store::{Store, StoreError};

/// All items of a partition, page by page.
pub(crate) async fn all<S: Store>(store: &S, table: Table, pk: &str) -> Result<Vec<Item>, StoreError> {
    let query = Query::prefix(None, pk, "");
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = store.query(table, &query, after).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(items);
        }
    }
}
