//! Where a store's bytes go: a file, or a disk that fails as a test wants.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::spec::{StorePolicy, StoreSpec};

/// An append-only file, as far as a store needs it.
pub trait Disk: Send {
    /// Appends bytes and returns how many it took, at least one.
    ///
    /// # Errors
    /// That of the system: no space, an I/O error.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error>;

    /// Returns once all that was written is on the medium, as far as the medium says so.
    ///
    /// # Errors
    /// That of the system. What was written since the last success may be lost.
    fn sync(&mut self) -> Result<(), Error>;

    /// Name for messages.
    fn name(&self) -> String;
}

/// Reason for which a store cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The folder or the file cannot be made.
    #[error("cannot store in {path}: {reason}\nhelp: choose another folder with --store")]
    Unusable {
        /// Folder or file.
        path: String,
        /// Cause in words.
        reason: String,
    },
    /// The folder is in memory, where a sync has nothing to do.
    #[error(
        "{path} is in memory (tmpfs), where fsync stores nothing\nhelp: choose a folder on a \
         disk (--store of weigh serve, --runs of a run), or type page-cache"
    )]
    InMemory {
        /// The folder.
        path: String,
    },
}

/// A file of the system.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    path: PathBuf,
}

impl FileDisk {
    /// Makes a new file for a shard: files of earlier starts stay as they are. For policies that
    /// sync, the file itself is durable when this returns.
    ///
    /// # Errors
    /// A folder that cannot be used, or that is in memory although the policy syncs.
    pub fn create(spec: &StoreSpec, shard: u16) -> Result<FileDisk, StoreError> {
        let folder = &spec.folder;
        std::fs::create_dir_all(folder).map_err(|error| unusable(folder, &error))?;
        let syncs = spec.policy != StorePolicy::Never;
        let directory = File::open(folder).map_err(|error| unusable(folder, &error))?;
        if syncs && is_in_memory(&directory).map_err(|error| unusable(folder, &error))? {
            return Err(StoreError::InMemory { path: folder.display().to_string() });
        }
        for start in 0_u32.. {
            let path = folder.join(format!("store-{shard}-{start}.log"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    if syncs {
                        let synced = file.sync_all().and_then(|()| directory.sync_all());
                        synced.map_err(|error| unusable(&path, &error))?;
                    }
                    return Ok(FileDisk { file, path });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unusable(&path, &error)),
            }
        }
        Err(unusable(folder, &Error::from(ErrorKind::AlreadyExists)))
    }
}

impl Disk for FileDisk {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        loop {
            match self.file.write(bytes) {
                Ok(0) => return Err(Error::from(ErrorKind::WriteZero)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data()
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

fn unusable(path: &Path, error: &Error) -> StoreError {
    StoreError::Unusable { path: path.display().to_string(), reason: error.to_string() }
}

/// True for file systems without a medium.
fn is_in_memory(folder: &File) -> Result<bool, Error> {
    let kind = rustix::fs::fstatfs(folder)?.f_type;
    Ok([TMPFS_MAGIC, RAMFS_MAGIC].contains(&(kind as u64 & 0xFFFF_FFFF)))
}

/// Kinds of file systems: statfs(2).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58F6;
