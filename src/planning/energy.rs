//! Flags for modelled energy.

use clap::Args;
use weigh_energy::Catalogue;
use weigh_model::Nanos;
use weigh_model::battery::Battery;
use weigh_model::modelled::{EnergyAsked, Processor};
use weigh_model::units::parse_duration;

use crate::planning::options::with_flag;
use weigh_runner::energy::invalid;
use weigh_runner::exit::Stop;

/// Flags about modelled energy.
#[derive(Args, Clone, Debug)]
pub struct EnergyOptions {
    /// Model the energy of a device: pi-2b, nrf9160 and others
    ///
    /// `weigh energy devices` lists them. Bytes on the wire are counted where that is possible, as
    /// with --wire.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Radio of the device: 3g, lte, wifi, nb-iot, ethernet and others
    #[arg(long, value_name = "NAME", requires = "device")]
    radio: Option<String>,
    /// Charge and rated voltage of the battery, such as 2000mAh@3.7V
    ///
    /// Type the voltage that the label's mAh refer to: 3.7V for a cell, 5V for the socket of a
    /// power bank. Converter losses are deducted if the device needs another voltage.
    #[arg(long, value_name = "CHARGE@VOLTAGE", requires = "device")]
    battery: Option<Battery>,
    /// Time between two messages of the device, for battery life [default: 1m]
    #[arg(long, value_name = "TIME", requires = "device", value_parser = parse_pause)]
    every: Option<Nanos>,
    /// How to get the device's CPU time from that of the generator: scaled or here
    ///
    /// scaled: the generator's CPU time, multiplied by the device's cpu_scale. here: the generator
    /// runs on such a device, so its CPU time is used unchanged.
    #[arg(
        long,
        value_name = "WHERE",
        requires = "device",
        default_value = "scaled",
        value_parser = ["scaled", "here"]
    )]
    cpu: String,
}

impl EnergyOptions {
    /// Returns the modelled device, if one is given.
    ///
    /// # Errors
    /// If the device or the radio is unknown.
    pub fn asked(&self, catalogue: &Catalogue) -> Result<Option<EnergyAsked>, Stop> {
        let Some(device) = self.device.clone() else { return Ok(None) };
        let cpu = match self.cpu.as_str() {
            "here" => Processor::Here,
            _ => Processor::Scaled,
        };
        let (battery, every, radio) = (self.battery, self.every, self.radio.clone());
        let asked = EnergyAsked { device, radio, battery, every, cpu };
        catalogue.basis(&asked).map_err(|wrong| Stop::from(with_flag(invalid(wrong))))?;
        Ok(Some(asked))
    }
}

fn parse_pause(text: &str) -> Result<Nanos, String> {
    match parse_duration(text)? {
        Nanos(0) => Err("0s is not a time between messages: type --every 1m".to_owned()),
        pause => Ok(pause),
    }
}
