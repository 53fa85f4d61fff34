//! Sequence numbers that no trial of this program uses again under one key: a nonce that is used
//! twice gives both texts away, and a server takes no number twice (RFC 8613, sections 7.4 and
//! 12.3).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::security::KEY_BYTES;

/// The next sequence number under a key, at least `first`. Trials that use the same key continue.
pub(super) fn continued(key: &[u8; KEY_BYTES], first: u64) -> Arc<AtomicU64> {
    static NEXT: LazyLock<Mutex<HashMap<[u8; KEY_BYTES], Arc<AtomicU64>>>> =
        LazyLock::new(Mutex::default);
    let mut all = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let next = all.entry(*key).or_default();
    next.fetch_max(first, Ordering::Relaxed);
    next.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_comes_again() {
        let key = [7; KEY_BYTES];
        assert_eq!(continued(&key, 5).fetch_add(1, Ordering::Relaxed), 5);
        assert_eq!(continued(&key, 0).load(Ordering::Relaxed), 6);
        assert_eq!(continued(&key, 9).load(Ordering::Relaxed), 9);
    }
}
