//! The limit that keeps a load from its rate: the messages that may be in flight, the generator's
//! thread, the target's processor or the path; each with the number that would remove the limit.

use crate::numbers::{count, exact, percent, rate, span};
use crate::units::Rate;

/// Rate of a load, and use of everything that may have limited it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Rate of the plan, messages per second; `None` in closed loops.
    pub offered_per_s: Option<f64>,
    /// The rate at which messages were handed over.
    pub achieved_per_s: f64,
    /// Rate of the few messages that may be late at the end of the window without counting as
    /// missing.
    pub edge_per_s: f64,
    /// Producers' connections.
    pub connections: u32,
    /// Messages that may be in flight on each connection; `None` without a limit.
    pub in_flight: Option<u32>,
    /// True if the plan sets that limit, so that a larger one can be set.
    pub is_window_asked: bool,
    /// Mean time from sent to confirmed, nanoseconds.
    pub service_ns: Option<f64>,
    /// Fastest answer, from sent to confirmed, nanoseconds.
    pub fastest_ns: Option<f64>,
    /// Share of the messages that became due while the window was full; 1 in a closed loop without
    /// pauses.
    pub held_up: Option<f64>,
    /// Answers that the generator found when it woke, on average.
    pub answers_per_wakeup: Option<f64>,
    /// Share of a core that the generator's busiest thread used, percent.
    pub generator_percent: Option<f64>,
    /// Share of its cores that the target used, percent.
    pub target_percent: Option<f64>,
    /// Share of the path's rate that the load needs in its busier direction.
    pub path_asked: Option<f64>,
    /// True if fewer messages came out than went in.
    pub is_behind: bool,
}

/// Limit of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Connections times messages in flight, divided by the round trip.
    Slots,
    /// The generator's thread; it used this percentage of its core.
    Generator(f64),
    /// The target's processor; the target used this percentage of its cores.
    Target(f64),
    /// The path; the load needed this share of its rate.
    Path(f64),
}

impl Pace {
    /// True if the rate of the plan was not reached, or answers set the rate.
    pub fn fell_short(&self) -> bool {
        let achieved = self.achieved_per_s + self.edge_per_s;
        self.offered_per_s.is_none_or(|offered| achieved < REACHED * offered)
    }

    /// Returns what limited the rate; `None` if the load reached its rate, or nothing observed was
    /// full.
    ///
    /// A full path or a full target makes every round trip longer and so fills the slots too; they
    /// are therefore checked first. A generator that wakes for every single answer is busy with
    /// waking up: more messages in flight let it do more at each wake-up, so its thread is not the
    /// limit, however full.
    pub fn bound(&self) -> Option<Bound> {
        if !self.fell_short() && !self.is_behind {
            return None;
        }
        let is_full = |percent: Option<f64>, least: f64| percent.filter(|own| *own >= least);
        let full_path = is_full(self.path_asked, PATH_FULL).map(Bound::Path);
        let full_target = is_full(self.target_percent, TARGET_FULL_PERCENT).map(Bound::Target);
        let busy = is_full(self.generator_percent, GENERATOR_FULL_PERCENT);
        let slots = (self.slots_are_full() && (busy.is_none() || !self.is_amortised()))
            .then_some(Bound::Slots);
        full_path.or(full_target).or(slots).or(busy.map(Bound::Generator))
    }

    /// True if most messages waited for a slot, and all slots were taken on average.
    fn slots_are_full(&self) -> bool {
        let (Some(in_flight), Some(held_up)) = (self.in_flight, self.held_up) else { return false };
        let slots = f64::from(self.connections) * f64::from(in_flight);
        let taken = self.service_ns.map(|service| self.achieved_per_s * service / 1e9);
        self.fell_short()
            && held_up >= HELD_UP_MIN
            && taken.is_none_or(|taken| taken >= TAKEN_MIN * slots)
    }

    /// The fastest answer, nanoseconds, if at its speed the slots would be enough for the rate: the
    /// rest of a longer time is waiting at the target, which more slots make longer.
    fn queued(&self) -> Option<f64> {
        let slots = f64::from(self.connections) * f64::from(self.in_flight.unwrap_or(1));
        let is_enough = |fastest: &f64| {
            self.offered_per_s.is_some_and(|offered| slots / fastest * 1e9 >= offered)
        };
        self.fastest_ns.filter(is_enough)
    }

    /// True if enough answers share a wake-up of the generator to make it cheap.
    fn is_amortised(&self) -> bool {
        self.answers_per_wakeup.is_none_or(is_amortised)
    }

    /// Code, text and fix of the warning.
    pub fn words(&self, bound: &Bound) -> (&'static str, String, String) {
        let short = self.offered_per_s.filter(|_| self.fell_short());
        let code = match (bound, short) {
            (Bound::Generator(_), _) => "generator-limited",
            (Bound::Slots, None) => "round-trip-limited",
            (Bound::Target(_), None) => "target-limited",
            (Bound::Path(_), None) => "path-limited",
            _ => "rate-not-reached",
        };
        // Both rates are in a separate warning next to a full generator.
        let told = short.filter(|_| !matches!(bound, Bound::Generator(_)));
        let rates = told.map(|offered| {
            format!("{} offered, {} handed over: ", rate(offered), rate(self.achieved_per_s))
        });
        let text = rates.unwrap_or_default() + &self.seen(bound);
        (code, text, self.advice(bound))
    }

