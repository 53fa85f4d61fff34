//! Pulses of load by which the log of an external meter is aligned: all cores busy three times, in
//! an irregular pattern.

use std::time::{Duration, Instant};

use weigh_model::energy::{LoadPulses, Span};
use weigh_observe::cpu::monotonic_ns;
use weigh_testbed::pinning::CoreSet;

use crate::interrupts::Interrupts;
use crate::probes::metering::Metering;

/// Makes the pulses; fewer if a signal ends it.
pub fn make(metering: &Metering, interrupts: &Interrupts) -> LoadPulses {
    let cores = CoreSet::allowed().map_or(1, |cores| cores.count());
    let mut pulses = Vec::new();
    rest(LENGTH, interrupts);
    for pause in PAUSES {
        if interrupts.exit().is_some() {
            break;
        }
        let from_ns = metering.moment(monotonic_ns());
        be_busy(cores, LENGTH);
        pulses.push(Span { from_ns, to_ns: metering.moment(monotonic_ns()) });
        rest(pause, interrupts);
    }
    LoadPulses { pulses }
}

fn be_busy(cores: u32, length: Duration) {
    let end = Instant::now() + length;
    let spin = move || while Instant::now() < end {};
    std::thread::scope(|scope| {
        // This thread is one of them.
        for _ in 1..cores {
            scope.spawn(spin);
        }
        spin();
    });
}

fn rest(length: Duration, interrupts: &Interrupts) {
    let end = Instant::now() + length;
    while Instant::now() < end && interrupts.exit().is_none() {
        std::thread::sleep(end.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
    }
}

/// Length of a pulse, and of the pause before the first one: long for the interval of any usable
/// meter, short for a trial.
const LENGTH: Duration = Duration::from_secs(1);

/// Pauses after the pulses: unequal, so that a pattern shifted by one pulse fits worse.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(1)];

/// Interval at which a pause checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
