//! Identity of trials: their ids, and the seeds of their random streams.

use std::collections::HashSet;

use weigh_model::Trial;
use weigh_model::plan::{Plan, TargetLife};

use crate::case::Case;
use crate::case::material::Material;

/// The trials of a run, each a function of its case, its repetition and the plan's seed.
///
/// # Examples
///
/// Two repetitions of a case:
///
/// ```
/// use weigh_runner::runner::Runner;
/// use weigh_runner::trial::identity::Trials;
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let text = "protocol = \"tcp\"\nseed = 7\nload.messages = 100";
/// let (plan, secrets) = runner.read("example", text)?;
/// let checked = runner.check(plan, &secrets)?;
/// let trials = Trials::new(&checked.plan, &checked.cases);
/// let [first, second] = [0, 1].map(|repetition| trials.trial(0, &checked.cases[0], repetition));
/// assert_eq!(first.load, second.load);
/// assert_ne!(first.seed, second.seed);
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub struct Trials {
    plan_seed: u64,
    /// By case and repetition, if the plain seeds do not suffice.
    seeds: Vec<Vec<u64>>,
}

impl Trials {
    /// The trials of a plan with these cases.
    pub fn new(plan: &Plan, cases: &[Case]) -> Trials {
        let mut trials = Trials { plan_seed: plan.seed, seeds: Vec::new() };
        let count = cases.len() as u64 * u64::from(plan.repeat.most());
        if plan.repeat.target == TargetLife::Kept && count <= TAGS_MAX {
            trials.seeds = trials.seeds_with_tags_of_their_own(cases, plan.repeat.most());
        }
        trials
    }

    /// Repetition `repetition` of the case at `index`.
    pub fn trial(&self, index: usize, case: &Case, repetition: u32) -> Trial {
        let hash = self.hash(case, repetition);
        let own = self.seeds.get(index).and_then(|seeds| seeds.get(repetition as usize));
        Trial {
            id: format!("{hash:016x}"),
            point: case.point.clone(),
            repetition,
            seed: own.copied().unwrap_or(hash),
            protocol: case.lane.protocol.name().to_owned(),
            target: case.lane.against.name(),
            endpoint: None,
            load: case.load.clone(),
            settings: case.lane.settings.clone(),
        }
    }

    /// The hash of the point's own text, so that an additional case changes no other.
    fn hash(&self, case: &Case, repetition: u32) -> u64 {
        let load = serde_json::to_string(&case.load).unwrap_or_default();
        let text = format!("{:?}/{load}/{repetition}/{}", case.point, self.plan_seed);
        fnv1a(text.as_bytes())
    }

    /// Gives each trial a seed with a free tag. A kept target receives the marks of all trials, and
    /// a tag has 16 bits: of a hundred trials two would share one in 7 of 100 runs, and the
    /// messages of the second would count as duplicates.
    fn seeds_with_tags_of_their_own(&self, cases: &[Case], repetitions: u32) -> Vec<Vec<u64>> {
        let mut taken = HashSet::new();
        let mut seed = |case: &Case, repetition: u32| {
            let mut trial = self.trial(usize::MAX, case, repetition);
            while !taken.insert(trial.tag()) {
                trial.seed = trial.seed.wrapping_add(1);
            }
            trial.seed
        };
        let mut of_case = |case| (0..repetitions).map(|number| seed(case, number)).collect();
        cases.iter().map(&mut of_case).collect()
    }
}

/// A check value of the contents of bodies and traces of these cases, hexadecimal.
pub fn material_check(cases: &[Case]) -> String {
    let mut parts: Vec<&Material> = Vec::new();
    for case in cases {
        if !parts.iter().any(|known| std::ptr::eq(*known, &*case.material)) {
            parts.push(&case.material);
        }
    }
    let hash = parts.iter().fold(FNV_OFFSET, |hash, material| {
        let times = material.trace.iter().flat_map(|time| time.0.to_be_bytes());
        material.body.iter().copied().chain(times).fold(hash, fnv1a_byte)
    });
    // A path may be defined in a file of the user.
    let paths = cases.iter().filter_map(|case| case.path.as_ref());
    let texts = paths.map(|path| format!("{path:?}"));
    let hash = texts.fold(hash, |hash, text| text.bytes().fold(hash, fnv1a_byte));
    format!("{hash:016x}")
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): an identifier, not a protection.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().copied().fold(FNV_OFFSET, fnv1a_byte)
}

fn fnv1a_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
}

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;

/// With more trials than this there are too few free tags.
const TAGS_MAX: u64 = 1 << 15;
