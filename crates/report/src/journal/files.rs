//! Files of a run's folder: their names, and how they are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::record_error::RecordError;

/// `name` with a dash for everything except letters, digits, dots and underscores, at most 60 long.
pub(crate) fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' => plain.push(character),
            _ if plain.ends_with('-') => {}
            _ => plain.push('-'),
        }
    }
    plain.truncate(NAME_BYTES_MAX);
    let plain = plain.trim_matches(['-', '.']);
    if plain.is_empty() { "run".to_owned() } else { plain.to_owned() }
}

/// When a file must be on the disk. Files made from the journal can be made again, and waiting for
/// the disk sixteen hundred times takes longer than everything else.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kept {
    AtOnce,
    InTime,
}

/// Writes a temporary file and moves it to `path`, so that no reader sees half a file.
pub(crate) fn replace(path: &Path, content: &[u8], kept: Kept) -> Result<(), RecordError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let write = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(content)?;
        if kept == Kept::AtOnce {
            file.sync_data()?;
        }
        fs::rename(&partial, path)
    };
    write().map_err(|problem| {
        let _ = fs::remove_file(&partial);
        RecordError::new(path, problem)
    })
}

const NAME_BYTES_MAX: usize = 60;

/// The result of a study: a folder with it is the run of a study.
pub const STUDY: &str = "study.json";
