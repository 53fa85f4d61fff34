//! Harms that are not signals: no room on the disk, a folder that cannot be written to, no
//! descriptors, no memory. Whatever happens, finished trials are kept, and the run is resumed
//! once the harm is over.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;

use super::chance::Chance;
use super::journals::Journals;
use super::kind::TRIALS;
use super::left::{self, Traces};
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
    pub(super) const ALL: [Harm; 5] =
        [Harm::FileLimit, Harm::FullDisk, Harm::ReadOnly, Harm::Descriptors, Harm::Memory];

    pub(super) fn name(self) -> &'static str {
        match self {
            Harm::FileLimit => "full disk at a byte",
            Harm::FullDisk => "full disk",
            Harm::ReadOnly => "read-only folder",
            Harm::Descriptors => "no descriptors",
            Harm::Memory => "no memory",
        }
    }

    /// Why this machine cannot do it; `None` if it can.
    fn hindrance(self) -> Option<String> {
        let program = match self {
            Harm::FileLimit | Harm::Descriptors => "prlimit --version",
            Harm::FullDisk | Harm::ReadOnly => "unshare -rm mount -t tmpfs tmpfs /mnt",
            Harm::Memory => {
                let made = group("weigh-chaos-probe", 1 << 30);
                return made.err().map(|error| format!("{error:#}"));
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
            8 => Harm::Descriptors,
            _ => Harm::Memory,
        };
        let limit = match harm {
            Harm::FileLimit => chance.below(journal_bytes),
            Harm::FullDisk => 4096 * (1 + chance.below(1 + 2 * journal_bytes / 4096)),
            Harm::ReadOnly => 0,
            Harm::Descriptors => 3 + chance.below(40),
            Harm::Memory => (4 + chance.below(40)) << 20,
        };
        let mark = format!("harm-{seed}-{number}-{}", std::process::id());
        Harmed { harm, limit, mark }
    }

    /// Runs a comparison under the harm, resumes it without, and checks what is there.
    pub(super) fn carry_out(&self, binary: &Path, folder: &Path) -> anyhow::Result<HarmOutcome> {
        let mut outcome =
            HarmOutcome { skipped: self.harm.hindrance(), code: None, kept: 0, faults: Vec::new() };
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
            Harm::Memory => Some(group("weigh-chaos", self.limit)?),
            _ => None,
        };
        let (shell, words) = self.command(group.as_ref());
        let program = place.through(&shell, words).stderr(Stdio::piped()).spawn()?;
        let mut program = Guarded(program);
        let log = place.log(&mut program)?;
        outcome.faults.extend(place.await_end("weigh", &mut program)?);
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
        outcome.faults.extend(left::files(folder, false)?);
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
            Harm::Memory => {
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
            // Anything but a panic.
            Harm::Descriptors => !matches!(code, Some(101) | None),
            // The kernel may have ended it.
            Harm::Memory => code != Some(101),
        };
        (!is_right).then(|| format!("{} ended with {code:?}", self.harm.name()))
    }
}

/// A control group with a limit of memory, which is removed with this.
struct Group(PathBuf);

/// Makes one.
fn group(name: &str, bytes: u64) -> anyhow::Result<Group> {
    let (unified, old) = (Path::new("/sys/fs/cgroup"), Path::new("/sys/fs/cgroup/memory"));
    let (folder, limit) = match old.is_dir() {
        true => (old.join(name), "memory.limit_in_bytes"),
        false => (unified.join(name), "memory.max"),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    let group = Group(folder.clone());
    std::fs::write(folder.join(limit), bytes.to_string())
        .with_context(|| format!("{limit} of {}", folder.display()))?;
    // Without swap the limit would only be slow; where swap cannot be limited, there is none.
    let _ = std::fs::write(folder.join("memory.swap.max"), "0");
    Ok(group)
}

impl Group {
    fn tasks(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that end are in it for a moment longer.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// As for signals, but short.
pub(super) const COMPARE: [&str; 17] = [
    "compare",
    "tcp",
    "mqtt",
    "-q",
    "1",
    "--pattern",
    "publish",
    "-R",
    "500/s",
    "-d",
    "100ms",
    "-c",
    "4",
    "--reps",
    "3",
    "--warmup",
    "0s",
];

const RESUME: [&str; 3] = ["run", "--resume", "latest"];

/// About half the time of a comparison.
const HALF: Duration = Duration::from_millis(2_500);

/// Makes the numbers of harms others than those of signals.
const HARMS: u64 = 0x6861_726d;
