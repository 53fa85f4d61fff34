//! Writes the live file of a run, a line a second, on the thread that writes the journal. The
//! threads of the generator have no part in it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weigh_model::live::{LIVE, Second, TrialStanding};

use crate::trial::ticks::Tick;
use crate::watcher::{Standing, Watcher};

/// A watcher that writes each second of a run to [`LIVE`] in its folder, and passes everything on.
/// The file is removed with it. If it cannot be written, the run continues without it.
pub struct LiveFile {
    shown: Box<dyn Watcher>,
    path: PathBuf,
    ring: Mutex<Option<Ring>>,
}

/// The open file and the second in progress.
struct Ring {
    file: File,
    number: u64,
    standing: Option<Standing>,
    /// Counts since the last second was written.
    tick: Option<Tick>,
    opening: Option<[u64; 2]>,
    written: Instant,
}

impl LiveFile {
    /// Begins the live file of the run in `folder`, and passes everything on to `shown`.
    pub fn begin(folder: &Path, shown: Box<dyn Watcher>) -> LiveFile {
        let path = folder.join(LIVE);
        // A process that was killed may have left one. Who reads it must see that it is another.
        let _ = std::fs::remove_file(&path);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let now = Instant::now();
        let ring = file.ok().map(|file| Ring {
            file,
            number: 0,
            standing: None,
            tick: None,
            opening: None,
            written: now.checked_sub(EVERY).unwrap_or(now),
        });
        LiveFile { shown, path, ring: Mutex::new(ring) }
    }

    fn change(&self, change: impl FnOnce(&mut Ring)) {
        if let Ok(mut ring) = self.ring.lock()
            && let Some(ring) = ring.as_mut()
        {
            change(ring);
        }
    }
}

impl Watcher for LiveFile {
    fn say(&self, text: &str) {
        self.shown.say(text);
    }

    fn note(&self, text: &str) {
        self.shown.note(text);
    }

    fn trial(&self, standing: Standing) {
        self.change(|ring| {
            (ring.tick, ring.opening) = (None, None);
            ring.standing = Some(standing.clone());
            ring.write();
        });
        self.shown.trial(standing);
    }

    fn opening(&self, open: u64, all: u64) {
        self.change(|ring| {
            ring.opening = Some([open, all]);
            if ring.written.elapsed() >= EVERY {
                ring.write();
            }
        });
        self.shown.opening(open, all);
    }

    fn tick(&self, tick: &Tick) {
        self.change(|ring| ring.add(tick));
        self.shown.tick(tick);
    }

    fn trial_done(&self) {
        self.change(|ring| {
            ring.flush();
            ring.opening = None;
        });
        self.shown.trial_done();
    }

    /// Removes the file: a program that a signal ends has no other occasion.
    fn recorded(&self) {
        if let Ok(mut ring) = self.ring.lock() {
            *ring = None;
        }
        let _ = std::fs::remove_file(&self.path);
        self.shown.recorded();
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the live file that a killed process left in the folder of a run.
pub fn clear(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(LIVE));
}

impl Ring {
    /// Adds a tick, and writes those that make a second of one phase.
    fn add(&mut self, tick: &Tick) {
        self.opening = None;
        if self.tick.as_ref().is_some_and(|own| !own.is_like(tick)) {
            self.flush();
        }
        match &mut self.tick {
            Some(own) => own.join(tick),
            None => self.tick = Some(tick.clone()),
        }
        if self.tick.as_ref().is_some_and(|own| own.length_ns() >= LENGTH_NS_MIN) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.tick.is_some() {
            self.write();
        }
    }

