//! Events of a run: written to its record, and passed to the sequence that decides the next trial.

use std::collections::HashMap;

use crate::scheduler::Sequence;
use weigh_model::event::{Event, Interval};
use weigh_model::{Nanos, Trial};
use weigh_report::RecordError;

use crate::exit::{Exit, Stop};
use crate::run::run_record::RunRecord;

/// The events of a run, and the sequence that follows them.
pub struct RunHistory {
    record: RunRecord,
    decided: Vec<Event>,
    /// Number of attempts by trial.
    attempts: HashMap<String, u32>,
    /// The trial that has started and not ended.
    open: Option<String>,
    /// The state after these events.
    pub sequence: Sequence,
}

impl RunHistory {
    /// Starts with a record whose events are known to `sequence`.
    pub fn new(record: RunRecord, sequence: Sequence) -> RunHistory {
        RunHistory { record, decided: Vec::new(), attempts: HashMap::new(), open: None, sequence }
    }

    /// Counts the attempts in these events of an earlier session.
    pub fn after(mut self, events: &[Event]) -> RunHistory {
        events.iter().for_each(|event| self.follow(event));
        self
    }

    /// Number of the last attempt at this trial, from 1; 0 if there is none.
    pub fn attempt(&self, trial: &str) -> u32 {
        self.attempts.get(trial).copied().unwrap_or(0)
    }

    /// The trial that has started and has no end in the record, with the number of its attempt.
    pub fn open(&self) -> Option<(&str, u32)> {
        self.open.as_deref().map(|trial| (trial, self.attempt(trial)))
    }

    /// The attempt of an earlier session at this trial that has no end in the record.
    pub fn open_attempt(&self, trial: &str) -> Option<u32> {
        self.open().filter(|(open, _)| *open == trial).map(|(_, attempt)| attempt)
    }

    /// The event that starts an attempt at a trial, at this moment of the run's clock. With a fleet
    /// it names the attempt.
    pub fn started(&self, trial: &Trial, at: Nanos, has_fleet: bool) -> Event {
        Event::TrialStarted {
            trial: trial.id.clone(),
            point: trial.point.clone(),
            repetition: trial.repetition,
            at_ns: Some(at.0),
            attempt: has_fleet.then(|| self.attempt(&trial.id) + 1),
        }
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::TrialStarted { trial, attempt, .. } => {
                let number = self.attempts.entry(trial.clone()).or_default();
                *number = attempt.unwrap_or(*number + 1);
                self.open = Some(trial.clone());
            }
            Event::TrialFinished(_) | Event::TrialFailed { .. } => self.open = None,
            _ => {}
        }
    }

    /// Adds an event, and the events that follow from it. A full disk does not affect the result.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn note(&mut self, event: Event) -> Result<(), Stop> {
        self.decided = self.sequence.note(&event);
        let mut written = self.put_down(event);
        for decision in self.decided.clone() {
            written = written.and(self.put_down(decision));
        }
        written
    }

    /// Adds an interval of the running trial, which decides nothing.
    ///
    /// # Errors
    /// A record that cannot be written; the interval is kept in memory, like every event.
    pub fn note_interval(&mut self, interval: Interval) -> Result<(), Stop> {
        self.put_down(Event::Interval(interval))
    }

    /// Events that followed from the last one.
    pub fn decided(&self) -> &[Event] {
        &self.decided
    }

    /// Writes an event that the sequence knows already.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn put_down(&mut self, event: Event) -> Result<(), Stop> {
        self.follow(&event);
        self.record.note(event)
    }

    /// All events so far.
    ///
    /// # Errors
    /// A journal that cannot be read back.
    pub fn events(&mut self) -> Result<Vec<Event>, Stop> {
        self.record.events()
    }

    /// True if a target's log may explain a warning. Otherwise its files are not needed after a
    /// run.
    pub fn has_suspect_targets(&self) -> bool {
        self.record.has_suspect_targets()
    }
}

/// The error for a failed record.
pub fn not_recorded(error: RecordError) -> Stop {
    Stop::new(Exit::Record, error)
}
