//! Coefficients of modelled energy.

use std::path::Path;

use weigh_energy::Catalogue;
use weigh_energy::keys::Kind;
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_testbed::catalogue::texts_in;

use crate::exit::Stop;

/// All built-in devices and radios, and those of `DATA/devices` and `DATA/radios`.
///
/// # Errors
/// A file that cannot be read, or is invalid.
pub fn catalogue(data: Option<&Path>) -> Result<Catalogue, Stop> {
    let mut files = Vec::new();
    for kind in [Kind::Device, Kind::Radio] {
        let folder = data.map(|data| data.join(kind.folder())).filter(|folder| folder.is_dir());
        let texts = folder.map(|folder| texts_in(&folder)).transpose().map_err(Stop::usage)?;
        files.extend(texts.unwrap_or_default().into_iter().map(|(file, text)| (kind, file, text)));
    }
    Catalogue::load(&files).map_err(Stop::usage)
}

/// Coefficients for the modelled figures of a plan, if it asks for any.
///
/// # Errors
/// The key of an unknown name.
pub fn basis(plan: &Plan, data: Option<&Path>) -> Result<Option<Box<EnergyBasis>>, Stop> {
    let Some(asked) = &plan.energy else { return Ok(None) };
    let basis = catalogue(data)?.basis(asked);
    Ok(Some(Box::new(basis.map_err(invalid)?)))
}

/// Turns packet capture on in a plan that models energy, because a radio transmits headers too.
/// External servers have no wire that Weighbridge can capture, so their figures are absent.
pub fn heard(plan: Plan) -> Plan {
    let mut plan = plan;
    let is_foreign = |case: &weigh_model::trial::Point| {
        case.get("target").and_then(|target| target.as_str()).is_some_and(|t| t.contains("://"))
    };
    plan.observe.wire |= plan.energy.is_some() && !plan.cases.iter().any(is_foreign);
    plan
}

/// Turns a catalogue's error for a wrong name into one at its key.
pub fn invalid((key, said): (&'static str, String)) -> Invalid {
    let (problem, fix) = said.split_once(": ").unwrap_or((&said, ""));
    Invalid::new(format!("energy.{key}"), problem, fix)
}
