//! weigh.
fn main() {}
