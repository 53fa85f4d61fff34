//! What is seen of a trial beside its messages, one file for each.
//!
//! The order in which they begin and end is part of what they measure, and is kept
//! (`trial/measure.rs` is the only caller):
//!
//! | phase | in this order |
//! |---|---|
//! | before the trial | the counters of an external target are asked; `metering` rests, begins |
//! | target up, no load | `background`, `emulated` (waits for htop's phase), `layers`, |
//! | | CPU and memory (`targets/watching`), `staged`, `departures`, `messages`, |
//! | | room (descriptors, ports), relay, `crossing` (path, capture, TCP) |
//! | window begins | CPU and memory look, `metering` reads, room |
//! | load ends | `taken` asks a reference server; CPU and memory look |
//! | window ends | CPU and memory look, `metering` reads, room |
//! | generator done | `crossing` waits for the last packets, `messages`, `staged` waits until |
//! | | all is kept, CPU and memory end, `emulated` looks a last time |
//! | target idle | `background` ends, `metering` rests, ends; external counters are asked |
//! | record | counters, `emulated`, `layers`, CPU and memory, `crossing`, relay, `staged`, |
//! | | `messages`, share of the target, `background`, `metering` |

pub mod activity;
pub mod background;
pub mod crossing;
pub mod departures;
pub mod emulated;
pub mod heard;
pub mod hearing;
pub mod hop_files;
pub mod layers;
pub mod messages;
pub mod metering;
pub mod on_air;
pub mod outside;
pub mod power;
pub mod pulses;
pub mod session;
pub mod staged;
pub mod taken;
pub mod tcp_view;
pub mod watched;
