//! The index: a SQLite database next to the runs. Only the holder of a lock on the folder uses it,
//! so that it can be deleted and rebuilt while other processes list runs.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::RunFolder;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, params};

use crate::history::INDEX;
use crate::history::entry::Listing;
use crate::history::entry::{FigureEntry, RunEntry, RunRead, WorstWarning};
use crate::history::stamp::Stamp;

/// An open index, with the lock on its folder.
pub(crate) struct Index {
    database: Connection,
    path: PathBuf,
    _lock: File,
}

/// The index's entry of a run.
struct Known {
    stamp: String,
    entry: Result<RunEntry, String>,
}

impl Index {
    /// Opens the index, or creates it. `None` if that is not possible; the text is a note for the
    /// user. A read-only folder has no index and no note.
    pub(crate) fn open(runs: &Path) -> (Option<Index>, Option<String>) {
        let path = runs.join(INDEX);
        let lock = match lock(runs) {
            Ok(lock) => lock,
            Err(TryLockError::Error(_)) => return (None, None),
            Err(TryLockError::WouldBlock) => {
                let text = "another process uses it: read without it";
                return (None, Some(format!("{}: {text}", path.display())));
            }
        };
        let is_new = !path.exists();
        match connect(&path) {
            Ok((database, true)) => (Some(Index { database, path, _lock: lock }), None),
            Ok((database, false)) => {
                drop(database);
                Index::make(path, lock, (!is_new).then(|| "is of another version".to_owned()))
            }
            Err(error) if is_out_of_reach(&error) => (None, None),
            Err(error) => Index::make(path, lock, Some(format!("cannot be read ({error})"))),
        }
    }

    /// Rebuilds it, because of `reason`.
    fn make(path: PathBuf, lock: File, reason: Option<String>) -> (Option<Index>, Option<String>) {
        let note = reason
            .map(|reason| format!("{} {reason}: it is rebuilt from the runs", path.display()));
        remove(&path);
        let made = Connection::open(&path).and_then(|database| {
            database.busy_timeout(PATIENCE)?;
            database.execute_batch(TABLES)?;
            database.pragma_update(None, "user_version", VERSION)?;
            Ok(database)
        });
        match made {
            Ok(database) => (Some(Index { database, path, _lock: lock }), note),
            // Reading everything is slower, but always possible.
            Err(_) => (None, None),
        }
    }

    /// Lists the runs, reading only those that changed. If the database turns out to be broken, it
    /// is rebuilt; `None` if that fails too, or nothing can be written.
    pub(crate) fn list(
        mut self,
        stamped: &[(RunFolder, Stamp)],
        metric: Option<&str>,
    ) -> Option<Listing> {
        match self.try_list(stamped, metric) {
            Ok(listing) => Some(listing),
            Err(error) if is_out_of_reach(&error) => None,
            Err(error) => {
                let reason = format!("cannot be read ({error})");
                let Index { database, path, _lock: lock } = self;
                drop(database);
                let (index, note) = Index::make(path, lock, Some(reason));
                let mut listing = index?.try_list(stamped, metric).ok()?;
                listing.notes.extend(note);
                Some(listing)
            }
        }
    }

    fn try_list(
        &mut self,
        stamped: &[(RunFolder, Stamp)],
        metric: Option<&str>,
    ) -> rusqlite::Result<Listing> {
        let mut known = self.known()?;
        let mut listing = Listing::default();
        let mut fresh: Vec<(&RunFolder, String, RunRead)> = Vec::new();
        for (folder, stamp) in stamped {
            let text = stamp.text();
            match known.remove(folder.id()).filter(|known| known.stamp == text) {
                Some(known) => listing.take(folder, known.entry),
                None => {
                    let read = RunRead::of(folder, stamp);
                    listing.read += 1;
                    listing.take(folder, read.entry.clone());
                    fresh.push((folder, text, read));
                }
            }
        }
        // Entries left in `known` have no folder any more.
        if !fresh.is_empty() || !known.is_empty() {
            let transaction = self.database.transaction()?;
            let gone = known.keys().map(String::as_str);
            gone.chain(fresh.iter().map(|(folder, ..)| folder.id()))
                .try_for_each(|id| forget(&transaction, id))?;
            for (folder, stamp, read) in &fresh {
                remember(&transaction, folder.id(), stamp, read)?;
            }
            transaction.commit()?;
        }
        if let Some(metric) = metric {
            listing.figures = self.figures(metric)?;
            let mut names = self.database.prepare("SELECT name FROM metric")?;
            listing.metrics = names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        }
        Ok(listing)
    }

