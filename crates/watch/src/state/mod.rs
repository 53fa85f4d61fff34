//! The state of a run, as far as its journal and its live file were read.

mod headline;
mod names;
mod point;
mod trial;

use std::collections::VecDeque;

use names::Names;
use weigh_model::event::{Event, Interval, RunStarted};
use weigh_model::live::Second;
use weigh_model::{Condition, Ledger};

pub use headline::Headline;
pub use point::{P99, Point};
pub use trial::{Outcome, Trial};

/// A run, from its first event to the last that was read.
#[derive(Debug, Default)]
pub struct RunState {
    /// What is known from the first event; `None` before it.
    pub run: Option<RunFacts>,
    /// The trials that began, in their order. A trial that is done again has its old place.
    pub trials: Vec<Trial>,
    /// Courses of the last [`COURSES_MAX`] trials: place in `trials` and its intervals.
    courses: VecDeque<(usize, Vec<Point>)>,
    names: Names,
    /// Place of the trial in progress.
    pub current: Option<usize>,
    /// The last ten minutes of live seconds.
    pub seconds: VecDeque<Second>,
    /// Sum of the ledgers of all finished trials; `None` before the first.
    pub ledger: Option<Ledger>,
    /// Decisions and failures in words, the newest last, at most [`NOTES_MAX`].
    pub notes: VecDeque<String>,
    /// Outcome of the run's last session: `done`, `interrupted` or `failed`.
    pub outcome: Option<String>,
    /// Lines of the journal that are not events.
    pub bad_lines: u64,
    /// The format of the journal, if this version cannot read it.
    pub unknown_format: Option<String>,
}

/// Facts about the run that hold from its start.
#[derive(Debug)]
pub struct RunFacts {
    /// Its id.
    pub id: String,
    /// Start, RFC 3339.
    pub started: String,
    /// The version of Weighbridge that started it.
    pub version: String,
    /// Its name.
    pub name: String,
    /// Cores of the machine.
    pub cores: u32,
    /// Conditions that its cells must meet.
    pub thresholds: Vec<Condition>,
}

impl RunState {
    /// Adds a line of the journal.
    pub fn add_line(&mut self, text: &[u8]) {
        match serde_json::from_slice::<Event>(text) {
            Ok(Event::RunStarted(started)) if self.run.is_none() => self.begin(*started),
            Ok(event) => self.add(event),
            Err(_) => self.bad_lines += 1,
        }
    }

    /// Adds seconds of the live file.
    pub fn add_seconds(&mut self, seconds: Vec<Second>) {
        for second in seconds {
            // A new file begins again at 1.
            if self.seconds.back().is_some_and(|last| last.number >= second.number) {
                self.seconds.clear();
            }
            self.seconds.push_back(second);
            if self.seconds.len() > SECONDS_MAX {
                self.seconds.pop_front();
            }
        }
    }

    /// The course of a trial: each second while it is the last of the live file, else its
    /// intervals. Empty for a trial so long ago that its course is only in the report.
    pub fn course(&self, place: usize) -> Vec<Point> {
        if self.is_live(place) {
            let number = self.seconds.back().map(|second| second.standing.number);
            let own = |second: &&Second| Some(second.standing.number) == number;
            let points = self.seconds.iter().filter(own).filter_map(Point::of_second);
            return points.collect();
        }
        let known = self.courses.iter().find(|(own, _)| *own == place);
        known.map_or_else(Vec::new, |(_, points)| points.clone())
    }

    /// The last interval that the journal has of a trial: the only place of the target's CPU and
    /// memory while the trial runs.
    pub fn last_interval(&self, place: usize) -> Option<&Point> {
        self.courses.iter().find(|(own, _)| *own == place)?.1.last()
    }

    /// Name of a trial's case, as in tables.
    pub fn name(&self, place: usize) -> &str {
        self.names.name(&self.trials[place].point).unwrap_or("?")
    }

