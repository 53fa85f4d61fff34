//! The search for one or more goals at once: the next trial, and its consequences. The draft's
//! Controller (section 4.9.2) as a state machine; the caller runs the trials.

use std::collections::BTreeMap;
use weigh_model::numbers::{count, exact};

use serde::{Deserialize, Serialize};
use weigh_model::protocol::Invalid;
use weigh_model::units::Nanos;

use crate::answer::{Answer, Bound, GoalAnswer, Outcome, Stop, TrialRecord};
use crate::axis::{Axis, AxisKind, Step};
use crate::bounds::{Measured, Relevant, Trials};
use crate::goal::{Goal, MissingFigure};
use crate::pursuit::{Pursuit, is_reached, relative_width};
use crate::quantity::Quantity;
use crate::standing::{self, Remaining, SIMULATED_MAX};
use crate::trial::{Purpose, TrialEnd, TrialRequest, TrialResult};

/// A search to be done.
///
/// # Examples
///
/// The limit of a simulated target that carries 700 messages/s:
///
/// ```
/// use weigh_limit::{Axis, AxisKind, Goal, Search, Selector, TrialEnd, TrialResult};
///
/// let axis = Axis::new(AxisKind::Rate, 100.0, 10_000.0, 1.0)?;
/// let mut selector = Selector::new(Search::new(axis, vec![Goal::minute()]))?;
/// while let Some(request) = selector.next_trial() {
///     let due = (request.load * request.duration.as_secs_f64()) as u64;
///     let carried = due.min((700.0 * request.duration.as_secs_f64()) as u64);
///     selector.note(TrialResult {
///         load: request.load,
///         duration: request.duration,
///         elapsed: request.duration,
///         forwarded: carried,
///         lost: due - carried,
///         figures: Default::default(),
///         end: TrialEnd::Completed,
///     })?;
/// }
/// let answer = selector.answer();
/// assert_eq!(answer.stop, weigh_limit::Stop::Complete);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The axis, its ends and its steps.
    pub axis: Axis,
    /// The goals; at least one, with different names. The draft recommends the same final trial
    /// duration for all.
    pub goals: Vec<Goal>,
    /// No trial begins that would exceed this time, including what trials take beyond their
    /// duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Nanos>,
    /// Maximum number of trials.
    pub trials_max: usize,
    /// The messages that a trial needs, if a goal has a condition on a quantile: trials with fewer
    /// are lengthened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
}

impl Search {
    /// A search without a time budget.
    pub fn new(axis: Axis, goals: Vec<Goal>) -> Search {
        Search { axis, goals, budget: None, trials_max: TRIALS_MAX, quantity: None }
    }

    fn check(&self) -> Result<(), Invalid> {
        if self.goals.is_empty() {
            let fix = format!("name one or more of {}", Goal::PRESETS.join(", "));
            return Err(Invalid::new("limit.goals", "there is no goal", fix));
        }
        for (index, goal) in self.goals.iter().enumerate() {
            goal.check()?;
            if self.goals[..index].iter().any(|other| other.name == goal.name) {
                let problem = format!("two goals are called {:?}", goal.name);
                return Err(Invalid::new("limit.goals", problem, "give each its own name"));
            }
        }
        Ok(())
    }
}

/// A result that the search cannot use.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unusable {
    /// No trial was requested.
    #[error("no trial was requested: request one before its result")]
    NotAsked,
    /// Another trial was requested.
    #[error("a trial at {asked} for {duration} was requested, this is one at {got} for {lasted}")]
    NotThisOne {
        /// The requested load.
        asked: f64,
        /// The requested duration.
        duration: Nanos,
        /// The load of the result.
        got: f64,
        /// The duration of the result.
        lasted: Nanos,
    },
    /// A figure is missing.
    #[error(transparent)]
    Missing(#[from] MissingFigure),
    /// There were no messages.
    #[error("at a load of {load} no message was due: make the trial longer or the load larger")]
    Empty {
        /// The load.
        load: f64,
    },
}