    /// Returns what was full.
    fn seen(&self, bound: &Bound) -> String {
        match bound {
            Bound::Slots => {
                let slots = f64::from(self.connections) * f64::from(self.in_flight.unwrap_or(1));
                let held_ns = self.service_ns.unwrap_or(slots / self.achieved_per_s * 1e9);
                format!(
                    "{} connection{} x {} in flight / {} = {}",
                    count(u64::from(self.connections)),
                    if self.connections == 1 { "" } else { "s" },
                    count(u64::from(self.in_flight.unwrap_or(1))),
                    span(held_ns),
                    rate(slots / held_ns * 1e9)
                )
            }
            Bound::Generator(used) => {
                format!("the generator used {} of its core: it was the limit", percent(*used))
            }
            Bound::Target(used) => format!("the target used {} of its cores", percent(*used)),
            Bound::Path(share) => {
                format!("the load asked for {} of the path's rate", percent(100.0 * share))
            }
        }
    }

    /// Returns what would remove the limit.
    fn advice(&self, bound: &Bound) -> String {
        let times = self.offered_per_s.map(|offered| offered / self.achieved_per_s.max(1e-9));
        let (offered, achieved) = (self.offered_per_s.unwrap_or(0.0), self.achieved_per_s);
        let slower = format!("lower the rate to what it carries (-R {})", at_most(achieved));
        match (bound, times.filter(|times| *times > 1.0)) {
            (Bound::Slots, Some(_)) if self.queued().is_some() => format!(
                "{slower}: the fastest answer took {}, so messages probably wait at the \
                 target, and more connections would make them wait longer",
                span(self.queued().unwrap_or_default())
            ),
            (Bound::Slots, Some(times)) => {
                let least = (f64::from(self.connections) * times).ceil();
                let window = f64::from(self.in_flight.unwrap_or(1)) * times;
                let window = match self.is_window_asked {
                    true => format!(", or a window of {} (--window {0})", window.ceil()),
                    false => String::new(),
                };
                format!(
                    "for {} use at least {} connections (-c {least}; in a plan \
                     load.connections){window}",
                    rate(offered),
                    exact(least)
                )
            }
            (Bound::Slots, None) => {
                "for a higher rate use more connections (-c; in a plan load.connections)".to_owned()
            }
            (Bound::Generator(_), Some(times)) => format!(
                "use at least {} times the generator threads (--shards), on cores of their own, \
                 or {slower}",
                exact(times.ceil())
            ),
            (Bound::Generator(_), None) => {
                "use more generator threads (--shards 2) on cores of their own, or lower the rate"
                    .to_owned()
            }
            (Bound::Target(_), Some(times)) => {
                format!("{slower}, or give the target {} times the cores", exact(tenths(times)))
            }
            (Bound::Target(_), None) => "lower the rate, or give the target more cores".to_owned(),
            (Bound::Path(share), times) => {
                format!(
                    "use a path with {} times the rate, or lower the load to what it carries \
                     (-R {})",
                    exact(tenths(share * times.unwrap_or(1.0))),
                    at_most(achieved / share.max(1.0))
                )
            }
        }
    }
}

/// True if the answers at a wake-up of the generator are enough to make waking cheap.
pub fn is_amortised(answers_per_wakeup: f64) -> bool {
    answers_per_wakeup >= AMORTISED_MIN
}

/// A rate to type, rounded down: whole from 10/s on, below with two decimals.
fn at_most(per_second: f64) -> String {
    let step = if per_second < 10.0 { 100.0 } else { 1.0 };
    Rate { per_second: (per_second * step).floor() / step, per_client: false }.typed()
}

fn tenths(times: f64) -> f64 {
    (times * 10.0).round() / 10.0
}

/// Formats a number for people: `950`, `12,400`, `3.1 million`.
pub(crate) fn large(number: u64) -> String {
    match number {
        0..1_000_000 => count(number),
        _ => format!("{:.1} million", number as f64 / 1e6),
    }
}

/// The share of the offered rate from which it counts as reached.
pub const REACHED: f64 = 0.98;

/// A window that held up fewer than half of the messages did not limit the rate.
pub const HELD_UP_MIN: f64 = 0.5;

/// Share of all slots that must be taken on average for them to limit the rate.
const TAKEN_MIN: f64 = 0.7;

/// Share of its rate from which a path counts as full: other traffic takes the last part.
pub const PATH_FULL: f64 = 0.95;

/// Answers at a wake-up from which on more of them hardly reduce the cost of a message.
const AMORTISED_MIN: f64 = 8.0;

