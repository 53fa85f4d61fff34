//! A real server that a command started, with its temporary folder.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use tempfile::TempDir;
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::catalogue::Choice;
use weigh_testbed::managed::ManagedServer;
use weigh_testbed::pinning::{CoreSet, Pinning};

/// A server that runs in a folder of its own; both are gone when it is dropped.
pub struct Started {
    server: ManagedServer,
    /// Dropped after the server.
    _home: Home,
}

/// The folder of a server, as long as it is needed. Its name cannot be guessed, so nobody can have
/// put something else in its place.
pub(super) struct Home {
    folder: TempDir,
    _lock: File,
}

impl Started {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// If it is not installed, does not start, or gets no folder.
    pub fn start(choice: Choice<'_>) -> Result<Started, Stop> {
        sweep();
        let home = Home::make()?;
        let pinning = Pinning::divide(&CoreSet::allowed()?, 1, 1);
        let server = ManagedServer::start(choice, None, home.folder.path(), Some(&pinning.target))
            .map_err(|error| Stop::new(Exit::Target, error))?;
        Ok(Started { server, _home: home })
    }

    /// Stops it as its file says, and takes its folder away.
    pub fn stop(self) {
        self.server.stop();
    }

    /// The server.
    pub fn server(&self) -> &ManagedServer {
        &self.server
    }
}

impl Home {
    /// A new one, with a lock in it that lasts as long as we do.
    fn make() -> Result<Home, Stop> {
        let folder = temporary_folder(FOLDER);
        let made = folder.and_then(|folder| Ok((File::create(folder.path().join(LOCK))?, folder)));
        let (lock, folder) = made.map_err(|error| {
            let place = std::env::temp_dir();
            let place = place.display();
            Stop::new(Exit::Target, format!("{place}: no folder for the server there: {error}"))
        })?;
        // Where a lock cannot be had, only the sweeping of others could take the folder away.
        let _ = lock.try_lock();
        Ok(Home { folder, _lock: lock })
    }
}

/// A new folder that is removed when dropped. A server that gives up being root must be able to
/// enter it.
pub fn temporary_folder(prefix: &str) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o755)).tempdir()
}

/// Removes what was left behind by those of us that were killed: their locks are free.
pub(super) fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_named_so = entry.file_name().to_string_lossy().starts_with(FOLDER);
        // Whoever else's folder has such a name is none of our business, also where we are root.
        let is_ours = is_named_so && entry.metadata().is_ok_and(|found| found.uid() == own);
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        // Whoever has just made one may not have locked it yet.
        let modified = lock.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > SWEPT_AFTER) && lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// How the folder of a server that runs in the foreground begins.
pub(super) const FOLDER: &str = "weigh-target-";

pub(super) const LOCK: &str = "lock";

pub(super) const SWEPT_AFTER: Duration = Duration::from_secs(10);
