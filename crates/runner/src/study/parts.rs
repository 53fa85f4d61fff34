//! The parts of a study's run: each of its plans, resolved and checked, or why it cannot run here.

use std::collections::BTreeSet;
use std::path::Path;
use weigh_model::numbers::count;

use weigh_limit::Search;
use weigh_model::Nanos;
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::{Plan, Repeat};
use weigh_model::protocol::Invalid;
use weigh_study::carry::Asked as HowMany;
use weigh_study::plans::{NEEDS_CGROUP, NEEDS_WIRE, StudyPlan};
use weigh_study::study::Experiment;
use weigh_study::{Scale, Study, Way};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::cgroup::{ControlGroup, Share};
use weigh_testbed::find;

use crate::case::build::Build;
use crate::case::lanes::Against;
use crate::case::secrets::Secrets;
use crate::case::share::{StandIns, TargetShare};
use crate::case::{Case, decide};
use crate::energy;
use crate::exit::Stop;
use crate::preflight;
use crate::preflight::forecast;
use crate::preflight::overhead;
use crate::search::request;
use crate::study::external_servers::ExternalServers;
use crate::targets::hosts::Privileges;

/// The requested parts of a study.
///
/// # Examples
///
/// ```
/// use weigh_runner::study::library::{Studies, read};
/// use weigh_runner::study::parts::Asked;
/// use weigh_runner::watcher::Silent;
/// use weigh_study::{Scale, Way};
/// use weigh_testbed::catalogue::Catalogue;
/// # use weigh_runner::exit::Stop;
///
/// let catalogue = Catalogue::load(None).map_err(Stop::usage)?;
/// let study = read(Studies::load(None)?.find("flespi")?, &catalogue, &Silent)?;
/// let only = vec![study.experiments[0].id.clone()];
/// let asked = Asked { scale: Scale::Quick, ways: vec![Way::Right], only };
/// assert_eq!(asked.experiments(&study)?.len(), 1);
/// # Ok::<(), Stop>(())
/// ```
#[derive(Clone, Debug)]
pub struct Asked {
    /// Scale of the experiments.
    pub scale: Scale,
    /// Kinds of plans: as published, done right, or real programs.
    pub ways: Vec<Way>,
    /// Ids of experiments and of capacity questions; empty for all.
    pub only: Vec<String>,
}

impl Asked {
    /// The requested experiments.
    ///
    /// # Errors
    /// An id that is neither of an experiment nor of a capacity question.
    pub fn experiments<'s>(&self, study: &'s Study) -> Result<Vec<&'s Experiment>, Stop> {
        let ids = study.experiments.iter().map(|own| own.id.as_str());
        let ids: Vec<&str> = ids.chain(study.carry.iter().map(|own| own.id.as_str())).collect();
        if let Some(unknown) = self.only.iter().find(|id| !ids.contains(&id.as_str())) {
            return Err(Stop::usage(format!(
                "{unknown}: {} has no experiment of this id: type {}",
                study.name,
                ids.join(" or ")
            )));
        }
        let is_asked = |own: &&Experiment| self.only.is_empty() || self.only.contains(&own.id);
        Ok(study.experiments.iter().filter(is_asked).collect())
    }

    /// The requested plans, each once: in the order of the experiments, then those of capacity
    /// questions that were named.
    fn plans<'s>(&self, study: &'s Study) -> Result<Vec<&'s StudyPlan>, Stop> {
        let experiments = self.experiments(study)?;
        let named = study.carry.iter().filter(|own| self.only.contains(&own.id));
        let names = experiments.iter().flat_map(|own| own.published.iter().chain(&own.right));
        let names = names.chain(named.flat_map(HowMany::runs));
        let plans = names.filter_map(|name| study.plan(name));
        let mut seen = BTreeSet::new();
        let is_asked = |plan: &&StudyPlan| self.ways.contains(&plan.way);
        Ok(plans.filter(is_asked).filter(|plan| seen.insert(&plan.name)).collect())
    }
}

