//! Estimates how long a plan takes.

use weigh_model::arrival::Arrival;
use weigh_model::path::{Direction, Path};
use weigh_model::plan::Plan;
use weigh_model::{Emulation, Load, Nanos, Pattern};

/// Number of trials of a plan, and their duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Number of trials if every case is precise enough at once.
    pub trials_least: u64,
    /// Number of trials if no case ever is.
    pub trials_most: u64,
    /// Minimum duration, including starts.
    pub time_least: Nanos,
    /// Maximum duration: every trial waits for messages that never come, and none is left out.
    pub time_most: Nanos,
    /// Number of cases whose duration depends on their target; only their start is counted.
    pub unknown: u64,
}

/// Facts of a case before it runs.
///
/// # Examples
///
/// 10 s of load, and 100 ms to start the target:
///
/// ```
/// use weigh_model::{Load, Nanos, Pattern};
/// use weigh_plan::forecast::Expected;
///
/// let duration = Some(Nanos::from_secs(10));
/// let load = Load { duration, ..Load::closed(Pattern::Request, 1) };
/// let case = Expected { load: &load, path: None, overhead: Nanos::from_millis(100) };
/// assert_eq!(case.trial(), Nanos::from_millis(10_100));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Expected<'l> {
    /// Its load.
    pub load: &'l Load,
    /// The path between generator and target, if any.
    pub path: Option<&'l Path>,
    /// Duration of a trial besides its load: before the load starts, and after it has ended.
    pub overhead: Nanos,
}

impl Expected<'_> {
    /// Duration of a trial without losses.
    pub fn trial(&self) -> Nanos {
        self.sends().unwrap_or_default() + self.load.warmup + self.overhead
    }

    /// Minimum duration of the load; `None` if unknown.
    fn sends(&self) -> Option<Nanos> {
        measured(self.load).or_else(|| answered(self.load, self.path))
    }

    /// Maximum extra time for messages that never come.
    fn waits(&self) -> Nanos {
        let ends = 1 + u64::from(self.load.warmup.0 > 0);
        Nanos(self.load.timeout.0.saturating_mul(ends))
    }
}

