//! Storage of readings: in memory or in a database.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use weigh_protocols::grpc::messages::Shelf;

use crate::database::{Database, Durability};
use crate::failed::Failed;
use crate::kept::{Identity, Kept, Page, identity};
use crate::reading::Reading;

/// Where to store readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory, the newest ones; all are counted.
    Memory {
        /// Maximum number of readings in memory.
        kept_max: usize,
    },
    /// All of them in an SQLite file.
    Database {
        /// The file.
        path: PathBuf,
        /// Durability of a commit.
        durability: Durability,
    },
}

/// An open storage.
pub(crate) enum Keeper {
    Memory(Mutex<Memory>),
    Database(Database),
}

pub(crate) struct Memory {
    shelf: Shelf,
    /// Messages stored so far, if each is to be stored once.
    seen: Option<HashSet<Identity>>,
}

impl Keeper {
    pub(crate) fn open(place: &Place, is_unique: bool) -> Result<Keeper, Failed> {
        Ok(match place {
            Place::Memory { kept_max } => Keeper::Memory(Mutex::new(Memory {
                shelf: Shelf::new(*kept_max),
                seen: is_unique.then(HashSet::new),
            })),
            Place::Database { path, durability } => {
                Keeper::Database(Database::open(path, *durability, is_unique)?)
            }
        })
    }

    /// Stores readings; they are committed when this returns.
    ///
    /// # Errors
    /// Why none of them is stored.
    pub(crate) async fn keep(&self, bodies: Vec<Bytes>) -> Result<Kept, String> {
        match self {
            Keeper::Memory(memory) => Ok(lock(memory).keep(bodies)),
            Keeper::Database(database) => {
                let database = database.clone();
                on_a_thread(move || database.keep(&bodies)).await
            }
        }
    }

    /// At most `limit` readings after `since`, of one sensor or of all.
    pub(crate) async fn read(
        &self,
        since: u64,
        limit: usize,
        sensor: Option<String>,
    ) -> Result<Page, String> {
        match self {
            Keeper::Memory(memory) => Ok(lock(memory).read(since, limit, sensor.as_deref())),
            Keeper::Database(database) => {
                let database = database.clone();
                on_a_thread(move || database.read(since, limit, sensor.as_deref())).await
            }
        }
    }

    /// Number of stored readings; rows of a database.
    ///
    /// # Errors
    /// Readings that cannot be counted.
    pub(crate) fn count(&self) -> Result<u64, String> {
        match self {
            Keeper::Memory(memory) => Ok(lock(memory).shelf.count()),
            Keeper::Database(database) => database.count().map_err(|error| error.to_string()),
        }
    }
}

impl Memory {
    fn keep(&mut self, bodies: Vec<Bytes>) -> Kept {
        let mut repeated = Vec::new();
        for body in bodies {
            let is_new = match (&mut self.seen, identity(&body)) {
                (Some(seen), Some(identity)) => seen.insert(identity),
                _ => true,
            };
            if self.seen.is_some() {
                repeated.push(!is_new);
            }
            if is_new {
                self.shelf.put(&body);
            }
        }
        Kept { repeated }
    }

    fn read(&self, since: u64, limit: usize, sensor: Option<&str>) -> Page {
        let is_wanted = |body: &[u8]| match sensor {
            None => true,
            Some(name) => Reading::parse(body).is_ok_and(|reading| reading.sensor == name),
        };
        let (readings, next) = self.shelf.read(since, limit, is_wanted);
        Page { readings, next }
    }
}

/// Runs a blocking call of the database on a thread of its own, since the stage has only one.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn lock(of: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use weigh_model::Nanos;
    use weigh_model::mark::MARK_BYTES;

    use super::*;
    use weigh_model::mark::Mark;

    fn marked(tag: u16, producer: u32, sequence: u64) -> Bytes {
        let mut body = vec![0; MARK_BYTES];
        Mark {
            tag,
            warmup: false,
            producer,
            sequence,
            due: Nanos(0),
            lag: Nanos(0),
            own_lag: Nanos(0),
        }
        .seal(&mut body, 0);
        Bytes::from(body)
    }

    /// A body is part of the buffer that its connection was read into; that is free again once the
    /// reading is kept.
    #[test]
    fn a_kept_reading_does_not_retain_the_buffer_it_arrived_in() {
        let buffer = Bytes::from(vec![b'7'; 8 * 1024]);
        let body = buffer.slice(200..290);
        let keeper = Keeper::open(&Place::Memory { kept_max: 10 }, false).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(keeper.keep(vec![body.clone()])).unwrap();
        let page = runtime.block_on(keeper.read(0, 10, None)).unwrap();
        assert_eq!(page.readings, std::slice::from_ref(&body));
        drop(body);
        assert!(buffer.is_unique(), "a part of it is kept");
    }

    /// The same in memory and in a database: each identity once, what has none as often as it
    /// comes, and without the setting everything.
    #[test]
    fn each_message_is_kept_once_where_that_is_asked_for() {
        let bodies =
            [marked(1, 2, 3), marked(1, 2, 3), marked(2, 2, 3), marked(1, 3, 3), marked(1, 2, 4)];
        let foreign = Bytes::from_static(b"{}");
        let all = [&bodies[..], &[foreign.clone(), foreign]].concat();
        let name = format!("weigh-keeper-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let database = Place::Database { path: path.clone(), durability: Durability::Quick };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for place in [Place::Memory { kept_max: 10 }, database] {
            for (is_unique, kept, repeats) in [(false, 7, 0), (true, 6, 1)] {
                for end in ["", "-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{}{end}", path.display()));
                }
                let keeper = Keeper::open(&place, is_unique).unwrap();
                let outcome = runtime.block_on(keeper.keep(all.clone())).unwrap();
                assert_eq!((keeper.count(), outcome.repeats()), (Ok(kept), repeats), "{place:?}");
                assert_eq!(outcome.is_repeated(1), is_unique);
                let again = runtime.block_on(keeper.keep(vec![all[4].clone()])).unwrap();
                assert_eq!(again.repeats(), u64::from(is_unique));
            }
        }
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }
}
