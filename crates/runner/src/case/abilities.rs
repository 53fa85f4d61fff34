//! Abilities of targets, from the files of `weigh probe`, and the cases that they rule out
//! before a start.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use weigh_model::protocol::Invalid;
use weigh_model::{Durability, Trial};
use weigh_plan::Case;
use weigh_plan::keys::ABILITIES;
use weigh_probe::abilities::{Abilities, Status};
use weigh_probe::demands;
use weigh_testbed::catalogue::Catalogue;

use crate::input_file::{self, TEXT_BYTES_MAX};

/// What a confirmation means on the server that this file is about, if its probe found that out. A
/// file that cannot be read says nothing here: [`KnownAbilities::check`] refuses it.
pub fn durability_of(file: &str) -> Option<Durability> {
    let text = input_file::text(std::path::Path::new(file), TEXT_BYTES_MAX).ok()?;
    let known = Abilities::read(file, &text).ok()?;
    let ability = known.get(DURABILITY_ABILITY).filter(|own| own.status == Status::Yes)?;
    ability.value.as_ref()?.to_string().parse().ok()
}

/// The files that were read so far; each is read once.
#[derive(Default)]
pub struct KnownAbilities {
    by_file: RefCell<BTreeMap<String, Rc<Abilities>>>,
}

impl KnownAbilities {
    /// Rejects a case that its target cannot do, by the file that the case names or by the target's
    /// own file.
    ///
    /// # Errors
    /// The missing ability, at the key that needs it; a file that cannot be read.
    pub fn check(&self, catalogue: &Catalogue, case: &Case, trial: &Trial) -> Result<(), Invalid> {
        let known = match &case.abilities {
            Some(file) => Some(self.of_file(file, trial)?),
            None => self.of_target(catalogue, &case.target)?,
        };
        match known.and_then(|known| demands::refusal(&known, trial)) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    fn of_file(&self, file: &str, trial: &Trial) -> Result<Rc<Abilities>, Invalid> {
        let wrong = |problem: String, fix: &str| Invalid::new(ABILITIES, problem, fix);
        let fix = "name a file of weigh probe -o";
        let known = self.read(file, || {
            input_file::text(std::path::Path::new(file), TEXT_BYTES_MAX)
                .map_err(|error| wrong(format!("{file}: cannot be read: {error}"), fix))
        })?;
        if known.protocol != trial.protocol {
            let problem = format!("{file} is about {}, not {}", known.protocol, trial.protocol);
            return Err(wrong(problem, "name another file, or leave it out"));
        }
        Ok(known)
    }

    /// Abilities of a target; they apply to the profile that was probed.
    fn of_target(
        &self,
        catalogue: &Catalogue,
        target: &str,
    ) -> Result<Option<Rc<Abilities>>, Invalid> {
        let Some((file, text)) = catalogue.abilities(target) else { return Ok(None) };
        let known = self.read(file, || Ok(text.to_owned()))?;
        let chosen = catalogue.choose(target).ok();
        let own = chosen.map(|own| format!("{}@{}", own.target.name, own.profile.name));
        Ok(own.filter(|own| *own == known.target).map(|_| known))
    }

    fn read(
        &self,
        file: &str,
        text: impl FnOnce() -> Result<String, Invalid>,
    ) -> Result<Rc<Abilities>, Invalid> {
        if let Some(known) = self.by_file.borrow().get(file) {
            return Ok(Rc::clone(known));
        }
        let read = Abilities::read(file, &text()?).map_err(|error| {
            Invalid::new(ABILITIES, error.to_string(), "name a file of weigh probe -o")
        })?;
        let read = Rc::new(read);
        self.by_file.borrow_mut().insert(file.to_owned(), Rc::clone(&read));
        Ok(read)
    }
}

/// Name of the ability, whose value is a durability.
const DURABILITY_ABILITY: &str = "durability";
