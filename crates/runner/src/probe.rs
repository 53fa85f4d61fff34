//! A probe observes one thing of a trial besides its messages. It is called at fixed moments, in
//! the order that its line in [`crate::probes::PROBES`] states.

use std::sync::{Arc, Mutex, PoisonError};

use weigh_engine::outcome::Outcome;
use weigh_model::Nanos;
use weigh_model::event::TrialFinished;
use weigh_model::plan::Plan;

use crate::case::Case;
use crate::exit::Stop;
use crate::trial::context::TrialContext;

/// Observes one thing of a trial. Every trial has its own probes.
///
/// A probe is called only at the moments for which its [`Entry`] has a rank. Its findings are added
/// to the record of the trial; findings that other probes or the runner need are in
/// [`TrialContext::found`].
///
/// # Examples
///
/// Counts the borders of the window, besides what the built-in probes observe:
///
/// ```
/// use weigh_model::Nanos;
/// use weigh_model::event::TrialFinished;
/// use weigh_runner::probe::{Edge, Phase, Probe, entry, fresh, order};
/// use weigh_runner::probes::PROBES;
/// use weigh_runner::trial::context::TrialContext;
///
/// #[derive(Default)]
/// struct Borders(u32);
///
/// impl Probe for Borders {
///     fn window(&mut self, _edge: Edge, _now: Nanos) {
///         self.0 += 1;
///     }
///
///     fn amend(&mut self, _trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
///         finished.metrics.insert("borders".to_owned(), self.0.into());
///     }
/// }
///
/// let mut probes = PROBES.to_vec();
/// // Called last in the phases `Window` and `Amend`.
/// probes.push(entry("borders", fresh::<Borders>, [0, 0, 0, 99, 0, 0, 0, 0, 99]));
/// assert_eq!(order(&probes, Phase::Window).last(), Some(&"borders"));
/// ```
pub trait Probe: Send {
    /// Checks a whole plan, before anything starts.
    ///
    /// # Errors
    /// If the plan asks for something that this probe cannot observe.
    fn check(&self, _plan: &Plan, _cases: &[Case]) -> Result<(), Stop> {
        Ok(())
    }

    /// The target is up, and the clock of the trial has not started.
    ///
    /// # Errors
    /// A trial that cannot run.
    fn prepare(&mut self, _trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        Ok(())
    }

    /// The clock of the trial has started, and there is no load yet.
    ///
    /// # Errors
    /// A required observation that cannot start.
    fn begin(&mut self, _trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        Ok(())
    }

    /// The measurement window has reached a border at `now` on the clock of the trial. Called in a
    /// thread besides the load, so that no message is delayed.
    fn window(&mut self, _edge: Edge, _now: Nanos) {}

