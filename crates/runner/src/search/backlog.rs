//! How much a target only queued in a trial of a search: what was due and not done when the load
//! ended, less what is in flight at a target that keeps up.

use weigh_limit::AxisKind;
use weigh_model::Load;
use weigh_model::event::{Interval, TrialFinished};
use weigh_model::protocol::Guarantee;

use crate::search::axis_load;

/// The time that a message usually takes at a target that does not queue: the smallest mean of any
/// trial of the search. Where sizes are searched, larger messages take longer: at most in
/// proportion to their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual {
    /// Nanoseconds; `None` if no trial measured a time.
    least_ns: Option<f64>,
    /// Nanoseconds for each byte of a body; only where sizes are searched.
    of_byte_ns: Option<f64>,
}

impl Usual {
    /// This trial is one more of a search along `kind`.
    pub fn seen(self, kind: AxisKind, load: &Load, finished: &TrialFinished) -> Usual {
        let mean = |name: &str| finished.metrics.get(name).copied().filter(|ns| ns.is_finite());
        let own = match load.delivers() {
            true => mean("one_way_time_ns.mean"),
            false => mean("service_time_ns.mean"),
        };
        let bytes = body_bytes(finished).filter(|_| kind == AxisKind::MessageSize);
        let of_byte = own.zip(bytes).map(|(ns, bytes)| ns / bytes);
        let least =
            |known: Option<f64>, own: Option<f64>| known.into_iter().chain(own).reduce(f64::min);
        Usual { least_ns: least(self.least_ns, own), of_byte_ns: least(self.of_byte_ns, of_byte) }
    }

    /// The usual time of a message of this trial, nanoseconds.
    fn of(self, finished: &TrialFinished) -> Option<f64> {
        let sized = self.of_byte_ns.zip(body_bytes(finished)).map(|(ns, bytes)| ns * bytes);
        self.least_ns.map(|least| sized.map_or(least, |sized| least.max(sized)))
    }

    /// Messages that may be in flight at the end of the window, of `due`, beyond those in flight at
    /// its start, although the target keeps up; at most one for each connection:
    ///
    /// - one message, which may be due immediately before the end;
    /// - what a warm-up that is shorter than the usual time has not brought into flight yet;
    /// - twice the standard deviation of the difference of two Poisson numbers of messages whose
    ///   mean is the usual number in flight (Little's law: rate times usual time), times the copies
    ///   of each;
    /// - 0.2 % of what was due, since pauses of 2 ms in a second are normal.
    ///
    /// More would hide a queue: with one message for each of many connections, the bounds of a
    /// target of 500/s were 686/s to 722/s with 200 connections and trials of a second.
    fn in_flight(self, load: &Load, finished: &TrialFinished, due: f64) -> f64 {
        let copies = load.copies() as f64;
        let connections = f64::from(load.connections) * copies;
        let paused = due * PAUSED;
        let (Some(usual_ns), Some(duration)) = (self.of(finished), load.duration) else {
            return connections.max(paused);
        };
        let usual = due * usual_ns / (duration.0.max(1) as f64);
        let cold = (1.0 - load.warmup.0 as f64 / usual_ns.max(1.0)).max(0.0) * usual;
        let noise = 2.0 * (2.0 * usual * copies).sqrt();
        (copies + cold).max(noise).min(connections).max(paused)
    }
}

/// Messages queued when the last message was due, as a share of those due: a target that only
/// queues loses nothing in a short trial and still does not keep up. An allowance is subtracted
/// for what need not be a queue, see [`Usual`].
///
/// Exact if the trial records what arrived within its window. Older records use the intervals of
/// the series: confirmations (with subscribers: deliveries) from the start of the window to its
/// end, against messages due in that time less the lost ones. Without confirmations and
/// subscribers, sent messages: a target that does not read shows when the sockets are full. Late
/// confirmations of the warm-up count, because a target that keeps up has equally many in flight at
/// both ends of the window.
pub fn backlog_ratio(
    load: &Load,
    finished: &TrialFinished,
    intervals: &[Interval],
    usual: Usual,
) -> f64 {
    let is_answered =
        finished.guarantee != Guarantee::AtMostOnce || finished.ledger.acknowledged > 0;
    let done = |interval: &Interval| match (load.delivers(), is_answered) {
        (true, _) => interval.delivered,
        (false, true) => interval.acknowledged,
        (false, false) => interval.sent,
    };
    let lost = finished.ledger.lost.unwrap_or(0) as f64;
    let allowance = |due: f64, cover: f64| lost * cover + usual.in_flight(load, finished, due);
    let due = finished.ledger.scheduled as f64;
    match counted(finished).filter(|_| axis_load::can_pile_up(load) && due > 0.0) {
        Some(out) => ((due - out - allowance(due, 1.0)) / due).max(0.0),
        None => missing_ratio(load, finished, intervals, done, allowance),
    }
}

