//! Who looks at a target while a trial runs: at one that we have started by its process, at
//! somebody else's by what `--observe` names. Without a look its figures are absent, and a look
//! that fails takes them away with a doubt.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weigh_model::Doubt;
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

/// What is watched of targets that somebody else runs, by their URLs.
#[derive(Clone, Debug, Default)]
pub struct Lookouts(BTreeMap<String, Vantage>);

impl Lookouts {
    /// Those of a plan, each tried once before anything starts.
    ///
    /// # Errors
    /// If one names no target of these cases, or nothing that can be watched.
    pub fn open(asked: &[Lookout], cases: &[Case]) -> Result<Lookouts, Stop> {
        let foreign = cases.iter().filter(|case| case.lane.is_foreign());
        let targets: BTreeSet<String> = foreign.map(|case| case.lane.against.name()).collect();
        let mut all = BTreeMap::new();
        for lookout in asked {
            let target = target_of(lookout, &targets)?;
            let at = with_token(lookout.at.clone());
            try_once(&at)?;
            if all.insert(target.clone(), at).is_some() {
                return Err(Stop::usage(format!(
                    "--observe {lookout}: {target} is watched already: leave one out"
                )));
            }
        }
        Ok(Lookouts(all))
    }

    /// Begins to watch the target of `lane`, whose process is `pid` where we have started it and
    /// which was given `cores` cores then.
    pub fn begin(&self, lane: &Lane, (pids, cores): (&[u32], u32), period: Duration) -> Outlook {
        if !pids.is_empty() {
            // One that has ended already is told of as a target that has died.
            let eye = Sampler::start_of(pids, cores, period).ok().map(Eye::Sampler);
            return Outlook { eye, ..Outlook::default() };
        }
        let vantage = match &lane.against {
            Against::Foreign(endpoint) => self.0.get(&endpoint.to_string()),
            _ => None,
        };
        match vantage {
            None => Outlook::default(),
            Some(Vantage::Agent(address)) => match Remote::start(address, period) {
                Ok(remote) => Outlook { eye: Some(Eye::Remote(remote)), ..Outlook::default() },
                Err(why) => Outlook { failure: Some(why), ..Outlook::default() },
            },
            Some(here) => Outlook::here(here, period),
        }
    }
}

/// Which target a lookout is of.
fn target_of(lookout: &Lookout, targets: &BTreeSet<String>) -> Result<String, Stop> {
    let wrong = |text: String| Err(Stop::usage(format!("--observe {lookout}: {text}")));
    let all = || targets.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let asked = lookout.target.as_ref();
    match asked.map(|url| urls::endpoint(url).map_or_else(|_| url.clone(), |own| own.to_string())) {
        _ if targets.is_empty() => wrong(
            "is for targets given by URL: name one, such as mqtt://HOST:PORT (those that weigh \
             starts are watched anyway)"
                .to_owned(),
        ),
        Some(target) if targets.contains(&target) => Ok(target),
        Some(target) => wrong(format!("{target} is no target here: type one of {}", all())),
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

/// An agent's token may stand in the environment, where no list of processes shows it.
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

/// What is to be watched on this machine, and in words.
///
/// # Errors
/// If it is not there, or we may not look.
pub fn subject(at: &Vantage) -> Result<(Subject, String), ObserveError> {
    let roots = Roots::from_environment();
    match at {
        Vantage::Process(pid) => Ok((Subject::tree(*pid)?, named(*pid))),
        Vantage::Port(port) => {
            let path = format!("who listens on port {port}");
            let unseen = |error| ObserveError::Unreadable { path, error };
            let pid = listening::holder(*port).map_err(unseen)?;
            Ok((Subject::tree(pid)?, format!("{}, who listens on port {port}", named(pid))))
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

/// A target while it is watched.
#[derive(Default)]
pub struct Outlook {
    eye: Option<Eye>,
    /// Why nobody looks, where somebody should.
    failure: Option<String>,
    words: Vec<(String, String)>,
}

enum Eye {
    Sampler(Sampler),
    Remote(Remote),
}

impl Outlook {
    fn here(at: &Vantage, period: Duration) -> Outlook {
        let begun = subject(at).and_then(|(subject, what)| {
            let cores = subject.cores();
            Ok((Sampler::watch(subject, cores, period)?, what))
        });
        match begun {
            Ok((sampler, what)) => Outlook {
                eye: Some(Eye::Sampler(sampler)),
                failure: None,
                words: vec![("target.watched".to_owned(), what)],
            },
            Err(error) => Outlook { failure: Some(error.to_string()), ..Outlook::default() },
        }
    }

    /// Looks now; the memory, where that is told at once.
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

    /// Reads what is seen while the watch goes on.
    pub fn so_far(&self) -> Option<Since> {
        Some(match self.eye.as_ref()? {
            Eye::Sampler(sampler) => {
                let so_far = sampler.so_far();
                Box::new(move |from_ns| so_far.since(from_ns).map_or(SoFar::Nothing, SoFar::Seen))
            }
            Eye::Remote(remote) => remote.so_far(),
        })
    }

    /// Ends the watch. Of a target that is not ours (`is_foreign`) nothing is told that was not
    /// seen up to `window_ended_ns` of the monotonic clock.
    pub fn end(self, is_foreign: bool, window_ended_ns: u64) -> Sighted {
        let Outlook { eye, mut failure, mut words } = self;
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
            return Sighted { recording, ..Sighted::default() };
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
        Sighted { recording, failure, words, is_elsewhere }
    }
}

/// What was seen of a target.
#[derive(Default)]
pub struct Sighted {
    /// All looks, where they are whole.
    pub recording: Option<Recording>,
    /// True if it was another host that was looked at.
    pub is_elsewhere: bool,
    failure: Option<String>,
    words: Vec<(String, String)>,
}

impl Sighted {
    /// Says in the record what was watched, or why what was asked for is not known.
    pub fn tell(self, finished: &mut TrialFinished) {
        finished.scene.extend(self.words);
        finished.doubts.extend(self.failure.map(|why| Doubt::TargetUnwatched(why).record()));
    }
}
