//! Everything that has happened in a run: in the journal, in memory for the results, and in the
//! sequence that decides what is next.

use weigh_model::event::Event;
use weigh_report::journal::Writer;
use weigh_report::record_error::RecordError;
use weigh_sequence::Sequence;

use crate::exit::{Exit, Stop};

/// The events of a run, and who must know of them.
pub struct Chronicle {
    journal: Writer,
    events: Vec<Event>,
    /// What is next after all this.
    pub sequence: Sequence,
}

impl Chronicle {
    /// Of a run of which these events are in the journal and known to `sequence`.
    pub fn new(journal: Writer, events: Vec<Event>, sequence: Sequence) -> Chronicle {
        Chronicle { journal, events, sequence }
    }

    /// Takes in what happened, with everything that is decided by it. Keeps it in memory too, so
    /// that a full disk takes nothing from the result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&mut self, event: Event) -> Result<(), Stop> {
        let decisions = self.sequence.note(&event);
        let mut written = self.put_down(event);
        for decision in decisions {
            written = written.and(self.put_down(decision));
        }
        written
    }

    /// Writes down what the sequence knows already.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_down(&mut self, event: Event) -> Result<(), Stop> {
        let written = self.journal.write(&event);
        self.events.push(event);
        written.map_err(not_recorded)
    }

    /// All events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// True if a target did something that its log may explain. Otherwise the files and logs of
    /// targets are of no interest after a run.
    pub fn has_suspect_targets(&self) -> bool {
        self.events.iter().any(|event| match event {
            Event::TrialFinished(trial) => {
                trial.doubts.iter().any(|doubt| SUSPICIOUS.contains(&doubt.code.as_str()))
            }
            Event::TrialFailed { .. } => true,
            _ => false,
        })
    }
}

/// The record failed.
pub fn not_recorded(error: RecordError) -> Stop {
    Stop::new(Exit::Record, error)
}

/// Doubts after which a reader wants to see the log of a target.
const SUSPICIOUS: [&str; 3] = ["target-died", "target-restarted", "connections-lost"];
