//! Trials whose right answer is known before they run: on virtual time, where it must come out
//! exactly, and on real sockets.

mod accounting;
mod across;
mod answers;
mod background;
mod batching;
mod chance;
mod conformance;
mod delay;
mod delayed;
mod fans;
mod fault_connection;
mod faults;
mod gate;
mod groups;
mod idle;
mod lateness;
mod ledger_size;
mod lint;
mod lint_plants;
mod mosquitto;
mod noting;
mod overload;
mod polling;
mod proxy;
mod queueing;
mod rig;
mod scripted;
mod sealed;
#[cfg(feature = "tls")]
mod secured;
mod segmented;
mod service_rate;
mod sizes;
mod small;
mod stalled;
mod statistics;
mod storms;
mod toys;
mod transfer;
mod wrapped;
