//! The flags and keys that ask for modelled energy, and the coefficients that they name.

use std::path::Path;

use clap::Args;
use weigh_energy::Catalogue;
use weigh_energy::keys::Kind;
use weigh_model::Nanos;
use weigh_model::battery::Battery;
use weigh_model::modelled::{EnergyAsked, EnergyBasis, Processor};
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_model::units::parse_duration;
use weigh_stage::catalogue::texts_in;

use crate::exit::Stop;
use crate::planning::options::with_flag;

/// The flags about modelled energy.
#[derive(Args, Clone, Debug)]
pub struct EnergyOptions {
    /// Models what a device would have taken for what was weighed: pi-2b, nrf9160 and others, see
    /// weigh devices; counts the wire where that can be, as --wire does
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The radio of that device: 3g, lte, wifi, nb-iot, ethernet and others
    #[arg(long, value_name = "NAME", requires = "device")]
    radio: Option<String>,
    /// What it lives on: the charge at the voltage at which it is rated. 2000mAh@5V is 10 Wh at a
    /// power bank's socket; where the label rates the cell, type 2000mAh@3.7V: 7.4 Wh, of which a
    /// converter passes on a part
    #[arg(long, value_name = "CHARGE@VOLTAGE", requires = "device")]
    battery: Option<Battery>,
    /// How often it sends a message, for how long a charge lasts [default: 1m]
    #[arg(long, value_name = "TIME", requires = "device", value_parser = parse_pause)]
    every: Option<Nanos>,
    /// scaled: the generator's processor time by the device's cpu_scale; here: the generator runs
    /// on such a device
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
    /// What they ask for, where they do.
    ///
    /// # Errors
    /// If there is no such device or radio.
    pub fn asked(&self, catalogue: &Catalogue) -> Result<Option<EnergyAsked>, Stop> {
        let Some(device) = self.device.clone() else { return Ok(None) };
        let cpu = match self.cpu.as_str() {
            "here" => Processor::Here,
            _ => Processor::Scaled,
        };
        let (battery, every, radio) = (self.battery, self.every, self.radio.clone());
        let asked = EnergyAsked { device, radio, battery, every, cpu };
        catalogue.basis(&asked).map_err(|wrong| Stop::usage(with_flag(invalid(wrong))))?;
        Ok(Some(asked))
    }
}

/// Every device and radio there is, with those of `DATA/devices` and `DATA/radios`.
///
/// # Errors
/// If a file cannot be read, or is none.
pub fn catalogue(data: Option<&Path>) -> Result<Catalogue, Stop> {
    let mut files = Vec::new();
    for kind in [Kind::Device, Kind::Radio] {
        let folder = data.map(|data| data.join(kind.folder())).filter(|folder| folder.is_dir());
        let texts = folder.map(|folder| texts_in(&folder)).transpose().map_err(Stop::usage)?;
        files.extend(texts.unwrap_or_default().into_iter().map(|(file, text)| (kind, file, text)));
    }
    Catalogue::load(&files).map_err(Stop::usage)
}

/// What the modelled figures of a plan rest on, where it asks for any.
///
/// # Errors
/// The key of what there is not.
pub fn basis(plan: &Plan, data: Option<&Path>) -> Result<Option<Box<EnergyBasis>>, Stop> {
    let Some(asked) = &plan.energy else { return Ok(None) };
    let basis = catalogue(data)?.basis(asked);
    Ok(Some(Box::new(basis.map_err(invalid)?)))
}

/// The plan with its wire listened on where energy is modelled, because a radio carries headers
/// too. Servers that somebody else runs are on no wire of ours: there the figures are absent.
pub fn heard(plan: Plan) -> Plan {
    let mut plan = plan;
    let is_foreign = |case: &weigh_plan::matrix::Keys| {
        case.get("target").and_then(|target| target.as_str()).is_some_and(|t| t.contains("://"))
    };
    plan.observe.wire |= plan.energy.is_some() && !plan.cases.iter().any(is_foreign);
    plan
}

fn invalid((key, said): (&'static str, String)) -> Invalid {
    let (problem, mend) = said.split_once(": ").unwrap_or((&said, ""));
    Invalid::new(format!("energy.{key}"), problem, mend)
}

fn parse_pause(text: &str) -> Result<Nanos, String> {
    match parse_duration(text)? {
        Nanos(0) => Err("messages without a pause are no duty cycle: type --every 1m".to_owned()),
        pause => Ok(pause),
    }
}
