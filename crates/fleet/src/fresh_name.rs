//! Names of agents and coordinators, which no other process has.

use crate::monotonic;

/// A name that no other process has.
pub fn fresh_name() -> String {
    let mut bytes = [0; 8];
    // Without random numbers, the process and the time are the next best.
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).is_err() {
        let process = i64::from(std::process::id()) << 40;
        bytes = (monotonic::now_ns() ^ process).to_le_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
