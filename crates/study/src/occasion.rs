//! One run of a study as evidence: several occasions are judged together.

use weigh_model::event::HostFacts;

use crate::runs::{RunMade, RunState, Runs};
use crate::scale::Scale;

/// One run of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Occasion {
    /// The id of the study's run.
    pub run: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// How much of the study it was asked to run.
    pub scale: Scale,
    /// `done`, `interrupted` or `running`.
    pub state: String,
    /// SHA-256 of `study.toml` when it started, if that is known.
    pub study_hash: Option<String>,
    /// Which boot of the machine it was made in, if that is known.
    pub boot: Option<String>,
    /// Its runs by name.
    pub runs: Runs,
}

impl Occasion {
    /// Its runs that were made, if only in part.
    pub(crate) fn made(&self) -> impl Iterator<Item = &RunMade> {
        self.runs.values().filter_map(|state| match state {
            RunState::Made(made) => Some(&**made),
            RunState::Tool(_) | RunState::Skipped(_) => None,
        })
    }

    /// The machines of its runs, each once: more than one where it was resumed elsewhere.
    pub fn machines(&self) -> Vec<&HostFacts> {
        let mut machines: Vec<&HostFacts> = Vec::new();
        for host in self.runs.values().filter_map(RunState::host) {
            if !machines.iter().any(|known| is_same_machine(known, host)) {
                machines.push(host);
            }
        }
        machines
    }
}

/// The run that stands for all in pictures: the one of the largest scale, one that is done before
/// one that is not, of several the last.
///
/// # Panics
/// If there is none.
pub fn longest(occasions: &[Occasion]) -> &Occasion {
    let rank = |own: &&Occasion| (own.scale, own.state == DONE);
    occasions.iter().max_by_key(rank).expect("one occasion at least")
}

/// Whether two descriptions are of one machine, as far as that can be seen: its processor, its
/// cores and its memory. Kernels and governors may change.
pub fn is_same_machine(one: &HostFacts, other: &HostFacts) -> bool {
    let memory_bytes = one.memory_bytes.max(other.memory_bytes) as f64;
    let differing_bytes = one.memory_bytes.abs_diff(other.memory_bytes) as f64;
    let is_same_memory = differing_bytes <= MEMORY_SHARE * memory_bytes;
    one.cpu == other.cpu
        && one.cores == other.cores
        && one.virtualisation == other.virtualisation
        && is_same_memory
}

/// A machine in words: `2 cores, Intel Xeon`.
pub fn machine(host: &HostFacts) -> String {
    let plural = if host.cores == 1 { "" } else { "s" };
    format!("{} core{plural}, {}", host.cores, host.cpu)
}

/// Kernels of different versions keep different amounts of one memory to themselves.
const MEMORY_SHARE: f64 = 0.02;

/// The state of a run that is over.
pub(crate) const DONE: &str = "done";
