//! A battery as its label names it: charge and voltage. A charge alone is not an amount of energy,
//! so both are required.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A full charge: `2000mAh@5V`, `2Ah@3.7V`, `7.4Wh@3.7V`.
///
/// The voltage is the one at which the charge is rated, and at which consumption is given: the
/// label of a power bank often rates the cells inside (3.6 to 3.85 V), not its 5 V socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Battery {
    /// Charge in milliampere-hours.
    pub charge_mah: f64,
    /// The voltage at which that is rated, in volts.
    pub rated_v: f64,
}

impl Battery {
    /// Energy of a full charge in joules: 1 mAh at 1 V is 3.6 J.
    pub fn energy_j(&self) -> f64 {
        self.charge_mah * self.rated_v * JOULES_PER_MAH_AND_VOLT
    }
}

impl FromStr for Battery {
    type Err = String;

    fn from_str(text: &str) -> Result<Battery, String> {
        let text = text.trim();
        let wrong =
            |what: &str| format!("{text:?} {what}: type for example 2000mAh@5V or 2Ah@3.7V");
        let (amount, voltage) = text
            .split_once('@')
            .ok_or_else(|| wrong("has no voltage (charge alone does not give energy)"))?;
        let volts = with_unit(voltage, &[("mV", 1e-3), ("V", 1.0)])
            .ok_or_else(|| wrong("has no voltage in V after the @"))?;
        let mah = with_unit(amount, &[("mAh", 1.0), ("Ah", 1e3)]);
        let milliwatt_hours = with_unit(amount, &[("mWh", 1.0), ("Wh", 1e3)]);
        let charge_mah = mah
            .or(milliwatt_hours.map(|energy| energy / volts))
            .ok_or_else(|| wrong("has no charge in mAh or Ah, or energy in Wh, before the @"))?;
        if !(VOLTS_MIN..=VOLTS_MAX).contains(&volts) {
            return Err(wrong(&format!(
                "has {} V, which is outside 0.5 V to 1000 V",
                short(volts)
            )));
        }
        if !(CHARGE_MAH_MIN..=CHARGE_MAH_MAX).contains(&charge_mah) {
            let said = format!("has {} mAh, which is outside 1 mAh to 1,000 Ah", short(charge_mah));
            return Err(wrong(&said));
        }
        Ok(Battery { charge_mah, rated_v: volts })
    }
}

impl fmt::Display for Battery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}mAh@{}V", self.charge_mah, self.rated_v)
    }
}

impl Serialize for Battery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Battery {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Battery, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Formats a number without rounding errors.
fn short(number: f64) -> String {
    let is_plain = (1e-3..1e9).contains(&number);
    if is_plain { number.to_string() } else { format!("{number:e}") }
}

/// The number before one of these units, times the unit's factor.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    units.iter().find_map(|(unit, factor)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        (number.is_finite() && number > 0.0).then_some(number * factor)
    })
}

/// 1 mAh is 3.6 coulombs, and a coulomb at a volt is a joule (SI).
const JOULES_PER_MAH_AND_VOLT: f64 = 3.6;

/// Below a single exhausted cell; a wrong unit gives a far smaller value.
const VOLTS_MIN: f64 = 0.5;

/// More than the pack of an electric car.
const VOLTS_MAX: f64 = 1000.0;

/// Less than the smallest button cell.
const CHARGE_MAH_MIN: f64 = 1.0;

/// More than a house's store: at 5 V it is 5 kWh.
const CHARGE_MAH_MAX: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_written() {
        let battery: Battery = "2000mAh@5V".parse().unwrap();
        assert_eq!(battery, Battery { charge_mah: 2000.0, rated_v: 5.0 });
        assert!((battery.energy_j() - 36_000.0).abs() < 1e-9);
        assert_eq!(battery.to_string().parse(), Ok(battery));
        assert_eq!("2 Ah @ 3700 mV".parse(), "2000mAh@3.7V".parse::<Battery>());
        let of_energy: Battery = "7.4Wh@3.7V".parse().unwrap();
        assert!((of_energy.charge_mah - 2000.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_battery_is_told_what_to_type() {
        for (text, part) in [
            ("2000mAh", "no voltage"),
            ("2000@5V", "no charge in mAh"),
            ("2000mAh@5", "no voltage in V"),
            ("0mAh@5V", "no charge"),
            ("-1Ah@5V", "no charge"),
            ("2000Ah@5V", "1,000 Ah"),
            ("0.2mAh@5V", "outside 1 mAh"),
            ("2000mAh@5000V", "outside 0.5 V"),
            ("nanmAh@5V", "no charge"),
        ] {
            let error = text.parse::<Battery>().unwrap_err();
            assert!(error.contains(part) && error.contains("type for example"), "{error}");
        }
    }
}
