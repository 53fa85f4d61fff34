//! An allocator that counts what each thread holds: a simulated world runs in one thread, so both
//! ends of a play are in the count of that thread, and plays of other threads are not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocator.
pub struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    // A thread that ends has no count any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs `play` and returns its result, and the most bytes that it held at once.
pub fn most_held<T>(play: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.get();
    MOST.set(before);
    let result = play();
    (result, MOST.get() - before)
}

#[test]
fn the_most_that_was_held_is_counted() {
    let (length, most) = most_held(|| {
        drop(vec![1_u8; 3_000_000]);
        vec![1_u8; 1_000].len()
    });
    assert_eq!(length, 1_000);
    assert!((3_000_000..3_100_000).contains(&most), "{most}");
}
