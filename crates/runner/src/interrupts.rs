//! Ctrl-C and SIGTERM: once to finish the record, twice to end it now.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_testbed::patience;

use crate::exit::Exit;
use crate::watcher::Watcher;

/// Something that stops what is running now.
type Stopper = Box<dyn Fn() + Send>;

/// What the signals have asked for so far.
#[derive(Default)]
pub struct Interrupts {
    count: AtomicU32,
    signal: AtomicU32,
    stopper: Mutex<Option<Stopper>>,
    /// True once everything is in the journal and only the report is still written.
    is_reporting: AtomicBool,
}

impl Interrupts {
    /// Listens from now on; `watcher` hears what a signal does.
    ///
    /// # Errors
    /// If signals cannot be listened for.
    pub fn listen(watcher: impl Watcher + 'static) -> std::io::Result<Arc<Interrupts>> {
        let interrupts = Arc::new(Interrupts::default());
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let heard = Arc::clone(&interrupts);
        std::thread::Builder::new().name("weigh-signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                heard.hear(signal as u32, &watcher);
            }
        })?;
        Ok(interrupts)
    }

    /// Does what can be done again from the journal, so that a signal ends the program at once.
    pub fn reporting<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_reporting.store(true, Ordering::SeqCst);
        let done = work();
        // Of several runs of one program the next one is about to begin.
        self.is_reporting.store(false, Ordering::SeqCst);
        done
    }

    /// Stops what is running, as a first signal does: for a reason of our own.
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
        // The lock keeps a stopper that is armed in this moment from being called twice.
        let stopper = self.stopper.lock();
        self.signal.store(signal, Ordering::SeqCst);
        patience::end();
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if count == 1 && self.is_reporting.load(Ordering::SeqCst) {
            watcher.say(
                "interrupted; the journal is whole: weigh report latest --html writes the rest",
            );
            std::process::exit(self.code());
        }
        let advice = "finishing the record; once more ends it now";
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

    /// Ends the process if it does not end by itself, because it waits for a target, say. Targets
    /// end with us, and what was finished stands in the journal.
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

    /// True once a second signal asked to end now.
    pub fn are_urgent(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 1
    }

    /// Has `stop` called at every signal until [`Interrupts::disarm`]; at once if signals came
    /// before.
    pub fn arm(&self, stop: impl Fn() + Send + 'static) {
        if let Ok(mut stopper) = self.stopper.lock() {
            for _ in 0..self.count.load(Ordering::SeqCst) {
                stop();
            }
            *stopper = Some(Box::new(stop));
        }
    }

    /// Nothing runs that a signal could stop.
    pub fn disarm(&self) {
        if let Ok(mut stopper) = self.stopper.lock() {
            *stopper = None;
        }
    }

    /// The exit code the signals ask for, if any came.
    pub fn exit(&self) -> Option<Exit> {
        match (self.count.load(Ordering::SeqCst), self.signal.load(Ordering::SeqCst) as i32) {
            (0, _) => None,
            (_, SIGTERM) => Some(Exit::Terminated),
            _ => Some(Exit::Interrupted),
        }
    }
}

/// How long after the second signal the record may still be written.
const END_WITHIN: Duration = Duration::from_secs(2);
