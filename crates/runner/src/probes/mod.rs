//! What is observed of a trial beside its messages, one file for each probe.
//!
//! The order in which probes begin and end is part of what they measure. [`PROBES`] states it: a
//! line for each probe, a column for each phase, and its place in the order of that phase.
//!
//! | phase | when | what |
//! |---|---|---|
//! | check | before anything starts | refuses a plan |
//! | prepare | the target is up, the clock of the trial stands | counters of an external target, |
//! | | | idle phase of the meter, the background, the phase of htop |
//! | begin | the clock runs, no load | layers around the clients first; captures last |
//! | window | it begins; its load ends; it ends | counters are asked, the meter, the target and |
//! | | | the kernel are read |
//! | end | the generator is done or has failed | captures wait for the last packets |
//! | settle | there is a result | the pipeline keeps all, then the target is let go |
//! | leave | the target is idle | background and meter end; then counters are asked |
//! | record | before the pace is judged | figures that the verdict needs |
//! | amend | after it | all others; a background takes out what is of two loads |
//!
//! To add a probe write its file and its line.

pub mod activity;
pub mod background;
pub mod background_record;
pub mod capture;
pub mod carried;
pub mod counters;
pub mod cpu;
pub mod departures;
pub mod emulated;
pub mod energy;
pub mod heard;
pub mod hearing;
pub mod hop_files;
pub mod host;
pub mod messages;
pub mod metering;
pub mod on_air;
pub mod outside;
pub mod path;
pub mod power;
pub mod pulses;
pub mod relay;
pub mod room;
pub mod session;
pub mod stages;
pub mod taken;
pub mod tcp;
pub mod tcp_view;
pub mod tls;
pub mod watched;

use crate::probe::{Entry, entry, fresh};

/// All probes, with their places in the order of each phase; 0 where a probe is not called.
#[rustfmt::skip]
pub const PROBES: &[Entry] = &[
    //                                                            check
    //                                                            |  prepare
    //                                                            |  |  begin
    //                                                            |  |  |   window
    //                                                            |  |  |   |  end
    //                                                            |  |  |   |  |  settle
    //                                                            |  |  |   |  |  |  leave
    //                                                            |  |  |   |  |  |  |  record
    //                                                            |  |  |   |  |  |  |  |  amend
    entry("cpu",        fresh::<cpu::Cpu>,                       [0, 0, 2,  3, 0, 4, 0, 3, 0]),
    entry("host",       fresh::<host::Host>,                     [0, 0, 4,  4, 0, 5, 0, 0, 5]),
    entry("counters",   fresh::<counters::Counters>,             [0, 1, 10, 1, 1, 0, 3, 7, 1]),
    entry("capture",    fresh::<capture::Capture>,               [0, 0, 9,  0, 3, 6, 5, 5, 0]),
    entry("tcp",        fresh::<tcp::Tcp>,                       [0, 0, 0,  0, 0, 8, 0, 6, 0]),
    entry("path",       fresh::<path::Path>,                     [0, 0, 8,  0, 4, 7, 0, 4, 0]),
    entry("relay",      fresh::<relay::Relay>,                   [0, 0, 7,  0, 2, 3, 0, 8, 2]),
    entry("tls",        fresh::<tls::Tls>,                       [0, 0, 1,  0, 0, 0, 4, 2, 0]),
    entry("energy",     fresh::<energy::Energy>,                 [0, 2, 0,  2, 0, 0, 2, 0, 7]),
    entry("stages",     fresh::<stages::Stages>,                 [0, 0, 3,  0, 0, 2, 0, 0, 3]),
    entry("messages",   fresh::<messages::Messages>,             [0, 0, 5,  0, 5, 1, 0, 0, 4]),
    entry("background", fresh::<background::BackgroundLoad>,     [0, 3, 0,  0, 0, 0, 1, 0, 6]),
    entry("emulated",   fresh::<emulated::Emulated>,             [1, 4, 0,  0, 0, 10, 6, 1, 0]),
    entry("room",       fresh::<room::Room>,                     [0, 0, 6,  5, 0, 9, 0, 0, 0]),
];
