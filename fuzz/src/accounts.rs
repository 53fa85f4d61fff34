//! What holds for the account of every capture.

use weigh_capture::Account;

/// Every packet and every byte of it is in exactly one place; warnings and metrics can be made.
pub fn accounted(account: &Account, bytes: u64, packets: u64) {
    let sum = account.sent.total() + account.received.total();
    assert_eq!(account.packets_captured, packets);
    assert_eq!(sum.packets_captured + account.other.packets, packets);
    assert_eq!(sum.bytes_captured + account.other.bytes, bytes);
    assert_eq!(sum.bytes(), sum.bytes_captured, "bytes by layer are those that were captured");
    let _ = account.warnings();
    assert!(!account.metrics(Some(1)).is_empty());
}
