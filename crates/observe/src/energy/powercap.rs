//! Counters of the processor's energy as powercap shows them (Documentation/power/powercap.rst):
//! `energy_uj` counts microjoules and begins again at `max_energy_range_uj`.
//!
//! Zones overlap. A package holds its cores and other parts; `psys` holds the packages;
//! `intel-rapl-mmio` shows a package that `intel-rapl` shows too. The sum is that of the packages,
//! each once. Memory (`dram`) is nested below a package but draws its own power: it is reported
//! separately, and is in the sum only if requested.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::accuracy::PROCESSOR;
use super::readings::{Domain, Facts, MeterError, Value, absent, unusable};
use super::sysfs::{folders, name, number, reading, word};
use crate::host::Roots;

/// The counters that are read.
#[derive(Clone, Debug)]
pub(super) struct Domains {
    files: Vec<PathBuf>,
}

/// A zone of powercap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    folder: PathBuf,
    /// Its name with those of the zones that it is nested in: `package-0/core`.
    pub name: String,
    wraps_at_uj: i64,
}

impl Domains {
    /// Opens the counters; the sum is over packages, or over the domains named `wanted`.
    ///
    /// # Errors
    /// [`MeterError`] if there are no counters, or they cannot be read.
    pub fn open(roots: &Roots, wanted: Option<&str>) -> Result<(Domains, Facts), MeterError> {
        let zones = zones(roots);
        if zones.is_empty() {
            return Err(absent(
                "no counters below class/powercap",
                "run modprobe intel_rapl_msr; only x86 processors have them, and few virtual \
                 machines show them",
            ));
        }
        let is_summed = |zone: &Zone| match wanted {
            Some(wanted) => zone.name == wanted || zone.last() == wanted,
            None => zone.is_package(),
        };
        let has_summed = zones.iter().any(is_summed);
        let is_summed = |zone: &Zone| is_summed(zone) || (!has_summed && wanted.is_none());
        if !zones.iter().any(is_summed) {
            let names: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
            return Err(absent(
                format!("unknown domain {:?} of rapl", wanted.unwrap_or_default()),
                format!("type one of {}", names.join(", ")),
            ));
        }
        let mut domains = Vec::new();
        for zone in &zones {
            domains.push(zone.check(is_summed(zone))?);
        }
        let files = zones.iter().map(|zone| zone.folder.join(COUNTER)).collect();
        let facts = facts(domains, wanted);
        Ok((Domains { files }, facts))
    }

    /// Reads all counters now.
    ///
    /// # Errors
    /// [`MeterError::Vanished`] if a counter is gone.
    pub fn read(&self) -> Result<Value, MeterError> {
        let count = |path: &PathBuf| reading(path).map(|count| count.max(0).unsigned_abs());
        self.files.iter().map(count).collect::<Result<_, _>>().map(Value::Energy)
    }
}

fn facts(domains: Vec<Domain>, wanted: Option<&str>) -> Facts {
    let summed: Vec<&Domain> = domains.iter().filter(|domain| domain.is_summed).collect();
    let names: Vec<&str> = summed.iter().map(|domain| domain.name.as_str()).collect();
    // A counter must be read before it can wrap, however high the power.
    let least_uj = domains.iter().map(|domain| domain.wraps_at_uj).min().unwrap_or(u64::MAX);
    let round_s = least_uj as f64 / 1e6 / WATTS_MAX;
    let number = summed.len() as f64;
    Facts {
        name: format!("rapl {}", names.join(" ")),
        covers: match wanted {
            None if names.iter().any(|name| name.starts_with(PACKAGE)) => {
                "processor packages, without memory and board".to_owned()
            }
            _ => format!("the processor's domains {}", names.join(", ")),
        },
        period: Duration::from_secs_f64((round_s / 2.0).clamp(0.001, 0.05)),
        accuracy: PROCESSOR.with_offset(0.0),
        plausible_w: (WATTS_MIN, number * WATTS_MAX),
        domains,
    }
}

impl Zone {
    fn last(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    fn is_package(&self) -> bool {
        self.name.starts_with(PACKAGE) && !self.name.contains('/')
    }

    /// The zone as a domain, if its counter can be read.
    fn check(&self, is_summed: bool) -> Result<Domain, MeterError> {
        let file = self.folder.join(COUNTER);
        let meter = || format!("rapl {}", self.name);
        if let Err(error) = std::fs::File::open(&file) {
            let fix = "run as root, or allow it: chmod a+r \
                        /sys/class/powercap/intel-rapl:*/energy_uj";
            return Err(unusable(meter(), format!("{}: {error}", file.display()), fix));
        }
        let count = reading(&file)?;
        if self.wraps_at_uj <= 0 || count > self.wraps_at_uj || count < 0 {
            return Err(unusable(
                meter(),
                format!(
                    "its counter is {count} and its range {}, so a wrap would not be visible",
                    self.wraps_at_uj
                ),
                "check max_energy_range_uj in the same folder",
            ));
        }
        let wraps_at_uj = self.wraps_at_uj.unsigned_abs();
        Ok(Domain { name: self.name.clone(), wraps_at_uj, is_summed })
    }
}

/// All zones, each once, those of the processor's registers before those of its memory.
pub(super) fn zones(roots: &Roots) -> Vec<Zone> {
    let mut found = Vec::new();
    let mut folders_seen = BTreeSet::new();
    descend(&roots.sys.join("class/powercap"), &mut folders_seen, &mut found);
    found.sort_by_key(|folder: &PathBuf| {
        let own = name(folder);
        (own.starts_with(MEMORY_MAPPED), own.matches(':').count(), own.len(), own)
    });
    let mut names = BTreeSet::new();
    let mut zones = Vec::new();
    for folder in &found {
        let Some(zone) = zone(folder, &found) else { continue };
        if names.insert(zone.name.clone()) {
            zones.push(zone);
        }
    }
    zones
}

/// Zones are next to each other in the class, and nested in the folder behind the link.
fn descend(folder: &Path, seen: &mut BTreeSet<String>, found: &mut Vec<PathBuf>) {
    for inner in folders(folder) {
        let own = name(&inner);
        if !own.starts_with("intel-rapl") {
            continue;
        }
        if own.contains(':') && seen.insert(own) {
            found.push(inner.clone());
        }
        descend(&inner, seen, found);
    }
}

fn zone(folder: &Path, all: &[PathBuf]) -> Option<Zone> {
    let own = word(&folder.join("name"))?;
    if !folder.join(COUNTER).exists() {
        return None;
    }
    // `intel-rapl:0:1` is nested in `intel-rapl:0`.
    let id = name(folder);
    let outer = id.rsplit_once(':').map(|(outer, _)| outer).filter(|outer| outer.contains(':'));
    let outer = outer.and_then(|outer| all.iter().find(|other| name(other) == outer));
    let outer = outer.and_then(|folder| word(&folder.join("name")));
    let name = outer.map_or_else(|| own.clone(), |outer| format!("{outer}/{own}"));
    let wraps_at_uj = number(&folder.join("max_energy_range_uj")).unwrap_or(0);
    Some(Zone { folder: folder.to_owned(), name, wraps_at_uj })
}

const COUNTER: &str = "energy_uj";
const PACKAGE: &str = "package";
const MEMORY_MAPPED: &str = "intel-rapl-mmio";

/// Highest power of a package: the largest of today are rated at 500 W.
const WATTS_MAX: f64 = 2_000.0;

/// Lowest power of a sleeping package of processors with these counters.
const WATTS_MIN: f64 = 0.05;