/// Estimates a plan with these cases.
pub fn forecast(plan: &Plan, cases: &[Expected<'_>]) -> Forecast {
    let repeat = &plan.repeat;
    let round_least = cases.iter().fold(Nanos(0), |sum, case| sum + case.trial());
    let round_most = cases.iter().fold(round_least, |sum, case| sum + case.waits());
    let number = cases.len() as u64;
    let times = |round: Nanos, repetitions: u32| {
        let idle = plan.observe.idle_each();
        let is_looked_at = plan.observe.emulate.contains(&Emulation::Htop);
        let looks = if is_looked_at { HTOP_LOOKS } else { Nanos(0) };
        let pause = repeat.cool_down + idle + idle + looks;
        let round = round + Nanos(pause.0.saturating_mul(number));
        Nanos(round.0.saturating_mul(u64::from(repetitions)))
    };
    let longest = cases.iter().map(|case| case.trial() + case.waits()).max().unwrap_or_default();
    // No trial starts after the budget; a running one is finished.
    let within = |time: Nanos| repeat.budget.map_or(time, |budget| time.min(budget + longest));
    Forecast {
        trials_least: number.saturating_mul(u64::from(repeat.at_least)),
        trials_most: number.saturating_mul(u64::from(repeat.most())),
        time_least: within(times(round_least, repeat.at_least)),
        time_most: within(times(round_most, repeat.most())),
        unknown: cases.iter().filter(|case| case.sends().is_none()).count() as u64,
    }
}

/// Duration of the load without warm-up; `None` if it depends on the target.
pub fn measured(load: &Load) -> Option<Nanos> {
    if let Some(duration) = load.duration {
        return Some(duration);
    }
    if let Arrival::Steps(steps) = &load.arrival {
        return Some(steps.iter().fold(Nanos(0), |sum, step| sum + step.hold));
    }
    let rate = load.rate.filter(|_| load.arrival.is_open())?;
    let messages = load.split.total(load.messages?, load.connections) as f64;
    let joining = load.join.map_or(Nanos(0), |join| join.last_turn(load.connections));
    let sending = Nanos::from_secs_f64(messages / rate.total_per_second(load.connections));
    Some(joining + sending)
}

/// Minimum duration of a total in a closed loop: its round trips, transmissions and pauses in
/// sequence. `None` if there are none of these, and only the target decides.
fn answered(load: &Load, path: Option<&Path>) -> Option<Nanos> {
    let messages = load.messages.filter(|_| load.arrival == Arrival::Closed)?;
    let clients = u64::from(load.connections.max(1));
    let of_client = load.split.total(messages, load.connections).div_ceil(clients);
    let exchanges = of_client.div_ceil(u64::from(load.batch_size()));
    let in_a_row = exchanges.div_ceil(u64::from(load.window_within(u32::MAX)));
    let trips = if load.pattern == Pattern::Session { SESSION_TRIPS } else { 1 };
    let travel = Nanos(path.map_or(Nanos(0), round_trip).0.saturating_mul(trips));
    let lines = path.map_or(Nanos(0), |path| transmission(load, path));
    let all = (travel + lines).0.saturating_mul(in_a_row);
    let pauses = load.think.0.saturating_mul(exchanges);
    Some(Nanos(all.saturating_add(pauses))).filter(|time| time.0 > 0)
}

/// Mean round-trip time of a packet on an idle path.
pub fn round_trip(path: &Path) -> Nanos {
    let one = |way: &Direction| way.delay + way.jitter.mean();
    one(&path.up) + one(&path.down)
}

/// Transmission time of one body: up, and down again with subscribers.
fn transmission(load: &Load, path: &Path) -> Nanos {
    let bits = load.size.map_or(0, |size| size.0 * 8) as f64;
    let one = |way: &Direction| {
        way.rate.map_or(Nanos(0), |rate| Nanos::from_secs_f64(bits / rate.0 as f64))
    };
    let down = if load.subscribers > 0 { one(&path.down) } else { Nanos(0) };
    one(&path.up) + down
}

/// Round trips of a session of one message: TCP, TLS or the greeting of the protocol, the message.
const SESSION_TRIPS: u64 = 3;

/// Time that htop's sampling adds to a trial: on average half a window of 1.5 s before the load,
/// and half of one after it.
const HTOP_LOOKS: Nanos = Nanos::from_millis(1_500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadWords;
    use weigh_model::Rate;
    use weigh_model::plan::Repeat;

    const START: Nanos = Nanos::from_millis(300);

    fn plan(load: &Load, repeat: Repeat) -> Plan {
        let cases = vec![Default::default(); 2];
        let load = load.clone();
        Plan {
            name: String::new(),
            question: None,
            seed: 1,
            thresholds: Vec::new(),
            load,
            repeat,
            stop: Default::default(),
            observe: Default::default(),
            energy: None,
            background: None,
            cases,
        }
    }

    fn load(words: LoadWords) -> Load {
        words.decide("any", &[Pattern::Publish]).unwrap()
    }

    fn expected(load: &Load) -> Expected<'_> {
        Expected { load, path: None, overhead: START }
    }

    fn path(text: &str) -> Path {
        let head = "name = \"p\"\ntitle = \"P\"\nabout = \"A path.\"\nmtu = 1500\n";
        Path::parse("p.toml", &format!("{head}{text}")).unwrap()
    }

    #[test]
    fn least_and_most_are_sums_over_trials() {
        let load = load(LoadWords::default());
        let repeat =
            Repeat { at_most: Some(10), cool_down: Nanos::from_secs(1), ..Repeat::exactly(5) };
        let two = [expected(&load); 2];
        let seen = forecast(&plan(&load, repeat), &two);
        assert_eq!((seen.trials_least, seen.trials_most), (10, 20));
        // 2 s, 500 ms of warm-up, 300 ms to start, 1 s of pause; at most 5 s more for each end.
        assert_eq!(seen.time_least, Nanos::from_millis(38_000));
        assert_eq!(seen.time_most, Nanos::from_millis(20 * 13_800));
        assert_eq!(seen.unknown, 0);
        let repeat = Repeat { budget: Some(Nanos::from_secs(10)), ..Repeat::exactly(5) };
        let seen = forecast(&plan(&load, repeat), &two);
        assert_eq!(seen.time_least, Nanos::from_millis(22_800), "the last trial may end later");
        let mut looked_at = plan(&load, Repeat::exactly(5));
        let plain = forecast(&looked_at, &two[..1]).time_least;
        looked_at.observe.emulate = vec![Emulation::Htop];
        let seen = forecast(&looked_at, &two[..1]);
        assert_eq!(seen.time_least, plain + Nanos::from_millis(5 * 1_500));
    }

    #[test]
    fn a_total_at_a_rate_has_a_length_and_one_without_has_none() {
        let rate = Some(Rate { per_second: 10.0, per_client: true });
        let words = LoadWords { messages: Some(200), connections: Some(4), ..LoadWords::default() };
        let paced = load(LoadWords { rate, ..words.clone() });
        assert_eq!(measured(&paced), Some(Nanos::from_secs(5)));
        let closed = load(words);
        assert_eq!(measured(&closed), None);
        assert_eq!(forecast(&plan(&closed, Repeat::exactly(1)), &[expected(&closed)]).unknown, 1);
    }

    #[test]
    fn a_closed_loop_waits_for_the_round_trips_of_its_path() {
        let words = LoadWords { messages: Some(200), connections: Some(4), ..LoadWords::default() };
        let plain = load(words);
        let far = path(
            "[up]\ndelay = \"20ms\"\n[down]\ndelay = \"20ms\"\n\
                        jitter = { distribution = \"uniform\", width = \"20ms\" }\n",
        );
        let time = |load: &Load| answered(load, Some(&far)).map(|time| time.0 / 1_000_000);
        // 50 of each client, 50 ms each; ten of them together; ten in one exchange.
        assert_eq!(time(&plain), Some(2_500));
        assert_eq!(time(&Load { window: Some(10), ..plain.clone() }), Some(250));
        let batches = Load { pattern: Pattern::Batch, batch: Some(10), ..plain.clone() };
        assert_eq!(time(&batches), Some(250));
        let sessions = Load { pattern: Pattern::Session, ..plain.clone() };
        assert_eq!(time(&sessions), Some(7_500));
        let pausing = Load { think: Nanos::from_millis(10), ..plain.clone() };
        assert_eq!(time(&pausing), Some(3_000));
        assert_eq!(answered(&pausing, None), Some(Nanos::from_millis(500)));
        assert_eq!(answered(&plain, None), None, "the target alone decides");
        let case = Expected { path: Some(&far), ..expected(&plain) };
        let seen = forecast(&plan(&plain, Repeat::exactly(2)), &[case]);
        assert_eq!(seen.unknown, 0);
        assert_eq!(seen.time_least, Nanos(2 * (Nanos::from_millis(2_800) + plain.warmup).0));
    }

    #[test]
    fn an_object_is_on_the_line_once_or_twice() {
        let words = LoadWords { messages: Some(1), connections: Some(1), ..LoadWords::default() };
        let size = Some(weigh_model::units::Bytes(1_000_000));
        let object = Load { size, ..load(words) };
        let line = "rate = \"8Mbit/s\"\nqueue = \"256KB\"\n";
        let slow = path(&format!("[up]\n{line}[down]\n{line}"));
        assert_eq!(answered(&object, Some(&slow)), Some(Nanos::from_secs(1)));
        let passed_on = Load { subscribers: 1, ..object };
        assert_eq!(answered(&passed_on, Some(&slow)), Some(Nanos::from_secs(2)));
    }
}
