//! The clocks of the agents.
