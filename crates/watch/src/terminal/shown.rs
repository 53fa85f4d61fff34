//! What the screen shows, and with which characters.

use crate::process::Resources;
use crate::state::RunState;

/// Characters and colours of the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// False without colours (`NO_COLOR`): signs carry what colours would.
    pub has_colour: bool,
    /// Only characters of ASCII.
    pub is_ascii: bool,
}

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'s> {
    /// The run.
    pub state: &'s RunState,
    /// The id of the study of which it is a part.
    pub study: Option<&'s str>,
    /// True while a process records into it.
    pub is_recorded: bool,
    /// True once its journal was read to the end.
    pub is_read: bool,
    /// Resources of the generator's process.
    pub resources: Resources,
    /// Share of a core that the generator's process uses, percent.
    pub generator_percent: Option<f64>,
    /// Share of a core that this view uses, percent.
    pub own_percent: f64,
    /// Why nothing more can be read.
    pub problem: Option<&'s str>,
}
