//! The view in a terminal: drawn once a second, and at once after a key or a new size.

mod bars;
mod courses;
mod head;
mod ledger;
mod line;
mod lists;
mod screen;
mod shown;
mod view;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::courtesy;
use crate::follow::Lost;
use crate::process::Resources;
use crate::subject::Subject;
use crate::watching::Watching;

pub use screen::draw;
pub use shown::{Look, Shown};
pub use view::{Action, View};

/// How a view is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Characters and colours of the terminal.
    pub look: Look,
    /// Close the view when the run is over.
    pub ends_with_run: bool,
}

/// How a view ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The user closed it, or the run is over.
    Closed,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Reason for which there is no view.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// Standard output or input is not a terminal.
    #[error(
        "weigh watch draws in a terminal, and standard input or output is not one\nhelp: type \
         weigh watch --web for a page in a browser, or weigh report for the table"
    )]
    NoTerminal,
    /// The journal cannot be followed.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The terminal refused.
    #[error("the terminal cannot be drawn on: {0}")]
    Terminal(#[from] io::Error),
}

/// Shows the run in `folder`, or the runs of the study there one after another, until the user
/// closes the view.
///
/// # Errors
/// Without a terminal, and if the run has no journal that can be read. A journal that disappears
/// later is reported on the screen, and what was read stays.
pub fn watch(folder: &Path, options: Options) -> Result<End, WatchError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(WatchError::NoTerminal);
    }
    let watching = Watching::open(Subject::at(folder))?;
    // A kernel that refuses leaves an ordinary process, which the line with its CPU time shows.
    let _ = courtesy::give_way();
    let mut terminal = ratatui::try_init()?;
    let end = Screen::new(watching, options).run(&mut terminal);
    ratatui::try_restore()?;
    end
}

/// The loop of a view.
struct Screen {
    watching: Watching,
    /// The id of the study of which the run is a part.
    study: Option<String>,
    options: Options,
    view: View,
    problem: Option<String>,
    resources: Resources,
    /// Share of a core that the generator's process uses, percent.
    generator_percent: Option<f64>,
    own_percent: f64,
    /// Time of the last look at processes, own CPU time then, and that of the generator.
    looked: (Instant, f64, Option<f64>),
    /// The generator whose cores were left.
    left: Option<u32>,
}

impl Screen {
    fn new(watching: Watching, options: Options) -> Screen {
        Screen {
            study: watching.study(),
            watching,
            options,
            view: View::default(),
            problem: None,
            resources: Resources::default(),
            generator_percent: None,
            own_percent: 0.0,
            looked: (Instant::now(), courtesy::own_cpu_s(), None),
            left: None,
        }
    }

    fn run(mut self, terminal: &mut ratatui::DefaultTerminal) -> Result<End, WatchError> {
        loop {
            let began = Instant::now();
            let is_behind = self.look(began);
            self.look_at_processes();
            terminal.draw(|frame| draw(frame, &self.shown(), &self.view, self.options.look))?;
            if self.options.ends_with_run && self.watching.is_over() {
                return Ok(End::Closed);
            }
            let pause = if is_behind { Duration::ZERO } else { EVERY };
            if let Some(end) = self.keys(terminal, began + pause)? {
                return Ok(end);
            }
        }
    }

    /// Reads what is new, unless the screen is held; true if there is more to read.
    fn look(&mut self, began: Instant) -> bool {
        while !self.view.is_paused && self.problem.is_none() {
            match self.watching.look() {
                // A user who looks at an earlier trial is not taken to another run.
                Ok(false) if self.view.trial.is_some() || !self.watching.go_on() => return false,
                Ok(false) => {}
                Ok(true) if began.elapsed() < FRAME => {}
                Ok(true) => return true,
                Err(lost) => self.problem = Some(lost.to_string()),
            }
        }
        false
    }

    fn look_at_processes(&mut self) {
        let (then, own_then, generator_then) = self.looked;
        let passed = then.elapsed().as_secs_f64();
        if passed < MEASURED_S_MIN {
            return;
        }
        let generator = self.watching.generator();
        if let Some(pid) = generator.filter(|pid| self.left != Some(*pid)) {
            let _ = courtesy::leave_cores_of(pid);
            self.left = Some(pid);
        }
        self.resources = generator.map(Resources::of).unwrap_or_default();
        let own = courtesy::own_cpu_s();
        let percent = |now: f64, then: f64| 100.0 * (now - then) / passed;
        self.own_percent = percent(own, own_then);
        let pair = self.resources.cpu_s.zip(generator_then);
        self.generator_percent = pair.map(|(now, then)| percent(now, then));
        self.looked = (Instant::now(), own, self.resources.cpu_s);
    }

    fn shown(&self) -> Shown<'_> {
        Shown {
            state: &self.watching.state,
            study: self.study.as_deref(),
            is_recorded: self.watching.is_recorded,
            is_read: self.watching.is_read,
            resources: self.resources,
            generator_percent: self.generator_percent,
            own_percent: self.own_percent,
            problem: self.problem.as_deref(),
        }
    }

    /// Applies keys until `until`; a key or a new size is shown at once.
    fn keys(
        &mut self,
        terminal: &mut ratatui::DefaultTerminal,
        until: Instant,
    ) -> Result<Option<End>, WatchError> {
        loop {
            if !event::poll(until.saturating_duration_since(Instant::now()))? {
                return Ok(None);
            }
            let action = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let state = &self.watching.state;
                    let shown = self.view.trial.or(state.newest());
                    self.view.press(key, shown, state.trials.len())
                }
                Event::Resize(..) => Action::Draw,
                _ => Action::Ignore,
            };
            match action {
                Action::Close => return Ok(Some(End::Closed)),
                Action::Interrupt => return Ok(Some(End::Interrupted)),
                Action::Draw => {
                    let look = self.options.look;
                    terminal.draw(|frame| draw(frame, &self.shown(), &self.view, look))?;
                }
                Action::Ignore => {}
            }
        }
    }
}

/// Interval between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Time for which a long journal is read before the screen is drawn in between.
const FRAME: Duration = Duration::from_millis(200);

/// Below this time shares of a core are too coarse: the kernel counts in hundredths of a second.
const MEASURED_S_MIN: f64 = 0.9;
