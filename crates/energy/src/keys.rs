//! The coefficients that a device or a radio can have, and the units in which they are published.

/// A file of `devices/` or one of `radios/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A device: processor, board, converter.
    Device,
    /// A radio, or another link that carries its packets.
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

    /// Name of the kind.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Device => "device",
            Kind::Radio => "radio",
        }
    }

    /// The coefficients of the kind.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(move |key| key.kind == self)
    }
}

/// A possible coefficient.
#[derive(Debug, PartialEq)]
pub struct Key {
    /// Kind of its file.
    pub kind: Kind,
    /// Its name.
    pub name: &'static str,
    /// Its dimension.
    pub dimension: Dimension,
    /// Its meaning.
    pub doc: &'static str,
}

/// The dimension of a coefficient.
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
    /// Bits a second.
    BitRate,
    /// Bytes.
    Size,
    /// A share a second.
    PerTime,
}

impl Dimension {
    /// Units in which it is published, with their value in the unit of the model. `volts` converts
    /// charges and currents to energies and powers.
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
            Dimension::Time => {
                vec![("s", 1.0), ("ms", 1e-3), ("min", 60.0), ("h", SECONDS_PER_HOUR)]
            }
            // Power that grows with a rate is energy that grows with bytes: 1 W for each bit a
            // second is 1 J a bit, and 8 J a byte.
            Dimension::EnergyPerByte => {
                vec![("J/KB", 1e-3), ("J/MB", 1e-6), ("mW/Mbps", 1e-3 / 1e6 * BITS_PER_BYTE)]
            }
            Dimension::Ratio => vec![("ratio", 1.0)],
            Dimension::BitRate => vec![("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6)],
            Dimension::Size => vec![("B", 1.0), ("KB", 1e3)],
            Dimension::PerTime => vec![("%/year", 0.01 / SECONDS_PER_YEAR)],
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
            Dimension::BitRate => "bit/s",
            Dimension::Size => "B",
            Dimension::PerTime => "1/s",
        }
    }
}

/// The index of each coefficient in [`KEYS`].
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
    pub const SELF_DISCHARGE: usize = 16;
    pub const TX_POWER: usize = 17;
    pub const UP_RATE: usize = 18;
    pub const RX_POWER: usize = 19;
    pub const DOWN_RATE: usize = 20;
    pub const MESSAGE_UP: usize = 21;
    pub const CONNECT_UP: usize = 22;
    pub const CONNECT_DOWN: usize = 23;
    pub const CONNECT_TIME: usize = 24;
    pub const PAGING: usize = 25;
    pub const TAU: usize = 26;
    pub const TAU_TIME: usize = 27;
    pub const IDLE_LIMIT: usize = 28;
}

/// All coefficients. New ones are appended, so that indices stay.
pub const KEYS: [Key; 29] = [
    device("idle", Dimension::Power, "idle, or asleep if it sleeps"),
    device("load", Dimension::Power, "additional power with all cores at work"),
    device("cpu_scale", Dimension::Ratio, "its processor time for a second of the generator's"),
    device("converter", Dimension::Ratio, "share of energy that a converter passes on"),
    radio("attach", Dimension::Energy, "joining the network, once per charge"),
    radio("connect", Dimension::Energy, "a connection to the server, without ramp and bytes"),
    radio("message", Dimension::Energy, "a message, without ramp, bytes and tail"),
    radio("ramp", Dimension::Energy, "each wake-up"),
    radio("ramp_power", Dimension::Power, "power during each wake-up's promotion"),
    radio("ramp_time", Dimension::Time, "how long that takes"),
    radio("up", Dimension::EnergyPerByte, "a byte sent, from IP up"),
    radio("down", Dimension::EnergyPerByte, "a byte received, from IP up"),
    radio("connected", Dimension::Power, "power between first and last packet of a wake-up"),
    radio("tail_power", Dimension::Power, "power after the last packet of a wake-up"),
    radio("tail_time", Dimension::Time, "how long that lasts; a longer pause ends a wake-up"),
    radio("idle", Dimension::Power, "power asleep, in addition to the device's own"),
    device("self_discharge", Dimension::PerTime, "self-discharge of a full battery"),
    radio("tx_power", Dimension::Power, "power while it sends, with up_rate"),
    radio("up_rate", Dimension::BitRate, "rate at which bytes are sent, from IP up"),
    radio("rx_power", Dimension::Power, "power while it receives, with down_rate"),
    radio("down_rate", Dimension::BitRate, "rate at which bytes are received, from IP up"),
    radio("message_up", Dimension::Size, "bytes sent that are part of message"),
    radio("connect_up", Dimension::Size, "bytes sent that are part of connect"),
    radio("connect_down", Dimension::Size, "bytes received that are part of connect"),
    radio("connect_time", Dimension::Time, "time awake that is part of connect"),
    radio("paging", Dimension::Power, "mean power of listening for pages between messages"),
    radio("tau", Dimension::Energy, "a tracking area update"),
    radio("tau_time", Dimension::Time, "silence after which a tracking area update is due"),
    radio("idle_limit", Dimension::Time, "silence after which the network forgets a connection"),
];

const fn device(name: &'static str, dimension: Dimension, doc: &'static str) -> Key {
    Key { kind: Kind::Device, name, dimension, doc }
}

const fn radio(name: &'static str, dimension: Dimension, doc: &'static str) -> Key {
    Key { kind: Kind::Radio, name, dimension, doc }
}

const SECONDS_PER_HOUR: f64 = 3600.0;
const SECONDS_PER_YEAR: f64 = 365.25 * 24.0 * SECONDS_PER_HOUR;
const BITS_PER_BYTE: f64 = 8.0;

/// The values of all coefficients, in the order of [`KEYS`] and the units of the model.
pub type Values = [f64; KEYS.len()];

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
            (at::SELF_DISCHARGE, "self_discharge"),
            (at::TX_POWER, "tx_power"),
            (at::UP_RATE, "up_rate"),
            (at::RX_POWER, "rx_power"),
            (at::DOWN_RATE, "down_rate"),
            (at::MESSAGE_UP, "message_up"),
            (at::CONNECT_UP, "connect_up"),
            (at::CONNECT_DOWN, "connect_down"),
            (at::CONNECT_TIME, "connect_time"),
            (at::PAGING, "paging"),
            (at::TAU, "tau"),
            (at::TAU_TIME, "tau_time"),
            (at::IDLE_LIMIT, "idle_limit"),
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
        let of_year = one(Dimension::PerTime, "%/year") * 365.25 * 86_400.0;
        assert!((of_year - 0.01).abs() < 1e-15, "{of_year}");
    }
}
