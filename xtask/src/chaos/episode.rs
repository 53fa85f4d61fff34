//! One signal: the command that it hits, the moment, and what must hold afterwards.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::chance::Chance;
use super::company::Company;
use super::journals::{Journals, below};
use super::kind::Kind;
use super::left::{self, HOME, LIVE, Traces};
use super::place::Place;
use crate::guarded::Guarded;

/// What is started, whom the signal hits, which one and when.
pub(super) struct Episode {
    pub(super) kind: Kind,
    signal: (&'static str, Option<Signal>),
    /// The process that is hit, as a part of its words; empty for the program itself.
    victim: &'static str,
    /// Time from the start of the program to the signal.
    pub(super) after: Duration,
    mark: String,
}

/// Findings of an episode.
pub(super) struct Outcome {
    /// Trials that were finished when the program ended.
    pub(super) kept: u64,
    /// False if the program had ended before.
    pub(super) was_hit: bool,
    pub(super) faults: Vec<String>,
}

impl Episode {
    /// The episode of this number: the same for a seed on every machine.
    pub(super) fn chosen(seed: u64, number: u64) -> Episode {
        let mut chance = Chance::of(seed, number);
        let kind = Kind::chosen(chance.below(10));
        let signal = SIGNALS[chance.below(SIGNALS.len() as u64) as usize];
        let others = kind.others();
        // The program itself as often as all others together.
        let victim = match chance.below(2) {
            0 => "",
            _ => others[chance.below(others.len() as u64) as usize],
        };
        let after = Duration::from_millis(chance.below(LENGTH_MS));
        let mark = format!("{seed}-{number}-{}", std::process::id());
        Episode { kind, signal, victim, after, mark }
    }

    pub(super) fn victim(&self) -> &'static str {
        if self.victim.is_empty() { "weigh" } else { self.victim.trim() }
    }

    pub(super) fn signal_name(&self) -> &'static str {
        self.signal.0
    }

    /// Runs the command, sends the signal, resumes the run and checks what is there.
    pub(super) fn carry_out(&self, binary: &Path, folder: &Path) -> anyhow::Result<Outcome> {
        let place = Place::empty(binary, folder, self.mark.clone())?;
        let before = Traces::seen()?;
        self.kind.prepare(&place)?;
        let mut company = Company::before(self.kind, &place)?;
        let own: Vec<&str> = company.words.iter().map(String::as_str).collect();
        let program = place.weigh(&[self.kind.words(), &own[..]].concat()).spawn()?;
        let mut program = Guarded(program);
        company.after(self.kind, &place, &mut program)?;
        std::thread::sleep(self.after);
        let was_hit = self.hit(&place, &mut program)?;
        let mut faults = place.await_end("weigh", &mut program, self.kind.patience())?;
        faults.extend(company.end()?);
        faults.extend(place.leftovers());
        let journals = Journals::read(folder)?;
        let kept = journals.finished();
        if let Some(words) = self.kind.resume().filter(|_| self.has_begun(folder, &journals)) {
            let company = Company::before(self.kind, &place)?;
            let own: Vec<&str> = company.words.iter().map(String::as_str).collect();
            let resumed = place.weigh(&[words, &own[..]].concat()).status()?;
            let after = Journals::read(folder)?;
            let wrong = after.faults_since(&kept, self.kind.trials()).into_iter();
            faults.extend(wrong.map(|fault| format!("{fault} (exit code {:?})", resumed.code())));
            faults.extend(company.end()?);
            faults.extend(place.leftovers());
        }
        faults.extend(before.and_now(&Traces::seen()?));
        let is_resumed = self.kind.resume().is_some() && self.has_begun(folder, &journals);
        faults.extend(left::files(folder, self.may_leave(is_resumed))?);
        Ok(Outcome { kept: kept.len() as u64, was_hit, faults })
    }

    /// Names of what a process that is killed cannot remove: the live file of a run that is not
    /// resumed, and the folder of the bus, which the next `weigh` with a server removes.
    fn may_leave(&self, is_resumed: bool) -> &'static [&'static str] {
        match (self.signal.0, self.victim) {
            ("KILL", "") if !is_resumed => &[LIVE],
            ("KILL", " fleet up") => &[HOME],
            _ => &[],
        }
    }

    /// True if there is something to resume.
    fn has_begun(&self, folder: &Path, journals: &Journals) -> bool {
        match self.kind {
            Kind::Study => !below(&folder.join("runs"), "study.json").is_empty(),
            _ => !journals.is_empty(),
        }
    }

    /// Sends the signal; false if there was no process to send it to.
    fn hit(&self, place: &Place, program: &mut Child) -> anyhow::Result<bool> {
        if program.try_wait()?.is_some() {
            return Ok(false);
        }
        let Some(victim) = self.found(place, program.id()) else { return Ok(false) };
        let send = |signal| pidfd_send_signal(&victim, signal).is_ok();
        match self.signal.1 {
            Some(signal) => Ok(send(signal)),
            None => {
                let was_stopped = send(Signal::STOP);
                std::thread::sleep(STOPPED_FOR);
                Ok(send(Signal::CONT) && was_stopped)
            }
        }
    }

    /// A descriptor of the process that is hit. A number may be that of another process by the
    /// time of the signal, or of a group; a descriptor stays that of the one with the mark.
    fn found(&self, place: &Place, own: u32) -> Option<OwnedFd> {
        let pid = match self.victim {
            "" => own,
            part => {
                let mut marked = left::marked(&place.mark).into_iter();
                marked.find(|(pid, words)| *pid != own && words.contains(part))?.0
            }
        };
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let process = pidfd_open(number, PidfdFlags::empty()).ok()?;
        left::has_mark(pid, &place.mark).then_some(process)
    }
}

/// About the length of each command, so that every phase of it is hit, milliseconds.
const LENGTH_MS: u64 = 8_000;
/// Time between STOP and CONT.
const STOPPED_FOR: Duration = Duration::from_millis(300);

/// Signals by name; `None` stands for STOP and CONT.
pub(super) const SIGNALS: [(&str, Option<Signal>); 4] = [
    ("KILL", Some(Signal::KILL)),
    ("TERM", Some(Signal::TERM)),
    ("INT", Some(Signal::INT)),
    ("STOP, CONT", None),
];
