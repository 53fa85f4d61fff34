//! What a case gives its target of the machine: how many cores, how much memory.

use std::sync::Arc;

use weigh_model::Doubt;
use weigh_model::event::TrialFinished;
use weigh_model::protocol::Invalid;
use weigh_model::units::Bytes;
use weigh_plan::case;
use weigh_testbed::enclosure::{Enclosure, Share};
use weigh_testbed::pinning::{CoreSet, Pinning};

/// A target's share, as the plan asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetShare {
    /// How many cores; one where nothing is said.
    cores: Option<u32>,
    /// How much memory; all where nothing is said.
    memory_bytes: Option<u64>,
}

/// What this machine has no means to enforce, share by share: each is tried once.
#[derive(Default)]
pub struct StandIns(Vec<(TargetShare, Vec<String>)>);

impl StandIns {
    /// What stands in for what of a share cannot be enforced here, and why; empty where all can.
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
    /// What a case asks for.
    ///
    /// # Errors
    /// If no server starts with it.
    pub fn of(asked: &case::Share) -> Result<TargetShare, Invalid> {
        let memory_bytes = asked.memory.map(|Bytes(bytes)| bytes);
        if let Some(bytes) = memory_bytes.filter(|bytes| *bytes < MEMORY_BYTES_MIN) {
            return Err(Invalid::new(
                MEMORY,
                format!("no server starts in {bytes} bytes"),
                "type at least 8MiB",
            ));
        }
        Ok(TargetShare { cores: asked.cores, memory_bytes })
    }

    /// How many cores are asked for.
    pub fn cores(&self) -> Option<u32> {
        self.cores
    }

    /// Whether anything is asked.
    pub fn is_asked(&self) -> bool {
        *self != TargetShare::default()
    }

    /// Who runs where, if so many shards make the load.
    pub fn pinning(&self, allowed: &CoreSet, shards: u32) -> Pinning {
        Pinning::divide(allowed, self.cores.unwrap_or(1) as usize, shards as usize)
    }

    /// The enclosure of a target on these cores; `None` where nothing is asked.
    pub fn enclose(&self, cores: &CoreSet) -> Option<Arc<Enclosure>> {
        let share =
            Share { cores: self.cores.map(|_| cores.clone()), memory_bytes: self.memory_bytes };
        self.is_asked().then(|| Arc::new(Enclosure::make(&share)))
    }

    /// What cannot be enforced of it, by making it and taking it away again.
    fn missing(&self) -> Vec<String> {
        let Ok(allowed) = CoreSet::allowed() else { return Vec::new() };
        let made = self.enclose(&self.pinning(&allowed, 1).target);
        made.map_or_else(Vec::new, |made| made.missing().to_vec())
    }

    /// Puts what the target was given into the record of a trial, and what it was not.
    pub fn tell(&self, cores: &CoreSet, enclosure: &Enclosure, finished: &mut TrialFinished) {
        let told = enclosure.told().iter().cloned();
        finished.scene.extend(told.map(|(key, text)| (key.to_owned(), text)));
        let asked = self.cores.unwrap_or(0);
        let cut = (asked > cores.count()).then(|| {
            format!("{asked} cores were asked for, and {} could be spared", cores.count())
        });
        for missing in enclosure.missing().iter().cloned().chain(cut) {
            finished.doubts.push(Doubt::TargetShare(missing).record());
        }
    }
}

const MEMORY: &str = "target.memory";

/// Below it not even a small server gets its libraries into memory (Mosquitto: 6 MB resident).
const MEMORY_BYTES_MIN: u64 = 8 << 20;
