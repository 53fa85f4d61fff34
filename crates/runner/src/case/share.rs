//! Share of the machine that a case gives its target: cores, their time, and memory.

use std::sync::Arc;

use weigh_model::Warning;
use weigh_model::event::TrialFinished;
use weigh_model::protocol::Invalid;
use weigh_model::units::Bytes;
use weigh_plan::case;
use weigh_testbed::cgroup::{ControlGroup, Share};
use weigh_testbed::pinning::{CoreSet, Pinning};

/// A target's share, as the plan asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetShare {
    /// Number of cores; one by default.
    cores: Option<u32>,
    /// Processor time in percent of one core; all of its cores by default.
    cpu_percent: Option<u32>,
    /// Memory; unlimited by default.
    memory_bytes: Option<u64>,
}

/// Replacements for what this machine cannot enforce, by share; each is tried once.
#[derive(Default)]
pub struct StandIns(Vec<(TargetShare, Vec<String>)>);

impl StandIns {
    /// Replacements for what cannot be enforced here, and why; empty if all can be.
    pub fn of(&mut self, share: TargetShare) -> &[String] {
        let place = match self.0.iter().position(|(known, _)| *known == share) {
            Some(place) => place,
            None => {
                self.0.push((share, share.missing()));
                self.0.len() - 1
            }
        };
        &self.0[place].1
    }
}

impl TargetShare {
    /// Share of a case.
    ///
    /// # Errors
    /// Too little memory for any server.
    pub fn of(asked: &case::Share) -> Result<TargetShare, Invalid> {
        let memory_bytes = asked.memory.map(|Bytes(bytes)| bytes);
        if let Some(bytes) = memory_bytes.filter(|bytes| *bytes < MEMORY_BYTES_MIN) {
            return Err(Invalid::new(
                MEMORY,
                format!("{bytes} bytes of memory are too few for any server"),
                "type at least 8MiB",
            ));
        }
        let most_percent = asked.cores.unwrap_or(1) * 100;
        if let Some(percent) = asked.cpu_percent.filter(|percent| *percent > most_percent) {
            return Err(Invalid::new(
                CPU_PERCENT,
                format!("{percent} % of a core, and its cores have {most_percent} %"),
                "type less, or more cores for the target (--target-cores)",
            ));
        }
        Ok(TargetShare { cores: asked.cores, cpu_percent: asked.cpu_percent, memory_bytes })
    }

    /// Number of cores that the plan asks for.
    pub fn cores(&self) -> Option<u32> {
        self.cores
    }

    /// True if the plan asks for a share.
    pub fn is_asked(&self) -> bool {
        *self != TargetShare::default()
    }

    /// Places target and generator on cores, for this number of shards.
    pub fn pinning(&self, allowed: &CoreSet, shards: u32) -> Pinning {
        Pinning::divide(allowed, self.cores.unwrap_or(1) as usize, shards as usize)
    }

    /// Makes the control group of a target on these cores; `None` without a share.
    pub fn enclose(&self, cores: &CoreSet) -> Option<Arc<ControlGroup>> {
        let share = Share {
            cores: self.cores.map(|_| cores.clone()),
            cpu_percent: self.cpu_percent,
            memory_bytes: self.memory_bytes,
        };
        self.is_asked().then(|| Arc::new(ControlGroup::make(&share)))
    }

    /// Returns the parts of it that cannot be enforced, found by making the control group and
    /// deleting it.
    fn missing(&self) -> Vec<String> {
        let Ok(allowed) = CoreSet::allowed() else { return Vec::new() };
        let made = self.enclose(&self.pinning(&allowed, 1).target);
        made.map_or_else(Vec::new, |made| made.missing().to_vec())
    }

    /// Adds to the record of a trial what the target was given, and what it was not.
    pub fn tell(&self, cores: &CoreSet, enclosure: &ControlGroup, finished: &mut TrialFinished) {
        let told = enclosure.told().iter().cloned();
        finished.scene.extend(told.map(|(key, text)| (key.to_owned(), text)));
        let asked = self.cores.unwrap_or(0);
        let cut = (asked > cores.count())
            .then(|| format!("{asked} cores were asked for, and {} were available", cores.count()));
        for missing in enclosure.missing().iter().cloned().chain(cut) {
            finished.warnings.push(Warning::TargetShare(missing).record());
        }
    }
}

const MEMORY: &str = "target.memory";
const CPU_PERCENT: &str = "target.cpu_percent";

/// The least memory in which a small server can load its libraries (Mosquitto: 6 MB resident).
const MEMORY_BYTES_MIN: u64 = 8 << 20;
