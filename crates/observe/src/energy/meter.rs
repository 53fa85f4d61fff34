//! A meter that can be read repeatedly, of any kind.

use std::io;

use weigh_model::MeterChoice;

use super::hwmon::ShuntChip;
use super::pmic::PowerChip;
use super::power_supply::{self, Battery};
use super::powercap::Domains;
use super::readings::{Facts, MeterError, Reading, absent};
use crate::cpu::monotonic_ns;
use crate::host::Roots;

/// Sources of meters.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Root of the kernel's files.
    pub roots: Roots,
    /// Prints the readings of a Raspberry Pi 5's power chip, as `vcgencmd pmic_read_adc` does. The
    /// caller provides it, since it starts a program.
    pub power_chip: Option<fn() -> io::Result<String>>,
}

impl Sources {
    /// Only the kernel's files.
    pub fn of(roots: Roots) -> Sources {
        Sources { roots, power_chip: None }
    }
}

/// A meter that can be read.
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
    /// Opens the requested meter, reads it once and checks that its value is plausible. `Auto`
    /// takes the one that measures most of the machine best: a shunt, the power chip of a Pi 5, the
    /// processor's counters, a battery that is not charged.
    ///
    /// # Errors
    /// If there is none, or none with plausible values: why, and the fix. `None` and a log are
    /// absent: they are not read here.
    pub fn open(choice: &MeterChoice, sources: &Sources) -> Result<Meter, MeterError> {
        let (facts, kind) = match choice {
            MeterChoice::Auto => return Meter::best(sources),
            MeterChoice::None => return Err(absent("no meter was requested", "type --meter auto")),
            MeterChoice::Log { .. } => {
                return Err(absent("a log is read after the run", "name a meter of this machine"));
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
                // The reasons why existing meters cannot be used may be of interest.
                Err(error @ MeterError::Unusable { .. }) => reasons.push(error.to_string()),
                Err(_) => {}
            }
        }
        match reasons.is_empty() {
            true => Err(absent(
                "this machine has no energy meter",
                "see weigh energy meters; for an external meter type --meter csv:FILE",
            )),
            false => Err(absent(reasons.join("; "), "see weigh energy meters")),
        }
    }

    /// The choice that opens this meter again, and no other.
    pub fn choice(&self) -> &MeterChoice {
        &self.choice
    }

    /// Properties of the meter.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Reads it once.
    ///
    /// # Errors
    /// [`MeterError::Vanished`] if it is gone.
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

/// What measures the whole board comes before what measures its processor, fine before
/// coarse.
pub(super) const BEST_FIRST: [&str; 4] = ["ina2xx", "pmic", "rapl", "battery"];
