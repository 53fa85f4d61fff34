//! Chips that measure at a shunt, as the kernel's driver `ina2xx` shows them
//! (Documentation/hwmon/ina2xx.rst): `in1_input` in millivolts of the bus, `curr1_input` in
//! milliamperes, `power1_input` in microwatts, `update_interval` in milliseconds, `shunt_resistor`
//! in microohms.

use std::path::PathBuf;
use std::time::Duration;

use weigh_model::metering::SHUNT_CHIPS;

use super::accuracy::ChipClass;
use super::power_supply::short;
use super::readings::{Facts, MeterError, Value, absent, unusable};
use super::sysfs::{folders, name, number, reading, word};
use crate::host::Roots;

/// A chip that can be read.
#[derive(Clone, Debug)]
pub(super) struct ShuntChip {
    power: Option<PathBuf>,
    voltage: Option<PathBuf>,
    current: Option<PathBuf>,
}

/// A chip shown by the kernel: its place below `class/hwmon`, and the driver's name of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    folder: PathBuf,
    /// `hwmon3`.
    pub place: String,
    /// `ina226`.
    pub chip: String,
}

/// Lists all chips.
pub(super) fn places(roots: &Roots) -> Vec<Place> {
    let place = |folder: PathBuf| {
        let chip = word(&folder.join("name"))?;
        let place = name(&folder);
        SHUNT_CHIPS.contains(&chip.as_str()).then_some(Place { folder, place, chip })
    };
    folders(&roots.sys.join("class/hwmon")).into_iter().filter_map(place).collect()
}

impl ShuntChip {
    /// Opens the chip of this kind at this place, or the only one.
    ///
    /// # Errors
    /// [`MeterError`] if there is no such chip, or its values cannot be used.
    pub fn open(
        roots: &Roots,
        (chip, place): (Option<&str>, Option<&str>),
    ) -> Result<(ShuntChip, Facts), MeterError> {
        let all = places(roots);
        let fits = |own: &&Place| {
            chip.is_none_or(|chip| own.chip == chip) && place.is_none_or(|place| own.place == place)
        };
        let found: Vec<&Place> = all.iter().filter(fits).collect();
        let named = |own: &Place| format!("{}:{}", own.chip, own.place);
        match found[..] {
            [] if all.is_empty() => Err(absent(
                "no chip of the driver ina2xx below class/hwmon",
                "load it for the chip's address: on a Raspberry Pi dtoverlay=hwmon,ina226",
            )),
            [] => Err(absent(
                format!("{} was not found", chip.unwrap_or("chip at that place")),
                format!("type one of {}", all.iter().map(named).collect::<Vec<_>>().join(", ")),
            )),
            [one] => one.open(),
            [first, ..] => Err(unusable(
                "ina2xx",
                format!(
                    "there are several chips: {}",
                    found.iter().map(|own| named(own)).collect::<Vec<_>>().join(", ")
                ),
                format!("name the one at the supply: --meter {}", named(first)),
            )),
        }
    }

    /// Reads it now.
    ///
    /// # Errors
    /// [`MeterError::Vanished`] if the chip is gone.
    pub fn read(&self) -> Result<Value, MeterError> {
        let of = |path: &Option<PathBuf>| -> Result<Option<f64>, MeterError> {
            Ok(path.as_deref().map(reading).transpose()?.map(|value| value as f64))
        };
        let voltage_v = of(&self.voltage)?.map(|millivolts| millivolts / 1e3);
        // The shunt may be connected either way round.
        let current_a = of(&self.current)?.map(|milliamperes| milliamperes.abs() / 1e3);
        let product = voltage_v.zip(current_a).map(|(volts, amperes)| volts * amperes);
        let power_w = of(&self.power)?.map(|microwatts| microwatts.abs() / 1e6).or(product);
        Ok(Value::Power { power_w: power_w.unwrap_or(0.0), voltage_v, current_a })
    }
}

impl Place {
    fn open(&self) -> Result<(ShuntChip, Facts), MeterError> {
        let file = |name: &str| {
            let path = self.folder.join(name);
            path.exists().then_some(path)
        };
        let chip = ShuntChip {
            power: file("power1_input"),
            voltage: file("in1_input"),
            current: file("curr1_input"),
        };
        let meter = format!("{} at {}", self.chip, self.place);
        if chip.power.is_none() && (chip.voltage.is_none() || chip.current.is_none()) {
            let fix = "calibrate it: write its shunt's microohms to shunt_resistor";
            let reason = "it shows neither power1_input nor in1_input with curr1_input";
            return Err(unusable(meter, reason, fix));
        }
        let class = ChipClass::of(&self.chip);
        let class = class.ok_or_else(|| unusable(&*meter, "unknown kind of chip", ""))?;
        let shunt_ohm = number(&self.folder.join("shunt_resistor")).unwrap_or(SHUNT_UOHM) as f64;
        let shunt_ohm = shunt_ohm / 1e6;
        let interval_ms = number(&self.folder.join("update_interval")).unwrap_or(INTERVAL_MS);
        let refresh = Duration::from_millis(interval_ms.clamp(1, 1_000).unsigned_abs());
        let bus_v = check(&meter, class, shunt_ohm, &chip.read()?)?.unwrap_or(BUS_V);
        let facts = Facts {
            name: meter,
            covers: format!("the load behind the shunt of {} at {}", self.chip, self.place),
            period: refresh,
            domains: Vec::new(),
            accuracy: class.accuracy(shunt_ohm, bus_v, refresh),
            plausible_w: (WATTS_MIN, (bus_v * class.amperes_max(shunt_ohm)).min(WATTS_MAX)),
        };
        Ok((chip, facts))
    }
}

