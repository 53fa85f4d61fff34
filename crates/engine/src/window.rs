//! The measured window of an open loop, and what happened within it: each message handed over, each
//! arrival and each answer is counted by its own time against the end of the window.

use weigh_model::{Arrival, Load, Nanos, portable_fields};

use crate::schedule::{self, Schedule, Span};

/// From the begin of the measurement to the end of the schedule, on the trial's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Begin of the window.
    pub begin: Nanos,
    /// End of the window; what happens at this moment is after it.
    pub end: Nanos,
}

impl Window {
    /// Returns the length of the window.
    pub fn length(&self) -> Nanos {
        Nanos(self.end.0.saturating_sub(self.begin.0))
    }

    /// The window of a load, counted from the moment the load starts. `None` where answers set the
    /// pace, or all is due at once: there the window ends with the last completion. A number of
    /// messages, or a trace that is sent to its end, ends with the last due time and the mean gap,
    /// which follows it.
    pub fn offered(load: &Load, trace: &[Nanos], seed: u64) -> Option<Window> {
        if load.arrival.is_closed() || load.arrival == Arrival::Burst {
            return None;
        }
        let own = schedule::own_duration(&load.arrival, trace);
        let is_trace = matches!(load.arrival, Arrival::Trace(_));
        if let Some(duration) = load.duration.filter(|asked| !is_trace || Some(*asked) != own) {
            return Some(Window { begin: load.warmup, end: load.warmup + duration });
        }
        let ends = matches!(load.arrival, Arrival::Steps(_) | Arrival::Trace(_));
        if load.messages.is_none() && !ends {
            return Some(Window { begin: load.warmup, end: Nanos::NEVER });
        }
        let streams = match Schedule::shared(load, trace, seed, 0, 1) {
            Some(shared) => vec![shared],
            None => (0..load.connections).filter_map(|n| Schedule::client(load, seed, n)).collect(),
        };
        let all = streams.into_iter().filter_map(Schedule::measured).reduce(Span::join)?;
        let span = (all.last - all.first).as_secs_f64();
        // Messages of a trace may be due together: the next ones would be due after the mean gap
        // between such moments.
        let mut moments: Vec<Nanos> = trace.iter().copied().filter(|at| *at <= all.last).collect();
        moments.dedup();
        let moments = if is_trace { moments.len() as u64 } else { all.messages };
        if is_trace && moments < 2 {
            return None;
        }
        let gap = Nanos::from_secs_f64(span / (moments.max(2) - 1) as f64);
        Some(Window { begin: all.first, end: all.last + gap })
    }
}

/// Counts by time. Without a window all measured messages count and none of the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCount {
    window: Option<Window>,
    begin: Nanos,
    end: Nanos,
    /// The time limit of a message, from its due time.
    timeout: Nanos,
    /// Messages handed to the transport within the window.
    pub sent: u64,
    /// First arrivals at consumers within the window and in time. A warm-up has no identities to
    /// tell a repeated message by; its messages count as often as they arrive.
    pub delivered: u64,
    /// Messages confirmed within the window and in time.
    pub confirmed: u64,
    /// Arrivals at consumers since the window began, in time or late, to the end of draining.
    pub delivered_since: u64,
    /// Confirmations since the window began, likewise.
    pub confirmed_since: u64,
    /// Arrivals after the window of messages that were sent within it.
    pub delivered_after: u64,
    /// Answers after the window to messages that were sent within it, and those that never came.
    pub answered_after: u64,
    /// The last arrival after the window.
    pub last_delivered: Option<Nanos>,
    /// The last answer after the window.
    pub last_answered: Option<Nanos>,
    /// Answers and arrivals of measured messages.
    pub answers: u64,
    /// Turns of the loop that brought some of them.
    pub turns: u64,
    answers_told: u64,
    is_over: bool,
}

impl Default for WindowCount {
    fn default() -> WindowCount {
        WindowCount {
            window: None,
            begin: Nanos::NEVER,
            end: Nanos::NEVER,
            timeout: Nanos::NEVER,
            sent: 0,
            delivered: 0,
            confirmed: 0,
            delivered_since: 0,
            confirmed_since: 0,
            delivered_after: 0,
            answered_after: 0,
            last_delivered: None,
            last_answered: None,
            answers: 0,
            turns: 0,
            answers_told: 0,
            is_over: false,
        }
    }
}

impl WindowCount {
    /// Counts by the window of a load, see [`Window::offered`]; `timeout` is the time limit of a
    /// message.
    pub fn prepare(&mut self, offered: Option<Window>, timeout: Nanos) {
        (self.window, self.timeout) = (offered, timeout);
    }

    /// The load starts at `start`: from now on the window lies on the trial's clock.
    pub fn open(&mut self, start: Nanos) {
        if let Some(window) = &mut self.window {
            window.begin = start + window.begin;
            window.end = Nanos(start.0.saturating_add(window.end.0));
            (self.begin, self.end) = (window.begin, window.end);
        }
    }

