//! The coefficients that a device or a radio can have, and the units in which they are published.

/// A file of `devices/` or one of `radios/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A device: processor, board, converter.
    Device,
    /// A radio, or whatever else carries its packets.
    Radio,
}

impl Kind {
    /// The folder of its files.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Device => "devices",
            Kind::Radio => "radios",
        }
    }

    /// One of them in a word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Device => "device",
            Kind::Radio => "radio",
        }
    }

    /// The coefficients that it can have.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(move |key| key.kind == self)
    }
}

/// A coefficient that there can be.
#[derive(Debug, PartialEq)]
pub struct Key {
    /// Whose it is.
    pub kind: Kind,
    /// Its name.
    pub name: &'static str,
    /// What kind of quantity it is.
    pub dimension: Dimension,
    /// What it means.
    pub doc: &'static str,
}

/// What kind of quantity a coefficient is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Joules.
    Energy,
    /// Watts.
    Power,
    /// Seconds.
    Time,
    /// Joules a byte.
    EnergyPerByte,
    /// A number.
    Ratio,
}

impl Dimension {
    /// The units in which it is published, and what one of each is in the unit of the model.
    /// `volts` turn charges and currents into energies and powers.
    pub fn units(self, volts: f64) -> Vec<(&'static str, f64)> {
        match self {
            Dimension::Energy => {
                vec![("J", 1.0), ("mJ", 1e-3), ("mC", 1e-3 * volts), ("mAh", 3.6 * volts)]
            }
            Dimension::Power => vec![
                ("W", 1.0),
                ("mW", 1e-3),
                ("mA", 1e-3 * volts),
                ("uA", 1e-6 * volts),
                ("mC/h", 1e-3 * volts / SECONDS_PER_HOUR),
            ],
            Dimension::Time => vec![("s", 1.0), ("ms", 1e-3)],
            // Power that grows with a rate is energy that grows with bytes: 1 W for each bit a
            // second is 1 J a bit, and 8 J a byte.
            Dimension::EnergyPerByte => {
                vec![("J/KB", 1e-3), ("J/MB", 1e-6), ("mW/Mbps", 1e-3 / 1e6 * BITS_PER_BYTE)]
            }
            Dimension::Ratio => vec![("ratio", 1.0)],
        }
    }

    /// The unit of the model.
    pub fn unit(self) -> &'static str {
        match self {
            Dimension::Energy => "J",
            Dimension::Power => "W",
            Dimension::Time => "s",
            Dimension::EnergyPerByte => "J/B",
            Dimension::Ratio => "ratio",
        }
    }
}

/// The place of each coefficient in [`KEYS`].
pub mod at {
    #![allow(missing_docs)]
    pub const IDLE: usize = 0;
    pub const LOAD: usize = 1;
    pub const CPU_SCALE: usize = 2;
    pub const CONVERTER: usize = 3;
    pub const ATTACH: usize = 4;
    pub const CONNECT: usize = 5;
    pub const MESSAGE: usize = 6;
    pub const RAMP: usize = 7;
    pub const RAMP_POWER: usize = 8;
    pub const RAMP_TIME: usize = 9;
    pub const UP: usize = 10;
    pub const DOWN: usize = 11;
    pub const CONNECTED: usize = 12;
    pub const TAIL_POWER: usize = 13;
    pub const TAIL_TIME: usize = 14;
    pub const RADIO_IDLE: usize = 15;
}

/// All of them: those of devices, then those of radios.
pub const KEYS: [Key; 16] = [
    device("idle", Dimension::Power, "doing nothing, or asleep where it sleeps"),
    device("load", Dimension::Power, "what all cores at work take beyond that"),
    device("cpu_scale", Dimension::Ratio, "its processor time for a second of the generator's"),
    device("converter", Dimension::Ratio, "what a converter passes on to its voltage"),
    radio("attach", Dimension::Energy, "joining the network, once per charge"),
    radio("connect", Dimension::Energy, "a connection to the server, beside ramp and bytes"),
    radio("message", Dimension::Energy, "a message, beside ramp, bytes and tail"),
    radio("ramp", Dimension::Energy, "each wake-up"),
    radio("ramp_power", Dimension::Power, "power during each wake-up's promotion"),
    radio("ramp_time", Dimension::Time, "how long that takes"),
    radio("up", Dimension::EnergyPerByte, "a byte sent, from IP up"),
    radio("down", Dimension::EnergyPerByte, "a byte received, from IP up"),
    radio("connected", Dimension::Power, "between first and last packet of a wake-up"),
    radio("tail_power", Dimension::Power, "after the last packet of a wake-up"),
    radio("tail_time", Dimension::Time, "how long that lasts; a longer pause ends a wake-up"),
    radio("idle", Dimension::Power, "asleep, beyond the device's own"),
];

const fn device(name: &'static str, dimension: Dimension, doc: &'static str) -> Key {
    Key { kind: Kind::Device, name, dimension, doc }
}

const fn radio(name: &'static str, dimension: Dimension, doc: &'static str) -> Key {
    Key { kind: Kind::Radio, name, dimension, doc }
}

const SECONDS_PER_HOUR: f64 = 3600.0;
const BITS_PER_BYTE: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_names_agree() {
        for (place, name) in [
            (at::IDLE, "idle"),
            (at::LOAD, "load"),
            (at::CPU_SCALE, "cpu_scale"),
            (at::CONVERTER, "converter"),
            (at::ATTACH, "attach"),
            (at::CONNECT, "connect"),
            (at::MESSAGE, "message"),
            (at::RAMP, "ramp"),
            (at::RAMP_POWER, "ramp_power"),
            (at::RAMP_TIME, "ramp_time"),
            (at::UP, "up"),
            (at::DOWN, "down"),
            (at::CONNECTED, "connected"),
            (at::TAIL_POWER, "tail_power"),
            (at::TAIL_TIME, "tail_time"),
            (at::RADIO_IDLE, "idle"),
        ] {
            assert_eq!(KEYS[place].name, name);
        }
        assert_eq!(KEYS[at::RADIO_IDLE].kind, Kind::Radio);
    }

    /// Huang's uplink: 438.39 mW at 1 Mbit/s for the 8 s of a megabyte are 3.507 J.
    #[test]
    fn units_are_what_they_say() {
        let one = |dimension: Dimension, unit: &str| {
            let units = dimension.units(3.7);
            units.iter().find(|(known, _)| *known == unit).map(|(_, factor)| *factor).unwrap()
        };
        let megabyte_j = 438.39 * one(Dimension::EnergyPerByte, "mW/Mbps") * 1e6;
        assert!((megabyte_j - 3.50712).abs() < 1e-9, "{megabyte_j}");
        assert!((one(Dimension::Energy, "mAh") - 13.32).abs() < 1e-12);
        let of_hour = 29.52 * one(Dimension::Power, "mC/h") * 3600.0;
        assert!((of_hour - 29.52 * one(Dimension::Energy, "mC")).abs() < 1e-15);
    }
}
