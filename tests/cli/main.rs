//! The command line as a user meets it: the built program, in a folder of its own, on small loads.
//! Nothing here asserts a time.

mod auditing;
mod background;
mod brokers;
mod clocks;
mod commands;
mod diff;
mod endings;
mod energy;
mod exports;
mod facades;
mod guide;
mod isolation;
#[cfg(feature = "library")]
mod library;
mod limit;
mod loads;
mod modelled;
mod numbers;
mod observing;
mod packets;
mod path;
#[cfg(feature = "pipeline")]
mod pipeline;
mod plans;
mod polling;
mod probing;
mod readme;
mod recording;
mod refusals;
mod requests;
mod resume;
mod rig;
mod rundown;
mod runs;
mod sealed;
mod serving;
#[cfg(feature = "pipeline")]
mod stages;
mod strangers;
mod studies;
mod sys;
#[cfg(feature = "tls")]
mod tls;
mod transfers;
mod websocket;
mod weighing;
mod wire;