/// Why results do not belong to a search.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The search itself is not possible.
    #[error(transparent)]
    Search(#[from] Invalid),
    /// A result that the search did not request.
    #[error("result {index}: {problem}")]
    Result {
        /// Its index in the list, from 0.
        index: usize,
        /// What is wrong with it.
        problem: Unusable,
    },
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Selector {
    search: Search,
    trials: Trials,
    pursuits: Vec<Pursuit>,
    pending: Option<TrialRequest>,
    stop: Option<Stop>,
    records: Vec<TrialRecord>,
    time_used: Nanos,
    /// Time that trials took beyond their duration.
    overhead: Nanos,
    target_is_dead: bool,
    /// Loads whose trials had too few messages: the duration of the next one, and how often it
    /// grew.
    lengthened: BTreeMap<Step, (Nanos, u32)>,
    /// Why nothing above the largest load that passed is offered any more.
    capped: Option<String>,
}

impl Selector {
    /// Begins a search.
    ///
    /// # Errors
    /// The place and the fix, if the search could not end.
    pub fn new(search: Search) -> Result<Selector, Invalid> {
        search.check()?;
        let pursuits = search.goals.iter().enumerate();
        let pursuits = pursuits.map(|(index, goal)| Pursuit::new(index, goal)).collect();
        Ok(Selector {
            search,
            trials: Trials::default(),
            pursuits,
            pending: None,
            stop: None,
            records: Vec::new(),
            time_used: Nanos(0),
            overhead: Nanos(0),
            target_is_dead: false,
            lengthened: BTreeMap::new(),
            capped: None,
        })
    }

    /// The next trial, the same until its result is noted; `None` once the search has ended.
    pub fn next_trial(&mut self) -> Option<TrialRequest> {
        if self.stop.is_some() {
            return None;
        }
        if self.pending.is_none() {
            let Some(request) = self.wanted() else {
                self.stop = Some(self.capped.clone().map_or(Stop::Complete, Stop::Invalid));
                return None;
            };
            if self.records.len() >= self.search.trials_max {
                self.stop = Some(Stop::TooManyTrials(self.search.trials_max));
                return None;
            }
            if self.search.budget.is_some_and(|budget| self.would_take(&request) > budget) {
                self.stop = Some(Stop::Budget);
                return None;
            }
            self.pending = Some(request);
        }
        self.pending.clone()
    }

    /// Takes the result of the requested trial. A result that cannot be used changes nothing: the
    /// same trial is requested again.
    ///
    /// # Errors
    /// If the result is not that of the requested trial, or cannot be used.
    pub fn note(&mut self, result: TrialResult) -> Result<(), Unusable> {
        let request = self.pending.clone().ok_or(Unusable::NotAsked)?;
        if result.load != request.load || result.duration != request.duration {
            return Err(Unusable::NotThisOne {
                asked: request.load,
                duration: request.duration,
                got: result.load,
                lasted: result.duration,
            });
        }
        let mut missed = Vec::new();
        if !matches!(result.end, TrialEnd::Invalid(_) | TrialEnd::TooFew { .. }) {
            if result.end == TrialEnd::Completed && result.forwarded + result.lost == 0 {
                return Err(Unusable::Empty { load: result.load });
            }
            for goal in &self.search.goals {
                missed.push(goal.missed(&result)?);
            }
        }
        self.pending = None;
        self.time_used = self.time_used + result.elapsed;
        self.overhead = self.overhead + result.elapsed.since(result.duration);
        self.target_is_dead = matches!(result.end, TrialEnd::TargetDied(_));
        if let TrialEnd::Invalid(why) = &result.end {
            self.go_no_higher(why);
        } else if let TrialEnd::TooFew { metric, had, needed } = &result.end {
            self.lengthen(&request, metric, (*had, *needed));
        } else {
            self.take(request, result, missed);
            return Ok(());
        }
        self.record(request, result, missed);
        Ok(())
    }

    /// The state after these results, as a report computes it from a journal: the next trial
    /// depends only on the search and the results before it. A result that was not requested is an
    /// error with its index in the list.
    ///
    /// # Errors
    /// If the search is not possible, or a result was not requested.
    pub fn replay(
        search: Search,
        results: impl IntoIterator<Item = TrialResult>,
    ) -> Result<Selector, ReplayError> {
        let mut selector = Selector::new(search)?;
        for (index, result) in results.into_iter().enumerate() {
            selector.next_trial();
            selector.note(result).map_err(|problem| ReplayError::Result { index, problem })?;
        }
        selector.next_trial();
        Ok(selector)
    }

    /// The answer at this moment: at the end, or bounds so far.
    pub fn answer(&self) -> Answer {
        Answer {
            axis: self.search.axis.kind(),
            goals: (0..self.search.goals.len()).map(|index| self.goal_answer(index)).collect(),
            stop: self.stop.clone().unwrap_or(Stop::Running),
            trials: self.records.clone(),
            time_used: self.time_used,
        }
    }

    /// The number of trials left, and their time with `overhead` each, if the limit of every goal
    /// is `load`: the need of a search before it begins.
    pub fn forecast(&self, load: f64, overhead: Nanos) -> Remaining {
        let limit = load / self.search.axis.granularity();
        let mut own = Selector { stop: None, pending: None, ..self.clone() };
        own.simulate(&vec![limit; self.search.goals.len()], overhead, |_| false)
    }

    /// What is left until the answer of `goal` is proven, if the limit is where it seems to be.
    fn remaining(&self, goal: usize) -> Remaining {
        let axis = &self.search.axis;
        let limit = |index: usize| standing::guess(self.best(index), axis.first(), axis.last());
        let limits: Vec<f64> = (0..self.search.goals.len()).map(limit).collect();
        let overhead = Nanos(self.overhead.0 / self.records.len().max(1) as u64);
        let mut own = Selector { stop: None, pending: None, ..self.clone() };
        own.simulate(&limits, overhead, |own| own.is_proven(goal))
    }

    /// Simulates the search as if each goal were met up to its limit, in steps, until `is_enough`
    /// or the end.
    fn simulate(
        &mut self,
        limits: &[f64],
        overhead: Nanos,
        is_enough: impl Fn(&Selector) -> bool,
    ) -> Remaining {
        let mut left = Remaining::default();
        let lowest = limits.iter().copied().fold(f64::INFINITY, f64::min);
        while left.trials < SIMULATED_MAX && !is_enough(self) {
            let Some(request) = self.wanted() else { break };
            left.trials += 1;
            let time = request.duration.0.saturating_add(overhead.0);
            left.time = Nanos(left.time.0.saturating_add(time));
            let step = self.search.axis.nearest(request.load) as f64;
            let fails = |limit: &f64| step > *limit;
            let missed: Vec<_> =
                limits.iter().map(|limit| fails(limit).then(String::new)).collect();
            let (due, lost) = (1_000_000, 1e6 * (1.0 - lowest / step).max(0.0));
            let result = TrialResult {
                load: request.load,
                duration: request.duration,
                elapsed: Nanos(time),
                forwarded: due - lost as u64,
                lost: lost as u64,
                figures: BTreeMap::new(),
                end: TrialEnd::Completed,
            };
            self.target_is_dead = false;
            self.take(request, result, missed);
        }
        left
    }

    /// Takes a valid result of a load, by goal.
    fn take(&mut self, request: TrialRequest, result: TrialResult, missed: Vec<Option<String>>) {
        if request.purpose == Purpose::Search {
            let measured = Measured {
                duration: result.duration,
                loss_ratio: result.loss_ratio(),
                has_died: self.target_is_dead,
                is_high_loss: missed.iter().map(Option::is_some).collect(),
            };
            self.trials.add(self.search.axis.nearest(request.load), measured);
        }
        self.record(request, result, missed);
    }

    /// Continues after an invalid trial: if nothing has failed yet, the largest load that passed is
    /// still confirmed, and nothing above it is offered again. Otherwise the search ends.
    fn go_no_higher(&mut self, why: &str) {
        let all = (0..self.search.goals.len()).map(|goal| self.best(goal));
        let known: Vec<Relevant> = all.collect();
        let passed = known.iter().map(|best| best.lower).min().flatten();
        let axis = &self.search.axis;
        let is_open = self.capped.is_none() && known.iter().all(|best| best.upper.is_none());
        match passed.and_then(|step| axis.up_to(step)).filter(|_| is_open) {
            Some(axis) => {
                self.search.axis = axis;
                self.capped = Some(why.to_owned());
            }
            None => self.stop = Some(Stop::Invalid(why.to_owned())),
        }
    }

    /// The next trial at this load is long enough for the messages that were missing in this one.
    fn lengthen(&mut self, request: &TrialRequest, metric: &str, (had, needed): (u64, u64)) {
        let step = self.search.axis.nearest(request.load);
        let grown = self.lengthened.get(&step).map_or(0, |(_, grown)| *grown);
        if grown >= LENGTHENED_MAX {
            let unit = self.search.axis.kind().unit();
            self.stop = Some(Stop::Invalid(format!(
                "{metric} needs {} messages, and a trial of {} at {}{unit} had {}",
                count(needed),
                request.duration,
                exact(request.load),
                count(had)
            )));
            return;
        }
        let short_by = needed as f64 / had.max(1) as f64 * SPARE_FACTOR;
        let factor = short_by.clamp(GROWTH_MIN, GROWTH_MAX);
        let duration = Nanos((request.duration.0 as f64 * factor) as u64);
        self.lengthened.insert(step, (duration, grown + 1));
    }

    /// The next trial of the search or of its confirmation, as long as its messages need.
    fn wanted(&mut self) -> Option<TrialRequest> {
        let mut request = self.searching().or_else(|| self.sustaining())?;
        let step = self.search.axis.nearest(request.load);
        let by_rate = self.search.quantity.map(|quantity| quantity.duration(request.load));
        let by_trial = self.lengthened.get(&step).map(|(duration, _)| *duration);
        let longest = by_rate.max(by_trial).unwrap_or_default();
        request.duration = request.duration.max(longest);
        Some(request)
    }

    /// The next trial for the goals: the coarsest one, then the smallest load.
    fn searching(&mut self) -> Option<TrialRequest> {
        let (axis, trials) = (&self.search.axis, &self.trials);
        let wanted = self.pursuits.iter_mut().enumerate();
        let wanted = wanted.filter_map(|(goal, pursuit)| Some((goal, pursuit.next(axis, trials)?)));
        let (goal, first) = wanted.min_by_key(|(_, wanted)| (wanted.duration_sum, wanted.step))?;
        Some(TrialRequest {
            load: axis.load(first.step),
            duration: first.duration,
            goal,
            purpose: Purpose::Search,
            restart: self.target_is_dead,
        })
    }

    /// The trial at a lower bound that must still hold for long.
    fn sustaining(&self) -> Option<TrialRequest> {
        let open = |(goal, asked): (usize, &Goal)| {
            let duration = asked.sustain?;
            let lower = self.relevant(goal).lower?;
            let load = self.search.axis.load(lower);
            self.sustained(goal).is_none().then_some(TrialRequest {
                load,
                duration,
                goal,
                purpose: Purpose::Sustain,
                restart: self.target_is_dead,
            })
        };
        self.search.goals.iter().enumerate().find_map(open)
    }

    /// Whether the goal's lower bound was sustained: `None` if it was not tried, else why it did
    /// not hold, if it did not.
    fn sustained(&self, goal: usize) -> Option<Option<&str>> {
        let duration = self.search.goals[goal].sustain?;
        let load = self.search.axis.load(self.relevant(goal).lower?);
        let is_it = |record: &&TrialRecord| {
            record.request.purpose == Purpose::Sustain
                && record.request.load == load
                && record.request.duration >= duration
                && !record.missed.is_empty()
        };
        self.records.iter().find(is_it).map(|record| record.missed[goal].as_deref())
    }

    fn would_take(&self, request: &TrialRequest) -> Nanos {
        let trials = self.records.len().max(1) as u64;
        let overhead = self.overhead.0 / trials;
        Nanos(self.time_used.0.saturating_add(request.duration.0).saturating_add(overhead))
    }

    fn best(&self, goal: usize) -> Relevant {
        standing::best(self.pursuits[goal].so_far(&self.trials), &self.trials, goal)
    }

    fn is_proven(&self, goal: usize) -> bool {
        let found = self.relevant(goal);
        is_reached(&self.search.axis, &found, self.search.goals[goal].width)
            && (self.search.goals[goal].sustain.is_none() || self.sustained(goal).is_some())
    }

    fn relevant(&self, goal: usize) -> Relevant {
        self.trials.relevant(self.pursuits[goal].goal())
    }

    fn record(&mut self, request: TrialRequest, result: TrialResult, missed: Vec<Option<String>>) {
        let axis = &self.search.axis;
        let step = axis.nearest(request.load);
        let load = |step: Option<Step>| step.map(|step| axis.load(step));
        let bounds = |goal: usize| {
            let found = self.relevant(goal);
            (load(found.lower), load(found.upper))
        };
        let standing = |goal: usize| self.trials.standing(step, self.pursuits[goal].goal());
        let record = TrialRecord {
            standings: (0..missed.len()).map(standing).collect(),
            bounds: (0..self.pursuits.len()).map(bounds).collect(),
            request,
            result,
            missed,
        };
        self.records.push(record);
    }

    fn goal_answer(&self, index: usize) -> GoalAnswer {
        let (goal, axis) = (&self.search.goals[index], &self.search.axis);
        let target = self.pursuits[index].goal();
        let found = self.relevant(index);
        let lower = found.lower.map(|step| self.bound(step, index));
        let upper = found.upper.map(|step| self.bound(step, index));
        let width = lower.zip(upper).map(|(lower, upper)| relative_width(lower.load, upper.load));
        let outcome = self.outcome(index, &found, width);
        let throughput =
            |step: Step| self.trials.conditional_throughput(step, axis.load(step), target);
        let is_rate = axis.kind() == AxisKind::Rate;
        let so_far = self.pursuits[index].so_far(&self.trials);
        let best = self.best(index);
        let is_open = outcome == Outcome::Undecided;
        let load = |step: Option<Step>| step.map(|step| axis.load(step));
        let own: Vec<&TrialRecord> =
            self.records.iter().filter(|record| record.request.goal == index).collect();
        GoalAnswer {
            goal: goal.clone(),
            axis: axis.kind(),
            lower,
            upper,
            expected: (load(so_far.lower), load(so_far.upper)),
            best: (load(best.lower), load(best.upper)),
            remaining: is_open.then(|| self.remaining(index)),
            unproven: is_open.then(|| self.unproven(index)),
            width,
            is_regular: outcome == Outcome::Decided,
            conditional_throughput: found.lower.filter(|_| is_rate).and_then(throughput),
            outcome,
            trials: own.len(),
            time_used: own.iter().fold(Nanos(0), |sum, record| sum + record.result.elapsed),
        }
    }

    /// Why the answer of a goal is not proven: what ended the search, or how much of it is left.
    fn unproven(&self, index: usize) -> String {
        match &self.stop {
            Some(Stop::Invalid(why)) => why.clone(),
            Some(Stop::TooManyTrials(most)) => format!("{most} trials were not enough"),
            _ => {
                let Remaining { trials, time } = self.remaining(index);
                let at_least = match self.best(index) {
                    Relevant { lower: Some(_), upper: Some(_) } => "",
                    _ => "at least ",
                };
                let trials = match trials {
                    1 => "1 more trial".to_owned(),
                    SIMULATED_MAX.. => format!("more than {SIMULATED_MAX} trials"),
                    _ => format!("{trials} more trials"),
                };
                format!("{at_least}{trials} (about {})", time.rough())
            }
        }
    }

    fn outcome(&self, index: usize, found: &Relevant, width: Option<f64>) -> Outcome {
        let goal = &self.search.goals[index];
        let is_cut = self.capped.is_some() && found.upper.is_none();
        if is_cut || !is_reached(&self.search.axis, found, goal.width) {
            return Outcome::Undecided;
        }
        if found.lower.is_none() {
            let load = self.search.axis.min();
            let at_min = |record: &&TrialRecord| record.request.load == load;
            let missed = |record: &TrialRecord| record.missed.get(index).cloned().flatten();
            let why = self.records.iter().rev().filter(at_min).find_map(missed);
            return Outcome::NeverMet(why.unwrap_or_default());
        }
        if goal.sustain.is_some() {
            match self.sustained(index) {
                None => return Outcome::Undecided,
                Some(Some(why)) => return Outcome::Withdrawn(why.to_owned()),
                Some(None) => {}
            }
        }
        match width {
            None => Outcome::HoldsAtMax,
            Some(width) if width > goal.width => Outcome::AtGranularity,
            Some(_) => Outcome::Decided,
        }
    }

    fn bound(&self, step: Step, goal: usize) -> Bound {
        let trials = self.trials.at(step);
        Bound {
            load: self.search.axis.load(step),
            trials: trials.len(),
            time: trials.iter().fold(Nanos(0), |sum, trial| sum + trial.duration),
            missed: trials.iter().filter(|trial| trial.is_high_loss[goal]).count(),
            has_died: trials.iter().any(|trial| trial.has_died),
        }
    }
}

/// Maximum number of times that the trials of one load are lengthened before the search ends.
const LENGTHENED_MAX: u32 = 6;

/// Margin by which a trial is lengthened beyond what was missing.
const SPARE_FACTOR: f64 = 1.1;

/// Smallest and largest growth of a trial.
const GROWTH_MIN: f64 = 1.25;
const GROWTH_MAX: f64 = 20.0;

/// A search of three goals over six orders of magnitude takes some hundreds of trials; more than
/// this means that the target's answers contradict each other.
const TRIALS_MAX: usize = 10_000;
