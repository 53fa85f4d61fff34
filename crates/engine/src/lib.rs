//! Makes load and serves it: the loop, the schedules, the recorder, the ledger's bookkeeping.
//! It knows no protocol by name; wires and servers are handed to it.

pub mod io;
pub mod serving;
