//! The tools of a study's run: each requested program with its target, resolved and checked, or why
//! it cannot run here.

use weigh_model::Nanos;
use weigh_model::numbers::count;
use weigh_study::tools::{Tool, ToolPlanned};
use weigh_study::{Study, Way};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::find::on_path;

use crate::case::build::Build;
use crate::case::secrets::Secrets;
use crate::case::{Case, decide};
use crate::exit::Stop;
use crate::study::parts::{Asked, PartsContext, missing, said};
use crate::targets::hosts::Privileges;

/// A tool of a study that can run.
pub struct ToolPart {
    /// The tool.
    pub tool: Tool,
    /// Its repetitions and messages.
    pub planned: ToolPlanned,
    /// Its target and path; `None` if no target is started.
    pub case: Option<Case>,
    /// Approximate duration.
    pub time: Nanos,
}

/// The requested tools of a study, in the order of the file.
///
/// # Errors
/// An unknown name in one of them.
pub fn tools(
    study: &Study,
    asked: &Asked,
    ground: &PartsContext<'_>,
) -> Result<Vec<ToolPart>, Stop> {
    if !asked.ways.contains(&Way::Tools) {
        return Ok(Vec::new());
    }
    let is_asked = |tool: &&Tool| {
        asked.only.is_empty() || tool.experiments.iter().any(|id| asked.only.contains(id))
    };
    let named = study.tools.iter().filter(is_asked);
    named.map(|tool| ToolPart::of(study, tool, asked, ground)).collect()
}

impl ToolPart {
    fn of(
        study: &Study,
        tool: &Tool,
        asked: &Asked,
        ground: &PartsContext<'_>,
    ) -> Result<Self, Stop> {
        let said = |stop: Stop| {
            let (file, entry) = (Way::Tools.file(), &tool.entry);
            Stop::new(stop.exit(), format!("{}/{file}: {entry}: {stop}", study.name))
        };
        let planned = tool.at(asked.scale).clone();
        let decided = planned.resolved.as_ref().map(|resolved| {
            let secrets = Secrets { settings: resolved.secrets.clone(), ..Secrets::default() };
            decide(&resolved.plan, ground.catalogue, &secrets)
        });
        let cases = decided.transpose().map_err(|wrong| said(wrong.into()))?;
        let case = cases.and_then(|cases| cases.into_iter().next());
        let doubled = if tool.emulation.is_empty() { 1 } else { 2 };
        let each = Nanos(planned.lasts.0.saturating_mul(doubled) + OVERHEAD.0);
        let time = Nanos(each.0.saturating_mul(u64::from(planned.repetitions)));
        Ok(ToolPart { tool: tool.clone(), planned, case, time })
    }

    /// Its length, such as `10 repetitions of 50 messages, about 12 s`.
    pub fn length(&self) -> String {
        let ToolPlanned { repetitions, messages, .. } = self.planned;
        let plural = |number: u64| if number == 1 { "" } else { "s" };
        format!(
            "{repetitions} repetition{} of {} message{}, about {}",
            plural(u64::from(repetitions)),
            count(messages),
            plural(messages),
            self.time.rough()
        )
    }

    /// Returns why it cannot run here; `None` if it can.
    pub fn obstacle(&self, catalogue: &Catalogue, privileges: &Privileges) -> Option<String> {
        let absent = self.tool.programs().into_iter().find(|program| on_path(program).is_none());
        if let Some(program) = absent {
            return Some(format!("{program} is not on PATH: {}", self.tool.install));
        }
        let unbuilt = self.case.as_ref().and_then(|case| Build::OWN.check_case(case).err());
        if let Some(unbuilt) = unbuilt {
            return Some(said(unbuilt));
        }
        self.tool.needs.iter().find_map(|need| missing(need, catalogue, privileges))
    }
}

/// Time to start and stop a target, per repetition.
const OVERHEAD: Nanos = Nanos::from_millis(300);
