//! What happens in a simulated trial.

use std::rc::Rc;

use weigh_observe::clocks::pair::Exchange;

use crate::messages::{Answer, Start, State, Whole};

/// Something that happens to one agent, or to the coordinator because of one.
#[derive(Clone)]
pub enum Item {
    /// The agent looks around.
    Look,
    /// The coordinator asks for the clock, for this number of times before.
    AskClock(u64),
    /// The question arrives, sent then.
    ClockAsked(i64),
    /// The answer arrives.
    ClockAnswered(Exchange),
    /// The state of all arrives at the agent.
    Whole(Rc<Whole>),
    /// The state of the agent arrives at the coordinator.
    State(Box<State>),
    /// The agent hears of a start.
    Named(Start),
    /// The agent hears that all can keep it.
    Confirmed(Start),
    /// It has answered to the first, or has not.
    NameAnswered(Result<Answer, String>),
    /// It has answered to the second.
    ConfirmAnswered(Result<Answer, String>),
}
