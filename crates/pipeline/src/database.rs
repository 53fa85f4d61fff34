//! The store's database: a file of SQLite in WAL mode, written with a transaction per batch, and
//! read over a separate connection.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use crate::failed::Failed;
use crate::kept::{Kept, Page};
use crate::reading::Reading;

/// Durability of a commit (sqlite.org, "PRAGMA synchronous").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// `synchronous=FULL`: the log is synced at every commit, so confirmed readings survive a power
    /// cut.
    Durable,
    /// `synchronous=NORMAL`: the log is synced only at checkpoints. Confirmed readings survive the
    /// process; a power cut may lose the last ones.
    Quick,
}

impl Durability {
    /// The word of SQLite.
    pub(crate) fn synchronous(self) -> &'static str {
        match self {
            Durability::Durable => "FULL",
            Durability::Quick => "NORMAL",
        }
    }
}

/// An open database.
#[derive(Clone)]
pub(crate) struct Database {
    writer: Arc<Mutex<Connection>>,
    reader: Arc<Mutex<Connection>>,
    is_unique: bool,
}

impl Database {
    /// Opens the database, or makes it.
    ///
    /// # Errors
    /// A file that cannot be opened, or belongs to another program.
    pub(crate) fn open(
        path: &Path,
        durability: Durability,
        is_unique: bool,
    ) -> Result<Database, Failed> {
        let failed = |error| Failed::Found(explain(path, &error));
        let mut writer = Connection::open(path).map_err(failed)?;
        writer.busy_timeout(PATIENCE).map_err(failed)?;
        let whose = owner(&writer).map_err(failed)?;
        if whose == Owner::Other {
            let text = "it is a database of another program; choose another file";
            return Err(Failed::Found(format!("--database {}: {text}", path.display())));
        }
        let mode: String = writer
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(failed)?;
        if mode != "wal" {
            let text = format!(
                "its file system does not support WAL (SQLite chose {mode}); use \
                                another"
            );
            return Err(Failed::Found(format!("--database {}: {text}", path.display())));
        }
        prepare(&mut writer, durability, is_unique).map_err(failed)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(path, flags).map_err(failed)?;
        reader.busy_timeout(PATIENCE).map_err(failed)?;
        let (writer, reader) = (Arc::new(Mutex::new(writer)), Arc::new(Mutex::new(reader)));
        Ok(Database { writer, reader, is_unique })
    }

    /// Writes a batch in one transaction; it is committed when this returns.
    pub(crate) fn keep(&self, bodies: &[Bytes]) -> rusqlite::Result<Kept> {
        let mut writer = lock(&self.writer);
        let transaction = writer.transaction()?;
        let mut repeated = Vec::new();
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for body in bodies {
                let reading = Reading::parse(body).ok();
                let sensor = reading.as_ref().map(|reading| reading.sensor.as_ref());
                let time = reading.as_ref().map(|reading| reading.time.as_ref());
                let identity = if self.is_unique { crate::kept::identity(body) } else { None };
                let identity = identity.as_ref().map(|identity| &identity[..]);
                let rows = insert.execute(params![sensor, time, &body[..], identity])?;
                if self.is_unique {
                    repeated.push(rows == 0);
                }
            }
        }
        transaction.commit()?;
        Ok(Kept { repeated })
    }

    /// At most `limit` readings after the row `since`.
    pub(crate) fn read(
        &self,
        since: u64,
        limit: usize,
        sensor: Option<&str>,
    ) -> rusqlite::Result<Page> {
        let reader = lock(&self.reader);
        let (since, limit) = (i64::try_from(since).unwrap_or(i64::MAX), limit as i64);
        let mut page = Page { readings: Vec::new(), next: since as u64 };
        let mut take = |row: &rusqlite::Row<'_>| -> rusqlite::Result<()> {
            page.next = row.get::<_, i64>(0)? as u64;
            page.readings.push(Bytes::from(row.get::<_, Vec<u8>>(1)?));
            Ok(())
        };
        match sensor {
            None => {
                let mut all = reader.prepare_cached(READ_ALL)?;
                let mut rows = all.query(params![since, limit])?;
                while let Some(row) = rows.next()? {
                    take(row)?;
                }
            }
            Some(sensor) => {
                let mut of_it = reader.prepare_cached(READ_SENSOR)?;
                let mut rows = of_it.query(params![since, limit, sensor])?;
                while let Some(row) = rows.next()? {
                    take(row)?;
                }
            }
        }
        Ok(page)
    }

    /// Rows in the table, counted there.
    pub(crate) fn count(&self) -> rusqlite::Result<u64> {
        let count: i64 = lock(&self.reader).query_row(COUNT, [], |row| row.get(0))?;
        Ok(count as u64)
    }
}

/// The program that made a file.
#[derive(PartialEq, Eq)]
enum Owner {
    Nobody,
    Store,
    Other,
}

fn owner(database: &Connection) -> rusqlite::Result<Owner> {
    let number: i32 = database.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i32 = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (number, version, tables) {
        (0, 0, 0) => Owner::Nobody,
        (APPLICATION, VERSION, _) => Owner::Store,
        _ => Owner::Other,
    })
}

