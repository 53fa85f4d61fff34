//! A run that is watched: its journal, its live file and its process together.

use std::path::PathBuf;

use weigh_report::journal::is_being_written;

use crate::follow::{Follower, Lost};
use crate::live::LiveReader;
use crate::state::RunState;
use crate::subject::Subject;

/// A run that is watched.
#[derive(Debug)]
pub struct Watching {
    subject: Subject,
    folder: PathBuf,
    follower: Follower,
    live: LiveReader,
    /// What is known of it.
    pub state: RunState,
    /// True while a process records into it.
    pub is_recorded: bool,
    /// True once the journal was read to its end at least once.
    pub is_read: bool,
}

impl Watching {
    /// Begins to watch a run, or the newest one of a study.
    ///
    /// # Errors
    /// If it has no journal that can be read.
    pub fn open(subject: Subject) -> Result<Watching, Lost> {
        let folder = subject.newest();
        Watching::of_run(subject, folder)
    }

    fn of_run(subject: Subject, folder: PathBuf) -> Result<Watching, Lost> {
        Ok(Watching {
            subject,
            follower: Follower::open(&folder, 0)?,
            live: LiveReader::new(&folder),
            folder,
            state: RunState::default(),
            is_recorded: false,
            is_read: false,
        })
    }

    /// Reads what is new, in parts of a long journal: true if there is more to read at once.
    ///
    /// # Errors
    /// If the run was removed or its journal cut off; what was read before stays.
    pub fn look(&mut self) -> Result<bool, Lost> {
        self.is_recorded = is_being_written(&self.folder);
        let lines = self.follower.read()?;
        lines.iter().for_each(|line| self.state.add_line(&line.text));
        let seconds = self.live.read();
        self.state.add_seconds(seconds);
        self.is_read |= lines.is_empty();
        Ok(!lines.is_empty())
    }

    /// Replaces a run that is over by the next one of its study: true if there is one.
    pub fn go_on(&mut self) -> bool {
        let next = if self.is_over() { self.subject.next(&self.folder) } else { None };
        // A journal that is not there yet is opened at a later look.
        let next = next.and_then(|next| Watching::of_run(self.subject.clone(), next).ok());
        next.map(|next| *self = next).is_some()
    }

    /// The id of the study of which the run is a part.
    pub fn study(&self) -> Option<String> {
        self.subject.study()
    }

    /// True if the run is over: nothing records into it, and all of its journal was read.
    pub fn is_over(&self) -> bool {
        self.is_read && !self.is_recorded
    }

    /// The process ID of the generator, while it records.
    pub fn generator(&self) -> Option<u32> {
        self.is_recorded.then(|| self.state.seconds.back().map(|second| second.pid)).flatten()
    }
}
