//! An index on the stream records of the embedded database.
//!
//! Each write looks up the last sequence number, and each read of the stream sorts the later records. Without an index,
//! both scan all records since the start, so 10,000 writes take minutes instead of seconds. The index changes no
//! result. If a later version of the database stores its stream differently, adding the index fails, and the database
//! runs without it.

use rusqlite::Connection;

/// One index for the last number of a table, one for the order of the numbers in a shard.
const STREAM_INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS _ripple_stream_last
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS _ripple_stream_after
        ON _stream_records (table_name, shard_id, CAST(sequence_number AS INTEGER));";

/// Adds the missing indexes to the database at this path.
pub(super) fn add(path: &str) -> rusqlite::Result<()> {
    Connection::open(path)?.execute_batch(STREAM_INDEXES)
}
