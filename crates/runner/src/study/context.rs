//! What all sittings of a study's run have in common.

use std::path::PathBuf;
use std::sync::Arc;

use crate::exit::Exit;
use crate::interrupts::Interrupts;
use crate::study::parts::Ground;
use crate::targets::stage::Privileges;
use crate::watcher::Watch;

/// What all sittings of a command line have in common.
pub struct StudyContext<'a> {
    /// The real servers that there are, and whose.
    pub ground: Ground<'a>,
    /// Whether generator and target can be hosts.
    pub privileges: Privileges,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Says nothing on the way.
    pub is_quiet: bool,
    /// Who is told how its plans go.
    pub watch: Watch,
    /// The program `weigh`, started for reference servers, relays and backgrounds.
    pub program: PathBuf,
}

impl StudyContext<'_> {
    /// Shows the user a line.
    pub fn say(&self, text: &str) {
        (self.watch)(self.is_quiet).say(text);
    }
}

/// Which of two ends of a plan the program tells: our own fault before a target that was not there,
/// that before a threshold.
pub fn graver(one: Exit, other: Exit) -> Exit {
    let order = [
        Exit::Record,
        Exit::Interrupted,
        Exit::Terminated,
        Exit::Internal,
        Exit::Usage,
        Exit::Target,
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
