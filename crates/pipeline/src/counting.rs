//! Counts stored readings, for comparison with the sent ones: in the database's own file, or by a
//! request to the store.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use weigh_model::Endpoint;

use crate::failed::Failed;
use crate::next::{Api, Store};

/// Rows of a store's database, counted in its file over a separate connection.
///
/// # Errors
/// A file that cannot be opened, or is not a store's database.
pub fn rows_in(path: &Path) -> Result<u64, Failed> {
    let failed = |error: rusqlite::Error| Failed::Found(format!("{}: {error}", path.display()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(failed)?;
    let counted = database.query_row("SELECT count(*) FROM readings", [], |row| row.get(0));
    let count: i64 = counted.map_err(failed)?;
    Ok(count.unsigned_abs())
}

/// Readings that a store, or an API with a memory, reports as received.
///
/// # Errors
/// A server that cannot be reached, or is neither.
pub fn asked_of(keeper: &Endpoint) -> Result<u64, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::Found(format!("no runtime: {error}")))?;
    runtime.block_on(async {
        match keeper.scheme.as_str() {
            "http" => Api::connect(keeper).await?.counted().await,
            _ => Store::connect(keeper).await?.counted().await,
        }
    })
}
