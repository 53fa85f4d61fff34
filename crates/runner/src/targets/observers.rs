//! Observes a target during a trial: one that Weighbridge started by its process, an external one
//! by what `--observe` names. Without samples its figures are absent; a failed sample removes them,
//! with a warning.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use weigh_model::Warning;
use weigh_model::event::TrialFinished;
use weigh_model::lookout::{Lookout, Vantage};
use weigh_observe::ObserveError;
use weigh_observe::container::Engines;
use weigh_observe::group::Group;
use weigh_observe::host::Roots;
use weigh_observe::process;
use weigh_observe::sampler::{Recording, Sampler};
use weigh_observe::subject::Subject;
use weigh_protocols::urls;
use weigh_testbed::listening;

use crate::case::Case;
use crate::case::lanes::{Against, Lane};
use crate::exit::Stop;
use crate::targets::agents::{self, Remote};
use crate::trial::news::{Since, SoFar};

/// Observers of external targets, by their URLs.
#[derive(Clone, Debug, Default)]
pub struct Observers(BTreeMap<String, Vantage>);

impl Observers {
    /// Opens the observers of a plan, each tried once before anything starts.
    ///
    /// # Errors
    /// One whose target is not in these cases, or that cannot be observed.
    pub fn open(asked: &[Lookout], cases: &[Case]) -> Result<Observers, Stop> {
        let targets = external(cases);
        let mut all = BTreeMap::new();
        for lookout in asked {
            let target = target_of(lookout, &targets)?;
            let at = with_token(lookout.at.clone());
            try_once(&at)?;
            if all.insert(target.clone(), at).is_some() {
                return Err(Stop::usage(format!(
                    "--observe {lookout}: {target} is observed already: leave one out"
                )));
            }
        }
        Ok(Observers(all))
    }

    /// Checks that the targets of these observers are in these cases; nothing is opened.
    ///
    /// # Errors
    /// One whose target is not.
    pub fn check(asked: &[Lookout], cases: &[Case]) -> Result<(), Stop> {
        let targets = external(cases);
        asked.iter().try_for_each(|lookout| target_of(lookout, &targets).map(drop))
    }

    /// Starts to observe the target of `lane`. Its process is `pid` if Weighbridge started it, with
    /// `cores` cores.
    pub fn begin(
        &self,
        lane: &Lane,
        (pids, cores): (&[u32], u32),
        period: Duration,
    ) -> Observation {
        if !pids.is_empty() {
            // A target that has already ended is reported as one that died.
            let eye = Sampler::start_of(pids, cores, period).ok().map(Eye::Sampler);
            return Observation { eye, ..Observation::default() };
        }
        let vantage = match &lane.against {
            Against::Foreign(endpoint) => self.0.get(&endpoint.to_string()),
            _ => None,
        };
        match vantage {
            None => Observation::default(),
            Some(Vantage::Agent(address)) => match Remote::start(address, period) {
                Ok(remote) => {
                    Observation { eye: Some(Eye::Remote(remote)), ..Observation::default() }
                }
                Err(why) => Observation { failure: Some(why), ..Observation::default() },
            },
            Some(here) => Observation::here(here, period),
        }
    }
}

/// The targets that Weighbridge does not start.
fn external(cases: &[Case]) -> BTreeSet<String> {
    let foreign = cases.iter().filter(|case| case.lane.is_foreign());
    foreign.map(|case| case.lane.against.name()).collect()
}

/// The target of an observer.
fn target_of(lookout: &Lookout, targets: &BTreeSet<String>) -> Result<String, Stop> {
    let wrong = |text: String| Err(Stop::usage(format!("--observe {lookout}: {text}")));
    let all = || targets.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let asked = lookout.target.as_ref();
    match asked.map(|url| urls::endpoint(url).map_or_else(|_| url.clone(), |own| own.to_string())) {
        _ if targets.is_empty() => wrong(
            "is for targets given by URL: name one, such as mqtt://HOST:PORT (targets that weigh \
             starts are always observed)"
                .to_owned(),
        ),
        Some(target) if targets.contains(&target) => Ok(target),
        Some(target) => {
            wrong(format!("{target} is not a target of this plan: type one of {}", all()))
        }
        None => match targets.first() {
            Some(only) if targets.len() == 1 => Ok(only.clone()),
            _ => wrong(format!(
                "there are several targets: type URL={} with one of {}",
                lookout.at,
                all()
            )),
        },
    }
}

/// An agent's token may be in the environment, where process lists do not show it.
fn with_token(at: Vantage) -> Vantage {
    match at {
        Vantage::Agent(mut address) => {
            let set = || std::env::var("WEIGH_OBSERVE_TOKEN").ok().filter(|own| !own.is_empty());
            address.token = address.token.or_else(set);
            Vantage::Agent(address)
        }
        here => here,
    }
}

fn try_once(at: &Vantage) -> Result<(), Stop> {
    match at {
        Vantage::Agent(address) => agents::visit(address).map(|_| ()),
        here => match subject(here) {
            Ok(_) => Ok(()),
            Err(error) => Err(Stop::usage(format!("--observe {here}: {error}"))),
        },
    }
}