    /// The trial in progress, or the last that began.
    pub fn newest(&self) -> Option<usize> {
        self.current.or(self.trials.len().checked_sub(1))
    }

    /// The newest point of a trial: of the live file, or of the journal.
    pub fn newest_point(&self, place: usize) -> Option<Point> {
        match self.is_live(place) {
            true => self.seconds.back().and_then(Point::of_second),
            false => self.last_interval(place).cloned(),
        }
    }

    /// Number of trials with a result.
    pub fn done(&self) -> usize {
        self.trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Done(_))).count()
    }

    /// For each threshold of the plan: the condition, and the numbers of trials in which it holds,
    /// fails, and has no figure. A cell is judged by all its trials, in the report.
    pub fn thresholds(&self) -> Vec<(String, [u64; 3])> {
        let conditions = self.run.iter().flat_map(|run| run.thresholds.iter());
        let held = |place: usize| {
            let mut counts = [0; 3];
            for trial in &self.trials {
                if let Outcome::Done(headline) = &trial.outcome {
                    counts[match headline.thresholds.get(place).copied().flatten() {
                        Some(true) => 0,
                        Some(false) => 1,
                        None => 2,
                    }] += 1;
                }
            }
            counts
        };
        conditions.enumerate().map(|(place, own)| (own.to_string(), held(place))).collect()
    }

    /// True while live seconds are of this trial.
    fn is_live(&self, place: usize) -> bool {
        let has_counts = self.seconds.back().is_some_and(|second| second.counts.is_some());
        self.current == Some(place) && has_counts
    }

    fn begin(&mut self, started: RunStarted) {
        if started.schema != weigh_model::event::JOURNAL_SCHEMA {
            self.unknown_format = Some(format!("{}, by weigh {}", started.schema, started.version));
        }
        self.names = Names::of_plan(started.plan.cases);
        self.run = Some(RunFacts {
            id: started.id,
            started: started.started,
            version: started.version,
            name: started.plan.name,
            cores: started.host.cores,
            thresholds: started.plan.thresholds,
        });
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::TrialStarted { trial, point, repetition, .. } => {
                self.outcome = None;
                let place = self.place_of(&trial).unwrap_or(self.trials.len());
                self.names.begin(&point);
                let begun = Trial::new(trial, point, repetition);
                match self.trials.get_mut(place) {
                    Some(again) => {
                        *again = begun;
                        self.count_again();
                    }
                    None => self.trials.push(begun),
                }
                self.current = Some(place);
                self.courses.retain(|(own, _)| *own != place);
                self.courses.push_back((place, Vec::new()));
                if self.courses.len() > COURSES_MAX {
                    self.courses.pop_front();
                }
            }
            Event::Interval(interval) => self.add_interval(&interval),
            Event::TrialFinished(finished) => {
                let Some(place) = self.place_of(&finished.trial) else { return };
                let thresholds = self.run.as_ref().map_or(&[][..], |run| &run.thresholds);
                let headline = Headline::of(&finished, thresholds);
                let done = Outcome::Done(Box::new(headline));
                self.trials[place].outcome = done;
                self.leave(place);
                self.count(&finished.ledger);
            }
            Event::TrialFailed { trial, error, .. } => {
                if let Some(place) = self.place_of(&trial) {
                    self.trials[place].outcome = Outcome::Failed(error.clone());
                    self.leave(place);
                }
                self.note(format!("a trial failed: {error}"));
            }
            Event::AxisEnded(ended) => self.note(format!(
                "{} ends at {}: {} ({})",
                ended.axis, ended.at, ended.condition, ended.figure
            )),
            Event::CaseSettled { repetitions, is_precise, .. } => self.note(match is_precise {
                true => format!("a case is precise enough after {repetitions} repetitions"),
                false => format!("a case has its most repetitions: {repetitions}"),
            }),
            Event::BudgetSpent { left, .. } => {
                self.note(format!("the time budget is used: {left} trials are not run"));
            }
            Event::RunResumed(resumed) => {
                self.outcome = None;
                self.note(format!("resumed at {}", resumed.at));
            }
            Event::RunFinished { outcome } => {
                self.outcome = Some(outcome);
                self.current = None;
            }
            _ => {}
        }
    }

    fn add_interval(&mut self, interval: &Interval) {
        let place = self.place_of(&interval.trial);
        let course = self.courses.iter_mut().find(|(own, _)| Some(*own) == place);
        if let Some((_, points)) = course {
            points.push(Point::of(interval));
            if points.len() > POINTS_MAX {
                points.drain(..POINTS_MAX / 4);
            }
        }
    }

    /// Place of a trial, looked up from the newest on.
    fn place_of(&self, id: &str) -> Option<usize> {
        self.trials.iter().rposition(|trial| trial.id == id)
    }

    fn leave(&mut self, place: usize) {
        if self.current == Some(place) {
            self.current = None;
        }
    }

    fn count(&mut self, ledger: &Ledger) {
        match &mut self.ledger {
            Some(sum) => sum.add(ledger),
            None => self.ledger = Some(ledger.clone()),
        }
    }

    /// Counts anew, after a trial that had a result was done again.
    fn count_again(&mut self) {
        self.ledger = None;
        let done = |trial: &Trial| match &trial.outcome {
            Outcome::Done(headline) => Some(headline.ledger.clone()),
            _ => None,
        };
        let ledgers: Vec<Ledger> = self.trials.iter().filter_map(done).collect();
        ledgers.iter().for_each(|ledger| self.count(ledger));
    }

    fn note(&mut self, text: String) {
        self.notes.push_back(text);
        if self.notes.len() > NOTES_MAX {
            self.notes.pop_front();
        }
    }
}