/// The mean size of a body.
fn body_bytes(finished: &TrialFinished) -> Option<f64> {
    finished.metrics.get("body_bytes").copied().filter(|bytes| *bytes > 0.0)
}

/// Messages delivered or confirmed within the window, if the trial records what came after it.
fn counted(finished: &TrialFinished) -> Option<f64> {
    let metric = |name: &str| finished.metrics.get(name).copied();
    let rate = metric("throughput_out_per_s").filter(|_| metric("drained_after_s").is_some());
    Some(rate? * metric("window_s")?)
}

/// Share of the due messages that were not sent when the last one was due.
pub(super) fn unsent_ratio(load: &Load, finished: &TrialFinished, intervals: &[Interval]) -> f64 {
    let sent = |interval: &Interval| interval.sent * load.copies();
    missing_ratio(load, finished, intervals, sent, |_, _| 0.0)
}

/// Share of the messages due within the window that is missing from `done` at its end, less
/// allowances for messages in flight and for the part of the window that the intervals do not
/// cover.
fn missing_ratio(
    load: &Load,
    finished: &TrialFinished,
    intervals: &[Interval],
    done: impl Fn(&Interval) -> u64,
    allowance: impl Fn(f64, f64) -> f64,
) -> f64 {
    if !axis_load::can_pile_up(load) {
        return 0.0;
    }
    let (Some(duration), measured) = (load.duration, intervals.iter().filter(|own| !own.warmup))
    else {
        return 0.0;
    };
    let measured: Vec<&Interval> = measured.collect();
    let Some(first) = measured.first() else { return 0.0 };
    let start = first.at_ns.saturating_sub(first.length_ns.unwrap_or(0));
    let end = start + duration.0 + duration.0 / EDGE;
    let within: Vec<&Interval> =
        measured.into_iter().take_while(|interval| interval.at_ns <= end).collect();
    let Some(last) = within.last() else { return 0.0 };
    let cover = ((last.at_ns - start) as f64 / duration.0 as f64).min(1.0);
    let out: u64 = within.iter().map(|interval| done(interval)).sum();
    let due = finished.ledger.scheduled as f64 * cover;
    let missing = due - out as f64 - allowance(due, cover);
    if due > 0.0 { (missing / due).max(0.0) } else { 0.0 }
}

/// An interval ends within the window if it exceeds it by less than this part.
const EDGE: u64 = 50;

