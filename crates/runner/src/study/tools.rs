//! Runs real programs of a study: repetition after repetition, each with its own target, recorded
//! as it ends.

mod emulation;
pub mod journal;
mod repetition;

use std::time::SystemTime;

use weigh_report::journal::rfc3339;
use weigh_study::Study;
use weigh_study::tools::{TOOL_SCHEMA, ToolBegun, ToolLine, ToolMade};
use weigh_testbed::find::{on_path, version_of};

use crate::exit::{Exit, Stop};
use crate::study::context::{StudyContext, graver};
use crate::study::study_run::StudyRun;
use crate::study::tool_parts::ToolPart;
use crate::study::tools::journal::ToolJournal;
use crate::study::tools::repetition::{Failed, Repeater};

/// A tool of a study, and why it cannot run here, if so.
pub type CheckedTool = (ToolPart, Option<String>);

impl StudyContext<'_> {
    /// Runs the rest of each tool. A failure is recorded and does not end the session.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn carry_out_tools(
        &self,
        study: &Study,
        tools: &[CheckedTool],
        kept: &mut StudyRun,
    ) -> Result<Exit, Stop> {
        let mut exit = Exit::Done;
        for (number, (part, obstacle)) in tools.iter().enumerate() {
            if self.interrupts.exit().is_some() {
                break;
            }
            if let Some(why) = obstacle {
                // Results of an earlier session are kept.
                if !kept.take(&part.tool.name)? {
                    kept.skip(&part.tool.name, why);
                }
                continue;
            }
            if !kept.is_done(&part.tool.name) {
                self.announce_tool(study, tools.len(), number, part);
                let own = self.tool(part, kept);
                kept.take(&part.tool.name)?;
                exit = graver(exit, own?);
            }
            kept.note(study)?;
        }
        Ok(exit)
    }

    /// Starts or resumes one tool.
    fn tool(&self, part: &ToolPart, kept: &StudyRun) -> Result<Exit, Stop> {
        let name = &part.tool.name;
        let folder = std::path::absolute(kept.place(name))?;
        let earlier = journal::read(&folder, name)?;
        let mut journal = ToolJournal::open(&folder)?;
        journal.write(&ToolLine::ToolStarted(Box::new(begun(part))))?;
        let all = part.planned.repetitions;
        let left = earlier.as_ref().map_or((0..all).collect(), |made| ToolMade::left(made, all));
        let repeater = Repeater { context: self, part, folder: &folder };
        let (mut exit, mut failures) = (Exit::Done, 0);
        for number in left {
            if self.interrupts.exit().is_some() {
                return Ok(exit);
            }
            match repeater.repeat(number) {
                Ok(repetition) => journal.write(&ToolLine::RepetitionFinished(repetition))?,
                Err(Failed::Interrupted) => return Ok(exit),
                Err(Failed::Record(stop)) => return Err(stop),
                Err(Failed::Reported(error)) => {
                    self.say(&format!("{name}, repetition {}: {error}", number + 1));
                    let at = rfc3339(SystemTime::now());
                    journal.write(&ToolLine::RepetitionFailed { repetition: number, at, error })?;
                    exit = Exit::Target;
                    failures += 1;
                    if failures == FAILURES_MAX {
                        self.say(&format!(
                            "{name} is stopped: {failures} of its repetitions failed"
                        ));
                        return Ok(exit);
                    }
                }
            }
        }
        if exit == Exit::Done {
            journal.write(&ToolLine::ToolFinished)?;
        }
        Ok(exit)
    }

    fn announce_tool(&self, study: &Study, tools: usize, number: usize, part: &ToolPart) {
        if self.is_quiet {
            return;
        }
        let (name, length) = (&part.tool.name, part.length());
        self.say(&format!("{}, tool {} of {tools}: {name}, {length}", study.name, number + 1));
    }
}

/// Facts of a tool's run before its first repetition.
fn begun(part: &ToolPart) -> ToolBegun {
    let tool = &part.tool;
    let version = tool
        .version
        .as_ref()
        .and_then(|asked| version_of(&on_path(&tool.program)?, &asked.arguments, &asked.after));
    ToolBegun {
        schema: TOOL_SCHEMA.to_owned(),
        name: tool.name.clone(),
        program: tool.program.clone(),
        program_version: version,
        arguments: tool.arguments.clone(),
        started: rfc3339(SystemTime::now()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: weigh_observe::host::facts(),
    }
}

/// Failed repetitions after which a tool is stopped: the next ones would fail too.
const FAILURES_MAX: u32 = 2;