    /// The generator has ended. Without an outcome it has failed.
    fn end(&mut self, _trial: &mut TrialContext<'_>, _outcome: Option<&mut Outcome>) {}

    /// The trial has an outcome, and the target was reached.
    ///
    /// # Errors
    /// A missing observation that makes the trial worthless.
    fn settle(&mut self, _trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        Ok(())
    }

    /// The target is idle: nothing of the trial is in flight.
    fn leave(&mut self, _trial: &mut TrialContext<'_>, _outcome: &mut Outcome) {}

    /// Adds the figures that the verdict on the generator's send lag needs to the record.
    fn record(&mut self, _trial: &mut TrialContext<'_>, _finished: &mut TrialFinished) {}

    /// Adds all other figures to the record, or removes those that this probe makes invalid.
    fn amend(&mut self, _trial: &mut TrialContext<'_>, _finished: &mut TrialFinished) {}
}

/// A border of the measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The window begins.
    Began,
    /// The load of an open loop has ended; answers may still come.
    LoadEnded,
    /// Every message is accounted for, and the connections are still open.
    Ended,
}

/// A moment at which probes are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// See [`Probe::check`].
    Check,
    /// See [`Probe::prepare`].
    Prepare,
    /// See [`Probe::begin`].
    Begin,
    /// See [`Probe::window`].
    Window,
    /// See [`Probe::end`].
    End,
    /// See [`Probe::settle`].
    Settle,
    /// See [`Probe::leave`].
    Leave,
    /// See [`Probe::record`].
    Record,
    /// See [`Probe::amend`].
    Amend,
}

impl Phase {
    /// All phases, in the order of a trial.
    pub const ALL: [Phase; 9] = [
        Phase::Check,
        Phase::Prepare,
        Phase::Begin,
        Phase::Window,
        Phase::End,
        Phase::Settle,
        Phase::Leave,
        Phase::Record,
        Phase::Amend,
    ];
}

/// A line of the list of probes.
///
/// # Examples
///
/// ```
/// use weigh_runner::probe::Phase;
/// use weigh_runner::probes::PROBES;
///
/// let cpu = PROBES.iter().find(|entry| entry.name == "cpu").expect("a built-in probe");
/// assert!(cpu.ranks[Phase::Window as usize] > 0, "called at the borders of the window");
/// ```
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name of the probe.
    pub name: &'static str,
    /// Makes the probe of a trial.
    pub make: fn() -> Box<dyn Probe>,
    /// Its rank in each phase of [`Phase::ALL`], from 1; 0 if it is not called.
    pub ranks: [u8; Phase::ALL.len()],
}

/// Makes a line of the list of probes, see [`Entry`].
pub const fn entry(
    name: &'static str,
    make: fn() -> Box<dyn Probe>,
    ranks: [u8; Phase::ALL.len()],
) -> Entry {
    Entry { name, make, ranks }
}

/// Makes a probe in its default state.
pub fn fresh<P: Probe + Default + 'static>() -> Box<dyn Probe> {
    Box::<P>::default()
}

/// Names of the probes of a phase, in order.
pub fn order(entries: &[Entry], phase: Phase) -> Vec<&'static str> {
    places(entries, phase).into_iter().map(|place| entries[place].name).collect()
}

/// Positions in the list of the probes of a phase, in order.
fn places(entries: &[Entry], phase: Phase) -> Vec<usize> {
    let rank = |place: &usize| entries[*place].ranks[phase as usize];
    let mut called: Vec<usize> = (0..entries.len()).filter(|place| rank(place) > 0).collect();
    called.sort_by_key(rank);
    called
}

/// The probes of one trial. The generator's threads call them at the borders of the window.
///
/// # Examples
///
/// A plan that no probe rejects:
///
/// ```
/// use weigh_runner::probe::Probes;
/// use weigh_runner::probes::PROBES;
/// use weigh_runner::runner::Runner;
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let (plan, secrets) = runner.read("example", "protocol = \"tcp\"\nload.messages = 100")?;
/// let checked = runner.check(plan, &secrets)?;
/// Probes::of(PROBES).check(&checked.plan, &checked.cases)?;
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub struct Probes {
    all: Vec<Mutex<Box<dyn Probe>>>,
    /// Positions in `all`, by phase.
    orders: [Vec<usize>; Phase::ALL.len()],
}

impl Probes {
    /// Makes one probe for each line of a list.
    pub fn of(entries: &[Entry]) -> Arc<Probes> {
        let all = entries.iter().map(|entry| Mutex::new((entry.make)())).collect();
        Arc::new(Probes { all, orders: Phase::ALL.map(|phase| places(entries, phase)) })
    }

    /// Lets every probe check a plan.
    ///
    /// # Errors
    /// The first error of a probe.
    pub fn check(&self, plan: &Plan, cases: &[Case]) -> Result<(), Stop> {
        self.try_each(Phase::Check, |probe| probe.check(plan, cases))
    }

    /// Calls `work` with every probe of the phase, in their order, until one fails.
    ///
    /// # Errors
    /// The first failure.
    pub fn try_each(
        &self,
        phase: Phase,
        mut work: impl FnMut(&mut dyn Probe) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.orders[phase as usize].iter().try_for_each(|place| {
            // A panic of a probe has been reported and does not affect the others.
            let mut probe = self.all[*place].lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut **probe)
        })
    }

    /// Calls `work` with every probe of the phase, in their order.
    pub fn each(&self, phase: Phase, mut work: impl FnMut(&mut dyn Probe)) {
        let all = self.try_each(phase, |probe| {
            work(probe);
            Ok(())
        });
        debug_assert!(all.is_ok(), "nothing failed");
    }
}
