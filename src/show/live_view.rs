//! `--live` and `--open`: starts `weigh watch` in a process of its own beside the run. Its progress
//! lines wait until the view is closed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use weigh_runner::trial::ticks::Tick;
use weigh_runner::watcher::{Standing, Watcher};

use crate::show::terminal::{Display, Lines};

/// A watcher that starts a view of the run.
pub struct LiveView {
    kind: Kind,
    /// Shows the progress where the view does not cover it.
    display: Display,
    view: Mutex<Option<Child>>,
    /// The trial that the view shows.
    standing: Mutex<Option<Standing>>,
    /// Lines that wait until the terminal is free.
    waiting: Mutex<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Terminal,
    Page,
}

impl LiveView {
    /// A view in the terminal of the run.
    pub fn terminal(is_quiet: bool) -> Box<dyn Watcher> {
        Box::new(LiveView::new(Kind::Terminal, is_quiet))
    }

    /// A page in a browser.
    pub fn page(is_quiet: bool) -> Box<dyn Watcher> {
        Box::new(LiveView::new(Kind::Page, is_quiet))
    }

    fn new(kind: Kind, is_quiet: bool) -> LiveView {
        let (view, standing, waiting) = Default::default();
        LiveView { kind, display: Display::new(is_quiet), view, standing, waiting }
    }

    fn start(&self, folder: &Path) -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("watch").arg(folder);
        command.args(["--in-place", &std::process::id().to_string()]);
        if self.kind == Kind::Page {
            command.args(["--web", "127.0.0.1:0", "--browser"]);
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        command.spawn()
    }

    /// True while the view has the terminal.
    fn is_covered(&self) -> bool {
        if self.kind == Kind::Page {
            return false;
        }
        let Ok(mut view) = self.view.lock() else { return false };
        let is_open = view.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if !is_open && view.take().is_some() {
            drop(view);
            self.take_over();
        }
        is_open
    }

    /// Continues with the usual progress after the user closed the view.
    fn take_over(&self) {
        self.say_waiting();
        let standing = self.standing.lock().ok().and_then(|mut standing| standing.take());
        if let Some(standing) = standing {
            self.display.trial(standing);
        }
    }

    fn say_waiting(&self) {
        if let Ok(mut waiting) = self.waiting.lock() {
            waiting.drain(..).for_each(|text| Lines.say(&text));
        }
    }
}

impl Watcher for LiveView {
    fn begun(&self, folder: &Path) {
        match self.start(folder) {
            Ok(child) => {
                if let Ok(mut view) = self.view.lock() {
                    *view = Some(child);
                }
            }
            Err(error) => Lines.say(&format!("the run continues without a view: {error}")),
        }
    }

    fn say(&self, text: &str) {
        match self.is_covered() {
            false => self.display.say(text),
            true => {
                if let Ok(mut waiting) = self.waiting.lock() {
                    waiting.push(text.to_owned());
                }
            }
        }
    }

    fn note(&self, text: &str) {
        if !self.is_covered() {
            self.display.note(text);
        }
    }

    fn trial(&self, standing: Standing) {
        if !self.is_covered() {
            return self.display.trial(standing);
        }
        if let Ok(mut known) = self.standing.lock() {
            *known = Some(standing);
        }
    }

    fn opening(&self, open: u64, all: u64) {
        if !self.is_covered() {
            self.display.opening(open, all);
        }
    }

    fn tick(&self, tick: &Tick) {
        if !self.is_covered() {
            self.display.tick(tick);
        }
    }

    fn trial_done(&self) {
        if !self.is_covered() {
            return self.display.trial_done();
        }
        if let Ok(mut known) = self.standing.lock() {
            *known = None;
        }
    }
}

impl Drop for LiveView {
    /// Waits until the view has seen the end of the run, so that the table follows it. A page
    /// stays.
    fn drop(&mut self) {
        let until = Instant::now() + CLOSES_WITHIN;
        while self.is_covered() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        if self.kind == Kind::Terminal
            && let Ok(mut view) = self.view.lock()
            && let Some(mut child) = view.take()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.say_waiting();
    }
}

/// Time in which a view closes after its run: it looks once a second.
const CLOSES_WITHIN: Duration = Duration::from_secs(4);

const LOOK_EVERY: Duration = Duration::from_millis(20);
