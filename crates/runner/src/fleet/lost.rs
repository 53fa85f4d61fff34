//! Which failures of a fleet are repeated.

use crate::exit::{Exit, Stop};

/// True if the trial may succeed when it is repeated: an agent was lost or is missing, or one knew
/// the start too late. An agent that refuses its part would refuse it again.
pub fn is_worth_repeating(stop: &Stop) -> bool {
    stop.exit() == Exit::Generator && stop.to_string().starts_with(LOST)
}

/// The beginning of such failures.
const LOST: &str = "generator lost: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_and_failures_of_the_target_are_not_repeated() {
        for (exit, text, is_repeated) in [
            (Exit::Generator, "generator lost: agent 1 (a) did not answer for 10 s", true),
            (Exit::Generator, "agent 1 (a): it may not load 10.0.0.1:1883", false),
            (Exit::Target, "10.0.0.1:1883: connection refused", false),
        ] {
            assert_eq!(is_worth_repeating(&Stop::new(exit, text)), is_repeated, "{text}");
        }
    }
}
