//! Probes: what is observed of a trial besides its messages, one file for each.
//!
//! The order in which probes start and stop affects what they measure. [`PROBES`] states it: a line
//! for each probe, a column for each phase, and its rank in that phase.
//!
//! | phase | when | what |
//! |---|---|---|
//! | check | before anything starts | rejects a plan |
//! | prepare | the target is up, the clock has not started | counters of an external target, |
//! | | | idle phase of the meter, the background, the phase of htop |
//! | begin | the clock runs, no load | layers around the clients first; captures last |
//! | window | it starts; its load ends; it ends | counters, the meter, the target and the kernel |
//! | | | are read |
//! | end | the generator has ended or failed | captures wait for the last packets |
//! | settle | there is a result | the pipeline stores everything, then the target may stop |
//! | leave | the target is idle | background and meter end; then counters are read |
//! | record | before the send lag is judged | figures that the verdict needs |
//! | amend | after it | all others; a background removes figures that include both loads |
//!
//! To add a probe write its file and its line.

pub mod activity;
pub mod alignment_load;
pub mod background;
pub mod background_record;
pub mod battery;
pub mod capture;
pub mod capture_result;
pub mod codec_counts;
pub mod counters;
pub mod cpu;
pub mod emulated;
pub mod energy;
pub mod external_meter;
pub mod fleet;
pub mod hop_files;
pub mod host;
pub mod listeners;
pub mod messages;
pub mod metering;
pub mod path;
pub mod radio;
pub mod received;
pub mod relay;
pub mod room;
pub mod send_times;
pub mod session;
pub mod stages;
pub mod target_usage;
pub mod tcp;
pub mod tcp_view;
pub mod tls;

use crate::probe::{Entry, entry, fresh};

/// All probes with their rank in each phase; 0 if a probe is not called.
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
    entry("fleet",      fresh::<fleet::Fleet>,                   [0, 0, 0,  0, 0, 0, 0, 0, 8]),
];

/// Probes of a trial whose load was over before this process could observe it.
pub const AFTERWARDS: &[Entry] =
    &[entry("fleet", fresh::<fleet::Fleet>, [0, 0, 0, 0, 0, 0, 0, 0, 8])];
