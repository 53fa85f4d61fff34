//! Assigns cores to target and generator, so that neither takes time from the other.

use std::fmt;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A set of cores, by number, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSet(Vec<usize>);

impl CoreSet {
    /// A set of these cores.
    ///
    /// # Panics
    /// If the list is empty, or a number is beyond what an affinity mask holds.
    pub fn of(cores: impl IntoIterator<Item = usize>) -> CoreSet {
        let mut cores: Vec<usize> = cores.into_iter().collect();
        cores.sort_unstable();
        cores.dedup();
        assert!(!cores.is_empty(), "a core set needs a core");
        assert!(cores.iter().all(|core| *core < CpuSet::MAX_CPU), "no such core");
        CoreSet(cores)
    }

    /// Returns the cores that the calling thread may use.
    ///
    /// # Errors
    /// If the kernel does not report them.
    pub fn allowed() -> io::Result<CoreSet> {
        let mask = sched_getaffinity(None)?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core)).collect();
        if cores.is_empty() {
            return Err(io::Error::other("the kernel names no core this thread may use"));
        }
        Ok(CoreSet(cores))
    }

    /// Their numbers, in ascending order.
    pub fn cores(&self) -> &[usize] {
        &self.0
    }

    /// The lowest number.
    pub fn first(&self) -> usize {
        self.0[0]
    }

    /// Their number.
    pub fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Lets the calling thread, and the threads it starts from now on, use only these cores.
    ///
    /// # Errors
    /// If a core does not exist or is not allowed.
    pub fn pin_this_thread(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.mask())?)
    }

    pub(crate) fn mask(&self) -> CpuSet {
        let mut mask = CpuSet::new();
        for core in &self.0 {
            mask.set(*core);
        }
        mask
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(usize::to_string).collect();
        write!(f, "{}", numbers.join(","))
    }
}

/// Assignment of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinning {
    /// The target's cores.
    pub target: CoreSet,
    /// The generator's cores, one for each of its threads where there are enough.
    pub generator: CoreSet,
    /// True if both use the same, only core. The result says so.
    pub shared: bool,
    /// Cores of neither, or the generator's if there are none: for threads that only observe.
    pub aside: CoreSet,
}

impl Pinning {
    /// Divides the allowed cores: the lowest to the target, the next to the generator. With two or
    /// more cores the generator gets at least one of its own. Requests beyond the available cores
    /// are cut, the target's first.
    pub fn divide(allowed: &CoreSet, target_wanted: usize, generator_wanted: usize) -> Pinning {
        let cores = allowed.cores();
        if cores.len() < 2 {
            let (target, generator) = (allowed.clone(), allowed.clone());
            return Pinning { aside: target.clone(), target, generator, shared: true };
        }
        let generator_wanted = generator_wanted.clamp(1, cores.len() - 1);
        let for_target = target_wanted.clamp(1, cores.len() - generator_wanted);
        let (target, rest) = cores.split_at(for_target);
        let (generator, spare) = rest.split_at(generator_wanted);
        let aside = if spare.is_empty() { generator } else { spare };
        Pinning {
            aside: CoreSet(aside.to_vec()),
            target: CoreSet(target.to_vec()),
            generator: CoreSet(generator.to_vec()),
            shared: false,
        }
    }

    /// The core of a generator's thread, by its index; threads beyond the cores share them.
    pub fn generator_core(&self, thread: usize) -> CoreSet {
        let cores = self.generator.cores();
        CoreSet(vec![cores[thread % cores.len()]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_first_generator_next() {
        let pinning = Pinning::divide(&CoreSet::of([1, 0]), 1, 1);
        assert_eq!(
            (pinning.target.to_string(), pinning.generator.to_string()),
            ("0".into(), "1".into())
        );
        assert!(!pinning.shared);
        let pinning = Pinning::divide(&CoreSet::of([2, 3, 5, 7]), 2, 2);
        assert_eq!(pinning.target.cores(), [2, 3]);
        assert_eq!(pinning.generator.cores(), [5, 7]);
        assert_eq!(pinning.generator_core(3).cores(), [7]);
        assert_eq!(pinning.aside.cores(), [5, 7], "there is no other");
        let pinning = Pinning::divide(&CoreSet::of([2, 3, 5, 7]), 1, 1);
        assert_eq!(pinning.aside.cores(), [5, 7]);
    }

    #[test]
    fn what_is_not_there_is_cut_or_shared() {
        let pinning = Pinning::divide(&CoreSet::of([0, 1]), 8, 8);
        assert_eq!((pinning.target.count(), pinning.generator.count()), (1, 1));
        let pinning = Pinning::divide(&CoreSet::of([4]), 1, 1);
        assert!(pinning.shared);
        assert_eq!(pinning.target, pinning.generator);
    }

    #[test]
    fn a_thread_is_pinned() {
        let core = CoreSet::allowed().unwrap().first();
        std::thread::spawn(move || {
            CoreSet::of([core]).pin_this_thread().unwrap();
            assert_eq!(CoreSet::allowed().unwrap().cores(), [core]);
        })
        .join()
        .unwrap();
        assert!(CoreSet::of([CpuSet::MAX_CPU - 1]).pin_this_thread().is_err());
    }
}
