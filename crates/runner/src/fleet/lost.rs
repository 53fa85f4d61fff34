//! Which failures of a fleet are repeated.

use crate::exit::{Exit, Stop};

/// True if the trial may succeed when it is repeated: an agent was lost, or one knew the start too
/// late. An agent that refuses its part would refuse it again.
pub fn is_worth_repeating(stop: &Stop) -> bool {
    let text = stop.to_string();
    stop.exit() == Exit::Generator && REPEATED.iter().any(|begin| text.starts_with(begin))
}

/// The beginnings of such failures.
const REPEATED: [&str; 2] = ["generator lost", "the start was called off"];
