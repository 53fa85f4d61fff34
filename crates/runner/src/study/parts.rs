//! The parts of a study's run: each of its plans, decided and looked at, or why it cannot be run
//! here.

use std::collections::BTreeSet;
use std::path::Path;

use weigh_limit::Search;
use weigh_model::Nanos;
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::{Plan, Repeat};
use weigh_study::carry::Asked as HowMany;
use weigh_study::plans::{NEEDS_CGROUP, NEEDS_WIRE, StudyPlan};
use weigh_study::study::Experiment;
use weigh_study::{Scale, Study, Way};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::enclosure::{Enclosure, Share};
use weigh_testbed::find;

use crate::case::lanes::Against;
use crate::case::secrets::Secrets;
use crate::case::share::{StandIns, TargetShare};
use crate::case::{Case, decide};
use crate::energy;
use crate::exit::Stop;
use crate::preflight;
use crate::preflight::forecast;
use crate::preflight::overhead;
use crate::search::asked;
use crate::study::elsewhere::Elsewhere;
use crate::targets::stage::Privileges;
use crate::watcher::rough;

/// What of a study is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How much of it.
    pub scale: Scale,
    /// In whose way.
    pub ways: Vec<Way>,
    /// The ids of the experiments and of questions of how many; all where it is empty.
    pub only: Vec<String>,
}

impl Asked {
    /// The experiments that are asked for.
    ///
    /// # Errors
    /// If an id is neither that of an experiment nor that of a question of how many.
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

    /// The plans that are asked for, each once: in the order of the experiments, then what a
    /// question of how many rests on, where it was named.
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

/// A plan of a study that can be run.
pub struct Part {
    /// The name of its run: `published/E1-http`.
    pub name: String,
    /// What is asked, resolved.
    pub plan: Plan,
    /// Its cases, index by index.
    pub cases: Vec<Case>,
    /// What is searched in each of them; `None` for a matrix.
    pub searches: Option<Vec<Search>>,
    /// What no plan may hold.
    pub secrets: Secrets,
    /// What modelled figures of energy rest on.
    pub energy: Option<Box<EnergyBasis>>,
    /// What must be there.
    needs: Vec<String>,
    /// What stands in for what this machine cannot enforce of its targets' shares, once that was
    /// looked at, and the mend.
    pub remark: Option<String>,
    /// How many trials, at least.
    pub trials: u64,
    /// How long it takes, at least.
    pub time: Nanos,
}

/// Where and on whose word parts are run.
pub struct Ground<'g> {
    /// The real servers that there are.
    pub catalogue: &'g Catalogue,
    /// The folder of the user's own targets, devices and studies.
    pub data: Option<&'g Path>,
    /// Whether targets beyond this machine may be loaded.
    pub may_load: bool,
    /// Servers that run elsewhere.
    pub elsewhere: Elsewhere,
}

/// The parts of a study that are asked for, in their order.
///
/// # Errors
/// If an experiment is not there, or a plan asks for what there is not.
pub fn parts(study: &Study, asked: &Asked, ground: &Ground<'_>) -> Result<Vec<Part>, Stop> {
    let plans = asked.plans(study)?;
    plans.into_iter().map(|plan| Part::of(study, plan, asked.scale, ground)).collect()
}

impl Part {
    /// A plan of a study at this scale.
    ///
    /// # Errors
    /// If it asks for what there is not.
    pub fn of(
        study: &Study,
        own: &StudyPlan,
        scale: Scale,
        ground: &Ground<'_>,
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
            // A search decides by itself how often a load is tried.
            plan.repeat = Repeat { target: plan.repeat.target, ..Repeat::exactly(1) };
        }
        let mut secrets = Secrets { settings: resolved.secrets, ..Secrets::default() };
        ground.elsewhere.put_into(&mut plan, &mut secrets);
        let cases =
            decide(&plan, ground.catalogue, &secrets).map_err(|wrong| said(wrong.into()))?;
        preflight::may_load(&cases, ground.may_load).map_err(said)?;
        let asked = planned.search.as_ref();
        let searches = asked.map(|asked| asked::of_plan(asked, &cases)).transpose();
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

    /// The cases that the machine must bear.
    pub fn largest(&self) -> Vec<Case> {
        match &self.searches {
            Some(searches) => asked::largest(&self.cases, searches),
            None => self.cases.clone(),
        }
    }

    /// `12 trials, about 2m 5s`, or what a search takes.
    pub fn length(&self) -> String {
        let time = rough(self.time);
        match &self.searches {
            Some(searches) => {
                let lanes = searches.len();
                format!("a search in {lanes} lane{}, about {time}", plural(lanes as u64))
            }
            None => format!("{} trial{}, about {time}", self.trials, plural(self.trials)),
        }
    }

    /// Threads of its generator.
    pub fn shards(&self) -> u32 {
        preflight::shards(&self.largest(), None)
    }

    /// Looks what of its targets' shares this machine cannot enforce. It can be run all the same:
    /// each of its trials says so too.
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
        self.remark = (!missing.is_empty()).then(|| format!("{}; {MEND}", missing.join("; ")));
    }

    /// Why it cannot be run here; `None` where it can.
    pub fn obstacle(&self, catalogue: &Catalogue, privileges: &Privileges) -> Option<String> {
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

/// Why something that a plan needs is not there; `None` where it is.
pub fn missing(need: &str, catalogue: &Catalogue, privileges: &Privileges) -> Option<String> {
    match need {
        NEEDS_WIRE => match privileges {
            Privileges::Forbidden(reason, mend) => {
                Some(format!("it needs hosts of their own to listen on the wire: {reason}; {mend}"))
            }
            _ => None,
        },
        NEEDS_CGROUP => no_groups(),
        // Whoever runs a server behind a URL has it.
        url if url.contains("://") => None,
        target => not_installed(target, catalogue),
    }
}

/// Whether so much of the machine can be set apart as shares ask for; why not, if not.
fn no_groups() -> Option<String> {
    let share = Share { cores: None, memory_bytes: Some(PROBED_BYTES) };
    let made = Enclosure::make(&share);
    let why = made.missing().first()?;
    Some(format!("it needs a control group that bounds its target: {why}; {MEND}"))
}

fn not_installed(target: &str, catalogue: &Catalogue) -> Option<String> {
    match catalogue.choose(target) {
        Err(error) => Some(error.to_string()),
        Ok(choice) if find::find(choice.target).is_some() => None,
        Ok(choice) => Some(format!("{target} is not installed: {}", find::mend(choice.target))),
    }
}

/// How many trials a plan has at least, and how long they take. A search decides two loads in every
/// lane at least, and takes what it usually does.
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

/// What gives a program control groups.
const MEND: &str = "run it as root, or in a group that you may divide";

/// A bound to try whether any can be set.
const PROBED_BYTES: u64 = 64 << 20;
