//! Shared context of all sessions of a study's run.

use std::path::PathBuf;
use std::sync::Arc;

use crate::exit::Exit;
use crate::interrupts::Interrupts;
use crate::study::parts::PartsContext;
use crate::targets::hosts::Privileges;
use crate::watcher::Watch;

/// Shared context of all sessions of a command line.
pub struct StudyContext<'a> {
    /// The real servers, and the user's permissions.
    pub ground: PartsContext<'a>,
    /// Permission to make network namespaces for generator and target.
    pub privileges: Privileges,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Suppresses progress.
    pub is_quiet: bool,
    /// Makes the watcher of each plan.
    pub watch: Watch,
    /// The program `weigh`, started for reference servers, relays and backgrounds.
    pub program: PathBuf,
    /// The commit from which the program was built; `None` if it is not known.
    pub commit: Option<String>,
}

impl StudyContext<'_> {
    /// Shows the user a line.
    pub fn say(&self, text: &str) {
        (self.watch)(self.is_quiet).say(text);
    }
}

/// The more important of two exit codes: a fault of Weighbridge before an unreachable target, and
/// that before a threshold.
pub fn graver(one: Exit, other: Exit) -> Exit {
    let order = [
        Exit::Record,
        Exit::Interrupted,
        Exit::Terminated,
        Exit::Internal,
        Exit::Usage,
        Exit::Target,
        Exit::Generator,
        Exit::Finding,
        Exit::Undecided,
        Exit::Done,
    ];
    let place = |exit: Exit| order.iter().position(|known| *known == exit);
    if place(one) <= place(other) { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_end_is_told() {
        assert_eq!(graver(Exit::Done, Exit::Finding), Exit::Finding);
        assert_eq!(graver(Exit::Finding, Exit::Undecided), Exit::Finding);
        assert_eq!(graver(Exit::Undecided, Exit::Done), Exit::Undecided);
        assert_eq!(graver(Exit::Target, Exit::Finding), Exit::Target);
        assert_eq!(graver(Exit::Target, Exit::Internal), Exit::Internal);
        assert_eq!(graver(Exit::Interrupted, Exit::Internal), Exit::Interrupted);
        assert_eq!(graver(Exit::Record, Exit::Terminated), Exit::Record);
    }
}