    fn known(&self) -> rusqlite::Result<BTreeMap<String, Known>> {
        let mut statement = self.database.prepare("SELECT * FROM run")?;
        let rows = statement.query_map([], |row| {
            let known = Known { stamp: row.get("stamp")?, entry: entry(row)? };
            Ok((row.get("id")?, known))
        })?;
        rows.collect()
    }

    fn figures(&self, metric: &str) -> rusqlite::Result<Vec<FigureEntry>> {
        let mut statement = self.database.prepare(
            "SELECT run, cell, point, valid, value, low, high, n FROM history WHERE metric = ?1
             ORDER BY run, number",
        )?;
        let rows = statement.query_map([metric], |row| {
            Ok(FigureEntry {
                run: row.get(0)?,
                cell: row.get(1)?,
                point: row.get(2)?,
                valid: row.get(3)?,
                value: row.get(4)?,
                low: row.get(5)?,
                high: row.get(6)?,
                n: row.get(7)?,
            })
        })?;
        rows.collect()
    }
}

/// Takes the lock on the folder itself, so that no file is needed for it; fails after some seconds,
/// or if the folder cannot be locked.
fn lock(runs: &Path) -> Result<File, TryLockError> {
    let folder = File::open(runs).map_err(TryLockError::Error)?;
    let pauses = PATIENCE.as_millis() / PAUSE.as_millis();
    for _ in 0..pauses {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Err(TryLockError::WouldBlock)
}

/// The database, and whether it is an index of this version.
fn connect(path: &Path) -> rusqlite::Result<(Connection, bool)> {
    let database = Connection::open(path)?;
    database.busy_timeout(PATIENCE)?;
    let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let is_whole = version == VERSION
        && database
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'history'", [], |row| {
                row.get::<_, i64>(0)
            })
            .optional()?
            == Some(1);
    Ok((database, is_whole))
}

/// True if no index is possible, whatever its content.
fn is_out_of_reach(error: &rusqlite::Error) -> bool {
    let codes = [ErrorCode::CannotOpen, ErrorCode::ReadOnly, ErrorCode::PermissionDenied];
    let busy = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked, ErrorCode::DiskFull];
    error.sqlite_error_code().is_some_and(|code| codes.contains(&code) || busy.contains(&code))
}

/// Deletes the database and files that SQLite may have left after a crash.
fn remove(path: &Path) {
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        // Missing files are fine; files that cannot be removed show when it is rebuilt.
        let _ = fs::remove_file(name);
    }
}

fn entry(row: &Row) -> rusqlite::Result<Result<RunEntry, String>> {
    if let Some(problem) = row.get::<_, Option<String>>("problem")? {
        return Ok(Err(problem));
    }
    let worst: Option<String> = row.get("worst_code")?;
    let is_invalid = row.get("worst_is_invalid")?;
    Ok(Ok(RunEntry {
        id: row.get("id")?,
        name: row.get("name")?,
        question: row.get("question")?,
        started: row.get("started")?,
        version: row.get("version")?,
        outcome: row.get("outcome")?,
        in_progress: false,
        cells: row.get("cells")?,
        trials: row.get("trials")?,
        failures: row.get("failures")?,
        unmeasured: row.get("unmeasured")?,
        warnings: row.get("warnings")?,
        worst_warning: worst.map(|code| WorstWarning { code, is_invalid }),
    }))
}

