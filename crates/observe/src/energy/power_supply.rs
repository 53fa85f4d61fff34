//! Batteries and mains as the kernel's `power_supply` class shows them: charge in microampere
//! hours, energy in microwatt hours, voltages in microvolts, currents in microamperes
//! (Documentation/power/power_supply_class.rst).

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::accuracy::GAUGE;
use super::readings::{Facts, MeterError, Value, absent, unusable};
use super::sysfs::{folders, name, number, reading, word};
use crate::host::Roots;

/// A power supply of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Its folder's name: `BAT0`, `AC`.
    pub name: String,
    /// `Battery`, `Mains`, `USB`, ...; empty if unknown.
    pub kind: String,
    /// `Charging`, `Discharging`, `Full`, ...; empty for anything but a battery.
    pub status: String,
    /// Whether it feeds the machine; `None` if unknown.
    pub is_online: Option<bool>,
    folder: PathBuf,
}

impl Supply {
    /// True for a battery of the machine itself; those of a mouse or pen have the scope `Device`.
    pub fn is_battery(&self) -> bool {
        let scope = word(&self.folder.join("scope")).unwrap_or_default();
        self.kind == "Battery" && scope != "Device"
    }

    /// True if the machine is fed by something that does not run out.
    pub fn feeds_from_mains(&self) -> bool {
        match self.kind.as_str() {
            "Battery" => self.is_battery() && matches!(self.status.as_str(), "Charging" | "Full"),
            _ => self.is_online == Some(true),
        }
    }
}

/// All supplies, by name; empty where the kernel shows none.
pub fn supplies(roots: &Roots) -> Vec<Supply> {
    let supply = |folder: PathBuf| Supply {
        name: name(&folder),
        kind: word(&folder.join("type")).unwrap_or_default(),
        status: word(&folder.join("status")).unwrap_or_default(),
        is_online: number(&folder.join("online")).map(|online| online != 0),
        folder,
    };
    folders(&roots.sys.join("class/power_supply")).into_iter().map(supply).collect()
}

/// Gauge of a battery.
#[derive(Clone, Debug)]
pub struct Battery {
    supply: Supply,
    charge: Option<PathBuf>,
    energy: Option<PathBuf>,
    voltage: Option<PathBuf>,
    current: Option<PathBuf>,
}

/// Opens the battery of this name, or the only one.
///
/// # Errors
/// If there is none, if there are several, or if it has no gauge that counts.
pub(super) fn open(roots: &Roots, wanted: Option<&str>) -> Result<Battery, MeterError> {
    let all = supplies(roots);
    let mut batteries: Vec<&Supply> = all
        .iter()
        .filter(|supply| supply.is_battery())
        .filter(|supply| wanted.is_none_or(|wanted| supply.name == wanted))
        .collect();
    let known: Vec<&str> =
        all.iter().filter(|own| own.is_battery()).map(|own| own.name.as_str()).collect();
    match (batteries.len(), wanted) {
        (0, Some(wanted)) if !known.is_empty() => Err(absent(
            format!("unknown battery {wanted:?}"),
            format!("type one of {}", known.join(", ")),
        )),
        (0, _) => Err(absent(
            "no battery below class/power_supply",
            "measure with a shunt or an external meter, as a board fed by a power bank has none",
        )),
        (1, _) => Battery::of(batteries.remove(0)),
        _ => Err(unusable(
            "battery",
            format!("there are several batteries: {}", known.join(", ")),
            format!("name one: --meter battery:{}", known[0]),
        )),
    }
}

impl Battery {
    /// Opens the gauge of this battery.
    ///
    /// # Errors
    /// If it counts nothing finer than percents, or in impossible units.
    pub fn of(supply: &Supply) -> Result<Battery, MeterError> {
        let file = |names: &[&str]| {
            let paths = names.iter().map(|name| supply.folder.join(name));
            paths.into_iter().find(|path| number(path).is_some())
        };
        let battery = Battery {
            charge: file(&["charge_counter", CHARGE_TO_FULL]),
            energy: file(&["energy_now"]),
            voltage: file(&["voltage_now", "voltage_avg"]),
            current: file(&["current_now"]),
            supply: supply.clone(),
        };
        battery.check()?;
        Ok(battery)
    }

    /// The battery's name.
    pub fn name(&self) -> &str {
        &self.supply.name
    }

    /// Its state now: `Discharging`, `Charging`, `Full`, ...
    pub fn status(&self) -> String {
        word(&self.supply.folder.join("status")).unwrap_or_default()
    }

    /// Charge when it is full, microampere hours, on the scale of the charge that is read; `None`
    /// where there is no such scale. An old battery holds less than by design, and `charge_now`
    /// ends at `charge_full`; a `charge_counter` counts from anywhere: "there is no empty or full
    /// value" (Documentation/power/power_supply_class.rst).
    pub fn full_uah(&self) -> Option<i64> {
        let is_to_full = self.charge.as_deref()?.file_name()? == CHARGE_TO_FULL;
        number(&self.supply.folder.join("charge_full")).filter(|_| is_to_full)
    }

    /// True if it counts charge or energy; otherwise it shows only its power now.
    fn counts(&self) -> bool {
        self.charge.is_some() || self.energy.is_some()
    }

