//! What the user has chosen to see.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use weigh_model::live::QUANTILES;

use crate::state::P99;

/// The user's choices.
#[derive(Clone, Debug)]
pub struct View {
    /// Place of the percentile that is drawn, in [`QUANTILES`].
    pub quantile: usize,
    /// Place of the trial that is shown; `None` follows the run.
    pub trial: Option<usize>,
    /// True while the screen stands still.
    pub is_paused: bool,
    /// True while the keys are explained.
    pub shows_help: bool,
}

/// What a key asks of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw again.
    Draw,
    /// Close the view. The run continues.
    Close,
    /// Ctrl-C.
    Interrupt,
    /// Nothing: the key has no meaning.
    Ignore,
}

impl Default for View {
    fn default() -> View {
        View { quantile: P99, trial: None, is_paused: false, shows_help: false }
    }
}

impl View {
    /// Applies a key. `shown` is the place of the trial on the screen, of `trials` that began.
    pub fn press(&mut self, key: KeyEvent, shown: Option<usize>, trials: usize) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Action::Interrupt } else { Action::Ignore };
        }
        match key.code {
            KeyCode::Char('q') => return Action::Close,
            KeyCode::Esc if !self.shows_help => return Action::Close,
            KeyCode::Esc => self.shows_help = false,
            KeyCode::Char('?' | 'h') => self.shows_help = !self.shows_help,
            KeyCode::Char('p') => self.quantile = (self.quantile + 1) % QUANTILES.len(),
            KeyCode::Char('P') => {
                self.quantile = (self.quantile + QUANTILES.len() - 1) % QUANTILES.len();
            }
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Left | KeyCode::Char('[') => {
                self.trial = shown.map(|shown| shown.saturating_sub(1));
            }
            KeyCode::Right | KeyCode::Char(']') => {
                let next = shown.map(|shown| shown + 1).filter(|next| *next < trials);
                self.trial = next.or(self.trial);
            }
            KeyCode::Home => self.trial = (trials > 0).then_some(0),
            KeyCode::End => self.trial = None,
            _ => return Action::Ignore,
        }
        Action::Draw
    }
}

/// The keys and what they do.
pub const KEYS: [(&str, &str); 7] = [
    ("p, P", "choose the next or the previous percentile"),
    ("space", "hold the screen, and continue"),
    ("left, right", "show the trial before or after this one"),
    ("Home, End", "show the first trial, or follow the run again"),
    ("?", "show or hide this help"),
    ("q", "close the view; the run continues"),
    ("Ctrl-C", "close the view; with compare --live, end the run early"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, code: KeyCode, shown: usize) -> Action {
        view.press(KeyEvent::new(code, KeyModifiers::NONE), Some(shown), 3)
    }

    #[test]
    fn keys_move_between_trials_and_end_follows_the_run_again() {
        let mut view = View::default();
        press(&mut view, KeyCode::Left, 2);
        assert_eq!(view.trial, Some(1));
        press(&mut view, KeyCode::Right, 1);
        press(&mut view, KeyCode::Right, 2);
        assert_eq!(view.trial, Some(2), "there is no trial behind the last");
        press(&mut view, KeyCode::Home, 2);
        assert_eq!(view.trial, Some(0));
        press(&mut view, KeyCode::Left, 0);
        assert_eq!(view.trial, Some(0));
        press(&mut view, KeyCode::End, 0);
        assert_eq!(view.trial, None);
    }

    #[test]
    fn every_percentile_is_reached_in_both_directions() {
        let mut view = View::default();
        for _ in 0..QUANTILES.len() {
            press(&mut view, KeyCode::Char('p'), 0);
        }
        assert_eq!(view.quantile, P99);
        press(&mut view, KeyCode::Char('P'), 0);
        assert_eq!(QUANTILES[view.quantile].1, "p95");
    }

    #[test]
    fn only_two_keys_end_the_view() {
        let mut view = View::default();
        assert_eq!(press(&mut view, KeyCode::Char('q'), 0), Action::Close);
        press(&mut view, KeyCode::Char('?'), 0);
        assert_eq!(press(&mut view, KeyCode::Esc, 0), Action::Draw, "Esc closes the help first");
        assert_eq!(press(&mut view, KeyCode::Esc, 0), Action::Close);
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.press(control, None, 0), Action::Interrupt);
        assert_eq!(press(&mut view, KeyCode::Char('x'), 0), Action::Ignore);
    }
}
