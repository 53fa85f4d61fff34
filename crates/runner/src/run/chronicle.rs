//! Everything that has happened in a run: in its record, and in the sequence that decides what is
//! next.

use crate::scheduler::Sequence;
use weigh_model::event::{Event, Interval};
use weigh_report::RecordError;

use crate::exit::{Exit, Stop};
use crate::run::run_record::RunRecord;

/// The events of a run, and who must know of them.
pub struct Chronicle {
    record: RunRecord,
    decided: Vec<Event>,
    /// What is next after all this.
    pub sequence: Sequence,
}

impl Chronicle {
    /// Of a run whose events in `record` are known to `sequence`.
    pub fn new(record: RunRecord, sequence: Sequence) -> Chronicle {
        Chronicle { record, decided: Vec::new(), sequence }
    }

    /// Takes in what happened, with everything that is decided by it. A full disk takes
    /// nothing from the result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&mut self, event: Event) -> Result<(), Stop> {
        self.decided = self.sequence.note(&event);
        let mut written = self.put_down(event);
        for decision in self.decided.clone() {
            written = written.and(self.put_down(decision));
        }
        written
    }

    /// Takes in what the trial that runs did in an interval. Nothing is decided by it.
    ///
    /// # Errors
    /// If it cannot be written. It is kept all the same, like every event.
    pub fn note_interval(&mut self, interval: Interval) -> Result<(), Stop> {
        self.put_down(Event::Interval(interval))
    }

    /// What was decided by the last event.
    pub fn decided(&self) -> &[Event] {
        &self.decided
    }

    /// Writes down what the sequence knows already.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_down(&mut self, event: Event) -> Result<(), Stop> {
        self.record.note(event)
    }

    /// All events so far.
    ///
    /// # Errors
    /// If the journal cannot be read back.
    pub fn events(&mut self) -> Result<Vec<Event>, Stop> {
        self.record.events()
    }

    /// True if a target did something that its log may explain. Otherwise the files and logs of
    /// targets are of no interest after a run.
    pub fn has_suspect_targets(&self) -> bool {
        self.record.has_suspect_targets()
    }
}

/// The record failed.
pub fn not_recorded(error: RecordError) -> Stop {
    Stop::new(Exit::Record, error)
}
