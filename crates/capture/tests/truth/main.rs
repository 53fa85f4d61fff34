//! The probe against witnesses that know nothing of it: tshark, dumpcap, and the kernel's counters.
//! Real connections in a network namespace of their own, MTU 1500.

#[path = "../world/mod.rs"]
mod world;

mod hard;
mod openssl;
mod plain;
mod ring;
mod segments;
mod session;
mod tls;
mod trap;
mod tshark;
