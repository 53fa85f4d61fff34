//! Harms that are not signals: no room on the disk, a folder that cannot be written to, no
//! descriptors, no memory, a slow disk, a clock that is set back. Whatever happens, finished trials
//! are kept, and the run is resumed once the harm is over.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::chance::Chance;
use super::group::Group;
use super::journals::Journals;
use super::kind::{self, TRIALS};
use super::left::{self, LIVE, Traces};
use super::place::{Place, ends_within};
use crate::guarded::Guarded;

/// A harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    /// No file may grow beyond this byte (`RLIMIT_FSIZE`).
    FileLimit,
    /// The runs are on a file system of this size.
    FullDisk,
    /// The runs are on a file system that can only be read.
    ReadOnly,
    /// The process may have this number of descriptors.
    Descriptors,
    /// The control group may have this much memory.
    Memory,
    /// The control group may write this number of bytes per second to the disk of the runs.
    SlowDisk,
    /// The wall clock goes back by this number of seconds while the run lasts. A library that
    /// stands in front of the system's does that, so it is a stand-in: only this process sees it.
    ClockBack,
}

/// What is done to a comparison.
pub(super) struct Harmed {
    pub(super) harm: Harm,
    /// The byte, the size in bytes, or the number of descriptors.
    pub(super) limit: u64,
    mark: String,
}

/// What came out.
pub(super) struct HarmOutcome {
    /// Why it could not be tried here, if it could not.
    pub(super) skipped: Option<String>,
    pub(super) code: Option<i32>,
    pub(super) kept: u64,
    pub(super) faults: Vec<String>,
}

impl Harm {
    pub(super) const ALL: [Harm; 7] = [
        Harm::FileLimit,
        Harm::FullDisk,
        Harm::ReadOnly,
        Harm::Descriptors,
        Harm::Memory,
        Harm::SlowDisk,
        Harm::ClockBack,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Harm::FileLimit => "full disk at a byte",
            Harm::FullDisk => "full disk",
            Harm::ReadOnly => "read-only folder",
            Harm::Descriptors => "no descriptors",
            Harm::Memory => "no memory",
            Harm::SlowDisk => "slow disk",
            Harm::ClockBack => "clock set back",
        }
    }

    /// Why this machine cannot do it; `None` if it can.
    fn hindrance(self, place: &Path) -> Option<String> {
        let program = match self {
            Harm::FileLimit | Harm::Descriptors => "prlimit --version",
            Harm::FullDisk | Harm::ReadOnly => "unshare -rm mount -t tmpfs tmpfs /mnt",
            Harm::Memory => {
                let made = Group::of_memory(PROBE, 1 << 30);
                return made.err().map(|error| format!("{error:#}"));
            }
            Harm::SlowDisk => {
                let made = Group::of_disk(PROBE, place, 1 << 30);
                return made.err().map(|error| format!("{error:#}"));
            }
            Harm::ClockBack => {
                let is_missing = clock_library().is_none();
                return is_missing.then(|| "libfaketime is not installed".to_owned());
            }
        };
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", program]).stdout(Stdio::null()).stderr(Stdio::null());
        let is_done = shell.status().is_ok_and(|status| status.success());
        (!is_done).then(|| format!("`{program}` is not possible here"))
    }
}

impl Harmed {
    /// The harm of this number: of ten, seven are at a byte of a file.
    pub(super) fn chosen(seed: u64, number: u64, journal_bytes: u64) -> Harmed {
        let mut chance = Chance::of(seed ^ HARMS, number);
        let harm = match chance.below(10) {
            0..7 => Harm::FileLimit,
            7 => [Harm::FullDisk, Harm::ReadOnly][chance.below(2) as usize],
            8 => [Harm::Descriptors, Harm::SlowDisk][chance.below(2) as usize],
            _ => [Harm::Memory, Harm::ClockBack][chance.below(2) as usize],
        };
        let limit = match harm {
            Harm::FileLimit => chance.below(journal_bytes),
            Harm::FullDisk => 4096 * (1 + chance.below(1 + 2 * journal_bytes / 4096)),
            Harm::ReadOnly => 0,
            Harm::Descriptors => 3 + chance.below(40),
            Harm::Memory => (4 + chance.below(40)) << 20,
            Harm::SlowDisk => 4096 * (1 + chance.below(32)),
            Harm::ClockBack => 1 + chance.below(2 * 24 * 3600),
        };
        let mark = format!("harm-{seed}-{number}-{}", std::process::id());
        Harmed { harm, limit, mark }
    }

