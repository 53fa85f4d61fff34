//! What a direction of a connection says, in order: reassembly of TCP, and the records of TLS.

pub mod reassembly;
pub mod sequence;
pub mod suite;
pub mod tls;
mod tls_names;

pub(crate) use tls_names::unit as tls_unit;
