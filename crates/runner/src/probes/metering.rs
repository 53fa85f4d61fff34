//! The energy meter of a run: its choice, its readings during every trial, the idle phases before
//! and after, and the result.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weigh_model::energy::{EnergyMeasured, MeterChosen, Span};
use weigh_model::event::{Event, TrialFinished};
use weigh_model::plan::Observe;
use weigh_model::{Ledger, Load, MeterChoice, Nanos, Pattern, Trial};
use weigh_observe::cpu::monotonic_ns;
use weigh_observe::energy::attribution::{Counts, Phases, measured};
use weigh_observe::energy::{Meter, MeterWatch, Sources, Track};
use weigh_observe::host::Roots;
use weigh_testbed::pinning::Pinning;

use crate::exit::Stop;
use crate::interrupts::Interrupts;

/// Energy measurement of a run.
#[derive(Clone, Debug, Default)]
pub struct Metering {
    /// The meter that the plan asks for.
    asked: MeterChoice,
    /// The meter that was found, or why there is none.
    found: Found,
    /// Length of each idle phase.
    idle: Nanos,
    /// True if the user asked for energy.
    is_asked: bool,
    /// Offset of the event clock from the monotonic clock, nanoseconds.
    ahead_ns: i64,
}

/// Available meters.
#[derive(Clone, Debug, Default)]
enum Found {
    /// No energy is asked for.
    #[default]
    Unwanted,
    /// A meter of this machine.
    Meter { choice: MeterChoice, name: String, covers: String },
    /// A log that is read after the run.
    Log { file: String },
    /// No meter, with the reason.
    Absent(String),
}

impl Metering {
    /// Opens the meter that `observe` asks for.
    ///
    /// # Errors
    /// An unknown meter, or one whose figures cannot be trusted.
    pub fn open(observe: &Observe) -> Result<Metering, Stop> {
        let asked = observe.meter.clone().unwrap_or_default();
        let mut metering = Metering {
            is_asked: observe.asks_for_energy(),
            idle: observe.idle_each(),
            found: Found::Unwanted,
            ahead_ns: ahead_ns(),
            asked,
        };
        metering.found = match &metering.asked {
            MeterChoice::None => Found::Unwanted,
            MeterChoice::Log { file, .. } => Found::Log { file: file.clone() },
            choice => match Meter::open(choice, &sources()) {
                Ok(meter) => Found::Meter {
                    choice: meter.choice().clone(),
                    name: meter.facts().name.clone(),
                    covers: meter.facts().covers.clone(),
                },
                Err(error) if choice.is_named() => {
                    return Err(Stop::usage(format!("--meter {choice}: {error}")));
                }
                Err(error) => Found::Absent(error.to_string()),
            },
        };
        Ok(metering)
    }

    /// File of a log that is read after the run, and the voltage that it lacks.
    pub fn log(&self) -> Option<(&str, Option<f64>)> {
        match &self.asked {
            MeterChoice::Log { file, voltage_mv } => {
                Some((file, voltage_mv.map(|millivolts| f64::from(millivolts) / 1e3)))
            }
            _ => None,
        }
    }

    /// The event for the journal; `None` if no energy is asked for.
    pub fn told(&self) -> Option<Event> {
        let mut chosen = MeterChosen { asked: self.asked.to_string(), ..MeterChosen::default() };
        match &self.found {
            Found::Unwanted => return None,
            Found::Meter { name, covers, .. } => {
                chosen.meter = Some(name.clone());
                chosen.covers = Some(covers.clone());
            }
            Found::Log { file } => chosen.meter = Some(format!("log {file}")),
            Found::Absent(reason) => chosen.absent = Some(reason.clone()),
        }
        chosen.is_asked = self.is_asked;
        Some(Event::MeterChosen(Box::new(chosen)))
    }

    /// The error for a user who asked for energy and gets none.
    pub fn complaint(&self) -> Option<String> {
        match &self.found {
            Found::Absent(reason) if self.is_asked => Some(format!("no energy: {reason}")),
            _ => None,
        }
    }

    /// The notice for a user who asked for energy.
    pub fn notice(&self) -> Option<String> {
        let meter = match &self.found {
            Found::Meter { name, covers, .. } => format!("{name} ({covers})"),
            Found::Log { file } => format!("the log {file}"),
            Found::Unwanted | Found::Absent(_) => return None,
        };
        let idle = self.idle;
        self.is_asked.then(|| format!("energy by {meter}; idle {idle} before and after each trial"))
    }

    /// Converts a time of the monotonic clock to the clock of events.
    pub fn moment(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_add_signed(self.ahead_ns)
    }