/// Checks that the shunt has a possible size, and that the figures are in the chip's range and
/// agree. This finds a driver that is off by 1000. A wrong value of the shunt scales current,
/// power and the chip's limits equally: only its own size shows it. Returns the voltage, volts,
/// if the chip shows one.
fn check(
    meter: &str,
    class: &ChipClass,
    shunt_ohm: f64,
    shown: &Value,
) -> Result<Option<f64>, MeterError> {
    let Value::Power { power_w, voltage_v, current_a } = *shown else {
        return Err(unusable(meter, "it shows no power", ""));
    };
    let wrong = |reason: String| {
        let fix = "its unit is wrong, or shunt_resistor (microohms) has the wrong value: compare \
                    one reading with a multimeter";
        Err(unusable(meter, reason, fix))
    };
    if let Some(volts) = voltage_v.filter(|volts| !(BUS_V_MIN..=class.bus_v_max).contains(volts)) {
        return wrong(format!(
            "in1_input is {} V; expected {BUS_V_MIN} to {} V (the \
             file is in millivolts)",
            short(volts),
            class.bus_v_max
        ));
    }
    if !class.has_shunt && !SHUNT_OHM.contains(&shunt_ohm) {
        return wrong(format!(
            "shunt_resistor is {} milliohm; expected {} milliohm to {} ohm (the \
             file is in microohms: a resistor marked R100 is 100000)",
            short(shunt_ohm * 1e3),
            SHUNT_OHM.start() * 1e3,
            SHUNT_OHM.end()
        ));
    }
    let amperes_max = class.amperes_max(shunt_ohm);
    if let Some(amperes) = current_a.filter(|amperes| *amperes > amperes_max * OVER) {
        return wrong(format!(
            "curr1_input is {} A; a shunt of {} milliohm shows at most {} A (the file is in \
             milliamperes)",
            short(amperes),
            short(shunt_ohm * 1e3),
            short(amperes_max)
        ));
    }
    let product_w = voltage_v.zip(current_a).map(|(volts, amperes)| volts * amperes);
    if let Some(product_w) = product_w.filter(|product_w| *product_w > PRODUCT_W_MIN) {
        let ratio = power_w / product_w;
        if !(1.0 / APART..=APART).contains(&ratio) {
            return wrong(format!(
                "power1_input is {} W, but voltage times current is {} W (the file is in \
                 microwatts)",
                short(power_w),
                short(product_w)
            ));
        }
    }
    let watts_max = (class.bus_v_max * amperes_max * OVER).min(WATTS_MAX);
    if power_w > watts_max {
        return wrong(format!(
            "it shows {} W; machines with such a chip use at most {} W",
            short(power_w),
            short(watts_max)
        ));
    }
    Ok(voltage_v)
}

/// The driver's default shunt (ina2xx.rst: 10 milliohm).
const SHUNT_UOHM: i64 = 10_000;

/// Shunts at these chips, ohms. At 0.5 milliohm a full scale of 82 mV is 160 A, more than any board
/// is fed with; at 2 ohm it is 40 mA, less than any board with Linux takes. The usual ones, 2 to
/// 100 milliohm, are outside this range if given in another unit, a factor of 1000 either way.
/// Shunts of 0.5 to 2 milliohm given as 0.5 to 2 ohm, and the reverse, are not.
const SHUNT_OHM: std::ops::RangeInclusive<f64> = 0.000_5..=2.0;

/// Interval if the driver shows none.
const INTERVAL_MS: i64 = 10;

/// The bus of a board where its voltage is not shown, volts.
const BUS_V: f64 = 5.0;
const BUS_V_MIN: f64 = 0.5;

/// A sleeping node.
const WATTS_MIN: f64 = 0.000_1;

/// A workstation under load: larger machines are not fed through such a chip.
const WATTS_MAX: f64 = 500.0;

/// Below this product, watts, the power register's own steps are too coarse to compare.
const PRODUCT_W_MIN: f64 = 0.05;

/// Allowed difference of a power and the product of its parts, by steps and by moments.
const APART: f64 = 30.0;

/// Full scale is a rounded number.
const OVER: f64 = 1.1;
