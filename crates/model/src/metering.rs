//! Choice of the energy meter: `auto`, `none`, `rapl`, `ina226:hwmon3`, `battery`, `pmic`,
//! `csv:FILE`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The energy meter that a user asks for.
///
/// # Examples
///
/// ```
/// use weigh_model::MeterChoice;
///
/// let meter: MeterChoice = "rapl".parse()?;
/// assert!(meter.is_named());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MeterChoice {
    /// The best meter of this machine.
    #[default]
    Auto,
    /// No meter.
    None,
    /// The counters of the processor (powercap); all packages together, or the domains of one name
    /// such as `psys` or `dram`.
    Rapl(Option<String>),
    /// A chip at a shunt that the kernel's `ina2xx` driver shows: of this kind if one is named, in
    /// this folder of `class/hwmon` if there are several.
    Shunt {
        /// `ina219`, `ina226`, ...; `None` for any of them.
        chip: Option<String>,
        /// `hwmon3`.
        place: Option<String>,
    },
    /// A battery's gauge, by its name if there are several.
    Battery(Option<String>),
    /// The power chip of a Raspberry Pi 5.
    Pmic,
    /// The log of an external meter, read when the run is over.
    Log {
        /// The file.
        file: String,
        /// The supply's voltage in millivolts, if the log has only currents.
        voltage_mv: Option<u32>,
    },
}

impl MeterChoice {
    /// True if the user named a meter.
    pub fn is_named(&self) -> bool {
        !matches!(self, MeterChoice::Auto | MeterChoice::None)
    }
}

/// The chips at shunts that the kernel's driver `ina2xx` knows (Documentation/hwmon/ina2xx.rst).
pub const SHUNT_CHIPS: [&str; 8] =
    ["ina219", "ina220", "ina226", "ina230", "ina231", "ina234", "ina260", "sy24655"];

impl FromStr for MeterChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<MeterChoice, String> {
        let text = text.trim();
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        if rest == Some("") {
            return Err(format!("nothing follows the colon in {text:?}: {KNOWN}"));
        }
        let place = rest.map(str::to_owned);
        match (kind, &place) {
            ("auto", None) => Ok(MeterChoice::Auto),
            ("none", None) => Ok(MeterChoice::None),
            ("pmic", None) => Ok(MeterChoice::Pmic),
            ("rapl", _) => Ok(MeterChoice::Rapl(place)),
            ("battery", _) => Ok(MeterChoice::Battery(place)),
            ("ina2xx", _) => Ok(MeterChoice::Shunt { chip: None, place }),
            ("csv", Some(file)) => log(file),
            ("csv", None) => Err("csv names no file: type csv:power.csv".to_owned()),
            (chip, _) if SHUNT_CHIPS.contains(&chip) => {
                Ok(MeterChoice::Shunt { chip: Some(chip.to_owned()), place })
            }
            _ => Err(format!("unknown meter {text:?}: {KNOWN}")),
        }
    }
}

/// `power.csv`, or `power.csv@5V` if the log has no voltage.
fn log(text: &str) -> Result<MeterChoice, String> {
    let Some((file, volts)) = text.rsplit_once('@') else {
        return Ok(MeterChoice::Log { file: text.to_owned(), voltage_mv: None });
    };
    let wrong = || format!("{volts:?} is not a voltage: type csv:{file}@5V");
    let number = volts.trim().strip_suffix('V').ok_or_else(wrong)?;
    let volts: f64 = number.trim().parse().map_err(|_| wrong())?;
    if !(VOLTS_MIN..=VOLTS_MAX).contains(&volts) || file.is_empty() {
        return Err(wrong());
    }
    let voltage_mv = Some((volts * 1000.0).round() as u32);
    Ok(MeterChoice::Log { file: file.to_owned(), voltage_mv })
}

impl fmt::Display for MeterChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, place) = match self {
            MeterChoice::Auto => ("auto", &None),
            MeterChoice::None => ("none", &None),
            MeterChoice::Pmic => ("pmic", &None),
            MeterChoice::Rapl(domain) => ("rapl", domain),
            MeterChoice::Battery(name) => ("battery", name),
            MeterChoice::Shunt { chip, place } => (chip.as_deref().unwrap_or("ina2xx"), place),
            MeterChoice::Log { file, voltage_mv } => {
                write!(f, "csv:{file}")?;
                return match voltage_mv {
                    Some(millivolts) => write!(f, "@{}V", f64::from(*millivolts) / 1000.0),
                    None => Ok(()),
                };
            }
        };
        match place {
            Some(place) => write!(f, "{kind}:{place}"),
            None => f.write_str(kind),
        }
    }
}

impl Serialize for MeterChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MeterChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MeterChoice, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

const KNOWN: &str = "type auto, none, rapl, ina226 (or another chip, ina226:hwmon3 where there are \
                     several), battery, pmic or csv:FILE";

/// Supply voltages of devices, from an exhausted button cell to a rack's direct current.
const VOLTS_MIN: f64 = 0.5;
const VOLTS_MAX: f64 = 400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_written_as_it_is_read() {
        for text in [
            "auto",
            "none",
            "rapl",
            "rapl:psys",
            "ina226",
            "ina226:hwmon3",
            "ina2xx",
            "battery:BAT0",
            "pmic",
            "csv:power.csv",
            "csv:a@b/power.csv@5V",
            "csv:power.csv@3.7V",
        ] {
            let choice: MeterChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_meter_is_refused_with_those_there_are() {
        for text in ["", "ina22", "csv", "csv:", "rapl:", "auto:1", "csv:power.csv@5"] {
            let said = text.parse::<MeterChoice>().unwrap_err();
            assert!(said.contains("type "), "{text}: {said}");
        }
    }
}