    /// The load was interrupted at `now`: nothing more is offered.
    pub fn cut(&mut self, now: Nanos) {
        if let Some(window) = &mut self.window {
            window.end = window.end.min(now).max(window.begin);
            self.end = window.end;
        }
    }

    /// The window, where the schedule sets one.
    pub fn window(&self) -> Option<Window> {
        self.window
    }

    /// True once a turn of the loop has seen the end of the window.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// A message was handed to the transport.
    #[inline]
    pub fn note_sent(&mut self, sent: Nanos, warmup: bool) {
        let counts = sent < self.end && (!warmup || sent >= self.begin);
        self.sent += u64::from(counts);
    }

    /// A message arrived at a consumer for the first time.
    #[inline]
    pub fn note_delivered(&mut self, due: Nanos, sent: Nanos, now: Nanos, warmup: bool) {
        self.answers += u64::from(!warmup);
        if warmup && now < self.begin {
            return;
        }
        self.delivered_since += 1;
        if now >= self.end {
            self.delivered_after += u64::from(sent < self.end);
            self.last_delivered = self.last_delivered.max(Some(now));
            return;
        }
        let is_late = due.0 > 0 && (now - due).0 > self.timeout.0;
        self.delivered += u64::from(!is_late);
    }

    /// A message was confirmed.
    #[inline]
    pub fn note_confirmed(&mut self, due: Nanos, sent: Nanos, now: Nanos, warmup: bool) {
        self.answers += u64::from(!warmup);
        if warmup && now < self.begin {
            return;
        }
        self.confirmed_since += 1;
        if now >= self.end {
            return self.note_answer_after(sent, now);
        }
        let is_late = (now - due).0 > self.timeout.0;
        self.confirmed += u64::from(!is_late);
    }

    /// A message was answered with an error.
    pub fn note_refused(&mut self, sent: Nanos, now: Nanos, warmup: bool) {
        self.answers += u64::from(!warmup);
        if now >= self.end {
            self.note_answer_after(sent, now);
        }
    }

    /// A message was never answered, and its connection stood to the end.
    pub fn note_unanswered(&mut self, sent: Nanos) {
        self.answered_after += u64::from(self.window.is_some() && sent < self.end);
    }

    fn note_answer_after(&mut self, sent: Nanos, now: Nanos) {
        self.answered_after += u64::from(sent < self.end);
        self.last_answered = self.last_answered.max(Some(now));
    }

    /// A turn of the loop is over.
    #[inline]
    pub fn end_turn(&mut self, now: Nanos) {
        self.is_over = now >= self.end;
        self.turns += u64::from(self.answers != self.answers_told);
        self.answers_told = self.answers;
    }

    /// Adds what another shard counted.
    pub fn merge(&mut self, other: &WindowCount) {
        self.window = match (self.window, other.window) {
            (Some(a), Some(b)) => {
                Some(Window { begin: a.begin.min(b.begin), end: a.end.max(b.end) })
            }
            (some, None) | (None, some) => some,
        };
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.confirmed += other.confirmed;
        self.delivered_since += other.delivered_since;
        self.confirmed_since += other.confirmed_since;
        self.delivered_after += other.delivered_after;
        self.answered_after += other.answered_after;
        self.last_delivered = self.last_delivered.max(other.last_delivered);
        self.last_answered = self.last_answered.max(other.last_answered);
        self.answers += other.answers;
        self.turns += other.turns;
    }
}

portable_fields!(Window { begin, end });
portable_fields!(WindowCount {
    window,
    begin,
    end,
    timeout,
    sent,
    delivered,
    confirmed,
    delivered_since,
    confirmed_since,
    delivered_after,
    answered_after,
    last_delivered,
    last_answered,
    answers,
    turns,
    answers_told,
    is_over,
});

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::Pattern;

    /// The window of a trace with these moments in milliseconds, as the runner asks for it.
    fn of_trace(moments_ms: &[u64], asked: Option<u64>) -> Option<(u64, u64)> {
        let trace: Vec<Nanos> = moments_ms.iter().map(|ms| Nanos::from_millis(*ms)).collect();
        let arrival = Arrival::Trace("trace".into());
        let duration = match asked {
            Some(ms) => Some(Nanos::from_millis(ms)),
            None => schedule::own_duration(&arrival, &trace),
        };
        let load =
            Load { duration, arrival, warmup: Nanos(0), ..Load::closed(Pattern::Request, 2) };
        let window = Window::offered(&load, &trace, 1)?;
        Some((window.begin.0 / 1_000_000, window.end.0 / 1_000_000))
    }

    #[test]
    fn a_trace_is_measured_from_its_first_moment_to_a_mean_gap_after_its_last() {
        assert_eq!(of_trace(&[0, 0, 0, 1000, 1000, 1000], None), Some((0, 2000)), "3/s");
        assert_eq!(of_trace(&[10_000, 10_010, 10_020], None), Some((10_000, 10_030)), "100/s");
        assert_eq!(of_trace(&[0, 10, 20, 30], Some(25)), Some((0, 25)), "cut short by -d");
        assert_eq!(of_trace(&[5, 5], None), None, "all at once, as a burst");
    }
}
