//! The sequence of trials: rounds over all cases, until every case has what the plan asks.

use std::collections::{BTreeMap, HashMap};

use weigh_model::Nanos;
use weigh_model::event::{AxisEnded, Event, TrialFinished};
use weigh_model::plan::{Plan, Repeat};
use weigh_model::trial::Point;
use weigh_model::units::parse_duration;

use crate::scheduler::axes::Axes;
use crate::scheduler::clock::Clock;
use crate::scheduler::order::order;
use crate::scheduler::precision;

/// Finished trials of a plan, and the next one.
///
/// # Examples
///
/// ```
/// use weigh_runner::runner::Runner;
/// use weigh_runner::scheduler::Sequence;
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let text = "vary.protocol = [\"tcp\", \"mqtt\"]\nrepeat.at_least = 3\nload.messages = 100";
/// let (plan, _secrets) = runner.read("example", text)?;
/// assert_eq!(Sequence::new(&plan).remaining().most, 6);
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sequence {
    seed: u64,
    repeat: Repeat,
    points: Vec<Point>,
    /// Cases by their points.
    numbers: HashMap<String, usize>,
    cases: Vec<Case>,
    axes: Axes,
    clock: Clock,
    /// Trials that have started, by their ids.
    begun: HashMap<String, (usize, u32)>,
    /// The first round that may have a trial left, and its order.
    round: (u32, Vec<usize>),
}

/// A trial: a case of the plan by its index, and a repetition from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next {
    /// The index of the case.
    pub case: usize,
    /// The repetition, from 0.
    pub repetition: u32,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This trial.
    Trial(Next),
    /// No trial, because it would end after the plan's time budget; these are left.
    OutOfTime(Remaining),
    /// No trial: the plan is complete.
    Done,
}

/// Number of trials left, ignoring the time budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// If all axes end at the next value and all figures are precise at once.
    pub least: u64,
    /// If no axis ends and no figure is ever precise.
    pub most: u64,
    /// Duration of [`Remaining::least`] trials, by the trials so far and by the plan; 0 if unknown.
    pub time_least: Nanos,
    /// Duration of [`Remaining::most`] trials.
    pub time_most: Nanos,
}

/// State of one case.
#[derive(Clone, Debug, Default)]
struct Case {
    /// By repetition: the figures for the plan's precisions, or `None` for a failed trial.
    done: BTreeMap<u32, Option<Vec<Option<f64>>>>,
    /// Number of checks whether its figures are precise enough.
    looks: u32,
    /// True once it needs no more repetitions.
    is_settled: bool,
    /// True if an earlier case of the plan has the same point.
    is_twin: bool,
}

impl Sequence {
    /// The sequence of a plan before its first trial.
    pub fn new(plan: &Plan) -> Sequence {
        let points = plan.cases.clone();
        let axes = Axes::new(plan, &points);
        let planned = points.iter().map(|point| planned(plan, point)).collect();
        let mut numbers = HashMap::new();
        let mut cases = vec![Case::default(); points.len()];
        for (case, point) in points.iter().enumerate() {
            // Of cases with equal points only the first is measured.
            let first = *numbers.entry(name(point)).or_insert(case);
            cases[case].is_twin = first != case;
        }
        Sequence {
            seed: plan.seed,
            repeat: plan.repeat.clone(),
            numbers,
            cases,
            round: (0, order(plan.seed, 0, &axes.levels())),
            axes,
            clock: Clock::new(planned),
            begun: HashMap::new(),
            points,
        }
    }

    /// The sequence of a plan after these events of its run, and the decisions that follow from
    /// them and are missing because the run crashed before they were written.
    pub fn resume(plan: &Plan, events: &[Event]) -> (Sequence, Vec<Event>) {
        let mut sequence = Sequence::new(plan);
        let mut untold = Vec::new();
        for event in events {
            untold.retain(|decision| !is_same_decision(decision, event));
            untold.extend(sequence.note(event));
        }
        (sequence, untold)
    }

    /// The next trial at the time `elapsed` of the run's own clock. Repeated calls before the trial
    /// ends return the same trial.
    pub fn next(&mut self, elapsed: Nanos) -> Step {
        let Some(next) = self.find_next() else { return Step::Done };
        let end = elapsed + self.clock.expected(next.case);
        match self.repeat.budget {
            Some(budget) if end > budget => Step::OutOfTime(self.remaining()),
            _ => Step::Trial(next),
        }
    }

