//! The record of a run while it goes on: the journal, and in memory only what could not be written
//! to it. A run of ten hours takes no more memory than one of a minute, and a full disk takes
//! nothing from the result.

use weigh_model::event::Event;
use weigh_report::Writer;

use crate::exit::{Exit, Stop};

/// The journal of a run, and what it does not hold.
pub struct RunRecord {
    journal: Writer,
    /// Events that could not be written: those of the trial at which the disk was full.
    unwritten: Vec<Event>,
    has_suspect_targets: bool,
}

impl RunRecord {
    /// Goes on with this journal, in which these events stand already.
    pub fn new(journal: Writer, events: &[Event]) -> RunRecord {
        let has_suspect_targets = events.iter().any(is_suspect);
        RunRecord { journal, unwritten: Vec::new(), has_suspect_targets }
    }

    /// Writes the event. Where that fails it is kept in memory.
    pub fn note(&mut self, event: Event) -> Result<(), Stop> {
        self.has_suspect_targets |= is_suspect(&event);
        self.journal.write(&event).map_err(|error| {
            self.unwritten.push(event);
            Stop::new(Exit::Record, error)
        })
    }

    /// All events of the run: the journal's, read back, and those that it does not hold.
    pub fn events(&mut self) -> Result<Vec<Event>, Stop> {
        let journal = self.journal.read_back().map_err(|error| Stop::new(Exit::Record, error))?;
        let mut events = journal.events;
        // The last line may have been short enough for a disk that a result was too long for.
        let last = events.pop_if(|event| matches!(event, Event::RunFinished { .. }));
        events.append(&mut self.unwritten);
        events.extend(last);
        Ok(events)
    }

    /// True if a target did something that its log may explain. Otherwise the files and logs of
    /// targets are of no interest after a run.
    pub fn has_suspect_targets(&self) -> bool {
        self.has_suspect_targets
    }
}

fn is_suspect(event: &Event) -> bool {
    match event {
        Event::TrialFinished(trial) => {
            trial.doubts.iter().any(|doubt| SUSPICIOUS.contains(&doubt.code.as_str()))
        }
        Event::TrialFailed { .. } => true,
        _ => false,
    }
}

/// Doubts after which a reader wants to see the log of a target.
const SUSPICIOUS: [&str; 4] =
    ["target-died", "target-restarted", "connections-lost", "background-target-died"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use weigh_model::event::Interval;

    /// Ten hours of one-second intervals and as many trials: everything is in the journal and
    /// nothing in memory.
    #[test]
    fn ten_hours_leave_nothing_in_memory() {
        let folder = std::env::temp_dir().join(format!("weigh-record-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut record =
            RunRecord::new(Writer::create(&folder.join("journal.jsonl")).unwrap(), &[]);
        for second in 0..36_000u64 {
            let interval = Interval { at_ns: second * 1_000_000_000, ..Interval::default() };
            record.note(Event::Interval(interval)).unwrap();
            assert_eq!(record.unwritten.capacity(), 0);
        }
        record.note(Event::RunFinished { outcome: "done".to_owned() }).unwrap();
        // Even where somebody removes the folder midway, what was written can be read back.
        fs::remove_dir_all(&folder).unwrap();
        let events = record.events().unwrap();
        assert_eq!(events.len(), 36_001);
        assert!(matches!(events[36_000], Event::RunFinished { .. }));
    }

    #[test]
    fn what_cannot_be_written_stands_before_the_end_of_the_run() {
        let folder = std::env::temp_dir().join(format!("weigh-unwritten-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut record =
            RunRecord::new(Writer::create(&folder.join("journal.jsonl")).unwrap(), &[]);
        record.note(Event::RunFinished { outcome: "failed".to_owned() }).unwrap();
        record.unwritten.push(Event::Interval(Interval::default()));
        let events = record.events().unwrap();
        assert!(matches!(events[..], [Event::Interval(_), Event::RunFinished { .. }]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
