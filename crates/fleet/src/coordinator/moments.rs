//! The moments of the window, for the observer of the target. They are called in a thread of their
//! own: reading what connections cost may take a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weigh_engine::generator::TrialObserver;
use weigh_model::Nanos;

use crate::monotonic;

/// Calls an observer at the moments of a trial's window.
pub struct Moments {
    news: Option<Sender<News>>,
    thread: Option<JoinHandle<()>>,
    is_done: Arc<AtomicBool>,
}

/// What is known of the window.
enum News {
    /// It begins then, and ends then if that is known before.
    Window { from: Nanos, to: Option<Nanos> },
    /// The load is over.
    LoadOver,
    /// Everything is accounted for.
    Over,
}

impl Moments {
    /// Waits for news in a thread. The trial's clock stands at 0 at `epoch_ns` of
    /// `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// If there is no thread.
    pub fn start(observer: &Arc<dyn TrialObserver>, epoch_ns: i64) -> std::io::Result<Moments> {
        let (news, heard) = channel();
        let (observer, is_done) = (Arc::clone(observer), Arc::new(AtomicBool::new(false)));
        let done = Arc::clone(&is_done);
        let thread = thread::Builder::new().name("weigh-window".to_owned()).spawn(move || {
            let _done = SetOnDrop(done);
            Calls { observer, epoch_ns, from: None, to: None }.serve(&heard);
        })?;
        Ok(Moments { news: Some(news), thread: Some(thread), is_done })
    }

    /// The window begins at `from`, and the load ends at `to` if that is known before.
    pub fn expect(&self, from: Nanos, to: Option<Nanos>) {
        self.tell(News::Window { from, to });
    }

    /// The load is over.
    pub fn note_load_over(&self) {
        self.tell(News::LoadOver);
    }

    /// Everything is accounted for.
    pub fn note_over(&self) {
        self.tell(News::Over);
    }

    /// True once the observer has returned from the last call.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    fn tell(&self, news: News) {
        // The thread hears until the end of the window.
        let _ = self.news.as_ref().map(|to| to.send(news));
    }
}

impl Drop for Moments {
    /// Whatever has happened, the observer hears of the end, and no call comes after this.
    fn drop(&mut self) {
        drop(self.news.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

/// Lets the connections go, also if the observer panics.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Calls {
    observer: Arc<dyn TrialObserver>,
    epoch_ns: i64,
    /// What is still to be called, at these times.
    from: Option<Nanos>,
    to: Option<Nanos>,
}

impl Calls {
    fn serve(mut self, heard: &Receiver<News>) {
        let mut is_load_over = false;
        loop {
            let now = self.now();
            if self.from.is_some_and(|from| now >= from) {
                self.from = None;
                self.observer.window_began(now);
                continue;
            }
            if self.from.is_none() && self.to.is_some_and(|to| now >= to) {
                self.to = None;
                is_load_over = true;
                self.observer.load_ended(now);
                continue;
            }
            let next = self.from.or(self.to).map(|next| Duration::from_nanos((next - now).0));
            match heard.recv_timeout(next.unwrap_or(FOREVER)) {
                Ok(News::Window { from, to }) => (self.from, self.to) = (Some(from), to),
                Ok(News::LoadOver) if !is_load_over => self.to = Some(Nanos(0)),
                Ok(News::LoadOver) | Err(RecvTimeoutError::Timeout) => {}
                Ok(News::Over) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.observer.window_ended(self.now());
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(monotonic::now_ns() - self.epoch_ns).unwrap_or(0))
    }
}

const FOREVER: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use weigh_engine::job::Progress;

    #[derive(Default)]
    struct Calls(Mutex<Vec<(&'static str, Nanos)>>);

    impl TrialObserver for Calls {
        fn window_began(&self, now: Nanos) {
            self.0.lock().unwrap().push(("began", now));
        }

        fn load_ended(&self, now: Nanos) {
            self.0.lock().unwrap().push(("load over", now));
        }

        fn window_ended(&self, now: Nanos) {
            self.0.lock().unwrap().push(("over", now));
        }

        fn progress(&self, _: u32, _: Progress) {}
    }

    fn called(tell: impl FnOnce(&Moments)) -> Vec<(&'static str, Nanos)> {
        let calls = Arc::new(Calls::default());
        let observer: Arc<dyn TrialObserver> = calls.clone();
        let moments = Moments::start(&observer, monotonic::now_ns()).unwrap();
        tell(&moments);
        drop(moments);
        std::mem::take(&mut *calls.0.lock().unwrap())
    }

    #[test]
    fn moments_are_called_in_their_order_and_not_before() {
        let (from, to) = (Nanos::from_millis(20), Nanos::from_millis(40));
        let all = called(|moments| {
            moments.expect(from, Some(to));
            thread::sleep(Duration::from_millis(200));
            moments.note_load_over();
            moments.note_over();
        });
        let names: Vec<&str> = all.iter().map(|call| call.0).collect();
        assert_eq!(names, ["began", "load over", "over"]);
        assert!(all[0].1 >= from && all[1].1 >= to);
    }

    #[test]
    fn a_trial_without_a_window_has_an_end() {
        let names = |all: Vec<(&'static str, Nanos)>| -> Vec<&'static str> {
            all.into_iter().map(|call| call.0).collect()
        };
        assert_eq!(names(called(|_| {})), ["over"]);
        let later = Nanos::from_secs(3_000);
        assert_eq!(names(called(|moments| moments.expect(later, None))), ["over"]);
    }
}