/// Share of the due messages that may be in flight at the end because of pauses.
const PAUSED: f64 = 0.002;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::result::tests::{finished, intervals, load};
    use serde_json::json;
    use weigh_model::{Nanos, Pattern};

    #[test]
    fn what_piles_up_is_a_share_of_what_was_due() {
        let ratio = |answers| {
            backlog_ratio(&load(), &finished(json!({})), &intervals(answers), Usual::default())
        };
        assert_eq!(ratio(300), 0.0);
        assert_eq!(ratio(310), 0.0, "the warm-up's backlog is worked off");
        // 8 messages may be under way, one on each connection; 0.2 % would be 6.
        assert_eq!(ratio(299), (10.0 - 8.0) / 3000.0);
        assert_eq!(ratio(270), (300.0 - 8.0) / 3000.0);
        let burst = Load { messages: Some(3000), duration: None, ..load() };
        assert_eq!(
            backlog_ratio(&burst, &finished(json!({})), &intervals(0), Usual::default()),
            0.0
        );
    }

    /// A trial that counted arrivals within its window is judged by them, independent of its
    /// intervals.
    #[test]
    fn what_piled_up_is_counted_where_the_trial_counts_it() {
        let ratio = |out: f64| {
            let metrics = json!({
                "throughput_out_per_s": out, "window_s": 1.0, "drained_after_s": 0.4,
            });
            backlog_ratio(
                &load(),
                &finished(json!({ "metrics": metrics })),
                &intervals(300),
                Usual::default(),
            )
        };
        assert_eq!(ratio(2995.0), 0.0);
        assert_eq!(ratio(1500.0), (1500.0 - 8.0) / 3000.0);
    }

    /// There are no confirmations at QoS 0: a message is done when it arrived at subscribers.
    #[test]
    fn a_transfer_to_subscribers_is_done_when_it_arrived() {
        let mut arrived = intervals(0);
        arrived.iter_mut().for_each(|interval| interval.delivered = 300);
        let ratio =
            |load: &Load| backlog_ratio(load, &finished(json!({})), &arrived, Usual::default());
        let heard = Load { pattern: Pattern::Transfer, subscribers: 1, ..load() };
        assert_eq!(ratio(&heard), 0.0);
        assert!(ratio(&Load { subscribers: 0, ..heard }) > 0.9);
    }

    /// Without confirmations (QoS 0) and subscribers, sent messages are done, and what the
    /// sockets did not take has piled up.
    #[test]
    fn a_publish_that_nobody_confirms_is_done_when_it_is_handed_over() {
        let mut sent = intervals(0);
        sent.iter_mut().for_each(|interval| interval.sent = 300);
        let ratio = |guarantee: &str, sent: &[Interval]| {
            backlog_ratio(
                &load(),
                &finished(json!({ "guarantee": guarantee })),
                sent,
                Usual::default(),
            )
        };
        assert_eq!(ratio("at most once", &sent), 0.0);
        assert!(ratio("at least once", &sent) > 0.9, "there a confirmation is owed");
        sent.iter_mut().for_each(|interval| interval.sent = 100);
        assert!(ratio("at most once", &sent) > 0.6);
    }

    /// 3,000/s over 200 connections at a target that usually takes 2 ms: 6 are in flight, and not
    /// 200. A queue of 60, which 200 connections hold, is one.
    #[test]
    fn many_connections_hide_no_queue() {
        let load = Load { connections: 200, ..load() };
        let metrics = |service_ms: f64, out: f64| {
            finished(json!({ "metrics": {
                "service_time_ns.mean": service_ms * 1e6, "throughput_out_per_s": out,
                "window_s": 1.0, "drained_after_s": 0.4,
            }}))
        };
        let usual = Usual::default().seen(AxisKind::Rate, &load, &metrics(2.0, 3000.0));
        let usual = usual.seen(AxisKind::Rate, &load, &metrics(60.0, 2940.0));
        assert_eq!(usual.of(&metrics(60.0, 2940.0)), Some(2e6), "the shortest of any trial");
        let ratio = |out: f64| backlog_ratio(&load, &metrics(60.0, out), &[], usual);
        let allowed = 2.0 * 12.0_f64.sqrt();
        assert!((ratio(2940.0) - (60.0 - allowed) / 3000.0).abs() < 1e-9, "{}", ratio(2940.0));
        assert_eq!(ratio(2994.0), 0.0);
        // Without a warm-up all 6 come into flight within the window.
        let cold = Load { warmup: Nanos(0), ..load.clone() };
        let ratio = backlog_ratio(&cold, &metrics(2.0, 2992.5), &[], usual);
        assert!(ratio < 1e-3, "{ratio}");
    }

    /// Messages of 10 kB take up to ten times as long as those of 1 kB, and small ones no less than
    /// the shortest of any trial; what a queue adds to a time is not usual.
    #[test]
    fn larger_messages_take_longer_and_a_queue_hides_nothing() {
        let trial = |ms: f64, bytes: f64| {
            finished(json!({ "metrics": {
                "service_time_ns.mean": ms * 1e6, "body_bytes": bytes,
            }}))
        };
        let seen = |usual: Usual, own| usual.seen(AxisKind::MessageSize, &load(), &own);
        let usual = seen(seen(Usual::default(), trial(1.0, 1e3)), trial(600.0, 20e3));
        assert_eq!(usual.of(&trial(600.0, 20e3)), Some(20e6));
        assert_eq!(usual.of(&trial(0.0, 10.0)), Some(1e6));
    }
}
