//! Handles Ctrl-C and SIGTERM: the first one finishes the record, the second one ends at once.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_testbed::patience;

use crate::exit::Exit;
use crate::watcher::Watcher;

/// A function that stops the current work.
type Stopper = Box<dyn Fn() + Send>;

/// The signals so far.
///
/// # Examples
///
/// ```
/// use weigh_runner::interrupts::Interrupts;
///
/// let interrupts = Interrupts::default();
/// assert_eq!(interrupts.exit(), None, "no signal so far");
/// ```
#[derive(Default)]
pub struct Interrupts {
    count: AtomicU32,
    signal: AtomicU32,
    stopper: Mutex<Option<Stopper>>,
    /// True when the journal is complete and only the report is being written.
    is_reporting: AtomicBool,
}

impl Interrupts {
    /// Starts to listen for signals; `watcher` shows their effect.
    ///
    /// # Errors
    /// Signal handlers that cannot be installed.
    pub fn listen(watcher: Box<dyn Watcher>) -> std::io::Result<Arc<Interrupts>> {
        let interrupts = Arc::new(Interrupts::default());
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let heard = Arc::clone(&interrupts);
        std::thread::Builder::new().name("weigh-signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                heard.hear(signal as u32, &*watcher);
            }
        })?;
        Ok(interrupts)
    }

    /// Runs work that can be repeated from the journal, so that a signal ends the program at once.
    pub fn reporting<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_reporting.store(true, Ordering::SeqCst);
        let done = work();
        // The program may start another run.
        self.is_reporting.store(false, Ordering::SeqCst);
        done
    }

    /// Stops the current work like a first signal, for an internal reason.
    pub fn ask(&self) {
        let stopper = self.stopper.lock();
        self.count.fetch_add(1, Ordering::SeqCst);
        if let Ok(stopper) = &stopper
            && let Some(stop) = stopper.as_ref()
        {
            stop();
        }
    }

    fn hear(&self, signal: u32, watcher: &dyn Watcher) {
        // The lock prevents two calls of a stopper that is being armed.
        let stopper = self.stopper.lock();
        self.signal.store(signal, Ordering::SeqCst);
        patience::end();
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if count == 1 && self.is_reporting.load(Ordering::SeqCst) {
            watcher.say(
                "interrupted; the journal is complete: weigh report latest --html writes the rest",
            );
            std::process::exit(self.code());
        }
        let advice = "finishing the record; press Ctrl-C again to end now";
        let next = if count == 1 { advice } else { "ending now" };
        watcher.say(&format!("interrupted, {next}"));
        if let Ok(stopper) = &stopper
            && let Some(stop) = stopper.as_ref()
        {
            stop();
        }
        if count == 2 {
            self.end_soon();
        }
    }

    /// Ends the process after a delay if it hangs, such as in a wait for a target. Targets end with
    /// it, and finished trials are in the journal.
    fn end_soon(&self) {
        let code = self.code();
        let end = move || {
            std::thread::sleep(END_WITHIN);
            std::process::exit(code);
        };
        let thread = std::thread::Builder::new().name("weigh-end".to_owned()).spawn(end);
        if thread.is_err() {
            std::process::exit(code);
        }
    }

    fn code(&self) -> i32 {
        match self.signal.load(Ordering::SeqCst) as i32 {
            SIGTERM => 143,
            _ => 130,
        }
    }

    /// True after a second signal.
    pub fn are_urgent(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 1
    }

    /// Calls `stop` at every signal until [`Interrupts::disarm`]; at once after earlier signals.
    pub fn arm(&self, stop: impl Fn() + Send + 'static) {
        if let Ok(mut stopper) = self.stopper.lock() {
            for _ in 0..self.count.load(Ordering::SeqCst) {
                stop();
            }
            *stopper = Some(Box::new(stop));
        }
    }

    /// Disarms: there is nothing left to stop.
    pub fn disarm(&self) {
        if let Ok(mut stopper) = self.stopper.lock() {
            *stopper = None;
        }
    }

    /// The exit code for the signals so far, if any.
    pub fn exit(&self) -> Option<Exit> {
        match (self.count.load(Ordering::SeqCst), self.signal.load(Ordering::SeqCst) as i32) {
            (0, _) => None,
            (_, SIGTERM) => Some(Exit::Terminated),
            _ => Some(Exit::Interrupted),
        }
    }
}

/// Time after the second signal to finish the record.
const END_WITHIN: Duration = Duration::from_secs(2);
