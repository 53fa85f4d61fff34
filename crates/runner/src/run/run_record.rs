//! Record of a run in progress: the journal, and in memory only events that could not be written. A
//! run of ten hours takes no more memory than one of a minute, and a full disk does not affect the
//! result.

use weigh_model::event::Event;
use weigh_report::Writer;

use crate::exit::{Exit, Stop};

/// The journal of a run, and events that it does not hold.
pub struct RunRecord {
    journal: Writer,
    /// Events that could not be written: those of the trial during which the disk was full.
    unwritten: Vec<Event>,
    has_suspect_targets: bool,
}

impl RunRecord {
    /// Continues a journal that has these events.
    pub fn new(journal: Writer, events: &[Event]) -> RunRecord {
        let has_suspect_targets = events.iter().any(is_suspect);
        RunRecord { journal, unwritten: Vec::new(), has_suspect_targets }
    }

    /// Writes an event; on failure it is kept in memory.
    ///
    /// # Errors
    /// A journal that cannot be written.
    pub fn note(&mut self, event: Event) -> Result<(), Stop> {
        self.has_suspect_targets |= is_suspect(&event);
        self.journal.write(&event).map_err(|error| {
            self.unwritten.push(event);
            Stop::new(Exit::Record, error)
        })
    }

    /// All events of the run: those of the journal, read back, and those that it does not hold.
    ///
    /// # Errors
    /// A journal that cannot be read back.
    pub fn events(&mut self) -> Result<Vec<Event>, Stop> {
        let journal = self.journal.read_back().map_err(|error| Stop::new(Exit::Record, error))?;
        let mut events = journal.events;
        // The short last line may fit on a disk that was too full for a result.
        let last = events.pop_if(|event| matches!(event, Event::RunFinished { .. }));
        events.append(&mut self.unwritten);
        events.extend(last);
        Ok(events)
    }

    /// True if a target's log may explain a warning. Otherwise its files are not needed after a
    /// run.
    pub fn has_suspect_targets(&self) -> bool {
        self.has_suspect_targets
    }
}

fn is_suspect(event: &Event) -> bool {
    match event {
        Event::TrialFinished(trial) => {
            trial.warnings.iter().any(|warning| SUSPICIOUS.contains(&warning.code.as_str()))
        }
        Event::TrialFailed { .. } => true,
        _ => false,
    }
}

/// Warnings that the log of a target may explain.
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
        // Even if the folder is removed midway, the written events can be read back.
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
