//! Errors of a plan: the place in the file, what is wrong, and what to type instead.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Level, Renderer, Snippet};
use weigh_model::visible::visible;

use crate::masked::masked;

/// One error.
///
/// # Examples
///
/// ```
/// use weigh_plan::Problem;
///
/// let problem = Problem::missing("the plan has no protocol", "add protocol = \"tcp\"");
/// assert_eq!(problem.place, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its bytes in the file; `None` if something is missing.
    pub place: Option<Range<usize>>,
    /// What is wrong.
    pub text: String,
    /// What to type instead; may be empty.
    pub fix: String,
}

impl Problem {
    /// Makes an error at `place`.
    pub fn at(place: Range<usize>, text: impl Into<String>, fix: impl Into<String>) -> Problem {
        Problem { place: Some(place), text: text.into(), fix: fix.into() }
    }

    /// Makes an error about something that is missing.
    pub fn missing(text: impl Into<String>, fix: impl Into<String>) -> Problem {
        Problem { place: None, text: text.into(), fix: fix.into() }
    }
}

/// All errors of a plan, in the order of the file.
///
/// # Examples
///
/// ```
/// use weigh_plan::{Problem, Problems};
///
/// let text = "protocol = \"tpc\"";
/// let mut problems = Problems::default();
/// problems.add(Problem::at(11..16, "unknown protocol \"tpc\"", "did you mean tcp?"));
/// let shown = problems.render("plan.toml", text, false);
/// assert!(shown.contains("plan.toml:1:12") && shown.contains("did you mean tcp?"), "{shown}");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds an error, unless it is a duplicate.
    pub fn add(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// True without errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of errors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the errors.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Returns `value` without errors.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Problems> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Formats all errors with line, column and source line, like a compiler. `file` is its name,
    /// `text` its contents.
    pub fn render(&self, file: &str, text: &str, with_colour: bool) -> String {
        let renderer = if with_colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let text = shown(&masked(text));
        let mut sorted: Vec<&Problem> = self.0.iter().collect();
        sorted.sort_by_key(|problem| problem.place.as_ref().map(|place| place.start));
        let shown = sorted.iter().take(SHOWN_MAX).map(|problem| {
            let mut group = Level::ERROR
                .primary_title(visible(&problem.text))
                .elements(Vec::<Element<'_>>::new());
            if let Some(place) = &problem.place {
                let end = place.end.min(text.len());
                let span = place.start.min(end)..end;
                let snippet = Snippet::source(text.as_str()).path(file);
                group = group.element(snippet.annotation(AnnotationKind::Primary.span(span)));
            }
            if !problem.fix.is_empty() {
                group = group.element(Level::HELP.message(visible(&problem.fix)));
            }
            renderer.render(&[group])
        });
        let mut lines: Vec<String> = shown.collect();
        if sorted.len() > SHOWN_MAX {
            lines.push(format!("and {} more", sorted.len() - SHOWN_MAX));
        }
        lines.join("\n\n")
    }
}

/// Replaces control characters by marks of as many bytes, so that places stay valid and a terminal
/// does not obey them.
fn shown(text: &str) -> String {
    let is_unseen = |character: char| {
        !matches!(character, '\n' | '\r' | '\t')
            && visible(character.encode_utf8(&mut [0; 4])) != *character.encode_utf8(&mut [0; 4])
    };
    let marks = ["?", "¿", "⍰"];
    text.chars()
        .map(|character| match is_unseen(character) {
            true => marks[character.len_utf8() - 1].to_owned(),
            false => character.to_string(),
        })
        .collect()
}

/// Maximum number of errors that are shown.
const SHOWN_MAX: usize = 20;
