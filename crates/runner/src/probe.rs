//! A probe: one thing that is observed of a trial beside its messages. It is called at fixed
//! moments of the trial, in the order that its line in [`crate::probes::PROBES`] states.

use std::sync::{Arc, Mutex, PoisonError};

use weigh_engine::outcome::Outcome;
use weigh_model::Nanos;
use weigh_model::event::TrialFinished;
use weigh_model::plan::Plan;

use crate::case::Case;
use crate::exit::Stop;
use crate::trial::context::TrialContext;

/// Observes one thing of a trial. Every trial has probes of its own.
///
/// A probe is called at those moments only at which its [`Entry`] gives it a rank. What it finds
/// goes into the record of the trial; what other probes or the runner need of it goes into
/// [`TrialContext::found`].
pub trait Probe: Send {
    /// Checks a whole plan, before anything starts.
    ///
    /// # Errors
    /// If the plan asks for something that this probe cannot observe.
    fn check(&self, _plan: &Plan, _cases: &[Case]) -> Result<(), Stop> {
        Ok(())
    }

    /// The target is up, and the clock of the trial does not run yet.
    ///
    /// # Errors
    /// If the trial cannot take place.
    fn prepare(&mut self, _trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        Ok(())
    }

    /// The clock of the trial runs, and there is no load yet.
    ///
    /// # Errors
    /// If what must be observed cannot be.
    fn begin(&mut self, _trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        Ok(())
    }

    /// The measurement window has reached a border, `now` on the clock of the trial. Called in a
    /// thread beside the load, so that it makes no message late.
    fn window(&mut self, _edge: Edge, _now: Nanos) {}

    /// The generator is done. Without an outcome it has failed.
    fn end(&mut self, _trial: &mut TrialContext<'_>, _outcome: Option<&mut Outcome>) {}

    /// The trial has an outcome, and the target was reached.
    ///
    /// # Errors
    /// If the trial is worth nothing without what could not be observed.
    fn settle(&mut self, _trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        Ok(())
    }

    /// The target is idle: nothing of the trial is under way any more.
    fn leave(&mut self, _trial: &mut TrialContext<'_>, _outcome: &mut Outcome) {}

    /// Puts the figures into the record that the verdict on the generator's pace needs.
    fn record(&mut self, _trial: &mut TrialContext<'_>, _finished: &mut TrialFinished) {}

    /// Puts all other figures into the record, or takes out what this probe makes invalid.
    fn amend(&mut self, _trial: &mut TrialContext<'_>, _finished: &mut TrialFinished) {}
}

/// A border of the measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The window begins.
    Began,
    /// The load of an open loop has ended; answers may still come.
    LoadEnded,
    /// Everything is accounted for, and no connection is closed yet.
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
#[derive(Clone, Copy)]
pub struct Entry {
    /// What the probe is called.
    pub name: &'static str,
    /// Makes one for a trial.
    pub make: fn() -> Box<dyn Probe>,
    /// Its place in the order of each phase of [`Phase::ALL`], from 1; 0 where it is not called.
    pub ranks: [u8; Phase::ALL.len()],
}

/// A line of the list of probes, see [`Entry`].
pub const fn entry(
    name: &'static str,
    make: fn() -> Box<dyn Probe>,
    ranks: [u8; Phase::ALL.len()],
) -> Entry {
    Entry { name, make, ranks }
}

/// Makes a probe that begins with nothing known.
pub fn fresh<P: Probe + Default + 'static>() -> Box<dyn Probe> {
    Box::<P>::default()
}

/// The names of those that are called in a phase, in their order.
pub fn order(entries: &[Entry], phase: Phase) -> Vec<&'static str> {
    places(entries, phase).into_iter().map(|place| entries[place].name).collect()
}

/// The places in the list of those that are called in a phase, in their order.
fn places(entries: &[Entry], phase: Phase) -> Vec<usize> {
    let rank = |place: &usize| entries[*place].ranks[phase as usize];
    let mut called: Vec<usize> = (0..entries.len()).filter(|place| rank(place) > 0).collect();
    called.sort_by_key(rank);
    called
}

/// The probes of one trial. The generator's threads call them at the borders of the window.
pub struct Probes {
    all: Vec<Mutex<Box<dyn Probe>>>,
    /// Places in `all`, by phase.
    orders: [Vec<usize>; Phase::ALL.len()],
}

impl Probes {
    /// One of each line of a list.
    pub fn of(entries: &[Entry]) -> Arc<Probes> {
        let all = entries.iter().map(|entry| Mutex::new((entry.make)())).collect();
        Arc::new(Probes { all, orders: Phase::ALL.map(|phase| places(entries, phase)) })
    }

    /// Has every probe check a plan.
    ///
    /// # Errors
    /// The first objection.
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
            // A probe that panicked has been reported; its state is its own.
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
