//! A meter that can be read again and again, whatever kind it is.

use std::io;
use std::time::Duration;

use weigh_model::MeterChoice;

use super::accuracy::Accuracy;
use super::hwmon::ShuntChip;
use super::pmic::PowerChip;
use super::power_supply::{self, Battery};
use super::powercap::Domains;
use crate::cpu::monotonic_ns;
use crate::host::Roots;

/// Where meters are looked for.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Where the kernel shows itself.
    pub roots: Roots,
    /// What prints the readings of a Raspberry Pi 5's power chip, as `vcgencmd pmic_read_adc` does.
    /// It is a program, so whoever may start one hands it in.
    pub power_chip: Option<fn() -> io::Result<String>>,
}

impl Sources {
    /// The files of the kernel alone.
    pub fn of(roots: Roots) -> Sources {
        Sources { roots, power_chip: None }
    }
}

/// What keeps a meter from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeterError {
    /// There is none of this kind.
    #[error("{reason}; {mend}")]
    Absent {
        /// What was looked for.
        reason: String,
        /// What to do.
        mend: String,
    },
    /// There is one, and its figures would be no measurement.
    #[error("{meter}: {reason}; {mend}")]
    Unusable {
        /// Which one.
        meter: String,
        /// Why.
        reason: String,
        /// What to do.
        mend: String,
    },
    /// It was there and is not any more.
    #[error("{path}: {reason}")]
    Vanished {
        /// The file that it was read from.
        path: String,
        /// What came instead of a number.
        reason: String,
    },
}

/// What is known of a meter before it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// What it is called: `ina226 at hwmon3`.
    pub name: String,
    /// What it measures: `processor packages, without memory and board`.
    pub covers: String,
    /// How often it should be read: about as often as it has something new to say.
    pub period: Duration,
    /// Names of its energy counters, in the order of [`Value::Energy`], and for each of them where
    /// it wraps, microjoules, and whether it is part of the sum.
    pub domains: Vec<Domain>,
    /// How right it is.
    pub accuracy: Accuracy,
    /// Mean power that it can sensibly show, watts: from, to. What lies outside is no unit of the
    /// kernel's.
    pub plausible_w: (f64, f64),
}

/// One energy counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// `package-0`.
    pub name: String,
    /// The counter begins again at 0 after so many microjoules.
    pub wraps_at_uj: u64,
    /// True if the sum holds it; a part of another domain, or a second view of one, does not
    /// belong there.
    pub is_summed: bool,
}

/// One look at a meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// When, on `CLOCK_MONOTONIC`: the middle of the look.
    pub at_ns: u64,
    /// What it said.
    pub value: Value,
}

/// What a meter says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Counters of energy as they stand, microjoules, one for each domain.
    Energy(Vec<u64>),
    /// Power now.
    Power {
        /// Watts.
        power_w: f64,
        /// Volts.
        voltage_v: Option<f64>,
        /// Amperes.
        current_a: Option<f64>,
    },
    /// What is left in a battery.
    Left {
        /// Microampere hours, where the gauge counts charge.
        charge_uah: Option<i64>,
        /// Microwatt hours, where it counts energy.
        energy_uwh: Option<i64>,
        /// Volts.
        voltage_v: Option<f64>,
    },
}

/// A meter.
#[derive(Debug)]
pub struct Meter {
    choice: MeterChoice,
    facts: Facts,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Domains(Domains),
    Shunt(ShuntChip),
    Battery(Battery),
    PowerChip(PowerChip),
}

impl Meter {
    /// Opens the meter that was asked for, reads it once and sees whether it makes sense. `Auto`
    /// takes the one that measures most of the machine best: a shunt, the power chip of a Pi 5, the
    /// processor's counters, a battery that is not charged.
    ///
    /// # Errors
    /// If there is none, or none that can be believed: why, and the mend. `None` and a log are
    /// absent: nobody reads them here.
    pub fn open(choice: &MeterChoice, sources: &Sources) -> Result<Meter, MeterError> {
        let (facts, kind) = match choice {
            MeterChoice::Auto => return Meter::best(sources),
            MeterChoice::None => return Err(absent("no meter is asked for", "type --meter auto")),
            MeterChoice::Log { .. } => {
                return Err(absent(
                    "a log is read when it is whole",
                    "name a meter of this machine",
                ));
            }
            MeterChoice::Rapl(domain) => {
                let (domains, facts) = Domains::open(&sources.roots, domain.as_deref())?;
                (facts, Kind::Domains(domains))
            }
            MeterChoice::Shunt { chip, place } => {
                let wanted = (chip.as_deref(), place.as_deref());
                let (chip, facts) = ShuntChip::open(&sources.roots, wanted)?;
                (facts, Kind::Shunt(chip))
            }
            MeterChoice::Battery(name) => {
                let battery = power_supply::open(&sources.roots, name.as_deref())?;
                (battery.facts()?, Kind::Battery(battery))
            }
            MeterChoice::Pmic => {
                let (chip, facts) = PowerChip::open(sources.power_chip)?;
                (facts, Kind::PowerChip(chip))
            }
        };
        Ok(Meter { choice: choice.clone(), facts, kind })
    }

    fn best(sources: &Sources) -> Result<Meter, MeterError> {
        let mut reasons = Vec::new();
        for choice in BEST_FIRST {
            let choice: MeterChoice = choice.parse().unwrap_or_default();
            match Meter::open(&choice, sources) {
                Ok(meter) => return Ok(meter),
                // Of what is there and cannot be used somebody may want to know.
                Err(error @ MeterError::Unusable { .. }) => reasons.push(error.to_string()),
                Err(_) => {}
            }
        }
        match reasons.is_empty() {
            true => Err(absent(
                "this machine shows no meter of energy",
                "see weigh meters; the log of one outside is --meter csv:FILE",
            )),
            false => Err(absent(reasons.join("; "), "see weigh meters")),
        }
    }

    /// What opens it again, and no other.
    pub fn choice(&self) -> &MeterChoice {
        &self.choice
    }

    /// What is known of it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Looks at it once.
    ///
    /// # Errors
    /// [`MeterError::Vanished`] if it is not there any more.
    pub fn read(&mut self) -> Result<Reading, MeterError> {
        let before_ns = monotonic_ns();
        let value = match &mut self.kind {
            Kind::Domains(domains) => domains.read(),
            Kind::Shunt(chip) => chip.read(),
            Kind::Battery(battery) => battery.read(),
            Kind::PowerChip(chip) => chip.read(),
        }?;
        let after_ns = monotonic_ns();
        Ok(Reading { at_ns: before_ns + (after_ns - before_ns) / 2, value })
    }
}

/// There is none of a kind.
pub(super) fn absent(reason: impl Into<String>, mend: impl Into<String>) -> MeterError {
    MeterError::Absent { reason: reason.into(), mend: mend.into() }
}

/// There is one that cannot be used.
pub(super) fn unusable(
    meter: impl Into<String>,
    reason: impl Into<String>,
    mend: impl Into<String>,
) -> MeterError {
    MeterError::Unusable { meter: meter.into(), reason: reason.into(), mend: mend.into() }
}

/// What measures the whole board comes before what measures its processor, what is fine before what
/// is coarse.
pub(super) const BEST_FIRST: [&str; 4] = ["ina2xx", "pmic", "rapl", "battery"];
