//! The answers of a search for limits, lane by lane.

use super::validity;
use super::words::counted;
use crate::summary::{AnswerKind, AnswerLine, Summary};

/// The thresholds, if the plan has any, and the first answers with what limited them; at most
/// `most` lines.
pub(super) fn lines(summary: &Summary, most: usize) -> Vec<AnswerLine> {
    let restricts =
        |line: &AnswerLine| line.kind == AnswerKind::Thresholds || summary.run.outcome != "done";
    let mut lines: Vec<AnswerLine> =
        validity::lines(summary).into_iter().filter(restricts).collect();
    let answers: Vec<String> = summary
        .limits
        .iter()
        .flat_map(|limit| limit.goals.iter().map(move |goal| (limit, goal)))
        .map(|(limit, goal)| {
            let why = match (&goal.unproven, &goal.ended_by) {
                (Some(why), _) => format!("; not proven: {why}"),
                (None, Some(ended)) if ended.is_ours => {
                    format!("; limited by the generator, not by the server: {}", ended.sentence)
                }
                (None, Some(ended)) => format!("; limited by {}", ended.sentence),
                (None, None) => String::new(),
            };
            format!("{}: {}{why}", limit.title(), goal.sentence)
        })
        .collect();
    let room = most.saturating_sub(lines.len());
    let shown = if answers.len() > room { room.saturating_sub(1) } else { answers.len() };
    // An answer begins with the name of a protocol, which keeps its letters.
    let line = |text: String| AnswerLine { kind: AnswerKind::Limit, text };
    lines.extend(answers[..shown].iter().map(|text| line(format!("{text}."))));
    if answers.len() > shown {
        let more = counted(answers.len() - shown, "more answer");
        lines.push(line(format!("{more} below.")));
    }
    lines
}
