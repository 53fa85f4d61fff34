//! The meter of energy of a run: which one it is, its readings beside every trial, the idle phases
//! before and after, and what it all comes to.

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

/// How a run measures energy.
#[derive(Clone, Debug, Default)]
pub struct Metering {
    /// What was asked for.
    asked: MeterChoice,
    /// What opens the meter, or why there is none.
    found: Found,
    /// How long each idle phase is.
    idle: Nanos,
    /// True if somebody asked for energy.
    is_asked: bool,
    /// How far the clock of its events is ahead of the monotonic one.
    ahead_ns: i64,
}

/// What there is to measure with.
#[derive(Clone, Debug, Default)]
enum Found {
    /// Nobody wants any.
    #[default]
    Unwanted,
    /// A meter of this machine.
    Meter { choice: MeterChoice, name: String, covers: String },
    /// A log that is read when the run is over.
    Log { file: String },
    /// None.
    Absent(String),
}

impl Metering {
    /// The meter that `observe` asks for.
    ///
    /// # Errors
    /// If it names one that there is not, or that cannot be believed.
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

    /// The file of a log that is read when the run is over, and the voltage it lacks.
    pub fn log(&self) -> Option<(&str, Option<f64>)> {
        match &self.asked {
            MeterChoice::Log { file, voltage_mv } => {
                Some((file, voltage_mv.map(|millivolts| f64::from(millivolts) / 1e3)))
            }
            _ => None,
        }
    }

    /// What the journal says of it; `None` where nobody wants any.
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

    /// What a user should know at once, who asked for energy and gets none.
    pub fn complaint(&self) -> Option<String> {
        match &self.found {
            Found::Absent(reason) if self.is_asked => Some(format!("no energy: {reason}")),
            _ => None,
        }
    }

    /// What a user should know who asked for energy and waits for it.
    pub fn notice(&self) -> Option<String> {
        let meter = match &self.found {
            Found::Meter { name, covers, .. } => format!("{name} ({covers})"),
            Found::Log { file } => format!("the log {file}"),
            Found::Unwanted | Found::Absent(_) => return None,
        };
        let idle = self.idle;
        self.is_asked.then(|| format!("energy by {meter}; idle {idle} before and after each trial"))
    }

    /// A moment of the monotonic clock on that of the events.
    pub fn moment(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_add_signed(self.ahead_ns)
    }

    /// Begins to measure a trial of this load; `None` where there is nothing to measure with.
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

/// A thread that reads the meter, beside the load and the target where there is a core for it, and
/// never on the target's.
fn start(choice: &MeterChoice, pinning: &Pinning, length: Duration) -> Result<MeterWatch, String> {
    let meter = Meter::open(choice, &sources()).map_err(|error| error.to_string())?;
    let cores = pinning.aside.clone();
    let settle = move || {
        // Where that is not ours to say it runs wherever the scheduler puts it.
        let _ = cores.pin_this_thread();
    };
    MeterWatch::start(meter, length, settle).map_err(|error| error.to_string())
}

/// A trial while its energy is measured.
#[derive(Debug)]
pub struct MeteredTrial {
    metering: Metering,
    watch: Option<MeterWatch>,
    /// Why its meter could not be opened.
    lost: Option<String>,
    /// The idle phases before and after.
    idle: (Option<Span>, Option<Span>),
}

impl MeteredTrial {
    /// Waits while nothing is asked of the machine, before the trial.
    pub fn rest_before(&mut self, interrupts: &Interrupts) {
        self.idle.0 = self.rest(interrupts);
    }

    /// Waits while nothing is asked of the machine, after the trial.
    pub fn rest_after(&mut self, interrupts: &Interrupts) {
        self.idle.1 = self.rest(interrupts);
    }

    /// Has the meter read at a border of the window.
    pub fn poke(&self) {
        if let Some(watch) = &self.watch {
            watch.poke();
        }
    }

    /// Reads a last time: all readings, or why there are none. There are none of a log. The
    /// processor time of reading goes to `aside_cpu_ns`.
    pub fn end(&mut self, aside_cpu_ns: &mut u64) -> Option<Result<Track, String>> {
        if let Some(lost) = &self.lost {
            return Some(Err(lost.clone()));
        }
        let watch = self.watch.take()?;
        let track = watch.stop().map(|(_, track)| track).map_err(|error| error.to_string());
        *aside_cpu_ns += track.as_ref().map_or(0, Track::own_cpu_ns);
        Some(track)
    }

    /// Puts what was drawn into the record of the trial.
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

    /// When what was, without a figure.
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

/// What a trial's energy is divided by. Only where every message has a session of its own are all
/// of a session's costs in the window.
pub fn counts(finished: &TrialFinished, pattern: Pattern) -> Counts {
    let Ledger { delivered, late, .. } = finished.ledger;
    let sessions = delivered.filter(|_| pattern == Pattern::Session);
    // Records from before this was counted have the ledger alone.
    let settled = finished.metrics.get("settled_messages").map(|messages| *messages as u64);
    let settled = delivered.map(|delivered| settled.unwrap_or(delivered + late));
    Counts { delivered: settled, sessions }
}

/// Where meters are on this machine.
pub fn sources() -> Sources {
    Sources { power_chip: Some(power_chip), ..Sources::of(Roots::from_environment()) }
}

/// What the power chip of a Raspberry Pi 5 says.
fn power_chip() -> io::Result<String> {
    let output = Command::new("vcgencmd").arg("pmic_read_adc").output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// How far the time since 1970 is ahead of the monotonic clock, now.
fn ahead_ns() -> i64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    i64::try_from(unix).unwrap_or(i64::MAX) - i64::try_from(monotonic_ns()).unwrap_or(i64::MAX)
}

/// Why a trial has no energy before the log is read.
pub const UNREAD: &str = "the log of the meter outside has not been read";

/// How soon a pause notices a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);