    /// Applies an event, and returns the decisions that follow from it, as events for the journal.
    /// A result that a signal cut short is ignored; a failed trial is done and not repeated.
    pub fn note(&mut self, event: &Event) -> Vec<Event> {
        match event {
            Event::TrialStarted { trial, point, repetition, at_ns, .. } => {
                if let Some(case) = self.find(point) {
                    self.begun.insert(trial.clone(), (case, *repetition));
                    self.clock.started(case, Nanos(at_ns.unwrap_or(0)));
                }
                Vec::new()
            }
            Event::TrialFinished(result) if result.is_cut_short() => Vec::new(),
            Event::TrialFinished(result) => match self.find(&result.point) {
                Some(case) => self.finished(case, result),
                None => Vec::new(),
            },
            // The next attempt decides.
            Event::TrialFailed { is_repeated: true, .. } => Vec::new(),
            Event::TrialFailed { trial, .. } => match self.begun.get(trial) {
                Some(&(case, repetition)) => self.done(case, repetition, None),
                None => Vec::new(),
            },
            Event::AxisEnded(ended) => {
                self.axes.take_over(ended);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Number of trials left, ignoring the time budget.
    pub fn remaining(&self) -> Remaining {
        let is_weighed = |case: usize| {
            let state = &self.cases[case];
            state.done.contains_key(&0) || state.is_twin || self.axes.leave_out(case)
        };
        let mut remaining = Remaining::default();
        for (case, state) in self.cases.iter().enumerate() {
            if self.axes.leave_out(case) || state.is_settled || state.is_twin {
                continue;
            }
            let undone = |to: u32| u64::from(to).saturating_sub(state.done.len() as u64);
            let (least, most) = (undone(self.repeat.at_least), undone(self.most()));
            let each = self.clock.expected(case).0;
            remaining.most += most;
            remaining.time_most.0 += most * each;
            if !self.axes.may_leave_out(case, is_weighed) {
                remaining.least += least;
                remaining.time_least.0 += least * each;
            }
        }
        remaining
    }

    /// Number of ended trials.
    pub fn done_count(&self) -> u64 {
        self.cases.iter().map(|case| case.done.len() as u64).sum()
    }

    /// The least time that the run's own clock can show, by the events so far.
    pub fn elapsed(&self) -> Nanos {
        self.clock.now()
    }

    /// The next trial of the first unfinished round. Finished rounds never gain a trial, because
    /// the trials of a round depend only on results of earlier rounds.
    fn find_next(&mut self) -> Option<Next> {
        while self.round.0 < self.most() {
            let repetition = self.round.0;
            let found = self.round.1.iter().find(|case| self.is_wanted(**case, repetition));
            if let Some(&case) = found {
                return Some(Next { case, repetition });
            }
            let levels = vec![0; self.cases.len()];
            self.round = (repetition + 1, order(self.seed, repetition + 1, &levels));
        }
        None
    }

    fn is_wanted(&self, case: usize, repetition: u32) -> bool {
        let state = &self.cases[case];
        !state.done.contains_key(&repetition)
            && !state.is_twin
            && !self.axes.leave_out(case)
            && (repetition < self.repeat.at_least || !state.is_settled)
    }

    fn finished(&mut self, case: usize, result: &TrialFinished) -> Vec<Event> {
        let mut decisions = Vec::new();
        // An edited journal may have results of rounds that the plan does not have.
        if result.repetition == 0 {
            let ended = self.axes.judge(case, result);
            decisions.extend(ended.into_iter().map(|ended| Event::AxisEnded(Box::new(ended))));
        }
        let until = self.repeat.until.iter();
        let figures = until.map(|precision| result.figure(&precision.metric)).collect();
        decisions.extend(self.done(case, result.repetition, Some(figures)));
        decisions
    }

    /// Notes the end of a trial, with figures or without. Checks whether its case needs more: once
    /// for each number of repetitions, in their order, independent of the order of arrival.
    fn done(
        &mut self,
        case: usize,
        repetition: u32,
        figures: Option<Vec<Option<f64>>>,
    ) -> Vec<Event> {
        self.clock.ended();
        let most = self.most();
        let state = &mut self.cases[case];
        state.done.insert(repetition, figures);
        while !state.is_settled {
            let count = self.repeat.at_least + state.looks;
            if (0..count).any(|at| !state.done.contains_key(&at)) {
                return Vec::new();
            }
            state.looks += 1;
            let results: Vec<&[Option<f64>]> =
                state.done.range(..count).filter_map(|(_, done)| done.as_deref()).collect();
            let is_reached = precision::is_reached(&self.repeat.until, &results);
            let is_measured = results.iter().any(|figures| figures.iter().any(Option::is_some));
            let is_precise = is_reached && is_measured;
            state.is_settled = is_reached || count >= most;
            if state.is_settled && !self.repeat.until.is_empty() {
                let (point, looks) = (self.points[case].clone(), state.looks);
                return vec![Event::CaseSettled { point, repetitions: count, looks, is_precise }];
            }
        }
        Vec::new()
    }

    /// The maximum number of repetitions: above the minimum only if precisions decide.
    fn most(&self) -> u32 {
        if self.repeat.until.is_empty() { self.repeat.at_least } else { self.repeat.most() }
    }

    fn find(&self, point: &Point) -> Option<usize> {
        self.numbers.get(&name(point)).copied()
    }
}

fn name(point: &Point) -> String {
    serde_json::to_string(point).unwrap_or_default()
}

/// Planned duration of a trial: pause, idle phases, lead of a background, warm-up and load; unknown
/// if messages limit it.
fn planned(plan: &Plan, point: &Point) -> Option<Nanos> {
    let of_point = |key: &str| parse_duration(point.get(key)?.as_str()?).ok();
    let duration = of_point("load.duration").or(plan.load.duration)?;
    let warmup = of_point("load.warmup").unwrap_or(plan.load.warmup);
    let idle = plan.observe.idle_each();
    let has_background = point.get("background").and_then(|state| state.as_str()) == Some("on");
    let lead = plan.background.as_ref().filter(|_| has_background).map_or(Nanos(0), |own| own.lead);
    Some(plan.repeat.cool_down + idle + idle + lead + warmup + duration)
}

fn is_same_decision(left: &Event, right: &Event) -> bool {
    match (left, right) {
        (Event::AxisEnded(left), Event::AxisEnded(right)) => {
            let key =
                |ended: &AxisEnded| (ended.axis.clone(), ended.lane.clone(), ended.at.clone());
            key(left) == key(right)
        }
        (Event::CaseSettled { point: left, .. }, Event::CaseSettled { point: right, .. }) => {
            left == right
        }
        _ => false,
    }
}