/// The processes to observe on this machine, and their description.
///
/// # Errors
/// Processes that do not exist, or that the user may not observe.
pub fn subject(at: &Vantage) -> Result<(Subject, String), ObserveError> {
    let roots = Roots::from_environment();
    match at {
        Vantage::Process(pid) => Ok((Subject::tree(*pid)?, named(*pid))),
        Vantage::Port(port) => {
            let path = format!("the listener on port {port}");
            let unseen = |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound => ObserveError::NoListener(*port),
                _ => ObserveError::Unreadable { path, error },
            };
            let pid = listening::holder(*port).map_err(unseen)?;
            Ok((Subject::tree(pid)?, format!("{}, which listens on port {port}", named(pid))))
        }
        Vantage::Container(name) => {
            let container = Engines::from_environment().find(name)?;
            let subject = container.subject(&roots)?;
            let by = match subject {
                Subject::Group(_) => "by its control group",
                Subject::Tree(_) => "by its first process and what descends from it",
            };
            Ok((subject, format!("container {name}, {by}")))
        }
        Vantage::Group(path) => {
            let subject = Subject::group(Group::open(path, &roots)?)?;
            Ok((subject, format!("control group {path}")))
        }
        Vantage::Agent(address) => Err(ObserveError::Unexpected(address.to_string())),
    }
}

fn named(pid: u32) -> String {
    let name = process::name(pid).map_or(String::new(), |name| format!(" ({name})"));
    format!("process {pid}{name}")
}

/// A target that is being observed.
#[derive(Default)]
pub struct Observation {
    eye: Option<Eye>,
    /// Reason for which it is not observed, although it should be.
    failure: Option<String>,
    words: Vec<(String, String)>,
}

enum Eye {
    Sampler(Sampler),
    Remote(Remote),
}

impl Observation {
    fn here(at: &Vantage, period: Duration) -> Observation {
        let begun = subject(at).and_then(|(subject, what)| {
            let cores = subject.cores();
            Ok((Sampler::watch(subject, cores, period)?, what))
        });
        match begun {
            Ok((sampler, what)) => Observation {
                eye: Some(Eye::Sampler(sampler)),
                failure: None,
                words: vec![("target.watched".to_owned(), what)],
            },
            Err(error) => {
                Observation { failure: Some(error.to_string()), ..Observation::default() }
            }
        }
    }

    /// Takes a sample; returns the memory if it is known at once.
    pub fn look(&self) -> Option<u64> {
        match self.eye.as_ref()? {
            Eye::Sampler(sampler) => {
                let memory = sampler.sample().ok()?.memory.bytes();
                (memory > 0).then_some(memory)
            }
            Eye::Remote(remote) => {
                remote.poke();
                None
            }
        }
    }

    /// Reads the samples so far.
    pub fn so_far(&self) -> Option<Since> {
        Some(match self.eye.as_ref()? {
            Eye::Sampler(sampler) => {
                let so_far = sampler.so_far();
                Box::new(move |from_ns| so_far.since(from_ns).map_or(SoFar::Nothing, SoFar::Seen))
            }
            Eye::Remote(remote) => remote.so_far(),
        })
    }

    /// Stops. Of an external target (`is_foreign`) nothing is reported that was not observed up to
    /// `window_ended_ns` of the monotonic clock.
    pub fn end(self, is_foreign: bool, window_ended_ns: u64) -> ObservedTarget {
        let Observation { eye, mut failure, mut words } = self;
        let is_elsewhere = matches!(eye, Some(Eye::Remote(_)));
        let recording = match eye {
            Some(Eye::Sampler(sampler)) => match sampler.stop() {
                Ok(recording) => Some(recording),
                Err(error) => {
                    failure.get_or_insert_with(|| error.to_string());
                    None
                }
            },
            Some(Eye::Remote(remote)) => {
                let told = remote.stop();
                words.extend(told.words);
                failure = failure.or(told.failure);
                told.recording
            }
            None => None,
        };
        if !is_foreign {
            return ObservedTarget { recording, ..ObservedTarget::default() };
        }
        let is_whole = |own: &Recording| own.gone_ns.is_none_or(|gone| gone > window_ended_ns);
        let recording = match recording {
            Some(recording) if !is_whole(&recording) => {
                failure.get_or_insert_with(|| "it ended before the trial did".to_owned());
                None
            }
            other => other,
        };
        if let Some(recording) = &recording {
            failure = None;
            let cores = recording.cores.to_string();
            words.push(("target.watched.cores".to_owned(), cores));
        }
        ObservedTarget { recording, failure, words, is_elsewhere }
    }
}

/// Observations of a target.
#[derive(Default)]
pub struct ObservedTarget {
    /// All samples, if they are complete.
    pub recording: Option<Recording>,
    /// True if another host was observed.
    pub is_elsewhere: bool,
    failure: Option<String>,
    words: Vec<(String, String)>,
}

impl ObservedTarget {
    /// Records what was observed, or why it is unknown.
    pub fn tell(self, finished: &mut TrialFinished) {
        finished.scene.extend(self.words);
        finished.warnings.extend(self.failure.map(|why| Warning::TargetUnwatched(why).record()));
    }
}
