//! The command line as a user meets it: the built program, in a folder of its own, on small loads.
//! Nothing here asserts a time.

mod auditing;
mod commands;
mod diff;
mod endings;
mod exports;
mod loads;
mod numbers;
mod readme;
mod recording;
mod refusals;
mod rig;
mod runs;
mod serving;
mod strangers;
mod weighing;