/// Makes missing tables, and sets the durability of commits.
fn prepare(
    database: &mut Connection,
    durability: Durability,
    is_unique: bool,
) -> rusqlite::Result<()> {
    database.pragma_update(None, "synchronous", durability.synchronous())?;
    let transaction = database.transaction()?;
    transaction.execute_batch(TABLES)?;
    if is_unique {
        transaction.execute_batch(ONCE)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// SQLite's error, with the file and what to do.
fn explain(path: &Path, error: &rusqlite::Error) -> String {
    let path: PathBuf = path.to_owned();
    let fix = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "it is not an SQLite database; choose another file",
        Some(ErrorCode::CannotOpen) => "its folder must exist and be writable; name another file",
        Some(ErrorCode::ReadOnly) => "it is read-only; choose another file",
        Some(ErrorCode::DatabaseBusy) => "another process writes to it; stop that process first",
        _ => "choose another file",
    };
    format!("--database {}: {error}: {fix}", path.display())
}

fn lock(of: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `WBST`, the owner of the file (sqlite.org, "PRAGMA application_id").
const APPLICATION: i32 = i32::from_be_bytes(*b"WBST");
const VERSION: i32 = 1;

/// The body is the reading as received, with its mark. `identity` is that of the mark, if each
/// message is to be stored once. `"values"` is read from the body on request.
const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS readings (
    id INTEGER PRIMARY KEY,
    sensor TEXT,
    time TEXT,
    body BLOB NOT NULL,
    identity BLOB,
    "values" TEXT GENERATED ALWAYS AS (
        CASE WHEN json_valid(CAST(body AS TEXT)) THEN CAST(body AS TEXT) ->> '$.values' END
    ) VIRTUAL
);
CREATE INDEX IF NOT EXISTS readings_by_sensor ON readings (sensor);
"#;

const ONCE: &str = "CREATE UNIQUE INDEX IF NOT EXISTS readings_once ON readings (identity) \
     WHERE identity IS NOT NULL;";

const INSERT: &str =
    "INSERT OR IGNORE INTO readings (sensor, time, body, identity) VALUES (?1, ?2, ?3, ?4)";
const READ_ALL: &str = "SELECT id, body FROM readings WHERE id > ?1 ORDER BY id LIMIT ?2";
const READ_SENSOR: &str =
    "SELECT id, body FROM readings WHERE sensor = ?3 AND id > ?1 ORDER BY id LIMIT ?2";
const COUNT: &str = "SELECT count(*) FROM readings";

/// Time that a connection waits for another one's lock.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let name = format!("weigh-database-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            Place(folder)
        }

        fn file(&self) -> PathBuf {
            self.0.join("readings.db")
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn body(sensor: &str, ph: f64) -> Bytes {
        Bytes::from(format!(
            r#"{{"sensor":"{sensor}","time":"2026-01-31T12:00:00Z","values":{{"ph":{ph}}}}}"#
        ))
    }

    #[test]
    fn rows_are_there_for_anybody_and_after_opening_again() {
        let place = Place::new("rows");
        let bodies =
            [body("a", 6.1), Bytes::from_static(b"no JSON"), body("b", 6.2), body("a", 6.3)];
        for (durability, synchronous) in [(Durability::Durable, 2), (Durability::Quick, 1)] {
            let _ = std::fs::remove_file(place.file());
            let database = Database::open(&place.file(), durability, false).unwrap();
            assert_eq!(database.keep(&bodies).unwrap().repeated, [] as [bool; 0]);
            let said: i64 = lock(&database.writer)
                .pragma_query_value(None, "synchronous", |row| row.get(0))
                .unwrap();
            assert_eq!(said, synchronous);
            drop(database);
            let database = Database::open(&place.file(), durability, false).unwrap();
            assert_eq!(database.count().unwrap(), 4);
            let page = database.read(1, 2, None).unwrap();
            assert_eq!((page.readings, page.next), (bodies[1..3].to_vec(), 3));
            let page = database.read(0, 9, Some("a")).unwrap();
            assert_eq!((page.readings, page.next), (vec![bodies[0].clone(), bodies[3].clone()], 4));
            let page = database.read(u64::MAX, 9, None).unwrap();
            assert!(page.readings.is_empty());
            drop(database);
        }
        // As any other program sees it.
        let stranger = Connection::open(place.file()).unwrap();
        let rows: Vec<(Option<String>, Option<String>)> = stranger
            .prepare("SELECT sensor, \"values\" FROM readings ORDER BY id")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let values = |ph: f64| Some(format!("{{\"ph\":{ph}}}"));
        assert_eq!(rows[0], (Some("a".into()), values(6.1)));
        assert_eq!(rows[1], (None, None));
    }

    #[test]
    fn what_is_no_store_is_refused_and_left_alone() {
        let place = Place::new("other");
        let refused = |path: &Path| {
            let error = Database::open(path, Durability::Durable, false).map(|_| ()).unwrap_err();
            error.to_string()
        };
        assert!(refused(&place.0.join("nowhere/x.db")).contains("its folder must exist"));
        let text = "a diary that is certainly longer than the header of a database of SQLite, \
                    which has a hundred bytes";
        std::fs::write(place.file(), text).unwrap();
        assert!(refused(&place.file()).contains("not an SQLite database"));
        assert_eq!(std::fs::read_to_string(place.file()).unwrap(), text);
        std::fs::remove_file(place.file()).unwrap();
        Connection::open(place.file()).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
        assert!(refused(&place.file()).contains("a database of another program"));
    }
}