    fn check(&self) -> Result<(), MeterError> {
        let meter = format!("battery {}", self.supply.name);
        if !self.counts() && (self.current.is_none() || self.voltage.is_none()) {
            let reason = match number(&self.supply.folder.join("capacity")) {
                Some(_) => {
                    "it shows its capacity in steps of 1 % only: of 2000 mAh a step is 20 mAh, \
                     more than thousands of sessions take"
                }
                None => "it shows neither charge nor energy nor current",
            };
            let fix = "use a shunt (ina226) or an external meter (csv:FILE), or a battery \
                        rundown, which needs no gauge";
            return Err(unusable(meter, reason, fix));
        }
        let volts = self.voltage_v();
        if let Some(volts) = volts.filter(|volts| !VOLTS.contains(volts)) {
            return Err(unusable(
                meter,
                format!(
                    "voltage_now is {} V; expected {} to {} V: its driver does not \
                     write microvolts",
                    short(volts),
                    VOLTS.start(),
                    VOLTS.end()
                ),
                "multiply by 1000 in the driver, or use another meter",
            ));
        }
        for file in ["charge_full", "charge_full_design"] {
            let full = number(&self.supply.folder.join(file));
            let Some(full) = full.filter(|full| !FULL_UAH.contains(full)) else { continue };
            return Err(unusable(
                meter,
                format!(
                    "{file} is {} mAh; expected {} to {} mAh: \
                     its driver does not write microampere hours",
                    short(full as f64 / 1000.0),
                    FULL_UAH.start() / 1000,
                    FULL_UAH.end() / 1000
                ),
                "multiply by 1000 in the driver, or use another meter",
            ));
        }
        Ok(())
    }

    fn voltage_v(&self) -> Option<f64> {
        Some(number(self.voltage.as_deref()?)? as f64 / 1e6)
    }

    pub(super) fn facts(&self) -> Result<Facts, MeterError> {
        let name = format!("battery {}", self.supply.name);
        if matches!(self.status().as_str(), "Charging" | "Full") {
            return Err(unusable(
                name,
                format!("it is {}, so another source feeds the machine", self.status()),
                "unplug the supply",
            ));
        }
        if self.energy.is_none() && self.voltage.is_none() {
            let reason = "it counts charge but shows no voltage, and energy needs both";
            return Err(unusable(name, reason, "use a shunt (ina226) or an external meter"));
        }
        Ok(Facts {
            name,
            covers: "everything that the battery feeds".to_owned(),
            period: GAUGE_PERIOD,
            domains: Vec::new(),
            accuracy: GAUGE.with_offset(0.0),
            plausible_w: PLAUSIBLE_W,
        })
    }

    /// Reads it now.
    ///
    /// # Errors
    /// If it is gone.
    pub fn read(&self) -> Result<Value, MeterError> {
        let of = |path: &Option<PathBuf>| -> Result<Option<i64>, MeterError> {
            path.as_deref().map(Path::new).map(reading).transpose()
        };
        let voltage_v = of(&self.voltage)?.map(|microvolts| microvolts as f64 / 1e6);
        if self.counts() {
            let (charge_uah, energy_uwh) = (of(&self.charge)?, of(&self.energy)?);
            return Ok(Value::Left { charge_uah, energy_uwh, voltage_v });
        }
        // Drivers differ in the sign of a current that flows out of the battery.
        let amperes = of(&self.current)?.unwrap_or(0).unsigned_abs() as f64 / 1e6;
        let power_w = amperes * voltage_v.unwrap_or(0.0);
        Ok(Value::Power { power_w, voltage_v, current_a: Some(amperes) })
    }
}

/// Formats with enough digits to show an error by a factor of 1000.
pub(super) fn short(value: f64) -> String {
    format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The charge that is 0 when the battery is empty and `charge_full` when it is full.
const CHARGE_TO_FULL: &str = "charge_now";

/// Range from one empty cell to sixteen in a row.
const VOLTS: std::ops::RangeInclusive<f64> = 0.8..=75.0;

/// Range from a watch's battery to a car's, microampere hours.
const FULL_UAH: std::ops::RangeInclusive<i64> = 20_000..=500_000_000;

/// Range from a radio node to a workstation on wheels.
const PLAUSIBLE_W: (f64, f64) = (0.001, 500.0);

/// Assumed: gauges renew their registers about once a second.
const GAUGE_PERIOD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// An old battery that holds 1.5 Ah of the 2 Ah of its design, with these files beside.
    fn full_uah(name: &str, charges: &[&str]) -> Option<i64> {
        let sys = std::env::temp_dir().join(format!("weigh-supply-{}-{name}", std::process::id()));
        let folder = sys.join("class/power_supply/BAT0");
        fs::create_dir_all(&folder).unwrap();
        let put = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        put("type", "Battery\n");
        put("charge_full", "1500000\n");
        put("charge_full_design", "2000000\n");
        charges.iter().for_each(|file| put(file, "1500000\n"));
        let all = supplies(&Roots { proc: "/proc".into(), sys: sys.clone() });
        let full = Battery::of(&all[0]).unwrap().full_uah();
        fs::remove_dir_all(sys).unwrap();
        full
    }

    /// By its design a full old battery would be said to begin at 75 %.
    #[test]
    fn full_is_what_the_battery_holds_now_on_the_scale_of_its_charge() {
        assert_eq!(full_uah("now", &["charge_now"]), Some(1_500_000));
        assert_eq!(full_uah("counter", &["charge_counter"]), None);
        // The counter is the one that is read.
        assert_eq!(full_uah("both", &["charge_counter", "charge_now"]), None);
    }
}
