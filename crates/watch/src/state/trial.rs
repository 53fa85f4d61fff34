//! A trial of the run that is watched.

use weigh_model::trial::Point;

use super::Headline;

/// A trial that began.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its id.
    pub id: String,
    /// Its point of the matrix.
    pub point: Point,
    /// Its repetition, from 0.
    pub repetition: u32,
    /// How it ended, so far.
    pub outcome: Outcome,
}

/// How a trial ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It has no result: it runs, or its process was killed.
    Begun,
    /// It has a result.
    Done(Box<Headline>),
    /// It could not be done, for this reason.
    Failed(String),
}

impl Trial {
    /// A trial that begins.
    pub fn new(id: String, point: Point, repetition: u32) -> Trial {
        Trial { id, point, repetition, outcome: Outcome::Begun }
    }
}