    /// Writes what is known. A full disk or a removed folder loses this second and nothing else.
    fn write(&mut self) {
        let Some(standing) = &self.standing else { return };
        self.number += 1;
        let tick = self.tick.take();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = Second {
            number: self.number,
            pid: std::process::id(),
            unix_ms: since_1970.as_millis() as u64,
            standing: TrialStanding {
                name: standing.name.clone(),
                number: standing.number,
                of: [standing.of.0, standing.of.1],
                left_ns: [standing.left.0.0, standing.left.1.0],
                passed_ns: standing.since.elapsed().as_nanos() as u64,
                offered_per_s: standing.offered_per_s,
            },
            opening: self.opening,
            counts: tick.as_ref().map(Tick::interval),
            quantiles: tick.as_ref().map(|tick| tick.times().quantiles()),
            end: self.number,
        };
        if let Some(slot) = second.to_slot() {
            let _ = self.file.write_all_at(&slot, Second::slot_at(self.number));
        }
        self.written = Instant::now();
    }
}

/// Interval between two lines.
const EVERY: Duration = Duration::from_secs(1);

/// Ticks that are joined to a second end at most this much before it: borders of ticks are half a
/// second or a tenth apart.
const LENGTH_NS_MIN: u64 = 950_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_engine::job::ShardInterval;
    use weigh_model::event::Interval;
    use weigh_model::units::{Rate, parse_rate};
    use weigh_model::{Load, Pattern};

    use crate::watcher::Silent;

    fn tick(number: u64, warmup: bool) -> Tick {
        let length_ns = 500_000_000;
        let interval = Interval {
            at_ns: number * length_ns,
            length_ns: Some(length_ns),
            sent: 10,
            warmup,
            ..Interval::default()
        };
        Tick::of(0, ShardInterval { interval, ..ShardInterval::default() })
    }

    fn standing() -> Standing {
        let rate: Rate = parse_rate("30/s/client").unwrap();
        Standing::in_search("tcp", &Load::open(Pattern::Request, 4, rate), 3)
    }

    fn seconds(folder: &Path) -> Vec<Second> {
        Second::newest_last(&std::fs::read(folder.join(LIVE)).unwrap())
    }

    /// A signal may end the program while it writes the report.
    #[test]
    fn the_file_ends_when_the_journal_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let live = LiveFile::begin(folder.path(), Box::new(Silent));
        live.trial(standing());
        live.recorded();
        assert!(!folder.path().join(LIVE).exists());
        live.tick(&tick(1, false));
        live.trial_done();
        assert!(!folder.path().join(LIVE).exists());
    }

    #[test]
    fn ticks_of_a_phase_are_joined_to_seconds_and_the_file_ends_with_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let live = LiveFile::begin(folder.path(), Box::new(Silent));
        live.trial(standing());
        live.opening(1, 4);
        for number in 1..=3 {
            live.tick(&tick(number, true));
        }
        for number in 4..=8 {
            live.tick(&tick(number, false));
        }
        live.trial_done();
        let found = seconds(folder.path());
        let sent: Vec<Option<(u64, bool)>> = found
            .iter()
            .map(|second| second.counts.as_ref().map(|own| (own.sent, own.warmup)))
            .collect();
        let load = |sent| Some((sent, false));
        assert_eq!(
            sent,
            [None, Some((20, true)), Some((10, true)), load(20), load(20), load(10)],
            "the sum of the seconds is the sum of the ticks"
        );
        assert!(found.iter().all(|own| own.standing.offered_per_s == Some(120.0)), "{found:?}");
        assert!(found.iter().all(|own| own.pid == std::process::id()));
        drop(live);
        assert!(!folder.path().join(LIVE).exists());
    }

    #[test]
    fn a_folder_that_is_gone_does_not_end_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let live = LiveFile::begin(folder.path(), Box::new(Silent));
        live.trial(standing());
        std::fs::remove_dir_all(folder.path()).unwrap();
        live.tick(&tick(1, false));
        live.trial_done();
        drop(live);
        let live = LiveFile::begin(folder.path(), Box::new(Silent));
        live.trial(standing());
        live.tick(&tick(1, false));
    }
}
