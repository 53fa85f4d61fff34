//! The coefficients that modelled energy rests on.

use std::path::Path;

use weigh_energy::Catalogue;
use weigh_energy::keys::Kind;
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_testbed::catalogue::texts_in;

use crate::exit::Stop;

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
    let is_foreign = |case: &weigh_model::trial::Point| {
        case.get("target").and_then(|target| target.as_str()).is_some_and(|t| t.contains("://"))
    };
    plan.observe.wire |= plan.energy.is_some() && !plan.cases.iter().any(is_foreign);
    plan
}

/// What a catalogue says of a wrong name, by its key.
pub fn invalid((key, said): (&'static str, String)) -> Invalid {
    let (problem, mend) = said.split_once(": ").unwrap_or((&said, ""));
    Invalid::new(format!("energy.{key}"), problem, mend)
}
