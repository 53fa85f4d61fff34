//! Files in which stages record when they had which message: read while they grow, and merged with
//! the send times in the order of time.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use weigh_engine::trace::Tracer;
use weigh_model::hop::{HOP_BYTES, Hop};

use crate::probes::send_times;

/// A file that may still grow, from an offset on.
pub struct HopFile {
    file: BufReader<File>,
    /// The start of a record that is not complete yet.
    rest: Vec<u8>,
    /// Records that no stage can have written.
    pub damaged: u64,
}

impl HopFile {
    /// Opens a file at the offset `from`.
    ///
    /// # Errors
    /// A file that does not exist.
    pub fn open(path: &Path, from: u64) -> io::Result<HopFile> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let file = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(HopFile { file, rest: Vec::with_capacity(HOP_BYTES), damaged: 0 })
    }

    /// The next record, if it is complete.
    pub fn next_hop(&mut self) -> Option<Hop> {
        loop {
            let missing = HOP_BYTES - self.rest.len();
            let read = (&mut self.file).take(missing as u64).read_to_end(&mut self.rest);
            if read.is_err() || self.rest.len() < HOP_BYTES {
                return None;
            }
            let hop = self.rest.first_chunk().map(Hop::decode);
            self.rest.clear();
            match hop {
                Some(Ok(hop)) => return Some(hop),
                _ => self.damaged += 1,
            }
        }
    }
}

/// Adds send times and hops of all files to `tracer`, the earliest first; returns the number of
/// damaged records.
///
/// # Errors
/// Send times that cannot be read.
pub fn join(departed: &Path, files: &mut [HopFile], tracer: &mut Tracer) -> io::Result<u64> {
    let mut departures = send_times::read(departed)?;
    let mut departure = departures.next();
    let mut hops: Vec<Option<Hop>> = files.iter_mut().map(HopFile::next_hop).collect();
    loop {
        let earliest = |(at, hop): (usize, &Option<Hop>)| Some((hop.as_ref()?.left, at));
        let next = hops.iter().enumerate().filter_map(earliest).min();
        match (&departure, next) {
            (None, None) => break,
            (Some(left), next) if next.is_none_or(|(at, _)| left.sent <= at) => {
                tracer.departed(left);
                departure = departures.next();
            }
            (_, Some((_, at))) => {
                if let Some(hop) = &hops[at] {
                    tracer.passed(hop);
                }
                hops[at] = files[at].next_hop();
            }
            (Some(_), None) => {}
        }
    }
    Ok(files.iter().map(|file| file.damaged).sum())
}

const BUFFER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use weigh_model::Nanos;
    use weigh_model::hop::HopStage;

    fn hop(sequence: u64) -> Hop {
        Hop {
            tag: 1,
            warmup: false,
            repeated: false,
            stage: HopStage::Store,
            producer: 0,
            sequence,
            arrived: Nanos(1),
            left: Nanos(2),
            batch: 1,
        }
    }

    #[test]
    fn a_file_is_followed_while_it_grows_and_torn_records_are_waited_for() {
        let path = std::env::temp_dir().join(format!("weigh-hop-file-{}", std::process::id()));
        let mut written = File::create(&path).unwrap();
        written.write_all(&hop(0).encode()).unwrap();
        let mut file = HopFile::open(&path, 0).unwrap();
        assert_eq!((file.next_hop(), file.next_hop()), (Some(hop(0)), None));
        let second = hop(1).encode();
        written.write_all(&second[..13]).unwrap();
        assert_eq!(file.next_hop(), None);
        written.write_all(&second[13..]).unwrap();
        assert_eq!((file.next_hop(), file.next_hop()), (Some(hop(1)), None));
        written.write_all(&[0xFF; HOP_BYTES]).unwrap();
        written.write_all(&hop(2).encode()).unwrap();
        assert_eq!((file.next_hop(), file.damaged), (Some(hop(2)), 1));
        let later = HopFile::open(&path, 3 * HOP_BYTES as u64).unwrap().next_hop();
        assert_eq!(later, Some(hop(2)));
        std::fs::remove_file(&path).unwrap();
    }
}
