//! The content of one direction of a connection, in order: reassembly of TCP, records of TLS and
//! DTLS, and packets of QUIC.

pub mod dtls;
pub mod quic;
pub mod reassembly;
pub mod sequence;
pub mod suite;
pub mod tls;
mod tls_names;

pub(crate) use tls_names::unit as tls_unit;
