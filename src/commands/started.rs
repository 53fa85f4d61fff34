//! A real server that a command started, with its temporary folder.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::catalogue::Choice;
use weigh_testbed::managed::ManagedServer;
use weigh_testbed::pinning::{CoreSet, Pinning};

/// A server that runs in a folder of its own; dropping it stops the server and removes the folder.
pub struct Started {
    server: ManagedServer,
    /// Dropped after the server.
    _home: Home,
}

/// Temporary folder of a server. Its name cannot be guessed, so no other process can prepare it.
pub(super) struct Home {
    folder: TempDir,
    _lock: File,
}

impl Started {
    /// Starts the server, and waits until it is ready.
    ///
    /// # Errors
    /// If it is not installed, does not start, or gets no folder.
    pub fn start(choice: Choice<'_>) -> Result<Started, Stop> {
        sweep();
        let home = Home::make()?;
        let pinning = Pinning::divide(&CoreSet::allowed()?, 1, 1);
        let server = ManagedServer::start(choice, None, home.path(), Some(&pinning.target))
            .map_err(|error| Stop::new(Exit::Target, error))?;
        Ok(Started { server, _home: home })
    }

    /// Stops the server as its file says, and removes its folder.
    pub fn stop(self) {
        self.server.stop();
    }

    /// Returns the server.
    pub fn server(&self) -> &ManagedServer {
        &self.server
    }
}

impl Home {
    /// Makes a folder with a lock that lasts as long as this process.
    pub(super) fn make() -> Result<Home, Stop> {
        let folder = temporary_folder(FOLDER);
        let made = folder.and_then(|folder| Ok((File::create(folder.path().join(LOCK))?, folder)));
        let (lock, folder) = made.map_err(|error| {
            let place = std::env::temp_dir();
            let place = place.display();
            Stop::new(
                Exit::Target,
                format!("{place}: a folder for the server cannot be made: {error}; set TMPDIR"),
            )
        })?;
        // Without a lock, only the sweep of another weigh could remove the folder.
        let _ = lock.try_lock();
        Ok(Home { folder, _lock: lock })
    }

    /// Returns the folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Makes a folder that is removed when dropped. A server that drops root must be able to enter it.
///
/// # Errors
/// A folder for temporary files that cannot be written.
pub fn temporary_folder(prefix: &str) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o755)).tempdir()
}

/// Removes folders that killed processes of weigh left behind: their locks are free.
pub(super) fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_named_so = entry.file_name().to_string_lossy().starts_with(FOLDER);
        // Folders of other users stay, also when this process is root.
        let is_ours = is_named_so && entry.metadata().is_ok_and(|found| found.uid() == own);
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        // Another process may have made a folder and not locked it yet.
        let modified = lock.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > SWEPT_AFTER) && lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Start of the name of a server's folder.
pub(super) const FOLDER: &str = "weigh-target-";

pub(super) const LOCK: &str = "lock";

pub(super) const SWEPT_AFTER: Duration = Duration::from_secs(10);