    /// Starts to measure a trial of this load; `None` without a meter.
    pub fn begin(&self, pinning: &Pinning, load: &Load) -> Option<MeteredTrial> {
        let watch = match &self.found {
            Found::Meter { choice, .. } => {
                let length =
                    load.duration.unwrap_or_default() + load.warmup + self.idle + self.idle;
                Some(start(choice, pinning, Duration::from_nanos(length.0)))
            }
            Found::Log { .. } => None,
            Found::Unwanted | Found::Absent(_) => return None,
        };
        let (watch, lost) = match watch {
            Some(Ok(watch)) => (Some(watch), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        Some(MeteredTrial { metering: self.clone(), watch, lost, idle: (None, None) })
    }
}

/// Starts a thread that reads the meter on a core without load or target if possible, and never on
/// the target's.
fn start(choice: &MeterChoice, pinning: &Pinning, length: Duration) -> Result<MeterWatch, String> {
    let meter = Meter::open(choice, &sources()).map_err(|error| error.to_string())?;
    let cores = pinning.aside.clone();
    let settle = move || {
        // If the cores cannot be set, the scheduler chooses.
        let _ = cores.pin_this_thread();
    };
    MeterWatch::start(meter, length, settle).map_err(|error| error.to_string())
}

/// A trial whose energy is measured.
#[derive(Debug)]
pub struct MeteredTrial {
    metering: Metering,
    watch: Option<MeterWatch>,
    /// Reason for which its meter could not be opened.
    lost: Option<String>,
    /// The idle phases before and after.
    idle: (Option<Span>, Option<Span>),
}

impl MeteredTrial {
    /// Waits for the idle phase before the trial.
    pub fn rest_before(&mut self, interrupts: &Interrupts) {
        self.idle.0 = self.rest(interrupts);
    }

    /// Waits for the idle phase after the trial.
    pub fn rest_after(&mut self, interrupts: &Interrupts) {
        self.idle.1 = self.rest(interrupts);
    }

    /// Reads the meter at a border of the window.
    pub fn poke(&self) {
        if let Some(watch) = &self.watch {
            watch.poke();
        }
    }

    /// Reads once more; returns all readings, or why there are none. A log has none. The CPU time
    /// of reading is added to `aside_cpu_ns`.
    pub fn end(&mut self, aside_cpu_ns: &mut u64) -> Option<Result<Track, String>> {
        if let Some(lost) = &self.lost {
            return Some(Err(lost.clone()));
        }
        let watch = self.watch.take()?;
        let track = watch.stop().map(|(_, track)| track).map_err(|error| error.to_string());
        *aside_cpu_ns += track.as_ref().map_or(0, Track::own_cpu_ns);
        Some(track)
    }

    /// Adds the energy to the record of the trial.
    pub fn tell(
        &self,
        trial: &Trial,
        window: Span,
        track: Option<Result<Track, String>>,
        finished: &mut TrialFinished,
    ) -> Event {
        let (before, after) = self.idle;
        let phases = Phases { before, window, after };
        let counts = counts(finished, trial.load.pattern);
        let mut told = match track {
            Some(Ok(track)) => measured(&trial.id, &track, phases, counts, self.metering.ahead_ns),
            Some(Err(reason)) => self.without(&trial.id, phases, reason),
            None => self.without(&trial.id, phases, UNREAD.to_owned()),
        };
        finished.metrics.extend(told.metrics.clone());
        told.trial.clone_from(&trial.id);
        Event::EnergyMeasured(Box::new(told))
    }

    /// The phases of a trial, without a figure.
    fn without(&self, trial: &str, phases: Phases, reason: String) -> EnergyMeasured {
        let moved = |span: Span| Span {
            from_ns: self.metering.moment(span.from_ns),
            to_ns: self.metering.moment(span.to_ns),
        };
        let idle = |span: Option<Span>| {
            let span = moved(span?);
            Some(weigh_model::energy::IdlePhase { span, power_w: None })
        };
        EnergyMeasured {
            trial: trial.to_owned(),
            window: moved(phases.window),
            idle_before: idle(phases.before),
            idle_after: idle(phases.after),
            absent: Some(reason),
            ..EnergyMeasured::default()
        }
    }

    fn rest(&self, interrupts: &Interrupts) -> Option<Span> {
        let idle = Duration::from_nanos(self.metering.idle.0);
        if idle.is_zero() || interrupts.exit().is_some() {
            return None;
        }
        self.look();
        let (from_ns, end) = (monotonic_ns(), Instant::now() + idle);
        while Instant::now() < end && interrupts.exit().is_none() {
            std::thread::sleep(end.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
        }
        let to_ns = monotonic_ns();
        self.look();
        Some(Span { from_ns, to_ns })
    }

    fn look(&self) {
        if let Some(watch) = &self.watch {
            watch.look();
        }
    }
}

/// Divisors of a trial's energy. Only with a session per message are all costs of a session in the
/// window.
pub fn counts(finished: &TrialFinished, pattern: Pattern) -> Counts {
    let Ledger { delivered, late, .. } = finished.ledger;
    let sessions = delivered.filter(|_| pattern == Pattern::Session);
    // Older records have only the ledger.
    let settled = finished.metrics.get("settled_messages").map(|messages| *messages as u64);
    let settled = delivered.map(|delivered| settled.unwrap_or(delivered + late));
    Counts { delivered: settled, sessions }
}

/// Locations of meters on this machine.
pub fn sources() -> Sources {
    Sources { power_chip: Some(power_chip), ..Sources::of(Roots::from_environment()) }
}

/// Output of the power chip of a Raspberry Pi 5.
fn power_chip() -> io::Result<String> {
    let output = Command::new("vcgencmd").arg("pmic_read_adc").output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Offset of Unix time from the monotonic clock, now.
fn ahead_ns() -> i64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    i64::try_from(unix).unwrap_or(i64::MAX) - i64::try_from(monotonic_ns()).unwrap_or(i64::MAX)
}

/// Reason for which a trial has no energy before the log is read.
pub const UNREAD: &str = "the log of the external meter has not been read";

/// Interval at which a pause checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
