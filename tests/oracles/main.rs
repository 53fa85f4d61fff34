//! Trials whose right answer is known before they run: on virtual time, where it must come out
//! exactly, and on real sockets.

mod accounting;
mod answers;
mod chance;
mod delay;
mod fault_wire;
mod faults;
mod gate;
mod ledger_size;
mod lint;
mod lint_plants;
mod mosquitto;
mod noting;
mod overload;
mod proxy;
mod queueing;
mod rig;
mod scripted;
mod sizes;
mod small;
mod statistics;
mod storms;
