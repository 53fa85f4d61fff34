//! Files of sealed objects: keys, contents, the object itself.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weigh_model::refusal;
use weigh_seal::{SealError, Zeroizing};

use crate::output_file::OutputFile;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::input_file::{self, CONTENT_BYTES_MAX};

/// Returns the text of a file with a private key. A key that other users may read is refused.
///
/// # Errors
/// If it cannot be read, or if users other than its owner may read it.
pub fn private_key(path: &Path) -> Result<Zeroizing<String>, Stop> {
    let (text, mode) = secret_text(path)?;
    check_private(path, mode)?;
    Ok(text)
}

/// Returns the text of a file with a private or a public key; a private one as in [`private_key`].
///
/// # Errors
/// If it cannot be read, or if it is private and users other than its owner may read it.
pub fn key(path: &Path) -> Result<Zeroizing<String>, Stop> {
    let (text, mode) = secret_text(path)?;
    if text.contains("PRIVATE KEY-----") {
        check_private(path, mode)?;
    }
    Ok(text)
}

/// Returns the text of a file with a public key or a policy.
///
/// # Errors
/// If it cannot be read.
pub fn text(path: &Path) -> Result<String, Stop> {
    as_text(read_open(path)?.0, path)
}

/// Returns the bytes of a file; `-` is standard input.
///
/// # Errors
/// If it cannot be read.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Stop> {
    if path.as_os_str() != "-" {
        return Ok(read_open(path)?.0);
    }
    let read = input_file::read(std::io::stdin().lock(), CONTENT_BYTES_MAX);
    read.map_err(|error| {
        Stop::usage(format!("standard input cannot be read: {error}; name a file"))
    })
}

/// Writes `bytes` to a file, or to standard output if none is named and it is not a terminal. A
/// content (`is_secret`) goes into a file that only its owner may read; the mode of an existing
/// file is changed before the first byte is written.
///
/// # Errors
/// If it cannot be written, or standard output is a terminal.
pub fn put(bytes: &[u8], to: Option<&PathBuf>, is_secret: bool) -> Result<(), Stop> {
    let Some(path) = to.filter(|path| path.as_os_str() != "-") else {
        let is_binary = std::str::from_utf8(bytes).is_err();
        if is_binary && std::io::stdout().is_terminal() {
            let text = "-o: a terminal cannot show these bytes: name a file with -o FILE, or \
                        redirect standard output";
            return Err(Stop::usage(text));
        }
        return output::put_bytes(bytes);
    };
    let open = if is_secret { OutputFile::open_private } else { OutputFile::open };
    let write = |mut output: OutputFile| {
        output.write_all(bytes)?;
        output.finish()
    };
    open(path).and_then(write).map_err(|error| {
        let name = path.display();
        Stop::new(
            Exit::Record,
            format!("{name}: cannot be written: {error}\nhelp: name another file"),
        )
    })
}

/// Returns the end of the program for an error of an object, its keys or its policy.
pub fn stop(error: SealError) -> Stop {
    stopped(&error, &error.to_string())
}

/// Returns the end of the program for an error in the file of this name.
pub fn stop_at(path: &Path) -> impl Fn(SealError) -> Stop {
    let name = path.display().to_string();
    move |error| stopped(&error, &format!("{name}: {error}"))
}

fn stopped(error: &SealError, said: &str) -> Stop {
    match error {
        SealError::Random(_) => Stop::new(Exit::Internal, said),
        _ => Stop::usage(refusal::with_fix(said, "see docs/guide/sealed-payload.md")),
    }
}

fn check_private(path: &Path, mode: u32) -> Result<(), Stop> {
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let name = path.display();
    Err(Stop::usage(format!(
        "{name}: users other than the owner may read or write this private key (mode {:04o}); run \
         chmod 600 {name}, and make a new key if another user may have read it",
        mode & 0o7777
    )))
}

/// Returns text that is wiped when it is dropped, and the mode of its file.
fn secret_text(path: &Path) -> Result<(Zeroizing<String>, u32), Stop> {
    let (bytes, mode) = read_open(path)?;
    let bytes = Zeroizing::new(bytes);
    let text = std::str::from_utf8(&bytes).map_err(|_| no_text(path))?;
    Ok((Zeroizing::new(text.to_owned()), mode))
}

fn read_open(path: &Path) -> Result<(Vec<u8>, u32), Stop> {
    let wrong = |error: std::io::Error| {
        Stop::usage(format!("{}: {error}\nhelp: name a file that can be read", path.display()))
    };
    let mut file = File::open(path).map_err(wrong)?;
    let metadata = file.metadata().map_err(wrong)?;
    let mode = metadata.mode();
    // Reserved in full from the start: a buffer that grows leaves copies of a key.
    let mut bytes = Vec::with_capacity(metadata.len().min(CONTENT_BYTES_MAX) as usize + 1);
    let read = (&mut file).take(CONTENT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if read as u64 > CONTENT_BYTES_MAX {
        return Err(wrong(input_file::too_long(CONTENT_BYTES_MAX)));
    }
    Ok((bytes, mode))
}

fn as_text(bytes: Vec<u8>, path: &Path) -> Result<String, Stop> {
    String::from_utf8(bytes).map_err(|_| no_text(path))
}

fn no_text(path: &Path) -> Stop {
    let name = path.display();
    Stop::usage(format!("{name}: the file is not text: give a key in PEM or a policy in TOML"))
}