    /// Runs a comparison under the harm, resumes it without, and checks what is there.
    pub(super) fn carry_out(&self, binary: &Path, folder: &Path) -> anyhow::Result<HarmOutcome> {
        let mut outcome = HarmOutcome {
            skipped: self.harm.hindrance(folder.parent().unwrap_or(folder)),
            code: None,
            kept: 0,
            faults: Vec::new(),
        };
        if outcome.skipped.is_some() {
            return Ok(outcome);
        }
        let place = Place::empty(binary, folder, self.mark.clone())?;
        let before = Traces::seen()?;
        if self.harm == Harm::ReadOnly {
            self.begin(&place)?;
        }
        let earlier = Journals::read(folder)?;
        let group = match self.harm {
            Harm::Memory => Some(Group::of_memory(GROUP, self.limit)?),
            Harm::SlowDisk => Some(Group::of_disk(GROUP, folder, self.limit)?),
            _ => None,
        };
        let (shell, words) = self.command(group.as_ref());
        let program = place.through(&shell, words).stderr(Stdio::piped()).spawn()?;
        let mut program = Guarded(program);
        let log = place.log(&mut program)?;
        outcome.faults.extend(place.await_end("weigh", &mut program, PATIENCE)?);
        outcome.code = program.try_wait()?.and_then(|status| status.code());
        outcome.faults.extend(place.leftovers());
        drop((log.join(), group));
        let journals = Journals::read(folder)?;
        outcome.faults.extend(journals.faults_since(&earlier.finished(), 0));
        outcome.faults.extend(self.wrong_code(outcome.code));
        let kept = journals.finished();
        outcome.kept = kept.len() as u64;
        let words = if journals.is_empty() { &COMPARE[..] } else { &RESUME[..] };
        let resumed = place.weigh(words).status()?;
        let after = Journals::read(folder)?;
        let wrong = after.faults_since(&kept, TRIALS).into_iter();
        outcome
            .faults
            .extend(wrong.map(|fault| format!("{fault} (exit code {:?})", resumed.code())));
        outcome.faults.extend(place.leftovers());
        outcome.faults.extend(before.and_now(&Traces::seen()?));
        // Nothing can remove the live file of a run that was killed before its first event.
        let is_killed_early = outcome.code.is_none() && journals.is_empty();
        outcome.faults.extend(left::files(folder, if is_killed_early { &[LIVE] } else { &[] })?);
        Ok(outcome)
    }

    /// A run that has been ended early, so that there is something to lose.
    fn begin(&self, place: &Place) -> anyhow::Result<()> {
        let mut program = Guarded(place.weigh(&COMPARE).spawn()?);
        if !ends_within(&mut program, HALF)? {
            program.kill()?;
            program.wait()?;
        }
        left::processes(&self.mark);
        Ok(())
    }

    /// The lines of shell that do the harm, and the words of the program in it.
    fn command(&self, group: Option<&Group>) -> (String, &'static [&'static str]) {
        let limit = self.limit;
        match self.harm {
            // A write beyond the limit is to fail, and not to end the process.
            Harm::FileLimit => {
                (format!("trap '' XFSZ; exec prlimit --fsize={limit}:{limit} -- \"$@\""), &COMPARE)
            }
            Harm::Descriptors => {
                (format!("exec prlimit --nofile={limit}:{limit} -- \"$@\""), &COMPARE)
            }
            // What is on it is copied before it is gone.
            Harm::FullDisk => (
                format!(
                    "exec unshare -rm sh -c 'mkdir kept && mount --bind runs kept && \
                     mount -t tmpfs -o size={limit} tmpfs runs || exit 77; \
                     \"$@\"; code=$?; cp -a runs/. kept/; exit $code' sh \"$@\""
                ),
                &COMPARE,
            ),
            Harm::ReadOnly => (
                "exec unshare -rm sh -c 'mount --bind runs runs && \
                 mount -o remount,bind,ro runs || exit 77; exec \"$@\"' sh \"$@\""
                    .to_owned(),
                &RESUME,
            ),
            Harm::ClockBack => {
                let library = clock_library().unwrap_or_default();
                let shell = format!(
                    "printf +0 > clock; (sleep 1; printf -- -{limit} > clock) & \
                     export LD_PRELOAD='{library}' FAKETIME_TIMESTAMP_FILE=\"$PWD/clock\" \
                     FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \
                     DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1; exec \"$@\""
                );
                (shell, &COMPARE)
            }
            Harm::Memory | Harm::SlowDisk => {
                let tasks = group.map(Group::tasks).unwrap_or_default();
                (format!("echo $$ > '{}' && exec \"$@\"", tasks.display()), &COMPARE)
            }
        }
    }

    /// A run that could not be recorded ends with 4; it is whole with 0.
    fn wrong_code(&self, code: Option<i32>) -> Option<String> {
        let is_right = match self.harm {
            Harm::FileLimit | Harm::FullDisk => matches!(code, Some(0 | 4)),
            // A run that was killed before its journal began is not there to be resumed.
            Harm::ReadOnly => matches!(code, Some(0 | 2 | 4)),
            Harm::SlowDisk | Harm::ClockBack => code == Some(0),
            // Anything but a panic.
            Harm::Descriptors => !matches!(code, Some(101) | None),
            // The kernel may have ended it.
            Harm::Memory => code != Some(101),
        };
        (!is_right).then(|| format!("{} ended with {code:?}", self.harm.name()))
    }
}

/// The library that sets clocks for one process, where Debian and its relatives put it.
fn clock_library() -> Option<&'static str> {
    let places = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/faketime/libfaketime.so.1",
    ];
    places.into_iter().find(|place| Path::new(place).exists())
}

/// Names of control groups.
const GROUP: &str = "weigh-chaos";
const PROBE: &str = "weigh-chaos-probe";

/// As for signals, but short.
pub(super) const COMPARE: [&str; 17] = kind::compare("100ms", "0s");

const RESUME: [&str; 3] = ["run", "--resume", "latest"];

/// About half the time of a comparison.
const HALF: Duration = Duration::from_millis(2_500);

/// Longest time for a comparison to end under a harm.
const PATIENCE: Duration = Duration::from_secs(90);

/// Makes the numbers of harms others than those of signals.
const HARMS: u64 = 0x6861_726d;
