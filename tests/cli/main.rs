//! The command line as a user meets it: the built program, in a folder of its own, on small loads.
//! Nothing here asserts a time.

mod auditing;
mod commands;
mod diff;
mod endings;
mod exports;
mod guide;
mod loads;
mod numbers;
mod plans;
mod readme;
mod recording;
mod refusals;
mod resume;
mod rig;
mod runs;
mod serving;
mod strangers;
mod weighing;
