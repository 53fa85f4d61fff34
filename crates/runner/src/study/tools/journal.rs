//! The journal of a tool's run on the disk: every line is synced before the next repetition starts.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use weigh_study::tools::{TOOL_JOURNAL, ToolLine, ToolMade};

use crate::exit::Stop;

/// An open journal.
pub struct ToolJournal {
    file: File,
    path: PathBuf,
}

impl ToolJournal {
    /// Opens the journal in this folder after its last complete line, or makes one.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn open(folder: &Path) -> Result<ToolJournal, Stop> {
        let path = folder.join(TOOL_JOURNAL);
        let opened = || -> std::io::Result<File> {
            fs::create_dir_all(folder)?;
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            let text = fs::read(&path)?;
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        match opened() {
            Ok(file) => Ok(ToolJournal { file, path }),
            Err(error) => Err(Stop::unwritten(&path, &error)),
        }
    }

    /// Appends a line and syncs it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&mut self, line: &ToolLine) -> Result<(), Stop> {
        let written = self.file.write_all(line.to_json().as_bytes());
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|error| Stop::unwritten(&self.path, &error))
    }
}

/// Reads the journal in this folder; `None` if there is none, or no complete line in it.
///
/// # Errors
/// A file that cannot be read.
pub fn read(folder: &Path, name: &str) -> Result<Option<ToolMade>, Stop> {
    let path = folder.join(TOOL_JOURNAL);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&path, error)),
    };
    let own = weigh_study::runs::folder(name);
    ToolMade::of(&own, &text).map_err(|error| unreadable(&path, error))
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Stop {
    Stop::usage(format!("{}: cannot be read: {error}; name another run", path.display()))
}