fn forget(transaction: &Transaction, id: &str) -> rusqlite::Result<()> {
    transaction.prepare_cached("DELETE FROM run WHERE id = ?1")?.execute([id])?;
    transaction
        .prepare_cached(
            "DELETE FROM figure WHERE cell IN (SELECT number FROM cell WHERE run = ?1)",
        )?
        .execute([id])?;
    transaction.prepare_cached("DELETE FROM cell WHERE run = ?1")?.execute([id])?;
    Ok(())
}

fn remember(
    transaction: &Transaction,
    id: &str,
    stamp: &str,
    read: &RunRead,
) -> rusqlite::Result<()> {
    let nothing = RunEntry::default();
    let (run, problem) = match &read.entry {
        Ok(run) => (run, None),
        Err(problem) => (&nothing, Some(problem)),
    };
    let worst = run.worst_warning.as_ref();
    transaction
        .prepare_cached(
            "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, \
             ?15)",
        )?
        .execute(params![
            id,
            stamp,
            problem,
            run.name,
            run.question,
            run.started,
            run.version,
            run.outcome,
            run.cells,
            run.trials,
            run.failures,
            run.unmeasured,
            run.warnings,
            worst.map(|warning| &warning.code),
            worst.is_some_and(|warning| warning.is_invalid),
        ])?;
    let mut cells: BTreeMap<&str, i64> = BTreeMap::new();
    for (metric, figure) in &read.figures {
        let cell = match cells.get(figure.point.as_str()) {
            Some(cell) => *cell,
            None => {
                transaction
                    .prepare_cached(
                        "INSERT INTO cell (run, name, point, valid) VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![id, figure.cell, figure.point, figure.valid])?;
                let cell = transaction.last_insert_rowid();
                cells.insert(&figure.point, cell);
                cell
            }
        };
        transaction
            .prepare_cached("INSERT OR IGNORE INTO metric (name) VALUES (?1)")?
            .execute([metric])?;
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO figure
                 SELECT number, ?2, ?3, ?4, ?5, ?6 FROM metric WHERE name = ?1",
            )?
            .execute(params![metric, cell, figure.value, figure.low, figure.high, figure.n])?;
    }
    Ok(())
}

/// Grows whenever a table changes; an index of any other version is rebuilt.
const VERSION: i64 = 3;

/// Time to wait for a lock held by another process.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time between two attempts to get the lock.
const PAUSE: Duration = Duration::from_millis(10);

/// The view is for queries with the `sqlite3` program.
const TABLES: &str = "
CREATE TABLE run (
    id TEXT PRIMARY KEY, stamp TEXT NOT NULL, problem TEXT, name TEXT NOT NULL, question TEXT,
    started TEXT NOT NULL, version TEXT NOT NULL, outcome TEXT NOT NULL, cells INTEGER NOT NULL,
    trials INTEGER NOT NULL, failures INTEGER NOT NULL, unmeasured INTEGER NOT NULL,
    warnings INTEGER NOT NULL, worst_code TEXT, worst_is_invalid INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE cell (
    number INTEGER PRIMARY KEY, run TEXT NOT NULL, name TEXT NOT NULL, point TEXT NOT NULL,
    valid INTEGER NOT NULL
);
CREATE INDEX cell_of_run ON cell (run);
CREATE TABLE metric (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE figure (
    metric INTEGER NOT NULL, cell INTEGER NOT NULL, value REAL, low REAL, high REAL,
    n INTEGER NOT NULL, PRIMARY KEY (metric, cell)
) WITHOUT ROWID;
CREATE INDEX figure_of_cell ON figure (cell);
CREATE VIEW history AS
    SELECT metric.name AS metric, cell.run AS run, cell.number AS number, cell.name AS cell,
           cell.point AS point, cell.valid AS valid, figure.value AS value, figure.low AS low,
           figure.high AS high, figure.n AS n
    FROM figure JOIN metric ON metric.number = figure.metric JOIN cell ON cell.number = figure.cell;
";