/// A plan of a study that can run.
///
/// # Examples
///
/// ```
/// use weigh_runner::study::external_servers::ExternalServers;
/// use weigh_runner::study::library::{Studies, read};
/// use weigh_runner::study::parts::{Asked, PartsContext, parts};
/// use weigh_runner::watcher::Silent;
/// use weigh_study::{Scale, Way};
/// use weigh_testbed::catalogue::Catalogue;
/// # use weigh_runner::exit::Stop;
///
/// let catalogue = Catalogue::load(None).map_err(Stop::usage)?;
/// let study = read(Studies::load(None)?.find("flespi")?, &catalogue, &Silent)?;
/// let asked = Asked { scale: Scale::Mini, ways: vec![Way::Right], only: Vec::new() };
/// let elsewhere = ExternalServers::default();
/// let context = PartsContext { catalogue: &catalogue, data: None, may_load: false, elsewhere };
/// let parts = parts(&study, &asked, &context)?;
/// assert!(parts.iter().all(|part| part.name.starts_with("right/")));
/// # Ok::<(), Stop>(())
/// ```
pub struct Part {
    /// The name of its run: `published/E1-http`.
    pub name: String,
    /// The plan, resolved.
    pub plan: Plan,
    /// Its cases, in order.
    pub cases: Vec<Case>,
    /// The search in each of them; `None` for a matrix.
    pub searches: Option<Vec<Search>>,
    /// Secrets, which no plan may hold.
    pub secrets: Secrets,
    /// Coefficients of modelled energy.
    pub energy: Option<Box<EnergyBasis>>,
    /// Programs and privileges that it needs.
    needs: Vec<String>,
    /// Replacements for what this machine cannot enforce of its targets' shares, once checked, and
    /// the fix.
    pub remark: Option<String>,
    /// Minimum number of trials.
    pub trials: u64,
    /// Minimum duration.
    pub time: Nanos,
}

/// Servers and permissions for parts.
pub struct PartsContext<'g> {
    /// The real servers.
    pub catalogue: &'g Catalogue,
    /// The folder of the user's own targets, devices and studies.
    pub data: Option<&'g Path>,
    /// True if remote targets may be loaded.
    pub may_load: bool,
    /// External servers.
    pub elsewhere: ExternalServers,
}

/// The requested parts of a study, in order.
///
/// # Errors
/// An unknown experiment, or an unknown name in a plan.
pub fn parts(study: &Study, asked: &Asked, ground: &PartsContext<'_>) -> Result<Vec<Part>, Stop> {
    let plans = asked.plans(study)?;
    plans.into_iter().map(|plan| Part::of(study, plan, asked.scale, ground)).collect()
}

impl Part {
    /// Resolves a plan of a study at this scale.
    ///
    /// # Errors
    /// An unknown name in it.
    pub fn of(
        study: &Study,
        own: &StudyPlan,
        scale: Scale,
        ground: &PartsContext<'_>,
    ) -> Result<Part, Stop> {
        let said = |stop: Stop| {
            let (file, table) = (own.way.file(), &own.table);
            Stop::new(stop.exit(), format!("{}/{file}: [{table}]: {stop}", study.name))
        };
        let planned = own.at(scale);
        let resolved = planned.resolved.clone();
        let mut plan = resolved.plan;
        let basis = energy::basis(&plan, ground.data).map_err(said)?;
        plan = energy::heard(plan);
        if planned.search.is_some() {
            // A search decides how often a load is repeated.
            plan.repeat = Repeat { target: plan.repeat.target, ..Repeat::exactly(1) };
        }
        let mut secrets = Secrets { settings: resolved.secrets, ..Secrets::default() };
        ground.elsewhere.put_into(&mut plan, &mut secrets);
        let cases =
            decide(&plan, ground.catalogue, &secrets).map_err(|wrong| said(wrong.into()))?;
        preflight::may_load(&cases, ground.may_load).map_err(said)?;
        let asked = planned.search.as_ref();
        let searches = asked.map(|asked| request::of_plan(asked, &cases)).transpose();
        let searches = searches.map_err(said)?;
        let (trials, time) = expected(&plan, &cases, searches.as_deref(), ground.catalogue);
        let needs = own.needs.iter().filter(|need| !ground.elsewhere.has(need)).cloned().collect();
        let name = own.name.clone();
        let remark = None;
        Ok(Part {
            name,
            plan,
            cases,
            searches,
            secrets,
            energy: basis,
            needs,
            remark,
            trials,
            time,
        })
    }

    /// The largest cases, for checks of the machine.
    pub fn largest(&self) -> Vec<Case> {
        match &self.searches {
            Some(searches) => request::largest(&self.cases, searches),
            None => self.cases.clone(),
        }
    }

    /// `12 trials, about 2 min 5 s`, or what a search takes.
    pub fn length(&self) -> String {
        let time = self.time.rough();
        match &self.searches {
            Some(searches) => {
                let lanes = searches.len();
                format!("a search in {lanes} lane{}, about {time}", plural(lanes as u64))
            }
            None => {
                let trials = count(self.trials);
                format!("{trials} trial{}, about {time}", plural(self.trials))
            }
        }
    }

    /// Threads of its generator.
    pub fn shards(&self) -> u32 {
        preflight::shards(&self.largest(), None)
    }

    /// Checks which of its targets' shares this machine cannot enforce. It can run all the same,
    /// with a warning in each trial.
    pub fn look_at_shares(&mut self, known: &mut StandIns) {
        let asked = self.cases.iter().map(|case| case.share).filter(TargetShare::is_asked);
        let mut missing: Vec<String> = Vec::new();
        for share in asked {
            for why in known.of(share) {
                if !missing.contains(why) {
                    missing.push(why.clone());
                }
            }
        }
        self.remark = (!missing.is_empty()).then(|| format!("{}; {FIX}", missing.join("; ")));
    }

