//! Decides which attempt at a trial counts. A trial that was interrupted by a signal is repeated
//! when the run is resumed: of several attempts the last complete one counts, and the others are
//! ignored.

use std::borrow::Cow;
use std::collections::HashMap;

use weigh_model::event::Event;

/// The events without those of attempts that a later one replaced. Of a trial that has no result,
/// everything is kept.
pub fn counted(events: &[Event]) -> Cow<'_, [Event]> {
    let mut numbers: HashMap<&str, Attempts> = HashMap::new();
    let of_event: Vec<Option<u32>> = events
        .iter()
        .map(|event| Some(numbers.entry(trial(event)?).or_default().take(event)))
        .collect();
    let counts = |(event, attempt): (&Event, &Option<u32>)| {
        let attempts = trial(event).and_then(|trial| numbers.get(trial));
        let best = attempts.and_then(|attempts| attempts.whole.or(attempts.cut_short));
        best.is_none() || *attempt == best
    };
    if events.iter().zip(&of_event).all(counts) {
        return Cow::Borrowed(events);
    }
    let kept = events.iter().zip(&of_event).filter(|pair| counts((pair.0, pair.1)));
    Cow::Owned(kept.map(|(event, _)| event.clone()).collect())
}

/// The attempts at one trial, by number.
#[derive(Default)]
struct Attempts {
    /// The attempt that its next event belongs to.
    current: u32,
    has_ended: bool,
    /// The last attempt with a complete result, and the last with an interrupted one.
    whole: Option<u32>,
    cut_short: Option<u32>,
}

impl Attempts {
    /// The attempt that `event` belongs to.
    fn take(&mut self, event: &Event) -> u32 {
        // The log of an external meter is read when all trials are over.
        let is_late = matches!(event, Event::EnergyMeasured(_));
        if (self.has_ended && !is_late) || matches!(event, Event::TrialStarted { .. }) {
            self.current += 1;
            self.has_ended = false;
        }
        match event {
            Event::TrialFinished(result) if result.is_cut_short() => {
                self.cut_short = Some(self.current);
                self.has_ended = true;
            }
            Event::TrialFinished(_) => {
                self.whole = Some(self.current);
                self.has_ended = true;
            }
            Event::TrialFailed { .. } => self.has_ended = true,
            _ => {}
        }
        self.current
    }
}

fn trial(event: &Event) -> Option<&str> {
    match event {
        Event::TrialStarted { trial, .. } | Event::TrialFailed { trial, .. } => Some(trial),
        Event::Interval(interval) => Some(&interval.trial),
        Event::SessionPackets(session) => Some(&session.trial),
        Event::Activity(activity) => Some(&activity.trial),
        Event::TcpSample(sample) => Some(&sample.trial),
        Event::BackgroundRan(ran) => Some(&ran.trial),
        Event::FleetRan(ran) => Some(&ran.trial),
        Event::EnergyMeasured(measured) => Some(&measured.trial),
        Event::TrialFinished(result) => Some(&result.trial),
        _ => None,
    }
}