/// Share of a core from which the generator counts as full ([`Bound::Generator`]). Where
/// both ends of a closed loop are close to it they are the limit together: only a target with room
/// left shows that the generator was.
pub const GENERATOR_FULL_PERCENT: f64 = 95.0;

/// Share of a core from which a target counts as full, see [`GENERATOR_FULL_PERCENT`].
pub const TARGET_FULL_PERCENT: f64 = 85.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// 60,000/s asked of two connections whose round trip is 80 µs.
    fn two_connections() -> Pace {
        Pace {
            offered_per_s: Some(60_000.0),
            achieved_per_s: 24_900.0,
            connections: 2,
            in_flight: Some(1),
            service_ns: Some(80_000.0),
            held_up: Some(0.97),
            answers_per_wakeup: Some(1.2),
            generator_percent: Some(60.0),
            target_percent: Some(45.0),
            ..Pace::default()
        }
    }

    #[test]
    fn full_slots_are_named_with_the_connections_that_the_rate_needs() {
        let spinning = Pace { generator_percent: Some(99.0), ..two_connections() };
        for pace in [two_connections(), spinning] {
            assert_eq!(pace.bound(), Some(Bound::Slots));
            let (code, text, advice) = pace.words(&Bound::Slots);
            assert_eq!(code, "rate-not-reached");
            assert!(text.ends_with("2 connections x 1 in flight / 80 µs = 25,000/s"), "{text}");
            assert!(
                advice.starts_with("for 60,000/s use at least 5 connections (-c 5;"),
                "{advice}"
            );
        }
        let asked = Pace { is_window_asked: true, ..two_connections() };
        assert!(asked.words(&Bound::Slots).2.ends_with("a window of 3 (--window 3)"));
    }

    /// 800/s asked of 64 connections to a queue of 500/s, whose fastest answer took 2 ms.
    #[test]
    fn more_connections_are_no_advice_for_a_target_that_queues() {
        let queued = Pace {
            offered_per_s: Some(800.0),
            achieved_per_s: 500.0,
            connections: 64,
            service_ns: Some(128e6),
            fastest_ns: Some(2e6),
            target_percent: None,
            ..two_connections()
        };
        assert_eq!(queued.bound(), Some(Bound::Slots));
        let advice = queued.words(&Bound::Slots).2;
        assert!(advice.starts_with("lower the rate to what it carries (-R 500/s): the fastest"));
        assert!(!advice.contains("at least"), "{advice}");
        let far = Pace { fastest_ns: Some(100e6), ..queued };
        assert!(far.words(&Bound::Slots).2.contains("use at least 103 connections"));
    }

    #[test]
    fn a_generator_that_does_many_at_each_wake_up_is_the_limit() {
        let full = Pace {
            connections: 64,
            achieved_per_s: 200_000.0,
            offered_per_s: Some(500_000.0),
            service_ns: Some(320_000.0),
            answers_per_wakeup: Some(31.0),
            generator_percent: Some(99.0),
            ..two_connections()
        };
        assert_eq!(full.bound(), Some(Bound::Generator(99.0)));
        let (code, text, advice) = full.words(&Bound::Generator(99.0));
        assert_eq!(code, "generator-limited");
        assert!(text.contains("the generator used 99 % of its core"), "{text}");
        assert!(advice.contains("at least 3 times the generator threads"), "{advice}");
        let free = Pace { held_up: Some(0.1), answers_per_wakeup: Some(1.0), ..full };
        assert_eq!(free.bound(), Some(Bound::Generator(99.0)), "slots were free");
        let idle = Pace { generator_percent: Some(60.0), ..free };
        assert_eq!(idle.bound(), None);
    }

    #[test]
    fn a_full_target_or_path_explains_full_slots() {
        let target = Pace { target_percent: Some(98.0), ..two_connections() };
        assert_eq!(target.bound(), Some(Bound::Target(98.0)));
        let advice = target.words(&Bound::Target(98.0)).2;
        assert!(
            advice.contains("-R 24900/s") && advice.contains("2.4 times the cores"),
            "{advice}"
        );
        let path = Pace { path_asked: Some(1.0), ..target };
        assert_eq!(path.bound(), Some(Bound::Path(1.0)));
        assert!(path.words(&Bound::Path(1.0)).2.contains("2.4 times the rate"));
    }

    #[test]
    fn a_rate_that_was_reached_is_bound_by_nothing() {
        let reached =
            Pace { achieved_per_s: 59_900.0, generator_percent: Some(99.0), ..two_connections() };
        assert_eq!(reached.bound(), None);
        let behind = Pace { is_behind: true, ..reached };
        assert_eq!(behind.bound(), Some(Bound::Generator(99.0)));
    }

    #[test]
    fn a_rate_to_type_is_not_above_what_was_carried() {
        let typed = [0.456, 9.999, 24_900.7].map(at_most);
        assert_eq!(typed, ["0.45/s", "9.99/s", "24900/s"]);
        assert_eq!((large(950), large(3_120_000)), ("950".to_owned(), "3.1 million".to_owned()));
    }
}
