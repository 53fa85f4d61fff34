//! Makes load and serves it: the loop, the schedules, the recorder, the ledger's bookkeeping.
//! It knows no protocol by name; connections and servers are handed to it.

pub mod accounts;
pub mod contents;
mod flights;
pub mod generator;
pub mod handover;
pub mod interval_times;
pub mod io;
pub mod job;
pub mod kept_messages;
pub mod lag_free;
pub mod lag_share;
pub mod layer;
mod link;
pub mod message_log;
pub mod message_rows;
pub mod object;
pub mod outcome;
pub mod pace;
pub mod polls;
pub mod record;
mod recorded;
pub mod recorder;
pub mod regroupings;
pub mod relay;
pub mod rendezvous;
pub mod schedule;
pub mod send_lags;
pub mod serving;
pub mod shard;
pub mod socket_host;
pub mod span;
pub mod storage;
pub mod times;
pub mod trace;
pub mod window;
