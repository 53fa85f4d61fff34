//! Everything that an answer is made from, put together.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weigh_advice::answer::Inputs;
use weigh_advice::cells::{Cells, Machine};
use weigh_advice::figures::energy_basis;
use weigh_advice::link::Link;
use weigh_advice::situation::Situation;
use weigh_energy::Model;
use weigh_model::protocol::Invalid;
use weigh_runner::advice::{Offers, observed};
use weigh_runner::case::paths::{path_keys, path_of};
use weigh_runner::energy;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::runner::Runner;
use weigh_testbed::catalogue::Catalogue;

use crate::commands::temporary_folder;
use crate::help;
use crate::show::terminal::{Display, Lines};

/// The options of a situation with what is known of them.
pub struct Ready {
    /// The situation.
    pub situation: Situation,
    /// The options.
    pub offers: Offers,
    /// This machine.
    pub here: Machine,
    link: Link,
    energy: Option<(Model, Option<u64>)>,
    /// Certificates of dry trials; removed at the end.
    _folder: TempDir,
}

impl Ready {
    /// Makes the options and their dry trials.
    ///
    /// # Errors
    /// Names that are unknown: options, path, device, radio.
    pub fn of(
        situation: Situation,
        catalogue: &Catalogue,
        data: Option<&Path>,
    ) -> Result<Ready, Stop> {
        let link = match &situation.network.path {
            None => Link::local(),
            Some(typed) => {
                let path = path_keys(typed).and_then(|keys| path_of(&keys));
                let place = |own: Invalid| Invalid { place: "network.path".to_owned(), ..own };
                let path = path.map_err(|invalid| Stop::from(place(invalid)))?;
                if path.as_ref().is_some_and(|own| !own.steps.is_empty()) {
                    let problem = "it changes over time, and an answer is for one path";
                    let fix = "give a path without steps, and each of its states its own answer";
                    return Err(place(Invalid::new("path", problem, fix)).into());
                }
                path.as_ref().map_or_else(Link::local, Link::of)
            }
        };
        let energy = model(&situation, data)?;
        let folder = temporary_folder("weigh-advice-").map_err(|error| {
            Stop::new(Exit::Record, format!("a temporary folder cannot be made: {error}"))
        })?;
        let offers = Offers::of(&situation, catalogue, folder.path().to_owned(), &Lines)?;
        let here = observed::machine(&weigh_observe::host::facts());
        Ok(Ready { situation, offers, here, link, energy, _folder: folder })
    }

    /// Calls `with` with the inputs of an answer from these cells.
    pub fn with<T>(&self, cells: &[Cells], with: impl FnOnce(&Inputs<'_>) -> T) -> T {
        with(&Inputs {
            situation: &self.situation,
            offers: &self.offers.all,
            cells,
            here: &self.here,
            link: &self.link,
            energy: self.energy.as_ref().map(|(model, size_max)| (model, *size_max)),
        })
    }
}

/// The device and its radio, if the situation has them.
fn model(situation: &Situation, data: Option<&Path>) -> Result<Option<(Model, Option<u64>)>, Stop> {
    let Some(device) = &situation.device else { return Ok(None) };
    if device.model.is_empty() || device.radio.is_empty() {
        return Err(Stop::usage(
            "device: device and radio belong together\nhelp: type --device nrf9160 --radio nb-iot; \
             weigh energy devices lists them",
        ));
    }
    let basis = energy_basis(device, situation.traffic.every, &energy::catalogue(data)?);
    let basis = basis.map_err(energy::invalid)?;
    let size_max = basis.radio.as_ref().and_then(|radio| radio.message_bytes_max);
    let model = Model::with_draws(&basis, weigh_advice::drawn::DRAWS, weigh_energy::answer::SEED);
    Ok(Some((model, size_max)))
}

/// A runner for calibrations and checks.
///
/// # Errors
/// If the path of this program is not known.
pub fn runner<'c>(
    catalogue: &'c Catalogue,
    runs: &Path,
    data: Option<PathBuf>,
    is_quiet: bool,
) -> Result<Runner<'c>, Stop> {
    Ok(Runner {
        program: std::env::current_exe()?,
        commit: help::commit(),
        runs: runs.to_owned(),
        catalogue: Cow::Borrowed(catalogue),
        data,
        shards: None,
        may_load: false,
        is_quiet,
        watch: Display::watch,
        fleet: None,
    })
}
