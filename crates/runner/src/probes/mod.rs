//! What is seen of a trial beside its messages, one file for each.
//!
//! The order in which they begin and end is part of what they measure, and is kept
//! (`trial/measure.rs` is the only caller):
//!
//! | probe | before the target is asked | target up, no load yet | borders of the window | load over | record |
//! |---|---|---|---|---|---|
//! | counters by URL (`targets/watching`) | 1 asked | | | asked again (12) | 13 |
//! | energy (`metering`) | 2 rests, begins | | read at both | rests, ends (11) | last |
//! | `background` | | 3 begins, up | | ends (10) | after the target is given back |
//! | `emulated` | | 4 begins (htop's phase is waited for) | | last look (9) | 13 |
//! | TLS, WebSocket, sealing (`layers`) | | 5 | | | 13 |
//! | cpu, memory (`targets/watching`, `watched`) | | 6 begins, looks | looks at begin, end of load and end | ends (8) | 13 |
//! | `staged`, `hop_files`, `departures` | | 7 | | waits until all is kept (7) | 14 |
//! | `messages` | | 8 | | ends (6) | 14 |
//! | room: descriptors, ports | | 9 | looks at both | | 13 |
//! | relay | | 10 | | ends (5) | 14 |
//! | path, capture, tcp (`crossing`, `hearing`) | | 11 begins | | waits for the last packets, ends (5) | 13 |
//! | what a reference server took in (`taken`) | | | asked when the load ends | | 13 |

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
