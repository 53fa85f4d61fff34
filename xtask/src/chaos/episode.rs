//! One signal: the command that it hits, the moment, and what must hold afterwards.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::chance::Chance;
use super::company::Company;
use super::journals::{Journals, below};
use super::kind::Kind;
use super::left::{self, Traces};
use super::place::Place;

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
        let mut program = place.weigh(&[self.kind.words(), &own[..]].concat()).spawn()?;
        company.after(self.kind, &place, &mut program)?;
        std::thread::sleep(self.after);
        let was_hit = self.hit(&place, &mut program)?;
        let mut faults = place.await_end("weigh", &mut program)?;
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
        // Nothing can remove the live file of a process that was killed, until the run is resumed.
        let is_killed = self.signal.0 == "KILL" && self.victim.is_empty();
        faults.extend(left::files(folder, self.kind == Kind::Limit && is_killed)?);
        Ok(Outcome { kept: kept.len() as u64, was_hit, faults })
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
        let own = program.id();
        let victim = match self.victim {
            "" => Some(own),
            part => left::marked(&place.mark)
                .into_iter()
                .find(|(pid, words)| *pid != own && words.contains(part))
                .map(|(pid, _)| pid),
        };
        let Some(pid) = victim.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else {
            return Ok(false);
        };
        match self.signal.1 {
            Some(signal) => Ok(kill_process(pid, signal).is_ok()),
            None => {
                let was_stopped = kill_process(pid, Signal::STOP).is_ok();
                std::thread::sleep(STOPPED_FOR);
                Ok(kill_process(pid, Signal::CONT).is_ok() && was_stopped)
            }
        }
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