/// Trials whose courses are kept: what is older is in the report.
pub const COURSES_MAX: usize = 64;

/// Points of a course that are kept, the newest: no trial that this version records has more.
const POINTS_MAX: usize = 2000;

/// Notes that are kept.
pub const NOTES_MAX: usize = 50;

/// Seconds that are kept: as many as the live file has.
const SECONDS_MAX: usize = weigh_model::live::SLOTS as usize;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_report::summary::Summary;

    /// The stored run, of which the table says what is right.
    const STORED: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/stored/compare/2026-11-23T03-55-39-compare/journal.jsonl"
    );

    /// A stored search.
    const SEARCH: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/stored/limit/2026-11-23T03-55-44-limit/journal.jsonl"
    );

    fn lines() -> Vec<String> {
        std::fs::read_to_string(STORED).unwrap().lines().map(str::to_owned).collect()
    }

    fn state(lines: &[String]) -> RunState {
        let mut state = RunState::default();
        lines.iter().for_each(|line| state.add_line(line.as_bytes()));
        state
    }

    #[test]
    fn the_ledger_of_all_trials_is_that_of_the_summary() {
        let lines = lines();
        let state = state(&lines);
        let events = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
        let events: Vec<Event> = events.collect();
        let summary = Summary::from_events(&events).unwrap();
        let sent: u64 = summary.cells.iter().map(|cell| cell.ledger.sent).sum();
        let lost: Option<u64> = summary.cells.iter().map(|cell| cell.ledger.lost).sum();
        let ledger = state.ledger.as_ref().unwrap();
        assert_eq!((ledger.sent, ledger.lost), (sent, lost));
        assert_eq!(ledger.contradiction(), None);
        assert_eq!((state.bad_lines, state.outcome.as_deref()), (0, Some("done")));
        let names = (0..state.trials.len()).map(|place| state.name(place).to_owned());
        let names: std::collections::BTreeSet<String> = names.collect();
        let cells = summary.cells.iter().map(|cell| cell.name.clone()).collect();
        assert_eq!(names, cells);
        assert_eq!(state.current, None);
    }

    /// A run that is watched from its first line shows its trial, and its course is the journal's.
    #[test]
    fn the_trial_in_progress_is_the_one_without_a_result() {
        let lines = lines();
        let is = |line: &&String, name: &str| line.contains(&format!("\"event\":\"{name}\""));
        let begun = lines.iter().position(|line| is(&line, "trial_started")).unwrap();
        let ended = lines.iter().position(|line| is(&line, "trial_finished")).unwrap();
        let running = state(&lines[..ended]);
        assert_eq!((running.current, running.done()), (Some(0), 0));
        let sent: f64 = running.course(0).iter().map(|own| own.sent_per_s * own.length_s).sum();
        let events = lines[begun..ended].iter().filter(|line| is(line, "interval"));
        let all: u64 = events
            .map(|line| match serde_json::from_str(line).unwrap() {
                Event::Interval(interval) => interval.sent,
                _ => 0,
            })
            .sum();
        assert_eq!(sent.round() as u64, all);
        assert_eq!(state(&lines[..=ended]).current, None);
    }

    /// In a search all trials have one case, and their loads distinguish them, as in its table.
    #[test]
    fn trials_of_a_search_have_the_names_of_its_table() {
        let text = std::fs::read_to_string(SEARCH).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let state = state(&lines);
        let events = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
        let summary = Summary::from_events(&events.collect::<Vec<Event>>()).unwrap();
        let cells: Vec<&str> = summary.cells.iter().map(|cell| &*cell.name).collect();
        let names = (0..state.trials.len()).map(|place| state.name(place));
        let names: std::collections::BTreeSet<&str> = names.collect();
        assert_eq!(names, cells.iter().copied().collect());
        assert!(names.contains("tcp rate=1000/s on reference"), "{names:?}");
    }

    /// A killed trial that is done again has one place, and its first attempt leaves nothing.
    #[test]
    fn a_trial_that_is_done_again_keeps_its_place() {
        let lines = lines();
        let ended = lines.iter().position(|line| line.contains("trial_finished")).unwrap();
        let mut twice: Vec<String> = lines[..ended].to_vec();
        twice.push(r#"{"event":"run_finished","outcome":"interrupted"}"#.to_owned());
        twice.extend_from_slice(&lines[2..]);
        let (once, again) = (state(&lines), state(&twice));
        assert_eq!(once.trials.len(), again.trials.len());
        assert_eq!(once.ledger, again.ledger);
    }

    /// Memory stays bounded, whatever a journal holds.
    #[test]
    fn a_course_of_a_million_intervals_keeps_the_newest() {
        let lines = lines();
        let interval = |line: &&String| line.contains("\"event\":\"interval\"");
        let first = lines.iter().find(interval).unwrap().clone();
        let begun = lines.iter().position(|line| line.contains("trial_started")).unwrap();
        let mut state = state(&lines[..=begun]);
        (0..100_000).for_each(|_| state.add_line(first.as_bytes()));
        let kept = state.course(0).len();
        assert!((POINTS_MAX / 2..=POINTS_MAX).contains(&kept), "{kept}");
    }

    #[test]
    fn what_is_not_an_event_is_counted() {
        let mut state = state(&lines());
        state.add_line(b"nonsense");
        state.add_line(br#"{"event":"unheard_of"}"#);
        assert_eq!(state.bad_lines, 2);
    }

    #[test]
    fn a_new_live_file_replaces_the_seconds_of_the_old_one() {
        let second = |number| Second { number, end: number, ..Second::default() };
        let mut state = RunState::default();
        state.add_seconds((1..=700).map(second).collect());
        assert_eq!((state.seconds.len(), state.seconds[0].number), (SECONDS_MAX, 101));
        state.add_seconds(vec![second(1)]);
        assert_eq!(state.seconds.len(), 1);
    }
}
