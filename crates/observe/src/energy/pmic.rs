//! The power chip of a Raspberry Pi 5: currents and voltages of its rails, as `vcgencmd
//! pmic_read_adc` prints them. The board's input is not among them; a published formula computes it
//! from the rails.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::accuracy::POWER_CHIP;
use super::readings::{Facts, MeterError, Value, absent, unusable};

/// The chip.
#[derive(Clone, Debug)]
pub(super) struct PowerChip {
    print: fn() -> io::Result<String>,
}

impl PowerChip {
    /// Makes the chip from `print`, which prints its readings.
    ///
    /// # Errors
    /// [`MeterError`] if the program cannot be run, or prints no rail.
    pub fn open(
        print: Option<fn() -> io::Result<String>>,
    ) -> Result<(PowerChip, Facts), MeterError> {
        let fix = "name another meter; only a Raspberry Pi 5 with vcgencmd has this one";
        let print =
            print.ok_or_else(|| absent("no program prints a power chip's readings", fix))?;
        let text = print().map_err(|error| absent(format!("vcgencmd: {error}"), fix))?;
        let rails = rails(&text);
        if rails.pairs.is_empty() {
            return Err(unusable("pmic", "it shows no rail with current and voltage", fix));
        }
        let facts = Facts {
            name: format!("pmic of {} rails", rails.pairs.len()),
            covers: "input of the board, by the published fit 1.1451 x sum of V I + 0.5879 W"
                .to_owned(),
            period: PERIOD,
            domains: Vec::new(),
            accuracy: POWER_CHIP.with_offset(0.0),
            plausible_w: PLAUSIBLE_W,
        };
        Ok((PowerChip { print }, facts))
    }

    /// Reads it now.
    ///
    /// # Errors
    /// [`MeterError::Vanished`] if it prints no rail any more.
    pub fn read(&self) -> Result<Value, MeterError> {
        let gone = |reason: String| MeterError::Vanished { path: "vcgencmd".to_owned(), reason };
        let text = (self.print)().map_err(|error| gone(error.to_string()))?;
        let rails = rails(&text);
        if rails.pairs.is_empty() {
            return Err(gone("it shows no rail with current and voltage".to_owned()));
        }
        let power_w = FIT_SLOPE * rails.watts() + FIT_REST_W;
        Ok(Value::Power {
            power_w,
            voltage_v: rails.input_v,
            current_a: rails.input_v.map(|volts| power_w / volts),
        })
    }
}

/// Values of the rails.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rails {
    /// Volts and amperes by rail.
    pairs: BTreeMap<String, (f64, f64)>,
    /// Voltage of the input.
    input_v: Option<f64>,
}

impl Rails {
    fn watts(&self) -> f64 {
        self.pairs.values().map(|(volts, amperes)| volts * amperes).sum()
    }
}

/// Parses lines such as `VDD_CORE_A current(7)=1.03170000A`.
fn rails(text: &str) -> Rails {
    let (mut volts, mut amperes) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let Some((left, value)) = line.split_once('=') else { continue };
        let Some(name) = left.split_ascii_whitespace().next() else { continue };
        let read = |unit: char| value.trim().strip_suffix(unit)?.parse::<f64>().ok();
        if let (Some(rail), Some(value)) = (name.strip_suffix("_A"), read('A')) {
            amperes.insert(rail.to_owned(), value);
        } else if let (Some(rail), Some(value)) = (name.strip_suffix("_V"), read('V')) {
            volts.insert(rail.to_owned(), value);
        }
    }
    let input_v = volts.get("EXT5V").copied();
    let pair = |(rail, amperes): (String, f64)| {
        let volts = *volts.get(&rail)?;
        Some((rail, (volts, amperes)))
    };
    Rails { pairs: amperes.into_iter().filter_map(pair).collect(), input_v }
}

/// Input power over the sum of the rails (published with a monitoring tool, uncertainty not
/// stated; secondary).
const FIT_SLOPE: f64 = 1.1451;

/// Constant part of the input, watts (the same fit).
const FIT_REST_W: f64 = 0.5879;

/// Starting the program takes some milliseconds of a core.
const PERIOD: Duration = Duration::from_millis(250);

/// Range from a halted board to its supply's 27 W.
const PLAUSIBLE_W: (f64, f64) = (0.5, 40.0);

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "   3V3_SYS_A current(0)=0.10000000A\n\
                        VDD_CORE_A current(7)=2.00000000A\n   \
                        3V3_SYS_V volt(8)=3.30000000V\n   VDD_CORE_V volt(15)=0.80000000V\n   \
                        EXT5V_V volt(24)=5.00000000V\n    BATT_V volt(25)=0.00000000V\n";

    #[test]
    fn the_fit_stands_on_rails_that_have_both() {
        let (chip, facts) = PowerChip::open(Some(|| Ok(TEXT.to_owned()))).unwrap();
        assert!(facts.covers.contains("1.1451") && facts.name.contains("2 rails"), "{facts:?}");
        let Value::Power { power_w, voltage_v, current_a } = chip.read().unwrap() else { panic!() };
        let expected = 1.1451 * (3.3 * 0.1 + 0.8 * 2.0) + 0.5879;
        assert!((power_w - expected).abs() < 1e-12, "{power_w}");
        assert_eq!((voltage_v, current_a), (Some(5.0), Some(power_w / 5.0)));
    }

    #[test]
    fn a_board_without_currents_is_refused() {
        let error = PowerChip::open(Some(|| Ok("EXT5V_V volt(24)=5.0V\n".to_owned()))).unwrap_err();
        assert!(error.to_string().contains("no rail"), "{error}");
        let error = PowerChip::open(Some(|| Err(io::ErrorKind::NotFound.into()))).unwrap_err();
        assert!(error.to_string().contains("Raspberry Pi 5"), "{error}");
    }
}
