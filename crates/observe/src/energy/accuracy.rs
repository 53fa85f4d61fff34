//! Accuracy of meters: limits from data sheets, each with its source.

use std::time::Duration;

/// Known limits of a meter's errors. Limits are taken as rectangular distributions (JCGM 100,
/// 4.3.7).
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// Limit of the relative error of power, 0.005 for half a percent.
    pub gain: f64,
    /// Limit of the relative error of the shunt; 0 where it is part of the gain.
    pub shunt: f64,
    /// Limit of the error of power with nothing drawn, watts.
    pub offset_w: f64,
    /// Time between two new values of the meter.
    pub refresh: Duration,
    /// Source of these limits.
    pub source: &'static str,
}

/// The part of an accuracy that holds for all meters of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Class {
    pub gain: f64,
    pub shunt: f64,
    pub refresh: Duration,
    pub source: &'static str,
}

impl Class {
    /// Returns it with an error of `watts` with nothing drawn.
    pub fn with_offset(self, offset_w: f64) -> Accuracy {
        let Class { gain, shunt, refresh, source } = self;
        Accuracy { gain, shunt, offset_w, refresh, source }
    }
}

/// A chip at a shunt: what its data sheet promises at 25 °C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChipClass {
    /// The driver's name of it.
    pub name: &'static str,
    /// Limits of the relative errors of current and of bus voltage.
    pub gain: (f64, f64),
    /// Limit of the offset at the shunt, microvolts, or of the current, microamperes, where the
    /// shunt is inside.
    pub offset: f64,
    /// True if the shunt is inside.
    pub has_shunt: bool,
    /// Limit of the offset of the bus voltage, volts.
    pub bus_offset_v: f64,
    /// Bus voltage that it takes at most, volts.
    pub bus_v_max: f64,
    /// What the shunt's voltage may be at most, volts; the current, amperes, where the shunt is
    /// inside.
    pub full_scale: f64,
    /// Source of these limits.
    pub source: &'static str,
}

impl ChipClass {
    /// Returns the chip with this driver name.
    pub fn of(name: &str) -> Option<&'static ChipClass> {
        CHIPS.iter().find(|chip| chip.name == name)
    }

    /// The most current that it can show with this shunt, amperes.
    pub fn amperes_max(&self, shunt_ohm: f64) -> f64 {
        if self.has_shunt { self.full_scale } else { self.full_scale / shunt_ohm }
    }

    /// Its accuracy at this shunt and bus voltage.
    pub fn accuracy(&self, shunt_ohm: f64, bus_v: f64, refresh: Duration) -> Accuracy {
        let offset_a =
            if self.has_shunt { self.offset * 1e-6 } else { self.offset * 1e-6 / shunt_ohm };
        let bus = self.gain.1 + self.bus_offset_v / bus_v;
        Accuracy {
            gain: self.gain.0.hypot(bus),
            shunt: if self.has_shunt { 0.0 } else { SHUNT_TOLERANCE },
            offset_w: offset_a * bus_v,
            refresh,
            source: self.source,
        }
    }
}

/// Tolerance of an unmeasured resistor: the usual class of current-sense resistors on breakout
/// boards (0.1 ohm 1 % on Adafruit's 904).
const SHUNT_TOLERANCE: f64 = 0.01;

const CHIPS: &[ChipClass] = &[
    ChipClass {
        name: "ina219",
        gain: (0.005, 0.005),
        // The driver measures in the range of 320 mV.
        offset: 200.0,
        has_shunt: false,
        bus_offset_v: 0.004,
        bus_v_max: 26.0,
        full_scale: 0.32,
        source: "Texas Instruments SBOS448G, grade A, 7.5",
    },
    ChipClass {
        name: "ina220",
        gain: (0.005, 0.005),
        offset: 200.0,
        has_shunt: false,
        bus_offset_v: 0.004,
        bus_v_max: 26.0,
        full_scale: 0.32,
        source: "taken as the INA219, whose registers it has (Texas Instruments SBOS448G)",
    },
    ChipClass {
        name: "ina226",
        gain: (0.001, 0.001),
        offset: 10.0,
        has_shunt: false,
        bus_offset_v: 0.0075,
        bus_v_max: 36.0,
        full_scale: 0.08192,
        source: "Texas Instruments SBOS547B, 6.5",
    },
    ChipClass {
        name: "ina230",
        gain: (0.005, 0.005),
        offset: 50.0,
        has_shunt: false,
        bus_offset_v: 0.03,
        bus_v_max: 28.0,
        full_scale: 0.08192,
        source: "taken as the INA231, whose first page promises the same",
    },
    ChipClass {
        name: "ina231",
        gain: (0.005, 0.005),
        offset: 50.0,
        has_shunt: false,
        bus_offset_v: 0.03,
        bus_v_max: 28.0,
        full_scale: 0.08192,
        source: "Texas Instruments SBOS644, first page; the offset of its bus is assumed",
    },
    ChipClass {
        name: "ina234",
        gain: (0.005, 0.005),
        offset: 100.0,
        has_shunt: false,
        bus_offset_v: 0.03,
        bus_v_max: 28.0,
        full_scale: 0.08192,
        source: "assumed: twice the offset of the INA231, as it has 12 bits",
    },
    ChipClass {
        name: "ina260",
        gain: (0.0015, 0.001),
        offset: 5_000.0,
        has_shunt: true,
        bus_offset_v: 0.0075,
        bus_v_max: 36.0,
        full_scale: 15.0,
        source: "Texas Instruments SBOS656C, 6.5",
    },
    ChipClass {
        name: "sy24655",
        gain: (0.01, 0.01),
        offset: 100.0,
        has_shunt: false,
        bus_offset_v: 0.03,
        bus_v_max: 36.0,
        full_scale: 0.08192,
        source: "assumed: twice the errors of the INA231, as its data sheet is not at hand",
    },
];

/// The processor's own counters.
pub(super) const PROCESSOR: Class = Class {
    gain: 0.05,
    shunt: 0.0,
    refresh: Duration::from_millis(1),
    source: "assumed: Intel promises no limit; since Haswell the counters are measured and follow \
             the plug closely (Khan et al., RAPL in Action, ACM TOMPECS 3(2), 2018)",
};

/// A gauge of a battery.
pub(super) const GAUGE: Class = Class {
    gain: 0.03,
    shunt: 0.0,
    refresh: Duration::from_secs(1),
    source: "assumed: gauges are adjusted to some percent when a battery pack is made",
};

/// The rails of a Raspberry Pi 5 and the fit to its input.
pub(super) const POWER_CHIP: Class = Class {
    gain: 0.1,
    shunt: 0.0,
    refresh: Duration::from_millis(10),
    source: "assumed: the fit 1.1451 x sum of V I + 0.5879 W comes without uncertainty (published \
             with a monitoring tool); calibrate it per board with a meter at the plug",
};

/// Accuracy of an external meter, if nothing is known of it.
pub(super) const OUTSIDE: Class = Class {
    gain: 0.02,
    shunt: 0.0,
    refresh: Duration::ZERO,
    source: "assumed: the class of a USB meter; see its manual",
};
