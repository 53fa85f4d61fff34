//! Carries out what a plan asks: cases are made of it, each trial gets its target, its load and its
//! probes, and everything measured is an event in a journal. The command line is one user of it.

/// Every line on standard error has control characters made visible: names, file names and the
/// reasons of a target may hold what a terminal obeys. The name shadows that of the standard
/// library, so that no line can go another way by mistake.
macro_rules! eprintln {
    ($($part:tt)*) => {
        std::eprintln!("{}", weigh_model::visible::visible(&format!($($part)*)))
    };
}

pub mod case;
pub mod energy;
pub mod exit;
pub mod input_file;
pub mod interrupts;
pub mod preflight;
pub mod probe;
pub mod probes;
pub mod run;
pub mod rundown;
pub mod sealed_bodies;
pub mod search;
pub mod study;
pub mod targets;
pub mod trial;
pub mod watcher;
