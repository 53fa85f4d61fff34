//! A run that is watched as OpenMetrics 1.0 text (github.com/prometheus/OpenMetrics): what the
//! current second shows, what finished trials counted, and what the generator uses.

mod ledger;
mod moment;
mod seen;

use weigh_report::exports::openmetrics_text::{head, pair, put};

use crate::process::{Resources, unix_ms};
use crate::state::{Outcome, RunState};
use crate::subject::Subject;
use crate::watching::Watching;
use seen::{Seen, gauge};

/// A run that Prometheus reads.
#[derive(Debug)]
pub struct Exposed {
    subject: Subject,
    /// `None` while the run cannot be read: it is opened again at the next request.
    watching: Option<Watching>,
}

impl Exposed {
    /// A run, or the newest one of a study, which is read at the first request.
    pub fn new(subject: Subject) -> Exposed {
        Exposed { subject, watching: None }
    }

    /// Reads what is new and returns the text, `# EOF` at its end. Of a run that cannot be read it
    /// has only `weigh_watch_up 0`.
    pub fn text(&mut self) -> String {
        if self.watching.is_none() {
            self.watching = Watching::open(self.subject.clone()).ok();
        }
        let is_read = self.watching.as_mut().is_some_and(|watching| {
            loop {
                match watching.look() {
                    Ok(true) => {}
                    Ok(false) if watching.go_on() => {}
                    Ok(false) => break true,
                    Err(_) => break false,
                }
            }
        });
        if !is_read {
            self.watching = None;
        }
        let resources = self.watching.as_ref().and_then(Watching::generator).map(Resources::of);
        let seen = self.watching.as_ref().map(|watching| Seen {
            state: &watching.state,
            is_recorded: watching.is_recorded,
            resources: resources.unwrap_or_default(),
            unix_ms: unix_ms(),
        });
        text(seen.as_ref())
    }
}

fn text(seen: Option<&Seen>) -> String {
    let mut text = String::new();
    let up = seen.is_some_and(|seen| seen.state.run.is_some());
    gauge(&mut text, "weigh_watch_up", "", "1 if the run can be read, 0 if not.", Some(flag(up)));
    if let Some(seen) = seen {
        progress(&mut text, seen);
        moment::add(&mut text, seen);
        ledger::add(&mut text, seen.state);
        thresholds(&mut text, seen.state);
    }
    text.push_str("# EOF\n");
    text
}

/// Facts about the run, and its trials.
fn progress(text: &mut String, seen: &Seen) {
    if let Some(run) = &seen.state.run {
        head(text, "weigh_run", "info", "", "The run that is watched.");
        let pairs = [
            ("run", run.id.as_str()),
            ("name", &run.name),
            ("started", &run.started),
            ("version", &run.version),
        ];
        let pairs = pairs.map(|(key, value)| pair(key, value)).join(",");
        put(text, &format!("weigh_run_info{{{pairs}}}"), 1.0);
    }
    let about = "1 while a process records the run.";
    gauge(text, "weigh_run_recording", "", about, Some(flag(seen.is_recorded)));
    let count = |of: &dyn Fn(&Outcome) -> bool| {
        seen.state.trials.iter().filter(|trial| of(&trial.outcome)).count() as f64
    };
    let is_invalid = |outcome: &Outcome| match outcome {
        Outcome::Done(own) => own.warnings.iter().any(|(_, is_invalid, _)| *is_invalid),
        _ => false,
    };
    let outcomes = [
        ("done", count(&|outcome| matches!(outcome, Outcome::Done(_)))),
        ("failed", count(&|outcome| matches!(outcome, Outcome::Failed(_)))),
        ("invalid", count(&is_invalid)),
    ];
    let about = "Trials by outcome; invalid ones are among those that are done.";
    head(text, "weigh_run_trials", "gauge", "trials", about);
    for (outcome, number) in outcomes {
        put(text, &format!("weigh_run_trials{{{}}}", pair("outcome", outcome)), number);
    }
}

/// For each threshold: the trials in which it holds, fails and has no figure.
fn thresholds(text: &mut String, state: &RunState) {
    let all = state.thresholds();
    if all.is_empty() {
        return;
    }
    let about = "Finished trials by threshold and whether it holds.";
    head(text, "weigh_threshold_trials", "gauge", "trials", about);
    for (condition, counts) in all {
        for (result, count) in ["holds", "fails", "no figure"].into_iter().zip(counts) {
            let labels = format!("{},{}", pair("condition", &condition), pair("result", result));
            put(text, &format!("weigh_threshold_trials{{{labels}}}"), count as f64);
        }
    }
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}

#[cfg(test)]
mod tests;