    /// Returns what `build` lacks for it, and how to get it; `None` if it has everything.
    fn unbuilt(&self, build: Build) -> Option<String> {
        build.check(&self.plan, &self.cases).err().map(said)
    }

    /// Returns why it cannot run here; `None` if it can.
    pub fn obstacle(&self, catalogue: &Catalogue, privileges: &Privileges) -> Option<String> {
        if let Some(why) = self.unbuilt(Build::OWN) {
            return Some(why);
        }
        let missing = |need: &String| missing(need, catalogue, privileges);
        let managed = self.cases.iter().filter_map(|case| match &case.lane.against {
            Against::Managed(name) => Some(name.clone()),
            _ => None,
        });
        let needed: Vec<String> = self.needs.iter().cloned().chain(managed).collect();
        needed.iter().find_map(missing).or_else(|| {
            let looked = preflight::examine(catalogue, &self.largest(), self.shards());
            looked.err().map(|stop| format!("this machine cannot do it: {stop}"))
        })
    }
}

/// Returns a missing part of a build as the reason for a plan that is not run.
pub fn said(unbuilt: Invalid) -> String {
    format!("{}; {}", unbuilt.problem, unbuilt.fix)
}

/// Returns why something that a plan needs is missing; `None` if it is available.
pub fn missing(need: &str, catalogue: &Catalogue, privileges: &Privileges) -> Option<String> {
    match need {
        NEEDS_WIRE => match privileges {
            Privileges::Forbidden(reason, fix) => {
                Some(format!("it needs network namespaces to capture the wire: {reason}; {fix}"))
            }
            _ => None,
        },
        NEEDS_CGROUP => no_groups(),
        // A server behind a URL is external.
        url if url.contains("://") => None,
        target => not_installed(target, catalogue),
    }
}

/// Returns why control groups for shares cannot be made; `None` if they can.
fn no_groups() -> Option<String> {
    let share = Share { memory_bytes: Some(PROBED_BYTES), ..Share::default() };
    let made = ControlGroup::make(&share);
    let why = made.missing().first()?;
    Some(format!("it needs a control group that bounds its target: {why}; {FIX}"))
}

fn not_installed(target: &str, catalogue: &Catalogue) -> Option<String> {
    match catalogue.choose(target) {
        Err(error) => Some(error.to_string()),
        Ok(choice) if find::find(choice.target).is_some() => None,
        Ok(choice) => Some(format!("{target} is not installed: {}", find::fix(choice.target))),
    }
}

/// Minimum number of trials of a plan, and their duration. A search needs at least two loads in
/// every lane, and is expected to take its usual time.
fn expected(
    plan: &Plan,
    cases: &[Case],
    searches: Option<&[Search]>,
    catalogue: &Catalogue,
) -> (u64, Nanos) {
    let Some(searches) = searches else {
        let times = forecast::times(plan, cases, catalogue);
        return (times.trials_least, times.time_least);
    };
    let lanes = cases.iter().zip(searches);
    let time = lanes.map(|(case, search)| overhead::search(case, search, catalogue));
    let time = time.fold(Nanos(0), |sum, time| sum + time);
    (2 * searches.len() as u64, time)
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// Help text to get control groups.
const FIX: &str = "run it as root, or in a control group that you may divide";

/// Size of the control group that is made as a test.
const PROBED_BYTES: u64 = 64 << 20;

#[cfg(test)]
#[cfg(feature = "library")]
mod tests {
    use super::*;
    use crate::study::library::{Studies, read};
    use crate::watcher::Silent;

    #[test]
    fn a_build_without_the_pipeline_reads_every_study_and_skips_only_its_plans() {
        let catalogue = Catalogue::load(None).unwrap();
        let elsewhere = ExternalServers::default();
        let context =
            PartsContext { catalogue: &catalogue, data: None, may_load: false, elsewhere };
        let small = Build { has_pipeline: false, ..Build::FULL };
        let (mut skipped, mut run) = (0, 0);
        for texts in Studies::load(None).unwrap().all() {
            let study = read(texts, &catalogue, &Silent).unwrap();
            let asked = Asked { scale: Scale::Mini, ways: Way::ALL.to_vec(), only: Vec::new() };
            for part in parts(&study, &asked, &context).unwrap() {
                let is_staged = part.cases.iter().any(|case| case.lane.stores());
                let unbuilt = part.unbuilt(small);
                assert_eq!(unbuilt.is_some(), is_staged, "{}", part.name);
                assert!(unbuilt.is_none_or(|why| why.contains("--features full")));
                assert_eq!(part.unbuilt(Build::FULL), None);
                if is_staged { skipped += 1 } else { run += 1 }
            }
        }
        assert!(skipped > 0 && run > 0, "{skipped} skipped, {run} run");
    }
}
