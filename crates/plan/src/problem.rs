//! What is wrong with a plan: where in the file, what, and what to type instead.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Level, Renderer, Snippet};
use weigh_model::visible::visible;

use crate::masked::masked;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The bytes of the file that it is about; `None` for something that is not there.
    pub place: Option<Range<usize>>,
    /// What is wrong.
    pub text: String,
    /// What to type instead; may be empty.
    pub mend: String,
}

impl Problem {
    /// Something wrong at `place`.
    pub fn at(place: Range<usize>, text: impl Into<String>, mend: impl Into<String>) -> Problem {
        Problem { place: Some(place), text: text.into(), mend: mend.into() }
    }

    /// Something wrong about what is not there.
    pub fn missing(text: impl Into<String>, mend: impl Into<String>) -> Problem {
        Problem { place: None, text: text.into(), mend: mend.into() }
    }
}

/// All that is wrong with a plan, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds one, unless the same was said before.
    pub fn add(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// `value` if nothing is wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Problems> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// All of them with line, column and the line they are about, as compilers print errors.
    /// `file` is the name it has for the reader, `text` what it holds.
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
            if !problem.mend.is_empty() {
                group = group.element(Level::HELP.message(visible(&problem.mend)));
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

/// The text of a plan as a terminal may have it: what it would obey is a mark that takes as many
/// bytes, so that every place stays where it is.
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

/// Nobody reads more at once.
const SHOWN_MAX: usize = 20;
